"""Series of prices and carbon intensities by time and site, and the signals they make."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import ArrayLike

from gridsched.arrays import Floats
from gridsched.errors import InputError
from gridsched.model.platform import Platform
from gridsched.model.signals import MONEY, Signal, Unit, begins_of_lines

# ----------------------
# Values by time, for hosts of several sites: what a table of prices or intensities says


@dataclass(frozen=True)
class Series:
    """Values by time at one place: value k holds from ``time_s[k]`` until the next begins.

    Attributes
    ----------
    time_s, value : tuple of float
        When each value begins to hold [s], the first at 0; and the values.
    """

    time_s: tuple[float, ...]
    value: tuple[float, ...]

    @classmethod
    def constant(cls, value: float) -> Series:
        """Return one value for all times."""
        return cls((0.0,), (value,))

    def end_s(self, period_s: float | None) -> float:
        """Return until when it says something [s].

        Parameters
        ----------
        period_s : float or None
            After which it begins again [s]; infinite: its last value holds for ever. None: its last
            value lasts as long as the one before it, a single one for ever.
        """
        if period_s is not None or len(self.time_s) == 1:
            return math.inf
        return 2 * self.time_s[-1] - self.time_s[-2]


@dataclass(frozen=True)
class SiteSeries:
    """A series for each pattern of names; the last one that fits a host counts.

    Attributes
    ----------
    patterns : tuple of str
        Of names of hosts or of their clusters, as ``node-*``.
    series : tuple of Series
        Of each pattern.
    """

    patterns: tuple[str, ...]
    series: tuple[Series, ...]

    def of(self, host: str, cluster: str | None) -> Series | None:
        """Return the series of a host, by its name or else its cluster's; None where none fits."""
        for name in (host, cluster):
            for pattern, series in zip(reversed(self.patterns), reversed(self.series), strict=True):
                if name is not None and fnmatchcase(name, pattern):
                    return series
        return None

    def check_period(self, period_s: float | None, key: str) -> None:
        """Raise `InputError` unless the last row begins before a period [s] of this key is over."""
        last = max(each.time_s[-1] for each in self.series)
        if period_s is not None and last >= period_s:
            raise InputError(f"{key} is {period_s:g} s, and the last row begins at {last:g} s; make the period longer.")


# ----------------------
# What a joule weighs at each host of a platform, by a table of patterns of their names


def site_signal(
    table: SiteSeries | None,
    platform: Platform,
    period_s: float | None,
    factor: float,
    unit: Unit,
    missing: tuple[str, str, str],
    constant: Mapping[str, Series] | None = None,
) -> Signal:
    """Return what a joule is in a unit at each host of a platform.

    Parameters
    ----------
    table : SiteSeries or None
    platform : Platform
    period_s : float or None
        See `Series.end_s`.
    factor : float
        What a value of the table is in the unit [1/J].
    unit : Unit
    missing : tuple of str
        What the values are, the option of the table, and what else might say them, for the message
        where a host has none.
    constant : mapping of str to Series, optional
        By name, of hosts of which the table says nothing.

    Raises
    ------
    InputError
        If some computing host has no values.
    """
    clusters = {h: cluster.name for cluster in platform.clusters for h in cluster.hosts}
    everyone = platform.everyone
    series = [
        (table and table.of(host.name, clusters.get(h))) or (constant or {}).get(host.name)
        for h, host in enumerate(everyone)
    ]
    if None in series[: len(platform)]:
        values, option, others = missing
        raise InputError(
            f"{platform.name}: nothing says the {values} of host {everyone[series.index(None)].name!r}: no row "
            f"of {option} fits its name or its cluster's{others}."
        )
    return signal_of_sites(series, period_s, factor, unit.name, len(platform))


