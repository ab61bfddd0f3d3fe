"""One actor leads: it starts executions on all hosts and waits for the one that ends next.

The way wherever something runs on sets of nodes, or is cancelled or switched, and no message is
sent. The calendar knows which execution ends next, so the actor waits for that one alone, with no
worker actor on any core (each would be a thread). It lives on the clock host, so that it can switch
all others.

SimGrid's load is what a host computes over what it could. An execution on several hosts takes all
of each, and knows no bound; so a job is one bound execution on each of its nodes, all as long. The
Python module cannot set bounds: they are set through SimGrid's C interface.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ctypes import c_char_p, c_double, c_void_p
from math import inf
from pathlib import Path
from typing import Any, cast

from gridsched.engine import Calendar, Controller, Execution, SetPState, Stop
from gridsched.engine.execution import Transfer
from gridsched.errors import IncompleteRun, SimulationError
from gridsched.model.host_profiles import SlowestOf
from gridsched.model.limits import time_tolerance
from gridsched.model.run_times import RunTimes
from gridsched.sim.library import c_function
from gridsched.sim.session import ActorSession
from gridsched.sim.world import World, check_clocks


class LeadSession(ActorSession):
    """A run on executions that one actor starts, awaits and cancels.

    Parameters
    ----------
    world : World
    controller : Controller
    run_times : RunTimes, optional
        True durations; default the estimates.
    """

    def __init__(self, world: World, controller: Controller, run_times: RunTimes | None = None) -> None:
        super().__init__(world, controller, run_times)
        self._calendar = Calendar(run_times, world.platform)
        #: SimGrid's activity of each running execution
        self._activities: dict[Execution, Any] = {}
        #: dates [s] at which the speed of nodes changes; the next one
        self._changes = self._dates_of_changes()
        self._next_change = next(self._changes, inf)

    def _dates_of_changes(self) -> Iterator[float]:
        """Yield when the energy plugin has to look at the nodes of executions on several.

        When the speed of one changes, it does not notice that the others have another load.
        """
        profiles = tuple(self.world.platform.profiles.speed_of.values())
        if self.controller.has_sets and profiles:
            yield from (date for date, _ in SlowestOf(profiles, all_change=True).events())

    def deploy(self, deployment_file: Path | None) -> None:
        """Make the leading actor; where no message is sent, a deployment's actors have no part."""
        if deployment_file is not None:
            self.load_deployment(deployment_file, master=_take_no_part, worker=_take_no_part)
        self.add_actor(self.world.clock_host, "lead", self._lead)

    def _lead(self) -> None:
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
                host = self.world.platform.hosts[execution.host].name
                raise SimulationError(
                    f"Host {host!r} failed at t = {self.world.clock():g} s while a task ran on it, "
                    "although nobody switched it off."
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


def _take_no_part(*_arguments: str) -> None:
    """Be an actor of a deployment file in a run without messages."""


# ----------------------------------------------------------------------
# Jobs that draw a share of their nodes' range of power: executions that are bound below full speed


class BoundExecutions:
    """One execution on a core of each of some hosts, of the same flops and speed; a host may stand there again.

    Parameters
    ----------
    hosts : sequence of int
        Addresses of SimGrid's hosts.
    flops : float
        [flop].
    speed : float
        [flop/s].
    """

    def __init__(self, hosts: Sequence[int], flops: float, speed: float) -> None:
        self._hosts, self._flops, self._speed = hosts, flops, speed
        self._started: list[int] = []

    def start(self) -> BoundExecutions:
        """Start them all; to be called by an actor."""
        make = c_function("sg_actor_exec_init", c_double, result=c_void_p)
        set_host = c_function("sg_exec_set_host", c_void_p, c_void_p)
        set_bound = c_function("sg_exec_set_bound", c_void_p, c_double)
        start = c_function("sg_exec_start", c_void_p)
        for host in self._hosts:
            execution = make(self._flops)
            set_host(execution, host)
            set_bound(execution, self._speed)
            start(execution)
            self._started.append(execution)
        return self

    def wait(self) -> None:
        """Wait until they have ended, in one instant."""
        wait = c_function("sg_exec_wait", c_void_p)
        for execution in self._started:
            wait(execution)

    def cancel(self) -> None:
        """End them now."""
        cancel = c_function("sg_exec_cancel", c_void_p)
        for execution in self._started:
            cancel(execution)


class MeteredSession(LeadSession):
    """A run whose jobs have loads of their own (`RunTimes.load`).

    Parameters
    ----------
    world : World
    controller : Controller
    run_times : RunTimes, optional
        True durations; default the estimates.
    """

    def __init__(self, world: World, controller: Controller, run_times: RunTimes | None = None) -> None:
        super().__init__(world, controller, run_times)
        assert run_times is not None  # as the session was chosen
        by_name = c_function("sg_host_by_name", c_char_p, result=c_void_p)
        self._addresses: list[int] = [by_name(host.name.encode()) for host in world.platform.hosts]
        self._load: list[float] = run_times.load.tolist()
        self._speeds: list[list[float]] = world.platform.speed.tolist()

    def on_nodes(self, execution: Execution, nodes: list[int]) -> BoundExecutions:
        """Return the executions of a job on the cores of its nodes, bound to its load."""
        for h in nodes:
            self.set_pstate(h, execution.pstate)
        load = self._load[execution.task]
        speed = load * self._speeds[execution.host][execution.pstate]
        each = zip(nodes, execution.cores.tolist(), strict=True)
        return BoundExecutions(
            [self._addresses[h] for h, n in each for _ in range(n)], load * self._flops(execution), speed
        )

    def _on_core(self, execution: Execution) -> BoundExecutions:
        """Return the execution of a task on a core, bound to its load."""
        return self.on_nodes(execution, [execution.host])
