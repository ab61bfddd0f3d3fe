"""The least possible makespan and energy of a bag of tasks on a platform.

Both are relaxations: tasks may be cut into pieces of any size, and pieces of one task may run at
the same time (a fractional assignment), raised by what whole tasks need in any case. No schedule is
below them; the best schedule may well be above.

**From tasks x hosts to hosts.** The fractional assignment is the linear program over
``y_ij >= 0``, the flops of task i that host j executes: ``sum_j y_ij = w_i``, and host j needs the
time ``sum_i y_ij / s_j`` and its energy. Because tasks differ in nothing but their flops, time and
energy depend on ``x_j = sum_i y_ij`` alone. Every y gives an x with ``sum_j x_j = W = sum_i w_i``,
and every such x comes from a y, for instance ``y_ij = w_i x_j / W``. So the program has N
variables instead of n N, and n enters through W only.

**Power curve of a host.** Let host j have c cores of speed s, and power P(b) with b busy cores:
``P(0) = idle``, ``P(b) = epsilon + b / c (all cores - epsilon)`` for b >= 1. While it spends the
time t_b with b busy cores it consumes ``sum_b t_b P(b)`` and executes at most ``sum_b t_b b s``
useful flops (replicas that are cancelled are useless). Divided by the length T of the run this is a
convex combination of the points ``(b s, P(b))``. So its mean power is at least g_j(its mean useful
rate), where g_j is the lower convex hull of these points, made non-decreasing (a host that draws
less when busy may as well be busy for nothing). The points of b >= 1 lie on a line, so b = 0, 1, c
suffice. Where ``epsilon >= idle``, as usual, the hull is the straight line from ``(0, idle)`` to
``(c s, all cores)``: the offset of epsilon makes a partly loaded host dearer, never cheaper, than
the bound's ``(all cores - idle) / (c s)`` joules per flop above idle. Where ``epsilon < idle`` the
point of one busy core is a corner of the hull. A host that may be switched off has the further
point ``(0, off)``; with free P-states the points of all of them count.

**Energy.** Let G(r) be the least of ``sum_j g_j(r_j)`` over ``sum_j r_j = r``: the power the grid
needs for r flop/s. The g_j are convex and piecewise linear, so the cheapest next flop is always the
segment with the fewest joules per flop that is left, and sorting the segments gives G. A run of
length T consumes at least ``T G(W / T) = W G(r) / r`` with r = W / T, and T is at least the least
makespan. ``G(r) / r`` falls up to some rate and rises from there (G is convex), so on each linear
piece of G it is monotone, and its least value lies at a corner of G or at the largest possible r.
Where the makespan must not exceed M, r is at least W / M besides: the front of energy against
makespan (`BagBounds.front`).
This is the optimum of the linear program with the makespan as a variable; the tests compare it
with HiGHS. It is computed by sorting because a solver's tolerance of 1e-7 can put its answer above
the true optimum (0.17 % were seen with SI units), where it would be no bound.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.metrics.columns import prefix
from gridsched.model.platform import Platform, PState
from gridsched.model.tasks import Tasks
from gridsched.optimize.task_paths import least_makespan_of_paths, task_paths


@dataclass(frozen=True)
class BagBounds:
    """What no schedule of a bag of tasks can fall below.

    Attributes
    ----------
    makespan_s : float
        Least makespan [s]: last finish minus first submission.
    energy_j : float
        Least energy of the computing hosts over [0, last finish] [J].
    counts_idle : bool
        Whether every host is on to the end, so that `energy_j` holds its idle power; otherwise
        hosts may be switched off at any time.
    free_pstates : bool
        Whether each task may run in any P-state, instead of the scenario's.
    front : callable or None
        Called with a makespan [s] of at least `makespan_s`; the least energy of runs that are not longer
        [J]. None where nothing more than `energy_j` is known.
    is_whole : bool
        False where tasks wait for each other and only a longest path of them counts in `energy_j`, beside their
        work: see `gridsched.optimize.path_energy`.
    """

    makespan_s: float
    energy_j: float
    counts_idle: bool
    free_pstates: bool = False
    front: Callable[[float], float] | None = field(default=None, repr=False, compare=False)
    is_whole: bool = field(default=True, repr=False, compare=False)

    def least_energy_j(self, makespan_s: float) -> float:
        """Return the energy that no schedule of at most this makespan is below [J].

        Parameters
        ----------
        makespan_s : float
            That of a schedule; if only rounding makes it less than the bound, the bound counts.
        """
        if self.front is None:
            return self.energy_j
        return max(self.energy_j, self.front(max(makespan_s, self.makespan_s)))

    def describe(self) -> str:
        """Return in words what the bounds are and what they count."""
        idle = (
            "idle power of every host to the end counted"
            if self.counts_idle
            else "idle power not counted: hosts may be off at any time"
        )
        pstates = ", any P-state" if self.free_pstates else ""
        factor, letter = prefix(self.energy_j)
        if math.isnan(self.energy_j):
            return f"at least {self.makespan_s:,.6g} s"
        path = "" if self.is_whole else "; of paths the longest alone"
        return f"at least {self.makespan_s:,.6g} s and {self.energy_j / factor:,.6g} {letter}J ({idle}{pstates}{path})"


def bag_bounds(
    platform: Platform,
    tasks: Tasks,
    pstates: Integers | int = 0,
    *,
    may_switch_off: bool = False,
    free_pstates: bool = False,
    hosts_off: Collection[int] = (),
) -> BagBounds:
    """Bound makespan and energy of any schedule of serial tasks from below.

    Parameters
    ----------
    platform : Platform
    tasks : Tasks
        All of them are executed; their flops and submission times are used.
    pstates : ndarray of int64, shape (hosts,), or int
        The scenario's P-state of each host: of all executions there, or only until something is
        executed with `free_pstates`.
    may_switch_off : bool
        Hosts may be switched off and on at any time: energy without idle.
    free_pstates : bool
        A scheduler chooses P-states (trait `uses_dvfs`).
    hosts_off : collection of int
        Hosts that are off at the start; without `may_switch_off` they stay off.

    Returns
    -------
    BagBounds

    Raises
    ------
    InputError
        If a host lacks the P-state, or there are tasks and no host to run them.

    Notes
    -----
    Bytes, files and boot times only delay; they are left out. What tasks wait for counts in both
    (`gridsched.optimize.task_paths`, `gridsched.optimize.path_energy`). Submission times enter in two ways.
    Each set of tasks submitted at or after an instant takes its least makespan from that instant
    on. And from time 0 to the first submission every host is charged for doing nothing.

    Examples
    --------
    >>> from gridsched.model.platform import Host, Platform, PState
    >>> from gridsched.model.tasks import make_tasks
    >>> host = Host("h", (PState(speed=100.0, idle_w=4.0, epsilon_w=50.0, busy_w=50.0),))
    >>> bag_bounds(Platform((host,)), make_tasks([1000, 500]))
    BagBounds(makespan_s=15.0, energy_j=750.0, counts_idle=True, free_pstates=False)
    """
    if not len(tasks):
        platform.check_pstates(pstates)
        return BagBounds(0.0, 0.0, not may_switch_off, free_pstates)
    hosts = usable_hosts(
        platform, pstates, may_switch_off=may_switch_off, free_pstates=free_pstates, hosts_off=hosts_off
    )
    makespan = least_makespan_s(tasks, [each.speed for each in hosts], [each.cores for each in hosts])
    work = float(tasks.flops.sum())
    stay_w = 0.0 if may_switch_off else sum(platform.hosts[h].off_w for h in hosts_off)
    (base_w,), segments = power_segments(hosts, (0,) * len(platform), n_sites=1)
    widths, heights = segments.hosts * segments.rate, segments.hosts * segments.watts
    order = np.argsort(heights / widths, kind="stable")
    rates, watts = np.cumsum(widths[order]), np.cumsum(heights[order])
    before_j = float(tasks.submit_time_s[0]) * (sum(each.rest_w for each in hosts) + stay_w)

    def front(makespan_s: float) -> float:
        slowest, fastest = work / makespan_s, work / makespan
        per_flop = _least_energy_per_flop(base_w + stay_w, rates, watts, slowest, fastest)
        return work * per_flop + before_j if platform.has_energy else math.nan

    if tasks.dependencies is None or not platform.has_energy:
        return BagBounds(makespan, front(math.inf), not may_switch_off, free_pstates, front)
    from gridsched.optimize.path_energy import PathEnergy  # it is about the hosts of this module

    along = PathEnergy(tasks, hosts, base_w + stay_w, makespan)

    def front_of_paths(makespan_s: float) -> float:
        return max(front(makespan_s), along.least_j(makespan_s) + before_j)

    least_j = front_of_paths(math.inf)
    return BagBounds(makespan, least_j, not may_switch_off, free_pstates, front_of_paths, along.is_whole)


@dataclass(frozen=True)
class UsableHost:
    """A computing host, and how it may be used.

    Attributes
    ----------
    index : int
        Of the host.
    cores : int
    off_w : float or None
        Power while off [W], where it may be switched off at any time.
    first : PState
        Until something is executed.
    states : tuple of PState
        In which it may execute.
    """

    index: int
    cores: int
    off_w: float | None
    first: PState
    states: tuple[PState, ...]

    @property
    def speed(self) -> float:
        """Of a core, at most [flop/s]."""
        return max(state.speed for state in self.states)

    @property
    def rest_w(self) -> float:
        """Least power while nothing can be executed [W]."""
        return self.first.idle_w if self.off_w is None else min(self.first.idle_w, self.off_w)


def usable_hosts(
    platform: Platform, pstates: Integers | int, *, may_switch_off: bool, free_pstates: bool, hosts_off: Collection[int]
) -> list[UsableHost]:
    """Return the hosts that may execute.

    Parameters
    ----------
    platform : Platform
    pstates, may_switch_off, free_pstates, hosts_off
        As those of `bag_bounds`.

    Raises
    ------
    InputError
        If a host lacks the P-state, or all are off.
    """
    platform.check_pstates(pstates)
    start_in = np.broadcast_to(pstates, len(platform)).tolist()
    hosts = []
    for h, host in enumerate(platform.hosts):
        if may_switch_off or h not in hosts_off:
            first = host.pstates[start_in[h]]
            states = host.pstates if free_pstates else (first,)
            hosts.append(UsableHost(h, host.cores, host.off_w if may_switch_off else None, first, states))
    if not hosts:
        raise InputError(f"{platform.name}: no host is on, so the tasks have no bounds.")
    return hosts


def least_makespan_s(tasks: Tasks, speeds: ArrayLike, cores: ArrayLike) -> float:
    """Least time from the first submission to the last finish [s].

    Parameters
    ----------
    tasks : Tasks
        At least one.
    speeds : array_like, shape (hosts,)
        Speed of one core [flop/s].
    cores : array_like of int, shape (hosts,)

    Notes
    -----
    The largest of: the work of the k largest tasks over the speed of the k fastest cores, for each
    k up to the number of cores (no core executes two tasks, and no task is on two cores, at one
    time [1]_; k = 1 is the largest task on the fastest core); all work over the speed of all cores;
    and, for each instant at which tasks are submitted, the work submitted from then on over the
    speed of all cores, and each task on the fastest core, counted from that instant. Where tasks wait
    for each other, `least_makespan_of_paths` besides.

    References
    ----------
    .. [1] T. Gonzalez, S. Sahni, "Preemptive scheduling of uniform processor systems",
       JACM 25(1), 1978.
    """
    per_core = np.sort(np.repeat(np.asarray(speeds, dtype=np.float64), np.asarray(cores)))[::-1]
    total = float(per_core.sum())
    flops, since_first = tasks.flops, tasks.submit_time_s - tasks.submit_time_s[0]
    k = min(len(flops), len(per_core))
    largest = np.cumsum(np.sort(flops)[::-1][:k])
    bounds = [float((largest / np.cumsum(per_core[:k])).max()), float(flops.sum()) / total]
    if since_first[-1] > 0:
        still_to_come = np.cumsum(flops[::-1])[::-1]
        bounds.append(float((since_first + still_to_come / total).max()))
        bounds.append(float((since_first + flops / per_core[0]).max()))
    if tasks.dependencies is not None:
        bounds.append(least_makespan_of_paths(task_paths(tasks, flops / per_core[0]), flops, per_core))
    return max(bounds)


def _lower_hull(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Corners of the lower convex hull, by rate; at equal rates the least power counts."""
    hull: list[tuple[float, float]] = []
    for rate, watts in sorted(points):
        if hull and hull[-1][0] == rate:
            continue
        while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (rate - hull[-2][0]) >= (watts - hull[-2][1]) * (
            hull[-1][0] - hull[-2][0]
        ):
            hull.pop()
        hull.append((rate, watts))
    return hull


