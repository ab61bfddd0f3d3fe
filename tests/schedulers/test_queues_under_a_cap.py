"""Queues under a power cap: a job whose nodes would exceed it waits, and none behind it overtakes it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched import Host, Platform, PState, Scenario, make_tasks, run
from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.errors import InputError, InvalidDecision
from gridsched.model.platform import Cluster, Partition
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.trace import TaskState
from gridsched.schedulers.idle_off import IdleOff
from gridsched.schedulers.parallel.backfilling import EasyBackfilling
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences

QUEUES = ["fcfs", "easy_backfilling", "conservative_backfilling", "slurm"]
STATE = PState(1.0, 10.0, 20.0, 100.0)


def nodes(n: int, cores: int = 1, *partitions: range) -> Platform:
    """Return nodes that draw 10 W idle, 20 W with hardly any load and 100 W with all cores busy."""
    hosts = tuple(Host(f"n{k}", (STATE,), cores=cores) for k in range(n))
    parts = tuple(Partition(f"p{k}", tuple(some)) for k, some in enumerate(partitions))
    return Platform(hosts, (Cluster("c", tuple(range(n))),), partitions=parts)


def starts(result) -> list[float]:
    """Return when each task starts [s]."""
    return result.trace.start_time_s.tolist()


def both(platform, tasks, scheduler, **options):
    """Run on both drivers, which must agree, and SimGrid's meter with the model."""
    expected = run(Scenario(platform, tasks, scheduler, driver="reference", **options))
    if is_installed():
        metered = run(Scenario(platform, tasks, scheduler, driver="simgrid", **options))
        assert trace_differences(expected.trace, metered.trace) == []
        assert metered_differences(metered) == []
    return expected


@pytest.mark.parametrize("scheduler", QUEUES)
def test_whole_nodes_by_hand(scheduler):
    """Four nodes, 90 W more for each that computes: under 220 W two at once. Jobs of 1, 2 and 1 nodes, 10 s each.

    Nodes are free for all three; the second has too few watts until the first has ended, and the third waits behind.
    """
    tasks = make_tasks([10.0] * 3, width=[1, 2, 1], requested_time_s=[10.0] * 3)
    assert starts(both(nodes(4), tasks, scheduler, power_cap_w=220.0)) == [0, 10, 20]
    assert starts(both(nodes(4), tasks, scheduler, power_cap_w=310.0)) == [0, 0, 10]
    assert starts(both(nodes(4), tasks, scheduler)) == [0, 0, 0]


@pytest.mark.parametrize("scheduler", QUEUES)
def test_shared_nodes_by_hand(scheduler):
    """Two nodes of four cores: the first busy core adds 30 W, each other one 20 W, to 20 W idle."""
    tasks = make_tasks([10.0] * 3, width=1, demand=[[1]] * 3, requested_time_s=[10.0] * 3)
    for cap_w, expected in ((50.0, [0, 10, 20]), (70.0, [0, 0, 10]), (90.0, [0, 0, 0])):
        assert starts(both(nodes(2, 4), tasks, scheduler, power_cap_w=cap_w)) == expected


def test_a_cap_is_of_all_partitions():
    """A job that the cap puts off holds up those behind it in the other partition, too."""
    tasks = make_tasks([10.0] * 3, width=[1, 2, 1], demand=[[1]] * 3, partition=[0, 0, 1])
    platform = nodes(4, 1, range(3), range(3, 4))
    assert starts(both(platform, tasks, "easy_backfilling", power_cap_w=220.0)) == [0, 10, 20]


JOB = st.tuples(st.integers(0, 60), st.integers(1, 30), st.integers(1, 3), st.integers(0, 20), st.integers(1, 4))


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("scheduler", QUEUES)
@settings(max_examples=15, deadline=None)
@given(jobs=st.lists(JOB, min_size=2, max_size=20), share=st.floats(0.0, 1.0))
def test_the_cap_is_never_exceeded_and_all_jobs_finish(scheduler, shares, jobs, share):
    """The peak is of the trace, not of the account that is kept while it runs."""
    submit, run_s, width, more_s, cores = map(np.array, zip(*sorted(jobs), strict=True))
    parts = {"demand": cores[:, None], "anywhere": cores % 2 == 0} if shares else {}
    platform = nodes(5, 4 if shares else 1)
    tasks = make_tasks(run_s + more_s, submit, width=width, requested_time_s=run_s + more_s, **parts)
    least_w = 50.0 + 90.0 * 3  # three whole nodes
    cap_w = least_w + share * 90.0 * 2
    lasts = LoggedRunTimes(platform, run_s)
    result = run(Scenario(platform, tasks, scheduler, driver="reference", run_times=lasts, power_cap_w=cap_w))
    assert (result.trace.final_state == TaskState.FINISHED).all()
    assert result.summary()["peak_power_w"] <= cap_w * (1 + 1e-9)


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("scheduler", QUEUES)
def test_both_drivers_agree_under_a_cap(scheduler, shares):
    """The same records, and the plugin's joules are the model's, with jobs that end before their estimates."""
    rng = np.random.default_rng(3)
    submit, run_s = np.sort(rng.integers(0, 60, 25)), rng.integers(1, 30, 25)
    parts = {"demand": rng.integers(1, 5, 25)[:, None], "anywhere": rng.random(25) < 0.5} if shares else {}
    platform = nodes(5, 4 if shares else 1)
    tasks = make_tasks(run_s + 5.0, submit, width=rng.integers(1, 4, 25), requested_time_s=run_s + 5.0, **parts)
    options = {"run_times": LoggedRunTimes(platform, run_s), "power_cap_w": 340.0}
    result = both(platform, tasks, scheduler, **options)
    free = run(Scenario(platform, tasks, scheduler, driver="reference", run_times=options["run_times"]))
    assert result.summary()["peak_power_w"] <= 340.0 < free.summary()["peak_power_w"]


@pytest.mark.parametrize("scheduler", QUEUES)
def test_a_job_that_alone_exceeds_the_cap_is_refused(scheduler):
    """It would hold up all others for ever; one that is too wide for the machine is rejected anyway."""
    tasks = make_tasks([10.0] * 3, width=[1, 3, 9])
    scenario = Scenario(nodes(4), tasks, scheduler, driver="reference")
    with pytest.raises(InputError, match=r"task 2 alone .* 310 W, and the cap .* 300 W \(1 such task\)"):
        run(Scenario(nodes(4), tasks, scheduler, driver="reference", power_cap_w=300.0))
    assert starts(run(Scenario(nodes(4), tasks, scheduler, driver="reference", power_cap_w=310.0)))[:2] == [0, 10]
    assert starts(run(scenario))[:2] == [0, 0]


def test_hosts_that_are_off_leave_their_watts_to_jobs():
    """Three idle nodes draw 30 W, which `idle_off` saves for the one that computes, 100 W."""
    tasks = make_tasks([10.0] * 2, [30.0, 35.0])
    capped = both(nodes(4), tasks, IdleOff("fcfs", timeout_s=5.0), power_cap_w=110.0)
    assert starts(capped) == [30, 40]
    assert (capped.trace.final_state == TaskState.FINISHED).all()


def test_permanent_reservations_respect_no_cap():
    """They are of paper 001; the message names those that do."""
    tasks = make_tasks([10.0] * 3, width=[1, 2, 1])
    policy = EasyBackfilling(reservations="permanent")
    with pytest.raises(InvalidDecision, match="respects no cap, fcfs, easy_backfilling"):
        run(Scenario(nodes(4), tasks, policy, driver="reference", power_cap_w=220.0))
