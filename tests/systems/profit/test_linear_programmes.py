"""Schedulers by linear programs, once and rolling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gridsched import Scenario, run
from gridsched.errors import InputError
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.prices import PriceSeries
from gridsched.model.tariff import Tariff
from gridsched.model.task_types import TYPED_TASK_FLOPS, TaskTypes, typed_platform
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import TaskState
from gridsched.optimize.grouped_bag import grouped_bag
from gridsched.optimize.pareto_front import least_energy, weighted_point
from gridsched.optimize.recovery import earnings, recover
from gridsched.optimize.typed_bag import typed_bag
from gridsched.runs.scenario_maker import load
from gridsched.scenario import make_system
from gridsched.systems.profit.linear_programmes import LPPareto
from gridsched.systems.profit.profit_lp import most_profit
from gridsched.systems.profit.profit_system import ProfitBag, draw_profit_system, draw_task_counts, generate_profit_bag
from gridsched.testing import trace_differences

# Plans by linear programs: E5 of the algorithms by hand, and SimGrid meters what was planned.

DRIVERS = ("reference", "simgrid")
#: Relative difference between the plan's numbers and a run's.
AGREEMENT = 1e-9


def example(scheduler="lp_max_profit", tasks=12, idle_w=0.0, **changes) -> Scenario:
    """E5: a task takes 2 s at 10 W on the first machine, or 4 s at 2.5 W on the second."""
    types = TaskTypes(np.array([[[2.0], [4.0]]]), np.array([[[10.0], [2.5]]]), np.array([0, 1]), idle_w=idle_w)
    bag = make_tasks([TYPED_TASK_FLOPS] * tasks, task_type=[0] * tasks)
    changes = {"driver": "reference", **changes}
    return Scenario(typed_platform(types), bag, scheduler, types=types, **changes)


def counts_on(result, hosts=2) -> list[int]:
    """Tasks on each host."""
    return np.bincount(result.trace.executions["host"], minlength=hosts).tolist()


# ---------------------------------------------------------------------- by hand


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(
    ("price", "tasks", "makespan", "energy", "rate"), [(180, [0, 12], 48, 120, 1.25), (300, [8, 4], 16, 200, 6.25)]
)
def test_profit_by_hand(driver, price, tasks, makespan, energy, rate):
    """E5: the cheapest machines for a low price, the shortest makespan for a high one."""
    result = run(example(tariff=Tariff(price=price), driver=driver))
    numbers = result.summary()
    assert counts_on(result) == tasks
    assert numbers["makespan_s"] == pytest.approx(makespan, rel=1e-12)
    assert numbers["energy_j"] == pytest.approx(energy, rel=1e-12)
    assert numbers["profit"] == pytest.approx(price - energy, rel=1e-12)
    assert numbers["profit_rate"] == pytest.approx(rate, rel=1e-12)


@pytest.mark.parametrize("driver", DRIVERS)
def test_under_a_power_cap_by_hand(driver):
    """E5: 7.2 and 4.8 tasks become 7 and 5; 190 J in 20 s, 5.5 a second, 9.5 W on average."""
    scenario = example(tariff=Tariff(price=300), parameters={"power_cap_w": 10.0}, driver=driver)
    result = run(scenario)
    assert counts_on(result) == [7, 5]
    assert result.summary()["profit_rate"] == pytest.approx(5.5, rel=1e-12)
    assert result.summary()["energy_j"] == pytest.approx(190.0, rel=1e-12)


def test_idle_power_counts_to_the_makespan():
    """E5 with 1 and 0.25 W: 8 and 4 tasks keep both machines busy, so that nothing idles."""
    idle_w = np.array([1.0, 0.25])
    result = run(example(tariff=Tariff(price=300), idle_w=idle_w))
    assert counts_on(result) == [8, 4]
    assert result.summary()["energy_j"] == pytest.approx(200.0, rel=1e-12)
    capped = run(example(tariff=Tariff(price=300), idle_w=idle_w, parameters={"power_cap_w": 10.0}))
    # 7 tasks, 14 s, then 6 s idle at 1 W; 5 tasks, 20 s
    assert capped.summary()["energy_j"] == pytest.approx(140.0 + 6.0 + 50.0, rel=1e-12)


def test_a_bag_that_only_loses_is_not_run():
    """E5, gamma 0.9: r = 0; every task is dropped, and nothing is earned."""
    result = run(example(tariff=Tariff(price=108)))
    assert (result.trace.final_state == TaskState.DROPPED).all()
    assert result.summary()["profit"] == 0.0


def test_gamma_takes_the_place_of_the_price():
    """Gamma 2.5 of 120 J is a price of 300; the costs are the tariff's."""
    dear = run(example(parameters={"gamma": 2.5}))
    assert counts_on(dear) == [8, 4]
    cheap = run(example(parameters={"gamma": 1.5}, tariff=Tariff(price=300)))
    assert counts_on(cheap) == [0, 12]
    assert cheap.summary()["profit"] == pytest.approx(180.0, rel=1e-12)  # of what is paid


