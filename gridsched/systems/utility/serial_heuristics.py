"""The two-stage heuristics of paper 000, and its random mapping."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.model.signals import Signal
from gridsched.model.system import System
from gridsched.model.task_types import TypedPowerEstimates
from gridsched.model.tasks import Tasks
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Decision, Drop, Plan, Postpone
from gridsched.policy.state import State
from gridsched.schedulers.filters import check_dropping_threshold, energy_filter
from gridsched.schedulers.kernels.tables import COMP, UPE, UPT, UTIL, type_tables
from gridsched.schedulers.weighing import signals_of_groups, weighed_j, weighing_signal
from gridsched.systems.utility.kernels.random_mapping import map_randomly
from gridsched.systems.utility.kernels.two_stage import IMPOSSIBLE, map_two_stage
from gridsched.systems.utility.kernels.utility_value import UtilityTables, falls_short, utility_tables, worth_postponing

#: Tasks, hosts and P-states in the order of assignment, and what becomes of each mappable task.
Mapping = tuple[Integers, Integers, Integers, Integers]
#: Energy that remains and task budget [J], the day's end [s], and what a joule counts (a table).
Limits = tuple[float, float, float, Floats]


class UtilityScheduler(Scheduler):
    """Base of policies that map all waiting tasks at a mapping event, or drop or postpone them.

    A subclass chooses in `_map`.

    Parameters
    ----------
    energy_leniency : float or str
        See `gridsched.schedulers.filters`.
    dropping_threshold : float
        A task that can no longer earn this utility is dropped.
    """

    traits: ClassVar[Traits] = Traits(
        trigger="event", may_drop=True, uses_dvfs=True, needs_utility=True, respects_budget=True
    )
    _id: ClassVar[str]
    _objective: ClassVar[int] = UPE
    #: What an energy is in the objective and in the filter: see `gridsched.schedulers.weighing`.
    weigh: str = "energy"
    #: Whether the tasks that are worth most are mapped first.
    _by_utility: ClassVar[bool] = True

    def __init__(self, energy_leniency: float | str = 0.75, dropping_threshold: float = 0.5) -> None:
        self.energy_leniency = energy_leniency
        self.dropping_threshold = dropping_threshold

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters; read ETC, EEC and the filter's means.

        Raises
        ------
        InputError
            If the workload has no task types, a parameter is out of range, or a host has several
            cores.
        """
        if not isinstance(system.estimates, TypedPowerEstimates):
            raise InputError(
                f"Scheduler {self._id} needs tasks with task types and utility functions; this "
                "workload has none. Give it a workload of the kind 'utility'."
            )
        check_dropping_threshold(self._id, self.dropping_threshold)
        if (system.platform.cores > 1).any():
            raise InputError(f"Scheduler {self._id} needs hosts with one core each.")
        self.filter_ = energy_filter(self._id, self.energy_leniency, self._by_utility)
        self.filter_.prepare(system)
        estimates = system.estimates
        self.tables_ = type_tables(estimates.etc_matrix, estimates.eec_matrix, estimates.host_type, self._objective)
        weights = weighing_signal(self._id, self.weigh, system)
        groups = [np.flatnonzero(estimates.host_type == j) for j in range(estimates.etc_matrix.shape[1])]
        self.weights_ = [] if weights.is_even else signals_of_groups(weights, groups)
        self.rng_ = rng
        self.tasks_: Tasks | None = None

    def _read_tasks(self, tasks: Tasks) -> None:
        """Take what the kernels need of the tasks that have arrived."""
        self.tasks_ = tasks
        self.task_type_ = np.array(tasks.task_type, dtype=np.int64)
        if tasks.utility is not None:  # checked before the run
            self.functions_: UtilityTables = utility_tables(tasks.utility)
        self.arrival_s_ = np.array(tasks.submit_time_s, dtype=np.float64)

    def schedule(self, state: State) -> Iterable[Decision]:
        """Drop what is worth too little, map the rest, postpone what cannot start today."""
        if self.tasks_ is not state.tasks:
            self._read_tasks(state.tasks)
        waiting = np.array(state.mappable, dtype=np.int64)
        ready_time = np.array(state.ready_time, dtype=np.float64)
        if not len(waiting) or not (ready_time < np.inf).any():
            return []
        about = (self.tables_, self.functions_, self.task_type_, self.arrival_s_)
        short = falls_short(*about, waiting, ready_time, float(self.dropping_threshold))
        decisions: list[Decision] = [Drop(task) for task in waiting[short].tolist()]
        waiting = waiting[~short]
        task_budget = float(self.filter_.task_budget(state, ready_time))
        energy = state.energy
        self._weigh(energy.weights, state.now)
        limits = (float(energy.remaining_j), task_budget, float(energy.period_end), energy.weights.table)
        tasks, hosts, pstates, reasons = self._map(waiting, ready_time, limits)
        decisions += self._given_up(waiting[reasons == IMPOSSIBLE], limits[2])
        # an empty plan, too: what was planned before is planned no more
        decisions.append(Plan(tasks, hosts, pstates))
        return decisions

    def _weigh(self, of_budget: Signal, now: float) -> None:
        """Let energies cost what they would from now on, where what a joule weighs varies."""
        if of_budget.is_even and not self.weights_:
            return
        tables = self.tables_
        signals = self.weights_ or [of_budget] * tables.etc.shape[1]
        cost_j = weighed_j(signals, tables.eec, now, tables.etc)
        self.tables_ = type_tables(tables.etc, tables.eec, tables.host_type, self._objective, cost_j)

    def _given_up(self, tasks: Integers, day_end: float) -> list[Decision]:
        """Postpone tasks that cannot start today, or drop those not worth it tomorrow (B4)."""
        if not len(tasks):
            return []
        worth = worth_postponing(
            self.tables_,
            self.functions_,
            self.task_type_,
            self.arrival_s_,
            tasks,
            day_end,
            float(self.dropping_threshold),
        )
        pairs = zip(tasks.tolist(), worth.tolist(), strict=True)
        return [Postpone(task) if later else Drop(task) for task, later in pairs]

    @abstractmethod
    def _map(self, waiting: Integers, ready_time: Floats, limits: Limits) -> Mapping:
        """Map `waiting` within `limits`."""


