"""What each host has left, and what runs where: one interface, counted in three ways behind it.

`CoreCounts` counts the cores of each host in plain lists, for tasks of one core whose policy names
one host: one number changes at a time. `WholeNodes` and `SharedNodes` keep arrays, so that a job of
57 nodes costs a few array operations, not 57 steps. Which of them serves a run, `resources_of` alone
decides; nobody else asks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.engine.execution import Execution, mean_weights, node_records
from gridsched.engine.plans import Reservations
from gridsched.model.room_on_nodes import node_amounts, partition_members
from gridsched.model.signals import Signal
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.policy.base import Traits
from gridsched.policy.state import NodesState, SharedNodesState

#: Room for as many running executions at first; it doubles when it is used up.
_FIRST_ROOM = 64
#: Room for as many parts of executions at first, where nodes are shared.
_FIRST_PARTS = 1024


def resources_of(system: System, tasks: Tasks, traits: Traits, is_on: list[bool]) -> Resources:
    """Return the hosts of a run, counted in the cheapest way that serves its tasks and its policy.

    Parameters
    ----------
    system : System
    tasks : Tasks
    traits : Traits
        Of the policy that is asked first; what it delegates to places tasks alike.
    is_on : list of bool
        Of each host at the start.
    """
    if not takes_sets(tasks, traits):
        return CoreCounts(system, is_on)
    one_core = max(system.platform.cores.tolist(), default=1) == 1
    kind = WholeNodes if tasks.take_whole_nodes or (tasks.are_serial and one_core) else SharedNodes
    return kind(system, tasks, is_on)


def with_pools(system: System, tasks: Tasks, traits: Traits) -> System:
    """Return a system whose platform has partitions, where jobs share nodes and nobody has divided them."""
    platform = system.platform
    shares = takes_sets(tasks, traits) and not tasks.take_whole_nodes and (platform.cores > 1).any()
    return replace(system, platform=replace(platform, partitions=platform.pools)) if shares else system


def takes_sets(tasks: Tasks, traits: Traits) -> bool:
    """Whether executions have sets of hosts; else each has one core of one host."""
    return traits.parallel or not tasks.are_serial


class Resources(ABC):
    """The hosts of a run: what they have left, and the executions on them.

    Attributes
    ----------
    cores : list of int
        Of each host.
    one_core : bool
        Whether no host has more than one.
    """

    #: whether executions have sets of hosts; else each has one core of one host
    has_sets = True

    def __init__(self, system: System) -> None:
        #: what runs on each host, where executions have a core of one host each
        self.by_host: dict[int, list[Execution]] = {}
        self.cores: list[int] = system.platform.cores.tolist()
        self.one_core = max(self.cores, default=1) == 1
        self._estimates = system.estimates

    # ------------------------------------------------------------------ what runs

    @property
    @abstractmethod
    def running(self) -> list[Execution]:
        """Executions that have their hosts."""

    @abstractmethod
    def on_host(self, host: int) -> list[Execution]:
        """Return the executions that have a part of the host, in order of start."""

    @abstractmethod
    def place(self, execution: Execution, hosts: Integers | None = None, parts: Integers | None = None) -> None:
        """Note on an execution which hosts it takes, and how many parts of its task on each.

        Without `hosts` all parts lie on its one host.
        """

    @abstractmethod
    def take(self, execution: Execution) -> None:
        """Let an execution have its hosts."""

    @abstractmethod
    def release(self, execution: Execution) -> None:
        """Take the hosts of an execution back."""

    @abstractmethod
    def set_watts(self, execution: Execution) -> None:
        """Take over the average power of an execution [W]."""

    def records(self, executions: Sequence[Execution]) -> dict[str, Integers]:
        """Return what a `Trace` holds of the hosts of executions."""
        return node_records(executions)

    @abstractmethod
    def committed_j(self, now: float, period_end: float, weights: Signal) -> float:
        """Return what executions will count from `now` to a period's end, as estimated [J]."""

    # ------------------------------------------------------------------ where a task may lie

    def misfit(self, task: int, hosts: Integers, parts: Integers | None) -> tuple[str, int | None] | None:
        """Say why the task can never lie so, and which host is to blame; None if it can.

        Parameters
        ----------
        task : int
        hosts : ndarray of int64
            Ascending.
        parts : ndarray of int64, or None
            How many of its parts lie on each; None: one.
        """
        if parts is not None or len(hosts) != 1:
            return f"the task takes one core of one host, not {len(hosts)} hosts", None
        return None

    def misfit_alone(self, task: int, host: int) -> str | None:
        """Say why the whole task can never lie on the one host; None if it can."""
        one = np.array([host])
        n_parts = self.widths(np.array([task]), one)
        if self.parts_apart(task) and n_parts[0] > 1:
            return f"the task takes {n_parts[0]} nodes, not 1; Allocate gives a task several hosts"
        misfit = self.misfit(task, one, n_parts if n_parts[0] > 1 else None)
        return None if misfit is None else f"{misfit[0]}; Allocate gives a task several hosts"

    def misfit_of_plan(self, tasks: Integers, hosts: Integers) -> tuple[str, int, int] | None:
        """Find a task that can never lie on its host alone, and the host: why, task, host; None if all can."""
        for task, host in zip(tasks.tolist(), hosts.tolist(), strict=True):
            if (why := self.misfit_alone(task, host)) is not None:
                return why, task, host
        return None

    def takes_now(self, task: int, hosts: Integers, parts: Integers | None, pstate: int) -> bool:
        """Whether the task may lie so and could start now: quick, and never wrongly yes.

        What says why not is asked afterwards.
        """
        return False

    def parts_apart(self, task: int) -> bool:
        """Whether each part of the task needs a host of its own."""
        return True

    def widths(self, tasks: Integers, hosts: Integers) -> Integers:
        """Return how many places task k takes in a list of hosts that begins with host k, shape (tasks,)."""
        return np.ones(len(tasks), dtype=np.int64)

    def fits_one_host(self, tasks: Integers) -> Booleans:
        """Whether there is a host that could hold each task alone, shape (tasks,)."""
        return np.ones(len(tasks), dtype=np.bool_)

    def disagreeing(self, hosts: Integers, pstate: int) -> tuple[int, int] | None:
        """Find a host whose other work has another P-state, and that one; None if there is none."""
        return None

    # ------------------------------------------------------------------ what is left

    @abstractmethod
    def has_free_core(self, host: int) -> bool:
        """Whether the host has a free core, as far as that depends on what runs there."""

    @abstractmethod
    def has_room(self, task: int, host: int) -> bool:
        """Whether the task could start on the one host now, as far as others leave it room."""

    def lacking(self, task: int, hosts: Integers, parts: Integers | None) -> int | None:
        """Find the place, in `hosts`, of one that cannot give its parts of the task now; None: all can."""
        return next((k for k, host in enumerate(hosts.tolist()) if not self.has_room(task, host)), None)

    def conflict(
        self, task: int, hosts: Integers, parts: Integers | None, start: float, end: float, planned: Reservations
    ) -> tuple[int, Execution] | None:
        """Find a host that is not left to a task from `start` to `end` [s], and what takes it then."""
        return planned.found(hosts, start, end)

    def too_early(self, hosts: Integers, start: float, now: float) -> tuple[int, float] | None:
        """Find a host that is free from a later time on than `start` [s], as estimated, and that time."""
        return None

    @abstractmethod
    def is_busy(self, host: int) -> bool:
        """Whether anything runs on the host."""

    @abstractmethod
    def is_ready(self, host: int) -> bool:
        """Whether the host is on and has booted."""

    @abstractmethod
    def idle_cores(self) -> list[int]:
        """Return the hosts that could start a task of one core now, ascending, once for each free core."""

    @abstractmethod
    def idle_hosts(self) -> list[int]:
        """Return the hosts that could start a task of one core now, ascending."""

    @abstractmethod
    def free_cores(self) -> Integers:
        """Return the cores of each host that run nothing, shape (hosts,)."""

    @abstractmethod
    def idle_since(self) -> Floats:
        """Since when each host runs nothing [s], shape (hosts,); infinite where it runs something or is not ready."""

    @abstractmethod
    def core_ends(self, host: int) -> list[float]:
        """Return the estimated end of what runs on each busy core of a host [s], in no particular order."""

    def core_ready(self, now: float) -> Floats | None:
        """When each core gets free of what runs or boots there [s], shape (hosts, most cores).

        Rows ascend and end with infinity. None where `core_ends` of the hosts on which something has
        happened is quicker.
        """
        return None

    @abstractmethod
    def state(self, now: float, reservations: Reservations) -> NodesState:
        """Return what a policy may know `now` [s] of hosts as nodes, as arrays that cannot be written to."""

    # ------------------------------------------------------------------ hosts that come and go

    @abstractmethod
    def set_ready(self, host: int, *, ready: bool) -> None:
        """Note that a host on which nothing runs has booted, or was switched off."""

    @abstractmethod
    def boots(self, host: int, until: float) -> None:
        """Note that a host boots until a time [s]."""


