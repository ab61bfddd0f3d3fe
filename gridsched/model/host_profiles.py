"""How fast hosts are, and whether they are up, as it changes with time: from a file or drawn.

What will happen is not known before: drivers and the energy model read it, schedulers never do.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import merge
from itertools import chain, starmap
from typing import Literal

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.model.records import check_choices
from gridsched.model.seeds import random_stream

Distribution = Literal["exponential", "weibull"]


@dataclass(frozen=True)
class Profile:
    """A value that holds from one date to the next, as in SimGrid; before the first it is 1.

    Attributes
    ----------
    dates_s : tuple of float
        Ascending, at least 0 [s].
    values : tuple of float
        Of a speed: the share of the P-state's speed, above 0. Of a state: above 0 is up.
    loop_delay_s : float or None
        Where it repeats: the time from its last date to the begin of the next round [s].
    """

    dates_s: tuple[float, ...]
    values: tuple[float, ...]
    loop_delay_s: float | None = None

    def events(self) -> Iterator[tuple[float, float]]:
        """Yield date [s] and value of each change; without end where it repeats.

        Dates are summed up from their distances in SimGrid's order, so that they are SimGrid's to
        the last digit.
        """
        before = (0.0, *self.dates_s)
        steps = [date - last for last, date in zip(before, self.dates_s, strict=False)]
        date = 0.0
        for step, value in zip(steps, self.values, strict=True):
            date += step
            yield date, value
        if self.loop_delay_s is None or not steps:
            return
        steps[0] += self.loop_delay_s
        while True:
            for step, value in zip(steps, self.values, strict=True):
                date += step
                yield date, value


@dataclass(frozen=True)
class SampledFailures:
    """When a host fails and is up again, drawn from a random stream of its own.

    Attributes
    ----------
    mtbf_s : float
        Mean time from being up until the next failure [s].
    mttr_s : float
        Mean time until it is up again, exponential [s].
    distribution : {"exponential", "weibull"}
        Of the times between failures.
    shape : float
        Of the Weibull distribution; below 1 a host that has just come up fails sooner.
    seed, replicate, host : int
        Which stream: the times of a host depend on nothing else.
    """

    mtbf_s: float
    mttr_s: float
    distribution: Distribution
    shape: float
    seed: int
    replicate: int
    host: int

    def __post_init__(self) -> None:
        check_choices(self)

    def events(self) -> Iterator[tuple[float, float]]:
        """Yield the date [s] of each failure, with the value 0, and of each return, with 1."""
        rng = random_stream(self.seed, "failures", self.replicate, self.host)
        shape = self.shape if self.distribution == "weibull" else 1.0
        scale = self.mtbf_s / math.gamma(1.0 + 1.0 / shape)
        date = 0.0
        while True:
            date += scale * float(rng.weibull(shape))  # with shape 1 it is exponential
            yield date, 0.0
            date += self.mttr_s * float(rng.exponential())
            yield date, 1.0


@dataclass(frozen=True)
class PlannedOutages:
    """When a host is down for maintenance.

    Attributes
    ----------
    windows_s : tuple of (float, float)
        Begin and end of each time [s], in order; none overlap.
    """

    windows_s: tuple[tuple[float, float], ...]

    def events(self) -> Iterator[tuple[float, float]]:
        """Yield the date [s] of each begin, with the value 0, and of each end, with 1."""
        for begin_s, end_s in self.windows_s:
            yield begin_s, 0.0
            yield end_s, 1.0


#: The sources of the times at which a host is down: a platform file, a draw, or a plan.
StateProfile = Profile | SampledFailures | PlannedOutages


@dataclass(frozen=True)
class HostProfiles:
    """What changes with time on a platform, by name of the host.

    Attributes
    ----------
    speeds : tuple of (str, Profile)
    states : tuple of (str, StateProfile)
    failing_links : tuple of str
        Links with a state profile.
    files : tuple of str
        The files that profiles were read from, of links, too.
    """

    speeds: tuple[tuple[str, Profile], ...] = ()
    states: tuple[tuple[str, StateProfile], ...] = ()
    failing_links: tuple[str, ...] = ()
    files: tuple[str, ...] = field(default=(), compare=False)

    @cached_property
    def speed_of(self) -> dict[str, Profile]:
        """Speed profile by name of the host."""
        return dict(self.speeds)

    @cached_property
    def state_of(self) -> dict[str, StateProfile]:
        """State profile by name of the host."""
        return dict(self.states)

    @property
    def of_hosts(self) -> bool:
        """Whether any host changes with time."""
        return bool(self.speeds or self.states)

    @property
    def are_in_files(self) -> bool:
        """Whether SimGrid's own file contains any of it: it contains no drawn failures."""
        has_any = bool(self.files or self.speeds)
        return has_any or any(isinstance(each, Profile) for _, each in self.states)


