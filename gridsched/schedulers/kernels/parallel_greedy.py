"""Compiled mapping events of the utility heuristics of paper 001 (algorithm 1; algorithms C4).

The kernel makes exactly the choices of the plain loop ("each task's best option, then the best
task, again and again"), but lazily. Nodes only fill up, so an option's start only moves later and
its objective only falls: what was found before is a bound. A heap holds each task's best bound,
and only the option at its top is searched anew, if it may have changed. It cannot have changed
while fewer nodes of its cluster were taken than were free beyond the task's own.

One exception: an option that crosses the day's end counts only its energy before it, and one that
starts later may meet a lower price: both can become admissible later. Options that need too much
energy are put aside, and looked at again when their start may have moved.

Times [s], energies [J]. Ties: lowest row (task id), then lowest cluster, then lowest P-state.
"""

from __future__ import annotations

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.schedulers.kernels.compiled import inner, kernel
from gridsched.schedulers.kernels.node_gaps import earliest
from gridsched.schedulers.kernels.node_profile import ClusterNodes, NodeProfile, with_room
from gridsched.schedulers.kernels.parallel_options import (
    NEVER,
    Objective,
    Options,
    ParallelLimits,
    ParallelRows,
    Placed,
    divisor_of,
    first_of,
    list_options,
    no_placements,
    occupy,
    place,
    room_for,
)
from gridsched.schedulers.kernels.two_stage import heapify, leads, sift_best
from gridsched.schedulers.kernels.two_stage_options import quotient
from gridsched.schedulers.kernels.utility_value import UtilityTables, inside_j, least_inside_j, utility_value

_INF = np.inf


@inner
def worth(
    divisor: float,
    end: float,
    arrival: float,
    shapes: Floats,
    first: int,
    last: int,
    linear: bool,
    priority: float,
    urgency: float,
    unit_s: float,
) -> float:
    """Objective of an option that ends at `end` [s]."""
    tau = (end - arrival) / unit_s
    utility = utility_value(shapes, first, last, linear, priority, urgency, tau)
    return quotient(utility, divisor)


@inner
def put_aside(
    exact_until: Integers,
    value: Floats,
    aside: Integers,
    n_aside: Integers,
    aside_until: Integers,
    n: int,
    c: int,
    k: int,
    pstates: int,
) -> None:
    """Note that an option needs too much energy where it starts now."""
    o = c * pstates + k
    value[n, o] = -_INF
    aside[c, n_aside[c]] = n * pstates + k
    n_aside[c] += 1
    aside_until[c] = min(aside_until[c], exact_until[n, o])


@kernel
def judge_all(
    objective: Objective,
    rows: ParallelRows,
    functions: UtilityTables,
    options: Options,
    is_left: Booleans,
    day_end: float,
    weights: Floats,
    remaining_j: float,
) -> None:
    """Give every option of the rows that are left its objective, or put it aside."""
    m, clusters, pstates = rows.time_s.shape
    time_s, energy_j, widths, arrival = rows.time_s, rows.energy_j, rows.nodes, rows.arrival_s
    per_node, shapes, first = rows.cores_per_node, functions.shapes, functions.first
    classes, linear, unit_s = functions.utility_class, functions.linear, functions.unit_s
    priority, urgency = functions.priority, functions.urgency
    start, exact_until, divisor, value = options[:4]
    taken, aside, n_aside, aside_until = options[4:]
    n_aside[:] = 0
    aside_until[:] = NEVER
    for n in range(m):
        if not is_left[n]:
            continue
        number = classes[n]
        for c in range(clusters):
            for k in range(pstates):
                o = c * pstates + k
                if not start[n, o] < day_end:
                    continue
                time, energy = time_s[n, c, k], energy_j[n, c, k]
                divisor[n, o] = divisor_of(objective, time, rows.cost_j[n, c, k], float(widths[n, c] * per_node[c]))
                if exact_until[n, o] >= taken[c] and (
                    inside_j(start[n, o], time, energy, day_end, weights) > remaining_j
                ):
                    put_aside(exact_until, value, aside, n_aside, aside_until, n, c, k, pstates)
                    continue
                value[n, o] = worth(
                    divisor[n, o],
                    start[n, o] + time,
                    arrival[n],
                    shapes,
                    first[number],
                    first[number + 1] - 1,
                    linear[number],
                    priority[n],
                    urgency[n],
                    unit_s,
                )


# ---------------------------------------------------------------------- the heap


@inner
def best_of(value: Floats, n: int) -> tuple[float, int]:
    """Best value of row `n`, and the first option that has it."""
    best, chosen = value[n, 0], 0
    for o in range(1, value.shape[1]):
        if value[n, o] > best:
            best, chosen = value[n, o], o
    return best, chosen


@kernel
def renewed_heap(value: Floats, is_left: Booleans, keys: Floats, ids: Integers) -> int:
    """Make the heap of the rows that are left; returns its size."""
    size = 0
    for n in range(len(is_left)):
        if is_left[n]:
            keys[size], ids[size] = best_of(value, n)[0], n
            size += 1
    heapify(keys, ids, size)
    return size


