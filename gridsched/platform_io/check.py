"""What a platform file holds and what is wrong with it, without raising on the first problem."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path

from gridsched.errors import InputError, counted
from gridsched.model.platform import Host, Platform
from gridsched.platform_io.deployment import read_deployment
from gridsched.platform_io.findings import Findings
from gridsched.platform_io.overrides import PowerOverride
from gridsched.platform_io.simgrid_view import Inspection, Route, SimGridHost, SimGridLink
from gridsched.platform_io.xml_document import read_document
from gridsched.platform_io.xml_entries import read_entries
from gridsched.platform_io.xml_reader import build_platform

#: Clusters between which routes are shown.
_MOST_CLUSTERS = 8
#: Differences of one kind that are spelled out.
_SHOWN = 5


@dataclass(frozen=True)
class PlatformReport:
    """Result of ``gridsched platform check``.

    Attributes
    ----------
    path : str
        The file.
    platform : Platform
        Its hosts; those without usable energy figures have ``has_energy`` False.
    problems, notes : tuple of str
        What is wrong, and what is worth knowing.
    simgrid : str
        One line with SimGrid's message.
    links, routes : tuple
        The network as SimGrid sees it: `SimGridLink`, and a `Route` for each of `pairs`.
    """

    path: str
    platform: Platform
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    simgrid: str = "not asked"
    links: tuple[SimGridLink, ...] = ()
    routes: tuple[Route, ...] = ()

    @property
    def clusters(self) -> list[str]:
        """Name of the cluster of each computing host."""
        return [self.platform.clusters[c].name for c in self.platform.cluster_of.tolist()]

    @property
    def is_fine(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    def pairs(self) -> list[tuple[str, str]]:
        """Return the hosts whose routes describe the network.

        The master and the first host of each cluster, pair by pair, and the first two hosts of each
        cluster; of many clusters the first ones.
        """
        members: dict[str, list[str]] = {}
        for host, cluster in zip(self.platform.hosts, self.clusters, strict=True):
            members.setdefault(cluster, []).append(host.name)
        groups = list(members.values())[:_MOST_CLUSTERS]
        ends = ([self.platform.master.name] if self.platform.master else []) + [group[0] for group in groups]
        inside = [(group[0], group[1]) for group in groups if len(group) > 1]
        return inside + list(itertools.combinations(ends, 2))


def check_platform_file(path: str | Path) -> PlatformReport:
    """Return the file's description of hosts and every problem found in it.

    Parameters
    ----------
    path : str or Path
        SimGrid XML.

    Raises
    ------
    InputError
        Only if the file cannot be read as a SimGrid platform at all.
    """
    findings = Findings(path, strict=False)
    entries = read_entries(read_document(path), findings)
    platform = build_platform(entries, findings, PowerOverride())
    return PlatformReport(
        str(path),
        platform,
        problems=tuple(findings.problems + findings.gap_lines()),
        notes=(*findings.note_lines(), *_switches(platform), *_embodied(platform), *_changes(platform)),
    )


def _switches(platform: Platform) -> list[str]:
    """Return a line on each kind of booting and shutting down that hosts have."""
    names: dict[str, list[str]] = {}
    for host in platform.everyone:
        sentences = [
            f"{verb} in {time:g} s at {_watts(host, watts, pstate)}"
            for verb, time, watts, pstate in (
                ("boot", host.boot_time_s, host.boot_w, host.boot_pstate),
                ("shut down", host.shutdown_time_s, host.shutdown_w, host.shutdown_pstate),
            )
            if time
        ]
        if sentences:
            names.setdefault(" and ".join(sentences), []).append(host.name)
    return [
        f"{len(hosts)} host(s) ({hosts[0]!r}{', ...' * (len(hosts) > 1)}) {sentences}"
        for sentences, hosts in names.items()
    ]


def _embodied(platform: Platform) -> list[str]:
    """Return a line on each embodied carbon that hosts have."""
    names: dict[tuple[float, float], list[str]] = {}
    for host in platform.everyone:
        if host.embodied_kg:
            names.setdefault((host.embodied_kg, host.lifetime_years), []).append(host.name)
    return [
        f"{len(hosts)} host(s) ({hosts[0]!r}{', ...' * (len(hosts) > 1)}) embody {kg:g} kg CO2e, spread over {years:g} "
        "years"
        for (kg, years), hosts in names.items()
    ]


def _watts(host: Host, watts: float | None, pstate: int | None) -> str:
    """Return at which power a host is switched, in words."""
    power_text = "idle power" if watts is None else f"{watts:g} W"
    power_text = power_text if host.has_energy else "an unknown power"
    return power_text if pstate is None else f"{power_text} (P-state {pstate})"


def _changes(platform: Platform) -> list[str]:
    """Return a line on what changes with time."""
    profiles = platform.profiles
    if not profiles.of_hosts:
        return []
    return [
        f"{len(profiles.speeds)} host(s) with a speed profile, {len(profiles.states)} with a state "
        "profile: schedulers do not know of them"
    ]


def with_deployment(report: PlatformReport, path: str | Path) -> PlatformReport:
    """Return the report with the result for a deployment file: a note, or a problem."""
    try:
        deployment = read_deployment(path, report.platform)
    except InputError as error:
        return replace(report, problems=(*report.problems, str(error)))
    return replace(
        report,
        notes=(
            *report.notes,
            f"{path}: master on {deployment.master!r}, {counted(len(deployment.workers), 'worker')} on "
            f"{counted(len(report.platform), 'computing host')}",
        ),
    )


def with_inspection(report: PlatformReport, inspection: Inspection) -> PlatformReport:
    """Return the report with SimGrid's answer; whatever the two see differently is a problem."""
    if inspection.status == "skipped":
        return replace(report, simgrid=f"skipped: {inspection.message}")
    if inspection.status == "refused":
        problem = f"SimGrid refuses the file: {inspection.message}"
        return replace(report, problems=(*report.problems, problem), simgrid="refuses the file")
    differences = _differences(report, inspection.hosts)
    more = len(differences) - _SHOWN
    sentences = differences[:_SHOWN] + ([f"{more} more differences to SimGrid."] if more > 0 else [])
    return replace(
        report,
        problems=(*report.problems, *sentences),
        notes=(*report.notes, *(f"SimGrid warns: {text}" for text in inspection.warnings)),
        simgrid=f"loads it with the energy plugin, {counted(len(inspection.hosts), 'host')}",
        links=inspection.links,
        routes=inspection.routes,
    )


def _differences(report: PlatformReport, theirs: tuple[SimGridHost, ...]) -> list[str]:
    ours = {host.name: host for host in report.platform.everyone}
    problems = []
    for host in theirs:
        own = ours.pop(host.name, None)
        if own is None:
            problems.append(f"SimGrid has a host {host.name!r} that was not found in the file.")
            continue
        speeds = tuple(state.speed for state in own.all_pstates)
        if (own.cores, speeds) != (host.cores, host.speeds):
            problems.append(
                f"host {host.name!r}: read {own.cores} core(s) and speeds {list(speeds)}, SimGrid "
                f"sees {host.cores} and {list(host.speeds)}."
            )
    problems += [f"host {name!r} is in the file, but SimGrid does not have it." for name in ours]
    return problems
