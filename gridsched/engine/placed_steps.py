"""Steps of programs on their hosts: which links their messages cross, and what they send over each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.model.job_profiles import Step
from gridsched.model.platform import Platform
from gridsched.model.routes import RouteSource


class StepRoutes:
    """The routes of a step's messages between some hosts, whatever their sizes are.

    Parameters
    ----------
    step : Step
    hosts : sequence of str
        Those of its parts, then a storage host.
    routes : RouteSource
    switches : mapping of str to ndarray of int64
        Numbers of the switches of each host, the lowest first; another leaves all of its own.
    n_levels : int
        Of switches.

    Attributes
    ----------
    links : list of str
        That any message crosses.
    latency_s : ndarray of float64, shape (messages,)
        [s]
    longest_s : float
        The longest of these [s].
    rows : ndarray of int64, shape (links,), or None
        Of its links in the sums of `Programs`, once an execution that used it has ended.
    """

    rows: Integers | None = None

    def __init__(
        self, step: Step, hosts: Sequence[str], routes: RouteSource, switches: Mapping[str, Integers], n_levels: int
    ) -> None:
        numbers: dict[str, int] = {}
        crossed: list[int] = []
        counts, latencies = [], []
        for source, target in zip(step.source.tolist(), step.target.tolist(), strict=True):
            links, latency_s = routes.route(hosts[source], hosts[target])
            crossed += [numbers.setdefault(link, len(numbers)) for link in links]
            counts.append(len(links))
            latencies.append(latency_s)
        self.links, self.latency_s = list(numbers), np.array(latencies)
        self.longest_s = float(self.latency_s.max())
        self._crossed = np.array(crossed, dtype=np.int64)
        self._message = np.repeat(np.arange(len(counts)), counts)
        self._unshared = [(k, link) for k, link in enumerate(self.links) if link in routes.unshared]
        nowhere = np.full(n_levels, -1)
        under = np.array([switches.get(name, nowhere) for name in hosts]).reshape(len(hosts), n_levels)
        #: which messages leave a host, and the switch of each level, shape (1 + levels, messages)
        self._leaves = np.vstack([step.source != step.target, (under[step.source] != under[step.target]).T])
        self._of = step.source, step.target  # kept, so that no other arrays have their addresses

    def bytes_by_level(self, size_bytes: Floats) -> Floats:
        """Return `PlacedStep.sent_bytes` of messages of these sizes [byte]."""
        return np.asarray(self._leaves @ size_bytes)

    def bytes_by_link(self, size_bytes: Floats) -> Floats:
        """Return what messages of these sizes send over each of `links`, shape (links,) [byte]."""
        return np.asarray(np.bincount(self._crossed, size_bytes[self._message], len(self.links)), dtype=np.float64)

    def largest_on_unshared(self, size_bytes: Floats) -> dict[str, float]:
        """Return the largest of messages of these sizes on each link that is not shared [byte]."""
        sizes = size_bytes[self._message]
        return {link: float(sizes[self._crossed == k].max()) for k, link in self._unshared}


class PlacedStep:
    """A step on its hosts.

    Attributes
    ----------
    step : Step
    latency_s : float
        Until it begins: the longest of the routes that its messages take [s].
    routes : object or None
        Of its messages: those of two steps with the same links in the same order are one. None: it has no messages.
    link_bytes : ndarray of float64, shape (links,)
        What it sends over each link of its routes [byte].
    sent_bytes : ndarray of float64, shape (1 + levels,)
        What it sends from one host to another, and what of that leaves the switch of each level [byte].
    bound : float
        The rate that it does not exceed for what is under way unacknowledged [1/s].
    """

    __slots__ = ("_takes", "bound", "latency_s", "link_bytes", "routes", "sent_bytes", "step")

    def __init__(self, step: Step, routes: StepRoutes | None, gamma_bytes: float, n_levels: int) -> None:
        self.step, self.routes = step, routes
        self.latency_s, self.bound = 0.0, inf
        self._takes: dict[str, float] | None = None
        if routes is None:
            self.link_bytes, self.sent_bytes = np.zeros(0), np.zeros(1 + n_levels)
            return
        self.sent_bytes = routes.bytes_by_level(step.size_bytes)
        self.latency_s = routes.longest_s
        self.link_bytes = routes.bytes_by_link(step.size_bytes)
        if gamma_bytes and (slowest := float((routes.latency_s * step.size_bytes).max())) > 0:
            self.bound = gamma_bytes / (2.0 * slowest)

    @property
    def links(self) -> list[str]:
        """The links that its messages cross."""
        return [] if self.routes is None else self.routes.links

    @property
    def takes(self) -> dict[str, float]:
        """What counts for its rate of what it sends over each link: of those not shared the largest message [byte]."""
        if self._takes is None:
            self._takes = dict(zip(self.links, self.link_bytes.tolist(), strict=True))
            if self.routes is not None:
                self._takes |= self.routes.largest_on_unshared(self.step.size_bytes)
        return self._takes


class PlacedSteps:
    """Makes `PlacedStep`s; the routes of messages between the same hosts are looked for once.

    Parameters
    ----------
    routes : RouteSource
    platform : Platform, optional
        Whose switches the hosts lie under; None: none are known.
    """

    #: So many sets of hosts are remembered, each with as many routes as a step has messages.
    MOST_KEPT = 256

    def __init__(self, routes: RouteSource, platform: Platform | None = None) -> None:
        self._routes = routes
        self._n_levels, self._switches = 0, dict[str, Integers]()
        if platform is not None:
            self._n_levels, names = len(platform.switch_of), (host.name for host in platform.hosts)
            self._switches = dict(zip(names, platform.switch_of.T, strict=True))
        self._kept: dict[tuple[tuple[str, ...], str, int, int], StepRoutes] = {}

    def place(self, step: Step, names: tuple[str, ...]) -> PlacedStep:
        """Return a step on hosts of these names, one for each part."""
        if not len(step.size_bytes):
            return PlacedStep(step, None, 0.0, self._n_levels)
        key = names, step.storage, id(step.source), id(step.target)
        routes = self._kept.get(key)
        if routes is None:
            if len(self._kept) >= self.MOST_KEPT:
                self._kept.pop(next(iter(self._kept)))
            routes = self._kept[key] = StepRoutes(
                step, [*names, step.storage], self._routes, self._switches, self._n_levels
            )
        return PlacedStep(step, routes, self._routes.gamma_bytes, self._n_levels)