@pytest.mark.parametrize(("weight", "tasks"), [(0.0, [8, 4]), (0.5, [8, 4]), (0.9, [0, 12]), (1.0, [0, 12])])
def test_weights_of_the_energy_by_hand(weight, tasks):
    """Both ends of E5's front; a weight of 0.75 is an exact tie."""
    assert counts_on(run(example("lp_pareto", parameters={"energy_weight": weight}))) == tasks


@pytest.mark.parametrize(
    ("parameters", "tariff", "tasks"),
    [
        ({"gamma": 1.5}, None, [0, 12]),
        ({}, Tariff(price=300), [8, 4]),
        ({"gamma": 0.9}, None, [0, 12]),  # the front does not stand still
    ],
)
def test_the_most_profitable_point_of_the_front(parameters, tariff, tasks):
    """E5's front has two corners: 60 / 48 against -20 / 16, and 100 / 16 against 180 / 48."""
    result = run(example("lp_pareto_profit", parameters=parameters, tariff=tariff))
    assert counts_on(result) == tasks


def test_a_promised_rate_runs_what_loses():
    """A bag in 48 s has been promised: the cheapest way that keeps it."""
    rate = {"least_rate_per_s": 1 / 48}
    result = run(example(tariff=Tariff(price=108), parameters=rate))
    assert counts_on(result) == [0, 12]
    assert result.summary()["profit_rate"] == pytest.approx((108 - 120) / 48, rel=1e-12)


def test_a_bag_with_a_task_unfinished_pays_nothing():
    """A horizon ends the run: energy costs, and the bag pays nothing."""
    result = run(example("lp_pareto", tariff=Tariff(price=300), horizon_s=5.0))
    numbers = result.summary()
    assert numbers["tasks_finished"] < 12
    assert numbers["profit"] == pytest.approx(-numbers["energy_j"], rel=1e-12)


def test_wear_and_depreciation_are_by_machine_type():
    """E3's numbers on (8, 4) tasks: wear 16 + 8, overhead 12, depreciation 16 x 1.5."""
    tariff = Tariff(price=300, overhead=12, wear_per_s=(1, 0.5), depreciation_per_s=(1, 0.5))
    numbers = run(example(tariff=tariff)).summary()
    assert numbers["profit"] == pytest.approx(300 - 12 - 200 - 16 - 8 - 24, rel=1e-12)
    assert numbers["profit_rate"] == pytest.approx(2.5, rel=1e-12)