class _TwoStage(UtilityScheduler):
    """Repeat: each task's best option, then the task whose best is best; see `map_two_stage`."""

    def _map(self, waiting: Integers, ready_time: Floats, limits: Limits) -> Mapping:
        return map_two_stage(
            self._objective,
            self.tables_,
            self.functions_,
            self.task_type_,
            self.arrival_s_,
            waiting,
            ready_time,
            *limits,
        )


class MaxMaxUtilityPerEnergy(_TwoStage):
    """Max-Max UPE: the task that can earn most utility per joule is mapped first.

    Parameters
    ----------
    energy_leniency : float or "auto"
        Multiple of the fair share of the remaining energy that one task may use; inf: no filter;
        "auto": adapted to the energy used so far (docs/schedulers/utility.md).
    dropping_threshold : float
        A task that can no longer earn this utility is dropped.
    weigh : {"energy", "money", "carbon"}
        Utility per joule, or per joule weighed by what it costs or emits, on average over a machine
        type's hosts, if the task ran from now on (beyond the paper). Fair shares are of joules.

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

    def __init__(
        self, energy_leniency: float | str = 1.5, dropping_threshold: float = 0.5, weigh: str = "energy"
    ) -> None:
        super().__init__(energy_leniency, dropping_threshold)
        self.weigh = weigh


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
        trigger="event",
        may_drop=True,
        uses_dvfs=True,
        uses_rng=True,
        needs_utility=True,
        respects_budget=True,
        platform_order_matters=True,
    )
    _id: ClassVar[str] = "random_mapping"
    _by_utility: ClassVar[bool] = False

    def __init__(self, energy_leniency: float | str = math.inf, dropping_threshold: float = 0.5) -> None:
        super().__init__(energy_leniency, dropping_threshold)

    def _map(self, waiting: Integers, ready_time: Floats, limits: Limits) -> Mapping:
        return map_randomly(self.tables_, self.task_type_, waiting, self.rng_.random(len(waiting)), ready_time, *limits)
