"""What happens at which time: timers, mapping events, submissions; and whether anything will."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.engine.execution import FINISHED, RUNNING, WAITING, Execution, Timer
from gridsched.engine.run_state import RunState
from gridsched.model.host_profiles import StateProfile
from gridsched.model.jobs import Dependencies
from gridsched.model.platform import Platform
from gridsched.model.records import time_tolerance
from gridsched.model.rules import Rules
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.model.trace import TaskState


class Timers:
    """A heap of timers; those of one time are in the order of `Timer`, then of being set."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, Timer, int, int, Execution | None]] = []
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    @property
    def first(self) -> float:
        """When the next one is due [s]; infinite where none is set."""
        return self._heap[0][0] if self._heap else math.inf

    def set(self, time: float, kind: Timer, host: int = 0, execution: Execution | None = None) -> None:
        """Set a timer for `time` [s]."""
        heapq.heappush(self._heap, (time, kind, self._count, host, execution))
        self._count += 1

    def take(self) -> tuple[Timer, int, Execution | None]:
        """Take the first one: its kind, host and execution."""
        _, kind, _, host, execution = heapq.heappop(self._heap)
        return kind, host, execution

    def holds(self, kind: Timer) -> bool:
        """Whether any timer of a kind is set."""
        return any(timer[1] == kind for timer in self._heap)

    def forget(self, *kinds: Timer) -> None:
        """Forget all timers of some kinds."""
        self._heap = [timer for timer in self._heap if timer[1] not in kinds]
        heapq.heapify(self._heap)


class MappingEvents:
    """When the next mapping event is.

    Parameters
    ----------
    interval_s : float or None
        Between two of them [s]; None or 0 where there are none.

    Attributes
    ----------
    exist : bool
        Whether there are, or are still to come.
    next_time : float
        When the next one is [s]; infinite where there are none.
    """

    def __init__(self, interval_s: float | None) -> None:
        self.exist = bool(interval_s)
        self.next_time = 0.0 if interval_s else math.inf
        self._interval_s = interval_s or math.inf
        self._next_number = 0

    def is_due(self, now: float) -> bool:
        """Whether one is due at `now` [s]; the next one is then an interval later."""
        due = self.next_time <= now + time_tolerance(now)
        if due:
            passed = math.floor(now / self._interval_s + 1e-9)
            self._next_number = max(passed, self._next_number) + 1
            self.next_time = self._next_number * self._interval_s
        return due

    def put_off_until(self, time: float) -> None:
        """Have the next one at `time` [s] where it would be earlier."""
        self.next_time = max(self.next_time, time)

    def end(self) -> None:
        """Have no more of them."""
        self.exist, self.next_time = False, math.inf


#: How often in a row each may happen with nothing running or to come.
MOST_BARREN = {"event": 1000, "period": 30, "outage": 1000, "nothing": 0}
#: Tasks that a message names.
_MOST_NAMED = 10


class ProfileEvents:
    """What happens to hosts by their profiles, in order of time, then of the hosts.

    Parameters
    ----------
    platform : Platform
    profiles : mapping of str to StateProfile
        By name of the host.

    Attributes
    ----------
    next_time : float
        When it happens next [s]; infinite where it never does.
    """

    def __init__(self, platform: Platform, profiles: Mapping[str, StateProfile]) -> None:
        hosts = enumerate(platform.hosts)
        self._events = merge(*(_events_of(h, profiles[host.name]) for h, host in hosts if host.name in profiles))
        self._look_ahead()

    def _look_ahead(self) -> None:
        self._next = next(self._events, (math.inf, -1, math.nan))
        self.next_time = self._next[0]

    def take(self) -> tuple[int, float]:
        """Take what is next: the host, and the profile's value from then on."""
        _, host, value = self._next
        self._look_ahead()
        return host, value


def _events_of(host: int, profile: StateProfile) -> Iterator[tuple[float, int, float]]:
    return ((date, host, value) for date, value in profile.events())


def unfinished(run: RunState, tasks: Tasks, policy: str, now: float, rules: Rules, why_not: str) -> str:
    """Return a sentence that names tasks without a final state, ten at most, and says `why_not`."""
    left = np.flatnonzero(run.states < FINISHED)
    names = ", ".join(str(label) for label in tasks.labels[left[:_MOST_NAMED]])
    if len(left) > _MOST_NAMED:
        names += f" and {len(left) - _MOST_NAMED} more"
    why = ""
    if rules.budget is not None and run.postponed:
        why = f" Postponed among them: {len(run.postponed)}; no period's budget of {rules.budget.words} admits these."
    if rules.power_cap_w is not None:
        why += f" The hosts may draw at most {rules.power_cap_w:g} W (power_cap_w)."
    return (
        f"{policy} left {len(left)} of {len(tasks)} tasks unfinished at t = {now:g} s, {why_not}: tasks {names}.{why}"
    )


# ----------------------------------------------------------------------
# Which tasks are submitted when, and which of them wait for others before anybody may start them


_NOT_SUBMITTED = int(TaskState.NOT_SUBMITTED)


