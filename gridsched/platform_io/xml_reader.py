"""Read a platform from SimGrid XML: hosts with the properties that say their energy and switching, clusters, master.

Properties of our own state how long hosts boot and shut down, and in which P-state.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gridsched.errors import did_you_mean
from gridsched.model.constraints import FEATURE_MARKS, is_feature
from gridsched.model.limits import LARGEST
from gridsched.model.platform import Cluster, Host, Layout, Platform, PState
from gridsched.model.tasks import MEMORY
from gridsched.platform_io.findings import Findings
from gridsched.platform_io.host_resources import (
    MEMORY_PROPERTY,
    RESOURCES_PROPERTY,
    UNIT_POWER_PROPERTY,
    Resources,
    UnitPower,
    parse_memory_mb,
    parse_resources,
    parse_unit_power,
    resources_text,
    shown_resources,
)
from gridsched.platform_io.overrides import REPLACED, SAME_IN_ALL, PowerOverride, Wattage, parse_wattage, without_work
from gridsched.platform_io.xml_document import read_document
from gridsched.platform_io.xml_entries import Entries, HostEntry, read_entries

_NO_PROFILE = "have no wattage_per_state property: they count with 0 W"
_OLD_PROFILE = (
    "have the old property watt_per_state, which SimGrid ignores: they count with 0 W. Rename it to wattage_per_state"
)
_UPSIDE_DOWN = (
    "draw less power busy than idle: wattage_per_state reads Idle:Epsilon:AllCores. They are simulated as they are"
)
#: A property of our own: what jobs may ask a host to be.
FEATURES_PROPERTY = "features"
_MOST_LEVELS = 10
#: Names of the switches that a host, or all of its zone, lies under, the lowest first, with commas between them.
SWITCHES_PROPERTY = "switches"
_OLD_OFF = "have the old property watt_off, which SimGrid ignores: rename it to wattage_off"


def _own_wattages(entry: HostEntry, findings: Findings) -> tuple[Wattage, ...] | None:
    """Return the power of each P-state [W] that the file specifies, or None without usable figures.

    What is wrong or missing goes to `findings`. SimGrid aborts unless ``wattage_per_state`` has as
    many entries as there are P-states; it does not read the old names ``watt_off`` and ``watt_per_state``.
    """
    host, properties, n_speeds = entry.name, entry.properties, len(entry.speeds) + entry.n_still
    if "watt_off" in properties and "wattage_off" not in properties:
        findings.gap(_OLD_OFF, host)
    text = properties.get("wattage_per_state")
    if text is None:
        findings.gap(_OLD_PROFILE if "watt_per_state" in properties else _NO_PROFILE, host)
        return None
    groups = text.split(",")
    if len(groups) != n_speeds:
        findings.problem(
            f"host {host!r} has {n_speeds} speed{'s' * (n_speeds != 1)} but {len(groups)} "
            f"wattage_per_state entr{'ies' if len(groups) != 1 else 'y'}; SimGrid needs one for "
            "each."
        )
        return None
    try:
        wattages = tuple(parse_wattage(group) for group in groups)
    except ValueError as error:
        findings.problem(f"host {host!r}: wattage_per_state: {error}.", entry.line)
        return None
    if any(busy < idle for idle, _, busy in wattages):
        findings.gap(_UPSIDE_DOWN, host)
    return wattages


def _amount(entry: HostEntry, name: str, findings: Findings, properties: Mapping[str, str]) -> float:
    """Return the property `name`, such as ``wattage_off``, of a host; 0 if `properties` lack it.

    What is wrong with it goes to `findings`.
    """
    text = properties.get(name, "0")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= LARGEST:
        findings.problem(
            f"host {entry.name!r}: {name} is {text!r}; a number of 0 or more, up to {LARGEST:g}, is allowed.",
            entry.line,
        )
        return 0.0
    return value


def _resources(entry: HostEntry, findings: Findings) -> Resources:
    """Return what a host has for jobs that share it, by its properties ``memory`` and ``resources``.

    What is wrong goes to `findings`.
    """
    amounts: dict[str, int] = {}
    if MEMORY_PROPERTY in entry.properties:
        try:
            amounts[MEMORY] = parse_memory_mb(entry.properties[MEMORY_PROPERTY])
        except ValueError as error:
            findings.remark(f"have the property {MEMORY_PROPERTY}, and {error}: they count with none", entry.name)
    try:
        amounts |= parse_resources(entry.properties.get(RESOURCES_PROPERTY, ""))
    except ValueError as error:
        findings.problem(f"host {entry.name!r}: {error}.", entry.line)
    return tuple(amounts.items())


def _unit_power(entry: HostEntry, resources: Resources, findings: Findings) -> UnitPower:
    """Return the power of units of resources, by the property ``unit_power``; what is wrong goes to `findings`."""
    has = dict(resources)
    try:
        return parse_unit_power(entry.properties.get(UNIT_POWER_PROPERTY, ""), has)
    except ValueError as error:
        findings.problem(f"host {entry.name!r}: {error} ({shown_resources(has)}).", entry.line)
        return ()


def _features(entry: HostEntry, findings: Findings) -> tuple[str, ...]:
    """Return what jobs may ask a host to be, by its property ``features``; what is wrong goes to `findings`."""
    names = [name.strip() for name in entry.properties.get(FEATURES_PROPERTY, "").split(",") if name.strip()]
    for name in names:
        if not is_feature(name):
            findings.problem(
                f"host {entry.name!r}: {FEATURES_PROPERTY} holds {name[:40]!r}; names separated by commas are "
                f"allowed, of letters, digits and {FEATURE_MARKS}, as CPU-N,IB.",
                entry.line,
            )
    return tuple(dict.fromkeys(filter(is_feature, names)))


def _switches(entry: HostEntry, findings: Findings, of_zone: str) -> tuple[str, ...]:
    """Return the switches that a host lies under: of its property ``switches``, or its zone's, else of its cluster.

    What is wrong goes to `findings`.
    """
    text = entry.properties.get(SWITCHES_PROPERTY, of_zone)
    if not text.strip():
        return entry.switches
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) < len(names) or len(names) > _MOST_LEVELS:
        findings.problem(
            f"host {entry.name!r}: {SWITCHES_PROPERTY} is {text[:80]!r}; up to {_MOST_LEVELS} different names with "
            "commas between them are allowed, the lowest switch first, as leaf3,pod0.",
            entry.line,
        )
        return ()
    return names


def resource_properties(host: Host) -> dict[str, str]:
    """Return the properties of a host that `_resources`, `_unit_power`, `_features` and `_switches` read."""
    has = dict(host.resources)
    memory, counted = has.pop(MEMORY, None), resources_text(has)
    texts = {} if memory is None else {MEMORY_PROPERTY: f"{memory}M"}
    features = {FEATURES_PROPERTY: ",".join(host.features)} if host.features else {}
    watts = ",".join(
        f"{MEMORY_PROPERTY if name == MEMORY else name}:{float(idle_w)!r}:{float(busy_w)!r}"
        for name, idle_w, busy_w in host.unit_power
    )
    power = {UNIT_POWER_PROPERTY: watts} if watts else {}
    switches = {SWITCHES_PROPERTY: ",".join(host.switches)} if host.switches else {}
    return texts | ({RESOURCES_PROPERTY: counted} if counted else {}) | power | features | switches


#: Properties of our own: carbon of making and disposing of a host [kg CO2e], and its time in service [years].
EMBODIED_KG, LIFETIME_YEARS = "embodied_kg", "lifetime_years"
_NO_EMBODIED = f"have no property {EMBODIED_KG}, and other hosts do: they count with 0 kg"


def _embodied(entry: HostEntry, findings: Findings) -> dict[str, Any]:
    """Return embodied carbon and lifetime as the fields of `Host`; what is wrong goes to `findings`."""
    embodied = {name: _amount(entry, name, findings, entry.properties) for name in (EMBODIED_KG, LIFETIME_YEARS)}
    if embodied[EMBODIED_KG] and not embodied[LIFETIME_YEARS]:
        findings.problem(
            f"host {entry.name!r} has the property {EMBODIED_KG} and no {LIFETIME_YEARS} above 0: add the years over "
            "which its embodied carbon is spread.",
            entry.line,
        )
        return {}
    return embodied


def embodied_properties(host: Host) -> dict[str, str]:
    """Return the properties of a host that `_embodied` reads, without those that are 0."""
    amounts = {name: getattr(host, name) for name in (EMBODIED_KG, LIFETIME_YEARS)}
    return {name: repr(float(amount)) for name, amount in amounts.items() if amount}


#: Properties that say how long a host is being switched [s], and in which P-state of speed 0;
#: fields of `Host` are called the same.
_PROPERTIES = (("boot_time_s", "boot_pstate"), ("shutdown_time_s", "shutdown_pstate"))


def _switching(entry: HostEntry, findings: Findings) -> dict[str, Any]:
    """Return times [s] and P-states as the fields of `Host`.

    What is wrong goes to `findings`: above all a P-state of speed 0 whose purpose nothing
    states.
    """
    fields: dict[str, Any] = {}
    for time, pstate in _PROPERTIES:
        fields[time] = _amount(entry, time, findings, entry.properties)
        if pstate not in entry.properties:
            continue
        fields[pstate] = _pstate(entry, pstate, findings)
        if fields[pstate] is not None and not fields[time]:
            findings.problem(
                f"host {entry.name!r} has the property {pstate} and no {time}: give the time in that P-state [s].",
                entry.line,
            )
    first = len(entry.speeds)
    named = {fields.get(pstate) for _, pstate in _PROPERTIES}
    unnamed = [str(k) for k in range(first, first + entry.n_still) if k not in named]
    if unnamed:
        findings.problem(
            f"host {entry.name!r} has speed 0 in P-state {' and '.join(unnamed)}, and the file "
            "does not state their purpose: give it the properties boot_pstate and boot_time_s [s], "
            "shutdown_pstate and shutdown_time_s [s], or leave such P-states out.",
            entry.line,
        )
    return fields


def _pstate(entry: HostEntry, name: str, findings: Findings) -> int | None:
    """Return the number of a P-state of speed 0 that a property names."""
    text, first = entry.properties[name].strip(), len(entry.speeds)
    if text.isdecimal() and len(text) < 9 and first <= int(text) < first + entry.n_still:
        return int(text)
    legal = f"its P-states of speed 0 are {first} to {first + entry.n_still - 1}"
    findings.problem(
        f"host {entry.name!r}: {name} is {text!r}; "
        + (legal if entry.n_still else "it has no P-state of speed 0")
        + ".",
        entry.line,
    )
    return None


def switch_properties(host: Host) -> dict[str, str]:
    """Return the properties of a host that `_switching` reads, without those that say 0."""
    texts: dict[str, str] = {}
    for time, pstate in _PROPERTIES:
        if getattr(host, time):
            texts[time] = repr(float(getattr(host, time)))
        if getattr(host, pstate) is not None:
            texts[pstate] = str(getattr(host, pstate))
    return texts


#: Properties of our own that SimGrid hands through; see the module ``xml_writer``.
HOST_ID = "host_id"
CLUSTER_NAME = "cluster_name"
UPLINK = "uplink"
#: Of a zone: ``Idle:Busy`` power [W] of each link of the file without a range of its own, as of clusters.
LINK_WATTAGE = "link_wattage_range"
#: Grams of CO2 a kWh, as SimGrid's coming plugin has it.
CARBON_INTENSITY = "carbon_intensity"
#: SimGrid's links need a finite bandwidth; this one [byte/s] and more count as infinite.
UNLIMITED_BANDWIDTH = 1e18


def read_platform(path: str | Path, power: PowerOverride | None = None) -> Platform:
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
    power : PowerOverride, optional
        Power of hosts [W] instead of the file's, or if the file has none.

    Returns
    -------
    Platform
        Its `warnings` list oddities, one line for each kind.

    Raises
    ------
    InputError
        At the first thing that is wrong; the message names file, line and host.
    """
    findings = Findings(path, strict=True)
    entries = read_entries(read_document(path), findings)
    return build_platform(entries, findings, power or PowerOverride())


