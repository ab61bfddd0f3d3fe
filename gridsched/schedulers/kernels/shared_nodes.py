"""Compiled rules that say which jobs start now on nodes that they share, and where. Times [s].

A job has `width` equal parts that take `demand` of their node each: on nodes of their own, or
anywhere. What nodes have left is an array of shape (hosts, resources), cores first. Each rule fills
`starts` with ids of jobs in order of starting and `places` with their hosts, one after the other,
once for each part; it returns how many jobs start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.schedulers.kernels import inner, interpreted_at_first, kernel

PACK, SPREAD, CONTIGUOUS = 0, 1, 2


class Jobs(NamedTuple):
    """What is known of jobs, by id: see `gridsched.model.tasks.SharedJobs`; estimated run times [s]."""

    demand: Integers
    anywhere: Booleans
    partition: Integers
    width: Integers
    run_time: Floats


class Machine(NamedTuple):
    """Hosts of each partition, one after the other, where each begins, and which hosts are in each.

    How jobs are laid on them, and an array to work in, as long as there are cores.
    """

    hosts: Integers
    offsets: Integers
    members: Booleans
    place: int
    work: Integers


class Running(NamedTuple):
    """What runs: estimated ends [s], and the rows and the pool of `SharedNodesState`."""

    end: Floats
    rows: Integers
    pool: Integers


@inner
def room_for(left: Integers, host: int, need: Integers, anywhere: bool, most: int) -> int:
    """How many parts find room on a host, at most so many; one where each needs a host of its own."""
    for r in range(len(need)):
        if left[host, r] < need[r]:
            return 0
    if not anywhere:
        return 1  # to divide takes ten times as long
    room = most
    for r in range(len(need)):
        if need[r] > 0:
            room = min(room, left[host, r] // need[r])
    return room


@inner
def fill(hosts: Integers, left: Integers, need: Integers, anywhere: bool, width: int, out: Integers, at: int) -> int:
    """Lay parts on the first hosts that have room, in order; return how many are laid."""
    laid = 0
    for k in range(len(hosts)):
        for _ in range(room_for(left, hosts[k], need, anywhere, width - laid)):
            out[at + laid] = hosts[k]
            laid += 1
        if laid == width:
            break
    return laid


@inner
def fill_neighbours(
    hosts: Integers, left: Integers, need: Integers, anywhere: bool, width: int, out: Integers, at: int
) -> int:
    """Lay parts on the first neighbours that all have room and are enough together."""
    laid, last = 0, -2
    for k in range(len(hosts)):
        host = hosts[k]
        if host != last + 1:
            laid = 0
        room = room_for(left, host, need, anywhere, width - laid)
        if room <= 0:
            laid = 0
            continue
        last = host
        for _ in range(room):
            out[at + laid] = host
            laid += 1
        if laid == width:
            break
    return laid


@kernel
def spread(hosts: Integers, left: Integers, need: Integers, anywhere: bool, width: int, out: Integers, at: int) -> int:
    """Lay parts one by one on the hosts with the most free cores, round by round."""
    cores = np.empty(len(hosts), dtype=np.int64)
    for k in range(len(hosts)):
        cores[k] = -left[hosts[k], 0]
    order = hosts[np.argsort(cores, kind="mergesort")]
    room = np.empty(len(hosts), dtype=np.int64)
    for k in range(len(order)):
        room[k] = room_for(left, order[k], need, anywhere, width)
    laid, before = 0, -1
    while laid < width and laid > before:
        before = laid
        for k in range(len(order)):
            if room[k] > 0:
                room[k] -= 1
                out[at + laid] = order[k]
                laid += 1
                if laid == width:
                    break
    return laid


@kernel
def lay(job: int, jobs: Jobs, machine: Machine, left: Integers, out: Integers, at: int) -> bool:
    """Find hosts for a job from what they have left; whether there are enough."""
    partition, width = jobs.partition[job], jobs.width[job]
    hosts = machine.hosts[machine.offsets[partition] : machine.offsets[partition + 1]]
    need, anywhere = jobs.demand[job], jobs.anywhere[job]
    if at + width > len(out):
        return False  # more parts than there are cores
    if machine.place == CONTIGUOUS:
        laid = fill_neighbours(hosts, left, need, anywhere, width, out, at)
    elif machine.place == SPREAD:
        laid = spread(hosts, left, need, anywhere, width, out, at)
    else:
        laid = fill(hosts, left, need, anywhere, width, out, at)
    return laid == width


@inner
def take(left: Integers, need: Integers, hosts: Integers, first: int, end: int, sign: int) -> None:
    """Take parts of the hosts in a stretch of a list; give them back with the sign -1."""
    for k in range(first, end):
        for r in range(len(need)):
            left[hosts[k], r] -= sign * need[r]


@inner
def count_free(left: Integers, at_least: Integers) -> int:
    """Count hosts with at least so many free cores, for each number; return the free cores in all."""
    at_least[:] = 0
    total = 0
    for h in range(len(left)):
        at_least[left[h, 0]] += 1
        total += left[h, 0]
    for c in range(len(at_least) - 2, -1, -1):
        at_least[c] += at_least[c + 1]
    return total


@inner
def may_fit(job: int, jobs: Jobs, at_least: Integers, total: int) -> bool:
    """Whether there are cores enough for a job, wherever they are: quick, and never wrongly no."""
    cores, width = jobs.demand[job, 0], jobs.width[job]
    if width * cores > total or cores >= len(at_least):
        return False
    if jobs.anywhere[job]:
        return True
    fits: bool = at_least[cores] >= width
    return fits


@inner
def last_that_may_fit(queue: Integers, jobs: Jobs, at_least: Integers, total: int) -> int:
    """Place of the last job of a queue that may fit now; -1 if none may."""
    for k in range(len(queue) - 1, -1, -1):
        if may_fit(queue[k], jobs, at_least, total):
            return k
    return -1


def steps_of(
    _now: float, queue: Integers, _jobs: Jobs, _machine: Machine, left: Integers, running: Running, *_: Integers
) -> int:
    """Return about how many steps of Python a rule takes."""
    return 20 + len(queue) * (left.size + running.pool.shape[1] // 8)


@interpreted_at_first(steps_of)
def fcfs(
    now: float,
    queue: Integers,
    jobs: Jobs,
    machine: Machine,
    left: Integers,
    running: Running,
    starts: Integers,
    places: Integers,
) -> int:
    """Jobs start in order; one that does not fit closes the nodes of its partition to all behind it."""
    left, count, at = left.copy(), 0, 0
    for job in queue:
        if lay(job, jobs, machine, left, places, at):
            end = at + jobs.width[job]
            take(left, jobs.demand[job], places, at, end, 1)
            starts[count], count, at = job, count + 1, end
        else:
            partition = jobs.partition[job]
            for k in range(machine.offsets[partition], machine.offsets[partition + 1]):
                left[machine.hosts[k]] = 0
    return count


@kernel
def ends_in_order(now: float, jobs: Jobs, running: Running, starts: Integers, count: int) -> tuple[Floats, Integers]:
    """Ends of what runs and of what starts now, ascending, and which execution each is of.

    What has outlived its estimate ends in the next moment.
    """
    n = len(running.end)
    ends = np.empty(n + count)
    for k in range(n):
        ends[k] = running.end[k] if running.end[k] > now else np.nextafter(now, np.inf)
    for k in range(count):
        ends[n + k] = now + jobs.run_time[starts[k]]
    order = np.argsort(ends, kind="mergesort")
    return ends[order], order


@inner
def stretch_of(which: int, jobs: Jobs, running: Running, starts: Integers, first: Integers) -> tuple[int, int]:
    """Where hosts of an execution stand in the pool, or those of a job that starts now in `places`."""
    n = len(running.end)
    if which < n:
        return running.rows[1, which], running.rows[1, which] + running.rows[2, which]
    return first[which - n], first[which - n] + jobs.width[starts[which - n]]


@inner
def release(
    which: int, jobs: Jobs, running: Running, starts: Integers, places: Integers, first: Integers, left: Integers
) -> None:
    """Give back what an execution, or a job that starts now, has taken."""
    n = len(running.end)
    begin, end = stretch_of(which, jobs, running, starts, first)
    if which >= n:
        take(left, jobs.demand[starts[which - n]], places, begin, end, -1)
        return
    need = jobs.demand[running.rows[0, which]]
    for k in range(begin, end):
        host, parts = running.pool[0, k], running.pool[1, k]
        for r in range(len(need)):
            left[host, r] += parts * need[r]


@kernel
def shadow_of(
    job: int,
    now: float,
    jobs: Jobs,
    machine: Machine,
    left: Integers,
    running: Running,
    starts: Integers,
    places: Integers,
    first: Integers,
    count: int,
) -> float:
    """The first estimated end at which a job fits, all of that time released; `left` is then so.

    Infinite, with all released, if it never does, as nodes are off.
    """
    ends, order = ends_in_order(now, jobs, running, starts, count)
    need, anywhere, width = jobs.demand[job], jobs.anywhere[job], jobs.width[job]
    inside = machine.members[jobs.partition[job]]
    room, total = np.zeros(len(left), dtype=np.int64), 0
    for host in range(len(left)):
        if inside[host]:
            room[host] = room_for(left, host, need, anywhere, width)
            total += room[host]
    for k in range(len(ends)):
        which = order[k]
        release(which, jobs, running, starts, places, first, left)
        begin, end = stretch_of(which, jobs, running, starts, first)
        for at in range(begin, end):
            host = running.pool[0, at] if which < len(running.end) else places[at]
            if inside[host]:
                more = room_for(left, host, need, anywhere, width) - room[host]
                room[host] += more
                total += more
        is_last = k + 1 == len(ends) or ends[k + 1] != ends[k]
        if is_last and total >= width and lay(job, jobs, machine, left, machine.work, 0):
            shadow: float = ends[k]
            return shadow
    return np.inf


@kernel
def delays_a_head(
    job: int, until: float, jobs: Jobs, machine: Machine, heads: Integers, shadows: Floats, then: Integers, n_heads: int
) -> bool:
    """Whether some blocked job no longer fits at its shadow time if a job has hosts until a time.

    Those are the hosts in `machine.work`, behind what is used here; `then` is left with what the
    job takes of it, unless it delays one.
    """
    width = jobs.width[job]
    hosts, room = machine.work[-width:], machine.work[:-width]
    need, delays = jobs.demand[job], -1
    for k in range(n_heads):
        if until > shadows[k]:
            take(then[k], need, hosts, 0, width, 1)
            if not lay(heads[k], jobs, machine, then[k], room, 0):
                delays = k
                break
    for k in range(delays + 1):
        if until > shadows[k]:
            take(then[k], need, hosts, 0, width, -1)
    return delays >= 0


@interpreted_at_first(steps_of)
def easy(
    now: float,
    queue: Integers,
    jobs: Jobs,
    machine: Machine,
    left: Integers,
    running: Running,
    starts: Integers,
    places: Integers,
) -> int:
    """EASY: jobs start in order, and overtake where the first blocked job of no partition is delayed."""
    left, m, n_partitions = left.copy(), len(queue), len(machine.offsets) - 1
    at_least = np.empty(left[:, 0].max() + 2, dtype=np.int64)
    total, count, at, n_heads = count_free(left, at_least), 0, 0, 0
    first, is_blocked = np.empty(m + 1, dtype=np.int64), np.zeros(n_partitions, dtype=np.bool_)
    heads, shadows = np.empty(n_partitions, dtype=np.int64), np.empty(n_partitions)
    then = np.empty((n_partitions, *left.shape), dtype=np.int64)
    last = last_that_may_fit(queue, jobs, at_least, total)
    for place in range(last + 1):
        job = queue[place]
        partition, end = jobs.partition[job], at + jobs.width[job]
        first[count] = at
        if may_fit(job, jobs, at_least, total) and lay(job, jobs, machine, left, places, at):
            machine.work[len(machine.work) - (end - at) :] = places[at:end]
            until = now + jobs.run_time[job]
            if n_heads == 0 or not delays_a_head(job, until, jobs, machine, heads, shadows, then, n_heads):
                take(left, jobs.demand[job], places, at, end, 1)
                starts[count], count, at = job, count + 1, end
                total = count_free(left, at_least)
                last = place + 1 + last_that_may_fit(queue[place + 1 :], jobs, at_least, total)
        elif place < last and not is_blocked[partition]:
            is_blocked[partition], heads[n_heads], then[n_heads] = True, job, left
            shadows[n_heads] = shadow_of(job, now, jobs, machine, then[n_heads], running, starts, places, first, count)
            n_heads += 1
        if place >= last:
            break
    return count


@kernel
def step_at(time: Floats, free: Integers, n: int, edge: float) -> tuple[int, int]:
    """Make a step of a profile of `n` steps begin at a time; return its place and the new number."""
    k = int(np.searchsorted(time[:n], edge))
    if k < n and time[k] == edge:
        return k, n
    for later in range(n, k, -1):
        time[later] = time[later - 1]
        free[later] = free[later - 1]
    time[k] = edge
    free[k] = free[k - 1]
    return k, n + 1


@kernel
def earliest(job: int, jobs: Jobs, machine: Machine, time: Floats, free: Integers, n: int) -> int:
    """The first step of a profile from which on a job fits on the same hosts as long as it runs; or -1.

    The hosts are then in `machine.work`.
    """
    low = np.empty(free[0].shape, dtype=np.int64)
    for begin in range(n):
        if not lay(job, jobs, machine, free[begin], machine.work, 0):
            continue
        low[:] = free[begin]
        k, until = begin + 1, time[begin] + jobs.run_time[job]
        while k < n and time[k] < until:
            for h in range(low.shape[0]):
                for r in range(low.shape[1]):
                    low[h, r] = min(low[h, r], free[k, h, r])
            k += 1
        if k == begin + 1 or lay(job, jobs, machine, low, machine.work, 0):
            return begin
    return -1


@interpreted_at_first(steps_of)
def conservative(
    now: float,
    queue: Integers,
    jobs: Jobs,
    machine: Machine,
    left: Integers,
    running: Running,
    starts: Integers,
    places: Integers,
) -> int:
    """Conservative: each job, in order, gets the earliest place on the same hosts for all of its time."""
    at_least = np.empty(left[:, 0].max() + 2, dtype=np.int64)
    # what comes behind the last that may fit cannot start now
    m = 1 + last_that_may_fit(queue, jobs, at_least, count_free(left, at_least))
    if m == 0:
        return 0
    first = np.empty(1, dtype=np.int64)
    ends, order = ends_in_order(now, jobs, running, starts, 0)
    most = len(ends) + 2 * m + 1
    time, free = np.empty(most), np.empty((most, left.shape[0], left.shape[1]), dtype=np.int64)
    time[0], free[0], n = now, left, 1
    for k in range(len(ends)):
        if ends[k] != time[n - 1]:
            time[n], free[n] = ends[k], free[n - 1]
            n += 1
        release(order[k], jobs, running, starts, places, first, free[n - 1])
    count, at = 0, 0
    for job in queue[:m]:
        begin = earliest(job, jobs, machine, time, free, n)
        if begin < 0:
            continue
        width, start = jobs.width[job], time[begin]
        if start == now:
            places[at : at + width] = machine.work[:width]
            starts[count], count, at = job, count + 1, at + width
        last, n = step_at(time, free, n, start + jobs.run_time[job])
        for k in range(begin, last):
            take(free[k], jobs.demand[job], machine.work, 0, width, 1)
    return count
