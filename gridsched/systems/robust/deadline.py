"""The heuristics of paper 002: each task is mapped once, at its arrival, to a core and a P-state.

Two filters take pairs out before a heuristic chooses; they combine with each (algorithms D4).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gridsched.arrays import Booleans, Floats
from gridsched.errors import InputError
from gridsched.metrics.run_metrics import COUNTS_OF_NOTES, chance_counts
from gridsched.model.pmf import LEAST_MASS
from gridsched.model.stochastic import StochasticEstimates
from gridsched.model.system import System
from gridsched.policy.base import Scheduler, Traits, check_choice, check_number
from gridsched.policy.decisions import Assign, Cancel, Decision, Drop, Note
from gridsched.policy.state import State
from gridsched.schedulers.filters import energy_multiplier
from gridsched.schedulers.kernels import called_once

#: Column of the chance to meet the deadline of the pair that was chosen, as known at that time.
CHANCE = "predicted_chance"
COUNTS_OF_NOTES[CHANCE] = chance_counts
#: Where `remap` is set, a queued task with less chance than this is withdrawn, and mapped again to
#: pairs with at least this chance.
LIKELY = 0.5


def reaches(late: Floats, least_chance: float) -> Booleans:
    """Whether the chance to be in time is at least `least_chance`, but for the rounding of masses.

    Parameters
    ----------
    late : ndarray of float64
        Chances to be late.
    least_chance : float
    """
    return np.asarray(1.0 - late >= least_chance - LEAST_MASS)


class Candidates:
    """Pairs of a host and a P-state for one task; numbers are made when they are asked for.

    Parameters
    ----------
    state : State
    estimates : StochasticEstimates
    task : int
    """

    def __init__(self, state: State, estimates: StochasticEstimates, task: int) -> None:
        assert state.tasks.task_type is not None  # distributions are by task type
        self._state, self.task = state, task
        pairs = state.tasks.task_type[task], estimates.host_type
        #: estimated time [s] and energy [J] of the task, infinite where it cannot run
        self.eet_s: Floats = estimates.etc_matrix[pairs]
        self.eec_j: Floats = estimates.eec_matrix[pairs]
        #: tasks that run on each host or wait in its queue
        self.assigned = 1 - state.free_cores + state.queue_length
        #: pairs that are still allowed
        self.allowed = np.isfinite(self.eet_s) & state.is_on[:, None]

    @cached_property
    def ect_s(self) -> Floats:
        """Expected completion [s] of the allowed pairs, infinite for others."""
        ect = self._state.mean_ready_time()[:, None] + self.eet_s
        return np.where(self.allowed, ect, np.inf)

    @cached_property
    def late(self) -> Floats:
        """Chance to miss the deadline, of all pairs."""
        return self._state.late_probabilities(self.task)


class DeadlineScheduler(Scheduler):
    """Base of the policies that map a task at its arrival by chance and energy.

    A subclass chooses in `_choose` which of the allowed pairs it takes.
    """

    traits: ClassVar[Traits] = Traits(
        trigger="arrival", may_cancel=True, may_drop=True, uses_dvfs=True, needs_distributions=True, notes=(CHANCE,)
    )
    _id: ClassVar[str]

    def __init__(self, energy_fair_share: bool = False, robustness: float = 0.0, remap: bool = False) -> None:
        self.energy_fair_share = energy_fair_share
        self.robustness = robustness
        self.remap = remap

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters; read the energies.

        Raises
        ------
        InputError
            If the run times are not distributions, a host has several cores or a parameter is out
            of range.
        """
        estimates = system.estimates
        if not isinstance(estimates, StochasticEstimates):
            raise InputError(
                f"Scheduler {self._id} needs run times that are distributions; this workload has "
                "none. Give it a workload of the kind 'robust'."
            )
        if (system.platform.cores > 1).any():
            raise InputError(f"Scheduler {self._id} needs hosts with one core each.")
        check_choice(self._id, "energy_fair_share", self.energy_fair_share, (True, False))
        check_choice(self._id, "remap", self.remap, (True, False))
        budget = system.rules.budget
        if self.energy_fair_share and budget is not None and not budget.weights.is_even:
            raise InputError(
                f"Parameter 'energy_fair_share' of {self._id} counts joules when a task is mapped, "
                "and what they cost is not known before it starts: leave it out under a budget in "
                "money (money_budget) whose prices vary."
            )
        check_number(self._id, "robustness", self.robustness, lambda x: 0 <= x <= 1, "a chance from 0 to 1")
        self.estimates_ = estimates
        self.rng_ = rng
        #: P-state in which each task was mapped
        self.pstate_: dict[int, int] = {}

    def schedule(self, state: State) -> Iterable[Decision]:
        """Map the task that has arrived, or give it up where no pair is left."""
        if not state.is_on.any():
            return []
        decisions: list[Decision] = []
        for task in state.next_waiting(1):  # asked for each task
            candidates = Candidates(state, self.estimates_, task)
            self._filter(state, candidates, self.robustness)
            decisions += self._mapped(task, candidates)
        if self.remap:
            decisions += self._remapped(state, decisions)
        return decisions

    def _mapped(self, task: int, candidates: Candidates) -> list[Decision]:
        """Map a task to the best pair that is left; without one it is dropped."""
        if not candidates.allowed.any():
            return [Drop(task)]
        host, pstate = divmod(self._choose(candidates), candidates.allowed.shape[1])
        self.pstate_[task] = pstate
        chance = 1.0 - float(candidates.late[host, pstate])
        return [Assign(task, host, pstate), Note(task, CHANCE, chance)]

    def _remapped(self, state: State, decided: list[Decision]) -> list[Decision]:
        """Withdraw unlikely tasks, one from a queue; map them elsewhere where that is likely.

        Of hosts for which something was decided in this instant, the state does not know that yet:
        they get no further task.
        """
        decisions: list[Decision] = []
        unlikely = np.flatnonzero(~reaches(state.queued_late_probabilities(), LIKELY))
        if not len(unlikely):
            return decisions
        changed = {each.host for each in decided if isinstance(each, Assign)}
        hosts = np.repeat(np.arange(len(state.queue_length)), state.queue_length)[unlikely]
        _, heads = np.unique(hosts, return_index=True)
        for host, task in zip(hosts[heads].tolist(), state.queue_tasks[unlikely[heads]].tolist(), strict=True):
            changed.add(host)
            candidates = Candidates(state, self.estimates_, task)
            candidates.allowed[sorted(changed)] = False
            returned_j = candidates.eec_j[host, self.pstate_[task]]
            self._filter(state, candidates, max(self.robustness, LIKELY), returned_j)
            mapped = self._mapped(task, candidates)
            changed.update(each.host for each in mapped if isinstance(each, Assign))
            decisions += [Cancel(task, host), *mapped]
        return decisions

    def _filter(self, state: State, candidates: Candidates, least_chance: float, returned_j: float = 0.0) -> None:
        """Take out what uses too much energy, then what is too likely to be late."""
        if self.energy_fair_share:
            candidates.allowed &= candidates.eec_j <= _fair_share_j(state, candidates, returned_j)
        if least_chance > 0:
            candidates.allowed &= reaches(candidates.late, least_chance)

    @abstractmethod
    def _choose(self, candidates: Candidates) -> int:
        """Return which pair, host by host, is taken; at least one is allowed."""