def build_platform(entries: Entries, findings: Findings, power: PowerOverride) -> Platform:
    """Return the platform that `entries` describe, with the power that is given."""
    power.check_names((entry.name for entry in entries.hosts), str(findings.path))
    masters = _masters(entries, findings)
    workers = [entry for entry in entries.hosts if entry not in masters]
    computing = _in_order([entry for entry in workers if entry.computes], findings)
    if not computing:
        findings.problem("no host computes; a platform needs at least one besides the master.")
    still = [entry for entry in workers if not entry.computes]
    for entry in still:
        findings.remark("have speed 0: they compute nothing", entry.name)
    for entry in computing if any(EMBODIED_KG in entry.properties for entry in computing) else ():
        if EMBODIED_KG not in entry.properties:
            findings.remark(_NO_EMBODIED, entry.name)
    ids = {entry.name: k for k, entry in enumerate(computing)}
    zones = {name: each.get(SWITCHES_PROPERTY, "") for name, each in entries.zones.items()}

    def made(entry: HostEntry) -> Host:
        switches = _switches(entry, findings, zones.get(entry.zone, ""))
        return replace(_host(entry, findings, power), switches=switches)

    layout = _layout(entries, findings, ids)
    clusters = []
    for cluster, names in layout.zones:
        if members := tuple(ids[name] for name in names if name in ids):
            clusters.append(replace(cluster, hosts=members))
    return Platform(
        tuple(map(made, computing)),
        tuple(clusters),
        made(masters[0]) if masters else None,
        bystanders=tuple(map(made, still)),
        name=str(findings.path),
        warnings=tuple(findings.gap_lines() + findings.note_lines()),
        profiles=entries.profiles,
        carbon_intensity=tuple(_intensities(entries, findings)),
        link_wattage=_link_wattage(entries, findings),
        layout=layout,
    )


