"""Permanent reservations of nodes: what will start when and where, whatever the policy asks later.

Arrays again: an event may look at a thousand reservations, so one look costs a few array
operations, whatever their width.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridsched.model.energy_weights import EnergyWeights
from gridsched.policy.state import ReservedNodes

Ids = NDArray[np.int64]

_FIRST_ROOM = 64


@dataclass(slots=True, eq=False)
class Reservation:
    """A parallel task with nodes and a time of its own.

    Attributes
    ----------
    task : int
    hosts : ndarray of int64
        Ascending.
    pstate : int
        The scheduler's.
    start, end : float
        From when to when, as estimated [s].
    watts : float
        Average power [W], where a budget is kept.
    """

    task: int
    hosts: Ids
    pstate: int
    start: float
    end: float
    watts: float = 0.0


class Reservations:
    """All reservations that have not started.

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
        self._heap: list[tuple[float, int, Reservation]] = []
        self._made = 0
        self._at: list[Reservation] = []
        self._place: dict[Reservation, int] = {}
        #: start, end and average power of each, its task and how many nodes it has
        self._columns = np.empty((5, _FIRST_ROOM))
        #: the latest end on each node; it is never too early
        self._last_end = np.zeros(self._n_hosts)
        self._view: ReservedNodes | None = None

    def __len__(self) -> int:
        return len(self._at)

    def add(self, made: Reservation) -> None:
        """Keep a reservation; nothing else may be reserved there then."""
        place = len(self._at)
        if place == self._columns.shape[1]:
            self._columns = np.hstack([self._columns, np.empty_like(self._columns)])
        width = len(made.hosts)
        self._columns[:, place] = made.start, made.end, made.watts, made.task, width
        self._at.append(made)
        self._place[made] = place
        self._last_end[made.hosts] = np.maximum(self._last_end[made.hosts], made.end)
        heapq.heappush(self._heap, (made.start, self._made, made))
        self._made += 1
        self.next_start = self._heap[0][0]
        self._view = None

    def take(self) -> Reservation:
        """Take the next one out; of those of one time the one that was made first."""
        taken = heapq.heappop(self._heap)[2]
        self.next_start = self._heap[0][0] if self._heap else math.inf
        place, last = self._place.pop(taken), self._at.pop()
        if last is not taken:
            self._at[place] = last
            self._place[last] = place
            self._columns[:, place] = self._columns[:, len(self._at)]
        self._view = None
        return taken

    def withdraw(self, host: int) -> list[Reservation]:
        """Take out all reservations of a node, and return them in order of start."""
        every = [entry[2] for entry in sorted(self._heap)]
        self.clear()
        withdrawn = []
        for each in every:
            if (each.hosts == host).any():
                withdrawn.append(each)
            else:
                self.add(each)
        return withdrawn

    def found(self, hosts: Ids, start: float, end: float) -> tuple[int, Reservation] | None:
        """Find a reservation of one of some nodes between two times [s]: that node and it."""
        if not self._at or self._last_end[hosts].max() <= start:
            return None
        starts, ends = self._columns[0, : len(self._at)], self._columns[1, : len(self._at)]
        meanwhile = np.flatnonzero((starts < end) & (ends > start)).tolist()
        if not meanwhile:
            return None
        wanted = np.zeros(self._n_hosts, dtype=np.bool_)
        wanted[hosts] = True
        if not wanted[np.concatenate([self._at[k].hosts for k in meanwhile])].any():
            return None
        first = min(
            (each for each in (self._at[k] for k in meanwhile) if wanted[each.hosts].any()),
            key=lambda each: (each.start, each.task),
        )
        return int(first.hosts[np.argmax(wanted[first.hosts])]), first

    @property
    def last_end(self) -> float:
        """When the last one ends, or one that has been taken ended, as estimated [s]."""
        return float(self._last_end.max(initial=0.0))

    def is_reserved(self, host: int) -> bool:
        """Whether a node is reserved at any time."""
        return any((each.hosts == host).any() for each in self._at)

    def committed_j(self, now: float, period_end: float, weights: EnergyWeights) -> float:
        """Return what they will count from `now` to the period's end [J]."""
        start, end, watts = self._columns[:3, : len(self._at)]
        begin = np.maximum(start, now)
        left = np.maximum(np.minimum(end, period_end) - begin, 0.0)
        return float((watts * left * weights.mean(begin, left)).sum())

    def view(self) -> ReservedNodes:
        """Return them as a policy sees them, in order of start, then of task."""
        if self._view is None:
            columns = self._columns[:, : len(self._at)]
            order = np.lexsort((columns[3], columns[0]))
            start, end, _, task, width = columns[:, order]
            hosts = [np.empty(0, dtype=np.int64), *[self._at[k].hosts for k in order.tolist()]]
            self._view = ReservedNodes(
                task.astype(np.int64), start, end,
                np.cumsum(np.append(0.0, width)).astype(np.int64), np.concatenate(hosts),
            )  # fmt: skip
        return self._view
