"""Rigid jobs, and jobs that share nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.errors import InputError
from gridsched.model.platform import Cluster, Host, Platform, PState, homogeneous_cluster
from gridsched.platform_io.hostlists import expand_hostlist
from gridsched.platform_io.xml_reader import read_platform
from gridsched.platform_io.xml_writer import write_platform
from gridsched.runs.run import run
from gridsched.scenario import Scenario
from gridsched.testing.agreement import metered_differences, trace_differences
from gridsched.workloads.generators import checked_parameters
from gridsched.workloads.rigid_jobs import RigidJobs, draw_rigid_jobs, generate_rigid_jobs
from gridsched.workloads.traces.trace_options import TraceOptions
from gridsched.workloads.traces.trace_system import trace_system

# The generator kind rigid_jobs: what is drawn, what it refuses, and runs on it.


def test_what_the_distributions_say():
    """Run times, sizes and requests of 20,000 jobs, each within four standard errors."""
    jobs = draw_rigid_jobs(RigidJobs(jobs=20_000, seed=3))
    run, asked = jobs.run_time_s, jobs.requested_time_s
    assert (run == np.floor(run)).all()
    assert run.min() >= 1
    assert run.max() <= 86_400
    logs = np.log(run[run < 86_400])
    assert np.median(logs) == pytest.approx(np.log(1800), abs=4 * 1.2533 * 1.2 / 20_000**0.5)
    assert logs.std() == pytest.approx(1.2, rel=0.03)
    sizes, counts = np.unique(jobs.width, return_counts=True)
    assert sizes.tolist() == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert counts / 20_000 == pytest.approx([1 / 9] * 9, abs=4 * (1 / 9 * 8 / 9 / 20_000) ** 0.5)
    assert (asked == np.floor(asked)).all()
    assert ((asked >= run) & (asked < 5 * run + 1)).all()
    long = run > 1000  # rounding up adds nothing to speak of
    assert (asked / run)[long].mean() == pytest.approx(3.0, abs=4 * (16 / 12 / long.sum()) ** 0.5)
    gaps = np.diff(jobs.submit_time_s)
    offered = (run * jobs.width).mean() / (gaps.mean() * 1024)
    assert offered == pytest.approx(0.9, rel=4 / 20_000**0.5)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.05)  # as exponential times have it


def test_by_hand():
    """Nothing spread: 1.5 s become 2 s, requests are three times that, each job is alone."""
    jobs = draw_rigid_jobs(
        RigidJobs(jobs=3, nodes=2, run_time_median_s=1.5, run_time_sigma=0, widest_job=1, estimate_factor=(3, 3))
    )
    assert jobs.run_time_s.tolist() == [2, 2, 2]
    assert jobs.requested_time_s.tolist() == [6, 6, 6]
    assert jobs.width.tolist() == [1, 1, 1]
    assert jobs.submit_time_s[0] == 0
    assert jobs.nodes_of_header == 2
    cut = draw_rigid_jobs(RigidJobs(jobs=3, run_time_sigma=0, longest_run_time_s=60.5))
    assert cut.run_time_s.tolist() == [60, 60, 60]


def test_another_load_moves_arrivals_alone():
    """Loads can be compared job by job; replicates differ in everything."""
    low, high = (draw_rigid_jobs(RigidJobs(jobs=50, load=load)) for load in (0.45, 0.9))
    assert np.array_equal(low.run_time_s, high.run_time_s)
    assert low.submit_time_s == pytest.approx(2 * high.submit_time_s)
    other = draw_rigid_jobs(RigidJobs(jobs=50, replicate=1))
    assert not np.array_equal(other.width, high.width)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"widest_job": 48}, "widest_job is 48; it should be a power of two"),
        ({"nodes": 100}, "widest_job is 256; the cluster has 100 nodes"),
        ({"estimate_factor": [0.5, 2]}, "estimate_factor begins with 0.5; estimates are upper"),
        ({"busy_w": 50.0}, "busy_w is 50; it must be at least idle_w, 95 W"),
        ({"load": 0}, "load is 0; it should be greater than 0"),
        ({"jobs": 0}, "jobs is 0; it should be greater than or equal to 1"),
    ],
)
def test_what_is_refused(keys, words):
    """In one line, before anything is drawn."""
    with pytest.raises(InputError, match=words):
        checked_parameters({"kind": "rigid_jobs", **keys}, "jobs.toml")


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
def test_both_drivers_agree_on_it():
    """Sixty jobs under EASY: the same starts and nodes, joules of the plugin node by node."""
    made = generate_rigid_jobs(RigidJobs(jobs=60, nodes=24, widest_job=16))
    scenarios = [
        Scenario(None, made.tasks, "easy_backfilling", driver=driver).with_system(made)
        for driver in ("reference", "simgrid")
    ]
    expected, found = map(run, scenarios)
    assert trace_differences(expected.trace, found.trace) == []
    assert metered_differences(found) == []
    summary = expected.summary()
    assert summary["tasks_finished"] == 60
    assert 0 < summary["utilisation"] < 1
    busy_j = summary["busy_time_s"] * (190.738 - 95.0)
    assert summary["energy_model_j"] == pytest.approx(24 * 95.0 * summary["horizon_s"] + busy_j)


# Jobs of logs on nodes that they share: what they take, and which partition takes them.

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
HEAD = "JobIDRaw|Submit|ElapsedRaw|TimelimitRaw|NNodes|AllocCPUS|ReqMem|AllocTRES|Partition|User|State"


def sacct(folder: Path, *rows: str) -> Path:
    """Write a log of jobs of 60 s that ask for 2 minutes, given nodes|cpus|memory|tres|partition."""
    lines = [f"{k}|{k}|60|2|{row}|u{k % 2}|COMPLETED" for k, row in enumerate(rows, start=1)]
    path = folder / "log.sacct"
    path.write_text("\n".join([HEAD, *lines]) + "\n")
    return path


def machine() -> object:
    return read_platform(EXAMPLES / "shared_nodes.xml")


def table(folder: Path, text: str) -> Path:
    path = folder / "partitions.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("row", "width", "anywhere", "need"),
    [
        ("2|8|4Gn||batch", 2, False, {"cores": 4, "memory_mb": 4096}),
        ("2|8|2Gc||batch", 2, False, {"cores": 4, "memory_mb": 8192}),
        ("2|8|9G||batch", 2, False, {"cores": 4, "memory_mb": 4608}),
        ("2|7|3M||batch", 2, False, {"cores": 4, "memory_mb": 2}),
        ("2|8|1Gn|cpu=6,mem=5121M,node=2,gres/gpu=3|gpu", 2, False, {"cores": 3, "memory_mb": 2561, "gpu": 2}),
        ("3||||batch", 3, True, {"cores": 1}),
    ],
)
def test_what_a_job_of_slurm_takes(tmp_path, row, width, anywhere, need):
    """Amounts of the whole job are divided by its nodes and rounded up; without CPUs cores lie anywhere."""
    options = TraceOptions(allocation="cores", partitions=EXAMPLES / "shared_nodes.toml")
    made = trace_system(sacct(tmp_path, row), options, machine())
    assert not made.jobs.notes
    tasks = made.system.tasks
    shared = tasks.parts
    assert (shared.width[0], bool(shared.anywhere[0])) == (width, anywhere)
    assert dict(zip(tasks.resources, shared.demand[0].tolist(), strict=True)) == need


def test_what_was_given_comes_before_what_was_asked_for(tmp_path):
    """Two nodes gave 6 cores to a job that had asked for 2; another was given nothing that the log records."""
    head = HEAD.replace("AllocTRES", "AllocTRES|ReqTRES")
    rows = ["1|0|60|2|2||1G|cpu=6|cpu=2|batch|u|COMPLETED", "2|0|60|2|2||1G||cpu=2|batch|u|COMPLETED"]
    (tmp_path / "log.sacct").write_text("\n".join([head, *rows]) + "\n")
    tasks = trace_system(tmp_path / "log.sacct", TraceOptions(allocation="cores"), machine()).system.tasks
    assert tasks.demand[:, 0].tolist() == [3, 1]


# Types of GPUs, and of any resource.

#: a1 has 4 of type v100, a2 4 of type a100, m 4 of one and 2 of the other, and files of 844 G.
OF_TYPES = """
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu,tmp
NodeName=a1 CPUs=32 Gres=gpu:v100:4
NodeName=a2 CPUs=32 Gres=gpu:a100:4(S:0-1)
NodeName=m CPUs=32 Gres=gpu:a100:4(IDX:0,1),gpu:v100:2,tmp:844G
PartitionName=two Nodes=a[1-2] Default=YES
PartitionName=one Nodes=m
PartitionName=first Nodes=a1
"""


def on_types(folder: Path, *rows: str, asked: str = "", platform: str | None = None):
    """Return jobs of 100 s with 2 cores, given tres|partition, on the nodes above or on a platform file."""
    head = "JobIDRaw|Submit|ElapsedRaw|TimelimitRaw|NNodes|AllocCPUS|ReqTRES|AllocTRES|Partition|State"
    lines = [f"{k}|{k - 1}|100|5|1|2|{asked}|cpu=2,node=1,{row}|COMPLETED" for k, row in enumerate(rows, start=1)]
    (folder / "types.sacct").write_text("\n".join([head, *lines]) + "\n")
    if platform is None:
        (folder / "slurm.conf").write_text(OF_TYPES)
        return trace_system(folder / "types.sacct", TraceOptions(slurm_conf=folder / "slurm.conf"))
    (folder / "p.xml").write_text(platform)
    return trace_system(folder / "types.sacct", TraceOptions(allocation="cores"), read_platform(folder / "p.xml"))


def starts(made, driver: str = "reference") -> list[tuple[float, str]]:
    """Return the start of each job under FCFS, and its node."""
    scenario = Scenario(None, made.system.tasks, "fcfs", driver=driver).with_system(made.system)
    trace = run(scenario).trace
    names = [host.name for host in trace.platform.hosts]
    rows = sorted(range(len(trace.executions)), key=lambda k: trace.executions["task"][k])
    return [(float(trace.executions["start"][k]), names[trace.hosts_of(k).item()]) for k in rows]


@pytest.mark.parametrize(
    "driver",
    ["reference", pytest.param("simgrid", marks=pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL))],
)
def test_a_type_is_a_resource_of_its_own(tmp_path, driver):
    """Two jobs for all a100 wait for each other; the untyped number beside it counts the same devices."""
    made = on_types(tmp_path, "gres/gpu:a100=4,gres/gpu=4|two", "gres/gpu=4,gres/gpu:a100=4|two")
    assert starts(made, driver) == [(0.0, "a2"), (100.0, "a2")]
    assert made.system.tasks.resources == ("cores", "gpu", "gpu:a100")
    assert made.system.tasks.demand.tolist() == [[2, 4, 4]] * 2


def test_who_asks_for_no_type_takes_any(tmp_path):
    """Also where it was given some of a type; five of one type, or of a type that is not there, fit nowhere."""
    untyped = on_types(tmp_path, "gres/gpu=4|two", "gres/gpu=4|two")
    assert starts(untyped) == [(0.0, "a1"), (1.0, "a2")]
    given = on_types(tmp_path, "gres/gpu:a100=4,gres/gpu=4|two", "gres/gpu:a100=4,gres/gpu=4|two", asked="gres/gpu=4")
    assert starts(given) == [(0.0, "a1"), (1.0, "a2")]
    asked = on_types(tmp_path, *["gres/gpu:a100=4,gres/gpu=4|two"] * 2, asked="gres/gpu=4,gres/gpu:a100=4")
    assert starts(asked) == [(0.0, "a2"), (100.0, "a2")]
    none = on_types(tmp_path, "gres/gpu:a100=5,gres/gpu=5|one", "gres/gpu:h100=1|one", "gres/gpu:a100=1|one")
    assert none.jobs.job.tolist() == [3]


def test_all_types_of_a_node_together(tmp_path):
    """Of 4 a100 and 2 v100: 4 a100 and 2 of any type at once; then neither 1 v100 nor 1 of any type."""
    rows = ["gres/gpu:a100=4|one", "gres/gpu=2|one", "gres/gpu:v100=1|one", "gres/gpu=6|one"]
    assert [start for start, _ in starts(on_types(tmp_path, *rows))] == [0.0, 1.0, 100.0, 200.0]


def test_numbers_with_suffixes(tmp_path):
    """844 G of files: 800 G and 44 G at once, one byte more waits."""
    rows = ["gres/tmp=800G|one", "gres/tmp=44G|one", "gres/tmp=1|one", f"gres/tmp={844 * 2**30}|one"]
    assert [start for start, _ in starts(on_types(tmp_path, *rows))] == [0.0, 1.0, 100.0, 200.0]


def test_types_of_a_platform_file(tmp_path):
    """The property has the same units, and is written as it was read; types that no node lists have a line."""
    text = (
        "<?xml version='1.0'?><!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">"
        '<platform version="4.1"><zone id="two" routing="Full">'
        '<host id="a" speed="1Gf" core="4"><prop id="wattage_per_state" value="1:1:2"/>'
        '<prop id="resources" value="gpu:v100:1,gpu:a100:2,gpu:1,tmp:2K"/></host>'
        '<host id="b" speed="1Gf" core="4"><prop id="wattage_per_state" value="1:1:2"/>'
        '<prop id="resources" value="gpu:4"/></host></zone></platform>'
    )
    made = on_types(tmp_path, "gres/gpu:a100=2,gres/gpu=2|two", "gres/gpu=3|two", platform=text)
    assert starts(made) == [(0.0, "a"), (1.0, "b")]
    platform = read_platform(tmp_path / "p.xml")
    assert dict(platform.hosts[0].resources) == {"gpu": 4, "gpu:v100": 1, "gpu:a100": 2, "tmp": 2048}
    write_platform(platform, tmp_path / "again.xml", command="test")
    assert read_platform(tmp_path / "again.xml").hosts == platform.hosts
    plain = text.replace("gpu:v100:1,gpu:a100:2,gpu:1,tmp:2K", "gpu:4")
    made = on_types(tmp_path, "gres/gpu:a100=2,gres/gpu=2|two", platform=plain)
    assert made.system.tasks.resources == ("cores", "gpu")
    assert [note for note in made.jobs.notes if "gpu:a100 of 1 job" in note]


def test_amounts_that_no_node_has(tmp_path):
    """Memory beyond 64 bits counts as none, with a line; such numbers of units are refused."""
    text = (
        "<?xml version='1.0'?><!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">"
        '<platform version="4.1"><host id="a" speed="1Gf"><prop id="wattage_per_state" value="1:1:2"/>'
        '<prop id="NAME" value="999999999999P"/></host></platform>'
    )
    (tmp_path / "p.xml").write_text(text.replace("NAME", "memory"))
    platform = read_platform(tmp_path / "p.xml")
    assert platform.hosts[0].resources == ()
    assert any("memory" in warning for warning in platform.warnings)
    (tmp_path / "p.xml").write_text(text.replace("NAME", "resources").replace("999", "gpu:999"))
    with pytest.raises(InputError, match="gpu"):
        read_platform(tmp_path / "p.xml")


def test_generic_resources_of_each_node(tmp_path):
    """As Slurm listed them before 21.08: with types, and suffixes."""
    (tmp_path / "slurm.conf").write_text(OF_TYPES)
    head = "JobIDRaw|Submit|ElapsedRaw|TimelimitRaw|NNodes|AllocCPUS|ReqGRES|Partition|State"
    rows = ["1|0|100|5|1|2|gpu:a100:3|one|COMPLETED", "2|0|100|5|1|2|gres/gpu:1,tmp:1K|one|COMPLETED"]
    (tmp_path / "log.sacct").write_text("\n".join([head, *rows]) + "\n")
    tasks = trace_system(tmp_path / "log.sacct", TraceOptions(slurm_conf=tmp_path / "slurm.conf")).system.tasks
    assert tasks.resources == ("cores", "gpu", "gpu:a100", "tmp")
    assert tasks.demand.tolist() == [[2, 3, 3, 0], [2, 1, 0, 1024]]


def test_so_many_nodes_are_those_with_most_room(tmp_path):
    """Of processors with 8 GB each a node of 256 GB takes 32, one of 128 GB only 16."""
    log = tmp_path / "log.swf"
    fields = "{} 0 -1 60 {} -1 -1 {} 120 8388608 1 7 1 -1 -1 -1 -1 -1\n"
    log.write_text("".join(fields.format(k, n, n) for k, n in enumerate((20, 33), start=1)))
    text = '[[partition]]\nname = "a"\nnodes = ["t0", "g0"]\nmax_nodes = 1\n'
    options = TraceOptions(allocation="cores", partitions=table(tmp_path, text))
    assert trace_system(log, options, machine()).jobs.job.tolist() == [1]


def test_who_takes_a_job(tmp_path):
    """Its own partition, by any name; without one the default, or the first with room; else none."""
    log = sacct(
        tmp_path,
        "1|4|1G||gpu",
        "1|4|1G||fat",
        "1|4|1G||",
        "1|4|500G||",
        "1|4|500G||batch",
        "1|4|1G||other",
        "1|4|1G||gpu,batch",
    )
    options = TraceOptions(allocation="cores", partitions=EXAMPLES / "shared_nodes.toml")
    made = trace_system(log, options, machine())
    names = [made.system.platform.partitions[k].name for k in made.system.tasks.partition.tolist()]
    assert dict(zip(made.jobs.job.tolist(), names, strict=True)) == {
        1: "gpu",
        2: "bigmem",
        3: "batch",
        4: "bigmem",
        7: "batch",
    }
    assert [(each.count, each.lines) for each in made.jobs.dropped] == [(1, (7,)), (1, (6,))]
    absent, large = (each.reason for each in made.jobs.dropped)
    assert "1 of 'other'" in absent
    assert "log_names" in absent
    assert "1 of 'batch'" in large


def test_why_no_partition_takes_a_job(tmp_path):
    """Too long, too large, not there, and without a node of its features: each with counts and the partition's name."""
    text = "SelectType=select/cons_tres\nNodeName=n[1-2] CPUs=4 Feature=ib\n"
    text += "PartitionName=short Nodes=n1 MaxTime=1\nPartitionName=long Nodes=n[1-2]\n"
    (tmp_path / "slurm.conf").write_text(text)
    head = "JobIDRaw|Submit|ElapsedRaw|TimelimitRaw|NNodes|AllocCPUS|Constraints|Partition|State"
    rows = ["1|4||short", "1|4||short", "3|4||long", "1|9||long", "1|4||7", "1|4|gpu|long", "1|4|ib|long"]
    lines = [f"{k}|{k}|60|2|{row}|COMPLETED" for k, row in enumerate(rows, start=1)]
    (tmp_path / "log.sacct").write_text("\n".join([head, *lines]) + "\n")
    made = trace_system(tmp_path / "log.sacct", TraceOptions(slurm_conf=tmp_path / "slurm.conf"))
    assert made.jobs.job.tolist() == [7]
    found = [(each.count, each.reason) for each in made.jobs.dropped]
    for (count, reason), (n, words) in zip(
        found,
        [(1, "1 of '7'"), (1, "1 of 'long'"), (2, "2 of 'short' of at most 60 s"), (2, "2 of 'long'")],
        strict=True,
    ):
        assert count == n
        assert words in reason


