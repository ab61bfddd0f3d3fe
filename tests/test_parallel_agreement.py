"""Parallel tasks on several clusters: reference driver, SimGrid, model and plugin agree."""

from __future__ import annotations

import numpy as np
import pytest
from clusters import first_fit, jobs, scenario, steps

from gridsched import run
from gridsched.energy import trace_energy
from gridsched.model.trace import TaskState
from gridsched.policy.decisions import Allocate
from gridsched.sim.library import HOW_TO_INSTALL, is_installed
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences

needs_simgrid = pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)


def on_both(tasks, answer, **changes):
    """Run on both drivers; assert that they agree, joules of the plugin too; return the trace."""
    expected = run(scenario(tasks, answer, **changes))
    result = run(scenario(tasks, answer, driver="simgrid", timeout_s=60.0, **changes))
    assert trace_differences(expected.trace, result.trace) == []
    assert metered_differences(result) == []
    assert len(result.plugin_j) == 7
    assert (expected.trace.periods == result.trace.periods).all()
    return expected.trace


@needs_simgrid
def test_two_clusters_by_hand():
    """Type 0 on A and on B, type 1 on B; 5 W idle: nodes, ends and joules of every node."""
    trace = on_both(
        jobs((0, 0, 9), (0, 0, 3), (0, 1, 4), (1, 0, 13)),
        steps({0: [Allocate(0, np.array([2, 0, 1])), Allocate(1, np.array([3, 4]), 1),
                   Allocate(2, np.array([6, 5]))]}),
    )  # fmt: skip
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
    tasks = jobs(*zip(
        np.cumsum(rng.exponential(4.0, 60)).round(2).tolist(), rng.integers(0, 2, 60).tolist(),
        rng.integers(1, 9, 60).tolist(), strict=True,
    ))  # fmt: skip
    assert (on_both(tasks, first_fit).final_state == TaskState.FINISHED).all()
    on_both(tasks, first_fit, mapping_interval_s=7.0)
