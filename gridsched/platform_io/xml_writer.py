"""Write a platform as SimGrid XML 4.1.

Layout: a root zone routed by ``DijkstraCache``, a hub zone with a router (and the master), and
one star zone for each cluster, joined to the hub by its uplink. Routes are found in microseconds
between any two of thousands of hosts, whatever the number of clusters. ``network/model=CM02`` and
``network/crosstraffic=0`` make a message last latency + size / bandwidth.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gridsched.errors import InputError
from gridsched.files.input_files import read_text
from gridsched.files.output_files import write_whole
from gridsched.model.limits import MAX_NAME
from gridsched.model.platform import Host, Platform
from gridsched.platform_io.overrides import wattage_text
from gridsched.platform_io.xml_reader import (
    CARBON_INTENSITY,
    CLUSTER_NAME,
    HOST_ID,
    UNLIMITED_BANDWIDTH,
    UPLINK,
    embodied_properties,
    resource_properties,
    switch_properties,
)
from gridsched.platform_io.xml_values import quote_value

XML_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
"""
_CONFIG = """  <config>
    <prop id="network/model" value="CM02"/>
    <prop id="network/crosstraffic" value="0"/>
  </config>
"""
_NETWORK_MODEL = re.compile(r"""<prop\s+id\s*=\s*(["'])network/model\1\s+value\s*=\s*["']([^"']*)""")
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class NetworkLinks:
    """Links between a host and its cluster's router, and between the master and the hub.

    Attributes
    ----------
    host_bandwidth, master_bandwidth : float
        Bandwidth in each direction [byte/s]; infinite by default.
    host_latency_s, master_latency_s : float
        Latency [s].
    """

    host_bandwidth: float = math.inf
    host_latency_s: float = 0.0
    master_bandwidth: float = math.inf
    master_latency_s: float = 0.0


def write_platform(
    platform: Platform, path: str | Path, *, command: str, network: NetworkLinks | None = None, force: bool = False
) -> None:
    """Write `platform` so that SimGrid loads it and `read_platform` returns an equal one.

    Parameters
    ----------
    platform : Platform
        Without bystanders; its name and warnings are not written.
    path : str or Path
        Target file.
    command : str
        The command that makes this file; kept in a comment at the top.
    network : NetworkLinks, optional
        Links beside the clusters' uplinks; ideal by default.
    force : bool
        Replace an existing file.

    Raises
    ------
    InputError
        If the platform cannot be expressed or the file cannot be written.
    """
    text = platform_xml(platform, command=command, network=network)
    write_whole(path, text, force=force)


def platform_xml(platform: Platform, *, command: str, network: NetworkLinks | None = None) -> str:
    """Return the XML text that `write_platform` writes."""
    _check(platform)
    writer = _Writer(platform, network or NetworkLinks())
    comment = f"<!-- Made by:\n{comment_text(command)}\n-->\n"
    return XML_HEAD + comment + "".join(f"{line}\n" for line in writer.lines())


def parallel_platform_xml(path: str | Path, text: str | None = None) -> str | None:
    """Return a platform file as SimGrid's model of parallel tasks takes it.

    That model (ptask_L07) has its own network, and aborts where a file names another. Files that
    gridsched wrote do: their own entry is left out.

    Parameters
    ----------
    path : str or Path
    text : str, optional
        Its text, where that was changed; else the file is read.

    Returns
    -------
    str or None
        The text to load instead; None if the file serves as it is.

    Raises
    ------
    InputError
        If somebody else's file names a network model, or the file cannot be read.
    """
    changed = text is not None
    text = read_text(path) if text is None else text
    match = _NETWORK_MODEL.search(text.replace(_CONFIG, ""))
    if match:
        raise InputError(
            f"{path}: its <config> names the network model {match[2]!r}, and SimGrid cannot run "
            "parallel jobs with it. Take that entry out, or use --driver reference."
        )
    return text.replace(_CONFIG, "") if changed or _CONFIG in text else None


def comment_text(command: str) -> str:
    r"""Return a shell command in a form that XML comments allow.

    A comment must not hold two hyphens in a row: every hyphen after a hyphen becomes ``\-``,
    which a shell reads as the same hyphen, so that the command can still be pasted. Inside
    quotes, where a shell would keep the backslash, the quotes are closed around it.
    """
    pieces: list[str] = []
    quote = ""
    previous = ""
    escaped = False
    for character in _ILLEGAL.sub("\ufffd", command):
        if character == "-" and previous == "-":
            pieces.append(f"{quote}\\-{quote}")
        else:
            pieces.append(character)
        if not escaped and character in "'\"" and quote in ("", character):
            quote = "" if quote else character
        escaped = character == "\\" and quote != "'" and not escaped
        previous = character
    return "".join(pieces)