def test_limits_of_time_and_size(tmp_path):
    """Jobs of 2 minutes and of 8 cores: beyond the limits of the first partition."""
    text = """
        [[partition]]
        name = "short"
        nodes = ["t0"]
        max_time_s = 60
        [[partition]]
        name = "small"
        nodes = ["t0", "t1"]
        max_cores = 4
        [[partition]]
        name = "rest"
        nodes = ["t*"]
        max_nodes = 2
    """
    options = TraceOptions(allocation="cores", partitions=table(tmp_path, text))
    log = sacct(tmp_path, "1|4|||", "1|8|||", "2|8|||", "3|8|||")
    made = trace_system(log, options, machine())
    names = [made.system.platform.partitions[k].name for k in made.system.tasks.partition.tolist()]
    assert names == ["small", "rest", "rest"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("login", ["login"]),
        ("node[08-10]", ["node08", "node09", "node10"]),
        ("node[1-3]", ["node1", "node2", "node3"]),
        ("a[1-3,7],b[2], c", ["a1", "a2", "a3", "a7", "b2", "c"]),
        ("r[1-2]n[09-10].x", ["r1n09.x", "r1n10.x", "r2n09.x", "r2n10.x"]),
        ("a[1,1],a1", ["a1"]),
        ("gpu[1-2]-*,t?", ["gpu1-*", "gpu2-*", "t?"]),
        ("n[098-101]", ["n098", "n099", "n100", "n101"]),
        ("[1-2]", ["1", "2"]),
    ],
)
def test_host_lists_of_slurm(text, names):
    """Ranges, their zeros, several brackets, commas inside and outside them; patterns stay."""
    assert expand_hostlist(text) == names


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("n[1-3", "brackets"),
        ("n1-3]", "brackets"),
        ("n[[1-3]]", "brackets"),
        ("n[3-1]", "3-1"),
        ("n[!a]", "!a"),
        ("n[1-2-3]", "1-2-3"),
        ("n[]", "number"),
        ("n[1,]", "number"),
        ("n[\u0663]", "number"),
        ("a,,b", "0 characters"),
        ("", "0 characters"),
        ("n[0-1000000]", "1,000,000"),
        ("n[1-1000][1-1000],m", "1,000,000"),
        ("n[1-999999999999999999][1-999999999999999999]", "1,000,000"),
        ("x" * 300 + "[1-1000000]", "300|301|307"),
        ("[" * 100_000, "brackets"),
        ("," * 100_000, "0 characters"),
    ],
)
def test_what_is_no_host_list(text, word):
    """Refused before anything is expanded: brackets, ranges, sizes."""
    with pytest.raises(InputError, match=word):
        expand_hostlist(text)


