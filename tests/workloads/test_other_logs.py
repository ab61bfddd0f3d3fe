"""Logs of Slurm and workloads of Batsim: what is read, what is left out, and back again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched import Scenario, run
from gridsched.errors import InputError
from gridsched.model.platform import homogeneous_cluster
from gridsched.workloads.traces.batsim import read_batsim
from gridsched.workloads.traces.formats import format_of, read_jobs, write_jobs
from gridsched.workloads.traces.job_table import JobTable
from gridsched.workloads.traces.options import TraceOptions
from gridsched.workloads.traces.sacct import read_sacct
from gridsched.workloads.traces.trace_system import serial_tasks

SACCT = """\
JobIDRaw|User|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocNodes|AllocCPUS|State|ConsumedEnergyRaw
100|ann|2024-03-01T10:00:10|2024-03-01T10:01:00|2024-03-01T10:02:40|100|5|2|64|COMPLETED|123
100.batch|ann|2024-03-01T10:00:10|2024-03-01T10:01:00|2024-03-01T10:02:40|100||1|32|COMPLETED|
101|bob|2024-02-29T23:59:50|2024-03-01T00:00:00|2024-03-01T00:00:30||UNLIMITED|1|8|TIMEOUT|
102|bob|2024-03-01T10:00:00|Unknown|Unknown|0|60|0|0|CANCELLED by 1000|
103|cy|2024-03-01T10:00:00|2024-03-01T10:00:00|Unknown|999|Partition_Limit|4|128|RUNNING|
104|cy|Unknown|2024-03-01T10:00:00|2024-03-01T10:00:09|9|1|1|32|COMPLETED|
105|cy|2024-03-01T10:00:00|2024-03-01T10:00:00|2024-03-01T10:00:09|nine|1|1|32|COMPLETED|
106|cy|2024-03-01T10:00:00|a|b|c
107|cy|2024-03-01T10:00:11|2024-03-01T10:00:12|2024-03-01T10:00:19|7|Partition_Limit|3|96|FAILED|
"""
BATSIM = {
    "nb_res": 4,
    "jobs": [
        {"id": "1", "subtime": 0, "walltime": 10, "res": 3, "profile": "ten"},
        {"id": "2", "subtime": 1.5, "res": 4, "profile": "five", "walltime": 3},
        {"id": 3, "subtime": 2, "walltime": -1, "res": 1, "profile": "flops"},
        {"id": "4", "subtime": 2, "walltime": 9, "res": 1, "profile": "composed"},
        {"id": "5", "subtime": 2, "walltime": 9, "res": 1, "profile": "nowhere"},
    ],
    "profiles": {
        "ten": {"type": "delay", "delay": 10},
        "five": {"type": "delay", "delay": 5.25},
        "flops": {"type": "parallel_homogeneous", "cpu": 4e9, "com": 8},
        "composed": {"type": "composed", "seq": []},
    },
}


def file_of(folder: Path, name: str, text: str) -> Path:
    """Write a log."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_output_of_sacct_by_hand(tmp_path: Path):
    """Times over midnight and leap day, minutes of limits, steps, and each reason with its line."""
    jobs = read_sacct(file_of(tmp_path, "jobs.psv", SACCT))
    assert jobs.job.tolist() == [101, 100, 107]
    assert (jobs.submit_time_s - jobs.submit_time_s[0]).tolist() == [0, 36_020, 36_021]
    assert jobs.run_time_s.tolist() == [30, 100, 7]
    assert jobs.width.tolist() == [1, 2, 3]
    assert jobs.estimate_s.tolist() == [30, 300, 7]
    assert {each.reason.split(" (")[0]: each.lines for each in jobs.dropped} == {
        "a step of a job": (3,),
        "had not ended": (6,),
        "not of the format": (8, 9),
        "no submission time": (7,),
        "no run time greater than 0 s": (5,),
    }


def test_other_columns_of_sacct(tmp_path: Path):
    """Clock times of elapsed time and limit, a trailing bar, ids of arrays, processors as width."""
    text = (
        "JobID|Submit|Elapsed|Timelimit|NNodes|NCPUS|\n"
        "7_1|1709287200|1-02:03:04|2-00:00:00|2|64|\n"
        "7_2|1709287201|05:06|UNLIMITED|1|16|\n"
    )
    path = file_of(tmp_path, "jobs.sacct", text)
    jobs = read_jobs(path, TraceOptions())
    assert jobs.job.tolist() == [2, 3]  # by line
    assert jobs.run_time_s.tolist() == [86_400 + 7_384, 306]
    assert np.array_equal(jobs.requested_time_s, [172_800, np.nan], equal_nan=True)
    jobs = read_jobs(path, TraceOptions(nodes_from="NCPUS", procs_per_node=32))
    assert jobs.width.tolist() == [2, 1]
    with pytest.raises(InputError, match="procs_per_node has no effect: sacct tells nodes"):
        read_jobs(path, TraceOptions(procs_per_node=32))
    with pytest.raises(InputError, match=r"no column NCPU\. Did you mean 'NCPUS'"):
        read_jobs(path, TraceOptions(nodes_from="NCPU"))
    with pytest.raises(InputError, match="line 1: no column Submit"):
        read_sacct(file_of(tmp_path, "x.psv", "a|b\n1|2\n"))


