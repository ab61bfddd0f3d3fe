"""What is free on the nodes of each cluster from now on, and the earliest place for a task.

A *gap* is a time in which a node runs nothing (algorithms C3). Nodes with equal gaps share one
row: begin, end, their number and, as bits, which nodes they are. So cost follows what runs and is
placed, not the nodes. The nodes of a cluster are numbered from 0 in order of their ids. Times [s].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsched.arrays import Floats, Integers, Words
from gridsched.systems.utility.kernels import inner, kernel
from gridsched.systems.utility.kernels.node_gaps import WORD, NodeProfile, add_gap

_INF = np.inf
_FIRST_ROOM = 64


class ClusterNodes(NamedTuple):
    """Which nodes each cluster has; it does not change during a run.

    Attributes
    ----------
    first : ndarray of int64, shape (clusters + 1,)
    hosts : ndarray of int64
        Nodes of cluster c: ``hosts[first[c]:first[c + 1]]``, ascending.
    cluster_of, number_of : ndarray of int64, shape (hosts,)
        Cluster of each node, and its number there; -1 for hosts of none.
    """

    first: Integers
    hosts: Integers
    cluster_of: Integers
    number_of: Integers


class Reserved(NamedTuple):
    """Allocations that are fixed but have not started, in any order.

    Attributes
    ----------
    start, end : ndarray, shape (reservations,)
        [s].
    offsets, hosts : ndarray of int64
        Nodes of reservation r: ``hosts[offsets[r]:offsets[r + 1]]``.
    """

    start: Floats
    end: Floats
    offsets: Integers
    hosts: Integers


def cluster_nodes(clusters: list[Integers], n_hosts: int) -> ClusterNodes:
    """Return the table of the hosts of each cluster."""
    ordered = [np.sort(np.asarray(hosts, dtype=np.int64)) for hosts in clusters]
    first = np.cumsum([0, *(len(hosts) for hosts in ordered)], dtype=np.int64)
    cluster_of, number_of = np.full((2, n_hosts), -1, dtype=np.int64)
    for c, hosts in enumerate(ordered):
        cluster_of[hosts], number_of[hosts] = c, np.arange(len(hosts))
    every = np.concatenate([*ordered, np.empty(0, dtype=np.int64)])
    return ClusterNodes(first, every, cluster_of.copy(), number_of.copy())


@kernel
def with_room(profile: NodeProfile, needed: int) -> NodeProfile:
    """Return a profile with room for `needed` gaps of each cluster; the same one if it has it."""
    clusters, room = profile.begin.shape
    if needed <= room:
        return profile
    larger = empty_profile(clusters, max(needed, 2 * room), profile.bits.shape[2])
    for c in range(clusters):
        larger.begin[c, :room], larger.end[c, :room] = profile.begin[c], profile.end[c]
        larger.n_nodes[c, :room], larger.bits[c, :room] = profile.n_nodes[c], profile.bits[c]
        larger.bits_of[c, :room], larger.size[c] = profile.bits_of[c], profile.size[c]
    return larger


@kernel
def empty_profile(clusters: int, room: int, words: int) -> NodeProfile:
    """Return a profile without gaps."""
    bits_of = np.empty((clusters, room), np.int64)
    for c in range(clusters):
        for row in range(room):
            bits_of[c, row] = row
    return NodeProfile(
        np.empty((clusters, room)),
        np.empty((clusters, room)),
        np.empty((clusters, room), np.int64),
        np.empty((clusters, room, words), np.uint64),
        bits_of,
        np.zeros(clusters, np.int64),
        np.empty((2, room), np.int64),
    )


@kernel
def node_profile(nodes: ClusterNodes, free_at: Floats, reserved: Reserved) -> NodeProfile:
    """Return the gaps that running work and reservations leave.

    Parameters
    ----------
    nodes : ClusterNodes
    free_at : ndarray, shape (hosts,)
        When each node gets free of what runs there [s], not before now; infinite if it is off.
    reserved : Reserved
    """
    clusters, most = len(nodes.first) - 1, 1
    for c in range(clusters):
        most = max(most, nodes.first[c + 1] - nodes.first[c])
    profile = empty_profile(clusters, _FIRST_ROOM, (most + WORD - 1) // WORD)
    since, one = free_at.copy(), np.zeros(profile.bits.shape[2], np.uint64)
    for r in np.argsort(reserved.start):
        low, high = reserved.offsets[r], reserved.offsets[r + 1]
        if low == high:
            continue
        needed = profile.size[nodes.cluster_of[reserved.hosts[low]]] + high - low
        if needed > profile.begin.shape[1]:  # a call costs as much as the rest
            profile = with_room(profile, needed)
        _add_gaps(profile, nodes, reserved.hosts, low, high, since, reserved.start[r], one)
        for position in range(low, high):
            host = reserved.hosts[position]
            since[host] = max(since[host], reserved.end[r])
    for c in range(clusters):
        low, high = nodes.first[c], nodes.first[c + 1]
        profile = with_room(profile, profile.size[c] + high - low)
        _add_gaps(profile, nodes, nodes.hosts, low, high, since, _INF, one)
    return profile


@inner
def _add_gaps(
    profile: NodeProfile,
    nodes: ClusterNodes,
    hosts: Integers,
    low: int,
    high: int,
    since: Floats,
    until_s: float,
    one: Words,
) -> None:
    """Give hosts of one cluster, ``hosts[low:high]``, their gaps until `until_s`.

    The profile has room for them; `one` are zeroed bits to work with.
    """
    number_of, k = nodes.number_of, -1
    for position in range(low, high):
        host = hosts[position]
        c, from_s = nodes.cluster_of[host], since[host]
        if not from_s < until_s:
            continue
        word, bit = number_of[host] // WORD, np.uint64(1) << np.uint64(number_of[host] % WORD)
        if k >= 0 and profile.begin[c, k] == from_s:
            profile.n_nodes[c, k] += 1
            profile.bits[c, profile.bits_of[c, k], word] |= bit
            continue
        one[word] = bit
        k = add_gap(profile, c, from_s, until_s, one, 1, -1)
        one[word] = np.uint64(0)


@kernel
def first_starts(profile: NodeProfile, c: int, n_nodes: int) -> tuple[Floats, Integers]:
    """Return what is easily computed of starts in a cluster of `n_nodes` nodes.

    With i + 1 nodes a task can start no earlier than ``starts[i]``; exactly then, with
    ``spare[i]`` more nodes free from then on, where nothing is reserved (else ``spare`` is -1).
    """
    starts, spare = np.full(n_nodes, _INF), np.full(n_nodes, -1, np.int64)
    free, k, low, bounded = 0, 0, 0, False
    while k < profile.size[c]:
        begin = profile.begin[c, k]
        while k < profile.size[c] and profile.begin[c, k] == begin:
            free += profile.n_nodes[c, k]
            bounded |= profile.end[c, k] < _INF
            k += 1
        high = min(free, n_nodes)
        for i in range(low, high):
            starts[i], spare[i] = begin, free - i - 1
        low = max(low, high)
    if bounded:
        spare[:] = -1
    return starts, spare
