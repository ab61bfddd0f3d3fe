"""Mapping events, pending slots and day boundaries by hand, on both drivers (algorithms B3-B7)."""

from __future__ import annotations

import numpy as np
import pytest
from sim_cases import deciding, ex_a

from gridsched.errors import IncompleteRun
from gridsched.metrics import summary
from gridsched.metrics.window_metrics import utility_earned
from gridsched.model.rules import EnergyBudget
from gridsched.model.task_types import TYPED_TASK_FLOPS, TaskTypes, typed_platform
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import TaskState
from gridsched.model.utility import UtilityClasses, UtilityFunctions
from gridsched.policy.decisions import Allocate, Assign, Cancel, Plan, Postpone, PowerOff, PowerOn, WakeAt
from gridsched.runs.plugin_agreement import energy_check
from gridsched.runs.run import run
from gridsched.scenario import Scenario
from gridsched.workloads.generators import checked_parameters, generator_of

DAY_S = 86_400.0


def typed_scenario(driver, answer, etc_s, apc_w, task_type, submit_s, n_hosts=1, utility=None, **rules):
    """One host type; `etc_s` and `apc_w` by task type (and P-state)."""
    etc, apc = (np.array(rows, dtype=float).reshape(len(rows), 1, -1) for rows in (etc_s, apc_w))
    types = TaskTypes(etc, apc, np.zeros(n_hosts, dtype=np.int64))
    tasks = make_tasks(
        np.full(len(task_type), TYPED_TASK_FLOPS), submit_s, task_type=np.array(task_type), utility=utility
    )
    return Scenario(
        typed_platform(types),
        tasks,
        deciding(answer, may_drop=True, respects_budget=True),
        types=types,
        driver=driver,
        mapping_interval_s=60.0,
        pending_slots=1,
        timeout_s=60.0,
        **rules,
    )


def plan(*pairs):
    """Plan of (task, host, P-state)."""
    return Plan(*(np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True)))


def starts(result):
    """Start of each task [s], rounded to where both drivers agree."""
    return np.round(result.trace.start_time_s, 6).tolist()


@pytest.fixture(params=["reference", "simgrid"])
def driver(request):
    """Every example runs on both."""
    return request.param


def test_figures_of_b1(driver):
    """A task is worth U(tau) when it ends tau minutes after its arrival: one host for each tau."""
    intervals = ([0.0, 20.0, 40.0, 60.0], [1.0, 0.6, 0.2, 0.0], [1.0, 0.5, 2.0, 1.0])
    classes = UtilityClasses.joined([UtilityClasses.from_intervals([intervals]), UtilityClasses.exponential()])
    minutes = [3, 10, 20, 30, 40, 50, 60, 100, 10]
    expected = [5.9265, 4.8, 4.8, 2.9113, 1.6, 0.2165, 0, 0, 7.2387]
    n = len(minutes)
    functions = UtilityFunctions(np.full(n, 8.0), np.array([0.1] * 8 + [0.01]), np.array([0] * 8 + [1]), classes)

    def answer(state):
        return [plan(*((k, k, 0) for k in range(n)))] if state.now == 0.0 else []

    etc_s = [[60.0 * each] for each in minutes]
    result = run(typed_scenario(driver, answer, etc_s, [[50.0]] * n, list(range(n)), 0.0, n_hosts=n, utility=functions))
    np.testing.assert_allclose(utility_earned(result.trace), expected, rtol=0, atol=5e-5)
    assert result.summary()["utility"] == pytest.approx(sum(expected), abs=4e-4)


def test_what_is_pending_is_fixed_and_what_is_planned_is_mapped_again(driver):
    """B3: at 60 s tasks 2 and 3 are mappable, 1 is pending; they change places."""

    def answer(state):
        if state.now == 0.0:
            return [plan(*((k, 0, 0) for k in range(4)))]
        if state.now == 60.0:
            assert state.mappable.tolist() == [2, 3]
            assert state.queue_tasks.tolist() == [1]
            assert state.ready_time.tolist() == [200.0]  # 0 and 1 count, planned ones do not
            return [plan((3, 0, 0), (2, 0, 0))]
        assert state.now != 120.0 or state.mappable.tolist() == [2]  # 3 became pending at 100 s
        return []

    result = run(typed_scenario(driver, answer, [[100.0]], [[50.0]], [0] * 4, 0.0))
    assert starts(result) == [0.0, 100.0, 300.0, 200.0]


