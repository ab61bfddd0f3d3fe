"""The Standard Workload Format, and parallel days from logs."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched import Scenario, run
from gridsched.errors import InputError
from gridsched.workloads.traces import log_lines
from gridsched.workloads.traces.formats import is_trace
from gridsched.workloads.traces.job_table import JobTable
from gridsched.workloads.traces.swf import read_swf, write_swf
from gridsched.workloads.traces.trace_options import TraceOptions
from gridsched.workloads.traces.trace_system import trace_system

# Logs in the Standard Workload Format: what is read, what is left out and why, and back again.

LOGS = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "swf"

LOG = """\
; Version: 2.2
; MaxNodes: 100
; MaxProcs: 128
; Note: a first line: with a colon
;
    3   20  5  60   4 -1 -1   4  100 -1 1 1 1 -1 -1 -1 -1 -1
    1   10  0  30   2 -1 -1  -1   -1 -1 1 1 1 -1 -1 -1 -1 -1   extra

    2   10  0  30  -1 -1 -1   8   20 -1 1 1 1 -1 -1 -1 -1 -1
    4   30  0  -1   4 -1 -1   4  100 -1 0 1 1 -1 -1 -1 -1 -1
    5   40  0  10  -1 -1 -1  -1  100 -1 0 1 1 -1 -1 -1 -1 -1
    6   50  0 abc   4 -1 -1   4  100 -1 0 1 1 -1 -1 -1 -1 -1
    7   60  0  0    4 -1 -1   4  100 -1 0 1 1 -1 -1 -1 -1 -1
    8   -1  0  9    4 -1 -1   4  100 -1 0 1 1 -1 -1 -1 -1 -1
    9   70.5 0 9.25 200 -1 -1 200 -1
"""


def log(folder: Path, text: str = LOG, name: str = "log.swf") -> Path:
    """Write a log."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_log_by_hand(tmp_path: Path):
    """Order, fall-back of widths, estimates, header, and each reason with its lines."""
    jobs = read_swf(log(tmp_path))
    assert jobs.job.tolist() == [1, 2, 3, 9]
    assert jobs.submit_time_s.tolist() == [10, 10, 20, 70.5]
    assert jobs.run_time_s.tolist() == [30, 30, 60, 9.25]
    assert jobs.width.tolist() == [2, 8, 4, 200]
    assert jobs.estimate_s.tolist() == [30, 30, 100, 9.25]
    assert np.isnan(jobs.requested_time_s).tolist() == [True, False, False, True]
    assert jobs.nodes_of_header == 128
    assert jobs.header["Note"] == "a first line: with a colon"
    assert [str(each) for each in jobs.dropped] == [
        "1 job left out: not of the format (line 12)",
        "1 job left out: no submission time (line 14)",
        "2 jobs left out: no run time greater than 0 s (lines 10, 13)",
        "1 job left out: no number of nodes greater than 0 (line 11)",
    ]


@pytest.mark.parametrize("size", ["\u00b2", "1\u00b2", "-4", "1e3", "9" * 400, "many", ""])
def test_a_header_without_a_number_of_nodes(tmp_path: Path, size: str):
    """Text that is not a number of 64 bits counts as unknown."""
    assert read_swf(log(tmp_path, LOG.replace("128", size))).size_of_machine("MaxProcs") is None


def test_header_lines_of_blanks(tmp_path: Path):
    """Each is passed once, however long."""
    text = f"; A{' ' * 500_000}x\n; Key: a{' ' * 500_000}b\n{LOG}"
    assert set(read_swf(log(tmp_path, text)).header) == {"Key", "Version", "MaxNodes", "MaxProcs", "Note"}


def test_jobs_wider_than_the_machine_are_left_out(tmp_path: Path):
    """They can never start."""
    jobs = read_swf(log(tmp_path)).that_fit(128)
    assert jobs.job.tolist() == [1, 2, 3]
    wide = "1 job left out: wider than the machine's 128 nodes (line 15)"
    assert str(jobs.dropped[-1]) == wide


