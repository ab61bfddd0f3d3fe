"""What every way of running on SimGrid needs, and the way that has all in the maestro.

The fastest way to run on SimGrid, because no thread is ever switched. An ExecTask cannot be
cancelled and does not survive its host, so runs that cancel or switch hosts use actors.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any, cast

from gridsched.engine import Calendar, Controller, SetPState, TurnOff, TurnOn
from gridsched.engine.execution import Command, Execution
from gridsched.errors import SimulationError
from gridsched.model.estimates import FlopsEstimates
from gridsched.model.limits import time_tolerance
from gridsched.model.run_times import RunTimes
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.sim.library import text_path
from gridsched.sim.world import World, check_clocks

# ----------------------------------------------------------------------
# What every way of running on SimGrid needs, and what those with actors share


def flops_of(system: System, tasks: Tasks, run_times: RunTimes | None) -> Callable[[Execution], float]:
    """Return what tells the flops of an execution that the controller has just made."""
    speed: list[list[float]] = system.platform.speed.tolist()
    if run_times is not None:
        return lambda execution: (
            run_times.run_time(execution.task, execution.host, execution.pstate)
            * speed[execution.host][execution.pstate]
        )
    if type(system.estimates) is FlopsEstimates:
        flops: list[float] = tasks.flops.tolist()
        return lambda execution: flops[execution.task]
    return lambda execution: (execution.estimated_end - execution.start) * speed[execution.host][execution.pstate]


class Session(ABC):
    """One run of a controller on SimGrid.

    Parameters
    ----------
    world : World
    controller : Controller
    run_times : RunTimes, optional
        True durations; default the estimates.

    Attributes
    ----------
    energy_j : dict of str to float
        Joules of each host by SimGrid's plugin, once the run is over.
    links_j : dict of str to float, or None
        Joules of each metered link.
    """

    def __init__(self, world: World, controller: Controller, run_times: RunTimes | None = None) -> None:
        self.world = world
        self.controller = controller
        self.energy_j: dict[str, float] = {}
        self.links_j: dict[str, float] | None = None
        self._flops = flops_of(controller.system, controller.tasks, run_times)
        self._pstate = list(controller.pstates)

    @abstractmethod
    def run(self, deployment_file: Path | None = None) -> None:
        """Simulate to the end.

        Raises
        ------
        GridschedError
            What the controller or SimGrid objects to.
        """

    def set_pstate(self, host: int, pstate: int) -> None:
        """Bring a host into a P-state."""
        if self._pstate[host] != pstate:
            self._pstate[host] = pstate
            self.world.hosts[host].pstate = pstate

    def stuck(self) -> Exception:
        """Return the error for a simulation that stopped early."""
        return SimulationError(
            f"SimGrid stopped at t = {self.world.clock():g} s although {self.controller.open_tasks} tasks are not done."
        )


class ActorSession(Session):
    """A run that an actor leads."""

    def __init__(self, world: World, controller: Controller, run_times: RunTimes | None = None) -> None:
        super().__init__(world, controller, run_times)
        self._simgrid = world.simgrid
        self._engine, self._hosts = world.engine, world.hosts
        self._exec_init = self._simgrid.this_actor.exec_init
        #: when the energy plugin looked last [s] at nodes of an execution on several, at its end
        self._metered = [-1.0] * len(self._hosts)
        self._is_over = False
        self._error: BaseException | None = None

    @abstractmethod
    def deploy(self, deployment_file: Path | None) -> None:
        """Make the actors that are there from the start."""

    def run(self, deployment_file: Path | None = None) -> None:
        """Simulate to the end; raise what an actor raised."""
        self.deploy(deployment_file)
        self.world.engine.run()
        if self._error is not None:
            raise self._error
        if not self._is_over:
            raise self.stuck()

    def on_nodes(self, execution: Execution, nodes: list[int]) -> Any:
        """Return SimGrid's activity of an execution on a set of nodes, without messages.

        The energy plugin does not notice that a node begins such a one, and would charge the idle
        time before as busy: setting the P-state, even to what it is, makes it look. Ends it
        notices: a node that one job leaves and another takes in the same instant needs it not.
        """
        hosts, pstates, pstate = self._hosts, self._pstate, execution.pstate
        clock, metered = self._engine.clock, self._metered
        for h in nodes:
            if metered[h] != clock or pstates[h] != pstate:
                hosts[h].pstate = pstates[h] = pstate
        if execution.part_cores:  # SimGrid gives a core to each time that a host stands there
            nodes = [h for h, n in zip(nodes, execution.cores.tolist(), strict=True) for _ in range(n)]
        flops = [self._flops(execution)] * len(nodes)
        return self._exec_init([hosts[h] for h in nodes], flops, [])

    def was_metered(self, execution: Execution) -> None:
        """Note that the energy plugin has looked at the nodes of an execution that ends now."""
        if execution.hosts is not None:
            clock, metered = self._engine.clock, self._metered
            for h in execution.hosts.tolist():
                metered[h] = clock

    def load_deployment(self, path: Path, **functions: Callable[..., None]) -> None:
        """Let SimGrid make the actors that a deployment file names."""
        for name, function in functions.items():
            self.world.engine.register_actor(name, function)
        self.world.engine.load_deployment(text_path(path))

    def add_actor(self, host: Any, name: str, function: Callable[..., None], *arguments: Any) -> Any:
        """Return a new actor on `host` that calls `function`."""
        return self.world.add_actor(host, name, self.guarded, function, *arguments)

    def guarded(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function in an actor; keep what it raises, because it would abort the process."""
        simgrid = self._simgrid
        try:
            function(*arguments)
        except (simgrid.ActorKilled, simgrid.HostFailureException):
            raise
        except BaseException as error:  # noqa: BLE001 - raised again after the simulation
            self._error = self._error or error
            self._is_over = True
            simgrid.Actor.kill_all()

    def switch(self, command: TurnOff | TurnOn) -> None:
        """Switch a host, in an actor that lives on another."""
        host = self.world.hosts[command.host]
        if isinstance(command, TurnOff):
            host.turn_off()
        else:
            host.turn_on()
            host.pstate = self._pstate[command.host]

    def finish(self) -> None:
        """Meter hosts and links, and end all other actors."""
        self._is_over = True
        self.energy_j = self.world.metered_energy()
        self.links_j = self.world.metered_link_energy()
        self._simgrid.Actor.kill_all()


