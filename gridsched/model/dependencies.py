"""Which jobs wait for which others, and for what of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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
class Block:
    """Jobs that all wait for all of some others, as an array that waits for an array.

    Attributes
    ----------
    task, on : ndarray of int64
        Ids of the jobs that wait, and of those that they wait for, ascending; each of these is listed before them.
    kind : int
        `After`.
    delay_s : float
        As of a pair [s].

    Raises
    ------
    InputError
        If there are no such jobs, or they are not listed so.
    """

    task: Integers
    on: Integers
    kind: int
    delay_s: float

    def __post_init__(self) -> None:
        allowed = len(self.task) and len(self.on) and self.on[0] >= 0 and self.on[-1] < self.task[0]
        ascend = all(bool((np.diff(ids) > 0).all()) for ids in (self.task, self.on))
        if not (allowed and ascend and self.kind in list(After) and 0 <= self.delay_s <= LARGEST):
            raise InputError(
                f"Block: {len(self.task)} jobs wait for {len(self.on)} (kind {self.kind}, {self.delay_s:g} s); "
                "ids that ascend, those that wait behind all others, of the kinds "
                f"0 to {len(After) - 1} and after at least 0 s, are allowed."
            )


@dataclass(frozen=True)
class Dependencies:
    """Pairs of jobs, the first of which waits for the second; it waits for all its pairs.

    Attributes
    ----------
    task, on : ndarray of int64, shape (pairs,)
        Ids of the job that waits and of the other, which is listed before it.
    kind : ndarray of int64, shape (pairs,)
        `After`.
    delay_s : ndarray of float64, shape (pairs,)
        Time from what it waits for until it may start [s].
    size_bytes : ndarray of float64, shape (pairs,)
        Data that the other makes for it [byte]; they go from the other's host to its own. Default none.
    item : ndarray of int64, shape (pairs,)
        Which of the other's data these are: pairs with one other and one number share them, and they are
        sent once to a host. Default -1: data of the pair alone.
    blocks : tuple of Block
        Many pairs at once, which are not among the others: n jobs that wait for n others have n numbers each.

    Raises
    ------
    InputError
        If a job waits for itself or a later one, or a value is out of range.
    """

    task: Integers
    on: Integers
    kind: Integers
    delay_s: Floats
    size_bytes: Floats = field(default_factory=lambda: np.zeros(0))
    item: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    blocks: tuple[Block, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.size_bytes):
            object.__setattr__(self, "size_bytes", np.zeros(len(self.task)))
        if not len(self.item):
            object.__setattr__(self, "item", np.full(len(self.task), -1, dtype=np.int64))
        legal = (self.on >= 0) & (self.on < self.task) & np.isin(self.kind, list(After))
        legal &= (self.delay_s >= 0) & (self.delay_s <= LARGEST)
        legal &= (self.size_bytes >= 0) & (self.size_bytes <= LARGEST)
        if not legal.all():
            k = int(np.argmin(legal))
            raise InputError(
                f"Dependencies: job {self.task[k]} waits for job {self.on[k]} (kind {self.kind[k]}, "
                f"{self.delay_s[k]:g} s, {self.size_bytes[k]:g} bytes); only one submitted before it, of the "
                f"kinds 0 to {len(After) - 1}, after at least 0 s and of at least 0 bytes, is allowed."
            )

    def __len__(self) -> int:
        return len(self.task)

    @property
    def n_pairs(self) -> int:
        """How many pairs there are, with those of the blocks."""
        return len(self) + sum(len(each.task) * len(each.on) for each in self.blocks)

    def are_of(self, order: Integers) -> bool:
        """Whether these are dependencies of jobs in this order, which is that of their ids."""
        last = max([int(self.task.max(initial=-1)), *(int(each.task[-1]) for each in self.blocks)])
        return bool((order == np.arange(len(order))).all()) and last < len(order)

    def _of(self, rows: slice | Integers) -> Dependencies:
        return Dependencies(
            self.task[rows],
            self.on[rows],
            self.kind[rows],
            self.delay_s[rows],
            self.size_bytes[rows],
            self.item[rows],
            self.blocks,
        )

    def first(self, count: int) -> Dependencies:
        """Return those of the first `count` tasks, where the pairs have the order of the tasks that wait."""
        ends = ((each, int(np.searchsorted(each.task, count))) for each in self.blocks)
        blocks = tuple(replace(each, task=each.task[:end]) for each, end in ends if end)
        return replace(self._of(slice(np.searchsorted(self.task, count).item())), blocks=blocks)

    def by_task(self) -> Dependencies:
        """Return the same pairs in order of the jobs that wait."""
        return self._of(np.argsort(self.task, kind="stable"))
