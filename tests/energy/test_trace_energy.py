"""The exact integration of traces: worked examples, awkward hosts, and properties."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import traces_by_hand as by_hand
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.energy import busy_energy_j, compare_energy, task_energy, task_energy_j, trace_energy
from gridsched.errors import InputError
from gridsched.metrics import summary
from gridsched.model.host_profiles import HostProfiles, Profile
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.tasks import make_tasks
from gridsched.model.timeline import host_timeline
from gridsched.model.trace import TaskState
from gridsched.power import grid_power, kept_power, trace_power
from gridsched.testing.parallel_cases import cluster_of


def parallel_on_changing_nodes():
    """Return a run of rigid jobs on five nodes, of which two change their speed; one job is killed."""
    speed = Profile((4.0, 20.0), (0.5, 1.0))
    platform = replace(cluster_of(5), profiles=HostProfiles(speeds=(("node1", speed), ("node3", speed))))
    jobs = [(0, 10, 3), (0, 30, 2), (0, 8, 4)]
    submit, length, width = map(np.array, zip(*jobs, strict=True))
    tasks = make_tasks(length * 2e9, submit, width=width, requested_time_s=length)
    runs = [(0, 0, 0, 0.0, 13.0, 0), (1, 3, 0, 0.0, 38.0, 0), (2, 0, 0, 40.0, 45.0, by_hand.KILLED)]
    state = [TaskState.FINISHED, TaskState.FINISHED, TaskState.KILLED]
    trace = by_hand.make_trace(platform, tasks, runs, final_state=state)
    return replace(trace, host_offsets=np.array([0, 3, 5, 9]), host_ids=np.array([0, 1, 2, 3, 4, 0, 1, 2, 4]))


@pytest.mark.parametrize(
    ("trace", "busy", "idle", "total", "wasted"),
    [
        (by_hand.work_queue(), [1250, 300, 400], 480, 2430, 0),
        (by_hand.replication(2), [1250, 1100, 275], 120, 2745, 275),
        (by_hand.replication(3), [2250, 900, 225], 0, 3375, 825),
        (by_hand.lecsa(switch_off=True), [500, 700, 500], 0, 1700, 0),
        (by_hand.lecsa(switch_off=False), [500, 700, 500], 620, 2320, 0),
    ],
)
def test_worked_examples_of_ex_a(trace, busy, idle, total, wasted):
    """Every joule of the tables in A1, A2 and A6."""
    energy = trace_energy(trace)
    assert energy.busy_j.tolist() == busy
    assert energy.grid_total("idle_j") == idle
    assert energy.grid_total("total_j") == total
    assert energy.grid_total("wasted_j") == wasted
    assert energy.grid_total("off_j") == energy.grid_total("boot_j") == 0.0


def test_equation_1_holds_on_one_core_hosts():
    """What each finished execution drew is its flops over the host's efficiency."""
    trace = by_hand.work_queue()
    flops = trace.tasks.flops[trace.executions["task"]]
    efficiency = trace.platform.efficiency()[trace.executions["host"]]
    assert busy_energy_j(trace).tolist() == task_energy(flops, efficiency).tolist()
    assert task_energy_j(trace).tolist() == [460.0, 160.0, 80.0, 690.0, 80.0]


def test_awkward_hosts_by_hand():
    """Two cores, P-states, off, boot, a host without wattage, a master and a bystander.

    node: [0,10) two cores 50 W, [10,20) one core 40 W, idle 20 W to 25, off 1 W to 35, boots with
    20 W to 45, idle 20 W to 47, then P-state 1: idle 10 W to 50, one core 20 W to 60, idle 10 W
    to 70.
    """
    energy = trace_energy(by_hand.everything_at_once())
    assert energy.names == ("node", "bare", "boss", "spare")
    assert energy.roles == ("computing", "computing", "master", "unused")
    assert energy.n_computing == 2
    assert len(energy) == 4
    assert energy.busy_j.tolist() == [500 + 400 + 200, 0, 0, 0]
    assert energy.idle_j.tolist() == [100 + 40 + 30 + 100, 0, 490, 210]
    assert energy.off_j.tolist() == [10, 0, 0, 0]
    assert energy.boot_j.tolist() == [200, 0, 0, 0]
    assert energy.total_j.tolist() == [1580, 0, 490, 210]
    assert energy.above_idle_j.tolist() == [300 + 200 + 100, 0, 0, 0]
    assert energy.grid_total() == 1580


