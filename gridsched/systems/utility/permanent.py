"""The comparison heuristics of paper 001: tasks by arrival, permanent reservations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import ClassVar

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.model.parallel_estimates import ParallelEstimates
from gridsched.model.system import System
from gridsched.policy.base import Scheduler, Traits, check_choice
from gridsched.policy.decisions import Decision
from gridsched.policy.state import State
from gridsched.schedulers.filters import check_dropping_threshold
from gridsched.systems.utility.kernels.parallel_options import ParallelRows, Placed
from gridsched.systems.utility.kernels.parallel_queues import place_easily, place_in_cycles, place_randomly
from gridsched.systems.utility.mapping_event import EventMaker, MappingEvent, may_refuse
from gridsched.systems.utility.parallel_heuristics import parallel_estimates

#: Places the tasks of an event; called with whether reservations exist, and whether the first cluster
#: on which a task starts earliest is taken.
Rule = Callable[[EventMaker, MappingEvent, bool, bool], Placed]
#: Of clusters on which a task can start equally early: the lowest id, or the earliest finish.
CLUSTER_CHOICES = ("first", "earliest_finish")
#: Bounds between small, medium and large tasks, as shares of the largest mean resources.
SMALL, LARGE = 0.3, 0.6
#: Large, medium and small tasks of a cycle.
QUOTAS = np.array([1, 4, 8], dtype=np.int64)


class PermanentReservations:
    """What the comparison heuristics share, for one run.

    Parameters
    ----------
    owner : str
        Id of the scheduler.
    system : System
    dropping_threshold : object
        Parameter of that name; it has no effect on tasks without utility functions.
    rule : callable
    cluster_choice : object
        Parameter of that name.
    """

    def __init__(
        self,
        owner: str,
        system: System,
        dropping_threshold: object,
        rule: Rule,
        cluster_choice: object = "earliest_finish",
    ) -> None:
        self._threshold = check_dropping_threshold(owner, dropping_threshold)
        check_choice(owner, "cluster_choice", cluster_choice, CLUSTER_CHOICES)
        self._first_cluster = cluster_choice == "first"
        self._maker = EventMaker(system)
        self._rule = rule
        #: whether a greater budget might have changed a decision
        self.limited = False

    def schedule(self, state: State) -> Iterable[Decision]:
        """Drop what is worth too little, start or reserve the rest."""
        if not len(state.mappable) or not state.is_on.any():
            return []
        event, decisions = self._maker.event(state, self._threshold)
        if len(event.tasks):
            self.limited = self.limited or may_refuse(event.limits, event.rows)
            exist = len(state.nodes.reserved) > 0
            placed = self._rule(self._maker, event, exist, self._first_cluster)
            decisions.extend(self._maker.reservations(event, placed))
        return decisions


def conservatively(maker: EventMaker, event: MappingEvent, _exist: bool, first_cluster: bool) -> Placed:
    """Give each task the earliest start (paper 001, section 3.4.3)."""
    queue_of, quotas = np.zeros(len(event.tasks), np.int64), np.array([len(event.tasks)])
    return place_in_cycles(maker.nodes, event.profile, event.rows, queue_of, quotas, event.limits, first_cluster)


def easily(maker: EventMaker, event: MappingEvent, exist: bool, first_cluster: bool) -> Placed:
    """Start what can start now; reserve one task that cannot (paper 001, section 3.4.4)."""
    return place_easily(maker.nodes, event.profile, event.rows, exist, event.limits, first_cluster)


#: Rules of the schedulers that make such reservations on request, by their ids.
_RULES: dict[str, Rule] = {"conservative_backfilling": conservatively, "easy_backfilling": easily}


def permanent_backfilling(
    owner: str, system: System, dropping_threshold: float, cluster_choice: str
) -> PermanentReservations:
    """Return what EASY or conservative backfilling, by its id, does with permanent reservations."""
    return PermanentReservations(owner, system, dropping_threshold, _RULES[owner], cluster_choice)


_TRAITS = Traits(
    trigger="event", parallel=True, may_drop=True, needs_utility=True, respects_budget=True, platform_order_matters=True
)


class MultipleQueues(Scheduler):
    """FCFS with multiple queues: large, medium and small tasks take turns.

    Parameters
    ----------
    dropping_threshold : float
        A task that could not even earn this utility if it started now is dropped.
    cluster_choice : {"earliest_finish", "first"}
        As in `ConservativeBackfilling`.

    Notes
    -----
    As conservative backfilling with permanent reservations, but for the order: a cycle places at
    most one large, then four medium, then eight small tasks, each queue by arrival, and cycles
    are repeated until all queues are empty. What cannot be placed does not count.

    A task's resources are its run time times the cores of its nodes, in P-state 0, on average over
    the clusters that can run it. With the largest mean resources of any task type at its mean
    width, R: it is small if they are less than 0.3 R, large if they are more than 0.6 R.

    References
    ----------
    .. [1] Paper 001, section 3.4.5; algorithms C4.
    """

    traits: ClassVar[Traits] = _TRAITS

    def __init__(self, dropping_threshold: float = 0.5, cluster_choice: str = "earliest_finish") -> None:
        self.dropping_threshold = dropping_threshold
        self.cluster_choice = cluster_choice

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters; find the largest mean resources of a task type.

        Raises
        ------
        InputError
            If the workload has no typical times and nodes of task types, or a parameter is
            out of range.
        """
        estimates = parallel_estimates("fcfs_multiple_queues", system)
        self.largest_ = largest_resources(estimates)
        self.shared_ = PermanentReservations(
            "fcfs_multiple_queues", system, self.dropping_threshold, self._in_turns, self.cluster_choice
        )

    def schedule(self, state: State) -> Iterable[Decision]:
        """Drop what is worth too little, start or reserve the rest."""
        return self.shared_.schedule(state)

    @property
    def limited_by_budget(self) -> bool:
        """Whether a greater budget might have changed a decision: by what remained."""
        return self.shared_.limited

    def _in_turns(self, maker: EventMaker, event: MappingEvent, _exist: bool, first_cluster: bool) -> Placed:
        resources = mean_resources(event.rows)
        queue_of = np.where(resources > LARGE * self.largest_, 0, np.where(resources < SMALL * self.largest_, 2, 1))
        return place_in_cycles(
            maker.nodes, event.profile, event.rows, queue_of.astype(np.int64), QUOTAS, event.limits, first_cluster
        )


