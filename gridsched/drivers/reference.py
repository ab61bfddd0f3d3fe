"""The readable second driver: the same controller, a heap instead of SimGrid.

Both drivers take every end that is known as an execution begins from the `Calendar`, so that they decide alike;
SimGrid's clock is then checked against it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from math import inf

from gridsched.drivers.calendar import Calendar
from gridsched.drivers.driver import Driver, play, play_with_answers
from gridsched.drivers.link_shares import LinkModel
from gridsched.drivers.shared_links import SharedLinks
from gridsched.drivers.shared_steps import SharedSteps
from gridsched.engine.controller import Controller
from gridsched.engine.execution import Activity, Command, Execution, HostCommand, ParallelStep, Transfer
from gridsched.errors import SimulationError
from gridsched.model.limits import time_tolerance
from gridsched.model.platform import Platform
from gridsched.model.routes import Routes
from gridsched.model.run_times import RunTimes
from gridsched.model.trace import ExecutionEnd, Trace
from gridsched.policy.decisions import Decision
from gridsched.policy.state import State

#: Variable of the environment by which both drivers validate each step; "0" or nothing: none.
CHECK_INVARIANTS = "GRIDSCHED_CHECK_INVARIANTS"
#: Whether what runs now was validated before.
_WAS_VALIDATED: ContextVar[bool] = ContextVar("was_validated", default=False)


def validates() -> bool:
    """Whether the environment asks for validation, of a run that is not made again."""
    return not _WAS_VALIDATED.get() and os.environ.get(CHECK_INVARIANTS, "0") not in ("", "0")


@contextmanager
def validated_before() -> Iterator[None]:
    """Validate no step meanwhile: runs are made again, and compared with those that were validated."""
    before = _WAS_VALIDATED.set(True)
    try:
        yield
    finally:
        _WAS_VALIDATED.reset(before)


def validate_if_asked(controller: Controller) -> None:
    """Have a controller validate itself after each of its steps where the environment asks for that.

    Both drivers call it before a run; it costs nothing for a run that does not use it.

    Parameters
    ----------
    controller : Controller
    """
    if not validates():
        return
    take_step, take_answered_step = controller.step, controller.step_with_answers

    def step(now: float, ended: Sequence[Activity]) -> list[Command]:
        commands = take_step(now, ended)
        controller.validate()
        return commands

    def step_with_answers(now: float, ended: Sequence[Activity]) -> Generator[State, Iterable[Decision], list[Command]]:
        commands = yield from take_answered_step(now, ended)
        controller.validate()
        return commands

    controller.step = step  # type: ignore[method-assign]
    controller.step_with_answers = step_with_answers  # type: ignore[method-assign]


class ReferenceDriver(Driver):
    """A run without SimGrid.

    Parameters
    ----------
    run_times : RunTimes, optional
        True durations; default the estimates.
    platform : Platform, optional
        Where the speed of hosts changes with time, ends follow it.
    routes : Routes, optional
        Between all its hosts, where anything is sent over links.
    link_model : LinkModel, optional
        How links are shared; default as parallel tasks share them.
    """

    def __init__(
        self,
        run_times: RunTimes | None = None,
        platform: Platform | None = None,
        routes: Routes | None = None,
        link_model: LinkModel | None = None,
    ) -> None:
        self.now = 0.0
        self._calendar = Calendar(run_times, platform)
        self._shared: SharedSteps | SharedLinks | None = None
        if platform is not None and routes is not None:
            names = [host.name for host in platform.hosts]
            self._shared = SharedSteps(platform, routes, names)
            if link_model is not None:
                self._shared = SharedLinks(link_model, routes, names)

    def begin(self, activity: Activity) -> None:
        """Begin an activity: fix its end, or let it share what it uses from now on.

        Raises
        ------
        SimulationError
            If it would send, and no routes are known.
        """
        if activity.__class__ is Execution:
            self._calendar.start(activity)
        elif self._shared is not None:
            self._shared.begin(activity, self.now)
        elif isinstance(activity, Transfer):
            self._calendar.send(activity)
        else:
            raise SimulationError(f"{activity!r}: no routes are known, over which it could send.")

    def cancel(self, activity: Activity) -> None:
        """End an activity; the calendar leaves out what has an outcome."""
        if isinstance(activity, Execution):
            return  # of which its controller has noted it
        activity.outcome = int(ExecutionEnd.CANCELLED)
        if self._shared is not None:
            self._shared.cancel(activity)

    def remaining(self, activity: Activity) -> float:
        """Return which share of an activity is left."""
        if self._shared is not None and not isinstance(activity, Execution):
            return self._shared.remaining(activity)
        if isinstance(activity, ParallelStep):
            return 0.0
        began = activity.start if isinstance(activity, Execution) else activity.begin
        return (activity.end - self.now) / (activity.end - began) if activity.end > self.now else 0.0

    def host(self, change: HostCommand) -> None:
        """Change nothing: what a host does, the controller's records have."""

    def advance(self, until: float) -> tuple[float, list[Activity]]:
        """Go on to the next instant, at most to `until` [s]."""
        if not self._shared:
            self.now, ended = self._calendar.next_instant(until)
            return self.now, ended
        shared, calendar = self._shared, self._calendar
        while True:
            time = max(min(until, calendar.first, shared.next_time), self.now)
            if time == inf:
                return inf, []
            ended = shared.reach(time)
            limit = time + time_tolerance(time)
            if calendar.first <= limit:
                self.now, known = calendar.next_instant(until)
                if self.now > time:
                    ended += shared.reach(self.now)
                return self.now, [*ended, *known]
            self.now = until if time < until <= limit else time
            if ended or until <= limit:
                return self.now, ended

    def carry_out(self, command: Command) -> None:
        """Do what a controller commands; most often that is to begin an execution."""
        if command.__class__ is Execution:
            self._calendar.start(command)
        else:
            super().carry_out(command)