def test_machines_run_down_their_queues_between_events(driver):
    """B3: five tasks of 10 s planned at 0 are done before the second event; an arrival waits."""

    def answer(state):
        return [plan(*((task, 0, 0) for task in state.mappable.tolist()))] if len(state.mappable) else []

    submit = [0.0, 0.0, 0.0, 0.0, 0.0, 15.0]
    result = run(typed_scenario(driver, answer, [[10.0]], [[50.0]], [0] * 6, submit))
    assert starts(result) == [0.0, 10.0, 20.0, 30.0, 40.0, 60.0]
    assert result.trace.mapping_events == 2  # at 0 and 60 s; the run ends at 70 s


@pytest.mark.systems("utility")
def test_a_generated_system_of_b2(driver):
    """EEC = ETC x APC for whatever ran, nothing for idle hosts; special types on their machines."""
    keys = {
        "kind": "utility",
        "seed": 3,
        "days": 0.05,
        "special_machine_counts": [1, 2],
        "special_task_types": [2, 1],
        "general_machine_counts": [2, 3],
        "task_types": 8,
        "tasks_per_type": 500,
    }
    spec = checked_parameters(keys, "test")
    system = generator_of(spec).generate(spec)
    types = system.types
    assert np.isfinite(types.etc[:, :2, 0]).sum() == 3  # two and one special types, each on its own
    result = run(Scenario(None, "", "random_mapping", driver=driver).with_system(system))
    runs = result.trace.executions
    task_type = system.tasks.task_type[runs["task"]]
    entry = (task_type, types.host_type[runs["host"]], runs["pstate"] % 3)
    assert len(runs) > 50
    assert np.isfinite(types.etc[entry]).all()
    np.testing.assert_allclose(runs["end"] - runs["start"], types.etc[entry], rtol=1e-9)
    expected_j = (types.etc[entry] * types.apc[entry]).sum()
    assert result.energy.grid_total() == pytest.approx(expected_j, rel=1e-9)


def test_power_follows_task_type_and_pstate_to_the_last_digit(driver):
    """EEC = ETC x APC: 100 s x 80 W, 140 s x 50 W, 30 s x 200 W; idle hosts draw nothing."""

    def answer(state):
        return [plan((0, 0, 0), (1, 0, 1), (2, 0, 0))] if state.now == 0.0 else []

    result = run(
        typed_scenario(
            driver, answer, [[100.0, 140.0], [30.0, 45.0]], [[80.0, 50.0], [200.0, 120.0]], [0, 0, 1], 0.0, n_hosts=2
        )
    )
    assert starts(result) == [0.0, 100.0, 240.0]
    assert result.energy.grid_total() == pytest.approx(8000.0 + 7000.0 + 6000.0, rel=1e-15)
    if driver == "simgrid":
        assert max(row["relative_difference"] for row in energy_check(result)) <= 1e-15


def test_a_task_over_midnight_draws_from_both_days(driver):
    """B7: 23:50 to 00:20 with 90 kJ: 30 kJ and 60 kJ."""
    start = 23 * 3600.0 + 50 * 60.0

    def answer(state):
        return [plan((0, 0, 0))] if 0 in state.mappable else []

    result = run(
        typed_scenario(
            driver, answer, [[1800.0]], [[50.0]], [0], start, window_s=(DAY_S, 2 * DAY_S), budget=EnergyBudget(1e6)
        )
    )
    row = summary(result.trace, result.energy, (DAY_S, 2 * DAY_S))
    assert row["window_energy_j"] == pytest.approx(60e3, rel=1e-12)
    np.testing.assert_allclose(result.trace.periods["consumed_j"], [30e3, 60e3], rtol=1e-12)
    np.testing.assert_allclose(result.trace.periods["carried_over_j"], [0, 60e3], rtol=1e-12)


def test_figures_of_b5(driver):
    """500 kJ a day, 100 kJ consumed, 50 kJ scheduled: 350 kJ are left at 23:10."""
    now = 1390 * 60.0

    def answer(state):
        if state.now == 0.0:
            return [plan((0, 1, 0))]
        if state.now == 1380 * 60.0:
            return [plan((1, 0, 0))]
        if state.now == now:
            energy = state.energy
            assert abs(energy.consumed_j - 100e3) < 1e-6
            assert abs(energy.committed_j - 50e3) < 1e-6
            assert abs(energy.remaining_j - 350e3) < 1e-6
            assert state.ready_time.tolist() == [1400 * 60.0, now]
            return [Postpone(2)]
        return [plan((2, 0, 0))] if 2 in state.mappable else []

    # by 23:10 machine 0 has run 10 of the 20 minutes of task 1 at 250/3 W: 50 kJ, 50 kJ to go
    watts = 50e3 / 600.0
    result = run(
        typed_scenario(
            driver,
            answer,
            [[600.0], [1200.0]],
            [[watts], [watts]],
            [0, 1, 0],
            [0.0, 1380 * 60.0, now],
            n_hosts=2,
            budget=EnergyBudget(500e3),
        )
    )
    assert starts(result) == [0.0, 1380 * 60.0, DAY_S]
    assert result.trace.times_postponed.tolist() == [0, 0, 1]


