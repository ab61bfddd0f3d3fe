"""A run on SimGrid: what leads it, who meters it, and how it ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from gridsched.drivers.activity_driver import ActivityDriver
from gridsched.drivers.driver import play
from gridsched.drivers.simgrid_library import first_line, refusals, text_path
from gridsched.drivers.simulated_platform import SimulatedPlatform
from gridsched.engine import Controller
from gridsched.errors import InputError, SimulationError
from gridsched.model.run_times import RunTimes


class Session(ABC):
    """One run of a controller on SimGrid.

    Parameters
    ----------
    simulated : SimulatedPlatform
    controller : Controller

    Attributes
    ----------
    energy_j : dict of str to float
        Joules of each host by SimGrid's plugin, once the run is over.
    links_j : dict of str to float, or None
        Joules of each metered link.
    """

    def __init__(self, simulated: SimulatedPlatform, controller: Controller) -> None:
        self.simulated = simulated
        self.controller = controller
        self.energy_j: dict[str, float] = {}
        self.links_j: dict[str, float] | None = None

    @abstractmethod
    def run(self, deployment_file: Path | None = None) -> None:
        """Simulate to the end.

        Raises
        ------
        GridschedError
            What the controller or SimGrid objects to.
        """

    def finish(self) -> None:
        """Meter hosts and links."""
        self.energy_j = self.simulated.metered_energy()
        self.links_j = self.simulated.metered_link_energy()

    def stuck(self) -> Exception:
        """Return the error for a simulation that stopped early."""
        return SimulationError(
            f"SimGrid stopped at t = {self.simulated.clock():g} s "
            f"although {self.controller.open_tasks} tasks are not done."
        )


class LedSession(Session):
    """A run that one actor leads: it begins activities on all hosts, and waits for whatever ends next.

    There is no actor on any core: each would be a thread. The leading one lives on the clock host, so that it can
    switch all others.

    Parameters
    ----------
    simulated : SimulatedPlatform
    controller : Controller
    run_times : RunTimes, optional
        True durations; default the estimates.
    master : str, optional
        Host from which messages leave.
    """

    def __init__(
        self,
        simulated: SimulatedPlatform,
        controller: Controller,
        run_times: RunTimes | None = None,
        master: str | None = None,
    ) -> None:
        super().__init__(simulated, controller)
        self._driver = ActivityDriver(simulated, controller, run_times, master)
        self._is_over = False
        self._error: BaseException | None = None

    def run(self, deployment_file: Path | None = None) -> None:
        """Simulate to the end; raise what the actor raised.

        The actors of a deployment have no part in it: which hosts compute, and from where messages leave, has been
        read from the file before.
        """
        if deployment_file is not None:
            self._load_deployment(deployment_file, master=_take_no_part, worker=_take_no_part)
        self.simulated.add_actor(self.simulated.clock_host, "leader", self._guarded, self._lead)
        self.simulated.engine.run()
        if self._error is not None:
            raise self._error
        if not self._is_over:
            raise self.stuck()

    def _lead(self) -> None:
        play(self.controller, self._driver)
        self._driver.reach()
        self._is_over = True
        self.finish()
        self.simulated.simgrid.Actor.kill_all()

    def _guarded(self, function: Callable[[], None]) -> None:
        """Call a function in an actor; keep what it raises, because it would abort the process."""
        simgrid = self.simulated.simgrid
        try:
            function()
        except (simgrid.ActorKilled, simgrid.HostFailureException):
            raise
        except BaseException as error:  # noqa: BLE001 - raised again after the simulation
            self._error = self._error or error
            self._is_over = True
            simgrid.Actor.kill_all()

    def _load_deployment(self, path: Path, **functions: Callable[..., None]) -> None:
        """Let SimGrid make the actors that a deployment file names; `InputError` where it refuses the file."""
        for name, function in functions.items():
            self.simulated.engine.register_actor(name, function)
        try:
            self.simulated.engine.load_deployment(text_path(path))
        except refusals(self.simulated.simgrid) as error:
            raise InputError(f"SimGrid on {path.name} refuses the deployment: {first_line(str(error))}.") from None


def _take_no_part(*_arguments: str) -> None:
    """Be an actor of a deployment file."""
