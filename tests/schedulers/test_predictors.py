"""Run times that are predicted from a user's last jobs, and corrected as they pass."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rigid_cases import machine
from rigid_oracles import easy

from gridsched import Scenario, run
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.tasks import make_tasks

#: Tsafrir, Etsion, Feitelson 2007: one minute, five, fifteen, thirty, one hour, two, five, ...
STEPS = [60, 300, 900, 1800, 3600, 7200, 18_000, 36_000, 72_000, 180_000, 360_000]


def starts(jobs, n_nodes, scheduler="easy_backfilling", **parameters) -> list[float]:
    """Return the starts of jobs: submission, run time, nodes, request, user."""
    submit, length, width, request, user = zip(*jobs, strict=True)
    platform = machine(n_nodes)
    tasks = make_tasks(
        np.array(request) * 1e9, submit, width=width, requested_time_s=request, attributes={"user": user}
    )
    parameters = {"estimate": "last_two_of_user", **parameters}
    times = LoggedRunTimes(platform, length)
    return run(
        Scenario(platform, tasks, scheduler, parameters, run_times=times, driver="reference")
    ).trace.start_time_s.tolist()


def oracle(jobs, n_nodes) -> list[float]:
    """Simulate EASY on predictions, instant by instant; nothing of the package."""
    start, predicted, steps, history = {}, {}, {}, {}
    waiting, running, to_come = [], [], list(range(len(jobs)))
    while to_come or waiting or running:
        now = min([start[j] + jobs[j][1] for j in running] + [jobs[j][0] for j in to_come[:1]])
        for j in [j for j in running if start[j] + jobs[j][1] == now]:
            running.remove(j)
            if jobs[j][4]:
                history.setdefault(jobs[j][4], []).append(jobs[j][1])
        while to_come and jobs[to_come[0]][0] == now:
            waiting.append(to_come.pop(0))
        for j in running:
            while start[j] + predicted[j] <= now and predicted[j] < jobs[j][3]:
                predicted[j] = min(predicted[j] + STEPS[min(steps[j], len(STEPS) - 1)], jobs[j][3])
                steps[j] += 1
        guess = {}
        for j in waiting:
            last = history.get(jobs[j][4], [])[-2:]
            guess[j] = min(sum(last) / 2, jobs[j][3]) if len(last) == 2 else jobs[j][3]
        ends = [(max(start[j] + predicted[j], np.nextafter(now, np.inf)), jobs[j][2]) for j in running]
        free = n_nodes - sum(width for _, width in ends)
        for j in easy(now, [(j, jobs[j][2], guess[j]) for j in waiting], free, ends) if waiting else []:
            start[j], predicted[j], steps[j] = now, guess[j], 0
            waiting.remove(j)
            running.append(j)
    return [start[j] for j in range(len(jobs))]


def test_the_last_two_jobs_of_the_user_by_hand():
    """Ann asks for an hour and takes 8 and 12 s: her next job counts as 10 s, and slips in before bob's."""
    jobs = [
        (0, 8, 1, 3600, "ann"),
        (0, 12, 1, 3600, "ann"),
        (20, 40, 3, 40, "bob"),
        (21, 30, 4, 30, "bob"),
        (22, 9, 1, 3600, "ann"),
    ]
    assert starts(jobs, 4) == [0, 0, 20, 60, 22]
    assert starts(jobs, 4, estimate="requested") == [0, 0, 20, 60, 90]


def test_a_prediction_that_passed_grows_by_a_minute_then_by_five():
    """Predicted 10 s, the job runs 500 s: at 130 s it counts as 370 s long, the third guess."""
    jobs = [
        (0, 10, 1, 3600, "ann"),
        (0, 10, 1, 3600, "ann"),
        (20, 500, 2, 3600, "ann"),
        (21, 900, 4, 900, "bob"),
        # until 30 s + 20 s: ends before the head's shadow at 390 s, and starts at once at 150 s
        (150, 230, 1, 230, "bob"),
        (160, 240, 1, 240, "bob"),
    ]
    assert starts(jobs, 4) == [0, 0, 20, 520, 150, 1420]
    assert starts(jobs, 4) == oracle(jobs, 4)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 900), st.integers(1, 700), st.integers(1, 5), st.integers(0, 900), st.sampled_from("abc")
        ),
        min_size=1,
        max_size=25,
    )
)
def test_easy_on_predictions_starts_as_a_plain_simulation(rows):
    """Histories, corrections and backfilling together."""
    jobs = [(s, r, n, r + more, user) for s, r, n, more, user in sorted(rows, key=lambda row: row[0])]
    assert starts(jobs, 5) == oracle(jobs, 5)


@pytest.mark.parametrize("scheduler", ["fcfs", "easy_backfilling", "conservative_backfilling"])
def test_predictions_that_come_true_are_requests(scheduler):
    """Where every job takes what it asks for, each predictor's jobs of one length change nothing."""
    jobs = [(7 * k, 10, 1 + k % 4, 10, "ann") for k in range(12)]
    assert starts(jobs, 5, scheduler) == starts(jobs, 5, scheduler, estimate="requested")
