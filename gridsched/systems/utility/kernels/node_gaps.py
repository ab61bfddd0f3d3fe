"""Gaps of a cluster's nodes as plain arrays: the earliest place for a task, and taking nodes.

See `two_stage_options` on numba's cache. Times [s].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsched.arrays import Floats, Integers, Words
from gridsched.systems.utility.kernels import inner

_INF = np.inf
_ZERO, _ONE = np.uint64(0), np.uint64(1)
#: Bits of a word.
WORD = 64


class NodeProfile(NamedTuple):
    """The gaps of all nodes, in ascending order of their begins.

    Attributes
    ----------
    begin, end : ndarray, shape (clusters, room)
        [s]; an end is infinite where nothing follows.
    n_nodes : ndarray of int64, shape (clusters, room)
        Nodes that have the gap.
    bits : ndarray of uint64, shape (clusters, room, words)
        Which they are; the rows are in any order.
    bits_of : ndarray of int64, shape (clusters, room)
        Row of `bits` of each gap; behind `size` of them the unused rows.
    size : ndarray of int64, shape (clusters,)
    places : ndarray of int64, shape (2, room)
        To work with.
    """

    begin: Floats
    end: Floats
    n_nodes: Integers
    bits: Words
    bits_of: Integers
    size: Integers
    places: Integers


@inner
def bit_count(word: np.uint64) -> np.int64:
    """Number of bits that are set."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    pairs = np.uint64(0x3333333333333333)
    word = (word & pairs) + ((word >> np.uint64(2)) & pairs)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inner
def lowest_bits(word: np.uint64, n: int) -> np.uint64:
    """Return the `n` lowest of the bits that are set; all where there are no more."""
    rest = word
    for _ in range(n):
        if rest == _ZERO:
            break
        rest &= rest - _ONE
    return word ^ rest


@inner
def write_hosts(chosen: Words, first: int, hosts: Integers, out: Integers, at: int) -> int:
    """Write the ids of the nodes in the bits `chosen` from `out[at]` on, ascending."""
    for w in range(len(chosen)):
        word = chosen[w]
        while word != _ZERO:
            lowest = word & (~word + _ONE)
            out[at] = hosts[first + w * WORD + bit_count(lowest - _ONE)]
            at += 1
            word ^= lowest
    return at


@inner
def place_of(profile: NodeProfile, c: int, key: float) -> int:
    """First place of cluster `c` whose gap begins at `key` or later."""
    begin, place = profile.begin, 0
    for k in range(profile.size[c]):  # no branches: several are looked at together
        place += 1 if begin[c, k] < key else 0
    return place


@inner
def place_behind(profile: NodeProfile, c: int, key: float) -> int:
    """First place of cluster `c` whose gap begins later than `key`."""
    place = place_of(profile, c, key)
    while place < profile.size[c] and profile.begin[c, place] == key:
        place += 1
    return place


@inner
def open_place(values: Floats | Integers, c: int, k: int, size: int) -> None:
    """Move what is at place `k` and behind it on by one."""
    # unsigned: whether a place is negative, and so counts from the end, need not be looked at
    cluster, first, place, one = np.uint64(c), np.uint64(k), np.uint64(size), np.uint64(1)
    while place > first:
        values[cluster, place] = values[cluster, place - one]
        place -= one


@inner
def close_place(values: Floats | Integers, c: int, k: int, size: int) -> None:
    """Move what is behind place `k` back by one."""
    cluster, last, place, one = np.uint64(c), np.uint64(size - 1), np.uint64(k), np.uint64(1)
    while place < last:
        values[cluster, place] = values[cluster, place + one]
        place += one


@inner
def add_gap(profile: NodeProfile, c: int, from_s: float, until_s: float, some: Words, n: int, behind: int) -> int:
    """Give `n` nodes, the bits `some`, a gap; there must be room for a further one.

    A new one comes before others with the same begin, but behind the place `behind`. Returns
    its place.
    """
    begin, end, count, bits, bits_of, size, _ = profile
    k = place_of(profile, c, from_s)
    same = k
    while same < size[c] and begin[c, same] == from_s:
        if end[c, same] == until_s:
            row = bits_of[c, same]
            count[c, same] += n
            for w in range(len(some)):
                bits[c, row, w] |= some[w]
            return same
        same += 1
    k, row = max(k, behind + 1), bits_of[c, size[c]]
    open_place(begin, c, k, size[c])
    open_place(end, c, k, size[c])
    open_place(count, c, k, size[c])
    open_place(bits_of, c, k, size[c])
    begin[c, k], end[c, k], count[c, k], bits_of[c, k] = from_s, until_s, n, row
    for w in range(len(some)):
        bits[c, row, w] = some[w]
    size[c] += 1
    return k


@inner
def remove_gap(profile: NodeProfile, c: int, k: int) -> None:
    """Take a gap out that no node has any more."""
    size, row = profile.size, profile.bits_of[c, k]
    close_place(profile.begin, c, k, size[c])
    close_place(profile.end, c, k, size[c])
    close_place(profile.n_nodes, c, k, size[c])
    close_place(profile.bits_of, c, k, size[c])
    size[c] -= 1
    profile.bits_of[c, size[c]] = row


