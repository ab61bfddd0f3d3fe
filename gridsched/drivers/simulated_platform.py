"""SimGrid's engine with a platform loaded: the same set-up for every execution mode."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsched.drivers.carbon_meter import CarbonMeter
from gridsched.drivers.simgrid_library import (
    HOSTS,
    LINKS,
    first_line,
    has_links_with_power,
    link_wattages,
    links_with_power,
    load_simgrid,
    range_of,
    refusals,
    text_path,
)
from gridsched.energy import link_energy
from gridsched.errors import InputError, SimulationError
from gridsched.model.platform import Host, Platform
from gridsched.model.signals import Signal
from gridsched.platform_io.findings import Findings
from gridsched.platform_io.xml_document import read_document
from gridsched.platform_io.xml_entries import read_entries

if TYPE_CHECKING:
    import simgrid

#: Line of the log from which on SimGrid has taken the platform and its options. It aborts on some
#: that it does not take, so an abort before this line is the fault of the input.
IS_SET_UP = "gridsched: SimGrid is set up"
_NO_ROUTE = re.compile(r"there is no connecting path|can't be route in an Empty zone|No Gateway \(gw_|No route from")
#: SimGrid's model of tasks that compute on several hosts at once.
PARALLEL_TASKS = "host/model:ptask_L07"
#: Our own host beside the platform's: it carries timers and draws no power.
CLOCK_HOST = "gridsched-clock"
#: So much may be timed on it at once.
_CLOCKS = 1_000_000


def refusal(where: str) -> str:
    """Return the beginning of the message for what SimGrid does not take."""
    return f"{where} refuses the platform or an option (--cfg, --log)"


def without_route(where: str, said: str) -> InputError | None:
    """Return the error for SimGrid's message about data that find no route; else None."""
    if not _NO_ROUTE.search(said):
        return None
    return InputError(
        f"{where} finds no route for a message: {said.rstrip('.')}. Choose a master from which all "
        "hosts are reached (--master), add routes to the file, or leave the bytes out by "
        "--network none."
    )


def check_clocks(clock: float, time: float) -> None:
    """Raise `SimulationError` if SimGrid's clock is not at the model's instant `time` [s]."""
    if abs(clock - time) > 1e-9 * max(1.0, time):
        raise SimulationError(
            f"SimGrid's clock is at {clock!r} s, the model at {time!r} s; they may differ "
            "by 1e-9 relative. Is another load on the hosts?"
        )


