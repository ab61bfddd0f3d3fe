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
from gridsched.workloads.parallel_day import ParallelDay
from gridsched.workloads.parallel_tasks import generate_parallel_day, read_log_days
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
    """What is no number of 64 bits tells nothing."""
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
    """Fields 17 and 18: who follows whom, and how long after its end; others are nobody's business."""
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


# Days of a log as parallel tasks (paper 001, 4.3; algorithms C2's Curie variant).

HOUR_S, DAY_S = 3600.0, 86_400.0
SMALL = {
    "general_clusters": [(6, 4), (4, 8)],
    "special_clusters": [(5, 6)],
    "general_task_types": 4,
    "special_task_types": [2],
    "log_least_jobs": 2,
}


def write_log(path: Path, jobs, header: str = "") -> str:
    """Write jobs (hour of submission, run time [s], processors), numbered from 1."""
    lines = [
        f"{k + 1} {round(hour * HOUR_S)} 0 {run} {cores} -1 -1 {cores} -1 " + "-1 " * 9
        for k, (hour, run, cores) in enumerate(jobs)
    ]
    path.write_text(header + "\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def parallel_log(tmp_path: Path) -> str:
    """Jobs of days 0 to 4: 2, 3, 1, 2 and 1."""
    hours = [1, 21, 25, 30, 46, 60, 73, 80, 97]
    return write_log(tmp_path / "log.swf", [(hour, 100 + hour, 4) for hour in hours])


def test_whole_days_with_enough_jobs_are_taken(parallel_log: str):
    """Day 0 is the first that has jobs, and no whole one; of the others, those with two jobs."""
    found = read_log_days(parallel_log, 48, 2, None)
    assert found.days == (1, 3)
    assert found.begin_s == 0
    assert read_log_days(parallel_log, 1, 2, None).days == (1,)
    assert read_log_days(parallel_log, 48, 1, None).days == (1, 2, 3)
    with pytest.raises(InputError, match="9 jobs"):
        read_log_days(parallel_log, 48, 9, None)


def test_days_begin_at_midnight_where_the_header_tells(tmp_path: Path):
    """The log begins at 22:00 UTC, 23:00 there: an hour later it is the next day."""
    jobs = [(0.5, 10, 1), (1.5, 10, 1), (24.5, 10, 1), (25.5, 10, 1)]
    header = f"; UnixStartTime: {22 * 3600}\n; TimeZone: 3600\n"
    found = read_log_days(write_log(tmp_path / "a.swf", jobs, header), 48, 1, None)
    assert (found.begin_s, found.days) == (-23 * HOUR_S, (1,))
    rows = found.between(1, 0.0, DAY_S)
    assert found.jobs.job[rows].tolist() == [2, 3]


def test_a_trial_is_a_day_after_the_end_of_the_day_before(parallel_log: str):
    """Trial 0: day 1 after day 0's last four hours; trial 1: day 3 after day 1's."""
    first = generate_parallel_day(ParallelDay(jobs_swf=parallel_log, **SMALL))
    assert first.tasks.labels.tolist() == [2, 3, 4, 5]
    hours = first.tasks.submit_time_s / HOUR_S
    assert hours.tolist() == [1, 5, 10, 26]  # 21 h is an hour after 20 h; 25 h is 1 h of day 1
    second = generate_parallel_day(ParallelDay(jobs_swf=parallel_log, replicate=1, **SMALL))
    assert second.tasks.labels.tolist() == [5, 7, 8]
    assert (second.tasks.submit_time_s / HOUR_S).tolist() == [2, 5, 12]
    assert second.tasks.name == "log.swf, day 3 (2 of 2)"
    assert second.notes == ("days of the log: 1, 3; this is day 3",)
    assert second.window_s == (4 * HOUR_S, 28 * HOUR_S)
    with pytest.raises(InputError, match=r"2 whole days.*replicate 2"):
        generate_parallel_day(ParallelDay(jobs_swf=parallel_log, replicate=2, **SMALL))


def test_days_of_a_log_can_come_again(parallel_log: str):
    """Replicate 2 is the first of two days again: the same jobs, with other task types."""
    first, again = (
        generate_parallel_day(ParallelDay(jobs_swf=parallel_log, replicate=each, log_again=True, **SMALL))
        for each in (0, 2)
    )
    assert again.tasks.name == "log.swf, day 1 (1 of 2)"
    assert (first.tasks.labels == again.tasks.labels).all()
    assert (first.tasks.width == again.tasks.width).all()
    assert not np.array_equal(first.types.apc, again.types.apc)


def test_a_job_takes_its_time_on_one_cluster(tmp_path: Path):
    """That of the log on one cluster that is large enough; others vary by 30 %."""
    jobs = [(24 + 0.01 * k, 1000 + k, 1 + k % 32) for k in range(2000)]
    path = write_log(tmp_path / "a.swf", [(1, 9, 1), *jobs, (50, 9, 1)])
    spec = ParallelDay(
        jobs_swf=path, pstate_cov=0.0, pstate_type_cov=0.0, special_pstate_type_cov=0.0, special_pstate_cov=0.0, **SMALL
    )
    whole = generate_parallel_day(spec)
    tasks, estimates = whole.tasks, whole.estimates
    run = 1000.0 + tasks.labels - 2
    nominal = estimates.time_s[:, :, 0]  # every factor of P-state 0 is 1
    fits = -(-tasks.width[:, None] // [4, 8, 6]) <= [6, 4, 5]
    general = tasks.task_type < 4
    runs = fits & np.column_stack([general, general, ~general])
    assert np.array_equal(np.isfinite(nominal), runs)
    logged = np.abs(nominal - run[:, None]) < 1e-9
    assert (logged.sum(axis=1) == runs.any(axis=1)).all()
    both = runs.sum(axis=1) == 2
    assert 0.4 < logged[both, 0].mean() < 0.6
    others = (nominal / run[:, None])[runs & ~logged]
    assert abs(others.mean() - 1) < 0.05
    assert abs(others.std() - 0.3) < 0.03
    types = np.bincount(tasks.task_type, minlength=6)
    assert types.min() > 0.7 * len(tasks) / 6


def test_jobs_that_are_too_wide_are_left_out_and_told(tmp_path: Path):
    """Wider than log_widest_job: gone. Wider than every cluster: submitted, and fit nowhere."""
    jobs = [(1, 9, 1), (25, 9, 5000), (26, 9, 100), (27, 9, 2), (50, 9, 1)]
    path = write_log(tmp_path / "a.swf", jobs)
    whole = generate_parallel_day(ParallelDay(jobs_swf=path, **SMALL))
    assert whole.tasks.width.tolist() == [100, 2]
    assert np.isfinite(whole.estimates.shortest_times()).tolist() == [False, True]
    assert whole.notes[1] == "1 job left out: wider than 4,096 cores (line 2)"


def test_what_is_typical_is_that_of_other_days(parallel_log: str):
    """Estimates of task types tell nothing of the day that is simulated."""
    spec = ParallelDay(
        jobs_swf=parallel_log,
        pstate_cov=0.0,
        pstate_type_cov=0.0,
        special_pstate_type_cov=0.0,
        special_pstate_cov=0.0,
        **SMALL,
    )
    estimates = generate_parallel_day(spec).estimates
    others = np.mean([100 + hour for hour in (1, 21, 60, 73, 80, 97)])
    assert estimates.typical_time_s[0, 0, 0] == pytest.approx(others)
    assert estimates.typical_nodes[0].tolist() == [1, 1, 1]
