"""Columns of tasks as far as these have arrived."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class ArrivedColumns:
    """Columns of tasks as far as these have arrived: copies, which show nothing of later tasks.

    Parameters
    ----------
    **columns : ndarray, shape (tasks, ...), or None
        Of all tasks of a run; None is left out. What has one row for all, as `np.broadcast_to` gives it,
        is not copied.

    Attributes
    ----------
    whole : dict of str to ndarray, shape (tasks, ...)
        Columns with a row for each task of the run, by name; 0 where a task has not arrived.
    """

    def __init__(self, **columns: NDArray[Any] | None) -> None:
        self.whole: dict[str, NDArray[Any]] = {}
        self._rows: list[tuple[NDArray[Any], NDArray[Any]]] = []
        for name, column in columns.items():
            if column is not None and not column.strides[0]:
                self.whole[name] = column
            elif column is not None:
                copied = np.zeros(column.shape, column.dtype)
                shown = copied.view()
                shown.setflags(write=column.flags.writeable)  # parts of it are then no more writable
                self.whole[name] = shown
                self._rows.append((column, copied))
        self._arrived = 0

    def arrive(self, count: int) -> None:
        """Fill the rows of the first `count` tasks, never fewer than before."""
        new: slice | int = slice(self._arrived, count)
        if count == self._arrived + 1:
            new = self._arrived  # one row alone needs no view
        for column, copied in self._rows:
            copied[new] = column[new]
        self._arrived = count

    def first(self, count: int) -> dict[str, NDArray[Any]]:
        """Return the columns of the first `count` tasks, never fewer than before, by name."""
        self.arrive(count)
        return {name: column[:count] for name, column in self.whole.items()}