@dataclass(frozen=True)
class SlowestOf:
    """The least share of speed among hosts that compute one execution together.

    Attributes
    ----------
    profiles : tuple of Profile
        Of those hosts whose speed changes.
    all_change : bool
        Whether these are all of them; the others have the whole speed.
    """

    profiles: tuple[Profile, ...]
    all_change: bool

    def events(self) -> Iterator[tuple[float, float]]:
        """Yield date [s] and least share of each change; without end where one repeats."""
        shares = [1.0] * (len(self.profiles) + (not self.all_change))
        for date, k, share in merge(*starmap(_numbered, enumerate(self.profiles))):
            shares[k] = share
            yield date, min(shares)


def _numbered(k: int, profile: Profile) -> Iterator[tuple[float, int, float]]:
    return ((date, k, share) for date, share in profile.events())


class SpeedOverTime:
    """The share of its speed that a host has at each time, and what can be computed in it.

    Parameters
    ----------
    profile : Profile or SlowestOf
    """

    def __init__(self, profile: Profile | SlowestOf) -> None:
        self._events = chain(profile.events(), [(math.inf, 1.0)])
        self._dates = [-math.inf]
        #: share from each date on, to the next
        self._shares = [1.0]
        self._known_until(0.0)

    def _known_until(self, time: float) -> None:
        while self._dates[-1] <= time:
            date, share = next(self._events)
            self._dates.append(date)
            self._shares.append(share)

    def end_of(self, start: float, duration: float) -> float:
        """Return when work ends that begins at `start` and takes `duration` at full speed [s]."""
        self._known_until(start)
        k = bisect_right(self._dates, start) - 1
        time, left = start, duration
        while True:
            share = self._shares[k]
            if time + left / share <= self._dates[k + 1]:
                return time + left / share
            left -= (self._dates[k + 1] - time) * share
            time = self._dates[k + 1]
            if left <= 0.0:
                return time
            self._known_until(time)
            k += 1

    def work_s(self, start: float, end: float) -> float:
        """Return how long the same work takes at full speed [s]."""
        self._known_until(end)
        first, last = bisect_right(self._dates, start) - 1, bisect_right(self._dates, end) - 1
        edges = [start, *self._dates[first + 1 : last + 1], end]
        shares = self._shares[first : last + 1]
        return math.fsum((b - a) * share for a, b, share in zip(edges[:-1], edges[1:], shares, strict=True))

    def changes(self, end: float, start: float = 0.0) -> tuple[Floats, Floats]:
        """Return dates [s] and shares of all changes up to a time, the first at `start`."""
        self._known_until(end)
        first, last = bisect_right(self._dates, start) - 1, bisect_right(self._dates, end)
        dates, shares = self._dates[first:last], self._shares[first:last]
        return np.array([start, *dates[1:]]), np.array(shares)


class Speeds:
    """How fast the hosts of a platform compute over time, alone or together.

    Parameters
    ----------
    profiles : HostProfiles
    names : sequence of str
        Of the hosts, by their ids.

    Attributes
    ----------
    changing : ndarray of int64
        Hosts whose speed changes, ascending.
    """

    def __init__(self, profiles: HostProfiles, names: Sequence[str]) -> None:
        of = profiles.speed_of
        self._profile = {h: of[name] for h, name in enumerate(names) if name in of}
        self.changing = np.array(list(self._profile), dtype=np.int64)
        self._known: dict[tuple[bool, tuple[int, ...]], SpeedOverTime] = {}

    def of(self, hosts: Integers) -> SpeedOverTime | None:
        """Return the speed of hosts that compute together; None where none of them changes."""
        culprits = tuple(hosts[np.isin(hosts, self.changing)].tolist())
        if not culprits:
            return None
        key = len(culprits) == len(hosts), culprits
        if key not in self._known:
            profiles = tuple(self._profile[h] for h in culprits)
            self._known[key] = SpeedOverTime(SlowestOf(profiles, all_change=key[0]))
        return self._known[key]
