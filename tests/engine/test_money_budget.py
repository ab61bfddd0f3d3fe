"""Budgets in money: what is spent by the price of each moment, when it ends, and what is equal."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from clusters import OF_BUDGETS, jobs, on_both, scenario, steps
from scripted import at, plan, play, rows
from systems_there import is_there

from gridsched import Scenario, run
from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.errors import InputError, InvalidDecision
from gridsched.metrics import summary
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.prices import PriceSeries
from gridsched.model.rules import EnergyBudget
from gridsched.model.signals import Signal
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import TaskState
from gridsched.policy.base import Traits
from gridsched.policy.decisions import Allocate, Assign, Drop, WakeAt
from gridsched.policy.registry import entries, make_scheduler
from gridsched.testing.agreement import metered_differences, trace_differences
from gridsched.testing.cases import cases_for

needs_simgrid = pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
RESPECTING = Traits("event", may_drop=True, respects_budget=True)
#: Money a joule: 2 until 10 s, 4 until 30 s, 1 until 40 s, and again.
PRICES = PriceSeries.of_energy((0.0, 10.0, 30.0), (2.0, 4.0, 1.0))
MEAN = (10 * 2 + 20 * 4 + 10 * 1) / 40


def money(amount: float, **others) -> EnergyBudget:
    """Return a budget by `PRICES`."""
    values = {"prices": PRICES, "prices_period_s": 40.0, "period_s": 1000.0, **others}
    return EnergyBudget(money=amount, **values)


def drawing(watts: float = 10.0, idle_w: float = 0.0, n: int = 1) -> Platform:
    """Return one-core hosts of 1 flop/s."""
    state = PState(1.0, idle_w, watts, watts)
    return Platform(tuple(Host(f"h{k}", (state,)) for k in range(1, n + 1)))


def test_what_is_spent_committed_and_left():
    """10 W from 5 to 35 s: 5 s at 2, 20 s at 4 and 5 s at 1 are 950; behind it 20 s, 5 of them
    at 1 and 10 at 2 before the period's end at 50 s: 250."""
    seen = {}

    def answer(state):
        energy = state.energy
        seen[state.now] = np.array([energy.budget_j, energy.consumed_j, energy.committed_j, energy.remaining_j]) * (
            energy.weights.per_j
        )
        return {5.0: [Assign(0, 0), Assign(1, 0), WakeAt(20.0)]}.get(state.now, [])

    tasks = make_tasks([30.0, 20.0], [5.0, 5.0])
    trace, _ = play(drawing(), tasks, answer, RESPECTING, budget=money(2000.0, period_s=50.0))
    np.testing.assert_allclose(seen[5.0], [2000, 0, 0, 2000], rtol=1e-14)
    np.testing.assert_allclose(seen[20.0], [2000, 500, 700, 800], rtol=1e-12)
    np.testing.assert_allclose(seen[35.0], [2000, 950, 250, 800], rtol=1e-12)
    periods = trace.periods
    np.testing.assert_allclose(periods["consumed_j"] * MEAN, [1200, 5 * 10 * 4], rtol=1e-12)
    np.testing.assert_allclose(periods["carried_over_j"] * MEAN, [0, 200], rtol=1e-12)
    found = summary(trace)
    assert found["money_spent"] == pytest.approx(1400, rel=1e-12)
    assert found["budget_used_share"] == pytest.approx(0.6, rel=1e-12)
    assert found["money_excess"] == 0
    assert "budget_excess_j" not in found


def test_idle_hosts_cost_money_too():
    """Two hosts idle at 3 W, one busy at 10 W from 5 to 15 s: 13 W then, else 6 W."""
    tasks = make_tasks([10.0, 1.0], [5.0, 20.0])
    answer = at((5.0, [Assign(0, 0)]), (20.0, [Drop(1)]))
    trace, _ = play(drawing(10.0, 3.0, 2), tasks, answer, RESPECTING, budget=money(1e6))
    wanted = 6 * 5 * 2 + 13 * 5 * 2 + 13 * 5 * 4 + 6 * 5 * 4
    assert summary(trace)["money_spent"] == pytest.approx(wanted, rel=1e-12)


