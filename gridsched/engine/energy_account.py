"""What a run has drawn and is bound to draw, by the model, period after period.

Everything comes from the power model and observed times, never from SimGrid's meter, so that both
drivers decide alike (paper 000, eq. 1; algorithms B5 and B7). A joule counts what
`EnergyBudget.weights` specifies for the time at which it is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gridsched.arrays import Floats
from gridsched.energy import grid_energy_between
from gridsched.engine.events import ProfileEvents
from gridsched.engine.execution import UNENDED, Execution
from gridsched.engine.host_powers import BoundedPowers, HostPowers
from gridsched.engine.ready_times import ReadyTimes
from gridsched.engine.run_state import RunState
from gridsched.model.limits import time_tolerance
from gridsched.model.platform import Platform
from gridsched.model.rules import EnergyBudget
from gridsched.model.signals import Signal
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.model.trace import HOST_CHANGE, PERIOD, Trace
from gridsched.policy.state import EnergyState

#: A budget may be exceeded by this share: sums of rounded numbers are compared.
TOLERANCE = 1e-9


class EnergyAccount:
    """Drawn energy and budget of one run.

    Parameters
    ----------
    system : System
    budget : EnergyBudget
    run : RunState
        What runs and is fixed where.
    ready_times : ReadyTimes
        What the fixed queues will draw.
    powers : HostPowers
        The power of the hosts; it is notified when their speeds change.

    Attributes
    ----------
    period_end : float
        When the present period ends [s]; before the first, when that starts.
    """

    def __init__(
        self, system: System, budget: EnergyBudget, run: RunState, ready_times: ReadyTimes, powers: HostPowers
    ) -> None:
        self._run = run
        self._budget = budget
        self._ready_times = ready_times
        self._estimates = system.estimates
        self._powers = powers
        #: where programs decide what hosts draw: their powers without that, and what they have drawn above so far [J]
        self._certain = powers.at_rest if isinstance(powers, BoundedPowers) else powers
        self.drawn_j: Callable[[float], Floats] | None = None
        self._drawn_before = np.zeros(len(system.platform))
        self._counted = ready_times.counted
        self._idle_w = system.platform.most_idle_w
        self._draws_idle = bool(self._idle_w.any())
        self._off_w = np.array([host.off_w for host in system.platform.hosts])
        self._speeds = ProfileEvents(system.platform, system.platform.profiles.speed_of)
        self._weights = budget.weights
        self._time = 0.0
        self._consumed_j = 0.0
        self.assigned_j = 0.0
        self._state: EnergyState | None = None
        self._closed: list[tuple[float, float, float, float, float]] = []
        self._limit_j = budget.limit_j
        self._left_j = self._limit_j * (budget.periods or 1)
        self._period = -1
        self._budget_j = math.inf
        self.period_start, self.period_end = 0.0, self._budget.first_period_start_s
        self._ready_times.begin_period(self.period_end)
        if self.period_end == 0.0:
            self._open_next()

    exists = True

    # ------------------------------------------------------------------ what is drawn

    def advance(self, now: float) -> bool:
        """Count what was drawn until `now` [s]; return whether a new period has begun."""
        new_period = False
        while self.period_end < math.inf and now >= (self.period_end - time_tolerance(self.period_end)):
            self._follow_until(self.period_end)
            self._close()
            self._open_next()
            new_period = True
        self._follow_until(now)
        return new_period

    def _follow_until(self, time: float) -> None:
        """Count what was drawn until `time` [s], by the speeds that hosts had."""
        while self._speeds.next_time <= time:
            self._draw_until(self._speeds.next_time)
            self._powers.set_speed(*self._speeds.take())
        self._draw_until(time)

    def _draw_until(self, time: float) -> None:
        if time > self._time:
            if self._weights.sites:
                self._consumed_j += self._counted_j(self._certain.watts, self._time, time)
            else:
                self._consumed_j += self._certain.total_w * _counted_s(self._weights, self._time, time)
            if self.drawn_j is not None:
                drawn = self.drawn_j(time).copy()
                mean_w = (drawn - self._drawn_before) / (time - self._time)
                self._consumed_j += self._counted_j(mean_w, self._time, time)
                self._drawn_before = drawn
            self._time = time

    def count_until(self, now: float) -> None:
        """Count what was drawn until now [s], in the present period, before anything ends."""
        self._follow_until(min(now, self.period_end))

    def _counted_j(self, watts: Floats, begin: float, end: float) -> float:
        """Return what the powers of all hosts [W] count between two times [J]."""
        sites = self._weights.by_site(np.arange(len(watts)))
        return sum(float(watts[rows].sum()) * _counted_s(weights, begin, end) for weights, rows in sites)

    def _row(self) -> tuple[float, float, float, float, float]:
        """The present period as a row of `PERIOD`; what was carried over is not known yet."""
        return self.period_start, self._time, self._budget_j, self._consumed_j, math.nan

    def _close(self) -> None:
        if self._period >= 0:  # nothing counts before the first period
            self._closed.append(self._row())
            self._left_j -= self._consumed_j

    def _open_next(self) -> None:
        budget = self._budget
        self._period += 1
        self.period_start = budget.start_of(self._period)
        self.period_end = budget.start_of(self._period + 1)
        self._ready_times.begin_period(self.period_end)
        self._budget_j = self._limit_j
        if budget.carry_over:
            to_share = max((budget.periods or 1) - self._period, 1)
            self._budget_j = max(self._left_j, 0.0) / to_share
        self._consumed_j = 0.0
        self._powers.sum_anew()

    # ------------------------------------------------------------------ what is bound to be drawn

    def mean_w(self, task: int, host: int, pstate: int) -> float:
        """Average power of a task above idle [W]: its estimated energy over its estimated time."""
        return self._counted.energy(task, host, pstate) / self._estimates.run_time(task, host, pstate)

    def assign(self, task: int, host: int, pstate: int) -> None:
        """Add a task that is started or fixed to what was ever assigned."""
        self.forget_state()
        self.assigned_j += self._estimates.energy(task, host, pstate)

    def unassign(self, task: int, host: int, pstate: int) -> None:
        """Take out a task that leaves the queue of a host."""
        self.assigned_j -= self._estimates.energy(task, host, pstate)

    def unassign_rest(self, execution: Execution, now: float) -> None:
        """Take out what a copy, or a reservation, will not draw that is withdrawn at `now` [s]."""
        task, host = execution.task, execution.host
        pstate = self._estimates.scheduler_pstate(task, execution.pstate)
        run_time = self._estimates.run_time(task, host, pstate)
        left = min(max(execution.estimated_end - now, 0.0), run_time) / run_time
        self.assigned_j -= left * self._estimates.energy(task, host, pstate)

    def commit(self, execution: Execution) -> None:
        """Note the average power of an execution that computes from now on, or from later on."""
        pstate = self._estimates.scheduler_pstate(execution.task, execution.pstate)
        execution.watts = self.mean_w(execution.task, execution.host, pstate)
        self._run.resources.set_watts(execution)

    def committed_j(self, now: float) -> float:
        """What is bound to be drawn from `now` to the period's end, above idle [J].

        By running tasks, reservations and fixed queues.
        """
        run, until, weights = self._run, self.period_end, self._weights
        total = run.resources.committed_j(now, until, weights) + run.reservations.committed_j(now, until, weights)
        return total + sum(self._ready_times.inside_j(host, now) for host in sorted(run.queued_hosts))

    def idle_j(self, now: float) -> float:
        """What all hosts would draw from `now` to the period's end if they were idle [J].

        Where the period never ends, until what is committed ends: when the run does is not known.
        """
        if not self._draws_idle:
            return 0.0
        run, until = self._run, self.period_end
        watts = np.where(run.switched_on, self._idle_w, self._off_w)
        if until == math.inf:
            until = self._last_end(now)
        if self._weights.sites:
            return self._counted_j(watts, now, until)
        return float(watts.sum()) * _counted_s(self._weights, now, until)

    def _last_end(self, now: float) -> float:
        """When the last of what runs, is fixed or reserved ends, as estimated [s]."""
        ready = self._ready_times.table(now)
        return max(float(ready.max(initial=now, where=np.isfinite(ready))), self._run.reservations.last_end)

    def forget_state(self) -> None:
        """A decision or time has changed what is committed."""
        self._state = None

    def state(self, now: float) -> EnergyState:
        """Return what a policy may know at `now` [s]."""
        if self._state is None:
            self._state = self._present_state(now)
        return self._state

    def _present_state(self, now: float) -> EnergyState:
        consumed = committed = idle = 0.0
        if self._period >= 0:  # before the first period nothing is counted
            consumed, committed, idle = self._consumed_j, self.committed_j(now), self.idle_j(now)
        return EnergyState(
            self._budget_j,
            consumed,
            committed,
            self._budget_j - consumed - committed - idle,
            self.assigned_j,
            self.period_start,
            self.period_end,
            self._weights,
            idle,
        )

    # ------------------------------------------------------------------ limits

    @property
    def stops(self) -> bool:
        """Whether the run ends when a budget is used up."""
        return self._budget.enforcement == "stop"

    @property
    def refuses(self) -> bool:
        """Whether decisions beyond the budget are invalid."""
        return self._budget.enforcement == "refuse" and self._budget_j < math.inf

    def allows(self, energy_j: float, remaining_j: float) -> bool:
        """Whether `energy_j` fits into `remaining_j`, up to rounding of the whole budget."""
        return energy_j <= remaining_j + TOLERANCE * self._budget_j

    @property
    def exhausted_at(self) -> float:
        """When the budget will be used up if nothing changes [s]; inf unless the run then stops.

        Where programs decide what hosts draw, no later than that: then it is looked at again.
        """
        if not self.stops or self._period < 0:
            return math.inf
        rest = self._budget_j - self._consumed_j
        if rest <= 1e-12 * self._budget_j:
            return self._time
        power_w = self._powers.total_w
        if power_w <= 0 or rest == math.inf:
            return math.inf
        weights = self._weights.of_power(self._powers.watts) if self._weights.sites else self._weights
        return weights.after(self._time, rest / power_w)

    @property
    def next_time(self) -> float:
        """When a period or the budget ends, as far as is known, or has to be looked at [s]."""
        time = min(self.period_end, self.exhausted_at)
        if self.stops:
            time = min(time, self._speeds.next_time)
        return time

    def records(self) -> NDArray[np.void]:
        """Return all periods so far, the present one included, as an array of `PERIOD`.

        `carried_over_energy` of the trace contains the amounts that were carried over.
        """
        rows = list(self._closed)
        if self._period >= 0 and self._time > self.period_start:
            rows.append(self._row())
        return np.array(rows, dtype=PERIOD)


class NoAccount(EnergyAccount):
    """A run without a budget: nothing is counted, and nothing ends."""

    exists = False
    stops = refuses = False
    next_time = exhausted_at = math.inf

    def __init__(self) -> None:
        self.period_end, self.drawn_j = math.inf, None

    def advance(self, now: float) -> bool:
        """Count nothing; no period ever begins."""
        return False

    def count_until(self, now: float) -> None:
        """Count nothing."""

    def assign(self, task: int, host: int, pstate: int) -> None:
        """Count nothing."""

    def unassign(self, task: int, host: int, pstate: int) -> None:
        """Count nothing."""

    def unassign_rest(self, execution: Execution, now: float) -> None:
        """Count nothing."""

    def commit(self, execution: Execution) -> None:
        """Count nothing."""

    def forget_state(self) -> None:
        """Know no state."""

    def records(self) -> NDArray[np.void]:
        """Return no periods."""
        return np.empty(0, dtype=PERIOD)


def _counted_s(weights: Signal, begin: float, end: float) -> float:
    """Return what 1 W counts between two times [J]; 0 if the second is not later."""
    length = max(0.0, end - begin)
    return length * float(weights.mean(begin, length))


class DrawnEnergy:
    """What all computing hosts have drawn since time 0, by the model: each call adds what came since the last.

    Parameters
    ----------
    platform : Platform
    tasks : Tasks
    run : RunState
    """

    def __init__(self, platform: Platform, tasks: Tasks, run: RunState) -> None:
        self._platform, self._tasks, self._run = platform, tasks, run
        self._until, self._joules = 0.0, 0.0
        #: numbers of executions that may not have ended by then, and how many others have been looked at
        self._going_on = np.zeros(0, dtype=np.int64)
        self._seen = 0
        #: where rows begin that had not been made by then
        self._rows_mark = 0
        #: changes of hosts that still count, and the mark up to which all have been looked at
        self._changes = np.zeros(0, dtype=HOST_CHANGE)
        self._mark = 0
        switches_s = [time_s for each in platform.hosts for time_s in (each.boot_time_s, each.shutdown_time_s)]
        self._longest_switch_s = max(switches_s, default=0.0)

    def consumed_j(self, now: float) -> float:
        """Return what has been drawn until `now` [J], no earlier than at the last call [s]."""
        run, until = self._run, self._until
        if now <= until:
            return self._joules
        numbers = np.concatenate([self._going_on, np.arange(self._seen, len(run.executions))])
        rows, self._rows_mark = run.executions.rows(numbers, self._rows_mark)
        self._seen = len(run.executions)
        goes_on = (rows.records["end"] > now) | (rows.records["outcome"] == UNENDED)
        self._going_on = rows.number[goes_on]
        new, self._mark = run.host_changes.since(self._mark)
        changes = np.concatenate([self._changes, new])
        fields = rows.fields()
        fields["executions"]["end"] = np.minimum(fields["executions"]["end"], now)
        trace = Trace(
            platform=self._platform,
            tasks=self._tasks,
            host_changes=changes,
            final_state=run.states.astype(np.int64),
            horizon_s=now,
            mapping_events=0,
            **fields,
        )
        self._joules += grid_energy_between(trace, np.array([until, now])).item()
        self._until = now
        self._changes = self._those_that_count(changes, now)
        return self._joules

    def _those_that_count(self, changes: NDArray[np.void], now: float) -> NDArray[np.void]:
        """Leave out what does not show any more; of each host the last old change counts from time 0 on.

        What is old is over: a host that was switched then has booted or shut down by `now` [s].
        """
        old = np.flatnonzero(changes["time"] < now - self._longest_switch_s)
        last = len(old) - 1 - np.unique(changes["host"][old][::-1], return_index=True)[1]
        before = changes[old[last]]
        before["time"] = 0.0
        return np.concatenate([before, np.delete(changes, old)])