def test_partitions_take_host_lists(tmp_path):
    """`node[1-12]` is twelve nodes, not node1 and node2: a job of nine has room; a node too many is named."""
    platform = homogeneous_cluster(12, idle_w=1, busy_w=2)  # n0 to n11
    text = '[[partition]]\nname = "batch"\nnodes = ["{}"]\n'
    log = sacct(tmp_path, "9|9|||batch", "12|12|||batch")
    for nodes, n_hosts, jobs in (("n[0-11]", 12, [1, 2]), ("n[0-4],n[7-9],n1?", 10, [1])):
        found = trace_system(log, TraceOptions(partitions=table(tmp_path, text.format(nodes))), platform)
        assert (len(found.system.platform.partitions[0].hosts), found.jobs.job.tolist()) == (n_hosts, jobs)
    for wrong, word in (("n[0-12]", "'n12'"), ("n[01-11]", "'n01'"), ("n[!1]", "'!1'")):
        with pytest.raises(InputError, match=word):
            trace_system(log, TraceOptions(partitions=table(tmp_path, text.format(wrong))), platform)


def test_what_was_asked_is_held_against_the_longest_time(tmp_path):
    """Of jobs that a partition of 2 minutes runs for 135 s: out if they asked for more."""
    rows = [f"{k}|{k}|{run_s}|{asked}|1|4|||a|u|TIMEOUT" for k, run_s, asked in ROWS_OF_TIMES]
    log = tmp_path / "log.sacct"
    log.write_text("\n".join([HEAD, *rows]) + "\n")
    text = '[[partition]]\nname = "a"\nnodes = ["t0"]\nmax_time_s = 120\n'
    made = trace_system(log, TraceOptions(allocation="cores", partitions=table(tmp_path, text)), machine())
    assert made.jobs.job.tolist() == [1, 2, 4, 5]
    assert made.system.tasks.requested_time_s.tolist() == [135, 120, 135, 120]  # what is known of them is as before


