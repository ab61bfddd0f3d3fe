"""Executions of tasks and transfers of what they make, the commands to a driver, and the records of these."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from enum import IntEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.arrays import Floats, Integers
from gridsched.model.signals import Signal
from gridsched.model.trace import EXECUTION, HOST_CHANGE, ExecutionEnd

if TYPE_CHECKING:
    from gridsched.engine.link_traffic import LinkTraffic
    from gridsched.engine.placed_steps import PlacedStep

#: Outcome of an execution that has not ended.
UNENDED = -1
#: So many executions are kept as objects, and twice as many as have not ended, before those that have become rows.
MOST_RECENT = 4096


class Timer(IntEnum):
    """What is due at a time of its own, in the order in which one instant applies it."""

    SWITCHED = 0
    DATA_READY = 1
    WAKE = 2
    RELEASE = 3


class Execution:
    """A copy of a task on its hosts; handed to the driver as the command to start it.

    Attributes
    ----------
    task, host, pstate : int
    hosts : ndarray of int64, or None
        All its hosts, ascending; `host` is the first. None: a core of the one host.
    parts : ndarray of int64, or None
        How many parts of the task each host has; None: one.
    part_cores : int
        Cores of each part; 0 where parts are whole nodes.
    start : float
        Start [s].
    end : float
        End [s]; set by the driver when it starts the execution.
    estimated_end : float
        The end the scheduler may know of [s].
    outcome : int
        `UNENDED`, or the `ExecutionEnd` once it ended.
    watts : float
        Average power [W], where a budget is kept.
    has_begun : bool
        False while its core waits for input files.
    rests : bool
        It has begun, but does not compute: it receives or sends a message.
    is_cut : bool
        Its end is that of its requested time, at which it is killed; set by the driver, too.
    computed : ndarray of float64, shape (hosts, 2), or None
        Where tasks have profiles: seconds in which each host computed, and seconds that this would have
        taken at its full speed, on all its cores; set by the driver.
    """

    # without: an attribute that the first ones did not have costs each later one a dict of its own, 464 bytes
    __slots__ = (
        "computed",
        "end",
        "estimated_end",
        "has_begun",
        "host",
        "hosts",
        "is_cut",
        "outcome",
        "part_cores",
        "parts",
        "pstate",
        "rests",
        "start",
        "task",
        "watts",
    )

    def __init__(self, task: int, host: int, pstate: int, start: float, estimated_end: float) -> None:
        self.task = task
        self.host = host
        self.pstate = pstate
        self.start = start
        self.end = estimated_end
        self.estimated_end = estimated_end
        self.outcome = UNENDED
        self.has_begun = self.rests = False
        self.hosts: Integers | None = None
        self.parts: Integers | None = None
        self.part_cores = 0
        self.is_cut = False
        self.watts = 0.0
        self.computed: Floats | None = None

    @property
    def nodes(self) -> Integers:
        """Its hosts, ascending, where it has a set of them."""
        assert self.hosts is not None
        return self.hosts

    def lies_on(self, host: int) -> bool:
        """Whether a host is in its set; in a short one numpy's own search costs ten times as much."""
        nodes = self.nodes
        place = bisect_left(nodes, host)
        return place < len(nodes) and nodes.item(place) == host

    @property
    def cores(self) -> Integers:
        """Cores that each of its hosts gives, shape (hosts,)."""
        return self.parts_each * np.int64(self.part_cores or 1)

    @property
    def parts_each(self) -> Integers:
        """Parts of the task that each of its hosts has, shape (hosts,)."""
        return np.ones(self.width, dtype=np.int64) if self.parts is None else self.parts

    @property
    def width(self) -> int:
        """Number of its hosts."""
        return 1 if self.hosts is None else len(self.hosts)

    @property
    def all_hosts(self) -> list[int]:
        """Its hosts, ascending."""
        return [self.host] if self.hosts is None else self.hosts.tolist()

    def stop(self, time: float, outcome: ExecutionEnd) -> None:
        """Note that the execution ended at `time` [s] as `outcome`."""
        self.end = time
        self.outcome = int(outcome)

    def __repr__(self) -> str:
        return f"Execution(task={self.task}, host={self.host}, start={self.start!r})"


class Transfer:
    """Data on their way from one host to another; handed to the driver as the command to send them.

    Attributes
    ----------
    pair : int
        Position in `Tasks.dependencies` of the first pair that wants them.
    key : int
        Which data: a number that pairs have in common which share them.
    source, target : int
    size_bytes : float
    begin : float
        [s]
    end : float
        Arrival [s]: as a lone transfer, until the driver reports it.
    outcome : int
        `UNENDED`.
    """

    __slots__ = ("begin", "end", "key", "outcome", "pair", "size_bytes", "source", "target")

    def __init__(self, pair: int, key: int, source: int, target: int, size_bytes: float, begin: float, end: float):
        self.pair = pair
        self.key = key
        self.source = source
        self.target = target
        self.size_bytes = size_bytes
        self.begin = begin
        self.end = end
        self.outcome = UNENDED


