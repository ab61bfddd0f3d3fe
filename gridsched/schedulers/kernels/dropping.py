"""Compiled rules of dropping and postponing of paper 000 (algorithms B4). Times [s]."""

from __future__ import annotations

import numpy as np

from gridsched.schedulers.kernels.compiled import kernel
from gridsched.schedulers.kernels.utility_value import utility_values

_INF = np.inf


@kernel
def earliest_ready(host_start, hosts, ready_time):
    """Ready time of the earliest-ready host of each type [s]; infinite if all are off."""
    earliest = np.full(len(host_start) - 1, _INF)
    for j in range(len(earliest)):
        for n in range(host_start[j], host_start[j + 1]):
            earliest[j] = min(earliest[j], ready_time[hosts[n]])
    return earliest


@kernel
def falls_short(tables, functions, task_type, arrival_s, tasks, ready_time, threshold):
    """Whether no host lets a task earn `threshold` any more in P-state 0, shape (m,).

    False where all hosts that could run it are off: they may come back.
    """
    etc = tables.etc
    first_ready = earliest_ready(tables.host_start, tables.hosts, ready_time)
    ends = np.full(len(etc), -1.0)
    elapsed = np.empty(len(tasks))
    for n in range(len(tasks)):
        i = task_type[tasks[n]]
        if ends[i] < 0.0:
            ends[i] = _INF
            for j in range(etc.shape[1]):
                ends[i] = min(ends[i], first_ready[j] + etc[i, j, 0])
        elapsed[n] = ends[i] - arrival_s[tasks[n]]
    utility = utility_values(functions, tasks, elapsed)
    short = utility < threshold
    for n in range(len(tasks)):
        short[n] &= elapsed[n] < _INF
    return short


@kernel
def worth_postponing(tables, functions, task_type, arrival_s, tasks, day_end, threshold):
    """Whether a task could earn more than `threshold` if it began at `day_end`, shape (m,)."""
    n_pstates = tables.etc.shape[2]
    elapsed = np.empty(len(tasks))
    for n in range(len(tasks)):
        i = task_type[tasks[n]]
        shortest = _INF
        for option in tables.order[i, : tables.n_feasible[i]]:
            j, k = option // n_pstates, option % n_pstates
            shortest = min(shortest, tables.etc[i, j, k])
        elapsed[n] = day_end + shortest - arrival_s[tasks[n]]
    return utility_values(functions, tasks, elapsed) > threshold
