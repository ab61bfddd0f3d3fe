"""Worker actors without a network: the way wherever something is cancelled or switched.

The actor in whose context a decision falls hands out executions directly; a semaphore wakes a
worker that waits.
"""

from __future__ import annotations

from gridsched.engine import Calendar, Controller, Execution, Stop, TurnOff, TurnOn
from gridsched.errors import SimulationError
from gridsched.sim.crew import Crew, Worker
from gridsched.sim.session import Session
from gridsched.sim.work import Work
from gridsched.sim.world import World


class ActorSession(Session, Crew):
    """A run on worker actors without a network.

    Parameters
    ----------
    world : World
    controller : Controller
    work : Work
    """

    def __init__(self, world: World, controller: Controller, work: Work) -> None:
        Session.__init__(self, controller, Calendar(work.run_times))
        Crew.__init__(self, world, controller, work)
        self._cancels = controller.scheduler.traits.replicates
        self._worker_of: dict[Execution, Worker] = {}

    # ------------------------------------------------------------------ Crew

    def lead(self) -> None:
        """Look at time 0; afterwards whoever completes an instant decides."""
        self.begin()

    def serve(self, worker: Worker) -> None:
        """Execute, report, wait for more."""
        execute = self._simgrid.this_actor.execute
        while not self._is_over:
            execution = worker.execution
            if execution is None:
                worker.is_waiting = True
                worker.wake.acquire()
                continue
            if self._cancels:
                self.execute(worker, execution)
            else:
                execute(self._flops(execution))
            if worker.execution is execution:  # neither cancelled nor given something else
                worker.execution = None
                self._free[worker.host].append(worker)
                self.report(execution)

    # ------------------------------------------------------------------ Session

    def clock(self) -> float:
        """Return SimGrid's clock [s]."""
        return self.world.engine.clock

    def start(self, execution: Execution) -> None:
        """Hand the execution to a free worker of its host."""
        self.set_pstate(execution)
        worker = self._free[execution.host].pop()
        worker.execution = execution
        if self._cancels:
            self._worker_of[execution] = worker
        if worker.is_waiting:
            worker.is_waiting = False
            worker.wake.release()

    def carry_out(self, command: Stop | TurnOff | TurnOn) -> None:
        """Cancel a running activity, or have a host switched."""
        if not isinstance(command, Stop):
            self.switch(command)
            return
        worker = self._worker_of[command.execution]
        worker.execution = None
        self._free[worker.host].append(worker)
        if worker.activity is not None:
            worker.activity.cancel()

    def pass_done(self) -> None:
        """Switch hosts only now: the deciding actor may live on one of them."""
        self.start_switching()

    def set_alarm(self, time: float) -> None:
        """Have `alarm` called at `time` [s]."""
        self.call_at(time, self.alarm, self.world.clock_host)

    def end(self) -> None:
        """Meter the hosts and end all other actors."""
        self.finish()

    def stuck(self) -> SimulationError:
        """Return the error for a simulation that stopped early."""
        return SimulationError(
            f"SimGrid stopped at t = {self.clock():g} s although "
            f"{self.controller.open_tasks} tasks are not done."
        )