@needs_simgrid
def test_the_run_ends_when_the_money_is_spent():
    """500 are spent 5 s at 2 and 10 s at 4, with 10 W: at 20 s, on both drivers."""
    tasks = make_tasks([30.0, 20.0], [5.0, 5.0])
    whole = Scenario(drawing(), tasks, "wq", budget=money(500.0, enforcement="stop"), network="none")
    for driver in ("reference", "simgrid"):
        result = run(replace(whole, driver=driver))
        assert result.trace.executions["end"] == pytest.approx([20.0], rel=1e-12)
        assert (result.trace.final_state == TaskState.KILLED).all()
        assert result.metrics()["money_spent"] == pytest.approx(500, rel=1e-12)
        assert result.metrics()["money_budget"] == 500
    assert metered_differences(result) == []


def test_of_decisions_the_price_counts():
    """A task of 10 s and 100 J costs 200 at once and 100 from 30 s on; 150 are there."""
    tasks = make_tasks([10.0])
    late = at((0.0, [WakeAt(30.0)]), (30.0, [Assign(0, 0)]))
    trace, _ = play(drawing(), tasks, late, RESPECTING, budget=money(150.0))
    assert rows(trace) == [(30.0, 0, 0, 40.0)]
    for decision in (Assign(0, 0), plan((0, 0))):
        with pytest.raises(InvalidDecision, match=r"200 of money.*150 of money"):
            play(drawing(), tasks, at((0.0, [decision])), RESPECTING, budget=money(150.0))


def test_a_plan_is_judged_by_the_prices_of_its_starts():
    """Three tasks of 10 s in one queue cost 200, 400 and 400."""
    tasks, planned = make_tasks([10.0] * 3), at((0.0, [plan((0, 0), (1, 0), (2, 0))]))
    play(drawing(), tasks, planned, RESPECTING, budget=money(1000.0))
    with pytest.raises(InvalidDecision, match="1000 of money"):
        play(drawing(), tasks, planned, RESPECTING, budget=money(999.0))


def test_policies_that_know_no_budget_wait_for_the_next_period():
    """In periods of 40 s of 500 of money: 200 and 400 are too much, the third task costs 400."""
    knowing_none = Traits("event")
    tasks = make_tasks([10.0] * 3)

    def queue(state):
        return [Assign(task, 0) for task in state.waiting()]

    trace, _ = play(drawing(), tasks, queue, knowing_none, budget=money(500.0, period_s=40.0))
    assert rows(trace) == [(0.0, 0, 0, 10.0), (40.0, 0, 1, 50.0), (80.0, 0, 2, 90.0)]


@needs_simgrid
def test_reservations_and_nodes_by_hand():
    """Three nodes of 40 W from 5 to 15 s; two of 10 W reserved from 20 to 60 s; no idle power."""
    seen = {}

    def answer(state):
        energy = state.energy
        factor = energy.weights.per_j
        seen[state.now] = energy.consumed_j * factor, energy.committed_j * factor
        return {
            5.0: [Allocate(0, np.array([0, 1, 2])), Allocate(1, np.array([3, 4]), 1, start=20.0)],
            7.0: [Drop(2)],
        }.get(state.now, [])

    tasks = jobs((5, 0, 9), (5, 0, 3), (7, 0, 1))
    trace = on_both(tasks, answer, traits=OF_BUDGETS, idle_w=0.0, budget=money(1e5))
    assert trace.executions["end"].tolist() == [15.0, 60.0]
    later = 20 * (10 * 4 + 10 * 1 + 10 * 2 + 10 * 4)
    assert seen[7.0] == pytest.approx((120 * 2 * 2, 120 * (3 * 2 + 5 * 4) + later), rel=1e-12)
    spent = 120 * (5 * 2 + 5 * 4) + later
    assert summary(trace)["money_spent"] == pytest.approx(spent, rel=1e-12)


def test_place_holders_are_judged_by_the_prices_of_their_starts():
    """Two nodes of 10 W for 40 s: 20 W x 110 in any 40 s; of 20 s until the period's end 20 W x 80
    from 10 s on."""
    tasks = jobs((0, 0, 3))
    early = steps({0: [Allocate(0, np.array([3, 4]), 1, start=10.0)]})
    for amount, period_s, told in ((2199.0, 1e3, "2200"), (1599.0, 30.0, "1600")):
        with pytest.raises(InvalidDecision, match=f"{told} of money"):
            run(scenario(tasks, early, traits=OF_BUDGETS, idle_w=0.0, budget=money(amount, period_s=period_s)))
        run(scenario(tasks, early, traits=OF_BUDGETS, idle_w=0.0, budget=money(amount + 1.0, period_s=period_s)))


