"""When executions by profiles end that share hosts and links: the reference driver's calendar of them.

Between two instants each goes on at its rate (`gridsched.drivers.fair_shares`); rates change when one begins or
ends a step, and when the latency of a step is over.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import inf

from gridsched.drivers.fair_shares import fair_rates
from gridsched.engine.execution import Command, Execution, Stop, Transfer
from gridsched.engine.profile_runs import PlacedSteps, ProfileRun, ProfileRuns
from gridsched.model.limits import time_tolerance
from gridsched.model.platform import Platform
from gridsched.model.routes import Routes

#: A step of which no larger share is left has ended (``precision/work-amount`` times ``precision/timing``).
_DONE = 1e-14


class FluidCalendar:
    """What runs by profiles, and how far it has come; in the place of `gridsched.drivers.reference.Calendar`.

    Parameters
    ----------
    runs : ProfileRuns
    platform : Platform
    routes : Routes
        Between all its hosts.
    """

    def __init__(self, runs: ProfileRuns, platform: Platform, routes: Routes) -> None:
        self._runs, self._routes, self._steps = runs, routes, PlacedSteps(routes, platform)
        self._speeds: list[list[float]] = platform.speed.tolist()
        self._hosts = [(host.name, host.cores) for host in platform.hosts]
        self._now = 0.0
        self._running: dict[Execution, ProfileRun] = {}
        #: when the delay or the latency of a step is over [s]
        self._waits: dict[Execution, float] = {}
        #: share of its step that is left of each that goes on
        self._left: dict[Execution, float] = {}
        self._rates: dict[Execution, float] | None = {}

    def take(self, command: Command) -> None:
        """Begin or stop an execution as a command specifies; others have no part in this."""
        if isinstance(command, Execution):
            run = self._runs.begin(command)
            self._running[command] = run
            self._now = command.start
            self._go_on(run)
        elif isinstance(command, Stop) and command.execution in self._running:
            self._end(self._running[command.execution])

    def _go_on(self, run: ProfileRun) -> None:
        """Begin the next step, if there is one."""
        placed = run.next_step(self._now, self._steps)
        if placed is None:
            return
        wait_s = placed.step.delay_s or placed.latency_s
        if wait_s:
            self._waits[run.execution] = self._now + wait_s
        else:
            self._left[run.execution], self._rates = 1.0, None

    def _end(self, run: ProfileRun) -> None:
        """End an execution wherever it is."""
        execution = run.execution
        run.end_step(self._now, 1.0 - self._left.get(execution, 1.0))
        self._waits.pop(execution, None)
        if self._left.pop(execution, None) is not None:
            self._rates = None
        self._runs.end(run)
        del self._running[execution]

    def next_instant(self, timer: float) -> tuple[float, list[Execution | Transfer]]:
        """Let all go on until something ends, or the timer is due [s].

        Returns
        -------
        time : float
            [s]; infinite where nothing is left.
        finished : list of Execution
        """
        while True:
            rates = self._present_rates()
            ends = (self._now + left / rates[each] for each, left in self._left.items())
            deadlines = (run.deadline for run in self._running.values())
            over = (self._now for run in self._running.values() if run.is_over)
            time = min([timer, *self._waits.values(), *ends, *deadlines, *over])
            if time == inf:
                return inf, []
            time = max(time, self._now)
            finished = self._reach(time, rates)
            if finished or timer <= time:
                limit = time + time_tolerance(time)
                return (timer if time < timer <= limit else time), finished

    def _present_rates(self) -> dict[Execution, float]:
        """Return the rate of each that goes on [1/s]."""
        if self._rates is None:
            going = [self._running[execution] for execution in self._left]
            speed_of: dict[Hashable, float] = {}
            for run in going:
                pstate = run.execution.pstate
                for h in run.execution.all_hosts:
                    name, cores = self._hosts[h]
                    speed_of[name] = self._speeds[h][pstate] * cores
            rates = rates_of(going, speed_of, self._routes.bandwidth, self._routes.unshared)
            self._rates = dict(zip(self._left, rates, strict=True))
        return self._rates

    def _reach(self, time: float, rates: dict[Execution, float]) -> list[Execution | Transfer]:
        """Go on until a time [s]; return what has ended then."""
        passed, self._now = time - self._now, time
        ended = []
        for execution in self._left:
            rate = rates[execution]  # infinite: messages that cross no link
            left = self._left[execution] = 0.0 if rate == inf else max(self._left[execution] - rate * passed, 0.0)
            if left < _DONE or time + left / rate <= time:  # the clock cannot distinguish it
                ended.append(execution)
            else:
                self._running[execution].note(time, 1.0 - left)
        for execution in ended:
            del self._left[execution]
            self._rates = None
            self._step_ends(self._running[execution])
        for execution in [each for each, until in self._waits.items() if until <= time]:
            del self._waits[execution]
            run = self._running[execution]
            if run.placed is not None and not run.placed.step.delay_s:
                self._left[execution], self._rates = 1.0, None
            else:
                self._step_ends(run)
        finished: list[Execution | Transfer] = []
        for run in [each for each in self._running.values() if each.is_over or each.deadline <= time]:
            run.execution.is_cut = not run.is_over
            run.execution.end = time
            self._end(run)
            finished.append(run.execution)
        return finished

    def _step_ends(self, run: ProfileRun) -> None:
        """Note that a step has ended, and go on to the next one."""
        run.end_step(self._now, 1.0)
        self._go_on(run)


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