def test_compressed_logs_and_other_encodings(tmp_path: Path):
    """By content, whatever the name; comments may hold any bytes."""
    path = tmp_path / "log.swf.gz"
    path.write_bytes(gzip.compress(b"; Computer: Universit\xe4t\n" + LOG.encode()))
    assert len(read_swf(path)) == 4
    assert is_trace(path)
    assert is_trace("A.SWF")
    assert not is_trace("a.csv")


def test_archives_that_unpack_to_more_than_any_log(tmp_path, monkeypatch):
    """A line of 4 MB, and more than all of a log may hold: one line each."""
    path = tmp_path / "log.swf.gz"
    path.write_bytes(gzip.compress(b"; x\n;" + b"x" * (4 << 20)))
    with pytest.raises(InputError, match=r"log\.swf\.gz, line 2.*1,048,576"):
        read_swf(path)
    monkeypatch.setattr(log_lines, "MAX_BYTES", 1000)
    path.write_bytes(gzip.compress(b"; x\n" * 400))
    with pytest.raises(InputError, match="1,000"):
        read_swf(path)


def test_a_byte_order_mark_and_whole_numbers_with_decimals(tmp_path: Path):
    """As tools write a log that keep all columns as floats: it is read as with whole numbers."""
    plain = "1 0 0 1.5 1 -1 -1 1 -1 -1 1 7 -1 1 1 1 -1 -1\n2 0.5 0 2.25 1 -1 -1 1 -1 -1 1 8 1 1 1 1 1 10\n"
    part = "3 1 0 5 1 -1 -1 1 -1 -1 2 7 -1 1 1 1 -1 -1\n"
    texts = {
        "plain.swf": plain + part,
        "floats.swf": "".join(_with_decimals(line) for line in (plain + part).splitlines()),
    }
    read = []
    for name, text in texts.items():
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" * (name == "floats.swf") + text.encode())
        read.append(read_swf(tmp_path / name))
    first, second = read
    assert second.job.tolist() == [1, 2]
    assert second.run_time_s.tolist() == [1.5, 2.25]
    assert second.attributes["user"].tolist() == ["7", "8"]
    for name in ("job", "submit_time_s", "run_time_s", "width", "requested_time_s", "after"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert {name: each.tolist() for name, each in first.attributes.items()} == {
        name: each.tolist() for name, each in second.attributes.items()
    }
    assert first.dropped == second.dropped


def _with_decimals(line: str) -> str:
    return " ".join(field if "." in field else f"{field}.0" for field in line.split()) + "\n"


def test_an_id_that_is_no_whole_number_is_none(tmp_path: Path):
    (tmp_path / "a.swf").write_text("1 0 0 5 1 -1 -1 1 -1\n2.5 0 0 5 1 -1 -1 1 -1\n3 0 0 5 1 -1 -1 1 -1\n")
    assert read_swf(tmp_path / "a.swf").job.tolist() == [1, 3]


def test_nodes_can_stand_in_another_field(tmp_path: Path):
    """As in the logs of Frontier, whose last field ends with nodes and cores."""
    row = "7 5 0 60 -1 -1 -1 -1 100 -1 1 1 1 -1 -1 -1 -1 -1 a b frontier:excl:2500x112\n"
    path = log(tmp_path, row)
    assert len(read_swf(path)) == 0
    assert read_swf(path, nodes_from=-1).width.tolist() == [2500]
    assert read_swf(path, nodes_from=21).width.tolist() == [2500]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"task,flops\n1,2\n3,4\n", "line 1: no line of the Standard Workload Format"),
        (b"\x1f\x8bnot gzip at all", "cannot be read"),
        (gzip.compress(LOG.encode())[:-20], "cannot be read"),
    ],
)
def test_what_is_no_log_is_refused_in_one_line(tmp_path: Path, content: bytes, words: str):
    """A table, damaged and cut archives."""
    path = tmp_path / "x.swf"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words):
        read_swf(path)


