"""What every execution mode on SimGrid needs, and what those with actors share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gridsched.drivers.simgrid_library import first_line, refusals, text_path
from gridsched.drivers.simulated_platform import SimulatedPlatform
from gridsched.engine import Controller, TurnOff, TurnOn
from gridsched.engine.execution import Execution
from gridsched.errors import InputError, SimulationError
from gridsched.model.estimates import FlopsEstimates
from gridsched.model.run_times import RunTimes
from gridsched.model.system import System
from gridsched.model.tasks import Tasks


def flops_of(system: System, tasks: Tasks, run_times: RunTimes | None) -> Callable[[Execution], float]:
    """Return the flops of an execution that the controller has just made."""
    speed: list[list[float]] = system.platform.speed.tolist()
    if run_times is not None:
        return lambda execution: (
            run_times.run_time(execution.task, execution.host, execution.pstate)
            * speed[execution.host][execution.pstate]
        )
    if type(system.estimates) is FlopsEstimates:
        flops = array("d", tasks.flops.tobytes())  # a list takes four times as much
        return lambda execution: flops[execution.task]
    return lambda execution: (execution.estimated_end - execution.start) * speed[execution.host][execution.pstate]


class Session(ABC):
    """One run of a controller on SimGrid.

    Parameters
    ----------
    simulated : SimulatedPlatform
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

    def __init__(self, simulated: SimulatedPlatform, controller: Controller, run_times: RunTimes | None = None) -> None:
        self.simulated = simulated
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

    def records(self) -> dict[str, Any]:
        """Return what else a `Trace` has of the run: what jobs with profiles sent."""
        return {}

    def set_pstate(self, host: int, pstate: int) -> None:
        """Bring a host into a P-state."""
        if self._pstate[host] != pstate:
            self._pstate[host] = pstate
            self.simulated.hosts[host].pstate = pstate

    def stuck(self) -> Exception:
        """Return the error for a simulation that stopped early."""
        return SimulationError(
            f"SimGrid stopped at t = {self.simulated.clock():g} s "
            f"although {self.controller.open_tasks} tasks are not done."
        )


class ActorSession(Session):
    """A run that an actor leads."""

    def __init__(self, simulated: SimulatedPlatform, controller: Controller, run_times: RunTimes | None = None) -> None:
        super().__init__(simulated, controller, run_times)
        self._simgrid = simulated.simgrid
        self._engine, self._hosts = simulated.engine, simulated.hosts
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
        self.simulated.engine.run()
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
        if execution.part_cores:  # SimGrid gives a core for each time that a host is listed
            nodes = [h for h, n in zip(nodes, execution.cores.tolist(), strict=True) for _ in range(n)]
        flops = [self._flops(execution)] * len(nodes)
        return self._exec_init([hosts[h] for h in nodes], flops, [])

    def whole_bytes(self, size_bytes: float) -> int | None:
        """Return the size of a message [byte], in SimGrid a whole number of 64 bits; None if it is no such number.

        Where links are metered it is rounded: SimGrid's plugin counts messages alone.
        """
        if (size_bytes.is_integer() or self.simulated.meters_links) and size_bytes < 2.0**63:
            return round(size_bytes)
        return None

    def message(self, source: Any, target: Any, size_bytes: float) -> Any:
        """Return SimGrid's activity that sends so much data [byte] from a host to another.

        Messages of SimGrid have whole bytes. An execution on two hosts that compute nothing is the same transfer by
        the same model of links, and takes any number.
        """
        whole = self.whole_bytes(size_bytes)
        if whole is not None:
            return self._simgrid.Comm.sendto_init(source, target).set_payload_size(whole)
        return self._exec_init([source, target], [], [0.0, size_bytes, 0.0, 0.0])

    def was_metered(self, execution: Execution) -> None:
        """Note that the energy plugin has looked at the nodes of an execution that ends now."""
        if execution.hosts is not None:
            clock, metered = self._engine.clock, self._metered
            for h in execution.hosts.tolist():
                metered[h] = clock

    def load_deployment(self, path: Path, **functions: Callable[..., None]) -> None:
        """Let SimGrid make the actors that a deployment file names; `InputError` where it refuses the file."""
        for name, function in functions.items():
            self.simulated.engine.register_actor(name, function)
        try:
            self.simulated.engine.load_deployment(text_path(path))
        except refusals(self.simulated.simgrid) as error:
            raise InputError(f"SimGrid on {path.name} refuses the deployment: {first_line(str(error))}.") from None

    def deploy_coordinator(self, deployment_file: Path | None, coordinator: Callable[..., None]) -> None:
        """Make the leading actor of a run without messages to workers, in which a deployment's actors have no part."""
        if deployment_file is not None:
            self.load_deployment(deployment_file, master=_take_no_part, worker=_take_no_part)
        self.add_actor(self.simulated.clock_host, "coordinator", coordinator)

    def add_actor(self, host: Any, name: str, function: Callable[..., None], *arguments: Any) -> Any:
        """Return a new actor on `host` that calls `function`."""
        return self.simulated.add_actor(host, name, self.guarded, function, *arguments)

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
        host = self.simulated.hosts[command.host]
        if isinstance(command, TurnOff):
            host.turn_off()
        else:
            host.turn_on()
            host.pstate = self._pstate[command.host]

    def finish(self) -> None:
        """Meter hosts and links, and end all other actors."""
        self._is_over = True
        self.energy_j = self.simulated.metered_energy()
        self.links_j = self.simulated.metered_link_energy()
        self._simgrid.Actor.kill_all()


def _take_no_part(*_arguments: str) -> None:
    """Be an actor of a deployment file in a run without messages to workers."""