#: Number, run time [s] and limit [min] of jobs.
ROWS_OF_TIMES = [(1, 135, "2"), (2, 60, "2"), (3, 60, "3"), (4, 135, "UNLIMITED"), (5, 120, "UNLIMITED")]


@pytest.mark.parametrize("partitions", [False, True])
@pytest.mark.parametrize("name", ["log.sacct", "log.swf"])
def test_a_log_without_jobs_that_take_cores(tmp_path, name, partitions):
    """A header and no rows: no jobs, as where jobs take whole nodes."""
    log = tmp_path / name
    log.write_text(HEAD + "\n" if name.endswith("sacct") else "; MaxProcs: 4\n")
    path = table(tmp_path, '[[partition]]\nname = "a"\nnodes = ["t[0-1]"]\n') if partitions else None
    options = TraceOptions(allocation="cores", partitions=path)
    made = trace_system(log, options, machine())
    assert len(made.system.tasks) == len(made.jobs) == 0
    with pytest.raises(InputError, match="no tasks"):
        run(Scenario(machine(), log, "easy_backfilling", driver="reference", trace=options))


def test_a_job_that_no_neighbours_hold_is_left_out(tmp_path):
    """Nodes n0, n1 and n3: three of them are never neighbors; another partition takes the job if it may."""
    log = sacct(tmp_path, "3|3|||batch", "2|2|||batch", "3|3|||batch,all", "3||||batch")
    text = '[[partition]]\nname = "batch"\nnodes = ["n[0-1,3]"]\n[[partition]]\nname = "all"\nnodes = ["n[1-3]"]\n'
    options = TraceOptions(partitions=table(tmp_path, text), allocation="cores")
    platform = homogeneous_cluster(4, idle_w=1, busy_w=2)
    for placement, jobs, dropped in (("contiguous", [2, 3], (2, 5)), ("pack", [1, 2, 3, 4], ())):
        scenario = Scenario(platform, log, "easy_backfilling", driver="reference", trace=options, placement=placement)
        result = run(scenario)
        assert result.trace.tasks.labels.tolist() == jobs
        assert result.summary()["tasks_finished"] == len(jobs)
        assert sum((each.lines for each in result.scenario.left_out), ()) == dropped