def mean_resources(rows: ParallelRows) -> Floats:
    """Return time x cores in P-state 0, on average over the clusters that can run a task.

    Parameters
    ----------
    rows : ParallelRows

    Returns
    -------
    ndarray of float64, shape (rows,)
        [core-s].
    """
    return _mean_where_finite(rows.time_s[:, :, 0], rows.nodes * rows.cores_per_node)


def largest_resources(estimates: ParallelEstimates) -> float:
    """Return the largest mean resources of any task type at its mean width [core-s].

    Raises
    ------
    InputError
        If typical times and nodes are not known.
    """
    if estimates.typical_time_s is None or estimates.typical_nodes is None:
        raise InputError(
            "Scheduler fcfs_multiple_queues needs typical times and nodes of the task types; this workload has none."
        )
    cores = estimates.typical_nodes * estimates.cores_per_node
    resources = _mean_where_finite(estimates.typical_time_s[:, :, 0], cores)
    return float(resources.max(initial=0.0))


def _mean_where_finite(time_s: Floats, cores: Integers) -> Floats:
    """Return the mean of time x cores over the clusters where the time is finite; 0 without any."""
    finite = np.isfinite(time_s)
    total = (np.where(finite, time_s, 0.0) * cores).sum(axis=1)
    return np.asarray(total / np.maximum(finite.sum(axis=1), 1))


class RandomParallel(Scheduler):
    """Random: each task, by arrival, goes to a random cluster in a random P-state.

    Parameters
    ----------
    dropping_threshold : float
        A task that could not even earn this utility if it started now is dropped.

    Notes
    -----
    It starts there as early as possible, by a permanent reservation where that is not now. Where
    that is after the day's end, or needs more energy than remains, another pair of those that are
    left is drawn; without any the task waits.

    References
    ----------
    .. [1] Paper 001, section 3.4.2; algorithms C4.
    """

    traits: ClassVar[Traits] = replace(_TRAITS, uses_dvfs=True, uses_rng=True)

    def __init__(self, dropping_threshold: float = 0.5) -> None:
        self.dropping_threshold = dropping_threshold

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameter.

        Raises
        ------
        InputError
            If the workload is of another kind, or the parameter is not allowed.
        """
        parallel_estimates("random_parallel", system)
        self.rng_ = rng
        self.shared_ = PermanentReservations("random_parallel", system, self.dropping_threshold, self._randomly)

    def schedule(self, state: State) -> Iterable[Decision]:
        """Drop what is worth too little, start or reserve the rest."""
        return self.shared_.schedule(state)

    @property
    def limited_by_budget(self) -> bool:
        """Whether a greater budget might have changed a decision: by what remained."""
        return self.shared_.limited

    def _randomly(self, maker: EventMaker, event: MappingEvent, _exist: bool, _first_cluster: bool) -> Placed:
        m, clusters, pstates = event.rows.time_s.shape
        uniforms = self.rng_.random((m, clusters * pstates))
        return place_randomly(maker.nodes, event.profile, event.rows, uniforms, event.limits)