class _Names:
    """Hands out ids that are free in one of SimGrid's name spaces."""

    def __init__(self, taken: Iterable[str]):
        self.taken = set(taken)

    def claim(self, wanted: str) -> str:
        name = wanted
        while not self.taken.isdisjoint({name, f"{name}_UP", f"{name}_DOWN"}):
            name += "_"
        self.taken |= {name, f"{name}_UP", f"{name}_DOWN"}
        return name


class _Writer:
    def __init__(self, platform: Platform, network: NetworkLinks):
        self.platform = platform
        self.network = network
        self.intensities = dict(platform.carbon_intensity)
        everyone = [*platform.hosts, *([platform.master] if platform.master else [])]
        self.points = _Names(host.name for host in everyone)
        self.links = _Names(())
        self.unlimited = self.links.claim("unlimited")
        self.zones = [self.points.claim(cluster.name) for cluster in platform.clusters]
        self.uplinks = [self.links.claim(f"{zone}_uplink") for zone in self.zones]
        self.routers = [self.points.claim(f"{zone}_router") for zone in self.zones]
        order = [h for cluster in platform.clusters for h in cluster.hosts]
        self.number_hosts = order != sorted(order)

    def lines(self) -> Iterator[str]:
        root, hub, router = (self.points.claim(n) for n in ("grid", "hub", "hub_router"))
        yield '<platform version="4.1">'
        yield _CONFIG.rstrip("\n")
        yield f'  <zone id={quote_value(root)} routing="DijkstraCache">'
        yield from self.hub(hub, router)
        for c in range(len(self.zones)):
            yield from self.cluster(c)
        yield from self.joints(hub, router)
        yield "  </zone>"
        yield "</platform>"

    def hub(self, hub: str, router: str) -> Iterator[str]:
        net = self.network
        master = self.platform.master
        yield f'    <zone id={quote_value(hub)} routing="Cluster">'
        yield (
            f'      <link id="{self.unlimited}" bandwidth="{UNLIMITED_BANDWIDTH!r}Bps" '
            'latency="0s" sharing_policy="FATPIPE"/>'
        )
        if master:
            yield from self.host(master, {"role": "master"})
            yield from self.host_link(master.name, net.master_bandwidth, net.master_latency_s)
        yield f"      <router id={quote_value(router)}/>"
        yield "    </zone>"

    def cluster(self, c: int) -> Iterator[str]:
        net = self.network
        cluster, zone = self.platform.clusters[c], self.zones[c]
        yield f'    <zone id={quote_value(zone)} routing="Cluster">'
        if zone != cluster.name:
            yield f'      <prop id="{CLUSTER_NAME}" value={quote_value(cluster.name)}/>'
        if not _is_ideal(cluster.bandwidth, cluster.latency_s):
            yield f'      <prop id="{UPLINK}" value={quote_value(self.uplinks[c])}/>'
        for h in cluster.hosts:
            own = {HOST_ID: str(h)} if self.number_hosts else {}
            yield from self.host(self.platform.hosts[h], own)
        for h in cluster.hosts:
            name = self.platform.hosts[h].name
            yield from self.host_link(name, net.host_bandwidth, net.host_latency_s)
        yield f"      <router id={quote_value(self.routers[c])}/>"
        yield "    </zone>"

    def host(self, host: Host, own: dict[str, str]) -> Iterator[str]:
        speeds = ",".join(f"{float(state.speed)!r}f" for state in host.all_pstates)
        core = f' core="{host.cores}"' if host.cores != 1 else ""
        properties = dict(own)
        if host.has_energy:
            properties["wattage_per_state"] = wattage_text(host)
            properties["wattage_off"] = repr(float(host.off_w))
        properties |= switch_properties(host) | resource_properties(host) | embodied_properties(host)
        if host.name in self.intensities:
            properties[CARBON_INTENSITY] = repr(float(self.intensities[host.name]))
        pstate = f' pstate="{host.pstate}"' if host.pstate else ""
        yield f'      <host id={quote_value(host.name)} speed="{speeds}"{core}{pstate}>'
        for name, value in properties.items():
            yield f'        <prop id="{name}" value={quote_value(value)}/>'
        yield "      </host>"

    def host_link(self, name: str, bandwidth: float, latency: float) -> Iterator[str]:
        up = down = self.unlimited
        if not _is_ideal(bandwidth, latency):
            link = self.links.claim(f"link_{name}")
            yield _link(link, bandwidth, latency, "      ")
            up, down = f"{link}_UP", f"{link}_DOWN"
        ends = f"up={quote_value(up)} down={quote_value(down)}"
        yield f"      <host_link id={quote_value(name)} {ends}/>"

    def joints(self, hub: str, router: str) -> Iterator[str]:
        """Yield the uplinks and the routes over them: links first, as SimGrid's DTD wants."""
        rows = list(zip(self.platform.clusters, self.zones, self.routers, self.uplinks, strict=True))
        for cluster, _, _, link in rows:
            if not _is_ideal(cluster.bandwidth, cluster.latency_s):
                yield _link(link, cluster.bandwidth, cluster.latency_s, "    ")
        for cluster, zone, gateway, link in rows:
            direction = f'{quote_value(link)} direction="UP"'
            if _is_ideal(cluster.bandwidth, cluster.latency_s):
                direction = quote_value(self.unlimited)
            yield (
                f"    <zoneRoute src={quote_value(zone)} dst={quote_value(hub)} "
                f"gw_src={quote_value(gateway)} gw_dst={quote_value(router)}>"
                f"<link_ctn id={direction}/></zoneRoute>"
            )