def test_most_nodes_are_neighbours_too(tmp_path):
    """Three cores anywhere on at most two neighbors of 2, 1, 1 and 2 cores."""
    hosts = tuple(Host(f"n{k}", (PState(1e9, 1, 1, 2),), cores=cores) for k, cores in enumerate((2, 1, 1, 2)))
    platform = Platform(hosts, (Cluster("all", (0, 1, 2, 3)),))
    text = '[[partition]]\nname = "a"\nnodes = ["n*"]\nmax_nodes = 2\n'
    options = TraceOptions(partitions=table(tmp_path, text), allocation="cores")
    log = sacct(tmp_path, "3||||a", "4||||a")
    assert trace_system(log, options, platform).jobs.job.tolist() == [1, 2]
    assert trace_system(log, options, platform, placement="contiguous").jobs.job.tolist() == [1]


def test_numbers_of_swf_have_names_in_the_table(tmp_path):
    """Partition 2 and queue 5 of a log; its processors are cores anywhere, with 2 GB each."""
    fields = "{} 0 -1 60 3 -1 -1 3 120 {} 1 7 1 -1 {} {} -1 -1"
    log = tmp_path / "log.swf"
    log.write_text("\n".join([fields.format(1, 2097152, -1, 2), fields.format(2, -1, 5, -1)]) + "\n")
    text = """
        [[partition]]
        name = "a"
        nodes = ["t*"]
        log_names = ["queue 5"]
        [[partition]]
        name = "b"
        nodes = ["f*"]
        log_names = ["2"]
    """
    options = TraceOptions(allocation="cores", partitions=table(tmp_path, text))
    tasks = trace_system(log, options, machine()).system.tasks
    assert tasks.partition.tolist() == [1, 0]
    assert tasks.parts.anywhere.all()
    assert tasks.demand.tolist() == [[1, 2048], [1, 0]]


