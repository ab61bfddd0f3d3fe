"""What the mapping events of paper 000 choose from: the options of a task, and its best one.

Exactly the plain look at every option, with the same floating-point expressions, at less cost:
options of a task type are sorted by what divides the utility. Utility does not rise with the
completion time, so an option that neither completes earlier nor divides by less is passed over,
unless it could tie. Times [s], energies [J]. Ties: lower machine id, lower P-state.

Inner functions take plain arrays, not tuples of them, for speed. numba's cache of a kernel does
not notice a change of a function in another file: whoever changes this file must also touch the
kernels that import it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.schedulers.kernels.compiled import inner, kernel
from gridsched.schedulers.kernels.utility_value import inside_j, utility_value

#: Objectives: utility, utility per time, utility per energy, earliest completion.
UTIL, UPT, UPE, COMP = 0, 1, 2, 3

#: Columns of an option's numbers, and of its places.
ETC, DIVISOR, EEC = 0, 1, 2
HOST_TYPE, PSTATE = 0, 1

_INF = np.inf
#: Products and quotients that differ by less, relatively, may round to the same number.
_CLEARLY = 1.0 + 1e-12
_CLEARLY_LESS = 1.0 - 1e-12
#: Below it quotients lose digits, and different ones may be equal.
_TINY = 1e-290


class TypeTables(NamedTuple):
    """What does not change during a run.

    Attributes
    ----------
    etc, eec : ndarray, shape (task types, host types, P-states)
        Times [s] and energies [J]; infinite where a type cannot run.
    cost : ndarray, same shape
        What the energies count in the budget at the event [J]; in a budget in joules `eec`.
    order : ndarray of int64, shape (task types, host types * P-states)
        Options ``host type * P-states + P-state`` by ascending divisor, feasible ones first.
    n_feasible : ndarray of int64, shape (task types,)
    host_start, hosts : ndarray of int64
        Hosts of type j: ``hosts[host_start[j]:host_start[j + 1]]``, ascending.
    host_type : ndarray of int64, shape (hosts,)
    """

    etc: Floats
    eec: Floats
    cost: Floats
    order: Integers
    n_feasible: Integers
    host_start: Integers
    hosts: Integers
    host_type: Integers


def type_tables(
    etc: Floats, eec: Floats, host_type: Integers, objective: int, cost: Floats | None = None
) -> TypeTables:
    """Return the tables of the matrices `etc` [s] and `eec` [J] for one objective.

    `cost` is what the energies count [J]; default as many joules as they are.
    """
    etc = np.array(etc, dtype=np.float64, order="C")
    eec = np.array(eec, dtype=np.float64, order="C")
    cost = eec if cost is None else np.array(cost, dtype=np.float64, order="C")
    host_type = np.array(host_type, dtype=np.int64)
    host_start = np.searchsorted(np.sort(host_type), np.arange(etc.shape[1] + 1))
    present = np.diff(host_start) > 0
    feasible = (np.isfinite(etc) & present[None, :, None]).reshape(len(etc), -1)
    divisor = (cost if objective == UPE else etc).reshape(len(etc), -1)
    order = np.argsort(np.where(feasible, divisor, np.inf), axis=1, kind="stable")
    return TypeTables(
        etc,
        eec,
        cost,
        order.astype(np.int64),
        feasible.sum(axis=1).astype(np.int64),
        host_start.astype(np.int64),
        np.argsort(host_type, kind="stable").astype(np.int64),
        host_type,
    )


# ---------------------------------------------------------------------- options


@inner
def is_beaten(etc: Floats, cost: Floats, i: int, j: int, k: int, by_cost: bool, task_budget: float) -> bool:
    """Whether a lower P-state of the same host is at least as good in time and divisor."""
    for lower in range(k):
        passes = cost[i, j, lower] <= task_budget and (not by_cost or cost[i, j, lower] <= cost[i, j, k])
        if passes and etc[i, j, lower] <= etc[i, j, k]:
            return True
    return False


@kernel
def empty_options(tables: TypeTables, types: Integers) -> tuple[Integers, Floats, Integers]:
    """Return room for the options of each of `types`: counts, numbers and places."""
    rows, most = len(types), tables.order.shape[1]
    return np.zeros(rows, np.int64), np.empty((rows, most, 3)), np.empty((rows, most, 2), np.int64)


@kernel
def list_options(
    tables: TypeTables,
    types: Integers,
    objective: int,
    task_budget: float,
    every: bool,
    counts: Integers,
    numbers: Floats,
    places: Integers,
) -> float:
    """List the options of each of `types` that pass the filter, by ascending divisor.

    Without `every`, P-states that are beaten are left out; that is right only while nothing but
    the filter judges energies. Written are `counts` (types,), `numbers` (types, options, 3) with
    the columns `ETC`, `DIVISOR`, `EEC`, and `places` (types, options, 2) with the columns
    `HOST_TYPE`, `PSTATE`. Returns the largest EEC that passes [J].
    """
    etc, eec, cost = tables.etc, tables.eec, tables.cost
    order, n_feasible = tables.order, tables.n_feasible
    n_pstates, largest = etc.shape[2], 0.0
    for row in range(len(types)):
        i, count = types[row], 0
        for n in range(n_feasible[i]):
            j, k = order[i, n] // n_pstates, order[i, n] % n_pstates
            time, energy = etc[i, j, k], eec[i, j, k]
            if not cost[i, j, k] <= task_budget:
                continue
            largest = max(largest, energy)
            if not every and is_beaten(etc, cost, i, j, k, objective == UPE, task_budget):
                continue
            divisor = 1.0
            if objective == UPE:
                divisor = cost[i, j, k]
            elif objective == UPT:
                divisor = time
            numbers[row, count, ETC], numbers[row, count, EEC] = time, energy
            numbers[row, count, DIVISOR] = divisor
            places[row, count, HOST_TYPE], places[row, count, PSTATE] = j, k
            count += 1
        counts[row] = count
    return largest


@inner
def end_of(
    numbers: Floats,
    places: Integers,
    row: int,
    n: int,
    first_ready: Floats,
    strained: bool,
    remaining_j: float,
    day_end: float,
    weights: Floats,
) -> float:
    """Completion time of an option [s]; infinite if it is not admissible now."""
    ready = first_ready[places[row, n, HOST_TYPE]]
    time, energy = numbers[row, n, ETC], numbers[row, n, EEC]
    end = ready + time
    if strained and end < _INF and (inside_j(ready, time, energy, day_end, weights) > remaining_j):
        end = _INF
    return end


@inner
def precedes(places: Integers, row: int, n: int, other: int, first_host: Integers) -> bool:
    """Whether option `n` wins a tie against option `other` (-1: there is none)."""
    if other < 0:
        return True
    host = first_host[places[row, n, HOST_TYPE]]
    rival = first_host[places[row, other, HOST_TYPE]]
    if host != rival:
        return host < rival
    return places[row, n, PSTATE] < places[row, other, PSTATE]


@inner
def quotient(utility: float, divisor: float) -> float:
    """Utility over time or energy; a task that costs nothing is worth infinitely much."""
    if divisor > 0.0:
        return utility / divisor
    return _INF if utility > 0.0 else 0.0


@inner
def earliest_option(
    numbers: Floats,
    places: Integers,
    row: int,
    count: int,
    first_ready: Floats,
    first_host: Integers,
    strained: bool,
    remaining_j: float,
    day_end: float,
    weights: Floats,
) -> tuple[float, int, float]:
    """Earliest completion [s], its option, and the earliest of all others.

    inf, -1 and inf if there is none.
    """
    best, chosen, rival = _INF, -1, _INF
    for n in range(count):
        end = end_of(numbers, places, row, n, first_ready, strained, remaining_j, day_end, weights)
        if end < best:
            best, chosen, rival = end, n, best
        elif end < _INF:
            rival = min(rival, end)
            if end == best and precedes(places, row, n, chosen, first_host):
                chosen = n
    return best, chosen, rival


@inner
def value_of(
    objective: int,
    numbers: Floats,
    places: Integers,
    row: int,
    n: int,
    first_ready: Floats,
    strained: bool,
    remaining_j: float,
    day_end: float,
    weights: Floats,
    arrival: float,
    priority: float,
    urgency: float,
    shapes: Floats,
    first: int,
    last: int,
    linear: bool,
    unit_s: float,
) -> float:
    """Objective of one option; -inf if it is not admissible now."""
    end = end_of(numbers, places, row, n, first_ready, strained, remaining_j, day_end, weights)
    if objective == COMP:
        return -end
    divisor = numbers[row, n, DIVISOR]
    tau = (end - arrival) / unit_s
    utility = utility_value(shapes, first, last, linear, priority, urgency, tau)
    return quotient(utility, divisor) if end < _INF else -_INF


@inner
def best_quotient(
    numbers: Floats,
    places: Integers,
    row: int,
    count: int,
    first_ready: Floats,
    first_host: Integers,
    strained: bool,
    remaining_j: float,
    day_end: float,
    weights: Floats,
    arrival: float,
    priority: float,
    urgency: float,
    cap: float,
    shapes: Floats,
    first: int,
    last: int,
    linear: bool,
    unit_s: float,
    value: float,
    known: int,
) -> tuple[float, int, float]:
    """Largest utility over divisor, its option, and what no other option exceeds.

    -inf, -1 and -inf if there is none. `cap` is a utility that no option exceeds; `known` is an
    option that is worth `value` (-1 and -inf: none is known).
    """
    best, chosen, rival = value, known, -_INF
    earliest, its_divisor, its_utility = _INF, 0.0, 0.0
    cap *= _CLEARLY
    for n in range(count):
        divisor = numbers[row, n, DIVISOR]
        if cap < best * divisor:
            rival = max(rival, cap / divisor)
            break
        end = end_of(numbers, places, row, n, first_ready, strained, remaining_j, day_end, weights)
        if end == _INF:
            continue
        if end >= earliest and divisor > its_divisor * _CLEARLY:
            if n != known:
                rival = max(rival, its_utility / divisor)
            continue
        if n == known:
            utility = value * divisor * _CLEARLY
        else:
            tau = (end - arrival) / unit_s
            enough = best * divisor * _CLEARLY_LESS
            utility = utility_value(shapes, first, last, linear, priority, urgency, tau, enough)
            found = quotient(utility, divisor)
            if found > best or (found == best and precedes(places, row, n, chosen, first_host)):
                rival = max(rival, best)
                best, chosen = found, n
            else:
                rival = max(rival, found)
        if end < earliest:
            earliest, its_divisor, its_utility = end, divisor, utility
    return best, chosen, rival


@inner
def best_of_all(
    numbers: Floats,
    places: Integers,
    row: int,
    count: int,
    first_ready: Floats,
    first_host: Integers,
    strained: bool,
    remaining_j: float,
    day_end: float,
    weights: Floats,
    arrival: float,
    priority: float,
    urgency: float,
    shapes: Floats,
    first: int,
    last: int,
    linear: bool,
    unit_s: float,
) -> tuple[float, int]:
    """As `best_quotient`, by looking at every option."""
    best, chosen = -_INF, -1
    for n in range(count):
        value = value_of(
            UTIL,
            numbers,
            places,
            row,
            n,
            first_ready,
            strained,
            remaining_j,
            day_end,
            weights,
            arrival,
            priority,
            urgency,
            shapes,
            first,
            last,
            linear,
            unit_s,
        )
        if value > best:
            best, chosen = value, n
        elif value == best and value > -_INF and precedes(places, row, n, chosen, first_host):
            chosen = n
    return best, chosen


@inner
def best_utility(
    numbers: Floats,
    places: Integers,
    row: int,
    count: int,
    first_ready: Floats,
    first_host: Integers,
    strained: bool,
    remaining_j: float,
    day_end: float,
    weights: Floats,
    arrival: float,
    priority: float,
    urgency: float,
    shapes: Floats,
    first: int,
    last: int,
    linear: bool,
    unit_s: float,
) -> tuple[float, int, bool]:
    """Largest utility, its option, and whether another option might win a tie on a plateau."""
    end, chosen, _ = earliest_option(
        numbers, places, row, count, first_ready, first_host, strained, remaining_j, day_end, weights
    )
    tau = (end - arrival) / unit_s
    best = utility_value(shapes, first, last, linear, priority, urgency, tau)
    earliest = _INF  # of those who would win
    for n in range(count):
        wins = chosen >= 0 and precedes(places, row, n, chosen, first_host)
        other = end_of(numbers, places, row, n, first_ready, strained, remaining_j, day_end, weights)
        if wins:
            earliest = min(earliest, other)
    tau = (earliest - arrival) / unit_s
    rival = utility_value(shapes, first, last, linear, priority, urgency, tau, best)
    return (best if chosen >= 0 else -_INF), chosen, earliest < _INF and rival >= best


@inner
def best_option(
    objective: int,
    numbers: Floats,
    places: Integers,
    row: int,
    count: int,
    first_ready: Floats,
    first_host: Integers,
    strained: bool,
    remaining_j: float,
    day_end: float,
    weights: Floats,
    arrival: float,
    priority: float,
    urgency: float,
    cap: float,
    shapes: Floats,
    first: int,
    last: int,
    linear: bool,
    unit_s: float,
    value: float,
    known: int,
) -> tuple[float, int, float]:
    """Stage 1: best objective of a task, its option, and what no other option exceeds.

    -inf and -1 if it has none. The task type's options stand in `row`, the rows of the task's
    utility class are `first` to `last`. `cap` is a utility that no option exceeds; `known` is an
    option of the objective `value` (-1 and -inf: none is known). For `UTIL` what no other option
    exceeds is not told, but infinite.
    """
    best, chosen, rival, in_doubt = -_INF, -1, _INF, False
    if objective == COMP:
        best, chosen, rival = earliest_option(
            numbers, places, row, count, first_ready, first_host, strained, remaining_j, day_end, weights
        )
        best, rival = -best, -rival
    elif objective == UTIL:
        best, chosen, in_doubt = best_utility(
            numbers,
            places,
            row,
            count,
            first_ready,
            first_host,
            strained,
            remaining_j,
            day_end,
            weights,
            arrival,
            priority,
            urgency,
            shapes,
            first,
            last,
            linear,
            unit_s,
        )
    else:
        best, chosen, rival = best_quotient(
            numbers,
            places,
            row,
            count,
            first_ready,
            first_host,
            strained,
            remaining_j,
            day_end,
            weights,
            arrival,
            priority,
            urgency,
            cap,
            shapes,
            first,
            last,
            linear,
            unit_s,
            value,
            known,
        )
        in_doubt = chosen >= 0 and best < _TINY
    if in_doubt:
        best, chosen = best_of_all(
            numbers,
            places,
            row,
            count,
            first_ready,
            first_host,
            strained,
            remaining_j,
            day_end,
            weights,
            arrival,
            priority,
            urgency,
            shapes,
            first,
            last,
            linear,
            unit_s,
        )
    return best, chosen, rival
