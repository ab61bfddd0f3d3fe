"""What is to start later, as arrays: plans, until the policy is asked again, and reservations.

An event may place a thousand tasks and look at as many reservations, and few of them start before
the next: one look costs a few array operations, whatever the width of a task. A host is in a
place as often as it gives parts of the task.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.engine.execution import Execution, mean_weights
from gridsched.model.signals import Signal
from gridsched.policy.state import ReservedNodes

_FIRST_ROOM = 64


class Reservations:
    """All reservations that have not started: executions on nodes, with a start of their own.

    Parameters
    ----------
    n_hosts : int

    Attributes
    ----------
    next_start : float
        When the next one is due [s]; infinite where there is none.
    """

    def __init__(self, n_hosts: int) -> None:
        self._n_hosts = n_hosts
        self.clear()

    def clear(self) -> None:
        """Forget all of them."""
        self.next_start = math.inf
        self._heap: list[tuple[float, int, Execution]] = []
        self._made = 0
        self._at: list[Execution] = []
        #: hosts of each, as often as they give parts: policies look at all of them in every event
        self._hosts: list[Integers] = []
        self._place: dict[Execution, int] = {}
        #: start, end and average power of each, its task, and how many hosts it has there
        self._columns = np.empty((5, _FIRST_ROOM))
        #: the latest end on each node; it is never too early
        self._last_end = np.zeros(self._n_hosts)
        self._view: ReservedNodes | None = None

    def __len__(self) -> int:
        return len(self._at)

    def add(self, made: Execution) -> None:
        """Keep a reservation; nothing else may be reserved there then."""
        place = len(self._at)
        if place == self._columns.shape[1]:
            self._columns = np.hstack([self._columns, np.empty_like(self._columns)])
        hosts = made.nodes if made.parts is None else np.repeat(made.nodes, made.parts)
        self._columns[:, place] = made.start, made.end, made.watts, made.task, len(hosts)
        self._at.append(made)
        self._hosts.append(hosts)
        self._place[made] = place
        self._last_end[made.nodes] = np.maximum(self._last_end[made.nodes], made.end)
        heapq.heappush(self._heap, (made.start, self._made, made))
        self._made += 1
        self.next_start = self._heap[0][0]
        self._view = None

    def take(self) -> Execution:
        """Take the next one out; of those of one time the one that was made first."""
        taken = heapq.heappop(self._heap)[2]
        self.next_start = self._heap[0][0] if self._heap else math.inf
        place, last, hosts = self._place.pop(taken), self._at.pop(), self._hosts.pop()
        if last is not taken:
            self._at[place], self._hosts[place] = last, hosts
            self._place[last] = place
            self._columns[:, place] = self._columns[:, len(self._at)]
        self._view = None
        return taken

    def withdraw(self, *, host: int | None = None, task: int | None = None) -> list[Execution]:
        """Take out all reservations of a node, or of a task, and return them in order of start."""
        every = [entry[2] for entry in sorted(self._heap)]
        withdrawn = [each for each in every if each.task == task or (host is not None and each.lies_on(host))]
        if withdrawn:
            self.clear()
            for each in every:
                if each not in withdrawn:
                    self.add(each)
        return withdrawn

    def between(self, start: float, end: float) -> list[Execution]:
        """Return the reservations that last for some time between two times [s], in no particular order."""
        return [self._at[k] for k in self._places_between(start, end)]

    def _places_between(self, start: float, end: float) -> list[int]:
        starts, ends = self._columns[0, : len(self._at)], self._columns[1, : len(self._at)]
        places: list[int] = np.flatnonzero((starts < end) & (ends > start)).tolist()
        return places

    def found(self, hosts: Integers, start: float, end: float) -> tuple[int, Execution] | None:
        """Find a reservation of one of some nodes between two times [s]: that node and it."""
        if not self._at or self._last_end[hosts].max() <= start:
            return None
        places = self._places_between(start, end)
        if not places:
            return None
        is_asked = np.zeros(self._n_hosts, dtype=np.bool_)
        is_asked[hosts] = True
        if not is_asked[np.concatenate([self._hosts[k] for k in places])].any():
            return None
        meanwhile = [self._at[k] for k in places]
        first = min(
            (each for each in meanwhile if is_asked[each.nodes].any()), key=lambda each: (each.start, each.task)
        )
        return int(first.nodes[np.argmax(is_asked[first.nodes])]), first

    @property
    def last_end(self) -> float:
        """When the last one ends, or one that has been taken ended, as estimated [s]."""
        return float(self._last_end.max(initial=0.0))

    def is_reserved(self, host: int) -> bool:
        """Whether a node is reserved at any time."""
        return any((each.nodes == host).any() for each in self._at)

    def committed_j(self, now: float, period_end: float, weights: Signal) -> float:
        """Return what they will count from `now` to the period's end [J]."""
        start, end, watts = self._columns[:3, : len(self._at)]
        begin = np.maximum(start, now)
        left = np.maximum(np.minimum(end, period_end) - begin, 0.0)
        return float((watts * left * mean_weights(weights, self._at, begin, left)).sum())

    def view(self) -> ReservedNodes:
        """Return them as a policy sees them, in order of start, then of task."""
        if self._view is None:
            columns = self._columns[:, : len(self._at)]
            order = np.lexsort((columns[3], columns[0]))
            start, end, _, task, width = columns[:, order]
            sets = [self._hosts[k] for k in order.tolist()]
            self._view = ReservedNodes(
                task.astype(np.int64),
                start,
                end,
                np.cumsum(np.append(0, width.astype(np.int64))),
                np.concatenate([np.empty(0, dtype=np.int64), *sets]),
            )
        return self._view


