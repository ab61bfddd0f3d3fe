"""How parallel jobs waited and how full their machine was, by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import traces_by_hand as by_hand

from gridsched.metrics import METRICS, known_metrics, summary
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import TaskState
from gridsched.testing.parallel_cases import cluster_of

PARALLEL = ("mean_bounded_slowdown", "max_bounded_slowdown", "utilisation")
#: (submission, run time, nodes) of the example of algorithms I, and its starts.
JOBS = [(0, 10, 3), (1, 5, 4), (2, 20, 1), (3, 7, 1)]
EASY, FCFS = (0, 10, 15, 3), (0, 10, 15, 15)


def trace_of(starts, jobs=JOBS, outcomes=None):
    """Write down a run of jobs on four nodes, each from node 0 on."""
    submit, length, width = map(np.array, zip(*jobs, strict=True))
    tasks = make_tasks(length * 2e9, submit, width=width, requested_time_s=length)
    outcomes = outcomes or [by_hand.FINISHED] * len(jobs)
    rows = sorted(((k, 0, 0, s, s + length[k], outcomes[k]) for k, s in enumerate(starts)), key=lambda row: row[3])
    state = [TaskState.FINISHED if o == by_hand.FINISHED else TaskState.KILLED for o in outcomes]
    trace = by_hand.make_trace(cluster_of(4), tasks, rows, final_state=state)
    widths = [width[row[0]] for row in rows]
    return replace(
        trace, host_offsets=np.cumsum([0, *widths]), host_ids=np.concatenate([np.arange(each) for each in widths])
    )


@pytest.mark.parametrize(
    ("starts", "wait", "slowdowns"),
    [(EASY, 22 / 4, (1, 14 / 10, 33 / 20, 1)), (FCFS, 34 / 4, (1, 14 / 10, 33 / 20, 19 / 10))],
)
def test_the_example_of_section_i(starts, wait, slowdowns):
    """Run times under 10 s count as 10 s, no slowdown is below 1; 77 of 4 x 35 node-seconds."""
    found = summary(trace_of(starts))
    assert found["mean_waiting_time_s"] == wait
    assert found["mean_bounded_slowdown"] == pytest.approx(sum(slowdowns) / 4, rel=1e-15)
    assert found["max_bounded_slowdown"] == max(slowdowns)
    assert found["busy_time_s"] == 77
    assert found["utilisation"] == 77 / 140


def test_utilisation_begins_with_the_first_submission():
    """All 100 s later: the same share. What is killed after the last finish counts until then."""
    late = [(submit + 100, *job) for submit, *job in JOBS]
    assert summary(trace_of(np.array(EASY) + 100, late))["utilisation"] == 77 / 140
    cut = trace_of(EASY, outcomes=[0, 0, by_hand.KILLED, 0])
    assert summary(cut)["makespan_s"] == 15
    assert summary(cut)["utilisation"] == (30 + 20 + 7) / 60


def test_nothing_finished_has_no_utilisation():
    """No jobs, or none that ended well: nan, without a warning."""
    killed = trace_of([0], [(0, 10, 3)], [by_hand.KILLED])
    assert all(math.isnan(summary(killed)[name]) for name in PARALLEL)


def test_serial_tasks_do_not_have_them():
    """Neither their runs and plans nor their studies; studies of parallel jobs have no bounds."""
    assert not set(PARALLEL) & summary(by_hand.work_queue()).keys()
    assert all(METRICS[name].planned is None for name in PARALLEL)
    bags = {metric.id for metric in known_metrics(["bag"])}
    jobs = {metric.id for metric in known_metrics(["parallel"])}
    assert not set(PARALLEL) & bags
    assert jobs >= {*PARALLEL, "mean_waiting_time_s", "energy_j"}
    assert "makespan_bound_s" in bags - jobs
