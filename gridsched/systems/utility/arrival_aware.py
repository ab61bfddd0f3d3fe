"""`arrival_aware`: energy weighs by what is learnt of the arrivals to come (beyond paper 001)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.model.parallel_estimates import ParallelEstimates
from gridsched.model.signals import EVEN, Signal
from gridsched.model.system import System
from gridsched.policy.base import check_choice
from gridsched.policy.decisions import Decision, Drop
from gridsched.policy.state import EnergyState, State
from gridsched.systems.utility.kernels.parallel_options import UPE, UPR, Objective
from gridsched.systems.utility.parallel_heuristics import (
    Objectives,
    ParallelUtilityScheduler,
    goal_energy_j,
    parallel_estimates,
)

#: Parts of a period whose demand is learnt one by one: the hours of a day.
PARTS = 24
#: What should remain, over the least energy of what is to come; chosen by development runs.
HEADROOM = 1.5
#: How strongly the weight of energy follows what remains.
GAIN = 6.0
#: Shares of what should remain beyond these count as these: weights of a millionth, a million.
SHARES = (0.1, 10.0)
#: Waiting tasks count as to come for so long after their submission [s]; later it is not known
#: whether they will ever be worth their energy.
FRESH_S = 900.0


class ArrivalAware(ParallelUtilityScheduler):
    """Arrival-aware: the less energy remains for what is to come, the more energy weighs.

    Parameters
    ----------
    energy_filter, energy_leniency, dropping_threshold : str or float
        As in `MaxUtilityPerEnergy`.
    demand : {"submitted", "served"}
        Whether all that is submitted counts as to come, or the share of it that was not dropped so
        far, which is less where nodes are short, too.
    weigh : {"energy", "money", "carbon"}
        As in `MaxUtilityPerEnergy`: of the energy in the objective; goals are of the budget.

    Notes
    -----
    As `EventBased`, with the same spent energy ``S = consumed + committed``, but

    - the goal energy follows the arrivals: it leaves 1.5 times the least energy of what is to come
      in the period, ``goal = budget - 1.5 * (expected + waiting)``. What is expected is learnt from
      the periods before and the same one so far (`DemandPattern`); waiting are the tasks that were
      submitted in the last 15 minutes. Where nothing is known yet the goal is that of `EventBased`;
    - an event does not go either by Max UPE or by Max UPR, but by ``U / (resources + weight *
      energy / mean power per core)``, with ``weight = ((budget - goal) / (budget - S)) ** 6``.
      As much spent as the goal: 1, a core-second counts as much as what it uses on average.
      Less spent: it goes to 0, which is Max UPR. More spent: it grows, to Max UPE.

    With ``demand = "served"`` expected and waiting are multiplied by the share of the demand that was
    decided on so far and not dropped.

    Before the first period what is to come is a whole period at the mean rate so far, for which
    there is the whole budget: what runs when the period begins draws of it. Without a budget it
    always uses Max UPR, in a period without end a goal of 0.

    References
    ----------
    .. [1] Paper 001, section 3.6.2; algorithms C4. Goal and weight: our own.
    """

    _id: ClassVar[str] = "arrival_aware"

    def __init__(
        self,
        energy_filter: str = "none",
        energy_leniency: float | str = "paper",
        dropping_threshold: float = 0.5,
        demand: str = "submitted",
        weigh: str = "energy",
    ) -> None:
        super().__init__(energy_filter, energy_leniency, dropping_threshold)
        self.demand = demand
        self.weigh = weigh

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters; read the nodes, the budget and what the filter needs.

        Raises
        ------
        InputError
            If the workload is of another kind, or a parameter is not allowed.
        """
        super().prepare(system, rng)
        check_choice(self._id, "demand", self.demand, ("submitted", "served"))
        self.core_power_w_ = mean_core_power_w(parallel_estimates(self._id, system))
        self.budget_ = system.rules.budget
        self.demand_ = DemandPattern()
        self.waiting_j_ = 0.0
        self.dropped_j_, self.served_share_ = 0.0, 1.0

    def schedule(self, state: State) -> Iterable[Decision]:
        """Learn what was submitted; drop what is worth too little, place the rest."""
        assert isinstance(state.estimates, ParallelEstimates)  # prepare has looked
        submitted = state.tasks.submit_time_s
        new = np.arange(len(self.demand_), len(submitted))
        if len(new):
            self.demand_.add(submitted[new], least_energy_j(state.estimates.energy_j[new]))
        fresh = state.mappable[submitted[state.mappable] > state.now - FRESH_S]
        self.waiting_j_ = self.demand_.of(fresh)
        decided_j = self.demand_.total_j - self.demand_.of(state.mappable)
        if self.demand == "served" and decided_j > 0.0:
            self.served_share_ = 1.0 - self.dropped_j_ / decided_j
        decisions = list(super().schedule(state))
        dropped = [each.task for each in decisions if isinstance(each, Drop)]
        self.dropped_j_ += self.demand_.of(np.array(dropped, dtype=np.int64))
        return decisions

    def _objectives(self, energy: EnergyState, now: float) -> Objectives:
        energy = self._with_first_period(energy)
        goal = self.goal_energy_j(energy, now)
        weight = energy_weight(energy, goal)
        objective = UPR
        if weight == math.inf:
            objective = UPE
        elif self.core_power_w_ > 0.0:
            objective = Objective(resource=1.0, energy=weight / self.core_power_w_)
        return objective, objective, energy.consumed_j + energy.committed_j, goal

    def _with_first_period(self, energy: EnergyState) -> EnergyState:
        """Return the first period, of which nothing is spent, in the time before it."""
        budget = self.budget_
        if budget is None or energy.period_end > budget.first_period_start_s:
            return energy
        return replace(
            energy,
            budget_j=budget.limit_j,
            remaining_j=budget.limit_j,
            consumed_j=0.0,
            committed_j=0.0,
            period_start=budget.start_of(0),
            period_end=budget.start_of(1),
        )

    def goal_energy_j(self, energy: EnergyState, now: float) -> float:
        """Return what should be spent by now if energy follows the arrivals [J].

        Infinite without a budget; below 0 if even the whole budget is less than what should remain.

        Parameters
        ----------
        energy : EnergyState
        now : float
            [s].
        """
        if math.inf in (energy.budget_j, energy.period_end) or not self.demand_.is_known(now):
            return max(goal_energy_j(energy, now), 0.0)  # before the first period, too
        weights = energy.weights
        expected = self.demand_.expected_j(now, energy.period_start, energy.period_end, weights)
        waiting = self.waiting_j_ * float(weights.mean(now, 0.0))
        return energy.budget_j - HEADROOM * self.served_share_ * (expected + waiting)


