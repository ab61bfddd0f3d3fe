"""Run times that are known as distributions only (paper 002; algorithms D1 and D3)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.errors import InputError
from gridsched.model.estimates import TypedEstimates
from gridsched.model.pmf import LEAST_MASS, Pmf, from_distribution
from gridsched.model.task_types import TaskTypes
from gridsched.model.tasks import Tasks

Floats = NDArray[np.float64]


class Distributions(ABC):
    """Distributions of run times by (task type, host type, P-state)."""

    @abstractmethod
    def pmf(self, task_type: int, host_type: int, pstate: int) -> Pmf:
        """Return the distribution of one run time [s]; whoever asks twice gets the same object."""


@dataclass(frozen=True)
class GammaLaw:
    """Gamma distributions of one coefficient of variation.

    Attributes
    ----------
    cov : float
        Standard deviation over mean, greater than 0.
    """

    cov: float

    def __post_init__(self) -> None:
        if not 0 < self.cov < np.inf:
            raise InputError(f"Gamma law: the cov is {self.cov:g}; it must be greater than 0.")

    def quantile(self, share: float, mean_s: float) -> float:
        """Return the time [s] that this share of runs does not exceed, if the mean is `mean_s`."""
        from scipy import special  # slow to load

        scale = mean_s * self.cov**2
        return float(scale * special.gammaincinv(1.0 / self.cov**2, share))

    def pmf(self, mean_s: float, step_s: float) -> Pmf:
        """Return the distribution with mean `mean_s` on the multiples of `step_s` [s]."""
        return from_distribution(_Gamma(1.0 / self.cov**2, mean_s * self.cov**2), step_s)


@dataclass(frozen=True)
class _Gamma:
    """What `from_distribution` asks of scipy's gamma, many times faster to make."""

    shape: float
    scale: float

    def cdf(self, times: Floats) -> Floats:
        from scipy import special  # slow to load

        return np.asarray(special.gammainc(self.shape, np.maximum(times, 0.0) / self.scale))

    def isf(self, tail: float) -> float:
        from scipy import special  # slow to load

        return float(self.scale * special.gammainccinv(self.shape, tail))


class GammaTimes(Distributions):
    """Gamma distributed run times around given means, on a grid.

    Parameters
    ----------
    mean_s : array_like, shape (task types, host types, P-states)
        Mean run times [s].
    law : GammaLaw
    step_s : float
        Distance of the grid [s].
    """

    def __init__(self, mean_s: ArrayLike, law: GammaLaw, step_s: float) -> None:
        self._mean_s = np.asarray(mean_s, dtype=np.float64)
        self._law = law
        self._step_s = step_s
        self._made: dict[tuple[int, int, int], Pmf] = {}

    def pmf(self, task_type: int, host_type: int, pstate: int) -> Pmf:
        """Return the distribution of one run time [s]."""
        key = (task_type, host_type, pstate)
        if key not in self._made:
            self._made[key] = self._law.pmf(float(self._mean_s[key]), self._step_s)
        return self._made[key]


class ListedTimes(Distributions):
    """Distributions that are listed one by one, as measurements give them.

    Parameters
    ----------
    pmfs : mapping of (task type, host type, P-state) to Pmf
    """

    def __init__(self, pmfs: Mapping[tuple[int, int, int], Pmf]) -> None:
        self._pmfs = dict(pmfs)

    def pmf(self, task_type: int, host_type: int, pstate: int) -> Pmf:
        """Return the distribution of one run time [s].

        Raises
        ------
        InputError
            If none is listed.
        """
        found = self._pmfs.get((task_type, host_type, pstate))
        if found is None:
            raise InputError(
                f"Run times of task type {task_type} on host type {host_type} in P-state {pstate}: "
                "no distribution is listed; ask only for pairs whose mean is finite."
            )
        return found

    def means(self, shape: tuple[int, int, int]) -> Floats:
        """Return the mean run times [s], infinite where no distribution is listed."""
        means = np.full(shape, np.inf)
        for key, pmf in self._pmfs.items():
            means[key] = pmf.mean
        return means


@dataclass(frozen=True)
class _Stack:
    """The P-states' distributions of a task type on a host type as one matrix on a shared grid."""

    first: int
    step: float
    masses: Floats
    #: mass from each impulse on, and 0 behind the last
    rest: Floats

    def late_masses(self, ready: Pmf, time: float) -> Floats:
        """Return the chance to end after `time` [s] in each P-state."""
        earliest = float(ready.times[0]) + self.first * self.step
        steps = math.floor((time - earliest) / self.step)
        if earliest + (steps + 1.0) * self.step <= time:  # what the division rounded away
            steps += 1
        # impulse s of the run time leaves `in_time - s` impulses of the start in time: those before
        # `begin` leave all of them, those from `end` on none
        in_time, length = steps + 1, self.masses.shape[1]
        begin = min(max(in_time - len(ready), 0), length)
        end = min(max(in_time, begin), length)
        after = ready.mass_after[in_time - end + 1 : in_time - begin + 1][::-1]
        return np.asarray(self.masses[:, begin:end] @ after + self.rest[:, end])


