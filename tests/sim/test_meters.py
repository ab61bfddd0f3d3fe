"""Meters during a run: measured power and carbon."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sim_cases import ex_a, on_simgrid, write_star
from test_bare_simgrid import at, write

from gridsched import Scenario, run
from gridsched.cli.app import main
from gridsched.cli.validate import _agrees
from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.energy import compare_energy, trace_energy
from gridsched.errors import InputError
from gridsched.export.export import read_export, write_export
from gridsched.metrics.run_metrics import trace_carbon
from gridsched.model.carbon import Carbon
from gridsched.model.platform import Cluster, Host, Partition, Platform, PState, homogeneous_cluster
from gridsched.model.run_times import LEAST_LOAD, LoggedRunTimes
from gridsched.model.series import Series, SiteSeries
from gridsched.model.tasks import make_tasks
from gridsched.platform_io.xml_reader import read_platform
from gridsched.policy.decisions import Assign, PowerOff, PowerOn
from gridsched.power import grid_power
from gridsched.runs.plugin_agreement import carbon_check
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences
from gridsched.workloads.traces.trace_options import TraceOptions

# Jobs that draw what was measured: shares of a node's range, alike on both drivers and by the plugin.

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
    times = LoggedRunTimes(platform, length, watts * width.astype(float))
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
    """Watts change no start: policies do not know them."""
    measured, default = (run(scenario(JOBS, power=power)).trace for power in (("measured",), ()))
    assert measured.start_time_s.tolist() == default.start_time_s.tolist()
    assert not len(default.load)


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
    """Jobs lost with their nodes start again; the plugin still meters what the model states."""
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
    """The first such job is named; cut ones use the ends of the range, and both are reported."""
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
        ({"power": ("none", "measured")}, "none"),
    ],
)
def test_what_measured_power_does_not_go_with(options, named):
    """One line each."""
    with pytest.raises(InputError, match=named):
        run(scenario(JOBS, **options))


def test_a_workload_without_watts_is_refused(tmp_path):
    """Of a log without power, and of tasks that are no log."""
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


@pytest.mark.parametrize("driver", ["reference", pytest.param("simgrid", marks=needs_simgrid)])
def test_jobs_that_share_nodes_of_two_partitions(driver):
    """A job's watts are spread over its cores, and its load lies in the range of its partition's nodes.

    CPU nodes of 4 cores draw 60 to 100 W, GPU nodes 200 to 600 W. Two jobs of 2 cores at 45 W fill a CPU node:
    45 = 2/4 (60 + x 40), so x is 0.75, and the node draws 90 W; one of them alone 60 + 2/4 x 0.75 x 40 = 75 W. A job of
    4 cores at 400 W has half the range of a GPU node.
    """
    hosts = tuple(
        Host(name, (PState(1e9, least - 10.0, least, most),), cores=4)
        for name, least, most in (("cpu", 60.0, 100.0), ("gpu", 200.0, 600.0))
    )
    pools = (Partition("cpu", (0,)), Partition("gpu", (1,)))
    platform = Platform(hosts, (Cluster("c", (0, 1)),), partitions=pools)
    length = np.array([10.0, 20.0, 20.0])
    tasks = make_tasks(
        length * 1e9,
        width=[1, 1, 1],
        demand=[[2], [2], [4]],
        resources=("cores",),
        partition=[0, 0, 1],
        requested_time_s=length,
    )
    times = LoggedRunTimes(platform, length, np.array([45.0, 45.0, 400.0]))
    result = run(Scenario(platform, tasks, "fcfs", run_times=times, driver=driver, power=("measured",)))
    np.testing.assert_allclose(result.trace.load, [0.75, 0.75, 0.5], rtol=1e-12)
    np.testing.assert_allclose(result.energy.total_j, [90 * 10 + 75 * 10, 400 * 20], rtol=1e-9)
    if driver == "simgrid":
        assert metered_differences(result) == []


def test_equal_nodes_of_a_platform():
    """The range is that of the fastest host of the pool in P-state 0."""
    platform = homogeneous_cluster(4, idle_w=50, busy_w=150, speed=1e9)
    trace = run(scenario([(0, 10, 1, 100.0)], platform=platform)).trace
    np.testing.assert_allclose(trace.load, [0.5])


# Grams from SimGrid's joules at each change of the intensity, in all execution modes, and validate's table.

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = [
    *("--platform", str(ROOT / "examples/two_sites.xml")),
    *("--workload", str(ROOT / "examples/two_sites_day.csv")),
    *("--carbon", str(ROOT / "examples/sites.csv")),
]
SITES = SiteSeries(
    ("h*", "h1", "h2"),
    (Series((0.0, 7.0, 20.0), (500.0, 0.0, 90.0)), Series((0.0, 10.0), (100.0, 900.0)), Series.constant(300.0)),
)


@pytest.mark.parametrize("execution_mode", ["maestro", "actors"])
@pytest.mark.parametrize("period_s", [25.0, float("inf")])
def test_each_execution_mode(execution_mode, period_s):
    """EX-A: some tasks end just when an intensity changes; a day of 25 s begins four times."""
    carbon = Carbon(SITES, period_s=period_s, pue=1.5)
    result = on_simgrid(
        ex_a(), [1000.0, 500.0, 2000.0, 1500.0, 250.0], carbon=carbon, meters_carbon=True, execution_mode=execution_mode
    )
    rows = carbon_check(result)
    assert [row["host"] for row in rows] == ["h1", "h2", "h3", "total"]
    assert all(row["carbon_relative_difference"] <= 1e-12 for row in rows)
    assert rows[-1]["model_g"] == pytest.approx(result.metrics()["carbon_g"])
    # h2 at one intensity: its joules by 300 g/kWh and the PUE
    assert rows[1]["plugin_g"] == pytest.approx(1.5 * 300 * result.plugin_j["h2"] / 3.6e6, rel=1e-12)
    assert rows[0]["plugin_g"] != pytest.approx(1.5 * 100 * result.plugin_j["h1"] / 3.6e6)


def test_with_messages(tmp_path):
    """Workers as actors: the meter ends with them."""
    path = write_star(tmp_path / "p.xml", [10.0, 5.0])
    names = [host.name for host in read_platform(path).hosts]
    series = tuple(Series((0.0, 10.0 + k, 20.0), (100.0, 700.0, 50.0)) for k in range(len(names)))
    carbon = Carbon(SiteSeries(tuple(names), series), period_s=25.0)
    tasks = make_tasks([100.0, 50.0, 25.0], input_bytes=50.0)
    rows = carbon_check(on_simgrid(path, tasks, carbon=carbon, meters_carbon=True, network="platform"))
    assert max(row["carbon_relative_difference"] for row in rows) <= 1e-12


def test_pstates_boots_and_changes_at_the_same_instant(tmp_path):
    """a slows down, shuts down at 18 s and boots at 24.5 s; intensities change at 18 and 24.5 s, too."""
    decisions = at(
        {0.0: [Assign(0, 1), Assign(1, 0, 1)], 18.0: [PowerOff(0)], 24.5: [PowerOn(0)], 28.5: [Assign(2, 0)]},
        powers_hosts=True,
        uses_dvfs=True,
    )
    series = Series((0.0, 14.0, 18.0, 24.5, 28.5), (400.0, 100.0, 0.0, 250.0, 30.0))
    carbon = Carbon(SiteSeries(("a", "b"), (series, Series((0.0, 4.0), (50.0, 650.0)))), period_s=31.0)
    tasks = make_tasks([3500.0, 700.0, 1100.0])
    result = on_simgrid(write(tmp_path / "p.xml"), tasks, decisions, carbon=carbon, meters_carbon=True)
    assert max(row["carbon_relative_difference"] for row in carbon_check(result)) <= 1e-12


def test_nothing_is_read_where_nobody_asks():
    """A run of its own has no readings, and one without intensity none either."""
    assert carbon_check(on_simgrid(ex_a(), [1000.0], carbon=Carbon(SITES, period_s=25.0))) == []
    assert carbon_check(on_simgrid(ex_a(), [1000.0], meters_carbon=True)) == []


def test_a_wrong_hour_is_found():
    """Negative control: grams of the model at another intensity differ, though all joules agree."""
    carbon = Carbon(SITES, period_s=25.0)
    result = on_simgrid(ex_a(), [1000.0, 500.0], carbon=carbon, meters_carbon=True)
    later = replace(carbon, intensity=SiteSeries(("h*",), (Series((0.0, 7.001), (500.0, 0.0)),)))
    other = on_simgrid(ex_a(), [1000.0, 500.0], carbon=later)
    assert other.plugin_j == result.plugin_j
    rows = compare_energy(other.trace, result.grams, trace_carbon(other.trace))
    assert rows[0]["relative_difference"] > 1e-3
    assert not _agrees({"relative_difference": 0.0, "carbon_relative_difference": 1e-6, "tolerance": 1e-9})


def test_validate_shows_grams(capsys):
    """Grams by hand."""
    assert main(["validate", *EXAMPLE, "--schedulers", "wq"]) == 0
    out = capsys.readouterr().out
    assert out.count("72.4000") == 2
    assert main(["validate", *EXAMPLE, "--schedulers", "wq", "--json"]) == 0
    hosts = json.loads(capsys.readouterr().out)["hosts"]
    assert [row["model_g"] for row in hosts] == pytest.approx([30, 30, 6.2, 6.2, 72.4])


def test_an_export_has_no_readings(tmp_path, capsys):
    """It reports this, and compares joules."""
    folder = str(tmp_path / "out")
    assert main(["run", *EXAMPLE, "--scheduler", "wq", "--export", folder, "--quiet"]) == 0
    assert main(["validate", folder]) == 0
    told = capsys.readouterr()
    assert "grams" in told.err
    assert "72.4" not in told.out
