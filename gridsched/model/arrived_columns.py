"""Columns of tasks as far as these have arrived."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class ArrivedColumns:
    """Columns of tasks as far as these have arrived: copies, which tell nothing of later tasks.

    Parameters
    ----------
    **columns : ndarray, shape (tasks, ...), or None
        Of all tasks of a run; None is left out. What has one row for all, as `np.broadcast_to` gives it,
        is not copied.
    """

    def __init__(self, **columns: NDArray[Any] | None) -> None:
        self._constant: list[tuple[str, NDArray[Any]]] = []
        self._rows: list[tuple[str, NDArray[Any], NDArray[Any], NDArray[Any]]] = []
        for name, column in columns.items():
            if column is not None and not column.strides[0]:
                self._constant.append((name, column))
            elif column is not None:
                copied = np.zeros(column.shape, column.dtype)
                shown = copied.view()
                shown.setflags(write=column.flags.writeable)  # parts of it are then no more writable
                self._rows.append((name, column, copied, shown))
        self._arrived = 0

    def first(self, count: int) -> dict[str, NDArray[Any]]:
        """Return the columns of the first `count` tasks, never fewer than before, by name."""
        views: dict[str, NDArray[Any]] = {}
        new: slice | int = slice(self._arrived, count)
        if count == self._arrived + 1:
            new = self._arrived  # one row alone needs no view
        for name, column, copied, shown in self._rows:
            copied[new] = column[new]
            views[name] = shown[:count]
        for name, column in self._constant:
            views[name] = column[:count]
        self._arrived = count
        return views
