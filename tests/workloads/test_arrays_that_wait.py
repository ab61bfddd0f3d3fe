"""Arrays that wait for arrays: as many numbers as jobs, and the same runs as of pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gridsched import Scenario, run
from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.errors import InputError
from gridsched.export.export import read_export, write_export
from gridsched.model.dependencies import Block
from gridsched.model.trace import TaskState
from gridsched.testing import trace_differences
from gridsched.testing.decision_checks import early_starts
from gridsched.workloads.traces import dependencies
from gridsched.workloads.traces.formats import read_jobs, write_jobs
from gridsched.workloads.traces.trace_options import TraceOptions
from gridsched.workloads.traces.trace_system import trace_system

HEAD = "JobID|Submit|ElapsedRaw|TimelimitRaw|NNodes|State|Dependency"
WORDS = ["after", "afterany", "afterok", "afternotok"]


def log_of(folder: Path, first: list[tuple[int, str]], word: str, waiting: int, delay: int = 0) -> Path:
    """Write array 7, given run times and states, `waiting` jobs of array 8 that wait for it, and one for both."""
    rows = [f"7_{k}|{k}|{run_s}|9|1|{state}|" for k, (run_s, state) in enumerate(first)]
    option = f"{word}:7" + f"+{delay}" * bool(delay)
    begin = max(20, len(first))
    rows += [f"8_{k}|{begin + k}|5|9|1|COMPLETED|{option}" for k in range(waiting)]
    rows.append(f"9|{90 + begin * len(first)}|5|9|1|COMPLETED|afterany:7:8")
    path = folder / "a.sacct"
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    return path


def ran(path: Path, driver: str = "reference", scheduler: str = "fcfs"):
    return run(Scenario(None, path, scheduler, driver=driver, trace=TraceOptions(nodes=4))).trace


STATES = st.sampled_from(["COMPLETED", "COMPLETED", "COMPLETED", "FAILED"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(1, 60), STATES), min_size=1, max_size=6),
    st.sampled_from(WORDS),
    st.integers(1, 4),
    st.integers(0, 1),
)
def test_blocks_run_as_pairs(tmp_path, first, word, waiting, delay):
    """Of all kinds, with delays, failures in the log and jobs that are rejected."""
    path, found = log_of(tmp_path, first, word, waiting, delay), []
    for most in (10**9, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dependencies, "MOST_PAIRS", most)
            made = trace_system(path, TraceOptions(nodes=4))
            found.append((made.jobs.notes, ran(path)))
    assert found[0][0] == found[1][0]
    assert trace_differences(found[0][1], found[1][1]) == []
    edges = [trace.tasks.dependencies for _, trace in found]
    assert not len(edges[1])
    assert edges[0].n_pairs >= edges[1].n_pairs or len(first) == 1 or word == "afterok"
    assert early_starts(found[1][1]) == []


@pytest.mark.parametrize("word", WORDS[:3])
def test_an_array_waits_for_an_array_by_hand(tmp_path, monkeypatch, word):
    """Jobs of 10, 40 and 20 s from 0, 1 and 2 s on: all have started at 2 s and ended at 41 s."""
    monkeypatch.setattr(dependencies, "MOST_PAIRS", 0)
    trace = ran(log_of(tmp_path, [(10, "COMPLETED"), (40, "COMPLETED"), (20, "COMPLETED")], word, 2))
    assert trace.start_time_s.tolist() == ([0, 1, 2, 20, 21, 150] if word == "after" else [0, 1, 2, 41, 41, 150])
    trace = ran(log_of(tmp_path, [(10, "COMPLETED"), (40, "FAILED")], "afterok", 2))
    assert trace.final_state[2:4].tolist() == [TaskState.REJECTED] * 2


def test_n_and_n_numbers(tmp_path):
    """3,000 jobs that wait for 3,000 others have 6,000 numbers; all start when the last of these has ended."""
    n = 3000
    path = log_of(tmp_path, [(50 + k % 7, "COMPLETED") for k in range(n)], "afterany", n)
    made = trace_system(path, TraceOptions(nodes=2 * n))
    edges = made.system.tasks.dependencies
    assert not len(edges)
    assert [(len(each.task), len(each.on)) for each in edges.blocks] == [(n + 1, n), (1, n)]
    assert edges.n_pairs == n * n + 2 * n
    trace = run(Scenario(None, path, "fcfs", driver="reference", trace=TraceOptions(nodes=2 * n))).trace
    last = (np.arange(n) + 50 + np.arange(n) % 7).max()
    assert trace.start_time_s[n : 2 * n].tolist() == [max(last, n + k) for k in range(n)]


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
def test_drivers_tables_and_archives_keep_blocks(tmp_path, monkeypatch):
    """SimGrid runs them alike; an archive has the same blocks, and a table the same runs, with the array's number."""
    monkeypatch.setattr(dependencies, "MOST_PAIRS", 0)
    path = log_of(tmp_path, [(10, "COMPLETED"), (40, "COMPLETED")], "afterok", 3, delay=1)
    trace = ran(path)
    assert trace_differences(trace, ran(path, "simgrid")) == []
    write_export(trace, None, {}, tmp_path / "run", workload_name="log")
    for ours, theirs in zip(
        trace.tasks.dependencies.blocks, read_export(tmp_path / "run").trace.tasks.dependencies.blocks, strict=True
    ):
        assert (ours.task.tolist(), ours.on.tolist()) == (theirs.task.tolist(), theirs.on.tolist())
        assert (ours.kind, ours.delay_s) == (theirs.kind, theirs.delay_s)
    write_jobs(read_jobs(path, TraceOptions()), tmp_path / "a.jobs.csv")
    assert "7+1.0" in (tmp_path / "a.jobs.csv").read_text()
    assert ran(tmp_path / "a.jobs.csv").start_time_s.tolist() == trace.start_time_s.tolist()


