"""`idle_off`: worked examples, which hosts are needed, and the same run where nothing times out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched import Host, Platform, PState, Scenario, make_tasks, run
from gridsched.errors import InputError
from gridsched.model.platform import Cluster
from gridsched.model.task_types import TaskTypes, typed_platform
from gridsched.schedulers.idle_off import IdleOff
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences


def pair(**changes: float) -> Platform:
    """Return two hosts of 10 flop/s, 10 W idle and 100 W busy, that boot in 2 s."""
    state = PState(10.0, 10.0, 100.0, 100.0)
    return Platform(tuple(Host(f"h{k}", (state,), **{"boot_time_s": 2.0, **changes}) for k in (1, 2)), name="pair")


def both(platform, tasks, scheduler, **changes):
    """Run on both drivers, which must agree, and SimGrid's meter with the model."""
    expected = run(Scenario(platform, tasks, scheduler, driver="reference", **changes))
    metered = run(Scenario(platform, tasks, scheduler, driver="simgrid", **changes))
    assert trace_differences(expected.trace, metered.trace) == []
    assert metered_differences(metered) == []
    return expected


def on_reference(platform, tasks, scheduler, **changes):
    """Run on the reference driver."""
    return run(Scenario(platform, tasks, scheduler, driver="reference", **changes))


def rows(result) -> list[tuple]:
    """Return (task, host, start, end) of each execution, by task."""
    runs = result.trace.executions[["task", "host", "start", "end"]]
    return sorted(runs.tolist())


def switched(result) -> list[tuple]:
    """Return (time, host, whether it is on) of what was switched after the start."""
    changes = result.trace.host_changes[["time", "host", "is_on"]].tolist()
    found, is_on = [], dict.fromkeys(range(len(result.trace.platform)), True)
    for time, host, on in changes:
        if on != is_on[host]:
            found.append((time, host, on))
        is_on[host] = on
    return found


@pytest.mark.parametrize("scheduler", ["mct", "wq", "min_min"])
def test_a_worked_example(scheduler: str):
    """Two tasks of 10 s, at 0 and 30 s, on two hosts; a time-out of 5 s; an off host draws 1 W."""
    tasks = make_tasks([100.0, 100.0], [0.0, 30.0])
    result = both(pair(off_w=1.0), tasks, IdleOff(scheduler, timeout_s=5.0))
    assert switched(result) == [(5, 1, False), (15, 0, False), (30, 0, True)]
    assert rows(result) == [(0, 0, 0, 10), (1, 0, 32, 42)]
    # h1: 20 s busy, 5 s idle, 15 s off, 2 s booting; h2: 5 s idle, 37 s off
    joules = 20 * 100 + 5 * 10 + 15 * 1 + 2 * 10 + 5 * 10 + 37 * 1
    assert result.summary()["energy_j"] == pytest.approx(joules, rel=1e-12)
    assert result.summary()["energy_boot_j"] == 20.0


def test_a_host_goes_off_once_it_has_been_idle_for_as_long_as_pays():
    """Boot 4 s at 50 W, shut down 2 s at 31 W, off 1 W, idle 10 W: 260 J, 9 W saved, 28.9 s."""
    state, still = PState(10.0, 10.0, 100.0, 100.0), (PState(0.0, 50.0, 50.0, 50.0), PState(0.0, 31.0, 31.0, 31.0))
    hosts = (
        Host(
            "h1",
            (state,),
            off_w=1.0,
            boot_time_s=4.0,
            switch_pstates=still,
            boot_pstate=1,
            shutdown_time_s=2.0,
            shutdown_pstate=2,
        ),
        Host("free", (state,), off_w=1.0),
        Host("vain", (state,), off_w=10.0, boot_time_s=1.0),
    )
    tasks = make_tasks([100.0, 100.0, 100.0, 10.0], [0.0, 0.0, 0.0, 60.0])
    result = on_reference(Platform(hosts), tasks, IdleOff("mct", timeout_s=5.0))
    off = [(time, host) for time, host, is_on in switched(result) if not is_on]
    assert off == [(15.0, 1), (pytest.approx(10.0 + 260.0 / 9.0), 0)]
    never = on_reference(Platform(hosts), tasks, IdleOff("mct", timeout_s=40.0))
    assert [row for row in switched(never) if row[1] == 0] == [(50.0, 0, False)]


def test_a_bag_switches_on_as_many_as_it_needs():
    """The hosts on which the first task needs the least energy; busy cores are no idle ones."""
    watts = (90.0, 30.0, 60.0)
    platform = Platform(tuple(Host(f"h{k}", (PState(10.0, 5.0, w, w),), cores=2) for k, w in enumerate(watts)))
    policy = IdleOff("mct", timeout_s=1.0)
    for count, needed in ((1, [1]), (2, [1]), (3, [1, 2]), (4, [1, 2]), (6, [0, 1, 2])):
        tasks = make_tasks([10.0] * count, [20.0] * count)
        on = [row for row in switched(on_reference(platform, tasks, policy)) if row[2]]
        assert on == [(20.0, host, True) for host in needed]


def test_the_host_that_is_idle_longest_goes_first():
    """A task that waits for its host holds one idle host back, the one that was busy last."""
    platform = Platform(
        tuple(Host(f"h{k}", (PState(speed, 1.0, 9.0, 9.0),)) for k, speed in enumerate((10.0, 10.0, 1.0)))
    )
    # h0 is busy until 5 s, h1 until 3 s; h2 has nothing, and goes at 4 s; at 7 s h1, at 9 s h0
    tasks = make_tasks([50.0, 30.0, 10.0], [0.0, 0.0, 30.0])
    result = on_reference(platform, tasks, IdleOff("mct", timeout_s=4.0))
    assert switched(result)[:3] == [(4, 2, False), (7, 1, False), (9, 0, False)]