@pytest.mark.parametrize("scheduler", ["lp_max_profit", "lp_rolling"])
def test_wear_of_the_machine_types_that_are_on(scheduler):
    """The fast machine is off: 12 tasks wear the slow one for 48 s, and both lose value."""
    tariff = Tariff(price=300, wear_per_s=(1, 0.5), depreciation_per_s=(1, 0.5))
    name = example().platform.hosts[0].name
    numbers = run(example(scheduler, tariff=tariff, hosts_off=(name,))).summary()
    assert numbers["tasks_finished"] == 12
    assert numbers["profit"] == pytest.approx(300 - 120 - 48 * 0.5 - 48 * 1.5, rel=1e-12)


@pytest.mark.parametrize(
    ("scheduler", "parameters"),
    [
        ("lp_max_profit", {"gamma": -1.0}),
        ("lp_max_profit", {"gamma": "high"}),
        ("lp_max_profit", {"power_cap_w": 0.0}),
        ("lp_max_profit", {"least_rate_per_s": -1.0}),
        ("lp_pareto", {"energy_weight": 1.5}),
        ("lp_pareto", {"energy_weight": True}),
        ("lp_pareto_profit", {"gamma": "high"}),
    ],
)
def test_parameters_out_of_range(scheduler, parameters):
    """Which parameter, what is allowed, what was found."""
    (name,) = parameters
    with pytest.raises(InputError, match=rf"{name!r} of {scheduler}.*number"):
        run(example(scheduler, parameters=parameters))


# ---------------------------------------------------------------------- bags without types


def test_a_bag_of_sizes_is_grouped_by_size_and_core():
    """Sizes are task types; equal hosts one machine type, each core a machine with its share."""
    quick = Host("q", (PState(10.0, 4.0, 4.0, 20.0),), cores=2)
    slow = [Host(f"s{k}", (PState(5.0, 1.0, 1.0, 3.0),)) for k in range(2)]
    tasks = make_tasks([100.0, 50.0, 100.0, 50.0, 50.0])
    platform = Platform((slow[0], quick, slow[1]))
    system = make_system(load(Scenario(platform, tasks)))
    everything = np.arange(5), np.arange(3)
    grouped = grouped_bag(platform, system.estimates, tasks, *everything)
    assert grouped.bag.tasks.tolist() == [3, 2]
    assert grouped.bag.etc.tolist() == [[10.0, 5.0], [20.0, 10.0]]
    assert grouped.bag.apc.tolist() == [[3.0, 10.0], [3.0, 10.0]]
    assert grouped.bag.idle_w.tolist() == [1.0, 2.0]
    assert [hosts.tolist() for hosts in grouped.machines] == [[0, 2], [1, 1]]
    assert grouped.tasks.tolist() == [1, 3, 4, 0, 2]


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_bag_of_sizes_runs_as_planned(driver):
    """Two cores and two hosts of one core; makespan and joules are those of the allocation."""
    rng = np.random.default_rng(3)
    hosts = [Host("q", (PState(10.0, 4.0, 4.0, 20.0),), cores=2)]
    hosts += [Host(f"s{k}", (PState(5.0, 1.0, 1.0, 3.0),)) for k in range(2)]
    tasks = make_tasks(rng.choice([30.0, 50.0, 100.0], 40))
    platform = Platform(tuple(hosts))
    scenario = Scenario(platform, tasks, "lp_pareto", driver=driver)
    system = make_system(load(scenario))
    grouped = grouped_bag(platform, system.estimates, tasks, np.arange(40), np.arange(3))
    planned = recover(grouped.bag, weighted_point(grouped.bag, 0.5).x)
    numbers = run(scenario).summary()
    assert numbers["makespan_s"] == pytest.approx(planned.finish_s, rel=AGREEMENT)
    assert numbers["energy_j"] == pytest.approx(planned.energy_j, rel=AGREEMENT)


