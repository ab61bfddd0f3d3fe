"""What ``gridsched platform`` prints."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from typing import Any

from rich.console import Console

from gridsched.cli.tables import print_table
from gridsched.errors import counted
from gridsched.metrics.columns import Column, prefix
from gridsched.model.platform import Host, Platform
from gridsched.platform_io.check import PlatformReport

#: Rows of hosts shown after writing a platform; the check shows all.
_SHOWN_HOSTS = 12
_SHOWN_ROUTES = 12
_ROUTES = (
    Column("from", "from"),
    Column("to", "to"),
    Column("links", "links", "figure"),
    Column("latency", "latency\n[s]", "figure"),
    Column("bandwidth", "bandwidth\n[B/s]", "figure"),
)
_HOSTS = (
    Column("hosts", "hosts"),
    Column("cluster", "cluster"),
    Column("n", "n", "figure"),
    Column("cores", "cores", "figure"),
    Column("pstates", "P-states", "figure"),
    Column("speed", "speed\n[flop/s]", "figure"),
    Column("idle", "idle\n[W]", "figure"),
    Column("epsilon", "epsilon\n[W]", "figure"),
    Column("busy", "busy\n[W]", "figure"),
    Column("off", "off\n[W]", "figure"),
)


def print_platform(console: Console, platform: Platform, output: str, notes: tuple[str, ...]) -> None:
    """Print what was written where, and the notes."""
    hosts = [(platform.hosts[h], cluster.name) for cluster in platform.clusters for h in cluster.hosts]
    rows = _alike_rows(hosts, platform)
    print_table(console, _HOSTS, rows[:_SHOWN_HOSTS])
    if len(rows) > _SHOWN_HOSTS:
        _plain(console, f"... and {len(rows) - _SHOWN_HOSTS} more kinds of hosts")
    _lines(console, "note", notes)
    count = f"{counted(len(platform.hosts), 'host')} in {counted(len(platform.clusters), 'cluster')}"
    master = " and a master" if platform.master else ""
    _plain(console, f"Wrote {output}: {count}{master}.")


def print_report(console: Console, report: PlatformReport) -> None:
    """Print hosts, notes, problems and a last line that sums up."""
    hosts = list(zip(report.platform.hosts, report.clusters, strict=True))
    print_table(console, _HOSTS, _alike_rows(hosts, report.platform))
    _print_network(console, report)
    _lines(console, "note", report.notes)
    _lines(console, "problem", report.problems)
    _plain(console, f"SimGrid: {report.simgrid}.")
    verdict = "fine" if report.is_fine else counted(len(report.problems), "problem")
    _plain(console, f"{report.path}: {counted(len(report.platform), 'computing host')}, {verdict}.")


def report_as_dict(report: PlatformReport) -> dict[str, Any]:
    """Return the report for JSON: every host with its speeds [flop/s] and wattages [W]."""
    hosts = [
        {"cluster": cluster, "role": None, **_host_as_dict(host)}
        for host, cluster in zip(report.platform.hosts, report.clusters, strict=True)
    ]
    hosts += [{"cluster": None, "role": role, **_host_as_dict(host)} for role, host in report.platform.idle_hosts_named]
    return {
        "platform": report.path,
        "fine": report.is_fine,
        "problems": list(report.problems),
        "notes": list(report.notes),
        "simgrid": report.simgrid,
        "links": [asdict(link) for link in report.links],
        "routes": [asdict(route) for route in report.routes],
        "hosts": hosts,
    }


def _print_network(out: Console, report: PlatformReport) -> None:
    """Print how many links there are, and the routes between clusters."""
    links, routes = report.links, report.routes
    if not links:
        return
    speeds = [link.bandwidth for link in links]
    delays = [link.latency_s for link in links]
    powered = sum(link.wattage_range is not None for link in links)
    _plain(out, "")
    _plain(
        out,
        f"Network: {len(links)} link(s), {_range(speeds, 'B/s')}, latency {_range(delays, 's')}"
        + (f"; {powered} with wattage_range" if powered else ""),
    )
    rows = [
        {
            "from": route.source,
            "to": route.target,
            "links": "no route" if route.links is None else str(len(route.links)),
            "latency": "" if route.links is None else f"{route.latency_s:.4g}",
            "bandwidth": "" if route.links is None else _short(route.bandwidth),
        }
        for route in routes[:_SHOWN_ROUTES]
    ]
    if rows:
        print_table(out, _ROUTES, rows)
    if len(routes) > _SHOWN_ROUTES:
        _plain(out, f"... and {len(routes) - _SHOWN_ROUTES} more routes; --json has all")


def _range(values: list[float], unit: str) -> str:
    low, high = (_short(value, unit) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _host_as_dict(host: Host) -> dict[str, Any]:
    watts = [[s.idle_w, s.epsilon_w, s.busy_w] for s in host.pstates] if host.has_energy else None
    return {
        "name": host.name,
        "cores": host.cores,
        "speeds_flops": [state.speed for state in host.pstates],
        "idle_epsilon_busy_w": watts,
        "off_w": host.off_w if host.has_energy else None,
        "boot_time_s": host.boot_time_s,
        "boot_w": host.boot_w if host.has_energy else None,
        "shutdown_time_s": host.shutdown_time_s,
        "shutdown_w": host.shutdown_w if host.has_energy else None,
    }


def _alike_rows(rows: list[tuple[Host, str]], platform: Platform) -> list[dict[str, Any]]:
    """Return the rows of the table; neighbors that differ in name only share one.

    `rows` are the computing hosts of the platform, each with its cluster.
    """
    everyone = [*rows, *((host, f"({role})") for role, host in platform.idle_hosts_named)]
    alike = []
    for (cluster, figures), group in groupby(everyone, lambda each: (each[1], _figures(each[0]))):
        names = [host.name for host, _ in group]
        name = names[0] if len(names) == 1 else (f"{names[0]} ...", names[-1])
        alike.append({"hosts": name, "cluster": cluster, "n": len(names), **figures})
    return alike


def _figures(host: Host) -> dict[str, str | tuple[str, str]]:
    """Return cores, P-states, core speed and powers, first to last P-state."""
    states = host.pstates
    figures: dict[str, str | tuple[str, str]] = {
        "cores": str(host.cores),
        "pstates": str(len(states)),
        "speed": _span([each.speed for each in states]),
    }
    if not host.has_energy:
        return figures | dict.fromkeys(("idle", "epsilon", "busy", "off"), "none")
    return figures | {
        "idle": _span([each.idle_w for each in states]),
        "epsilon": _span([each.epsilon_w for each in states]),
        "busy": _span([each.busy_w for each in states]),
        "off": _short(host.off_w),
    }


def _span(values: list[float]) -> str | tuple[str, str]:
    first, last = _short(values[0]), _short(values[-1])
    return first if len(set(values)) == 1 else (first, f"..{last}")


def _short(value: float, unit: str = "") -> str:
    """Write a number with four digits and its own SI prefix, before a unit if there is one."""
    factor, letter = prefix(value) if value >= 1e6 else (1e3, "k") if value >= 1e4 else (1.0, "")
    return f"{value / factor:.4g} {letter}{unit}".rstrip()


def _lines(console: Console, kind: str, texts: tuple[str, ...]) -> None:
    for text in texts:
        _plain(console, f"{kind}: {text}")


def _plain(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
