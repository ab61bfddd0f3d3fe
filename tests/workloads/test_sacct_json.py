"""sacct's output under any name, and as JSON: the same jobs as of its table with bars."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from gridsched.errors import InputError
from gridsched.workloads.load import check_kind
from gridsched.workloads.traces.formats import format_of, read_jobs
from gridsched.workloads.traces.sacct import read_sacct
from gridsched.workloads.traces.trace_options import TraceOptions

BARS = """JobID|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocNodes|AllocTRES|State|User|Account|Partition|QOS
7|1000|1010|1110|100|5|2|cpu=8,mem=400M,node=2,gres/gpu=2|COMPLETED|ann|phys|batch|normal
9_3|1001|1020|1050|30||1|cpu=4,mem=100M,node=1|FAILED|bob|chem|short|high
12+1|1002|1030|1060|30|60|1|cpu=4,mem=100M,node=1|TIMEOUT|bob|chem|short|high
14|1003|||0|60|1||PENDING|bob|chem|short|high
"""


def entry(job: dict) -> dict:
    """Return a job as Slurm 23.11 prints it, with what no reader needs."""
    return {"association": {"id": 3, "cluster": "c"}, "steps": [{"step": {"id": "7.0"}}], "flags": [], **job}


def number(value: int | None) -> dict:
    return {"set": value is not None, "infinite": False, "number": value or 0}


def tres(cpu: int, mem: int, nodes: int, gpus: int = 0) -> dict:
    items = [("cpu", "", cpu), ("mem", "", mem), ("node", "", nodes)] + ([("gres", "gpu", gpus)] if gpus else [])
    return {"allocated": [{"type": t, "name": n, "id": 1, "count": c} for t, n, c in items], "requested": []}


def jobs() -> list[dict]:
    """The jobs of BARS."""
    ann = {"user": "ann", "account": "phys", "partition": "batch", "qos": "normal"}
    bob = {"user": "bob", "account": "chem", "partition": "short", "qos": "high"}
    return [
        entry({**ann, "job_id": 7, "allocation_nodes": 2, "tres": tres(8, 400, 2, 2),
               "state": {"current": ["COMPLETED"]},
               "array": {"job_id": 0, "task_id": number(None)}, "het": {"job_id": 0, "job_offset": number(None)},
               "time": {"submission": 1000, "start": 1010, "end": 1110, "elapsed": 100, "limit": number(5)}}),
        # older versions: plain numbers and texts
        entry({**bob, "job_id": 10, "allocation_nodes": 1, "tres": tres(4, 100, 1), "state": {"current": "FAILED"},
               "array": {"job_id": 9, "task_id": 3}, "het": {"job_id": 0, "job_offset": None},
               "time": {"submission": 1001, "start": 1020, "end": 1050, "elapsed": 30, "limit": None}}),
        entry({**bob, "job_id": 13, "allocation_nodes": 1, "tres": tres(4, 100, 1), "state": {"current": ["TIMEOUT"]},
               "array": {"job_id": 0}, "het": {"job_id": 12, "job_offset": number(1)},
               "time": {"submission": 1002, "start": 1030, "end": 1060, "elapsed": 30, "limit": number(60)}}),
        entry({**bob, "job_id": 14, "allocation_nodes": 1, "state": {"current": ["PENDING"]},
               "time": {"submission": 1003, "start": 0, "end": 0, "elapsed": 0, "limit": number(60)}}),
    ]  # fmt: skip


def as_json(content: object) -> str:
    return json.dumps({"meta": {"plugins": {}, "Slurm": {"release": "23.11"}}, "jobs": content}, indent=2)


def same(ours, theirs) -> None:
    assert len(ours) == len(theirs) == 3
    for name in ("submit_time_s", "run_time_s", "width", "requested_time_s"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name), equal_nan=True), name
    assert list(ours.names) == list(theirs.names)
    assert [(d.reason, d.count) for d in ours.dropped] == [(d.reason, d.count) for d in theirs.dropped]
    assert {k: v.tolist() for k, v in ours.attributes.items()} == {k: v.tolist() for k, v in theirs.attributes.items()}


@pytest.mark.parametrize("name", ["a.csv", "a.log", "a.sacct", "a.out.gz"])
def test_any_name_of_the_table(tmp_path: Path, name: str):
    """The content decides, also where the name is a bag's of tasks."""
    path, plain = tmp_path / name, tmp_path / "plain.sacct"
    path.write_bytes(gzip.compress(BARS.encode()) if name.endswith(".gz") else BARS.encode())
    plain.write_text(BARS)
    assert format_of(path) == "sacct"
    check_kind(path)
    same(read_jobs(path, TraceOptions()), read_jobs(plain, TraceOptions()))


@pytest.mark.parametrize("name", ["a.json", "a.sacct", "a.txt"])
def test_json_is_as_the_table(tmp_path: Path, name: str):
    """Arrays and heterogeneous jobs with their ids, limits that are not set, resources, states of old and new."""
    path, bars = tmp_path / name, tmp_path / "bars.sacct"
    path.write_text(as_json(jobs()))
    bars.write_text(BARS)
    assert format_of(path) == "sacct"
    ours, theirs = (read_sacct(each, tells_resources=True) for each in (path, bars))
    kept = {"user", "account", "partition", "qos", "tres"}
    for table in (ours, theirs):
        for key in set(table.attributes) - kept:
            del table.attributes[key]
    same(ours, theirs)


def test_json_in_one_line(tmp_path: Path):
    """However long it is."""
    path = tmp_path / "a.json"
    many = [{**jobs()[0], "job_id": k} for k in range(6000)]
    path.write_text(json.dumps({"jobs": many, "meta": {}}))
    assert path.stat().st_size > 2 << 20
    assert len(read_jobs(path, TraceOptions())) == 6000


@pytest.mark.parametrize(
    "content",
    [
        '{"meta": {"Slurm": 1}}',
        '{"jobs": {"association": {}}}',
        '{"jobs": [{"association": {}}',
        '{"association": {}, "jobs": ' + "[" * 9000,
    ],
)
def test_json_that_is_no_sacct(tmp_path: Path, content: str):
    """One line; nothing is believed of what it holds."""
    path = tmp_path / "a.sacct"
    path.write_text(content)
    with pytest.raises(InputError, match=r"a\.sacct"):
        read_jobs(path, TraceOptions())


@pytest.mark.parametrize(
    "bad", [3, None, [], {"job_id": "x"}, {"job_id": 5, "time": {"submission": -4}}, {"tres": {"allocated": 5}}]
)
def test_entries_that_are_no_jobs_are_left_out(tmp_path: Path, bad: object):
    """They are counted with what is not a job of the format."""
    path = tmp_path / "a.json"
    path.write_text(as_json([*jobs(), bad]))
    table = read_sacct(path)
    assert len(table) == 3
    assert sum(reason.count for reason in table.dropped) == 2


def test_batsims_json_stays_batsims(tmp_path: Path):
    """It has jobs, too, and no mark of Slurm's."""
    path = tmp_path / "a.json"
    path.write_text('{"nb_res": 2, "jobs": [{"id": "1", "subtime": 0, "res": 1, "profile": "p"}], "profiles": {}}')
    assert format_of(path) != "sacct"
