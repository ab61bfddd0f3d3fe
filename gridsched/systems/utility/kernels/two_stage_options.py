"""What the mapping events of paper 000 choose from: the options of a task, and its best one.

Exactly the plain look at every option, with the same floating-point expressions, at less cost:
options of a task type are sorted by what divides the utility. Utility does not rise with the
completion time, so an option that neither completes earlier nor divides by less is passed over,
unless it could tie. An option is on the earliest-ready host of a type; each type has a heap of
them. Times [s], energies [J]. Ties: lower machine id, lower P-state.

numba's cache of a kernel does not notice a change of a function in another file: a change of
this file must come with a touch of the kernels that import it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.schedulers.kernels.tables import COMP, UPE, UPT, UTIL, TypeTables
from gridsched.systems.utility.kernels import inner
from gridsched.systems.utility.kernels.utility_value import UtilityTables, inside_j, utility_of

#: Columns of an option's numbers, and of its places.
ETC, DIVISOR, EEC = 0, 1, 2
HOST_TYPE, PSTATE = 0, 1

_INF = np.inf
#: Products and quotients that differ by less, relatively, may round to the same number.
_CLEARLY = 1.0 + 1e-12
_CLEARLY_LESS = 1.0 - 1e-12
#: Below it quotients lose digits, and different ones may be equal.
_TINY = 1e-290


class Event(NamedTuple):
    """A mapping event; the arrays of its hosts, options and energy change as tasks are mapped.

    Attributes
    ----------
    objective : {UTIL, UPT, UPE, COMP}
    tables : TypeTables
        Made for the same objective.
    functions : UtilityTables
    tasks : ndarray of int64, shape (m,)
        Mappable tasks, ascending.
    arrivals : ndarray, shape (m,)
        When they arrived [s].
    types : ndarray of int64, shape (rows,)
        Task types that are present.
    rows : ndarray of int64, shape (m,)
        Each task's place among them.
    counts, numbers, places : ndarray, shape (rows,), (rows, options, 3), (rows, options, 2)
        Options of each type by ascending divisor: `ETC`, `DIVISOR`, `EEC`; `HOST_TYPE`, `PSTATE`.
    ready : ndarray, shape (hosts,)
        Ready times [s].
    heap, size : ndarray of int64, shape (hosts,), (host types,)
        Hosts that can start something: type j's heap begins at ``tables.host_start[j]``.
    first_ready, first_host : ndarray, shape (host types,)
        The earliest-ready host of each type (infinite and -1 if none).
    remaining_j : ndarray, shape (1,)
        Energy that remains today, as the budget counts it [J].
    is_strained : ndarray of bool, shape (1,)
        Whether some option may take more than remains.
    task_budget : float
        The largest cost that passes the filter [J].
    day_end : float
        No option may start at or after it [s].
    weights : ndarray
        What a joule counts, a table of `gridsched.model.signals`.
    """

    objective: int
    tables: TypeTables
    functions: UtilityTables
    tasks: Integers
    arrivals: Floats
    types: Integers
    rows: Integers
    counts: Integers
    numbers: Floats
    places: Integers
    ready: Floats
    heap: Integers
    size: Integers
    first_ready: Floats
    first_host: Integers
    remaining_j: Floats
    is_strained: Booleans
    task_budget: float
    day_end: float
    weights: Floats


@inner
def sift_host(heap: Integers, ready: Floats, base: int, size: int, k: int) -> None:
    """Let position `k` of a type's heap sink: earlier ready times are above, then lower ids."""
    host = heap[base + k]
    time = ready[host]
    while True:
        child = 2 * k + 1
        if child >= size:
            break
        lower = heap[base + child]
        if child + 1 < size:
            other = heap[base + child + 1]
            if ready[other] < ready[lower] or (ready[other] == ready[lower] and other < lower):
                child, lower = child + 1, other
        if time < ready[lower] or (time == ready[lower] and host < lower):
            break
        heap[base + k] = lower
        k = child
    heap[base + k] = host


