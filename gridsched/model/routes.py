"""The routes between hosts: which links data take, how long they are under way, and what links carry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from gridsched.errors import InputError

#: SimGrid's ``network/TCP-gamma`` where none is set [byte].
GAMMA_BYTES = 4194304.0


class RouteLinks(NamedTuple):
    """The route from one host to another.

    Attributes
    ----------
    links : tuple of str
        In order; a link may be listed again.
    latency_s : float
        [s]
    """

    links: tuple[str, ...]
    latency_s: float


def refuse_closed_link(
    platform: str | Path, source: str, target: str, links: Iterable[str], bandwidth: Mapping[str, float]
) -> None:
    """Raise `InputError` for a route over a link that carries nothing: what is sent there never arrives.

    Parameters
    ----------
    platform : str or Path
        File of the links.
    source, target : str
        Hosts at the ends of the route.
    links : iterable of str
    bandwidth : mapping of str to float
        Of links [byte/s]; those that it lacks carry anything.
    """
    closed = next((link for link in links if bandwidth.get(link, 1.0) <= 0), None)
    if closed is not None:
        raise InputError(
            f"{Path(platform).name}: link {closed!r} has a bandwidth of 0, and it is on the route from {source!r} to "
            f"{target!r} for the data of tasks. Give it one, or send no data (--network none)."
        )


class RouteSource(Protocol):
    """What knows the routes between hosts: `Routes`, or an object that asks SimGrid for each."""

    @property
    def bandwidth(self) -> Mapping[str, float]:
        """Of each link [byte/s]."""

    @property
    def gamma_bytes(self) -> float:
        """Most that is under way unacknowledged [byte]; 0: any."""

    @property
    def unshared(self) -> frozenset[str]:
        """Links of which whoever sends has all."""

    def route(self, source: str, target: str) -> RouteLinks:
        """Return the route from one host to another, or to itself."""


@dataclass(frozen=True)
class Routes:
    """The routes between hosts by their names, and the links on them.

    Attributes
    ----------
    between : mapping of (str, str) to RouteLinks
    bandwidth : mapping of str to float
        Of each link [byte/s].
    unshared : frozenset of str
        Links of which whoever sends has all (``FATPIPE``).
    gamma_bytes : float
        Most that is under way unacknowledged (``network/TCP-gamma``) [byte]; 0: any.
    wattage : mapping of str to (float, float)
        Power of links that carry nothing, and that carry all they can [W].
    """

    between: Mapping[tuple[str, str], RouteLinks] = field(repr=False)
    bandwidth: Mapping[str, float] = field(repr=False)
    unshared: frozenset[str] = frozenset()
    gamma_bytes: float = GAMMA_BYTES
    wattage: Mapping[str, tuple[float, float]] = field(default_factory=dict, repr=False)

    def route(self, source: str, target: str) -> RouteLinks:
        """Return the route from one host to another, or to itself."""
        return self.between[source, target]
