"""What a driver is: the clock of a run, and what takes time on hosts and links."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from math import inf

from gridsched.engine import Controller
from gridsched.engine.execution import Activity, Command, HostCommand, SetPState, Stop, TurnOff, TurnOn
from gridsched.errors import IncompleteRun
from gridsched.policy.decisions import Decision
from gridsched.policy.state import State


class Driver(ABC):
    """What simulates a run: six verbs, `now`, `begin`, `cancel`, `remaining`, `host` and `advance`.

    It knows activities and hosts; of tasks, queues and schedulers, only a `Controller` does.

    Attributes
    ----------
    now : float
        The clock [s].
    """

    now: float

    @abstractmethod
    def begin(self, activity: Activity) -> None:
        """Begin an activity now; `advance` returns it when it has ended."""

    @abstractmethod
    def cancel(self, activity: Activity) -> None:
        """End an activity now; `advance` does not return it."""

    @abstractmethod
    def remaining(self, activity: Activity) -> float:
        """Return which share of an activity is left now, from 0 to 1."""

    @abstractmethod
    def host(self, change: HostCommand) -> None:
        """Switch a host, or bring it into another P-state."""

    @abstractmethod
    def advance(self, until: float) -> tuple[float, list[Activity]]:
        """Let time pass until an activity ends, but no longer than until a time [s].

        Parameters
        ----------
        until : float
            [s]; infinite: as long as it takes.

        Returns
        -------
        time : float
            Now [s]; infinite where nothing is left that would ever end.
        ended : list of Activity
            What has ended then; empty if only the time has come.
        """

    def carry_out(self, command: Command) -> None:
        """Do what a controller commands."""
        if isinstance(command, Stop):
            self.cancel(command.activity)
        elif isinstance(command, SetPState | TurnOff | TurnOn):
            self.host(command)
        else:
            self.begin(command)


def play(controller: Controller, driver: Driver) -> None:
    """Run a controller to its end.

    Parameters
    ----------
    controller : Controller
        Fresh; it is used up.
    driver : Driver

    Raises
    ------
    InvalidDecision, IncompleteRun
        As the controller does.
    """
    controller.attach(driver.remaining)
    advance, carry_out = driver.advance, driver.carry_out
    while not controller.done:
        now, ended = advance(controller.next_timer)
        if now == inf:
            raise IncompleteRun(controller.what_is_left())
        for command in controller.step(now, ended):
            carry_out(command)


def play_with_answers(
    controller: Controller, driver: Driver, watch: Callable[[float, Sequence[Activity]], None]
) -> Generator[State, Iterable[Decision], None]:
    """Do as `play` does, but as a generator that receives the decisions.

    Yields each state in which the policy would be asked, and is sent the decisions; ``watch(now, ended)`` is called
    at each instant, before anything of it is applied.

    Raises
    ------
    InvalidDecision, IncompleteRun
        As the controller does.
    """
    controller.attach(driver.remaining)
    while not controller.done:
        now, ended = driver.advance(controller.next_timer)
        if now == inf:
            raise IncompleteRun(controller.what_is_left())
        watch(now, ended)
        for command in (yield from controller.step_with_answers(now, ended)):
            driver.carry_out(command)
