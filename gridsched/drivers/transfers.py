"""Tasks that send data to each other over the platform's links.

SimGrid's clock counts here: how long data take that share links, only SimGrid knows. A task of several cores of its
host is as many executions, one a core, which begin and end together: SimGrid's model of parallel tasks, which has
executions on several cores, has other models of links.
"""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any

from gridsched.drivers.session import ActorSession
from gridsched.drivers.simulated_platform import SimulatedPlatform
from gridsched.engine import Controller, Execution, SetPState, Stop
from gridsched.engine.execution import Command, Transfer
from gridsched.errors import IncompleteRun
from gridsched.model.run_times import RunTimes


class TransferSession(ActorSession):
    """A run in which one actor starts executions and sends data, and waits for whatever ends next.

    Parameters
    ----------
    simulated : SimulatedPlatform
    controller : Controller
    run_times : RunTimes, optional
        True durations; default the estimates.
    """

    def __init__(self, simulated: SimulatedPlatform, controller: Controller, run_times: RunTimes | None = None) -> None:
        super().__init__(simulated, controller, run_times)
        self._in_flight = self._simgrid.ActivitySet()
        #: what each of SimGrid's activities is, by its address; kept, since a lost one is cancelled
        self._named: dict[Any, tuple[Any, Execution | Transfer]] = {}
        #: of each execution, those that have not ended
        self._activities: dict[Execution, list[Any]] = {}

    def deploy(self, deployment_file: Path | None) -> None:
        """Make the leading actor."""
        self.deploy_coordinator(deployment_file, self._coordinate)

    def _coordinate(self) -> None:
        """Step the controller whenever something has ended or is due."""
        controller = self.controller
        while True:
            timer = controller.next_timer
            finished = self._ended_next(timer)
            time = self._engine.clock
            if not finished:
                if timer == inf:
                    raise IncompleteRun(controller.what_is_left())
                time = timer
            for command in controller.step(time, finished):
                self._carry_out(command)
            if controller.done:
                break
        self.finish()

    def _ended_next(self, timer: float) -> list[Execution | Transfer]:
        """Wait until something ends or the timer is due [s]; return what has ended by then."""
        left = timer - self._engine.clock
        if not self._named:
            if left < inf and left > 0:
                self._simgrid.this_actor.sleep_until(timer)
            return []
        if left <= 0:
            return self._all_ended([])
        try:
            first = self._in_flight.wait_any() if left == inf else self._in_flight.wait_any_for(left)
        except self._simgrid.TimeoutException:
            return self._all_ended([])
        return self._all_ended(self._what(first))

    def _all_ended(self, ended: list[Execution | Transfer]) -> list[Execution | Transfer]:
        """Add what else has ended by now."""
        test_any = self._in_flight.test_any
        while self._named and (other := test_any()) is not None:  # each look costs a change of threads
            ended += self._what(other)
        return ended

    def _what(self, activity: Any) -> list[Execution | Transfer]:
        """Return what has ended with an activity: nothing while other cores of the task compute."""
        _, what = self._named.pop(activity)
        if isinstance(what, Execution):
            if len(left := self._activities[what]) > 1:
                left.remove(activity)
                return []
            del self._activities[what]
            what.end = self._engine.clock
        return [what]

    def _carry_out(self, command: Command) -> None:
        if isinstance(command, Execution):
            self.set_pstate(command.host, command.pstate)
            for _ in range(1 if command.hosts is None else command.cores.item(0)):
                self._watch(self._core_of(command).start(), command)
        elif isinstance(command, Transfer):
            source, target = self._hosts[command.source], self._hosts[command.target]
            self._watch(self.message(source, target, command.size_bytes).start(), command)
        elif isinstance(command, Stop):
            for activity in self._activities.pop(command.execution):
                self._in_flight.erase(activity)
                del self._named[activity]
                activity.cancel()
        elif isinstance(command, SetPState):
            self.set_pstate(command.host, command.pstate)
        else:
            self.switch(command)

    def _core_of(self, execution: Execution) -> Any:
        """Return SimGrid's activity of one core of an execution."""
        activity = self._exec_init(self._flops(execution))
        activity.host = self._hosts[execution.host]
        return activity

    def _watch(self, activity: Any, what: Execution | Transfer) -> None:
        self._named[activity] = activity, what
        if isinstance(what, Execution):
            self._activities.setdefault(what, []).append(activity)
        self._in_flight.push(activity)
