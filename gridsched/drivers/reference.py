"""The readable second driver: the same controller, a heap instead of SimGrid, no network.

Both drivers without a network take every end from the `Calendar`, so that they decide alike;
SimGrid's clock is then checked against it.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Protocol

import numpy as np

from gridsched.engine.controller import Controller
from gridsched.engine.execution import UNENDED, Command, Execution, Transfer
from gridsched.errors import IncompleteRun
from gridsched.model.host_profiles import Speeds
from gridsched.model.platform import Platform
from gridsched.model.run_times import RunTimes
from gridsched.model.trace import Trace
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

    def step(now: float, finished: Sequence[Execution | Transfer]) -> list[Command]:
        commands = take_step(now, finished)
        controller.validate()
        return commands

    def step_with_answers(
        now: float, finished: Sequence[Execution | Transfer]
    ) -> Generator[State, Iterable[Decision], list[Command]]:
        commands = yield from take_answered_step(now, finished)
        controller.validate()
        return commands

    controller.step = step  # type: ignore[method-assign]
    controller.step_with_answers = step_with_answers  # type: ignore[method-assign]


class Calendar:
    """The ends of all running executions in order of time.

    Parameters
    ----------
    run_times : RunTimes, optional
        True durations; without them the end that the controller estimated is the true one.
    platform : Platform, optional
        Where the speed of hosts changes with time, ends follow it.
    """

    def __init__(self, run_times: RunTimes | None = None, platform: Platform | None = None) -> None:
        self._run_times = run_times
        self._speeds: Speeds | None = None
        if platform is not None and platform.profiles.speeds:
            self._speeds = Speeds(platform.profiles, [host.name for host in platform.hosts])
        self._heap: list[tuple[float, int, Execution | Transfer]] = []
        self._started = 0

    def start(self, execution: Execution) -> None:
        """Fix the end of an execution, ``start + duration``, and note it."""
        if self._run_times is not None:
            duration = self._run_times.run_time(execution.task, execution.host, execution.pstate)
            execution.end = execution.start + duration
            execution.is_cut = self._run_times.is_cut(execution.task, execution.host, execution.pstate)
        if self._speeds is not None:
            hosts = execution.hosts
            speed = self._speeds.of(np.array([execution.host]) if hosts is None else hosts)
            if speed is not None:
                duration = execution.end - execution.start
                execution.end = speed.end_of(execution.start, duration)
        self._started += 1
        heapq.heappush(self._heap, (execution.end, self._started, execution))

    def take(self, command: Command) -> None:
        """Note when what a command begins will end; other commands are of no time."""
        if command.__class__ is Execution:
            self.start(command)
        elif command.__class__ is Transfer:
            self.send(command)

    def send(self, transfer: Transfer) -> None:
        """Note when a transfer arrives that shares no link."""
        self._started += 1
        heapq.heappush(self._heap, (transfer.end, self._started, transfer))

    def next_instant(self, timer: float) -> tuple[float, list[Execution | Transfer]]:
        """Take the executions of the next instant out of the calendar.

        Parameters
        ----------
        timer : float
            The next time [s] at which something else is due; infinite if nothing is.

        Returns
        -------
        time : float
            The instant [s]: the latest of the ends (and the timer) that make it up; infinite
            where nothing is left.
        finished : list of Execution and Transfer
            What ends in it; empty if only the timer is due.
        """
        heap = self._heap
        while heap and heap[0][2].outcome != UNENDED:
            heapq.heappop(heap)
        first = heap[0][0] if heap else timer
        if timer < first:
            first = timer
        limit = first + (1e-9 if first < 1000.0 else 1e-12 * first)  # time_tolerance, inlined
        time = first
        finished: list[Execution | Transfer] = []
        while heap and heap[0][0] <= limit:
            end, _, execution = heapq.heappop(heap)
            if execution.outcome == UNENDED:
                time = end
                finished.append(execution)
        if time < timer <= limit:
            time = timer
        return time, finished


class KeepsEnds(Protocol):
    """The source of the next ends: `Calendar`, or another in its place."""

    def take(self, command: Command) -> None:
        """Begin what a command specifies."""

    def next_instant(self, timer: float) -> tuple[float, list[Execution | Transfer]]:
        """Return the next instant [s], of which a timer [s] may be, and what ends in it."""


def simulate(controller: Controller, run_times: RunTimes | None = None, calendar: KeepsEnds | None = None) -> Trace:
    """Run a prepared controller to its end.

    Parameters
    ----------
    controller : Controller
        Fresh; it is used up.
    run_times : RunTimes, optional
        True durations; default the estimates.
    calendar : KeepsEnds, optional
        Default: a `Calendar`, by the run times.

    Returns
    -------
    Trace

    Raises
    ------
    InvalidDecision, IncompleteRun
        As the controller does.
    """
    validate_if_asked(controller)
    calendar = Calendar(run_times, controller.system.platform) if calendar is None else calendar
    while not controller.done:
        now, finished = calendar.next_instant(controller.next_timer)
        if now == float("inf"):
            raise IncompleteRun(controller.what_is_left())
        for command in controller.step(now, finished):
            calendar.take(command)
    return _records(controller, run_times)


def _records(controller: Controller, run_times: RunTimes | None) -> Trace:
    """Return the trace of a run that is over."""
    controller.finish()
    trace = controller.trace(as_estimated=run_times is None)
    trace = trace if run_times is None else replace(trace, load=run_times.load)
    if validates():
        controller.validate_end(trace)
    return trace


def simulate_with_answers(
    controller: Controller, run_times: RunTimes | None, watch: Callable[[float, Sequence[Execution | Transfer]], None]
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
        ``watch(now, finished)`` is called at each instant [s], before anything of it is applied,
        with what ends then.

    Raises
    ------
    InvalidDecision, IncompleteRun
        As the controller does.
    """
    validate_if_asked(controller)
    calendar = Calendar(run_times, controller.system.platform)
    while not controller.done:
        now, finished = calendar.next_instant(controller.next_timer)
        if now == float("inf"):
            raise IncompleteRun(controller.what_is_left())
        watch(now, finished)
        for command in (yield from controller.step_with_answers(now, finished)):
            calendar.take(command)
    return _records(controller, run_times)