@inner
def free_until(profile: NodeProfile, c: int, gaps: int, until: float) -> int:
    """Nodes of the first so many gaps that end at `until` or later."""
    end, count, nodes = profile.end, profile.n_nodes, 0
    for k in range(gaps):  # as in `place_of`
        n = count[c, k]
        nodes += n if until <= end[c, k] else 0
    return nodes


@inner
def earliest(profile: NodeProfile, c: int, n: int, run_time: float, since: float, latest: float) -> tuple[float, int]:
    """Earliest start of `n` nodes of cluster `c` for `run_time` [s] (algorithms C3).

    It must be known that there is none before `since` [s]. Behind a candidate, the next is the
    first that would do if no gap ended meanwhile.

    Returns
    -------
    start : float
        [s]; infinite if there are not so many nodes at any time until `latest` [s].
    spare : int
        Nodes beyond `n` that are free from then on as long.
    """
    begin, end, count = profile.begin, profile.end, profile.n_nodes
    start, k = since, place_behind(profile, c, since)
    cluster, gaps, one = np.uint64(c), np.uint64(profile.size[c]), np.uint64(1)  # as in `open_place`
    while start <= latest:
        missing = n - free_until(profile, c, k, start + run_time)
        if missing <= 0:
            return start, -missing
        place = np.uint64(k)
        while missing > 0 and place < gaps:
            more = count[cluster, place]
            missing -= more if begin[cluster, place] + run_time <= end[cluster, place] else 0
            place += one
        if missing > 0:
            break
        start = begin[cluster, place - one]
        while place < gaps and begin[cluster, place] == start:
            place += one
        k = np.int64(place)
    return _INF, 0


@inner
def voids(profile: NodeProfile, c: int, k: int, start: float, until: float) -> int:
    """Change of the number of idle voids if a task fills `start` to `until` of a gap."""
    net, end = 0, profile.end
    if start > profile.begin[c, k]:
        net += 1
    if end[c, k] < _INF:
        net -= 1
        if until < end[c, k]:
            net += 1
    return net


@inner
def choose_nodes(profile: NodeProfile, c: int, start: float, until: float, n: int, chosen: Words) -> np.int64:
    """Choose `n` nodes that are free from `start` to `until`: fewest voids, smallest gaps, ids.

    Writes their bits to `chosen`, which is zero, and the places of all gaps that suffice to
    ``profile.places[0]``, ascending; returns how many these are.
    """
    begin, end, count, bits, bits_of, _, work = profile
    candidates, behind = np.uint64(0), np.uint64(place_behind(profile, c, start))
    for k in range(behind):  # unsigned as in `open_place`, and without branches
        work[0, candidates] = k
        candidates += np.uint64(1) if until <= end[c, k] else np.uint64(0)
    every = np.int64(candidates)
    for position in range(every):
        work[1, position] = work[0, position]
    left, m = n, every
    while left > 0 and m > 0:
        fewest, smallest = 2, _INF
        for position in range(m):
            k = work[1, position]
            net, gap = voids(profile, c, k, start, until), end[c, k] - begin[c, k]
            if net < fewest or (net == fewest and gap < smallest):
                fewest, smallest = net, gap
        total, alike, position = 0, m, 0
        while position < alike:  # bring the gaps that are alike to the end of what is left
            k = work[1, position]
            gap = end[c, k] - begin[c, k]
            if gap == smallest and voids(profile, c, k, start, until) == fewest:
                total += count[c, k]
                alike -= 1
                work[1, position], work[1, alike] = work[1, alike], k
            else:
                position += 1
        all_fit = total <= left
        for w in range(len(chosen)):
            word = _ZERO
            for position in range(alike, m):
                word |= bits[c, bits_of[c, work[1, position]], w]
            if not all_fit:
                word = lowest_bits(word, left)
                left -= bit_count(word)
            chosen[w] |= word
        if all_fit:
            left -= total
        m = alike
    return every


@inner
def take(profile: NodeProfile, c: int, start: float, run_time: float, n: int, chosen: Words, some: Words) -> None:
    """Give a task its nodes from `start` on; their bits are in `chosen` then.

    `some` are bits to work with.
    """
    begin, end, count, bits, bits_of, _, work = profile
    until = start + run_time
    for w in range(len(chosen)):
        chosen[w] = _ZERO
    every = choose_nodes(profile, c, start, until, n, chosen)
    for position in range(every - 1, -1, -1):  # places behind may move
        k = work[0, position]
        row, taken = bits_of[c, k], 0
        for w in range(len(chosen)):
            some[w] = bits[c, row, w] & chosen[w]
            taken += bit_count(some[w])
        if taken == 0:
            continue
        from_s, until_s = begin[c, k], end[c, k]
        if taken == count[c, k] and from_s < start:
            end[c, k] = start
        elif taken == count[c, k]:
            remove_gap(profile, c, k)
        else:
            count[c, k] -= taken
            for w in range(len(chosen)):
                bits[c, row, w] ^= some[w]
            if from_s < start:
                add_gap(profile, c, from_s, start, some, taken, k)
        if until < until_s:
            add_gap(profile, c, until, until_s, some, taken, -1)
