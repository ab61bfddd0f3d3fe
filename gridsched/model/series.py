"""Series by time, for hosts of several sites, and the signals that they make of a platform's hosts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from gridsched.errors import InputError
from gridsched.model.platform import Platform
from gridsched.model.signals import Signal, Unit


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
        """Return the end of its last interval [s].

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
