"""How long an execution lasts and how many flops SimGrid must count for it."""

from __future__ import annotations

from collections.abc import Callable

from gridsched.engine.execution import Execution
from gridsched.model.estimates import FlopsEstimates
from gridsched.model.run_times import RunTimes
from gridsched.model.system import System
from gridsched.model.tasks import Tasks


class Work:
    """True run times [s] and flops of executions.

    Parameters
    ----------
    system : System
    tasks : Tasks
    run_times : RunTimes, optional
        True durations; default the estimates.

    Attributes
    ----------
    flops : callable
        ``flops(execution)`` as the controller has just made it.
    """

    def __init__(
        self,
        system: System,
        tasks: Tasks,
        run_times: RunTimes | None = None,
    ) -> None:
        self.run_times = run_times
        speed: list[list[float]] = system.platform.speed.tolist()
        if run_times is not None:
            self.flops: Callable[[Execution], float] = lambda execution: (
                run_times.run_time(execution.task, execution.host, execution.pstate)
                * speed[execution.host][execution.pstate]
            )
        elif type(system.estimates) is FlopsEstimates:
            flops: list[float] = tasks.flops.tolist()
            self.flops = lambda execution: flops[execution.task]
        else:
            self.flops = lambda execution: (
                (execution.estimated_end - execution.start)
                * speed[execution.host][execution.pstate]
            )
