"""Files that gzip has compressed: every kind is read to its end, and no archive unpacks to more than is read."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gridsched.errors import InputError
from gridsched.files.foreign_files import head_of
from gridsched.files.input_files import read_text
from gridsched.model.carbon import Carbon
from gridsched.platform_io.slurm_conf import read_slurm_conf
from gridsched.workloads.load import read_workload
from gridsched.workloads.signal_csv import with_carbon_read
from gridsched.workloads.traces.formats import read_jobs
from gridsched.workloads.traces.trace_options import TraceOptions

ROOT = Path(__file__).resolve().parents[2]
JOBS = "id,submit_time_s,run_time_s,nodes\n1,0,5,1\n2,1,5,1\n"
SWF = "1 0 -1 5 1 -1 -1 1 9 -1 1\n2 1 -1 5 1 -1 -1 1 9 -1 1\n"
SACCT = (
    "JobID|Submit|Start|ElapsedRaw|AllocNodes|State\n"
    "1|2026-03-02T08:00:00|2026-03-02T08:00:00|5|1|COMPLETED\n2|2026-03-02T08:00:01|2026-03-02T08:00:01|5|1|COMPLETED\n"
)
CONF = "NodeName=a CPUs=1\nPartitionName=p Nodes=a\nPartitionName=q Nodes=a\n"


def partitions(path: Path) -> object:
    return sorted(each.name for each in read_slurm_conf(path).partitions)


#: Kind of file -> its name, its text, what it is read by, and what is read of it.
KINDS: dict[str, tuple[str, str, Callable[[Path], object], object]] = {
    "bag": ("b.csv", "id,flops\n1,10\n2,20\n", lambda path: read_workload(path).flops.tolist(), [10.0, 20.0]),
    "generator": ("g.toml", 'kind = "bag"\nmean_flops = 1e9\ntasks = 7\n', lambda path: len(read_workload(path)), 7),
    "carbon": (
        "c.csv",
        "time_s,g_per_kwh\n0,100\n3600,900\n",
        lambda path: with_carbon_read(Carbon(path)).intensity.series[0].value,
        (100.0, 900.0),
    ),
    "table of jobs": ("j.jobs.csv", JOBS, lambda path: read_jobs(path, TraceOptions()).job.tolist(), [1, 2]),
    "swf": ("j.swf", SWF, lambda path: read_jobs(path, TraceOptions()).job.tolist(), [1, 2]),
    "sacct": ("j.txt", SACCT, lambda path: read_jobs(path, TraceOptions()).job.tolist(), [1, 2]),
    "slurm.conf": ("slurm.conf", CONF, partitions, ["p", "q"]),
}


def in_members(text: str, cut: int) -> bytes:
    """Return a text as two members, as ``cat a.gz b.gz`` makes them, and the empty one behind that bgzip writes."""
    return b"".join(gzip.compress(part.encode(), mtime=0) for part in (text[:cut], text[cut:], ""))


@pytest.mark.parametrize("kind", KINDS)
def test_all_members_are_read(tmp_path: Path, kind: str):
    """Wherever an archive is cut: within a line, within the first one, or behind the last."""
    name, text, read, expected = KINDS[kind]
    path = tmp_path / name
    for cut in (3, len(text) // 2, len(text) - 2, len(text)):
        path.write_bytes(in_members(text, cut))
        assert read(path) == expected


@pytest.mark.systems("workflows")
def test_all_members_of_a_workflow_are_read(tmp_path: Path):
    from gridsched.systems.workflows.foreign_workflows import read_foreign

    text = (
        '{"schemaVersion": "1.5", "workflow": {"specification": {"tasks": [{"id": "a", "children": ["b"]}, '
        '{"id": "b", "parents": ["a"]}]}, "execution": {"tasks": [{"id": "a", "runtimeInSeconds": 1}, '
        '{"id": "b", "runtimeInSeconds": 2}]}}}'
    )
    path = tmp_path / "w.json"
    path.write_bytes(in_members(text, 90))
    assert list(read_foreign(path, 1e9).tasks["id"]) == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (gzip.compress(b"id,flops\n") + gzip.compress(b"1,2\n")[:-6], "ended"),
        (gzip.compress(b"id,flops\n") + b"1,2\n", "gzip"),
        (gzip.compress(b"id,flops\n1,2\n")[:-8] + bytes(8), "CRC"),
    ],
    ids=["cut", "none", "checksum"],
)
def test_damage_of_any_member_is_reported(tmp_path: Path, content: bytes, word: str):
    """A second member that is cut, what is none behind the first, a wrong checksum."""
    path = tmp_path / "b.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"b\.csv: cannot be read: .*{word}"):
        read_workload(path)


def test_zeros_behind_an_archive_are_padding(tmp_path: Path):
    """As tapes and ``dd`` leave them."""
    path = tmp_path / "b.csv"
    path.write_bytes(gzip.compress(b"id,flops\n1,2\n") + bytes(512))
    assert read_workload(path).flops.tolist() == [2.0]


# What a small file unpacks to is counted before it is kept.


def packed(path: Path, piece: bytes, times: int) -> Path:
    """Write an archive that holds a piece so often, each a member."""
    path.write_bytes(gzip.compress(piece) * times)
    return path


#: Reads a file by name as a workload or a table, in a process of its own, and prints the error and the memory [MiB].
READS = """
import resource, sys
from pathlib import Path
from gridsched.errors import InputError
from gridsched.model.carbon import Carbon
from gridsched.platform_io.slurm_conf import read_slurm_conf
from gridsched.workloads.load import read_workload
from gridsched.workloads.signal_csv import with_carbon_read
from gridsched.workloads.traces.formats import format_of, read_jobs
from gridsched.workloads.traces.trace_options import TraceOptions
path = Path(sys.argv[1])
read_jobs(Path(sys.argv[2]), TraceOptions())  # imports what is imported once
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    if path.name.startswith("carbon"):
        with_carbon_read(Carbon(path))
    elif path.name == "slurm.conf":
        read_slurm_conf(path)
    elif format_of(path) is not None:
        read_jobs(path, TraceOptions())
    else:
        read_workload(path)