def test_a_workload_of_batsim_by_hand(tmp_path: Path):
    """Delays, flops on the speed of a node, what is left out and what is not simulated."""
    path = tmp_path / "jobs.json.gz"
    path.write_bytes(gzip.compress(json.dumps(BATSIM).encode()))
    jobs = read_batsim(path, speed=2e9)
    assert jobs.job.tolist() == [1, 2, 3]
    assert jobs.submit_time_s.tolist() == [0, 1.5, 2]
    assert jobs.run_time_s.tolist() == [10, 5.25, 2]
    assert jobs.estimate_s.tolist() == [10, 5.25, 2]
    assert jobs.width.tolist() == [3, 4, 1]
    assert jobs.nodes_of_header == 4
    assert [str(each) for each in jobs.dropped] == [
        "1 job left out: profile of type 'composed'; delay and parallel_homogeneous are known",
        "1 job left out: not of the format",
    ]
    assert [note[:20] for note in jobs.notes] == ["1 jobs send bytes (c", "1 jobs run beyond th"]


@pytest.mark.parametrize("key", ["id", "subtime", "walltime", "res", "delay", "nb_res"])
@pytest.mark.parametrize("value", [10**400, -(10**400), "\u00b2", [], {}, None, True, 1e300])
def test_values_that_batsim_does_not_know(tmp_path: Path, key: str, value: object):
    """The job is left out, or counts without what is odd; the others are as they were."""
    content = json.loads(json.dumps(BATSIM))
    place = {"delay": content["profiles"]["ten"], "nb_res": content}
    place.get(key, content["jobs"][0])[key] = value
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps(content))
    jobs = read_batsim(path, speed=1e9)
    assert set(jobs.submit_time_s.tolist()) >= {1.5, 2.0}
    assert jobs.nodes_of_header in (4, None)


def test_flops_take_the_speed_of_the_platform(tmp_path: Path):
    """On nodes of 8 Gflop/s 4 Gflop take half a second; notes stand among the warnings."""
    path = file_of(tmp_path, "jobs.json", json.dumps(BATSIM))
    platform = homogeneous_cluster(4, idle_w=1, busy_w=2, speed=8e9)
    result = run(Scenario(platform, path, "fcfs", driver="reference"))
    assert result.trace.finish_time_s.tolist() == [10, 15.25, 15.75]
    assert len(result.scenario.warnings) == 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "no valid JSON"),
        ("[]", "it must be an object"),
        ('{"jobs": 3, "profiles": {}}', "it needs 'jobs', a list"),
        ('{"jobs": [], "profiles": []}', "it needs 'profiles', an object"),
        ('{"jobs": [3, null], "profiles": {}}', "most jobs lack id, subtime"),
        ("[" * 100_000, "no valid JSON"),
    ],
)
def test_what_is_no_workload_of_batsim(tmp_path: Path, text: str, words: str):
    """One line each."""
    with pytest.raises(InputError, match=words):
        read_batsim(file_of(tmp_path, "x.json", text), speed=1e9)


times = st.one_of(st.integers(1, 10**8).map(float), st.floats(0.01, 1e8))


@settings(max_examples=30)
@given(rows=st.lists(st.tuples(times, times, st.integers(1, 10**6), times), max_size=10))
def test_jobs_written_for_batsim_read_back(tmp_path_factory: pytest.TempPathFactory, rows):
    """Every digit, requests that are not known, and the size of the machine."""
    columns = [np.array(each, dtype=float) for each in zip(*rows, strict=True)] or [np.zeros(0)] * 4
    requested = np.where(columns[3] < 1e4, np.nan, columns[3])
    table = JobTable(
        np.arange(1, len(rows) + 1),
        columns[0],
        columns[1],
        columns[2].astype(np.int64),
        requested,
        header={"MaxProcs": "77"},
    ).in_order()
    path = tmp_path_factory.mktemp("batsim") / "jobs.json"
    write_jobs(table, path)
    back = read_jobs(path, TraceOptions())
    for name in ("job", "submit_time_s", "run_time_s", "width", "requested_time_s"):
        assert np.array_equal(getattr(table, name), getattr(back, name), equal_nan=True), name
    assert back.nodes_of_header == 77


def test_names_of_logs(tmp_path: Path):
    """By their endings, compressed or not; what is no log cannot be read or written as one."""
    found = [format_of(name) for name in ("A.SWF", "a.json.gz", "a.txt", "a.csv", "a.gz")]
    assert found == ["swf", "batsim", "sacct", None, None]
    with pytest.raises(InputError, match=r"a trace is \.swf, \.json"):
        read_jobs(tmp_path / "a.csv", TraceOptions())
    with pytest.raises(InputError, match=r"written as \.swf or \.json"):
        write_jobs(JobTable(*([np.zeros(0)] * 5)), tmp_path / "a.psv")


def test_serial_jobs_become_tasks(tmp_path: Path):
    """Those of one node, from 0 s, with as many flops as they ran; the others are told."""
    found = serial_tasks(read_sacct(file_of(tmp_path, "jobs.psv", SACCT)), 2e9)
    assert found.tasks.labels.tolist() == [101]
    assert found.tasks.flops.tolist() == [60e9]
    assert found.tasks.submit_time_s.tolist() == [0]
    assert found.tasks.width is None
    assert found.jobs.dropped[-1].lines == (2, 10)
