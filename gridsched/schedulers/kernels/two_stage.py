"""Compiled mapping events of the utility heuristics of paper 000 (algorithms B4 to B6).

The greedy kernel makes exactly the choices of the plain loop ("each task's best option, then the
best task, again and again"), but lazily: an option's objective can only fall while machines fill
up, so it keeps a heap of stale bests, and evaluates only the task at its top anew.

One exception: an option that crosses the day's end counts only its energy before it, and one that
starts later may meet a lower price: both can become admissible later. When one does, the stale
bests of its task types are made anew.

Times [s], energies [J]. Of equal bests the task with the lowest id is mapped.
"""

from __future__ import annotations

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.schedulers.kernels.compiled import inner, kernel
from gridsched.schedulers.kernels.earliest_hosts import gather_hosts, occupy_first
from gridsched.schedulers.kernels.two_stage_options import (
    COMP,
    DIVISOR,
    EEC,
    ETC,
    HOST_TYPE,
    PSTATE,
    UTIL,
    TypeTables,
    best_option,
    empty_options,
    list_options,
    quotient,
    value_of,
)
from gridsched.schedulers.kernels.utility_value import (
    UtilityTables,
    cheapest_inside_j,
    inside_j,
    most_weight,
    utility_value,
)

#: What becomes of a task: mapped; may be possible at the next event; nothing is possible today.
MAPPED, STAYS, IMPOSSIBLE = 0, 1, 2

_INF = np.inf


# ---------------------------------------------------------------------- heap of stale bests


@inner
def sift_best(keys: Floats, ids: Integers, size: int, k: int) -> None:
    """Let position `k` sink: larger keys stand above, of equal ones the lower id."""
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
    """Whether `value` of `task`, the top, stands before everything below it."""
    for child in range(1, min(3, size)):
        if keys[child] > value or (keys[child] == value and ids[child] < task):
            return False
    return True


# ---------------------------------------------------------------------- begin of an event


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


@kernel
def earliest_ends(numbers: Floats, places: Integers, counts: Integers, first_ready: Floats) -> Floats:
    """Earliest completion [s] of each row, whatever the energy budget says."""
    ends = np.full(len(counts), _INF)
    for row in range(len(counts)):
        for n in range(counts[row]):
            end = first_ready[places[row, n, HOST_TYPE]] + numbers[row, n, ETC]
            ends[row] = min(ends[row], end)
    return ends


@kernel
def upper_bounds(
    objective: int,
    numbers: Floats,
    ends: Floats,
    rows: Integers,
    tasks: Integers,
    arrivals: Floats,
    functions: UtilityTables,
) -> tuple[Floats, Floats]:
    """Return what each task's objective and its utility cannot exceed, shape (m,) each."""
    priority, urgency, unit_s = functions.priority, functions.urgency, functions.unit_s
    utility_class, first = functions.utility_class, functions.first
    linear, shapes = functions.linear, functions.shapes
    bounds, caps = np.full(len(tasks), -_INF), np.zeros(len(tasks))
    for n in range(len(tasks)):
        row, task = rows[n], tasks[n]
        if ends[row] == _INF:
            continue
        if objective == COMP:
            bounds[n] = -ends[row]
            continue
        c = utility_class[task]
        caps[n] = utility_value(
            shapes,
            first[c],
            first[c + 1] - 1,
            linear[c],
            priority[task],
            urgency[task],
            (ends[row] - arrivals[n]) / unit_s,
        )
        bounds[n] = quotient(caps[n], numbers[row, 0, DIVISOR])
    return bounds, caps


# ---------------------------------------------------------------------- admissible later


@inner
def newly_admissible(
    numbers: Floats,
    places: Integers,
    row: int,
    count: int,
    j: int,
    before: tuple[float, float],
    after: tuple[float, float],
    day_end: float,
    weights: Floats,
) -> bool:
    """Whether an option on type `j` becomes admissible by starting later.

    `before` and `after` are (ready time, energy remaining) around an assignment there.
    """
    for n in range(count):
        if places[row, n, HOST_TYPE] == j and after[0] < day_end:
            time, energy = numbers[row, n, ETC], numbers[row, n, EEC]
            was = inside_j(before[0], time, energy, day_end, weights) <= before[1]
            if not was and inside_j(after[0], time, energy, day_end, weights) <= after[1]:
                return True
    return False


