"""Schedulers around others: idle hosts off, slowest power states."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched import Host, Platform, PState, Scenario, make_tasks, run
from gridsched.errors import InputError
from gridsched.model.platform import Cluster, Partition
from gridsched.model.task_types import TaskTypes, typed_platform
from gridsched.model.trace import TaskState
from gridsched.policy.registry import make_scheduler
from gridsched.schedulers.bag.batch import MaxMin
from gridsched.schedulers.idle_off import IdleOff, _laid
from gridsched.schedulers.slowest_pstates import SlowestPStates
from gridsched.schedulers.wrapping import wrapped_scheduler
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences
from gridsched.workloads.traces.trace_options import TraceOptions

# `idle_off`: worked examples, which hosts are needed, and the same run where nothing times out.


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
    """The hosts on which the first task needs the least energy; busy cores are not idle ones."""
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


CONF = """ClusterName=m
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
{}NodeName=a[1-2] CPUs=4
NodeName=g[1-2] CPUs=4
PartitionName=a Nodes=a[1-2] Default=YES MaxTime=INFINITE State=UP
PartitionName=g Nodes=g[1-2] MaxTime=INFINITE State=UP
"""
LOG = """JobIDRaw|User|Partition|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|AllocCPUS|State
1|u|a|2026-03-02T00:00:00|2026-03-02T00:00:00|2026-03-02T00:10:00|600|20|1|4|COMPLETED
2|u|g|2026-03-02T01:00:00|2026-03-02T01:00:00|2026-03-02T01:10:00|600|20|1|4|COMPLETED
3|u|a|2026-03-02T02:00:00|2026-03-02T02:00:00|2026-03-02T02:10:00|600|20|2|8|COMPLETED
"""


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
@pytest.mark.parametrize("scheduler", ["fcfs", "easy_backfilling", "conservative_backfilling", "slurm"])
def test_nodes_of_partitions_are_off_between_jobs(tmp_path, scheduler, driver):
    """SuspendTime is the time-out and ResumeTimeout the boot time: g1 boots for job 2, a1 and a2 for job 3."""
    (tmp_path / "m.conf").write_text(CONF.format("SuspendTime=120\nResumeTimeout=60\n"))
    (tmp_path / "m.sacct").write_text(LOG)
    log = TraceOptions(slurm_conf=tmp_path / "m.conf")
    parameters = {"scheduler": scheduler}
    result = run(Scenario(None, tmp_path / "m.sacct", "idle_off", parameters, trace=log, driver=driver))
    assert [(task, start, end) for task, _, start, end in rows(result)] == [
        (0, 0, 600), (1, 3660, 4260), (2, 7260, 7860),
    ]  # fmt: skip
    a1, a2, g1, g2 = (next(h for h, host in enumerate(result.trace.platform.hosts) if host.name == name)
                      for name in ("a1", "a2", "g1", "g2"))  # fmt: skip
    assert sorted(switched(result)) == sorted([
        (120, a2, False), (120, g1, False), (120, g2, False), (720, a1, False), (3600, g1, True),
        (4380, g1, False), (7200, a1, True), (7200, a2, True),
    ])  # fmt: skip


def test_without_a_time_in_the_configuration_hosts_time_out_as_ever(tmp_path):
    """After 60 s, and they boot at once; INFINITE: they are never off."""
    (tmp_path / "m.sacct").write_text(LOG)
    for lines, first in (("", 60.0), ("SuspendTime=INFINITE\nResumeTimeout=60\n", None)):
        (tmp_path / "m.conf").write_text(CONF.format(lines))
        log = TraceOptions(slurm_conf=tmp_path / "m.conf")
        parameters = {"scheduler": "easy_backfilling"}
        result = run(Scenario(None, tmp_path / "m.sacct", "idle_off", parameters, trace=log, driver="reference"))
        assert [start for _, _, start, _ in rows(result)] == [0, 3600, 7200]
        assert min((time for time, _, is_on in switched(result) if not is_on), default=None) == first
    (tmp_path / "m.conf").write_text(CONF.format("SuspendTime=soon\n"))
    with pytest.raises(InputError, match="SuspendTime"):
        run(Scenario(None, tmp_path / "m.sacct", "idle_off", parameters, trace=log, driver="reference"))


def test_parts_of_jobs_get_room_on_hosts_that_are_off():
    """Nodes of 4 cores: 6 parts of a core take two of them, a part of 3 cores another; the fourth stays off."""
    state = PState(1.0, 10.0, 20.0, 100.0)
    hosts = tuple(Host(f"n{k}", (state,), cores=4) for k in range(4))
    platform = Platform(hosts, (Cluster("c", (0, 1, 2, 3)),), partitions=(Partition("all", (0, 1, 2, 3)),))
    tasks = make_tasks([10.0] * 2, 100.0, width=[6, 1], demand=[[1], [3]], anywhere=[True, False])
    result = both(platform, tasks, IdleOff("fcfs", timeout_s=5.0))
    assert [row for row in switched(result) if row[2]] == [(100, 0, True), (100, 1, True), (100, 2, True)]
    assert result.trace.start_time_s.tolist() == [100, 100]


@pytest.mark.parametrize("shares", [False, True])
def test_jobs_of_several_nodes_switch_on_those_that_need_the_least_energy(shares):
    """Three nodes of 40, 30 and 20 W at work are off when a job of two comes: the last two go on."""
    hosts = tuple(Host(f"n{k}", (PState(1.0, 10.0, 15.0, watts),)) for k, watts in enumerate((40.0, 30.0, 20.0)))
    takes = {"demand": [[1]], "anywhere": True} if shares else {}
    partitions = (Partition("all", (0, 1, 2)),) if shares else ()
    platform = Platform(hosts, (Cluster("c", (0, 1, 2)),), partitions=partitions)
    result = on_reference(platform, make_tasks([10.0], 100.0, width=2, **takes), IdleOff("fcfs", timeout_s=5.0))
    assert [row for row in switched(result) if row[2]] == [(100, 1, True), (100, 2, True)]


@pytest.mark.parametrize("scheduler", ["easy_backfilling", "conservative_backfilling"])
@pytest.mark.parametrize("placement", ["pack", "contiguous"])
def test_all_jobs_of_the_example_of_shared_nodes_finish(scheduler, placement):
    """Of its 398 jobs 132 take several nodes, of three partitions."""
    examples = Path(__file__).parents[2] / "examples"
    log = TraceOptions(allocation="cores", partitions=examples / "shared_nodes.toml")
    example = examples / "shared_nodes.xml", examples / "shared_nodes.sacct", IdleOff(scheduler)
    trace = run(Scenario(*example, trace=log, driver="reference", placement=placement)).trace
    assert (trace.final_state == TaskState.FINISHED).all()
    assert not trace.host_changes["is_on"].all()


def test_parts_that_must_be_neighbours():
    """The first stretch with room for all, from its begin; none where no stretch has."""
    hosts, room = np.array([0, 1, 3, 4, 5, 6]), np.array([2, 1, 1, 2, 0, 4])
    assert _laid(room, hosts, 3, "contiguous").tolist() == [2, 1, 0, 0, 0, 0]
    assert _laid(room, hosts, 4, "contiguous").tolist() == [0, 0, 0, 0, 0, 4]
    assert _laid(room, hosts, 5, "contiguous").tolist() == [0] * 6
    assert _laid(room, hosts, 5, "pack").tolist() == [2, 1, 1, 1, 0, 0]


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
    """In one line that shows what is allowed."""
    with pytest.raises(InputError, match=message):
        on_reference(pair(), make_tasks([1.0]), "idle_off", parameters=parameters)


# `slowest_pstates`: worked examples, what binds a host, and the makespan that is kept.

#: 100 flop/s at 100 W or 50 at 40 W; 40 flop/s at 30 W or 30 at 20 W; 10 W idle.
FAST = Host("fast", (PState(100.0, 10.0, 100.0, 100.0), PState(50.0, 10.0, 40.0, 40.0)))
SLOW = Host("slow", (PState(40.0, 10.0, 30.0, 30.0), PState(30.0, 10.0, 20.0, 20.0)))
PAIR = Platform((FAST, SLOW))


def executed(result) -> list[tuple]:
    """Return (task, host, P-state, start, end) of each execution."""
    return [row[:5] for row in result.trace.executions.tolist()]


@pytest.mark.parametrize(
    ("within", "executions", "joules"),
    [
        # the first task takes 10 s; the other has as long, and needs it all in P-state 1
        (1.0, [(0, 0, 0, 0, 10), (1, 1, 1, 0, 10)], 10 * 100 + 10 * 20),
        (1.9, [(0, 0, 0, 0, 10), (1, 1, 1, 0, 10)], 10 * 100 + 10 * 20),
        (2.0, [(0, 0, 1, 0, 20), (1, 1, 1, 0, 10)], 20 * 40 + 10 * 20 + 10 * 10),
    ],
)
def test_a_worked_example_of_power_states(within: float, executions, joules: float):
    """Tasks of 1000 and 300 flop; alone max_min draws 1250 J in 10 s."""
    tasks, policy = make_tasks([1000.0, 300.0]), SlowestPStates(within=within)
    expected = on_reference(PAIR, tasks, policy)
    assert executed(expected) == executions
    assert expected.summary()["energy_j"] == pytest.approx(joules, rel=1e-12)
    metered = run(Scenario(PAIR, tasks, policy, driver="simgrid"))
    assert trace_differences(expected.trace, metered.trace) == []
    assert metered_differences(metered) == []


def test_a_later_task_moves_the_deadline():
    """It ends at 36 s at full speed, so that is the bound for what is placed with it."""
    tasks = make_tasks([1000.0, 300.0, 600.0, 320.0], [0.0, 0.0, 30.0, 30.0])
    # at 30 s: 600 flop take 6 s on fast; 320 flop take 8 s on slow, 9.2 s on fast behind them:
    # the bound is 38 s, and 600 flop would take 12 s in P-state 1
    assert executed(on_reference(PAIR, tasks, "slowest_pstates"))[2:] == [(2, 0, 0, 30, 36), (3, 1, 0, 30, 38)]
    # measured from the first submission 1.2 times 38 s is 45.6 s
    wide = on_reference(PAIR, tasks, SlowestPStates(within=1.2))
    assert [row[:4] for row in executed(wide)[2:]] == [(2, 0, 1, 30), (3, 1, 1, 30)]


def test_nothing_is_slowed_down_while_tasks_have_no_place():
    """Workqueue: only the last ones, which leave none waiting, and of a bag at once none."""
    tasks = make_tasks([500.0, 500.0, 500.0])
    assert {row[2] for row in executed(on_reference(PAIR, tasks, SlowestPStates("wq")))} == {0}
    two = on_reference(PAIR, make_tasks([1000.0, 300.0]), SlowestPStates("wq"))
    assert [row[2] for row in executed(two)] == [0, 1]
    # mct is asked task by task: the first of the two is not slowed down, though it could
    mapped = on_reference(PAIR, make_tasks([1000.0, 300.0]), SlowestPStates("mct", within=9.0))
    assert [row[2] for row in executed(mapped)] == [0, 1]


def test_cores_keep_the_pstate_of_what_runs_beside():
    """The third task comes while the first two run in P-state 1, and has to take it, too."""
    states = (PState(10.0, 5.0, 10.0, 60.0), PState(5.0, 5.0, 10.0, 40.0))
    platform = Platform((Host("h", states, cores=3), Host("long", (PState(1.0, 1, 2, 2),))))
    tasks = make_tasks([100.0, 50.0, 40.0], [0.0, 0.0, 6.0])
    wrapped = SlowestPStates("mct", within=4.0)
    # 100 flop come first, in P-state 0 as another follows; what follows is bound to that
    assert [row[1:3] for row in executed(on_reference(platform, tasks, wrapped))] == [(0, 0)] * 3
    together = SlowestPStates("min_min(reschedule=False)", within=4.0)
    found = sorted(executed(on_reference(platform, tasks, together)))
    assert found == [(0, 0, 1, 0, 20), (1, 0, 1, 0, 10), (2, 0, 1, 6, 14)]


def test_whom_the_scheduler_delegates_to_is_wrapped():
    """auto_bag follows lecsa, whose P-states are then chosen."""
    tasks = make_tasks([1000.0, 300.0])
    result = on_reference(PAIR, tasks, SlowestPStates("auto_bag(candidates='lecsa')"))
    assert result.trace.delegated_to.startswith("SlowestPStates(scheduler=LECSA(")
    alone = on_reference(PAIR, tasks, "lecsa")
    assert result.summary()["makespan_s"] == alone.summary()["makespan_s"]
    assert result.summary()["energy_j"] < alone.summary()["energy_j"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.lists(st.integers(2, 40), min_size=1, max_size=3, unique=True)),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.integers(1, 60), min_size=1, max_size=12),
    st.sampled_from(["max_min(reschedule=False)", "sufferage(reschedule=False)", "lecsa(switch_off='none')"]),
)
def test_the_makespan_is_kept_and_energy_saved(made, sizes, scheduler: str):
    """A bag that is placed once: as long as without, and never more joules."""
    platform = Platform(
        tuple(
            Host(
                f"h{k}", tuple(PState(speed, 3.0, 3.0, 3.0 + speed**2) for speed in sorted(speeds, reverse=True)), cores
            )
            for k, (cores, speeds) in enumerate(made)
        )
    )
    tasks = make_tasks(sizes)
    alone = on_reference(platform, tasks, wrapped_scheduler("test", scheduler)).summary()
    slowed = on_reference(platform, tasks, SlowestPStates(scheduler)).summary()
    assert slowed["makespan_s"] == pytest.approx(alone["makespan_s"], rel=1e-9)
    assert slowed["energy_j"] <= alone["energy_j"] * (1 + 1e-9)
    assert slowed["tasks_finished"] == len(tasks)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"within": 0.5}, "Parameter 'within' of slowest_pstates is 0.5; it must be at least 1"),
        ({"scheduler": "max_min("}, r"is 'max_min\('; it must be an id, as 'wqr', or an id with"),
        ({"scheduler": "wqr(3)"}, r"is 'wqr\(3\)'; it must be an id"),
        ({"scheduler": "wqr(**{})"}, "it must be an id"),
        ({"scheduler": 7}, "is 7; it must be an id"),
        ({"scheduler": "min_mni"}, "No scheduler 'min_mni'. Did you mean 'min_min'"),
        ({"scheduler": "wqr(max_copies=3)"}, "Scheduler 'wqr' has no parameter 'max_copies'"),
        ({"scheduler": "power_capped_mct"}, r"PowerCappedMCT\(\), which chooses P-states itself"),
        ({"scheduler": "fcfs"}, r"one homogeneous cluster|one speed"),
    ],
)
def test_wrong_bounds_are_refused(parameters: dict, message: str):
    """In one line that shows what is allowed."""
    with pytest.raises(InputError, match=message):
        on_reference(PAIR, make_tasks([1.0]), "slowest_pstates", parameters=parameters)


def test_traits_are_those_of_the_wrapped_scheduler():
    """With P-states besides; instances and texts with parameters name it alike."""
    assert SlowestPStates.traits.uses_dvfs
    assert make_scheduler("slowest_pstates", {"scheduler": "wqr"}).traits.replicates
    assert SlowestPStates("mct").traits.trigger == "arrival"
    given_one = SlowestPStates(MaxMin(reschedule=False))
    tasks = make_tasks([1000.0, 300.0])
    assert executed(on_reference(PAIR, tasks, given_one)) == executed(on_reference(PAIR, tasks, "slowest_pstates"))