class ParallelStep:
    """A step of an execution's program on its hosts; handed to the driver as the command to begin it.

    Its parts compute and send at one rate, so that all ends together.

    Parameters
    ----------
    execution : Execution
    placed : PlacedStep
    names : tuple of str
        Its hosts, one for each part.
    speeds : ndarray of float64, shape (parts,)
        Of the cores of each part, in the execution's P-state [flop/s].
    began : float
        [s].

    Attributes
    ----------
    traffic : LinkTraffic or None
        Where its bytes are added over time.
    outcome : int
        `UNENDED`.
    """

    #: So many notes are kept before they are added to the traffic.
    MOST_NOTES = 1000

    __slots__ = ("_done", "began", "execution", "names", "outcome", "placed", "speeds", "traffic")

    def __init__(
        self, execution: Execution, placed: PlacedStep, names: tuple[str, ...], speeds: Floats, began: float
    ) -> None:
        self.execution, self.placed, self.names, self.speeds, self.began = execution, placed, names, speeds, began
        self.traffic: LinkTraffic | None = None
        self.outcome = UNENDED
        #: times [s] from the begin of its messages on, and which share of it was done by then
        self._done: list[tuple[float, float]] = [(began + placed.latency_s, 0.0)]

    @property
    def part_cores(self) -> int:
        """How many cores each part computes on: of a whole node, one."""
        return self.execution.part_cores or 1

    @property
    def hosts_named(self) -> tuple[str, ...]:
        """Names of all hosts that have a part in it: one for each part, then a storage host."""
        storage = self.placed.step.storage
        return (*self.names, storage) if storage else self.names

    def note(self, now: float, share: float) -> None:
        """Note which share of it is done by now [s], where its bytes are added over time.

        Rates are constant between such notes if there is one whenever they change.
        """
        done = self._done
        if self.traffic is None or now <= done[-1][0] or share <= done[-1][1]:
            return
        done.append((now, share))
        if len(done) > self.MOST_NOTES:
            self.traffic.add(self.placed.links, self.placed.link_bytes, done)
            self._done = done[-1:]

    def note_end(self, now: float, share: float) -> None:
        """Note that it ends, or is ended, now [s], after a share of its work."""
        if self.traffic is not None:
            begin, done = self._done[-1]
            ended = max(now, begin), max(share, done)
            self.traffic.add(self.placed.links, self.placed.link_bytes, [*self._done, ended])


#: What takes time, and what drivers begin: an execution that computes, a step of a program, data on their way.
Activity = Execution | ParallelStep | Transfer


@dataclass(frozen=True, slots=True)
class Stop:
    """Command: end an activity now; what it would have given is not wanted."""

    activity: Activity


@dataclass(frozen=True, slots=True)
class TurnOff:
    """Command: switch the host off."""

    host: int


@dataclass(frozen=True, slots=True)
class TurnOn:
    """Command: switch the host on."""

    host: int


@dataclass(frozen=True, slots=True)
class SetPState:
    """Command: bring a host on which nothing runs into a P-state."""

    host: int
    pstate: int


#: A change of a host.
HostCommand = TurnOff | TurnOn | SetPState
Command = Activity | Stop | HostCommand


