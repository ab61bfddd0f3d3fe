"""Nodes that each run one execution at most, in arrays: a job of 57 nodes costs a few operations, not 57 steps."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.engine.execution import Execution, mean_weights
from gridsched.engine.plans import Reservations
from gridsched.engine.resources import Resources
from gridsched.errors import counted
from gridsched.model.signals import Signal
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.policy.state import NodesState

#: Room for as many running executions at first; it doubles when it is used up.
_FIRST_ROOM = 64


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
        #: where each running execution is in the arrays; in order of start
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
        return [each for each in self._place if each.lies_on(host)]

    def place(self, execution: Execution, hosts: Integers | None = None, parts: Integers | None = None) -> None:
        """Note on an execution the nodes that it has whole."""
        execution.hosts = np.array([execution.host]) if hosts is None else hosts

    def misfit(self, task: int, hosts: Integers, parts: Integers | None) -> tuple[str, int | None] | None:
        """Say why the task can never lie so: it takes nodes of one cluster, as many as it needs there."""
        if parts is not None:
            return "a host is listed twice", None
        cluster_of, first = self._cluster_of, hosts.item(0)
        if cluster_of is not None and (cluster_of[hosts] != cluster_of[first]).any():
            return "its nodes lie in several clusters; take them from one", None
        width = self._estimates.width(task, first)
        if len(hosts) != width:
            return f"the task takes {counted(width, 'node')}, not {len(hosts)}", None
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
        if host in self.drained:
            return bool(self.on_host(host))
        return bool(self.ready[host] and not self.free[host])

    def is_ready(self, host: int) -> bool:
        """Whether the node is on and has booted."""
        return self.ready.item(host)

    def idle_cores(self) -> list[int]:
        """Return the nodes that are free, ascending: each has one core."""
        return self.idle_hosts()

    def free_cores(self) -> Integers:
        """Return 1 for each node that runs nothing, whether it is on or not, shape (hosts,)."""
        free = ~(self.ready & ~self.free)
        for host in self.drained:
            free[host] = not self.on_host(host)
        return np.asarray(free, dtype=np.int64)

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
        if self.drained:
            self._keep_drained(hosts.tolist())

    def _keep_drained(self, hosts: Iterable[int]) -> None:
        """Let those of some nodes that are drained not be free."""
        for host in self.drained.intersection(hosts):
            self.n_free -= self.free.item(host)
            self.free[host] = False

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
        free = ready and host not in self.drained
        self.n_free += int(free) - self.free.item(host)
        self.ready[host] = ready
        self.free[host] = free
        if not ready:
            self._until[host] = np.inf
        self._state = None

    def drain(self, host: int) -> None:
        """Let a node start nothing from now on, and be none of those that what runs there gives back."""
        self.drained.add(host)
        self._keep_drained((host,))
        self._count_back(host, -1)

    def resume(self, host: int) -> None:
        """Let a drained node start something again, now or when what runs there has ended."""
        self._count_back(host, 1)
        is_free = self.ready.item(host) and not self.on_host(host)
        self.drained.discard(host)
        self.free[host] = is_free
        self.n_free += is_free

    def _count_back(self, host: int, sign: int) -> None:
        """Let what runs on a node give back one node more, or less, to whoever looks at the state."""
        self._state = None
        for each in self.on_host(host):
            self._width[self._place[each]] += sign

    def boots(self, host: int, until: float) -> None:
        """Note that a node boots until a time [s]."""
        self._until[host] = until
        self._state = None

    def free_at(self, now: float, hosts: Integers | None = None) -> Floats:
        """When all or some nodes get free [s], shape (hosts,): estimated; inf where one is off."""
        until = self._until
        if self.drained:
            until = until.copy()
            until[list(self.drained)] = np.inf
        return np.maximum(until if hosts is None else until[hosts], now)

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
