"""Read a SimGrid platform file into the model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gridsched.errors import did_you_mean
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.platform_io.overrides import REPLACED, SAME_IN_ALL, GivenPower, without_work
from gridsched.platform_io.xml_document import Findings, read_document
from gridsched.platform_io.xml_entries import Entries, HostEntry, read_entries
from gridsched.platform_io.xml_properties import read_amount, read_resources, read_switching, read_wattages

#: Properties of our own that SimGrid hands through; see the module ``xml_writer``.
HOST_ID = "host_id"
CLUSTER_NAME = "cluster_name"
UPLINK = "uplink"
#: Grams of CO2 a kWh, as SimGrid's coming plugin has it.
CARBON_INTENSITY = "carbon_intensity"
#: SimGrid's links need a finite bandwidth; this one [byte/s] and more count as infinite.
UNLIMITED_BANDWIDTH = 1e18


def read_platform(path: str | Path, power: GivenPower | None = None) -> Platform:
    """Read any platform file that SimGrid 4.1 reads.

    Hosts keep the order of the document, unless every computing host carries our property
    ``host_id``. A cluster is a netzone that directly holds computing hosts; the zone's property
    ``uplink`` may name the link whose bandwidth and latency are the cluster's. The host with the
    property ``role=master`` computes nothing, nor do hosts of speed 0. Hosts without
    ``wattage_per_state`` count with 0 W.

    Parameters
    ----------
    path : str or Path
        SimGrid XML, version 4 or 4.1.
    power : GivenPower, optional
        Power of hosts [W] in the place of what the file says, or does not say.

    Returns
    -------
    Platform
        Its `warnings` say what is odd, one line for each kind.

    Raises
    ------
    InputError
        At the first thing that is wrong; the message names file, line and host.
    """
    findings = Findings(path, strict=True)
    entries = read_entries(read_document(path), findings)
    return build_platform(entries, findings, power or GivenPower())


def build_platform(entries: Entries, findings: Findings, power: GivenPower) -> Platform:
    """Return the platform that `entries` describe, with the power that is given."""
    power.check_names((entry.name for entry in entries.hosts), str(findings.path))
    masters = find_masters(entries, findings)
    workers = [entry for entry in entries.hosts if entry not in masters]
    computing = _in_order([entry for entry in workers if entry.computes], findings)
    if not computing:
        findings.problem("no host computes; a platform needs at least one besides the master.")
    still = [entry for entry in workers if not entry.computes]
    for entry in still:
        findings.remark("have speed 0: they compute nothing", entry.name)
    ids = {entry.name: k for k, entry in enumerate(computing)}
    hosts = tuple(_host(entry, findings, power) for entry in computing)
    master = _host(masters[0], findings, power) if masters else None
    members_of: dict[str, list[int]] = {zone: [] for zone in entries.zones}
    for entry in entries.hosts:
        if entry.name in ids:
            members_of.setdefault(entry.zone, []).append(ids[entry.name])
    clusters = []
    for zone, members in members_of.items():
        if members:
            properties = entries.zones.get(zone, {})
            bandwidth, latency = read_uplink(zone, properties, entries, findings)
            name = properties.get(CLUSTER_NAME, zone)
            clusters.append(Cluster(name, tuple(members), bandwidth, latency))
    return Platform(
        hosts,
        tuple(clusters),
        master,
        bystanders=tuple(_host(entry, findings, power) for entry in still),
        name=str(findings.path),
        warnings=tuple(findings.gap_lines() + findings.note_lines()),
        profiles=entries.profiles,
        carbon_intensity=tuple(_intensities(entries, findings)),
    )


def _intensities(entries: Entries, findings: Findings) -> Iterator[tuple[str, float]]:
    """Yield hosts and their carbon intensity [g/kWh]: their own property, or that of their zone."""
    for entry in entries.hosts:
        for properties in (entry.properties, entries.zones.get(entry.zone, {})):
            if CARBON_INTENSITY in properties:
                yield entry.name, read_amount(entry.name, properties, CARBON_INTENSITY, findings, entry.line)
                break


def find_masters(entries: Entries, findings: Findings) -> list[HostEntry]:
    """Return the hosts with ``role=master``; more than one is a problem.

    Of a ``<cluster>`` with the property the first host is meant.
    """
    marked = [e for e in entries.hosts if e.properties.get("role", "").strip() == "master"]
    of_cluster = {e.cluster: e for e in reversed(marked) if e.cluster is not None}
    masters = [e for e in marked if e.cluster is None or e is of_cluster[e.cluster]]
    if len(masters) > 1:
        names = " and ".join(repr(entry.name) for entry in masters[:2])
        findings.problem(
            f"{len(masters)} hosts have the property role=master ({names}); one at most is legal.", masters[1].line
        )
    return masters


def _in_order(computing: list[HostEntry], findings: Findings) -> list[HostEntry]:
    with_ids = [entry for entry in computing if HOST_ID in entry.properties]
    if not with_ids:
        return computing
    entries = {entry.properties[HOST_ID].strip(): entry for entry in with_ids}
    expected_ids = [str(k) for k in range(len(computing))]
    missing = [k for k in expected_ids if k not in entries]
    if missing or len(with_ids) != len(computing):
        findings.problem(
            f"the property {HOST_ID} must number all {len(computing)} computing hosts from 0; "
            f"found it on {len(with_ids)} hosts, {missing[:1] or ['none']} missing."
        )
        return computing
    return [entries[k] for k in expected_ids]


def read_uplink(zone: str, properties: dict[str, str], entries: Entries, findings: Findings) -> tuple[float, float]:
    """Return bandwidth [byte/s] and latency [s] of a zone's uplink, ideal where it names none."""
    link = properties.get(UPLINK)
    if link is None:
        return float("inf"), 0.0
    if link not in entries.links:
        findings.problem(
            f"zone {zone!r}: the property {UPLINK} names the link {link!r}, which the file does "
            f"not define. {did_you_mean(link, entries.links)}".rstrip()
        )
        return float("inf"), 0.0
    bandwidth, latency = entries.links[link]
    if bandwidth >= UNLIMITED_BANDWIDTH:
        bandwidth = float("inf")
    if bandwidth <= 0:
        findings.problem(f"zone {zone!r}: its uplink {link!r} has no bandwidth.")
    return bandwidth, latency


