"""Both drivers of bags agree for every scheduler, also where hosts fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.errors import InputError
from gridsched.metrics import metrics_of
from gridsched.model.host_profiles import HostProfiles, Profile
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import ExecutionEnd, TaskState, Trace
from gridsched.policy.registry import entries, make_scheduler, scheduler_class
from gridsched.runs.run import RunResult, run
from gridsched.scenario import Scenario
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences
from gridsched.testing.cases import make_stochastic_case, make_utility_case
from gridsched.testing.decision_checks import illegal_places
from gridsched.testing.parallel_cases import make_parallel_utility_case
from gridsched.testing.playing import CARBON, Case

# Reference driver and SimGrid agree on random platforms and bags, for every scheduler.

pytestmark = pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)

SPEEDS = st.sampled_from([10.0, 20.0, 25.0, 50.0, 100.0]) | st.floats(10.0, 1e3)
SIZES = st.sampled_from([100.0, 200.0, 500.0, 1000.0]) | st.floats(1.0, 5e3)
TIMES = st.sampled_from([0.0, 0.0, 5.0, 10.0, 20.0]) | st.floats(1e-3, 1e3)
WATTS = st.sampled_from([0.0, 5.0, 40.0]) | st.floats(1e-3, 500.0)
#: Half a day of waiting has thousands of mapping events: these tasks take minutes.
PARAMETERS = {"wait_for_green": {"max_delay_s": 1800.0}}


@st.composite
def platforms(draw) -> Platform:
    """One to five hosts with 1 to 4 cores, all with the same number (1 to 3) of P-states."""
    n_pstates = draw(st.integers(1, 3))
    hosts = []
    for k in range(draw(st.integers(1, 5))):
        speeds = sorted((draw(SPEEDS) for _ in range(n_pstates)), reverse=True)
        pstates = []
        for speed in speeds:
            idle, epsilon = draw(WATTS), draw(WATTS)
            pstates.append(PState(speed, idle, epsilon, epsilon + draw(st.floats(1.0, 300.0))))
        hosts.append(
            Host(f"h{k}", tuple(pstates), cores=draw(st.integers(1, 4)), off_w=draw(st.sampled_from([0.0, 2.5])))
        )
    return Platform(tuple(hosts), name="random")


@st.composite
def scenarios(draw) -> Scenario:
    """A platform and a bag of one to twelve tasks, some submitted later."""
    platform = draw(platforms())
    sizes = draw(st.lists(SIZES, min_size=1, max_size=12))
    times = [draw(TIMES) for _ in sizes]
    pstate = st.integers(0, len(platform.hosts[0].pstates) - 1)
    of_each = [f"{host.name}={draw(pstate)}" for host in platform.hosts]
    return Scenario(
        platform,
        make_tasks(sizes, times),
        pstate=draw(pstate | st.just(",".join(of_each))),
        mapping_interval_s=draw(st.sampled_from([None, None, 10.0, 17.3])),
        seed=draw(st.integers(0, 3)),
        timeout_s=60.0,
    )


def modes_of(scheduler: str) -> list[str]:
    """All execution modes a scheduler that SimGrid has."""
    traits = Scenario(Platform(()), make_tasks([]), scheduler).make_scheduler().traits
    cancels = traits.replicates or traits.may_cancel or traits.powers_hosts
    return ["auto"] if cancels else ["maestro", "actors"]


def check_agreement(scenario: Scenario, scheduler: str, modes: list[str]) -> None:
    """Compare the reference driver's trace and joules with SimGrid's, by these ways.

    SimGrid goes first, with the time-out; the reference driver then needs no process of its own.
    """
    needs_carbon = scheduler_class(scheduler).traits.needs_carbon
    policy = make_scheduler(scheduler, PARAMETERS.get(scheduler, {}))
    given_by = {**vars(scenario), "scheduler": policy, "carbon": CARBON if needs_carbon else None}
    results = [
        run(Scenario(**{**given_by, "driver": "simgrid", "execution_mode": execution_mode})) for execution_mode in modes
    ]
    expected = run(Scenario(**{**given_by, "driver": "reference", "timeout_s": None}))
    for result in results:
        assert trace_differences(expected.trace, result.trace) == []
        assert metered_differences(result) == []
        assert result.trace.mapping_events == expected.trace.mapping_events
        # the same decisions: tasks meet hosts in the same order
        columns = ["task", "host", "pstate", "outcome"]
        assert sorted(result.trace.executions[columns].tolist()) == sorted(expected.trace.executions[columns].tolist())


#: those that need typed tasks with utility functions are in test_typed_agreement.py; those that go
#: by types plan once, when all tasks are there, and are in test_linear_programmes.py; those of
#: parallel jobs are in sim/test_parallel_jobs.py
SCHEDULERS = [
    entry.id
    for entry in entries()
    if not (traits := scheduler_class(entry.id).traits).needs_utility
    and not traits.by_types
    and not traits.needs_distributions
    and not traits.parallel
]
RULES = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@settings(max_examples=12, derandomize=True, **RULES)
@given(scenario=scenarios(), by_actors=st.booleans())
def test_drivers_agree(scheduler, scenario, by_actors):
    """Starts, finishes and joules per host agree to 1e-9 relative, decisions exactly.

    Each example goes one way; on the tiny cases of the common checks each way is gone.
    """
    check_agreement(scenario, scheduler, [modes_of(scheduler)[-1 if by_actors else 0]])


@pytest.mark.long
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@settings(max_examples=400, **RULES)
@given(scenario=scenarios())
def test_drivers_agree_on_many(scheduler, scenario):
    """The same by all ways with many more examples, other ones each time."""
    check_agreement(scenario, scheduler, modes_of(scheduler))


# Hosts that fail under policies that plan with compiled kernels: both drivers, every account.

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


@pytest.mark.systems("robust", "utility")
@pytest.mark.parametrize("id", ["max_max_upe", "max_upe", "minimum_expected_completion_time"])
def test_what_fails_stays_failed(id: str):
    """With `on_failure` = "failed" a lost task is not planned again."""
    check_accounts(played(id, "reference", "failed"), "failed")


@pytest.mark.systems("utility")
@pytest.mark.parametrize("id", ["max_upe", "fcfs_multiple_queues"])
def test_planners_of_parallel_tasks_refuse_changing_speeds(id: str):
    """Jobs that last longer than estimated would be in the way of what they plan."""
    slow = HostProfiles(speeds=((PARALLEL.platform.hosts[0].name, Profile((5.0,), (0.5,))),))
    case = replace(PARALLEL, platform=replace(PARALLEL.platform, profiles=slow))
    with pytest.raises(InputError, match=r"host '.*'"):
        run(case.scenario(scheduler_class(id)(), driver="reference"))
