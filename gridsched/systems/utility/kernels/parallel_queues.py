"""Compiled comparison heuristics of paper 001 (algorithms C4), on several clusters.

They take tasks in order of arrival and reserve what cannot start now. A place that starts at or
after the day's end, or needs more energy inside the day than remains, is none. Times [s],
energies [J].
"""

from __future__ import annotations

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.systems.utility.kernels import inner, kernel
from gridsched.systems.utility.kernels.node_gaps import NodeProfile, earliest
from gridsched.systems.utility.kernels.node_profile import ClusterNodes
from gridsched.systems.utility.kernels.parallel_options import (
    ParallelLimits,
    ParallelRows,
    Placed,
    first_of,
    no_placements,
    passes_filter,
    place,
)
from gridsched.systems.utility.kernels.utility_value import inside_j

_INF = np.inf


@inner
def start_of(
    profile: NodeProfile, rows: ParallelRows, limits: ParallelLimits, n: int, c: int, k: int, remaining_j: float
) -> float:
    """Earliest start of an option [s]; infinite if it is not admissible."""
    time, width, day_end = rows.time_s[n, c, k], rows.nodes[n, c], limits.day_end
    cores = float(width * rows.cores_per_node[c])
    if time == _INF or not passes_filter(
        time, rows.cost_j[n, c, k], cores, limits.task_budget_j, limits.resource_budget_w
    ):
        return _INF
    start, _ = earliest(profile, c, width, time, -_INF, day_end)
    energy = rows.energy_j[n, c, k]
    if start < day_end and inside_j(start, time, energy, day_end, limits.weights) <= remaining_j:
        return start
    return _INF


@inner
def soonest(
    profile: NodeProfile, rows: ParallelRows, limits: ParallelLimits, n: int, remaining_j: float, first_cluster: bool
) -> tuple[float, int]:
    """Earliest start in P-state 0 and its cluster; infinite and -1 if there is none.

    Of several clusters the one of the lowest id, unless `first_cluster` is false: then the one of
    the earliest finish comes before it.
    """
    best, finish, chosen = _INF, _INF, -1
    for c in range(rows.time_s.shape[1]):
        start = start_of(profile, rows, limits, n, c, 0, remaining_j)
        end = start + rows.time_s[n, c, 0]
        if start < best or (start == best and end < finish and not first_cluster):
            best, finish, chosen = start, end, c
            if first_cluster and start <= limits.now:
                break
    return best, chosen


@inner
def next_of(queue_of: Integers, queue: int, n: int) -> int:
    """First row from `n` on that is in the queue; the number of rows if there is none."""
    while n < len(queue_of) and queue_of[n] != queue:
        n += 1
    return n


@kernel
def place_in_cycles(
    nodes: ClusterNodes,
    profile: NodeProfile,
    rows: ParallelRows,
    queue_of: Integers,
    quotas: Integers,
    limits: ParallelLimits,
    first_cluster: bool,
) -> Placed:
    """Give each task the earliest start; the queues take turns with so many tasks each.

    Parameters
    ----------
    nodes : ClusterNodes
    profile : NodeProfile
        It is used up.
    rows : ParallelRows
        In order of arrival.
    queue_of : ndarray of int64, shape (rows,)
    quotas : ndarray of int64, shape (queues,)
        Tasks that each queue may place in a cycle.
    limits : ParallelLimits
    first_cluster : bool
        As in `soonest`.

    Returns
    -------
    Placed
    """
    m, remaining_j = len(queue_of), limits.remaining_j
    placed, count = no_placements(rows), 0
    bits = np.empty((2, profile.bits.shape[2]), np.uint64)
    heads = np.zeros(len(quotas), np.int64)
    for queue in range(len(quotas)):
        heads[queue] = next_of(queue_of, queue, 0)
    while (heads < m).any():
        for queue in range(len(quotas)):
            before = count
            while heads[queue] < m and count - before < quotas[queue]:
                n = heads[queue]
                heads[queue] = next_of(queue_of, queue, n + 1)
                start, c = soonest(profile, rows, limits, n, remaining_j, first_cluster)
                if c >= 0:
                    profile = place(profile, nodes, rows, placed, count, n, c, 0, start, bits)
                    count += 1
                    remaining_j -= inside_j(
                        start, rows.time_s[n, c, 0], rows.energy_j[n, c, 0], limits.day_end, limits.weights
                    )
    return first_of(placed, count)


@kernel
def place_easily(
    nodes: ClusterNodes,
    profile: NodeProfile,
    rows: ParallelRows,
    reservation_exists: bool,
    limits: ParallelLimits,
    first_cluster: bool,
) -> Placed:
    """EASY: each task starts now if it can; one that cannot is reserved, if none is so far.

    Parameters
    ----------
    nodes, profile, rows
        As in `place_in_cycles`.
    reservation_exists : bool
    limits, first_cluster
        As in `place_in_cycles`.

    Returns
    -------
    Placed
    """
    remaining_j = limits.remaining_j
    placed, count = no_placements(rows), 0
    bits = np.empty((2, profile.bits.shape[2]), np.uint64)
    for n in range(len(rows.time_s)):
        start, c = soonest(profile, rows, limits, n, remaining_j, first_cluster)
        if c < 0 or (start > limits.now and reservation_exists):
            continue
        reservation_exists |= start > limits.now
        profile = place(profile, nodes, rows, placed, count, n, c, 0, start, bits)
        count += 1
        remaining_j -= inside_j(start, rows.time_s[n, c, 0], rows.energy_j[n, c, 0], limits.day_end, limits.weights)
    return first_of(placed, count)


@kernel
def place_randomly(
    nodes: ClusterNodes, profile: NodeProfile, rows: ParallelRows, uniforms: Floats, limits: ParallelLimits
) -> Placed:
    """Give each task a random cluster and P-state; another of the rest if it is not admissible.

    Parameters
    ----------
    nodes, profile, rows
        As in `place_in_cycles`.
    uniforms : ndarray, shape (rows, clusters * P-states)
        Numbers in [0, 1).
    limits
        As in `place_in_cycles`.

    Returns
    -------
    Placed
    """
    m, clusters, pstates = rows.time_s.shape
    remaining_j = limits.remaining_j
    placed, count = no_placements(rows), 0
    bits = np.empty((2, profile.bits.shape[2]), np.uint64)
    pairs = np.empty(clusters * pstates, np.int64)
    for n in range(m):
        left = 0
        for o in range(clusters * pstates):
            if rows.time_s[n, o // pstates, o % pstates] < _INF:
                pairs[left] = o
                left += 1
        draw = 0
        while left > 0:
            position = int(uniforms[n, draw] * left)
            draw += 1
            c, k = pairs[position] // pstates, pairs[position] % pstates
            start = start_of(profile, rows, limits, n, c, k, remaining_j)
            if start < _INF:
                profile = place(profile, nodes, rows, placed, count, n, c, k, start, bits)
                count += 1
                remaining_j -= inside_j(
                    start, rows.time_s[n, c, k], rows.energy_j[n, c, k], limits.day_end, limits.weights
                )
                break
            left -= 1
            pairs[position:left] = pairs[position + 1 : left + 1]
    return first_of(placed, count)