@kernel
def renew_keys(
    numbers: Floats,
    places: Integers,
    counts: Integers,
    rows: Integers,
    j: int,
    before: tuple[float, float],
    after: tuple[float, float],
    day_end: float,
    weights: Floats,
    keys: Floats,
    ids: Integers,
    size: int,
    bounds: Floats,
    rivals: Floats,
) -> None:
    """Give tasks with a newly admissible option their first bounds again."""
    renew, found = np.zeros(len(counts), np.bool_), False
    for row in range(len(counts)):
        renew[row] = newly_admissible(numbers, places, row, counts[row], j, before, after, day_end, weights)
        found |= renew[row]
    if found:
        for k in range(size):
            if renew[rows[ids[k]]]:
                keys[k], rivals[ids[k]] = bounds[ids[k]], _INF
        heapify(keys, ids, size)


@inner
def unmapped_reason(
    etc: Floats,
    eec: Floats,
    order: Integers,
    n_feasible: Integers,
    host_start: Integers,
    hosts: Integers,
    i: int,
    ready_time: Floats,
    first_ready: Floats,
    remaining_j: float,
    day_end: float,
    weights: Floats,
) -> int:
    """Return `STAYS` or `IMPOSSIBLE` for tasks of type `i` that were not mapped (B4).

    Impossible is what would be too much even at the lowest price.
    """
    n_pstates = etc.shape[2]
    some_on = False
    for n in range(n_feasible[i]):
        j, k = order[i, n] // n_pstates, order[i, n] % n_pstates
        ready = first_ready[j]
        inside = cheapest_inside_j(ready, etc[i, j, k], eec[i, j, k], day_end, weights)
        if ready < day_end and inside <= remaining_j:
            return STAYS
        for h in range(host_start[j], host_start[j + 1]):
            some_on |= ready_time[hosts[h]] < _INF
    return IMPOSSIBLE if some_on else STAYS


@kernel
def mark_unmapped(
    tables: TypeTables,
    types: Integers,
    rows: Integers,
    ready_time: Floats,
    first_ready: Floats,
    remaining_j: float,
    day_end: float,
    weights: Floats,
    reasons: Integers,
) -> None:
    """Write into `reasons` why each task that is not mapped was not."""
    of_row = np.full(len(types), -1, np.int64)
    for n in range(len(rows)):
        if reasons[n] == MAPPED:
            continue
        if of_row[rows[n]] < 0:
            of_row[rows[n]] = unmapped_reason(
                tables.etc,
                tables.eec,
                tables.order,
                tables.n_feasible,
                tables.host_start,
                tables.hosts,
                types[rows[n]],
                ready_time,
                first_ready,
                remaining_j,
                day_end,
                weights,
            )
        reasons[n] = of_row[rows[n]]


# ---------------------------------------------------------------------- the event


