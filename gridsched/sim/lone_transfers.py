"""How long a lone transfer takes between any two hosts of a platform file, by SimGrid's models of networks.

SimGrid finds the routes; the two models of links that it has for all platforms are a formula of a route's latency L,
and of the bandwidth B of each of its links:

- bandwidth-factor B, over 1.05 where crosstraffic is on and the way back takes the link, too (but for links that
  transfers do not share); the narrowest link counts, and no more than TCP-gamma / (2 L);
- latency-factor L, before any data flow.

CM02 (Casanova and Marchal 2002) has the factors 1 and 1, LV08 (Velho and Legrand 2009), the usual one, 0.97 and
13.01; both are options of SimGrid, as crosstraffic and TCP-gamma are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gridsched.drivers.simgrid_library import link_wattages
from gridsched.errors import InputError
from gridsched.files.input_files import read_bytes
from gridsched.model.network import Network
from gridsched.model.routes import RouteLinks, Routes, refuse_closed_link
from gridsched.platform_io.simgrid_options import new_name
from gridsched.platform_io.simgrid_view import Inspection, Route
from gridsched.platform_io.xml_document import MAX_BYTES, parse_document
from gridsched.sim.inspection import inspect_platform

#: Between more hosts routes are not looked for: their number grows with its square.
MAX_HOSTS = 520
#: Factor of latency and of bandwidth by model.
_FACTORS = {"CM02": (1.0, 1.0), "LV08": (13.01, 0.97)}
#: SimGrid's solver of parallel tasks where no other is asked for.
DEFAULT_SOLVER = "fairbottleneck"
_GAMMA_BYTES = 4194304.0
#: What the data that flow and the acknowledgements that come back take together of a link.
_WITH_ACKNOWLEDGEMENTS = 1.05
_YES = frozenset({"yes", "on", "true", "1"})


@dataclass(frozen=True)
class LinkModel:
    """A model of links.

    Attributes
    ----------
    latency_factor, bandwidth_factor : float
    gamma_bytes : float
        Most that is under way unacknowledged [byte]; 0: any.
    has_crosstraffic : bool
        Whether acknowledgements take bandwidth on the way back.
    """

    latency_factor: float
    bandwidth_factor: float
    gamma_bytes: float
    has_crosstraffic: bool

    @classmethod
    def of_file(cls, platform_file: Path, cfg: Sequence[str] = (), *, has_parallel_tasks: bool = False) -> LinkModel:
        """Return the model by a platform file's options, and by ``--cfg``, which takes precedence.

        Where SimGrid models parallel tasks (``ptask_L07``), it has neither factors nor acknowledgements.

        Raises
        ------
        InputError
            If SimGrid has no such formula for the model, or an option is not a number.
        """
        options = {**_options_of(platform_file), **dict(item.split(":", 1) for item in cfg)}
        if has_parallel_tasks:
            return cls(1.0, 1.0, _number(platform_file, options, "network/TCP-gamma", _GAMMA_BYTES), False)
        name = options.get("network/model", "LV08")
        if name not in _FACTORS or options.get("host/model", "default") not in ("default", "compound"):
            raise InputError(
                f"{platform_file.name}: how long data of tasks take is known of the network models "
                f"{' and '.join(_FACTORS)}, and this one is {options.get('network/model', options.get('host/model'))}. "
                "Take another one (--cfg network/model:LV08), or send no data (--network none)."
            )
        latency, bandwidth = _FACTORS[name]
        return cls(
            _number(platform_file, options, "network/latency-factor", latency),
            _number(platform_file, options, "network/bandwidth-factor", bandwidth),
            _number(platform_file, options, "network/TCP-gamma", _GAMMA_BYTES),
            options.get("network/crosstraffic", "yes").lower() in _YES,
        )

    def latency_s(self, route: Route) -> float:
        """Return how long it takes on a route until data flow [s]."""
        return self.latency_factor * route.latency_s

    def bandwidth(
        self, route: Route, back: Route, link_bandwidth: Mapping[str, float], unshared: frozenset[str]
    ) -> float:
        """Return how fast the data of a lone transfer flow [byte/s]; infinite without links.

        Parameters
        ----------
        route, back : Route
        link_bandwidth : mapping of str to float
            Of each link [byte/s].
        unshared : frozenset of str
            Links that transfers do not share.
        """
        returning = frozenset(back.links or ()) - unshared if self.has_crosstraffic else frozenset()
        widths = (
            self.bandwidth_factor * link_bandwidth[link] / (_WITH_ACKNOWLEDGEMENTS if link in returning else 1.0)
            for link in route.links or ()
        )
        limit = self.gamma_bytes / (2 * route.latency_s) if self.gamma_bytes and route.latency_s else float("inf")
        return min(*widths, limit) if route.links else limit


def solver_of_parallel_tasks(platform_file: Path, cfg: Sequence[str] = ()) -> str:
    """Return the solver of parallel tasks by a platform file's options and by ``--cfg``, which takes precedence."""
    options = {**_options_of(platform_file), **dict(item.split(":", 1) for item in cfg)}
    return options.get("host/solver", DEFAULT_SOLVER)


def _options_of(platform_file: Path) -> dict[str, str]:
    """Return the options that a platform file sets, by SimGrid's present names."""
    data = read_bytes(platform_file, MAX_BYTES)
    if b"<config" not in data:
        return {}
    props = (
        prop.attributes
        for element in parse_document(platform_file, data).walk()
        if element.tag == "config"
        for prop in element.children
    )
    named = ((new_name(each.get("id", ""), each.get("value", "")), each.get("value", "")) for each in props)
    return {name: value for name, value in named if name is not None}