# ---------------------------------------------------------------------- looking at options again


@inner
def look_again(
    profile: NodeProfile,
    rows: ParallelRows,
    functions: UtilityTables,
    options: Options,
    is_left: Booleans,
    c: int,
    day_end: float,
    weights: Floats,
    remaining_j: float,
) -> bool:
    """Look again at the options of a cluster that were put aside; whether one is admissible now.

    Those give their objective back.
    """
    pstates, kept, found = rows.time_s.shape[2], 0, False
    start, exact_until, divisor, value = options[:4]
    taken, aside, n_aside, aside_until = options[4:]
    begin, end, n_nodes, _, _, size, _ = profile
    time_s, energy_j, widths = rows.time_s, rows.energy_j, rows.nodes
    aside_until[c] = NEVER
    for position in range(n_aside[c]):
        n, k = aside[c, position] // pstates, aside[c, position] % pstates
        o = c * pstates + k
        if not is_left[n]:
            continue
        if exact_until[n, o] < taken[c]:
            time, energy = time_s[n, c, k], energy_j[n, c, k]
            start[n, o], spare = earliest(begin, end, n_nodes, size, c, widths[n, c], time, start[n, o], day_end)
            exact_until[n, o] = taken[c] + spare
            if not start[n, o] < day_end:
                continue
            if inside_j(start[n, o], time, energy, day_end, weights) <= remaining_j:
                number = functions.utility_class[n]
                value[n, o] = worth(
                    divisor[n, o],
                    start[n, o] + time,
                    rows.arrival_s[n],
                    functions.shapes,
                    functions.first[number],
                    functions.first[number + 1] - 1,
                    functions.linear[number],
                    functions.priority[n],
                    functions.urgency[n],
                    functions.unit_s,
                )
                found = True
                continue
        aside[c, kept] = aside[c, position]
        aside_until[c] = min(aside_until[c], exact_until[n, o])
        kept += 1
    n_aside[c] = kept
    return found


@inner
def next_placement(
    profile: NodeProfile,
    rows: ParallelRows,
    functions: UtilityTables,
    options: Options,
    day_end: float,
    weights: Floats,
    remaining_j: float,
    keys: Floats,
    ids: Integers,
    heap_size: int,
) -> int:
    """Mend what is known of the options at the top of the heap until one is what it is taken for.

    Returns its option; -1 if nothing is left that can be placed.
    """
    pstates = rows.time_s.shape[2]
    start, exact_until, divisor, value = options[:4]
    taken, aside, n_aside, aside_until = options[4:]
    begin, end, n_nodes, _, _, size, _ = profile
    time_s, energy_j, widths, arrival = rows.time_s, rows.energy_j, rows.nodes, rows.arrival_s
    shapes, first, linear, unit_s = (functions.shapes, functions.first, functions.linear, functions.unit_s)
    while heap_size > 0 and keys[0] > -_INF:
        n = ids[0]
        o = best_of(value, n)[1]
        c, k = o // pstates, o % pstates
        time, before = time_s[n, c, k], start[n, o]
        if exact_until[n, o] < taken[c]:
            start[n, o], spare = earliest(begin, end, n_nodes, size, c, widths[n, c], time, start[n, o], day_end)
            exact_until[n, o] = taken[c] + spare
        if not start[n, o] < day_end:
            value[n, o] = -_INF
        elif inside_j(start[n, o], time, energy_j[n, c, k], day_end, weights) > remaining_j:
            put_aside(exact_until, value, aside, n_aside, aside_until, n, c, k, pstates)
        elif start[n, o] > before:
            number = functions.utility_class[n]
            value[n, o] = worth(
                divisor[n, o],
                start[n, o] + time,
                arrival[n],
                shapes,
                first[number],
                first[number + 1] - 1,
                linear[number],
                functions.priority[n],
                functions.urgency[n],
                unit_s,
            )
        else:
            return o
        keys[0] = best_of(value, n)[0]
        if not leads(keys, ids, heap_size, keys[0], n):
            sift_best(keys, ids, heap_size, 0)
    return -1


# ---------------------------------------------------------------------- the event


@inner
def still_may(witness: Integers, is_left: Booleans, taken: Integers) -> bool:
    """Whether what `may_start_by` found holds still."""
    return is_left[witness[0]] and witness[2] == taken[witness[1]]


