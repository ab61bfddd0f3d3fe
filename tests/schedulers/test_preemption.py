"""Jobs that make room for others: they wait again, or are killed."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from rigid_cases import machine

from gridsched import Scenario, run
from gridsched.energy import trace_energy
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import ExecutionEnd, TaskState
from gridsched.sim.library import HOW_TO_INSTALL, is_installed
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "preempt_by_qos.py"
PreemptByQos = runpy.run_path(str(EXAMPLE))["PreemptByQos"]
#: Submission, run time, nodes, quality of service: two jobs run on four nodes, at 5 s an urgent one needs three.
JOBS = [(0, 20, 2, "normal"), (1, 20, 2, "normal"), (5, 10, 3, "high"), (6, 4, 1, "normal")]


def scenario(jobs, n_nodes=4, **options):
    """Return a run of jobs under the example's policy."""
    submit, length, width, qos = zip(*jobs, strict=True)
    platform = machine(n_nodes)
    tasks = make_tasks(
        np.array(length) * 1e9, submit, width=width, requested_time_s=length, attributes={"qos": list(qos)}
    )
    requeue = options.pop("requeue", True)
    options = {"driver": "reference"} | options
    return Scenario(
        platform, tasks, PreemptByQos(requeue=requeue), run_times=LoggedRunTimes(platform, length), **options
    )


def test_requeue_by_hand():
    """The youngest makes room, then the other; the urgent job runs from 5 to 15 s, the others start anew."""
    result = run(scenario(JOBS))
    trace = result.trace
    assert result.metrics()["requeues"] == 2
    runs = trace.executions
    found = [(r["task"].item(), r["start"].item(), r["end"].item(), r["outcome"].item()) for r in runs]
    ended, cancelled = int(ExecutionEnd.FINISHED), int(ExecutionEnd.CANCELLED)
    assert sorted(found) == [
        (0, 0, 5, cancelled), (0, 15, 35, ended), (1, 1, 5, cancelled), (1, 15, 35, ended), (2, 5, 15, ended),
        (3, 6, 10, ended),
    ]  # fmt: skip
    assert (trace.final_state == TaskState.FINISHED).all()
    energy = trace_energy(trace)
    assert energy.wasted_j.sum() == pytest.approx(200 * (2 * 5 + 2 * 4))


def test_cancel_by_hand():
    """Those that made room are killed."""
    trace = run(scenario(JOBS, requeue=False)).trace
    killed, done = TaskState.KILLED, TaskState.FINISHED
    assert trace.final_state.tolist() == [killed, killed, done, done]


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
@pytest.mark.parametrize("requeue", [True, False])
def test_both_drivers_agree(requeue):
    """The same records, and the plugin's joules are the model's."""
    rng = np.random.default_rng(11)
    jobs = [
        (int(s), int(rng.integers(5, 60)), int(rng.integers(1, 6)), str(rng.choice(["high", "normal"], p=[0.2, 0.8])))
        for s in np.sort(rng.integers(0, 900, 40))
    ]
    expected = run(scenario(jobs, 6, requeue=requeue))
    found = run(scenario(jobs, 6, requeue=requeue, driver="simgrid"))
    assert (expected.trace.executions["outcome"] != ExecutionEnd.FINISHED).any()
    assert trace_differences(expected.trace, found.trace) == []
    assert metered_differences(found) == []