def _number(platform_file: Path, options: Mapping[str, str], name: str, default: float) -> float:
    try:
        value = float(options.get(name, default))
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise InputError(
            f"{platform_file.name}: the option {name} is {options[name]!r}; how long data of tasks take is known for "
            "one number >= 0. Set one such number, or send no data (--network none)."
        )
    return value


def network_between(
    platform_file: Path, hosts: Sequence[str], cfg: Sequence[str] = (), *, has_parallel_tasks: bool = False
) -> Network:
    """Return how long lone transfers take between hosts, on the routes that SimGrid finds.

    Parameters
    ----------
    platform_file : Path
        SimGrid XML.
    hosts : sequence of str
        Their names.
    cfg : sequence of str
        SimGrid's ``--cfg`` items.
    has_parallel_tasks : bool
        Whether SimGrid models parallel tasks.

    Raises
    ------
    InputError
        If there are too many hosts, SimGrid cannot be asked or refuses the file, there is no route between two of
        them, or its model is none of those with a formula.
    """
    model = LinkModel.of_file(platform_file, cfg, has_parallel_tasks=has_parallel_tasks)
    pairs = [(a, b) for a in hosts for b in hosts if a != b]
    seen = _seen(platform_file, hosts, pairs)
    routes = {(route.source, route.target): route for route in seen.routes}
    link_bandwidth = {link.name: link.bandwidth for link in seen.links}
    unshared = frozenset(link.name for link in seen.links if link.sharing_policy == "FATPIPE")
    wireless = {link.name for link in seen.links if link.sharing_policy == "WIFI"}
    for route in seen.routes:
        if not wireless.isdisjoint(route.links or ()):
            raise InputError(
                f"{platform_file.name}: the route from {route.source!r} to {route.target!r} is wireless, and how long "
                "data of tasks take there is not known. Leave the host out, or send no data (--network none)."
            )
    place = {name: k for k, name in enumerate(hosts)}
    latency, bandwidth = np.zeros((len(hosts), len(hosts))), np.full((len(hosts), len(hosts)), np.inf)
    for (a, b), route in routes.items():
        cell = place[a], place[b]
        latency[cell] = model.latency_s(route)
        bandwidth[cell] = model.bandwidth(route, routes[b, a], link_bandwidth, unshared)
    return Network(latency, bandwidth)


def routes_between(platform_file: Path, hosts: Sequence[str], wattage: tuple[float, float] | None = None) -> Routes:
    """Return the routes between hosts, and from each to itself, as SimGrid finds them.

    Parameters
    ----------
    platform_file : Path
        SimGrid XML.
    hosts : sequence of str
        Their names.
    wattage : (float, float), optional
        Power of links that have none of their own (`Platform.link_wattage`).

    Raises
    ------
    InputError
        If there are too many hosts, SimGrid cannot be asked or refuses the file, or there is no route.
    """
    options = _options_of(platform_file)
    if (solver := options.get("host/solver", DEFAULT_SOLVER)) != DEFAULT_SOLVER:
        raise InputError(
            f"{platform_file.name}: its host/solver is {solver}, and the reference driver divides links among jobs as "
            "fairbottleneck does, SimGrid's default one. Use --driver simgrid, or take the option out of the file."
        )
    seen = _seen(platform_file, hosts, [(a, b) for a in hosts for b in hosts])
    gamma = _number(platform_file, options, "network/TCP-gamma", _GAMMA_BYTES)
    return Routes(
        {
            (route.source, route.target): RouteLinks(route.links, route.latency_s)
            for route in seen.routes
            if route.links is not None
        },
        {link.name: link.bandwidth for link in seen.links},
        frozenset(link.name for link in seen.links if link.sharing_policy == "FATPIPE"),
        gamma,
        link_wattages({link.name: link.wattage_range for link in seen.links}, wattage, platform_file.name),
    )


def _seen(platform_file: Path, hosts: Sequence[str], pairs: Sequence[tuple[str, str]]) -> Inspection:
    """Return a file as SimGrid sees it, with the routes between pairs of some hosts."""
    if len(hosts) > MAX_HOSTS:
        raise InputError(
            f"{platform_file.name}: {len(hosts):,} hosts, and routes for data of tasks are looked for between at most "
            f"{MAX_HOSTS}. Use fewer, or send no data (--network none)."
        )
    seen = inspect_platform(platform_file, pairs)
    if seen.status != "loaded":
        raise InputError(
            f"{platform_file.name}: SimGrid finds the routes of data between tasks, and it is {seen.status}: "
            f"{seen.message.rstrip('.')}. To send no data, use --network none."
        )
    routes = {(route.source, route.target): route for route in seen.routes}
    _refuse_without_route(platform_file, [(a, b) for a, b in pairs if a != b], routes)
    _refuse_closed_links(platform_file, seen)
    return seen


def _refuse_closed_links(platform_file: Path, seen: Inspection) -> None:
    """Refuse a route over a link that carries nothing: what is sent never arrives."""
    bandwidth = {link.name: link.bandwidth for link in seen.links}
    for route in seen.routes:
        refuse_closed_link(platform_file, route.source, route.target, route.links or (), bandwidth)


def _refuse_without_route(
    platform_file: Path, pairs: Iterable[tuple[str, str]], routes: Mapping[tuple[str, str], Route]
) -> None:
    for a, b in pairs:
        if (a, b) not in routes or routes[a, b].links is None:
            raise InputError(
                f"{platform_file.name}: SimGrid finds no route from {a!r} to {b!r} for the data of tasks. Add a route, "
                "or send no data (--network none)."
            )
