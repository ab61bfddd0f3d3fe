"""What SimGrid makes of a platform file, in the process that loads it: without the engine, and without numpy."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from gridsched.drivers.simgrid_library import HOSTS, LOOPBACK, first_line, load_simgrid, range_of, refusals
from gridsched.platform_io.simgrid_view import Inspection, Route, SimGridHost, SimGridLink

#: Sent before SimGrid looks for the route between two hosts: it may abort if there is none.
LOOKUP = "gridsched: looks for route "


def look_at(path: str, folder: str, pairs: Sequence[tuple[str, str]]) -> Inspection:
    """Load the file in this process; SimGrid may abort on the way."""
    simgrid = load_simgrid()
    HOSTS.start()
    engine = simgrid.Engine(["inspection", "--log=xbt_cfg.thresh:warning"])
    os.chdir(folder)
    try:
        engine.load_platform(path)
        engine.netzone_root.seal()
    except refusals(simgrid) as error:
        message = first_line(" ".join(str(error).split()))
        return Inspection("refused", message.replace(f"{path}:", "line "))
    hosts = {
        host.name: SimGridHost(
            host.name,
            host.core_count,
            tuple(host.pstate_speed(k) for k in range(host.pstate_count)),
            dict(host.get_properties()),
        )
        for host in engine.all_hosts
    }
    links = tuple(
        SimGridLink(link.name, link.bandwidth, link.latency, range_of(link) or None, link.get_sharing_policy().name)
        for link in engine.all_links
        if link.name != LOOPBACK
    )
    routes = []
    for k, (source, target) in enumerate(pairs):
        if source in hosts and target in hosts:
            sys.stderr.write(f"{LOOKUP}{k}\n")
            sys.stderr.flush()
            routes.append(_route(engine.host_by_name(source), engine.host_by_name(target)))
    return Inspection("loaded", "", tuple(hosts.values()), (), links, tuple(routes))


def _route(source: Any, target: Any) -> Route:
    """Return the route between two hosts of SimGrid; without links where there is none."""
    try:
        links, latency = source.route_to(target)
    except (RuntimeError, ValueError):
        return Route(source.name, target.name, None)
    least = min((link.bandwidth for link in links), default=float("inf"))
    return Route(source.name, target.name, tuple(link.name for link in links), latency, least)
