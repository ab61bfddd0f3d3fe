"""Run times that are known as distributions only (paper 002; algorithms D1 and D3)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.extras import load
from gridsched.model.pmf import TAIL, Pmf, from_edges
from gridsched.model.run_times import RunTimes
from gridsched.model.task_types import TaskTypes, TypedEstimates

if TYPE_CHECKING:
    from gridsched.model.pmf import PmfGrid


class Distributions(ABC):
    """Distributions of run times by (task type, host type, P-state)."""

    _grid: PmfGrid | None = None
    #: Distance of the grid that all of them have [s]; None if there is none.
    step_s: float | None = None

    @abstractmethod
    def pmf(self, task_type: int, host_type: int, pstate: int) -> Pmf:
        """Return the distribution of one run time [s]; a repeated call returns the same object."""

    def grid(self, mean_s: Floats) -> PmfGrid | None:
        """Return all of them for compiled loops; None where they have no common grid.

        Parameters
        ----------
        mean_s : ndarray of float64, shape (task types, host types, P-states)
            Mean run times [s]; finite where there is a distribution.
        """
        if self._grid is None and self.step_s is not None:
            from gridsched.model.pmf import PmfGrid  # loads the compiler

            self._grid = PmfGrid(self.step_s, mean_s, self.pmf)
        return self._grid


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
        special = load("scipy.special", "Gamma distributed run times")
        scale = mean_s * self.cov**2
        return float(scale * special.gammaincinv(1.0 / self.cov**2, share))

    def pmfs(self, means_s: Floats, step_s: float) -> list[Pmf]:
        """Return the distributions with these means on the multiples of `step_s` [s].

        As `gridsched.model.pmf.from_edges` makes them, but with one call of the gamma
        function for all.
        """
        special = load("scipy.special", "Gamma distributed run times")
        shape, scales = 1.0 / self.cov**2, means_s * self.cov**2
        last = np.ceil(scales * special.gammainccinv(shape, TAIL) / step_s).astype(np.int64)
        ends = np.cumsum(last + 2)
        k = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - (last + 2), last + 2)
        times = np.maximum((k - 0.5) * step_s, 0.0) / np.repeat(scales, last + 2)
        edges = np.split(special.gammainc(shape, times), ends[:-1])
        return [from_edges(each, step_s) for each in edges]


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
        self.step_s: float = step_s
        self._made: dict[tuple[int, int, int], Pmf] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be made again: another process gets megabytes less."""
        return {**self.__dict__, "_made": {}, "_grid": None}

    def pmf(self, task_type: int, host_type: int, pstate: int) -> Pmf:
        """Return the distribution of one run time [s]."""
        key = (task_type, host_type, pstate)
        if key not in self._made:
            of_type = self._mean_s[task_type]
            is_feasible = np.isfinite(of_type)
            made = self._law.pmfs(of_type[is_feasible], self.step_s)
            for (j, k), pmf in zip(np.argwhere(is_feasible).tolist(), made, strict=True):
                self._made[task_type, j, k] = pmf
        return self._made[key]


