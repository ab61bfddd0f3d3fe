"""Metrics of runs written down by hand."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import traces_by_hand as by_hand
from plain_hosts import plain_platform

from gridsched import metrics
from gridsched.model.tasks import make_tasks


@pytest.mark.parametrize(("copies", "makespan", "flops", "joules"), [(2, 55, 1375, 275), (3, 45, 2625, 825)])
def test_replication_reports_its_waste(copies, makespan, flops, joules):
    """The table of A2: makespan, wasted flops and joules."""
    found = metrics.summary(by_hand.replication(copies))
    assert found["makespan_s"] == makespan
    assert found["wasted_flops"] == flops
    assert found["energy_wasted_j"] == joules
    assert found["waste_ratio"] == flops / (5250 + flops)
    assert found["tasks_finished"] == found["tasks"] == 5


def test_work_queue_summary():
    """Times and counts of A1: nothing wasted, every host used."""
    found = metrics.summary(by_hand.work_queue())
    assert found["makespan_s"] == 80
    assert found["busy_time_s"] == 120
    assert found["energy_model_j"] == 2430
    assert found["energy_idle_j"] == 480
    assert found["waste_ratio"] == 0.0
    assert found["hosts_used"] == 3
    assert found["mean_waiting_time_s"] == (10 + 10) / 5
    assert found["mean_flow_time_s"] == (10 + 10 + 80 + 25 + 15) / 5
    assert found["max_slowdown"] == 3.0
    assert list(found)[:3] == ["makespan_s", "busy_time_s", "energy_model_j"]


def test_only_finished_tasks_count_in_means():
    """A killed, a dropped and a rejected task are counted, and averaged nowhere."""
    trace = by_hand.everything_at_once()
    found = metrics.summary(trace)
    counts = [found[f"tasks_{s}"] for s in ("finished", "killed", "dropped", "rejected", "failed")]
    assert counts == [3, 1, 1, 1, 0]
    assert found["makespan_s"] == 60.0
    assert found["max_waiting_time_s"] == 45.0
    assert found["max_flow_time_s"] == 55.0
    assert found["wasted_flops"] == 200.0
    assert metrics.waiting_time_s(trace)[3] == 55.0
    assert np.isnan(metrics.flow_time_s(trace)[3:]).all()


def test_the_copy_that_finished_tells_the_tasks_times():
    """Waiting time + execution time = flow time, also where a later copy won."""
    trace = by_hand.replication(3)
    assert metrics.waiting_time_s(trace)[2] == 25.0
    assert metrics.execution_time_s(trace)[2] == 20.0
    assert metrics.flow_time_s(trace)[2] == 45.0


def test_an_original_that_beats_its_replica_tells_the_tasks_times():
    """Both replicas of task 0 are cancelled; none of its times are theirs."""
    trace = by_hand.beaten_replica()
    assert metrics.deciding_execution(trace).tolist() == [0, 1]
    assert metrics.waiting_time_s(trace).tolist() == [0.0, 0.0]
    assert metrics.execution_time_s(trace).tolist() == [10.0, 5.0]
    assert metrics.slowdown(trace).tolist() == [1.0, 1.0]
    found = metrics.summary(trace)
    assert found["mean_waiting_time_s"] == found["max_waiting_time_s"] == 0.0
    assert found["max_slowdown"] == 1.0
    assert found["wasted_flops"] == 5 * 50 + 10 * 25


def test_makespan_begins_with_the_first_submission():
    """A bag submitted at 100 s and done at 130 s has makespan 30 s."""
    trace = by_hand.make_trace(
        plain_platform([1.0]), make_tasks([10.0, 20.0], 100.0), [(0, 0, 0, 100.0, 110.0, 0), (1, 0, 0, 110.0, 130.0, 0)]
    )
    assert metrics.makespan_s(trace) == 30.0


def test_bounded_slowdown():
    """A bound of 10 s keeps a 5 s task that waited 10 s at 1.5."""
    trace = by_hand.work_queue()
    assert metrics.slowdown(trace)[4] == 3.0
    assert metrics.slowdown(trace, bound_s=10.0)[4] == 1.5
    assert metrics.slowdown(trace, bound_s=1e9).tolist() == [1.0] * 5


def test_an_execution_without_length_does_not_divide_by_zero():
    """A task of no duration has slowdown 1, or infinity if it waited."""
    trace = by_hand.make_trace(
        plain_platform([1.0]), make_tasks([1e-30, 1e-30]), [(0, 0, 0, 0.0, 0.0, 0), (1, 0, 0, 5.0, 5.0, 0)]
    )
    assert metrics.slowdown(trace).tolist() == [1.0, math.inf]


def test_an_empty_run_has_makespan_zero_and_warns_of_nothing():
    """No tasks: counts, times and energies are 0, means over nothing are nan."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = metrics.summary(by_hand.empty())
    assert found["makespan_s"] == found["energy_model_j"] == found["waste_ratio"] == 0.0
    assert found["tasks"] == found["hosts_used"] == 0
    assert math.isnan(found["mean_flow_time_s"])
    assert math.isnan(found["max_slowdown"])
    assert all(isinstance(value, int | float) for value in found.values())


def test_nothing_finished_is_not_a_makespan():
    """All tasks killed: makespan 0, busy time and waste are what was executed."""
    trace = by_hand.list_schedule(2, 6, cancel_every=1)
    found = metrics.summary(trace)
    assert found["makespan_s"] == 0.0
    assert found["waste_ratio"] == 1.0
    assert found["busy_time_s"] > 0
    assert math.isnan(found["mean_waiting_time_s"])
