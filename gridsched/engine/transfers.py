"""Data between tasks: sent when they are made and wanted somewhere, and what waits for them there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.arrays import Floats
from gridsched.engine.execution import UNENDED, Execution, Transfer
from gridsched.model.dependencies import Dependencies
from gridsched.model.network import Network
from gridsched.model.staged_files import StagedFiles
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.model.trace import TRANSFER, ExecutionEnd

#: The maker of files that no task makes.
_NO_TASK = -1


class Transfers:
    """Where data are, what is on its way, and which executions wait for them on their hosts.

    What a task makes is at the host (of several, the first) on which it ended. It goes to another host as soon
    as a task that needs it is queued or started there, and stays there.

    Parameters
    ----------
    dependencies : Dependencies
    network : Network
        For what is expected of transfers.
    staged : StagedFiles, optional
        Files that lie on a host from the start; their pairs are counted on from the last dependency.
    source : int
        That host.
    is_down : sequence of bool
        Hosts that are down by themselves, as it is at any time: from and to them nothing is sent.

    Attributes
    ----------
    arriving : collection of Transfer
        What arrives in the present instant.
    """

    exists = True

    def __init__(
        self,
        dependencies: Dependencies,
        network: Network,
        staged: StagedFiles | None = None,
        source: int = 0,
        is_down: Sequence[bool] = (),
    ) -> None:
        pairs = dependencies.by_task()
        self._network = network
        self._on: list[int] = pairs.on.tolist()
        self._size: list[float] = pairs.size_bytes.tolist()
        self._key = _keys(pairs)
        self._pairs_of: dict[int, list[int]] = {}
        for pair in np.flatnonzero(pairs.size_bytes > 0).tolist():
            self._pairs_of.setdefault(int(pairs.task[pair]), []).append(pair)
        #: host on which each task has ended
        self.made_at: dict[int, int] = {}
        if staged is not None:
            self.made_at[_NO_TASK] = source
            self._add(staged)
        #: hosts at which data are, or to which they are on their way, and when they are expected there [s]
        self._places: dict[int, dict[int, float]] = {}
        self._in_flight: dict[tuple[int, int], Transfer] = {}
        #: what of that waits until both of its hosts are up
        self._held: list[Transfer] = []
        self._is_down = is_down
        self.arriving: Collection[Transfer] = ()
        #: (pair, host) that are wanted of tasks which have not ended, in order
        self._wanted: dict[int, dict[tuple[int, int], None]] = {}
        self._waiting: dict[int, list[Execution]] = {}
        #: of each host: transfers under way from or to it, and pairs whose data are there and not wanted so far
        self._in_use: dict[int, int] = {}
        self._pairs_on: dict[int, list[int]] = {}
        for pairs_of in self._pairs_of.values():
            for pair in pairs_of:
                self._pairs_on.setdefault(self._on[pair], []).append(pair)
        self._use(source, len(self._pairs_on.get(_NO_TASK, ())))
        self._is_wanted: set[int] = set()
        #: to be taken by the driver
        self.sent: list[Transfer] = []
        self._all: list[Transfer] = []

    def _add(self, staged: StagedFiles) -> None:
        """Add pairs of a task and a file, as if a task that has ended had made all files."""
        keys: dict[int, int] = {}
        for task, file, size in zip(
            staged.task.tolist(), staged.file.tolist(), staged.size_bytes.tolist(), strict=True
        ):
            pair = len(self._on)
            self._on.append(_NO_TASK)
            self._size.append(size)
            self._key.append(keys.setdefault(file, pair))
            if size > 0:
                self._pairs_of.setdefault(task, []).append(pair)

    def want(self, task: int, host: int, now: float) -> None:
        """Have the data of a task sent to a host, now or when they are made."""
        made_at, is_wanted = self.made_at, self._is_wanted
        for pair in self._pairs_of.get(task, ()):
            other = self._on[pair]
            if other in made_at:
                if pair not in is_wanted:
                    self._use(made_at[other], -1)
                self._send(pair, host, now)
            else:
                self._wanted.setdefault(other, {})[pair, host] = None
            is_wanted.add(pair)

    def unwant(self, task: int, host: int, *, waits: bool) -> None:
        """Send a task no more data to a host that it has left; what is on its way or there stays.

        Parameters
        ----------
        task, host : int
        waits : bool
            Whether it is on no other host, and will want its data again.
        """
        for pair in self._pairs_of.get(task, ()):
            other = self._on[pair]
            self._wanted.get(other, {}).pop((pair, host), None)
            if waits and pair in self._is_wanted:
                self._is_wanted.remove(pair)
                if other in self.made_at:
                    self._use(self.made_at[other], 1)

    def forget(self, task: int) -> None:
        """Keep no data for a task that will never run."""
        for pair in self._pairs_of.get(task, ()):
            if pair not in self._is_wanted:
                self._is_wanted.add(pair)
                if self._on[pair] in self.made_at:
                    self._use(self.made_at[self._on[pair]], -1)

    def _use(self, host: int, count: int) -> None:
        """Count what keeps a host in use."""
        self._in_use[host] = left = self._in_use.get(host, 0) + count
        if not left:
            del self._in_use[host]

    @property
    def hosts_in_use(self) -> Collection[int]:
        """Hosts from or to which data are on their way, or that keep some which tasks will want."""
        return self._in_use.keys()

    def note_end(self, task: int, host: int, now: float) -> set[int]:
        """Note that a task has ended on a host; what it has made is sent where it is wanted: return these hosts."""
        self.made_at[task] = host
        kept = sum(pair not in self._is_wanted for pair in self._pairs_on.get(task, ()))
        if kept:
            self._use(host, kept)
        wanted = self._wanted.pop(task, {})
        for pair, target in wanted:
            self._send(pair, target, now)
        return {target for _, target in wanted}

    def _send(self, pair: int, target: int, now: float) -> None:
        key, source = self._key[pair], self.made_at[self._on[pair]]
        places = self._places.get(key)
        if places is None:
            places = self._places[key] = {source: now}
        if target in places:
            return
        size = self._size[pair]
        self._use(source, 1)
        self._use(target, 1)
        self._begin(Transfer(pair, key, source, target, size, now, now), now)

    def _begin(self, transfer: Transfer, now: float) -> None:
        """Send data, or hold them until both hosts are up."""
        source, target = transfer.source, transfer.target
        transfer.end = now + self._network.transfer_s(transfer.size_bytes, source, target)
        self._places[transfer.key][target] = transfer.end
        self._in_flight[transfer.key, target] = transfer
        if self._is_down and (self._is_down[source] or self._is_down[target]):
            self._held.append(transfer)
        else:
            self.sent.append(transfer)
            self._all.append(transfer)

    def cut(self, host: int) -> list[Transfer]:
        """Return what is under way from or to a host that goes down, to be stopped; it begins again later."""
        held = set(self._held) | set(self.arriving)
        cut = [each for each in self._in_flight.values() if host in (each.source, each.target) and each not in held]
        for each in cut:
            each.outcome = int(ExecutionEnd.CANCELLED)
        self._held += cut
        return cut

    def resume(self, now: float) -> set[int]:
        """Send again what was cut or held, where both hosts are up; return the hosts where other times are expected."""
        held, self._held = self._held, []
        for each in held:
            self._begin(Transfer(each.pair, each.key, each.source, each.target, each.size_bytes, now, now), now)
        return {each.target for each in held}

    def are_there(self, task: int, host: int) -> bool:
        """Whether all data of a task are at a host."""
        for pair in self._pairs_of.get(task, ()):  # a loop: this is asked at every arrival
            key = self._key[pair]
            if host not in self._places.get(key, ()) or (key, host) in self._in_flight:
                return False
        return True

    def expected(self, task: int, host: int, now: float) -> float:
        """Return when all data of a task that are made are expected at a host [s]."""
        pairs = (pair for pair in self._pairs_of.get(task, ()) if self._on[pair] in self.made_at)
        return max((self._expected(pair, host, now) for pair in pairs), default=now)

    def _expected(self, pair: int, host: int, now: float) -> float:
        time = self._places.get(self._key[pair], {}).get(host)
        if time is None:
            return now + self._network.transfer_s(self._size[pair], self.made_at[self._on[pair]], host)
        return max(time, now)

    def expected_anywhere(self, task: int, now: float, n_hosts: int) -> Floats:
        """Return when all data of a task that are made are expected at each host [s], shape (hosts,)."""
        ready = np.full(n_hosts, now)
        for pair in self._pairs_of.get(task, ()):
            source = self.made_at.get(self._on[pair])
            if source is None:
                continue
            times = now + self._network.from_host(self._size[pair], source)
            for host, time in self._places.get(self._key[pair], {}).items():
                times[host] = max(time, now)
            np.maximum(ready, times, out=ready)
        return ready

    def late(self, now: float) -> list[Execution]:
        """Return the executions that wait on their hosts for data which were expected before `now` [s]."""
        waiting = (each for some in self._waiting.values() for each in some)
        return [each for each in waiting if each.start < now and each.outcome == UNENDED]

    def wait(self, execution: Execution) -> None:
        """Let an execution that has its hosts wait for its data."""
        self._waiting.setdefault(execution.host, []).append(execution)

    def arrive(self, transfer: Transfer, now: float) -> list[Execution]:
        """Note that data have arrived; return the executions that wait for nothing else."""
        key, target = transfer.key, transfer.target
        transfer.end = now
        del self._in_flight[key, target]
        self._use(transfer.source, -1)
        self._use(target, -1)
        self._places[key][target] = now
        if target not in self._waiting:
            return []
        ready: list[Execution] = []
        left: list[Execution] = []
        for each in self._waiting.pop(target):
            if each.outcome == UNENDED:
                (ready if self.are_there(each.task, target) else left).append(each)
        if left:
            self._waiting[target] = left
        return ready

    def take_sent(self) -> Sequence[Transfer]:
        """Return what is to be sent, once."""
        sent, self.sent = self.sent, []
        return sent

    def records(self) -> NDArray[np.void]:
        """Return all transfers that have ended as an array of `TRANSFER`, in order of their begin."""
        under_way = set(self._in_flight.values())
        ended = [each for each in self._all if each.outcome == UNENDED and each not in under_way]
        rows: list[Any] = [(e.pair, e.source, e.target, e.size_bytes, e.begin, e.end) for e in ended]
        return np.array(rows, dtype=TRANSFER)


class NoTransfers(Transfers):
    """A run whose tasks make no data for others, or send them in no time."""

    exists = False

    def __init__(self) -> None:
        self._in_use, self._held, self.arriving = {}, [], ()

    def want(self, task: int, host: int, now: float) -> None:
        """Send nothing."""

    def unwant(self, task: int, host: int, *, waits: bool) -> None:
        """Send nothing."""

    def forget(self, task: int) -> None:
        """Keep nothing."""

    def note_end(self, task: int, host: int, now: float) -> set[int]:
        """Send nothing."""
        return _NO_HOSTS

    def are_there(self, task: int, host: int) -> bool:
        """Whether all data of a task are at a host: it needs none."""
        return True

    def expected(self, task: int, host: int, now: float) -> float:
        """Return when all data of a task are there [s]: now."""
        return now

    def late(self, now: float) -> list[Execution]:
        """Return what waits for data: nothing."""
        return []

    def cut(self, host: int) -> list[Transfer]:
        """Return what is under way: nothing."""
        return []

    def take_sent(self) -> Sequence[Transfer]:
        """Return what is to be sent: nothing."""
        return ()

    def records(self) -> NDArray[np.void]:
        """Return no transfers."""
        return np.zeros(0, dtype=TRANSFER)


_NO_HOSTS: set[int] = set()


def transfers_of(tasks: Tasks, system: System, is_down: Sequence[bool] = ()) -> Transfers:
    """Return what sends data between tasks, if any make some, and these take time."""
    if system.network is None or not tasks.send_data:
        return NoTransfers()
    pairs = tasks.dependencies
    if pairs is None:
        none = np.zeros(0, dtype=np.int64)
        pairs = Dependencies(none, none, none, np.zeros(0))
    source = 0 if tasks.staged is None else tasks.staged.source(system.platform)
    return Transfers(pairs, system.network, tasks.staged, source, is_down)


def _keys(pairs: Dependencies) -> list[int]:
    """Return a number for the data of each pair: pairs that share data have one."""
    keys: dict[tuple[int, int], int] = {}
    own = range(len(pairs))
    items = zip(own, pairs.on.tolist(), pairs.item.tolist(), strict=True)
    return [pair if item < 0 else keys.setdefault((on, item), pair) for pair, on, item in items]