def _fair_share_j(state: State, candidates: Candidates, returned_j: float) -> float:
    """Return the largest energy that the energy filter lets a task have [J] (paper 002, eq. 6).

    A task that is withdrawn has returned its own.
    """
    energy = state.energy
    if energy.budget_j == math.inf:
        return math.inf
    depth = float(candidates.assigned.sum()) / len(candidates.assigned)
    left_j = energy.budget_j - energy.assigned_j + returned_j
    return energy_multiplier(depth) * left_j / max(state.tasks_to_arrive, 1)


def _least(allowed: Booleans, *values: NDArray[Any]) -> int:
    """Return the first of the allowed pairs with the least value; the next value breaks ties."""
    pairs = np.flatnonzero(allowed)
    for value in values:
        of_pairs = value.ravel()[pairs]
        pairs = pairs[of_pairs == of_pairs.min()]
    return int(pairs[0])


class ShortestQueue(DeadlineScheduler):
    """Shortest queue: the core with the fewest tasks, in the P-state with the shortest run time.

    Parameters
    ----------
    energy_fair_share : bool
        Take only pairs that use at most the fair share of the energy that is left.
    robustness : float
        Take only pairs that meet the deadline with at least this chance (0.5 in the paper); 0
        takes all.
    remap : bool
        At every arrival, withdraw queued tasks whose chance has fallen below 0.5, and map each
        where it is 0.5 or more, or drop it. Not in the paper.

    Notes
    -----
    Tasks that run count, too. Ties go to the smallest mean run time, then the lowest host id. A
    task for which the filters leave no pair is dropped.

    References
    ----------
    .. [1] Paper 002, section V; algorithms D4.
    """

    _id: ClassVar[str] = "shortest_queue"

    def _choose(self, candidates: Candidates) -> int:
        assigned = np.broadcast_to(candidates.assigned[:, None], candidates.eet_s.shape)
        return _least(candidates.allowed, assigned, candidates.eet_s)


