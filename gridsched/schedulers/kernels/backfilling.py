"""Compiled rules that say which rigid jobs of a queue start now (algorithms I). Times [s].

The queue is given by ids of jobs in order: places in `run_time` (estimated) and `width`. What runs
is given by `end` (estimated) and `nodes`, in any order. Each fills `starts`, which is no shorter
than the queue, with ids in order of starting, and returns how many there are: an array made here
and handed out would cost as much as the rule.
"""

from __future__ import annotations

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.schedulers.kernels import interpreted_at_first, kernel


@interpreted_at_first(lambda *_: 10)
def fcfs_starts(queue: Integers, width: Integers, n_free: int, starts: Integers) -> int:
    """The head of the queue starts while it fits."""
    k = 0
    while k < len(queue) and width[queue[k]] <= n_free:
        n_free -= width[queue[k]]
        starts[k] = queue[k]
        k += 1
    return k


@kernel
def _any_fits(queue: Integers, width: Integers, n_free: int) -> bool:
    """Whether any job of the queue fits on the free nodes."""
    fits = False
    for job in queue:
        fits |= width[job] <= n_free
    return fits


@kernel
def _sorted_ends(
    now: float, end: Floats, nodes: Integers, queue: Integers, run_time: Floats, width: Integers, n_started: int
) -> tuple[Floats, Integers]:
    """Estimated ends, ascending, and the nodes that each sets free.

    Of what runs, and of the first `n_started` jobs of the queue, which start now. What has
    outlived its estimate ends in the next moment.
    """
    n = len(end)
    ends, freed = np.empty(n + n_started), np.empty(n + n_started, dtype=np.int64)
    for k in range(n):
        ends[k] = end[k] if end[k] > now else np.nextafter(now, np.inf)
        freed[k] = nodes[k]
    for k in range(n_started):
        ends[n + k], freed[n + k] = now + run_time[queue[k]], width[queue[k]]
    order = np.argsort(ends)
    return ends[order], freed[order]


@interpreted_at_first(lambda now, queue, run_time, width, n_free, end, *_: 10 + (len(queue) + len(end)) // 5)
def easy_starts(
    now: float,
    queue: Integers,
    run_time: Floats,
    width: Integers,
    n_free: int,
    end: Floats,
    nodes: Integers,
    starts: Integers,
) -> int:
    """EASY: jobs overtake the head that does not fit, without delaying it."""
    m = len(queue)
    head = 0
    while head < m and width[queue[head]] <= n_free:
        starts[head] = queue[head]
        n_free -= width[queue[head]]
        head += 1
    count = head
    if head >= m - 1 or n_free == 0:
        return count
    if not _any_fits(queue[head + 1 :], width, n_free):
        return count
    ends, freed = _sorted_ends(now, end, nodes, queue, run_time, width, head)
    needed = width[queue[head]]
    shadow, then, k = np.inf, n_free, 0
    while k < len(ends):
        then += freed[k]
        k += 1
        if then >= needed and (k == len(ends) or ends[k] != ends[k - 1]):
            shadow = ends[k - 1]
            break
    extra = then - needed
    for job in queue[head + 1 :]:
        if width[job] > n_free:
            continue
        if now + run_time[job] > shadow:
            if width[job] > extra:
                continue
            extra -= width[job]
        starts[count] = job
        count += 1
        n_free -= width[job]
        if n_free == 0:
            break
    return count


@kernel
def _reserve(time: Floats, free: Integers, n: int, begin: float, until: float, width: int) -> int:
    """Take `width` nodes from `begin` on until `until` out of a profile of `n` steps.

    Returns
    -------
    n : int
        Steps of the profile afterwards.
    """
    for edge in (begin, until):
        k = np.searchsorted(time[:n], edge)
        if k == n or time[k] != edge:
            for later in range(n, k, -1):
                time[later], free[later] = time[later - 1], free[later - 1]
            time[k], free[k] = edge, free[k - 1]
            n += 1
    k = np.searchsorted(time[:n], begin)
    while k < n and time[k] < until:
        free[k] -= width
        k += 1
    return n


@kernel
def _earliest(time: Floats, free: Integers, n: int, run_time: float, width: int) -> int:
    """Step of a profile of `n` steps at which the job can begin at the earliest.

    -1 if the profile never has so many nodes, because some are off.
    """
    first = 0
    while True:
        while first < n and free[first] < width:
            first += 1
        if first == n:
            return -1
        until, k = time[first] + run_time, first + 1
        while k < n and time[k] < until and free[k] >= width:
            k += 1
        if k == n or time[k] >= until:
            return first
        first = k


@interpreted_at_first(lambda now, queue, run_time, width, n_free, end, *_: 20 + len(queue) * (len(queue) + len(end)))
def conservative_starts(
    now: float,
    queue: Integers,
    run_time: Floats,
    width: Integers,
    n_free: int,
    end: Floats,
    nodes: Integers,
    starts: Integers,
) -> int:
    """Conservative: each job, in order, gets the earliest start; those that get `now` start."""
    m, count = len(queue), 0
    if not _any_fits(queue, width, n_free):
        return count
    ends, freed = _sorted_ends(now, end, nodes, queue, run_time, width, 0)
    room = len(ends) + 2 * m + 1
    time, free = np.empty(room), np.empty(room, dtype=np.int64)
    time[0], free[0], n = now, n_free, 1
    for k in range(len(ends)):
        if ends[k] != time[n - 1]:
            time[n], free[n] = ends[k], free[n - 1]
            n += 1
        free[n - 1] += freed[k]
    for job in queue:
        first = _earliest(time, free, n, run_time[job], width[job])
        if first < 0:
            continue
        begin = time[first]
        if begin == now:
            starts[count] = job
            count += 1
            n_free -= width[job]
            if n_free == 0:
                break
        n = _reserve(time, free, n, begin, begin + run_time[job], width[job])
    return count
