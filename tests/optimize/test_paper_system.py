"""The system of paper 003's size: 11,000 tasks of 30 types on 360 machines of 9 types."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from gridsched.model.tariff import Tariff
from gridsched.optimize.pareto_front import exact_front
from gridsched.optimize.profit_lp import most_profit, relative_decrease
from gridsched.optimize.recovery import earnings, recover
from gridsched.optimize.typed_bag import typed_bag
from gridsched.workloads.profit_system import ProfitBag, draw_profit_system, draw_task_counts

CAP_W = 55e3


@cache
def system_and_front(idle_share=0.0, tasks=11_000):
    """The bag, and its front."""
    spec = ProfitBag(idle_share=idle_share, tasks=tasks)
    system = draw_profit_system(spec)
    counts = draw_task_counts(spec, system)
    bag = typed_bag(system.etc, system.apc, counts, system.machines, system.idle_w)
    return bag, exact_front(bag)


def priced(front, gamma):
    """Price ``gamma E_min``."""
    return Tariff(price=gamma * front.energies_j[-1])


@pytest.mark.parametrize("cap", [np.inf, CAP_W])
@pytest.mark.parametrize("gamma", [1.01, 1.2, 1.5])
def test_bound_and_full_allocation_nearly_coincide(gamma, cap):
    """F-003, 1 and 7: at most 5 % between the bounds; mean power under the cap, exactly."""
    bag, front = system_and_front()
    tariff = priced(front, gamma)
    plan = most_profit(bag, tariff, power_cap_w=cap)
    earned = earnings(recover(bag, plan.x), tariff, power_cap_w=cap)
    assert 0 <= relative_decrease(plan.bound, earned.profit_rate) <= 0.05
    assert plan.mean_power_w <= cap * (1 + 1e-12)
    assert earned.mean_power_w <= cap * (1 + 1e-12)


def test_the_cap_cuts_off_the_fast_end():
    """F-003, 7: the fastest schedule draws more than 55 kW, the cheapest less."""
    _, front = system_and_front()
    power = front.energies_j / front.makespans_s
    assert power[0] > CAP_W > power[-1]


def test_a_low_price_saves_energy():
    """F-003, 2: gamma 1.01 is at the least energy, to 1 %; a higher gamma is faster."""
    bag, front = system_and_front()
    plans = [most_profit(bag, priced(front, gamma)) for gamma in (1.01, 1.2, 1.5)]
    assert plans[0].energy_j <= 1.01 * front.energies_j[-1]
    assert plans[0].makespan_s > plans[1].makespan_s > plans[2].makespan_s


@pytest.mark.parametrize("idle_share", [0.0, 0.05])
@pytest.mark.parametrize("gamma", [1.0, 1.01, 1.2, 1.5])
def test_equal_to_the_best_point_of_the_front(gamma, idle_share):
    """F-003, 5: for gamma >= 1 the best corner of the front earns the same."""
    bag, front = system_and_front(idle_share)
    tariff = priced(front, gamma)
    best = ((tariff.price - front.energies_j) / front.makespans_s).max()
    size = tariff.price / front.makespans_s[0]
    plan = most_profit(bag, tariff)
    assert plan.profit_rate == pytest.approx(best, rel=1e-6, abs=1e-9 * size)


def test_losses_leave_the_front():
    """F-003, 5 and 6: with idle power and gamma 0.9 the least loss is slower and dearer."""
    bag, front = system_and_front(0.05)
    tariff = priced(front, 0.9)
    plan = most_profit(bag, tariff)
    best = ((tariff.price - front.energies_j) / front.makespans_s).max()
    assert plan.runs
    assert best < plan.profit_rate < 0
    assert plan.energy_j > front.energies_j[-1]
    assert plan.makespan_s > front.makespans_s[-1]
    assert front.excess(plan.makespan_s, plan.energy_j) > 0.01


@pytest.mark.parametrize(("idle_share", "gamma"), [(0.0, 0.99), (0.05, 0.6)])
def test_do_not_run_below_some_price(idle_share, gamma):
    """Without idle power below gamma 1, with idle power below some gamma_0."""
    bag, front = system_and_front(idle_share)
    plan = most_profit(bag, priced(front, gamma))
    assert not plan.runs
    assert plan.profit_rate == pytest.approx(-bag.all_idle_w)


def test_a_thousand_million_tasks_have_the_same_plan():
    """The frequencies decide, not the number of tasks: bounds coincide to 10^-6."""
    bag, front = system_and_front(tasks=10**9)
    tariff = priced(front, 1.2)
    plan = most_profit(bag, tariff)
    found = recover(bag, plan.x)
    assert sum(int(m.counts.sum()) for m in found.machines) == 10**9
    earned = earnings(found, tariff)
    assert 0 <= relative_decrease(plan.bound, earned.profit_rate) < 1e-6
