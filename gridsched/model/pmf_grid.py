"""Distributions that stand on one grid, as the plain arrays that compiled loops like."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gridsched.model.pmf import Pmf
from gridsched.model.pmf_kernels import Floats, GridTable


class PmfGrid:
    """Distributions by (task type, host type, P-state); those of a task type on its first need.

    Parameters
    ----------
    step : float
        Distance of the grid [s].
    mean_s : ndarray of float64, shape (task types, host types, P-states)
        Mean run times [s], infinite where there is no distribution.
    pmf : callable
        ``pmf(task_type, host_type, pstate)``: one that stands on the grid.

    Attributes
    ----------
    zero : int
        Offset of a distribution that is certain, at 0 s.
    mean_s : ndarray of float64, shape (task types, host types, P-states)
        Means of the distributions on the grid [s], infinite where none was needed so far.
    """

    zero = 0

    def __init__(self, step: float, mean_s: Floats, pmf: Callable[[int, int, int], Pmf]) -> None:
        self._pmf = pmf
        self._known = np.isfinite(mean_s)
        shape = mean_s.shape
        self._is_filled = [False] * shape[0]
        self._used = 2
        first, length, offset = (np.zeros(shape, dtype=np.int64) for _ in range(3))
        self._table = GridTable(step, first, length, offset, np.zeros(2), np.zeros(2))
        self._table.mass[0] = self._table.after[0] = 1.0
        self.mean_s = np.full(shape, np.inf)

    def table(self, task_type: int) -> GridTable:
        """Return the distributions; those of this task type are among them.

        What was returned before may lack them.
        """
        if not self._is_filled[task_type]:
            self._fill(task_type)
        return self._table

    @property
    def any_table(self) -> GridTable:
        """The distributions that were needed so far."""
        return self._table

    def masses(self, task_type: int, host_type: int, pstate: int) -> Floats:
        """Return the masses of one distribution."""
        table = self.table(task_type)
        place = task_type, host_type, pstate
        begin = int(table.offset[place])
        return table.mass[begin : begin + int(table.length[place])]

    def _fill(self, task_type: int) -> None:
        table = self._table
        places = np.argwhere(self._known[task_type]).tolist()
        pmfs = [self._pmf(task_type, *place) for place in places]
        self._make_room(sum(len(pmf) + 1 for pmf in pmfs))
        table = self._table
        for (host_type, pstate), pmf in zip(places, pmfs, strict=True):
            begin, place = self._used, (task_type, host_type, pstate)
            table.first[place] = round(pmf.times[0] / table.step)
            table.length[place] = len(pmf)
            table.offset[place] = begin
            table.mass[begin : begin + len(pmf)] = pmf.masses
            table.after[begin : begin + len(pmf) + 1] = pmf.mass_after
            self.mean_s[place] = pmf.mean
            self._used += len(pmf) + 1
        self._is_filled[task_type] = True

    def _make_room(self, count: int) -> None:
        """Let `count` further numbers fit; there is always room for twice of what is used."""
        table, needed = self._table, self._used + count
        if needed > len(table.mass):
            mass, after = np.zeros(2 * needed), np.zeros(2 * needed)
            mass[: self._used] = table.mass[: self._used]
            after[: self._used] = table.after[: self._used]
            self._table = table._replace(mass=mass, after=after)
