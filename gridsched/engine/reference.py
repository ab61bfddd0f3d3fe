"""The readable second driver: the same controller, a heap instead of SimGrid, no network."""

from __future__ import annotations

from collections.abc import Callable

from gridsched.engine import Calendar, Controller, Execution
from gridsched.errors import IncompleteRun
from gridsched.model.trace import Trace


def simulate(
    controller: Controller, run_time: Callable[[int, int, int], float] | None = None
) -> Trace:
    """Run a prepared controller to its end.

    Parameters
    ----------
    controller : Controller
        Fresh; it is used up.
    run_time : callable, optional
        ``run_time(task, host, pstate)``: true durations [s]; default the estimates.

    Returns
    -------
    Trace

    Raises
    ------
    InvalidDecision, IncompleteRun
        As the controller does.
    """
    calendar = Calendar(run_time)
    while not controller.done:
        now, finished = calendar.next_instant(controller.next_timer)
        if now == float("inf"):
            raise IncompleteRun(controller.what_is_left())
        for command in controller.step(now, finished):
            if command.__class__ is Execution:
                calendar.start(command)
    return controller.trace()