def test_hosts_that_compute_nothing_idle_in_their_p_state():
    """A master in P-state 1 draws 6 W, not 10; the total of what is metered leaves it out."""
    states = PState(1.0, 10.0, 10.0, 20.0), PState(1.0, 6.0, 6.0, 9.0)
    platform = Platform((Host("h", states[:1]),), master=Host("m", states, pstate=1))
    trace = by_hand.make_trace(platform, make_tasks([]), [], horizon_s=5.0)
    assert trace_energy(trace).total_j.tolist() == [50.0, 30.0]
    metered = compare_energy(trace, {"h": 40.0, "m": 30.0})
    columns = ("host", "plugin_j", "model_j", "relative_difference")
    assert [tuple(row[column] for column in columns) for row in metered] == [
        ("h", 40.0, 50.0, 0.2),
        ("m", 30.0, 30.0, 0.0),
        ("total", 40.0, 50.0, 0.2),
    ]


def test_the_clock_of_simgrid_counts_for_each_event():
    """Begin and end of the run and of its execution are 4e-9 s at 20 W on h; its end is 1e-9 s at 20 W on m."""
    states = PState(1.0, 10.0, 10.0, 20.0), PState(1.0, 6.0, 6.0, 9.0)
    platform = Platform((Host("h", states[:1]),), master=Host("m", states, pstate=1))
    trace = by_hand.make_trace(platform, make_tasks([2.0]), [(0, 0, 0, 0.0, 2.0, by_hand.FINISHED)], horizon_s=2.0)
    rows = compare_energy(trace, {"h": 40.0, "m": 12.0})
    shares = 8e-8 / 40, 2e-8 / 12, 8e-8 / 40
    assert [row["tolerance"] for row in rows] == pytest.approx([1e-9 + each for each in shares], rel=1e-12, abs=0)


def test_shares_of_a_two_core_host_by_hand():
    """While both cores are busy each execution has half; alone it has all."""
    trace = by_hand.everything_at_once()
    assert task_energy_j(trace).tolist() == [150.0, 350.0, 100.0, 0.0]
    assert busy_energy_j(trace).tolist() == [250.0, 650.0, 200.0, 0.0]


def test_a_host_switched_off_while_booting_boots_anew():
    """Boot time counts from the last switching on; a P-state change does not end it."""
    host = Host("a", (PState(1.0, 5.0, 5.0, 9.0), PState(1.0, 3.0, 3.0, 9.0)), boot_time_s=10.0)
    switches = [(1.0, 0, 0, False), (2.0, 0, 0, True), (6.0, 0, 0, False), (8.0, 0, 0, True), (14.0, 0, 1, True)]
    trace = by_hand.make_trace(Platform((host,)), make_tasks([]), [], switches, 30.0)
    energy = trace_energy(trace)
    assert energy.boot_j.tolist() == [4 * 5 + 6 * 5 + 4 * 3]
    assert energy.idle_j.tolist() == [1 * 5 + 12 * 3]
    assert energy.off_j.tolist() == [0.0]


