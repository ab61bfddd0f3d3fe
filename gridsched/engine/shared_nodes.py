"""Nodes that several executions share: what each has left, and what runs where, as arrays."""

from __future__ import annotations

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.engine.execution import Execution
from gridsched.engine.node_sets import NodeSets
from gridsched.engine.plans import Reservations
from gridsched.model.shared_nodes import node_amounts
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.policy.state import SharedNodesState

_FIRST_ROOM = 1024


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
        self._pool = np.empty((2, _FIRST_ROOM), dtype=np.int64)
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
        room = max(_FIRST_ROOM, 2 * (used + more))
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
