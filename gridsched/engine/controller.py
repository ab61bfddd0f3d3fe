"""The pure state machine between events and the policy: no clock, no simulator, no I/O.

A driver reports to it what happened (`Controller.step`) and carries out the commands it returns. In one
instant finishes, host changes, submissions and wakes are applied in this order, then by id; then
the policy is asked, its decisions are checked and applied, and free cores take the next tasks.
Where each event is one by itself (`Rules.mapping_events`), an instant is a row of such steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np

from gridsched.energy import carried_over_energy
from gridsched.engine.budget_guard import energy_parts
from gridsched.engine.decision_handlers import DecisionHandlers
from gridsched.engine.dispatch import Dispatch
from gridsched.engine.energy_account import DrawnEnergy
from gridsched.engine.events import MappingEvents, Timers, unfinished
from gridsched.engine.execution import UNENDED, Activity, Command, Execution, Timer, Transfer
from gridsched.engine.host_powers import NoPowers, PowerCap
from gridsched.engine.host_switches import HostSwitches, NoOutages, Outages
from gridsched.engine.invariants import Laws, check_invariants
from gridsched.engine.kinds_of_resources import with_pools
from gridsched.engine.live_state import LiveState, capped, renewed
from gridsched.engine.outside import Outside
from gridsched.engine.policy_calls import PolicyCalls, check_clock, check_policy
from gridsched.engine.programs import PlainPrograms, ProgramRules, Programs
from gridsched.engine.progress import NOTHING_TO_COME, Progress
from gridsched.engine.ready_times import NoStaging, ReadyTimes, Staging
from gridsched.engine.run_state import RunState
from gridsched.engine.submissions import Submissions
from gridsched.engine.transfers import transfers_of
from gridsched.errors import IncompleteRun
from gridsched.model.limits import time_tolerance
from gridsched.model.signals import EVEN
from gridsched.model.stimuli import SetPowerCap, Stimulus, TimedStimulus
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.model.trace import ExecutionEnd, TaskState, Trace
from gridsched.policy.base import Scheduler
from gridsched.policy.decisions import Decision
from gridsched.policy.state import State


class Instant:
    """What one instant of a run, or one event of it, has brought so far.

    Parameters
    ----------
    now : float
        [s].
    ended : sequence of Activity
        Executions that are over, and transfers that have arrived.
    asked_before : int
        How often the policy had been asked before.

    Attributes
    ----------
    arrived : sequence of Transfer
    has_ends, new_period, news, event_due : bool
        Whether executions ended, a period began, something asks for the policy, and it is to be asked.
    first_new : int
        The first task that is submitted now.
    n_by_themselves : int
        How many of the commands no policy has brought about: those up to hosts that come up.
    is_over : bool
        Whether no scheduler is to be asked any more.
    """

    __slots__ = (
        "arrived",
        "asked_before",
        "ended",
        "event_due",
        "first_new",
        "has_ends",
        "is_over",
        "n_by_themselves",
        "new_period",
        "news",
        "now",
    )

    def __init__(self, now: float, ended: Sequence[Activity], asked_before: int) -> None:
        self.now, self.ended, self.asked_before = now, ended, asked_before
        self.arrived: Sequence[Transfer] = ()
        self.has_ends = self.new_period = self.news = self.event_due = self.is_over = False
        self.first_new = self.n_by_themselves = 0


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
        Returns wall time [s]; where given, the policy's time is measured.
    is_metered : bool
        Keep `power_w` up to date, which costs a little.
    programs : ProgramRules, optional
        What gives executions more steps than one; default: each computes, and that is all.
    stimuli : sequence of TimedStimulus
        What is done from outside while the run goes on. A cap that others set later, too, needs a metered run.
    n_spare : int
        So many of the tasks, the last ones, are none yet, but rows for tasks that `insert` adds.

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
        is_metered: bool = False,
        programs: ProgramRules | None = None,
        stimuli: Sequence[TimedStimulus] = (),
        n_spare: int = 0,
    ) -> None:
        system.check_pstates()
        self._platform = system.platform
        system = with_pools(system, tasks, scheduler.traits)
        check_policy(scheduler, system, tasks)
        check_clock(system, tasks.taken(np.arange(len(tasks) - n_spare)) if n_spare else tasks)
        self.system = system
        self.tasks = tasks
        self.now = 0.0
        rules = system.rules
        self._events = MappingEvents(rules.mapping_interval_s)
        self._parks = rules.parked_pstate is not None
        self._horizon = math.inf if rules.horizon_s is None else rules.horizon_s
        self._ended = False
        self._laws = Laws(tasks, has_messages=programs is not None and programs.master is not None)
        is_metered |= any(isinstance(each.stimulus, SetPowerCap) for each in stimuli)
        run = RunState(system, tasks, frozenset(hosts_off), scheduler.traits, n_spare)
        self._make_parts(run, scheduler, rng, stopwatch, programs, stimuli, is_metered=is_metered)
        if self._calls.observes_events:
            self._timers.set(0.0, Timer.WAKE)
        self._renew_next_timer()
        self._calls.prepare()

    def _make_parts(
        self,
        run: RunState,
        scheduler: Scheduler,
        rng: np.random.Generator,
        stopwatch: Callable[[], float] | None,
        program_rules: ProgramRules | None,
        stimuli: Sequence[TimedStimulus],
        *,
        is_metered: bool,
    ) -> None:
        """Make the parts of the engine; none of them knows the controller."""
        system, tasks = self.system, self.tasks
        self._timers = Timers()
        self._run = run
        self._transfers = transfers = transfers_of(tasks, system, run.is_down)
        self._ready_times = ready_times = ReadyTimes(system, run, transfers)
        staging = NoStaging() if tasks.files is None else Staging(system.platform, tasks, tasks.files)
        are_bounded = program_rules is not None and program_rules.runs_profiles
        powers, self._cap, account, guard = energy_parts(
            system, run, ready_times, is_metered=is_metered, are_bounded=are_bounded
        )
        self._powers, self._account = powers, account
        self._programs: Programs = PlainPrograms(powers)
        if program_rules is not None:
            self._programs = Programs(system, tasks, program_rules, powers)
        if are_bounded and account.exists:
            account.drawn_j = self._programs.drawn_j
        traits = scheduler.traits
        if traits.parallel and traits.respects_power_cap:
            self._cap.check_jobs(system, tasks, powers_hosts=traits.powers_hosts)
        self._dispatch = dispatch = Dispatch(
            system, run, self._timers, staging, account, powers, transfers, self._programs
        )
        self._switches = HostSwitches(system.platform, run, dispatch, self._timers)
        self._handlers = DecisionHandlers(system, run, dispatch, self._switches, self._timers, staging, account, guard)
        self._outages: Outages = NoOutages()
        if system.platform.profiles.states:
            self._outages = Outages(system, tasks, run, dispatch, self._switches)
        if self._follows_outages:
            dispatch.follow_cap(self._cap)
        self._drawn = DrawnEnergy(self._platform, tasks, run)
        estimates, reveal = system.estimates.concealed()
        concealed = replace(system, estimates=estimates, platform=system.platform.concealed())
        # a policy knows of full speeds alone
        shown_powers = NoPowers() if account.exists and system.platform.profiles.speeds else powers
        self._state = state = LiveState(
            concealed, tasks, run, ready_times, staging, account, shown_powers, self._drawn.consumed_j, transfers
        )
        self._submissions = submissions = Submissions(
            system,
            tasks,
            run,
            self._timers,
            dispatch,
            sees_all=scheduler.traits.trigger == "event",
            one_by_one=system.rules.mapping_events == "event",
        )
        self._outside = outside = Outside(stimuli, run, dispatch, submissions, self._set_power_cap)
        self._progress = Progress(
            run, self._timers, submissions, self._events, self._outages, account, system.rules, outside
        )
        state_at = partial(renewed, state, reveal)
        self._calls = PolicyCalls(
            scheduler, concealed, tasks, rng, run, self._handlers, state_at, stopwatch, submissions, self._events
        )
        self._by_events = system.rules.mapping_events == "event"
        self._phases = self._find_phases()
        self._starts_successors = dispatch.can_start_successor and not self._events.exist and not self._by_events
        self._starts_successors &= outside.next_time == math.inf  # they look at no host that is drained

    @property
    def scheduler(self) -> Scheduler:
        """The policy that is asked now."""
        return self._calls.scheduler

    @property
    def done(self) -> bool:
        """Whether every task has its final state."""
        return not self._run.open_tasks

    @property
    def open_tasks(self) -> int:
        """Number of tasks without a final state."""
        return self._run.open_tasks

    def state_at(self, now: float) -> State:
        """Return the run as its policy would see it at a time after the last instant [s]; it holds until the next."""
        return self._calls.state_at(now)

    def state_of(self, task: int) -> TaskState:
        """Return where a task is."""
        return TaskState(self._run.state_of[task])

    def stimulate(self, time_s: float, stimulus: Stimulus) -> None:
        """Have something done from outside at a time [s], not before the last instant."""
        self._starts_successors = False  # they look at no host that is drained
        self._outside.add(time_s, stimulus)
        self._phases = self._find_phases()
        self._renew_next_timer()

    def insert(self, task: int, time_s: float) -> None:
        """Take over that tasks and estimates have an added task, whose place is none of those that are submitted."""
        estimates, hosts = self.system.estimates, np.arange(self.system.n_hosts)
        self._submissions.insert(task, time_s, runnable=bool(estimates.runnable(np.array([task]), hosts)[0]))
        self._outside.insert(task)
        self._run.add_task()
        self._renew_next_timer()

    def stay_open(self, until: float = math.inf, *, is_open: bool = True) -> None:
        """Allow that nothing is to come: who drives the run may do more, at a time [s] at the latest."""
        self._outside.is_open, self._outside.returns_at = is_open, until

    @property
    def _follows_outages(self) -> bool:
        """Whether hosts under a cap, which may be set during the run, come up by themselves."""
        return self._outages.exist and self._cap.exists

    @property
    def has_sets(self) -> bool:
        """Whether executions have sets of hosts; else each has one core of one host."""
        return self._run.resources.has_sets

    @property
    def has_programs(self) -> bool:
        """Whether executions may have more steps than one."""
        return self._programs.exist

    @property
    def records_traffic(self) -> bool:
        """Whether it is recorded what crosses links over time."""
        return self._programs.records_traffic

    def attach(self, remaining: Callable[[Activity], float]) -> None:
        """Ask a driver which share of an activity is left (`Driver.remaining`), from now on."""
        self._programs.remaining = remaining

    @property
    def power_w(self) -> float:
        """What all computing hosts draw now [W], at full speed; of a run that is metered."""
        return self._powers.total_w

    @property
    def pstates(self) -> list[int]:
        """P-state of each host."""
        return list(self._run.pstate)

    @property
    def is_on(self) -> list[bool]:
        """Whether each host is switched on."""
        return list(self._run.is_on)

    def what_is_left(self, why_not: str = NOTHING_TO_COME) -> str:
        """Return a sentence that names the tasks without a final state, and gives the reason `why_not`."""
        rules, cap_w = self.system.rules, self._state.power_cap_w
        rules = replace(rules, power_cap_w=None if cap_w == math.inf else cap_w)  # it may have changed
        return unfinished(self._run, self.tasks, repr(self.scheduler), self.now, rules, why_not)

    def step(self, now: float, ended: Sequence[Activity]) -> list[Command]:
        """Apply what happens at `now` [s], ask the policy, and return the commands.

        Parameters
        ----------
        now : float
            The instant [s], never earlier than the one before.
        ended : sequence of Activity
            Executions that ended in it, their `end` set, steps of programs that did, and transfers that arrived.

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
        run = self._run
        run.executions.keep_short()
        if self._starts_successors and len(ended) == 1 and now < self.next_timer and run.common and run.n_virtual > 1:
            command = self._dispatch.start_successor(cast(Execution, ended[0]), now)
            if command is not None:
                return [command]
        commands: list[Command] = []
        for instant in self._instants(now, ended):
            for _, phase in self._phases:
                if instant.is_over:
                    break
                phase(instant)
            commands += self._close(instant)
        return commands or self._dispatch.take_commands()

    def _instants(self, now: float, ended: Sequence[Activity]) -> Iterator[Instant]:
        """Yield what goes through the phases: this instant, each of its events, or nothing if only steps have ended."""
        finished = self._go_on(now, ended) if self._programs.exist else ended
        if finished is None:
            return
        for ends in self._events_of(now, finished) if self._by_events else (finished,):
            yield Instant(now, ends, self._calls.mapping_events)

    def _go_on(self, now: float, ended: Sequence[Activity]) -> Sequence[Activity] | None:
        """Let programs go on whose steps have ended; return what has ended for good, or None: nothing else happens."""
        self._account.count_until(now)
        finished: list[Activity] = [each for each in ended if isinstance(each, Transfer)]
        finished += self._programs.advance(now, ended)
        if finished or now >= self._next_instant:
            return finished
        self.next_timer = min(self._next_instant, self._programs.next_time)
        return None

    def _events_of(self, now: float, ended: Sequence[Activity]) -> Iterator[Sequence[Activity]]:
        """Yield what ends with each event of an instant, where each is one by itself.

        What has come to the end of its estimate is gone with the first; then come
        the submissions, then the other ends in the order of their starts. Before hosts go down, and where a
        period of the budget or the budget ends, all has ended.
        """
        limit = now + time_tolerance(now)
        ends_first = self._outages.next_time <= now or self._account.next_time <= limit
        if ends_first or self._outside.next_time <= now or self._transfers.exists:
            yield ended
            return
        finished = cast(Sequence[Execution], ended)
        expected = [each for each in finished if each.estimated_end <= limit]
        submits, first = self._submissions, finished[0] if finished else None
        others = [each for each in finished if each.estimated_end > limit]
        if submits.next_time > now and first in others:
            expected.append(others.pop(0))
        yield expected
        while submits.next_time <= now and not self.done:
            yield ()
        for each in others:
            if not self.done and each.outcome == UNENDED:
                yield (each,)

    def step_with_answers(
        self, now: float, ended: Sequence[Activity]
    ) -> Generator[State, Iterable[Decision], list[Command]]:
        """Do as `step` does, but ask who drives it instead of the policy.

        Yields each state in which the policy would be asked for a schedule, is sent the decisions,
        and returns the commands. The caller who answers neither observes events nor delegates.
        """
        self.now = now
        self._run.executions.keep_short()
        commands: list[Command] = []
        for instant in self._instants(now, ended):
            for name, phase in self._phases:
                if instant.is_over:
                    break
                if name != "ask":
                    phase(instant)
                    continue
                for only in self._calls.asks(instant.event_due, instant.first_new):
                    state = self._calls.state_to_schedule(now, only)
                    self._calls.apply((yield state), state)
            commands += self._close(instant)
        return commands or self._dispatch.take_commands()

    # ------------------------------------------------------------------ the phases of an instant

    def _find_phases(self) -> list[tuple[str, Callable[[Instant], None]]]:
        """Return what happens in an instant, in this order; what a run does not have is left out."""
        phases: list[tuple[str, Callable[[Instant], None], bool]] = [
            ("ends", self._apply_ends, True),
            ("period", self._begin_period, self._account.exists),
            ("outages", self._apply_outages, self._outages.exist),
            ("outside", self._apply_outside, self._outside.next_time < math.inf or self._follows_outages),
            ("arrivals", self._apply_arrivals, self._transfers.exists),
            ("timers", self._apply_timers, True),
            ("submissions", self._apply_submissions, True),
            ("ask", self._ask, True),
            ("serve", self._serve, True),
        ]
        return [(name, phase) for name, phase, exists in phases if exists]

    def _apply_ends(self, instant: Instant) -> None:
        """End executions, the run where its budget is used up, and what is left at a horizon."""
        dispatch, now, ended = self._dispatch, instant.now, instant.ended
        if self._transfers.exists:
            instant.arrived = [each for each in ended if isinstance(each, Transfer)]
            self._transfers.arriving = instant.arrived
            ended = [each for each in ended if isinstance(each, Execution)]
        finished = cast("Sequence[Execution]", ended)
        instant.new_period = self._account.advance(now)
        if len(finished) > 1:
            finished = sorted(finished, key=lambda e: (e.task, e.host))
        for execution in finished:
            dispatch.finish(execution, finished, now)
        instant.has_ends = bool(finished)
        if self._account.exhausted_at <= now + time_tolerance(now):
            self._end_run(TaskState.KILLED)
            instant.is_over = True
        elif now >= self._horizon and not self._ended:
            self._end_run(TaskState.UNFINISHED)

    def _begin_period(self, instant: Instant) -> None:
        """Let what was postponed wait again, if a period of the budget begins."""
        if not instant.new_period:
            return
        if len(self._run.place_holders) and self._handlers.refuses:
            self._run.withdraw_plan()  # the last period's budget admitted these
        self._progress.passes("period")
        self._submissions.returned = self._run.return_postponed()
        instant.news = True

    def _apply_outages(self, instant: Instant) -> None:
        """Let hosts go down and come up."""
        if self._outages.apply(instant.now):
            if self._calls.trigger != "event":
                self._submissions.return_waiting()
            instant.news = True
            self._progress.passes("outage")
            instant.n_by_themselves = len(self._dispatch.commands)
            self._cap.excuse()

    def _apply_outside(self, instant: Instant) -> None:
        """Do what is due from outside, and let all queues go on which a cap has held back."""
        if self._outside.next_time <= instant.now:
            instant.news |= self._outside.apply(instant.now)
        if self._cap.releases():
            self._dispatch.offer_all_hosts()

    def _apply_arrivals(self, instant: Instant) -> None:
        """Let executions begin whose data arrive."""
        if self._dispatch.freed:
            self._dispatch.serve_freed(instant.now)
        for transfer in instant.arrived:
            self._dispatch.data_came(transfer, instant.now)
            self._programs.note_transfer(transfer)

    def _apply_timers(self, instant: Instant) -> None:
        """Serve the queues of hosts that are free, and apply what is due."""
        now, dispatch = instant.now, self._dispatch
        if dispatch.freed:
            dispatch.serve_freed(now)
        instant.first_new = self._run.submitted
        if now >= self.next_timer:
            instant.news |= self._take_timers()
            if self._follows_outages:  # one that has booted may draw more than while it did
                self._cap.excuse()
        instant.is_over = not self._run.open_tasks or self._ended

    def _apply_submissions(self, instant: Instant) -> None:
        """Let tasks wait that are submitted now, or that others have held; find out whether an event is due."""
        run, dispatch, calls, now = self._run, self._dispatch, self._calls, instant.now
        released = self._submissions.release(now)
        if dispatch.freed:  # queues in which released tasks wait
            dispatch.serve_freed(now)
        dispatch.put_off_late(now)
        # before the policy is asked; but a common queue does not hold what has been released in this instant
        takes_common = run.common and not (released and not self._events.exist)
        if takes_common or (dispatch.vacant and self.system.rules.pending_slots):
            dispatch.serve_plan(dispatch.vacant, now)
        # while a common queue lasts, cores that are free have taken from it: nothing to decide
        news = instant.news or released or (instant.has_ends and not (run.common and run.n_virtual))
        instant.event_due = self._events.is_due(now) if self._events.exist else news
        if calls.observes_events and (
            instant.event_due or run.submitted > instant.first_new or self._submissions.returned
        ):
            calls.on_event(now)

    def _ask(self, instant: Instant) -> None:
        """Ask the policy, if this is the moment."""
        self._calls.ask(instant.now, instant.event_due, instant.first_new)

    def _serve(self, instant: Instant) -> None:
        """Let free cores take what is planned now, and find out whether the run gets on."""
        run, dispatch, calls, now = self._run, self._dispatch, self._calls, instant.now
        if self._cap.holds_back and self._cap.releases():  # the policy has switched hosts off
            dispatch.offer_all_hosts()
            dispatch.serve_freed(now)
        if run.place_holders.next_start <= now:
            calls.check(self._handlers.start_planned(now), now)
        elif run.n_virtual and not len(run.place_holders):
            asked_now = calls.mapping_events > instant.asked_before
            hosts = run.virtual.hosts() if asked_now else dispatch.vacant
            dispatch.serve_plan(hosts, now)
        self._submissions.note_starts(now)
        dispatch.vacant = []
        progress = self._progress
        if run.n_executing and not progress.woken:
            if progress.idle_wakeups:
                progress.idle_wakeups.clear()
        elif run.open_tasks and (why := progress.stall_reason(now, instant.event_due)) is not None:
            raise IncompleteRun(self.what_is_left(why))

    def _close(self, instant: Instant) -> list[Command]:
        """Return the commands of an instant, and find out when the next one is."""
        dispatch, now = self._dispatch, instant.now
        if self._parks:
            dispatch.park_idle_hosts(now)
        dispatch.commands += self._transfers.take_sent()
        self._calls.check(self._cap.refusal(dispatch.commands[instant.n_by_themselves :], self.scheduler), now)
        self._renew_next_timer()
        return dispatch.take_commands()

    def _renew_next_timer(self) -> None:
        run, time = self._run, self._horizon
        if self._timers:
            time = min(time, self._timers.first)
        if run.next_start < time:
            time = run.next_start
        if self._outages.next_time < time:
            time = self._outages.next_time
        # submissions are no instants if no one looks before the next mapping event
        if not (self._events.exist and self._calls.trigger == "event"):
            time = min(time, self._submissions.next_time)
        time = min(time, self._events.next_time, self._outside.next_time)
        self._next_instant = time = min(time, self._account.next_time)
        self.next_timer = min(time, self._programs.next_time)

    def _take_timers(self) -> bool:
        """Apply all host changes, submissions and wakes that are due; return if any asks."""
        news = False
        while self._timers.first <= self.now:
            kind, host, execution = self._timers.take()
            if kind == Timer.SWITCHED or kind == Timer.WAKE:
                if kind == Timer.WAKE or self._switches.go_on(host, self.now):
                    news = self._progress.woken = True
            elif execution is None:
                news = True
            elif execution.outcome == UNENDED:
                self._dispatch.files_came(execution)
        if self._run.reservations.next_start <= self.now:
            self._calls.check(self._handlers.start_reserved(self.now), self.now)
        return self._submissions.take(self.now) or news

    def _end_run(self, state: TaskState) -> None:
        """Give every task its final state; at a horizon, running tasks continue to their ends."""
        if state == TaskState.KILLED:
            for execution in self._run.executing():
                execution.stop(self.now, ExecutionEnd.KILLED)
                if execution.has_begun and self._programs.exist:
                    self._programs.stop(execution, self.now)
        self._run.end_tasks(int(state), running=state == TaskState.KILLED)
        self._timers.forget(Timer.WAKE, Timer.RELEASE)
        self._dispatch.freed = []
        self._events.end()
        self._horizon = math.inf
        self._ended = True
        self._outages.end()

    def validate(self) -> None:
        """Compare what the engine keeps in several places; for tests, after any instant.

        Raises
        ------
        AssertionError
            Where the parts contradict each other.
        """
        self._laws.look(self._run, self.now)
        parts = self._run, self._ready_times, self._powers
        check_invariants(self.system, *parts, self.now, is_held_back=self._cap.holds_back)

    def validate_end(self, trace: Trace) -> None:
        """Hold the records of a run that was validated after each step to laws of any run.

        Raises
        ------
        AssertionError
            Where one is broken.
        """
        self._laws.check(trace)

    def _set_power_cap(self, cap_w: float) -> bool:
        """Let the hosts draw so much together from now on [W], and return whether that is new.

        Those that draw more may, until they draw less.
        """
        if cap_w == self._state.power_cap_w:
            return False
        if not self._cap.exists:
            self._cap = PowerCap(math.inf, self._powers, self._platform)
        self._dispatch.follow_cap(self._cap)
        self._cap.set(cap_w)
        capped(self._state, cap_w)
        return True

    def finish(self) -> None:
        """Let the policy take leave, once the run is done."""
        self._calls.finish(self.now)

    def _is_limited_by_budget(self) -> bool:
        """Whether a greater budget might have changed what happened.

        Where the policy respects the budget, the engine has only compared what was decided with what remained, and
        refused nothing. A budget that is shared by the periods, or ends the run, does more.
        """
        budget, scheduler = self.system.rules.budget, self._calls.scheduler
        if budget is None or budget.carry_over or budget.enforcement != "refuse" or self._calls.delegated_to:
            return True
        return not scheduler.traits.respects_budget or scheduler.limited_by_budget

    def trace(self, horizon_s: float | None = None, *, as_estimated: bool = True, is_over: bool = True) -> Trace:
        """Return the records of the run up to `horizon_s` [s] (default: the last instant).

        A driver whose true run times differ from the estimates states this. A run that `is_over` keeps no records.
        """
        account, budget = self._account, self.system.rules.budget
        trace = Trace(
            platform=self._platform,
            tasks=self.tasks,
            horizon_s=self.now if horizon_s is None else horizon_s,
            mapping_events=self._calls.mapping_events,
            timing={"policy_s": self._calls.policy_time_s},
            delegated_to=self._calls.delegated_to,
            periods=account.records(),
            energy_weights=EVEN if budget is None else budget.weights,
            as_estimated=as_estimated,
            **self._run.records(is_over=is_over),
            transfers=self._transfers.records(),
            notes=self._handlers.notes,
            carbon=self.system.carbon,
            limited_by_budget=self._is_limited_by_budget(),
        )
        if len(trace.periods):
            trace.periods["carried_over_j"] = carried_over_energy(trace)
        return replace(trace, **self._programs.records())
