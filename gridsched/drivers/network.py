"""Master and workers that exchange tasks and results over the platform's network.

SimGrid's clock counts here: how long a message takes, only SimGrid knows. A task or result
without bytes is handed over without a network activity.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

from gridsched.drivers.session import ActorSession
from gridsched.drivers.simgrid_library import first_line
from gridsched.drivers.simulated_platform import SimulatedPlatform, without_route
from gridsched.engine import Controller, Execution, SetPState, Stop, TurnOff
from gridsched.engine.execution import Command, Transfer
from gridsched.errors import IncompleteRun, InputError, SimulationError
from gridsched.model.limits import time_tolerance
from gridsched.model.run_times import RunTimes


class Worker:
    """One core: its actor takes executions one after the other.

    Attributes
    ----------
    host, core : int
    box : Mailbox
        Where its tasks arrive.
    is_deployed : bool
        It has an actor.
    execution : Execution or None
        What the actor executes so that it can be cancelled.
    activity : Exec or None
        SimGrid's activity for it.
    inbox : deque of Execution
        What was handed over or is under way; a unit of `wake` for each.
    """

    def __init__(self, host: int, core: int, simgrid: Any) -> None:
        self.host = host
        self.core = core
        self.box = simgrid.Mailbox.by_name(f"gridsched-{host}-{core}")
        self.renew(simgrid)

    def renew(self, simgrid: Any) -> None:
        """Forget everything: the actor has gone, or never was."""
        self.is_deployed = False
        self.wake = simgrid.Semaphore(0)
        self.execution: Execution | None = None
        self.activity: Any = None
        self.inbox: deque[Execution] = deque()


class NetworkSession(ActorSession):
    """A run with messages.

    Parameters
    ----------
    simulated : SimulatedPlatform
    controller : Controller
    run_times : RunTimes, optional
        True durations; default the estimates.
    """

    def __init__(self, simulated: SimulatedPlatform, controller: Controller, run_times: RunTimes | None = None) -> None:
        super().__init__(simulated, controller, run_times)
        tasks = controller.tasks
        self._input_bytes: list[float] = tasks.input_bytes.tolist()
        self._output_bytes: list[float] = tasks.output_bytes.tolist()
        # Where links are metered no receive may be pending when its actor ends: SimGrid 4.1's
        # plugin then asks a message without sender for its links, and the process dies.
        are_messages = all(size and self.whole_bytes(size) is not None for size in self._input_bytes)
        self._only_mail = bool(len(tasks)) and are_messages and not simulated.meters_links
        traits = controller.scheduler.traits
        self._cancels = traits.replicates or traits.may_cancel
        self._workers = [
            [Worker(h, c, self._simgrid) for c in range(host.cores)] for h, host in enumerate(simulated.platform.hosts)
        ]
        self._free = [list(reversed(workers)) for workers in self._workers]
        self._results: list[Execution] = []
        self._news = self._simgrid.Semaphore(0)
        self._alarms: set[float] = set()
        #: the worker of each execution whose result the master does not have
        self._worker_of: dict[Execution, Worker] = {}
        self._ended: dict[Execution, float] = {}
        self._reached: set[int] = set()
        self._master_box = self._simgrid.Mailbox.by_name("gridsched-master")

    def deploy(self, deployment_file: Path | None) -> None:
        """Make the actors that a deployment file names, or the master alone."""
        if deployment_file is None:
            master = self.simulated.platform.master
            assert master is not None  # `network="platform"` is refused without
            self.add_actor(self.simulated.host_named[master.name], "master", self._coordinate)
            return
        for workers, is_on in zip(self._workers, self.controller.is_on, strict=True):
            workers[0].is_deployed = is_on
        self.load_deployment(deployment_file, master=self._master, worker=self._worker)

    def _master(self, *_arguments: str) -> None:
        """The actor function ``master``."""
        self.guarded(self._coordinate)

    def _worker(self, *_arguments: str) -> None:
        """The actor function ``worker``: the first core of the host it runs on."""
        name = self._simgrid.this_actor.get_host().name
        host = next(h for h, host in enumerate(self.simulated.platform.hosts) if host.name == name)
        self.guarded(self._serve, self._workers[host][0])

    # ------------------------------------------------------------------ the master's host

    def _coordinate(self) -> None:
        """The master: decide at time 0, then whenever there is news.

        As the receiver of its mailbox it need not call `get`: results cross the network when they
        are sent, and each is news when it is there. `get` returns them in the order in which they
        were sent, so that a short message would wait for a long one from elsewhere.
        """
        self._coordinator_host: Any = self._simgrid.this_actor.get_host()
        self._master_box.set_receiver(self._simgrid.Actor.self())
        self._decide()
        while not self._is_over:
            self._news.acquire()
            if self._results or self._timer_is_due():
                self._decide()

    def _timer_is_due(self) -> bool:
        now = self.simulated.clock()
        return self.controller.next_timer <= now + time_tolerance(now)

    def _decide(self) -> None:
        """Step the controller until nothing new is there; others only leave their news."""
        while True:
            finished = [e for e in self._results if e.outcome < 0]
            self._results = []
            for execution in finished:
                del self._worker_of[execution]
            now = self.simulated.clock()
            if self._timer_is_due():
                now = max(now, self.controller.next_timer)
            for command in self.controller.step(now, finished):
                self._carry_out(command)
            if self.controller.done:
                self.finish()
                return
            if not self._results and not self._timer_is_due():
                break
        timer = self.controller.next_timer
        if timer < float("inf") and timer not in self._alarms:
            self._alarms.add(timer)
            self.add_actor(self._coordinator_host, "alarm", self._ring, timer)

    def _ring(self, time: float) -> None:
        """An actor that wakes the master at `time` [s]."""
        self._simgrid.this_actor.sleep_until(time)
        self._news.release()

    def _carry_out(self, command: Command) -> None:
        if isinstance(command, Execution):
            self._send(command)
        elif isinstance(command, Stop):
            self._stop(command.execution)
        elif isinstance(command, SetPState):
            self.set_pstate(command.host, command.pstate)
        elif not isinstance(command, Transfer):
            if isinstance(command, TurnOff):
                self._check_switch(command)
                for worker in self._workers[command.host]:
                    worker.renew(self._simgrid)
            self.switch(command)  # at once: no message can be sent to a host that is off

    def _check_switch(self, command: TurnOff) -> None:
        name = self._coordinator_host.name
        if self.simulated.hosts[command.host].name == name:
            raise InputError(
                f"{self.controller.scheduler!r} switches off host {name!r}, on which the master "
                "runs; give the master a host without a worker in the deployment file."
            )

    def _send(self, execution: Execution) -> None:
        """Send the task to a free worker of its host; the worker is made when first needed."""
        for host in execution.all_hosts:
            self.set_pstate(host, execution.pstate)
        worker = self._free[execution.host].pop()
        self._worker_of[execution] = worker
        if not worker.is_deployed:
            self._make_actor(worker)
        size = self._input_bytes[execution.task]
        if size:
            self._look_for_route(execution.host)
            whole = self.whole_bytes(size)
            if whole is None:
                handed = worker.inbox, worker.wake  # of the worker as it is now
                self.add_actor(self._coordinator_host, "courier", self._carry, execution, size, *handed)
                return
            worker.box.put_init(execution, whole).detach()
        if not self._only_mail:
            worker.inbox.append(execution)
            worker.wake.release()

    def _carry(self, execution: Execution, size: float, inbox: deque[Execution], wake: Any) -> None:
        """An actor that brings a worker a task of a size that no message has [byte]."""
        message = self.message(self._coordinator_host, self.simulated.hosts[execution.host], size)
        try:
            message.start().wait()
        except self._simgrid.HostFailureException:  # it was withdrawn, and its host switched off
            return
        inbox.append(execution)
        wake.release()

    def _look_for_route(self, host: int) -> None:
        """Raise where no route leads to a host, once a host.

        SimGrid ends the process then. Of some zones it raises instead when a message leaves, and
        ends the process when it clears that message away, without a word of the route.
        """
        if host in self._reached:
            return
        self._reached.add(host)
        try:
            self._coordinator_host.route_to(self.simulated.hosts[host])
        except ValueError as error:
            where = f"SimGrid on {Path(self.simulated.platform.name).name}"
            raise without_route(where, first_line(str(error))) or error from None

    def _make_actor(self, worker: Worker) -> None:
        host = self.simulated.hosts[worker.host]
        actor = self.add_actor(host, f"worker {host.name}", self._serve, worker)
        worker.box.set_receiver(actor)  # before the first message leaves
        worker.is_deployed = True

    def _stop(self, execution: Execution) -> None:
        """Cancel a copy wherever it is: under way, executing, or its result under way."""
        worker = self._worker_of.pop(execution)
        if execution in self._ended:
            execution.end = self._ended[execution]
        elif worker.execution is execution:
            self._free[worker.host].append(worker)
            worker.execution = None
            worker.activity.cancel()
        else:
            execution.start = execution.end
            self._free[worker.host].append(worker)

    # ------------------------------------------------------------------ the workers' hosts

    def _serve(self, worker: Worker) -> None:
        """Receive a task, execute it, send the result."""
        box, clock, master_box = worker.box, self.simulated.clock, self._master_box
        box.set_receiver(self._simgrid.Actor.self())
        while not self._is_over:
            if self._only_mail:
                execution = box.get()
            else:
                worker.wake.acquire()
                execution = worker.inbox.popleft()
                size = self._input_bytes[execution.task]
                if size and self.whole_bytes(size) is not None:
                    execution = box.get()
            if execution.outcome >= 0:  # cancelled on its way
                continue
            flops = self._flops(execution)
            execution.start = clock()
            self._execute(worker, execution, flops)
            if execution.outcome >= 0:
                continue
            execution.end = clock()
            self._free[worker.host].append(worker)
            size = self._output_bytes[execution.task]
            if size:
                if self._cancels:
                    self._ended[execution] = execution.end
                whole = self.whole_bytes(size)
                if whole is not None:
                    master_box.put(execution, whole)
                else:
                    self.message(self.simulated.hosts[worker.host], self._coordinator_host, size).start().wait()
            self._results.append(execution)
            self._news.release()

    def _execute(self, worker: Worker, execution: Execution, flops: float) -> None:
        """Execute, on a set of hosts or where the policy cancels so that it can be ended."""
        if execution.hosts is not None:
            activity = self.on_nodes(execution, execution.hosts.tolist()).start()
        elif self._cancels:
            activity = self._simgrid.this_actor.exec_async(flops)
        else:
            self._simgrid.this_actor.execute(flops)
            return
        worker.execution, worker.activity = execution, activity
        try:
            worker.activity.wait()
        except self._simgrid.CancelException:
            if execution.outcome < 0:  # no one asked for it
                raise
        self.was_metered(execution)
        worker.activity = None
        worker.execution = None if worker.execution is execution else worker.execution

    def stuck(self) -> Exception:
        """Return the error for a simulation that stopped early."""
        if self._worker_of:
            return SimulationError(
                f"SimGrid stopped at t = {self.simulated.clock():g} s with tasks or results under "
                "way; does every worker's host have a route to the master's?"
            )
        return IncompleteRun(self.controller.what_is_left())
