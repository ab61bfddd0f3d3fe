"""Parallel jobs on SimGrid, also on shared nodes, and hosts of speed 0."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from sim_cases import executions, largest_difference, on_simgrid, write_star

from gridsched import run
from gridsched.energy import busy_energy_j, task_energy_j, trace_energy
from gridsched.errors import InputError
from gridsched.export.archive import read_archive
from gridsched.export.export import write_export
from gridsched.model.platform import Cluster, Host, Partition, Platform, PState
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.tasks import make_tasks
from gridsched.model.timeline import bars_of
from gridsched.platform_io.check import check_platform_file, with_deployment, with_inspection
from gridsched.platform_io.xml_reader import read_platform
from gridsched.platform_io.xml_writer import parallel_platform_xml, write_platform
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Allocate, PowerOff, PowerOn
from gridsched.runs.plugin_agreement import energy_check
from gridsched.scenario import LoadedScenario
from gridsched.sim.inspection import inspect_platform
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences
from gridsched.testing.parallel_cases import EXAMPLE, cluster_of, make_parallel_case

# Parallel jobs on SimGrid: the same records and joules as the reference driver, node by node.


def random_jobs(seed: int, n: int, widest: int) -> list[tuple]:
    """Return jobs that ask for up to five times what they take."""
    rng = np.random.default_rng(seed)
    length = np.ceil(rng.lognormal(3.0, 1.0, n))
    estimate = np.ceil(length * rng.uniform(1.0, 5.0, n))
    submit = np.cumsum(rng.exponential(20.0, n)).round(3)
    return list(zip(submit, length, rng.integers(1, widest + 1, n).tolist(), estimate, strict=True))


class Switching(Scheduler):
    """Starts jobs in order, switches nodes off while nothing waits, and chooses P-states."""

    traits = Traits(trigger="event", parallel=True, powers_hosts=True, uses_dvfs=True)

    def schedule(self, state):
        waiting = state.next_waiting(1)
        if not waiting:
            return [PowerOff(int(h)) for h in np.flatnonzero(state.nodes.free)[:1]]
        off = np.flatnonzero(~state.is_on)
        if len(off):
            return [PowerOn(int(h)) for h in off]
        free, width = np.flatnonzero(state.nodes.free), state.tasks.width[waiting[0]]
        if len(free) < width:
            return []
        return [Allocate(waiting[0], free[-width:], waiting[0] % 2)]


@pytest.mark.parametrize("scheduler", ["easy_backfilling", Switching()])
def test_random_jobs_agree(scheduler):
    """Sixty jobs on 20 nodes, with P-states and switching or without: records and joules."""
    case = make_parallel_case("random jobs", 20, random_jobs(3, 60, 12))
    expected = run(case.scenario(scheduler, driver="reference"))
    result = run(case.scenario(scheduler, driver="simgrid", timeout_s=60.0))
    assert trace_differences(expected.trace, result.trace) == []
    assert metered_differences(result) == []
    assert len(result.plugin_j) == 20


def test_platform_files_of_ours_lose_their_network_model(tmp_path):
    """A file that gridsched wrote serves; the user's file stays as it is."""
    path = tmp_path / "cluster.xml"
    write_platform(cluster_of(4), path, command="test")
    text = path.read_text()
    assert "network/model" in text
    assert "network/model" not in parallel_platform_xml(path)
    case = make_parallel_case("example", 4, EXAMPLE)
    scenario = case.scenario("fcfs", driver="simgrid", timeout_s=60.0)
    object.__setattr__(scenario, "platform", read_platform(path))
    object.__setattr__(scenario, "platform_file", path)
    assert run(scenario).trace.start_time_s == pytest.approx([0.0, 10.0, 15.0, 15.0], rel=1e-9)
    assert path.read_text() == text


def test_other_network_models_are_refused(tmp_path: Path):
    """SimGrid would abort: one line names the entry to take out."""
    path = tmp_path / "cluster.xml"
    write_platform(cluster_of(4), path, command="test")
    path.write_text(path.read_text().replace('"CM02"', "'SMPI'"))
    with pytest.raises(InputError, match=r"cluster\.xml.*'SM"):
        parallel_platform_xml(path)
    path.write_text('<platform version="4.1"><zone id="z" routing="Full"/></platform>')
    assert parallel_platform_xml(path) is None


def test_parallel_jobs_send_no_messages():
    """Over the platform's network there is no way to run them."""
    case = make_parallel_case("example", 4, EXAMPLE)
    scenario = case.scenario("fcfs", driver="simgrid", network="platform")
    with pytest.raises(InputError, match=r"--network none|master"):
        run(scenario)


# Jobs that share nodes on SimGrid: records of the reference driver, and joules of SimGrid alone.

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


