"""Worker actors on their hosts, and the actor that switches hosts: common to both actor ways."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gridsched.engine import Controller, Execution, TurnOff, TurnOn
from gridsched.sim.work import Work
from gridsched.sim.world import World


class Worker:
    """One core: its actor takes executions one after the other.

    Attributes
    ----------
    host, core : int
    execution : Execution or None
        What the actor executes or is about to; None once it is free.
    activity : Exec or None
        SimGrid's activity, where it can be cancelled.
    is_waiting : bool
        The actor sleeps on `wake`.
    """

    __slots__ = ("activity", "core", "execution", "host", "inbox", "is_waiting", "wake")

    def __init__(self, host: int, core: int, wake: Any) -> None:
        self.host = host
        self.core = core
        self.renew(wake)

    def renew(self, wake: Any) -> None:
        """Forget everything; `wake` is the semaphore of a new actor."""
        self.wake = wake
        self.execution: Execution | None = None
        self.activity: Any = None
        self.is_waiting = False
        self.inbox: deque[Execution] = deque()


class Crew(ABC):
    """The actors of one run.

    Attributes
    ----------
    error : BaseException or None
        What an actor raised; to be raised again after the simulation.
    """

    def __init__(self, world: World, controller: Controller, work: Work) -> None:
        self.world = world
        self.controller = controller
        self.energy_j: dict[str, float] = {}
        self.links_j: dict[str, float] | None = None
        self.error: BaseException | None = None
        self._simgrid = world.simgrid
        self._flops = work.flops
        self._pstate = list(controller.pstates)
        self._is_over = False
        self._workers = [
            [Worker(h, c, self._simgrid.Semaphore(0)) for c in range(host.cores)]
            for h, host in enumerate(world.platform.hosts)
        ]
        self._free = [list(reversed(workers)) for workers in self._workers]
        self._switches: deque[TurnOff | TurnOn] = deque()
        self._switch_wake = self._simgrid.Semaphore(0)

    @abstractmethod
    def lead(self) -> None:
        """What the master actor does."""

    @abstractmethod
    def serve(self, worker: Worker) -> None:
        """What a worker actor does, for ever."""

    # ------------------------------------------------------------------ setting up

    def deploy(self, deployment_file: Path | None) -> None:
        """Create the actors: as the deployment file says, else a worker on every core."""
        if deployment_file is not None:
            self.world.engine.register_actor("master", self._master)
            self.world.engine.register_actor("worker", self._worker)
            self.world.engine.load_deployment(str(deployment_file))
        else:
            for h in range(len(self._workers)):
                if self.controller.is_on[h]:
                    self._add_workers(h)
            self._lead_host().add_actor("master", self._master)
        self.world.clock_host.add_actor("switch", self._guarded, self._switch)

    def _lead_host(self) -> Any:
        master = self.world.platform.master
        return self.world.host_named[master.name] if master else self.world.clock_host

    def _master(self, *_arguments: str) -> None:
        """The actor function ``master``."""
        self._guarded(self.lead)

    def _worker(self, *_arguments: str) -> None:
        """The actor function ``worker``: serves all cores of the host it runs on."""
        name = self._simgrid.this_actor.get_host().name
        host = next(h for h, host in enumerate(self.world.platform.hosts) if host.name == name)
        for worker in self._workers[host][1:]:
            self.world.hosts[host].add_actor(f"worker {name}", self._guarded, self.serve, worker)
        self._guarded(self.serve, self._workers[host][0])

    def _add_workers(self, host: int) -> None:
        name = self.world.platform.hosts[host].name
        for worker in self._workers[host]:
            self.world.hosts[host].add_actor(f"worker {name}", self._guarded, self.serve, worker)

    def _guarded(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function in an actor; keep what it raises, because it would abort the process."""
        simgrid = self._simgrid
        try:
            function(*arguments)
        except (simgrid.ActorKilled, simgrid.HostFailureException):
            raise
        except BaseException as error:  # noqa: BLE001 - raised again after the simulation
            self.error = self.error or error
            self._is_over = True
            simgrid.Actor.kill_all()

    # ------------------------------------------------------------------ during the run

    def set_pstate(self, execution: Execution) -> None:
        """Bring the host of an execution into its P-state."""
        host = execution.host
        if self._pstate[host] != execution.pstate:
            self._pstate[host] = execution.pstate
            self.world.hosts[host].pstate = execution.pstate

    def execute(self, worker: Worker, execution: Execution) -> None:
        """In a worker actor: execute so that `Activity.cancel` can end it."""
        worker.activity = self._simgrid.this_actor.exec_async(self._flops(execution))
        try:
            worker.activity.wait()
        except self._simgrid.CancelException:
            if execution.outcome < 0:  # nobody asked for it
                raise
        worker.activity = None

    def switch(self, command: TurnOff | TurnOn) -> None:
        """Have a host switched at the present time, by `start_switching`."""
        if isinstance(command, TurnOff):  # now: the next command may need the workers again
            for worker in self._workers[command.host]:
                worker.renew(self._simgrid.Semaphore(0))
        self._switches.append(command)

    def start_switching(self) -> None:
        """Let the switching actor work; it may kill the actor that calls this."""
        if self._switches:
            self._switch_wake.release()

    def _switch(self) -> None:
        """The switching actor: it lives on the clock host, for none may switch off its own."""
        while True:
            self._switch_wake.acquire()
            self.switch_hosts()

    def switch_hosts(self) -> None:
        """Switch the hosts now, in an actor that lives on none of them."""
        while self._switches:
            command = self._switches.popleft()
            host = self.world.hosts[command.host]
            if isinstance(command, TurnOff):
                host.turn_off()
            else:
                host.turn_on()
                host.pstate = self._pstate[command.host]
                self._add_workers(command.host)

    def call_at(self, time: float, function: Callable[[], None], host: Any) -> None:
        """Call a function in a new actor on `host` at `time` [s]."""

        def sleep_and_call() -> None:
            self._simgrid.this_actor.sleep_until(time)
            function()

        host.add_actor("alarm", self._guarded, sleep_and_call)

    def finish(self) -> None:
        """Meter the hosts and end all other actors."""
        self._is_over = True
        self.energy_j = self.world.metered_energy()
        self.links_j = self.world.metered_link_energy()
        self._simgrid.Actor.kill_all()

    def run(self, deployment_file: Path | None) -> None:
        """Simulate to the end; raise what an actor raised."""
        self.deploy(deployment_file)
        self.world.engine.run()
        if self.error is not None:
            raise self.error
        if not self._is_over:
            raise self.stuck()

    @abstractmethod
    def stuck(self) -> Exception:
        """Return the error for a simulation that stopped early."""