class PlaceHolders:
    """A plan of parallel tasks in order of their starts.

    An event places more than a thousand tasks, and few of them start before the next: the plan's
    arrays are kept as they come, and only the tasks that are due are looked at.

    Attributes
    ----------
    tasks : ndarray of int64
        Every task of the plan, whether it is still planned or not.
    next_start : float
        When the next one is due [s]; infinite where none is left.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget the plan."""
        self.tasks: Integers = np.empty(0, dtype=np.int64)
        self.next_start = math.inf
        self._order: list[int] = []
        self._at = 0

    def replace(
        self,
        tasks: Integers,
        hosts: Integers,
        pstates: Integers,
        offsets: Integers,
        starts: Floats,
        inside_j: Floats | None = None,
    ) -> None:
        """Make a new plan.

        Parameters
        ----------
        tasks : ndarray of int64, shape (tasks,)
        hosts : ndarray of int64
            Nodes of all tasks, one after the other.
        pstates : ndarray of int64, shape (tasks,)
        offsets : ndarray of int64, shape (tasks + 1,)
            Where the nodes of each begin.
        starts : ndarray of float64, shape (tasks,)
            When each would start [s]; those of one time in the plan's order.
        inside_j : ndarray of float64, shape (tasks,), optional
            What each would draw inside the period [J].
        """
        self.tasks = tasks
        self._hosts, self._pstates, self._offsets, self._starts = hosts, pstates, offsets, starts
        self._inside_j = inside_j
        self._order = np.argsort(starts, kind="stable").tolist()
        self._at = 0
        self._look_ahead()

    def __len__(self) -> int:
        """Return how many are left, those among them whose task has been taken elsewhere."""
        return len(self._order) - self._at

    def _look_ahead(self) -> None:
        left = self._at < len(self._order)
        self.next_start = self._starts.item(self._order[self._at]) if left else math.inf

    def take(self) -> tuple[int, Integers, int]:
        """Take the next one: its task, nodes and P-state."""
        k = self._order[self._at]
        self._at += 1
        self._look_ahead()
        begin, end = self._offsets.item(k), self._offsets.item(k + 1)
        return self.tasks.item(k), self._hosts[begin:end], self._pstates.item(k)

    def inside_j(self, is_planned: Booleans) -> float:
        """Return what the tasks that are still planned would draw inside the period [J].

        Parameters
        ----------
        is_planned : ndarray of bool, shape (tasks of the run,)
        """
        if self._at >= len(self._order) or self._inside_j is None:
            return 0.0
        left = np.array(self._order[self._at :], dtype=np.int64)
        return float((self._inside_j[left] * is_planned[self.tasks[left]]).sum())


class VirtualQueues:
    """One queue a host, replaced together.

    Attributes
    ----------
    tasks : ndarray of int64
        Every task of the plan, whether it is still planned or not.
    """

    def __init__(self, n_hosts: int) -> None:
        self._n_hosts = n_hosts
        self.clear()

    def clear(self) -> None:
        """Forget the plan."""
        self.tasks = np.empty(0, dtype=np.int64)
        self._pstates = self.tasks
        self._next = self._end = [0] * self._n_hosts

    def replace(self, tasks: Integers, hosts: Integers, pstates: Integers) -> None:
        """Make a new plan: task k goes to the end of the queue of ``hosts[k]``; hosts ascend."""
        starts = np.searchsorted(hosts, np.arange(self._n_hosts + 1)).tolist()
        self.tasks = tasks
        self._pstates = pstates
        self._next, self._end = starts[:-1], starts[1:]

    def put_back(self, host: int) -> None:
        """Put the entry that was taken last at the head of the host's queue again."""
        self._next[host] -= 1

    def has(self, host: int) -> bool:
        """Whether entries are left for the host; their tasks may have been taken elsewhere."""
        return self._next[host] < self._end[host]

    def hosts(self) -> list[int]:
        """Hosts with entries left, ascending."""
        return [h for h in range(self._n_hosts) if self._next[h] < self._end[h]]

    def pop(self, host: int) -> tuple[int, int]:
        """Take the (task, P-state) at the head of a queue that `has` one."""
        k = self._next[host]
        self._next[host] = k + 1
        return self.tasks.item(k), self._pstates.item(k)

    def left(self, host: int) -> Iterator[tuple[int, int]]:
        """Iterate over what is left for the host."""
        part = slice(self._next[host], self._end[host])
        return zip(self.tasks[part].tolist(), self._pstates[part].tolist(), strict=True)
