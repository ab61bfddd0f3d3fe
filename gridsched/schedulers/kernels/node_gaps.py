"""Gaps of a cluster's nodes as plain arrays: the earliest place for a task, and taking nodes.

The arrays are those of `node_profile.NodeProfile`. Inner functions take plain arrays, not tuples
of them, for speed; see `two_stage_options` on numba's cache. Times [s].
"""

from __future__ import annotations

import numpy as np

from gridsched.schedulers.kernels.compiled import inner

_INF = np.inf
_ZERO, _ONE = np.uint64(0), np.uint64(1)
#: Bits of a word.
WORD = 64


# ---------------------------------------------------------------------- bits


@inner
def bit_count(word):
    """Number of bits that are set."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    pairs = np.uint64(0x3333333333333333)
    word = (word & pairs) + ((word >> np.uint64(2)) & pairs)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inner
def lowest_bits(word, n):
    """Return the `n` lowest of the bits that are set; all where there are no more."""
    rest = word
    for _ in range(n):
        if rest == _ZERO:
            break
        rest &= rest - _ONE
    return word ^ rest


@inner
def write_hosts(chosen, first, hosts, out, at):
    """Write the ids of the nodes in the bits `chosen` from `out[at]` on, ascending."""
    for w in range(len(chosen)):
        word = chosen[w]
        while word != _ZERO:
            lowest = word & (~word + _ONE)
            out[at] = hosts[first + w * WORD + bit_count(lowest - _ONE)]
            at += 1
            word ^= lowest
    return at


# ---------------------------------------------------------------------- the table of gaps


@inner
def place_in(order, keys, c, size, key):
    """First place in `order` whose row has at least `key`."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if keys[c, order[c, middle]] < key:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def add_gap(begin, end, count, bits, by_begin, by_end, size, c, from_s, until_s, some, n):
    """Give `n` nodes, the bits `some`, a gap; there must be room for a further row. Return it."""
    k = place_in(by_begin, begin, c, size[c], from_s)
    at = k
    while at < size[c] and begin[c, by_begin[c, at]] == from_s:
        row = by_begin[c, at]
        if end[c, row] == until_s:
            count[c, row] += n
            for w in range(len(some)):
                bits[c, row, w] |= some[w]
            return row
        at += 1
    row = by_begin[c, size[c]]
    begin[c, row], end[c, row], count[c, row] = from_s, until_s, n
    for w in range(len(some)):
        bits[c, row, w] = some[w]
    for later in range(size[c], k, -1):
        by_begin[c, later] = by_begin[c, later - 1]
    by_begin[c, k] = row
    k = size[c] if until_s == _INF else place_in(by_end, end, c, size[c], until_s)
    for later in range(size[c], k, -1):
        by_end[c, later] = by_end[c, later - 1]
    by_end[c, k] = row
    size[c] += 1
    return row


@inner
def remove_gap(begin, end, by_begin, by_end, size, c, row):
    """Take a row out that no node has any more."""
    size[c] -= 1
    k = place_in(by_end, end, c, size[c] + 1, end[c, row])
    while by_end[c, k] != row:
        k += 1
    for later in range(k, size[c]):
        by_end[c, later] = by_end[c, later + 1]
    k = place_in(by_begin, begin, c, size[c] + 1, begin[c, row])
    while by_begin[c, k] != row:
        k += 1
    for later in range(k, size[c]):
        by_begin[c, later] = by_begin[c, later + 1]
    by_begin[c, size[c]] = row


# ---------------------------------------------------------------------- places for a task


@inner
def earliest(begin, end, count, by_begin, by_end, size, c, n, run_time, latest):
    """Earliest start of `n` nodes of cluster `c` for `run_time` [s] (algorithms C3).

    Returns
    -------
    start : float
        [s]; infinite if there are not so many nodes at any time until `latest` [s].
    spare : int
        Nodes beyond `n` that are free from then on as long.
    """
    available, k, passed, rows = 0, 0, 0, size[c]
    while k < rows:
        start = begin[c, by_begin[c, k]]
        if start > latest:
            break
        until = start + run_time
        while k < rows:
            row = by_begin[c, k]
            if begin[c, row] != start:
                break
            if until <= end[c, row]:
                available += count[c, row]
            k += 1
        while passed < rows:  # gaps that would have been long enough, but end too early by now
            row = by_end[c, passed]
            if not end[c, row] < until:
                break
            if begin[c, row] + run_time <= end[c, row]:
                available -= count[c, row]
            passed += 1
        if available >= n:
            return start, available - n
    return _INF, 0


@inner
def voids(begin, end, c, row, start, until):
    """Change of the number of idle voids if a task fills `start` to `until` of a gap."""
    net = 0
    if start > begin[c, row]:
        net += 1
    if end[c, row] < _INF:
        net -= 1
        if until < end[c, row]:
            net += 1
    return net


@inner
def choose_nodes(begin, end, count, bits, by_begin, size, c, start, until, n, chosen, work):
    """Choose `n` nodes that are free from `start` to `until`: fewest voids, smallest gaps, ids.

    Writes their bits to `chosen` (zeroed before), the rows they may lie in to the end of what
    is used of `work`; returns where that begins and ends.
    """
    m = 0
    for k in range(size[c]):
        row = by_begin[c, k]
        if begin[c, row] > start:
            break
        if until <= end[c, row]:
            work[m] = row
            m += 1
    used, left = m, n
    while left > 0 and m > 0:
        fewest, smallest = 2, _INF
        for k in range(m):
            row = work[k]
            net, gap = voids(begin, end, c, row, start, until), end[c, row] - begin[c, row]
            if net < fewest or (net == fewest and gap < smallest):
                fewest, smallest = net, gap
        total, alike = 0, m
        k = 0
        while k < alike:  # bring the rows that are alike to the end of what is left
            row = work[k]
            gap = end[c, row] - begin[c, row]
            if gap == smallest and voids(begin, end, c, row, start, until) == fewest:
                total += count[c, row]
                alike -= 1
                work[k], work[alike] = work[alike], row
            else:
                k += 1
        every = total <= left
        for w in range(len(chosen)):
            word = _ZERO
            for k in range(alike, m):
                word |= bits[c, work[k], w]
            if not every:
                word = lowest_bits(word, left)
                left -= bit_count(word)
            chosen[w] |= word
        if every:
            left -= total
        m = alike
    return m, used


@inner
def take(
    begin, end, count, bits, by_begin, by_end, size, c, start, run_time, n, chosen, some, work
):  # fmt: skip
    """Give a task its nodes from `start` on; their bits are in `chosen` then.

    `some` are bits, `work` is room for as many rows as there are, to work with.
    """
    until = start + run_time
    for w in range(len(chosen)):
        chosen[w] = _ZERO
    low, high = choose_nodes(
        begin, end, count, bits, by_begin, size, c, start, until, n, chosen, work
    )
    for k in range(low, high):
        row = work[k]
        taken = 0
        for w in range(len(chosen)):
            some[w] = bits[c, row, w] & chosen[w]
            bits[c, row, w] ^= some[w]
            taken += bit_count(some[w])
        if taken == 0:
            continue
        from_s, until_s = begin[c, row], end[c, row]
        count[c, row] -= taken
        if count[c, row] == 0:
            remove_gap(begin, end, by_begin, by_end, size, c, row)
        if from_s < start:
            add_gap(
                begin, end, count, bits, by_begin, by_end, size, c, from_s, start, some, taken
            )  # fmt: skip
        if until < until_s:
            add_gap(
                begin, end, count, bits, by_begin, by_end, size, c, until, until_s, some, taken
            )  # fmt: skip
