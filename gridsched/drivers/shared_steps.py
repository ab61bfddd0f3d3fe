"""How steps go on that share hosts and links, without SimGrid: each at its rate, until one begins or ends.

Rates are those of SimGrid's model of parallel tasks (`gridsched.drivers.fair_shares`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import inf

import numpy as np

from gridsched.arrays import Floats
from gridsched.drivers.fair_shares import fair_rates
from gridsched.engine.execution import Activity, ParallelStep, Transfer
from gridsched.engine.placed_steps import PlacedStep, PlacedSteps
from gridsched.model.job_profiles import Step
from gridsched.model.platform import Platform
from gridsched.model.routes import Routes

#: A step of which no larger share is left has ended (``precision/work-amount`` times ``precision/timing``).
_DONE = 1e-14


class SentData:
    """Data on their way, as a step in which nothing computes.

    Parameters
    ----------
    transfer : Transfer
    placed : PlacedStep
        From the first to the second of the `names`.
    names : tuple of str
    """

    speeds: Floats = np.zeros(0)
    part_cores = 1

    def __init__(self, transfer: Transfer, placed: PlacedStep, names: tuple[str, ...]) -> None:
        self.transfer, self.placed, self.names = transfer, placed, names

    def note(self, now: float, share: float) -> None:
        """Note nothing: what it sends is counted when it has arrived."""


SharedStep = ParallelStep | SentData


class SharedSteps:
    """Steps that go on, and how far each has come.

    Parameters
    ----------
    platform : Platform
    routes : Routes
        Between all its hosts.
    names : sequence of str
        Of its hosts.
    """

    def __init__(self, platform: Platform, routes: Routes, names: Sequence[str]) -> None:
        self._routes, self._names, self._places = routes, names, PlacedSteps(routes)
        self._sent: dict[Transfer, SentData] = {}
        self._cores = {host.name: host.cores for host in platform.hosts}
        self._now = 0.0
        #: when the latency of a step is over [s]
        self._waits: dict[SharedStep, float] = {}
        #: share that is left of each that goes on
        self._left: dict[SharedStep, float] = {}
        self._rates: dict[SharedStep, float] | None = {}

    def __bool__(self) -> bool:
        return bool(self._left or self._waits)

    def begin(self, activity: Activity, now: float) -> None:
        """Let a step begin now [s], or data go."""
        self._now = now
        step = self._step_of(activity)
        if step.placed.latency_s:
            self._waits[step] = now + step.placed.latency_s
        else:
            self._left[step], self._rates = 1.0, None

    def _step_of(self, activity: Activity) -> SharedStep:
        """Return the step that an activity is."""
        if isinstance(activity, ParallelStep):
            return activity
        assert isinstance(activity, Transfer)
        if activity not in self._sent:
            names = self._names[activity.source], self._names[activity.target]
            step = Step(0.0, np.zeros(0), np.array([0]), np.array([1]), np.array([activity.size_bytes]))
            self._sent[activity] = SentData(activity, self._places.place(step, names), names)
        return self._sent[activity]

    def cancel(self, activity: Activity) -> None:
        """End a step wherever it is."""
        self._end(self._step_of(activity))

    def _end(self, step: SharedStep) -> Activity:
        """Keep a step no longer; return the activity that it is."""
        self._waits.pop(step, None)
        if self._left.pop(step, None) is not None:
            self._rates = None
        if isinstance(step, ParallelStep):
            return step
        del self._sent[step.transfer]
        return step.transfer

    def remaining(self, activity: Activity) -> float:
        """Return which share of a step is left as it was at the last look."""
        if isinstance(activity, Transfer) and activity not in self._sent:
            return 0.0
        step = self._step_of(activity)
        return self._left.get(step, 1.0 if step in self._waits else 0.0)

    @property
    def next_time(self) -> float:
        """When one ends, or its latency does, if none begins before [s]."""
        rates = self._present_rates()
        ends = [self._now + left / rates[each] for each, left in self._left.items()]
        return max(min([*self._waits.values(), *ends], default=inf), self._now)

    def _present_rates(self) -> dict[SharedStep, float]:
        """Return the rate of each that goes on [1/s]."""
        if self._rates is None:
            rates = rates_of(list(self._left), self._cores, self._routes.bandwidth, self._routes.unshared)
            self._rates = dict(zip(self._left, rates, strict=True))
        return self._rates

    def reach(self, time: float) -> list[Activity]:
        """Go on until a time [s], at most `next_time`; return what has ended then."""
        rates = self._present_rates()
        passed, self._now = time - self._now, time
        ended: list[SharedStep] = []
        for step in self._left:
            rate = rates[step]  # infinite: messages that cross no link
            left = self._left[step] = 0.0 if rate == inf else max(self._left[step] - rate * passed, 0.0)
            if left < _DONE or time + left / rate <= time:  # the clock cannot distinguish it
                ended.append(step)
            else:
                step.note(time, 1.0 - left)
        over = [self._end(step) for step in ended]
        for step in [each for each, until in self._waits.items() if until <= time]:
            del self._waits[step]
            self._left[step], self._rates = 1.0, None
        return over


def rates_of(
    steps: Sequence[SharedStep], cores: Mapping[str, int], bandwidth: Mapping[str, float], unshared: frozenset[str]
) -> list[float]:
    """Return the rate [1/s] at which each of several steps goes on.

    Parameters
    ----------
    steps : sequence of SharedStep
        Whose latency is over.
    cores : mapping of str to int
        Of each host by name.
    bandwidth : mapping of str to float
        Of each link [byte/s].
    unshared : frozenset of str
    """
    uses: list[dict[Hashable, float]] = []
    bounds = []
    capacity: dict[Hashable, float] = {}
    for step in steps:
        placed, use = step.placed, dict[Hashable, float]()
        bound = placed.bound
        for name, speed, flops in zip(step.names, step.speeds.tolist(), placed.step.flops.tolist(), strict=False):
            if flops > 0:
                use["host", name] = use.get(("host", name), 0.0) + flops
                capacity["host", name] = speed / step.part_cores * cores[name]
                bound = min(bound, speed / flops)
        for link, size in placed.takes.items():
            use["link", link] = size
            capacity["link", link] = bandwidth[link]
        uses.append(use)
        bounds.append(bound)
    return fair_rates(uses, bounds, capacity, frozenset(("link", link) for link in unshared))
