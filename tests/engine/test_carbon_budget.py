"""Budgets of grams, and budgets of node sets."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from clusters import INF, OF_BUDGETS, PARALLEL, jobs, on_both, plan_of, scenario, steps
from hypothesis import given, settings
from hypothesis import strategies as st
from test_money_budget import budgeted_cases, of_budgets, scheduler_of

from gridsched import Host, Platform, PState, Scenario, make_tasks, run
from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.energy import grid_energy_between
from gridsched.errors import InputError, InvalidDecision
from gridsched.model.carbon import Carbon, carbon_signal, with_signal
from gridsched.model.platform import Cluster
from gridsched.model.prices import PriceSeries
from gridsched.model.rules import EnergyBudget
from gridsched.model.series import Series, SiteSeries
from gridsched.model.signals import J_PER_KWH
from gridsched.model.trace import TaskState
from gridsched.policy.decisions import Allocate, Drop, WakeAt
from gridsched.testing.agreement import trace_differences
from gridsched.testing.decision_checks import illegal_places

# Budgets in grams: what is emitted by the intensity of each moment and site, and what is refused.

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
    budget = EnergyBudget(carbon_g=690.0, period_s=np.inf, enforcement="stop")
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


@pytest.mark.systems("utility")
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


@pytest.mark.systems("utility")
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


@pytest.mark.systems("utility")
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


def test_a_budget_of_nodes_needs_one_intensity_a_cluster():
    """A job's grams are those of its cluster: of serial tasks, and of clusters of their own, hosts may differ."""
    budget = EnergyBudget(carbon_g=5.0, period_s=100.0)
    together, apart = (Platform(PAIR.hosts, clusters) for clusters in ((Cluster("c", (0, 1)),), PAIR.clusters))
    signal = carbon_signal(A_AND_B, together)
    with pytest.raises(InputError, match="'c'"):
        with_signal(budget, signal, together, is_parallel=True)
    assert with_signal(budget, signal, together, is_parallel=False).signal is signal
    assert with_signal(budget, signal, apart, is_parallel=True).signal is signal


# Energy budgets of parallel tasks: what is drawn, committed, refused, put off and stopped.

#: Nine cores: 3 nodes of A, 10 s at 120 W; three cores: 2 nodes of B, slowly 40 s at 20 W.
TWO = jobs((0, 0, 9), (0, 0, 3))
ON_A = Allocate(0, np.array([0, 1, 2]))
ON_B = Allocate(1, np.array([3, 4]), 1, start=20.0)


def play(answer, tasks=TWO, *, traits=OF_BUDGETS, idle_w=5.0, energy_j=5000.0, **of_budget):
    """Run on the reference driver with a budget; `answer` may be decisions by time."""
    budget = EnergyBudget(energy_j, **{"period_s": 100.0, **of_budget})
    answer = steps(answer) if isinstance(answer, dict) else answer
    return run(scenario(tasks, answer, traits=traits, idle_w=idle_w, budget=budget)).trace


def test_what_is_planned_and_then_put_off_is_planned_no_more():
    """600 J of 1,700 J are planned; to start the same task now, for 1,200 J, exceeds the rest."""
    answer = {0.0: [plan_of((0, 95.0, [0, 1, 2])), ON_A], 100.0: [ON_A]}
    trace = play(answer, jobs((0, 0, 9)), traits=PARALLEL, idle_w=0.0, energy_j=1700.0)
    assert trace.times_postponed.tolist() == [1]
    assert trace.executions["start"].tolist() == [100.0]


def test_what_is_drawn_and_committed():
    """Running tasks and reservations above the idle power of 7 nodes of 5 W, by hand."""
    seen = {}

    def answer(state):
        energy = state.energy
        seen[state.now] = (energy.consumed_j, energy.committed_j, energy.remaining_j, energy.assigned_j)
        return {0.0: [ON_A, ON_B, WakeAt(4.0), WakeAt(30.0)]}.get(state.now, [])

    trace = play(answer)
    assert seen == {
        0.0: (0, 0, 5000 - 3500, 0),
        4.0: (4 * 140, 6 * 105 + 40 * 10, 5000 - 560 - 1030 - 96 * 35, 2000),
        10.0: (1400, 400, 5000 - 1800 - 90 * 35, 2000),
        30.0: (1400 + 350 + 450, 30 * 10, 5000 - 2500 - 70 * 35, 2000),
    }
    assert trace.periods.tolist() == [(0.0, 60.0, 5000.0, 3550.0, 0.0)]