def test_jobs_in_front_of_their_array_wait_for_none_behind_them(tmp_path, monkeypatch):
    """As of pairs: a line counts these, and the others hold."""
    rows = ["7_0|0|50|9|1|COMPLETED|", "8|1|5|9|1|COMPLETED|afterany:7", "7_1|2|90|9|1|COMPLETED|"]
    (tmp_path / "a.sacct").write_text("\n".join([HEAD, *rows, "9|3|5|9|1|COMPLETED|afterany:7"]) + "\n")
    for most in (0, 10**9):
        monkeypatch.setattr(dependencies, "MOST_PAIRS", most)
        made = trace_system(tmp_path / "a.sacct", TraceOptions(nodes=4))
        assert sum("1 dependencies on jobs" in note for note in made.jobs.notes) == 1
        assert ran(tmp_path / "a.sacct").start_time_s.tolist() == [0, 50, 2, 92]


@pytest.mark.parametrize(
    ("task", "on", "kind", "delay_s"),
    [([2], [2], 1, 0), ([2, 1], [0], 1, 0), ([1], [], 1, 0), ([], [0], 1, 0), ([1], [0], 9, 0), ([1], [0], 1, -1)],
)
def test_impossible_blocks_are_refused(task, on, kind, delay_s):
    """Jobs that wait for later ones, or in no order, for none, kinds and delays that there are not."""
    with pytest.raises(InputError, match="Block"):
        Block(np.array(task, dtype=np.int64), np.array(on, dtype=np.int64), kind, delay_s)


@pytest.mark.parametrize("on", [1, 99])
def test_many_jobs_that_wait_for_one(tmp_path, on):
    """Whether it is in the log or not, job 99, which then has ended before; each of the others follows job 1."""
    n = dependencies.MOST_PAIRS + 1
    row = "{id} {id} -1 10 1 -1 -1 1 20 -1 1 1 1 1 1 1 {on} -1\n"
    path = tmp_path / "a.swf"
    path.write_text(row.format(id=1, on=-1) + "".join(row.format(id=k, on=on) for k in range(100, 100 + n)))
    jobs = read_jobs(path, TraceOptions(nodes=4))
    assert len(jobs) == n + 1
    starts = run(Scenario(None, path, "fcfs", driver="reference", trace=TraceOptions(nodes=n + 1))).trace.start_time_s
    assert starts[0] == 0
    assert (starts[1:] - starts[0] >= 10).all()
    assert starts[1] == 99