@dataclass(frozen=True, slots=True)
class ExecutionRows:
    """Executions as arrays: a row each.

    Attributes
    ----------
    number : ndarray of int64, shape (rows,)
        Which of the run's executions it is, counted from 0 in the order in which they began.
    records : ndarray of `EXECUTION`
    width : ndarray of int64, shape (rows,), or None
        How many hosts it has, where executions have sets of them.
    host_ids, host_cores : ndarray of int64, shape (placements,)
        These hosts, and the cores that each gives; 0, or no array: it is a whole node.
    computed : ndarray of float64, shape (placements, 2)
        `Trace.computed`; empty where none of them has a profile.
    """

    number: Integers
    records: NDArray[np.void]
    width: Integers | None
    host_ids: Integers
    host_cores: Integers
    computed: Floats

    @classmethod
    def of(cls, number: Integers, executions: Sequence[Execution], *, has_sets: bool) -> ExecutionRows:
        """Return executions of these numbers as rows."""
        records = np.empty(len(executions), dtype=EXECUTION)
        for name in EXECUTION.names or ():  # column by column: five times faster than row by row
            records[name] = list(map(attrgetter(name), executions))
        nothing, computed = np.zeros(0, dtype=np.int64), np.zeros((0, 2))
        if executions and executions[0].computed is not None:  # then all of a run have it
            computed = np.concatenate([computed, *(each.computed for each in executions if each.computed is not None)])
        if not has_sets:
            return cls(number, records, None, nothing, nothing, computed)
        width = np.array([each.width for each in executions], dtype=np.int64)
        ids = np.concatenate([nothing, *(each.nodes for each in executions)])
        cores, each_cores = nothing, np.array([each.part_cores for each in executions], dtype=np.int64)
        if each_cores.any():
            cores = np.repeat(each_cores, width)
            if any(each.parts is not None for each in executions):
                cores *= np.concatenate([each.parts_each for each in executions])
        return cls(number, records, width, ids, cores, computed)

    def take(self, rows: Integers) -> ExecutionRows:
        """Return some of the rows, in this order."""
        if self.width is None:
            computed = self.computed[rows] if len(self.computed) else self.computed
            return replace(self, number=self.number[rows], records=self.records[rows], computed=computed)
        first, width = (np.cumsum(self.width) - self.width)[rows], self.width[rows]
        at = _places(first, width)
        cores = self.host_cores[at] if len(self.host_cores) else self.host_cores
        computed = self.computed[at] if len(self.computed) else self.computed
        return ExecutionRows(self.number[rows], self.records[rows], width, self.host_ids[at], cores, computed)

    def fields(self) -> dict[str, Any]:
        """Return what a `Trace` holds of them, in order of their start."""
        start = self.records["start"]
        ordered = self if (start[1:] >= start[:-1]).all() else self.take(np.argsort(start, kind="stable"))
        fields = {"executions": ordered.records, "computed": ordered.computed}
        if ordered.width is not None:
            fields["host_offsets"] = np.cumsum([0, *ordered.width.tolist()], dtype=np.int64)
            fields["host_ids"] = ordered.host_ids
            fields["host_cores"] = ordered.host_cores[ordered.host_cores > 0]
        return fields


def _places(first: Integers, width: Integers) -> Integers:
    """Return for each k ``first[k], first[k] + 1, ...``, `width[k]` of them."""
    ends = np.cumsum(width)
    places: Integers = np.repeat(first - (ends - width), width)
    places += np.arange(len(places))
    return places


def joined(parts: list[ExecutionRows]) -> ExecutionRows:
    """Return all rows by their numbers; `parts`, at least one, is emptied, so that nothing is there twice for long."""
    number = np.sort(np.concatenate([part.number for part in parts]))
    records = np.empty(len(number), dtype=EXECUTION)
    width: Integers | None = None
    first = np.zeros(0, dtype=np.int64)
    n_placed = sum(len(part.number if part.width is None else part.host_ids) for part in parts)
    if parts[0].width is not None:
        width = np.empty(len(number), dtype=np.int64)
        for part in parts:
            if part.width is not None:
                width[np.searchsorted(number, part.number)] = part.width
        first = np.cumsum(width) - width
    ids = np.empty(0 if width is None else n_placed, dtype=np.int64)
    cores = np.zeros(n_placed if any(len(part.host_cores) for part in parts) else 0, dtype=np.int64)
    computed = np.zeros((n_placed if any(len(part.computed) for part in parts) else 0, 2))
    while parts:
        part = parts.pop()
        rows = np.searchsorted(number, part.number)
        records[rows] = part.records
        at = rows
        if part.width is not None:
            at = _places(first[rows], part.width)
            ids[at] = part.host_ids
            if len(part.host_cores):
                cores[at] = part.host_cores
        if len(part.computed):
            computed[at] = part.computed
    return ExecutionRows(number, records, width, ids, cores, computed)


