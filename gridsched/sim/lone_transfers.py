"""How long a lone transfer takes between any two hosts of a platform file, by SimGrid's models of networks.

SimGrid finds the routes. The latency of a route comes first, times latency-factor; then data flow at the rate that the
model of links gives a flow which shares none (`gridsched.drivers.link_shares`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from gridsched.drivers.link_shares import LinkModel, number_of_option
from gridsched.drivers.simgrid_library import link_wattages
from gridsched.errors import InputError
from gridsched.files.input_files import read_bytes
from gridsched.model.network import Network
from gridsched.model.routes import GAMMA_BYTES, RouteLinks, Routes, refuse_closed_link
from gridsched.platform_io.simgrid_options import new_name
from gridsched.platform_io.simgrid_view import Inspection, Route
from gridsched.platform_io.xml_document import MAX_BYTES, parse_document
from gridsched.sim.inspection import inspect_platform

#: Between more hosts routes are not looked for: their number grows with its square.
MAX_HOSTS = 520
#: SimGrid's solver of parallel tasks where no other is asked for.
DEFAULT_SOLVER = "fairbottleneck"


def solver_of_parallel_tasks(platform_file: Path, cfg: Sequence[str] = ()) -> str:
    """Return the solver of parallel tasks by a platform file's options and by ``--cfg``, which takes precedence."""
    return _options_of(platform_file, cfg).get("host/solver", DEFAULT_SOLVER)


def link_model(platform_file: Path, cfg: Sequence[str] = (), *, has_parallel_tasks: bool = False) -> LinkModel:
    """Return the model of links by a platform file's options, and by ``--cfg``, which takes precedence.

    Where SimGrid models parallel tasks (``ptask_L07``), it has neither factors nor acknowledgements.

    Raises
    ------
    InputError
        See `LinkModel.of_options`.
    """
    options = _options_of(platform_file, cfg)
    if has_parallel_tasks:
        gamma = number_of_option(platform_file.name, options, "network/TCP-gamma", GAMMA_BYTES)
        return LinkModel(1.0, 1.0, gamma, False, 0.0)
    return LinkModel.of_options(platform_file.name, options)


def _options_of(platform_file: Path, cfg: Sequence[str] = ()) -> dict[str, str]:
    """Return the options that a platform file sets, by SimGrid's present names, and those of ``--cfg`` over them."""
    over = dict(item.split(":", 1) for item in cfg)
    data = read_bytes(platform_file, MAX_BYTES)
    if b"<config" not in data:
        return over
    props = (
        prop.attributes
        for element in parse_document(platform_file, data).walk()
        if element.tag == "config"
        for prop in element.children
    )
    named = ((new_name(each.get("id", ""), each.get("value", "")), each.get("value", "")) for each in props)
    return {name: value for name, value in named if name is not None} | over


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
    model = link_model(platform_file, cfg, has_parallel_tasks=has_parallel_tasks)
    pairs = [(a, b) for a in hosts for b in hosts if a != b]
    seen = _seen(platform_file, hosts, pairs)
    ways = {(each.source, each.target): RouteLinks(each.links or (), each.latency_s) for each in seen.routes}
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
    for (a, b), way in ways.items():
        cell = place[a], place[b]
        latency[cell] = model.latency_factor * way.latency_s
        bandwidth[cell] = model.lone_rate(way, ways[b, a], link_bandwidth, unshared)
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
    gamma = number_of_option(platform_file.name, options, "network/TCP-gamma", GAMMA_BYTES)
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
