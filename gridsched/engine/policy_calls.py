"""Ask a policy that can serve the workload, and have what it answers checked and applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn

import numpy as np

from gridsched.engine.decision_handlers import DecisionHandlers
from gridsched.engine.decision_validator import Refusal
from gridsched.engine.events import MappingEvents
from gridsched.engine.live_state import LiveState, followed
from gridsched.engine.run_state import RunState
from gridsched.engine.submissions import Submissions
from gridsched.engine.task_states import WAITING
from gridsched.errors import InputError, InvalidDecision, counted
from gridsched.model.limits import time_tolerance
from gridsched.model.parallel_estimates import ParallelEstimates
from gridsched.model.room_on_nodes import check_partitions
from gridsched.model.stochastic import StochasticEstimates
from gridsched.model.system import System
from gridsched.model.task_types import TypedEstimates
from gridsched.model.tasks import Tasks
from gridsched.policy.base import Delegate, Scheduler
from gridsched.policy.decisions import Decision

#: Most decisions of one answer that is made as it is read: so many, and so many more for each task and host.
MOST_DECISIONS, MOST_DECISIONS_EACH = 10_000, 100


class PolicyCalls:
    """The policy of a run, or the one that it has delegated to.

    Parameters
    ----------
    scheduler : Scheduler
        Prepared by `prepare`.
    shown : System
        The system as a policy sees it: nothing in it reveals the future.
    tasks : Tasks
    rng : numpy.random.Generator
        The scheduler's own random stream.
    run : RunState
    handlers : DecisionHandlers
    state_at : callable
        ``state_at(now, submitted, only)`` gives the state at an instant (`renewed`).
    stopwatch : callable, optional
        Returns wall time [s]; where given, the policy's time is summed in `policy_time_s`.
    submissions : Submissions
    events : MappingEvents

    Attributes
    ----------
    scheduler : Scheduler
    trigger : str
        Its trait `trigger`.
    observes_events : bool
        Its trait `observes_events`.
    mapping_events : int
        How often it was asked for a schedule.
    policy_time_s : float
        What it took to answer [s].
    delegated_to : str
        The successor, if it has delegated; else empty.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        shown: System,
        tasks: Tasks,
        rng: np.random.Generator,
        run: RunState,
        handlers: DecisionHandlers,
        state_at: Callable[..., LiveState],
        stopwatch: Callable[[], float] | None,
        submissions: Submissions,
        events: MappingEvents,
    ) -> None:
        self.mapping_events = 0
        self.policy_time_s = 0.0
        self.delegated_to = ""
        self._shown = shown
        self._tasks = tasks
        self._rng = rng
        self._run = run
        self._handlers = handlers
        self._state_at = state_at
        self._stopwatch = stopwatch
        self._submissions = submissions
        self._events = events
        self._follow(scheduler)

    def _follow(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.trigger, self.observes_events = scheduler.traits.trigger, scheduler.traits.observes_events
        self._handlers.apply_traits(scheduler.traits)

    def prepare(self) -> None:
        """Let the policy prepare itself, before the run."""
        self.scheduler.prepare(self._shown, self._rng)

    def state_at(self, now: float) -> LiveState:
        """Return the state at `now` [s], for whoever looks at it besides the policy."""
        return self._state_at(now, self._run.submitted, None)

    def on_event(self, now: float) -> None:
        """Let the policy attend to its hosts at `now` [s]."""
        self.decide(self.scheduler.on_event, self._state_at(now, self._run.submitted, None))

    def state_to_schedule(self, now: float, only: int | None = None) -> LiveState:
        """Return the state in which a schedule is asked for, of one task `only` where that is given."""
        if len(self._run.place_holders):
            self._run.withdraw_plan()  # they last until the next ask
        self.mapping_events += 1
        return self._state_at(now, self._run.submitted, only)

    def ask(self, now: float, event_due: bool, first_new: int) -> None:
        """Ask for a schedule if this is the moment; tasks from `first_new` on are newly submitted."""
        scheduler, charges, began = self.scheduler, self.trigger == "event" and event_due, self.policy_time_s
        for only in self.asks(event_due, first_new):
            self.decide(self.scheduler.schedule, self.state_to_schedule(now, only))
        if charges and self._shown.rules.charge_mapping_time:
            self._events.put_off_until(now + self.policy_time_s - began)
        if self.scheduler is not scheduler:  # it has delegated
            self.ask(now, event_due, 0)

    def asks(self, event_due: bool, first_new: int) -> Iterator[int | None]:
        """Iterate over the asks of an instant: the one task to map, or None for all that wait."""
        run, submissions = self._run, self._submissions
        if self.trigger == "arrival":
            yield from (task for task in submissions.new_since(first_new) if run.state_of[task] == WAITING)
        elif self.trigger == "event":
            if event_due:
                yield None
        elif (first_new == 0 and run.submitted) or submissions.returned:
            submissions.returned = ()
            yield None

    def decide(self, ask: Callable[[LiveState], Iterable[Decision] | None], state: LiveState) -> None:
        """Show the state to a method of the policy, and apply what it answers."""
        stopwatch = self._stopwatch
        began = stopwatch() if stopwatch else 0.0
        answer = ask(state)
        if answer is None:
            name = "on_event" if ask == self.scheduler.on_event else "schedule"
            self._refuse(state.now, f"{name}() returned None; return a list of decisions, or an empty one")
        if stopwatch:
            self.policy_time_s += stopwatch() - began
        self.apply(answer, state)

    def apply(self, decisions: Iterable[Decision], state: LiveState) -> None:
        """Check and apply what was answered to a state."""
        now = state.now
        if not isinstance(decisions, list | tuple):
            decisions = self._one_by_one(decisions, state)
        for decision in decisions:
            if decision.__class__ is Delegate:
                self._delegate(decision, now)
                continue
            refusal = self._handlers.apply(decision, now)
            if refusal is not None:
                self._refuse(now, *refusal)

    def _one_by_one(self, decisions: Iterable[Decision], state: LiveState) -> Iterator[Decision]:
        """Yield decisions as they are made; the state follows each of them before the next is.

        An answer that does not end is refused: no answer needs so many decisions as this allows.
        """
        clock = self._stopwatch or float
        most = MOST_DECISIONS + MOST_DECISIONS_EACH * (self._run.submitted + len(self._run.is_on))
        began = clock()
        for number, decision in enumerate(decisions):
            if number >= most:
                self._refuse(
                    state.now,
                    f"its answer goes on after {most:,} decisions, the most for {counted(self._run.submitted, 'task')} "
                    f"and {counted(len(self._run.is_on), 'host')}; does a loop of schedule() or on_event() end?",
                )
            self.policy_time_s += clock() - began
            yield decision
            followed(state)
            began = clock()
        self.policy_time_s += clock() - began

    def finish(self, now: float) -> None:
        """Let a policy that is another program's take leave at `now` [s]."""
        if self.scheduler.traits.external:
            self.scheduler.finish(self._state_at(now, self._run.submitted, None))

    def check(self, refusal: Refusal | None, now: float) -> None:
        """Raise `InvalidDecision` if there is a refusal of what the policy has decided."""
        if refusal is not None:
            self._refuse(now, *refusal)

    def _refuse(self, now: float, why: str, task: object = None, host: object = None) -> NoReturn:
        where = ""
        for what, number, names in (
            ("task", task, self._tasks.labels.tolist()),
            ("host", host, [each.name for each in self._shown.platform.hosts]),
        ):
            if isinstance(number, int | np.integer) and 0 <= number < len(names):
                number = names[number]
            where += "" if number is None else f", {what} {number!r}"
        raise InvalidDecision(f"{self.scheduler!r} at t = {now:g} s{where}: {why}.")

    def _delegate(self, decision: Delegate, now: float) -> None:
        """Follow another policy from now on; what was declared before the run still bounds it."""
        if not self.scheduler.traits.delegates:
            self._refuse(now, "Delegate needs the trait 'delegates'")
        successor = decision.scheduler
        if not isinstance(successor, Scheduler):
            self._refuse(now, f"Delegate.scheduler is {successor!r}; it must be a Scheduler")
        if not self.scheduler.traits.covers(successor.traits):
            self._refuse(now, f"Delegate to {successor!r}, whose traits go beyond its own")
        successor.prepare(self._shown, self._rng)
        self._follow(successor)
        self.delegated_to = repr(successor)


def check_policy(scheduler: Scheduler, system: System, tasks: Tasks) -> None:
    """Raise `InputError` where the scenario lacks what the policy needs, or asks what it cannot.

    Parameters
    ----------
    scheduler : Scheduler
    system : System
    tasks : Tasks
    """
    traits = scheduler.traits
    if system.rules.mapping_events == "event" and (traits.replicates or traits.may_cancel):
        raise InputError(
            f"{scheduler!r} may end copies that run, and with --mapping-events event some have ended that it is not "
            "asked about yet. Ask once an instant, or use another scheduler."
        )
    if not traits.parallel:
        check_lie_alone(scheduler, tasks)
    if traits.one_core and (most := int(tasks.size.max(initial=1))) > 1:
        raise InputError(
            f"{scheduler!r} accepts tasks of one core; {tasks.name} has tasks of up to {most}. Use another scheduler."
        )
    if tasks.take_whole_nodes:
        check_nodes(system, tasks)
    elif traits.parallel or not tasks.are_serial:
        check_shared_nodes(scheduler, system, tasks)
    if traits.parallel:
        speeds = system.platform.profiles.speeds
        if speeds and (traits.needs_utility or traits.reserves):
            raise InputError(
                f"{scheduler!r} plans later starts by estimates, and host {speeds[0][0]!r} has a "
                "speed profile, by which parallel jobs may last longer. Take the profile out, or "
                "use fcfs, easy_backfilling or conservative_backfilling without permanent "
                "reservations."
            )
    if traits.needs_utility and tasks.utility is None:
        raise InputError(
            f"{scheduler!r} accepts workloads with utility functions; {tasks.name} has none. Use "
            "a generator of kind 'utility', or another scheduler."
        )
    if traits.needs_carbon and system.carbon is None:
        raise InputError(
            f"{scheduler!r} needs the carbon intensity of power, which is not given. Give it (--carbon FILE), or "
            "use another scheduler."
        )
    if traits.plans_once and not tasks.are_one_bag:
        last_s = tasks.submit_time_s[-1]
        later, instead = f"arrive until {last_s:g} s", "Submit all at one time"
        if last_s == tasks.submit_time_s[0]:
            later, instead = "wait for others", "Leave out what they wait for"
        raise InputError(
            f"{scheduler!r} plans once, at the first submission, and {tasks.name} has tasks that {later}. "
            f"{instead}, or use another scheduler."
        )
    if traits.needs_distributions and not isinstance(system.estimates, StochasticEstimates):
        raise InputError(
            f"{scheduler!r} accepts workloads whose run times are distributions; those of "
            f"{tasks.name} are not. Use a generator of kind 'robust', or another scheduler."
        )


def check_clock(system: System, tasks: Tasks) -> None:
    """Raise `InputError` where a task is submitted so late that its whole run is one instant.

    All within that time ends together, and a core that gets free in it stays idle.

    Parameters
    ----------
    system : System
    tasks : Tasks
    """
    submit_s = tasks.submit_time_s
    if not len(tasks) or submit_s[-1] < 1000.0:  # until then the distance of two instants does not grow
        return
    shortest_s = system.estimates.shortest_times()[: len(tasks)]
    too_late = (submit_s >= 1000.0) & (shortest_s <= submit_s * time_tolerance(1000.0) / 1000.0)
    if too_late.any():
        k = int(np.argmax(too_late))
        raise InputError(
            f"{tasks.name}: task {tasks.labels[k]} is submitted at {submit_s[k]:g} s and runs for {shortest_s[k]:g} s "
            f"where it is fastest; so late all within {time_tolerance(submit_s[k]):g} s is one instant. Count the "
            "times of submission from the first one."
        )


def check_lie_alone(scheduler: Scheduler, tasks: Tasks) -> None:
    """Raise `InputError` where a policy that names one host for each task meets some that take several.

    Parameters
    ----------
    scheduler : Scheduler
    tasks : Tasks
    """
    apart = (tasks.width > 1) & ~tasks.anywhere
    if apart.any():
        raise InputError(
            f"{scheduler!r} accepts tasks of one host; {tasks.name} has jobs that take several, up to "
            f"{counted(tasks.width.max(), 'node')}. Use fcfs, easy_backfilling or conservative_backfilling."
        )


def check_shared_nodes(scheduler: Scheduler, system: System, tasks: Tasks) -> None:
    """Raise `InputError` where tasks that share nodes meet a policy or a system that cannot serve them.

    Parameters
    ----------
    scheduler : Scheduler
    system : System
    tasks : Tasks
        Some of whose parts may lie on one node beside others.
    """
    traits, estimates = scheduler.traits, system.estimates
    several = bool((system.platform.cores > 1).any())
    if traits.parallel and not traits.shares and (several or not tasks.are_serial):
        raise InputError(
            f"{scheduler!r} gives jobs whole nodes, and those of {tasks.name} share nodes. Use fcfs, "
            "easy_backfilling or conservative_backfilling (without permanent reservations), or a policy with the "
            "trait 'shares'."
        )
    if traits.parallel:
        check_partitions(system.platform, system.pstates, tasks.name)
    if not tasks.are_serial and isinstance(estimates, TypedEstimates | ParallelEstimates):
        raise InputError(
            f"{tasks.name}: power by task type is a P-state of the node on SimGrid, and jobs of several types share "
            "nodes. Leave the task types out."
        )


def check_nodes(system: System, tasks: Tasks) -> None:
    """Raise `InputError` where parallel tasks meet what node sets do not have.

    Parameters
    ----------
    system : System
    tasks : Tasks
        Parallel ones.
    """
    platform = system.platform
    system.pstate  # noqa: B018 - raises where hosts start in different ones
    for host in platform.hosts:
        if host.cores != 1:
            raise InputError(
                f"{tasks.name}: parallel jobs need hosts of one core; host {host.name!r} of "
                f"{platform.name} has {host.cores}. Give each core, or each whole node, as a host, or let jobs share "
                "nodes (docs/shared_nodes.md)."
            )
    for cluster in platform.clusters:
        first = platform.hosts[cluster.hosts[0]]
        for h in cluster.hosts:
            if platform.hosts[h].pstates is first.pstates:
                continue
            if [p.speed for p in platform.hosts[h].pstates] != [p.speed for p in first.pstates]:
                raise InputError(
                    f"{tasks.name}: parallel jobs need clusters of equal hosts; in "
                    f"{cluster.name!r} of {platform.name} hosts {first.name!r} and "
                    f"{platform.hosts[h].name!r} have other speeds. Put them into clusters of "
                    "their own."
                )
    estimates = system.estimates
    if isinstance(estimates, TypedEstimates):
        raise InputError(
            f"{tasks.name}: parallel jobs with task types need estimates by cluster "
            "(ParallelEstimates), not by host type."
        )
    if isinstance(estimates, ParallelEstimates) and len(estimates.task_type) != len(tasks):
        raise InputError(
            f"{tasks.name}: {counted(len(tasks), 'task')}, and estimates of {len(estimates.task_type)}; each "
            "task needs its own."
        )