def host_power_curve(cores: int, states: Sequence[PState], off_w: float | None) -> list[tuple[float, float]]:
    """Corners (useful rate [flop/s], power [W]) of a host's least power curve g_j.

    Parameters
    ----------
    cores : int
    states : sequence of PState
        Those it may execute in.
    off_w : float or None
        Power while off [W], where it may be switched off.
    """
    points = [] if off_w is None else [(0.0, off_w)]
    for state in states:
        points += [(0.0, state.idle_w), (cores * state.speed, state.busy_w)]
        if state.epsilon_w < state.idle_w:  # else it is not below the line of the others
            slope = (state.busy_w - state.epsilon_w) / cores
            points.append((state.speed, state.epsilon_w + slope))
    hull = _lower_hull(points)
    least = min(watts for _, watts in hull)
    lowest = max(k for k, (_, watts) in enumerate(hull) if watts == least)
    return [(0.0, least), *hull[max(lowest, 1) :]]


class Segments(NamedTuple):
    """Straight parts of the power curves of hosts, shape (segments,) each.

    Attributes
    ----------
    site : ndarray of int64
    hosts : ndarray of int64
        Equal hosts that have it.
    rate, watts : ndarray of float64
        Its length [flop/s] and its rise [W], of one host.
    """

    site: Integers
    hosts: Integers
    rate: Floats
    watts: Floats


