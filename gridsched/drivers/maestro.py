"""All in the maestro: one ExecTask a core, decisions in its completion callback.

The fastest way to run on SimGrid, because no thread is ever switched. An ExecTask cannot be
cancelled and does not survive its host, so runs that cancel or switch hosts use actors.
"""

from __future__ import annotations

import functools
from math import inf
from pathlib import Path
from typing import Any, cast

from gridsched.drivers.activity_driver import flops_of
from gridsched.drivers.calendar import Calendar
from gridsched.drivers.session import Session
from gridsched.drivers.simulated_platform import SimulatedPlatform, check_clocks
from gridsched.engine import Controller, SetPState
from gridsched.engine.execution import Command, Execution
from gridsched.model.limits import time_tolerance
from gridsched.model.run_times import RunTimes


class _Ended(Exception):
    """Raised in a callback to leave the simulation when everything is done."""


class _Core:
    """One core of a host: an ExecTask that serves one execution after the other."""

    __slots__ = ("execution", "fire", "task")

    def __init__(self, task: Any) -> None:
        self.task = task
        self.fire = task.enqueue_firings
        self.execution: Execution | None = None


class MaestroSession(Session):
    """A run on ExecTasks.

    The calendar specifies which executions make up the next instant; the session waits until SimGrid
    has reported all of them, compares the clocks, and only then lets the controller decide.

    Parameters
    ----------
    simulated : SimulatedPlatform
    controller : Controller
    run_times : RunTimes, optional
        True durations; default the estimates.
    """

    def __init__(self, simulated: SimulatedPlatform, controller: Controller, run_times: RunTimes | None = None) -> None:
        super().__init__(simulated, controller)
        self._flops = flops_of(controller.system, controller.tasks, run_times)
        self._pstate = list(controller.pstates)
        self._engine = simulated.engine
        self._calendar = Calendar(run_times, simulated.platform)
        self._time = 0.0
        self._finished: list[Execution] = []
        #: what the controller has decided already for the next instant, in which nothing ends
        self._commands: list[Command] | None = None
        #: what the next instant ends and SimGrid has not reported yet, and what it has reported before its instant
        self._awaited: set[Execution] = set()
        self._reported: set[Execution] = set()
        self._is_deciding = False
        # plain assignment to Task.amount raises in SimGrid 4.1: its setter is bound wrongly
        self._set_amount = simulated.simgrid.Task.__dict__["amount"].fset
        self._free: list[list[_Core]] = [
            [self._make_core(h, c) for c in range(host.cores)] for h, host in enumerate(simulated.platform.hosts)
        ]
        self._cores = [core for cores in self._free for core in cores]  # keeps them alive
        self._alarms: set[float] = set()
        self._idle_alarms: list[Any] = []
        self._all_alarms: list[Any] = []

    def run(self, deployment_file: Path | None = None) -> None:
        """Simulate to the end.

        Raises
        ------
        SimulationError
            If SimGrid stops before all is done.
        """
        try:
            self._look_ahead()
            self._proceed()
            self.simulated.engine.run()
        except _Ended:
            return
        raise self.stuck()

    def _make_core(self, host: int, core: int) -> _Core:
        task = self.simulated.simgrid.ExecTask.init(f"{host}/{core}", 1.0, self.simulated.hosts[host])
        made = _Core(task)
        task.on_this_completion_cb(functools.partial(self._completed, made))
        return made

    # ------------------------------------------------------------------ called by SimGrid

    def _completed(self, core: _Core, _task: Any) -> None:
        """The execution on a core has ended."""
        execution = core.execution
        assert execution is not None
        core.execution = None
        self._free[execution.host].append(core)
        awaited = self._awaited
        if execution in awaited:
            awaited.remove(execution)
            if not awaited and not self._is_deciding:
                self._proceed()
        else:
            self._reported.add(execution)

    def _rung(self, alarm: Any, _task: Any) -> None:
        """A time at which something is to be done has come."""
        self._idle_alarms.append(alarm)
        clock = self._engine.clock
        self._alarms = {time for time in self._alarms if time > clock}
        if not self._awaited and not self._is_deciding:
            self._proceed()

    # ------------------------------------------------------------------ deciding

    def _look_ahead(self) -> None:
        """Find the next instant, and see to it that SimGrid wakes us for it.

        Where nothing ends, the controller decides before SimGrid is there; if there is nothing to
        be done either, as at most mapping events, SimGrid's clock need not stop: an alarm costs
        as much as a task, and SimGrid keeps a kilobyte for each.
        """
        controller = self.controller
        while True:
            timer = controller.next_timer
            time, finished = self._calendar.next_instant(timer)
            commands = None
            if not finished and time < inf:
                commands = controller.step(time, finished)
            if commands is None or commands or controller.done:
                break
        self._time, self._commands = time, commands
        self._finished = cast(list[Execution], finished)  # nothing is sent
        for execution in self._finished:
            if execution in self._reported:
                self._reported.remove(execution)
            else:
                self._awaited.add(execution)
        if timer <= time and timer not in self._alarms and timer > self._engine.clock:
            self._alarms.add(timer)
            self._set_alarm(timer)

    def _proceed(self) -> None:
        """Let the controller decide for every instant that SimGrid has fully reached."""
        self._is_deciding = True
        controller, start = self.controller, self._start
        while not self._awaited:
            clock, time = self._engine.clock, self._time
            if clock != time:
                if not clock >= time - time_tolerance(time):  # true for an infinite time, too
                    break
                check_clocks(clock, time)
            commands = self._commands
            if commands is None:
                commands = controller.step(time, self._finished)
            for command in commands:
                if command.__class__ is SetPState:
                    self._set_pstate(command.host, command.pstate)
                else:
                    start(command)
            if controller.done:
                self.finish()
                raise _Ended
            self._look_ahead()
        self._is_deciding = False

    def _start(self, execution: Command) -> None:
        """Fire the ExecTask of a free core; other commands need another execution mode."""
        assert isinstance(execution, Execution)
        host, flops = execution.host, self._flops(execution)
        self._calendar.start(execution)
        if self._pstate[host] != execution.pstate:
            self._set_pstate(host, execution.pstate)
        core = self._free[host].pop()
        core.execution = execution
        self._set_amount(core.task, flops, "instance_0")
        core.fire(1)

    def _set_pstate(self, host: int, pstate: int) -> None:
        """Bring a host into a P-state."""
        if self._pstate[host] != pstate:
            self._pstate[host] = pstate
            self.simulated.hosts[host].pstate = pstate

    def _set_alarm(self, time: float) -> None:
        """Let an ExecTask on the clock host (1 flop/s) run until `time` [s]."""
        if self._idle_alarms:
            alarm = self._idle_alarms.pop()
        else:
            alarm = self.simulated.simgrid.ExecTask.init(
                f"alarm{len(self._all_alarms)}", 1.0, self.simulated.clock_host
            )
            alarm.on_this_completion_cb(functools.partial(self._rung, alarm))
            self._all_alarms.append(alarm)
        self._set_amount(alarm, time - self.simulated.clock(), "instance_0")
        alarm.enqueue_firings(1)