class MinimumExpectedCompletionTime(DeadlineScheduler):
    """MECT: the pair with which the task ends earliest on average.

    Parameters
    ----------
    energy_fair_share, robustness, remap : bool or float
        As in `ShortestQueue`.

    Notes
    -----
    The mean of a sum of independent times is the sum of their means: nothing is convolved for it.

    References
    ----------
    .. [1] Paper 002, section V; algorithms D4.
    """

    _id: ClassVar[str] = "minimum_expected_completion_time"

    def _choose(self, candidates: Candidates) -> int:
        return _least(candidates.allowed, candidates.ect_s)


class LightestLoad(DeadlineScheduler):
    """LL: the pair with the least product of energy and chance to miss the deadline.

    Parameters
    ----------
    energy_fair_share, robustness, remap : bool or float
        As in `ShortestQueue`.
    ties : {"energy", "first"}
        Which of the pairs with the least load is taken: the one with the smaller energy, or the
        first one, host by host, the fastest P-state first.

    Notes
    -----
    ``load = EEC * (1 - rho)``, with the chance rho to end until the deadline. All pairs that are
    never late have the load 0, so that ties decide often; the paper names no second criterion.

    References
    ----------
    .. [1] Paper 002, section V, eq. 5; algorithms D4.
    """

    _id: ClassVar[str] = "lightest_load"

    def __init__(
        self, energy_fair_share: bool = False, robustness: float = 0.0, remap: bool = False, ties: str = "energy"
    ) -> None:
        super().__init__(energy_fair_share, robustness, remap)
        self.ties = ties

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters; read the energies."""
        super().prepare(system, rng)
        check_choice(self._id, "ties", self.ties, ("energy", "first"))

    def _choose(self, candidates: Candidates) -> int:
        load = np.where(candidates.allowed, candidates.eec_j, 0.0) * candidates.late
        seconds = [candidates.eec_j] if self.ties == "energy" else []
        return _least(candidates.allowed, load, *seconds)


class CheapestInTime(DeadlineScheduler):
    """The pair with the least energy of those that are in time with at least a given chance.

    Parameters
    ----------
    energy_fair_share, robustness, remap : bool or float
        As in `ShortestQueue`.
    least_chance : float
        Chance that is enough. Where no pair has it, the most likely one is taken.

    Notes
    -----
    Not in the paper. Lightest load weighs energy and lateness by their product, and saves energy
    only between pairs that are never late at all; here a small risk buys less energy. Ties, as
    between the cores of a node, go to the greater chance, then the lowest host id.

    References
    ----------
    .. [1] Our own; the chances are those of paper 002, section IV.
    """

    _id: ClassVar[str] = "cheapest_in_time"

    def __init__(
        self, energy_fair_share: bool = False, robustness: float = 0.0, remap: bool = False, least_chance: float = 0.98
    ) -> None:
        super().__init__(energy_fair_share, robustness, remap)
        self.least_chance = least_chance

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters; read the energies."""
        super().prepare(system, rng)
        check_number(self._id, "least_chance", self.least_chance, lambda x: 0 <= x <= 1, "a chance from 0 to 1")

    def _choose(self, candidates: Candidates) -> int:
        likely = candidates.allowed & reaches(candidates.late, self.least_chance)
        if not likely.any():
            return _least(candidates.allowed, candidates.late, candidates.eec_j)
        return _least(likely, candidates.eec_j, candidates.late)


class RandomImmediate(DeadlineScheduler):
    """Random: any allowed pair, all equally likely.

    Parameters
    ----------
    energy_fair_share, robustness, remap : bool or float
        As in `ShortestQueue`.

    Notes
    -----
    One number is drawn for each task that is mapped.

    References
    ----------
    .. [1] Paper 002, section V; algorithms D4.
    """

    traits: ClassVar[Traits] = replace(DeadlineScheduler.traits, uses_rng=True, platform_order_matters=True)
    _id: ClassVar[str] = "random_immediate"

    def _choose(self, candidates: Candidates) -> int:
        pairs = np.flatnonzero(candidates.allowed)
        return int(pairs[self.rng_.integers(len(pairs))])


@called_once
def _call_once() -> None:
    """Call the kernels of uncertain run times once."""
    from gridsched.model import pmf_kernels
    from gridsched.model.pmf import PmfGrid, point_mass

    table = PmfGrid(1.0, np.ones((1, 1, 1)), lambda *place: point_mass(1.0, 1.0)).table(0)
    hosts, host_type = pmf_kernels.empty_host_table(1), np.zeros(1, dtype=np.int64)
    pmf_kernels.let_pass(hosts, table, 0.0)
    pmf_kernels.mean_ready(hosts, table, 0.0)
    pmf_kernels.late_probabilities(hosts, table, host_type, 0, 0.0, 1.0)
    pmf_kernels.late_probability_of_sum(np.ones(1), np.ones(2), np.ones(2), 0.0, 1.0, 1.0)
    pmf_kernels.convolved(np.ones(1), np.ones(1))