class CoreCounts(Resources):
    """Free cores of each host, for tasks of one core each.

    Parameters
    ----------
    system : System
    is_on : list of bool
        Of each host at the start.

    Attributes
    ----------
    free : list of int
        Free cores of each host, whether it is on or not.
    idle : list of int
        Hosts that are on, not booting, and have a free core; ascending.
    by_host : dict of int to list of Execution
        On each host where something runs, in order of start.
    """

    has_sets = False

    def __init__(self, system: System, is_on: list[bool]) -> None:
        super().__init__(system)
        self.free = list(self.cores)
        self.idle = [host for host, on in enumerate(is_on) if on]
        self._ready = list(is_on)
        #: when the last execution on each host ended, or it had booted [s]
        self._since = [0.0] * len(is_on)

    @property
    def running(self) -> list[Execution]:
        """Executions that have a core, host by host."""
        return list(chain.from_iterable(self.by_host.values()))

    def on_host(self, host: int) -> list[Execution]:
        """Return the executions on a host, in order of start."""
        return self.by_host.get(host, [])

    def place(self, execution: Execution, hosts: Integers | None = None, parts: Integers | None = None) -> None:
        """Leave an execution as it is: its host gives it a core."""

    def take(self, execution: Execution) -> None:
        """Put an execution on a core; a full host is no longer idle."""
        host = execution.host
        self.by_host.setdefault(host, []).append(execution)
        self.free[host] -= 1
        if not self.free[host]:
            del self.idle[bisect_left(self.idle, host)]

    def release(self, execution: Execution) -> None:
        """Take an execution off its core; the host becomes idle if it was full."""
        host = execution.host
        here = self.by_host[host]
        here.remove(execution)
        if not here:
            del self.by_host[host]
            self._since[host] = execution.end
        self.free[host] += 1
        if self.free[host] == 1:
            insort(self.idle, host)

    def misfit_alone(self, task: int, host: int) -> str | None:
        """Return None: each task takes one core of one host."""
        return None

    def misfit_of_plan(self, tasks: Integers, hosts: Integers) -> tuple[str, int, int] | None:
        """Return None: each task takes one core of one host."""
        return None

    def records(self, executions: Sequence[Execution]) -> dict[str, Integers]:
        """Return nothing: the execution has its host."""
        return {}

    def set_watts(self, execution: Execution) -> None:
        """Leave it to the execution."""

    def committed_j(self, now: float, period_end: float, weights: Signal) -> float:
        """Return what executions will count from `now` to a period's end, as estimated [J]."""
        total = 0.0
        for host in sorted(self.by_host):
            signal = weights.at_host(host)
            for each in self.by_host[host]:
                begin, until = max(each.start, now), min(each.estimated_end, period_end)
                if until > begin:
                    total += each.watts * (until - begin) * float(signal.mean(begin, until - begin))
        return total

    def has_free_core(self, host: int) -> bool:
        """Whether the host has a free core, be it on or not."""
        return self.free[host] > 0

    def has_room(self, task: int, host: int) -> bool:
        """Whether the host has a free core."""
        return self.free[host] > 0

    def idle_hosts(self) -> list[int]:
        """Return the hosts that could start a task now, ascending."""
        return self.idle.copy()

    def is_busy(self, host: int) -> bool:
        """Whether anything runs on the host."""
        return host in self.by_host

    def is_ready(self, host: int) -> bool:
        """Whether the host is on and has booted."""
        return self._ready[host]

    def idle_cores(self) -> list[int]:
        """Return the hosts with free cores, ascending, once for each."""
        if self.one_core:
            return self.idle.copy()
        return [host for host in self.idle for _ in range(self.free[host])]

    def free_cores(self) -> Integers:
        """Return the cores of each host that run nothing, shape (hosts,)."""
        return np.array(self.free, dtype=np.int64)

    def idle_since(self) -> Floats:
        """Since when each host runs nothing [s], shape (hosts,); infinite where it runs something or is not ready."""
        idle = np.array(self._ready, dtype=np.bool_) & (self.free_cores() == self.cores)
        return np.where(idle, self._since, np.inf)

    def core_ends(self, host: int) -> list[float]:
        """Return the estimated end of what runs on each busy core of a host [s]."""
        return [each.estimated_end for each in self.by_host.get(host, ())]

    def state(self, now: float, reservations: Reservations) -> NodesState:
        """Return hosts as nodes: free is one that runs nothing at all."""
        running = self.running
        ends = np.array([each.estimated_end for each in running], dtype=np.float64)
        free = np.array(self._ready, dtype=np.bool_) & (self.free_cores() == self.cores)
        arrays = free, ends, np.ones(len(running), dtype=np.int64)
        for array in arrays:
            array.setflags(write=False)
        return NodesState(arrays[0], int(free.sum()), *arrays[1:], now, self._free_at, reservations.view)

    def _free_at(self, now: float) -> Floats:
        """When all that runs on each host has ended [s], shape (hosts,); inf where it is off or boots."""
        at = np.where(self._ready, now, np.inf)
        for host, here in self.by_host.items():
            at[host] = max(now, *(each.estimated_end for each in here))
        return at

    def set_ready(self, host: int, *, ready: bool) -> None:
        """Add the host to, or take it out of, those that can take a task."""
        if ready != self._ready[host]:
            self._ready[host] = ready
            if ready:
                insort(self.idle, host)
            else:
                del self.idle[bisect_left(self.idle, host)]

    def boots(self, host: int, until: float) -> None:
        """Note that a host boots until a time [s]."""
        self._since[host] = max(self._since[host], until)