def test_whole_nodes_of_several_cores(tmp_path):
    """Without --allocation cores a job has all cores of its nodes."""
    log = sacct(tmp_path, "1|4|1G||", "1|4|1G||")
    text = '[[partition]]\nname = "a"\nnodes = ["t0"]\n'
    scenario = Scenario(
        EXAMPLES / "shared_nodes.xml",
        log,
        "fcfs",
        driver="reference",
        trace=TraceOptions(partitions=table(tmp_path, text)),
    )
    with pytest.raises(InputError, match="32 to 64 cores"):
        run(scenario)


SIX_OF_FOUR_CORES = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="z" routing="Full"><cluster id="c" prefix="n" suffix="" radical="0-5" speed="1Gf"
core="4" bw="1GBps" lat="1us"><prop id="wattage_per_state" value="95:120:190"/></cluster></zone></platform>
"""


def test_jobs_that_only_cores_hold(tmp_path):
    """Of 6 nodes of 4 cores: 6 fit as nodes, 24 as cores alone, 25 as neither; the message names the option."""
    platform = tmp_path / "p.xml"
    platform.write_text(SIX_OF_FOUR_CORES)
    log = tmp_path / "log.swf"
    log.write_text(
        "".join(f"{k} {k} -1 60 {w} -1 -1 {w} 120 -1 1 1 1 -1 1 1 -1 -1\n" for k, w in ((1, 6), (2, 24), (3, 25)))
    )
    whole = trace_system(log, TraceOptions(), read_platform(platform)).jobs
    assert whole.job.tolist() == [1]
    advised, other = whole.dropped
    assert (advised.lines, other.lines) == ((2,), (3,))
    assert "--allocation cores" in str(advised)
    assert "--allocation" not in str(other)
    shared = trace_system(log, TraceOptions(allocation="cores"), read_platform(platform)).jobs
    assert shared.job.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "partition"),
        ("[[partition]]\nname = 'a'", "'nodes'"),
        ("[[partition]]\nname = 'a'\nnodes = ['z*']", "'z*'"),
        ("[[partition]]\nname = 'a'\nnodes = ['t*']\nmax_time = 3", "'max_time'"),
        ("[[partition]]\nname = 'a'\nnodes = ['t*']\nmax_time_s = -3", "max_time_s"),
        ("[[partition]]\nname = 'a'\nnodes = ['t*']\n" * 2, "'a'"),
        ("[[partition]]\nname = 'a'\nnodes = ['t*', 'f*']", "t0"),
        ("partition = 3", "partition"),
    ],
)
def test_wrong_tables_are_refused(tmp_path, text, words):
    """One line names the file and what is wrong: a key, a pattern without nodes, two speeds."""
    log = sacct(tmp_path, "1|4|1G||")
    scenario = Scenario(
        EXAMPLES / "shared_nodes.xml",
        log,
        "fcfs",
        driver="reference",
        trace=TraceOptions(allocation="cores", partitions=table(tmp_path, text)),
    )
    with pytest.raises(InputError, match=words.replace("*", r"\*")):
        run(scenario)


def test_the_example_is_what_its_program_prints():
    """The log of examples/ is made, and anybody can make it again."""
    import subprocess
    import sys

    made = subprocess.run([sys.executable, EXAMPLES / "shared_nodes.py"], check=True, capture_output=True, text=True)
    assert made.stdout == (EXAMPLES / "shared_nodes.sacct").read_text()


def test_groups_of_a_run_by_hand(tmp_path):
    """Two users on one node of 32 cores: the second job waits 60 s; Jain's index of slowdowns 1 and 2."""
    log = sacct(tmp_path, "1|32|1G||", "1|32|1G||")
    text = '[[partition]]\nname = "a"\nnodes = ["t0"]\n'
    options = TraceOptions(allocation="cores", partitions=table(tmp_path, text))
    result = run(Scenario(EXAMPLES / "shared_nodes.xml", log, "fcfs", driver="reference", trace=options))
    one = result.groups("partition")[0]
    assert one["jobs"] == 2
    assert one["core_hours"] == pytest.approx(2 * 32 / 60)
    assert one["utilisation_cores"] == pytest.approx(1.0)
    assert one["unfairness_s"] == 0.0
    by_user = {row["group"]: row for row in result.groups("user")}
    assert by_user["u1"]["mean_waiting_time_s"] == 0.0
    assert by_user["u0"]["mean_waiting_time_s"] == pytest.approx(59.0)
    slow = 119 / 60
    assert result.metrics()["user_fairness"] == pytest.approx((1 + slow) ** 2 / (2 * (1 + slow**2)))
    with pytest.raises(InputError, match="colour"):
        result.groups("colour")


