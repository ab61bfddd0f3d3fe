"""Budgets in grams: what is emitted by the intensity of each moment and site, and what is refused."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from test_money_budget import budgeted_cases, of_budgets, scheduler_of

from gridsched import Host, Platform, PState, Scenario, make_tasks, run
from gridsched.errors import InputError
from gridsched.model.carbon import Carbon
from gridsched.model.prices import PriceSeries
from gridsched.model.rules import EnergyBudget
from gridsched.model.signals import J_PER_KWH
from gridsched.model.site_series import Series, SiteSeries
from gridsched.model.trace import TaskState
from gridsched.sim.library import HOW_TO_INSTALL, is_installed
from gridsched.testing.agreement import trace_differences

needs_simgrid = pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
#: Two hosts of 1 flop/s at 10 W busy, nothing idle.
PAIR = Platform(tuple(Host(name, (PState(1.0, 0.0, 10.0, 10.0),)) for name in ("a", "b")))


def grams_a_joule(period_s: float | None = None, **sites) -> Carbon:
    """Return intensities by g/J, so that they can be counted by hand."""
    series = tuple(Series(times, tuple(J_PER_KWH * value for value in values)) for times, values in sites.values())
    return Carbon(SiteSeries(tuple(sites), series), period_s)


A_AND_B = grams_a_joule(np.inf, a=((0.0, 10.0), (2.0, 4.0)), b=((0.0, 15.0), (1.0, 3.0)))


@pytest.mark.parametrize("driver", ["reference", pytest.param("simgrid", marks=needs_simgrid)])
def test_a_budget_that_stops(driver):
    """30 g/s until 10 s, 50 until 15 s, 70 then: 690 g are emitted at 300 + 250 + 2 x 70 s."""
    budget = EnergyBudget(carbon_g=690.0, period_s=np.inf, on_exhaustion="stop")
    scenario = Scenario(PAIR, make_tasks([100.0, 100.0]), "mct", budget=budget, carbon=A_AND_B, driver=driver)
    result = run(scenario)
    assert result.trace.horizon_s == pytest.approx(17.0, rel=1e-12)
    assert (result.trace.final_state == TaskState.KILLED).all()
    assert result.metrics()["carbon_g"] == pytest.approx(690.0, rel=1e-12)
    assert result.metrics()["carbon_excess_g"] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("driver", ["reference", pytest.param("simgrid", marks=needs_simgrid)])
def test_a_budget_that_refuses(driver):
    """10 s at a until 20 s are 400 g, at b 100 and then 300: within 420 g the last one waits."""
    budget = EnergyBudget(carbon_g=420.0, period_s=20.0)
    tasks = make_tasks([10.0, 10.0, 10.0], [0.0, 0.0, 1.0])
    result = run(Scenario(PAIR, tasks, "mct", budget=budget, carbon=A_AND_B, driver=driver))
    assert result.trace.start_time_s.tolist() == [0.0, 0.0, 20.0]
    periods = result.trace.periods
    per_j = result.trace.energy_weights.per_j
    assert (periods["consumed_j"] * per_j).tolist() == pytest.approx([10 * 10 * 2 + 10 * 10 * 1, 400])
    assert (periods["budget_j"] * per_j).tolist() == pytest.approx([420, 420])


@pytest.mark.parametrize("id", of_budgets())
def test_at_one_site_it_is_a_budget_in_money(id: str):
    """The same intensities as prices give the same run."""
    scheduler = scheduler_of(id)
    times, values = (0.0, 11.0), (1.5, 0.5)
    for case in budgeted_cases(scheduler):
        budget = case.rules["budget"]
        amount = budget.energy_j
        prices = PriceSeries.of_energy(times, values)
        priced = replace(budget, energy_j=None, money=amount, prices=prices, prices_period_s=23.0)
        carbon = Carbon(SiteSeries(("*",), (Series(times, tuple(J_PER_KWH * each for each in values)),)), 23.0)
        expected = run(replace(case, rules={**case.rules, "budget": priced}).scenario(scheduler, driver="reference"))
        rules = {**case.rules, "budget": replace(budget, energy_j=None, carbon_g=amount), "carbon": carbon}
        found = run(replace(case, rules=rules).scenario(scheduler, driver="reference"))
        assert trace_differences(expected.trace, found.trace) == []
        for column in ("budget_j", "consumed_j", "carried_over_j"):
            wanted = expected.trace.periods[column]
            np.testing.assert_allclose(found.trace.periods[column], wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("id", of_budgets())
def test_no_period_emits_more_than_its_budget(id: str):
    """At sites that differ, whatever is scheduled, but for what was carried over."""
    scheduler, draw = scheduler_of(id), random.Random(id)
    for case in budgeted_cases(scheduler):
        platform, series = case.platform, []
        names = [each.name for each in (platform.clusters if scheduler.traits.parallel else platform.hosts)]
        for _ in names:
            begins = (0.0, *map(float, sorted(draw.sample(range(1, 60), 2))))
            series.append(Series(begins, tuple(draw.uniform(50.0, 900.0) for _ in begins)))
        carbon = Carbon(SiteSeries(tuple(names), tuple(series)), 61.0)
        amount = case.rules["budget"].energy_j * draw.uniform(0.5, 2.0) * 400 / J_PER_KWH
        rules = {
            **case.rules,
            "budget": replace(case.rules["budget"], energy_j=None, carbon_g=amount),
            "carbon": carbon,
        }
        rules.setdefault("horizon_s", 2000.0)
        result = run(replace(case, rules=rules).scenario(scheduler, driver="reference"))
        found, periods = result.metrics(), result.trace.periods
        if not len(periods) or platform.most_idle_w.any():
            continue
        assert found["carbon_excess_g"] <= 1e-9 * amount
        consumed = result.trace.energy_weights.amount(float(periods["consumed_j"].sum()))
        if periods["start"][0] == 0 and periods["end"][-1] >= result.trace.horizon_s:
            assert consumed == pytest.approx(found["carbon_g"], rel=1e-9, abs=1e-9)


@needs_simgrid
@pytest.mark.parametrize("id", ["max_max_upe", "max_upr", "mct"])
def test_both_drivers_emit_alike(id: str):
    """Two sites: times, periods and what is postponed are equal on SimGrid."""
    scheduler = scheduler_of(id)
    case = budgeted_cases(scheduler)[-1]
    platform = case.platform
    names = [each.name for each in (platform.clusters if scheduler.traits.parallel else platform.hosts)]
    series = (Series((0.0, 11.0), (500.0, 100.0)), Series((0.0, 7.0), (80.0, 600.0)))
    carbon = Carbon(SiteSeries(("*", names[0]), series), 23.0)
    amount = case.rules["budget"].energy_j * 600 / J_PER_KWH
    rules = {**case.rules, "budget": replace(case.rules["budget"], energy_j=None, carbon_g=amount), "carbon": carbon}
    case = replace(case, rules=rules)
    expected = run(case.scenario(scheduler, driver="reference"))
    result = run(case.scenario(scheduler, driver="simgrid", timeout_s=60.0))
    assert trace_differences(expected.trace, result.trace) == []
    assert (expected.trace.periods == result.trace.periods).all()


def test_a_budget_without_an_intensity():
    """Or with one of 0, which would make a gram cost any number of joules."""
    budget = EnergyBudget(carbon_g=5.0)
    for carbon in (None, grams_a_joule(np.inf, a=((0.0,), (1.0,)), b=((0.0,), (0.0,)))):
        with pytest.raises(InputError, match="carbon_budget_g"):
            run(Scenario(PAIR, make_tasks([1.0]), "mct", budget=budget, carbon=carbon, driver="reference"))
