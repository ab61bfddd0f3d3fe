"""Which nodes are free, and what runs on sets of them, whole or shared: arrays, whatever the width of a job."""

from __future__ import annotations

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.engine.execution import Execution, mean_weights
from gridsched.engine.plans import Reservations
from gridsched.model.estimates import node_amounts
from gridsched.model.signals import Signal
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.policy.state import NodesState, SharedNodesState

#: Room for as many running executions at first; it doubles when it is used up.
_FIRST_ROOM = 64


class NodeSets:
    """Nodes that each run one execution at most, and the executions on sets of them.

    A job of 57 nodes costs a few array operations, not 57 steps.

    Parameters
    ----------
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

    def __init__(self, is_on: list[bool]) -> None:
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
        self._make_room(np.zeros(_FIRST_ROOM), np.zeros(_FIRST_ROOM, dtype=np.int64))

    def _make_room(self, end: Floats, width: Integers) -> None:
        """Keep estimated ends and widths in these arrays; policies look at them, and only look."""
        self._end, self._width = end, width
        #: average power of each execution, where a budget is kept [W]
        self._watts = np.array([each.watts for each in self._at] + [0.0] * (len(end) - len(self._at)))
        self._shown = end.view(), width.view()
        for array in self._shown:
            array.setflags(write=False)

    @property
    def running(self) -> list[Execution]:
        """What runs, in order of start."""
        return list(self._place)

    @property
    def busy(self) -> Booleans:
        """Whether an execution has each node, shape (hosts,)."""
        return self.ready & ~self.free

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
        self._end[place] = execution.estimated_end
        self._width[place] = len(execution.nodes)
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
            self._watts[place] = self._watts[n]
        self._state = None

    def set_watts(self, execution: Execution) -> None:
        """Take over the average power of a running execution [W]."""
        self._watts[self._place[execution]] = execution.watts

    def committed_j(self, now: float, period_end: float, weights: Signal) -> float:
        """Return what executions will count from `now` to a period's end, as estimated [J]."""
        n = len(self._at)
        left = np.maximum(np.minimum(self._end[:n], period_end) - now, 0.0)
        return float((self._watts[:n] * left * mean_weights(weights, self._at, now, left)).sum())

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


# ----------------------------------------------------------------------
# Nodes that several executions share: what each has left, and what runs where, as arrays


_FIRST_PARTS = 1024


class SharedNodes(NodeSets):
    """Nodes with cores and other resources, of which executions take parts.

    `free` tells which nodes run nothing at all.

    Parameters
    ----------
    is_on : list of bool
        Of each host at the start.
    system : System
    tasks : Tasks
        With a demand.

    Attributes
    ----------
    jobs : SharedJobs
    amounts : ndarray of int64, shape (hosts, resources)
        What each node has.
    left : ndarray of int64, shape (hosts, resources)
        What each node could give now; nothing while it is off or boots.
    """

    def __init__(self, is_on: list[bool], system: System, tasks: Tasks) -> None:
        self.jobs = tasks.shared
        self.amounts = node_amounts(system.platform, tasks.resources)
        self.left = self.amounts * np.array(is_on, dtype=np.int64)[:, None]
        self._shown_left = self.left.view()
        self._shown_left.setflags(write=False)
        self._n_here = np.zeros(len(is_on), dtype=np.int64)
        #: nodes of all executions, and parts on them; each execution has some places in a row
        self._pool = np.empty((2, _FIRST_PARTS), dtype=np.int64)
        self._n_pooled = 0
        self._rows = np.zeros((3, 0), dtype=np.int64)
        super().__init__(is_on)

    def _make_room(self, end: Floats, width: Integers) -> None:
        super()._make_room(end, width)
        rows = np.zeros((3, len(end)), dtype=np.int64)
        rows[:, : self._rows.shape[1]] = self._rows
        #: of each execution: its task, where its places in the pool begin, and how many they are
        self._rows = rows

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
        self.n_free -= int(np.count_nonzero(self.free[hosts]))
        self.free[hosts] = False

    def release(self, execution: Execution) -> None:
        """Take the parts of an execution back; the last one in the arrays fills its place."""
        place, n = self._place[execution], len(self._at) - 1
        _, begin, count = self._rows[:, place].tolist()
        hosts = execution.nodes
        self.left[hosts] += self._taken(execution)
        self._n_here[hosts] -= 1
        idle = hosts[self._n_here[hosts] == 0]
        self.free[idle], self._until[idle] = True, execution.end
        self.n_free += len(idle)
        self._rows[:, place] = self._rows[:, n]
        if begin + count == self._n_pooled:
            self._n_pooled = begin
        self._end_row(execution)

    def _taken(self, execution: Execution) -> Integers:
        """Return what an execution takes of each of its nodes, or of all alike."""
        need = self.jobs.demand[execution.task]
        return need if execution.parts is None else np.outer(execution.parts, need)

    def _pack_pool(self, more: int) -> None:
        """Close the gaps that ended executions have left in the pool, which is full."""
        n = len(self._at)
        _, begin, count = self._rows[:, :n]
        used = int(count.sum())
        room = max(_FIRST_PARTS, 2 * (used + more))
        packed = np.empty((2, room), dtype=np.int64)
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

    def state(self, now: float, reservations: Reservations) -> SharedNodesState:
        """Return what a policy may know `now` [s], as arrays that cannot be written to."""
        state = self._state
        if not isinstance(state, SharedNodesState) or state.now != now:
            n = len(self._at)
            end, width = self._shown
            rows, pool = self._rows[:, :n].view(), self._pool.view()
            for array in (rows, pool):
                array.setflags(write=False)
            common = (self._shown_free, self.n_free, end[:n], width[:n], now, self.free_at, reservations.view)
            state = self._state = SharedNodesState(*common, self._shown_left, rows, pool)
        return state
