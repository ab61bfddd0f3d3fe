"""Jobs run on the hosts, by name, that platform, log and partitions say, whichever hosts compute."""

from __future__ import annotations

import named_hosts as oracle
import numpy as np
import pytest
from cli_cases import ROOT

from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.errors import InputError
from gridsched.model.platform import Cluster, Host, Partition, Platform, PState
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.tasks import CORES, Tasks, make_tasks
from gridsched.platform_io.xml_reader import read_platform
from gridsched.runs.run import run
from gridsched.scenario import Scenario

needs_simgrid = pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
DRIVERS = ["reference", pytest.param("simgrid", marks=needs_simgrid)]


def check(gridsched, case: oracle.Case, driver: str) -> None:
    """Compare hosts, times and joules of a run with those of the oracle, host by host."""
    outcome = gridsched("run", *case.words(driver), "--export", case.folder / "out")
    assert outcome.status == 0, outcome
    placed, energy = oracle.exported(case.folder / "out")
    jobs = oracle.schedule(case)
    assert {id: sorted(hosts) for id, (hosts, _, _) in placed.items()} == {job.id: sorted(job.hosts) for job in jobs}
    for job in jobs:
        assert placed[job.id][1:] == pytest.approx((job.start, job.end))
    expected = oracle.joules(case, jobs)
    column = "plugin_j" if driver == "simgrid" else "model_j"
    assert {name: float(row[column]) for name, row in energy.items()} == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(100))
def test_random_machines(gridsched, tmp_path, seed):
    """On the reference driver, with masters, hosts off, whole and shared nodes, zones, names, lists and patterns."""
    check(gridsched, oracle.draw(seed, tmp_path, deploys=False), "reference")


@needs_simgrid
@pytest.mark.parametrize("seed", range(1000, 1030))
def test_random_machines_on_simgrid(gridsched, tmp_path, seed):
    """With deployments, too; joules of SimGrid's plugin."""
    check(gridsched, oracle.draw(seed, tmp_path, deploys=True), "simgrid")


# By hand: `boss` is the first of four hosts; the job of 100 s belongs on `big`, which then draws 1,000 W.

HOSTS = (("boss", "10:10:10"), ("big", "100:100:1000"), ("small", "10:10:20"), ("other", "10:10:20"))
ROW = "1|0|100|5|1|2|cpu=2,node=1|COMPLETED|big|c"


@pytest.fixture
def files(tmp_path):
    """Write platform, log, partitions, a slurm.conf and a deployment."""
    hosts = "".join(
        f'<host id="{name}" speed="1Gf" core="2"><prop id="wattage_per_state" value="{watts}"/></host>'
        for name, watts in HOSTS
    )
    (tmp_path / "p.xml").write_text(f'{oracle.HEAD}<zone id="c" routing="Full">{hosts}</zone></platform>')
    actors = '<actor host="boss" function="master"/>'
    actors += "".join(f'<actor host="{name}" function="worker"/>' for name, _ in HOSTS[1:])
    (tmp_path / "d.xml").write_text(f"{oracle.HEAD}{actors}</platform>")
    head = "JobIDRaw|Submit|ElapsedRaw|TimelimitRaw|NNodes|AllocCPUS|AllocTRES|State|NodeList|Partition"
    (tmp_path / "log.sacct").write_text(f"{head}\n{ROW}\n")
    (tmp_path / "p.toml").write_text('[[partition]]\nname = "c"\nnodes = ["big"]\n')
    (tmp_path / "slurm.conf").write_text(
        "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nNodeName=boss,big,small,other CPUs=2\n"
        "PartitionName=c Nodes=big,boss MaxTime=INFINITE\n"
    )
    return tmp_path


ROLES = [
    ("reference", "--master", "boss"),
    pytest.param("simgrid", "--master", "boss", marks=needs_simgrid),
    pytest.param("simgrid", "--deployment", "d.xml", marks=needs_simgrid),
]


@pytest.mark.parametrize(("driver", "option", "value"), ROLES)
@pytest.mark.parametrize(
    "machine",
    [
        ("--allocation", "cores", "--partitions", "p.toml"),
        ("--allocation", "nodes", "--partitions", "p.toml"),
        ("--slurm-conf", "slurm.conf"),
    ],
)
def test_by_hand(gridsched, files, driver, option, value, machine):
    """1,000 W for 100 s, and twice 10 W beside it; `boss` is in no total, and a line names it in slurm.conf."""
    words = [str(files / word) if "." in word else word for word in (option, value, *machine)]
    inputs = ["--platform", files / "p.xml", "--workload", files / "log.sacct", "--scheduler", "fcfs"]
    outcome = gridsched("run", *inputs, "--driver", driver, *words, "--json", "--export", files / "out")
    assert outcome.status == 0, outcome
    assert outcome.json["energy_model_j"] == pytest.approx(102_000)
    placed, energy = oracle.exported(files / "out")
    assert placed["1"] == (["big"], 0.0, 100.0)
    assert {name: float(row["model_j"]) for name, row in energy.items()} == pytest.approx(
        {"boss": 1000, "big": 100_000, "small": 1000, "other": 1000}
    )
    assert ("1 node of partitions (boss)" in outcome.err) == (machine[0] == "--slurm-conf")


