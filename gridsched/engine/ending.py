"""How a run goes on into the next period, and how it ends before all tasks are done."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gridsched.engine.execution import Timer
from gridsched.engine.ledger import FINISHED, RUNNING
from gridsched.errors import IncompleteRun
from gridsched.model.trace import ExecutionEnd, TaskState

if TYPE_CHECKING:
    from gridsched.engine.energy_account import EnergyAccount
    from gridsched.engine.ledger import Ledger
    from gridsched.model.system import System

#: Mapping events in a row that may pass with nothing running or to come.
MAX_BARREN_EVENTS = 1000
#: Budget periods in a row that may pass with nothing running or to come.
MAX_BARREN_PERIODS = 30

KILLED = int(TaskState.KILLED)
UNFINISHED = int(TaskState.UNFINISHED)


class RunEnd:
    """The part of the controller that knows of periods, the horizon and runs without progress."""

    ledger: Ledger
    account: EnergyAccount | None
    system: System
    now: float

    def _prepare_end(self) -> None:
        horizon = self.system.rules.horizon_s
        self._horizon = math.inf if horizon is None else horizon
        self._ended = False
        self._barren_events = 0
        self._barren_periods = 0
        self._postponed: list[int] = []
        self._returned: list[int] = []
        self._times_postponed = np.zeros(len(self.tasks), dtype=np.int64)

    def _check_progress(self, event_due: bool) -> None:
        """Raise if nothing runs and nothing will come: then nothing will ever happen again."""
        if self.ledger.submitted < len(self._submit) or self._timers:
            self._barren_events = self._barren_periods = 0
            return
        if self._horizon < math.inf:
            return
        if self.account is not None:
            if self._barren_periods < MAX_BARREN_PERIODS:
                return  # the next period may let tasks start
        elif self._next_event is not None:
            self._barren_events += event_due
            if self._barren_events < MAX_BARREN_EVENTS:
                return
        raise IncompleteRun(self.what_is_left())

    def what_is_left(self) -> str:
        """Return a sentence that names the tasks without a final state."""
        states = self.ledger.states
        left = np.flatnonzero(states < FINISHED)
        names = ", ".join(str(label) for label in self.tasks.labels[left])
        return (
            f"{self.scheduler!r} left {len(left)} of {len(states)} tasks unfinished at "
            f"t = {self.now:g} s, with nothing running and nothing to come: tasks {names}."
            f"{self._why_postponed()}"
        )

    def _why_postponed(self) -> str:
        budget = self.system.rules.budget
        if budget is None or not self._postponed:
            return ""
        return (
            f" Postponed among them: {len(self._postponed)}; no period's budget of "
            f"{budget.energy_j:g} J admits these."
        )

    def _return_postponed(self) -> None:
        """Let postponed tasks wait again: a new period has begun."""
        self._barren_periods += 1
        returned, self._postponed = sorted(self._postponed), []
        for task in returned:
            self.ledger.waiting_again(task)
        self._returned = returned

    def _end_run(self, state: int) -> None:
        """Give every task its final state; what computes goes on only up to a horizon's tasks."""
        ledger = self.ledger
        ledger.withdraw_plan()
        if state == KILLED:
            for execution in [e for running in ledger.running for e in running]:
                execution.stop(self.now, ExecutionEnd.KILLED)
            left = ledger.states < FINISHED
        else:
            left = (ledger.states < FINISHED) & (ledger.states != RUNNING)
        ledger.states[left] = state
        ledger.open_tasks -= int(np.count_nonzero(left))
        ledger.submitted = len(self._submit)
        for queue in ledger.fixed:
            queue.clear()
        ledger.queued_copies.clear()
        self._timers = [timer for timer in self._timers if timer[1] == Timer.DATA_READY]
        self._freed, self._postponed, self._next_event = [], [], None
        self._horizon = math.inf
        self._ended = True
        self._renew_next_timer()