def test_planned_work_keeps_its_host():
    """With no time-out at all a host with planned tasks goes on, and off after the last."""
    tasks = make_tasks([10.0, 20.0, 30.0, 40.0])
    result = both(pair(boot_time_s=0.0), tasks, IdleOff("min_min", timeout_s=0.0))
    alone = on_reference(pair(), tasks, "min_min")
    assert rows(result) == rows(alone)
    assert [row[1:] for row in switched(result)] == [(0, False)]


def test_tasks_that_run_on_some_hosts_only_get_these():
    """The type of the second task runs on the second host alone."""
    times = np.array([[[10.0], [10.0], [10.0]], [[np.inf], [10.0], [np.inf]]])
    types = TaskTypes(times, np.full(times.shape, 20.0), np.array([0, 1, 2]))
    tasks = make_tasks([1e12] * 2, [0.0, 50.0], task_type=[0, 1])
    result = on_reference(typed_platform(types), tasks, IdleOff("mct", 5.0), types=types)
    assert switched(result)[-1] == (50.0, 1, True)
    assert rows(result)[1] == (1, 1, 50, 60)


def test_nodes_of_parallel_jobs():
    """Four nodes; a job of three wakes three, and its nodes go when it is done."""
    state = PState(1e9, 50.0, 60.0, 200.0)
    nodes = tuple(Host(f"n{k}", (state,), boot_time_s=5.0) for k in range(4))
    platform = Platform(nodes, (Cluster("c", (0, 1, 2, 3)),))
    tasks = make_tasks([8e9, 2e9, 1e9], [0.0, 100.0, 100.0], width=[2, 3, 4])
    result = both(platform, tasks, IdleOff("easy_backfilling", timeout_s=10.0))
    assert [row[:2] for row in switched(result)[:4]] == [(10, 2), (10, 3), (18, 0), (18, 1)]
    # jobs of three and four nodes wait: all four are switched on, and the second follows the first
    assert [row[:3] for row in rows(result)] == [(0, 0, 0), (1, 0, 105), (2, 0, 107)]
    assert sum(row[2] for row in switched(result)) == 4


def test_a_mapping_interval_is_when_hosts_are_looked_at():
    """Idle since 0 and 10 s: off at 20 and 40 s, for a time-out of 15 s."""
    tasks = make_tasks([200.0, 10.0], [0.0, 70.0])
    result = on_reference(pair(), tasks, IdleOff("min_min", timeout_s=15.0), mapping_interval_s=20.0)
    assert switched(result)[:2] == [(20, 1, False), (40, 0, False)]
    assert rows(result)[1][2] == 82.0  # on at 80 s, and it boots


def test_a_power_cap_bounds_what_is_switched_on():
    """Two tasks come; 105 W admit a busy host, and no idle one beside it."""
    tasks = make_tasks([100.0, 100.0, 100.0], [0.0, 30.0, 30.0])
    policy = IdleOff("power_capped_mct", timeout_s=5.0)
    result = both(pair(), tasks, policy, power_cap_w=105.0, hosts_off=("h2",))
    assert switched(result) == [(0, 1, False), (15, 0, False), (30, 0, True)]
    assert rows(result) == [(0, 0, 0, 10), (1, 0, 32, 42), (2, 0, 42, 52)]
    assert result.summary()["peak_power_w"] == 100.0


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 2), st.integers(1, 9)), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(1, 60), st.integers(0, 40)), min_size=1, max_size=8),
    st.sampled_from([0.0, 1.0, 7.5, float("inf")]),
    st.sampled_from(["mct", "wq", "wqr", "min_min", "lecsa", "round_robin", "slowest_pstates"]),
    st.sampled_from([0.0, 2.5]),
)
def test_all_tasks_finish_and_never_timing_out_changes_nothing(
    made, work, timeout_s: float, scheduler: str, boot_time_s: float
):
    """Whatever the time-out; and no host is off for nothing while it has work."""
    platform = Platform(
        tuple(
            Host(f"h{k}", (PState(float(speed), 3.0, 5.0, 5.0 + speed),), cores, off_w=1.0, boot_time_s=boot_time_s)
            for k, (cores, speed) in enumerate(made)
        )
    )
    sizes, arrivals = zip(*sorted(work, key=lambda each: each[1]), strict=True)
    tasks = make_tasks(sizes, arrivals)
    result = on_reference(platform, tasks, IdleOff(scheduler, timeout_s))
    assert result.summary()["tasks_finished"] == len(tasks)
    if timeout_s == float("inf") and scheduler != "lecsa":  # which switches hosts off itself
        alone = on_reference(platform, tasks, scheduler)
        assert rows(result) == rows(alone)
        assert result.summary()["energy_j"] == pytest.approx(alone.summary()["energy_j"])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"timeout_s": -1}, "Parameter 'timeout_s' of idle_off is -1; it must be at least 0 s"),
        ({"timeout_s": float("nan")}, "'timeout_s' of idle_off is nan"),
        ({"scheduler": "idle_off"}, r"idle_off cannot wrap IdleOff\("),
        ({"scheduler": "mtc"}, "No scheduler 'mtc'. Did you mean 'mct'"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict, message: str):
    """In one line that says what is legal."""
    with pytest.raises(InputError, match=message):
        on_reference(pair(), make_tasks([1.0]), "idle_off", parameters=parameters)
