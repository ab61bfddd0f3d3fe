"""What happens at which time: timers, mapping events, profiles of hosts; and messages about a run that stops early."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping
from heapq import merge

import numpy as np

from gridsched.engine.execution import Execution, Timer
from gridsched.engine.run_state import RunState
from gridsched.engine.task_states import FINISHED
from gridsched.errors import counted
from gridsched.model.host_profiles import StateProfile
from gridsched.model.limits import time_tolerance
from gridsched.model.platform import Platform
from gridsched.model.rules import Rules
from gridsched.model.tasks import Tasks


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
MOST_IDLE_WAKEUPS = {"event": 1000, "period": 30, "outage": 1000, "nothing": 0}
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
    """Return a sentence that names tasks without a final state, ten at most, and gives the reason `why_not`."""
    left = np.flatnonzero(run.states < FINISHED)
    names = ", ".join(str(label) for label in tasks.labels[left[:_MOST_NAMED]])
    if len(left) > _MOST_NAMED:
        names += f" and {len(left) - _MOST_NAMED} more"
    why = ""
    if rules.budget is not None and run.postponed:
        why = f" Postponed among them: {len(run.postponed)}; no period's budget of {rules.budget.words} admits these."
    if rules.power_cap_w is not None:
        why += f" The hosts may draw at most {rules.power_cap_w:g} W (power_cap_w)."
    if run.resources.drained:
        why += f" Drained: {counted(len(run.resources.drained), 'host')}."
    return (
        f"{policy} left {len(left)} of {counted(run.n_tasks, 'task')} unfinished at t = {now:g} s, "
        f"{why_not}: tasks {names}.{why}"
    )