class WholeNodes(Resources):
    """Nodes that each run one execution at most, and the executions on sets of them.

    Parameters
    ----------
    system : System
    tasks : Tasks
    is_on : list of bool
        Of each host at the start.

    Attributes
    ----------
    free : ndarray of bool, shape (hosts,)
        Whether the node could start something now: it is ready, and no execution has it.
    ready : ndarray of bool, shape (hosts,)
        Whether the node is on and has booted.
    n_free : int
        Nodes that are free.
    """

    def __init__(self, system: System, tasks: Tasks, is_on: list[bool]) -> None:
        super().__init__(system)
        self._cluster_of = system.platform.cluster_of if len(system.platform.clusters) > 1 else None
        self.ready = np.array(is_on, dtype=np.bool_)
        self.free = self.ready.copy()
        self._shown_free = self.free.view()
        self._shown_free.setflags(write=False)
        self.n_free = int(np.count_nonzero(self.ready))
        #: where each running execution stands in the arrays; in order of start
        self._place: dict[Execution, int] = {}
        self._at: list[Execution] = []
        #: when each node gets free of what runs or boots there, as estimated, or got free [s]
        self._until = np.where(self.ready, 0.0, np.inf)
        self._state: NodesState | None = None
        #: when each execution begins to compute [s]; what waits for its files has its nodes before
        self._begin = np.zeros(_FIRST_ROOM)
        self._make_room(np.zeros(_FIRST_ROOM), np.zeros(_FIRST_ROOM, dtype=np.int64))

    def _make_room(self, end: Floats, width: Integers) -> None:
        """Keep estimated ends and widths in these arrays; policies look at them, and only look."""
        self._end, self._width = end, width
        self._begin = np.resize(self._begin, len(end))
        #: average power of each execution, where a budget is kept [W]
        self._watts = np.array([each.watts for each in self._at] + [0.0] * (len(end) - len(self._at)))
        self._shown = end.view(), width.view()
        for array in self._shown:
            array.setflags(write=False)

    @property
    def running(self) -> list[Execution]:
        """What runs, in order of start."""
        return list(self._place)

    def on_host(self, host: int) -> list[Execution]:
        """Return the executions that have a part of the node, in order of start."""
        return [each for each in self._place if host in each.nodes]

    def place(self, execution: Execution, hosts: Integers | None = None, parts: Integers | None = None) -> None:
        """Note on an execution the nodes that it has whole."""
        execution.hosts = np.array([execution.host]) if hosts is None else hosts

    def misfit(self, task: int, hosts: Integers, parts: Integers | None) -> tuple[str, int | None] | None:
        """Say why the task can never lie so: it takes nodes of one cluster, as many as it needs there."""
        if parts is not None:
            return "a host stands there twice", None
        cluster_of, first = self._cluster_of, hosts.item(0)
        if cluster_of is not None and (cluster_of[hosts] != cluster_of[first]).any():
            return "its nodes lie in several clusters; take them from one", None
        width = self._estimates.width(task, first)
        if len(hosts) != width:
            return f"the task takes {width} nodes, not {len(hosts)}", None
        return None

    def takes_now(self, task: int, hosts: Integers, parts: Integers | None, pstate: int) -> bool:
        """Whether the nodes are enough, of the one cluster, and free: quick, and never wrongly yes."""
        if parts is not None or self._cluster_of is not None:
            return False
        first = hosts.item(0)
        inside = first >= 0 and hosts.item(-1) < len(self.cores)
        return inside and len(hosts) == self._estimates.width(task, first) and bool(self.free[hosts].all())

    def widths(self, tasks: Integers, hosts: Integers) -> Integers:
        """Return how many nodes task k takes in the cluster of host k, shape (tasks,)."""
        return self._estimates.widths(tasks, hosts)

    def fits_one_host(self, tasks: Integers) -> Booleans:
        """Whether one node of some cluster is enough for each task, shape (tasks,)."""
        one_of_each = (
            np.unique(self._cluster_of, return_index=True)[1] if self._cluster_of is not None else np.zeros(1, int)
        )
        return np.any([self.widths(tasks, np.full(len(tasks), host)) == 1 for host in one_of_each], axis=0)

    def has_free_core(self, host: int) -> bool:
        """Whether the node is free."""
        return self.free.item(host)

    def has_room(self, task: int, host: int) -> bool:
        """Whether the node is free."""
        return self.free.item(host)

    def too_early(self, hosts: Integers, start: float, now: float) -> tuple[int, float] | None:
        """Find a node that is free from a later time on than `start` [s], as estimated, and that time."""
        free_at = self.free_at(now, hosts)
        last = free_at.argmax().item()
        return (last, free_at.item(last)) if free_at[last] > start else None

    def idle_hosts(self) -> list[int]:
        """Return the nodes that are free, ascending."""
        idle: list[int] = np.flatnonzero(self.free).tolist()
        return idle

    def lacking(self, task: int, hosts: Integers, parts: Integers | None) -> int | None:
        """Find the place, in `hosts`, of a node that can start nothing now."""
        free = self.free[hosts]
        return None if free.all() else free.argmin().item()

    def is_busy(self, host: int) -> bool:
        """Whether anything runs on the node."""
        return bool(self.ready[host] and not self.free[host])

    def is_ready(self, host: int) -> bool:
        """Whether the node is on and has booted."""
        return self.ready.item(host)

    def idle_cores(self) -> list[int]:
        """Return the nodes that are free, ascending: each has one core."""
        return self.idle_hosts()

    def free_cores(self) -> Integers:
        """Return 1 for each node that runs nothing, whether it is on or not, shape (hosts,)."""
        return np.asarray(~(self.ready & ~self.free), dtype=np.int64)

    def core_ends(self, host: int) -> list[float]:
        """Return the estimated end of what runs on each busy core of a node [s]."""
        return [self._until.item(host)] * self.is_busy(host)

    def core_ready(self, now: float) -> Floats:
        """When each node gets free of what runs or boots there [s], shape (hosts, 1)."""
        return self.free_at(now)[:, None]

    def take(self, execution: Execution) -> None:
        """Let an execution have its nodes."""
        hosts = execution.nodes
        self._begin_row(execution, len(self._at))
        self.free[hosts] = False
        self._until[hosts] = execution.estimated_end
        self.n_free -= len(hosts)

    def _begin_row(self, execution: Execution, place: int) -> None:
        """Keep an execution in the next place of the arrays."""
        if place == len(self._end):
            self._make_room(np.resize(self._end, 2 * place), np.resize(self._width, 2 * place))
        self._place[execution] = place
        self._at.append(execution)
        self._begin[place] = execution.start
        self._end[place] = execution.estimated_end
        self._width[place] = len(execution.nodes)
        self._watts[place] = execution.watts
        self._state = None

    def release(self, execution: Execution) -> None:
        """Take the nodes of an execution back; the last one in the arrays fills its place."""
        hosts = execution.nodes
        self._end_row(execution)
        self.free[hosts] = True
        self._until[hosts] = execution.end
        self.n_free += len(hosts)

    def _end_row(self, execution: Execution) -> None:
        """Let the last execution in the arrays have the place of one that ended."""
        place, last = self._place.pop(execution), self._at.pop()
        if last is not execution:
            n = len(self._at)
            self._at[place] = last
            self._place[last] = place
            self._end[place], self._width[place] = self._end[n], self._width[n]
            self._begin[place], self._watts[place] = self._begin[n], self._watts[n]
        self._state = None

    def set_watts(self, execution: Execution) -> None:
        """Take over the average power of an execution that has its nodes [W]."""
        place = self._place.get(execution)
        if place is not None:
            self._watts[place] = execution.watts

    def committed_j(self, now: float, period_end: float, weights: Signal) -> float:
        """Return what executions will count from `now` to a period's end, as estimated [J]."""
        n = len(self._at)
        begin = np.maximum(self._begin[:n], now)
        left = np.maximum(np.minimum(self._end[:n], period_end) - begin, 0.0)
        return float((self._watts[:n] * left * mean_weights(weights, self._at, begin, left)).sum())

    def set_ready(self, host: int, *, ready: bool) -> None:
        """Note that a node on which nothing runs has booted, or was switched off."""
        self.n_free += int(ready) - int(self.ready[host])
        self.ready[host] = ready
        self.free[host] = ready
        if not ready:
            self._until[host] = np.inf
        self._state = None

    def boots(self, host: int, until: float) -> None:
        """Note that a node boots until a time [s]."""
        self._until[host] = until
        self._state = None

    def free_at(self, now: float, hosts: Integers | None = None) -> Floats:
        """When all or some nodes get free [s], shape (hosts,): estimated; inf where one is off."""
        return np.maximum(self._until if hosts is None else self._until[hosts], now)

    def idle_since(self) -> Floats:
        """Since when each node is free [s], shape (hosts,); infinite where it is not."""
        return np.where(self.free, self._until, np.inf)

    def state(self, now: float, reservations: Reservations) -> NodesState:
        """Return what a policy may know `now` [s], as arrays that cannot be written to."""
        state = self._state
        if state is None or state.now != now:
            n = len(self._at)
            end, width = self._shown
            state = self._state = NodesState(
                self._shown_free, self.n_free, end[:n], width[:n], now, self.free_at, reservations.view
            )
        return state


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
        self._n_here = np.zeros(len(is_on), dtype=np.int64)
        #: P-state of what runs on each node that is not free
        self._pstate_here = np.zeros(len(is_on), dtype=np.int64)
        self._cores_of = self.amounts[:, 0]
        #: whether all hosts are in all pools, and have one P-state
        self._is_simple = bool(self.members.all()) and int(system.platform.n_pstates.max(initial=1)) == 1
        self._names = [partition.name for partition in system.platform.pools]
        #: nodes of all executions, and parts on them; each execution has some places in a row
        self._pool = np.zeros((2, _FIRST_PARTS), dtype=np.int64)
        self._n_pooled = 0
        self._rows = np.zeros((3, 0), dtype=np.int64)
        super().__init__(system, tasks, is_on)

    def _make_room(self, end: Floats, width: Integers) -> None:
        super()._make_room(end, width)
        rows = np.zeros((3, len(end)), dtype=np.int64)
        rows[:, : self._rows.shape[1]] = self._rows
        #: of each execution: its task, where its places in the pool begin, and how many they are
        self._rows = rows

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
            return f"the task has {width} parts, not {n_parts}", None
        if n_parts > len(hosts) and not self.jobs.anywhere[task]:
            return "a host stands there twice, and each part of the task needs a node of its own", None
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
        need, width = jobs.demand[task], jobs.width.item(task)
        if parts is None:
            return len(hosts) == width and bool((self.left[hosts] >= need).all())
        fits = jobs.anywhere.item(task) and int(parts.sum()) == width
        return fits and bool((self.left[hosts] >= parts[:, None] * need).all())

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
        differs = (self._n_here[hosts] > 0) & (self._pstate_here[hosts] != pstate)
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

    def is_busy(self, host: int) -> bool:
        """Whether anything runs on the node."""
        return bool(self._n_here[host])

    def idle_cores(self) -> list[int]:
        """Return the nodes with free cores, ascending, once for each."""
        idle: list[int] = np.repeat(np.arange(len(self.left)), self.left[:, 0]).tolist()
        return idle

    def free_cores(self) -> Integers:
        """Return the cores of each node that run nothing, shape (hosts,)."""
        return np.where(self.ready, self.left[:, 0], self._cores_of)

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
        at[np.arange(at.shape[1]) >= self._cores_of[:, None]] = np.inf
        at.sort(axis=1)
        return at

    def take(self, execution: Execution) -> None:
        """Let an execution have its parts of its nodes."""
        place, hosts = len(self._at), execution.nodes
        n = len(hosts)
        if self._n_pooled + n > self._pool.shape[1]:
            self._pack_pool(n)
        begin = self._n_pooled
        self._pool[0, begin : begin + n] = hosts
        self._pool[1, begin : begin + n] = 1 if execution.parts is None else execution.parts
        self._n_pooled += n
        self._begin_row(execution, place)
        self._rows[:, place] = execution.task, begin, n
        self.left[hosts] -= self._taken(execution)
        self._n_here[hosts] += 1
        if not self._is_simple:
            self._pstate_here[hosts] = execution.pstate
        self.n_free -= int(np.count_nonzero(self.free[hosts]))
        self.free[hosts] = False

    def release(self, execution: Execution) -> None:
        """Take the parts of an execution back; the last one in the arrays fills its place."""
        place, n = self._place[execution], len(self._at) - 1
        _, begin, count = self._rows[:, place].tolist()
        hosts = execution.nodes
        self.left[hosts] += self._taken(execution)
        self._n_here[hosts] -= 1
        is_idle = self._n_here[hosts] == 0
        if is_idle.any():
            idle = hosts[is_idle]
            self.free[idle], self._until[idle] = True, execution.end
            self.n_free += len(idle)
        self._rows[:, place] = self._rows[:, n]
        if begin + count == self._n_pooled:
            self._n_pooled = begin
        self._end_row(execution)

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
        self._pool, self._n_pooled = packed, used

    def set_ready(self, host: int, *, ready: bool) -> None:
        """Note that a node on which nothing runs has booted, or was switched off."""
        super().set_ready(host, ready=ready)
        self.left[host] = self.amounts[host] if ready else 0

    def free_at(self, now: float, hosts: Integers | None = None) -> Floats:
        """When all that runs on nodes has ended [s], shape (hosts,): estimated; inf where one is off."""
        until, n = self._until.copy(), len(self._at)
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
            rows, pool = self._rows[:, :n].view(), self._pool.view()
            for array in (rows, pool):
                array.setflags(write=False)
            common = (self._shown_free, self.n_free, end[:n], width[:n], now, self.free_at, reservations.view)
            state = self._state = SharedNodesState(*common, self._shown_left, rows, pool)
        return state
