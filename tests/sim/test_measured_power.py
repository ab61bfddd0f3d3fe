"""Jobs that draw what was measured: shares of a node's range, alike on both drivers and by the plugin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched import Scenario, run
from gridsched.energy import trace_energy
from gridsched.errors import InputError
from gridsched.export.export import read_export, write_export
from gridsched.model.platform import Cluster, Host, Platform, PState, homogeneous_cluster
from gridsched.model.run_times import LEAST_LOAD, LoggedRunTimes
from gridsched.model.tasks import make_tasks
from gridsched.power import grid_power
from gridsched.sim.library import HOW_TO_INSTALL, is_installed
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences
from gridsched.workloads.traces.options import TraceOptions

needs_simgrid = pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
IDLE_W, LEAST_W, MOST_W = 90.0, 100.0, 200.0


def machine(n_nodes: int, **fields) -> Platform:
    """Return equal nodes that draw from 100 to 200 W under load, and 90 W without."""
    pstates = PState(1e9, IDLE_W, LEAST_W, MOST_W), PState(5e8, 50.0, 60.0, 110.0)
    hosts = tuple(Host(f"n{k}", pstates, **fields) for k in range(n_nodes))
    return Platform(hosts, (Cluster("c", tuple(range(n_nodes))),), name="nodes")


def scenario(jobs, n_nodes=4, scheduler="easy_backfilling", platform=None, **options) -> Scenario:
    """Return a run of jobs (submission, run time, nodes, watts of a node)."""
    submit, length, width, watts = map(np.array, zip(*jobs, strict=True))
    platform = platform or machine(n_nodes)
    tasks = make_tasks(length * 1e9, submit, width=width, requested_time_s=length * 2.0)
    options = {"driver": "reference", "power": ("measured",)} | options
    times = LoggedRunTimes(platform, length, watts.astype(float))
    return Scenario(platform, tasks, scheduler, run_times=times, **options)


JOBS = [(0, 10, 2, 150.0), (0, 20, 1, 200.0), (5, 5, 3, 101.0), (6, 8, 4, math.nan)]


def test_joules_by_hand():
    """Two nodes for 10 s at 150 W, one for 20 s at 200 W; the rest of four nodes' 20 s at 90 W."""
    result = run(scenario(JOBS[:2]))
    busy_j = 2 * 10 * 150 + 20 * 200
    assert result.energy.grid_total() == pytest.approx(busy_j + IDLE_W * (4 * 20 - 2 * 10 - 20), rel=1e-12)
    assert trace_energy(result.trace).execution_j.tolist() == pytest.approx([3000, 4000], rel=1e-12)


def test_power_over_time_by_hand():
    """The second starts when the first ends, at 10 s, on the same nodes."""
    power = grid_power(run(scenario([(0, 10, 4, 150.0), (1, 10, 4, 120.0)])).trace)
    assert power.time.tolist() == [0, 10, 20]
    assert power.total_w[:2].tolist() == pytest.approx([600, 480])


def test_the_schedule_is_the_same():
    """Watts change no start: nobody knows them."""
    measured, usual = (run(scenario(JOBS, power=power)).trace for power in (("measured",), ()))
    assert measured.start_time_s.tolist() == usual.start_time_s.tolist()
    assert not len(usual.load)


WATTS = st.one_of(st.floats(LEAST_W + 1e-3, MOST_W), st.just(MOST_W), st.just(math.nan))


@needs_simgrid
@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 40), st.integers(1, 4), WATTS), min_size=1, max_size=12),
    st.sampled_from(["fcfs", "easy_backfilling"]),
    st.sampled_from([0, 1]),
)
def test_the_plugin_meters_what_the_model_says(rows, scheduler, pstate):
    """Node by node, to 1e-9, on nodes whose jobs follow each other at once, in both P-states."""
    jobs = sorted(rows, key=lambda row: row[0])
    expected = run(scenario(jobs, scheduler=scheduler, pstate=pstate))
    found = run(scenario(jobs, scheduler=scheduler, pstate=pstate, driver="simgrid"))
    assert trace_differences(expected.trace, found.trace) == []
    assert metered_differences(found) == []
    np.testing.assert_array_equal(expected.trace.load, found.trace.load)


