"""Reference driver and SimGrid agree on random platforms and bags, for every scheduler.

Half of the speeds, sizes and submission times are drawn from few round numbers, so that ends,
arrivals and completion times tie; the others are arbitrary floats.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gridsched.model.platform import Host, Platform, PState
from gridsched.model.tasks import make_tasks
from gridsched.policy.registry import entries, scheduler_class
from gridsched.runs.run import run
from gridsched.runs.scenario import Scenario
from gridsched.sim.library import HOW_TO_INSTALL, is_installed
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences
from gridsched.testing.playing import CARBON

pytestmark = pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)

SPEEDS = st.sampled_from([10.0, 20.0, 25.0, 50.0, 100.0]) | st.floats(10.0, 1e3)
SIZES = st.sampled_from([100.0, 200.0, 500.0, 1000.0]) | st.floats(1.0, 5e3)
TIMES = st.sampled_from([0.0, 0.0, 5.0, 10.0, 20.0]) | st.floats(1e-3, 1e3)
WATTS = st.sampled_from([0.0, 5.0, 40.0]) | st.floats(1e-3, 500.0)


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


def ways_of(scheduler: str) -> list[str]:
    """All ways of running a scheduler that SimGrid has."""
    traits = Scenario(Platform(()), make_tasks([]), scheduler).make_scheduler().traits
    cancels = traits.replicates or traits.may_cancel or traits.powers_hosts
    return ["auto"] if cancels else ["maestro", "actors"]


def check_agreement(scenario: Scenario, scheduler: str, ways: list[str]) -> None:
    """Compare the reference driver's trace and joules with SimGrid's, by these ways.

    SimGrid goes first, with the time-out; the reference driver then needs no process of its own.
    """
    needs_carbon = scheduler_class(scheduler).traits.needs_carbon
    given_by = {**vars(scenario), "scheduler": scheduler, "carbon": CARBON if needs_carbon else None}
    results = [run(Scenario(**{**given_by, "driver": "simgrid", "way": way})) for way in ways]
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
    check_agreement(scenario, scheduler, [ways_of(scheduler)[-1 if by_actors else 0]])


@pytest.mark.long
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@settings(max_examples=400, **RULES)
@given(scenario=scenarios())
def test_drivers_agree_on_many(scheduler, scenario):
    """The same by all ways with many more examples, other ones each time."""
    check_agreement(scenario, scheduler, ways_of(scheduler))