# ---------------------------------------------------------------------- equal to joules


def of_budgets() -> list[str]:
    """Return the schedulers that respect a budget, with the parameters that make them."""
    ids = [each.id for each in entries() if make_scheduler(each.id).traits.respects_budget]
    if is_there("utility"):
        assert {"max_max_upe", "random_mapping", "max_upe", "arrival_aware", "task_based"} <= set(ids)
    return [*ids, "conservative_backfilling", "easy_backfilling", "mct", "fcfs"]


def scheduler_of(id: str):
    """Return a scheduler with its filter on, if it has one."""
    parameters = {}
    if id in ("max_upe", "event_based", "task_based", "arrival_aware"):
        parameters = {"energy_filter": "energy_per_task"}
    if id == "max_max_upe":
        parameters = {"energy_leniency": "auto"}
    if id.endswith("backfilling"):
        parameters = {"reservations": "permanent"}
    return make_scheduler(id, parameters)


def budgeted_cases(scheduler) -> list:
    """Return the small cases with a budget in joules that suit a scheduler."""
    cases = [case for case in cases_for(scheduler) if case.rules.get("budget") is not None]
    assert cases
    return cases


#: All but 1, so that the weights are not even: cost of a joule, and when it changes by a rounding.
NEARLY = (3.7e-7, 3.7e-7 * (1 + 1e-13), 3.7e-7 * (1 - 1e-13))


def in_money(budget: EnergyBudget, costs: tuple[float, ...]) -> EnergyBudget:
    """Return a budget in money that buys as many joules."""
    prices = PriceSeries.of_energy([7.3 * k for k in range(len(costs))], costs)
    return replace(budget, energy_j=None, money=budget.energy_j * costs[0], prices=prices, prices_period_s=31.0)


@pytest.mark.systems("utility")
@pytest.mark.parametrize("id", of_budgets())
def test_at_one_price_money_is_as_joules(id: str):
    """To the last bit; and to 1e-9 where prices differ by a rounding only."""
    scheduler = scheduler_of(id)
    for case in budgeted_cases(scheduler):
        budget = case.rules["budget"]
        expected = run(case.scenario(scheduler, driver="reference")).trace
        flat = in_money(budget, (0.5,))
        assert flat.limit_j == budget.energy_j
        rules = {**case.rules, "budget": flat}
        found = run(replace(case, rules=rules).scenario(scheduler, driver="reference")).trace
        assert (found.executions == expected.executions).all()
        assert (found.periods == expected.periods).all()
        assert (found.final_state == expected.final_state).all()
        rules = {**case.rules, "budget": in_money(budget, NEARLY)}
        found = run(replace(case, rules=rules).scenario(scheduler, driver="reference")).trace
        assert not found.energy_weights.is_even
        assert trace_differences(expected, found) == []
        for column in ("budget_j", "consumed_j", "carried_over_j"):
            np.testing.assert_allclose(found.periods[column], expected.periods[column], rtol=1e-9, atol=1e-9)


@pytest.mark.systems("utility")
@needs_simgrid
@pytest.mark.parametrize("id", ["max_max_upe", "max_upr", "arrival_aware", "mct"])
def test_both_drivers_spend_alike(id: str):
    """Two tiers of prices: times, periods and what is postponed are equal on SimGrid."""
    scheduler = scheduler_of(id)
    case = budgeted_cases(scheduler)[-1]
    budget = case.rules["budget"]
    prices = PriceSeries.of_energy((0.0, 11.0), (1.5, 0.5))
    priced = replace(budget, energy_j=None, money=budget.energy_j, prices=prices, prices_period_s=23.0)
    case = replace(case, rules={**case.rules, "budget": priced})
    expected = run(case.scenario(scheduler, driver="reference"))
    result = run(case.scenario(scheduler, driver="simgrid", timeout_s=60.0))
    assert trace_differences(expected.trace, result.trace) == []
    assert metered_differences(result) == []
    assert (expected.trace.periods == result.trace.periods).all()
    joules = run(replace(case, rules={**case.rules, "budget": budget}).scenario(scheduler, driver="reference")).trace
    assert trace_differences(joules, expected.trace), "the prices decide nothing here"


