"""Hosts, zones and links of a SimGrid platform, with clusters and cabinets spelled out."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from gridsched.errors import InputError
from gridsched.model.host_profiles import HostProfiles
from gridsched.platform_io.findings import Findings
from gridsched.platform_io.simgrid_options import new_name
from gridsched.platform_io.xml_document import Element
from gridsched.platform_io.xml_profiles import ProfileEntries
from gridsched.platform_io.xml_values import expand_radical, parse_quantity, topology_size, topology_switches

#: More hosts than this in one file are refused.
MAX_HOSTS = 300_000
#: More links of one cluster than this are refused.
MAX_LINKS = 10_000_000
#: More P-states of all hosts together than this are refused.
MAX_PSTATES = 1_000_000

_REMOVED = {"include", "storage", "storage_type", "mount"}
_WITHOUT_HOSTS = {
    "random",
    "prop",
    "model_prop",
    "disk",
    "host_link",
    "route",
    "zoneRoute",
    "ASroute",
    "bypassRoute",
    "bypassZoneRoute",
    "bypassASroute",
    "link_ctn",
    "process",
    "actor",
    "argument",
}
_CLUSTER_RATES = ("bw", "bb_bw", "limiter_link", "loopback_bw")
_CLUSTER_TIMES = ("lat", "bb_lat", "loopback_lat")
#: Our property of a station: which of the link's bandwidths it has, from 0 on.
WIFI_RATE = "wifi_rate"
_BETWEEN_RATES = re.compile("[;,]")


@dataclass(frozen=True)
class Station:
    """A host of a Wi-Fi zone: its link, and the one of the link's rates that it has, from 0 on."""

    host: str
    link: str
    rate: int


def split_rates(bandwidth: str) -> list[str]:
    """Return the bandwidths of a link; a Wi-Fi link may have several."""
    return _BETWEEN_RATES.split(bandwidth)


def read_stations(zone: Element, findings: Findings) -> Iterator[Station]:
    """Yield the hosts of a Wi-Fi zone that has a link, each with the rate it names or the first.

    What is wrong goes to `findings`. Of a zone of another kind nothing is yielded.
    """
    link = next((child for child in zone.children if child.tag == "link"), None)
    if zone.attributes.get("routing", "").upper() != "WIFI" or link is None:
        return
    name = link.attributes.get("id", "")
    n_rates = len(split_rates(link.attributes.get("bandwidth", "")))
    for host in zone.children:
        if host.tag not in ("host", "peer"):
            continue
        text = host.properties().get(WIFI_RATE, "0").strip()
        if text.isdecimal() and len(text) < 10 and int(text) < n_rates:
            yield Station(host.attributes.get("id", ""), name, int(text))
        else:
            findings.problem(
                f"host {host.attributes.get('id')!r}: {WIFI_RATE} is {text!r}; the Wi-Fi link "
                f"{name!r} has rates 0 to {n_rates - 1}, in the order of its bandwidths.",
                host.line,
            )


@dataclass(frozen=True)
class HostEntry:
    """A host as the file describes it; speeds of one core [flop/s].

    `cluster` is the id of the ``<cluster>`` that makes it, whose properties are all its hosts';
    `n_still` is the number of P-states of speed 0 behind those of `speeds`, which are 0 themselves
    where the host computes nothing; `switches` are those of its cluster that it lies under, the lowest first.
    """

    name: str
    zone: str
    line: int
    speeds: tuple[float, ...]
    cores: int
    pstate: int
    properties: dict[str, str]
    cluster: str | None = None
    n_still: int = 0
    switches: tuple[str, ...] = ()

    @property
    def computes(self) -> bool:
        """Whether the host has any speed; one without computes nothing."""
        return any(self.speeds)


@dataclass
class Entries:
    """Everything in a platform file that concerns hosts.

    Attributes
    ----------
    hosts : list of HostEntry
        In document order.
    zones : dict
        Properties of each netzone by id, in document order.
    links : dict
        Bandwidth [byte/s] and latency [s] of each link by id; of a Wi-Fi link the first bandwidth.
    stations : list of Station
        The hosts of Wi-Fi zones that have a link.
    lines : dict
        Line of each host, router and zone, whose names share one name space in SimGrid.
    profiles : HostProfiles
        How hosts change with time.
    """

    hosts: list[HostEntry] = field(default_factory=list)
    zones: dict[str, dict[str, str]] = field(default_factory=dict)
    links: dict[str, tuple[float, float]] = field(default_factory=dict)
    stations: list[Station] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)
    profiles: HostProfiles = field(default_factory=HostProfiles)


