"""The pure state machine between events and the policy: no clock, no simulator, no I/O.

A driver tells it what happened (`Controller.step`) and carries out the commands it returns. In one
instant finishes, host changes, submissions and wakes are applied in this order, then by id; then
the policy is asked, its decisions are checked and applied, and free cores take the next tasks.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from gridsched.controller.apply import DecisionChecks
from gridsched.controller.calendar import instant_width
from gridsched.controller.execution import UNENDED, Command, Execution, Stop, Timer
from gridsched.controller.ledger import FINISHED, QUEUED, RUNNING, VIRTUAL, WAITING, Ledger
from gridsched.controller.staging import Staging
from gridsched.controller.state import State
from gridsched.errors import IncompleteRun, InputError
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.model.trace import ExecutionEnd, TaskState, Trace
from gridsched.schedulers.base import Scheduler

#: Mapping events in a row that may pass with nothing running or to come.
MAX_BARREN_EVENTS = 1000

_FINISHED = int(ExecutionEnd.FINISHED)
_CANCELLED = int(ExecutionEnd.CANCELLED)


class Controller(DecisionChecks):
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
        if scheduler.traits.parallel:
            raise InputError(f"{scheduler!r} takes node sets; this version runs serial tasks only.")
        self.system = system
        self.tasks = tasks
        self.scheduler = scheduler
        self.now = 0.0
        self.mapping_events = 0
        self.policy_time_s = 0.0
        self.ledger = Ledger(system, tasks, frozenset(hosts_off))
        self.staging = Staging(system.platform, tasks) if tasks.files is not None else None
        self.state = State(system, tasks, self.ledger, self.staging)
        self.commands: list[Command] = []
        self._stopwatch = stopwatch or (lambda: 0.0)
        self._run_time = system.estimates.run_time
        self._submit: list[float] = tasks.submit_time_s.tolist()
        self._submitted = 0
        self._runnable: list[bool] = system.estimates.runnable(
            np.arange(len(tasks)), np.arange(system.n_hosts)
        ).tolist()
        self._timers: list[tuple[float, Timer, int, tuple[int, Execution | None]]] = []
        self._timer_count = 0
        self._next_event = 0 if system.mapping_interval_s else None
        self._barren_events = 0
        self._freed: list[int] = []
        self._replicates = scheduler.traits.replicates
        self._asked = scheduler.traits.asked
        self._rng = rng
        self.delegated_to = ""
        self._prepare_checks()
        self._renew_next_timer()
        scheduler.prepare(system, rng)

    # ------------------------------------------------------------------ time

    @property
    def done(self) -> bool:
        """Whether every task has its final state."""
        return not self.ledger.open_tasks

    def _renew_next_timer(self) -> None:
        time = math.inf
        if self._submitted < len(self._submit):
            time = self._submit[self._submitted]
        if self._timers and self._timers[0][0] < time:
            time = self._timers[0][0]
        if self._next_event is not None:
            time = min(time, self._next_event * self.system.mapping_interval_s)
        self.next_timer = time

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
        if len(finished) > 1:
            finished = sorted(finished, key=lambda e: (e.task, e.host))
        self._finished_together = finished
        for execution in finished:
            self._finish(execution)
        if self._freed:
            self._start_on_freed()
        news = bool(finished)
        first_new = self._submitted
        if now >= self.next_timer:
            news |= self._take_timers()
        if self.ledger.open_tasks:
            self._serve(news, first_new)
        return self.commands

    def _serve(self, news: bool, first_new: int) -> None:
        """Ask the policy if this is the moment, then let free cores take planned tasks."""
        event_due = news
        if self._next_event is not None:
            event_due = self._event_is_due()
        if self.ledger.n_virtual:
            self._fill_pending_slots()
        asked = self.scheduler
        self._ask_if_due(event_due, first_new)
        if self.scheduler is not asked:  # it has delegated
            self._ask_if_due(event_due, first_new=0)
        if self.ledger.n_virtual:
            self._start_planned()
        if self.ledger.busy_cores:
            self._barren_events = 0
        elif self.ledger.open_tasks:
            self._check_progress(event_due)

    def _ask_if_due(self, event_due: bool, first_new: int) -> None:
        """Ask the policy if this is the moment; tasks from `first_new` on are newly submitted."""
        if self._asked == "arrival":
            for task in range(first_new, self._submitted):
                if self.ledger.state_of[task] == WAITING:
                    self._ask(only=task)
        elif self._asked == "start":
            if first_new == 0 and self._submitted:
                self._ask()
        elif event_due:
            self._ask()

    def _event_is_due(self) -> bool:
        interval = self.system.mapping_interval_s
        due = self._next_event * interval <= self.now + instant_width(self.now)
        if due:
            passed = math.floor(self.now / interval + 1e-9)
            self._next_event = max(passed, self._next_event) + 1
            self._renew_next_timer()
        return due

    def _check_progress(self, event_due: bool) -> None:
        """Raise if nothing runs and nothing will come: then nothing will ever happen again."""
        if self._submitted < len(self._submit) or self._timers:
            self._barren_events = 0
            return
        if self._next_event is not None:
            self._barren_events += event_due
            if self._barren_events < MAX_BARREN_EVENTS:
                return
        raise IncompleteRun(self.what_is_left())

    def what_is_left(self) -> str:
        """Return a sentence that names the tasks without a final state."""
        states = np.frombuffer(self.ledger.state_of, dtype=np.uint8)
        left = np.flatnonzero(states < FINISHED)
        names = ", ".join(str(label) for label in self.tasks.labels[left])
        return (
            f"{self.scheduler!r} left {len(left)} of {len(states)} tasks unfinished at "
            f"t = {self.now:g} s, with nothing running and nothing to come: tasks {names}."
        )

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
        ledger.core_freed(host)
        if ledger.fixed[host]:
            self._freed.append(host)

    def _start_on_freed(self) -> None:
        """Serve the queues of hosts with a core set free, after all that set one free."""
        freed, self._freed = sorted(set(self._freed)), []
        for host in freed:
            self._start_queued(host)

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
        self.ledger.core_freed(copy.host)
        if self.ledger.fixed[copy.host]:
            self._freed.append(copy.host)

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
        while self._submitted < len(self._submit) and self._submit[self._submitted] <= limit:
            task = self._submitted
            self._submitted += 1
            if self._runnable[task]:
                self.ledger.waiting_again(task)
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
        return True

    # ------------------------------------------------------------------ starting tasks

    def _start(self, task: int, host: int, pstate: int) -> None:
        """Give the task a core of the host, now or when its data is there."""
        ledger, start = self.ledger, self.now
        ledger.state_of[task] = RUNNING
        ledger.core_taken(host)
        if self.staging is not None:
            cluster = int(self.system.platform.cluster_of[host])
            start = self.staging.data_ready(task, cluster, start)
        end = start + self._run_time(task, host, pstate)
        execution = Execution(task, host, pstate, start, end)
        ledger.running[host].append(execution)
        if self._replicates:
            ledger.copies.setdefault(task, []).append(execution)
        if start > self.now:
            self._set_timer(start, Timer.DATA_READY, host, execution)
        else:
            self._begin(execution)

    def _begin(self, execution: Execution) -> None:
        ledger, host = self.ledger, execution.host
        execution.has_begun = True
        if ledger.pstate[host] != execution.pstate:
            ledger.pstate[host] = execution.pstate
            ledger.host_changed(execution.start, host)
        ledger.executions.append(execution)
        self.commands.append(execution)

    def _start_queued(self, host: int) -> None:
        """Let free cores of the host take the head of its fixed queue."""
        ledger = self.ledger
        queue = ledger.fixed[host]
        while queue and ledger.free[host] and ledger.boot_end[host] <= self.now:
            task, pstate = queue.popleft()
            self._start(task, host, pstate)

    def _start_planned(self) -> None:
        """Let idle hosts take the heads of their virtual queues, in order of host ids."""
        ledger = self.ledger
        for host in list(ledger.idle):
            queue = ledger.virtual[host]
            while queue and ledger.free[host] and not ledger.fixed[host]:
                task, pstate = queue.popleft()
                if ledger.state_of[task] == VIRTUAL:
                    ledger.n_virtual -= 1
                    self._start(task, host, pstate)
        if self.system.pending_slots:
            self._fill_pending_slots()

    def _fill_pending_slots(self) -> None:
        """Fix heads of virtual queues behind busy cores, up to `System.pending_slots`."""
        ledger, slots = self.ledger, self.system.pending_slots
        if not slots or not ledger.n_virtual:
            return
        for host, queue in enumerate(ledger.virtual):
            while queue and ledger.is_on[host] and len(ledger.fixed[host]) < slots:
                task, pstate = queue.popleft()
                if ledger.state_of[task] == VIRTUAL:
                    ledger.n_virtual -= 1
                    ledger.state_of[task] = QUEUED
                    ledger.append_fixed(host, task, pstate)
            self._start_queued(host)

    # ------------------------------------------------------------------ result

    def trace(self, horizon_s: float | None = None) -> Trace:
        """Return the records of the run up to `horizon_s` [s] (default: the last instant)."""
        return Trace(
            platform=self.system.platform,
            tasks=self.tasks,
            executions=self.ledger.execution_records(),
            host_changes=self.ledger.host_change_records(),
            final_state=np.frombuffer(bytes(self.ledger.state_of), dtype=np.uint8).astype(np.int64),
            horizon_s=self.now if horizon_s is None else horizon_s,
            mapping_events=self.mapping_events,
            timing={"policy_s": self.policy_time_s},
            delegated_to=self.delegated_to,
        )
