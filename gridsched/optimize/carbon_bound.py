"""The least possible carbon of a bag of tasks on a platform, by the time within which it ends.

The relaxation of `gridsched.optimize.bag_bounds` by time and site. Let the run end at F, let the
intensities be constant in the intervals k of [0, F], and let host j have the power curve g_j. In
stretch k host j draws at least ``g_j(its mean useful rate)``, and a joule there weighs the grams
``w_jk``. So the least grams are those of the linear program over ``y_jks >= 0``, the flops that
host j executes in stretch k on segment s of its curve::

    min   sum_jk w_jk l_k g_j(0) + sum_jks w_jk slope_js y_jks
    s.t.  sum_jks y_jks = W,   y_jks <= width_js l_k

with the work W of all tasks and the length l_k of the stretch after the first submission. Slopes
ascend along a curve, so the program is a fractional knapsack: the cheapest next flop is always
that of the least ``w_jk slope_js`` which is left. It is solved by sorting, because a solver's
tolerance could put its answer above the optimum, where it would be no bound; the tests compare it
with HiGHS. As a function of F the optimum is convex within a interval (F is on the right-hand
side only), so its least value up to a time is found by the sign of its slope.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.model.platform import Platform
from gridsched.model.series import check_covered, site_names
from gridsched.model.signals import Signal
from gridsched.model.tasks import Tasks
from gridsched.optimize.bag_bounds import least_makespan_s, power_segments, usable_hosts

#: Halvings of a interval in which the best end lies: it is then known to the last digit.
_HALVINGS = 60


@dataclass(frozen=True)
class WorkShare:
    """What the best schedule of divisible tasks does at a site while nothing changes.

    Attributes
    ----------
    begin_s, end_s : float
        [s].
    site : int
    flops : float
        Executed there and then [flop].
    carbon_g : float
        Emitted there and then, by what idles and what is off as well [g].
    """

    begin_s: float
    end_s: float
    site: int
    flops: float
    carbon_g: float


class CarbonBound:
    """What no schedule of a bag emits less than.

    Parameters
    ----------
    platform : Platform
    tasks : Tasks
        At least one.
    signal : Signal
        Grams a joule at each host.
    pstates, may_switch_off, free_pstates, hosts_off
        As those of `bag_bounds`.

    Raises
    ------
    InputError
        If a host lacks the P-state, or all are off.
    """

    def __init__(
        self,
        platform: Platform,
        tasks: Tasks,
        signal: Signal,
        pstates: Integers | int = 0,
        *,
        may_switch_off: bool = False,
        free_pstates: bool = False,
        hosts_off: Collection[int] = (),
    ) -> None:
        hosts = usable_hosts(
            platform, pstates, may_switch_off=may_switch_off, free_pstates=free_pstates, hosts_off=hosts_off
        )
        self.signals = signal.sites or (signal,)
        site_of = signal.site if signal.sites else (0,) * len(platform)
        self.first_s, self.work = float(tasks.submit_time_s[0]), float(tasks.flops.sum())
        self.makespan_s = least_makespan_s(tasks, [each.speed for each in hosts], [each.cores for each in hosts])
        base_w, segments = power_segments(hosts, site_of, len(self.signals))
        resting = [site_of[each.index] for each in hosts], [each.rest_w for each in hosts]
        #: what the hosts of a site draw until the first submission beyond their power at rate 0 [W]
        self.rest_w: Floats = np.bincount(*resting, minlength=len(base_w)) - base_w
        for h in () if may_switch_off else hosts_off:
            base_w[site_of[h]] += platform.hosts[h].off_w
        #: power at rate 0 of all hosts of a site [W]
        self.base_w: Floats = base_w
        #: of each segment of the curves: its site, rate [flop/s], and joules a flop
        self.site: Integers = segments.site
        self.width: Floats = segments.hosts * segments.rate
        self.slope: Floats = segments.watts / segments.rate

    def least_g(self, makespan_s: float) -> float:
        """Return the grams that no schedule of at most this makespan is below [g].

        Parameters
        ----------
        makespan_s : float
            Of a schedule, finite; if only rounding makes it less than the bound, the bound counts.
        """
        return self._best(makespan_s)[1]

    def shares(self, makespan_s: float) -> list[WorkShare]:
        """Return what a best schedule of divisible tasks does, by interval and site.

        Parameters
        ----------
        makespan_s : float
            That it may have at most [s].
        """
        front, _, end = self._best(makespan_s)
        flops = front.flops_by_interval(end)
        grams = front.grams_by_interval(end, flops)
        of_site = np.zeros((2, len(self.signals), len(front.begin_s)))
        np.add.at(of_site[0], self.site, flops)
        of_site[1] = grams
        ends = np.append(front.begin_s[1:], end)
        return [
            WorkShare(float(front.begin_s[k]), float(min(ends[k], end)), site, *of_site[:, site, k].tolist())
            for k in range(len(front.begin_s))
            for site in range(len(self.signals))
            if front.begin_s[k] < end
        ]

    def _best(self, makespan_s: float) -> tuple[_Front, float, float]:
        """Return the intervals, the least grams [g], and the end of the run that has them [s]."""
        soonest = self.first_s + self.makespan_s
        latest = max(soonest, self.first_s + makespan_s)
        front = _Front(self, latest)
        return front, *front.least(soonest, latest)


class _Front:
    """The optimum of the program as a function of the end of the run, up to some time."""

    def __init__(self, bound: CarbonBound, latest: float) -> None:
        self._bound = bound
        edges = np.unique(np.concatenate([each.stretches(0.0, latest)[0] for each in bound.signals]))
        #: when each interval begins [s]
        self.begin_s: Floats = edges[:-1] if len(edges) > 1 else edges
        self._weights: Floats = np.stack([each.at(self.begin_s) for each in bound.signals])
        #: what a flop costs on each segment in each interval [g/flop], and in ascending order
        self._cost: Floats = bound.slope[:, None] * self._weights[bound.site]
        self._order = np.argsort(self._cost, axis=None, kind="stable")
        self._sorted = self._cost.ravel()[self._order]
        self._base_rate: Floats = bound.base_w @ self._weights
        #: beyond that, until the first submission [g], shape (sites, intervals)
        self._before: Floats = bound.rest_w[:, None] * self._weights * self._lengths(bound.first_s, 0.0)

    def _lengths(self, end: float, begin: float) -> Floats:
        """How long each interval lasts between two times [s]."""
        ends = np.append(self.begin_s[1:], np.inf)
        return np.clip(np.minimum(ends, end) - np.maximum(self.begin_s, begin), 0.0, None)

    def _filled(self, end: float) -> tuple[Floats, float]:
        """Return how many flops each part takes, the cheapest first, and what the last one costs [g/flop]."""
        room = (self._bound.width[:, None] * self._lengths(end, self._bound.first_s)).ravel()[self._order]
        before = np.concatenate([[0.0], np.cumsum(room)[:-1]])
        taken = np.clip(self._bound.work - before, 0.0, room)
        last = int(np.flatnonzero(taken)[-1]) if self._bound.work > 0 else 0
        return taken, float(self._sorted[last])

    def grams(self, end: float) -> float:
        """Return the least grams of a run that ends then [g]."""
        taken, _ = self._filled(end)
        return float(taken @ self._sorted + self._base_rate @ self._lengths(end, 0.0) + self._before.sum())

    def flops_by_interval(self, end: float) -> Floats:
        """Return what each segment of the curves executes in each interval [flop]."""
        flops = np.empty(self._cost.size)
        flops[self._order] = self._filled(end)[0]
        return flops.reshape(self._cost.shape)

    def grams_by_interval(self, end: float, flops: Floats) -> Floats:
        """Return what each site emits in each interval [g]."""
        grams = self._before + self._bound.base_w[:, None] * self._weights * self._lengths(end, 0.0)
        np.add.at(grams, self._bound.site, flops * self._cost)
        return grams

    def _slope_at(self, end: float, interval: int) -> float:
        """Return what a later end costs [g/s], where it lies in a interval."""
        _, last = self._filled(end)
        saved = self._bound.width * np.minimum(self._cost[:, interval] - last, 0.0)
        return float(saved.sum() + self._base_rate[interval])

    def least(self, soonest: float, latest: float) -> tuple[float, float]:
        """Return the least grams of a run that ends between two times [g], and that end [s]."""
        inner = self.begin_s[(self.begin_s > soonest) & (self.begin_s < latest)]
        best = (self.grams(latest), latest)
        for begin, end in pairwise(np.concatenate([[soonest], inner, [latest]]).tolist()):
            interval = int(np.searchsorted(self.begin_s, begin, side="right")) - 1
            low, high = begin, end
            if self._slope_at(low, interval) >= 0:
                high = low
            elif self._slope_at(high, interval) > 0:
                for _ in range(_HALVINGS):
                    middle = (low + high) / 2
                    low, high = (low, middle) if self._slope_at(middle, interval) >= 0 else (middle, high)
            best = min(best, (self.grams(high), high))
        return best


#: How many times the least makespan the rows of an answer last if no length is given.
_DEFAULTS = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)


@dataclass(frozen=True)
class CarbonAnswer:
    """The least grams of a bag for several longest makespans, and how the longest is best used.

    Attributes
    ----------
    name : str
        Of bag and platform.
    sites : list of str
        A name for each site.
    within_s : list of float
        Longest makespans, ascending [s].
    switched, fixed : CarbonBound
        Where hosts may be off at any time, and where they are on to the end.
    """

    name: str
    sites: list[str]
    within_s: list[float]
    switched: CarbonBound
    fixed: CarbonBound

    def rows(self) -> list[dict[str, float]]:
        """Return the bounds by the longest makespan."""
        return [
            {
                "within_s": within,
                "above_least": within / self.switched.makespan_s - 1,
                "carbon_g": self.switched.least_g(within),
                "fixed_carbon_g": self.fixed.least_g(within),
            }
            for within in self.within_s
        ]

    def shares(self) -> list[dict[str, Any]]:
        """Return what a best schedule within the longest makespan does, where hosts may be off."""
        return [
            {
                "begin_s": each.begin_s,
                "end_s": each.end_s,
                "site": self.sites[each.site],
                "work_share": each.flops / self.switched.work,
                "flops": each.flops,
                "carbon_g": each.carbon_g,
            }
            for each in self.switched.shares(self.within_s[-1])
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return all of it, for JSON."""
        return {"bag": self.name, "bounds": self.rows(), "work": self.shares()}


