"""SimGrid as a driver: one actor begins SimGrid's activities, and waits for whatever ends next.

Of executions that compute, the calendar knows the end, so that the actor waits for the next one alone. When data
arrive that share links, only SimGrid knows: these activities are in one set, and whatever of it ends first is next.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any, Protocol

import numpy as np

from gridsched.drivers.bound_executions import BoundExecutions
from gridsched.drivers.calendar import Calendar
from gridsched.drivers.driver import Driver
from gridsched.drivers.simgrid_library import HOSTS
from gridsched.drivers.simulated_platform import SimulatedPlatform, check_clocks
from gridsched.engine import Controller
from gridsched.engine.execution import (
    Activity,
    Command,
    Execution,
    HostCommand,
    ParallelStep,
    SetPState,
    Transfer,
    TurnOff,
)
from gridsched.errors import InputError, SimulationError
from gridsched.model.estimates import FlopsEstimates
from gridsched.model.host_profiles import SlowestOf
from gridsched.model.limits import time_tolerance
from gridsched.model.run_times import RunTimes
from gridsched.model.system import System
from gridsched.model.tasks import Tasks


def flops_of(system: System, tasks: Tasks, run_times: RunTimes | None) -> Callable[[Execution], float]:
    """Return the flops of an execution, on each of its cores, that begins to compute and whose end is not fixed yet."""
    speed: list[list[float]] = system.platform.speed.tolist()
    if run_times is not None:
        return lambda execution: (
            run_times.run_time(execution.task, execution.host, execution.pstate)
            * speed[execution.host][execution.pstate]
        )
    if type(system.estimates) is FlopsEstimates:
        flops = array("d", tasks.flops.tobytes())  # a list takes four times as much
        return lambda execution: flops[execution.task]
    return lambda execution: (execution.end - execution.start) * speed[execution.host][execution.pstate]


class SimGridActivity(Protocol):
    """What is used of SimGrid's activities."""

    def start(self) -> Any:
        """Start it; return it."""

    def wait(self) -> Any:
        """Wait until it has ended."""

    def cancel(self) -> Any:
        """End it now."""


class Several:
    """Activities that begin and end together: one on each core of an execution.

    Parameters
    ----------
    activities : sequence of SimGridActivity
    """

    def __init__(self, activities: Sequence[SimGridActivity]) -> None:
        self._activities = activities

    def start(self) -> Several:
        """Start them all."""
        for each in self._activities:
            each.start()
        return self

    def wait(self) -> None:
        """Wait until they have ended, in one instant."""
        for each in self._activities:
            each.wait()

    def cancel(self) -> None:
        """End them now."""
        for each in self._activities:
            each.cancel()


