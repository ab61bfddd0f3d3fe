"""Compiled mapping events of the utility heuristics of paper 001 (algorithm 1; algorithms C4).

The kernel makes exactly the choices of the plain loop ("each task's best option, then the best
task, again and again"), but lazily. Nodes only fill up, so an option's start only moves later and
its objective only falls: what was found before is a bound. A heap holds each task's best bound,
and only the option at its top is searched again, if it may have changed. It cannot have changed
while fewer nodes of its cluster were taken than were free beyond the task's own.

One exception: an option that crosses the day's end counts only its energy before it, and one that
starts later may meet a lower price: both can become admissible later. Options that need too much
energy are put aside, and looked at again when their start may have moved.

Times [s], energies [J]. Ties: lowest row (task id), then lowest cluster, then lowest P-state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.systems.utility.kernels import called_once, inner, kernel
from gridsched.systems.utility.kernels.node_gaps import NodeProfile, earliest
from gridsched.systems.utility.kernels.node_profile import ClusterNodes, with_room
from gridsched.systems.utility.kernels.parallel_options import (
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
from gridsched.systems.utility.kernels.two_stage import heapify, leads, sift_best
from gridsched.systems.utility.kernels.two_stage_options import quotient
from gridsched.systems.utility.kernels.utility_value import UtilityTables, inside_j, least_inside_j, utility_of

_INF = np.inf


class Event(NamedTuple):
    """What an event places: arrays change as it does.

    Attributes
    ----------
    rows : ParallelRows
    functions : UtilityTables
        Of the rows.
    limits : ParallelLimits
        But for the energy that remains, which falls.
    options : Options
    is_left : ndarray of bool, shape (rows,)
        Rows that are not placed.
    """

    rows: ParallelRows
    functions: UtilityTables
    limits: ParallelLimits
    options: Options
    is_left: Booleans


@inner
def renew_value(event: Event, n: int, c: int, k: int) -> None:
    """Give an option its objective at its start."""
    rows, options, o = event.rows, event.options, c * event.rows.time_s.shape[2] + k
    end = options.start[n, o] + rows.time_s[n, c, k]
    utility = utility_of(event.functions, n, end - rows.arrival_s[n])
    options.value[n, o] = quotient(utility, options.divisor[n, o])


@inner
def renew_start(event: Event, profile: NodeProfile, n: int, c: int, k: int) -> None:
    """Look for an option's earliest start again."""
    rows, options, o = event.rows, event.options, c * event.rows.time_s.shape[2] + k
    options.start[n, o], spare = earliest(
        profile, c, rows.nodes[n, c], rows.time_s[n, c, k], options.start[n, o], event.limits.day_end
    )
    options.exact_until[n, o] = options.taken[c] + spare


@inner
def is_too_much(event: Event, n: int, c: int, k: int, remaining_j: float) -> bool:
    """Whether an option needs more energy within the day than remains, where it starts now."""
    rows, limits = event.rows, event.limits
    start = event.options.start[n, c * rows.time_s.shape[2] + k]
    inside = inside_j(start, rows.time_s[n, c, k], rows.energy_j[n, c, k], limits.day_end, limits.weights)
    return inside > remaining_j


@inner
def put_aside(event: Event, n: int, c: int, k: int) -> None:
    """Note that an option needs too much energy where it starts now."""
    options, pstates = event.options, event.rows.time_s.shape[2]
    o = c * pstates + k
    options.value[n, o] = -_INF
    options.aside[c, options.n_aside[c]] = n * pstates + k
    options.n_aside[c] += 1
    options.aside_until[c] = min(options.aside_until[c], options.exact_until[n, o])