def test_shutting_down_by_hand():
    """In 4 s at 30 W, or 5 W idle; a second change of a host that is off ends it."""
    state, still = PState(1.0, 5.0, 5.0, 9.0), PState(0.0, 6.0, 7.0, 30.0)
    own = {"switch_pstates": (still,), "shutdown_pstate": 1}
    platform = Platform(
        tuple(
            Host(name, (state,), off_w=1.0, shutdown_time_s=4.0, **each)
            for name, each in (("own", own), ("idle", {}), ("fails", own), ("late", own))
        )
    )
    switches = [
        (2.0, 0, 0, False),
        (2.0, 1, 0, False),
        (2.0, 2, 0, False),
        (3.0, 2, 0, False),
        (8.0, 0, 0, True),
        (8.0, 3, 0, False),
    ]
    trace = by_hand.make_trace(platform, make_tasks([]), [], switches, 10.0)
    energy = trace_energy(trace)
    assert energy.shutdown_j.tolist() == [4 * 30, 4 * 5, 1 * 30, 2 * 30]
    assert energy.off_j.tolist() == [2, 4, 7, 0]
    assert energy.idle_j.tolist() == [4 * 5, 2 * 5, 2 * 5, 8 * 5]
    parts = (energy.busy_j, energy.idle_j, energy.boot_j, energy.shutdown_j, energy.off_j)
    assert energy.total_j.tolist() == sum(parts).tolist()


def test_what_lies_beyond_the_horizon_does_not_count():
    """A run stopped at 50 s by its budget has drawn what it drew until then."""
    whole = by_hand.work_queue()
    cut = by_hand.make_trace(whole.platform, whole.tasks, whole.executions.tolist(), (), 50.0)
    energy = trace_energy(cut)
    assert energy.busy_j.tolist() == [1250, 300, 250]
    assert energy.idle_j.tolist() == [100, 140, 0]


def test_an_empty_run_costs_nothing():
    """No tasks, horizon 0: every part is 0 for every host."""
    energy = trace_energy(by_hand.empty())
    assert energy.total_j.tolist() == [0.0, 0.0, 0.0]
    assert len(task_energy_j(by_hand.empty())) == 0
    assert grid_power(by_hand.empty()).total_w.tolist() == [12.0]


def test_a_host_without_its_first_row_is_refused():
    """Without a state at time 0 nothing can be integrated: one clear line."""
    trace = by_hand.work_queue()
    object.__setattr__(trace, "host_changes", trace.host_changes[1:])
    with pytest.raises(InputError, match=r"time 0.*3"):
        trace_energy(trace)


def test_grid_power_of_lecsa():
    """Total power by state; hosts switched off leave the idle part."""
    power = grid_power(by_hand.lecsa(switch_off=True))
    assert power.time.tolist() == [0, 10, 30, 35, 80, 100]
    assert power.busy_w.tolist() == [75, 25, 25, 5, 5, 0]
    assert power.idle_w.tolist() == [0, 0, 0, 0, 0, 0]
    assert power.energy_j.tolist() == [0, 750, 1250, 1375, 1600, 1700]


def exact_host_energy(trace, host):
    """The plain way: for each pair of neighboring instants, power times time, summed exactly."""
    runs = trace.executions[trace.executions["host"] == host]
    machine = trace.platform.hosts[host].pstates[0]
    cores = trace.platform.hosts[host].cores
    instants = sorted({0.0, trace.horizon_s, *runs["start"].tolist(), *runs["end"].tolist()})
    parts = []
    for begin, end in itertools.pairwise(instants):
        load = int(((runs["start"] <= begin) & (runs["end"] > begin)).sum()) / cores
        busy = machine.epsilon_w + load * (machine.busy_w - machine.epsilon_w)
        parts.append((end - begin) * (busy if load else machine.idle_w))
    return math.fsum(parts)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(0, 60), st.integers(1, 5), st.integers(0, 10**6))
