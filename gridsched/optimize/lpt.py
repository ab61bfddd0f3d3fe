"""Longest processing time first on equal machines, by counts (paper 003, algorithm 2).

Tasks of a type take equally long, and LPT places all of them in one go. If a machine is ready at
``l``, its next tasks of duration d start at l, l + d, l + 2 d, ...; placing k tasks one by one,
each on the machine that is ready first, takes the k earliest of all machines' starts (ties: lowest
machine). With ``l = a d + f`` and ``0 <= f < d`` the start ``l + m d`` is ordered by the whole
number ``a + m`` first and by f second. So machines are filled up to a common level of a by
arithmetic, and the few tasks that are left, fewer than machines, go to the smallest f. The cost
depends on types and machines only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gridsched.errors import InputError
from gridsched.optimize.typed_bag import Floats, Integers


@dataclass(frozen=True, eq=False)
class MachineCounts:
    """What each machine of one type executes.

    Attributes
    ----------
    types : ndarray of int64, shape (k,)
        Task types that the machines execute, in the order of execution: longest first.
    counts : ndarray of int64, shape (k, machines)
        Tasks of each of these on each machine.
    loads_s : ndarray of float64, shape (machines,)
        When each machine finishes [s].
    ready_s : ndarray of float64, shape (machines,)
        When each machine began [s].
    """

    types: Integers
    counts: Integers
    loads_s: Floats
    ready_s: Floats


def longest_first(
    durations_s: ArrayLike, counts: ArrayLike, machines: int, ready_s: ArrayLike = 0.0
) -> MachineCounts:
    """Place tasks of some types on equal machines, longest first.

    Parameters
    ----------
    durations_s : array_like, shape (task types,)
        Of one task of each type [s]; not looked at for types without tasks.
    counts : array_like of int, shape (task types,)
        Tasks of each type.
    machines : int
    ready_s : array_like, shape (machines,) or ()
        When each machine is ready for its first task [s].

    Returns
    -------
    MachineCounts
        As if tasks were placed one by one, by falling duration (ties: lowest type), each on the
        machine that is ready first (ties: lowest machine). Exactly so while sums of durations
        are exact; otherwise two starts that differ by rounding alone may change places.

    Raises
    ------
    InputError
        If there are tasks and no machine.

    Examples
    --------
    >>> placed = longest_first([5, 4, 3], [1, 1, 3], machines=2)
    >>> placed.loads_s.tolist(), placed.counts.tolist()
    ([8.0, 10.0], [[1, 0], [0, 1], [1, 2]])
    """
    durations, numbers = np.asarray(durations_s, dtype=np.float64), np.asarray(counts)
    types = np.flatnonzero(numbers > 0)
    if len(types) and machines < 1:
        raise InputError(f"{numbers.sum()} tasks have no machine; give their type machines.")
    types = types[np.argsort(-durations[types], kind="stable")].astype(np.int64)
    begin = np.array(np.broadcast_to(ready_s, machines), dtype=np.float64)
    loads = begin.copy()
    placed = np.empty((len(types), machines), dtype=np.int64)
    for k, i in enumerate(types):
        placed[k] = next_tasks(loads, float(durations[i]), int(numbers[i]))
        loads += placed[k] * durations[i]
    return MachineCounts(types, placed, loads, begin)


def next_tasks(ready_s: Floats, duration_s: float, count: int) -> Integers:
    """Return how many of `count` equal tasks each machine gets, earliest start first.

    Parameters
    ----------
    ready_s : ndarray of float64, shape (machines,)
        When each machine is ready [s].
    duration_s : float
        Of one task [s], positive.
    count : int
    """
    levels, rest = np.divmod(ready_s, duration_s)
    # a machine more than `count` levels above the lowest gets nothing, however far above it is
    level = np.minimum(levels - levels.min(), count + 1).astype(np.int64)
    ascending = np.sort(level)
    below = np.cumsum(ascending)
    filled = np.arange(1, len(level) + 1)
    reached = int(np.count_nonzero(filled * ascending - below <= count))
    top, left = divmod(count + int(below[reached - 1]), reached)
    tasks: Integers = np.maximum(top - level, 0)
    if left:
        order = np.argsort(np.where(level <= top, rest, np.inf), kind="stable")
        tasks[order[:left]] += 1
    return tasks
