"""Compiled loops over the distributions of all hosts at once (paper 002, IV-B; algorithms D3).

All in one file: numba's cache would not notice a change of a called function in another file.

Distributions have one grid. Of each its tail is kept, ``after[n]`` the mass behind the first n
impulses; the impulses before `passed` have passed, and what is left of it is ``after[passed]``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.compiled import compiled

kernel = compiled(error_model="numpy")
inner = compiled(error_model="numpy", _nrt=False)

#: Late masses closer than this to 0 or 1 are rounding (algorithms D4).
_ROUNDING = 1e-12
#: What `HostTable.kind` can be: off, ready at a certain time, or ready when what runs and what is
#: queued behind it has ended.
OFF, CERTAIN, UNCERTAIN = 0, 1, 2
#: As soon as so little is left of what was convolved last, it is convolved again: taking impulses
#: out of a sum then costs hardly a digit.
_LEAST_SHARE_LEFT = 0.5


class GridTable(NamedTuple):
    """Distributions by (task type, host type, P-state), on one grid.

    Attributes
    ----------
    step : float
        Distance of the grid [s].
    first : ndarray of int64, shape (task types, host types, P-states)
        Multiple of the step at which the first impulse is.
    length : ndarray of int64, same shape
        Number of impulses; 0 where none is known.
    offset : ndarray of int64, same shape
        Where its part of `mass` and of `after` begins, `length` + 1 numbers long.
    mass, after : ndarray of float64
        Masses, and mass behind the first n impulses.
    """

    step: float
    first: Integers
    length: Integers
    offset: Integers
    mass: Floats
    after: Floats


class HostTable(NamedTuple):
    """When each host is ready, as what runs there and the sum of its fixed queue.

    Attributes
    ----------
    kind : ndarray of int64, shape (hosts,)
    at : ndarray of float64
        When it is ready if that is certain [s].
    begin : ndarray of float64
        When what runs began [s].
    first, length, offset : ndarray of int64
        The distribution of its run time in a `GridTable`.
    passed : ndarray of int64
        Impulses of it that have passed.
    queue_mean : ndarray of float64
        Expected sum of the run times in the queue [s].
    queue_first, queue_length : ndarray of int64
        First impulse of that sum, and their number; 0 where nothing is queued.
    queue_after : ndarray of float64, shape (hosts, most impulses + 1)
        Mass behind the first n of them.
    sum_length : ndarray of int64
        Impulses of both together, those that have passed included; 0 if not known.
    sum_passed : ndarray of int64
        Passed impulses that are taken out of it.
    sum_share : ndarray of float64
        Share of what runs that was left when it was convolved.
    sum_after : ndarray of float64, shape (hosts, most impulses + 1)
        Mass behind the first n impulses of both together, not scaled.
    """

    kind: Integers
    at: Floats
    begin: Floats
    first: Integers
    length: Integers
    offset: Integers
    passed: Integers
    queue_mean: Floats
    queue_first: Integers
    queue_length: Integers
    queue_after: Floats
    sum_length: Integers
    sum_passed: Integers
    sum_share: Floats
    sum_after: Floats


_ROWS = ("queue_after", "sum_after")
_TIMES = ("at", "begin", "queue_mean", "sum_share")


def empty_host_table(n_hosts: int) -> HostTable:
    """Return a table of hosts that are off."""
    columns: dict[str, Any] = {
        name: np.zeros(n_hosts, dtype=np.float64 if name in _TIMES else np.int64)
        for name in HostTable._fields
        if name not in _ROWS
    }
    columns |= {name: np.zeros((n_hosts, 2)) for name in _ROWS}
    return HostTable(**columns)


def with_room(hosts: HostTable, *, queue: int = 0, sums: int = 0) -> HostTable:
    """Return the table with rows that are at least so long."""
    return hosts._replace(queue_after=_widened(hosts.queue_after, queue), sum_after=_widened(hosts.sum_after, sums))


def _widened(rows: Floats, width: int) -> Floats:
    """Return the rows, half as long again as is wanted if they were too short."""
    if rows.shape[1] >= width:
        return rows
    wider = np.zeros((len(rows), width + width // 2))
    wider[:, : rows.shape[1]] = rows
    return wider


@inner
def _take_out(sums: Floats, masses: Floats, queue_after: Floats, begin: int, end: int, until: int) -> None:
    """Take the impulses `begin` to `end` out of tails of a sum, from `end` to `until` on."""
    for n in range(begin, end):
        mass = masses[n]
        for s in range(end, min(until, n + len(queue_after))):
            sums[s] -= mass * queue_after[s - n]


@kernel
def let_pass(hosts: HostTable, grid: GridTable, now: float) -> Integers:
    """Take out what has passed until `now` [s]; return the hosts whose sum is to be made again."""
    stale = np.empty(len(hosts.kind), dtype=np.int64)
    n_stale = 0
    for h in range(len(hosts.kind)):
        if hosts.kind[h] != UNCERTAIN:
            continue
        passed, length, offset = hosts.passed[h], hosts.length[h], hosts.offset[h]
        while passed < length and hosts.begin[h] + grid.step * (hosts.first[h] + passed) < now:
            passed += 1
        hosts.passed[h] = passed
        left = grid.after[offset + passed]
        n_queued = hosts.queue_length[h]
        if n_queued == 0 or left <= 0.0:
            continue
        n_sum = hosts.sum_length[h]
        if n_sum == 0 or left < _LEAST_SHARE_LEFT * hosts.sum_share[h]:
            stale[n_stale] = h
            n_stale += 1
        elif passed > hosts.sum_passed[h]:
            _take_out(
                hosts.sum_after[h],
                grid.mass[offset : offset + length],
                hosts.queue_after[h, :n_queued],
                hosts.sum_passed[h],
                passed,
                n_sum,
            )
            hosts.sum_passed[h] = passed
    return stale[:n_stale]


@inner
def _late_probability(mass: Floats, rest: Floats, after: Floats, left: float, in_time: int) -> float:
    """Mass of what takes more than `in_time` steps in a run time and a ready time together.

    Of the run time, `mass` has the impulses and `rest` the tail; of the ready time, `after` is the
    tail and `left` its first entry. In four sums, which a processor adds up at once.
    """
    n_ready, length = len(after) - 1, len(mass)
    # impulse z of the run time leaves `in_time - z` impulses of the ready time in time: those
    # before `begin` leave all of them, those from `end` on none
    begin = min(max(in_time - n_ready, 0), length)
    end = min(max(in_time, begin), length)
    a = b = c = d = 0.0
    z = begin
    while z + 4 <= end:
        a += mass[z] * after[in_time - z]
        b += mass[z + 1] * after[in_time - z - 1]
        c += mass[z + 2] * after[in_time - z - 2]
        d += mass[z + 3] * after[in_time - z - 3]
        z += 4
    while z < end:
        a += mass[z] * after[in_time - z]
        z += 1
    return ((a + b) + (c + d)) / left + rest[end]


@inner
def _rounded(late: float) -> float:
    """The chance without what is rounding."""
    if late < _ROUNDING:
        return 0.0
    return late if late <= 1.0 - _ROUNDING else 1.0


@inner
def _steps_until(time: float, earliest: float, step: float) -> int:
    """Number of the times ``earliest + n * step`` that are not after `time`, n = 0, 1, ..."""
    n = math.floor((time - earliest) / step)
    if earliest + (n + 1.0) * step <= time:  # what the division rounded away
        n += 1
    return int(n) + 1


@inner
def _late_probabilities(
    grid: GridTable,
    task_type: int,
    host_type: int,
    begins: float,
    after: Floats,
    left: float,
    deadline: float,
    late: Floats,
) -> None:
    """Fill the chances of all P-states on a host that is ready at `begins` [s] or later."""
    for k in range(len(late)):
        length = grid.length[task_type, host_type, k]
        if length == 0:
            continue
        offset = grid.offset[task_type, host_type, k]
        earliest = begins + grid.first[task_type, host_type, k] * grid.step
        late[k] = _rounded(
            _late_probability(
                grid.mass[offset : offset + length],
                grid.after[offset : offset + length + 1],
                after,
                left,
                _steps_until(deadline, earliest, grid.step),
            )
        )


@kernel
def late_probabilities(
    hosts: HostTable, grid: GridTable, host_type: Integers, task_type: int, now: float, deadline: float
) -> Floats:
    """Chance that a task, appended to each host's queue, ends late, shape (hosts, P-states).

    `let_pass` must have been called for `now`. It is 1 where a host is off, or no distribution is
    known. Equal hosts that run nothing are looked at once.

    Parameters
    ----------
    hosts : HostTable
    grid : GridTable
    host_type : ndarray of int64, shape (hosts,)
    task_type : int
    now, deadline : float
        Times [s].
    """
    n_hosts, n_levels = len(hosts.kind), grid.length.shape[2]
    late = np.ones((n_hosts, n_levels))
    alike = np.full(grid.length.shape[1], -1)
    point = np.array([1.0, 0.0])
    for h in range(n_hosts):
        j = host_type[h]
        if hosts.kind[h] == OFF:
            continue
        if hosts.kind[h] == CERTAIN:
            at = max(hosts.at[h], now)
            other = alike[j]
            if other >= 0 and max(hosts.at[other], now) == at:
                late[h] = late[other]
                continue
            alike[j] = h
            _late_probabilities(grid, task_type, j, at, point, 1.0, deadline, late[h])
            continue
        passed, offset, n_queued = hosts.passed[h], hosts.offset[h], hosts.queue_length[h]
        left = grid.after[offset + passed]
        # in the order of `ready_pmf`'s sums
        if left <= 0.0 and n_queued == 0:  # it should have ended: now, as far as is known
            _late_probabilities(grid, task_type, j, now, point, 1.0, deadline, late[h])
        elif left <= 0.0:
            _late_probabilities(
                grid,
                task_type,
                j,
                now + hosts.queue_first[h] * grid.step,
                hosts.queue_after[h, : n_queued + 1],
                1.0,
                deadline,
                late[h],
            )
        elif n_queued == 0:
            _late_probabilities(
                grid,
                task_type,
                j,
                hosts.begin[h] + grid.step * (hosts.first[h] + passed),
                grid.after[offset + passed : offset + hosts.length[h] + 1],
                left,
                deadline,
                late[h],
            )
        else:
            first = hosts.first[h] + passed + hosts.queue_first[h]
            _late_probabilities(
                grid,
                task_type,
                j,
                hosts.begin[h] + grid.step * first,
                hosts.sum_after[h, passed : hosts.sum_length[h] + 1],
                hosts.sum_after[h, passed],
                deadline,
                late[h],
            )
    return late


@kernel
def late_probability_of_sum(
    mass: Floats, rest: Floats, after: Floats, earliest: float, step: float, deadline: float
) -> float:
    """Chance that two times together end after `deadline` [s].

    The sum begins at `earliest` [s], on a grid of `step` [s]. Of the first, `mass` has the impulses
    and `rest` the tail, not scaled; `after` is the tail of the second.
    """
    late = _late_probability(mass, rest, after, 1.0, _steps_until(deadline, earliest, step))
    return _rounded(late / rest[0])


@kernel
def mean_ready(hosts: HostTable, grid: GridTable, now: float) -> Floats:
    """Expected time at which each host is ready [s], infinite where it is off, shape (hosts,).

    `let_pass` must have been called for `now`.
    """
    mean = np.full(len(hosts.kind), np.inf)
    for h in range(len(mean)):
        if hosts.kind[h] == CERTAIN:
            mean[h] = max(hosts.at[h], now)
        elif hosts.kind[h] == UNCERTAIN:
            offset, end = hosts.offset[h], now
            left = grid.after[offset + hosts.passed[h]]
            if left > 0.0:
                moment = 0.0
                for n in range(hosts.passed[h], hosts.length[h]):
                    moment += grid.mass[offset + n] * (hosts.first[h] + n)
                end = hosts.begin[h] + grid.step * (moment / left)
            mean[h] = end + hosts.queue_mean[h]
    return mean


@kernel
def convolved(first: Floats, second: Floats) -> Floats:
    """Convolve two arrays of masses directly: small masses keep their digits."""
    total = np.zeros(len(first) + len(second) - 1)
    for n in range(len(first)):
        mass = first[n]
        for s in range(len(second)):
            total[n + s] += mass * second[s]
    return total
