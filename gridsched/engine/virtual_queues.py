"""The plan: which tasks the policy means for which host next, until it plans again.

A plan of hundreds of tasks is replaced every simulated minute, and only a few of them start, so
it is kept as flat arrays that are made at one go.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


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

    def replace(
        self, tasks: NDArray[np.int64], hosts: NDArray[np.int64], pstates: NDArray[np.int64]
    ) -> None:
        """Make a new plan: task k goes to the end of the queue of ``hosts[k]``; hosts ascend."""
        starts = np.searchsorted(hosts, np.arange(self._n_hosts + 1)).tolist()
        self.tasks = tasks
        self._pstates = pstates
        self._next, self._end = starts[:-1], starts[1:]

    def has(self, host: int) -> bool:
        """Whether entries are left for the host; their tasks may have gone another way."""
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
