"""Which jobs wait for which others, and for what of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.model.limits import LARGEST


class After(IntEnum):
    """What of another job a job waits for: its start, its end, its success, its failure."""

    START = 0
    END = 1
    SUCCESS = 2
    FAILURE = 3


@dataclass(frozen=True)
class Dependencies:
    """Pairs of jobs, the first of which waits for the second; it waits for all its pairs.

    Attributes
    ----------
    task, on : ndarray of int64, shape (pairs,)
        Ids of the job that waits and of the other, which stands before it.
    kind : ndarray of int64, shape (pairs,)
        `After`.
    delay_s : ndarray of float64, shape (pairs,)
        Time from what it waits for until it may start [s].

    Raises
    ------
    InputError
        If a job waits for itself or a later one, or a value is out of range.
    """

    task: Integers
    on: Integers
    kind: Integers
    delay_s: Floats

    def __post_init__(self) -> None:
        legal = (self.on >= 0) & (self.on < self.task) & np.isin(self.kind, list(After))
        legal &= (self.delay_s >= 0) & (self.delay_s <= LARGEST)
        if not legal.all():
            k = int(np.argmin(legal))
            raise InputError(
                f"Dependencies: job {self.task[k]} waits for job {self.on[k]} (kind {self.kind[k]}, "
                f"{self.delay_s[k]:g} s); only one submitted before it, of the kinds 0 to {len(After) - 1} and "
                "after at least 0 s, is legal."
            )

    def __len__(self) -> int:
        return len(self.task)

    def are_of(self, order: Integers) -> bool:
        """Whether these are dependencies of jobs in this order, which is that of their ids."""
        return bool((order == np.arange(len(order))).all()) and int(self.task.max(initial=-1)) < len(order)

    def first(self, count: int) -> Dependencies:
        """Return those of the first `count` tasks, where the pairs stand in order of the tasks that wait."""
        end = np.searchsorted(self.task, count).item()
        return Dependencies(self.task[:end], self.on[:end], self.kind[:end], self.delay_s[:end])

    def by_task(self) -> Dependencies:
        """Return the same pairs in order of the jobs that wait."""
        order = np.argsort(self.task, kind="stable")
        return Dependencies(self.task[order], self.on[order], self.kind[order], self.delay_s[order])
