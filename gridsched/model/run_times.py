"""How long executions really take: what drivers know and policies do not.

A policy decides by estimates (`gridsched.model.estimates`). Without run times of their own both
drivers let the estimates come true.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy

import numpy as np
from numpy.typing import ArrayLike

from gridsched.arrays import Floats, Integers, Labels, distinct
from gridsched.errors import InputError, counted
from gridsched.model.estimates import Estimates, relative_speed
from gridsched.model.limits import LARGEST, SMALLEST
from gridsched.model.platform import Platform

#: Least share of a range of power: SimGrid knows no load of nothing.
LEAST_LOAD = 1e-6


class RunTimes(ABC):
    """True durations, hidden from policies. A repeated call returns the same answer.

    Attributes
    ----------
    load : ndarray of float64, shape (tasks,)
        Share of its nodes' range of power that each task draws; empty where that is the whole.
    """

    load: Floats = np.zeros(0)

    @abstractmethod
    def run_time(self, task: int, host: int, pstate: int) -> float:
        """Return how long the task takes on the host in the host's P-state [s], above 0."""

    def is_cut(self, task: int, host: int, pstate: int) -> bool:
        """Whether the task is killed after that time, before it would have finished."""
        return False

    def with_spare(self, n_spare: int) -> RunTimes:
        """Return the same run times with rows for so many tasks that `insert` adds.

        Raises
        ------
        InputError
            If tasks cannot be added.
        """
        raise InputError(f"Tasks cannot be added to a run whose run times are {type(self).__name__}.")

    def insert(self, task: int, run_time_s: float) -> None:
        """Add a task, whose place is this, and which takes so long [s] on the fastest host in P-state 0.

        Raises
        ------
        InputError
            If there are no spare rows.
        """
        self.with_spare(1)


class KilledAtEstimate(RunTimes):
    """Durations of which none is longer than estimated: what would be is killed then (`Rules.walltime`).

    Parameters
    ----------
    run_times : RunTimes
        How long executions would take.
    estimates : Estimates
        Of the same hosts.
    """

    def __init__(self, run_times: RunTimes, estimates: Estimates) -> None:
        self._whole, self._estimates = run_times, estimates
        self.load = run_times.load

    def _limit_s(self, task: int, host: int, pstate: int) -> float:
        return self._estimates.run_time(task, host, self._estimates.scheduler_pstate(task, pstate))

    def run_time(self, task: int, host: int, pstate: int) -> float:
        """Return how long the task has its host [s]."""
        return min(self._whole.run_time(task, host, pstate), self._limit_s(task, host, pstate))

    def is_cut(self, task: int, host: int, pstate: int) -> bool:
        """Whether the task would take longer than estimated."""
        return self._whole.run_time(task, host, pstate) > self._limit_s(task, host, pstate)


class SampledRunTimes(RunTimes):
    """Durations spread around the estimates; a task's luck is the same wherever it runs.

    Every duration comes from one uniform number of its task, through the quantile function of a
    distribution, so that all schedulers of a replicate meet the same luck.

    Parameters
    ----------
    estimates : Estimates
    shares : array_like, shape (tasks,)
        The task's number in (0, 1): the share of all its runs that take no longer than this one.
        Draw it from the random stream ``"runtime"`` of the replicate.
    quantile : callable
        ``quantile(share, estimate_s)``: the duration [s] that this share of runs does not exceed.

    Raises
    ------
    InputError
        If a share lies outside (0, 1).

    Examples
    --------
    Between half and one and a half times the estimate, all equally likely::

        SampledRunTimes(estimates, shares, lambda share, estimate_s: (0.5 + share) * estimate_s)
    """

    def __init__(self, estimates: Estimates, shares: ArrayLike, quantile: Callable[[float, float], float]) -> None:
        self._estimates = estimates
        self._quantile = quantile
        self._shares: list[float] = np.asarray(shares, dtype=np.float64).tolist()
        for task, share in enumerate(self._shares):
            if not 0.0 < share < 1.0:
                raise InputError(f"Run times: the share of task {task} is {share!r}; draw it from (0, 1).")

    def run_time(self, task: int, host: int, pstate: int) -> float:
        """Return the task's quantile on this host [s]."""
        estimates = self._estimates
        estimate_s = estimates.run_time(task, host, estimates.scheduler_pstate(task, pstate))
        return self._quantile(self._shares[task], estimate_s)


def _range_text(values: Floats) -> str:
    """Return a number, or the least and the greatest of several."""
    least, most = float(values.min()), float(values.max())
    return f"{least:g}" if least == most else f"({least:g}-{most:g})"


