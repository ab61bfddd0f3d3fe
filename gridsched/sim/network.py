"""Master and workers that exchange tasks and results over the platform's network.

SimGrid's clock counts here: how long a message takes, only SimGrid knows. A task or result
without bytes is handed over without a network activity.
"""

from __future__ import annotations

from typing import Any

from gridsched.engine import Controller, Execution, Stop, TurnOff, TurnOn
from gridsched.engine.calendar import instant_width
from gridsched.errors import IncompleteRun, InputError, SimulationError
from gridsched.model.tasks import Tasks
from gridsched.sim.crew import Crew, Worker
from gridsched.sim.work import Work
from gridsched.sim.world import World


class NetworkSession(Crew):
    """A run with messages.

    Parameters
    ----------
    world : World
    controller : Controller
    work : Work
    tasks : Tasks
        Their `input_bytes` and `output_bytes` [byte] are the sizes of the messages.
    """

    def __init__(self, world: World, controller: Controller, work: Work, tasks: Tasks) -> None:
        super().__init__(world, controller, work)
        self._input_bytes: list[float] = tasks.input_bytes.tolist()
        self._output_bytes: list[float] = tasks.output_bytes.tolist()
        # Where links are metered no receive may be pending when its actor ends: SimGrid 4.1's
        # plugin then asks a message without sender for its links, and the process dies.
        self._only_mail = bool(len(tasks)) and tasks.input_bytes.all() and not world.meters_links
        self._cancels = controller.scheduler.traits.replicates
        self._results: list[Execution] = []
        self._news = self._simgrid.Semaphore(0)
        self._alarms: set[float] = set()
        self._worker_of: dict[Execution, Worker] = {}
        self._ended: dict[Execution, float] = {}
        self._master_box = self._simgrid.Mailbox.by_name("gridsched-master")
        self._boxes = [
            [self._simgrid.Mailbox.by_name(f"gridsched-{w.host}-{w.core}") for w in workers]
            for workers in self._workers
        ]

    # ------------------------------------------------------------------ the master's host

    def lead(self) -> None:
        """The master: decide at time 0, then whenever there is news.

        As the receiver of its mailbox it need not call `get`: results cross the network when they
        are sent, and each is news when it is there. `get` returns them in the order in which they
        were sent, so that a short message would wait for a long one from elsewhere.
        """
        self._lead_on: Any = self._simgrid.this_actor.get_host()
        self._master_box.set_receiver(self._simgrid.Actor.self())
        self._decide()
        while not self._is_over:
            self._news.acquire()
            if self._results or self._timer_is_due():
                self._decide()

    def _timer_is_due(self) -> bool:
        now = self.world.engine.clock
        return self.controller.next_timer <= now + instant_width(now)

    def _decide(self) -> None:
        """Step the controller until nothing new is there; others only leave their news."""
        while True:
            finished = [e for e in self._results if e.outcome < 0]
            self._results = []
            now = self.world.engine.clock
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
            self.call_at(timer, self._news.release, self._lead_on)

    def _carry_out(self, command: Execution | Stop | TurnOff | TurnOn) -> None:
        if command.__class__ is Execution:
            self._send(command)
        elif isinstance(command, Stop):
            self._stop(command.execution)
        else:
            self._check_switch(command)
            self.switch(command)
            self.switch_hosts()  # at once: no message can be sent to a host that is off

    def _check_switch(self, command: TurnOff | TurnOn) -> None:
        name = self._lead_on.name
        if isinstance(command, TurnOff) and self.world.hosts[command.host].name == name:
            raise InputError(
                f"{self.controller.scheduler!r} switches off host {name!r}, on which the master "
                "runs; give the master a host without a worker in the deployment file."
            )

    def _send(self, execution: Execution) -> None:
        """Send the task to a free worker of its host."""
        self.set_pstate(execution)
        worker = self._free[execution.host].pop()
        if self._cancels:
            self._worker_of[execution] = worker
        size = self._input_bytes[execution.task]
        if size:
            box = self._boxes[worker.host][worker.core]
            box.put_init(execution, int(size)).detach()
        if not self._only_mail:
            worker.inbox.append(execution)
            worker.wake.release()

    def _stop(self, execution: Execution) -> None:
        """Cancel a copy wherever it is: under way, executing, or its result under way."""
        worker = self._worker_of[execution]
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

    def serve(self, worker: Worker) -> None:
        """Receive a task, execute it, send the result."""
        box = self._boxes[worker.host][worker.core]
        box.set_receiver(self._simgrid.Actor.self())
        engine, master_box = self.world.engine, self._master_box
        while not self._is_over:
            if self._only_mail:
                execution = box.get()
            else:
                worker.wake.acquire()
                execution = worker.inbox.popleft()
                if self._input_bytes[execution.task]:
                    execution = box.get()
            if execution.outcome >= 0:  # cancelled on its way
                continue
            execution.start = engine.clock
            self._run(worker, execution)
            if execution.outcome >= 0:
                continue
            execution.end = engine.clock
            self._free[worker.host].append(worker)
            size = self._output_bytes[execution.task]
            if size:
                if self._cancels:
                    self._ended[execution] = execution.end
                master_box.put(execution, int(size))
            self._results.append(execution)
            self._news.release()

    def _run(self, worker: Worker, execution: Execution) -> None:
        if not self._cancels:
            self._simgrid.this_actor.execute(self._flops(execution))
            return
        worker.execution = execution
        self.execute(worker, execution)
        worker.execution = None if worker.execution is execution else worker.execution

    def stuck(self) -> Exception:
        """Return the error for a simulation that stopped early."""
        now = self.world.engine.clock
        if any(self.controller.ledger.running):
            return SimulationError(
                f"SimGrid stopped at t = {now:g} s with tasks or results under way; does every "
                "worker's host have a route to the master's?"
            )
        return IncompleteRun(self.controller.what_is_left())
