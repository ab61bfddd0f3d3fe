"""The generator kind robust: hosts, rules and hidden run times of paper 002."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from gridsched.energy import trace_energy
from gridsched.model.trace import ExecutionEnd, TaskState
from gridsched.runs.run import run
from gridsched.runs.scenario import Scenario
from gridsched.sim.library import is_installed
from gridsched.testing.agreement import metered_differences, trace_differences
from gridsched.workloads.robust_trial import RobustTrial, draw_robust_system, generate_robust_trial


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
