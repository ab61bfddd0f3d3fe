"""Jobs that share nodes on SimGrid: records of the reference driver, and joules of SimGrid alone."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from gridsched import run
from gridsched.energy import busy_energy_j, task_energy_j, trace_energy
from gridsched.export.archive import read_archive
from gridsched.export.export import write_export
from gridsched.model.platform import Cluster, Host, Partition, Platform, PState
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.tasks import make_tasks
from gridsched.model.timeline import bars_of
from gridsched.platform_io.xml_writer import write_platform
from gridsched.runs.scenario import LoadedScenario
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences

HERE = Path(__file__).parent
SPEED = 1e9


def machine(n: int, cores: int) -> Platform:
    """Return nodes n0, n1, ... with a master m that computes nothing, as the bare program wants."""
    state = (PState(SPEED, 90.0, 110.0, 250.0),)
    hosts = tuple(Host(f"n{k}", state, cores=cores, resources=(("memory_mb", 64),)) for k in range(n))
    everyone = tuple(range(n))
    return Platform(
        hosts,
        (Cluster("c", everyone),),
        partitions=(Partition("all", everyone),),
        master=Host("m", (PState(SPEED, 1.0, 1.0, 1.0),)),
    )


def scenario(n_jobs: int, seed: int, **settings) -> LoadedScenario:
    """Return jobs drawn on five nodes of four cores."""
    rng = np.random.default_rng(seed)
    run_s = rng.integers(5, 60, n_jobs).astype(float)
    estimate = run_s + rng.integers(0, 60, n_jobs)
    anywhere = rng.random(n_jobs) < 0.5
    cores = np.where(anywhere, 1, rng.integers(1, 5, n_jobs))
    platform = machine(5, 4)
    tasks = make_tasks(
        estimate * SPEED,
        np.cumsum(rng.exponential(6.0, n_jobs)).round(2),
        width=np.where(anywhere, rng.integers(1, 13, n_jobs), rng.integers(1, 4, n_jobs)),
        requested_time_s=estimate,
        demand=np.column_stack([cores, rng.integers(0, 20, n_jobs)]),
        anywhere=anywhere,
        resources=("cores", "memory_mb"),
    )
    settings = {"timeout_s": 60.0, **settings}
    return LoadedScenario(platform, tasks, "easy_backfilling", run_times=LoggedRunTimes(platform, run_s), **settings)


@pytest.mark.parametrize("place", ["pack", "spread", "contiguous"])
def test_drivers_and_plugin_agree(place):
    """Eighty jobs on five nodes of four cores: equal records, and joules of each node to 1e-9."""
    expected = run(scenario(80, 4, driver="reference", place=place))
    result = run(scenario(80, 4, driver="simgrid", place=place))
    assert trace_differences(expected.trace, result.trace) == []
    assert np.array_equal(expected.trace.host_cores, result.trace.host_cores)
    assert metered_differences(result) == []
    assert expected.trace.host_cores.max() > 1


def test_joules_are_those_of_a_bare_program(tmp_path):
    """SimGrid alone, one activity for each core, draws what the model says of each node."""
    trace = run(scenario(40, 7, driver="reference")).trace
    platform_file = tmp_path / "platform.xml"
    write_platform(trace.platform, platform_file, command="test")
    plan = []
    for k, (start, end) in enumerate(trace.executions[["start", "end"]].tolist()):
        some = slice(trace.host_offsets[k], trace.host_offsets[k + 1])
        for host, cores in zip(trace.host_ids[some].tolist(), trace.host_cores[some].tolist(), strict=True):
            plan += [[start, "execute", f"n{host}", (end - start) * SPEED]] * cores
    plan.append([trace.horizon_s, "nothing", "n0", 0])
    asked = [sys.executable, HERE / "bare_simgrid.py", platform_file, json.dumps(plan)]
    said = subprocess.run(asked, check=True, capture_output=True, text=True, timeout=120).stdout
    drawn = json.loads(said.splitlines()[-1])
    energy = trace_energy(trace)
    of_nodes = dict(zip(energy.names, energy.total_j.tolist(), strict=True))
    assert {name: drawn[name] for name in of_nodes} == pytest.approx(of_nodes, rel=1e-9)


def test_shares_of_a_node_by_hand():
    """Two jobs on a node of four cores: 3 cores for 10 s, 1 core for 20 s; 90:110:250 W."""
    platform = machine(1, 4)
    tasks = make_tasks([1e10, 2e10], width=[1, 1], requested_time_s=[10.0, 20.0], demand=[[3], [1]])
    trace = run(LoadedScenario(platform, tasks, "fcfs", driver="reference")).trace
    # both: 110 + 140 = 250 W for 10 s; one core: 110 + 35 = 145 W for 10 s
    assert trace_energy(trace).busy_j[0] == pytest.approx(3950.0)
    assert busy_energy_j(trace) == pytest.approx([2500 * 3 / 4, 2500 / 4 + 1450])
    assert task_energy_j(trace) == pytest.approx([1600 * 3 / 4, 1600 / 4 + 550])
    assert task_energy_j(trace).sum() + 20.0 * 90.0 == pytest.approx(3950.0)


def test_a_run_is_read_back(tmp_path):
    """Demands, partitions and cores of nodes are in the archive."""
    result = run(scenario(20, 5, driver="reference"))
    write_export(result.trace, None, {}, tmp_path / "out", workload_name="jobs")
    trace = read_archive(tmp_path / "out" / "trace.npz").trace
    assert np.array_equal(trace.tasks.demand, result.trace.tasks.demand)
    assert np.array_equal(trace.host_cores, result.trace.host_cores)
    assert trace.platform.partitions == result.trace.platform.partitions
    assert busy_energy_j(trace) == pytest.approx(busy_energy_j(result.trace))


def test_charts_draw_a_job_over_its_cores():
    """Each core of a host has one job at a time, and a job as many cores as it was given."""
    trace = run(scenario(60, 5, driver="reference")).trace
    bars, runs = bars_of(trace), trace.executions
    assert np.bincount(bars.execution, bars.cores).tolist() == trace.n_cores.tolist()
    assert ((bars.core + bars.cores)[bars.rows == 1] <= 4).all()
    assert (bars.rows == 1).all()
    spans = sorted(
        (host, core, runs["start"][k], runs["end"][k])
        for k, host, first, number in zip(bars.execution, bars.top, bars.core, bars.cores, strict=True)
        for core in range(first, first + number)
    )
    assert len({span[:2] for span in spans}) == 20
    for (*place, _, end), (*other, start, _) in pairwise(spans):
        assert place != other or end <= start