class SimulatedPlatform:
    """The engine, the platform's hosts by our ids, and a clock host.

    Parameters
    ----------
    platform : Platform
        As gridsched read it; SimGrid's view must agree.
    platform_file : Path
    pstates : sequence of int, optional
        P-state in which each computing host starts; by default its own.
    hosts_off : iterable of int
        Hosts switched off at the start.
    cfg, log : sequence of str
        SimGrid's ``--cfg`` and ``--log`` items.
    has_parallel_tasks : bool
        Whether tasks compute and send on several hosts at once, by SimGrid's model of these.
    uses_network : bool
        Whether messages cross the network: links with a power range are metered, and stations of
        Wi-Fi zones have their rates.
    wattages : mapping of str to str, optional
        ``wattage_per_state`` of hosts by name, in the place of that in the file.
    carbon : Signal, optional
        What a joule weighs at each host [g/J], where SimGrid's joules are to be weighed.
    """

    def __init__(
        self,
        platform: Platform,
        platform_file: Path,
        *,
        pstates: Sequence[int] | None = None,
        hosts_off: Iterable[int] = (),
        cfg: Sequence[str] = (),
        log: Sequence[str] = (),
        has_parallel_tasks: bool = False,
        uses_network: bool = False,
        wattages: Mapping[str, str] | None = None,
        carbon: Signal | None = None,
    ) -> None:
        self.simgrid = load_simgrid()
        self.platform = platform
        self.has_parallel_tasks = has_parallel_tasks
        if has_parallel_tasks:
            cfg = (*cfg, PARALLEL_TASKS)
        if not uses_network and b"ns-3" in platform_file.read_bytes():
            cfg = ("network/model:CM02", *cfg)  # without messages any model does; many have no ns-3
        arguments = ["gridsched", *(f"--cfg={item}" for item in cfg)]
        arguments += [f"--log={item}" for item in log]
        try:
            self.engine: simgrid.Engine = self.simgrid.Engine(arguments)
        except (IndexError, ValueError) as error:
            options = " ".join(arguments[1:])
            raise InputError(f"SimGrid refuses {options}: {first_line(str(error))}.") from None
        if wattages:
            # set before the plugin is, which reads the property when a host is made
            self.simgrid.Host.on_creation_cb(partial(_give_power, wattages))
        HOSTS.start()
        self.meters_links = uses_network and has_links_with_power(platform_file)
        if self.meters_links:
            LINKS.start()
        try:
            self.engine.load_platform(text_path(platform_file))
        except refusals(self.simgrid) as error:
            where = f"SimGrid on {platform_file.name}"
            raise InputError(f"{refusal(where)}: {first_line(str(error))}.") from None
        self._links: tuple[str, ...] = ()
        wifi = self.simgrid.Link.SharingPolicy.WIFI
        if self.meters_links:
            self._links = links_with_power(self.engine, wifi, platform.name)
        if uses_network:
            _give_wifi_rates(self.engine, wifi, platform_file)
        by_name = {host.name: host for host in self.engine.all_hosts}
        _check_agreement(platform, by_name)
        self.hosts: list[simgrid.Host] = [by_name[host.name] for host in platform.hosts]
        self.host_named = by_name
        self.clock_host = self._add_clock_host()
        self._set_hosts(pstates, hosts_off)
        self.carbon_meter = None if carbon is None else self._add_carbon_meter(carbon)
        sys.stderr.write(f"{IS_SET_UP}\n")
        sys.stderr.flush()

    def _set_hosts(self, pstates: Sequence[int] | None, hosts_off: Iterable[int]) -> None:
        """Bring hosts into the state in which they start."""
        platform, by_name = self.platform, self.host_named
        own = [host.pstate for host in platform.hosts]
        starts = list(zip(self.hosts, own if pstates is None else pstates, strict=True))
        starts += [(by_name[host.name], host.pstate) for _, host in platform.idle_hosts_named]
        changed = []
        for host, pstate in starts:
            if host.pstate != pstate or pstate:
                host.pstate = pstate
                changed.append(host)
        for k in hosts_off:
            self.hosts[k].turn_off()
            changed.append(self.hosts[k])
        if changed:
            self.add_actor(self.clock_host, "P-states", _set_again, changed)

    def _add_carbon_meter(self, carbon: Signal) -> CarbonMeter:
        hosts = enumerate(self.platform.hosts)
        meter = CarbonMeter({host.name: carbon.at_host(h) for h, host in hosts if host.has_energy})
        self.add_actor(self.clock_host, "carbon meter", meter.follow, self.simgrid.this_actor.sleep_until)
        return meter

    def _add_clock_host(self) -> simgrid.Host:
        zone = self.engine.netzone_root
        add_host = "add_host" if hasattr(zone, "add_host") else "create_host"  # SimGrid 4.0
        host: simgrid.Host = getattr(zone, add_host)(CLOCK_HOST, "1f")
        host.core_count = _CLOCKS
        host.set_property("wattage_per_state", "0:0")
        host.seal()
        return host

    def add_actor(self, host: simgrid.Host, name: str, function: Callable[..., None], *arguments: Any) -> Any:
        """Return a new actor on `host`."""
        if hasattr(host, "add_actor"):
            return host.add_actor(name, function, *arguments)
        return self.simgrid.Actor.create(name, host, function, *arguments)  # SimGrid 4.0

    def clock(self) -> float:
        """Return the simulated time [s]."""
        return self.engine.clock

    def metered_energy(self) -> dict[str, float]:
        """Return the plugin's energy [J] of every host that has wattages, by name; the run is over."""
        hosts = self.platform.everyone
        joules = HOSTS.consumed_j(host.name for host in hosts if host.has_energy)
        if self.carbon_meter is not None:
            self.carbon_meter.close(joules)
        return joules

    def metered_link_energy(self) -> dict[str, float] | None:
        """Return the energy [J] of every link with a power range by name; None without any."""
        return LINKS.consumed_j(self._links) if self._links else None

    def link_energy_of(self, link_bytes: Mapping[str, float]) -> dict[str, float] | None:
        """Return the energy of links by what they carried [J]: SimGrid's plugin does not see what parallel tasks send.

        None where none has a power range; the run is over.
        """
        links = {link.name: link for link in self.engine.all_links}
        texts = {name: range_of(link) for name, link in links.items()}
        wattage = link_wattages(texts, self.platform.link_wattage, self.platform.name)
        if not wattage:
            return None
        bandwidth = {name: link.bandwidth for name, link in links.items()}
        return link_energy(wattage, bandwidth, link_bytes, self.engine.clock)