@inner
def gather_hosts(event: Event) -> None:
    """Make one heap for each type of the hosts that can start something before the day's end."""
    host_start, hosts = event.tables.host_start, event.tables.hosts
    for j in range(len(event.size)):
        base, count = host_start[j], 0
        for n in range(base, host_start[j + 1]):
            if event.ready[hosts[n]] < event.day_end:
                event.heap[base + count] = hosts[n]
                count += 1
        for k in range(count // 2 - 1, -1, -1):
            sift_host(event.heap, event.ready, base, count, k)
        event.size[j] = count
        show_first(event, j)


@inner
def show_first(event: Event, j: int) -> None:
    """Note the earliest-ready host of type `j`."""
    event.first_host[j], event.first_ready[j] = -1, _INF
    if event.size[j]:
        host = event.heap[event.tables.host_start[j]]
        event.first_host[j], event.first_ready[j] = host, event.ready[host]


@inner
def occupy_first(event: Event, j: int, run_time: float) -> None:
    """Append a task of `run_time` [s] to the earliest-ready host of type `j`."""
    heap, size, base = event.heap, event.size, event.tables.host_start[j]
    event.ready[heap[base]] += run_time
    if event.ready[heap[base]] >= event.day_end:
        size[j] -= 1
        heap[base] = heap[base + size[j]]
    if size[j]:
        sift_host(heap, event.ready, base, size[j], 0)
    show_first(event, j)


@inner
def is_beaten(etc: Floats, cost: Floats, i: int, j: int, k: int, by_cost: bool, task_budget: float) -> bool:
    """Whether a lower P-state of the same host is at least as good in time and divisor."""
    for lower in range(k):
        passes = cost[i, j, lower] <= task_budget and (not by_cost or cost[i, j, lower] <= cost[i, j, k])
        if passes and etc[i, j, lower] <= etc[i, j, k]:
            return True
    return False


@inner
def list_options(event: Event, every: bool) -> float:
    """List the options of each type present that pass the filter, by ascending divisor.

    Without `every`, P-states that are beaten are left out; that is right only while nothing but
    the filter judges energies. Returns the largest EEC that passes [J].
    """
    tables, objective, task_budget = event.tables, event.objective, event.task_budget
    etc, eec, cost = tables.etc, tables.eec, tables.cost
    numbers, places = event.numbers, event.places
    n_pstates, largest = etc.shape[2], 0.0
    for row in range(len(event.types)):
        i, count = event.types[row], 0
        for n in range(tables.n_feasible[i]):
            j, k = tables.order[i, n] // n_pstates, tables.order[i, n] % n_pstates
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
        event.counts[row] = count
    return largest


@inner
def end_of(event: Event, row: int, n: int) -> float:
    """Completion time of option `n` of a type [s]; infinite if it is not admissible now."""
    ready = event.first_ready[event.places[row, n, HOST_TYPE]]
    time, energy = event.numbers[row, n, ETC], event.numbers[row, n, EEC]
    end = ready + time
    if not event.is_strained[0] or end == _INF:
        return end
    return _INF if inside_j(ready, time, energy, event.day_end, event.weights) > event.remaining_j[0] else end


@inner
def utility_at(event: Event, n: int, end: float, enough: float = 0.0) -> float:
    """Utility of the event's task number `n` if it ends then; `enough` as in `utility_value`."""
    return utility_of(event.functions, event.tasks[n], end - event.arrivals[n], enough)


@inner
def precedes(event: Event, row: int, n: int, other: int) -> bool:
    """Whether option `n` wins a tie against option `other` (-1: there is none)."""
    if other < 0:
        return True
    places, first_host = event.places, event.first_host
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
def value_of(event: Event, task: int, n: int, objective: int) -> float:
    """Objective of one option; -inf if it is not admissible now."""
    row = event.rows[task]
    end = end_of(event, row, n)
    if objective == COMP:
        return -end
    if end == _INF:
        return -_INF
    return quotient(utility_at(event, task, end), event.numbers[row, n, DIVISOR])


@inner
def earliest_option(event: Event, row: int) -> tuple[float, int, float]:
    """Earliest completion [s], its option, and the earliest of all others.

    inf, -1 and inf if there is none.
    """
    best, chosen, rival = _INF, -1, _INF
    for n in range(event.counts[row]):
        end = end_of(event, row, n)
        if end < best:
            best, chosen, rival = end, n, best
        elif end < _INF:
            rival = min(rival, end)
            if end == best and precedes(event, row, n, chosen):
                chosen = n
    return best, chosen, rival


@inner
def best_quotient(event: Event, task: int, cap: float, value: float, known: int) -> tuple[float, int, float]:
    """Largest utility over divisor, its option, and what no other option exceeds.

    -inf, -1 and -inf if there is none. `cap` is a utility that no option exceeds; `known` is an
    option that is worth `value` (-1 and -inf: none is known).
    """
    row = event.rows[task]
    best, chosen, rival = value, known, -_INF
    earliest, its_divisor, its_utility = _INF, 0.0, 0.0
    cap *= _CLEARLY
    for n in range(event.counts[row]):
        divisor = event.numbers[row, n, DIVISOR]
        if cap < best * divisor:
            rival = max(rival, cap / divisor)
            break
        end = end_of(event, row, n)
        if end == _INF:
            continue
        if end >= earliest and divisor > its_divisor * _CLEARLY:
            if n != known:
                rival = max(rival, its_utility / divisor)
            continue
        if n == known:
            utility = value * divisor * _CLEARLY
        else:
            utility = utility_at(event, task, end, best * divisor * _CLEARLY_LESS)
            worth = quotient(utility, divisor)
            if worth > best or (worth == best and precedes(event, row, n, chosen)):
                rival = max(rival, best)
                best, chosen = worth, n
            else:
                rival = max(rival, worth)
        if end < earliest:
            earliest, its_divisor, its_utility = end, divisor, utility
    return best, chosen, rival


@inner
def best_of_all(event: Event, task: int) -> tuple[float, int]:
    """As `best_quotient`, by looking at every option."""
    row, best, chosen = event.rows[task], -_INF, -1
    for n in range(event.counts[row]):
        value = value_of(event, task, n, UTIL)
        if value > best:
            best, chosen = value, n
        elif value == best and value > -_INF and precedes(event, row, n, chosen):
            chosen = n
    return best, chosen


@inner
def best_utility(event: Event, task: int) -> tuple[float, int, bool]:
    """Largest utility, its option, and whether another option might win a tie on a plateau."""
    row = event.rows[task]
    end, chosen, _ = earliest_option(event, row)
    if chosen < 0:
        return -_INF, -1, False
    best = utility_at(event, task, end)
    earliest = _INF  # of those who would win
    for n in range(event.counts[row]):
        if precedes(event, row, n, chosen):
            earliest = min(earliest, end_of(event, row, n))
    return best, chosen, earliest < _INF and utility_at(event, task, earliest, best) >= best


@inner
def best_option(event: Event, task: int, cap: float, value: float, known: int) -> tuple[float, int, float]:
    """Stage 1: best objective of a task, its option, and what no other option exceeds.

    -inf and -1 if it has none. `cap` is a utility that no option exceeds; `known` is an option of
    the objective `value` (-1 and -inf: none is known). For `UTIL` what no other option exceeds is
    infinite.
    """
    best, chosen, rival, in_doubt = -_INF, -1, _INF, False
    if event.objective == COMP:
        best, chosen, rival = earliest_option(event, event.rows[task])
        best, rival = -best, -rival
    elif event.objective == UTIL:
        best, chosen, in_doubt = best_utility(event, task)
    else:
        best, chosen, rival = best_quotient(event, task, cap, value, known)
        in_doubt = chosen >= 0 and best < _TINY
    if in_doubt:
        best, chosen = best_of_all(event, task)
    return best, chosen, rival