@pytest.mark.parametrize("driver", DRIVERS)
def test_unused_hosts_are_off_by_hand(driver):
    """E5 at 180 money: 12 tasks on the slow machine, 48 s; the fast one draws no idle power."""
    scenario = example(tariff=Tariff(price=180), idle_w=np.array([1.0, 0.25]), driver=driver)
    default = run(scenario).summary()
    saving = run(replace(scenario, parameters={"power_off_unused": True})).summary()
    assert default["energy_j"] == pytest.approx(120.0 + 48 * 1.0, rel=1e-12)
    assert saving["energy_j"] == pytest.approx(120.0, rel=1e-12)
    assert saving["makespan_s"] == 48.0
    assert saving["profit"] == pytest.approx(60.0, rel=1e-12)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_plan_without_unused_hosts_has_its_own_energy(driver):
    """A host is on where one of its cores has a task; those that are off draw what they draw."""
    busy = [Host(f"q{k}", (PState(10.0, 4.0, 4.0, 20.0),), cores=2, off_w=0.5) for k in range(3)]
    slow = [Host(f"s{k}", (PState(5.0, 1.0, 1.0, 3.0),), off_w=0.25) for k in range(9)]
    tasks = make_tasks([30.0, 50.0, 50.0, 100.0])
    platform = Platform((*busy, *slow))
    saving = {"energy_weight": 0.5, "power_off_unused": True}
    scenario = Scenario(platform, tasks, "lp_pareto", parameters=saving, driver=driver)
    system = make_system(load(scenario))
    grouped = grouped_bag(platform, system.estimates, tasks, np.arange(4), np.arange(12))
    planned = recover(grouped.bag, weighted_point(grouped.bag, 0.5).x)
    _, planned_hosts = grouped.placed(planned)
    unused = [host for k, host in enumerate(platform.hosts) if k not in planned_hosts]
    saved_w = sum(host.pstates[0].idle_w - host.off_w for host in unused)
    energy_j = planned.energy_j - saved_w * planned.finish_s
    assert energy_j < planned.energy_j
    result = run(scenario)
    assert 1 <= result.summary()["hosts_used"] < 12
    assert result.summary()["energy_j"] == pytest.approx(energy_j, rel=AGREEMENT)
    assert result.summary()["makespan_s"] == pytest.approx(planned.finish_s, rel=AGREEMENT)


def test_only_with_the_option_hosts_are_switched():
    """Bounds use it: without it every schedule has the idle power of all hosts."""
    plain, saving = LPPareto(), LPPareto(power_off_unused=True)
    assert (plain.traits.powers_hosts, saving.traits.powers_hosts) == (False, True)
    assert not LPPareto.traits.powers_hosts
    assert saving.clone().traits == saving.traits
    with pytest.raises(InputError, match=r"'power_off_unused'.*LPPareto.*'yes'"):
        run(example("lp_pareto", parameters={"power_off_unused": "yes"}))


def test_typed_tasks_on_hosts_of_several_cores_are_refused():
    """Typed power is that of the whole host."""
    scenario = example("lp_pareto")
    first, second = scenario.platform.hosts
    platform = Platform((replace(first, cores=2), second))
    with pytest.raises(InputError, match=r"m1.*cores"):
        run(replace(scenario, platform=platform))


# ---------------------------------------------------------------------- the paper's system


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("idle_share", [0.0, 0.05])
def test_runs_of_the_papers_system_are_the_plan(driver, idle_share):
    """11,000 tasks on 360 machines: makespan, joules and profit rate equal the plan's."""
    spec = ProfitBag(idle_share=idle_share)
    system = draw_profit_system(spec)
    bag = typed_bag(system.etc, system.apc, draw_task_counts(spec, system), system.machines, system.idle_w)
    tariff = Tariff(price=0).priced(1.2, least_energy(bag).energy_j)
    plan = most_profit(bag, tariff)
    allocation = recover(bag, plan.x)
    scenario = Scenario(None, "", "lp_max_profit", tariff=tariff, driver=driver)
    result = run(scenario.with_system(generate_profit_bag(spec)))
    numbers = result.summary()
    assert numbers["tasks_finished"] == 11_000
    assert numbers["makespan_s"] == pytest.approx(allocation.finish_s, rel=AGREEMENT)
    assert numbers["energy_j"] == pytest.approx(allocation.energy_j, rel=AGREEMENT)
    assert numbers["energy_model_j"] == pytest.approx(allocation.energy_j, rel=AGREEMENT)
    earned = earnings(allocation, tariff).profit_rate
    assert numbers["profit_rate"] == pytest.approx(earned, rel=AGREEMENT)
    assert numbers["profit_rate"] <= plan.bound


