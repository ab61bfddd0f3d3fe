"""Executions by profiles: their steps on their hosts, and what they have computed and sent so far."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import inf
from typing import Any

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.engine.execution import Execution
from gridsched.engine.link_traffic import LinkTraffic
from gridsched.model.job_profiles import Step
from gridsched.model.platform import Platform
from gridsched.model.routes import RouteSource
from gridsched.model.system import System
from gridsched.model.tasks import Tasks


class _MessageRoutes:
    """The routes of a step's messages between some hosts, whatever their sizes are.

    `switches` are numbers of the switches of each host, the lowest first; another leaves all of its own.

    Attributes
    ----------
    links : list of str
        That any message crosses.
    latency_s : ndarray of float64, shape (messages,)
        [s]
    longest_s : float
        The longest of these [s].
    rows : ndarray of int64, shape (links,), or None
        Of its links in the sums of `ProfileRuns`, once a run that used it has ended.
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

    def __init__(self, step: Step, routes: _MessageRoutes | None, gamma_bytes: float, n_levels: int) -> None:
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
        self._kept: dict[tuple[tuple[str, ...], str, int, int], _MessageRoutes] = {}

    def place(self, step: Step, names: tuple[str, ...]) -> PlacedStep:
        """Return a step on hosts of these names, one for each part."""
        if not len(step.size_bytes):
            return PlacedStep(step, None, 0.0, self._n_levels)
        key = names, step.storage, id(step.source), id(step.target)
        routes = self._kept.get(key)
        if routes is None:
            if len(self._kept) >= self.MOST_KEPT:
                self._kept.pop(next(iter(self._kept)))
            routes = self._kept[key] = _MessageRoutes(
                step, [*names, step.storage], self._routes, self._switches, self._n_levels
            )
        return PlacedStep(step, routes, self._routes.gamma_bytes, self._n_levels)


class ProfileRun:
    """An execution that goes through the steps of its task's profile.

    Parameters
    ----------
    execution : Execution
    steps : iterator of Step
    names : tuple of str
        Its hosts, one for each part.
    speeds : ndarray of float64, shape (parts,)
        Of a core of each host in the execution's P-state [flop/s].
    cores : ndarray of int64, shape (parts,)
        Of each host.
    deadline : float
        When it is killed [s]; inf: never.
    n_levels : int
        Of switches that are known.
    traffic : LinkTraffic, optional
        Where its bytes are added over time.

    Attributes
    ----------
    placed : PlacedStep or None
        The step that it is at.
    began : float
        When that began [s].
    is_over : bool
        Whether no step is left.
    sent_bytes : ndarray of float64, shape (1 + levels,)
        What it has sent, and what of that left the switch of each level [byte].
    routes : object or None
        Of the last messages that it has sent; None: it has sent none.
    sums : ndarray of float64, shape (links,)
        What it has sent over each of the links of these routes [byte].
    before : dict of str to float
        What it had sent over each link before it took these routes [byte]; empty if it has taken no others.
    """

    #: So many notes of a step are kept before they are added to the traffic.
    MOST_NOTES = 1000

    def __init__(
        self,
        execution: Execution,
        steps: Iterator[Step],
        names: tuple[str, ...],
        speeds: Floats,
        cores: Floats,
        deadline: float,
        n_levels: int = 0,
        traffic: LinkTraffic | None = None,
    ) -> None:
        self.execution = execution
        self.names, self.speeds, self.deadline = names, speeds, deadline
        self._steps, self._full_speed = steps, speeds * cores
        self._placed_steps: dict[int, PlacedStep] = {}
        self.placed: PlacedStep | None = None
        self.began, self.is_over = execution.start, False
        self.sent_bytes = np.zeros(1 + n_levels)
        self.routes: _MessageRoutes | None = None
        self.sums = np.zeros(0)
        self.before: dict[str, float] = {}
        self._traffic = traffic
        #: times [s] from the begin of the step's messages on, and which share of it was done by then
        self._done: list[tuple[float, float]] = []
        execution.computed = np.zeros((len(names), 2))

    def next_step(self, now: float, steps: PlacedSteps) -> PlacedStep | None:
        """Go on to the next step that takes time, from now on [s]; None: there is none."""
        for step in self._steps:
            if step.does_nothing:
                continue
            placed = self._placed_steps.get(id(step))
            if placed is None or placed.step is not step:
                if len(self._placed_steps) >= steps.MOST_KEPT:
                    self._placed_steps.pop(next(iter(self._placed_steps)))
                placed = self._placed_steps[id(step)] = steps.place(step, self.names)
            self.placed, self.began = placed, now
            self._done = [(now + placed.latency_s, 0.0)]
            return placed
        self.is_over = True
        return None

    def note(self, now: float, share: float) -> None:
        """Note which share of its step is done by now [s], where its bytes are added over time.

        Rates are constant between such notes if there is one whenever they change.
        """
        placed, done = self.placed, self._done
        if self._traffic is None or placed is None or now <= done[-1][0] or share <= done[-1][1]:
            return
        done.append((now, share))
        if len(done) > self.MOST_NOTES:
            self._traffic.add(placed.links, placed.link_bytes, done)
            self._done = done[-1:]

    def end_step(self, now: float, share: float) -> None:
        """Note that the step, if it is at one, ends or is ended now [s], after a share of its work."""
        placed, self.placed = self.placed, None
        if placed is None:
            return
        if self._traffic is not None:
            begin, done = self._done[-1]
            self._traffic.add(placed.links, placed.link_bytes, [*self._done, (max(now, begin), max(share, done))])
        flops = placed.step.flops
        if len(flops):
            computed = self.execution.computed
            assert computed is not None
            computed[flops > 0, 0] += max(now - self.began - placed.latency_s, 0.0)
            computed[:, 1] += share * flops / self._full_speed
        if placed.routes is None:
            return
        self.sent_bytes += share * placed.sent_bytes
        if placed.routes is self.routes:
            self.sums += share * placed.link_bytes
            return
        before = self.before = self.link_bytes
        self.routes, self.sums = placed.routes, share * placed.link_bytes
        if before:
            self.sums += [before.get(link, 0.0) for link in placed.links]

    @property
    def link_bytes(self) -> dict[str, float]:
        """What it has sent over each link [byte]."""
        if self.routes is None:
            return self.before
        return self.before | dict(zip(self.routes.links, self.sums.tolist(), strict=True))


