"""What a task could get: all pairs of a host and a P-state, with times, joules and chances."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gridsched.model.stochastic import StochasticEstimates
from gridsched.policy.state import State

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Candidates:
    """Pairs of a host and a P-state for one task; numbers are made when they are asked for.

    Parameters
    ----------
    state : State
    estimates : StochasticEstimates
    task : int
    eec_j : ndarray of float64, shape (hosts, P-states)
        Estimated energy of the task [J], infinite where it cannot run.
    """

    def __init__(
        self, state: State, estimates: StochasticEstimates, task: int, eec_j: Floats
    ) -> None:
        tasks = state.tasks
        if tasks.task_type is None:  # distributions are by task type
            raise TypeError(f"{tasks.name}: the tasks have no task types.")
        self._state = state
        self._task = task
        self.deadline_s = math.inf if tasks.deadline_s is None else float(tasks.deadline_s[task])
        self.eec_j = eec_j
        self.eet_s: Floats = estimates.etc_matrix[tasks.task_type[task], estimates.host_type]
        busy = 1 - state.free_cores
        #: tasks that run on each host or stand in its queue
        self.assigned = busy + state.queue_length
        #: pairs that are still allowed
        self.allowed: Flags = np.isfinite(self.eet_s) & state.is_on[:, None]

    @cached_property
    def ect_s(self) -> Floats:
        """Expected completion [s] of the allowed pairs, infinite for others."""
        ect = self._state.mean_ready_time()[:, None] + self.eet_s
        return np.where(self.allowed, ect, np.inf)

    @cached_property
    def late(self) -> Floats:
        """Chance to miss the deadline, of all pairs."""
        return self._state.late_masses(self._task)