def _give_wifi_rates(engine: simgrid.Engine, wifi: simgrid.Link.SharingPolicy, platform_file: Path) -> None:
    """Give each station of a Wi-Fi zone the rate that the file specifies, or its link's first one.

    Without it SimGrid ends a run at the first message of a station.

    Parameters
    ----------
    engine : simgrid.Engine
        With the platform loaded.
    wifi : simgrid.Link.SharingPolicy
        The policy of Wi-Fi links.
    platform_file : Path
        What it has loaded.
    """
    links = {link.name: link for link in engine.all_links if link.get_sharing_policy() == wifi}
    if not links:
        return
    entries = read_entries(read_document(platform_file), Findings(platform_file, strict=True))
    for station in entries.stations:
        if station.link in links:
            host = engine.host_by_name(station.host)
            links[station.link].set_host_wifi_rate(host, station.rate)


def _give_power(wattages: Mapping[str, str], host: simgrid.Host) -> None:
    """Give a host that SimGrid makes its power."""
    if host.name in wattages:
        host.set_property("wattage_per_state", wattages[host.name])


def _set_again(hosts: Iterable[simgrid.Host]) -> None:
    """Set P-states again, as an actor at time 0, where a host was changed before.

    Otherwise SimGrid 4.1's plugin charges a host by P-state 0, whatever the file specifies, and as
    switched on, until something happens on it.
    """
    for host in hosts:
        host.pstate = host.pstate


def _check_agreement(platform: Platform, by_name: dict[str, simgrid.Host]) -> None:
    """Raise where SimGrid and our reader see different hosts in one file."""
    if CLOCK_HOST in by_name:
        raise InputError(f"{platform.name}: the host name {CLOCK_HOST!r} is reserved; rename it.")
    ours = platform.everyone
    for host in ours:
        if host.name not in by_name:
            raise SimulationError(f"{platform.name}: SimGrid has no host {host.name!r}.")
        theirs = by_name[host.name]
        seen = tuple(theirs.pstate_speed(k) for k in range(theirs.pstate_count))
        if theirs.core_count != host.cores or not _close(host, seen):
            raise SimulationError(
                f"{platform.name}: SimGrid sees host {host.name!r} with {theirs.core_count} cores "
                f"and speeds {seen}; gridsched read {host.cores} cores and "
                f"{tuple(p.speed for p in host.all_pstates)}."
            )


def _close(host: Host, speeds: tuple[float, ...]) -> bool:
    ours = [pstate.speed for pstate in host.all_pstates]
    if len(ours) != len(speeds):
        return False
    return all(abs(a - b) <= 1e-12 * abs(a) for a, b in zip(ours, speeds, strict=True))
