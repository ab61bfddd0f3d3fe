"""The pure state machine between events and the policy: no clock, no simulator, no I/O.

A driver tells it what happened (`Controller.step`) and carries out the commands it returns. In one
instant finishes, host changes, submissions and wakes are applied in this order, then by id; then
the policy is asked, its decisions are checked and applied, and free cores take the next tasks.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.admission import check_policy
from gridsched.engine.apply import DecisionChecks
from gridsched.engine.calendar import instant_width
from gridsched.engine.ending import KILLED, UNFINISHED, RunEnd
from gridsched.engine.energy_account import EnergyAccount
from gridsched.engine.execution import UNENDED, Command, Execution, Stop, Timer
from gridsched.engine.ledger import FINISHED, WAITING, Ledger
from gridsched.engine.live_state import LiveState
from gridsched.engine.ready_times import ReadyTimes
from gridsched.engine.staging import Staging
from gridsched.engine.starting import QueueService
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.model.trace import PERIOD, ExecutionEnd, TaskState, Trace
from gridsched.policy.base import Scheduler

_FINISHED = int(ExecutionEnd.FINISHED)
_CANCELLED = int(ExecutionEnd.CANCELLED)


class Controller(DecisionChecks, QueueService, RunEnd):
    """Queues and rules of one run.

    Parameters
    ----------
    system : System
    tasks : Tasks
    scheduler : Scheduler
        Prepared here with `rng`.
    rng : numpy.random.Generator
        The scheduler's own random stream.
    hosts_off : iterable of int
        Hosts that are switched off at the start.
    stopwatch : callable, optional
        Returns wall time [s]; where given, the policy's time is summed in `policy_time_s`.

    Attributes
    ----------
    done : bool
        Every task has its final state.
    next_timer : float
        When the controller wants to be called even if nothing finishes [s]; inf if never.
    """

    def __init__(
        self,
        system: System,
        tasks: Tasks,
        scheduler: Scheduler,
        *,
        rng: np.random.Generator,
        hosts_off: Iterable[int] = (),
        stopwatch: Callable[[], float] | None = None,
    ) -> None:
        system.platform.check_pstate(system.pstate)
        check_policy(scheduler, system, tasks)
        self.system = system
        self.tasks = tasks
        self.scheduler = scheduler
        self.now = 0.0
        self.mapping_events = 0
        self.policy_time_s = 0.0
        self.ledger = Ledger(system, tasks, frozenset(hosts_off))
        self.staging = Staging(system.platform, tasks) if tasks.files is not None else None
        self.account = (
            EnergyAccount(system, self.ledger) if system.rules.budget is not None else None
        )
        self.ready_times = ReadyTimes(self.ledger, system.estimates.run_time)
        #: the system as a policy sees it: nothing of it tells of tasks to come
        self._shown = replace(system, estimates=system.estimates.concealed())
        self.state = LiveState(
            self._shown, tasks, self.ledger, self.ready_times, self.staging, self.account
        )
        self.commands: list[Command] = []
        self._stopwatch = stopwatch or (lambda: 0.0)
        self._submit: list[float] = tasks.submit_time_s.tolist()
        self._runnable: list[bool] = system.estimates.runnable(
            np.arange(len(tasks)), np.arange(system.n_hosts)
        ).tolist()
        self._timers: list[tuple[float, Timer, int, tuple[int, Execution | None]]] = []
        self._timer_count = 0
        self._next_event = 0 if system.rules.mapping_interval_s else None
        self._next_event_time = 0.0
        self._charges_time = system.rules.charge_mapping_time
        self._freed: list[int] = []
        #: hosts that may have become able to take planned tasks in this instant
        self._vacant: list[int] = []
        self._asked = scheduler.traits.asked
        self._rng = rng
        self.delegated_to = ""
        self._prepare_end()
        self._prepare_queues()
        self._prepare_checks()
        self._renew_next_timer()
        scheduler.prepare(self._shown, rng)

    # ------------------------------------------------------------------ time

    @property
    def done(self) -> bool:
        """Whether every task has its final state."""
        return not self.ledger.open_tasks

    @property
    def open_tasks(self) -> int:
        """Number of tasks without a final state."""
        return self.ledger.open_tasks

    @property
    def pstates(self) -> list[int]:
        """P-state of each host."""
        return list(self.ledger.pstate)

    @property
    def is_on(self) -> list[bool]:
        """Whether each host is switched on."""
        return list(self.ledger.is_on)

    def _renew_next_timer(self) -> None:
        time = self._horizon
        submitted = self.ledger.submitted
        if submitted < len(self._submit) and not self._submissions_wait:
            time = min(time, self._submit[submitted])
        if self._timers and self._timers[0][0] < time:
            time = self._timers[0][0]
        if self._next_event is not None:
            time = min(time, self._next_event_time)
        if self.account is not None:
            time = min(time, self.account.period_end, self.account.exhausted_at)
        self.next_timer = time

    @property
    def _submissions_wait(self) -> bool:
        """Whether submissions are no instants: nobody looks before the next mapping event."""
        return self._next_event is not None and self._asked == "event"

    def _set_timer(
        self, time: float, kind: Timer, host: int = 0, execution: Execution | None = None
    ) -> None:
        heapq.heappush(self._timers, (time, kind, self._timer_count, (host, execution)))
        self._timer_count += 1
        self._renew_next_timer()

    # ------------------------------------------------------------------ one instant

    def step(self, now: float, finished: Sequence[Execution]) -> list[Command]:
        """Apply what happens at `now` [s], ask the policy, and return the commands.

        Parameters
        ----------
        now : float
            The instant [s], never earlier than the one before.
        finished : sequence of Execution
            Executions that ended in it, their `end` set.

        Returns
        -------
        list of Command
            To be carried out in this order, at `now`.

        Raises
        ------
        InvalidDecision
            If the policy asks for something the contract forbids.
        IncompleteRun
            If tasks are left that nothing will ever start.
        """
        self.now = now
        self.commands = []
        account = self.account
        new_period = account is not None and account.advance(now)
        if len(finished) > 1:
            finished = sorted(finished, key=lambda e: (e.task, e.host))
        self._finished_together = finished
        for execution in finished:
            self._finish(execution)
        if account is not None and account.exhausted_at <= now + instant_width(now):
            self._end_run(KILLED)
            return self.commands
        if now >= self._horizon and not self._ended:
            self._end_run(UNFINISHED)
        news = bool(finished)
        if new_period:
            news = True
            self._return_postponed()
        if self._freed:
            self._start_on_freed()
        first_new = self.ledger.submitted
        if now >= self.next_timer:
            news |= self._take_timers()
        if self.ledger.open_tasks and not self._ended:
            self._serve(news, first_new)
        if account is not None and (new_period or account.stops):
            self._renew_next_timer()
        return self.commands

    def _serve(self, news: bool, first_new: int) -> None:
        """Ask the policy if this is the moment, then let free cores take planned tasks."""
        event_due = news
        if self._next_event is not None:
            event_due = self._event_is_due()
        if self._vacant and self.system.rules.pending_slots:
            self._serve_plan(self._vacant)  # slots are filled before the policy is asked
        asked, before = self.scheduler, self.mapping_events
        self._ask_if_due(event_due, first_new)
        if self.scheduler is not asked:  # it has delegated
            self._ask_if_due(event_due, first_new=0)
        if self.ledger.n_virtual:
            asked_now = self.mapping_events > before
            self._serve_plan(self.ledger.virtual.hosts() if asked_now else self._vacant)
        if self._vacant:
            self._vacant = []
        if self.ledger.busy_cores:
            self._barren_events = self._barren_periods = 0
        elif self.ledger.open_tasks:
            self._check_progress(event_due)

    def _ask_if_due(self, event_due: bool, first_new: int) -> None:
        """Ask the policy if this is the moment; tasks from `first_new` on are newly submitted."""
        if self._asked == "arrival":
            new = range(first_new, self.ledger.submitted)
            returned, self._returned = self._returned, []
            for task in (*returned, *new) if returned else new:
                if self.ledger.state_of[task] == WAITING:
                    self._ask(only=task)
        elif self._asked == "start":
            if (first_new == 0 and self.ledger.submitted) or self._returned:
                self._returned = []
                self._ask()
        elif event_due:
            began = self.policy_time_s
            self._ask()
            if self._charges_time:
                mapping_done = self.now + self.policy_time_s - began
                self._next_event_time = max(self._next_event_time, mapping_done)
                self._renew_next_timer()

    def _event_is_due(self) -> bool:
        interval = self.system.rules.mapping_interval_s
        due = self._next_event_time <= self.now + instant_width(self.now)
        if due:
            passed = math.floor(self.now / interval + 1e-9)
            self._next_event = max(passed, self._next_event) + 1
            self._next_event_time = self._next_event * interval
            self._renew_next_timer()
        return due

    # ------------------------------------------------------------------ what happens

    def _finish(self, execution: Execution) -> None:
        """Apply the end of an execution: the task is done, its other copies are cancelled."""
        ledger, task, host = self.ledger, execution.task, execution.host
        ledger.running[host].remove(execution)
        if ledger.state_of[task] == FINISHED:  # a copy that ended with the winner
            execution.outcome = _CANCELLED
        else:
            execution.outcome = _FINISHED
            ledger.state_of[task] = FINISHED
            ledger.open_tasks -= 1
            if self._replicates:
                self._cancel_copies(task)
        self._free_core(execution)

    def _free_core(self, execution: Execution) -> None:
        """Give back the core of an execution; the host's queues are served later."""
        ledger, host = self.ledger, execution.host
        ledger.core_freed(host)
        if self.account is not None:
            self.account.execution_ended(execution)
        if ledger.fixed[host] or ledger.n_virtual:
            self._freed.append(host)

    def _start_on_freed(self) -> None:
        """Serve the fixed queues of hosts with a core set free, after all that set one free."""
        freed, self._freed = sorted(set(self._freed)), []
        for host in freed:
            self._start_queued(host)
        self._vacant += freed

    def _final(self, task: int, state: TaskState) -> None:
        self.ledger.state_of[task] = state
        self.ledger.open_tasks -= 1

    def _cancel_copies(self, task: int) -> None:
        for copy in self.ledger.copies.pop(task, ()):
            if copy.outcome == UNENDED and copy not in self._finished_together:
                self._stop(copy)
        if task in self.ledger.queued_copies:
            self.ledger.queued_copies.remove(task)
            for host, queue in enumerate(self.ledger.fixed):
                for entry in [entry for entry in queue if entry[0] == task]:
                    self.ledger.remove_fixed(host, entry)

    def _stop(self, copy: Execution) -> None:
        """End a running copy as cancelled; its core is free at once."""
        copy.stop(self.now, ExecutionEnd.CANCELLED)
        if copy.has_begun:
            self.commands.append(Stop(copy))
        self.ledger.running[copy.host].remove(copy)
        self._free_core(copy)

    def _take_timers(self) -> bool:
        """Apply all host changes, submissions and wakes that are due; return if any asks."""
        news = False
        limit = self.now
        while self._timers and self._timers[0][0] <= limit:
            _, kind, _, (host, execution) = heapq.heappop(self._timers)
            if kind == Timer.BOOTED:
                news |= self._booted(host)
            elif kind == Timer.DATA_READY:
                if execution.outcome == UNENDED:
                    self._begin(execution)
            else:
                news = True
        ledger, n_tasks = self.ledger, len(self._submit)
        while ledger.submitted < n_tasks and self._submit[ledger.submitted] <= limit:
            task = ledger.submitted
            ledger.submitted += 1
            if self._runnable[task]:
                ledger.waiting_again(task)
                news = True
            else:
                self._final(task, TaskState.REJECTED)
        self._renew_next_timer()
        return news

    def _booted(self, host: int) -> bool:
        """Let the host take tasks, unless it was switched off, or off and on, since then."""
        ledger = self.ledger
        if not ledger.is_on[host] or ledger.boot_end[host] > self.now:
            return False
        ledger.set_idle(host, idle=True)
        self._start_queued(host)
        self._vacant.append(host)
        return True

    # ------------------------------------------------------------------ result

    def trace(self, horizon_s: float | None = None, *, as_estimated: bool = True) -> Trace:
        """Return the records of the run up to `horizon_s` [s] (default: the last instant).

        A driver that had true run times other than the estimates says so.
        """
        return Trace(
            platform=self.system.platform,
            tasks=self.tasks,
            executions=self.ledger.execution_records(),
            host_changes=self.ledger.host_change_records(),
            final_state=self.ledger.states.astype(np.int64),
            horizon_s=self.now if horizon_s is None else horizon_s,
            mapping_events=self.mapping_events,
            timing={"policy_s": self.policy_time_s},
            delegated_to=self.delegated_to,
            periods=self._period_records(),
            times_postponed=self._times_postponed,
            as_estimated=as_estimated,
        )

    def _period_records(self) -> NDArray[np.void]:
        return np.empty(0, dtype=PERIOD) if self.account is None else self.account.records()
