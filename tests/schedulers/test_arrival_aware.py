"""`arrival_aware` by hand: what it learns, its goal energy, and what an event goes by."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from gridsched import Scenario, run
from gridsched.model.parallel_estimates import ParallelEstimates, node_platform
from gridsched.model.rules import EnergyBudget
from gridsched.model.task_types import TYPED_TASK_FLOPS
from gridsched.model.tasks import make_tasks
from gridsched.model.utility import UtilityFunctions
from gridsched.policy.registry import make_scheduler
from gridsched.policy.state import EnergyState
from gridsched.runs.scenario import make_system
from gridsched.schedulers.kernels.parallel_options import UPE, UPR, Objective
from gridsched.schedulers.parallel.arrival_aware import DemandPattern, energy_weight, least_energy_j
from gridsched.sim.library import is_installed

DRIVERS = ("reference", "simgrid") if is_installed() else ("reference",)
INF = math.inf


def pattern(*tasks: tuple[float, float]) -> DemandPattern:
    """Return a pattern that knows tasks of some times and demands, told one by one."""
    found = DemandPattern()
    for submit_s, demand in tasks:
        found.add(np.array([submit_s]), np.array([demand]))
    return found


def test_what_earlier_periods_tell_of_each_part():
    """Periods of 24 s. At 30 s 18 parts of 1 s are to come, of which that at 11 s had 3 J.

    The mean rate is 10 J in 30 s. Each part had 1 s before, to which 1 s at the mean rate is added:
    the part at 11 s is expected at (3 + 1/3) / 2, the others at (1/3) / 2: together 4.5 J.
    """
    known = pattern((1.0, 1.0), (5.0, 2.0), (11.0, 3.0), (30.0, 4.0))
    assert known.expected_j(30.0, 24.0, 48.0) == pytest.approx(4.5)
    # half a second later half a part less is to come, and the mean rate is lower
    assert known.expected_j(30.5, 24.0, 48.0) == pytest.approx((3.0 + 17.5 * 10.0 / 30.5) / 2.0)
    # the next period has two before it: 10 J and 23 parts of 1 s, each with 2 s before
    known.add(np.array([48.5]), np.array([1.0]))
    expected = (10.0 + 23.0 * 11.0 / 49.0) / 3.0
    assert known.expected_j(49.0, 48.0, 72.0) == pytest.approx(expected)
    assert known.expected_j(72.0, 48.0, 72.0) == 0.0


def test_a_warm_up_is_history_of_the_parts_that_it_covers():
    """4 s before periods of 24 s belong to the parts from 20 to 24 s; here 2 J came at 20.5 s.

    In the warm-up itself the whole period is expected at the mean rate.
    """
    known = pattern((0.5, 2.0))
    assert known.expected_j(2.0, 4.0, 28.0) == pytest.approx(24.0)
    known.add(np.array([5.0]), np.array([1.0]))
    mean = 3.0 / 8.0  # at 8 s: 4 s of today
    expected = 16 * mean + (2.0 + 4 * mean) / 2.0
    assert known.expected_j(8.0, 4.0, 28.0) == pytest.approx(expected)


def test_without_history_the_mean_rate_of_today_is_expected():
    """8 J in 10 of 24 s: 0.8 W for 14 s more. Nothing is known at time 0, or without demand."""
    known = pattern((0.0, 7.0), (2.0, 1.0))
    assert known.expected_j(10.0, 0.0, 24.0) == pytest.approx(11.2)
    assert known.is_known(10.0)
    assert not known.is_known(0.0)
    assert not pattern((1.0, 0.0)).is_known(6.0)


def test_energy_weighs_by_what_is_left_of_the_goal():
    """1,000 J, 500 spent: 1 if 500 should be; (600 / 500) ** 6 if only 400 should be."""
    energy = EnergyState(1000.0, 300.0, 200.0, 500.0, 0.0, 0.0, 100.0)
    assert energy_weight(energy, 500.0) == 1.0
    assert energy_weight(energy, 400.0) == pytest.approx(1.2**6)
    assert energy_weight(energy, 600.0) == pytest.approx(0.8**6)
    assert energy_weight(energy, -500.0) == pytest.approx(3.0**6)
    # less than a tenth of what remains counts as a tenth, more than ten times as ten times
    assert energy_weight(energy, 990.0) == energy_weight(energy, 1000.0) == pytest.approx(1e-6)
    assert energy_weight(energy, -9000.0) == pytest.approx(1e6)
    assert energy_weight(replace(energy, remaining_j=0.0), 500.0) == INF
    assert energy_weight(replace(energy, budget_j=INF, remaining_j=INF), INF) == 0.0


def two_pstates(budget: EnergyBudget | None) -> Scenario:
    """Return two one-core nodes; a task each at 0 and 20 s, with two P-states.

    10 s at 20 W, or 20 s at 8 W. The mean is 14 W, so that energy decides from a weight of 3.5:
    10 + 200 w / 14 = 20 + 160 w / 14.
    """
    times, watts = np.array([[[10.0, 20.0]]] * 2), np.array([[[20.0, 8.0]]])
    nodes = np.ones((2, 1), dtype=np.int64)
    platform = node_platform(times[:1], watts, [2])
    tasks = make_tasks(
        [TYPED_TASK_FLOPS] * 2,
        [0.0, 20.0],
        task_type=[0, 0],
        width=[1, 1],
        utility=UtilityFunctions.exponential([4.0, 4.0], 0.0),
    )
    estimates = ParallelEstimates(platform, times, nodes, watts, [0, 0], cores_per_node=1)
    return Scenario(platform, tasks, "arrival_aware", estimates=estimates, mapping_interval_s=10.0, budget=budget)


def pstates_of(budget: EnergyBudget | None, driver: str) -> list[int]:
    """Return the P-states of the two tasks."""
    trace = run(replace(two_pstates(budget), driver=driver)).trace
    return list(trace.executions["pstate"].tolist())


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_choice_by_hand(driver: str):
    """The first runs fast, with 200 J. At 20 s, after 320 J, 80 s at 16 W are expected.

    With the 160 J of the task itself 1.5 * 1,440 J should remain. Of 2,000 J: (2160 / 1800) ** 6
    = 2.99, fast again. Of 1,900 J: (2160 / 1700) ** 6 = 4.21, slowly.
    """
    assert pstates_of(EnergyBudget(2000.0, period_s=100.0), driver) == [0, 0]
    assert pstates_of(EnergyBudget(1900.0, period_s=100.0), driver) == [0, 1]
    assert pstates_of(None, driver) == [0, 0]


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(("demand", "pstate"), [("submitted", 1), ("served", 0)])
def test_what_is_dropped_may_count_less(demand: str, pstate: int, driver: str):
    """A third task, worth too little, is dropped at 0 s. At 20 s 200 J of 2,000 J are spent.

    80 s at 24 W and 160 J are 2,080 J to come, of which 3,120 J should remain: more than 1,800 J, so
    that the second task runs slowly. Of what was decided on half was served: 1,560 J are enough.
    """
    whole = two_pstates(EnergyBudget(2000.0, period_s=100.0))
    assert isinstance(whole.estimates, ParallelEstimates)
    tasks = make_tasks(
        [TYPED_TASK_FLOPS] * 3,
        [0.0, 0.0, 20.0],
        task_type=[0] * 3,
        width=[1] * 3,
        utility=UtilityFunctions.exponential([4.0, 0.4, 4.0], 0.0),
    )
    times = np.array([[[10.0, 20.0]]] * 3)
    estimates = ParallelEstimates(
        whole.platform, times, np.ones((3, 1), dtype=np.int64), np.array([[[20.0, 8.0]]]), [0] * 3, cores_per_node=1
    )
    trace = run(replace(whole, tasks=tasks, estimates=estimates, driver=driver, parameters={"demand": demand})).trace
    assert trace.executions["pstate"].tolist() == [0, pstate]


@pytest.mark.parametrize("driver", DRIVERS)
def test_before_the_first_period_its_budget_counts(driver: str):
    """At 20 s 100 s at 16 W are expected, and 160 J wait: 2,640 J should remain.

    Of 2,200 J: 1.2 ** 6 = 2.99, fast; of 2,000 J: 1.32 ** 6 = 5.3, slowly.
    """
    for budget_j, chosen in ((2200.0, 0), (2000.0, 1)):
        budget = EnergyBudget(budget_j, period_s=100.0, first_period_start_s=50.0)
        assert pstates_of(budget, driver) == [0, chosen]


def test_what_an_event_goes_by():
    """Max UPR without a budget, Max UPE where nothing remains, between them a weighted sum.

    Where nothing is known the goal is Event-Based's; in a period without end it is 0.
    """
    scheduler = make_scheduler("arrival_aware")
    scheduler.prepare(make_system(two_pstates(None)), np.random.default_rng(0))
    energy = EnergyState(1000.0, 300.0, 200.0, 500.0, 0.0, 0.0, 100.0)
    between = Objective(resource=1.0, energy=1.0 / 14.0)
    assert scheduler._objectives(energy, 50.0) == (between, between, 500.0, 500.0)
    endless = replace(energy, period_end=INF)
    doubled = Objective(resource=1.0, energy=2.0**6 / 14.0)
    assert scheduler._objectives(endless, 50.0) == (doubled, doubled, 500.0, 0.0)
    assert scheduler._objectives(replace(energy, remaining_j=0.0), 50.0)[:2] == (UPE, UPE)
    free = replace(energy, budget_j=INF, remaining_j=INF, period_end=INF)
    assert scheduler._objectives(free, 50.0)[0] == UPR
    scheduler.core_power_w_ = 0.0
    assert scheduler._objectives(energy, 50.0)[0] == UPR


def test_what_a_task_demands():
    """Its least energy; nothing where it can run nowhere."""
    energies = np.array([[[5.0, 4.0], [6.0, INF]], [[INF, INF], [INF, INF]]])
    assert least_energy_j(energies).tolist() == [4.0, 0.0]
