"""The utility heuristics of paper 001 and their metaheuristics, for parallel tasks."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from gridsched.errors import InputError
from gridsched.model.parallel_estimates import ParallelEstimates
from gridsched.model.system import System
from gridsched.policy.base import Scheduler, Traits, check_choice
from gridsched.policy.decisions import Decision
from gridsched.policy.state import EnergyState, State
from gridsched.schedulers.filters import check_dropping_threshold
from gridsched.schedulers.weighing import weighing_signal
from gridsched.systems.utility.kernels.parallel_greedy import map_parallel, placed_energy_j
from gridsched.systems.utility.kernels.parallel_options import UPE, UPR, UPT, UTIL, Objective, Placed, chosen_of
from gridsched.systems.utility.mapping_event import EventMaker, MappingEvent, may_refuse, parallel_filter

MODES = ("placeholder", "reservation")
#: First objective, the one in its place once the goal energy is reached, what is spent, the goal.
Objectives = tuple[Objective, Objective, float, float]


def parallel_estimates(owner: str, system: System) -> ParallelEstimates:
    """Return the estimates of parallel tasks on clusters.

    Raises
    ------
    InputError
        If the workload has none.
    """
    if not isinstance(system.estimates, ParallelEstimates):
        raise InputError(
            f"Scheduler {owner} needs parallel tasks whose times and nodes differ by cluster; this "
            "workload has none. Give it a workload of the kind 'parallel'."
        )
    return system.estimates


class ParallelUtilityScheduler(Scheduler):
    """Base of policies that place the task with the best objective first (paper 001, alg. 1).

    A subclass defines in `_objectives` what is best.
    """

    traits: ClassVar[Traits] = Traits(
        trigger="event",
        parallel=True,
        may_drop=True,
        uses_dvfs=True,
        needs_utility=True,
        respects_budget=True,
        platform_order_matters=True,
    )
    mode: str = "placeholder"
    #: What an energy is in the objective and in the filter: see `gridsched.schedulers.weighing`.
    weigh: str = "energy"
    _id: ClassVar[str]

    def __init__(self, energy_filter: str, energy_leniency: float | str, dropping_threshold: float) -> None:
        self.energy_filter = energy_filter
        self.energy_leniency = energy_leniency
        self.dropping_threshold = dropping_threshold

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters; read the nodes and what the filter needs.

        Raises
        ------
        InputError
            If the workload is of another kind, or a parameter is not allowed.
        """
        estimates = parallel_estimates(self._id, system)
        check_choice(self._id, "mode", self.mode, MODES)
        self.threshold_ = check_dropping_threshold(self._id, self.dropping_threshold)
        self.filter_ = parallel_filter(self._id, self.energy_filter, self.energy_leniency, estimates)
        self.interval_ = system.rules.mapping_interval_s
        self.maker_ = EventMaker(system, weighing_signal(self._id, self.weigh, system))
        self.limited_ = False

    @property
    def limited_by_budget(self) -> bool:
        """Whether a greater budget might have changed a decision: by the filter, or by what remained."""
        return self.limited_

    def schedule(self, state: State) -> Iterable[Decision]:
        """Drop what is worth too little, place the rest."""
        if not len(state.mappable) or not state.is_on.any():
            return []
        event, decisions = self.maker_.event(state, self.threshold_)
        if len(event.tasks):
            placed = self._placed(event, state)
            placeholders = self.mode == "placeholder"
            answer = self.maker_.place_holders if placeholders else self.maker_.reservations
            decisions.extend(answer(event, placed))
        return decisions

    def _placed(self, event: MappingEvent, state: State) -> Placed:
        energy = state.energy
        limits = self.filter_.tightened(event.limits, energy, event.profile)
        self.limited_ = self.limited_ or limits is not event.limits or may_refuse(limits, event.rows)
        return map_parallel(
            *self._objectives(energy, state.now),
            self._soon(state.now),
            self.maker_.nodes,
            event.profile,
            event.rows,
            event.functions,
            limits,
        )

    def _soon(self, now: float) -> float:
        """Return the time from which on a place matters no more in this event [s].

        Place-holders that start later are withdrawn at the next mapping event, whatever they are.
        """
        if self.mode == "reservation" or self.interval_ is None:
            return math.inf
        return (now + self.interval_) * (1.0 + 1e-9)

    @abstractmethod
    def _objectives(self, energy: EnergyState, now: float) -> Objectives:
        """Return what is best in this event."""