class LoggedRunTimes(RunTimes):
    """Durations from a log, longer on slower hosts and in slower P-states.

    Parameters
    ----------
    platform : Platform
    run_time_s : array_like, shape (tasks,)
        How long each task took [s], on the fastest host of `platform` in P-state 0.
    power_w : ndarray of float64, shape (tasks,), optional
        What each task drew on all its nodes together, on average [W]; nan where that is unknown.

    Raises
    ------
    InputError
        If a time is not finite and greater than 0.
    """

    def __init__(self, platform: Platform, run_time_s: ArrayLike, power_w: Floats | None = None) -> None:
        times = np.asarray(run_time_s, dtype=np.float64)
        legal = (times >= SMALLEST) & (times <= LARGEST)
        if not legal.all():
            task = int(np.argmin(legal))
            raise InputError(
                f"Run times: that of task {task} is {times[task]:g} s; it must be finite and greater than 0."
            )
        self._times: list[float] = times.tolist()
        self._speed: list[list[float]] = relative_speed(platform).tolist()
        self.power_w = power_w

    def with_spare(self, n_spare: int) -> LoggedRunTimes:
        """Return the same run times with rows for so many tasks that `insert` adds.

        Raises
        ------
        InputError
            If tasks draw what was measured.
        """
        if len(self.load):
            raise InputError("Tasks cannot be added to a run whose tasks draw what was measured.")
        wider = copy(self)
        wider._times = [*self._times, *[SMALLEST] * n_spare]
        return wider

    def insert(self, task: int, run_time_s: float) -> None:
        """Add a task, whose place is this, and which takes so long [s] on the fastest host in P-state 0."""
        self._times.insert(task, run_time_s)
        self._times.pop()

    @property
    def logged_s(self) -> Floats:
        """How long each task took [s], according to the log."""
        return np.array(self._times)

    def at_measured_power(
        self, platform: Platform, labels: Labels, nodes: Floats, pool: Integers, *, clamps: bool
    ) -> tuple[LoggedRunTimes, str]:
        """Return the same times with the loads at which hosts use the measured power, and a message.

        Parameters
        ----------
        platform : Platform
            Of the powers between which SimGrid knows loads: of each job those of the fastest host of its pool, in
            P-state 0.
        labels : ndarray of int64 or of str, shape (tasks,)
            Ids of the tasks, for messages.
        nodes : ndarray of float64, shape (tasks,)
            How many whole nodes each task fills: of nodes that are shared, the shares of their cores together.
        pool : ndarray of int64, shape (tasks,)
            Which of `Platform.pools` has its nodes.
        clamps : bool
            Whether tasks outside this range take its ends.

        Raises
        ------
        InputError
            If nothing was measured, hosts draw the same at any load, or a task lies outside.
        """
        if self.power_w is None:
            raise InputError("--power measured: the workload has no measured power or energy of any job.")
        watts = self.power_w / nodes
        members = [np.array(each.hosts) for each in platform.pools]
        fastest = np.array([hosts[np.argmax(platform.speed[hosts, 0])] for hosts in members])
        of_pools = [platform.hosts[h].pstates[0] for h in fastest.tolist()]
        for k in distinct(pool).tolist():
            if not of_pools[k].busy_w > of_pools[k].epsilon_w:
                raise InputError(
                    f"--power measured: node {platform.hosts[fastest.item(k)].name!r} of {platform.name} draws "
                    f"{of_pools[k].busy_w:g} W at any load; give a range by --power IDLE:EPSILON:BUSY."
                )
        least_w, most_w = (
            np.array([getattr(each, name) for each in of_pools])[pool] for name in ("epsilon_w", "busy_w")
        )
        load = (watts - least_w) / (most_w - least_w)
        unknown, outside = np.isnan(load), (load < LEAST_LOAD) | (load > 1.0)
        if outside.any() and not clamps:
            k = int(np.argmax(outside))
            raise InputError(
                f"--power measured: job {labels[k]} draws {watts[k]:g} W on a node, and nodes of {platform.name} "
                f"from {least_w[k]:g} to {most_w[k]:g} W under load; {outside.sum():,} of {len(load):,} jobs lie "
                "outside. "
                "Give another range by --power IDLE:EPSILON:BUSY, or take its ends by --power measured:clamped."
            )
        parts = [f"{counted(int((~unknown).sum()), 'job uses', 'jobs use')} the measured power"]
        if outside.any():
            low, high = _range_text(least_w[outside]), _range_text(most_w[outside])
            parts.append(f"{outside.sum():,} of them are cut to {low} to {high} W a node")
        if unknown.any():
            parts.append(f"{unknown.sum():,} without a measurement draw {_range_text(most_w[unknown])} W a node")
        times = copy(self)
        times.load = np.where(unknown, 1.0, np.clip(load, LEAST_LOAD, 1.0))
        return times, "; ".join(parts)

    def run_time(self, task: int, host: int, pstate: int) -> float:
        """Return the logged time over the host's relative speed [s]."""
        return self._times[task] / self._speed[host][pstate]
