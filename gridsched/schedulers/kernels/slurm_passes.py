"""What Slurm's two schedulers start: the main one, and backfilling. Times [s].

The main one goes down the queue and starts what fits, until a job of a partition does not: then
nothing behind it starts on nodes of that partition. Backfilling goes down the queue with a map of
nodes that are promised: each job that cannot start now has the nodes where it is expected to start,
whole, from then until its time limit, and what comes behind may use them before or after only.

When a job can start is asked of the running jobs alone, of which those that end within a window
count as ending together; the window, 30 s at first, grows with each look. Then the map is looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.schedulers.kernels import called_once, inner, kernel

#: How far apart jobs may end that count as ending together, at the first look [s].
FIRST_WINDOW_S = 30.0


class Machine(NamedTuple):
    """What jobs take of nodes, and which nodes each may use.

    Attributes
    ----------
    demand : ndarray of int64, shape (jobs, resources)
        What each part of a job takes of its node, cores first.
    anywhere : ndarray of bool, shape (jobs,)
        Whether parts may share nodes.
    width : ndarray of int64, shape (jobs,)
        Parts.
    limit : ndarray of float64, shape (jobs,)
        Time limits [s].
    partition : ndarray of int64, shape (jobs,)
        Which hosts a job may use: ``hosts[offsets[p]:offsets[p + 1]]``, ascending.
    hosts, offsets : ndarray of int64
    whole : ndarray of int64, shape (partitions,)
        The whole partition that each is a part of.
    weight : ndarray of int64, shape (hosts,)
        Nodes of lower weight are taken first.
    down, down_s : ndarray
        As of `gridsched.schedulers.kernels.availability.Nodes`.
    """

    demand: Integers
    anywhere: Booleans
    width: Integers
    limit: Floats
    partition: Integers
    hosts: Integers
    offsets: Integers
    whole: Integers
    weight: Integers
    down: Integers
    down_s: Floats


class Starts(NamedTuple):
    """What starts, filled by a pass.

    Attributes
    ----------
    job : ndarray of int64
        No shorter than the queue.
    n_places : ndarray of int64
        How many places each has; as long.
    places : ndarray of int64, shape (2, any)
        Hosts and the parts on each, one job after the other.
    expected_s : ndarray of float64
        When each job of the queue is expected to start [s]; nan if this is unknown. As long.
    """

    job: Integers
    n_places: Integers
    places: Integers
    expected_s: Floats


@inner
def parts_that_fit(left: Integers, host: int, need: Integers, anywhere: bool, most: int) -> int:
    """How many parts find room on a host; one where each needs a host of its own."""
    for r in range(len(need)):
        if left[host, r] < need[r]:
            return 0
    if not anywhere:
        return 1
    room = most
    for r in range(len(need)):
        if need[r] > 0:
            room = min(room, left[host, r] // need[r])
    return room


@kernel
def lay_by_best_fit(machine: Machine, job: int, left: Integers, usable: Booleans, out: Integers, at: int) -> int:
    """Find places for a job on hosts that are usable; return where they end, or -1.

    Of hosts of the lowest weight the stretch of neighbors is taken that has room for all and the
    fewest cores that the job could take; else the one with the most, and then another. A stretch is
    filled from its begin.
    """
    p, need, anywhere, missing = machine.partition[job], machine.demand[job], machine.anywhere[job], machine.width[job]
    first, end = machine.offsets[p], machine.offsets[p + 1]
    room, total = np.zeros(end - first, dtype=np.int64), 0
    for k in range(end - first):
        host = machine.hosts[first + k]
        if usable[host]:
            room[k] = parts_that_fit(left, host, need, anywhere, missing)
            total += room[k]
    if total < missing:
        return -1
    while missing > 0:
        weight = np.iinfo(np.int64).max
        for k in range(end - first):
            if room[k] > 0:
                weight = min(weight, machine.weight[machine.hosts[first + k]])
        best, best_end, best_cores, best_is_enough, k = -1, -1, 0, False, 0
        while k < end - first:
            if room[k] == 0 or machine.weight[machine.hosts[first + k]] != weight:
                k += 1
                continue
            begin, cores, parts = k, 0, 0
            while (
                k < end - first
                and room[k] > 0
                and (k == begin or machine.hosts[first + k] == 1 + machine.hosts[first + k - 1])
            ):
                if machine.weight[machine.hosts[first + k]] != weight:
                    break
                cores += room[k] * need[0]
                parts += room[k]
                k += 1
            is_enough = parts >= missing
            if (
                best < 0
                or (is_enough and not best_is_enough)
                or (is_enough and cores < best_cores)
                or (not is_enough and not best_is_enough and cores > best_cores)
            ):
                best, best_end, best_cores, best_is_enough = begin, k, cores, is_enough
        for k in range(best, best_end):
            parts = min(room[k], missing)
            if parts > 0:
                out[0, at], out[1, at] = machine.hosts[first + k], parts
                at += 1
                missing -= parts
            room[k] = 0
    return at


@inner
def let_have(machine: Machine, job: int, left: Integers, places: Integers, first: int, end: int, sign: int) -> None:
    """Take what a job needs of the hosts in a stretch of places; give it back with the sign -1."""
    for k in range(first, end):
        for r in range(machine.demand.shape[1]):
            left[places[0, k], r] -= sign * places[1, k] * machine.demand[job, r]


@inner
def without_down(machine: Machine, usable: Booleans, begin: float, end: float) -> None:
    """Leave out the hosts that are down at some time between two others."""
    for k in range(len(machine.down)):
        if machine.down_s[0, k] < end and begin < machine.down_s[1, k]:
            usable[machine.down[k]] = False


@kernel
def main_pass(machine: Machine, now: float, queue: Integers, left: Integers, starts: Starts) -> int:
    """Start jobs from the head of the queue on; return how many.

    Parameters
    ----------
    machine : Machine
    now : float
    queue : ndarray of int64
    left : ndarray of int64, shape (hosts, resources)
        What hosts have left; what starts is taken from it.
    starts : Starts
    """
    count, at = 0, 0
    blocked = np.zeros(len(left), dtype=np.bool_)
    failed = np.zeros(len(machine.whole), dtype=np.bool_)
    for job in queue:
        whole = machine.whole[machine.partition[job]]
        if failed[whole]:
            continue
        usable = ~blocked
        without_down(machine, usable, now, now + machine.limit[job])
        end = lay_by_best_fit(machine, job, left, usable, starts.places, at)
        if end < 0:
            failed[whole] = True
            for k in range(machine.offsets[whole], machine.offsets[whole + 1]):
                blocked[machine.hosts[k]] = True
            continue
        let_have(machine, job, left, starts.places, at, end, 1)
        starts.job[count], starts.n_places[count] = job, end - at
        count, at = count + 1, end
    return count


class Running(NamedTuple):
    """What runs: ends as time limits have them [s], jobs, and their places in a pool.

    The first `size[0]` count; arrays have room for what starts, places for `size[1]`.
    """

    end: Floats
    job: Integers
    first: Integers
    n_places: Integers
    pool: Integers
    size: Integers


@kernel
def expected_start(
    machine: Machine,
    now: float,
    job: int,
    left: Integers,
    usable: Booleans,
    running: Running,
    order: Integers,
    linear_s: float,
    clock_s: float,
    is_aligned: bool,
    out: Integers,
) -> tuple[float, int]:
    """When a job can start on usable hosts as what runs ends, and how many places it has then, found in `out`.

    Infinite if never. All windows begin at the first multiple of 30 s on Slurm's clock after the first end, or,
    not aligned, each at the first end that is left. They are twice as long each time, or longer by `linear_s`
    where that is set.
    """
    end = lay_by_best_fit(machine, job, left, usable, out, 0)
    if end >= 0:
        return now, end
    then, k, n, window, aligned = left.copy(), 0, running.size[0], FIRST_WINDOW_S, np.inf
    while k < n:
        last, any_ended = now, False
        if not is_aligned:
            aligned = np.inf
        while k < n:
            run = order[k]
            k += 1
            first, behind, overlaps = running.first[run], running.first[run] + running.n_places[run], False
            for place in range(first, behind):
                overlaps |= usable[running.pool[0, place]]
            if not overlaps:
                continue
            let_have(machine, running.job[run], then, running.pool, first, behind, -1)
            last, any_ended = running.end[run], True
            if aligned == np.inf:
                aligned = (np.floor((last + clock_s) / window) + 1) * window - clock_s if is_aligned else last
            if k < n and running.end[order[k]] > aligned + window:
                break
        if not any_ended:
            break
        window = window + linear_s if linear_s > 0 else 2 * window
        while is_aligned and k < n and running.end[order[k]] > aligned + window:
            window = window + linear_s if linear_s > 0 else 2 * window
        end = lay_by_best_fit(machine, job, then, usable, out, 0)
        if end >= 0:
            return (last if last > now else now + 1.0), end
    return np.inf, -1


@inner
def next_edge(edges: Floats, n_edges: int, after: float) -> float:
    """The next time at which a reservation begins or ends; infinite if none does."""
    found = np.inf
    for k in range(n_edges):
        if after < edges[k] < found:
            found = edges[k]
    return found


@kernel
def backfill_pass(
    machine: Machine,
    now: float,
    queue: Integers,
    left: Integers,
    running: Running,
    window_s: float,
    resolution_s: float,
    linear_s: float,
    clock_s: float,
    is_aligned: bool,
    starts: Starts,
) -> int:
    """Start jobs of a queue that delay no reservation before theirs; return how many.

    Parameters
    ----------
    machine : Machine
    now : float
    queue : ndarray of int64
    left : ndarray of int64, shape (hosts, resources)
        What hosts have left; what starts is taken from it.
    running : Running
        With room for what starts, which is added.
    window_s : float
        Jobs that would start later than this from now on have no reservation.
    resolution_s : float
        Reservations begin and end at multiples of it.
    linear_s, clock_s : float
        As of `expected_start`; what Slurm's clock shows at 0 s.
    is_aligned : bool
        As of `expected_start`.
    starts : Starts
    """
    n_hosts, m = len(left), len(queue)
    reserved = np.zeros((m, n_hosts), dtype=np.bool_)
    edges, n_reserved = np.empty(2 * m), 0
    out = np.empty((2, max(n_hosts, 1)), dtype=np.int64)
    order = np.empty(len(running.end), dtype=np.int64)
    n = running.size[0]
    order[:n] = np.argsort(running.end[:n], kind="mergesort")
    usable = np.empty(n_hosts, dtype=np.bool_)
    count, at, horizon = 0, 0, now + window_s
    for k in range(m):
        job = queue[k]
        limit, p, begin = machine.limit[job], machine.partition[job], now
        starts.expected_s[k] = np.nan
        while begin <= horizon:
            later = next_edge(edges, 2 * n_reserved, begin)
            usable[:] = True
            without_down(machine, usable, begin, begin + limit)
            for r in range(n_reserved):
                if edges[2 * r] <= begin + limit and begin < edges[2 * r + 1]:
                    for h in range(n_hosts):
                        if reserved[r, h]:
                            usable[h] = False
            n_usable = 0
            for place in range(machine.offsets[p], machine.offsets[p + 1]):
                n_usable += usable[machine.hosts[place]]
            if n_usable < (1 if machine.anywhere[job] else machine.width[job]):
                if later == np.inf:
                    break
                begin = later
                continue
            start, n_places = expected_start(
                machine, now, job, left, usable, running, order, linear_s, clock_s, is_aligned, out
            )
            if start == np.inf:
                if later == np.inf:
                    break
                begin = later
                continue
            start = max(start, begin)
            if start <= now:
                starts.expected_s[k] = now
                break
            if start > later:
                begin = later
                continue
            if start > horizon:
                break
            overlaps = False
            for r in range(n_reserved):
                if edges[2 * r] < start + limit and start < edges[2 * r + 1]:
                    for place in range(n_places):
                        overlaps |= reserved[r, out[0, place]]
            for place in range(n_places):
                for d in range(len(machine.down)):
                    if machine.down[d] == out[0, place]:
                        overlaps |= machine.down_s[0, d] < start + limit and start < machine.down_s[1, d]
            if overlaps and start > begin:
                begin = start
                continue
            starts.expected_s[k] = start
            for place in range(n_places):
                reserved[n_reserved, out[0, place]] = True
            first = max(np.floor((start + clock_s) / resolution_s) * resolution_s - clock_s, now)
            last = np.floor((start + limit + clock_s) / resolution_s) * resolution_s - clock_s
            edges[2 * n_reserved], edges[2 * n_reserved + 1] = first, max(last, first + resolution_s)
            n_reserved += 1
            break
        if starts.expected_s[k] == now:
            let_have(machine, job, left, out, 0, n_places, 1)
            starts.places[:, at : at + n_places] = out[:, :n_places]
            starts.job[count], starts.n_places[count] = job, n_places
            count, at = count + 1, at + n_places
            n, pooled = running.size[0], running.size[1]
            running.end[n], running.job[n] = now + limit, job
            running.first[n], running.n_places[n] = pooled, n_places
            running.pool[:, pooled : pooled + n_places] = out[:, :n_places]
            running.size[0], running.size[1] = n + 1, pooled + n_places
            place = n
            while place > 0 and running.end[order[place - 1]] > now + limit:
                order[place] = order[place - 1]
                place -= 1
            order[place] = n
    return count


@called_once
def _call_once() -> None:
    """Call the kernels of Slurm's schedulers once."""

    def one(value: int = 1) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.full(1, value)

    demand, anywhere, width, partition = np.ones((3, 1), dtype=np.int64), np.zeros(3, dtype=np.bool_), one(), one(0)
    width, partition = np.repeat(width, 3), np.repeat(partition, 3)
    for array in (demand, anywhere, width, partition):  # as a state gives them
        array.setflags(write=False)
    machine = Machine(
        demand, anywhere, width, np.ones(3), partition, one(0), np.arange(2), one(0), one(), one()[:0], np.empty((2, 0))
    )
    starts = Starts(
        np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64), np.zeros((2, 4), dtype=np.int64), np.empty(3)
    )
    left = np.ones((1, 1), dtype=np.int64)
    main_pass(machine, 0.0, np.arange(2), left.copy(), starts)
    room = np.zeros(4, dtype=np.int64)
    running = Running(
        np.zeros(4), room, room.copy(), room.copy(), np.zeros((2, 4), dtype=np.int64), np.zeros(2, np.int64)
    )
    backfill_pass(machine, 0.0, np.arange(2), left, running, 1.0, 1.0, 0.0, 0.0, True, starts)