# ----------------------------------------------------------------------
# All in the maestro: one ExecTask a core, decisions in its completion callback


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

    The calendar says which executions make up the next instant; the session waits until SimGrid
    has reported all of them, compares the clocks, and only then lets the controller decide.

    Parameters
    ----------
    world : World
    controller : Controller
    run_times : RunTimes, optional
        True durations; default the estimates.
    """

    def __init__(self, world: World, controller: Controller, run_times: RunTimes | None = None) -> None:
        super().__init__(world, controller, run_times)
        self._engine = world.engine
        self._calendar = Calendar(run_times, world.platform)
        self._time = 0.0
        self._finished: list[Execution] = []
        #: what the controller has decided already for the next instant, in which nothing ends
        self._commands: list[Command] | None = None
        self._n_awaited = 0
        self._is_deciding = False
        # plain assignment to Task.amount raises in SimGrid 4.1: its setter is bound wrongly
        self._set_amount = world.simgrid.Task.__dict__["amount"].fset
        self._free: list[list[_Core]] = [
            [self._make_core(h, c) for c in range(host.cores)] for h, host in enumerate(world.platform.hosts)
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
            self.world.engine.run()
        except _Ended:
            return
        raise self.stuck()

    def _make_core(self, host: int, core: int) -> _Core:
        task = self.world.simgrid.ExecTask.init(f"{host}/{core}", 1.0, self.world.hosts[host])
        made = _Core(task)
        task.on_this_completion_cb(functools.partial(self._completed, made))
        return made

    # ------------------------------------------------------------------ told by SimGrid

    def _completed(self, core: _Core, _task: Any) -> None:
        """The execution on a core has ended."""
        execution = core.execution
        assert execution is not None
        core.execution = None
        self._free[execution.host].append(core)
        execution.is_reported = True
        if execution.is_awaited:
            self._n_awaited -= 1
            if not self._n_awaited and not self._is_deciding:
                self._proceed()

    def _rung(self, alarm: Any, _task: Any) -> None:
        """A time at which something is to be done has come."""
        self._idle_alarms.append(alarm)
        clock = self._engine.clock
        self._alarms = {time for time in self._alarms if time > clock}
        if not self._n_awaited and not self._is_deciding:
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
            if not execution.is_reported:
                execution.is_awaited = True
                self._n_awaited += 1
        if timer <= time and timer not in self._alarms and timer > self._engine.clock:
            self._alarms.add(timer)
            self._set_alarm(timer)

    def _proceed(self) -> None:
        """Let the controller decide for every instant that SimGrid has fully reached."""
        self._is_deciding = True
        controller, start = self.controller, self._start
        while not self._n_awaited:
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
                    self.set_pstate(command.host, command.pstate)
                else:
                    start(command)
            if controller.done:
                self.energy_j = self.world.metered_energy()
                raise _Ended
            self._look_ahead()
        self._is_deciding = False

    def _start(self, execution: Command) -> None:
        """Fire the ExecTask of a free core; other commands take another way of running."""
        assert isinstance(execution, Execution)
        host = execution.host
        self._calendar.start(execution)
        if self._pstate[host] != execution.pstate:
            self.set_pstate(host, execution.pstate)
        core = self._free[host].pop()
        core.execution = execution
        self._set_amount(core.task, self._flops(execution), "instance_0")
        core.fire(1)

    def _set_alarm(self, time: float) -> None:
        """Let an ExecTask on the clock host (1 flop/s) run until `time` [s]."""
        if self._idle_alarms:
            alarm = self._idle_alarms.pop()
        else:
            alarm = self.world.simgrid.ExecTask.init(f"alarm{len(self._all_alarms)}", 1.0, self.world.clock_host)
            alarm.on_this_completion_cb(functools.partial(self._rung, alarm))
            self._all_alarms.append(alarm)
        self._set_amount(alarm, time - self.world.clock(), "instance_0")
        alarm.enqueue_firings(1)