def energy_weight(energy: EnergyState, goal_j: float) -> float:
    """Return how much energy weighs beside resources.

    Parameters
    ----------
    energy : EnergyState
    goal_j : float
        What should be spent by now [J].

    Returns
    -------
    float
        1: spent is what should be; 0 without a budget; infinite where nothing remains.

    Examples
    --------
    >>> state = EnergyState(1000.0, 300.0, 200.0, 500.0, 0.0, 0.0, 100.0)
    >>> energy_weight(state, 500.0), round(energy_weight(state, 400.0), 4)
    (1.0, 2.986)
    """
    if energy.budget_j == math.inf:
        return 0.0
    if energy.remaining_j <= 0.0:
        return math.inf
    share = (energy.budget_j - goal_j) / energy.remaining_j
    least, most = SHARES
    return float(min(max(share, least), most) ** GAIN)


def mean_core_power_w(estimates: ParallelEstimates) -> float:
    """Return the mean power over task types, clusters and P-states that can be [W per core]."""
    per_core = estimates.node_power_w / np.asarray(estimates.cores_per_node)[None, :, None]
    return float(per_core[np.isfinite(per_core)].mean())


def least_energy_j(energy_j: Floats) -> Floats:
    """Return the least energy of each task, shape (tasks,) [J]; 0 where it cannot run.

    Parameters
    ----------
    energy_j : ndarray of float64, shape (tasks, clusters, P-states)
        Infinite where a task cannot run [J].
    """
    least = np.asarray(energy_j).min(axis=(1, 2))
    return np.where(np.isfinite(least), least, 0.0)