def test_integration_equals_the_plain_sum(n_hosts, n_tasks, cores, seed):
    """Vectorized and plain integration agree to 1e-12; parts and shares sum to the totals."""
    trace = by_hand.list_schedule(n_hosts, n_tasks, cores, seed, cancel_every=3)
    energy = trace_energy(trace)
    plain = [exact_host_energy(trace, host) for host in range(n_hosts)]
    assert energy.total_j == pytest.approx(plain, rel=1e-12)
    above, whole = task_energy_j(trace), busy_energy_j(trace)
    assert above.sum() == pytest.approx(energy.above_idle_j.sum(), rel=1e-12)
    assert whole.sum() == pytest.approx(energy.busy_j.sum(), rel=1e-12)
    lost = trace.executions["outcome"] != by_hand.FINISHED
    assert energy.wasted_j.sum() == pytest.approx(whole[lost].sum(), rel=1e-12)
    idle_floor = trace.platform.idle_w[:, 0] * trace.horizon_s
    assert above.sum() + idle_floor.sum() == pytest.approx(energy.total_j.sum(), rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5), st.integers(0, 60), st.integers(1, 4), st.integers(0, 10**6))
def test_power_over_time_integrates_to_the_same_energy(n_hosts, n_tasks, cores, seed):
    """The curves of the figures hold the joules of the table, and end where they began."""
    trace = by_hand.list_schedule(n_hosts, n_tasks, cores, seed)
    energy, power = trace_energy(trace), grid_power(trace)
    spans = np.diff(np.append(power.time, trace.horizon_s))
    for part in ("busy", "idle"):
        curve = getattr(power, f"{part}_w")
        assert (curve * spans).sum() == pytest.approx(energy.grid_total(f"{part}_j"), rel=1e-12)


def assert_same_bits(first, second):
    for name, values in vars(first).items():
        other = getattr(second, name)
        if isinstance(values, np.ndarray):
            np.testing.assert_array_equal(values, other)
        else:
            assert values == other


@pytest.mark.parametrize(
    "trace",
    [
        by_hand.everything_at_once(),
        by_hand.beaten_replica(),
        by_hand.empty(),
        by_hand.list_schedule(7, 80, 3, seed=3, cancel_every=4),
        parallel_on_changing_nodes(),
    ],
    ids=["everything", "replicas", "empty", "cancelled", "parallel"],
)
@pytest.mark.parametrize("rows", [1, 30])
def test_a_large_run_is_integrated_host_by_host_to_the_same_bits(trace, rows, monkeypatch):
    whole = trace_power(trace)
    energy, power, found = trace_energy(trace, whole), grid_power(trace, whole), summary(trace, None, (0.0, 20.0))
    monkeypatch.setattr("gridsched.power._BLOCK_ROWS", rows)
    monkeypatch.setattr("gridsched.power._KEPT_ROWS", 0)
    assert kept_power(trace) is None
    assert_same_bits(trace_energy(trace), energy)
    assert_same_bits(grid_power(trace), power)
    assert repr(summary(trace, None, (0.0, 20.0))) == repr(found)


def test_no_digits_are_lost_over_a_long_run():
    """20,000 executions of 0.1 s on one host: the running total stays exact to 1e-14."""
    host = Host("a", (PState(1.0, 1.0, 3.0, 3.0),))
    starts = np.arange(20_000) * 0.25
    runs = [(k, 0, 0, float(s), float(s) + 0.1, 0) for k, s in enumerate(starts)]
    trace = by_hand.make_trace(Platform((host,)), make_tasks(np.full(20_000, 0.1)), runs, (), 5e3)
    exact = math.fsum(
        [3.0 * (row[4] - row[3]) for row in runs]
        + [1.0 * (s + 0.25 - row[4]) for s, row in zip(starts.tolist(), runs, strict=True)]
    )
    assert trace_energy(trace).total_j[0] == pytest.approx(exact, rel=1e-14)
    assert grid_power(trace).total_w[-1] == 1.0


def test_timeline_rows_of_one_host_join_without_gaps():
    """Each row ends where the host's next one begins, the last one at the horizon."""
    trace = by_hand.everything_at_once()
    timeline = host_timeline(trace)
    for host in range(2):
        rows = timeline.host == host
        assert timeline.time[rows][1:].tolist() == timeline.end[rows][:-1].tolist()
        assert timeline.time[rows][0] == 0.0
        assert timeline.end[rows][-1] == trace.horizon_s
    assert (timeline.busy_cores >= 0).all()
    assert timeline.busy_cores.max() == 2
