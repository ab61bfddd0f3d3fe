"""The two-stage heuristics of paper 000, and its random mapping."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gridsched.policy.base import Traits
from gridsched.schedulers.kernels.random_mapping import map_randomly
from gridsched.schedulers.kernels.two_stage import map_two_stage
from gridsched.schedulers.kernels.two_stage_options import COMP, UPE, UPT, UTIL
from gridsched.schedulers.utility.mapping_event import Limits, Mapping, UtilityScheduler

_INF = float("inf")


class _TwoStage(UtilityScheduler):
    """Repeat: each task's best option, then the task whose best is best; see `map_two_stage`."""

    def __init__(
        self, energy_leniency: float | str = 0.75, dropping_threshold: float = 0.5
    ) -> None:
        self.energy_leniency = energy_leniency
        self.dropping_threshold = dropping_threshold

    def _map(
        self,
        waiting: NDArray[np.int64],
        ready_time: NDArray[np.float64],
        limits: Limits,
    ) -> Mapping:
        return map_two_stage(
            self._objective, self.tables_, self.functions_, self.task_type_, self.arrival_s_,
            waiting, ready_time, *limits,
        )  # fmt: skip


class MaxMaxUtilityPerEnergy(_TwoStage):
    """Max-Max UPE: the task that can earn most utility per joule is mapped first.

    Parameters
    ----------
    energy_leniency : float or "auto"
        Multiple of the fair share of the remaining energy that one task may use; inf: no filter;
        "auto": adapted to the energy used so far (docs/auto_leniency.md).
    dropping_threshold : float
        A task that can no longer earn this utility is dropped.

    Notes
    -----
    An option is a machine (of each type the earliest ready one) and a P-state, with the objective
    U / EEC. Repeat: find each task's best option (then the lowest machine id, the lowest
    P-state); map the task for which it is best (then the lowest id); its machine becomes ready
    later, and the energy that remains today falls. An option that would begin after the day's
    end, or whose energy until then exceeds what remains, is none.

    References
    ----------
    .. [1] Paper 000, section III-B; algorithms B4 to B6.
    """

    _id: ClassVar[str] = "max_max_upe"
    _objective: ClassVar[int] = UPE

    def __init__(self, energy_leniency: float | str = 1.5, dropping_threshold: float = 0.5) -> None:
        super().__init__(energy_leniency, dropping_threshold)


class MaxMaxUtilityPerTime(_TwoStage):
    """Max-Max UPT: the task that can earn most utility per second is mapped first.

    Parameters
    ----------
    energy_leniency, dropping_threshold : float
        As in `MaxMaxUtilityPerEnergy`.

    Notes
    -----
    As `MaxMaxUtilityPerEnergy`, with the objective U / ETC.

    References
    ----------
    .. [1] Paper 000, section III-B; algorithms B4 to B6.
    """

    _id: ClassVar[str] = "max_max_upt"
    _objective: ClassVar[int] = UPT


class MaxMaxUtility(_TwoStage):
    """Max-Max Util: the task that can earn most utility is mapped first.

    Parameters
    ----------
    energy_leniency, dropping_threshold : float
        As in `MaxMaxUtilityPerEnergy`.

    Notes
    -----
    As `MaxMaxUtilityPerEnergy`, with the objective U.

    References
    ----------
    .. [1] Paper 000, section III-B; algorithms B4 to B6.
    """

    _id: ClassVar[str] = "max_max_util"
    _objective: ClassVar[int] = UTIL


class MinMinCompletionTime(_TwoStage):
    """Min-Min Comp: the task that can complete first is mapped first.

    Parameters
    ----------
    energy_leniency, dropping_threshold : float
        As in `MaxMaxUtilityPerEnergy`.

    Notes
    -----
    As `MaxMaxUtilityPerEnergy`; the objective is the earliest completion.

    References
    ----------
    .. [1] Paper 000, section III-B; algorithms B4 to B6.
    """

    _id: ClassVar[str] = "min_min_completion_time"
    _objective: ClassVar[int] = COMP
    _by_utility: ClassVar[bool] = False


class RandomMapping(UtilityScheduler):
    """Random: tasks in order of arrival, each on a random machine in a random P-state.

    Parameters
    ----------
    energy_leniency, dropping_threshold : float
        As in `MaxMaxUtilityPerEnergy`.

    Notes
    -----
    All admissible pairs of a machine and a P-state are equally likely.

    References
    ----------
    .. [1] Paper 000, section III-B; algorithms B6.
    """

    traits: ClassVar[Traits] = Traits(
        asked="event", may_drop=True, uses_dvfs=True, uses_rng=True, needs_utility=True,
        heeds_budget=True, platform_order_matters=True,
    )  # fmt: skip
    _id: ClassVar[str] = "random_mapping"
    _by_utility: ClassVar[bool] = False

    def __init__(
        self, energy_leniency: float | str = _INF, dropping_threshold: float = 0.5
    ) -> None:
        self.energy_leniency = energy_leniency
        self.dropping_threshold = dropping_threshold

    def _map(
        self,
        waiting: NDArray[np.int64],
        ready_time: NDArray[np.float64],
        limits: Limits,
    ) -> Mapping:
        return map_randomly(
            self.tables_, self.task_type_, waiting, self.rng_.random(len(waiting)), ready_time,
            *limits,
        )  # fmt: skip