# Constraints of jobs, and accounting as it was printed before 21.08.

OLD_HEAD = "JobID|Submit|Elapsed|Timelimit|NNodes|NCPUS|ReqMem|ReqGRES|Partition|User|State|Constraints"
MACHINE = """SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
NodeName=DEFAULT CPUs=12 RealMemory=48000
NodeName=n[1-2] Feature=IB,CPU-N
NodeName=m[1-2] Feature=IB,CPU-M
NodeName=g1 Gres=gpu:2
NodeName=b1 RealMemory=512000
PartitionName=normal Nodes=ALL Default=YES
PartitionName=debug Nodes=n1 PriorityTier=3
"""


def old_log(folder: Path, *rows: str):
    """Return the system of jobs of 60 s, given nodes|cpus|memory|gres|partition|constraint."""
    lines = []
    for k, row in enumerate(rows, start=1):
        *taken, partition, constraint = row.split("|")
        lines.append(f"{k}|{k}|00:01:00|00:02:00|{'|'.join(taken)}|{partition}|u|COMPLETED|{constraint}")
    (folder / "old.sacct").write_text("\n".join([OLD_HEAD, *lines]) + "\n")
    (folder / "slurm.conf").write_text(MACHINE)
    return trace_system(folder / "old.sacct", TraceOptions(slurm_conf=folder / "slurm.conf"))