def _is_ideal(bandwidth: float, latency: float) -> bool:
    return math.isinf(bandwidth) and latency == 0.0


def _link(name: str, bandwidth: float, latency: float, indent: str) -> str:
    finite = min(float(bandwidth), UNLIMITED_BANDWIDTH)
    return (
        f'{indent}<link id={quote_value(name)} bandwidth="{finite!r}Bps" '
        f'latency="{float(latency)!r}s" sharing_policy="SPLITDUPLEX"/>'
    )


def _check(platform: Platform) -> None:
    """Refuse what SimGrid's XML cannot say."""
    if platform.bystanders:
        raise InputError(
            f"{platform.name}: hosts that compute nothing, besides the master, cannot be written: "
            f"{platform.bystanders[0].name!r}. Write the platform without them."
        )
    if platform.profiles.of_hosts:
        raise InputError(
            f"{platform.name}: hosts that change with time are not written; write the platform "
            "without profiles, and add them to the file (<trace>)."
        )
    hosts = [*platform.hosts, *([platform.master] if platform.master else [])]
    seen: set[str] = set()
    for host in hosts:
        if host.name in seen:
            raise InputError(f"{platform.name}: two hosts are called {host.name!r}.")
        seen.add(host.name)
        amounts = (host.off_w, host.boot_time_s, host.shutdown_time_s, host.embodied_kg, host.lifetime_years)
        for k, state in enumerate(host.all_pstates):
            speed_is_legal = state.speed == 0 if k >= len(host.pstates) else state.speed > 0
            numbers = (state.speed, state.idle_w, state.epsilon_w, state.busy_w, *amounts)
            if not (speed_is_legal and all(0 <= number < math.inf for number in numbers)):
                raise InputError(
                    f"{platform.name}: host {host.name!r} needs finite speeds above 0 (of its "
                    f"switch_pstates 0), powers of 0 W or more, and times and embodied carbon of 0 or "
                    f"more; found {state} and {amounts}."
                )
    if not platform.hosts:
        raise InputError(f"{platform.name}: a platform without computing hosts cannot be written.")
    for cluster in platform.clusters:
        if not cluster.hosts:
            raise InputError(f"{platform.name}: cluster {cluster.name!r} holds no host.")
        if not (cluster.bandwidth > 0 and 0 <= cluster.latency_s < math.inf):
            raise InputError(
                f"{platform.name}: cluster {cluster.name!r} needs a bandwidth above 0 and a "
                f"latency of 0 s or more; found {cluster.bandwidth} and {cluster.latency_s}."
            )
    for name in [*seen, *(cluster.name for cluster in platform.clusters)]:
        if not 0 < len(name) <= MAX_NAME or _ILLEGAL.search(name):
            raise InputError(
                f"{platform.name}: {name[:80]!r} cannot be a name in an XML file; 1 to "
                f"{MAX_NAME:,} of its characters are allowed."
            )
