"""Parts of tasks: users and the like, what jobs wait for, input files, columns as far as tasks have arrived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.model.records import LARGEST

# ----------------------------------------------------------------------
# What a log tells of its jobs in names: users, partitions, qualities of service


@dataclass(frozen=True)
class Attribute:
    """What a log calls each job's user, partition or quality of service.

    Attributes
    ----------
    names : tuple of str
        In order of first appearance: those of later tasks come later.
    codes : ndarray of int64, shape (tasks,)
        Place of each task's name in `names`; -1 where the log does not tell.
    known : tuple of str
        All names of the log in alphabetical order, an empty one before them where the log does not
        tell of some job. A machine knows its accounts before their first job: so does a policy.
    """

    names: tuple[str, ...]
    codes: Integers
    known: tuple[str, ...]

    @classmethod
    def of_texts(cls, texts: Sequence[str]) -> Attribute:
        """Return the attribute of tasks in this order; an empty text tells nothing."""
        places: dict[str, int] = {"": -1}
        codes = [places.setdefault(text, len(places) - 1) for text in texts]
        return cls(tuple(places)[1:], np.array(codes, dtype=np.int64), tuple(sorted(set(texts))))

    @property
    def texts(self) -> list[str]:
        """Name of each task, empty where none is told."""
        return [self.names[code] if code >= 0 else "" for code in self.codes.tolist()]

    def taken(self, ids: Integers) -> Attribute:
        """Return the attribute of some of the tasks."""
        return Attribute(self.names, self.codes[ids], self.known)


# ----------------------------------------------------------------------
# Which jobs wait for which others, and for what of them


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


@dataclass(frozen=True)
class DataFiles:
    """Input files of the tasks (XSufferage's data, algorithms A4).

    Attributes
    ----------
    names : tuple of str
    size_bytes : ndarray of float64, shape (files,)
    locations : tuple of tuple of str
        For each file the names of the clusters, or of hosts in them, that hold it from the start.
    """

    names: tuple[str, ...]
    size_bytes: Floats
    locations: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.names)


class ArrivedColumns:
    """Columns of tasks as far as these have arrived: copies, which tell nothing of later tasks.

    Parameters
    ----------
    **columns : ndarray, shape (tasks, ...), or None
        Of all tasks of a run; None is left out.
    """

    def __init__(self, **columns: NDArray[Any] | None) -> None:
        self._rows: list[tuple[str, NDArray[Any], NDArray[Any], NDArray[Any]]] = []
        for name, column in columns.items():
            if column is not None:
                copied = np.zeros(column.shape, column.dtype)
                shown = copied.view()
                shown.setflags(write=column.flags.writeable)  # parts of it are then no more writable
                self._rows.append((name, column, copied, shown))
        self._arrived = 0

    def first(self, count: int) -> dict[str, NDArray[Any]]:
        """Return the columns of the first `count` tasks, never fewer than before, by name."""
        views, new = {}, slice(self._arrived, count)
        for name, column, copied, shown in self._rows:
            copied[new] = column[new]
            views[name] = shown[:count]
        self._arrived = count
        return views
