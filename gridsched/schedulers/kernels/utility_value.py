"""Utility of one task in compiled code: the scalar twin of `UtilityFunctions.value`."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridsched.model.utility import UtilityFunctions
from gridsched.model.utility_classes import LINEAR
from gridsched.schedulers.kernels.compiled import inner, kernel

#: More than a few roundings add.
_ROUNDED_UP = 1.0 + 1e-12


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

    priority: NDArray[np.float64]
    urgency: NDArray[np.float64]
    utility_class: NDArray[np.int64]
    first: NDArray[np.int64]
    linear: NDArray[np.bool_]
    shapes: NDArray[np.float64]
    unit_s: float


def utility_tables(functions: UtilityFunctions) -> UtilityTables:
    """Return the tables of `functions`."""
    classes = functions.classes
    columns = (
        classes.start_time, classes.start_fraction, classes.end_fraction, classes.urgency_modifier,
    )  # fmt: skip
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
def utility_value(shapes, row, last, linear, priority, urgency, tau, enough=0.0):
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


@kernel
def utility_values(functions, tasks, elapsed_s):
    """Utility of each of `tasks`, after its own time since arrival [s], shape (tasks,)."""
    shapes, first, linear = functions.shapes, functions.first, functions.linear
    classes, unit_s = functions.utility_class, functions.unit_s
    priority, urgency = functions.priority, functions.urgency
    values = np.empty(len(tasks))
    for n in range(len(tasks)):
        task = tasks[n]
        c = classes[task]
        values[n] = utility_value(
            shapes, first[c], first[c + 1] - 1, linear[c], priority[task], urgency[task],
            elapsed_s[n] / unit_s,
        )  # fmt: skip
    return values