class ExecutionLog:
    """All executions of a run, in the order in which they began.

    Those that have ended are kept as rows of arrays, a third of their memory: of a million tasks, only
    those that run and some thousand others are objects at one time.

    Parameters
    ----------
    has_sets : bool
        Whether executions have sets of hosts.

    Attributes
    ----------
    recent : list of Execution
        Those that are no rows yet, in order. Append to it what begins.
    most_recent : int
        With so many of them, `keep_short` puts those away that have ended.
    """

    def __init__(self, *, has_sets: bool) -> None:
        self.recent: list[Execution] = []
        self.most_recent = MOST_RECENT
        self._has_sets = has_sets
        #: numbers of the first of `recent`, which had not ended when the others were put away
        self._kept = np.zeros(0, dtype=np.int64)
        #: how many had begun by then
        self._n_seen = 0
        self._parts: list[ExecutionRows] = []

    def __len__(self) -> int:
        return self._n_seen + len(self.recent) - len(self._kept)

    def copy(self) -> ExecutionLog:
        """Return a log of the same executions, whose records leave this one as it is."""
        other = copy(self)
        other.recent, other._parts = self.recent.copy(), self._parts.copy()
        return other

    def keep_short(self) -> None:
        """Put those away that have ended, where there are many; as `put_away` between two instants."""
        if len(self.recent) >= self.most_recent:
            self.put_away()

    def put_away(self) -> None:
        """Make rows of those that have ended.

        Between two instants: a driver may still correct those that end in one.
        """
        recent, numbers = self.recent, self._numbers()
        is_over = np.array([each.outcome != UNENDED for each in recent], dtype=np.bool_)
        over = [each for each in recent if each.outcome != UNENDED]
        if over:
            self._parts.append(ExecutionRows.of(numbers[is_over], over, has_sets=self._has_sets))
        self._n_seen = len(self)
        self._kept = numbers[~is_over]
        recent[:] = [each for each in recent if each.outcome == UNENDED]
        self.most_recent = MOST_RECENT + 2 * len(recent)

    def _numbers(self) -> Integers:
        """Return the numbers of `recent`."""
        return np.concatenate([self._kept, np.arange(self._n_seen, len(self))])

    def tasks_from(self, number: int) -> set[int]:
        """Return the tasks of the executions from a number on."""
        tasks = {each.task for each in self.recent[np.searchsorted(self._numbers(), number) :]}
        for part in self._parts:
            tasks.update(part.records["task"][part.number >= number].tolist())
        return tasks

    def rows(self, numbers: Integers, mark: int = 0) -> tuple[ExecutionRows, int]:
        """Return executions of these numbers as rows, by number, and the next mark.

        With a mark, none of them may have been put away when it was given.
        """
        recent = self._numbers()
        at = np.flatnonzero(np.isin(recent, numbers))
        there = ExecutionRows.of(recent[at], [self.recent[k] for k in at.tolist()], has_sets=self._has_sets)
        away = [part.take(np.flatnonzero(np.isin(part.number, numbers))) for part in self._parts[mark:]]
        return joined([*away, there]), len(self._parts)

    def records(self) -> dict[str, Any]:
        """Return what a `Trace` holds of all executions so far; marks are void from then on."""
        self.put_away()
        self._parts.append(ExecutionRows.of(self._kept, self.recent, has_sets=self._has_sets))
        whole = joined(self._parts)
        over = whole.records["outcome"] != UNENDED
        self._parts = [whole if over.all() else whole.take(np.flatnonzero(over))]
        return whole.fields()


class HostChanges:
    """All changes in order; those of many nodes at once are kept as one array.

    Parameters
    ----------
    pstates : ndarray of int64, shape (hosts,)
        At time 0.
    is_on : list of bool
    """

    def __init__(self, pstates: Integers, is_on: list[bool]) -> None:
        self._blocks: list[NDArray[np.void]] = []
        self._singles: list[tuple[float, int, int, bool]] = [
            (0.0, host, pstate, is_on[host]) for host, pstate in enumerate(pstates.tolist())
        ]

    def add(self, time: float, host: int, pstate: int, is_on: bool) -> None:
        """Note what a host has from a time on [s]."""
        self._singles.append((time, host, pstate, is_on))

    def add_block(self, time: float, hosts: Integers, pstate: int) -> None:
        """Note a P-state of hosts that are on."""
        self._close_singles()
        block = np.empty(len(hosts), dtype=HOST_CHANGE)
        block["time"], block["host"], block["pstate"], block["is_on"] = time, hosts, pstate, True
        self._blocks.append(block)

    def _close_singles(self) -> None:
        if self._singles:
            self._blocks.append(np.array(self._singles, dtype=HOST_CHANGE))
            self._singles.clear()

    def records(self) -> NDArray[np.void]:
        """Return all changes so far."""
        return self.since(0)[0]

    def since(self, mark: int) -> tuple[NDArray[np.void], int]:
        """Return the changes since a mark, and the next mark; the first is 0."""
        self._close_singles()
        return np.concatenate([np.empty(0, dtype=HOST_CHANGE), *self._blocks[mark:]]), len(self._blocks)


def mean_weights(weights: Signal, executions: Sequence[Execution], start: ArrayLike, length: ArrayLike) -> Any:
    """Return what a joule of each execution weighs on average over some time, where it runs.

    Parameters
    ----------
    weights : Signal
    executions : sequence of Execution
    start, length : array_like
        Of the time [s].
    """
    if not weights.sites:
        return weights.mean(start, length)
    return weights.at_hosts(np.array([each.host for each in executions], dtype=np.int64), start, length)
