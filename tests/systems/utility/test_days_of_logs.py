"""Days of logs as parallel tasks with utility functions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gridsched.errors import InputError
from gridsched.systems.utility.parallel_day import ParallelDay
from gridsched.systems.utility.parallel_tasks import generate_parallel_day, read_log_days

# Logs in the Standard Workload Format: what is read, what is left out and why, and back again.

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
    """Estimates of task types show nothing of the day that is simulated."""
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