def test_only_the_part_inside_the_period_counts():
    """The reservation from 20 to 60 s, in periods of 50 s: half of it is idle power."""
    seen = {}

    def answer(state):
        seen[state.now] = state.energy.committed_j
        return {0.0: [ON_B, Drop(0), WakeAt(1.0)]}.get(state.now, [])

    trace = play(answer, period_s=50.0)
    assert seen[1.0] == 300
    assert seen[50.0] == 100
    assert trace.periods["carried_over_j"].tolist() == [0.0, 200.0]


@pytest.mark.parametrize(
    ("decisions", "why"),
    [
        (
            [ON_A, ON_B],
            r"task 2, host 'B-1': Allocate would draw 800 J until the period's end at "
            r"100 s, and 700 J remain",
        ),
        ([ON_B, ON_A], "Allocate would draw 1200 J until .* and 1100 J remain"),
        ([plan_of((0, 0, [0, 1, 2]), (1, 20, [3, 4]), pstates=[0, 1])], "Plan would draw 2000 J"),
        ([plan_of((1, 20, [3, 4]), pstates=[1]), ON_A], "draw 1200 J until .* 1100 J remain"),
        ([Allocate(1, np.array([3, 4]), 1, start=100.0)], "it would begin at 100 s, and the peri"),
    ],
)
def test_what_a_budget_refuses(decisions, why):
    """1,900 J for a task of 1,200 J and one of 800 J; a plan counts as soon as it is made."""
    with pytest.raises(InvalidDecision, match=why):
        play({0: decisions}, energy_j=1900.0, idle_w=0.0)


def test_a_plan_is_judged_by_its_energy_inside_the_period():
    """600 J of the reservation and of the place-holder fall before 50 s: 1,900 J are enough."""
    for decisions in (
        [ON_A, ON_B],
        [plan_of((0, 0, [0, 1, 2]), (1, 20, [3, 4]), pstates=[0, 1])],
        [ON_A, plan_of((1, 50, [3, 4]), pstates=[1])],  # withdrawn when the next period begins
    ):
        later = {50.0: [Allocate(1, np.array([3, 4]), 1)]} if decisions[-1] is not ON_B else {}
        trace = play(
            lambda state, now=decisions, later=later: (
                {0.0: now, **later}.get(state.now, []) if 1 in state.mappable else []
            ),
            energy_j=1900.0,
            idle_w=0.0,
            period_s=50.0,
        )
        assert (trace.final_state == TaskState.FINISHED).all()
        assert (trace.periods["consumed_j"] <= 1900).all()


def test_nothing_is_limited_or_counted_before_the_first_period():
    """The first period begins at 5 s, with 120 W running: 600 J are committed, none consumed."""
    seen = {}

    def answer(state):
        seen[state.now] = (state.energy.consumed_j, state.energy.committed_j)
        return {0.0: [ON_A, WakeAt(2.0)], 5.0: [Allocate(1, np.array([3, 4]))]}.get(state.now, [])

    trace = play(answer, energy_j=1900.0, first_period_start_s=5.0, idle_w=0.0)
    assert seen[2.0] == (0, 0)
    assert seen[5.0] == (0, 600)
    assert trace.periods["carried_over_j"].tolist() == [600.0]
    with pytest.raises(InvalidDecision, match=r"7 s.*5 s"):
        play({0: [Allocate(0, np.array([0, 1, 2]), start=7.0)]}, first_period_start_s=5.0)


def test_what_a_policy_that_knows_no_budget_asks_for_too_much_waits():
    """Of tasks of 1,200 J and 800 J in one answer each period of 1,300 J takes one."""
    fast, slow = Allocate(0, np.array([0, 1, 2])), Allocate(1, np.array([3, 4]), 1)
    plan = plan_of((0, 0, [0, 1, 2]), (1, 0, [3, 4]), pstates=[0, 1])
    for decisions in ([fast, slow], [plan]):
        trace = play({0: decisions, 100: [slow]}, traits=PARALLEL, energy_j=1300.0, idle_w=0.0)
        assert trace.start_time_s.tolist() == [0.0, 100.0]
        assert trace.times_postponed.tolist() == [0, 1]
    # what would begin in a later period is put off when it is reserved, and waits when planned
    trace = play({0: [fast, Allocate(1, np.array([3, 4]), 1, start=120.0)], 100: [slow]}, traits=PARALLEL)
    assert trace.start_time_s.tolist() == [0.0, 100.0]
    assert trace.times_postponed.tolist() == [0, 1]