@pytest.mark.systems("utility")
@pytest.mark.parametrize("id", of_budgets())
def test_no_period_spends_more_than_its_budget(id: str):
    """Whatever the prices, but for what was carried over; hosts draw nothing while idle."""
    scheduler, draw = scheduler_of(id), random.Random(id)
    some_spent = False
    for case in budgeted_cases(scheduler):
        budget = case.rules["budget"]
        for _ in range(3):
            begins = [0.0, *sorted(draw.sample(range(1, 60), draw.randint(1, 3)))]
            costs = [draw.choice((0.2, 1.0, 3.0, draw.uniform(0.1, 5.0))) for _ in begins]
            prices = PriceSeries.of_energy(begins, costs)
            amount = budget.energy_j * draw.uniform(0.5, 2.0)
            priced = replace(
                budget, energy_j=None, money=amount, prices=prices, prices_period_s=draw.choice((61.0, 90.0, np.inf))
            )
            rules = {**case.rules, "budget": priced}
            if case.rules.get("mapping_interval_s") is None:
                rules["horizon_s"] = 2000.0
            result = run(replace(case, rules=rules).scenario(scheduler, driver="reference"))
            found, periods = result.metrics(), result.trace.periods
            assert found["money_excess"] <= 1e-9 * amount
            np.testing.assert_allclose(result.facts.counted_j, periods["consumed_j"], rtol=1e-9, atol=1e-9)
            some_spent |= found["money_spent"] > 0.5 * amount
    assert some_spent


def test_utility_per_money_prefers_what_is_cheap_now():
    """The weights of a whole execution from now on: 10 s at 2 cost less than 20 s at 2 and 4."""
    weights = money(1.0).weights
    cost = weights.cost_j(np.array([100.0, 100.0]), 0.0, np.array([10.0, 20.0])) * MEAN
    np.testing.assert_allclose(cost, [200.0, 300.0], rtol=1e-14)
    assert weights.mean(25.0, 0.0) * MEAN == pytest.approx(4.0)


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, r"energy_budget_j.*money_budget.*carbon_budget_g.*none"),
        ({"energy_j": 5.0, "money": 5.0, "prices": PRICES}, "energy_j and money of them"),
        ({"money": 5.0}, "money_budget has no effect without budget_prices"),
        ({"energy_j": 5.0, "prices": PRICES}, "budget_prices has no effect without money_budget"),
        ({"money": -5.0, "prices": PRICES}, "money is -5; it must be greater than 0"),
        ({"money": np.inf, "prices": PRICES}, "money is inf; it must be"),
        (
            {"money": 5.0, "prices": PRICES, "prices_period_s": 30.0},
            "begins again after 30 s "
            r"\(budget_prices_period_s\)",
        ),
        (
            {"money": 5.0, "prices": PriceSeries.of_energy((0.0, 9.0), (1.0, 0.0))},
            "from 9 s on a joule costs 0; under a budget in money every price must be positive",
        ),
    ],
)
def test_budgets_that_are_none(values, message):
    """In one line each."""
    with pytest.raises(InputError, match=message):
        EnergyBudget(**values)


def test_weights_that_are_none():
    """As an archive might hold them."""
    for wrong in (((), ()), ((0.0,), (-1.0,)), ((1.0,), (1.0,)), ((0.0, 5.0, 3.0), (1.0, 2.0, 1.0))):
        with pytest.raises(InputError, match="Energy weights"):
            Signal(*wrong)
    assert Signal().is_even


@pytest.mark.systems("robust")
def test_a_fair_share_at_the_mapping_is_refused():
    """What a task will cost is not known when `lightest_load` maps it."""
    scheduler = make_scheduler("lightest_load", {"energy_fair_share": True})
    case = budgeted_cases(scheduler)[0]
    rules = {**case.rules, "budget": money(1e5, enforcement="stop")}
    with pytest.raises(InputError, match=r"'energy_fair_share'.*lightest_load"):
        run(replace(case, rules=rules).scenario(scheduler, driver="reference"))
    run(replace(case, rules=rules).scenario(make_scheduler("lightest_load"), driver="reference"))
