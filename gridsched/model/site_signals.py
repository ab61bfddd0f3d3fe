"""What a joule weighs at each host of a platform, by a table of patterns of their names."""

from __future__ import annotations

from collections.abc import Mapping

from gridsched.errors import InputError
from gridsched.model.platform import Platform
from gridsched.model.signals import Signal, Unit
from gridsched.model.site_series import Series, SiteSeries


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
    everyone = [*platform.hosts, *(host for _, host in platform.idle_hosts_named)]
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
    return Signal.of_sites(series, period_s, factor, unit.name, len(platform))


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