@pytest.mark.parametrize("placement", ["pack", "spread", "contiguous"])
def test_drivers_and_plugin_agree(placement):
    """Eighty jobs on five nodes of four cores: equal records, and joules of each node to 1e-9."""
    expected = run(scenario(80, 4, driver="reference", placement=placement))
    result = run(scenario(80, 4, driver="simgrid", placement=placement))
    assert trace_differences(expected.trace, result.trace) == []
    assert np.array_equal(expected.trace.host_cores, result.trace.host_cores)
    assert metered_differences(result) == []
    assert expected.trace.host_cores.max() > 1


def test_joules_are_those_of_a_bare_program(tmp_path):
    """SimGrid alone, one activity for each core, uses the energy that the model states for each node."""
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
    consumed = json.loads(said.splitlines()[-1])
    energy = trace_energy(trace)
    of_nodes = dict(zip(energy.names, energy.total_j.tolist(), strict=True))
    assert {name: consumed[name] for name in of_nodes} == pytest.approx(of_nodes, rel=1e-9)


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
    for (*placement, _, end), (*other, start, _) in pairwise(spans):
        assert placement != other or end <= start


# Hosts of speed 0 (batteries, storage): SimGrid charges them as fully loaded all the time.


def write_still(path: Path, watts="1:2:3") -> Path:
    """Write a star with a worker of 10 flop/s, and a host of speed 0 that no route leads to."""
    host = f'<host id="still" speed="0f"><prop id="wattage_per_state" value="{watts}"/></host>'
    text = write_star(path, [10.0]).read_text()
    path.write_text(text.replace("<link", f"{host}\n<link", 1))
    return path


def write_deployment(path: Path, master: str, worker: str) -> Path:
    """Write a deployment of one master and one worker."""
    path.write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
        f'<platform version="4.1"><actor host="{master}" function="master"/>'
        f'<actor host="{worker}" function="worker"/></platform>'
    )
    return path


def test_a_host_of_speed_0_computes_nothing_and_draws_its_busy_power(tmp_path):
    """100 flop take 10 s on the worker, in which the other host draws 3 W; it is in no total."""
    path = write_still(tmp_path / "p.xml")
    platform = read_platform(path)
    assert [host.name for host in platform.hosts] == ["w1"]
    assert [host.name for host in platform.bystanders] == ["still"]
    assert "1 host(s) ('still') have speed 0: they compute nothing" in platform.warnings
    result = on_simgrid(path, make_tasks([100.0]))
    assert executions(result) == [(0, 0, 0.0, 10.0)]
    rows = {row["host"]: row for row in energy_check(result)}
    assert rows["still"]["role"] == "unused"
    assert rows["still"]["model_j"] == rows["still"]["plugin_j"] == pytest.approx(30.0)
    assert rows["total"]["model_j"] == rows["w1"]["model_j"]
    assert largest_difference(result) <= 1e-9


def test_it_may_be_the_master(tmp_path):
    """By --master: the master of before, which has a speed, computes in its place, and may become it again."""
    path = write_still(tmp_path / "p.xml")
    platform = read_platform(path).with_master("still")
    assert platform.master.name == "still"
    assert [host.name for host in platform.hosts] == ["m", "w1"]
    again = platform.with_master("m")
    assert (again.master.name, [host.name for host in again.bystanders]) == ("m", ["still"])
    result = on_simgrid(path, make_tasks([100.0, 100.0]), master="still")
    assert result.summary()["hosts_used"] == 2
    assert largest_difference(result) <= 1e-9


def test_a_master_of_speed_0_sends_messages(tmp_path):
    """100 B take 10.5 s, 100 flop 10 s; the master draws its 4 W of a busy host all the time."""
    path = write_star(tmp_path / "p.xml", [10.0])
    path.write_text(path.read_text().replace('"m" speed="1f"', '"m" speed="0f"').replace("3:3", "3:4"))
    result = on_simgrid(path, make_tasks([100.0], input_bytes=100.0))
    assert result.trace.horizon_s == pytest.approx(20.5)
    rows = {row["host"]: row for row in energy_check(result)}
    assert rows["m"]["plugin_j"] == pytest.approx(4 * 20.5)
    assert largest_difference(result) <= 1e-9


def test_no_worker_on_it(tmp_path):
    """A deployment may not let it work, and some host must."""
    path = write_still(tmp_path / "p.xml")
    deployment = write_deployment(tmp_path / "d.xml", "m", "still")
    wanted = "host 'still' has speed 0 and computes nothing; a worker needs a host that does"
    with pytest.raises(InputError, match=wanted):
        on_simgrid(path, make_tasks([100.0]), deployment=deployment)
    assert wanted in with_deployment(check_platform_file(path), deployment).problems[-1]
    with pytest.raises(InputError, match="'w1'"):
        read_platform(path).with_master("still").restricted_to(["w1"]).with_master("w1")


def test_the_check_lists_it(tmp_path):
    """SimGrid sees the same hosts, and there is no problem."""
    path = write_still(tmp_path / "p.xml")
    found = check_platform_file(path)
    report = with_inspection(found, inspect_platform(path, found.pairs()))
    assert report.is_fine
    assert any("('still') have speed 0" in note for note in report.notes)
