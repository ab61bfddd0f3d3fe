"""Jobs whose parts compute and send to each other: SimGrid's parallel tasks (``host/model:ptask_L07``).

Each step of a job's profile is one activity on all its hosts. SimGrid's clock counts: what share hosts and links
have of each other, only SimGrid knows.
"""

from __future__ import annotations

import heapq
from itertools import count
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from gridsched.drivers.session import ActorSession
from gridsched.drivers.simgrid_library import HOSTS, first_line, link_wattages, range_of
from gridsched.drivers.simulated_platform import SimulatedPlatform, without_route
from gridsched.energy import link_energy
from gridsched.engine import Controller, Execution, SetPState, Stop
from gridsched.engine.execution import Command, Transfer
from gridsched.engine.profile_runs import PlacedStep, PlacedSteps, ProfileRun, ProfileRuns
from gridsched.errors import IncompleteRun
from gridsched.model.limits import time_tolerance
from gridsched.model.routes import RouteLinks, refuse_closed_link
from gridsched.model.run_times import RunTimes


class LiveRoutes:
    """The routes that SimGrid finds between hosts, each looked for once.

    Parameters
    ----------
    simulated : SimulatedPlatform
    """

    gamma_bytes = 0.0  # SimGrid minds it

    def __init__(self, simulated: SimulatedPlatform) -> None:
        self._simulated = simulated
        links = simulated.engine.all_links
        self.bandwidth: dict[str, float] = {link.name: link.bandwidth for link in links}
        self.unshared = frozenset(link.name for link in links if link.get_sharing_policy().name == "FATPIPE")
        self._name = {link: link.name for link in links}  # SimGrid makes a new text at each look
        self._routes: dict[tuple[str, str], RouteLinks] = {}

    def route(self, source: str, target: str) -> RouteLinks:
        """Return the route from one host to another.

        Raises
        ------
        InputError
            If SimGrid finds none.
        """
        route = self._routes.get((source, target))
        if route is None:
            hosts = self._simulated.host_named
            try:
                links, latency_s = hosts[source].route_to(hosts[target])
            except (ValueError, RuntimeError, IndexError) as error:
                where = f"SimGrid on {Path(self._simulated.platform.name).name}"
                raise without_route(where, first_line(str(error))) or error from None
            route = self._routes[source, target] = RouteLinks(tuple(self._name[link] for link in links), latency_s)
            refuse_closed_link(self._simulated.platform.name, source, target, route.links, self.bandwidth)
        return route


