"""Bags that arrive and prices that vary: hand-computed plans, waits, drops and profits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gridsched import Scenario, run
from gridsched.errors import InputError
from gridsched.model.prices import PriceSeries
from gridsched.model.tariff import Tariff
from gridsched.model.task_types import TYPED_TASK_FLOPS, TaskTypes, typed_platform
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import TaskState
from gridsched.testing import trace_differences
from gridsched.workloads.profit_system import ProfitBag, generate_profit_bag

DRIVERS = ("reference", "simgrid")
INF = float("inf")


def prices(*lines: tuple[float, ...], period_s: float = INF, **costs) -> Tariff:
    """A tariff of lines (time, price, energy cost, price per waiting bag)."""
    columns = zip(*((*line, 0.0)[:4] for line in lines), strict=True)
    return Tariff(price=0.0, prices=PriceSeries(*columns), prices_period_s=period_s, **costs)


def example(tariff: Tariff, *bags: tuple[float, int], **changes) -> Scenario:
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
    result = run(example(tariff, (0.0, 12), driver=driver))
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
    result = run(example(tariff, (0.0, 12), driver=driver))
    assert starts_on(result, 1) == [50.0 + 4 * k for k in range(12)]
    assert starts_on(result, 0) == []
    assert result.summary()["profit"] == pytest.approx(60.0, rel=1e-12)


def test_what_has_begun_goes_on_and_the_rest_waits():
    """6 tasks for 180: 4 and 2. At 5 s one waits; its 30 do not pay 40 for 10 J until 100 s."""
    tariff = prices((0.0, 180.0, 1.0), (5.0, 180.0, 4.0), period_s=100.0)
    result = run(example(tariff, (0.0, 6)))
    assert starts_on(result, 0) == [0.0, 2.0, 4.0, 100.0]
    assert starts_on(result, 1) == [0.0, 4.0]


def test_the_fixed_plan_keeps_the_means():
    """Means over 100 s: 225 money, 1 a joule: by (10) the slow machine alone."""
    tariff = prices((0.0, 150.0, 1.0), (50.0, 300.0, 1.0), period_s=100.0)
    fixed = {"replan": False, "prices": "mean"}
    result = run(example(tariff, (0.0, 12), (10.0, 12), parameters=fixed))
    assert starts_on(result, 0) == []
    assert starts_on(result, 1) == [4.0 * k for k in range(24)]
    # the first bag is finished at 48 s and pays 150, the second at 96 s and pays 300
    assert result.summary()["income"] == 450.0
    assert result.summary()["mean_bag_flow_time_s"] == pytest.approx((48 + 86) / 2)


def test_a_second_bag_is_planned_with_what_waits():
    """At 1 s, 22 tasks wait: 15 for the fast machine, behind its first, 7 for the slow one."""
    tariff = prices((0.0, 300.0, 1.0))
    result = run(example(tariff, (0.0, 12), (1.0, 12)))
    runs = result.trace.executions
    assert np.bincount(runs["host"]).tolist() == [16, 8]
    assert result.summary()["makespan_s"] == 32.0


def test_tasks_that_never_pay_are_dropped():
    """At no price of the day: given up at once, but not while others may come."""
    tariff = prices((0.0, 100.0, 1.0), (50.0, 110.0, 1.0), period_s=100.0)
    result = run(example(tariff, (0.0, 12), (70.0, 12)))
    assert (result.trace.final_state == TaskState.DROPPED).all()
    assert result.summary()["horizon_s"] == 70.0
    assert result.summary()["income"] == 0.0
    later = prices((0.0, 300.0, 1.0), (50.0, 100.0, 1.0))
    result = run(example(later, (60.0, 12)))  # what paid before 50 s does not come back
    assert (result.trace.final_state == TaskState.DROPPED).all()


def test_a_price_by_backlog_rises_when_the_last_other_bag_is_done():
    """180 alone, 100 with another bag unfinished: the second bag waits for the first one's end."""
    tariff = prices((0.0, 180.0, 1.0, -80.0))
    result = run(example(tariff, (0.0, 12), (47.0, 12)))
    # at 47 s the last task of the first bag runs until 48 s; 12 tasks at 100 do not pay
    assert starts_on(result, 1) == [4.0 * k for k in range(24)]
    assert result.summary()["income"] == 100.0 + 180.0


def test_mapping_events_take_the_place_of_wakes():
    """Asked every 20 s, the change at 50 s is seen at 60 s."""
    tariff = prices((0.0, 180.0, 3.0), (50.0, 180.0, 1.0))
    result = run(example(tariff, (0.0, 12), mapping_interval_s=20.0))
    assert starts_on(result, 1)[0] == 60.0


@pytest.mark.parametrize("parameters", [{"replan": 2}, {"prices": "tomorrow"}])
def test_bad_parameters(parameters):
    """Which parameter, what is legal, what was found."""
    (name,) = parameters
    with pytest.raises(InputError, match=f"{name!r} of lp_rolling"):
        run(example(prices((0.0, 1.0, 1.0)), (0.0, 1), parameters=parameters))


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
    scenario = example(tariff, (0.0, 1), (0.5, 1), fast_s=INF, idle_w=(1.0, 0.5), driver=driver)
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
    once = replace(example(plain, (0.0, 12)), scheduler="lp_max_profit")
    expected = run(once).summary()
    for scenario in (example(plain, (0.0, 12)), example(series, (0.0, 12))):
        numbers = run(scenario).summary()
        for metric in ("profit", "profit_rate", "energy_j", "makespan_s"):
            assert numbers[metric] == pytest.approx(expected[metric], rel=1e-12)
