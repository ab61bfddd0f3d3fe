"""Both drivers agree for typed tasks and parallel jobs."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from clusters import estimates_of, first_fit, jobs, on_both, plan_of, scenario, steps, two_clusters
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.energy import trace_energy
from gridsched.errors import InputError, InvalidDecision
from gridsched.metrics import summary
from gridsched.model.rules import EnergyBudget
from gridsched.model.run_times import SampledRunTimes
from gridsched.model.task_types import TYPED_TASK_FLOPS, TaskTypes, typed_platform
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import TaskState
from gridsched.model.utility import UtilityClasses, UtilityFunctions
from gridsched.policy.decisions import Allocate
from gridsched.policy.registry import entries, scheduler_class
from gridsched.runs.run import run
from gridsched.scenario import Scenario
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences
from gridsched.testing.decision_checks import illegal_places

# Typed workloads with utility functions and energy budgets: both drivers, plugin and model agree.

pytestmark = pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)

RULES = {"deadline": None, "suppress_health_check": list(HealthCheck)}
DAY_S = 600.0
ETC = st.sampled_from([60.0, 120.0, 180.0]) | st.floats(10.0, 400.0)
APC = st.sampled_from([50.0, 100.0]) | st.floats(1.0, 300.0)
SERIAL = [
    entry.id
    for entry in entries()
    if not (traits := scheduler_class(entry.id).traits).by_types
    and not traits.needs_distributions
    and not traits.parallel
]
UTILITY = [id for id in SERIAL if scheduler_class(id).traits.needs_utility]
#: one policy for each way of being asked and of planning; the others run in test_agreement.py
PLAIN = ["wq", "mct", "min_min", "sufferage", "wqr", "auto_bag"]


@st.composite
def typed_scenarios(draw) -> Scenario:
    """Up to four hosts of up to three types, and up to fifteen tasks over three short days."""
    n_types, n_host_types = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    n_pstates = draw(st.integers(1, 3))
    shape = (n_types, n_host_types, n_pstates)
    etc = np.array([draw(ETC) for _ in range(math.prod(shape))]).reshape(shape)
    etc = np.sort(etc, axis=2)
    apc = np.array([draw(APC) for _ in range(math.prod(shape))]).reshape(shape)
    for i in range(n_types):
        for j in range(1, n_host_types):
            if draw(st.integers(0, 4)) == 0:
                etc[i, j] = math.inf
    host_type = [0, *(draw(st.integers(0, n_host_types - 1)) for _ in range(draw(st.integers(0, 3))))]
    types = TaskTypes(etc, apc, np.array(host_type))
    n = draw(st.integers(1, 15))
    submit = [draw(st.sampled_from([0.0, 30.0, 60.0]) | st.floats(0.0, 3 * DAY_S)) for _ in range(n)]
    utility = UtilityFunctions(
        np.array([draw(st.sampled_from([1.0, 2.0, 4.0, 8.0])) for _ in range(n)]),
        np.array([draw(st.sampled_from([0.01, 0.1, 0.6])) for _ in range(n)]),
        np.zeros(n, dtype=np.int64),
        UtilityClasses.from_intervals([([0.0, 4.0, 9.0], [1.0, 0.5, 0.0], [1.0, 0.5, 1.0])]),
    )
    tasks = make_tasks(
        np.full(n, TYPED_TASK_FLOPS),
        submit,
        task_type=[draw(st.integers(0, n_types - 1)) for _ in range(n)],
        utility=utility,
    )
    return Scenario(
        typed_platform(types),
        tasks,
        types=types,
        seed=draw(st.integers(0, 3)),
        mapping_interval_s=draw(st.sampled_from([30.0, 60.0, 47.3])),
        pending_slots=draw(st.integers(0, 2)),
        window_s=(DAY_S, 2 * DAY_S),
        horizon_s=draw(st.sampled_from([None, 2 * DAY_S])),
        timeout_s=60.0,
    )


@st.composite
def budgets(draw) -> EnergyBudget:
    """From nearly nothing to plenty a day."""
    return EnergyBudget(
        draw(st.floats(1e3, 2e5)),
        period_s=DAY_S,
        first_period_start_s=draw(st.sampled_from([0.0, 0.0, 90.0])),
        carry_over=draw(st.booleans()),
        periods=4,
    )


def check_both_drivers(scenario: Scenario, scheduler: str) -> None:
    """Compare traces, joules and what the periods drew.

    SimGrid goes first, with the time-out; the reference driver then needs no process of its own.
    """
    given_by = {**vars(scenario), "scheduler": scheduler}
    result = run(Scenario(**{**given_by, "driver": "simgrid"}))
    expected = run(Scenario(**{**given_by, "driver": "reference", "timeout_s": None}))
    assert trace_differences(expected.trace, result.trace) == []
    assert metered_differences(result) == []
    columns = ["task", "host", "pstate", "outcome"]
    assert result.trace.executions[columns].tolist() == expected.trace.executions[columns].tolist()
    assert (result.trace.periods == expected.trace.periods).all()
    check_budget(expected.trace)
    check_final_states(expected.trace)


def check_budget(trace) -> None:
    """No period draws more than its budget, save for what was carried over into it."""
    for period in trace.periods:
        consumed = period["consumed_j"] - period["carried_over_j"]
        assert consumed <= period["budget_j"] * (1 + 1e-9)
    if len(trace.periods):
        assert summary(trace)["budget_excess_j"] <= 1e-9 * trace.periods["budget_j"].max()


def check_final_states(trace) -> None:
    """Every task has one final state, and the counts add up."""
    assert (trace.final_state >= TaskState.FINISHED).all()
    row = summary(trace)
    states = ("finished", "dropped", "rejected", "killed", "failed", "unfinished")
    assert sum(row[f"tasks_{name}"] for name in states) == len(trace.tasks)


@pytest.mark.parametrize("scheduler", UTILITY)
@settings(max_examples=12, derandomize=True, **RULES)
@given(scenario=typed_scenarios(), budget=budgets())
def test_utility_heuristics_agree_and_keep_the_budget(scheduler, scenario, budget):
    """Decisions exactly, times and joules to 1e-9 relative."""
    check_both_drivers(Scenario(**{**vars(scenario), "budget": budget}), scheduler)


@pytest.mark.parametrize("scheduler", PLAIN)
@settings(max_examples=12, derandomize=True, **RULES)
@given(scenario=typed_scenarios(), budget=st.none() | budgets())
def test_other_serial_schedulers_agree_on_typed_workloads(scheduler, scenario, budget):
    """Any serial scheduler runs on this workload; what exceeds a budget is put off."""
    changes = {} if budget is None else {"budget": budget, "horizon_s": 4 * DAY_S}
    check_both_drivers(Scenario(**{**vars(scenario), **changes}), scheduler)


def test_a_scheduler_that_goes_by_speed_refuses_task_types():
    """A host has no one speed where the task type decides."""
    types = TaskTypes(np.full((1, 1, 1), 60.0), np.full((1, 1, 1), 50.0), np.array([0]))
    tasks = make_tasks([TYPED_TASK_FLOPS], task_type=[0])
    with pytest.raises(InputError, match="bags"):
        run(Scenario(typed_platform(types), tasks, "lecsa", types=types, driver="reference"))


# Parallel tasks on several clusters: reference driver, SimGrid, model and plugin agree.

needs_simgrid = pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)


@needs_simgrid
def test_two_clusters_by_hand():
    """Type 0 on A and on B, type 1 on B; 5 W idle: nodes, ends and joules of every node."""
    trace = on_both(
        jobs((0, 0, 9), (0, 0, 3), (0, 1, 4), (1, 0, 13)),
        steps({0: [Allocate(0, np.array([2, 0, 1])), Allocate(1, np.array([3, 4]), 1), Allocate(2, np.array([6, 5]))]}),
    )
    # 13 cores are 4 nodes of A and 7 of B: more than either has
    assert trace.final_state.tolist() == [TaskState.FINISHED] * 3 + [TaskState.REJECTED]
    assert trace.host_ids.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert trace.executions["end"].tolist() == [10.0, 40.0, 12.0]
    assert trace.executions["pstate"].tolist() == [0, 1, 2]
    joules = trace_energy(trace).total_j
    assert joules[:3].tolist() == [10 * 40 + 30 * 5] * 3
    assert joules[3:].tolist() == [400, 400, 12 * 50 + 28 * 5, 12 * 50 + 28 * 5]


@needs_simgrid
def test_many_tasks_on_two_clusters():
    """Sixty tasks of both types and P-states, mapped at events and at mapping intervals."""
    rng = np.random.default_rng(5)
    tasks = jobs(
        *zip(
            np.cumsum(rng.exponential(4.0, 60)).round(2).tolist(),
            rng.integers(0, 2, 60).tolist(),
            rng.integers(1, 9, 60).tolist(),
            strict=True,
        )
    )
    assert (on_both(tasks, first_fit).final_state == TaskState.FINISHED).all()
    on_both(tasks, first_fit, mapping_interval_s=7.0)


def earliest(state):
    """Give each waiting task the earliest start in any cluster, node by node.

    Every third task gets a reservation, the others place-holders.
    """
    taken = [[(-1.0, t)] for t in state.nodes.free_at.tolist()]
    view = state.nodes.reserved
    for k, (begin, end) in enumerate(pairwise(view.offsets.tolist())):
        for h in view.hosts[begin:end].tolist():
            taken[h].append((view.start.item(k), view.end.item(k)))
    plan, decisions = [], []
    for task in state.mappable.tolist():
        options = []
        for nodes in (range(3), range(3, 7)):
            width, time = (
                f(task, nodes[0], *k) for f, k in ((state.estimates.width, ()), (state.estimates.run_time, (task % 2,)))
            )
            for s in sorted({e for h in nodes for _, e in taken[h]}) if time < np.inf else ():
                free = [h for h in nodes if all(e <= s or b >= s + time for b, e in taken[h])]
                if len(free) >= width:
                    options.append((s, time, free[:width]))
                    break
        start, time, hosts = min(options)
        for h in hosts:
            taken[h].append((start, start + time))
        if task % 3:
            plan.append((task, start, hosts))
        else:
            decisions.append(Allocate(task, np.array(hosts), task % 2, start))
    pstates = [task % 2 for task, _, _ in plan]
    return [*decisions, plan_of(*plan, pstates=pstates)]


@needs_simgrid
@pytest.mark.parametrize(
    ("interval", "budget"), [(None, None), (7.0, EnergyBudget(9000.0, period_s=150.0, first_period_start_s=20.0))]
)
def test_reservations_and_place_holders(interval, budget):
    """Sixty tasks on profiles of the nodes: nothing overlaps, and no reservation moves.

    With a budget tasks are put off, alike on both drivers.
    """
    rng = np.random.default_rng(6)
    tasks = jobs(
        *zip(
            np.cumsum(rng.exponential(4.0, 60)).round(2).tolist(),
            rng.integers(0, 2, 60).tolist(),
            rng.integers(1, 9, 60).tolist(),
            strict=True,
        )
    )
    reserved = {}

    def answer(state):
        decisions = earliest(state)
        reserved.update({d.task: d.start for d in decisions if isinstance(d, Allocate)})
        return decisions

    rules = {"mapping_interval_s": interval, "budget": budget}
    run(scenario(tasks, answer, **rules))
    trace = on_both(tasks, earliest, **rules)
    assert (trace.final_state == TaskState.FINISHED).all()
    assert illegal_places(trace, estimates_of(two_clusters(), tasks)) == []
    assert len(reserved) == 20
    if budget is None:
        assert {task: trace.start_time_s[task] for task in reserved} == reserved
    else:
        assert trace.times_postponed.sum() > 10
    waited = trace.start_time_s - tasks.submit_time_s
    assert (waited > (interval or 0.0)).sum() > 10


@needs_simgrid
def test_a_late_predecessor_voids_the_run_on_both_drivers():
    """The first task takes 12 s where 10 were estimated, and its node is reserved from 10 s on."""
    tasks = jobs((0, 0, 4), (0, 0, 9))
    truth = SampledRunTimes(estimates_of(two_clusters(), tasks), [0.5, 0.5], lambda share, estimate: 1.2 * estimate)
    answer = steps({0: [Allocate(0, np.array([1])), Allocate(1, np.array([0, 1, 2]), start=10.0)]})
    for driver in ("reference", "simgrid"):
        with pytest.raises(InvalidDecision, match="t = 10 s, task 2, host 'A-2'"):
            run(scenario(tasks, answer, driver=driver, run_times=truth))