@inner
def judge_all(objective: Objective, event: Event, remaining_j: float) -> None:
    """Give every option of the rows that are left its objective, or put it aside."""
    rows, options, day_end = event.rows, event.options, event.limits.day_end
    m, clusters, pstates = rows.time_s.shape
    options.n_aside[:] = 0
    options.aside_until[:] = NEVER
    for n in range(m):
        if not event.is_left[n]:
            continue
        for c in range(clusters):
            cores = float(rows.nodes[n, c] * rows.cores_per_node[c])
            for k in range(pstates):
                o = c * pstates + k
                if not options.start[n, o] < day_end:
                    continue
                options.divisor[n, o] = divisor_of(objective, rows.time_s[n, c, k], rows.cost_j[n, c, k], cores)
                if options.exact_until[n, o] >= options.taken[c] and is_too_much(event, n, c, k, remaining_j):
                    put_aside(event, n, c, k)
                else:
                    renew_value(event, n, c, k)


@inner
def best_of(value: Floats, n: int) -> tuple[float, int]:
    """Best value of row `n`, and the first option that has it."""
    best, chosen = value[n, 0], 0
    for o in range(1, value.shape[1]):
        if value[n, o] > best:
            best, chosen = value[n, o], o
    return best, chosen


@inner
def renewed_heap(value: Floats, is_left: Booleans, keys: Floats, ids: Integers) -> int:
    """Make the heap of the rows that are left; returns its size."""
    size = 0
    for n in range(len(is_left)):
        if is_left[n]:
            keys[size], ids[size] = best_of(value, n)[0], n
            size += 1
    heapify(keys, ids, size)
    return size


@inner
def look_again(event: Event, profile: NodeProfile, c: int, remaining_j: float) -> bool:
    """Look again at the options of a cluster that were put aside; whether one is admissible now.

    Those give their objective back.
    """
    options, pstates = event.options, event.rows.time_s.shape[2]
    aside, kept, some_admissible = options.aside, 0, False
    options.aside_until[c] = NEVER
    for position in range(options.n_aside[c]):
        n, k = aside[c, position] // pstates, aside[c, position] % pstates
        o = c * pstates + k
        if not event.is_left[n]:
            continue
        if options.exact_until[n, o] < options.taken[c]:
            renew_start(event, profile, n, c, k)
            if not options.start[n, o] < event.limits.day_end:
                continue
            if not is_too_much(event, n, c, k, remaining_j):
                renew_value(event, n, c, k)
                some_admissible = True
                continue
        aside[c, kept] = aside[c, position]
        options.aside_until[c] = min(options.aside_until[c], options.exact_until[n, o])
        kept += 1
    options.n_aside[c] = kept
    return some_admissible


@inner
def next_placement(
    event: Event, profile: NodeProfile, remaining_j: float, keys: Floats, ids: Integers, heap_size: int
) -> int:
    """Mend what is known of the options at the top of the heap until one is what it is taken for.

    Returns its option; -1 if nothing is left that can be placed.
    """
    options, pstates = event.options, event.rows.time_s.shape[2]
    while heap_size > 0 and keys[0] > -_INF:
        n = ids[0]
        o = best_of(options.value, n)[1]
        c, k, before = o // pstates, o % pstates, options.start[n, o]
        if options.exact_until[n, o] < options.taken[c]:
            renew_start(event, profile, n, c, k)
        if not options.start[n, o] < event.limits.day_end:
            options.value[n, o] = -_INF
        elif is_too_much(event, n, c, k, remaining_j):
            put_aside(event, n, c, k)
        elif options.start[n, o] > before:
            renew_value(event, n, c, k)
        else:
            return o
        keys[0] = best_of(options.value, n)[0]
        if not leads(keys, ids, heap_size, keys[0], n):
            sift_best(keys, ids, heap_size, 0)
    return -1


@inner
def still_may(event: Event, witness: Integers) -> bool:
    """Whether what `may_start_by` found holds still."""
    return event.is_left[witness[0]] and witness[2] == event.options.taken[witness[1]]


