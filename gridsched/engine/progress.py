"""Whether a run gets on: it ends with an error where nothing will ever happen again."""

from __future__ import annotations

import math
from collections import Counter

from gridsched.engine.energy_account import EnergyAccount
from gridsched.engine.events import MOST_IDLE_WAKEUPS, MappingEvents, Timers
from gridsched.engine.execution import Timer
from gridsched.engine.host_switches import Outages
from gridsched.engine.outside import Outside
from gridsched.engine.run_state import RunState
from gridsched.engine.submissions import Submissions
from gridsched.model.limits import time_tolerance
from gridsched.model.rules import Rules

#: The words of `unfinished` if nothing has been awaited for too long.
NOTHING_TO_COME = "with nothing running and nothing to come"


class Progress:
    """Finds that nothing will ever happen again, or that a policy merely asks itself again and again.

    A run gets on where a task starts for the first time, or gets its final state. What its policy
    brings about by itself (wakes, hosts that it has switched, copies that it cancels and starts
    again) can go on for ever; after `Rules.max_idle_wakeups` of these asks in a row the run ends.
    They count while nothing else is to come. The end of what has run for longer is to come, too.

    Parameters
    ----------
    run : RunState
    timers : Timers
    submissions : Submissions
    events : MappingEvents
    outages : Outages
    account : EnergyAccount
    rules : Rules
    outside : Outside

    Attributes
    ----------
    idle_wakeups : Counter of str
        How often in a row what may let tasks start has not, with nothing running or to come.
    woken : bool
        Whether a wake, or a host that the policy has switched, asks for it.
    """

    def __init__(
        self,
        run: RunState,
        timers: Timers,
        submissions: Submissions,
        events: MappingEvents,
        outages: Outages,
        account: EnergyAccount,
        rules: Rules,
        outside: Outside,
    ) -> None:
        self.idle_wakeups: Counter[str] = Counter()
        self.woken = False
        self._run = run
        self._timers = timers
        self._submissions = submissions
        self._events = events
        self._outages = outages
        self._account = account
        self._outside = outside
        self._horizon = math.inf if rules.horizon_s is None else rules.horizon_s
        self._most = rules.max_idle_wakeups
        #: tasks that have started, how many of all executions are known, how many tasks were open
        self._started: set[int] = set()
        self._n_known = 0
        self._n_open = run.open_tasks
        #: how many asks in a row, since when [s], when there were too many of them [s]
        self._asks = 0
        self._since = self._full_at = 0.0
        #: how many of them in a row without a time between them that the clock resolves, when the last was [s]
        self._asks_now = 0
        self._now = -1.0
        #: what has come since the run last got on, of what comes for ever
        self._passed: Counter[str] = Counter()

    def passes(self, what: str) -> None:
        """Note that a period begins, or that a host goes down or comes up."""
        self._passed[what] += 1
        if what == "period":
            self.idle_wakeups[what] += 1

    def stall_reason(self, now: float, event_due: bool) -> str | None:
        """Say why a run with open tasks will never end, as it is after an instant; None if it may.

        Parameters
        ----------
        now : float
            The instant [s].
        event_due : bool
            Whether the policy was asked at an event.
        """
        if self.woken and event_due:
            self.woken = False
            if (why := self._count_ask(now)) is not None:
                return why
        if self._run.n_executing:
            self.idle_wakeups.clear()
            return None
        return NOTHING_TO_COME if self._is_over(event_due) else None

    def _is_over(self, event_due: bool) -> bool:
        """Whether nothing will come, where nothing runs, or has come too often for nothing."""
        to_come = min(self._submissions.next_time, self._run.next_start, self._horizon, self._from_outside())
        if self._timers or to_come < math.inf:
            self.idle_wakeups.clear()
            return False
        what = next((what for what in ("outage", "period") if self._comes(what)), "nothing")
        if what == "nothing" and self._events.exist:
            what = "event"
        if what == "nothing" and self._outside.is_open:
            return False
        if what == "outage" or (what == "event" and event_due):
            self.idle_wakeups[what] += 1
        return self.idle_wakeups[what] >= MOST_IDLE_WAKEUPS[what]

    def _from_outside(self) -> float:
        """When something is done, or may be done, from outside [s]."""
        return min(self._outside.next_time, self._outside.returns_at)

    def _comes(self, what: str) -> bool:
        """Whether an outage or a period is still to come."""
        if what == "outage":
            return self._outages.next_time < math.inf
        return self._account.period_end < math.inf

    # ------------------------------------------------------------------ a policy's own doing

    def _count_ask(self, now: float) -> str | None:
        """Count an ask that the policy has brought about; say why there are too many."""
        if self._has_got_on():
            self._asks = self._asks_now = 0
            self._passed.clear()
        if now > self._now + time_tolerance(now):
            self._asks_now = 0
        self._now = now
        if not self._asks:
            self._since = now
        self._asks += 1
        self._asks_now += 1
        if self._asks == self._most:
            self._full_at = now
        if self._asks_now < self._most:
            if self._asks < self._most:
                return None
            if self._is_to_come():
                self._asks = 0
                return None
            if any(each.start < self._full_at for each in self._run.executing()):
                return None
        return (
            f"asked {self._asks:,} times since t = {self._since:g} s by its own wakes and switches alone, and in all "
            "of them no task started that had not started before, and none ended (max_idle_wakeups)"
        )

    def _has_got_on(self) -> bool:
        """Whether a task has started for the first time, or has ended, since this was last asked."""
        run = self._run
        new = run.executions.tasks_from(self._n_known) - self._started
        got_on = bool(new) or run.open_tasks < self._n_open
        self._started |= new
        self._n_known, self._n_open = len(run.executions), run.open_tasks
        return got_on

    def _is_to_come(self) -> bool:
        """Whether anything but the policy's own doing will come, time going on."""
        to_come = min(
            self._submissions.next_time, self._run.reservations.next_start, self._horizon, self._from_outside()
        )
        if to_come < math.inf or self._timers.holds(Timer.RELEASE):
            return True
        return any(self._comes(what) and self._passed[what] < MOST_IDLE_WAKEUPS[what] for what in ("outage", "period"))
