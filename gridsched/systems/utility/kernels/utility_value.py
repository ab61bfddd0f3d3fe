"""What tasks earn and count in compiled code: utility, dropping by it, and energy in a budget.

Utility is as `UtilityFunctions.value` has it; dropping and postponing are those of paper 000
(algorithms B4); energies count in the budget of the present period. Times [s], energies [J].
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.energy import energy_inside
from gridsched.model.signals import WEIGHT, counted_s
from gridsched.model.utility import LINEAR, UtilityFunctions
from gridsched.schedulers.kernels.tables import TypeTables
from gridsched.systems.utility.kernels import inner, kernel

#: More than a few roundings add.
_ROUNDED_UP = 1.0 + 1e-12
_INF = np.inf
#: A bound stays one, however it is rounded.
_CLEARLY_LESS = 1.0 - 1e-12
_uncounted_inside = inner(energy_inside)
_counted_s = inner(counted_s)


class UtilityTables(NamedTuple):
    """Utility functions of all tasks as plain arrays, as compiled loops like them.

    Attributes
    ----------
    priority, urgency : ndarray, shape (tasks,)
    utility_class : ndarray of int64, shape (tasks,)
    first : ndarray of int64, shape (classes + 1,)
        Rows of class c in `shapes`: ``first[c]`` to ``first[c + 1] - 1``.
    linear : ndarray of bool, shape (classes,)
        Whether a class is of the kind `LINEAR`.
    shapes : ndarray, shape (rows, 4)
        Start time [urgency units], start fraction, end fraction, urgency modifier.
    unit_s : float
        Urgency unit [s].
    """

    priority: Floats
    urgency: Floats
    utility_class: Integers
    first: Integers
    linear: Booleans
    shapes: Floats
    unit_s: float


def utility_tables(functions: UtilityFunctions) -> UtilityTables:
    """Return the tables of `functions`."""
    classes = functions.classes
    columns = (classes.start_time, classes.start_fraction, classes.end_fraction, classes.urgency_modifier)
    return UtilityTables(
        np.array(functions.priority, dtype=np.float64),
        np.array(functions.urgency, dtype=np.float64),
        np.array(functions.utility_class, dtype=np.int64),
        np.array(classes.first, dtype=np.int64),
        np.asarray(classes.kind) == LINEAR,
        np.array(np.column_stack(columns), dtype=np.float64, order="C"),
        float(functions.urgency_unit_s),
    )


@inner
def utility_value(
    shapes: Floats, row: int, last: int, linear: bool, priority: float, urgency: float, tau: float, enough: float = 0.0
) -> float:
    """Utility `tau` [urgency units] after the task's arrival (algorithms B1).

    The task's class has the rows `row` to `last` of `shapes`. A value that is less than `enough`
    may be replaced by a bound between the two.
    """
    if tau == np.inf:
        return 0.0
    while row < last and shapes[row + 1, 0] <= tau:  # a few intervals: no binary search
        row += 1
    since, start, floor = tau - shapes[row, 0], shapes[row, 1], shapes[row, 2]
    if linear:
        if row == last:
            return priority * start
        share = since / (shapes[row + 1, 0] - shapes[row, 0])
        return priority * max(start + (floor - start) * share, floor)
    exponent = -urgency * shapes[row, 3] * since
    # exp(-x) <= 1 / (1 + x + x^2/2 + x^3/6) costs less than the exponential
    growth = 1.0 - exponent * (1.0 - exponent * (0.5 - exponent / 6.0))
    if priority * start * _ROUNDED_UP < enough * growth and priority * floor < enough:
        return priority * max(start / growth * _ROUNDED_UP, floor)
    return priority * max(start * math.exp(exponent), floor)


@inner
def utility_of(functions: UtilityTables, task: int, elapsed_s: float, enough: float = 0.0) -> float:
    """Utility of a task so long after its arrival [s]; `enough` as in `utility_value`."""
    c = functions.utility_class[task]
    return utility_value(
        functions.shapes,
        functions.first[c],
        functions.first[c + 1] - 1,
        functions.linear[c],
        functions.priority[task],
        functions.urgency[task],
        elapsed_s / functions.unit_s,
        enough,
    )


@kernel
def utility_values(functions: UtilityTables, tasks: Integers, elapsed_s: Floats) -> Floats:
    """Utility of each of `tasks`, after its own time since arrival [s], shape (tasks,)."""
    values = np.empty(len(tasks))
    for n in range(len(tasks)):
        values[n] = utility_of(functions, tasks[n], elapsed_s[n])
    return values


@kernel
def earliest_ready(host_start: Integers, hosts: Integers, ready_time: Floats) -> Floats:
    """Ready time of the earliest-ready host of each type [s]; infinite if all are off."""
    earliest = np.full(len(host_start) - 1, _INF)
    for j in range(len(earliest)):
        for n in range(host_start[j], host_start[j + 1]):
            earliest[j] = min(earliest[j], ready_time[hosts[n]])
    return earliest


@kernel
def falls_short(
    tables: TypeTables,
    functions: UtilityTables,
    task_type: Integers,
    arrival_s: Floats,
    tasks: Integers,
    ready_time: Floats,
    threshold: float,
) -> Booleans:
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
def worth_postponing(
    tables: TypeTables,
    functions: UtilityTables,
    task_type: Integers,
    arrival_s: Floats,
    tasks: Integers,
    day_end: float,
    threshold: float,
) -> Booleans:
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


@inner
def inside_j(start: float, time: float, energy: float, day_end: float, weights: Floats) -> float:
    """Energy of a task before the day's end, as a budget counts it (algorithms B7).

    `weights` is a table of `gridsched.model.signals`; without columns a joule counts 1.
    """
    energy = _uncounted_inside(start, time, energy, day_end)
    if weights.shape[1] == 0 or not start < day_end:
        return energy
    until = min(start + time, day_end)
    if not until > start:
        return energy
    return energy * ((_counted_s(until, weights) - _counted_s(start, weights)) / (until - start))


@inner
def cheapest_inside_j(start: float, time: float, energy: float, day_end: float, weights: Floats) -> float:
    """What a task would count at the lowest price."""
    least = weights[WEIGHT, 0] if weights.shape[1] else 1.0
    for column in range(1, weights.shape[1]):
        least = min(least, weights[WEIGHT, column])
    return least * _uncounted_inside(start, time, energy, day_end)


@inner
def least_inside_j(first: float, last: float, time: float, energy: float, day_end: float, weights: Floats) -> float:
    """What a task counts at least that starts between two times, the second before the day's end.

    Whenever it starts, it runs from the last of them until it ends after the first.
    """
    least = cheapest_inside_j(last, time, energy, day_end, weights)
    until = min(first + time, day_end)
    if weights.shape[1] and until > last:
        counted = _counted_s(until, weights) - _counted_s(last, weights)
        least = max(least, energy / time * counted * _CLEARLY_LESS)
    return least


@inner
def most_weight(weights: Floats) -> float:
    """The most that a joule counts at any time."""
    most = weights[WEIGHT, 0] if weights.shape[1] else 1.0
    for column in range(1, weights.shape[1]):
        most = max(most, weights[WEIGHT, column])
    return most
