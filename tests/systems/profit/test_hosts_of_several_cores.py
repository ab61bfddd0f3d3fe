"""Bounds on hosts of several cores, on the paper's system, and of longest tasks first."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gridsched.errors import InputError
from gridsched.model.estimates import FlopsEstimates
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.tariff import Tariff
from gridsched.model.tasks import make_tasks
from gridsched.optimize.grouped_bag import grouped_bag
from gridsched.optimize.named_bag import bag_of_platform
from gridsched.optimize.pareto_front import exact_front
from gridsched.optimize.recovery import earnings, recover
from gridsched.optimize.typed_bag import typed_bag
from gridsched.policy.registry import entries, make_scheduler
from gridsched.runs.run import run
from gridsched.scenario import Scenario
from gridsched.systems.profit.answers import front_answer, profit_answer
from gridsched.systems.profit.profit_lp import most_profit, relative_decrease
from gridsched.systems.profit.profit_system import ProfitBag, draw_profit_system, draw_task_counts

# Programs and runs count the same hosts, whose cores share wear, depreciation and power.

SLACK = 1e-9
BAG_SCHEDULERS = [entry.id for entry in entries() if "bag" in entry.accepts]


def host(name, speed, watts, cores=1, off_w=0.0) -> Host:
    """A host of one P-state; `watts` are idle, epsilon and all cores."""
    return Host(name, (PState(speed, *watts),), cores=cores, off_w=off_w)


def bent() -> Platform:
    """Two cores of which one draws 50 W, less than the idle 100 W; and a host of 10 W."""
    first = host("a", 1.0, (100.0, 0.0, 100.0), cores=2)
    return Platform((first, host("b", 1.0, (0.0, 10.0, 10.0))))


def test_wear_and_depreciation_are_of_hosts():
    """Four tasks of 10 s on one host of 4 cores: 1000 - 10 (40 W + 5 + 3) in 10 s, 52 a second."""
    platform = Platform((host("a", 1.0, (40.0, 40.0, 40.0), cores=4),))
    tasks = make_tasks([10.0] * 4)
    tariff = Tariff(price=1000.0, wear_per_s=5.0, depreciation_per_s=3.0)
    answer = profit_answer(bag_of_platform(platform, tasks), tariff)
    done = run(Scenario(platform, tasks, "lp_max_profit", driver="reference", tariff=tariff))
    assert done.summary()["profit_rate"] == pytest.approx(52)
    assert answer.plan.profit_rate == pytest.approx(52)
    assert answer.plan.bound == pytest.approx(52)
    assert answer.whole.profit_rate == pytest.approx(52)
    # a core more: a quarter of 40 W, of the wear and of the depreciation, for a quarter of 100
    assert answer.machines()[0]["machine_worth"] == pytest.approx(25 - 10 - 5 / 4 - 3 / 4)
    front = front_answer(bag_of_platform(platform, tasks), tariff)
    assert front.rows()[0]["profit_rate"] == pytest.approx(52)


def test_cores_of_unlike_hosts_are_unlike_machines():
    """A core of two and a host of one core with the same power differ in their wear."""
    two, one = host("two", 1.0, (8.0, 8.0, 20.0), cores=2), host("one", 1.0, (4.0, 4.0, 10.0))
    bag = bag_of_platform(Platform((two, one)), make_tasks([10.0] * 3))
    assert sorted(zip(bag.machines, bag.host_share, strict=True)) == [(1, 1), (2, 0.5)]
    assert bag.hosts.sum() == 2


def test_less_power_with_one_busy_core_than_idle():
    """One task on each host: (50 + 10) W for 10 s, which `round_robin` needs."""
    tasks = make_tasks([10.0, 10.0])
    done = run(Scenario(bent(), tasks, "round_robin", driver="reference"))
    assert done.summary()["energy_j"] == pytest.approx(600)
    front = front_answer(bag_of_platform(bent(), tasks)).front
    # in 20/3 s all cores work; in 10 s the second core of `a` may rest
    assert front.least_energy_j(10.0) <= 600 * (1 + SLACK)
    assert (front.makespans_s[0], front.energies_j[0]) == pytest.approx((20 / 3, 110 * 20 / 3))
    assert front.energies_j[-1] == pytest.approx(600)
    bag = bag_of_platform(bent(), tasks)
    names = bag.machine_types
    assert "host 'a' does not draw evenly more with its load" in bag.notes[0]
    assert set(names) == {"a, first cores", "a, further cores", "b"}
    for price in (0.0, 1000.0):
        tariff = Tariff(price=price)
        paid = run(Scenario(bent(), tasks, "round_robin", driver="reference", tariff=tariff))
        answer = profit_answer(bag_of_platform(bent(), tasks), tariff)
        assert paid.summary()["profit_rate"] <= answer.plan.bound + SLACK


def test_a_host_takes_its_tasks_in_the_order_of_their_starts():
    """4 s and then 2 s of work on one core of `a`, 1 s on the other one: 4, 1 and 2 s."""
    platform, tasks = Platform(bent().hosts[:1]), make_tasks([4.0, 2.0, 1.0])
    grouped = grouped_bag(platform, FlopsEstimates(platform, tasks), tasks, np.arange(3), np.arange(1))
    placed, hosts = grouped.placed(recover(grouped.bag, np.array([[0.0, 1], [1, 0], [1, 0]])))
    assert (placed.tolist(), hosts.tolist()) == ([0, 2, 1], [0, 0, 0])


@pytest.mark.parametrize(
    ("scheduler", "parameters"), [("lp_max_profit", {}), ("lp_pareto", {"energy_weight": 0}), ("lp_rolling", {})]
)
def test_plans_on_bent_power_curves_are_executed(scheduler, parameters):
    """Each core is one machine of one type: at a price that pays haste all work, two tasks each."""
    scenario = Scenario(
        bent(), make_tasks([10.0] * 6), scheduler, parameters, driver="reference", tariff=Tariff(price=1e6)
    )
    done = run(scenario).summary()
    assert (done["tasks_finished"], done["makespan_s"]) == (6, pytest.approx(20))


# ---------------------------------------------------------------------- properties

watt = st.sampled_from([0.0, 1.0, 10.0, 33.3, 50.0, 100.0])
speed = st.sampled_from([1.0, 3.0, 10.0])
money = st.sampled_from([0.0, 0.5, 5.0])


@st.composite
def platforms(draw) -> Platform:
    """Hosts of several cores, any order of idle power, epsilon and the power of all cores."""
    hosts = [
        host(f"h{k}", draw(speed), [draw(watt) for _ in range(3)], draw(st.sampled_from([1, 2, 2, 4])), draw(watt))
        for k in range(draw(st.integers(1, 3)))
    ]
    return Platform(tuple(hosts))


@st.composite
def tariffs(draw) -> Tariff:
    """Prices around what the energy costs, wear and depreciation."""
    return Tariff(
        price=draw(st.sampled_from([0.0, 100.0, 3000.0])),
        energy_cost_per_j=draw(st.sampled_from([0.0, 1.0])),
        pue=draw(st.sampled_from([1.0, 1.5])),
        overhead=draw(st.sampled_from([0.0, 500.0])),
        wear_per_s=draw(money),
        depreciation_per_s=draw(money),
    )


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=150, deadline=None)
@given(
    platforms(),
    st.lists(st.sampled_from([1.0, 10.0, 10.0, 37.0]), min_size=1, max_size=8),
    tariffs(),
    st.sampled_from(BAG_SCHEDULERS),
    st.sampled_from([1.0, 1.3, np.inf]),
)
def test_no_schedule_is_better_than_what_the_programmes_prove(platform, flops, tariff, scheduler, room):
    """Every registered scheduler; with all hosts on, as the programs have them."""
    if make_scheduler(scheduler).traits.powers_hosts:  # off is idle, so that it saves nothing
        rested = [dataclasses.replace(h, off_w=h.pstates[0].idle_w) for h in platform.hosts]
        platform = Platform(tuple(rested))
    tasks = make_tasks(flops)
    try:
        done = run(Scenario(platform, tasks, scheduler, driver="reference", tariff=tariff)).summary()
    except InputError:  # LECSA and its like refuse hosts without power figures
        assume(False)
    bag = bag_of_platform(platform, tasks)
    if done["tasks_finished"] == len(tasks):
        front = front_answer(bag).front
        makespan, energy = done["makespan_s"], done["energy_j"]
        assert makespan >= front.least_makespan_s * (1 - SLACK)
        least = front.least_energy_j(makespan * (1 + SLACK))
        assert energy >= least * (1 - SLACK) - SLACK
    cap = np.inf
    if done["makespan_s"] and np.isfinite(room):
        cap = room * tariff.pue * done["energy_j"] / done["horizon_s"]
    assume(cap > 0)
    try:
        answer = profit_answer(bag, tariff, power_cap_w=cap)
    except InputError:  # the cap is below what idle hosts draw: the run had cores that draw less
        assert np.isfinite(cap)
        return
    rate = done["profit_rate"]
    if np.isnan(rate):
        return
    size = max(abs(rate), tariff.price / max(done["horizon_s"], 1e-9))
    assert rate <= answer.plan.bound + SLACK * size
    if answer.whole is not None:
        assert answer.whole.profit_rate <= answer.plan.bound + SLACK * size


# LPT by counts places tasks as LPT does one by one.


# The system of paper 003's size: 11,000 tasks of 30 types on 360 machines of 9 types.

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