# Bags that arrive and prices that vary: hand-computed plans, waits, drops and profits.

INF = float("inf")


def prices(*lines: tuple[float, ...], period_s: float = INF, **costs) -> Tariff:
    """A tariff of lines (time, price, energy cost, price per waiting bag)."""
    columns = zip(*((*line, 0.0)[:4] for line in lines), strict=True)
    return Tariff(price=0.0, prices=PriceSeries(*columns), prices_period_s=period_s, **costs)


def rolling_example(tariff: Tariff, *bags: tuple[float, int], **changes) -> Scenario:
    """E5's machines, 2 s at 10 W or 4 s at 2.5 W; bags are (submission, tasks)."""
    types = TaskTypes(
        np.array([[[changes.pop("fast_s", 2.0)], [4.0]]]),
        np.array([[[10.0], [2.5]]]),
        np.array([0, 1]),
        idle_w=np.array(changes.pop("idle_w", (0.0, 0.0))),
    )
    submit_s = np.repeat([time for time, _ in bags], [n for _, n in bags])
    tasks = make_tasks([TYPED_TASK_FLOPS] * len(submit_s), submit_s, task_type=[0] * len(submit_s))
    changes = {"driver": "reference", "tariff": tariff, **changes}
    return Scenario(typed_platform(types), tasks, "lp_rolling", types=types, **changes)


def starts_on(result, host: int) -> list[float]:
    """When tasks start on a host."""
    runs = result.trace.executions
    return sorted(runs["start"][runs["host"] == host].tolist())


# ---------------------------------------------------------------------- plans by hand


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_change_of_the_price_plans_anew(driver):
    """A bag of 12 tasks at 180 money: the slow machine alone; from 9 s on at 300 both.

    At 9 s two tasks are done and one runs until 12 s. The 9 that wait are worth 9/12 of 300, and
    gamma 2.5 divides them 6 : 3. In the interval from 9 s on a joule costs as much as before.
    """
    tariff = prices((0.0, 180.0, 1.0), (9.0, 300.0, 1.0))
    result = run(rolling_example(tariff, (0.0, 12), driver=driver))
    assert starts_on(result, 0) == [9.0, 11.0, 13.0, 15.0, 17.0, 19.0]
    assert starts_on(result, 1) == [0.0, 4.0, 8.0, 12.0, 16.0, 20.0]
    numbers = result.summary()
    assert numbers["makespan_s"] == 24.0
    assert numbers["income"] == 300.0
    assert numbers["energy_cost"] == pytest.approx(6 * 20 + 6 * 10, rel=1e-12)
    assert numbers["profit"] == pytest.approx(120.0, rel=1e-12)
    assert numbers["profit_rate"] == pytest.approx(5.0, rel=1e-12)


@pytest.mark.parametrize("driver", DRIVERS)
def test_nothing_starts_while_energy_is_too_dear(driver):
    """12 tasks cost at least 120 J; at 3 a joule 180 do not pay, from 50 s on they do."""
    tariff = prices((0.0, 180.0, 3.0), (50.0, 180.0, 1.0))
    result = run(rolling_example(tariff, (0.0, 12), driver=driver))
    assert starts_on(result, 1) == [50.0 + 4 * k for k in range(12)]
    assert starts_on(result, 0) == []
    assert result.summary()["profit"] == pytest.approx(60.0, rel=1e-12)