def _layout(entries: Entries, findings: Findings, ids: Mapping[str, int]) -> Layout:
    """Return the order and the zones of all hosts; those with ids are in the order of these."""
    names_of: dict[str, list[str]] = {zone: [] for zone in entries.zones}
    for entry in entries.hosts:
        names_of.setdefault(entry.zone, []).append(entry.name)
    zones = []
    for zone, names in names_of.items():
        if names:
            properties = entries.zones.get(zone, {})
            bandwidth, latency = _uplink(zone, properties, entries, findings)
            cluster = Cluster(properties.get(CLUSTER_NAME, zone), (), bandwidth, latency)
            zones.append((cluster, tuple(names)))
    return Layout(_numbered([entry.name for entry in entries.hosts], ids), tuple(zones))


def _numbered(names: Sequence[str], ids: Mapping[str, int]) -> tuple[str, ...]:
    """Return names in the order of the file, or, if ids are in another one, those that have ids first."""
    with_ids = [name for name in names if name in ids]
    by_ids = sorted(with_ids, key=ids.__getitem__)
    return tuple(names) if by_ids == with_ids else (*by_ids, *(name for name in names if name not in ids))


def _link_wattage(entries: Entries, findings: Findings) -> tuple[float, float] | None:
    """Return the power [W] of links without one of their own, by the property ``link_wattage_range`` of any zone."""
    texts = {text for each in entries.zones.values() if (text := each.get(LINK_WATTAGE)) is not None}
    if not texts:
        return None
    text = min(texts)
    idle, _, busy = text.partition(":")
    try:
        watts = float(idle), float(busy)
    except ValueError:
        watts = (math.nan, math.nan)
    if len(texts) > 1 or not all(0 <= watt <= LARGEST for watt in watts):
        findings.problem(
            f"{LINK_WATTAGE} is {' and '.join(map(repr, sorted(texts)))[:80]}; one zone has it for all links, as "
            f"Idle:Busy, two powers from 0 to {LARGEST:g} W."
        )
        return None
    return watts


