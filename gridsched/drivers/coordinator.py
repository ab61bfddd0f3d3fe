"""One actor leads: it starts executions on all hosts and waits for the one that ends next.

The mode wherever something runs on sets of nodes, or is cancelled or switched, and no message is
sent. The calendar knows which execution ends next, so the actor waits for that one alone, with no
worker actor on any core (each would be a thread). It lives on the clock host, so that it can switch
all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any, cast

from gridsched.drivers.reference import Calendar
from gridsched.drivers.session import ActorSession
from gridsched.drivers.simulated_platform import SimulatedPlatform, check_clocks
from gridsched.engine import Controller, Execution, SetPState, Stop
from gridsched.engine.execution import Transfer
from gridsched.errors import IncompleteRun, SimulationError
from gridsched.model.host_profiles import SlowestOf
from gridsched.model.limits import time_tolerance
from gridsched.model.run_times import RunTimes


class CoordinatorSession(ActorSession):
    """A run on executions that one actor starts, awaits and cancels.

    Parameters
    ----------
    simulated : SimulatedPlatform
    controller : Controller
    run_times : RunTimes, optional
        True durations; default the estimates.
    """

    def __init__(self, simulated: SimulatedPlatform, controller: Controller, run_times: RunTimes | None = None) -> None:
        super().__init__(simulated, controller, run_times)
        self._calendar = Calendar(run_times, simulated.platform)
        #: SimGrid's activity of each running execution
        self._activities: dict[Execution, Any] = {}
        #: dates [s] at which the speed of nodes changes; the next one
        self._changes = self._dates_of_changes()
        self._next_change = next(self._changes, inf)

    def _dates_of_changes(self) -> Iterator[float]:
        """Yield when the energy plugin has to look at the nodes of executions on several.

        When the speed of one changes, it does not notice that the others have another load.
        """
        profiles = tuple(self.simulated.platform.profiles.speed_of.values())
        if self.controller.has_sets and profiles:
            yield from (date for date, _ in SlowestOf(profiles, all_change=True).events())

    def deploy(self, deployment_file: Path | None) -> None:
        """Make the leading actor; where no message is sent, a deployment's actors have no part."""
        self.deploy_coordinator(deployment_file, self._coordinate)

    def _coordinate(self) -> None:
        """Step the controller at each instant; what ends in it, SimGrid has ended before."""
        controller, calendar = self.controller, self._calendar
        while not controller.done:
            time, ended = calendar.next_instant(controller.next_timer)
            finished = cast(list[Execution], ended)  # nothing is sent
            if time == inf:
                raise IncompleteRun(controller.what_is_left())
            if finished:
                self._wait(time, finished)
            commands = controller.step(time, finished)
            # where nothing ends and nothing is to be done, SimGrid's clock may stay behind: each
            # stop of it costs as much as a start
            if not finished and (commands or controller.done):
                self._wait(time, finished)
            for command in commands:
                if isinstance(command, Execution):
                    self._start(command)
                elif isinstance(command, Stop):
                    self._activities.pop(command.execution).cancel()
                elif isinstance(command, SetPState):
                    self.set_pstate(command.host, command.pstate)
                elif not isinstance(command, Transfer):
                    self.switch(command)
        self.finish()

    def _wait(self, time: float, finished: list[Execution]) -> None:
        """Wait until SimGrid has reached an instant [s] and ended what ends in it."""
        while self._next_change < time:
            self._look_at_nodes(self._next_change)
            self._next_change = next(self._changes, inf)
        for execution in finished:
            try:
                self._activities.pop(execution).wait()
                self.was_metered(execution)
            except self._simgrid.HostFailureException:
                host = self.simulated.platform.hosts[execution.host].name
                raise SimulationError(
                    f"Host {host!r} failed at t = {self.simulated.clock():g} s while a task ran on it, "
                    "although no decision switched it off."
                ) from None
        clock = self._engine.clock
        if clock != time:
            if clock < time - time_tolerance(time):
                self._simgrid.this_actor.sleep_until(time)
            check_clocks(self._engine.clock, time)

    def _look_at_nodes(self, date: float) -> None:
        """Let the energy plugin look at all nodes that compute, at a date [s]."""
        if date > self._engine.clock:
            self._simgrid.this_actor.sleep_until(date)
        for execution in self._activities:
            for h in execution.all_hosts:
                self._hosts[h].pstate = self._pstate[h]

    def _start(self, execution: Execution) -> None:
        """Start an execution on its host."""
        self._calendar.start(execution)
        if execution.hosts is None:
            host = execution.host
            if self._pstate[host] != execution.pstate:
                self.set_pstate(host, execution.pstate)
            activity = self._on_core(execution)
        else:
            activity = self.on_nodes(execution, execution.hosts.tolist())
        self._activities[execution] = activity.start()

    def _on_core(self, execution: Execution) -> Any:
        """Return SimGrid's activity of an execution on a core of its host."""
        activity = self._exec_init(self._flops(execution))
        activity.host = self._hosts[execution.host]
        return activity