def signal_of_sites(
    series: Sequence[Series | None], period_s: float | None, factor: float, unit: str, n_computing: int
) -> Signal:
    """Return what a joule is in a unit at each host; a weight is an amount of the unit.

    Parameters
    ----------
    series : sequence of Series or None
        Of each host, the computing ones first; None where it is unknown.
    period_s : float or None
        See `Series.end_s`.
    factor : float
        What a value of the series is in the unit [1/J].
    unit : str
    n_computing : int
        Number of computing hosts.
    """
    cycle_s = math.inf if period_s is None else period_s

    def signal(each: Series) -> Signal:
        weight = tuple(factor * value for value in each.value)
        return Signal(each.time_s, weight, cycle_s, 1.0, unit, each.end_s(period_s))

    distinct = list(dict.fromkeys(each for each in series if each is not None))
    if len(distinct) == 1 and None not in series:
        return signal(distinct[0])
    sites = tuple(map(signal, distinct))
    site = tuple(-1 if each is None else distinct.index(each) for each in series)
    begin_s = np.unique(np.concatenate([each.time_s for each in distinct]))
    weight = np.mean([sites[k].at(begin_s) for k in site[:n_computing]], axis=0)
    end_s = min(each.end_s for each in sites)
    return Signal(tuple(begin_s.tolist()), tuple(weight.tolist()), cycle_s, 1.0, unit, end_s, sites, site)


def site_names(signal: Signal, platform: Platform) -> list[str]:
    """Return a name for each site whose intensity differs: its clusters, or else its hosts."""
    if not signal.sites:
        return ["all sites"]
    hosts_of: list[list[int]] = [[] for _ in signal.sites]
    for h, site in enumerate(signal.site[: len(platform)]):
        hosts_of[site].append(h)
    names = []
    for hosts in hosts_of:
        clusters = [each for each in platform.clusters if set(each.hosts) <= set(hosts)]
        covers = sum(len(each.hosts) for each in clusters) == len(hosts)
        own = [each.name for each in clusters] if covers else [platform.hosts[h].name for h in hosts]
        names.append(", ".join(own) if len(own) <= 3 else f"{own[0]} and {len(own) - 1} more")
    return [name or "no computing host" for name in names]


# ----------------------
# Prices that vary over the day: what a bag pays, and what a joule costs