@needs_simgrid
def test_a_budget_of_nodes_that_stops():
    """140 W from 0 to 10 s, then 35 W; 1,575 J are used up at 15 s: the reservation is killed."""
    trace = play({0: [ON_A, ON_B]}, energy_j=1575.0, period_s=INF, enforcement="stop")
    assert trace.horizon_s == pytest.approx(15.0, rel=1e-12)
    assert trace.final_state.tolist() == [TaskState.FINISHED, TaskState.KILLED]
    # ... and with less the running task too, at 5 s
    budget = EnergyBudget(700.0, period_s=INF, enforcement="stop")
    trace = on_both(TWO, steps({0: [ON_A, ON_B]}), budget=budget)
    assert trace.executions["end"].tolist() == pytest.approx([5.0], rel=1e-12)
    assert trace.final_state.tolist() == [TaskState.KILLED] * 2


@st.composite
def runs(draw):
    """Up to 14 tasks of both types, a budget and its periods, and a seed for the policy."""
    n = draw(st.integers(1, 14))
    tasks = jobs(
        *sorted(
            (
                draw(st.sampled_from([0.0, 5.0, 40.0]) | st.floats(0.0, 120.0)),
                draw(st.integers(0, 1)),
                draw(st.integers(1, 9)),
            )
            for _ in range(n)
        )
    )
    budget = EnergyBudget(
        draw(st.sampled_from([1200.0, 2500.0, 6000.0])),
        period_s=draw(st.sampled_from([37.0, 60.0])),
        first_period_start_s=draw(st.sampled_from([0.0, 20.0])),
    )
    return tasks, budget, draw(st.sampled_from([None, 10.0])), draw(st.integers(0, 99))


@given(runs())
@settings(max_examples=25, deadline=None)
def test_random_policies_keep_to_nodes_reservations_and_budgets(sampled):
    """No two tasks share a node, no reservation moves, no period draws more than its budget."""
    tasks, budget, interval, seed = sampled
    rng = np.random.default_rng(seed)
    reserved = {}

    def answer(state):
        """Start, reserve or plan tasks at random, where nodes and energy last."""
        energy, known = state.energy, state.estimates
        remaining, decisions, plan = energy.remaining_j, [], []
        view, taken = state.nodes.reserved, state.nodes.free_at.copy()
        for k in range(len(view)):
            hosts = view.hosts[view.offsets[k] : view.offsets[k + 1]]
            taken[hosts] = np.maximum(taken[hosts], view.end[k])
        for task in rng.permutation(state.mappable.tolist()).tolist():
            first, n = ((0, 3), (3, 4))[rng.integers(2)]
            k, how = int(rng.integers(2)), rng.integers(3)
            time = known.run_time(task, first, k)
            if time == INF:
                continue
            nodes = first + rng.permutation(n)[: known.width(task, first)]
            start = float(max(taken[nodes].max(), state.now)) + 3.0 * (how == 1)
            inside = known.energy(task, first, k) * min(max(energy.period_end - start, 0.0) / time, 1.0)
            if inside > remaining or start >= energy.period_end:
                continue
            if how < 2:
                decisions.append(Allocate(task, nodes, k, start))
                if start > state.now:
                    reserved[task] = start
            else:
                plan.append((task, start, nodes.tolist(), k))
            remaining -= inside
            taken[nodes] = start + time
        pstates = [entry[3] for entry in plan]
        decisions.append(plan_of(*(entry[:3] for entry in plan), pstates=pstates))
        return decisions + [WakeAt(state.now + 9.0)] * (interval is None)

    made = scenario(
        tasks, answer, traits=OF_BUDGETS, idle_w=0.0, budget=budget, mapping_interval_s=interval, horizon_s=400.0
    )
    trace = run(made).trace
    assert illegal_places(trace, made.estimates) == []
    runs = trace.executions
    of_task = dict(runs[["task", "start"]].tolist())
    assert {task: of_task[task] for task in reserved if task in of_task} == {
        task: start for task, start in reserved.items() if start < 400.0
    }
    periods = trace.periods
    consumed_j = periods["consumed_j"] - periods["carried_over_j"]
    assert (consumed_j <= budget.energy_j * (1 + 1e-9)).all()
    edges = np.append(periods["start"], periods["end"][-1:])
    model_j = grid_energy_between(trace, edges)
    np.testing.assert_allclose(periods["consumed_j"], model_j, rtol=1e-9, atol=1e-6)