class ListedTimes(Distributions):
    """Distributions that are listed one by one, as measurements give them.

    Parameters
    ----------
    pmfs : mapping of (task type, host type, P-state) to Pmf
    """

    def __init__(self, pmfs: Mapping[tuple[int, int, int], Pmf]) -> None:
        self._pmfs = dict(pmfs)
        steps = {pmf.step for pmf in self._pmfs.values()}
        step = steps.pop() if len(steps) == 1 else None
        if step is not None and all(pmf.times[0] == step * round(pmf.times[0] / step) for pmf in self._pmfs.values()):
            self.step_s = step

    def pmf(self, task_type: int, host_type: int, pstate: int) -> Pmf:
        """Return the distribution of one run time [s].

        Raises
        ------
        InputError
            If none is listed.
        """
        pmf = self._pmfs.get((task_type, host_type, pstate))
        if pmf is None:
            raise InputError(
                f"Run times of task type {task_type} on host type {host_type} in P-state {pstate}: "
                "no distribution is listed; ask only for pairs whose mean is finite."
            )
        return pmf

    def coarsened(self, step_s: float) -> ListedTimes:
        """Return all distributions on the multiples of `step_s` [s].

        Raises
        ------
        InputError
            If the step is not greater than 0.
        """
        return ListedTimes({key: pmf.coarsened(step_s)[0] for key, pmf in self._pmfs.items()})

    @property
    def longest_s(self) -> Floats:
        """Longest run time of each distribution [s]."""
        return np.array([pmf.times[-1] for pmf in self._pmfs.values()])

    def means(self, shape: tuple[int, int, int]) -> Floats:
        """Return the mean run times [s], infinite where no distribution is listed."""
        means = np.full(shape, np.inf)
        for key, pmf in self._pmfs.items():
            means[key] = pmf.mean
        return means


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
        self,
        etc_matrix: ArrayLike,
        apc_matrix: ArrayLike,
        task_type: ArrayLike,
        host_type: ArrayLike,
        distributions: Distributions,
    ) -> None:
        super().__init__(etc_matrix, apc_matrix, task_type, host_type)
        self._distributions = distributions

    def pmf(self, task: int, host: int, pstate: int) -> Pmf:
        """Return the distribution of a run time [s] that is feasible."""
        return self._distributions.pmf(self._task_type_list[task], self._host_type_list[host], pstate)

    def grid(self) -> PmfGrid | None:
        """Return all distributions for compiled loops; None where they have no common grid."""
        return self._distributions.grid(self.etc_matrix)

    def late_probabilities(self, task: int, host: int, ready: Pmf, time: float) -> Floats:
        """Return the chance that a task ends after `time` [s], shape (P-states,).

        Parameters
        ----------
        task, host : int
        ready : Pmf
            When it could start [s], as `State.ready_pmf` returns it.
        time : float
            Its deadline, say [s]. An impulse at `time` itself is not late.

        Notes
        -----
        For each P-state one sum over the impulses of the run time: nothing is convolved. The
        chance of a P-state in which the task cannot run is 1.
        """
        key = (self._task_type_list[task], self._host_type_list[host])
        late = np.ones(self.etc_matrix.shape[2])
        for pstate in np.flatnonzero(np.isfinite(self.etc_matrix[key])).tolist():
            late[pstate] = ready.late_probability_of_sum(self._distributions.pmf(*key, pstate), time)
        return late


class QuantileRunTimes(RunTimes):
    """True run times drawn from listed distributions; a task has the same luck wherever it runs.

    Parameters
    ----------
    distributions : Distributions
    task_type : array_like, shape (tasks,)
    host_type : array_like, shape (hosts,)
    shares : array_like, shape (tasks,)
        The task's number in (0, 1): the share of all its runs that take no longer than this one.
    """

    def __init__(
        self, distributions: Distributions, task_type: ArrayLike, host_type: ArrayLike, shares: ArrayLike
    ) -> None:
        self._distributions = distributions
        self._task_type: list[int] = np.asarray(task_type).tolist()
        self._host_type: list[int] = np.asarray(host_type).tolist()
        self._shares: list[float] = np.asarray(shares, dtype=np.float64).tolist()

    def run_time(self, task: int, host: int, pstate: int) -> float:
        """Return the task's quantile on this host [s]."""
        pmf = self._distributions.pmf(self._task_type[task], self._host_type[host], pstate)
        return float(pmf.quantile(self._shares[task]))


@dataclass(frozen=True)
class StochasticTypes(TaskTypes):
    """Task types whose run times are distributions; ``etc`` holds their means.

    Attributes
    ----------
    distributions : Distributions
    """

    distributions: Distributions = field(kw_only=True)

    def _estimates(self, task_type: Integers) -> StochasticEstimates:
        return StochasticEstimates(self.etc, self.apc, task_type, self.host_type, self.distributions)