def test_what_has_begun_goes_on_and_the_rest_waits():
    """6 tasks for 180: 4 and 2. At 5 s one waits; its 30 do not pay 40 for 10 J until 100 s."""
    tariff = prices((0.0, 180.0, 1.0), (5.0, 180.0, 4.0), period_s=100.0)
    result = run(rolling_example(tariff, (0.0, 6)))
    assert starts_on(result, 0) == [0.0, 2.0, 4.0, 100.0]
    assert starts_on(result, 1) == [0.0, 4.0]


def test_the_fixed_plan_keeps_the_means():
    """Means over 100 s: 225 money, 1 a joule: by (10) the slow machine alone."""
    tariff = prices((0.0, 150.0, 1.0), (50.0, 300.0, 1.0), period_s=100.0)
    fixed = {"replan": False, "prices": "mean"}
    result = run(rolling_example(tariff, (0.0, 12), (10.0, 12), parameters=fixed))
    assert starts_on(result, 0) == []
    assert starts_on(result, 1) == [4.0 * k for k in range(24)]
    # the first bag is finished at 48 s and pays 150, the second at 96 s and pays 300
    assert result.summary()["income"] == 450.0
    assert result.summary()["mean_bag_flow_time_s"] == pytest.approx((48 + 86) / 2)


def test_a_second_bag_is_planned_with_what_waits():
    """At 1 s, 22 tasks wait: 15 for the fast machine, behind its first, 7 for the slow one."""
    tariff = prices((0.0, 300.0, 1.0))
    result = run(rolling_example(tariff, (0.0, 12), (1.0, 12)))
    runs = result.trace.executions
    assert np.bincount(runs["host"]).tolist() == [16, 8]
    assert result.summary()["makespan_s"] == 32.0


def test_tasks_that_never_pay_are_dropped():
    """At no price of the day: given up at once, but not while others may come."""
    tariff = prices((0.0, 100.0, 1.0), (50.0, 110.0, 1.0), period_s=100.0)
    result = run(rolling_example(tariff, (0.0, 12), (70.0, 12)))
    assert (result.trace.final_state == TaskState.DROPPED).all()
    assert result.summary()["horizon_s"] == 70.0
    assert result.summary()["income"] == 0.0
    later = prices((0.0, 300.0, 1.0), (50.0, 100.0, 1.0))
    result = run(rolling_example(later, (60.0, 12)))  # what paid before 50 s does not come back
    assert (result.trace.final_state == TaskState.DROPPED).all()


def test_a_price_by_backlog_rises_when_the_last_other_bag_is_done():
    """180 alone, 100 with another bag unfinished: the second bag waits for the first one's end."""
    tariff = prices((0.0, 180.0, 1.0, -80.0))
    result = run(rolling_example(tariff, (0.0, 12), (47.0, 12)))
    # at 47 s the last task of the first bag runs until 48 s; 12 tasks at 100 do not pay
    assert starts_on(result, 1) == [4.0 * k for k in range(24)]
    assert result.summary()["income"] == 100.0 + 180.0


def test_mapping_events_take_the_place_of_wakes():
    """Asked every 20 s, the change at 50 s is seen at 60 s."""
    tariff = prices((0.0, 180.0, 3.0), (50.0, 180.0, 1.0))
    result = run(rolling_example(tariff, (0.0, 12), mapping_interval_s=20.0))
    assert starts_on(result, 1)[0] == 60.0


@pytest.mark.parametrize("parameters", [{"replan": 2}, {"prices": "tomorrow"}])
def test_bad_parameters(parameters):
    """Which parameter, what is allowed, what was found."""
    (name,) = parameters
    with pytest.raises(InputError, match=f"{name!r} of lp_rolling"):
        run(rolling_example(prices((0.0, 1.0, 1.0)), (0.0, 1), parameters=parameters))


# ---------------------------------------------------------------------- profits by hand


