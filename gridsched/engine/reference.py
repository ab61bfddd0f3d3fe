"""The readable second driver: the same controller, a heap instead of SimGrid, no network."""

from __future__ import annotations

from gridsched.engine import Calendar, Controller, Execution
from gridsched.errors import IncompleteRun
from gridsched.model.run_times import RunTimes
from gridsched.model.trace import Trace


def simulate(controller: Controller, run_times: RunTimes | None = None) -> Trace:
    """Run a prepared controller to its end.

    Parameters
    ----------
    controller : Controller
        Fresh; it is used up.
    run_times : RunTimes, optional
        True durations; default the estimates.

    Returns
    -------
    Trace

    Raises
    ------
    InvalidDecision, IncompleteRun
        As the controller does.
    """
    calendar = Calendar(run_times, controller.system.platform)
    while not controller.done:
        now, finished = calendar.next_instant(controller.next_timer)
        if now == float("inf"):
            raise IncompleteRun(controller.what_is_left())
        for command in controller.step(now, finished):
            if command.__class__ is Execution:
                calendar.start(command)
    return controller.trace(as_estimated=run_times is None)