class _OneObjective(ParallelUtilityScheduler):
    """Base of the four heuristics with one objective."""

    _objective: ClassVar[Objective]

    def __init__(
        self,
        mode: str = "placeholder",
        energy_filter: str = "energy_per_resource",
        energy_leniency: float | str = "paper",
        dropping_threshold: float = 0.5,
    ) -> None:
        super().__init__(energy_filter, energy_leniency, dropping_threshold)
        self.mode = mode

    def _objectives(self, energy: EnergyState, now: float) -> Objectives:
        return self._objective, self._objective, 0.0, math.inf


class MaxUtilityPerEnergy(_OneObjective):
    """Max UPE: the task that can earn most utility per joule is placed first.

    Parameters
    ----------
    mode : {"placeholder", "reservation"}
        What cannot start now gets a place-holder, which is withdrawn before the next event, or a
        permanent reservation.
    energy_filter : {"none", "energy_per_task", "energy_per_resource"}
        Which options may be chosen, by their energy; the paper gives Max UPE no filter.
    energy_leniency : float or "paper"
        How many fair shares of the remaining energy an option may need; inf: no filter; "paper":
        2 per task, 4 per resource.
    dropping_threshold : float
        A task that could not even earn this utility if it started now is dropped.
    weigh : {"energy", "money", "carbon"}
        Utility per joule, or per joule weighed by what it costs or emits on the cluster, if the task
        ran from now on (beyond the paper). Fair shares are of joules.

    Notes
    -----
    An option is a cluster and a P-state, at the earliest time at which the task's nodes are free
    there; its objective is U / energy. Repeat: find each task's best option (then the lowest
    cluster id, the lowest P-state); place the task for which it is best (then the lowest id) on
    the nodes where it leaves the fewest voids, then in the smallest voids, then those of the
    lowest ids. An option that starts after the day's end, or whose energy until then exceeds
    what remains, is none.

    References
    ----------
    .. [1] Paper 001, sections 3.2 to 3.8, algorithm 1; algorithms C3 to C5.
    """

    _id: ClassVar[str] = "max_upe"
    _objective: ClassVar[Objective] = UPE

    def __init__(
        self,
        mode: str = "placeholder",
        energy_filter: str = "none",
        energy_leniency: float | str = "paper",
        dropping_threshold: float = 0.5,
        weigh: str = "energy",
    ) -> None:
        super().__init__(mode, energy_filter, energy_leniency, dropping_threshold)
        self.weigh = weigh


class MaxUtilityPerResource(_OneObjective):
    """Max UPR: the task that can earn most utility per resource is placed first.

    Parameters
    ----------
    mode, energy_filter, energy_leniency, dropping_threshold : str or float
        As in `MaxUtilityPerEnergy`.

    Notes
    -----
    As `MaxUtilityPerEnergy`, with the objective U / (run time x cores of the task's nodes).

    References
    ----------
    .. [1] Paper 001, sections 3.2 to 3.8, algorithm 1; algorithms C3 to C5.
    """

    _id: ClassVar[str] = "max_upr"
    _objective: ClassVar[Objective] = UPR


class MaxUtilityPerTime(_OneObjective):
    """Max UPT: the task that can earn most utility per second is placed first.

    Parameters
    ----------
    mode, energy_filter, energy_leniency, dropping_threshold : str or float
        As in `MaxUtilityPerEnergy`.

    Notes
    -----
    As `MaxUtilityPerEnergy`, with the objective U / run time.

    References
    ----------
    .. [1] Paper 001, sections 3.2 to 3.8, algorithm 1; algorithms C3 to C5.
    """

    _id: ClassVar[str] = "max_upt"
    _objective: ClassVar[Objective] = UPT


class MaxUtility(_OneObjective):
    """Max Util: the task that can earn most utility is placed first.

    Parameters
    ----------
    mode, energy_filter, energy_leniency, dropping_threshold : str or float
        As in `MaxUtilityPerEnergy`.

    Notes
    -----
    As `MaxUtilityPerEnergy`, with the objective U.

    References
    ----------
    .. [1] Paper 001, sections 3.2 to 3.8, algorithm 1; algorithms C3 to C5.
    """

    _id: ClassVar[str] = "max_util"
    _objective: ClassVar[Objective] = UTIL