@pytest.mark.parametrize("driver", DRIVERS)
def test_profit_follows_the_prices_by_hand(driver):
    """Energy is integrated over the intervals of a price; a bag pays by the moment of its end.

    Two tasks on the slow machine, 4 s each at 2.5 W, and 1 W of the idle fast one, which cannot
    run them: 3.5 W from 0 to 8 s, when the run ends. A joule costs 1 until 3 s, 2 until
    5 s, then 1 and so on: 3 + 2 x 2 + 3 x 1 = 10 seconds of 3.5 W, with a PUE of 1.2. The tasks
    are two bags: the first ends at 4 s and pays 40, less 3 as the other one is unfinished.
    """
    tariff = prices(
        (0.0, 50.0, 1.0, -7.0),
        (3.0, 40.0, 2.0, -3.0),
        period_s=5.0,
        pue=1.2,
        overhead=4.0,
        wear_per_s=0.25,
        depreciation_per_s=(0.5, 0.125),
    )
    scenario = rolling_example(tariff, (0.0, 1), (0.5, 1), fast_s=INF, idle_w=(1.0, 0.5), driver=driver)
    slow = run(replace(scenario, scheduler="mct")).summary()
    assert slow["horizon_s"] == 8.0
    assert slow["income"] == (40.0 - 3.0) + 40.0  # 8 s is 3 s of the second period
    assert slow["energy_cost"] == pytest.approx(1.2 * 3.5 * 10, rel=1e-12)
    costs = 2 * 4.0 + 8 * 0.25 + 8 * 0.625
    assert slow["profit"] == pytest.approx(77.0 - 42.0 - costs, rel=1e-12)
    assert slow["mean_bag_flow_time_s"] == pytest.approx((4.0 + 7.5) / 2)


# ---------------------------------------------------------------------- streams


@pytest.mark.parametrize("parameters", [{}, {"replan": False}, {"prices": "mean"}])
@pytest.mark.parametrize("period_s", [1000.0, INF])
def test_both_drivers_agree_on_streams(parameters, period_s):
    """Drawn bags under prices that change during them; nothing is left, whatever is paid."""
    spec = ProfitBag(
        tasks=40,
        task_types=4,
        machine_types=3,
        machines_per_type=2,
        idle_share=0.05,
        bags=4,
        bag_interval_s=500.0,
        seed=3,
    )
    tariff = prices((0.0, 2e6, 1.0, -1e5), (250.0, 2e6, 2.5, 0.0), (600.0, 1.5e6, 1.2, 1e5), period_s=period_s)
    scenario = Scenario(None, "", "lp_rolling", parameters=parameters, tariff=tariff)
    scenario = scenario.with_system(generate_profit_bag(spec))
    results = {driver: run(replace(scenario, driver=driver)) for driver in DRIVERS}
    traces = [results[driver].trace for driver in DRIVERS]
    assert not trace_differences(*traces)
    assert (traces[0].final_state == TaskState.FINISHED).all()
    ours, simgrid = (results[driver].summary() for driver in DRIVERS)
    for metric in ("income", "energy_cost", "profit", "energy_j"):
        assert ours[metric] == pytest.approx(simgrid[metric], rel=1e-9)


def test_constant_prices_are_a_tariff_without_a_series():
    """One bag, one line: the profit is that of the plain tariff, by `lp_max_profit`, too."""
    plain = Tariff(price=300.0, pue=1.1, overhead=12.0, wear_per_s=(1.0, 0.5))
    series = prices((0.0, 300.0, 1.0), pue=1.1, overhead=12.0, wear_per_s=(1.0, 0.5))
    once = replace(rolling_example(plain, (0.0, 12)), scheduler="lp_max_profit")
    expected = run(once).summary()
    for scenario in (rolling_example(plain, (0.0, 12)), rolling_example(series, (0.0, 12))):
        numbers = run(scenario).summary()
        for metric in ("profit", "profit_rate", "energy_j", "makespan_s"):
            assert numbers[metric] == pytest.approx(expected[metric], rel=1e-12)
