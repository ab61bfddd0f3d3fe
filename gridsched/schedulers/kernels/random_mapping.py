"""Compiled random mapping of paper 000 (algorithms B6). Times [s], energies [J]."""

from __future__ import annotations

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.schedulers.kernels.compiled import inner, kernel
from gridsched.schedulers.kernels.two_stage import IMPOSSIBLE, MAPPED, STAYS
from gridsched.schedulers.kernels.two_stage_options import TypeTables
from gridsched.schedulers.kernels.utility_value import cheapest_inside_j, inside_j

_INF = np.inf


@inner
def is_admissible(
    time: float,
    energy: float,
    cost: float,
    ready: float,
    task_budget: float,
    remaining_j: float,
    day_end: float,
    weights: Floats,
) -> bool:
    """Whether a task may start on a host that is ready then: (i), (ii) of B4, and the filter."""
    return (
        ready < day_end
        and time < _INF
        and cost <= task_budget
        and inside_j(ready, time, energy, day_end, weights) <= remaining_j
    )


@inner
def drawn_pair(
    etc: Floats,
    eec: Floats,
    cost: Floats,
    host_type: Integers,
    i: int,
    ready: Floats,
    uniform: float,
    task_budget: float,
    remaining_j: float,
    day_end: float,
    weights: Floats,
) -> tuple[int, int]:
    """Return a host and a P-state for a task of type `i`, -1 and -1 if there is no pair."""
    count = 0
    for host in range(len(ready)):
        j = host_type[host]
        for k in range(etc.shape[2]):
            count += is_admissible(
                etc[i, j, k], eec[i, j, k], cost[i, j, k], ready[host], task_budget, remaining_j, day_end, weights
            )
    wanted = min(int(uniform * count), count - 1)
    for host in range(len(ready)):
        j = host_type[host]
        for k in range(etc.shape[2]):
            if is_admissible(
                etc[i, j, k], eec[i, j, k], cost[i, j, k], ready[host], task_budget, remaining_j, day_end, weights
            ):
                if wanted == 0:
                    return host, k
                wanted -= 1
    return -1, -1


@inner
def unmapped_reason(
    etc: Floats,
    eec: Floats,
    host_type: Integers,
    i: int,
    ready: Floats,
    ready_time: Floats,
    remaining_j: float,
    day_end: float,
    weights: Floats,
) -> int:
    """Return `STAYS` or `IMPOSSIBLE` for a task of type `i` without an admissible pair (B4).

    Impossible is what would be too much even at the lowest price.
    """
    some_on = False
    for host in range(len(ready)):
        j = host_type[host]
        for k in range(etc.shape[2]):
            time, energy = etc[i, j, k], eec[i, j, k]
            if (
                ready[host] < day_end
                and time < _INF
                and (cheapest_inside_j(ready[host], time, energy, day_end, weights) <= remaining_j)
            ):
                return STAYS
            some_on |= time < _INF and ready_time[host] < _INF
    return IMPOSSIBLE if some_on else STAYS


@kernel
def map_randomly(
    tables: TypeTables,
    task_type: Integers,
    tasks: Integers,
    uniforms: Floats,
    ready_time: Floats,
    remaining_j: float,
    task_budget: float,
    day_end: float,
    weights: Floats,
) -> tuple[Integers, Integers, Integers, Integers]:
    """Map all tasks of an event in their order, each to one of its admissible pairs.

    The pair of task n is number ``floor(uniforms[n] * pairs)``, by machine id, then P-state.

    Parameters
    ----------
    tables : TypeTables
    task_type : ndarray of int64, shape (all tasks,)
    tasks : ndarray of int64, shape (m,)
        Mappable tasks, ascending.
    uniforms : ndarray, shape (m,)
        Uniform random numbers in [0, 1).
    ready_time : ndarray, shape (hosts,)
    remaining_j, task_budget, day_end : float
    weights : ndarray
        As in `map_two_stage`.

    Returns
    -------
    mapped, hosts, pstates, reasons : ndarray of int64
        As in `map_two_stage`.
    """
    etc, eec, cost, host_type = tables.etc, tables.eec, tables.cost, tables.host_type
    ready, m, count = ready_time.copy(), len(tasks), 0
    mapped, hosts, pstates = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
    reasons = np.full(m, MAPPED, np.int64)
    for n in range(m):
        i = task_type[tasks[n]]
        host, k = drawn_pair(
            etc, eec, cost, host_type, i, ready, uniforms[n], task_budget, remaining_j, day_end, weights
        )
        if host < 0:
            reasons[n] = unmapped_reason(etc, eec, host_type, i, ready, ready_time, remaining_j, day_end, weights)
            continue
        time, energy = etc[i, host_type[host], k], eec[i, host_type[host], k]
        remaining_j -= inside_j(ready[host], time, energy, day_end, weights)
        ready[host] += time
        mapped[count], hosts[count], pstates[count] = tasks[n], host, k
        count += 1
    return mapped[:count], hosts[:count], pstates[:count], reasons
