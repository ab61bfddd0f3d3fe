"""A platform file as SimGrid sees it: hosts, links, routes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SimGridHost:
    """A host as SimGrid sees it: cores, core speeds [flop/s] and properties."""

    name: str
    cores: int
    speeds: tuple[float, ...]
    properties: dict[str, str]


@dataclass(frozen=True)
class SimGridLink:
    """A link as SimGrid sees it: bandwidth [byte/s], latency [s], ``Idle:Busy`` power [W].

    Transfers share its bandwidth by its policy (``SHARED``, ``SPLITDUPLEX``, ``WIFI``); or each has all of it
    (``FATPIPE``).
    """

    name: str
    bandwidth: float
    latency_s: float
    wattage_range: str | None = None
    sharing_policy: str = "SHARED"


@dataclass(frozen=True)
class Route:
    """The route from one host to another, latency [s] and least bandwidth [byte/s].

    Without a route `links` is None.
    """

    source: str
    target: str
    links: tuple[str, ...] | None
    latency_s: float = 0.0
    bandwidth: float = float("inf")


@dataclass(frozen=True)
class Inspection:
    """SimGrid's own answer to a platform file.

    Attributes
    ----------
    status : str
        ``"loaded"``, ``"refused"`` or ``"skipped"``.
    message : str
        Why it refused or was skipped.
    hosts : tuple of SimGridHost
        Empty unless loaded.
    warnings : tuple of str
        What SimGrid warned of while loading, without its own energy warnings.
    links : tuple of SimGridLink
    routes : tuple of Route
        Between the hosts that were asked for.
    """

    status: str
    message: str = ""
    hosts: tuple[SimGridHost, ...] = ()
    warnings: tuple[str, ...] = ()
    links: tuple[SimGridLink, ...] = ()
    routes: tuple[Route, ...] = ()