class StochasticEstimates(TypedEstimates):
    """Typed estimates whose truth is uncertain: ``etc`` is the mean, `pmf` the distribution.

    Parameters
    ----------
    etc_matrix, apc_matrix, task_type, host_type : array_like
        As in `TypedEstimates`; the ETC entries are mean run times [s].
    distributions : Distributions
        By task type, host type and P-state.
    """

    def __init__(
        self, etc_matrix: ArrayLike, apc_matrix: ArrayLike, task_type: ArrayLike,
        host_type: ArrayLike, distributions: Distributions,
    ) -> None:  # fmt: skip
        super().__init__(etc_matrix, apc_matrix, task_type, host_type)
        self._distributions = distributions
        self._stacks: dict[tuple[int, int], _Stack | None] = {}

    def of(self, tasks: Tasks) -> Self:
        """Return the other tasks' rows of the same matrices.

        Raises
        ------
        InputError
            If they have no task types.
        """
        if tasks.task_type is None:
            raise InputError(f"{tasks.name}: the tasks have no task types; ETC needs them.")
        return type(self)(
            self.etc_matrix, self.apc_matrix, tasks.task_type, self.host_type, self._distributions
        )

    def pmf(self, task: int, host: int, pstate: int) -> Pmf:
        """Return the distribution of a run time [s] that is feasible."""
        return self._distributions.pmf(
            self._task_type_list[task], self._host_type_list[host], pstate
        )

    def late_masses(self, task: int, host: int, ready: Pmf, time: float) -> Floats:
        """Return the chance that a task ends after `time` [s], shape (P-states,).

        Parameters
        ----------
        task, host : int
        ready : Pmf
            When it could start [s], as `State.ready_pmf` tells.
        time : float
            Its deadline, say [s]. An impulse at `time` itself is not late.

        Notes
        -----
        For each P-state one sum over the impulses of the run time: nothing is convolved. Chances
        below 1e-12 are 0; that of a P-state in which the task cannot run is 1.
        """
        key = (self._task_type_list[task], self._host_type_list[host])
        if key not in self._stacks:
            self._stacks[key] = self._stack(*key)
        stack = self._stacks[key]
        if stack is not None and (ready.step == stack.step or len(ready) == 1):
            late = stack.late_masses(ready, time)
            return np.where(late < LEAST_MASS, 0.0, late)
        late = np.ones(self.etc_matrix.shape[2])
        for pstate in np.flatnonzero(np.isfinite(self.etc_matrix[key])).tolist():
            late[pstate] = ready.sum_late_mass(self._distributions.pmf(*key, pstate), time)
        return late

    def _stack(self, task_type: int, host_type: int) -> _Stack | None:
        """Return the distributions of all P-states on their grid; None if they share none."""
        if not np.isfinite(self.etc_matrix[task_type, host_type]).all():
            return None
        levels = range(self.etc_matrix.shape[2])
        pmfs = [self._distributions.pmf(task_type, host_type, k) for k in levels]
        step = pmfs[0].step
        if step is None or any(pmf.step != step for pmf in pmfs):
            return None
        begins = [round(pmf.times[0] / step) for pmf in pmfs]
        if any(at * step != pmf.times[0] for at, pmf in zip(begins, pmfs, strict=True)):
            return None
        first = min(begins)
        length = max(at + len(pmf) for at, pmf in zip(begins, pmfs, strict=True)) - first
        masses = np.zeros((len(pmfs), length))
        for row, at, pmf in zip(masses, begins, pmfs, strict=True):
            row[at - first : at - first + len(pmf)] = pmf.masses
        rest = np.zeros((len(pmfs), length + 1))
        rest[:, :-1] = np.cumsum(masses[:, ::-1], axis=1)[:, ::-1]
        return _Stack(first, step, masses, rest)


@dataclass(frozen=True)
class StochasticTypes(TaskTypes):
    """Task types whose run times are distributions; ``etc`` holds their means.

    Attributes
    ----------
    distributions : Distributions
    """

    distributions: Distributions = field(kw_only=True)

    def _estimates(self, task_type: NDArray[np.int64]) -> StochasticEstimates:
        return StochasticEstimates(
            self.etc, self.apc, task_type, self.host_type, self.distributions
        )
