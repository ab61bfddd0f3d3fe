"""How long executions really take: what drivers know and policies do not.

A policy decides by estimates (`gridsched.model.estimates`). Without run times of their own both
drivers let the estimates come true.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from gridsched.errors import InputError
from gridsched.model.estimates import Estimates, relative_speed
from gridsched.model.limits import LARGEST, SMALLEST
from gridsched.model.platform import Platform


class RunTimes(ABC):
    """True durations, hidden from policies. Whoever asks twice gets the same answer."""

    @abstractmethod
    def run_time(self, task: int, host: int, pstate: int) -> float:
        """Return how long the task takes on the host in the host's P-state [s], above 0."""


class DrawnRunTimes(RunTimes):
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

        DrawnRunTimes(estimates, shares, lambda share, estimate_s: (0.5 + share) * estimate_s)
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
        known = self._estimates
        estimate_s = known.run_time(task, host, known.scheduler_pstate(task, pstate))
        return self._quantile(self._shares[task], estimate_s)


class LoggedRunTimes(RunTimes):
    """Durations that a log tells of, longer on slower hosts and in slower P-states.

    Parameters
    ----------
    platform : Platform
    run_time_s : array_like, shape (tasks,)
        How long each task took [s], on the fastest host of `platform` in P-state 0.

    Raises
    ------
    InputError
        If a time is not finite and greater than 0.
    """

    def __init__(self, platform: Platform, run_time_s: ArrayLike) -> None:
        times = np.asarray(run_time_s, dtype=np.float64)
        legal = (times >= SMALLEST) & (times <= LARGEST)
        if not legal.all():
            task = int(np.argmin(legal))
            raise InputError(
                f"Run times: that of task {task} is {times[task]:g} s; it must be finite and greater than 0."
            )
        self._times: list[float] = times.tolist()
        self._speed: list[list[float]] = relative_speed(platform).tolist()

    def run_time(self, task: int, host: int, pstate: int) -> float:
        """Return the logged time over the host's relative speed [s]."""
        return self._times[task] / self._speed[host][pstate]