class ActivityDriver(Driver):
    """A run on SimGrid, in the actor that leads it.

    Parameters
    ----------
    simulated : SimulatedPlatform
    controller : Controller
        Whose executions it begins.
    run_times : RunTimes, optional
        True durations; default the estimates.
    master : str, optional
        Host from which messages leave, and which is never switched off.
    """

    def __init__(
        self,
        simulated: SimulatedPlatform,
        controller: Controller,
        run_times: RunTimes | None = None,
        master: str | None = None,
    ) -> None:
        self.now = 0.0
        self._simulated, self._simgrid, self._engine = simulated, simulated.simgrid, simulated.engine
        self._hosts, self._host_named = simulated.hosts, simulated.host_named
        self._exec_init = simulated.simgrid.this_actor.exec_init
        self._master, self._controller = master, controller
        self._pstate = list(controller.pstates)
        self._calendar = Calendar(run_times, simulated.platform)
        self._flops = flops_of(controller.system, controller.tasks, run_times)
        self._load: list[float] = [] if run_times is None else run_times.load.tolist()
        self._speed: list[list[float]] = simulated.platform.speed.tolist()
        #: SimGrid's activity of each execution that computes
        self._computing: dict[Execution, SimGridActivity] = {}
        #: all others, and what each of them is, by its address; kept, since a lost one is cancelled
        self._in_flight = simulated.simgrid.ActivitySet()
        self._named: dict[Any, Activity] = {}
        self._activity_of: dict[Activity, Any] = {}
        #: when the latency of a step ends, from which on hosts draw more, and others send at other rates [s]
        self._latencies: list[float] = []
        #: whether the plugin is to look at all hosts before their loads change, and when it did [s]
        self._looks = simulated.has_parallel_tasks and controller.has_programs and simulated.platform.has_energy
        self._looked = -1.0
        self._notes = controller.records_traffic
        #: when the energy plugin looked last [s] at nodes of an execution on several, at its end
        self._metered = [-1.0] * len(self._hosts)
        #: dates [s] at which the speed of nodes changes; the next one
        self._changes = self._dates_of_changes()
        self._next_change = next(self._changes, inf)

    def _dates_of_changes(self) -> Iterator[float]:
        """Yield when the energy plugin has to look at the nodes of executions on several.

        When the speed of one changes, it does not notice that the others have another load.
        """
        profiles = tuple(self._simulated.platform.profiles.speed_of.values())
        if self._controller.has_sets and profiles:
            yield from (date for date, _ in SlowestOf(profiles, all_change=True).events())

    # ------------------------------------------------------------------ time

    def advance(self, until: float) -> tuple[float, list[Activity]]:
        """Let time pass until an activity ends, but no longer than until a time [s].

        Where nothing is in flight of which only SimGrid knows the end, and nothing ends, its clock stays behind until
        something begins: each stop of it costs as much as a start.
        """
        if self._named:
            return self._advance_in_flight(until)
        self.now, ended = self._calendar.next_instant(until)
        if ended:
            self._end(ended)
        return self.now, ended

    def reach(self) -> None:
        """Bring SimGrid's clock to `now`, where it is behind."""
        time = self.now
        while self._next_change < time:
            self._look_at_nodes(self._next_change)
            self._next_change = next(self._changes, inf)
        clock = self._engine.clock
        if clock != time:
            if clock < time - time_tolerance(time):
                self._simgrid.this_actor.sleep_until(time)
            check_clocks(self._engine.clock, time)
        if self._looks:
            self._look()

    def _end(self, ended: Sequence[Activity]) -> None:
        """Wait until SimGrid has ended executions that end now."""
        time = self.now
        while self._next_change < time:
            self._look_at_nodes(self._next_change)
            self._next_change = next(self._changes, inf)
        for execution in ended:
            assert isinstance(execution, Execution)
            try:
                self._computing.pop(execution).wait()
            except self._simgrid.HostFailureException:
                host = self._simulated.platform.hosts[execution.host].name
                raise SimulationError(
                    f"Host {host!r} failed at t = {self._engine.clock:g} s while a task ran on it, "
                    "although no decision switched it off."
                ) from None
            if execution.hosts is not None:
                clock = self._engine.clock
                for h in execution.hosts.tolist():
                    self._metered[h] = clock
        self.reach()

    def _advance_in_flight(self, until: float) -> tuple[float, list[Activity]]:
        """Do as `advance` does, where of something only SimGrid knows the end."""
        calendar = self._calendar
        self.reach()
        while True:
            ended = self._in_flight_until(min([until, calendar.first, *self._latencies[:1]]))
            self.now = self._engine.clock
            if self._looks:
                self._look()
            limit = self.now + time_tolerance(self.now)
            while self._latencies and self._latencies[0] <= self.now:
                heapq.heappop(self._latencies)
            if self._notes:
                self._note_shares()
            known: list[Activity] = []
            if calendar.first <= limit:
                time, known = calendar.next_instant(until)
                self.now = max(time, self.now)
                self._end(known)
                ended = self._all_ended(ended)
            elif until <= limit:
                self.now = max(until, self.now)
            if ended or known or until <= limit:
                return self.now, [*ended, *known]

    def _in_flight_until(self, due: float) -> list[Activity]:
        """Wait until something in flight has ended, or a time [s] has come; return what has ended by then."""
        left = due - self._engine.clock
        if left <= 0:
            return self._all_ended([])
        try:
            first = self._in_flight.wait_any() if left == inf else self._in_flight.wait_any_for(left)
        except self._simgrid.TimeoutException:
            return self._all_ended([])
        return self._all_ended([self._what(first)])

    def _all_ended(self, ended: list[Activity]) -> list[Activity]:
        """Add what else has ended by now."""
        while self._named and (other := self._in_flight.test_any()) is not None:  # each look changes threads
            ended.append(self._what(other))
        return ended

    def _what(self, activity: Any) -> Activity:
        """Return what has ended with an activity of SimGrid."""
        what = self._named.pop(activity)
        del self._activity_of[what]
        return what

    def _note_shares(self) -> None:
        """Note how far steps have come, whose rates may be others from now on."""
        for activity, what in self._named.items():
            if isinstance(what, ParallelStep) and what.traffic is not None:
                what.note(self.now, 1.0 - self._left(activity))

    # ------------------------------------------------------------------ activities

    def begin(self, activity: Activity) -> None:
        """Begin an activity now."""
        if self._looks or self._engine.clock != self.now:
            self.reach()
        if isinstance(activity, Execution):
            made = self._execution(activity)
            self._calendar.start(activity)
            self._computing[activity] = made.start()
        elif isinstance(activity, Transfer):
            source, target = self._hosts[activity.source], self._hosts[activity.target]
            self._watch(self._message(source, target, activity.size_bytes), activity)
        else:
            self._watch(self._step(activity), activity)
            if activity.placed.latency_s and (self._looks or self._notes):
                heapq.heappush(self._latencies, self._engine.clock + activity.placed.latency_s)

    def _watch(self, made: Any, activity: Activity) -> None:
        made = made.start()
        self._named[made], self._activity_of[activity] = activity, made
        self._in_flight.push(made)

    def cancel(self, activity: Activity) -> None:
        """End an activity now."""
        if self._looks or self._engine.clock != self.now:
            self.reach()
        if isinstance(activity, Execution):
            self._computing.pop(activity).cancel()
            return
        made = self._activity_of.pop(activity)
        self._in_flight.erase(made)
        del self._named[made]
        made.cancel()

    def remaining(self, activity: Activity) -> float:
        """Return which share of an activity is left."""
        if isinstance(activity, Execution):
            return max(activity.end - self.now, 0.0) / (activity.end - activity.start)
        made = self._activity_of.get(activity)
        if made is None:  # it has ended
            return 0.0
        left = self._left(made)
        if self._simulated.has_parallel_tasks:  # of which SimGrid counts shares
            return left
        size = activity.size_bytes if isinstance(activity, Transfer) else float(activity.placed.step.size_bytes.sum())
        return left / size

    def _left(self, made: Any) -> float:
        """Return what is left of an activity of SimGrid: a share in its model of parallel tasks, else bytes.

        Of an execution on several hosts, SimGrid calls either so, but writes a warning about it by the other name.
        """
        left: float = made.remaining_ratio if isinstance(made, self._simgrid.Exec) else made.remaining
        return left

    def host(self, change: HostCommand) -> None:
        """Switch a host, or bring it into another P-state.

        Raises
        ------
        InputError
            If the master's host is switched off.
        """
        if self._looks or self._engine.clock != self.now:
            self.reach()
        h = change.host
        if isinstance(change, SetPState):
            self._set_pstate(h, change.pstate)
        elif isinstance(change, TurnOff):
            if self._hosts[h].name == self._master:
                raise InputError(
                    f"{self._controller.scheduler!r} switches off host {self._master!r}, on which the master "
                    "runs; give the master a host without a worker in the deployment file."
                )
            self._hosts[h].turn_off()
        else:
            self._hosts[h].turn_on()
            self._hosts[h].pstate = self._pstate[h]

    def carry_out(self, command: Command) -> None:
        """Do what a controller commands; most often that is to begin an execution."""
        if command.__class__ is Execution:
            self.begin(command)
        else:
            super().carry_out(command)

    # ------------------------------------------------------------------ as SimGrid has them

    def _execution(self, execution: Execution) -> SimGridActivity:
        """Return SimGrid's activity of an execution."""
        host, pstate = execution.host, execution.pstate
        if execution.hosts is None:
            if self._pstate[host] != pstate:
                self._set_pstate(host, pstate)
            if self._load:
                return self._at_load(execution, [host])
            return self._on_core(host, self._flops(execution))
        nodes: list[int] = execution.hosts.tolist()
        if self._load:
            for h in nodes:
                self._set_pstate(h, pstate)
            return self._at_load(execution, self._cores_of(execution, nodes))
        if self._simulated.has_parallel_tasks:
            return self._on_nodes(execution, nodes)
        for h in nodes:
            self._set_pstate(h, pstate)
        flops = self._flops(execution)
        return Several([self._on_core(h, flops) for h in self._cores_of(execution, nodes)])

    @staticmethod
    def _cores_of(execution: Execution, nodes: list[int]) -> list[int]:
        """Return each of its nodes once for each core that it gives."""
        return [h for h, n in zip(nodes, execution.cores.tolist(), strict=True) for _ in range(n)]

    def _on_core(self, host: int, flops: float) -> Any:
        activity = self._exec_init(flops)
        activity.host = self._hosts[host]
        return activity

    def _at_load(self, execution: Execution, cores: list[int]) -> SimGridActivity:
        """Return an execution whose power was measured: at its load, on each of its cores.

        A parallel task knows no bound: it is as slow as its part on the clock host, which has cores for all.
        """
        load, flops = self._load[execution.task], self._flops(execution)
        speed = self._speed[execution.host][execution.pstate]
        if not self._simulated.has_parallel_tasks:
            return BoundExecutions([self._hosts[h].name for h in cores], load * flops, load * speed)
        hosts = [*(self._hosts[h] for h in cores), self._simulated.clock_host]
        activity: SimGridActivity = self._exec_init(hosts, [*[load * flops] * len(cores), flops / speed], [])
        return activity

    def _on_nodes(self, execution: Execution, nodes: list[int]) -> Any:
        """Return SimGrid's activity of an execution on a set of nodes.

        The energy plugin does not notice that a node begins such a one, and would charge the idle
        time before as busy: setting the P-state, even to what it is, makes it look. Ends it
        notices: a node that one job leaves and another takes in the same instant needs it not.
        """
        hosts, pstates, pstate = self._hosts, self._pstate, execution.pstate
        clock, metered = self._engine.clock, self._metered
        for h in nodes:
            if metered[h] != clock or pstates[h] != pstate:
                hosts[h].pstate = pstates[h] = pstate
        if execution.part_cores:  # SimGrid gives a core for each time that a host is listed
            nodes = self._cores_of(execution, nodes)
        return self._exec_init([hosts[h] for h in nodes], [self._flops(execution)] * len(nodes), [])

    def _step(self, activity: ParallelStep) -> Any:
        """Return SimGrid's activity of a step of a program."""
        step = activity.placed.step
        for h in activity.execution.all_hosts:
            self._set_pstate(h, activity.execution.pstate)
        hosts = [self._host_named[name] for name in activity.hosts_named]
        if step.is_message:
            ends = hosts[step.source.item(0)], hosts[step.target.item(0)]
            return self._message(*ends, step.size_bytes.item(0))
        flops, n = step.flops, activity.part_cores
        if n > 1:  # SimGrid gives a core for each time that a host is listed: after all parts, the rest of their cores
            more = [host for host in hosts[: len(activity.names)] for _ in range(n - 1)]
            flops = np.concatenate([flops / n, np.zeros(len(hosts) - len(flops)), np.repeat(flops / n, n - 1)])
            hosts += more
        amounts: list[float] = flops.tolist()
        amounts += [0.0] * (len(hosts) - len(amounts))
        if not len(step.size_bytes):
            return self._exec_init(hosts, amounts, [])
        matrix = np.zeros(len(hosts) * len(hosts))
        matrix[step.source * len(hosts) + step.target] = step.size_bytes
        return self._exec_init(hosts, amounts, matrix.tolist())

    def _message(self, source: Any, target: Any, size_bytes: float) -> Any:
        """Return SimGrid's activity that sends so much data [byte] from a host to another.

        Messages of SimGrid have a whole number of bytes, of 64 bits. An execution on two hosts that compute nothing
        is the same transfer by the same model of links, and takes any number. Where links are metered bytes are
        rounded: SimGrid's plugin counts messages alone.
        """
        if (size_bytes.is_integer() or self._simulated.meters_links) and size_bytes < 2.0**63:
            return self._simgrid.Comm.sendto_init(source, target).set_payload_size(round(size_bytes))
        return self._exec_init([source, target], [], [0.0, size_bytes, 0.0, 0.0])

    def _set_pstate(self, host: int, pstate: int) -> None:
        """Bring a host into a P-state."""
        if self._pstate[host] != pstate:
            self._pstate[host] = pstate
            self._hosts[host].pstate = pstate

    def _look(self) -> None:
        """Have the energy plugin look at all hosts, before their loads change.

        It would miss that one begins to compute, or does so at another rate, since it looks at a host by itself
        where an execution on that host ends, and charges what was since at the load of that instant.
        """
        clock = self._engine.clock
        if clock != self._looked:
            self._looked = clock
            HOSTS.update_all()

    def _look_at_nodes(self, date: float) -> None:
        """Let the energy plugin look at all nodes that compute, at a date [s]."""
        if date > self._engine.clock:
            self._simgrid.this_actor.sleep_until(date)
        for execution in self._computing:
            for h in execution.all_hosts:
                self._hosts[h].pstate = self._pstate[h]
