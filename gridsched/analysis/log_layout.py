"""On which nodes the jobs of a log ran: those that it names, or such as were free at their starts."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.errors import counted
from gridsched.model.platform import Host, Platform
from gridsched.model.room_on_nodes import node_amounts, rooms
from gridsched.model.tasks import Tasks

#: An end this little after a start is at it [s]; logs have seconds.
_AT_ONCE_S = 1e-6


@dataclass(frozen=True)
class Layout:
    """Where the jobs of a log lie.

    Attributes
    ----------
    hosts, cores : list of ndarray of int64, of each job
        Its hosts, ascending, and its cores (or whole nodes) on each.
    notes : tuple of str
        What is assumed.
    no_energy : str
        Why the joules of the log do not follow from this; empty if they do.
    is_overfull : bool
        More of some node is in use at a time than it has.
    """

    hosts: list[Integers]
    cores: list[Integers]
    notes: tuple[str, ...] = ()
    no_energy: str = ""
    is_overfull: bool = False


class HostNames:
    """The hosts of a platform by the names that a log has for them, which may lack the domain, or have one.

    Parameters
    ----------
    platform : Platform
    """

    def __init__(self, platform: Platform) -> None:
        self._ids = {host.name: h for h, host in enumerate(platform.hosts)}
        self._short: dict[str, list[str]] = {}
        for name in self._ids:
            self._short.setdefault(name.partition(".")[0], []).append(name)

    def id_of(self, name: str) -> int:
        """Return the host of a name, -1 if there is none, or several may be meant."""
        if name in self._ids:
            return self._ids[name]
        short, dot, _ = name.partition(".")
        meant = [each for each in self._short.get(short, ()) if not (dot and "." in each)]
        return self._ids[meant[0]] if len(meant) == 1 else -1


def layout_of(
    platform: Platform, pstates: Integers, tasks: Tasks, start_s: Floats, end_s: Floats, cores: Integers,
    names: Sequence[tuple[str, ...]],
) -> Layout:  # fmt: skip
    """Return where jobs lay.

    Jobs of one named node come first, those of several share their cores among these as evenly as they have room.
    The others are laid on free nodes of their partition, in order of their starts.

    Parameters
    ----------
    platform : Platform
    pstates : ndarray of int64, shape (hosts,)
    tasks : Tasks
    start_s, end_s : ndarray of float64, shape (tasks,)
    cores : ndarray of int64, shape (tasks,)
        Of each job on all its nodes; of whole nodes, their number.
    names : sequence of tuple of str
        Of the nodes of each job; empty if the log has none.
    """
    known = HostNames(platform)
    ids = {each: np.unique([known.id_of(name) for name in each]) for each in set(names) if each}
    named = [ids[each] if each and ids[each][0] >= 0 else None for each in names]
    nodes = _Nodes(platform, tasks, start_s, end_s, cores, named)
    order = np.lexsort((np.arange(len(tasks)), -(end_s - start_s), -cores, start_s))
    for task in order.tolist():
        nodes.lay(task)
    guessed = [task for task, hosts in enumerate(named) if hosts is None]
    unnamed, unknown = ([task for task in guessed if bool(names[task]) == has] for has in (False, True))
    notes = _notes(platform, tasks, names, unnamed, unknown)
    no_energy = nodes.overfull or _why_it_matters(platform, pstates, tasks, guessed, nodes.is_spread)
    return Layout(nodes.hosts, nodes.cores, notes, no_energy, bool(nodes.overfull))


def _notes(
    platform: Platform, tasks: Tasks, names: Sequence[tuple[str, ...]], unnamed: Sequence[int], unknown: Sequence[int]
) -> tuple[str, ...]:
    """Say of how many jobs the nodes are not known, and what is done about it."""
    done = "they are laid on free nodes of their partitions, in order of their starts"
    notes = []
    if unnamed:
        notes.append(f"the log names no nodes of {counted(len(unnamed), 'job')}: {done}")
    if unknown:
        known = HostNames(platform)
        missing = next(name for name in names[unknown[0]] if known.id_of(name) < 0)
        lie = counted(len(unknown), "job lies", "jobs lie")
        notes.append(f"{lie} on nodes that {platform.name} does not have, as {missing[:60]!r}: {done}")
    return tuple(notes)


def _why_it_matters(
    platform: Platform, pstates: Integers, tasks: Tasks, guessed: Sequence[int], is_spread: bool
) -> str:
    """Return why it matters for joules on which nodes of its partition a job lies; empty if it does not."""
    pools = platform.pools
    for pool in {int(tasks.partition[task]) for task in guessed}:
        hosts = [platform.hosts[h] for h in pools[pool].hosts]
        kinds = {_power(host, int(pstates[h])) for h, host in zip(pools[pool].hosts, hosts, strict=True)}
        if len(kinds) > 1:
            return f"nodes of partition {pools[pool].name!r} differ in power, and which of them jobs had is not known"
        state = hosts[0].pstates[int(pstates[pools[pool].hosts[0]])]
        if is_spread and state.epsilon_w != state.idle_w:
            return "jobs of which the nodes are not known find no room on free nodes at their starts"
    return ""


def _power(host: Host, pstate: int) -> tuple[object, ...]:
    state = host.pstates[pstate]
    return state.idle_w, state.epsilon_w, state.busy_w, host.cores, host.unit_power, host.resources


class _Nodes:
    """Nodes as jobs begin and end on them, in order of the starts of jobs."""

    def __init__(
        self, platform: Platform, tasks: Tasks, start_s: Floats, end_s: Floats, cores: Integers,
        named: Sequence[Integers | None],
    ) -> None:  # fmt: skip
        self._platform, self._tasks, self._named = platform, tasks, named
        self._start_s, self._end_s, self._cores = start_s, end_s, cores
        self._has = node_amounts(platform, tasks.resources)
        self._free = self._has.copy()
        self._pools = [np.array(sorted(each.hosts), dtype=np.int64) for each in platform.pools]
        self._ends: list[tuple[float, int]] = []
        #: host -> jobs that have it alone, in order of their starts, which no other job may be in the place of
        self._alone: dict[int, list[tuple[float, int]]] = {}
        for task, hosts in enumerate(named):
            if hosts is not None and len(hosts) == 1:
                self._alone.setdefault(int(hosts[0]), []).append((float(start_s[task]), task))
        for jobs in self._alone.values():
            jobs.sort()
        none = np.zeros(0, dtype=np.int64)
        self.hosts, self.cores = [none] * len(tasks), [none] * len(tasks)
        #: why there is more in use than there is, and whether parts were put on free cores of any nodes
        self.overfull, self.is_spread = "", False

    def lay(self, task: int) -> None:
        """Lay a job on nodes; none begins before those that were laid earlier."""
        while self._ends and self._ends[0][0] <= self._start_s[task] + _AT_ONCE_S:
            self._take(heapq.heappop(self._ends)[1], -1)
        hosts, named = self._named[task], self._named[task] is not None
        hosts = hosts if hosts is not None else self._pools[self._tasks.partition[task]]
        total = int(self._cores[task])
        free = self._left(task, hosts)
        each = _evenly(total, free[:, 0]) if named else self._parts(total, task, free)
        if each is None and not named:
            each, self.is_spread = _fullest_first(total, free[:, 0]), True
        if each is None:
            self.overfull = self.overfull or self._why_full(task, hosts, named=named)
            each = _evenly(min(total, int(self._has[hosts, 0].sum())), self._has[hosts, 0])
            assert each is not None
        self.hosts[task], self.cores[task] = hosts[each > 0], each[each > 0]
        self._take(task, 1)
        heapq.heappush(self._ends, (float(self._end_s[task]), task))

    def _why_full(self, task: int, hosts: Integers, *, named: bool) -> str:
        label, total = self._tasks.labels[task], int(self._cores[task])
        unit = "core" if self._tasks.share_nodes else "node"
        place = self._platform.hosts[hosts[0]].name if len(hosts) == 1 else f"the {counted(len(hosts), 'node')}"
        of = f"{place} that the log names" if named else f"{place} of its partition"
        return f"job {label} has {counted(total, unit)} of {of}, which has fewer free at its start"

    def _left(self, task: int, hosts: Integers) -> Integers:
        """Return what hosts have left all the time that a job runs, of each resource."""
        free = np.maximum(self._free[hosts], 0)
        if self._named[task] is not None and len(hosts) == 1:
            return free
        begin, end = float(self._start_s[task]), float(self._end_s[task]) - _AT_ONCE_S
        for k, host in enumerate(hosts.tolist()):
            jobs = self._alone.get(host)
            if not jobs:
                continue
            coming = [job for _, job in jobs[bisect_left(jobs, (begin, -1)) : bisect_right(jobs, (end, -1))]]
            coming = [job for job in coming if not len(self.hosts[job])]
            if coming:
                free[k] = np.maximum(free[k] - self._peak(coming), 0)
        return free

    def _peak(self, jobs: Sequence[int]) -> Integers:
        """Return the most that jobs of one host, in order of their starts, have of it at a time."""
        going: list[tuple[float, int]] = []
        now = np.zeros(self._has.shape[1], dtype=np.int64)
        most = now.copy()
        for job in jobs:
            while going and going[0][0] <= self._start_s[job] + _AT_ONCE_S:
                now -= self._amounts(heapq.heappop(going)[1])
            now += self._amounts(job)
            heapq.heappush(going, (float(self._end_s[job]), job))
            most = np.maximum(most, now)
        return most

    def _amounts(self, task: int) -> Integers:
        """Return what a job has in all of each resource."""
        amounts = self._tasks.demand[task] * self._tasks.width[task]
        amounts[0] = self._cores[task]
        return np.asarray(amounts)

    def _take(self, task: int, sign: int) -> None:
        """Begin or end a job on its hosts, which have what goes with their cores."""
        demand = self._tasks.demand[task]
        parts = -(-self.cores[task] // demand[0])
        taken = parts[:, None] * demand[None, :]
        taken[:, 0] = self.cores[task]
        self._free[self.hosts[task]] -= sign * taken

    def _parts(self, total: int, task: int, free: Integers) -> Integers | None:
        """Return how many cores of each of some hosts the parts of a job have; None if there is no room for all.

        The fullest hosts that have room come first, so that others stay whole for wider parts.
        """
        need, width = self._tasks.demand[task].copy(), int(self._tasks.width[task])
        need[0] = max(total // width, 1)
        room = rooms(free, need)
        room = room if self._tasks.anywhere[task] else np.minimum(room, 1)
        order = np.argsort(free[:, 0], kind="stable")
        before = np.concatenate([[0], np.cumsum(room[order])[:-1]])
        taken = np.zeros(len(free), dtype=np.int64)
        taken[order] = np.clip(width - before, 0, room[order])
        if taken.sum() < width:
            return None
        each = taken * need[0]
        more = _evenly(max(total - int(each.sum()), 0), np.where(taken > 0, free[:, 0] - each, 0))
        return None if more is None else each + more


def _evenly(total: int, free: Integers) -> Integers | None:
    """Divide cores among nodes as evenly as what each has free allows; None if they have not so many."""
    each = np.zeros(len(free), dtype=np.int64)
    while total > 0:
        open_ = np.flatnonzero(free > each)
        if not len(open_):
            return None
        open_ = open_[:total]
        more = np.minimum(max(total // len(open_), 1), (free - each)[open_])
        each[open_] += more
        total -= int(more.sum())
    return each


def _fullest_first(total: int, free: Integers) -> Integers | None:
    """Take cores of the fullest nodes first; None if all have not so many."""
    order = np.argsort(free, kind="stable")
    before = np.concatenate([[0], np.cumsum(free[order])[:-1]])
    each = np.zeros(len(free), dtype=np.int64)
    each[order] = np.clip(total - before, 0, free[order])
    return each if int(each.sum()) == total else None