@dataclass(frozen=True)
class PriceSeries:
    """Prices by time of day: line k holds from ``time_s[k]`` until the next line begins.

    After a period (`Tariff.prices_period_s`) the first line holds again.

    Attributes
    ----------
    time_s : tuple of float
        When each line begins [s]; the first is 0, and they ascend.
    price : tuple of float
        What a bag pays that is finished then and is the only unfinished one [money].
    energy_cost_per_j : tuple of float
        What a joule costs [money/J].
    per_waiting_bag : tuple of float
        What a bag pays more (or less, if negative) for each other bag that has been submitted and
        is unfinished at that time [money]. No bag pays less than 0.
    sites : SiteSeries or None
        What a joule costs at each site [money/J], in the place of `energy_cost_per_j`, which is
        then a mean.

    Raises
    ------
    InputError
        If the columns differ in length, or the times do not ascend from 0.
    """

    time_s: tuple[float, ...]
    price: tuple[float, ...]
    energy_cost_per_j: tuple[float, ...]
    per_waiting_bag: tuple[float, ...]
    sites: SiteSeries | None = None

    def __post_init__(self) -> None:
        columns = (self.price, self.energy_cost_per_j, self.per_waiting_bag)
        if any(len(column) != len(self.time_s) for column in columns):
            raise InputError(
                f"Prices: {len(self.time_s)} times go with {[len(each) for each in columns]} "
                "prices, energy costs and prices by backlog; give one of each for each time."
            )
        times = np.array(self.time_s)
        if not len(times) or times[0] != 0 or not np.all(np.diff(times) > 0):
            raise InputError(f"Prices: the times are {list(self.time_s)[:8]}; they must ascend from 0 s.")

    @classmethod
    def of_energy(cls, time_s: Sequence[float], energy_cost_per_j: Sequence[float]) -> PriceSeries:
        """Return a series of what joules cost alone, for a budget in money.

        Parameters
        ----------
        time_s : sequence of float
            When each line begins [s].
        energy_cost_per_j : sequence of float
            [money/J].
        """
        nothing = (0.0,) * len(time_s)
        return cls(tuple(time_s), nothing, tuple(energy_cost_per_j), nothing)

    @classmethod
    def by_site(cls, sites: SiteSeries, price: float = 0.0) -> PriceSeries:
        """Return a series of what joules cost at each site, and of one price of a bag.

        Parameters
        ----------
        sites : SiteSeries
            [money/J].
        price : float
            What a bag pays [money].
        """
        mean = float(np.mean([value for series in sites.series for value in series.value]))
        return cls((0.0,), (price,), (mean,), (0.0,), sites)

    def check_period(self, period_s: float, key: str = "prices_period_s") -> None:
        """Raise `InputError` unless the last line begins before a period [s] is over.

        `key` is the period's name, for the message.
        """
        if self.sites is not None:
            self.sites.check_period(period_s, key)
        if not self.time_s[-1] < period_s:
            raise InputError(
                f"Prices: the last line begins at {self.time_s[-1]:g} s, and the series begins "
                f"again after {period_s:g} s ({key}); make the period longer."
            )

    def begins(self, period_s: float, until_s: float) -> Floats:
        """Return when lines begin, from 0 to `until_s` [s]; entry k is one of line k mod lines.

        Parameters
        ----------
        period_s : float
            After which the first line holds again [s]; infinite if it never does.
        until_s : float

        Raises
        ------
        InputError
            As `begins_of_lines`.
        """
        begins = begins_of_lines(self.time_s, period_s, 0.0, until_s)
        return begins[begins <= until_s]

    def now_and_next(self, period_s: float, now_s: float) -> tuple[int, float]:
        """Return the line that holds at a time, and when the next one begins [s].

        Parameters
        ----------
        period_s : float
            After which the first line holds again [s].
        now_s : float

        Returns
        -------
        line : int
        next_s : float
            Infinite if no line follows.
        """
        reach_s = 0.0 if math.isinf(period_s) else period_s
        begins = begins_of_lines(self.time_s, period_s, max(now_s - reach_s, 0.0), now_s + 2 * reach_s)
        place = int(np.searchsorted(begins, now_s, side="right"))
        following = float(begins[place]) if place < len(begins) else math.inf
        return (place - 1) % len(self.time_s), following

    def mean(self, period_s: float) -> tuple[float, float, float]:
        """Return the means over a period of price, energy cost and price by backlog.

        Of a series that never begins again: over the time until its last line, or that line if
        it is the only one.

        Parameters
        ----------
        period_s : float
            [s].
        """
        end = self.time_s[-1] if math.isinf(period_s) else period_s
        lasts = np.diff([*self.time_s, end])
        weights = lasts if lasts.sum() > 0 else np.ones(1)
        columns = (self.price, self.energy_cost_per_j, self.per_waiting_bag)
        price, energy_cost, waiting = (float(np.average(each, weights=weights)) for each in columns)
        return price, energy_cost, waiting

    def signal(self, period_s: float, platform: Platform) -> Signal:
        """Return what a joule costs at each host [money/J]; the series begins again after a period [s].

        Raises
        ------
        InputError
            If the price at some host is not told.
        """
        if self.sites is None:
            return Signal(self.time_s, self.energy_cost_per_j, period_s, 1.0, MONEY.name)
        return site_signal(self.sites, platform, period_s, 1.0, MONEY, ("energy price", "the prices", ""))

    def energy_price(self, period_s: float) -> Signal:
        """Return what a joule costs relative to its mean over a period [s]."""
        mean = self.mean(period_s)[1]
        return Signal.relative(self.time_s, self.energy_cost_per_j, period_s, mean, MONEY.name)

    def paid(self, line: ArrayLike, waiting: ArrayLike) -> Floats:
        """Return what a bag pays [money].

        Parameters
        ----------
        line : array_like of int
            The line that holds when it is finished.
        waiting : array_like of int
            Other bags that are unfinished then.
        """
        lines = np.asarray(line, dtype=np.int64)
        price, more = np.array(self.price)[lines], np.array(self.per_waiting_bag)[lines]
        return np.maximum(price + more * np.asarray(waiting), 0.0)