except InputError as error:
    print(str(error).count(chr(10)), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before >> 10, error)
"""


def read_apart(bomb: Path) -> tuple[str, int]:
    """Return what a process that reads a file prints, and what that took [MiB]."""
    (bomb.parent / "small.swf").write_text(SWF)
    done = subprocess.run(
        [sys.executable, "-c", READS, str(bomb), str(bomb.parent / "small.swf")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    breaks, mebibytes, error = done.stdout.split(maxsplit=2)
    assert breaks == "0", done.stdout
    return error, int(mebibytes)


@pytest.mark.parametrize(
    ("name", "piece"),
    [
        ("a.csv", b"["),
        ("a.csv", b"1,2\n"),
        ("a.toml", b"\n"),
        ("carbon.csv", b"\n"),
        ("a.jobs.csv", b"\n"),
        ("a.swf.gz", b"\n"),
        ("slurm.conf", b"["),
        pytest.param("a.json.gz", b" ", marks=pytest.mark.systems("batsim")),
    ],
)
def test_a_bomb_is_refused_before_it_takes_memory(tmp_path: Path, name: str, piece: bytes):
    """1.5 MB that unpack to 1.5 GB: one line, and less than a twentieth of that in memory."""
    error, mebibytes = read_apart(packed(tmp_path / name, piece * (2**20 // len(piece)), 1500))
    assert name in error
    assert mebibytes < 75


def test_what_is_larger_than_a_reader_takes_is_counted_and_not_kept(tmp_path: Path):
    """Texts that gzip shrinks as real ones are read whole up to the limit of their kind, and refused beyond it."""
    path = tmp_path / "a.txt"
    text = "".join(f"{k:x},{k * k}\n" for k in range(60_000))
    path.write_bytes(gzip.compress(text.encode()))
    assert read_text(path, len(text)) == text
    with pytest.raises(InputError, match="holds more than"):
        read_text(path, len(text) - 1)
    assert head_of(path) == text.encode()[: 1 << 16]


def test_a_text_that_shrinks_much_is_read_where_it_is_small(tmp_path: Path):
    """A log of equal lines of a few MB is no bomb, though it shrinks to a thousandth."""
    path = packed(tmp_path / "a.txt", b"0 0 0\n" * 2**15, 60)
    assert path.stat().st_size * 500 < 60 * 6 * 2**15
    assert np.frombuffer(read_text(path).encode(), np.uint8).size == 60 * 6 * 2**15