def simulate(
    controller: Controller,
    run_times: RunTimes | None = None,
    routes: Routes | None = None,
    link_model: LinkModel | None = None,
) -> Trace:
    """Run a prepared controller to its end.

    Parameters
    ----------
    controller : Controller
        Fresh; it is used up.
    run_times : RunTimes, optional
        True durations; default the estimates.
    routes : Routes, optional
        Between all hosts, where anything is sent over links.
    link_model : LinkModel, optional
        How links are shared; default as parallel tasks share them.

    Returns
    -------
    Trace

    Raises
    ------
    InvalidDecision, IncompleteRun
        As the controller does.
    """
    validate_if_asked(controller)
    play(controller, ReferenceDriver(run_times, controller.system.platform, routes, link_model))
    return records_of(controller, run_times)


def records_of(controller: Controller, run_times: RunTimes | None) -> Trace:
    """Return the trace of a run that is over."""
    controller.finish()
    trace = controller.trace(as_estimated=run_times is None and not controller.has_programs)
    trace = trace if run_times is None else replace(trace, load=run_times.load)
    if validates():
        controller.validate_end(trace)
    return trace


def simulate_with_answers(
    controller: Controller, run_times: RunTimes | None, watch: Callable[[float, Sequence[Activity]], None]
) -> Generator[State, Iterable[Decision], Trace]:
    """Do as `simulate` does, but as a generator that receives the decisions.

    Yields each state in which the policy would be asked, is sent the decisions, returns the trace.

    Parameters
    ----------
    controller : Controller
        Fresh; it is used up. Its policy is never asked.
    run_times : RunTimes or None
        True durations; None: the estimates.
    watch : callable
        ``watch(now, ended)`` is called at each instant [s], before anything of it is applied,
        with what ends then.

    Raises
    ------
    InvalidDecision, IncompleteRun
        As the controller does.
    """
    validate_if_asked(controller)
    yield from play_with_answers(controller, ReferenceDriver(run_times, controller.system.platform), watch)
    return records_of(controller, run_times)
