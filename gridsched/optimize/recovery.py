"""From tasks divided among machine types to whole tasks on machines (paper 003, III-C to III-E).

**Longest processing time first on equal machines, by counts** (algorithm 2). Tasks of a type take
equally long, and LPT places all of them in one go. If a machine is ready at ``l``, its next tasks
of duration d start at l, l + d, l + 2 d, ...; placing k tasks one by one, each on the machine that
is ready first, takes the k earliest of all machines' starts (ties: lowest machine). With
``l = a d + f`` and ``0 <= f < d`` the start ``l + m d`` is ordered by the whole number ``a + m``
first and by f second. So machines are filled up to a common level of a by arithmetic, and the few
tasks that are left, fewer than machines, go to the smallest f. The cost depends on types and
machines only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.model.tariff import Tariff
from gridsched.optimize.typed_bag import NEARLY_WHOLE, BagPlan, MachineCounts, TypedBag


def whole_tasks(bag: TypedBag, x: Floats | Integers) -> Integers:
    """Round divided tasks so that each type keeps its number of tasks (algorithm 1).

    Parameters
    ----------
    bag : TypedBag
    x : ndarray of float64, shape (task types, machine types)
        Not negative; each row adds up to the type's tasks.

    Returns
    -------
    ndarray of int64, shape (task types, machine types)
        Each row rounded down, and one more where the parts cut off are largest (ties: the lower
        machine type) until no task is missing.

    Raises
    ------
    InputError
        If a row does not add up to its type's tasks, as that of a plan that does not run.
    """
    down = np.floor(x + NEARLY_WHOLE)
    missing = bag.tasks - down.sum(axis=1).astype(np.int64)
    wrong = np.flatnonzero((missing < 0) | (missing > bag.usable.sum(axis=1)))
    if len(wrong):
        i = int(wrong[0])
        raise InputError(
            f"Task type {i} has {bag.tasks[i]} tasks, of which {x[i].sum():g} are placed; only a "
            f"plan that places all of them can be rounded."
        )
    cut_off = np.where(bag.usable, np.maximum(x - down, 0.0), -1.0)
    largest_first = np.argsort(-cut_off, axis=1, kind="stable")
    more = np.zeros_like(down)
    chosen = np.arange(x.shape[1]) < missing[:, None]
    np.put_along_axis(more, largest_first, chosen, axis=1)
    whole: Integers = (down + more).astype(np.int64)
    return whole


def recover(bag: TypedBag, x: Floats | Integers, ready_s: Sequence[Floats] | None = None) -> BagPlan:
    """Round divided tasks and place them on machines, longest first (algorithms 1 and 2).

    Parameters
    ----------
    bag : TypedBag
    x : ndarray of float64, shape (task types, machine types)
        Divided tasks, as `BagPlan.x`.
    ready_s : sequence of ndarray of float64, optional
        For each machine type, when each of its machines is ready for its first task [s]; by
        default all are at 0.

    Returns
    -------
    BagPlan
        A schedule of whole tasks that can be executed; makespan and energy are at least those of
        the relaxation's bounds.
    """
    tasks = whole_tasks(bag, x)
    machines = tuple(
        longest_first(bag.etc[:, j], tasks[:, j], int(count), 0.0 if ready_s is None else ready_s[j])
        for j, count in enumerate(bag.machines)
    )
    plan = BagPlan(bag, tasks, np.inf, np.inf, machines=machines)
    finish_s = plan.finish_s
    return replace(plan, makespan_s=finish_s, energy_j=bag.energy_j(tasks, finish_s))


def earnings(plan: BagPlan, tariff: Tariff, *, power_cap_w: float = np.inf, least_rate_per_s: float = 0.0) -> BagPlan:
    """Return a plan of whole tasks with what it earns under the constraints of program (10).

    Parameters
    ----------
    plan : BagPlan
        As `recover` gives it.
    tariff : Tariff
    power_cap_w : float
        Largest mean power drawn from the grid, PUE included [W].
    least_rate_per_s : float
        Promised bags per second.

    Raises
    ------
    InputError
        If the idle machines alone draw the capped power.

    Notes
    -----
    Rounding and LPT do not know the cap. A bag whose mean power exceeds it is followed by a pause
    of all machines that brings the mean down to it, so that the profit rate belongs to an allowed
    schedule. A bag that loses money apart from standing costs waits as long as the promised rate
    allows, as in the program.
    """
    bag, length = plan.bag, plan.finish_s
    busy_s, above_idle_j = bag.host_busy_s(plan.x), bag.above_idle_j(plan.x)
    consumed = tariff.pue * above_idle_j
    room_w = power_cap_w - tariff.pue * bag.all_idle_w
    if consumed > length * room_w:
        if room_w <= 0:
            raise InputError(
                f"The power cap is {power_cap_w:g} W, but the idle machines alone draw "
                f"{tariff.pue * bag.all_idle_w:g} W; raise the cap or leave machines out."
            )
        length = consumed / room_w
    if least_rate_per_s > 0 and tariff.profit(above_idle_j, busy_s, 0.0, bag.hosts) < 0:
        length = max(length, 1.0 / least_rate_per_s)
    repeated = replace(
        plan,
        makespan_s=length,
        energy_j=bag.energy_j(plan.x, length),
        power_cap_w=power_cap_w,
        least_rate_per_s=least_rate_per_s,
    )
    return repeated.under(tariff)


def longest_first(durations_s: ArrayLike, counts: ArrayLike, machines: int, ready_s: ArrayLike = 0.0) -> MachineCounts:
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