@inner
def may_start_by(soon: float, event: Event, profile: NodeProfile, remaining_j: float, witness: Integers) -> bool:
    """Whether anything that is left might start by `soon` [s].

    `witness` is a row and a cluster before which nothing can any more, and the nodes that were
    taken there when the row could; (0, 0, -1) at first. Starts only move later and energy only
    gets less, so nothing is looked at again.
    """
    rows, options, limits = event.rows, event.options, event.limits
    m, clusters, pstates = rows.time_s.shape
    n, c = witness[0], witness[1]
    while n < m:
        while event.is_left[n] and c < clusters:
            shortest, since = _INF, _INF
            for k in range(pstates):
                time, bound = rows.time_s[n, c, k], options.start[n, c * pstates + k]
                energy = rows.energy_j[n, c, k]
                if (
                    bound <= soon
                    and time < shortest
                    and (least_inside_j(bound, soon, time, energy, limits.day_end, limits.weights) <= remaining_j)
                ):
                    shortest, since = time, bound
            if earliest(profile, c, rows.nodes[n, c], shortest, since, soon)[0] <= soon:
                witness[0], witness[1], witness[2] = n, c, options.taken[c]
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
    pstates, remaining_j = rows.time_s.shape[2], limits.remaining_j
    options, is_left = list_options(profile, nodes, rows, limits), np.ones(len(rows.time_s), np.bool_)
    event = Event(rows, functions, limits, options, is_left)
    placed, count = no_placements(rows), 0
    witness = np.array([0, 0, -1])
    if soon < _INF and not may_start_by(soon, event, profile, remaining_j, witness):
        return first_of(placed, count)
    bits = np.empty((2, profile.bits.shape[2]), np.uint64)
    judge_all(objective, event, remaining_j)
    keys, ids = np.empty(len(is_left)), np.empty(len(is_left), np.int64)
    size = renewed_heap(options.value, is_left, keys, ids)
    while True:
        o = next_placement(event, profile, remaining_j, keys, ids, size)
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
        inside = inside_j(start, time, rows.energy_j[n, c, k], limits.day_end, limits.weights)
        remaining_j -= inside
        spent_j += inside
        size -= 1
        keys[0], ids[0] = keys[size], ids[size]
        sift_best(keys, ids, size, 0)
        if soon < _INF and not (still_may(event, witness) or may_start_by(soon, event, profile, remaining_j, witness)):
            return first_of(placed, count)
        if objective != later_objective and spent_j >= goal_j:
            objective = later_objective
            judge_all(objective, event, remaining_j)
            size = renewed_heap(options.value, is_left, keys, ids)
        elif options.taken[c] > options.aside_until[c] and look_again(event, profile, c, remaining_j):
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


@called_once
def _call_once() -> None:
    """Call the kernels of parallel tasks with utility functions once."""
    from gridsched.model.utility import UtilityFunctions
    from gridsched.systems.utility.kernels import parallel_queues
    from gridsched.systems.utility.kernels.node_profile import Reserved, cluster_nodes, node_profile
    from gridsched.systems.utility.kernels.parallel_options import UPE, ParallelLimits, ParallelRows
    from gridsched.systems.utility.kernels.utility_value import utility_tables, utility_values

    one, whole = np.ones(1), np.ones(1, dtype=np.int64)
    matrix, row = np.ones((1, 1, 1)), np.zeros(1, dtype=np.int64)
    functions = utility_tables(UtilityFunctions.exponential([1.0], 0.1))
    nodes, rows = cluster_nodes([row], 1), ParallelRows(matrix, matrix, matrix, whole[None], one, whole)
    reserved = Reserved(one + 1, one + 2, np.arange(2), row)
    limits = ParallelLimits(1.0, 1.0, 1.0, 1.0, 1.0, np.empty((3, 0)))
    profile = node_profile(nodes, one, reserved)
    utility_values(functions, row, one)
    about = nodes, profile, rows
    placed = map_parallel(UPE, UPE, 0.0, 1.0, 1.0, *about, functions, limits)
    placed_energy_j(nodes, rows, placed, limits)
    parallel_queues.place_in_cycles(*about, row, whole, limits, False)
    parallel_queues.place_easily(*about, False, limits, False)
    parallel_queues.place_randomly(*about, np.zeros((1, 1)), limits)
