"""What a task could get: all pairs of a host and a P-state, with times, joules and chances."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gridsched.model.pmf import Pmf
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
        self._estimates = estimates
        self._task = task
        self._ready: dict[int, Pmf] = {}
        self.deadline_s = math.inf if tasks.deadline_s is None else float(tasks.deadline_s[task])
        self.eec_j = eec_j
        self.eet_s: Floats = estimates.etc_matrix[tasks.task_type[task], estimates.host_type]
        busy = 1 - state.free_cores
        #: tasks that run on each host or stand in its queue
        self.assigned = busy + state.queue_length
        #: pairs that are still allowed
        self.allowed: Flags = np.isfinite(self.eet_s) & state.is_on[:, None]

    def ready(self, host: int) -> Pmf:
        """Return when the host could start the task [s]."""
        if host not in self._ready:
            self._ready[host] = self._state.ready_pmf(host)
        return self._ready[host]

    @cached_property
    def ect_s(self) -> Floats:
        """Expected completion [s] of the allowed pairs, infinite for others."""
        ect = np.full(self.eet_s.shape, np.inf)
        for host in np.flatnonzero(self.allowed.any(axis=1)).tolist():
            ect[host] = self.ready(host).mean + self.eet_s[host]
        ect[~self.allowed] = np.inf
        return ect

    @cached_property
    def late(self) -> Floats:
        """Chance to miss the deadline of the pairs that are allowed when it is first asked for.

        Equal hosts that run nothing are looked at once.
        """
        late = np.ones(self.eet_s.shape)
        if self.deadline_s == math.inf:
            late[self.allowed] = 0.0
            return late
        host_type = self._estimates.host_type
        empty: dict[tuple[int, float], Floats] = {}
        for host in np.flatnonzero(self.allowed.any(axis=1)).tolist():
            ready = self.ready(host)
            if len(ready) > 1:
                late[host] = self._late_on(host, ready)
                continue
            key = int(host_type[host]), float(ready.times[0])
            if key not in empty:
                empty[key] = self._late_on(host, ready)
            late[host] = empty[key]
        return late

    def _late_on(self, host: int, ready: Pmf) -> Floats:
        return self._estimates.late_masses(self._task, host, ready, self.deadline_s)