def goal_energy_j(energy: EnergyState, now: float) -> float:
    """Return what should be consumed by now if energy is consumed at a constant rate [J].

    Infinite without a budget.

    Parameters
    ----------
    energy : EnergyState
    now : float
        [s].
    """
    if energy.budget_j == math.inf:
        return math.inf
    length = energy.period_end - energy.period_start
    return 0.0 if length == math.inf else energy.budget_j * ((now - energy.period_start) / length)


class EventBased(ParallelUtilityScheduler):
    """Event-Based: each event uses Max UPE or Max UPR, depending on the energy spent so far.

    Parameters
    ----------
    energy_filter, energy_leniency, dropping_threshold : str or float
        As in `MaxUtilityPerEnergy`.
    counts_place_holders : bool
        Whether spent counts also what the place-holders of the event before would draw, as the
        paper has it. It takes longer: all tasks are placed in every event, however late.

    Notes
    -----
    With the energy that was consumed today and that what runs or is reserved will draw today,
    ``S = consumed + committed``, and ``goal = budget * (now - day_start) / (day_end - day_start)``:
    if S exceeds the goal the event uses Max UPE, else Max UPR. Without a budget it always
    uses Max UPR. With `counts_place_holders` S is compared with the energy of the place-holders
    that the event withdraws, as they were.

    References
    ----------
    .. [1] Paper 001, section 3.6.2; algorithms C4.
    """

    _id: ClassVar[str] = "event_based"
    #: what the place-holders that the event withdrew would draw [J]
    withdrawn_j_: float = 0.0

    def __init__(
        self,
        energy_filter: str = "none",
        energy_leniency: float | str = "paper",
        dropping_threshold: float = 0.5,
        counts_place_holders: bool = False,
    ) -> None:
        super().__init__(energy_filter, energy_leniency, dropping_threshold)
        self.counts_place_holders = counts_place_holders

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters; read the nodes and what the filter needs.

        Raises
        ------
        InputError
            If the workload is of another kind, or a parameter is not allowed.
        """
        check_choice(self._id, "counts_place_holders", self.counts_place_holders, (False, True))
        super().prepare(system, rng)
        #: tasks with place-holders of the event before, and what each would draw [J]
        self.held_ = np.empty(0, dtype=np.int64), np.empty(0)

    @property
    def limited_by_budget(self) -> bool:
        """Always: what should be spent by now is a share of the budget."""
        return True

    def schedule(self, state: State) -> Iterable[Decision]:
        """Count what the withdrawn place-holders would draw; drop and place as all do."""
        tasks, energy_j = self.held_
        self.withdrawn_j_ = float(energy_j[np.isin(tasks, state.mappable)].sum())
        self.held_ = tasks[:0], energy_j[:0]
        return super().schedule(state)

    def _placed(self, event: MappingEvent, state: State) -> Placed:
        placed = super()._placed(event, state)
        if not self.counts_place_holders:
            return placed
        held = placed.starts > event.now
        energy_j = placed_energy_j(self.maker_.nodes, event.rows, placed, event.limits)
        self.held_ = event.tasks[placed.rows[held]], energy_j[held]
        return chosen_of(placed, placed.starts <= super()._soon(event.now))

    def _soon(self, now: float) -> float:
        return math.inf if self.counts_place_holders else super()._soon(now)

    def _objectives(self, energy: EnergyState, now: float) -> Objectives:
        spent, goal = energy.consumed_j + energy.committed_j, goal_energy_j(energy, now)
        objective = UPE if spent + self.withdrawn_j_ > goal else UPR
        return objective, objective, spent, goal


class TaskBased(EventBased):
    """Task-Based: as Event-Based, but an event goes on by Max UPE once the goal is reached.

    Parameters
    ----------
    energy_filter, energy_leniency, dropping_threshold : str or float
        As in `MaxUtilityPerEnergy`.
    counts_place_holders : bool
        As in `EventBased`.

    Notes
    -----
    An event that begins with Max UPR adds the energy (of the day) of each task that it places to S
    of `EventBased`, which no longer counts the place-holders that were withdrawn. Once S reaches
    the goal the rest is placed by Max UPE.

    References
    ----------
    .. [1] Paper 001, section 3.6.3; algorithms C4.
    """

    _id: ClassVar[str] = "task_based"

    def _objectives(self, energy: EnergyState, now: float) -> Objectives:
        first, _, spent, goal = super()._objectives(energy, now)
        return first, UPE, spent, goal
