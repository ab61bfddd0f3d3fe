"""Place-holders of parallel tasks: where and when each would start, until the policy is asked."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


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
        self.tasks: Ids = np.empty(0, dtype=np.int64)
        self.next_start = math.inf
        self._order: list[int] = []
        self._at = 0

    def replace(
        self, tasks: Ids, hosts: Ids, pstates: Ids, offsets: Ids, starts: NDArray[np.float64],
        inside_j: NDArray[np.float64] | None = None,
    ) -> None:  # fmt: skip
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

    def _look_ahead(self) -> None:
        left = self._at < len(self._order)
        self.next_start = self._starts.item(self._order[self._at]) if left else math.inf

    def take(self) -> tuple[int, Ids, int]:
        """Take the next one: its task, nodes and P-state."""
        k = self._order[self._at]
        self._at += 1
        self._look_ahead()
        begin, end = self._offsets.item(k), self._offsets.item(k + 1)
        return self.tasks.item(k), self._hosts[begin:end], self._pstates.item(k)

    def inside_j(self, is_planned: NDArray[np.bool_]) -> float:
        """Return what the tasks that are still planned would draw inside the period [J].

        Parameters
        ----------
        is_planned : ndarray of bool, shape (tasks of the run,)
        """
        if self._at >= len(self._order) or self._inside_j is None:
            return 0.0
        left = np.array(self._order[self._at :], dtype=np.int64)
        return float((self._inside_j[left] * is_planned[self.tasks[left]]).sum())
