"""The generator kind deferrable_jobs: what is drawn, when results are due, and what waiting saves."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pytest

from gridsched import Scenario, run
from gridsched.errors import InputError
from gridsched.model.carbon import Carbon
from gridsched.model.series import Series, SiteSeries
from gridsched.schedulers.green import WaitForGreen
from gridsched.workloads.deferrable_jobs import DeferrableJobs, generate_deferrable_jobs

HOUR_S = 3600.0
FIRST = datetime(2020, 1, 1)


def test_what_is_drawn():
    """Arrivals on working days from 9:00 to 16:30, run times of 4 to 89.5 hours, all half hours."""
    tasks = generate_deferrable_jobs(DeferrableJobs(jobs=2000, seed=1)).tasks
    arrivals = [FIRST + timedelta(seconds=each) for each in tasks.submit_time_s.tolist()]
    assert {each.weekday() for each in arrivals} == set(range(5))
    of_day = tasks.submit_time_s % (24 * HOUR_S)
    assert (of_day.min(), of_day.max()) == (9 * HOUR_S, 16.5 * HOUR_S)
    assert (tasks.flops.min(), tasks.flops.max()) == (4 * HOUR_S, 89.5 * HOUR_S)
    assert not (tasks.flops % 1800).any()
    assert not (of_day % 1800).any()


@pytest.mark.parametrize("due", ["next_workday", "semi_weekly"])
def test_when_results_are_due(due):
    """By the calendar, job by job: never before the job could end, and no earlier working morning would do."""
    tasks = generate_deferrable_jobs(DeferrableJobs(jobs=300, seed=2, due=due)).tasks
    for end, deadline in zip((tasks.submit_time_s + tasks.flops).tolist(), tasks.deadline_s.tolist(), strict=True):
        soonest, wanted = FIRST + timedelta(seconds=end), FIRST + timedelta(seconds=deadline)
        if wanted == soonest:
            assert (wanted.weekday() < 5 and 9 <= wanted.hour + wanted.minute / 60 <= 17) or due == "semi_weekly"
            continue
        mornings = [soonest.replace(hour=9, minute=0) + timedelta(days=day) for day in range(8)]
        working = range(5) if due == "next_workday" else (0, 3)
        if due == "next_workday" and soonest.weekday() == 4 and soonest.hour + soonest.minute / 60 > 17:
            working = (5,)  # as the study's program has it
        assert wanted == next(each for each in mornings if each >= soonest and each.weekday() in working)


def test_interruptible_jobs_are_the_same_ones_in_pieces():
    """A chain of half hours for each job, all submitted and due with it."""
    whole = generate_deferrable_jobs(DeferrableJobs(jobs=40, seed=3)).tasks
    pieces = generate_deferrable_jobs(DeferrableJobs(jobs=40, seed=3, interruptible=True)).tasks
    assert set(pieces.flops.tolist()) == {1800.0}
    assert pieces.flops.sum() == whole.flops.sum()
    assert len(pieces.dependencies) == len(pieces.flops) - 40
    first = np.setdiff1d(np.arange(len(pieces.flops)), pieces.dependencies.task)
    assert pieces.submit_time_s[first].tolist() == whole.submit_time_s.tolist()
    assert pieces.deadline_s[first].tolist() == whole.deadline_s.tolist()


def cheapest(intensity, first: int, length: int, last: int, *, interrupted: bool) -> float:
    """Return the least sum of half hours' intensities between two of them, by a plain loop."""
    window = intensity[first:last]
    if interrupted:
        return float(np.sort(window)[:length].sum())
    return min(float(window[k : k + length].sum()) for k in range(len(window) - length + 1))


@pytest.mark.parametrize("interruptible", [False, True])
def test_waiting_saves_what_a_plain_loop_finds(interruptible):
    """Of a random intensity each half hour, in the two months of 60 jobs."""
    spec = DeferrableJobs(jobs=60, seed=5, days=60, due="semi_weekly")
    intensity = np.random.default_rng(6).uniform(50.0, 500.0, 48 * 80)
    whole = generate_deferrable_jobs(spec).tasks
    workload = generate_deferrable_jobs(spec.model_copy(update={"interruptible": interruptible}))
    series = Series(tuple((1800.0 * np.arange(len(intensity))).tolist()), tuple(intensity.tolist()))
    carbon = Carbon(SiteSeries(("*",), (series,)), np.inf)
    scheduler = WaitForGreen("wq", max_delay_s=1e7)
    metrics = run(Scenario(workload.platform, workload.tasks, scheduler, carbon=carbon, driver="reference")).metrics()
    steps = [np.rint(each / 1800).astype(int).tolist() for each in (whole.submit_time_s, whole.flops, whole.deadline_s)]
    least = sum(cheapest(intensity, *job, interrupted=interruptible) for job in zip(*steps, strict=True))
    assert metrics["carbon_busy_g"] == pytest.approx(least * 0.5 / 1000, rel=1e-9)
    assert metrics["tasks_missed"] == 0


@pytest.mark.parametrize(
    "keys",
    [{"first_day": "2020-13-01"}, {"working_hours": (17.0, 9.0)}, {"run_time_h": (4.0, 4.1)}, {"days": 6}, {"jobs": 0}],
)
def test_what_cannot_be_drawn_is_refused(keys):
    """Days that are none, hours that end before they begin, and ranges without a step."""
    with pytest.raises((InputError, ValueError), match=next(iter(keys))):
        DeferrableJobs(**keys)
