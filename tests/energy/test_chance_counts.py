"""Predicted chances beside what came of them, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gridsched import Scenario, make_tasks, run
from gridsched.metrics.run_metrics import CHANCE_BINS, chance_counts, series_of_notes
from gridsched.model.platform import Host, Platform, PState
from gridsched.workloads.robust_trial import RobustTrial, generate_robust_trial


def test_tasks_are_counted_by_their_chance():
    """One host of 10 flop/s: ends at 10, 20, 30, 40 s. The last deadline is after the run's end.

    Task 1 is in time, 2 late, 3 was given no chance, 4 could still have been in time.
    """
    platform = Platform((Host("h", (PState(10.0),)),))
    tasks = make_tasks([100.0] * 4, deadline_s=[10.0, 15.0, 30.0, 41.0])
    trace = run(Scenario(platform, tasks, "wq", driver="reference")).trace
    found = chance_counts(trace, np.array([1.0, 0.97, np.nan, 0.5]))
    assert all(len(values) == CHANCE_BINS for values in found.values())
    assert found["chance_tasks"][-1] == 2.0  # 1.0 and 0.97
    assert found["chance_sum"][-1] == pytest.approx(1.97)
    assert found["chance_in_time"][-1] == 1.0
    assert found["chance_tasks"].sum() == 2.0


def test_a_campaign_stores_the_counts_of_what_was_noted():
    """Of a heuristic with deadlines: every task that the budget's end leaves decided is counted."""
    made = generate_robust_trial(RobustTrial(nodes=2, total_cores=5, phases=((40, 60.0),), budget_tasks=30.0))
    scenario = Scenario(None, made.tasks, "shortest_queue", driver="reference").with_system(made)
    trace = run(scenario).trace
    found = series_of_notes(trace)
    decided = made.tasks.deadline_s <= trace.horizon_s
    assert 10 < decided.sum() == sum(found["chance_tasks"])
    in_time = trace.finish_time_s <= made.tasks.deadline_s
    assert sum(found["chance_in_time"]) == (in_time & decided).sum()
    assert 0 < sum(found["chance_sum"]) < decided.sum()
    other = Scenario(None, made.tasks, "mct", driver="reference").with_system(made)
    assert series_of_notes(run(other).trace) == {}
