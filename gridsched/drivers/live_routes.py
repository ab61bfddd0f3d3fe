"""The routes between hosts as SimGrid finds them while it runs."""

from __future__ import annotations

from pathlib import Path

from gridsched.drivers.simgrid_library import first_line
from gridsched.drivers.simulated_platform import SimulatedPlatform, without_route
from gridsched.model.routes import RouteLinks, refuse_closed_link


class LiveRoutes:
    """The routes that SimGrid finds between hosts, each looked for once.

    Parameters
    ----------
    simulated : SimulatedPlatform
    """

    gamma_bytes = 0.0  # SimGrid minds it

    def __init__(self, simulated: SimulatedPlatform) -> None:
        self._simulated = simulated
        links = simulated.engine.all_links
        self.bandwidth: dict[str, float] = {link.name: link.bandwidth for link in links}
        self.unshared = frozenset(link.name for link in links if link.get_sharing_policy().name == "FATPIPE")
        self._name = {link: link.name for link in links}  # SimGrid makes a new text at each look
        self._routes: dict[tuple[str, str], RouteLinks] = {}

    def route(self, source: str, target: str) -> RouteLinks:
        """Return the route from one host to another.

        Raises
        ------
        InputError
            If SimGrid finds none.
        """
        route = self._routes.get((source, target))
        if route is None:
            hosts = self._simulated.host_named
            try:
                links, latency_s = hosts[source].route_to(hosts[target])
            except (ValueError, RuntimeError, IndexError) as error:
                where = f"SimGrid on {Path(self._simulated.platform.name).name}"
                raise without_route(where, first_line(str(error))) or error from None
            route = self._routes[source, target] = RouteLinks(tuple(self._name[link] for link in links), latency_s)
            refuse_closed_link(self._simulated.platform.name, source, target, route.links, self.bandwidth)
        return route