class Submissions:
    """Lets tasks wait from their submission on.

    Parameters
    ----------
    system : System
    tasks : Tasks
    run : RunState
    timers : Timers

    Attributes
    ----------
    returned : list of int
        Tasks submitted before that are new to the policy again, which is asked for each arrival.
    """

    def __init__(self, system: System, tasks: Tasks, run: RunState, timers: Timers) -> None:
        self.returned: Sequence[int] = ()
        self._times: list[float] = tasks.submit_time_s.tolist()
        self._runnable = system.estimates.runnable(np.arange(len(tasks)), np.arange(system.n_hosts))
        self._run = run
        self._holds = None if tasks.dependencies is None else Holds(tasks.dependencies, run, timers)

    @property
    def next_time(self) -> float:
        """When the next task is submitted [s]; infinite where none is left."""
        submitted = self._run.submitted
        return self._times[submitted] if submitted < len(self._times) else math.inf

    def take(self, now: float) -> bool:
        """Let the tasks that are due wait, but for those that run nowhere; whether any waits."""
        first = self._run.submitted
        end = bisect_right(self._times, now, lo=first)
        waits = end > first and self._run.submit(end, self._runnable)
        if self._holds is not None:
            self._holds.hold(first, end, now)
        return waits

    def release(self, now: float) -> bool:
        """Let tasks wait that others have kept back; whether any does."""
        return self._holds is not None and self._holds.release(now)

    def note_starts(self, now: float) -> None:
        """Have the instant come again if a task has started for which others wait."""
        if self._holds is not None:
            self._holds.note_starts(now)

    def return_waiting(self) -> None:
        """Make all tasks that wait new to the policy again."""
        waiting = self._run.states[: self._run.submitted] == WAITING
        self.returned = np.flatnonzero(waiting).tolist()

    def new_since(self, first: int) -> list[int]:
        """Take the tasks that wait and are new again, then those submitted from `first` on."""
        new = range(first, self._run.submitted)
        returned, self.returned = self.returned, ()
        return [*returned, *new] if returned else list(new)


class Holds:
    """Keeps jobs back until what they wait for has happened; until then they count as not submitted.

    Parameters
    ----------
    dependencies : Dependencies
    run : RunState
    timers : Timers
    """

    def __init__(self, dependencies: Dependencies, run: RunState, timers: Timers) -> None:
        self._all = dependencies.by_task()
        self._run = run
        self._timers = timers
        #: when each pair is over [s]: nan until that is known, infinite if it never will be
        self._over: Floats = np.full(len(self._all), np.nan)
        #: pairs of which the other job has come, and is not so far
        self._open: Integers = np.zeros(0, dtype=np.int64)
        #: pairs of jobs that are kept back
        self._pairs: Integers = np.zeros(0, dtype=np.int64)
        self._by_other = np.argsort(self._all.on, kind="stable")

    def hold(self, first: int, end: int, now: float) -> None:
        """Keep back those of newly submitted jobs that wait for others."""
        low, high = np.searchsorted(self._all.on, [first, end], sorter=self._by_other)
        self._open = np.concatenate([self._open, self._by_other[low:high]])
        low, high = np.searchsorted(self._all.task, [first, end])
        pairs = np.arange(low, high)
        pairs = pairs[self._run.states[self._all.task[pairs]] == WAITING]
        held = np.unique(self._all.task[pairs])
        self._run.states[held] = _NOT_SUBMITTED
        self._run.held.update(held.tolist())
        self._pairs = np.concatenate([self._pairs, pairs])
        self._wake_at(self._over[pairs], now)

    def release(self, now: float) -> bool:
        """Let jobs wait in the queue for which all is over, at `now` [s]; whether any does.

        A job that waits for what can never happen is rejected, and so is who waits for its success.
        """
        released, again = False, True
        while again:
            self._find_over(now)
            task, over = self._all.task[self._pairs], self._over[self._pairs]
            never = np.unique(task[np.isinf(over)]).tolist()
            for each in never:
                self._run.end_task(each, TaskState.REJECTED)
            ready = np.setdiff1d(task, task[~(over <= now)]).tolist()
            for each in ready:
                self._run.waiting_again(each)
            self._run.held.difference_update(never, ready)
            self._pairs = self._pairs[self._run.states[task] == _NOT_SUBMITTED]
            released, again = released or bool(ready), bool(never)
        return released

    def note_starts(self, now: float) -> None:
        """Have the instant come again if what was decided lets go of jobs that are kept back."""
        if len(self._open) and self._find_over(now):
            over = self._over[self._pairs]
            if ((over <= now) | np.isinf(over)).any():
                self._timers.set(now, Timer.RELEASE)

    def _find_over(self, now: float) -> bool:
        """Find when pairs are over whose other job has come so far; whether any is new."""
        state, kind = self._run.states[self._all.on[self._open]], self._all.kind[self._open]
        is_final, is_success = state >= FINISHED, state == FINISHED
        met = np.choose(kind, [is_final | (state == RUNNING), is_final, is_success, is_final & ~is_success])
        is_settled = met | is_final
        if not is_settled.any():
            return False
        pairs = self._open[is_settled]
        self._over[pairs] = np.where(met[is_settled], now + self._all.delay_s[pairs], np.inf)
        self._open = self._open[~is_settled]
        held = self._run.states[self._all.task[pairs]] == _NOT_SUBMITTED
        self._wake_at(self._over[pairs[held]], now)
        return True

    def _wake_at(self, times: Floats, now: float) -> None:
        """Have instants at times to come [s]."""
        for time in np.unique(times[np.isfinite(times) & (times > now)]).tolist():
            self._timers.set(time, Timer.RELEASE)