class ParallelTaskSession(ActorSession):
    """A run whose jobs have profiles; one actor starts their steps, and waits for whatever ends next.

    Parameters
    ----------
    simulated : SimulatedPlatform
    controller : Controller
    run_times : RunTimes, optional
        True durations of tasks without profile; default the estimates.
    traffic_step_s : float, optional
        As of `ProfileRuns` [s].
    """

    def __init__(
        self,
        simulated: SimulatedPlatform,
        controller: Controller,
        run_times: RunTimes | None = None,
        traffic_step_s: float | None = None,
    ) -> None:
        super().__init__(simulated, controller, run_times)
        self._steps = PlacedSteps(LiveRoutes(simulated), simulated.platform)
        self._runs = ProfileRuns(controller.system, controller.tasks, self._flops, traffic_step_s)
        self._in_flight = self._simgrid.ActivitySet()
        #: the run of each of SimGrid's activities, by its address; kept, since a lost one is cancelled
        self._run_of: dict[Any, ProfileRun] = {}
        self._running: dict[Execution, tuple[ProfileRun, Any]] = {}
        self._over: list[ProfileRun] = []
        #: when delays end, and when jobs are killed [s]; a number keeps runs from being compared
        self._delays: list[tuple[float, int, ProfileRun]] = []
        self._deadlines: list[tuple[float, int, ProfileRun]] = []
        #: when the latency of a step ends, from which on hosts draw more, and others send at other rates [s]
        self._latencies: list[float] = []
        self._number = count()
        self._has_energy = simulated.platform.has_energy
        self._awaits_latencies = self._has_energy or traffic_step_s is not None

    def records(self) -> dict[str, Any]:
        """Return what a `Trace` has of the jobs' profiles."""
        return self._runs.records()

    def finish(self) -> None:
        """Meter hosts, and links by what they carried: SimGrid's plugin does not see what parallel tasks send."""
        super().finish()
        links = {link.name: link for link in self._engine.all_links}
        texts = {name: range_of(link) for name, link in links.items()}
        wattage = link_wattages(texts, self.simulated.platform.link_wattage, self.simulated.platform.name)
        if wattage:
            bandwidth = {name: link.bandwidth for name, link in links.items()}
            self.links_j = link_energy(wattage, bandwidth, self._runs.link_bytes, self._engine.clock)

    def deploy(self, deployment_file: Path | None) -> None:
        """Make the leading actor; a deployment's actors have no part in it."""
        self.deploy_coordinator(deployment_file, self._coordinate)

    def _coordinate(self) -> None:
        """Step the controller whenever an execution has ended or something is due."""
        controller = self.controller
        while not controller.done:
            timer = controller.next_timer
            finished = self._wait(timer)
            clock = time = self._engine.clock
            if not finished and timer == inf:
                raise IncompleteRun(controller.what_is_left())
            if timer <= clock + time_tolerance(clock):
                time = max(clock, timer)
            elif not finished:
                continue
            for command in controller.step(time, finished):
                self._carry_out(command)
        self.finish()

    def _wait(self, timer: float) -> list[Execution | Transfer]:
        """Wait until executions have ended, which are returned, or the timer is due [s]."""
        while True:
            due = min([timer, *(heap[0][0] for heap in (self._delays, self._deadlines) if heap), *self._latencies[:1]])
            ended = self._ended_until(due)
            now = self._engine.clock
            self._meter()
            while self._latencies and self._latencies[0] <= now:
                heapq.heappop(self._latencies)
            if self._runs.traffic is not None:
                for activity, run in self._run_of.items():
                    run.note(now, 1.0 - activity.remaining)
            for run in ended:
                run.end_step(now, 1.0)
                self._go_on(run)
            while self._delays and self._delays[0][0] <= now + time_tolerance(now):
                run = heapq.heappop(self._delays)[2]
                if run.execution in self._running:
                    run.end_step(now, 1.0)
                    self._go_on(run)
            while self._deadlines and self._deadlines[0][0] <= now + time_tolerance(now):
                run = heapq.heappop(self._deadlines)[2]
                if run.execution in self._running and not run.is_over:
                    run.execution.is_cut = True
                    self._over.append(run)
            is_idle = not self._running and timer == inf
            if self._over or timer <= now + time_tolerance(now) or is_idle:
                return self._all_over(now)

    def _ended_until(self, due: float) -> list[ProfileRun]:
        """Wait until steps have ended, or a time [s] has come; return what has ended by then."""
        left = due - self._engine.clock
        if self._over or left <= 0:
            return self._all_ended([])
        if not self._run_of:
            if left < inf:
                self._simgrid.this_actor.sleep_until(due)
            return []
        try:
            first = self._in_flight.wait_any() if left == inf else self._in_flight.wait_any_for(left)
        except self._simgrid.TimeoutException:
            return self._all_ended([])
        return self._all_ended([self._run_of.pop(first)])

    def _all_ended(self, ended: list[ProfileRun]) -> list[ProfileRun]:
        """Add whose step else has ended by now."""
        while self._run_of and (other := self._in_flight.test_any()) is not None:
            ended.append(self._run_of.pop(other))
        return ended

    def _all_over(self, now: float) -> list[Execution | Transfer]:
        """Return the executions that are over."""
        over, self._over = self._over, []
        finished: list[Execution | Transfer] = []
        for run in over:
            self._end(run, now)
            run.execution.end = now
            finished.append(run.execution)
        return finished

    def _end(self, run: ProfileRun, now: float) -> None:
        """End a run wherever it is."""
        _, activity = self._running.pop(run.execution)
        if run.placed is not None:
            share = 0.0
            if activity is not None:
                share = 1.0 - activity.remaining
                self._in_flight.erase(activity)
                del self._run_of[activity]
                activity.cancel()
            run.end_step(now, share)
        self._runs.end(run)

    def _meter(self) -> None:
        """Have the energy plugin look at all hosts, before their loads change.

        It would miss that one begins to compute, or does so at another rate, since it looks at a host by itself
        where an execution on that host ends, and charges what was since at the load of that instant.
        """
        if self._has_energy:
            HOSTS.update_all()

    def _carry_out(self, command: Command) -> None:
        if isinstance(command, Execution):
            pstates, pstate = self._pstate, command.pstate
            for h in command.all_hosts:
                if pstates[h] != pstate:
                    self.set_pstate(h, pstate)
            run = self._runs.begin(command)
            self._running[command] = run, None
            if run.deadline < inf:
                heapq.heappush(self._deadlines, (run.deadline, next(self._number), run))
            self._go_on(run)
        elif isinstance(command, Stop):
            if command.execution in self._running:
                self._end(self._running[command.execution][0], self._engine.clock)
        elif isinstance(command, SetPState):
            self.set_pstate(command.host, command.pstate)
        elif not isinstance(command, Transfer):
            self.switch(command)

    def _go_on(self, run: ProfileRun) -> None:
        """Begin the next step; a run that has none is over."""
        now = self._engine.clock
        placed = run.next_step(now, self._steps)
        activity = None
        if placed is None:
            self._over.append(run)
        elif placed.step.delay_s:
            heapq.heappush(self._delays, (now + placed.step.delay_s, next(self._number), run))
        else:
            activity = self._activity(run, placed).start()
            self._in_flight.push(activity)
            self._run_of[activity] = run
            if placed.latency_s and self._awaits_latencies:
                heapq.heappush(self._latencies, now + placed.latency_s)
        self._running[run.execution] = run, activity

    def _activity(self, run: ProfileRun, placed: PlacedStep) -> Any:
        """Return SimGrid's activity of a step."""
        step, hosts = placed.step, self._hosts_of(run)
        flops: list[float] = step.flops.tolist()
        if step.storage:
            hosts = [*hosts, self.simulated.host_named[step.storage]]
            flops.append(0.0)
        if not len(step.size_bytes):
            return self._exec_init(hosts, flops, [])
        matrix = np.zeros(len(hosts) * len(hosts))
        matrix[step.source * len(hosts) + step.target] = step.size_bytes
        return self._exec_init(hosts, flops, matrix.tolist())

    def _hosts_of(self, run: ProfileRun) -> list[Any]:
        return [self._hosts[h] for h in run.execution.all_hosts]
