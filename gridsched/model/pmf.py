"""Probability mass functions of times, as values: what is known of an uncertain run time.

A pmf is defined on a regular grid, where it is convolved directly or by FFT, or on free impulses, as
measured samples give them. Every operation returns a new pmf (paper 002, section IV-B; algorithms
D1 and D3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gridsched.arrays import Floats
from gridsched.errors import InputError
from gridsched.extras import load
from gridsched.model.pmf_kernels import GridTable

#: Late masses closer than this to 0 or 1 are rounding (algorithms D4).
LEAST_MASS = 1e-12
#: Masses may sum up to 1 with this difference before they are scaled.
SUM_TOLERANCE = 1e-6
#: Grids whose lengths have a larger product than this are convolved by FFT.
FFT_FROM = 1 << 14
#: Tail of a distribution that a discretization leaves out (algorithms D1).
TAIL = 1e-6


@dataclass(frozen=True, eq=False)
class Pmf:
    """Probability masses at ascending times; make one by the functions of this module.

    Attributes
    ----------
    times : ndarray of float64, shape (impulses,)
        Where the impulses are [s], strictly ascending.
    masses : ndarray of float64, shape (impulses,)
        Their probabilities, at least 0, with sum 1.
    step : float or None
        Distance of the times on a regular grid [s]; None for free impulses.
    """

    times: Floats
    masses: Floats
    step: float | None = None

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self) -> str:
        kind = "free" if self.step is None else f"step {self.step:g} s"
        return f"Pmf({len(self)} impulses, {kind}, mean {self.mean:g} s)"

    # ------------------------------------------------------------------ numbers

    @cached_property
    def mean(self) -> float:
        """Expected time [s]."""
        return float(self.times @ self.masses)

    @cached_property
    def _until(self) -> Floats:
        """Mass of the first k impulses, for k = 0 to all of them."""
        return np.append(0.0, np.cumsum(self.masses))

    @cached_property
    def mass_after(self) -> Floats:
        """Mass behind the first k impulses, for k = 0 to all of them.

        It is summed from the end, so that small tails keep their digits.
        """
        return np.append(np.cumsum(self.masses[::-1])[::-1], 0.0)

    def late_probability(self, time: ArrayLike) -> Any:
        """Return the probability of ending after `time` [s], the direct sum of those impulses."""
        late = self.mass_after[np.searchsorted(self.times, time, side="right")]
        return np.where(late < LEAST_MASS, 0.0, np.where(late > 1.0 - LEAST_MASS, 1.0, late))[()]

    def late_probability_of_sum(self, other: Pmf, time: float) -> float:
        """Return the probability that this time and an independent `other` end after `time` [s].

        One sum over the other's impulses: nothing is convolved.
        """
        late = float(other.masses @ self.mass_after[np.searchsorted(self.times, time - other.times, side="right")])
        if late < LEAST_MASS:
            return 0.0
        return late if late <= 1.0 - LEAST_MASS else 1.0

    def quantile(self, probability: ArrayLike) -> Any:
        """Return the earliest time [s] until which at least `probability` of the mass has come.

        Raises
        ------
        InputError
            If a probability is outside [0, 1].
        """
        probabilities = np.asarray(probability, dtype=np.float64)
        if not ((probabilities >= 0) & (probabilities <= 1)).all():
            raise InputError(f"Probability {probability!r}: it must lie in [0, 1].")
        # the last impulse ends everything, whatever rounding the sum suffered
        k = np.searchsorted(self._until[1:], probabilities - LEAST_MASS, side="left")
        return self.times[np.minimum(k, len(self) - 1)]

    # ------------------------------------------------------------------ other pmfs

    def shifted(self, by: float) -> Pmf:
        """Return the pmf with every time later by `by` [s]."""
        return Pmf(self.times + by, self.masses, self.step)

    def not_before(self, time: float) -> Pmf:
        """Return the pmf knowing that nothing ended before `time` [s].

        Impulses before it are deleted and the rest is renormalized; where none is left, all mass
        is at `time` (paper 002, section IV-B).
        """
        first = int(np.searchsorted(self.times, time, side="left"))
        if first == 0:
            return self
        if first == len(self) or self.mass_after[first] <= 0:
            return Pmf(np.array([time]), np.ones(1), self.step)
        return Pmf(self.times[first:], self.masses[first:] / self.mass_after[first], self.step)

    def convolved(self, other: Pmf) -> Pmf:
        """Return the pmf of the sum of this time and an independent other one.

        Grids of one step stay a grid; short ones are convolved directly, long ones by FFT, which
        agree to 1e-12. Everything else becomes free impulses.
        """
        if self.step is None or not _same_step(self, other):
            return _convolved_free(self, other)
        if len(self) * len(other) <= FFT_FROM:
            masses = np.convolve(self.masses, other.masses)
        else:
            masses = convolved_by_fft(self.masses, other.masses)
        first = self.times[0] + other.times[0]
        return Pmf(first + self.step * np.arange(len(masses)), masses / masses.sum(), self.step)

    def coarsened(self, step: float) -> tuple[Pmf, float]:
        """Return the pmf on the multiples of `step` [s], and how far times may be off [s].

        Every impulse goes to the nearest multiple, so that with the error e <= step / 2 that is
        returned, the probability of ending until t is at least that of ending until t - e before,
        and at most that of ending until t + e.

        Raises
        ------
        InputError
            If the step is not greater than 0.
        """
        _check_step(step)
        at = np.floor(self.times / step + 0.5).astype(np.int64)
        masses: Floats = np.bincount(at - at[0], weights=self.masses).astype(np.float64)
        error = float(np.abs(at * step - self.times).max())
        return Pmf(_grid(int(at[0]), len(masses), step), masses, step), error


def point_mass(time: float, step: float | None = None) -> Pmf:
    """Return the pmf of a time [s] that is certain; `step` [s] makes it one on a grid."""
    return Pmf(np.array([float(time)]), np.ones(1), step)


def from_impulses(times: ArrayLike, masses: ArrayLike) -> Pmf:
    """Return a pmf of free impulses; equal times are merged.

    Parameters
    ----------
    times : array_like, shape (impulses,)
        Times [s], finite, in any order.
    masses : array_like, shape (impulses,)
        Probabilities, at least 0; their sum may differ from 1 by rounding only.

    Raises
    ------
    InputError
        If there is no impulse, a value is not allowed or the sum is not 1.
    """
    at = np.asarray(times, dtype=np.float64).reshape(-1)
    mass = np.asarray(masses, dtype=np.float64).reshape(-1)
    if not len(at) or len(at) != len(mass):
        raise InputError(f"A pmf has {len(at)} times and {len(mass)} masses; it needs as many.")
    if not np.isfinite(at).all():
        raise InputError("A pmf has a time that is not finite.")
    if not (mass >= 0).all() or abs(mass.sum() - 1.0) > SUM_TOLERANCE:
        raise InputError(
            f"The masses of a pmf must be at least 0 with sum 1; the least is {mass.min():g}, the sum {mass.sum():g}."
        )
    return _merged(at, mass)


def from_samples(samples: ArrayLike, step: float | None = None) -> Pmf:
    """Return the pmf in which every sample [s] has the same mass.

    Parameters
    ----------
    samples : array_like
        Times [s]: finite, at least one.
    step : float, optional
        Puts the samples on the nearest multiples of it [s].

    Raises
    ------
    InputError
        If there is no sample, or one is not finite.
    """
    at = np.asarray(samples, dtype=np.float64).reshape(-1)
    pmf = from_impulses(at, np.full(len(at), 1.0 / max(len(at), 1)))
    return pmf if step is None else pmf.coarsened(step)[0]


def from_edges(edges: Floats, step: float) -> Pmf:
    """Return a distribution on the multiples of `step`, given between them.

    Parameters
    ----------
    edges : ndarray of float64, shape (multiples + 1,)
        Cumulated probability at ``(k - 1/2) * step``, for k = 0, 1, ...; what is above the last is
        left out and the rest renormalized.
    step : float
        Distance of the grid [s].

    Raises
    ------
    InputError
        If hardly any mass lies on the grid.
    """
    masses = edges[1:] - edges[:-1]
    whole = float(masses.sum())
    if not whole > 0.5:
        raise InputError(
            f"A distribution puts {whole:.3g} of its mass on times from 0 to "
            f"{(len(masses) - 1) * step:g} s; it must be one of times that are at least 0."
        )
    present = np.flatnonzero(masses > 0)
    first, end = int(present[0]), int(present[-1]) + 1
    kept = masses[first:end] / masses[first:end].sum()
    return Pmf(_grid(first, end - first, step), kept, step)


def convolved_by_fft(first: Floats, second: Floats) -> Floats:
    """Return the masses of the sum of two times on one grid; faster where both are long."""
    signal = load("scipy.signal", "Sums of long distributions")
    # rounding leaves tiny negative masses
    return np.asarray(np.maximum(signal.fftconvolve(first, second), 0.0))


def _check_step(step: float) -> None:
    if not 0 < step < np.inf:
        raise InputError(f"The step of a pmf is {step:g}; it must be greater than 0 s and finite.")


def _grid(first: int, length: int, step: float) -> Floats:
    """Return `length` multiples of `step`, from the one numbered `first` on."""
    return step * np.arange(first, first + length, dtype=np.float64)


def _same_step(first: Pmf, second: Pmf) -> bool:
    """Whether two pmfs share a grid's step; a single impulse fits every grid."""
    return first.step == second.step or len(second) == 1


def _convolved_free(first: Pmf, second: Pmf) -> Pmf:
    times = (first.times[:, None] + second.times[None, :]).ravel()
    return _merged(times, np.outer(first.masses, second.masses).ravel())


def _merged(times: Floats, masses: Floats) -> Pmf:
    """Return free impulses in order of time, equal times merged, their sum exactly scaled."""
    at, where = np.unique(times, return_inverse=True)
    mass = np.bincount(where.reshape(-1), weights=masses)
    return Pmf(at, mass / mass.sum())


class PmfGrid:
    """Distributions by (task type, host type, P-state); those of a task type on its first need.

    Parameters
    ----------
    step : float
        Distance of the grid [s].
    mean_s : ndarray of float64, shape (task types, host types, P-states)
        Mean run times [s], infinite where there is no distribution.
    pmf : callable
        ``pmf(task_type, host_type, pstate)``: one that is defined on the grid.

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
