"""Compiled mapping events of the utility heuristics of paper 000 (algorithms B4 to B6).

The greedy kernel makes exactly the choices of the plain loop ("each task's best option, then the
best task, again and again"), but lazily: an option's objective can only fall while machines fill
up, so it keeps a heap of stale bests, and evaluates only the task at its top again.

One exception: an option that crosses the day's end counts only its energy before it, and one that
starts later may meet a lower price: both can become admissible later. When one does, the stale
bests of its task types are made again.

Times [s], energies [J]. Of equal bests the task with the lowest id is mapped.
"""

from __future__ import annotations

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.schedulers.kernels.tables import COMP, UTIL, TypeTables
from gridsched.systems.utility.kernels import inner, kernel
from gridsched.systems.utility.kernels.two_stage_options import (
    DIVISOR,
    EEC,
    ETC,
    HOST_TYPE,
    PSTATE,
    Event,
    best_option,
    gather_hosts,
    list_options,
    occupy_first,
    quotient,
    utility_at,
    value_of,
)
from gridsched.systems.utility.kernels.utility_value import UtilityTables, cheapest_inside_j, inside_j, most_weight

#: What becomes of a task: mapped; may be possible at the next event; nothing is possible today.
MAPPED, STAYS, IMPOSSIBLE = 0, 1, 2

_INF = np.inf


@inner
def sift_best(keys: Floats, ids: Integers, size: int, k: int) -> None:
    """Let position `k` sink: larger keys are above, of equal ones the lower id."""
    key, task = keys[k], ids[k]
    while True:
        child = 2 * k + 1
        if child >= size:
            break
        if child + 1 < size and (
            keys[child + 1] > keys[child] or (keys[child + 1] == keys[child] and ids[child + 1] < ids[child])
        ):
            child += 1
        if key > keys[child] or (key == keys[child] and task < ids[child]):
            break
        keys[k], ids[k] = keys[child], ids[child]
        k = child
    keys[k], ids[k] = key, task


