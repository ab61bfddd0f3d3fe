"""Nodes with cores and other resources, of which executions take parts, in arrays."""

from __future__ import annotations

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.engine.execution import Execution
from gridsched.engine.parts_on_nodes import ONE_EACH, give_back_parts, have_room, take_parts
from gridsched.engine.plans import Reservations
from gridsched.engine.whole_nodes import WholeNodes
from gridsched.errors import counted
from gridsched.model.room_on_nodes import node_amounts, partition_members
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.policy.state import NodesState, SharedNodesState

#: Room for as many parts of executions at first, where nodes are shared.
_FIRST_PARTS = 1024


class SharedNodes(WholeNodes):
    """Nodes with cores and other resources, of which executions take parts.

    A node that is `free` runs nothing at all.

    Parameters
    ----------
    system : System
    tasks : Tasks
    is_on : list of bool
        Of each host at the start.

    Attributes
    ----------
    jobs : Parts
    amounts : ndarray of int64, shape (hosts, resources)
        What each node has.
    left : ndarray of int64, shape (hosts, resources)
        What each node could give now; nothing while it is off or boots.
    """

    def __init__(self, system: System, tasks: Tasks, is_on: list[bool]) -> None:
        self.jobs = tasks.parts
        self.amounts = node_amounts(system.platform, tasks.resources)
        self.members = partition_members(system.platform)
        self.left = self.amounts * np.array(is_on, dtype=np.int64)[:, None]
        self._shown_left = self.left.view()
        self._shown_left.setflags(write=False)
        #: P-state of what runs on each node that is not free
        self._pstate_here = np.zeros(len(is_on), dtype=np.int64)
        self._cores_of = self.amounts[:, 0]
        #: whether all hosts are in all pools, and have one P-state
        self._is_simple = bool(self.members.all()) and int(system.platform.n_pstates.max(initial=1)) == 1
        self._names = [partition.name for partition in system.platform.pools]
        #: nodes of all executions, and parts on them; each execution has some places in a row
        self._keep_pool(np.zeros((2, _FIRST_PARTS), dtype=np.int64), 0)
        self._rows = np.zeros((3, 0), dtype=np.int64)
        super().__init__(system, tasks, is_on)

    def _make_room(self, end: Floats, width: Integers) -> None:
        super()._make_room(end, width)
        rows = np.zeros((3, len(end)), dtype=np.int64)
        rows[:, : self._rows.shape[1]] = self._rows
        #: of each execution: its task, where its places in the pool begin, and how many they are
        self._rows, self._shown_rows = rows, rows.view()
        self._shown_rows.setflags(write=False)

    def _keep_pool(self, pool: Integers, n_pooled: int) -> None:
        """Keep nodes of executions in this array, of which so many places are used; policies only look at it."""
        self._pool, self._n_pooled, self._shown_pool = pool, n_pooled, pool.view()
        self._shown_pool.setflags(write=False)

    def place(self, execution: Execution, hosts: Integers | None = None, parts: Integers | None = None) -> None:
        """Note on an execution which nodes it takes, and how many parts of its job on each."""
        if hosts is None:
            width = self.jobs.width.item(execution.task)
            hosts, parts = np.array([execution.host]), None if width == 1 else np.array([width])
        execution.hosts, execution.parts = hosts, parts
        execution.part_cores = self.jobs.demand.item(execution.task, 0)

    def misfit(self, task: int, hosts: Integers, parts: Integers | None) -> tuple[str, int | None] | None:
        """Say why the task can never lie so: it has so many parts, a partition, and perhaps a node for each part."""
        n_parts = len(hosts) if parts is None else int(parts.sum())
        width, partition = self.jobs.width.item(task), self.jobs.partition.item(task)
        if n_parts != width:
            return f"the task has {counted(width, 'part')}, not {n_parts}", None
        if n_parts > len(hosts) and not self.jobs.anywhere[task]:
            return "a host is listed twice, and each part of the task needs a node of its own", None
        inside = self.members[partition, hosts]
        if not inside.all():
            host = hosts.item(inside.argmin().item())
            return f"host {host} is not in its partition, {self._names[partition]!r}", host
        enough = (self.amounts[hosts] >= self.demand(task, parts)).all(axis=1)
        if not enough.all():
            host = hosts.item(enough.argmin().item())
            has = self.amounts[host].tolist()
            return f"host {host} has {has} in all, and the task takes {self.demand(task, parts).max(axis=0)}", host
        return None

    def takes_now(self, task: int, hosts: Integers, parts: Integers | None, pstate: int) -> bool:
        """Whether the nodes have room for just the parts, in the one P-state: quick, and never wrongly yes."""
        if not self._is_simple or hosts.item(0) < 0 or hosts.item(-1) >= len(self.cores):
            return False
        jobs = self.jobs
        if parts is None:
            fits = len(hosts) == jobs.width.item(task)
        else:
            fits = jobs.anywhere.item(task) and int(parts.sum()) == jobs.width.item(task)
        return fits and bool(have_room(self.left, hosts, _for_loops(parts), jobs.demand, task))

    def parts_apart(self, task: int) -> bool:
        """Whether each part of the task needs a node of its own."""
        return not self.jobs.anywhere.item(task)

    def widths(self, tasks: Integers, hosts: Integers) -> Integers:
        """Return how many parts task k has, shape (tasks,)."""
        return self.jobs.width[tasks]

    def fits_one_host(self, tasks: Integers) -> Booleans:
        """Whether some node of its partition has room for all parts of each task, shape (tasks,)."""
        jobs = self.jobs
        alone = np.zeros(len(tasks), dtype=np.bool_)
        for k, task in enumerate(tasks.tolist()):
            need = jobs.demand[task] * jobs.width[task]
            inside = self.members[jobs.partition[task]]
            alone[k] = (self.amounts[inside] >= need).all(axis=1).any() and (
                jobs.width[task] == 1 or jobs.anywhere[task]
            )
        return alone

    def disagreeing(self, hosts: Integers, pstate: int) -> tuple[int, int] | None:
        """Find a node on which something runs in another P-state, and that one; None if there is none."""
        differs = self.ready[hosts] & ~self.free[hosts] & (self._pstate_here[hosts] != pstate)
        if not differs.any():
            return None
        host = hosts.item(differs.argmax().item())
        return host, self._pstate_here.item(host)

    def demand(self, task: int, parts: Integers | None) -> Integers:
        """Return what a task takes of each of its nodes, or of all alike: shape (nodes or 1, resources)."""
        need = self.jobs.demand[task]
        return need[None] if parts is None else np.outer(parts, need)

    def has_free_core(self, host: int) -> bool:
        """Whether the node has a core left."""
        return bool(self.left[host, 0] > 0)

    def too_early(self, hosts: Integers, start: float, now: float) -> tuple[int, float] | None:
        """Find a node that boots until later than `start` [s], or is off, and until when; `conflict` finds others."""
        until = np.where(self.ready[hosts], -np.inf, self._until[hosts])
        if self.drained:
            until[np.isin(hosts, list(self.drained))] = np.inf
        last = until.argmax().item()
        return (last, until.item(last)) if until[last] > start else None

    def idle_hosts(self) -> list[int]:
        """Return the nodes with free cores, ascending."""
        idle: list[int] = np.flatnonzero(self.left[:, 0] > 0).tolist()
        return idle

    def has_room(self, task: int, host: int) -> bool:
        """Whether the node has so much left that all parts of the task could start there now."""
        need = self.jobs.demand[task] * self.jobs.width.item(task)
        return self.members.item(self.jobs.partition.item(task), host) and bool((self.left[host] >= need).all())

    def lacking(self, task: int, hosts: Integers, parts: Integers | None) -> int | None:
        """Find the place, in `hosts`, of a node that has not so much left."""
        enough = (self.left[hosts] >= self.demand(task, parts)).all(axis=1)
        return None if enough.all() else enough.argmin().item()

    def conflict(
        self, task: int, hosts: Integers, parts: Integers | None, start: float, end: float, planned: Reservations
    ) -> tuple[int, Execution] | None:
        """Find a node that has too little left at some time from `start` to `end` [s], and what takes it."""
        meanwhile = planned.between(start, end)
        begins = {start, *(each.start for each in meanwhile if each.start > start)}
        for time in sorted(begins):
            left = self.amounts[hosts] - self.demand(task, parts)
            there = [each for each in self._place if max(each.estimated_end, start) > time]
            there += [each for each in meanwhile if each.start <= time < each.end]
            for each in there:
                place = np.searchsorted(hosts, each.nodes)
                inside = (place < len(hosts)) & (hosts[np.minimum(place, len(hosts) - 1)] == each.nodes)
                taken = np.broadcast_to(self._taken(each), (len(each.nodes), left.shape[1]))
                left[place[inside]] -= taken[inside]
                if (left < 0).any():
                    return hosts.item((left < 0).any(axis=1).argmax().item()), each
        return None

    def idle_cores(self) -> list[int]:
        """Return the nodes with free cores, ascending, once for each."""
        idle: list[int] = np.repeat(np.arange(len(self.left)), self.left[:, 0]).tolist()
        return idle

    def free_cores(self) -> Integers:
        """Return the cores of each node that run nothing, shape (hosts,)."""
        free = np.where(self.ready, self.left[:, 0], self._cores_of)
        for host in self.drained:
            free[host] = self._room_beside(host).item(0)
        return free

    def core_ends(self, host: int) -> list[float]:
        """Return the estimated end of what runs on each busy core of a node [s]."""
        return [
            each.estimated_end
            for each in self.on_host(host)
            for _ in range(each.cores.item(np.searchsorted(each.nodes, host).item()))
        ]

    def core_ready(self, now: float) -> Floats:
        """When each core gets free of what runs or boots there [s], shape (hosts, most cores); rows ascend."""
        at = np.repeat(np.maximum(self._until, now)[:, None], max(self.cores, default=1), axis=1)
        used = np.zeros(len(at), dtype=np.int64)
        for each in self._place:
            for host, cores in zip(each.nodes.tolist(), each.cores.tolist(), strict=True):
                at[host, used[host] : used[host] + cores] = max(each.estimated_end, now)
                used[host] += cores
        at[list(self.drained)] = np.inf
        at[np.arange(at.shape[1]) >= self._cores_of[:, None]] = np.inf
        at.sort(axis=1)
        return at

    def take(self, execution: Execution) -> None:
        """Let an execution have its parts of its nodes."""
        place, hosts = len(self._at), execution.nodes
        n = len(hosts)
        if self._n_pooled + n > self._pool.shape[1]:
            self._pack_pool(n)
        begin, parts = self._n_pooled, _for_loops(execution.parts)
        task, demand = execution.task, self.jobs.demand
        self.n_free -= int(take_parts(self.left, hosts, parts, demand, task, self.free, self._pool, begin))
        self._n_pooled = begin + n
        self._begin_row(execution, place)
        rows = self._rows
        rows[0, place], rows[1, place], rows[2, place] = task, begin, n
        if not self._is_simple:
            self._pstate_here[hosts] = execution.pstate

    def release(self, execution: Execution) -> None:
        """Take the parts of an execution back; the last one in the arrays fills its place."""
        place, n = self._place[execution], len(self._at) - 1
        _, begin, count = self._rows[:, place].tolist()
        parts = _for_loops(execution.parts)
        task, demand, free = execution.task, self.jobs.demand, self.free
        self.n_free += int(
            give_back_parts(
                self.left, execution.nodes, parts, demand, task, free, self.amounts, self._until, execution.end
            )
        )
        self._rows[:, place] = self._rows[:, n]
        if begin + count == self._n_pooled:
            self._n_pooled = begin
        self._end_row(execution)
        if self.drained:
            hosts = execution.nodes.tolist()
            self._keep_drained(hosts)
            for host in self.drained.intersection(hosts):
                self.left[host], self._until[host] = 0, execution.end

    def _taken(self, execution: Execution) -> Integers:
        """Return what an execution takes of each of its nodes, or of all alike."""
        need = self.jobs.demand[execution.task]
        return need if execution.parts is None else execution.parts[:, None] * need

    def _pack_pool(self, more: int) -> None:
        """Close the gaps that ended executions have left in the pool, which is full."""
        n = len(self._at)
        _, begin, count = self._rows[:, :n]
        used = int(count.sum())
        room = max(_FIRST_PARTS, 2 * (used + more))
        packed = np.zeros((2, room), dtype=np.int64)
        first = np.cumsum(count) - count
        places = np.repeat(begin - first, count) + np.arange(used)
        packed[:, :used] = self._pool[:, places]
        self._rows[1, :n] = first
        self._keep_pool(packed, used)

    def set_ready(self, host: int, *, ready: bool) -> None:
        """Note that a node on which nothing runs has booted, or was switched off."""
        super().set_ready(host, ready=ready)
        self.left[host] = self.amounts[host] if ready and host not in self.drained else 0

    def drain(self, host: int) -> None:
        """Let a node have nothing left from now on, and get nothing back of what runs there."""
        super().drain(host)
        self.left[host] = 0

    def resume(self, host: int) -> None:
        """Let a drained node have left again what nothing takes that runs there."""
        super().resume(host)
        if self.ready[host]:
            self.left[host] = self._room_beside(host)

    def _room_beside(self, host: int) -> Integers:
        """Return what a node has beside what runs there, shape (resources,)."""
        room = self.amounts[host].copy()
        for each in self.on_host(host):
            room -= np.broadcast_to(self._taken(each), (len(each.nodes), len(room)))[_at(each, host)]
        return room

    def _count_back(self, host: int, sign: int) -> None:
        """Let what runs on a node give back its parts there, or none, to whoever looks at the state."""
        super()._count_back(host, sign)
        for each in self.on_host(host):
            at = _at(each, host)
            self._pool[1, self._rows[1, self._place[each]] + at] = each.parts_each[at] if sign > 0 else 0

    def free_at(self, now: float, hosts: Integers | None = None) -> Floats:
        """When all that runs on nodes has ended [s], shape (hosts,): estimated; inf where one is off."""
        until, n = self._until.copy(), len(self._at)
        until[list(self.drained)] = np.inf
        for place in range(n):
            _, begin, count = self._rows[:, place].tolist()
            nodes = self._pool[0, begin : begin + count]
            until[nodes] = np.maximum(until[nodes], self._end[place])
        return np.maximum(until if hosts is None else until[hosts], now)

    def state(self, now: float, reservations: Reservations) -> NodesState:
        """Return what a policy may know `now` [s], as arrays that cannot be written to."""
        state = self._state
        if state is None or state.now != now:
            n = len(self._at)
            end, width = self._shown
            common = (self._shown_free, self.n_free, end[:n], width[:n], now, self.free_at, reservations.view)
            state = self._state = SharedNodesState(*common, self._shown_left, self._shown_rows[:, :n], self._shown_pool)
        return state


def _at(execution: Execution, host: int) -> int:
    """Return the place of a host among those of an execution."""
    return int(np.searchsorted(execution.nodes, host))


def _for_loops(parts: Integers | None) -> Integers:
    """Return the parts on each node as loops take them: `ONE_EACH` in the place of none."""
    return ONE_EACH if parts is None else parts
