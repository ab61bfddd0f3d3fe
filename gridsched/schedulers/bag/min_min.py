"""Min-Min and Max-Min: by the smallest completion time of each task."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gridsched.model.system import System
from gridsched.policy.base import check_choice
from gridsched.policy.state import State
from gridsched.schedulers.bag.batch import BatchScheduler, Mapping
from gridsched.schedulers.kernels.batch import MAX_MIN, MIN_MIN, map_greedily


class MinMin(BatchScheduler):
    """Min-Min: the task that can complete first is mapped first.

    Parameters
    ----------
    reschedule : bool
        Withdraw and map again all tasks that have not started, at every event; otherwise a task
        is mapped once, when it is submitted.

    Notes
    -----
    With ``CT_ij = r_j + w_i / s_j``, repeat: find each task's smallest CT (the lowest host id of
    equals); map the task for which it is smallest (then the lowest id); raise the host's `r_j`.

    References
    ----------
    .. [1] O. H. Ibarra, C. E. Kim, "Heuristic algorithms for scheduling independent tasks on
       nonidentical processors", JACM 24(2), 1977.
    .. [2] M. Maheswaran, S. Ali, H. J. Siegel, D. Hensgen, R. F. Freund, "Dynamic mapping of a
       class of independent tasks onto heterogeneous computing systems", JPDC 59(2), 1999.
    """

    _id: ClassVar[str] = "min_min"
    _rule: ClassVar[int] = MIN_MIN

    def __init__(self, reschedule: bool = True) -> None:
        self.reschedule = reschedule

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameter; group hosts."""
        check_choice(self._id, "reschedule", self.reschedule, (True, False))
        super().prepare(system, rng)

    def _map(self, state: State, waiting: NDArray[np.int64]) -> Mapping:
        arguments = self._kernel_arguments(state, waiting)
        return map_greedily(*arguments, self._rule)


class MaxMin(MinMin):
    """Max-Min: the task whose earliest completion is latest is mapped first.

    Parameters
    ----------
    reschedule : bool
        As in `MinMin`.

    Notes
    -----
    As `MinMin`, but each time the task with the largest of the smallest completion times (then
    the lowest id) is mapped.

    References
    ----------
    .. [1] M. Maheswaran, S. Ali, H. J. Siegel, D. Hensgen, R. F. Freund, "Dynamic mapping of a
       class of independent tasks onto heterogeneous computing systems", JPDC 59(2), 1999.
    """

    _id: ClassVar[str] = "max_min"
    _rule: ClassVar[int] = MAX_MIN