@inner
def heapify(keys: Floats, ids: Integers, size: int) -> None:
    """Make a heap of the first `size` entries."""
    for k in range(size // 2 - 1, -1, -1):
        sift_best(keys, ids, size, k)


@inner
def leads(keys: Floats, ids: Integers, size: int, value: float, task: int) -> bool:
    """Whether `value` of `task`, the top, comes before everything below it."""
    for child in range(1, min(3, size)):
        if keys[child] > value or (keys[child] == value and ids[child] < task):
            return False
    return True


@kernel
def task_rows(tasks: Integers, task_type: Integers, n_types: int) -> tuple[Integers, Integers]:
    """Return the task types that are present, and each task's place among them."""
    row_of = np.full(n_types, -1, np.int64)
    types = np.empty(n_types, np.int64)
    rows = np.empty(len(tasks), np.int64)
    n_rows = 0
    for n in range(len(tasks)):
        i = task_type[tasks[n]]
        if row_of[i] < 0:
            row_of[i] = n_rows
            types[n_rows] = i
            n_rows += 1
        rows[n] = row_of[i]
    return types[:n_rows].copy(), rows


@kernel
def followers(rows: Integers, n_rows: int) -> tuple[Integers, Integers]:
    """Return the first task of each row, and of each task the next of its row (-1: none)."""
    first = np.full(n_rows, -1, np.int64)
    successor = np.full(len(rows), -1, np.int64)
    for n in range(len(rows) - 1, -1, -1):
        successor[n] = first[rows[n]]
        first[rows[n]] = n
    return first, successor


@inner
def earliest_ends(event: Event, ends: Floats) -> None:
    """Write the earliest completion [s] of each row, whatever the energy budget allows."""
    ends[:] = _INF
    for row in range(len(ends)):
        for n in range(event.counts[row]):
            end = event.first_ready[event.places[row, n, HOST_TYPE]] + event.numbers[row, n, ETC]
            ends[row] = min(ends[row], end)


@inner
def upper_bounds(event: Event, ends: Floats, bounds: Floats, caps: Floats) -> None:
    """Write what each task's objective and its utility cannot exceed, shape (m,) each."""
    for n in range(len(bounds)):
        row = event.rows[n]
        if ends[row] == _INF:
            continue
        if event.objective == COMP:
            bounds[n] = -ends[row]
        else:
            caps[n] = utility_at(event, n, ends[row])
            bounds[n] = quotient(caps[n], event.numbers[row, 0, DIVISOR])


@inner
def newly_admissible(event: Event, row: int, j: int, before: tuple[float, float], after: tuple[float, float]) -> bool:
    """Whether an option of a row on host type `j` becomes admissible by starting later.

    `before` and `after` are (ready time, energy remaining) around an assignment there.
    """
    day_end, weights = event.day_end, event.weights
    for n in range(event.counts[row]):
        if event.places[row, n, HOST_TYPE] == j and after[0] < day_end:
            time, energy = event.numbers[row, n, ETC], event.numbers[row, n, EEC]
            was = inside_j(before[0], time, energy, day_end, weights) <= before[1]
            if not was and inside_j(after[0], time, energy, day_end, weights) <= after[1]:
                return True
    return False


@inner
def renew_keys(
    event: Event, is_renewed: Booleans, keys: Floats, ids: Integers, size: int, bounds: Floats, rivals: Floats
) -> None:
    """Give the tasks of renewed rows their first bounds again."""
    for k in range(size):
        if is_renewed[event.rows[ids[k]]]:
            keys[k], rivals[ids[k]] = bounds[ids[k]], _INF
    heapify(keys, ids, size)


@inner
def unmapped_reason(event: Event, i: int, ready_time: Floats) -> int:
    """Return `STAYS` or `IMPOSSIBLE` for tasks of type `i` that were not mapped (B4).

    Impossible is what would be too much even at the lowest price.
    """
    tables, some_on = event.tables, False
    n_pstates = tables.etc.shape[2]
    for n in range(tables.n_feasible[i]):
        j, k = tables.order[i, n] // n_pstates, tables.order[i, n] % n_pstates
        ready = event.first_ready[j]
        inside = cheapest_inside_j(ready, tables.etc[i, j, k], tables.eec[i, j, k], event.day_end, event.weights)
        if ready < event.day_end and inside <= event.remaining_j[0]:
            return STAYS
        for h in range(tables.host_start[j], tables.host_start[j + 1]):
            some_on |= ready_time[tables.hosts[h]] < _INF
    return IMPOSSIBLE if some_on else STAYS


@inner
def mark_unmapped(event: Event, ready_time: Floats, of_row: Integers, reasons: Integers) -> None:
    """Write into `reasons` why each task that is not mapped was not; `of_row` is all -1."""
    for n in range(len(reasons)):
        row = event.rows[n]
        if reasons[n] == MAPPED:
            continue
        if of_row[row] < 0:
            of_row[row] = unmapped_reason(event, event.types[row], ready_time)
        reasons[n] = of_row[row]


@inner
def best_again(event: Event, n: int, cap: float, hints: Integers, rivals: Floats) -> tuple[float, int]:
    """Best objective of task `n` and its option, now; -inf and -1 if it has none.

    Every value can only fall: if the option that was best (``hints[n]``) still exceeds what no
    other one exceeded (``rivals[n]``), it is best.
    """
    value, chosen = -_INF, hints[n]
    if chosen >= 0:
        value = value_of(event, n, chosen, event.objective)
        chosen = chosen if value > -_INF else -1
    if not value > rivals[n]:
        value, chosen, rivals[n] = best_option(event, n, cap, value, chosen)
        hints[n] = chosen if event.objective != UTIL else -1
    return value, chosen


@kernel
def map_two_stage(
    objective: int,
    tables: TypeTables,
    functions: UtilityTables,
    task_type: Integers,
    arrival_s: Floats,
    tasks: Integers,
    ready_time: Floats,
    remaining_j: float,
    task_budget: float,
    day_end: float,
    weights: Floats,
) -> tuple[Integers, Integers, Integers, Integers]:
    """Map all tasks of an event, the one with the best objective first.

    Parameters
    ----------
    objective : {UTIL, UPT, UPE, COMP}
    tables : TypeTables
        Made for the same objective.
    functions : UtilityTables
    task_type, arrival_s : ndarray, shape (all tasks,)
    tasks : ndarray of int64, shape (m,)
        Mappable tasks, ascending.
    ready_time : ndarray, shape (hosts,)
        Executing and pending tasks count [s]; infinite for a host that is off.
    remaining_j, task_budget : float
        Energy that remains today, as the budget counts it, and the largest cost that passes the
        filter [J].
    day_end : float
        No option may start at or after it [s].
    weights : ndarray
        What a joule counts, a table of `gridsched.model.signals`.

    Returns
    -------
    mapped, hosts, pstates : ndarray of int64
        Assignments in their order.
    reasons : ndarray of int64, shape (m,)
        `MAPPED`, `STAYS` or `IMPOSSIBLE` for each of `tasks`.
    """
    types, rows = task_rows(tasks, task_type, len(tables.etc))
    most, n_host_types = tables.order.shape[1], len(tables.host_start) - 1
    event = Event(
        objective,
        tables,
        functions,
        tasks,
        arrival_s[tasks],
        types,
        rows,
        np.zeros(len(types), np.int64),
        np.empty((len(types), most, 3)),
        np.empty((len(types), most, 2), np.int64),
        ready_time.copy(),
        np.empty(len(ready_time), np.int64),
        np.empty(n_host_types, np.int64),
        np.empty(n_host_types),
        np.empty(n_host_types, np.int64),
        np.full(1, remaining_j),
        np.zeros(1, np.bool_),
        task_budget,
        day_end,
        weights,
    )
    gather_hosts(event)
    largest = list_options(event, False) * most_weight(weights)
    ends = np.empty(len(types))
    earliest_ends(event, ends)
    bounds, caps = np.full(len(tasks), -_INF), np.zeros(len(tasks))
    upper_bounds(event, ends, bounds, caps)
    ids, successor = np.arange(len(tasks)), np.full(len(tasks), -1, np.int64)
    if objective == COMP:  # tasks of a type are alike: only the first of each is in the heap
        ids, successor = followers(rows, len(types))
    assigned, reasons = map_lazily(event, bounds, caps, largest, ids, successor)
    mark_unmapped(event, ready_time, np.full(len(types), -1, np.int64), reasons)
    return tasks[assigned[0]], assigned[1], assigned[2], reasons


@kernel
def map_lazily(
    event: Event, bounds: Floats, caps: Floats, largest: float, ids: Integers, successor: Integers
) -> tuple[tuple[Integers, Integers, Integers], Integers]:
    """The loop of `map_two_stage`; returns assignments and reasons."""
    tasks, rows, places, numbers = event.tasks, event.rows, event.places, event.numbers
    remaining_j, first_ready, day_end, weights = event.remaining_j, event.first_ready, event.day_end, event.weights
    reasons = np.full(len(tasks), STAYS, np.int64)
    mapped, hosts, pstates = np.empty_like(tasks), np.empty_like(tasks), np.empty_like(tasks)
    hints, rivals = np.full(len(tasks), -1, np.int64), np.full(len(tasks), _INF)
    is_renewed = np.zeros(len(event.types), np.bool_)
    keys = bounds[ids]
    heapify(keys, ids, len(ids))
    count, size = 0, len(ids)
    while size > 0 and keys[0] > -_INF:
        if not event.is_strained[0] and not largest <= remaining_j[0]:
            event.is_strained[0] = True
            hints[:], rivals[:] = -1, _INF  # they were about the old list
            list_options(event, True)
        n = ids[0]
        row = rows[n]
        keys[0], chosen = best_again(event, n, caps[n], hints, rivals)
        if chosen < 0 or not leads(keys, ids, size, keys[0], n):
            sift_best(keys, ids, size, 0)
            continue
        j, time = places[row, chosen, HOST_TYPE], numbers[row, chosen, ETC]
        mapped[count], hosts[count], pstates[count] = n, event.first_host[j], places[row, chosen, PSTATE]
        reasons[n] = MAPPED
        count += 1
        before = (first_ready[j], remaining_j[0])
        remaining_j[0] -= inside_j(before[0], time, numbers[row, chosen, EEC], day_end, weights)
        occupy_first(event, j, time)
        after = successor[n]
        if after >= 0:  # of the same type: all that is known of the one holds for the other
            ids[0], hints[after], rivals[after] = after, hints[n], rivals[n]
        else:
            size -= 1
            keys[0], ids[0] = keys[size], ids[size]
        sift_best(keys, ids, size, 0)
        if event.is_strained[0]:
            for each in range(len(is_renewed)):
                is_renewed[each] = newly_admissible(event, each, j, before, (first_ready[j], remaining_j[0]))
            if is_renewed.any():
                renew_keys(event, is_renewed, keys, ids, size, bounds, rivals)
    return (mapped[:count], hosts[:count], pstates[:count]), reasons