def test_a_partition_needs_a_host_that_computes(refused, files):
    """One line names the partition and its host."""
    inputs = ["--platform", files / "p.xml", "--workload", files / "log.sacct", "--scheduler", "fcfs"]
    said = refused("run", *inputs, "--driver", "reference", "--partitions", files / "p.toml", "--master", "big")
    assert "partition 'c'" in said
    assert "big" in said


@needs_simgrid
def test_a_deployment_that_simgrid_refuses(refused, files):
    """One line names the file, not SimGrid's error in C++."""
    text = (files / "d.xml").read_text()
    (files / "d.xml").write_text(text[text.index("<platform") :])
    words = ["--platform", files / "p.xml", "--workload", files / "log.sacct", "--scheduler", "fcfs"]
    assert "d.xml" in refused("run", *words, "--partitions", files / "p.toml", "--deployment", files / "d.xml")


def test_a_machine_of_the_log_may_have_a_master(gridsched, files):
    """Of two nodes one computes: a job of both is left out, the other runs on the second."""
    with (files / "log.sacct").open("a") as stream:
        stream.write("2|0|100|5|2|4|cpu=4,node=2|COMPLETED||\n")
    inputs = ["--workload", files / "log.sacct", "--nodes", 2, "--scheduler", "fcfs", "--driver", "reference"]
    outcome = gridsched("run", *inputs, "--master", "n0", "--export", files / "out")
    assert outcome.status == 0, outcome
    assert oracle.exported(files / "out")[0] == {"1": (["n1"], 0.0, 100.0)}


def test_zones_keep_their_hosts(files):
    """Host `boss` has the property, and another is the master: it computes where its file has it."""
    head = '<host id="boss" speed="1Gf" core="2">'
    text = (files / "p.xml").read_text().replace(head, f'{head}<prop id="role" value="master"/>')
    (files / "p.xml").write_text(text)
    platform = read_platform(files / "p.xml")
    assert [host.name for host in platform.hosts] == ["big", "small", "other"]
    other = platform.with_master("small")
    assert [host.name for host in other.hosts] == ["boss", "big", "other"]
    assert [(cluster.name, cluster.hosts) for cluster in other.clusters] == [("c", (0, 1, 2))]
    assert other.with_master("boss") == platform


def test_times_by_host_need_none_for_the_master(gridsched, tmp_path):
    """The example of HEFT's paper, 80 s, with a fourth host that computes nothing and has no column."""
    text = (ROOT / "examples" / "topcuoglu.xml").read_text()
    front = '<host id="front" speed="1f"><prop id="wattage_per_state" value="1:1:1"/></host>'
    (tmp_path / "p.xml").write_text(text.replace('<host id="P1"', f'{front}<host id="P1"'))
    words = ["--workload", ROOT / "examples" / "topcuoglu.toml", "--scheduler", "heft", "--driver", "reference"]
    outcome = gridsched("run", "--platform", tmp_path / "p.xml", *words, "--master", "front", "--json")
    assert outcome.json["makespan_s"] == 80


def test_machines_of_a_workload_all_compute(refused):
    """Their times are by host: without the first, the others would have those of their neighbors."""
    words = ["--workload", ROOT / "examples" / "utility_small.toml", "--scheduler", "wq", "--driver", "reference"]
    assert "types" in refused("run", *words, "--master", "special1-1")


# From Python: a platform that has partitions already, and times by host.


def of_four(**others) -> Platform:
    """Hosts h0 to h3."""
    hosts = tuple(Host(f"h{k}", (PState(1.0, 1, 1, 10),), cores=2) for k in range(4))
    return Platform(hosts, (Cluster("c", (0, 1, 2, 3)),), **others)


def a_job(partition: list[int]) -> Tasks:
    """One job of a node."""
    return make_tasks([5.0], width=[1], demand=[[2]], resources=(CORES,), partition=partition, requested_time_s=[5.0])


def test_partitions_are_renumbered():
    """The job's partition is that of h2, which is host 1 without h0."""
    platform = of_four(partitions=(Partition("a", (0, 1)), Partition("b", (2,))))
    tasks = a_job(partition=[1])
    result = run(Scenario(platform, tasks, "fcfs", driver="reference", master="h0"))
    assert [host.name for host in result.trace.platform.hosts] == ["h1", "h2", "h3"]
    assert result.trace.hosts_of(0).tolist() == [1]
    with pytest.raises(InputError, match="partition 'b'"):
        platform.with_master("h2")


def test_times_by_number_of_host_are_refused():
    """Host 2 would be another one; with the times of the hosts that compute all is well."""
    platform, tasks = of_four(), a_job(partition=[0])
    times = LoggedRunTimes(platform, np.array([5.0]))
    with pytest.raises(InputError, match=r"--master h0: .* run_times"):
        run(Scenario(platform, tasks, "fcfs", run_times=times, driver="reference", master="h0"))
    apart = platform.with_master("h0")
    times = LoggedRunTimes(apart, np.array([5.0]))
    result = run(Scenario(apart, tasks, "fcfs", run_times=times, driver="reference", master="h0"))
    assert result.trace.hosts_of(0).tolist() == [0]