class DemandPattern:
    """What the submitted tasks demanded, and what the rest of a period is expected to demand.

    A task's demand is its least energy, known when it is submitted. Each of the 24 parts of a period
    has a rate of its own, from the periods before: its demand over its seconds, to which one part's
    length of the mean rate is added. The mean rate is that of all time so far. So what no earlier
    period shows is expected at the mean rate.

    Attributes
    ----------
    total_j : float
        Demand of all known tasks [J].
    """

    def __init__(self) -> None:
        self._submit_s, self._demand_j = np.empty(0), np.empty(0)
        self.total_j = 0.0
        self._period = (math.nan, math.nan)
        self._before = np.zeros((2, PARTS))

    def __len__(self) -> int:
        """Return the number of tasks that are known."""
        return len(self._submit_s)

    def add(self, submit_s: Floats, demand_j: Floats) -> None:
        """Learn tasks, which come in order of submission.

        Parameters
        ----------
        submit_s : ndarray of float64, shape (tasks,)
            [s].
        demand_j : ndarray of float64, shape (tasks,)
            [J].
        """
        self._submit_s = np.concatenate([self._submit_s, submit_s])
        self._demand_j = np.concatenate([self._demand_j, demand_j])
        self.total_j += float(demand_j.sum())

    def of(self, tasks: Integers) -> float:
        """Return the demand of some of the known tasks together [J]."""
        return float(self._demand_j[tasks].sum())

    def is_known(self, now: float) -> bool:
        """Whether there was any time, and any demand in it."""
        return now > 0.0 and self.total_j > 0.0

    def expected_j(self, now: float, start: float, end: float, weights: Signal = EVEN) -> float:
        """Return what the demand that is expected until a period's end counts [J].

        Parameters
        ----------
        now : float
            Above 0 [s]. Before the period all of it is expected at the mean rate.
        start, end : float
            The period [s].
        weights : Signal
            What a joule counts when it is expected.
        """
        mean_w = self.total_j / now
        if now < start:
            return mean_w * (end - start) * float(weights.mean(start, end - start))
        if self._period != (start, end):
            self._period, self._before = (start, end), self._earlier(start, end)
        length = (end - start) / PARTS
        demand_j, seconds = self._before
        rates = (demand_j + mean_w * length) / (seconds + length)
        ends = start + length * np.arange(1, PARTS + 1)
        left = np.clip(ends - now, 0.0, length)
        return float((rates * left * weights.mean(ends - left, left)).sum())

    def _earlier(self, start: float, end: float) -> Floats:
        """Return demand and seconds of each part in the time before a period, shape (2, parts)."""
        length = (end - start) / PARTS
        is_earlier = self._submit_s < start
        part = ((self._submit_s[is_earlier] - start) // length).astype(np.int64) % PARTS
        demand_j = np.bincount(part, weights=self._demand_j[is_earlier], minlength=PARTS)
        # the time from 0 on, cut at the parts' bounds, counted back from the period's start
        edges = np.clip(start - length * np.arange(math.ceil(start / length) + 1), 0.0, None)
        part_of_piece = -np.arange(1, len(edges)) % PARTS
        seconds = np.bincount(part_of_piece, weights=-np.diff(edges), minlength=PARTS)
        return np.stack([demand_j, seconds])
