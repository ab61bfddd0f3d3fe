"""Controller and calendar beside SimGrid's clock, for runs without a network.

The calendar says which executions make up the next instant; the session waits until SimGrid has
reported all of them, compares the clocks, and only then lets the controller decide.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NoReturn

from gridsched.engine import Calendar, Controller, Execution, Stop, TurnOff, TurnOn
from gridsched.engine.calendar import instant_width
from gridsched.errors import SimulationError


class Session(ABC):
    """One run in step with SimGrid; subclasses carry out the commands.

    Parameters
    ----------
    controller : Controller
    calendar : Calendar
    """

    def __init__(self, controller: Controller, calendar: Calendar) -> None:
        self.controller = controller
        self._calendar = calendar
        self._time = 0.0
        self._finished: list[Execution] = []
        self._n_awaited = 0
        self._alarms: set[float] = set()
        self._is_deciding = False

    @abstractmethod
    def clock(self) -> float:
        """Return SimGrid's clock [s]."""

    @abstractmethod
    def start(self, execution: Execution) -> None:
        """Start an execution now."""

    @abstractmethod
    def carry_out(self, command: Stop | TurnOff | TurnOn) -> None:
        """Stop an execution or switch a host now."""

    def pass_done(self) -> None:  # noqa: B027 - most drivers have nothing left to do
        """All decisions of the present time are taken and carried out."""

    @abstractmethod
    def set_alarm(self, time: float) -> None:
        """Have `alarm` called at `time` [s]."""

    @abstractmethod
    def end(self) -> None:
        """Everything is done: meter the hosts and stop the simulation."""

    # ------------------------------------------------------------------ told by SimGrid

    def begin(self) -> None:
        """Look at time 0; call it when the simulation starts."""
        self._look_ahead()
        self._proceed()

    def report(self, execution: Execution) -> None:
        """SimGrid says that the execution has ended."""
        execution.is_reported = True
        if execution.is_awaited:
            self._n_awaited -= 1
            if not self._n_awaited and not self._is_deciding:
                self._proceed()

    def alarm(self) -> None:
        """A time the controller asked for has come."""
        if not self._n_awaited and not self._is_deciding:
            self._proceed()

    # ------------------------------------------------------------------ deciding

    def _look_ahead(self) -> None:
        """Find the next instant, and see to it that SimGrid wakes us for it."""
        timer = self.controller.next_timer
        self._time, self._finished = self._calendar.next_instant(timer)
        for execution in self._finished:
            if not execution.is_reported:
                execution.is_awaited = True
                self._n_awaited += 1
        if timer <= self._time and timer not in self._alarms and timer > self.clock():
            self._alarms.add(timer)
            self.set_alarm(timer)

    def _proceed(self) -> None:
        """Let the controller decide for every instant that SimGrid has fully reached."""
        self._is_deciding = True
        while not self._n_awaited:
            clock, time = self.clock(), self._time
            if not clock >= time - instant_width(time):  # true for an infinite time, too
                break
            if abs(clock - time) > 1e-9 * max(1.0, time):
                self._clocks_differ(clock, time)
            for command in self.controller.step(time, self._finished):
                if command.__class__ is Execution:
                    self._calendar.start(command)
                    self.start(command)
                else:
                    self.carry_out(command)
            if self.controller.done:
                self.end()
                return
            self._look_ahead()
        self._is_deciding = False
        self.pass_done()

    def _clocks_differ(self, clock: float, time: float) -> NoReturn:
        raise SimulationError(
            f"SimGrid's clock says {clock!r} s where the model says {time!r} s; they may differ "
            "by 1e-9 relative. Is another load on the hosts, or a speed profile?"
        )