def carbon_answer(
    platform: Platform, tasks: Tasks, signal: Signal, pstates: Integers | int = 0, within_s: Sequence[float] = ()
) -> CarbonAnswer:
    """Bound the grams of a bag of tasks from below, for several longest makespans.

    Parameters
    ----------
    platform : Platform
    tasks : Tasks
        At least one.
    signal : Signal
        Grams a joule at each host.
    pstates : ndarray of int64, shape (hosts,), or int
        Where hosts are on to the end; where they may be off, they may take any P-state.
    within_s : sequence of float
        Longest makespans [s]; default some multiples of the least one that the signal covers.

    Raises
    ------
    InputError
        If one is below the least makespan, or the signal does not cover it, or hosts have no power.
    """
    if not platform.has_energy:
        raise InputError(f"{platform.name}: hosts have no power, and so emit no grams; give it by --power.")
    fixed = CarbonBound(platform, tasks, signal, pstates)
    switched = CarbonBound(platform, tasks, signal, pstates, may_switch_off=True, free_pstates=True)
    least, first_s = switched.makespan_s, switched.first_s
    within = sorted(within_s) or [least * k for k in _DEFAULTS if first_s + least * k <= signal.end_s]
    if not within or within[0] < least * (1 - 1e-9):
        shortest = within[0] if within else signal.end_s - first_s
        raise InputError(
            f"{tasks.name} takes at least {least:,.6g} s on {platform.name}, and {shortest:,.6g} s are asked for "
            "(--within-s) or covered by the carbon intensity. Give it longer."
        )
    check_covered("The carbon intensity", signal.end_s, "carbon_period_s", first_s + within[-1])
    return CarbonAnswer(f"{tasks.name} on {platform.name}", site_names(signal, platform), within, switched, fixed)