def _host(entry: HostEntry, findings: Findings, power: GivenPower) -> Host:
    wattages = host_wattages(entry, findings, power)
    speeds = (*entry.speeds, *[0.0] * entry.n_still)
    watts = wattages or ((0.0, 0.0, 0.0),) * len(speeds)
    states = [PState(speed, *power) for speed, power in zip(speeds, watts, strict=True)]
    n = len(entry.speeds)
    return Host(
        entry.name,
        tuple(states[:n]),
        entry.cores,
        off_w=host_off_w(entry, findings) if wattages else 0.0,
        has_energy=wattages is not None,
        pstate=entry.pstate,
        switch_pstates=tuple(states[n:]),
        resources=read_resources(entry, findings),
        **read_switching(entry, findings),
    )


def host_wattages(
    entry: HostEntry, findings: Findings, power: GivenPower
) -> tuple[tuple[float, float, float], ...] | None:
    """Return idle, epsilon and all-cores power [W] of each P-state, None without figures.

    Those of speed 0 are the last. Power that is given is not theirs.
    """
    if entry.pstate:
        findings.remark("start in another P-state than 0, as their attribute pstate says", entry.name)
    if max(entry.speeds) > entry.speeds[0]:
        findings.remark("have a faster P-state than P-state 0", entry.name)
    if "sleep_pstates" in entry.properties:
        findings.remark(
            "have Batsim's property sleep_pstates; gridsched takes these P-states as ordinary ones", entry.name
        )
    if power.is_none:
        return None
    n_pstates = len(entry.speeds) + entry.n_still
    override = power.of(entry.name, len(entry.speeds), str(findings.path))
    own = None
    has_own = "wattage_per_state" in entry.properties
    if override is None or (has_own and entry.n_still):
        own = read_wattages(entry.name, entry.properties, n_pstates, findings, entry.line)
    if override is None:
        return own
    if has_own:
        findings.remark(REPLACED, entry.name)
    if len(override) > 1 and len(set(override)) == 1:
        findings.remark(SAME_IN_ALL, entry.name)
    still = own[len(override) :] if own is not None else (without_work(override),) * entry.n_still
    return override + still


def host_off_w(entry: HostEntry, findings: Findings) -> float:
    """Return the power while switched off [W]; the old name ``watt_off`` is not read."""
    return read_amount(entry.name, entry.properties, "wattage_off", findings, entry.line)
