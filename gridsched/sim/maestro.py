"""All in the maestro: one ExecTask a core, decisions in its completion callback.

The fastest way to run on SimGrid, because no thread is ever switched. An ExecTask cannot be
cancelled and does not survive its host, so runs that cancel or switch hosts use actors.
"""

from __future__ import annotations

import functools
from typing import Any

from gridsched.engine import Calendar, Controller, Execution, Stop, TurnOff, TurnOn
from gridsched.errors import SimulationError
from gridsched.sim.session import Session
from gridsched.sim.work import Work
from gridsched.sim.world import World


class _Ended(Exception):
    """Raised in a callback to leave the simulation when everything is done."""


class _Core:
    """One core of a host: an ExecTask that serves one execution after the other."""

    __slots__ = ("execution", "task")

    def __init__(self, task: Any) -> None:
        self.task = task
        self.execution: Execution | None = None


class MaestroSession(Session):
    """A run on ExecTasks.

    Parameters
    ----------
    world : World
    controller : Controller
    work : Work
        How many flops each execution is.
    """

    def __init__(self, world: World, controller: Controller, work: Work) -> None:
        super().__init__(controller, Calendar(work.run_times))
        self.world = world
        self.energy_j: dict[str, float] = {}
        self._flops = work.flops
        # plain assignment to Task.amount raises in SimGrid 4.1: its setter is bound wrongly
        self._set_amount = world.simgrid.Task.__dict__["amount"].fset
        self._pstate = list(controller.pstates)
        self._free: list[list[_Core]] = [
            [self._make_core(h, c) for c in range(host.cores)]
            for h, host in enumerate(world.platform.hosts)
        ]
        self._cores = [core for cores in self._free for core in cores]  # keeps them alive
        self._idle_alarms: list[Any] = []
        self._all_alarms: list[Any] = []

    def _make_core(self, host: int, core: int) -> _Core:
        task = self.world.simgrid.ExecTask.init(f"{host}/{core}", 1.0, self.world.hosts[host])
        made = _Core(task)
        task.on_this_completion_cb(functools.partial(self._completed, made))
        return made

    def _completed(self, core: _Core, _task: Any) -> None:
        execution = core.execution
        core.execution = None
        self._free[execution.host].append(core)
        self.report(execution)

    # ------------------------------------------------------------------ Session

    def clock(self) -> float:
        """Return SimGrid's clock [s]."""
        return self.world.engine.clock

    def start(self, execution: Execution) -> None:
        """Fire the ExecTask of a free core."""
        host = execution.host
        if self._pstate[host] != execution.pstate:
            self._pstate[host] = execution.pstate
            self.world.hosts[host].pstate = execution.pstate
        core = self._free[host].pop()
        core.execution = execution
        self._set_amount(core.task, self._flops(execution), "instance_0")
        core.task.enqueue_firings(1)

    def carry_out(self, command: Stop | TurnOff | TurnOn) -> None:
        """Refuse: the actor way is chosen for policies that do this."""
        raise SimulationError(f"{command!r} needs the actor way of running.")

    def set_alarm(self, time: float) -> None:
        """Let an ExecTask on the clock host (1 flop/s) run until `time` [s]."""
        if self._idle_alarms:
            alarm = self._idle_alarms.pop()
        else:
            alarm = self.world.simgrid.ExecTask.init(
                f"alarm{len(self._all_alarms)}", 1.0, self.world.clock_host
            )
            alarm.on_this_completion_cb(functools.partial(self._rung, alarm))
            self._all_alarms.append(alarm)
        self._set_amount(alarm, time - self.clock(), "instance_0")
        alarm.enqueue_firings(1)

    def _rung(self, alarm: Any, _task: Any) -> None:
        self._idle_alarms.append(alarm)
        self.alarm()

    def end(self) -> None:
        """Meter the hosts and leave the simulation, alarms that are still set or not."""
        self.energy_j = self.world.metered_energy()
        raise _Ended

    def run(self) -> None:
        """Simulate to the end.

        Raises
        ------
        SimulationError
            If SimGrid stops before all is done.
        """
        try:
            self.begin()
            self.world.engine.run()
        except _Ended:
            return
        raise SimulationError(
            f"SimGrid stopped at t = {self.clock():g} s although "
            f"{self.controller.open_tasks} tasks are not done."
        )