@needs_simgrid
def test_nodes_that_fail_and_jobs_that_are_killed():
    """Jobs lost with their nodes start again; the plugin still meters what the model says."""
    rng = np.random.default_rng(3)
    jobs = [(int(s), int(rng.integers(20, 90)), int(rng.integers(1, 4)), float(rng.uniform(101, 199)))
            for s in np.sort(rng.integers(0, 300, 20))]  # fmt: skip
    options = {"failures": "mtbf=300,mttr=40", "seed": 2}
    expected = run(scenario(jobs, scheduler="fcfs", **options))
    assert len(expected.trace.executions) > len(jobs)
    found = run(scenario(jobs, scheduler="fcfs", driver="simgrid", **options))
    assert trace_differences(expected.trace, found.trace) == []
    assert metered_differences(found) == []


def test_what_lies_outside_the_range_is_refused_or_cut():
    """The first such job is named; cut ones draw the ends of the range, and both are told."""
    jobs = [(0, 10, 1, 250.0), (0, 10, 1, 80.0), (0, 10, 1, 150.0), (0, 10, 1, math.nan)]
    with pytest.raises(InputError, match=r"job 1 .* 2 of 4 jobs"):
        run(scenario(jobs))
    result = run(scenario(jobs, power=("measured:clamped",)))
    np.testing.assert_allclose(result.trace.load, [1, LEAST_LOAD, 0.5, 1])
    assert any("2 of them are cut" in text and "1 without" in text for text in result.scenario.warnings)
    joules = trace_energy(result.trace).execution_j
    np.testing.assert_allclose(joules, [2000, 1000 + 1000 * LEAST_LOAD, 1500, 2000])


def test_another_range_may_be_given():
    """Job 2's 80 W lie inside then."""
    jobs = [(0, 10, 1, 150.0), (0, 10, 1, 80.0)]
    trace = run(scenario(jobs, power=("40:50:250", "measured"))).trace
    np.testing.assert_allclose(trace.load, [0.5, 0.15])
    np.testing.assert_allclose(trace_energy(trace).execution_j, [1500, 800])


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"power": ("100:100:100", "measured")}, "range"),
        ({"power_cap_w": 900.0}, "power_cap_w"),
        ({"power": ("none", "measured")}, "alone"),
    ],
)
def test_what_measured_power_does_not_go_with(options, named):
    """One line each."""
    with pytest.raises(InputError, match=named):
        run(scenario(JOBS, **options))


def test_a_workload_without_watts_is_refused(tmp_path):
    """Of a log that tells none, and of tasks that are no log."""
    path = tmp_path / "a.swf"
    path.write_text("1 0 -1 5 1 -1 -1 1 9\n")
    with pytest.raises(InputError, match="measured"):
        run(Scenario(None, path, "fcfs", driver="reference", power=("measured",), trace=TraceOptions(nodes=2)))
    with pytest.raises(InputError, match="measured"):
        run(Scenario("platforms/ex_a.xml", "examples/ex_a.csv", "mct", driver="reference", power=("measured",)))


def test_an_export_keeps_loads(tmp_path):
    """The archive's energy is that of the run."""
    trace = run(scenario(JOBS)).trace
    write_export(trace, None, {}, tmp_path / "run", workload_name="jobs")
    again = read_export(tmp_path / "run").trace
    np.testing.assert_array_equal(again.load, trace.load)
    assert trace_energy(again).grid_total() == trace_energy(trace).grid_total()


def test_a_log_with_joules(tmp_path):
    """A job of sacct with 3,000 J in 10 s on two nodes draws 150 W a node."""
    path = tmp_path / "a.psv"
    path.write_text("JobIDRaw|Submit|ElapsedRaw|AllocNodes|ConsumedEnergyRaw\n1|0|10|2|3000\n2|0|10|1|\n")
    trace = run(
        Scenario(None, path, "fcfs", driver="reference", power=("measured",), trace=TraceOptions(nodes=4))
    ).trace
    idle_w, busy_w = 95.0, 190.738
    np.testing.assert_allclose(trace.load, [(150 - idle_w) / (busy_w - idle_w), 1])
    np.testing.assert_allclose(trace_energy(trace).execution_j, [3000, 10 * busy_w])


def test_equal_nodes_of_a_platform():
    """The range is that of the fastest host in P-state 0."""
    platform = homogeneous_cluster(4, idle_w=50, busy_w=150, speed=1e9)
    trace = run(scenario([(0, 10, 1, 100.0)], platform=platform)).trace
    np.testing.assert_allclose(trace.load, [0.5])
