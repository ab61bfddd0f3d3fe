"""The pure state machine between events and the policy: no clock, no simulator, no I/O.

A driver tells it what happened (`Controller.step`) and carries out the commands it returns. In one
instant finishes, host changes, submissions and wakes are applied in this order, then by id; then
the policy is asked, its decisions are checked and applied, and free cores take the next tasks.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.admission import check_policy
from gridsched.engine.budget_guard import BudgetGuard
from gridsched.engine.commitments import Commitments
from gridsched.engine.dispatch import Dispatch
from gridsched.engine.energy_account import EnergyAccount
from gridsched.engine.execution import UNENDED, Command, Execution, Timer
from gridsched.engine.host_powers import host_powers
from gridsched.engine.host_switches import HostSwitches
from gridsched.engine.ledger import FINISHED, RUNNING, VIRTUAL, WAITING, Ledger
from gridsched.engine.legality import Legality, Refusal
from gridsched.engine.live_state import LiveState
from gridsched.engine.outages import Outages
from gridsched.engine.power_cap import PowerCap
from gridsched.engine.progress import Progress, unfinished
from gridsched.engine.requests import Requests
from gridsched.engine.staging import Staging
from gridsched.engine.timers import Timers
from gridsched.errors import IncompleteRun, InvalidDecision
from gridsched.model.instants import instant_width
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.model.trace import PERIOD, ExecutionEnd, TaskState, Trace
from gridsched.policy.base import Scheduler
from gridsched.policy.decisions import Decision
from gridsched.policy.delegate import Delegate
from gridsched.policy.state import State

_DONE = int(ExecutionEnd.FINISHED)
_KILLED = int(TaskState.KILLED)
_UNFINISHED = int(TaskState.UNFINISHED)


class Controller:
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
        system.check_pstates()
        check_policy(scheduler, system, tasks)
        self.system = system
        self.tasks = tasks
        self.scheduler = scheduler
        self.now = 0.0
        self.mapping_events = 0
        self.policy_time_s = 0.0
        self.delegated_to = ""
        self._rng = rng
        self._stopwatch = stopwatch
        self._submit: list[float] = tasks.submit_time_s.tolist()
        self._runnable = system.estimates.runnable(
            np.arange(len(tasks)), np.arange(system.n_hosts)
        )  # fmt: skip
        self._asked, self._attends = scheduler.traits.asked, scheduler.traits.attends
        rules = system.rules
        self._interval_s = rules.mapping_interval_s or math.inf
        self._has_events = bool(rules.mapping_interval_s)
        self._next_event = 0
        self._next_event_time = 0.0
        self._parks = rules.parked_pstate is not None
        self._horizon = math.inf if rules.horizon_s is None else rules.horizon_s
        self._pstate_of: list[int] = system.pstates.tolist()
        self._ended = False
        self._returned: list[int] = []
        self._make_parts(frozenset(hosts_off))
        if self._attends:
            self._timers.set(0.0, Timer.WAKE)
        self._renew_next_timer()
        scheduler.prepare(self._shown, rng)

    def _make_parts(self, hosts_off: frozenset[int]) -> None:
        """Make the parts of the engine; none of them knows the controller."""
        system, tasks, traits = self.system, self.tasks, self.scheduler.traits
        budget = system.rules.budget
        self._timers = Timers()
        self._progress = Progress()
        self._ledger = ledger = Ledger(system, tasks, hosts_off, traits)
        commitments = Commitments(ledger, system.estimates, with_energy=budget is not None)
        files = tasks.files
        staging = None if files is None else Staging(system.platform, tasks, files)
        cap_w, powers, account, self._cap = system.rules.power_cap_w, None, None, None
        if budget is not None or cap_w is not None:
            powers = host_powers(system.platform, ledger)
            if cap_w is not None:
                self._cap = PowerCap(cap_w, powers, system.platform)
        if budget is not None and powers is not None:
            account = EnergyAccount(system, budget, ledger, commitments, powers)
        self._account = account
        guard = None
        if budget is not None and account is not None:
            guard = BudgetGuard(system, budget, ledger, account, commitments)
        self._dispatch = Dispatch(system, ledger, self._timers, staging, account, powers)
        self._legality = Legality(system, ledger)
        switches = HostSwitches(system.platform, ledger, self._dispatch, self._timers)
        self._requests = Requests(
            system, ledger, self._legality, self._dispatch, switches, self._timers, staging,
            account, guard,
        )  # fmt: skip
        self._requests.heed(traits)
        self._outages: Outages | None = None
        if system.platform.profiles.states:
            self._outages = Outages(system, tasks, ledger, self._dispatch, switches)
        #: the system as a policy sees it: nothing of it tells of what is to come
        self._shown = replace(
            system, estimates=system.estimates.concealed(), platform=system.platform.concealed()
        )  # fmt: skip
        self._state = LiveState(
            self._shown, tasks, ledger, commitments, staging, account, powers
        )  # fmt: skip
        self._passes_on = (
            powers is None and staging is None and self._dispatch.host_pstate is None
            and not self._has_events and ledger.one_core
        )  # fmt: skip

    # ------------------------------------------------------------------ what drivers read

    @property
    def done(self) -> bool:
        """Whether every task has its final state."""
        return not self._ledger.open_tasks

    @property
    def open_tasks(self) -> int:
        """Number of tasks without a final state."""
        return self._ledger.open_tasks

    @property
    def busy_cores(self) -> int:
        """Cores that execute, or wait for the input files of what they will execute."""
        return self._ledger.busy_cores

    @property
    def pstates(self) -> list[int]:
        """P-state of each host."""
        return list(self._ledger.pstate)

    @property
    def is_on(self) -> list[bool]:
        """Whether each host is switched on."""
        return list(self._ledger.is_on)

    def what_is_left(self) -> str:
        """Return a sentence that names the tasks without a final state."""
        return unfinished(
            self._ledger, self.tasks, repr(self.scheduler), self.now,
            postponed=len(self._requests.postponed), rules=self.system.rules,
        )  # fmt: skip

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
        if (
            self._passes_on and len(finished) == 1 and now < self.next_timer
            and self._ledger.common and self._ledger.n_virtual > 1
        ):  # fmt: skip
            command = self._pass_on(finished[0], now)
            if command is not None:
                return [command]
        self._dispatch.commands = []
        self._apply_instant(now, finished)
        if self._parks:
            self._dispatch.park_idle_hosts(now)
        if self._cap is not None:
            self._check(self._cap.refusal(self._dispatch.commands, self.scheduler))
        self._renew_next_timer()
        return self._dispatch.commands

    def _pass_on(self, execution: Execution, now: float) -> Execution | None:
        """Give the core of an execution that ended to the next task of the common queue.

        The hot path in place: what `_apply_instant` would do, where one execution ended and
        nothing else happens, without a look at what cannot have changed. Most of a work queue's
        instants are such; each call that is saved here is a tenth of what a task costs. None,
        and nothing changed, where it is not as simple.
        """
        ledger, host = self._ledger, execution.host
        pstate = self._pstate_of[host]
        if ledger.fixed[host] or ledger.pstate[host] != pstate:
            return None
        if ledger.replicates:
            if len(ledger.copies[execution.task]) > 1 or execution.task in ledger.places:
                return None
            del ledger.copies[execution.task]
        state_of = ledger.state_of
        execution.outcome = _DONE
        state_of[execution.task] = FINISHED
        ledger.open_tasks -= 1
        task = ledger.common.popleft()
        while state_of[task] != VIRTUAL:  # it has gone another way
            task = ledger.common.popleft()
        ledger.n_virtual -= 1
        state_of[task] = RUNNING
        follower = Execution(
            task, host, pstate, now, now + self._dispatch.run_time(task, host, pstate)
        )
        follower.has_begun = True
        ledger.running[host] = [follower]
        if ledger.replicates:
            ledger.copies[task] = [follower]
        ledger.version[host] += 1
        ledger.journal.append(host)
        ledger.executions.append(follower)
        return follower

    def _apply_instant(self, now: float, finished: Sequence[Execution]) -> None:
        account, ledger, dispatch = self._account, self._ledger, self._dispatch
        new_period = account is not None and account.advance(now)
        if len(finished) > 1:
            finished = sorted(finished, key=lambda e: (e.task, e.host))
        for execution in finished:
            dispatch.finish(execution, finished, now)
        if account is not None and account.exhausted_at <= now + instant_width(now):
            self._end_run(_KILLED)
            return
        if now >= self._horizon and not self._ended:
            self._end_run(_UNFINISHED)
        if new_period:
            if self._ledger.nodes is not None and self._requests.refuses:
                self._ledger.withdraw_plan()  # the last period's budget admitted these
            self._return_postponed()
        news = new_period
        if self._outages is not None and self._outages.apply(now):
            self._ask_again()
            news = True
        if dispatch.freed:
            dispatch.serve_freed(now)
        first_new = ledger.submitted
        if now >= self.next_timer:
            news |= self._take_timers()
        if ledger.open_tasks and not self._ended:
            self._serve(first_new, news, bool(finished))

    def _serve(self, first_new: int, news: bool, finished: bool) -> None:
        """Ask the policy if this is the moment, then let free cores take planned tasks."""
        ledger, dispatch, now = self._ledger, self._dispatch, self.now
        if ledger.common or (dispatch.vacant and self.system.rules.pending_slots):
            dispatch.serve_plan(dispatch.vacant, now)  # before the policy is asked
        # while a common queue lasts, cores that are free have taken from it: nothing to decide
        news = news or (finished and not (ledger.common and ledger.n_virtual))
        event_due = self._interval_ended() if self._has_events else news
        if self._attends and (event_due or ledger.submitted > first_new or self._returned):
            self._decide(self.scheduler.attend)
        asked, before = self.scheduler, self.mapping_events
        self._ask_if_due(event_due, first_new)
        if self.scheduler is not asked:  # it has delegated
            self._ask_if_due(event_due, first_new=0)
        if ledger.nodes is not None:
            if ledger.place_holders.next_start <= now:
                assert self._requests.on_nodes is not None
                self._check(self._requests.on_nodes.start_planned(now))
        elif ledger.n_virtual:
            asked_now = self.mapping_events > before
            hosts = ledger.virtual.hosts() if asked_now else dispatch.vacant
            dispatch.serve_plan(hosts, now)
        if dispatch.vacant:
            dispatch.vacant = []
        if ledger.busy_cores:
            if self._progress.counts:
                self._progress.made()
        elif ledger.open_tasks:
            self._check_progress(event_due)

    def _interval_ended(self) -> bool:
        """Whether a mapping event is due; the next one is an interval later."""
        interval = self._interval_s
        due = self._next_event_time <= self.now + instant_width(self.now)
        if due:
            passed = math.floor(self.now / interval + 1e-9)
            self._next_event = max(passed, self._next_event) + 1
            self._next_event_time = self._next_event * interval
        return due

    def _check_progress(self, event_due: bool) -> None:
        """Raise if nothing runs and nothing will come: then nothing will ever happen again."""
        to_come = self._timers or self._ledger.next_start < math.inf
        if self._ledger.submitted < len(self._submit) or to_come:
            self._progress.made()
        elif self._outages is not None and self._outages.next_time < math.inf:
            if self._horizon == math.inf and self._progress.none_by_outages():
                raise IncompleteRun(self.what_is_left())
        elif self._horizon == math.inf and self._progress.is_none(
            event_due=event_due,
            has_periods=self._account is not None and self._account.period_end < math.inf,
            has_events=self._has_events,
        ):
            raise IncompleteRun(self.what_is_left())

    # ------------------------------------------------------------------ asking

    def _ask_if_due(self, event_due: bool, first_new: int) -> None:
        """Ask the policy if this is the moment; tasks from `first_new` on are newly submitted."""
        ledger = self._ledger
        if self._asked == "arrival":
            new = range(first_new, ledger.submitted)
            returned, self._returned = self._returned, []
            for task in (*returned, *new) if returned else new:
                if ledger.state_of[task] == WAITING:
                    self._ask(only=task)
        elif self._asked == "start":
            if (first_new == 0 and ledger.submitted) or self._returned:
                self._returned = []
                self._ask()
        elif event_due:
            began = self.policy_time_s
            self._ask()
            if self.system.rules.charge_mapping_time:
                mapping_done = self.now + self.policy_time_s - began
                self._next_event_time = max(self._next_event_time, mapping_done)

    def _ask(self, only: int | None = None) -> None:
        """Ask the policy once and apply what it answers."""
        if self._ledger.nodes is not None and self._ledger.n_virtual:
            self._ledger.withdraw_plan()  # place-holders last until the next ask
        self.mapping_events += 1
        self._decide(self.scheduler.schedule, only)

    def _decide(
        self, ask: Callable[[State], Iterable[Decision] | None], only: int | None = None
    ) -> None:
        """Show the policy the state and apply what it answers."""
        now = self.now
        state = self._state.renew(now, self._ledger.submitted, only)
        stopwatch = self._stopwatch
        began = stopwatch() if stopwatch else 0.0
        answer = ask(state)
        if answer is None:
            name = "attend" if ask == self.scheduler.attend else "schedule"
            self._refuse(f"{name}() returned None; return a list of decisions, or an empty one")
        decisions = list(answer)  # all of them, before any is applied
        if stopwatch:
            self.policy_time_s += stopwatch() - began
        for decision in decisions:
            if decision.__class__ is Delegate:
                self._delegate(decision)
                continue
            self._check(self._requests.apply(decision, now))

    def _check(self, refusal: Refusal | None) -> None:
        if refusal is not None:
            self._refuse(*refusal)

    def _refuse(self, why: str, task: object = None, host: object = None) -> NoReturn:
        where = ""
        for what, number, names in (
            ("task", task, self.tasks.labels.tolist()),
            ("host", host, [each.name for each in self.system.platform.hosts]),
        ):
            if isinstance(number, int | np.integer) and 0 <= number < len(names):
                number = names[number]
            where += "" if number is None else f", {what} {number!r}"
        raise InvalidDecision(f"{self.scheduler!r} at t = {self.now:g} s{where}: {why}.")

    def _delegate(self, decision: Delegate) -> None:
        """Follow another policy from now on; what was declared before the run still bounds it."""
        if not self.scheduler.traits.delegates:
            self._refuse("Delegate needs the trait 'delegates'")
        successor = decision.scheduler
        if not isinstance(successor, Scheduler):
            self._refuse(f"Delegate.scheduler is {successor!r}; it must be a Scheduler")
        if not self.scheduler.traits.covers(successor.traits):
            self._refuse(f"Delegate to {successor!r}, whose traits go beyond its own")
        successor.prepare(self._shown, self._rng)
        self.scheduler = successor
        self.delegated_to = repr(successor)
        self._asked, self._attends = successor.traits.asked, successor.traits.attends
        self._requests.heed(successor.traits)

    # ------------------------------------------------------------------ timers and submissions

    def _renew_next_timer(self) -> None:
        ledger, time = self._ledger, self._horizon
        if self._timers:
            time = min(time, self._timers.first)
        if ledger.nodes is not None and ledger.next_start < time:
            time = ledger.next_start
        if self._outages is not None and self._outages.next_time < time:
            time = self._outages.next_time
        submitted = ledger.submitted
        # submissions are no instants where nobody looks before the next mapping event
        if submitted < len(self._submit) and not (self._has_events and self._asked == "event"):
            due = self._submit[submitted]
            if due < time:
                time = due
        if self._has_events:
            time = min(time, self._next_event_time)
        if self._account is not None:
            time = min(time, self._account.period_end, self._account.exhausted_at)
        self.next_timer = time

    def _take_timers(self) -> bool:
        """Apply all host changes, submissions and wakes that are due; return if any asks."""
        news = False
        while self._timers.first <= self.now:
            kind, host, execution = self._timers.take()
            if kind == Timer.BOOTED:
                news |= self._booted(host)
            elif execution is None:
                news = True
            elif execution.outcome == UNENDED:
                self._dispatch.begin(execution)
        if self._ledger.reservations.next_start <= self.now:
            assert self._requests.on_nodes is not None
            self._check(self._requests.on_nodes.start_reserved(self.now))
        return self._submit_due() or news

    def _submit_due(self) -> bool:
        """Let the tasks that are due wait, but for those that run nowhere; return if any waits."""
        ledger, first = self._ledger, self._ledger.submitted
        end = bisect_right(self._submit, self.now, lo=first)
        if end == first:
            return False
        ledger.submitted = end
        if end == first + 1 and self._runnable[first]:  # one task: no arrays
            ledger.state_of[first] = WAITING
            ledger.waits_from(first)
            return True
        runnable = self._runnable[first:end]
        ledger.states[first:end] = np.where(runnable, WAITING, TaskState.REJECTED)
        n_runnable = int(np.count_nonzero(runnable))
        ledger.open_tasks -= end - first - n_runnable
        ledger.waits_from(first)
        return n_runnable > 0

    def _booted(self, host: int) -> bool:
        """Let the host take tasks, unless it was switched off, or off and on, since then."""
        ledger = self._ledger
        if not ledger.is_on[host] or ledger.boot_end[host] > self.now:
            return False
        ledger.set_idle(host, idle=True)
        self._dispatch.serve_fixed(host, self.now)
        self._dispatch.vacant.append(host)
        return True

    def _return_postponed(self) -> None:
        """Let postponed tasks wait again: a new period has begun."""
        self._progress.period_began()
        returned = sorted(self._requests.postponed)
        self._requests.postponed = []
        for task in returned:
            self._ledger.waiting_again(task)
        self._returned = returned

    def _ask_again(self) -> None:
        """Ask for all tasks that wait: hosts have come up or gone down."""
        ledger = self._ledger
        if self._asked != "event":
            waiting = ledger.states[: ledger.submitted] == WAITING
            self._returned = np.flatnonzero(waiting).tolist()

    def _end_run(self, state: int) -> None:
        """Give every task its final state; what computes goes on only up to a horizon's tasks."""
        ledger = self._ledger
        ledger.withdraw_plan()
        left = ledger.states < FINISHED
        if state == _KILLED:
            for execution in ledger.executing():
                execution.stop(self.now, ExecutionEnd.KILLED)
        else:
            left &= ledger.states != RUNNING
        ledger.states[left] = state
        ledger.open_tasks -= int(np.count_nonzero(left))
        ledger.submitted = len(self._submit)
        ledger.clear_queues()
        self._timers.keep_only(Timer.DATA_READY)
        self._dispatch.freed, self._requests.postponed, self._has_events = [], [], False
        self._horizon = math.inf
        self._ended = True
        if self._outages is not None:
            self._outages.end()

    # ------------------------------------------------------------------ result

    def trace(self, horizon_s: float | None = None, *, as_estimated: bool = True) -> Trace:
        """Return the records of the run up to `horizon_s` [s] (default: the last instant).

        A driver that had true run times other than the estimates says so.
        """
        ledger = self._ledger
        offsets, ids = ledger.node_records()
        return Trace(
            platform=self.system.platform,
            tasks=self.tasks,
            executions=ledger.execution_records(),
            host_changes=ledger.host_change_records(),
            final_state=ledger.states.astype(np.int64),
            horizon_s=self.now if horizon_s is None else horizon_s,
            mapping_events=self.mapping_events,
            timing={"policy_s": self.policy_time_s},
            delegated_to=self.delegated_to,
            periods=self._period_records(),
            times_postponed=self._requests.times_postponed,
            as_estimated=as_estimated,
            host_offsets=offsets,
            host_ids=ids,
            notes=self._requests.notes,
        )

    def _period_records(self) -> NDArray[np.void]:
        return np.empty(0, dtype=PERIOD) if self._account is None else self._account.records()