@inner
def best_again(
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
    n: int,
    hints: Integers,
    rivals: Floats,
) -> tuple[float, int]:
    """Best objective of task `n` and its option, now; -inf and -1 if it has none.

    Every value can only fall: if the option that was best (``hints[n]``) still exceeds what no
    other one exceeded (``rivals[n]``), it is best.
    """
    value, chosen = -_INF, hints[n]
    if chosen >= 0:
        value = value_of(
            objective,
            numbers,
            places,
            row,
            chosen,
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
        chosen = chosen if value > -_INF else -1
    if not value > rivals[n]:
        value, chosen, rivals[n] = best_option(
            objective,
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
            chosen,
        )
        hints[n] = chosen if objective != UTIL else -1
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
    machines = gather_hosts(tables, ready_time, day_end)
    counts, numbers, places = empty_options(tables, types)
    largest = list_options(tables, types, objective, task_budget, False, counts, numbers, places) * most_weight(weights)
    ends = earliest_ends(numbers, places, counts, machines[3])
    arrivals = arrival_s[tasks]
    bounds, caps = upper_bounds(objective, numbers, ends, rows, tasks, arrivals, functions)
    ids, successor = np.arange(len(tasks)), np.full(len(tasks), -1, np.int64)
    if objective == COMP:  # tasks of a type are alike: only the first of each stands in the heap
        ids, successor = followers(rows, len(types))
    keys = bounds[ids]
    heapify(keys, ids, len(ids))
    assigned, reasons, remaining_j = map_lazily(
        objective,
        tables,
        functions,
        tasks,
        types,
        rows,
        arrivals,
        bounds,
        caps,
        machines,
        (counts, numbers, places),
        largest,
        keys,
        ids,
        successor,
        remaining_j,
        task_budget,
        day_end,
        weights,
    )
    mark_unmapped(tables, types, rows, ready_time, machines[3], remaining_j, day_end, weights, reasons)
    return tasks[assigned[0]], assigned[1], assigned[2], reasons


@kernel
def map_lazily(
    objective: int,
    tables: TypeTables,
    functions: UtilityTables,
    tasks: Integers,
    types: Integers,
    rows: Integers,
    arrivals: Floats,
    bounds: Floats,
    caps: Floats,
    machines: tuple[Floats, Integers, Integers, Floats, Integers],
    options: tuple[Integers, Floats, Integers],
    largest: float,
    keys: Floats,
    ids: Integers,
    successor: Integers,
    remaining_j: float,
    task_budget: float,
    day_end: float,
    weights: Floats,
) -> tuple[tuple[Integers, Integers, Integers], Integers, float]:
    """The loop of `map_two_stage`; returns assignments, reasons and the energy that remains."""
    host_start = tables.host_start
    priority, urgency, unit_s = functions.priority, functions.urgency, functions.unit_s
    utility_class, first = functions.utility_class, functions.first
    linear, shapes = functions.linear, functions.shapes
    ready, heap, sizes, first_ready, first_host = machines
    counts, numbers, places = options
    reasons = np.full(len(tasks), STAYS, np.int64)
    mapped, hosts, pstates = np.empty_like(tasks), np.empty_like(tasks), np.empty_like(tasks)
    hints, rivals = np.full(len(tasks), -1, np.int64), np.full(len(tasks), _INF)
    count, size, strained = 0, len(ids), False
    while size > 0 and keys[0] > -_INF:
        if not strained and not largest <= remaining_j:
            strained = True
            hints[:], rivals[:] = -1, _INF  # they were about the old list
            list_options(tables, types, objective, task_budget, True, counts, numbers, places)
        n = ids[0]
        row, task = rows[n], tasks[n]
        c = utility_class[task]
        keys[0], chosen = best_again(
            objective,
            numbers,
            places,
            row,
            counts[row],
            first_ready,
            first_host,
            strained,
            remaining_j,
            day_end,
            weights,
            arrivals[n],
            priority[task],
            urgency[task],
            caps[n],
            shapes,
            first[c],
            first[c + 1] - 1,
            linear[c],
            unit_s,
            n,
            hints,
            rivals,
        )
        if chosen < 0 or not leads(keys, ids, size, keys[0], n):
            sift_best(keys, ids, size, 0)
            continue
        j, time = places[row, chosen, HOST_TYPE], numbers[row, chosen, ETC]
        mapped[count], hosts[count], pstates[count] = n, first_host[j], places[row, chosen, PSTATE]
        reasons[n] = MAPPED
        count += 1
        before = (first_ready[j], remaining_j)
        remaining_j -= inside_j(before[0], time, numbers[row, chosen, EEC], day_end, weights)
        occupy_first(host_start, ready, heap, sizes, first_ready, first_host, j, time, day_end)
        after = successor[n]
        if after >= 0:  # of the same type: all that is known of the one holds for the other
            ids[0], hints[after], rivals[after] = after, hints[n], rivals[n]
        else:
            size -= 1
            keys[0], ids[0] = keys[size], ids[size]
        sift_best(keys, ids, size, 0)
        if strained:
            renew_keys(
                numbers,
                places,
                counts,
                rows,
                j,
                before,
                (first_ready[j], remaining_j),
                day_end,
                weights,
                keys,
                ids,
                size,
                bounds,
                rivals,
            )
    return (mapped[:count], hosts[:count], pstates[:count]), reasons, remaining_j
