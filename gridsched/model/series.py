"""Series by time, for hosts of several sites, and the signals that they make of a platform's hosts."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from gridsched.errors import InputError
from gridsched.model.calendar import Calendar
from gridsched.model.platform import Platform
from gridsched.model.signals import Signal, Unit


@dataclass(frozen=True)
class Series:
    """Values by time at one place: value k holds from ``time_s[k]`` until the next begins.

    Attributes
    ----------
    time_s, value : tuple of float
        When each value begins to hold [s], the first at 0; and the values.
    last_until_s : float or None
        When its last value ends [s], unless it begins again; None: see `end_s`. A table with dates, of which
        the first rows are before the run, sets it.
    """

    time_s: tuple[float, ...]
    value: tuple[float, ...]
    last_until_s: float | None = None

    @classmethod
    def constant(cls, value: float) -> Series:
        """Return one value for all times."""
        return cls((0.0,), (value,))

    def end_s(self, period_s: float | None) -> float:
        """Return the end of its last interval [s].

        Parameters
        ----------
        period_s : float or None
            After which it begins again [s]; infinite: its last value holds for ever. None: its last
            value lasts as long as the one before it, a single one for ever.
        """
        if self.last_until_s is not None and (period_s is None or math.isinf(period_s)):
            return self.last_until_s
        return end_of_rows(self.time_s, period_s)


def end_of_rows(time_s: Sequence[float], period_s: float | None) -> float:
    """Return the end of the last row of a table over time [s]; see `Series.end_s`."""
    if period_s is not None or len(time_s) == 1:
        return math.inf
    return 2 * time_s[-1] - time_s[-2]


def rows_of_run(time_s: Sequence[float], period_s: float | None) -> tuple[list[int], list[float]]:
    """Return which rows of a table with dates hold from the run's begin on, and when they begin to [s].

    Parameters
    ----------
    time_s : sequence of float
        When each row begins on the run's clock [s]; ascending, and the first is not after 0, the run's begin.
    period_s : float or None
        See `Series.end_s`. Rows that begin again are those of the hour at which the run begins, not its first ones.
    """
    if period_s is None or math.isinf(period_s):
        first = bisect_right(time_s, 0.0) - 1
        return list(range(first, len(time_s))), [max(time, 0.0) for time in time_s[first:]]
    within = [time - time_s[0] for time in time_s]
    now = -time_s[0] % period_s
    first = bisect_right(within, now) - 1
    rows = [*range(first, len(within)), *range(first)]
    times = [0.0, *(within[row] - now + (0.0 if row > first else period_s) for row in rows[1:])]
    if within[first] < now:  # the begin of the row that the run begins in
        rows.append(first)
        times.append(within[first] - now + period_s)
    return rows, times


def check_covered(values: str, end_s: float, key: str, until_s: float, calendar: Calendar | None = None) -> None:
    """Raise `InputError` where a run lasts longer than a table over time covers.

    Parameters
    ----------
    values : str
        What the table contains.
    end_s : float
        End of its last row [s].
    key : str
        The key of its period.
    until_s : float
        How long the run lasts, or at least lasts [s].
    calendar : Calendar, optional
        On which the run has dates.
    """
    if not until_s > end_s * (1 + 1e-12):
        return
    dates = None if calendar is None else calendar.dates([0.0, round(end_s), round(until_s)])
    begin, end, until = [""] * 3 if dates is None else [f" ({date})" for date in dates]
    raise InputError(
        f"{values} covers 0{begin} to {end_s:,.10g} s{end}, and the run lasts from 0 to {until_s:,.10g} s{until}. Give "
        f"more rows, or {key}: 86400 repeats a day, inf lets the last row hold forever."
    )


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
        By name, of hosts that the table does not contain.

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
            f"{platform.name}: no source gives the {values} of host {everyone[series.index(None)].name!r}: no row "
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