def test_missing_files_and_folders_are_refused(tmp_path: Path):
    """Nothing waits for a pipe."""
    with pytest.raises(InputError, match="cannot be read"):
        read_swf(tmp_path / "none.swf")
    with pytest.raises(InputError, match="it is a folder"):
        read_swf(tmp_path)


times = st.one_of(st.integers(0, 10**8).map(float), st.floats(0, 1e8))


@settings(max_examples=50)
@given(
    rows=st.lists(
        st.tuples(
            times,
            times.filter(lambda t: t > 0),
            st.integers(1, 10**6),
            st.one_of(st.just(np.nan), times.filter(lambda t: t > 0)),
        ),
        max_size=20,
    )
)
def test_a_written_log_reads_back(tmp_path_factory: pytest.TempPathFactory, rows):
    """Every digit."""
    columns = [np.array(each, dtype=float) for each in zip(*rows, strict=True)] or [np.zeros(0)] * 4
    table = JobTable(
        np.arange(1, len(rows) + 1), columns[0], columns[1], columns[2].astype(np.int64), columns[3]
    ).in_order()
    path = tmp_path_factory.mktemp("swf") / "log.swf"
    write_swf(table, path)
    back = read_swf(path)
    for name in ("job", "submit_time_s", "run_time_s", "width", "requested_time_s"):
        assert np.array_equal(getattr(table, name), getattr(back, name), equal_nan=True), name


@pytest.mark.parametrize(
    ("name", "jobs", "widest"),
    [("KTH-SP2.swf.gz", 28_478, 100), ("CEA-Curie_10day.swf.gz", 14_000, 79_808), ("HPC2N_excerpt.swf", 3_000, 240)],
)
def test_logs_of_the_archive(name: str, jobs: int, widest: int):
    """Real logs: nearly all jobs are there, none is wider than its machine."""
    if not (LOGS / name).exists():
        pytest.skip("the logs of the Parallel Workloads Archive are not beside the checkout")
    table = read_swf(LOGS / name)
    assert len(table) >= jobs
    assert table.width.max() <= widest
    assert (np.diff(table.submit_time_s) >= 0).all()


def test_preceding_jobs_and_think_times(tmp_path):
    """Fields 17 and 18: which job follows which, and how long after its end; other values have no effect."""
    rows = [
        "1 0 -1 10 1 -1 -1 1 10 -1 1 -1 -1 -1 -1 -1 -1 -1",
        "2 1 -1 10 1 -1 -1 1 10 -1 1 -1 -1 -1 -1 -1  1 30",
        "3 2 -1 10 1 -1 -1 1 10 -1 1 -1 -1 -1 -1 -1  2 -1",
        "4 3 -1 10 1 -1 -1 1 10 -1 1 -1 -1 -1 -1 -1  9 5",
        "5 4 -1 10 1 -1 -1 1 10 -1 1 -1 -1 -1 -1 -1  a:b 5",
        "6 5 -1 10 1 -1 -1 1 10 -1 1 -1 -1 -1 -1 -1  7 5",
        "7 6 -1 10 1 -1 -1 1 10 -1 1",
    ]
    path = tmp_path / "a.swf"
    path.write_text("\n".join(rows))
    found = trace_system(path, TraceOptions(nodes=8))
    dependencies = found.system.tasks.dependencies
    assert dependencies.task.tolist() == [1, 2]
    assert dependencies.on.tolist() == [0, 1]
    assert dependencies.delay_s.tolist() == [30, 0]
    assert any(note.startswith("2 dependencies") for note in found.jobs.notes)
    trace = run(Scenario(None, path, "fcfs", driver="reference", trace=TraceOptions(nodes=8))).trace
    assert trace.start_time_s.tolist() == [0, 40, 50, 3, 4, 5, 6]
