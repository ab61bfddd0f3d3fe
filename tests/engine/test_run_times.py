"""True run times beside the estimates: both drivers take them, no policy sees them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scripted import hosts

from gridsched import Scenario, run
from gridsched.errors import InputError
from gridsched.model.estimates import FlopsEstimates, RequestedTimes
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.run_times import DrawnRunTimes, LoggedRunTimes
from gridsched.model.seeds import random_stream
from gridsched.model.task_types import TYPED_TASK_FLOPS, TaskTypes, typed_platform
from gridsched.model.tasks import make_tasks
from gridsched.runs.scenario import make_system
from gridsched.sim.library import HOW_TO_INSTALL, is_installed
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences


def uniform(share: float, estimate_s: float) -> float:
    """Half to one and a half times the estimate."""
    return (0.5 + share) * estimate_s


def test_a_task_has_the_same_luck_wherever_it_runs():
    """Shares 0.25 and 0.75 of 10 s and 20 s, of 5 s and 10 s: by hand."""
    platform, tasks = hosts(10, 20), make_tasks([100.0, 200.0])
    truth = DrawnRunTimes(FlopsEstimates(platform, tasks), [0.25, 0.75], uniform)
    assert [truth.run_time(0, h, 0) for h in (0, 1)] == [7.5, 3.75]
    assert [truth.run_time(1, h, 0) for h in (0, 1)] == [25.0, 12.5]


def test_requested_and_logged_times_are_those_of_the_fastest_host():
    """On the fastest host in P-state 0 to the last digit; at a quarter of its speed 4 times."""
    platform = Platform((Host("a", (PState(3e9), PState(1.5e9))), Host("b", (PState(0.75e9),))))
    tasks = make_tasks([1.0, 1.0], requested_time_s=[0.1, 7.3])
    known, truth = RequestedTimes(platform, tasks), LoggedRunTimes(platform, [0.07, 6.1])
    assert known.run_time(0, 0, 0) == 0.1
    assert known.etc([1], [0, 1]).tolist() == [[7.3, 4 * 7.3]]
    assert (known.run_time(1, 0, 1), truth.run_time(1, 0, 1)) == (14.6, 12.2)
    assert (truth.run_time(0, 0, 0), truth.run_time(0, 1, 0)) == (0.07, 0.28)
    seen, reveal = known.concealed()
    reveal(1)
    assert seen.etc([0], [0]).tolist() == [[0.1]]
    with pytest.raises(InputError, match="requested times"):
        RequestedTimes(platform, make_tasks([1.0]))
    with pytest.raises(InputError, match=r"task 1.*0 s"):
        LoggedRunTimes(platform, [1.0, 0.0])


def test_a_scenario_estimates_by_requested_times():
    """Ten seconds asked for, four taken: the policy sees the ten, the records have the four."""
    platform = hosts(1e9)
    tasks = make_tasks([10e9], requested_time_s=[10.0])
    scenario = Scenario(platform, tasks, "wq", driver="reference", run_times=LoggedRunTimes(platform, [4.0]))
    assert make_system(scenario).estimates.run_time(0, 0, 0) == 10.0
    assert run(scenario).trace.finish_time_s.tolist() == [4.0]


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, float("nan")])
def test_shares_lie_between_0_and_1(share):
    """At the ends a quantile may be infinite: the task is named."""
    estimates = FlopsEstimates(hosts(10), make_tasks([1.0, 1.0]))
    with pytest.raises(InputError, match="task 1"):
        DrawnRunTimes(estimates, [0.5, share], uniform)


def test_executed_flops_are_those_of_the_true_time():
    """100 flop estimated as 10 s take 7.5 s at 10 flop/s: 75 flop were executed."""
    platform, tasks = hosts(10), make_tasks([100.0])
    truth = DrawnRunTimes(FlopsEstimates(platform, tasks), [0.25], uniform)
    for run_times, flops in ((None, 100.0), (truth, 75.0)):
        scenario = Scenario(platform, tasks, "wq", driver="reference", run_times=run_times)
        assert run(scenario).trace.executed_flops().tolist() == [flops]


def bag(scheduler: str) -> Scenario:
    """Twelve tasks, some of which come later, on three hosts, one with two cores."""
    rng = np.random.default_rng(5)
    platform = Platform(
        tuple(
            Host(f"h{k}", (PState(speed, 4, 6, watts),), cores=cores)
            for k, (speed, watts, cores) in enumerate([(100, 50, 1), (50, 40, 2), (25, 20, 1)])
        )
    )
    tasks = make_tasks(rng.uniform(100, 2000, 12), np.repeat([0.0, 7.0], 6))
    truth = DrawnRunTimes(FlopsEstimates(platform, tasks), random_stream(1, "runtime", 0).random(12), uniform)
    return Scenario(platform, tasks, scheduler, run_times=truth)


def typed(scheduler: str) -> Scenario:
    """Two task types on two host types with two P-states."""
    types = TaskTypes(
        np.array([[[10.0, 14], [20, 28]], [[6, 9], [4, 5]]]),
        np.array([[[100.0, 50], [80, 40]], [[120, 70], [90, 60]]]),
        np.array([0, 1]),
    )
    tasks = make_tasks([TYPED_TASK_FLOPS] * 6, [0.0] * 4 + [11.0] * 2, task_type=[0, 1] * 3)
    shares = random_stream(2, "runtime", 0).random(6)
    truth = DrawnRunTimes(types.estimates(tasks), shares, uniform)
    return Scenario(typed_platform(types), tasks, scheduler, types=types, run_times=truth, pstate=0)


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
@pytest.mark.parametrize(
    "scenario",
    [bag("wq"), bag("wqr"), bag("min_min"), bag("lecsa"), typed("mct")],
    ids=lambda scenario: f"{scenario.scheduler}-{'typed' if scenario.types else 'bag'}",
)
def test_both_drivers_agree_on_run_times_other_than_the_estimates(scenario):
    """Times and joules to 1e-9, and not those of the estimates."""
    reference = run(replace(scenario, driver="reference"))
    simulated = run(replace(scenario, driver="simgrid"))
    assert trace_differences(reference.trace, simulated.trace) == []
    assert metered_differences(simulated) == []
    assert not reference.trace.as_estimated
    assert not simulated.trace.as_estimated
    estimated = run(replace(scenario, driver="reference", run_times=None))
    assert trace_differences(reference.trace, estimated.trace) != []
