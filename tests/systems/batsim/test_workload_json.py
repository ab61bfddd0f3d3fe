"""Workloads of Batsim: what is read from its JSON, and jobs that are written as such."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched import Scenario, run
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.model.platform import homogeneous_cluster
from gridsched.systems.batsim.workload_json import read_batsim
from gridsched.workloads.traces.formats import format_of, read_jobs, write_jobs
from gridsched.workloads.traces.job_table import JobTable
from gridsched.workloads.traces.trace_options import TraceOptions

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
        "composed": {"type": "smpi", "trace": "x.txt"},
    },
}


def file_of(folder: Path, name: str, text: str) -> Path:
    """Write a log."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


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
        "1 job left out: profile of type 'smpi'; delays, parallel tasks, and sequences of them are known",
        "1 job left out: not of the format",
    ]
    assert ["send" in note for note in jobs.notes] == [True]


#: Profiles by their names in Batsim 5, and how long each runs on two nodes of 1 Gflop/s [s].
PROFILES = {
    "sleep": ({"type": "DelayProfile", "delay": 20.25}, 20.25),
    "each": ({"type": "ParallelTaskHomogeneousProfile", "cpu": 10e9, "com": 0}, 10),
    "spread": (
        {
            "type": "ParallelTaskHomogeneousProfile",
            "cpu": 10e9,
            "com": 1,
            "generation_strategy": "DefinedAmountsSpreadUniformly",
        },
        5,
    ),
    "equal": ({"type": "ParallelTaskProfile", "cpu": [3e9, 3e9]}, 3),
    "unequal": ({"type": "ParallelTaskProfile", "cpu": [4e9, 1e9], "com": [0, 0, 0, 0]}, 4),
    "store": ({"type": "ParallelTaskOnStorageHomogeneousProfile", "bytes_to_read": 1e5}, None),
    "stage": ({"type": "ParallelTaskDataStagingBetweenStoragesProfile", "nb_bytes": 1e5}, None),
    "steps": ({"type": "SequentialCompositionProfile", "repeat": 3, "seq": ["each", "store"]}, 30),
    "nested": ({"type": "SequentialCompositionProfile", "seq": ["steps", "sleep", "unequal"]}, 54.25),
    "wide": ({"type": "ParallelTaskProfile", "cpu": [1e9, 1e9, 1e9]}, None),
    "endless": ({"type": "SequentialCompositionProfile", "seq": ["sleep", "endless"]}, None),
    "replay": ({"type": "TraceReplayProfile", "filename": "x.txt"}, None),
    "hidden": ({"type": "SequentialCompositionProfile", "seq": ["sleep", "replay"]}, None),
}


def test_the_profiles_of_batsim_5(tmp_path: Path):
    """How long each runs, which are left out, and how many jobs are simulated in part."""
    jobs = [{"id": k, "subtime": k, "res": 2, "profile": name} for k, name in enumerate(PROFILES)]
    content = {"jobs": jobs, "profiles": {name: profile for name, (profile, _) in PROFILES.items()}}
    table = read_batsim(file_of(tmp_path, "jobs.json", json.dumps(content)), speed=1e9)
    assert dict(zip(table.job.tolist(), table.run_time_s.tolist(), strict=True)) == {
        k: run_s for k, (_, run_s) in enumerate(PROFILES.values()) if run_s is not None
    }
    assert {each.reason.split(";")[0]: each.count for each in table.dropped} == {
        "profile that only moves bytes, whose time is the network's": 2,
        "not of the format": 2,
        "profile of type 'TraceReplayProfile'": 2,
    }
    # spread, steps and nested send or store; steps and nested are sequences; unequal and nested work unevenly
    assert [note[note.index("(") :] for note in table.notes] == ["(3 jobs)", "(2 jobs)", "(2 jobs)"]


@pytest.mark.parametrize(
    "profile",
    [
        {"type": "msg_par_hg", "cpu": 4e9},
        {"type": "ptask_homogeneous", "cpu": 4e9, "com": 0},
        {"type": "parallel_homogeneous_total", "cpu": 8e9},
        {"type": "ptask_homogeneous", "cpu": 8e9, "generation_strategy": "defined_amount_spread_uniformly"},
        {"type": "parallel", "cpu": [4e9, 4e9], "com": [0, 0, 0, 0]},
        {"type": "msg_par", "cpu": [4e9, 4e9], "com": [0, 0, 0, 0]},
        {"type": "composed", "nb": 2, "seq": ["two"]},
        {"type": "sequential_composition", "repeat": 2, "seq": ["two"]},
    ],
)
def test_profiles_by_their_names_before_batsim_5(tmp_path: Path, profile: dict[str, object]):
    """Four seconds each on two nodes of 1 Gflop/s."""
    content = {
        "jobs": [{"id": 1, "subtime": 0, "res": 2, "profile": "one"}],
        "profiles": {"one": profile, "two": {"type": "delay", "delay": 2}},
    }
    assert read_batsim(file_of(tmp_path, "x.json", json.dumps(content)), speed=1e9).run_time_s.tolist() == [4]


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
    """On nodes of 8 Gflop/s 4 Gflop take half a second; notes are among the warnings."""
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


def test_names_of_workloads():
    """By their ending, compressed or not."""
    assert [format_of(name) for name in ("a.json", "A.JSON.gz", "json")] == ["batsim", "batsim", None]


@pytest.mark.parametrize(("command", "name"), [("convert", "x.swf"), ("import", "x.csv")])
def test_a_log_of_which_nothing_is_left_is_not_written(tmp_path: Path, command: str, name: str):
    """A file without jobs would run as nothing."""
    log = file_of(tmp_path, "x.json", json.dumps(BATSIM | {"jobs": [BATSIM["jobs"][3]]}))
    assert main(["workload", command, str(log), "-o", str(tmp_path / name)]) == 2
    assert list(tmp_path.iterdir()) == [log]