def read_entries(root: Element, findings: Findings) -> Entries:
    """Return the entries of a ``<platform>`` element; what is wrong goes to `findings`.

    Raises
    ------
    InputError
        If it is a deployment.
    """
    if root.children and all(child.tag in ("actor", "process") for child in root.children):
        raise InputError(
            f"{findings.path}: is a deployment file (it holds actors and no hosts); give a "
            "platform file, and this one by --deployment."
        )
    reader = _Reader(findings)
    for child in root.children:
        reader.visit(child, zone="")
    reader.entries.profiles = reader.profiles.profiles({e.name for e in reader.entries.hosts})
    return reader.entries


class _Reader:
    def __init__(self, findings: Findings):
        self.findings = findings
        self.entries = Entries()
        self.profiles = ProfileEntries(findings)
        self.n_pstates = 0
        self.read_last: tuple[Element | None, list[float | None]] = (None, [])

    def visit(self, element: Element, zone: str) -> None:
        tag = element.tag
        self.profiles.attributes(element)
        if tag in ("zone", "AS"):
            self.zone(element)
        elif tag in ("host", "peer"):
            self.host(element, zone)
        elif tag == "cluster":
            self.cluster(element)
        elif tag == "cabinet":
            for name in self.radical_names(element):
                self.add_host(element, name, zone, {})
            self.rates(element, ("bw",), ("lat",))
        elif tag in ("link", "backbone"):
            self.link(element)
        elif tag == "config":
            self.config(element)
        elif tag == "router":
            self.name(element)
        elif tag == "trace":
            self.profiles.trace(element)
        elif tag == "trace_connect":
            self.profiles.connect(element)
        elif tag in _REMOVED:
            self.findings.problem(f"<{tag}> was removed from SimGrid; take it out of the file.", element.line)
        elif tag not in _WITHOUT_HOSTS:
            self.findings.problem(f"<{tag}> is not an element of a SimGrid platform.", element.line)

    def config(self, element: Element) -> None:
        """Note the options that SimGrid has under other names, or not at all."""
        for option, value in element.properties().items():
            if (name := new_name(option, value)) != option:
                self.findings.old_options.append(option if name is None else f"{option} ({name})")

    def attribute(self, element: Element, name: str) -> str | None:
        value = element.attributes.get(name)
        if value is None:
            self.findings.problem(f"<{element.tag}> lacks the attribute {name!r}.", element.line)
        return value

    def name(self, element: Element, name: str | None = None) -> str | None:
        """Claim a name in the name space of hosts, routers and zones."""
        name = self.attribute(element, "id") if name is None else name
        if name is None:
            return None
        if name in self.entries.lines:
            self.findings.problem(
                f"the id {name!r} is taken already (line {self.entries.lines[name]}); hosts, "
                "routers and zones need different ids.",
                element.line,
            )
            return None
        self.entries.lines[name] = element.line
        return name

    def quantity(self, element: Element, text: str, kind: str, what: str) -> float | None:
        try:
            value, has_unit = parse_quantity(text, kind)
        except ValueError as error:
            self.findings.problem(f"{what}: {error}.", element.line)
            return None
        if value < 0:
            self.findings.problem(f"{what} is {text!r}; 0 or more is allowed.", element.line)
            return None
        if not has_unit:
            self.findings.unitless.append(f"line {element.line}, {what}: {text!r}")
        return value

    def zone(self, element: Element) -> None:
        name = self.name(element)
        if name is None:
            name = element.attributes.get("id", "")
        self.entries.zones.setdefault(name, element.properties())
        for child in element.children:
            self.visit(child, name)
        self.entries.stations += read_stations(element, self.findings)

    def host(self, element: Element, zone: str) -> None:
        name = self.name(element)
        if name is not None:
            self.add_host(element, name, zone, element.properties(), claimed=True)
        for child in element.children:
            self.visit(child, zone)

    def cluster(self, element: Element) -> None:
        zone = self.name(element)
        if zone is None:
            return
        properties = element.properties()
        self.entries.zones[zone] = properties
        self.rates(element, _CLUSTER_RATES, _CLUSTER_TIMES)
        for k, name in enumerate(self.radical_names(element)):
            levels = topology_switches(element.attributes)
            switches = tuple(f"{zone.replace(',', ' ')} {level} {k // n}" for level, n in levels)
            self.add_host(element, name, zone, properties, switches=switches)
        prefix, suffix = (element.attributes.get(k, "") for k in ("prefix", "suffix"))
        router = element.attributes.get("router_id") or f"{prefix}{zone}_router{suffix}"
        if element.attributes.get("topology", "FLAT") == "FLAT":
            self.name(element, router)

    def rates(self, element: Element, rates: tuple[str, ...], times: tuple[str, ...]) -> None:
        """Check the link attributes of a cluster or cabinet and register its backbone."""
        values: dict[str, float | None] = {}
        for names, kind in ((rates, "bandwidth"), (times, "time")):
            for name in names:
                text = element.attributes.get(name)
                if text:
                    what = f"{name} of {element.tag} {element.attributes.get('id')!r}"
                    values[name] = self.quantity(element, text, kind, what)
        if values.get("bb_bw"):
            link = f"{element.attributes.get('id')}_backbone"
            self.entries.links[link] = (values["bb_bw"] or 0.0, values.get("bb_lat") or 0.0)

    def link(self, element: Element) -> None:
        name = self.attribute(element, "id")
        text = self.attribute(element, "bandwidth")
        if name is None or text is None:
            return
        if name in self.entries.links:
            self.findings.problem(f"two links have the id {name!r}.", element.line)
        what = f"bandwidth of link {name!r}"  # Wi-Fi links have a list: the first one counts
        values = [self.quantity(element, part, "bandwidth", what) for part in split_rates(text)]
        latency = self.quantity(element, element.attributes.get("latency", "0"), "time", f"latency of link {name!r}")
        self.entries.links[name] = (values[0] or 0.0, latency or 0.0)

    def radical_names(self, element: Element) -> Iterator[str]:
        values = [self.attribute(element, name) for name in ("prefix", "radical", "suffix")]
        if None in values:
            return
        prefix, radical, suffix = values
        try:
            numbers = list(itertools.islice(expand_radical(str(radical)), MAX_HOSTS + 1))
            limit, n_links = topology_size(element.tag, element.attributes)
        except ValueError as error:
            self.findings.problem(f"{element.tag} {element.attributes.get('id')!r}: {error}.", element.line)
            return
        # what is too large goes no further, not even to SimGrid
        if len(self.entries.hosts) + len(numbers) > MAX_HOSTS or n_links > MAX_LINKS:
            raise InputError(
                f"{self.findings.path}, line {element.line}: {element.tag} "
                f"{element.attributes.get('id')!r} makes the file exceed {MAX_HOSTS:,} hosts, or "
                f"{MAX_LINKS:,} links of a cluster."
            )
        for number in numbers[:limit]:
            yield f"{prefix}{number}{suffix}"

    def add_host(
        self,
        element: Element,
        name: str,
        zone: str,
        properties: dict[str, str],
        *,
        claimed: bool = False,
        switches: tuple[str, ...] = (),
    ) -> None:
        if not claimed and self.name(element, name) is None:
            return
        text = self.attribute(element, "speed")
        if text is None:
            return
        parts = text.split(",") if element.tag in ("host", "cluster") else [text]
        self.n_pstates += len(parts)
        if self.n_pstates > MAX_PSTATES:
            raise InputError(
                f"{self.findings.path}, line {element.line}: more than {MAX_PSTATES:,} P-states of "
                "all hosts together; use fewer hosts, or fewer speeds of each."
            )
        speeds = self.speeds(element, name, parts)
        cores = self.whole_number(element, "core", "1", 1, f"host {name!r}")
        pstate = self.whole_number(element, "pstate", "0", 0, f"host {name!r}")
        if None in speeds:
            return
        computing = tuple(s for s in speeds if s) or tuple(s for s in speeds if s is not None)
        if pstate >= len(computing):
            self.findings.problem(
                f"host {name!r} starts in pstate {pstate} but has {len(computing)} speed(s)"
                + (" above 0." if len(computing) < len(speeds) else "."),
                element.line,
            )
        self.entries.hosts.append(
            HostEntry(
                name,
                zone,
                element.line,
                computing,
                cores,
                pstate,
                properties,
                zone if element.tag == "cluster" else None,
                len(speeds) - len(computing),
                switches,
            )
        )
        if len(self.entries.hosts) > MAX_HOSTS:
            raise InputError(f"{self.findings.path}, line {element.line}: more than {MAX_HOSTS:,} hosts.")

    def speeds(self, element: Element, name: str, parts: list[str]) -> list[float | None]:
        """Return the speeds of a host; those of a cluster's hosts are read once."""
        if element is self.read_last[0]:
            return self.read_last[1]
        what = f"speed of host {name!r}"
        values = [self.quantity(element, part.strip() if len(parts) > 1 else part, "speed", what) for part in parts]
        if 0.0 in values and any(values[values.index(0.0) :]):
            self.findings.problem(
                f"{what}: P-state {values.index(0.0)} has speed 0, and faster ones follow; those of "
                "speed 0, to boot or to shut down, come last.",
                element.line,
            )
        self.read_last = (element, values)
        return values

    def whole_number(self, element: Element, name: str, default: str, least: int, what: str) -> int:
        text = element.attributes.get(name, default)
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (least <= value <= 2**31 - 1 and value.is_integer()):
            self.findings.problem(
                f"{what}: {name} is {text!r}; a whole number of at least {least} is allowed.", element.line
            )
            return least
        return int(value)
