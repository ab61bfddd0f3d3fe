"""Tasks as they are submitted, and those that the policy is asked for once more."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from gridsched.engine.ledger import WAITING, Ledger
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.model.trace import TaskState


class Submissions:
    """Lets tasks wait from their submission on.

    Parameters
    ----------
    system : System
    tasks : Tasks
    ledger : Ledger

    Attributes
    ----------
    returned : list of int
        Tasks submitted before that are new to the policy again, which is asked for each arrival.
    """

    def __init__(self, system: System, tasks: Tasks, ledger: Ledger) -> None:
        self.returned: Sequence[int] = ()
        self._times: list[float] = tasks.submit_time_s.tolist()
        self._runnable = system.estimates.runnable(
            np.arange(len(tasks)), np.arange(system.n_hosts)
        )  # fmt: skip
        self._ledger = ledger

    @property
    def next_time(self) -> float:
        """When the next task is submitted [s]; infinite where none is left."""
        submitted = self._ledger.submitted
        return self._times[submitted] if submitted < len(self._times) else math.inf

    def take(self, now: float) -> bool:
        """Let the tasks that are due wait, but for those that run nowhere; whether any waits."""
        ledger, first = self._ledger, self._ledger.submitted
        end = bisect_right(self._times, now, lo=first)
        if end == first:
            return False
        ledger.submitted = end
        if end == first + 1 and self._runnable[first]:  # one task: no arrays
            ledger.state_of[first] = WAITING
            ledger.waits_from(first)
            return True
        runnable = self._runnable[first:end]
        ledger.states[first:end] = np.where(runnable, WAITING, TaskState.REJECTED)
        n_runnable = int(np.count_nonzero(runnable))
        ledger.open_tasks -= end - first - n_runnable
        ledger.waits_from(first)
        return n_runnable > 0

    def end(self) -> None:
        """Let no further task be submitted."""
        self._ledger.submitted = len(self._times)

    def return_waiting(self) -> None:
        """Make all tasks that wait new to the policy again."""
        waiting = self._ledger.states[: self._ledger.submitted] == WAITING
        self.returned = np.flatnonzero(waiting).tolist()

    def new_since(self, first: int) -> list[int]:
        """Take the tasks that wait and are new again, then those submitted from `first` on."""
        new = range(first, self._ledger.submitted)
        returned, self.returned = self.returned, ()
        return [*returned, *new] if returned else list(new)