class ProfileRuns:
    """Makes the `ProfileRun` of each execution.

    Parameters
    ----------
    system : System
    tasks : Tasks
    flops : callable
        What an execution of a task without profile computes on each of its hosts [flop].
    traffic_step_s : float, optional
        Length of the steps in which bytes over each link are added [s]; None: they are not.

    Attributes
    ----------
    sent_bytes : ndarray of float64, shape (1 + levels,)
        What all executions that have ended have sent, and what of that left the switch of each level [byte].
    traffic : LinkTraffic or None
        What all executions have sent over each link, over time.
    """

    def __init__(
        self, system: System, tasks: Tasks, flops: Callable[[Execution], float], traffic_step_s: float | None = None
    ) -> None:
        self._tasks, self._flops = tasks, flops
        self.traffic = None if traffic_step_s is None else LinkTraffic(traffic_step_s)
        self._names = [host.name for host in system.platform.hosts]
        self._speed, self._cores = system.platform.speed, system.platform.cores
        self._estimates = system.estimates
        self._kills = system.rules.walltime == "kill"
        self._n_levels = len(system.platform.switch_of)
        self._row: dict[str, int] = {}
        self._sums = np.zeros(0)
        self.sent_bytes = np.zeros(1 + self._n_levels)

    def begin(self, execution: Execution) -> ProfileRun:
        """Return the run of an execution that starts."""
        hosts = np.array(execution.all_hosts)
        task, profile = execution.task, self._tasks.profile
        number = -1 if profile is None else int(profile[task])
        if number < 0:
            steps = iter([Step(flops=np.full(len(hosts), self._flops(execution)))])
        else:
            steps = self._tasks.profiles[number].steps(len(hosts))
        deadline = inf
        if self._kills:
            pstate = self._estimates.scheduler_pstate(task, execution.pstate)
            deadline = execution.start + self._estimates.run_time(task, execution.host, pstate)
        names = tuple(self._names[h] for h in hosts.tolist())
        speeds, cores = self._speed[hosts, execution.pstate], self._cores[hosts]
        return ProfileRun(execution, steps, names, speeds, cores, deadline, self._n_levels, self.traffic)

    def end(self, run: ProfileRun) -> None:
        """Note what an execution has sent that ends."""
        self.sent_bytes += run.sent_bytes
        if run.routes is None:
            return
        if run.before:
            sent = run.link_bytes
            rows = self._rows(sent)  # which may make room first
            self._sums[rows] += list(sent.values())
            return
        if run.routes.rows is None:
            run.routes.rows = self._rows(run.routes.links)
        self._sums[run.routes.rows] += run.sums

    def _rows(self, links: Collection[str]) -> Integers:
        """Return the places of links among the sums, with room for all of them."""
        rows = np.array([self._row.setdefault(link, len(self._row)) for link in links], dtype=np.int64)
        if len(self._row) > len(self._sums):
            self._sums = np.append(self._sums, np.zeros(2 * len(self._row) - len(self._sums)))
        return rows

    @property
    def link_bytes(self) -> dict[str, float]:
        """What all executions that have ended have sent over each link [byte]."""
        return dict(zip(self._row, self._sums.tolist(), strict=False))

    def records(self) -> dict[str, Any]:
        """Return what a `Trace` has of them."""
        records: dict[str, Any] = {"link_bytes": self.link_bytes, "sent_bytes": tuple(self.sent_bytes.tolist())}
        if self.traffic is not None and self._row:
            records |= {"traffic_bytes": self.traffic.bytes_of(self._row), "traffic_step_s": self.traffic.step_s}
        return records
