"""Hosts that fail under policies that plan with compiled kernels: both drivers, every account.

Utility functions, uncertain run times and parallel tasks: what is lost is planned again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gridsched.errors import InputError
from gridsched.metrics import metrics_of
from gridsched.model.host_profiles import HostProfiles, Profile
from gridsched.model.trace import ExecutionEnd, TaskState, Trace
from gridsched.policy.registry import entries, scheduler_class
from gridsched.runs.run import RunResult, run
from gridsched.sim.library import is_installed
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences
from gridsched.testing.cases import make_stochastic_case, make_utility_case
from gridsched.testing.contract import illegal_places
from gridsched.testing.parallel_cases import make_parallel_utility_case
from gridsched.testing.playing import Case

TWO = [[[10, 14], [20, 28]], [[5, 7], [10, 14]], [[10, 14], [11, 15]]]
#: a host of each kind fails again and again
SERIAL = make_utility_case(
    "utilities", np.array(TWO), [0, 1, 1], [k % 3 for k in range(14)], [1.3 * k for k in range(14)]
)
UNCERTAIN = make_stochastic_case(
    "deadlines",
    [[[20.0, 26.0], [30.0, 41.0]], [[12.0, 15.0], [9.0, 13.0]]],
    [0, 1, 1],
    [k % 2 for k in range(14)],
    [4.0 * k for k in range(14)],
    slack_s=90.0,
)
PARALLEL = make_parallel_utility_case(
    "nodes", [(3.37 * k, k % 3, 1 + k * 5 % 8, 1.1 + k % 4, 0.05) for k in range(14)], mapping_interval_s=5.0
)
FAILURES = {"utilities": (1500.0, 120.0), "deadlines": (60.0, 9.0), "nodes": (60.0, 9.0)}


def case_of(id: str) -> Case | None:
    """Return what a scheduler is played on; None for those that need no kernel."""
    traits = scheduler_class(id).traits
    if traits.needs_distributions:
        return UNCERTAIN
    if traits.needs_utility:
        return PARALLEL if traits.parallel else SERIAL
    return None


PLANNERS = [entry.id for entry in entries() if case_of(entry.id) is not None]


def played(id: str, driver: str, on_failure: str) -> RunResult:
    """Return a run of a scheduler on its case, whose hosts fail."""
    case = case_of(id)
    assert case is not None
    mtbf_s, mttr_s = FAILURES[case.name]
    scenario = case.scenario(
        scheduler_class(id)(),
        driver=driver,
        on_failure=on_failure,
        seed=3,
        timeout_s=60.0,
        failures=f"mtbf={mtbf_s},mttr={mttr_s}",
    )
    return run(scenario)


def check_accounts(result: RunResult, on_failure: str) -> None:
    """Every task has one end, what failed is counted as lost, and energy adds up."""
    trace, values = result.trace, metrics_of(result.facts)
    runs = trace.executions
    assert illegal_places(trace, result.scenario.estimates) == []
    assert (trace.final_state >= TaskState.FINISHED).all()
    finished = np.sort(runs["task"][runs["outcome"] == ExecutionEnd.FINISHED])
    assert np.array_equal(finished, np.flatnonzero(trace.final_state == TaskState.FINISHED))
    lost = runs["outcome"] == ExecutionEnd.FAILED
    assert values["executions_failed"] == lost.sum()
    seconds = ((runs["end"] - runs["start"]) * trace.width)[lost].sum()
    assert values["lost_work_s"] == pytest.approx(float(seconds))
    has_failed = np.flatnonzero(trace.final_state == TaskState.FAILED)
    if on_failure == "failed":
        assert has_failed.tolist() == sorted(set(runs["task"][lost].tolist()))
    else:
        assert not len(has_failed)
    energy = result.energy
    parts = (energy.busy_j, energy.idle_j, energy.boot_j, energy.shutdown_j, energy.off_j)
    assert sum(parts) == pytest.approx(energy.total_j, rel=1e-12)
    assert values["energy_lost_j"] == pytest.approx(float(energy.execution_j[lost].sum()))
    assert nothing_runs_while_down(trace)


def nothing_runs_while_down(trace: Trace) -> bool:
    """Whether no execution lies on a host between its going down and its coming up."""
    execution, placed = trace.placed()
    for host in range(len(trace.platform)):
        rows = trace.host_changes[trace.host_changes["host"] == host]
        edges = np.append(rows["time"], np.inf)
        for begin, end in zip(edges[:-1][~rows["is_on"]], edges[1:][~rows["is_on"]], strict=True):
            runs = trace.executions[execution[placed == host]]
            if ((runs["start"] < end) & (runs["end"] > begin)).any():
                return False
    return True


@pytest.mark.parametrize("id", PLANNERS)
def test_hosts_fail(id: str):
    """What a host loses starts again, and both drivers agree on all of it."""
    expected = played(id, "reference", "restart")
    check_accounts(expected, "restart")
    assert expected.metrics()["executions_failed"] > 0
    if is_installed():
        metered = played(id, "simgrid", "restart")
        assert trace_differences(expected.trace, metered.trace) == []
        assert metered_differences(metered) == []


@pytest.mark.parametrize("id", ["max_max_upe", "max_upe", "minimum_expected_completion_time"])
def test_what_fails_stays_failed(id: str):
    """With `on_failure` = "failed" a lost task is not planned again."""
    check_accounts(played(id, "reference", "failed"), "failed")


@pytest.mark.parametrize("id", ["max_upe", "fcfs_multiple_queues"])
def test_planners_of_parallel_tasks_refuse_changing_speeds(id: str):
    """Jobs that last longer than estimated would be in the way of what they plan."""
    slow = HostProfiles(speeds=((PARALLEL.platform.hosts[0].name, Profile((5.0,), (0.5,))),))
    case = replace(PARALLEL, platform=replace(PARALLEL.platform, profiles=slow))
    with pytest.raises(InputError, match=r"host '.*'"):
        run(case.scenario(scheduler_class(id)(), driver="reference"))