def test_a_horizon_leaves_the_rest_unfinished_and_lets_running_tasks_end(driver):
    """No task starts at or after 150 s; the one that runs then ends at 200 s."""

    def answer(state):
        return [plan(*((k, 0, 0) for k in range(4)))] if state.now == 0.0 else []

    result = run(typed_scenario(driver, answer, [[100.0]], [[50.0]], [0] * 4, 0.0, horizon_s=150.0))
    unfinished = TaskState.UNFINISHED
    finished = TaskState.FINISHED
    assert result.trace.final_state.tolist() == [finished, finished, unfinished, unfinished]
    assert result.trace.horizon_s == pytest.approx(200.0, rel=1e-12)
    if driver == "simgrid":
        assert result.energy_plugin_j == pytest.approx(10e3, rel=1e-12)


def test_a_budget_that_stops_ends_the_run_at_that_instant(driver):
    """50 W and 4 kJ: the end comes at 80 s, and the plugin has metered 4 kJ."""

    def answer(state):
        return [plan((0, 0, 0), (1, 0, 0))] if state.now == 0.0 else []

    result = run(
        typed_scenario(driver, answer, [[100.0]], [[50.0]], [0] * 2, 0.0, budget=EnergyBudget(4e3, enforcement="stop"))
    )
    assert result.trace.final_state.tolist() == [TaskState.KILLED] * 2
    assert result.trace.horizon_s == pytest.approx(80.0, rel=1e-12)
    if driver == "simgrid":
        assert result.energy_plugin_j == pytest.approx(4e3, rel=1e-12)


def test_a_slow_mapping_event_delays_the_next_one(driver):
    """With the wall time charged, an event whose computation took 0.3 s delays one due in 0.1 s."""

    def answer(state):
        import time

        if state.now == 0.0:
            time.sleep(0.3)
        return [plan((0, 0, 0))] if state.now > 0.0 and 0 in state.mappable else []

    scenario = typed_scenario(driver, answer, [[100.0]], [[50.0]], [0], 0.0)
    late = run(Scenario(**{**vars(scenario), "mapping_interval_s": 0.1, "horizon_s": 1e3, "charge_mapping_time": True}))
    assert late.trace.start_time_s[0] >= 0.3
    soon = run(Scenario(**{**vars(scenario), "mapping_interval_s": 0.1}))
    assert soon.trace.start_time_s[0] == pytest.approx(0.1)


def wakes(state):
    return [WakeAt(state.now + 1)]


def starts_at_once(state):
    return [Allocate(0, np.array([0])), Cancel(0, requeue=True)]


def starts_each_second(state):
    begun = state.running["start"].tolist()
    if begun == [state.now]:
        return []
    return [*[Cancel(0, requeue=True)] * len(begun), Allocate(0, np.array([0])), WakeAt(state.now + 1)]


def copies_each_second(state):
    return [Assign(0, 0), Cancel(0), WakeAt(state.now + 1)]


def switches(state):
    return [PowerOff(0), PowerOn(0), WakeAt(state.now + 1)]


@pytest.mark.parametrize(
    ("answer", "traits"),
    [
        (wakes, {}),
        (starts_at_once, {"parallel": True, "may_cancel": True}),
        (starts_each_second, {"parallel": True, "may_cancel": True}),
        (copies_each_second, {"replicates": True}),
        (switches, {"powers_hosts": True}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_policy_that_asks_itself_for_ever_is_stopped(driver, answer, traits):
    """Both drivers end the run at the same instant with the same line."""
    width = [1] if "parallel" in traits else None
    tasks = make_tasks([1e4], width=width, requested_time_s=None if width is None else [100])
    scheduler = deciding(answer, **traits)
    scenario = Scenario(ex_a(), tasks, scheduler, driver=driver, max_idle_wakeups=9, timeout_s=60.0)
    with pytest.raises(IncompleteRun, match=r"1 of 1.* 9 times since"):
        run(scenario)