def _intensities(entries: Entries, findings: Findings) -> Iterator[tuple[str, float]]:
    """Yield hosts and their carbon intensity [g/kWh]: their own property, or that of their zone."""
    for entry in entries.hosts:
        properties = entries.zones.get(entry.zone, {}) | entry.properties
        if CARBON_INTENSITY in properties:
            yield entry.name, _amount(entry, CARBON_INTENSITY, findings, properties)


def _masters(entries: Entries, findings: Findings) -> list[HostEntry]:
    """Return the hosts with ``role=master``; more than one is a problem.

    Of a ``<cluster>`` with the property the first host is meant.
    """
    marked = [e for e in entries.hosts if e.properties.get("role", "").strip() == "master"]
    of_cluster = {e.cluster: e for e in reversed(marked) if e.cluster is not None}
    masters = [e for e in marked if e.cluster is None or e is of_cluster[e.cluster]]
    if len(masters) > 1:
        names = " and ".join(repr(entry.name) for entry in masters[:2])
        findings.problem(
            f"{len(masters)} hosts have the property role=master ({names}); one at most is allowed.", masters[1].line
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


def _uplink(zone: str, properties: dict[str, str], entries: Entries, findings: Findings) -> tuple[float, float]:
    """Return bandwidth [byte/s] and latency [s] of a zone's uplink, ideal where it names none."""
    link = properties.get(UPLINK)
    if link is not None and link not in entries.links:
        findings.problem(
            f"zone {zone!r}: the property {UPLINK} names the link {link!r}, which the file does "
            f"not define. {did_you_mean(link, entries.links)}".rstrip()
        )
    if link not in entries.links:
        return float("inf"), 0.0
    bandwidth, latency = entries.links[link]
    if bandwidth >= UNLIMITED_BANDWIDTH:
        bandwidth = float("inf")
    if bandwidth <= 0:
        findings.problem(f"zone {zone!r}: its uplink {link!r} has no bandwidth.")
    return bandwidth, latency


def _host(entry: HostEntry, findings: Findings, power: PowerOverride) -> Host:
    resources = _resources(entry, findings)
    wattages = _wattages(entry, findings, power)
    speeds = (*entry.speeds, *[0.0] * entry.n_still)
    watts = wattages or ((0.0, 0.0, 0.0),) * len(speeds)
    states = [PState(speed, *power) for speed, power in zip(speeds, watts, strict=True)]
    n = len(entry.speeds)
    return Host(
        entry.name,
        tuple(states[:n]),
        entry.cores,
        off_w=_amount(entry, "wattage_off", findings, entry.properties) if wattages else 0.0,
        has_energy=wattages is not None,
        pstate=entry.pstate,
        switch_pstates=tuple(states[n:]),
        resources=resources,
        unit_power=_unit_power(entry, resources, findings),
        features=_features(entry, findings),
        **_switching(entry, findings),
        **_embodied(entry, findings),
    )


def _wattages(entry: HostEntry, findings: Findings, power: PowerOverride) -> tuple[Wattage, ...] | None:
    """Return idle, epsilon and all-cores power [W] of each P-state, None without figures.

    Those of speed 0 are the last. Power that is given is not theirs.
    """
    if entry.pstate:
        findings.remark("start in another P-state than 0, as their attribute pstate sets it", entry.name)
    if max(entry.speeds) > entry.speeds[0]:
        findings.remark("have a faster P-state than P-state 0", entry.name)
    if named := entry.properties.get("sleep_pstates", "").strip():
        findings.remark(
            f"have Batsim's property sleep_pstates ({named[:40]}: asleep, switching off, switching on); gridsched "
            "takes these P-states as ordinary ones. For hosts that boot and shut down, leave out the first "
            "(wattage_off is its power), give the others speed 0, and name them by shutdown_pstate, "
            "shutdown_time_s, boot_pstate, boot_time_s",
            entry.name,
        )
    if power.is_none:
        return None
    override = power.of(entry.name, len(entry.speeds), str(findings.path))
    own = None
    has_own = "wattage_per_state" in entry.properties
    if override is None or (has_own and entry.n_still):
        own = _own_wattages(entry, findings)
    if override is None:
        return own
    if has_own:
        findings.remark(REPLACED, entry.name)
    if len(override) > 1 and len(set(override)) == 1:
        findings.remark(SAME_IN_ALL, entry.name)
    still = own[len(override) :] if own is not None else (without_work(override),) * entry.n_still
    return override + still
