"""Executions by profiles: their steps on their hosts, and what they have computed and sent so far."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from math import inf
from typing import Protocol

import numpy as np

from gridsched.arrays import Floats
from gridsched.engine.execution import Execution
from gridsched.engine.fair_shares import fair_rates
from gridsched.model.job_profiles import Step
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.model.ways import Way


class KnowsWays(Protocol):
    """Whoever knows the ways between hosts; see `gridsched.model.ways.Ways`."""

    @property
    def gamma_bytes(self) -> float:
        """Most that is under way unacknowledged [byte]; 0: any."""

    @property
    def unshared(self) -> frozenset[str]:
        """Links of which whoever sends has all."""

    def way(self, source: str, target: str) -> Way:
        """Return the way from one host to another, or to itself."""


class PlacedStep:
    """A step on its hosts.

    Attributes
    ----------
    step : Step
    latency_s : float
        Until it begins: the longest of the ways that its messages take [s].
    link_bytes, takes : dict of str to float
        What it sends over each link, and what of that counts for its rate: of links that are not shared the
        largest message [byte].
    bound : float
        The rate that it does not exceed for what is under way unacknowledged [1/s].
    """

    __slots__ = ("bound", "latency_s", "link_bytes", "step", "takes")

    def __init__(self, step: Step, names: Sequence[str], ways: KnowsWays) -> None:
        self.step = step
        self.latency_s, self.bound = 0.0, inf
        self.link_bytes: dict[str, float] = {}
        self.takes: dict[str, float] = {}
        link_bytes, unshared, latency_s, slowest = self.link_bytes, ways.unshared, 0.0, 0.0
        hosts = [*names, step.storage]
        messages = zip(step.source.tolist(), step.target.tolist(), step.size_bytes.tolist(), strict=True)
        for source, target, size in messages:
            links, way_s = ways.way(hosts[source], hosts[target])
            if way_s > latency_s:
                latency_s = way_s
            if way_s * size > slowest:
                slowest = way_s * size
            for link in links:
                link_bytes[link] = link_bytes.get(link, 0.0) + size
                if link in unshared:
                    self.takes[link] = max(self.takes.get(link, 0.0), size)
        self.takes = {**link_bytes, **self.takes} if self.takes else link_bytes
        self.latency_s = latency_s
        if slowest > 0 and ways.gamma_bytes:
            self.bound = ways.gamma_bytes / (2.0 * slowest)

    def alone_s(self, speeds: Floats, bandwidth: Mapping[str, float]) -> float:
        """Return how long it takes if it shares no host and no link [s].

        Parameters
        ----------
        speeds : ndarray of float64, shape (parts,)
            Of a core of each host [flop/s].
        bandwidth : mapping of str to float
            Of each link [byte/s].
        """
        step = self.step
        if step.delay_s or step.does_nothing:
            return step.delay_s
        sending = max((size / bandwidth[link] for link, size in self.takes.items()), default=0.0)
        return self.latency_s + max(float((step.flops / speeds).max(initial=0.0)), sending, 1.0 / self.bound)


class ProfileRun:
    """An execution that goes through the steps of its task's profile.

    Parameters
    ----------
    execution : Execution
    steps : iterator of Step
    names : sequence of str
        Its hosts, one for each part.
    speeds : ndarray of float64, shape (parts,)
        Of a core of each host in the execution's P-state [flop/s].
    cores : ndarray of int64, shape (parts,)
        Of each host.
    deadline : float
        When it is killed [s]; inf: never.

    Attributes
    ----------
    placed : PlacedStep or None
        The step that it is at.
    began : float
        When that began [s].
    is_over : bool
        Whether no step is left.
    link_bytes : dict of str to float
        What it has sent over each link [byte].
    """

    def __init__(
        self,
        execution: Execution,
        steps: Iterator[Step],
        names: Sequence[str],
        speeds: Floats,
        cores: Floats,
        deadline: float,
    ) -> None:
        self.execution = execution
        self.names, self.speeds, self.deadline = names, speeds, deadline
        self._steps, self._full_speed = steps, speeds * cores
        self._placed_steps: dict[int, PlacedStep] = {}
        self.placed: PlacedStep | None = None
        self.began, self.is_over = execution.start, False
        self.link_bytes: dict[str, float] = {}
        execution.computed = np.zeros((len(names), 2))

    def next_step(self, now: float, ways: KnowsWays) -> PlacedStep | None:
        """Go on to the next step that takes time, from now on [s]; None: there is none."""
        for step in self._steps:
            if step.does_nothing:
                continue
            placed = self._placed_steps.get(id(step))
            if placed is None or placed.step is not step:
                placed = self._placed_steps[id(step)] = PlacedStep(step, self.names, ways)
            self.placed, self.began = placed, now
            return placed
        self.is_over = True
        return None

    def end_step(self, now: float, share: float) -> None:
        """Note that the step, if it is at one, ends or is ended now [s], after a share of its work."""
        placed, self.placed = self.placed, None
        if placed is None:
            return
        flops = placed.step.flops
        if len(flops):
            computed = self.execution.computed
            assert computed is not None
            computed[flops > 0, 0] += max(now - self.began - placed.latency_s, 0.0)
            computed[:, 1] += share * flops / self._full_speed
        for link, size in placed.link_bytes.items():
            self.link_bytes[link] = self.link_bytes.get(link, 0.0) + share * size


class ProfileRuns:
    """Makes the `ProfileRun` of each execution.

    Parameters
    ----------
    system : System
    tasks : Tasks
    flops : callable
        What an execution of a task without profile computes on each of its hosts [flop].

    Attributes
    ----------
    link_bytes : dict of str to float
        What all executions that have ended have sent over each link [byte].
    """

    def __init__(self, system: System, tasks: Tasks, flops: Callable[[Execution], float]) -> None:
        self._tasks, self._flops = tasks, flops
        self._names = [host.name for host in system.platform.hosts]
        self._speed, self._cores = system.platform.speed, system.platform.cores
        self._estimates = system.estimates
        self._kills = system.rules.walltime == "kill"
        self.link_bytes: dict[str, float] = {}

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
        names = [self._names[h] for h in hosts.tolist()]
        return ProfileRun(execution, steps, names, self._speed[hosts, execution.pstate], self._cores[hosts], deadline)

    def end(self, run: ProfileRun) -> None:
        """Note what an execution has sent that ends."""
        for link, size in run.link_bytes.items():
            self.link_bytes[link] = self.link_bytes.get(link, 0.0) + size


def rates_of(
    runs: Sequence[ProfileRun],
    speed_of: Mapping[Hashable, float],
    bandwidth: Mapping[str, float],
    unshared: frozenset[str],
) -> list[float]:
    """Return the rate [1/s] at which each of several runs goes through the step that it is at.

    Parameters
    ----------
    runs : sequence of ProfileRun
        Whose latency is over.
    speed_of : mapping
        Of all cores of each host by name [flop/s].
    bandwidth : mapping of str to float
        Of each link [byte/s].
    unshared : frozenset of str
    """
    uses: list[dict[Hashable, float]] = []
    bounds = []
    capacity: dict[Hashable, float] = {}
    for run in runs:
        placed, use = run.placed, dict[Hashable, float]()
        assert placed is not None
        bound = placed.bound
        for name, speed, flops in zip(run.names, run.speeds.tolist(), placed.step.flops.tolist(), strict=True):
            if flops > 0:
                use["host", name] = flops
                capacity["host", name] = speed_of[name]
                bound = min(bound, speed / flops)
        for link, size in placed.takes.items():
            use["link", link] = size
            capacity["link", link] = bandwidth[link]
        uses.append(use)
        bounds.append(bound)
    return fair_rates(uses, bounds, capacity, frozenset(("link", link) for link in unshared))