def test_accounting_as_it_was_printed(tmp_path):
    """ReqMem of each core (c) and each node (n), ReqGRES of each node, CPUs of the whole job."""
    found = old_log(
        tmp_path, "2|24|2800Mc||normal|", "1|1|500000Mn||normal|", "1|2|2800Mc|gpu:2|normal|", "1|1|1Gn|gpu:tesla:1||"
    )
    tasks = found.system.tasks
    assert tasks.resources == ("cores", "memory_mb", "gpu")
    assert tasks.demand.tolist() == [[12, 33600, 0], [1, 500_000, 0], [2, 5600, 2], [1, 1024, 1]]
    assert tasks.width.tolist() == [2, 1, 1, 1]
    assert len(found.jobs.dropped) == 0


def test_constraints_choose_parts_of_partitions(tmp_path):
    """A part of its partition is what a job may use; an impossible one leaves the job out."""
    found = old_log(
        tmp_path,
        "1|1|1Gn||normal|CPU-N",
        "1|1|1Gn||normal|IB&CPU-M",
        "1|1|1Gn||debug|CPU-N",
        "1|1|1Gn||normal|",
        "1|1|1Gn||normal|CPU-X",
        "1|1|1Gn||normal|[CPU-N|CPU-M]",
        "1|1|1Gn||debug|CPU-M",
    )
    platform, tasks = found.system.platform, found.system.tasks
    names = [host.name for host in platform.hosts]
    may_use = [[names[h] for h in platform.partitions[p].hosts] for p in tasks.partition.tolist()]
    everywhere = ["b1", "g1", "m1", "m2", "n1", "n2"]
    assert may_use == [["n1", "n2"], ["m1", "m2"], ["n1"], everywhere, everywhere]
    assert [platform.partitions[p].name for p in tasks.partition.tolist()] == [
        *["normal"] * 2,
        "debug",
        *["normal"] * 2,
    ]
    assert [(each.count, each.lines) for each in found.jobs.dropped] == [(2, (6, 8))]
    assert sum("1 job has a constraint that is not understood" in note for note in found.jobs.notes) == 1


@pytest.mark.parametrize("scheduler", ["fcfs", "easy_backfilling", "conservative_backfilling", "slurm"])
def test_jobs_run_on_nodes_of_their_constraint(tmp_path, scheduler):
    """All on CPU-N though other nodes are free: two at once, the third after them."""
    found = old_log(tmp_path, *["1|12|1Gn||normal|CPU-N"] * 3, "1|12|1Gn||normal|CPU-M")
    result = run(Scenario(None, found.system.tasks, scheduler, driver="reference").with_system(found.system))
    names = [host.name for host in found.system.platform.hosts]
    placed = {int(task): names[host] for task, host in result.trace.executions[["task", "host"]].tolist()}
    assert {placed[k] for k in range(3)} <= {"n1", "n2"}
    assert placed[3][0] == "m"
    assert sorted(result.trace.start_time_s.tolist())[-1] >= 60.0


def test_features_of_a_platform_file(tmp_path):
    """The property of a host is read, and written again."""
    text = (
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        '<zone id="z" routing="Full"><host id="a" speed="1Gf"><prop id="features" value="CPU-N, IB"/></host></zone>'
        "</platform>"
    )
    (tmp_path / "p.xml").write_text(text)
    platform = read_platform(tmp_path / "p.xml")
    assert platform.hosts[0].features == ("CPU-N", "IB")
    write_platform(platform, tmp_path / "again.xml", command="test")
    assert read_platform(tmp_path / "again.xml").hosts[0].features == ("CPU-N", "IB")
    (tmp_path / "p.xml").write_text(text.replace("CPU-N, IB", "a;b"))
    with pytest.raises(InputError, match="features"):
        read_platform(tmp_path / "p.xml")
