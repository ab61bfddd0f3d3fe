"""Systems and trials of paper 002."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from gridsched import Scenario, run
from gridsched.drivers.simgrid_library import is_installed
from gridsched.energy import trace_energy
from gridsched.errors import InputError
from gridsched.metrics.run_metrics import series_of_notes
from gridsched.model.trace import ExecutionEnd, TaskState
from gridsched.systems.robust.robust_trial import (
    RobustTrial,
    draw_robust_system,
    draw_robust_tasks,
    generate_robust_trial,
)
from gridsched.testing.agreement import metered_differences, trace_differences

# The power and energy formulas, by hand.

# Paper 003's system, and bags generated for it.

# Systems of paper 003: sizes, moments, idle power, independent draws.


def systems(count: int) -> list:
    """Systems of so many seeds."""
    return [draw_robust_system(RobustTrial(system_seed=seed)) for seed in range(count)]


def test_every_system_has_the_papers_cores_and_ranges():
    """48 +- 1 cores on 8 nodes of 1 to 4 processors with 1 to 4 cores each."""
    for system in systems(40):
        assert len(system.cores) == 8
        assert 47 <= system.cores.sum() <= 49
        assert ((system.cores >= 1) & (system.cores <= 16)).all()
        assert ((system.supply_efficiency >= 0.90) & (system.supply_efficiency <= 0.98)).all()
        assert ((system.power_w[:, 0] >= 125) & (system.power_w[:, 0] <= 135)).all()
        assert (np.diff(system.power_w, axis=1) < 0).all()
        assert (np.diff(system.slowdown, axis=1) > 0).all()


def test_means_are_those_that_the_paper_prints():
    """Claim F-002 10: t_avg about 1353, P4/P0 about a quarter, least frequency at least 40 %."""
    found = systems(200)
    t_avg = np.mean([system.t_avg_s for system in found])
    ratio = np.mean([(s.power_w[:, -1] / s.power_w[:, 0]).mean() for s in found])
    frequency = min((s.slowdown[:, 0] / s.slowdown[:, -1]).min() for s in found)
    assert t_avg == pytest.approx(1353, rel=0.03)
    assert 0.22 <= ratio <= 0.29
    assert frequency >= 0.40
    assert np.mean([s.p_avg_w for s in found]) == pytest.approx(74.4, rel=0.01)


def test_a_trial_by_its_definition():
    """1,000 tasks in three phases; deadlines follow from arrival, type and system."""
    spec = RobustTrial(seed=3)
    system = draw_robust_system(spec)
    tasks = draw_robust_tasks(spec, system)
    assert len(tasks.submit_time_s) == len(tasks.luck) == spec.n_tasks == 1000
    assert (np.diff(tasks.submit_time_s) > 0).all()
    assert np.diff(tasks.submit_time_s[:200]).mean() == pytest.approx(8, rel=0.25)
    assert np.diff(tasks.submit_time_s[200:800]).mean() == pytest.approx(48, rel=0.15)
    k = 17
    mean = system.mean_time_s[tasks.task_type[k]].mean()
    expected = tasks.submit_time_s[k] + mean + system.t_avg_s
    assert tasks.deadline_s[k] == pytest.approx(expected, rel=1e-15)
    assert ((tasks.luck >= 0) & (tasks.luck < 1)).all()


def test_the_system_stays_and_the_trials_differ():
    """Seeds for system and trials are apart."""
    first, second = RobustTrial(seed=1, replicate=0), RobustTrial(seed=1, replicate=1)
    one, other = draw_robust_system(first), draw_robust_system(second)
    assert np.array_equal(one.mean_time_s, other.mean_time_s)
    tasks = [draw_robust_tasks(spec, one) for spec in (first, second, first)]
    assert np.array_equal(tasks[0].luck, tasks[2].luck)
    assert not np.array_equal(tasks[0].luck, tasks[1].luck)
    assert not np.array_equal(tasks[0].submit_time_s, tasks[1].submit_time_s)
    third = draw_robust_system(RobustTrial(system_seed=5))
    assert not np.array_equal(one.cores, third.cores)


def test_rates_can_follow_the_system():
    """Twice the cores take twice the arrivals."""
    spec = RobustTrial(total_cores=100, nodes=16, scaled_to_system=True)
    system = draw_robust_system(spec)
    scaled = draw_robust_tasks(spec, system)
    plain = draw_robust_tasks(spec.model_copy(update={"scaled_to_system": False}), system)
    factor = (system.cores.sum() / 48.3) * (1353 / system.t_avg_s)
    assert plain.submit_time_s == pytest.approx(scaled.submit_time_s * factor, rel=1e-12)


def test_nodes_can_differ_in_their_means():
    """With a spread of nodes the means are inconsistent; without one they follow the slowdown."""
    same = draw_robust_system(RobustTrial())
    ratio = same.mean_time_s / same.slowdown[None]
    assert ratio.std(axis=(1, 2)) == pytest.approx(np.zeros(100), abs=1e-9)
    apart = draw_robust_system(RobustTrial(time_node_cov=0.25))
    spread = apart.mean_time_s[:, :, 0] / apart.slowdown[None, :, 0]
    assert (spread.std(axis=1) / spread.mean(axis=1)).mean() == pytest.approx(0.25, rel=0.2)


def test_cores_that_cannot_be_met_are_refused():
    """Eight nodes of at most 16 cores have no 200."""
    with pytest.raises(InputError, match=r"total_cores.*200"):
        draw_robust_system(RobustTrial(total_cores=200))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task_types": 100_000, "nodes": 100_000, "total_cores": None}, "task_types, nodes and"),
        ({"phases": [(100_000, 1.0)] * 101}, "phases give 10,100,000"),
        ({"processors": (1, 100_000), "total_cores": None}, "a run lists each"),
        ({"processors": (100_000, 100_000)}, "a run lists each"),
        ({"nodes": 100, "total_cores": 48}, "100 nodes .* have 100 to 1600"),
        ({"grid_s": 1e-30}, "Choose a coarser grid"),
        ({"time_mean_s": 1e30}, "Choose a coarser grid"),
        ({"pstate_slowdown": (1e30, 1e30), "pstates": 100}, "Choose a coarser grid"),
    ],
)
def test_systems_too_large_to_draw_are_refused(changes, message):
    """Before anything is drawn, or a distribution is spelled out."""
    with np.errstate(all="raise"), pytest.raises(InputError, match=message):
        draw_robust_system(RobustTrial(**changes))


def small(**keys) -> RobustTrial:
    """A trial of 40 tasks on a few cores."""
    return RobustTrial(
        nodes=2, total_cores=5, task_types=6, phases=((30, 60.0), (10, 200.0)), budget_tasks=30.0, **keys
    )


def test_hosts_and_rules_are_those_of_the_drawn_system():
    """One one-core host for each core, P:P with the supply inside, parked in the last P-state."""
    spec = small()
    system, made = draw_robust_system(spec), generate_robust_trial(spec)
    platform = made.platform
    assert len(platform.hosts) == system.cores.sum()
    assert (platform.cores == 1).all()
    node = made.types.host_type
    assert platform.busy_w == pytest.approx(system.wall_power_w[node])
    assert platform.idle_w == pytest.approx(system.wall_power_w[node])
    assert made.rules.parked_pstate == 4
    assert made.rules.budget.period_s == math.inf
    assert made.rules.budget.energy_j == system.budget_j(30.0)
    # work over speed is the mean run time
    expected = made.types.etc[made.tasks.task_type][:, node]
    found = made.tasks.flops[:, None, None] / platform.speed[None]
    assert found == pytest.approx(expected)


def test_trials_share_their_system_and_a_task_its_luck():
    """Another seed draws other tasks on the same hosts; luck is one quantile on every host."""
    one, other = generate_robust_trial(small(seed=1)), generate_robust_trial(small(seed=2))
    assert one.platform == other.platform
    assert not np.array_equal(one.tasks.submit_time_s, other.tasks.submit_time_s)
    estimates = one.types.estimates(one.tasks)
    shares = [
        one.run_times.run_time(3, host, pstate) / estimates.run_time(3, host, pstate)
        for host in range(5)
        for pstate in range(5)
    ]
    assert shares == pytest.approx([shares[0]] * 25)
    pmf = estimates.pmf(3, 0, 2)
    assert pmf.mean == pytest.approx(estimates.run_time(3, 0, 2), rel=1e-4)
    variance = (pmf.times - pmf.mean) ** 2 @ pmf.masses
    assert math.sqrt(variance) / pmf.mean == pytest.approx(0.25, rel=1e-2)


def test_deadlines_are_stretched_by_their_factor():
    """Twice the factor is twice the time to the deadline; arrivals and budget stay."""
    one, other = generate_robust_trial(small()), generate_robust_trial(small(deadline_factor=2.0))
    assert np.array_equal(one.tasks.submit_time_s, other.tasks.submit_time_s)
    assert one.rules.budget == other.rules.budget
    slack_s = one.tasks.deadline_s - one.tasks.submit_time_s
    assert other.tasks.deadline_s - other.tasks.submit_time_s == pytest.approx(2 * slack_s)


BOTH_FILTERS = {"energy_fair_share": True, "robustness": 0.5}


@pytest.mark.skipif(not is_installed(), reason="SimGrid is not installed")
@pytest.mark.parametrize(
    ("scheduler", "parameters"),
    [
        ("shortest_queue", {}),
        ("minimum_expected_completion_time", {}),
        ("lightest_load", BOTH_FILTERS),
        ("random_immediate", {"robustness": 0.5}),
        ("mct", {}),
        ("shortest_queue", {"remap": True}),
    ],
)
def test_drivers_agree(scheduler, parameters):
    """Uncertain run times, parked hosts and a budget that ends the run; joules to 1e-9."""
    made = generate_robust_trial(small(seed=4))
    scenario = Scenario(None, made.tasks, scheduler, parameters).with_system(made)
    one = run(replace(scenario, driver="reference"))
    other = run(replace(scenario, driver="simgrid"))
    assert trace_differences(one.trace, other.trace) == []
    assert metered_differences(other) == []
    consumed = trace_energy(one.trace).grid_total()
    assert consumed == pytest.approx(made.rules.budget.energy_j, rel=1e-9)
    assert TaskState.KILLED in one.trace.final_state  # the budget ended it, nothing else
    # five cores are parked at once; others after them
    assert np.array_equal(one.trace.host_changes, other.trace.host_changes)
    assert len(one.trace.host_changes) >= 10
    estimates = made.types.estimates(made.tasks)
    executed = one.trace.of_outcome(ExecutionEnd.FINISHED)
    expected = [estimates.run_time(*key) for key in executed[["task", "host", "pstate"]].tolist()]
    assert not np.isclose(executed["end"] - executed["start"], expected, rtol=1e-3).any()


def test_a_campaign_stores_the_counts_of_what_was_noted():
    """Of a heuristic with deadlines: every task that the budget's end leaves decided is counted."""
    made = generate_robust_trial(RobustTrial(nodes=2, total_cores=5, phases=((40, 60.0),), budget_tasks=30.0))
    scenario = Scenario(None, made.tasks, "shortest_queue", driver="reference").with_system(made)
    trace = run(scenario).trace
    found = series_of_notes(trace)
    decided = made.tasks.deadline_s <= trace.horizon_s
    assert 10 < decided.sum() == sum(found["chance_tasks"])
    in_time = trace.finish_time_s <= made.tasks.deadline_s
    assert sum(found["chance_in_time"]) == (in_time & decided).sum()
    assert 0 < sum(found["chance_sum"]) < decided.sum()
    other = Scenario(None, made.tasks, "mct", driver="reference").with_system(made)
    assert series_of_notes(run(other).trace) == {}