def power_segments(hosts: Sequence[UsableHost], site_of: Sequence[int], n_sites: int) -> tuple[Floats, Segments]:
    """Return the power at rate 0 of each site [W], and the parts of the power curves above that.

    Parameters
    ----------
    hosts : sequence of UsableHost
    site_of : sequence of int
        Of every host of the platform.
    n_sites : int
    """
    base_w, segments = np.zeros(n_sites), []
    counts = Counter((site_of[each.index], each.cores, each.states, each.off_w) for each in hosts)
    for (site, cores, states, off_w), count in counts.items():
        corners = host_power_curve(cores, states, off_w)
        base_w[site] += count * corners[0][1]
        for (rate, watts), (next_rate, next_watts) in pairwise(corners):
            segments.append((site, count, next_rate - rate, next_watts - watts))
    return base_w, Segments(*map(np.array, zip(*segments, strict=True)))


def _least_energy_per_flop(base_w: float, rates: Floats, watts: Floats, least: float, most: float) -> float:
    """Least G(r) / r [J/flop] over rates r of `least` to `most` [flop/s]."""
    corners = np.append(rates[(rates > least) & (rates < most)], [least, most])
    corners = corners[corners > 0]
    above = np.interp(corners, np.append(0.0, rates), np.append(0.0, watts))
    return float(((base_w + above) / corners).min())
