"""Compiled random mapping of paper 000 (algorithms B6). Times [s], energies [J]."""

from __future__ import annotations

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.schedulers.kernels.tables import TypeTables
from gridsched.systems.utility.kernels import called_once, inner, kernel
from gridsched.systems.utility.kernels.two_stage import IMPOSSIBLE, MAPPED, STAYS
from gridsched.systems.utility.kernels.utility_value import cheapest_inside_j, inside_j

_INF = np.inf


@inner
def list_pairs(
    tables: TypeTables,
    i: int,
    ready: Floats,
    remaining_j: float,
    task_budget: float,
    day_end: float,
    weights: Floats,
    pairs: Integers,
) -> int:
    """Write the admissible pairs of a task of type `i`, as ``host * P-states + P-state``; return their number."""
    count, n_pstates = 0, tables.etc.shape[2]
    for host in range(len(ready)):
        j = tables.host_type[host]
        for k in range(n_pstates):
            time, energy = tables.etc[i, j, k], tables.eec[i, j, k]
            if (
                ready[host] < day_end
                and time < _INF
                and tables.cost[i, j, k] <= task_budget
                and inside_j(ready[host], time, energy, day_end, weights) <= remaining_j
            ):
                pairs[count] = host * n_pstates + k
                count += 1
    return count


@inner
def unmapped_reason(
    tables: TypeTables, i: int, ready: Floats, ready_time: Floats, remaining_j: float, day_end: float, weights: Floats
) -> int:
    """Return `STAYS` or `IMPOSSIBLE` for a task of type `i` without an admissible pair (B4).

    Impossible is what would be too much even at the lowest price.
    """
    some_on = False
    for host in range(len(ready)):
        j = tables.host_type[host]
        for k in range(tables.etc.shape[2]):
            time, energy = tables.etc[i, j, k], tables.eec[i, j, k]
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
    ready, m, count, n_pstates = ready_time.copy(), len(tasks), 0, tables.etc.shape[2]
    mapped, hosts, pstates = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
    reasons, pairs = np.full(m, MAPPED, np.int64), np.empty(len(ready) * n_pstates, np.int64)
    for n in range(m):
        i = task_type[tasks[n]]
        n_pairs = list_pairs(tables, i, ready, remaining_j, task_budget, day_end, weights, pairs)
        if n_pairs == 0:
            reasons[n] = unmapped_reason(tables, i, ready, ready_time, remaining_j, day_end, weights)
            continue
        sampled = pairs[min(int(uniforms[n] * n_pairs), n_pairs - 1)]
        host, k = sampled // n_pstates, sampled % n_pstates
        j = tables.host_type[host]
        remaining_j -= inside_j(ready[host], tables.etc[i, j, k], tables.eec[i, j, k], day_end, weights)
        ready[host] += tables.etc[i, j, k]
        mapped[count], hosts[count], pstates[count] = tasks[n], host, k
        count += 1
    return mapped[:count], hosts[:count], pstates[:count], reasons


@called_once
def _call_once() -> None:
    """Call the kernels of utility workloads once."""
    from gridsched.model.utility import UtilityFunctions
    from gridsched.schedulers.kernels.tables import UPE, type_tables
    from gridsched.systems.utility.kernels import two_stage
    from gridsched.systems.utility.kernels.utility_value import falls_short, utility_tables, worth_postponing

    matrix, task_type = np.ones((1, 1, 1)), np.zeros(1, dtype=np.int64)
    tasks, ready, arrival = np.zeros(1, dtype=np.int64), np.zeros(1), np.zeros(1)
    tables = type_tables(matrix, matrix, np.zeros(1, dtype=np.int64), UPE)
    functions = utility_tables(UtilityFunctions.exponential([1.0], 0.1))
    about = tables, functions, task_type, arrival
    limits = 1.0, 1.0, 1.0, np.empty((3, 0))
    falls_short(*about, tasks, ready, 0.5)
    worth_postponing(*about, tasks, 1.0, 0.5)
    two_stage.map_two_stage(UPE, *about, tasks, ready, *limits)
    map_randomly(tables, task_type, tasks, np.zeros(1), ready, *limits)