@inner
def may_start_by(
    soon: float,
    profile: NodeProfile,
    rows: ParallelRows,
    options: Options,
    is_left: Booleans,
    day_end: float,
    weights: Floats,
    remaining_j: float,
    witness: Integers,
) -> bool:
    """Whether anything that is left might start by `soon` [s].

    `witness` is a row and a cluster before which nothing can any more, and the nodes that were
    taken there when the row could; (0, 0, -1) at first. Starts only move later and energy only
    gets less, so nothing is looked at again.
    """
    start, _, _, _, taken, _, _, _ = options
    begin, end, n_nodes, _, _, size, _ = profile
    time_s, energy_j, widths = rows.time_s, rows.energy_j, rows.nodes
    m, clusters, pstates = time_s.shape
    n, c = witness[0], witness[1]
    while n < m:
        while is_left[n] and c < clusters:
            shortest, since = _INF, _INF
            for k in range(pstates):
                time, bound = time_s[n, c, k], start[n, c * pstates + k]
                if (
                    bound <= soon
                    and time < shortest
                    and (least_inside_j(bound, soon, time, energy_j[n, c, k], day_end, weights) <= remaining_j)
                ):
                    shortest, since = time, bound
            if earliest(begin, end, n_nodes, size, c, widths[n, c], shortest, since, soon)[0] <= soon:
                witness[0], witness[1], witness[2] = n, c, taken[c]
                return True
            c += 1
        n, c = n + 1, 0
    witness[0] = m
    return False


@kernel
def map_parallel(
    objective: Objective,
    later_objective: Objective,
    spent_j: float,
    goal_j: float,
    soon: float,
    nodes: ClusterNodes,
    profile: NodeProfile,
    rows: ParallelRows,
    functions: UtilityTables,
    limits: ParallelLimits,
) -> Placed:
    """Place all tasks of an event, the one with the best objective first.

    What starts after `soon` takes its nodes from others, but is not returned. It stops when none
    that is left could start by `soon`: what comes then changes nothing before.

    Parameters
    ----------
    objective : Objective
    later_objective : Objective
        In its place as soon as what the day's energy counts, `spent_j` and what is placed, reaches
        `goal_j`.
    spent_j, goal_j : float
        [J].
    soon : float
        [s]; infinite: all that is placed is returned.
    nodes : ClusterNodes
    profile : NodeProfile
        It is used up.
    rows : ParallelRows
    functions : UtilityTables
        Of the rows.
    limits : ParallelLimits

    Returns
    -------
    Placed
    """
    pstates, day_end, remaining_j = rows.time_s.shape[2], limits.day_end, limits.remaining_j
    weights, options = limits.weights, list_options(profile, nodes, rows, limits)
    is_left = np.ones(len(rows.time_s), np.bool_)
    placed, count = no_placements(rows), 0
    witness = np.array([0, 0, -1])
    if soon < _INF and not may_start_by(soon, profile, rows, options, is_left, day_end, weights, remaining_j, witness):
        return first_of(placed, count)
    bits = np.empty((2, profile.bits.shape[2]), np.uint64)
    judge_all(objective, rows, functions, options, is_left, day_end, weights, remaining_j)
    keys, ids = np.empty(len(is_left)), np.empty(len(is_left), np.int64)
    size = renewed_heap(options.value, is_left, keys, ids)
    while True:
        o = next_placement(profile, rows, functions, options, day_end, weights, remaining_j, keys, ids, size)
        if o < 0:
            return first_of(placed, count)
        n, c, k = ids[0], o // pstates, o % pstates
        start, time = options.start[n, o], rows.time_s[n, c, k]
        if start <= soon:
            profile = place(profile, nodes, rows, placed, count, n, c, k, start, bits)
            count += 1
        else:
            if room_for(profile, c) > profile.begin.shape[1]:  # a call costs as much as the rest
                profile = with_room(profile, room_for(profile, c))
            occupy(profile, rows, n, c, k, start, bits)
        is_left[n] = False
        options.taken[c] += rows.nodes[n, c]
        inside = inside_j(start, time, rows.energy_j[n, c, k], day_end, weights)
        remaining_j -= inside
        spent_j += inside
        size -= 1
        keys[0], ids[0] = keys[size], ids[size]
        sift_best(keys, ids, size, 0)
        if soon < _INF and not (
            still_may(witness, is_left, options.taken)
            or may_start_by(soon, profile, rows, options, is_left, day_end, weights, remaining_j, witness)
        ):
            return first_of(placed, count)
        if objective != later_objective and spent_j >= goal_j:
            objective = later_objective
            judge_all(objective, rows, functions, options, is_left, day_end, weights, remaining_j)
            size = renewed_heap(options.value, is_left, keys, ids)
        elif options.taken[c] > options.aside_until[c] and look_again(
            profile, rows, functions, options, is_left, c, day_end, weights, remaining_j
        ):
            size = renewed_heap(options.value, is_left, keys, ids)


@kernel
def placed_energy_j(nodes: ClusterNodes, rows: ParallelRows, placed: Placed, limits: ParallelLimits) -> Floats:
    """Return what each placement counts before the day's end [J].

    Parameters
    ----------
    nodes : ClusterNodes
    rows : ParallelRows
    placed : Placed
    limits : ParallelLimits

    Returns
    -------
    ndarray of float64, shape (placed,)
    """
    energy_j = np.empty(len(placed.rows))
    for i in range(len(energy_j)):
        n, k = placed.rows[i], placed.pstates[i]
        c = nodes.cluster_of[placed.hosts[placed.offsets[i]]]
        energy_j[i] = inside_j(
            placed.starts[i], rows.time_s[n, c, k], rows.energy_j[n, c, k], limits.day_end, limits.weights
        )
    return energy_j
