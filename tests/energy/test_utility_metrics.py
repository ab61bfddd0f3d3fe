"""Metrics of utility and of parallel jobs."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import traces_by_hand as by_hand
from clusters import plain_platform
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gridsched import metrics
from gridsched.energy import carried_over_energy, trace_energy
from gridsched.errors import InputError
from gridsched.metrics import METRICS, known_metrics, summary, window_metrics
from gridsched.metrics.facts import RunFacts
from gridsched.metrics.window_metrics import energy_in
from gridsched.model.estimates import FlopsEstimates
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.task_types import TypedEstimates
from gridsched.model.tasks import make_tasks
from gridsched.model.timeline import spread_evenly
from gridsched.model.trace import PERIOD, TaskState
from gridsched.model.utility import UtilityFunctions
from gridsched.testing.parallel_cases import cluster_of

# Utility, windows and periods of runs written down by hand (algorithms B1, B7).

DAY = 86_400.0
MIDNIGHT_TASK = (23 * 3600 + 50 * 60.0, DAY + 20 * 60.0)


def one_host(watts: float = 50.0, idle_w: float = 0.0) -> Platform:
    """Return a platform of one host."""
    return Platform((Host("m1", (PState(1.0, idle_w, watts, watts),)),))


def flat(*priorities: float, rate: float = 0.0) -> UtilityFunctions:
    """Return utility functions that decay exponentially at `rate` a minute."""
    return UtilityFunctions.exponential(np.array(priorities), np.full(len(priorities), rate), urgency_unit_s=60.0)


def day_trace(executions, tasks, *, periods=(), horizon_s=None, final_state=None, **host):
    """Return a trace on one host."""
    trace = by_hand.make_trace(one_host(**host), tasks, executions, horizon_s=horizon_s, final_state=final_state)
    object.__setattr__(trace, "periods", np.array(list(periods), dtype=PERIOD))
    return trace


def midnight() -> object:
    """B7's test: 23:50 to 00:20, utility 3, 90 kJ (50 W for 30 min)."""
    start, end = MIDNIGHT_TASK
    tasks = make_tasks([1800.0], start, utility=flat(3.0))
    return day_trace([(0, 0, 0, start, end, by_hand.FINISHED)], tasks, horizon_s=2 * DAY)


def test_a_task_across_midnight_counts_on_both_days():
    """B7: day 1 gets 1 and 30 kJ, day 2 gets 2 and 60 kJ."""
    trace = midnight()
    for day, (utility, joules) in enumerate([(1.0, 30e3), (2.0, 60e3)]):
        found = metrics.summary(trace, window_s=(day * DAY, (day + 1) * DAY))
        assert found["window_utility"] == pytest.approx(utility, rel=1e-12)
        assert found["window_energy_j"] == pytest.approx(joules, rel=1e-12)
        assert found["utility"] == found["utility_possible"] == 3.0


def test_utility_is_that_of_the_time_since_submission():
    """B1's second example: exp, priority 8, rate 0.01 a minute, finished 10 min after arrival."""
    tasks = make_tasks([300.0, 60.0], [60.0, 100.0], utility=flat(8.0, 5.0, rate=0.01))
    runs = [(0, 0, 0, 360.0, 660.0, by_hand.FINISHED), (1, 0, 0, 660.0, 700.0, by_hand.KILLED)]
    state = [TaskState.FINISHED, TaskState.KILLED]
    trace = day_trace(runs, tasks, final_state=state)
    earned = window_metrics.utility_earned(trace)
    assert earned[0] == pytest.approx(8 * math.exp(-0.1), rel=1e-14)
    assert round(earned[0], 4) == 7.2387
    assert earned[1] == 0.0
    found = metrics.summary(trace)
    assert found["utility"] == earned.sum()
    assert found["utility_possible"] == 13.0
    assert found["tasks_postponed"] == 0
    assert "window_utility" not in found


def test_the_order_of_the_utility_functions_is_that_of_submission():
    """Tasks given in another order keep their own functions."""
    tasks = make_tasks([10.0, 10.0], [50.0, 0.0], utility=flat(2.0, 7.0))
    runs = [(0, 0, 0, 0.0, 10.0, by_hand.FINISHED)]
    trace = day_trace(runs, tasks, final_state=[TaskState.FINISHED, TaskState.DROPPED])
    assert window_metrics.utility_earned(trace).tolist() == [7.0, 0.0]


def test_without_utility_the_keys_are_those_of_old():
    """A bag gets no new keys; a window alone adds its energy."""
    trace = by_hand.work_queue()
    plain = metrics.summary(trace)
    assert not {"utility", "tasks_postponed", "budget_excess_j", "window_energy_j"} & plain.keys()
    found = metrics.summary(trace, window_s=(0.0, 10.0))
    assert found.keys() - plain.keys() == {"window_energy_j"}
    assert found["window_energy_j"] == 10 * (50 + 20 + 5)
    with pytest.raises(InputError, match=r"EX-A.*utility"):
        window_metrics.utility_earned(trace)


def test_a_window_counts_idle_hosts_too():
    """10 s at 4 W idle, 30 s at 50 W: the window from 5 s to 15 s holds 20 J and 250 J."""
    tasks = make_tasks([30.0], 0.0)
    runs = [(0, 0, 0, 10.0, 40.0, by_hand.FINISHED)]
    trace = day_trace(runs, tasks, idle_w=4.0)
    assert energy_in(trace, [(5.0, 15.0)]).item() == pytest.approx(20.0 + 250.0, rel=1e-14)
    assert energy_in(trace, [(0.0, 1e6)]).item() == trace_energy(trace).grid_total()
    assert energy_in(trace, [(1e6, 2e6)]).item() == 0.0


def test_the_series_of_a_window_ends_at_its_totals():
    """Steps of 20 minutes over the second day; the task of B7 ends with the first of them."""
    series = window_metrics.window_series(midnight(), (DAY, 2 * DAY))
    assert series["time_s"].tolist() == [DAY + 1200 * k for k in range(73)]
    assert series["utility"][:3] == pytest.approx([0.0, 2.0, 2.0])
    assert series["energy_j"][:3] == pytest.approx([0.0, 60e3, 60e3])
    assert series["energy_j"][-1] == pytest.approx(60e3)


@pytest.mark.parametrize(
    ("window", "step", "times"),
    [
        ((0.0, 10.0), 4.0, [0, 4, 8, 10]),
        ((5.0, 6.0), 4.0, [5, 6]),
        ((0.0, 0.3), 0.1, [0, 0.1, 0.2, 0.3]),
        ((1.0, 2.0), 1.0, [1, 2]),
    ],
)
def test_the_last_step_ends_with_the_window(window, step, times):
    """Steps need not divide the window; rounding adds none."""
    series = window_metrics.window_series(by_hand.work_queue(), window, step)
    assert series["time_s"] == pytest.approx(times)
    assert series["utility"].tolist() == [0.0] * len(times)


@pytest.mark.parametrize(
    ("window", "step"),
    [
        ((5.0, 5.0), 1.0),
        ((5.0, 4.0), 1.0),
        ((0.0, 5.0), 0.0),
        ((0.0, 5.0), -1.0),
        ((0.0, 5.0), 1e-9),
        ((0.0, math.inf), 1.0),
        ((0.0, 5.0), math.nan),
        ((0.0, 5.0), math.inf),
    ],
)
def test_a_window_of_no_or_too_many_steps_is_refused(window, step):
    """The message names window and step."""
    with pytest.raises(InputError, match=r"Window \["):
        window_metrics.window_series(by_hand.work_queue(), window, step)


def test_the_excess_over_a_budget_leaves_out_what_was_carried_over():
    """Day 2 draws 60 kJ of a carried task and 100 kJ of its own; its budget is 70 kJ."""
    start, end = MIDNIGHT_TASK
    tasks = make_tasks([1800.0, 2000.0], [start, end])
    runs = [(0, 0, 0, start, end, by_hand.FINISHED), (1, 0, 0, end, end + 2000.0, by_hand.FINISHED)]
    periods = [(0.0, DAY, 40e3, 0.0, 0.0), (DAY, 2 * DAY, 70e3, 0.0, 0.0)]
    trace = day_trace(runs, tasks, periods=periods)
    carried = carried_over_energy(trace)
    assert carried == pytest.approx([0.0, 60e3])
    found = metrics.summary(trace)
    assert found["budget_excess_j"] == pytest.approx(30e3)
    assert found["carried_over_j"] == pytest.approx(60e3)
    assert found["tasks_postponed"] == 0


def test_kept_and_infinite_budgets_have_no_excess():
    """The excess is never negative; an infinite budget is never exceeded."""
    tasks = make_tasks([10.0], 0.0)
    runs = [(0, 0, 0, 0.0, 10.0, by_hand.FINISHED)]
    for budget in (500.0, 501.0, math.inf):
        trace = day_trace(runs, tasks, periods=[(0.0, DAY, budget, 0.0, 0.0)])
        assert metrics.summary(trace)["budget_excess_j"] == 0.0


def test_tasks_postponed_counts_tasks_not_times():
    """A task postponed on three days is one task."""
    tasks = make_tasks([10.0, 10.0, 10.0], 0.0, utility=flat(1.0, 1.0, 1.0))
    trace = day_trace([(0, 0, 0, 0.0, 10.0, by_hand.FINISHED)], tasks)
    assert trace.times_postponed.tolist() == [0, 0, 0]
    object.__setattr__(trace, "times_postponed", np.array([3, 0, 1]))
    assert metrics.summary(trace)["tasks_postponed"] == 2


# ---------------------------------------------------------------------- against a plain loop

STRETCH = st.tuples(st.floats(0, 100), st.floats(0, 50), st.floats(0, 1e6))
INTEGER_STRETCH = st.tuples(*(st.integers(0, 40).map(float),) * 3)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(STRETCH | INTEGER_STRETCH, max_size=25),
    st.lists(st.floats(0, 160) | st.integers(0, 90).map(float), min_size=2, max_size=8, unique=True),
)
@example([(0.0, 1e-238, 1e-273)], [0.0, 1.0])
def test_amounts_are_divided_as_by_a_plain_loop(stretches, edges):
    """Each interval gets the share of each stretch that it covers."""
    edges = sorted(edges)
    expected = []
    for begin, end in itertools.pairwise(edges):
        total = 0.0
        for start, length, amount in stretches:
            stop = start + length
            if stop > start:
                # the share first: the product of two tiny numbers would underflow
                total += amount * (max(0.0, min(stop, end) - max(start, begin)) / (stop - start))
            elif begin <= start < end:
                total += amount
        expected.append(total)
    start, length, amount = np.array(stretches, dtype=float).reshape(-1, 3).T
    found = spread_evenly(start, start + length, amount, np.array(edges))
    largest = sum(stretch[2] for stretch in stretches)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9 * largest + 1e-300)


@pytest.mark.parametrize("edges", [[], [20.0]])
def test_no_interval_receives_no_amount(edges):
    """A run that ended before its first budget period has no edges, one edge bounds nothing."""
    amounts = spread_evenly(np.array([0.0]), np.array([10.0]), np.array([5.0]), np.array(edges))
    assert amounts.shape == (0,)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3), st.integers(0, 40), st.integers(1, 2), st.integers(0, 10**6))
def test_days_add_up_and_series_end_at_the_totals(n_hosts, n_tasks, cores, seed):
    """Prorated parts of consecutive days sum to the total; so do the steps of a series."""
    trace = by_hand.list_schedule(n_hosts, n_tasks, cores, seed, cancel_every=4)
    rng = np.random.default_rng(seed)
    functions = UtilityFunctions.exponential(rng.uniform(1, 8, n_tasks), rng.uniform(0, 0.6, n_tasks))
    object.__setattr__(trace.tasks, "utility", functions)
    end = max(trace.horizon_s, 1.0)
    days = [0.0, *sorted(rng.uniform(0, end, 3).tolist()), end]
    rows = [metrics.summary(trace, window_s=pair) for pair in itertools.pairwise(days)]
    earned = 0.0
    for task, finish in enumerate(trace.finish_time_s):
        if finish == finish:  # one exponential interval; the unit is a minute
            decay = functions.urgency[task] * finish / 60
            earned += functions.priority[task] * math.exp(-decay)
    assert rows[0]["utility"] == pytest.approx(earned, rel=1e-12)
    assert sum(row["window_utility"] for row in rows) == pytest.approx(earned, rel=1e-9)
    total = rows[0]["energy_model_j"]
    assert sum(row["window_energy_j"] for row in rows) == pytest.approx(total, rel=1e-9)
    for pair, row in zip(itertools.pairwise(days), rows, strict=True):
        if pair[1] > pair[0]:
            series = window_metrics.window_series(trace, pair, (pair[1] - pair[0]) / 7.3)
            assert series["utility"][-1] == pytest.approx(row["window_utility"], abs=1e-9)
            assert series["energy_j"][-1] == pytest.approx(row["window_energy_j"], rel=1e-9)
            assert (np.diff(series["energy_j"]) >= 0).all()


def test_what_is_carried_over_shares_its_host():
    """Two tasks on a host of two cores at 50 W from 10 s on: the one from before has 250 J."""
    platform = Platform((Host("m1", (PState(1.0, 0.0, 0.0, 50.0),), cores=2),))
    tasks = make_tasks([20.0, 10.0], [0.0, 10.0])
    runs = [(0, 0, 0, 0.0, 20.0, by_hand.FINISHED), (1, 0, 0, 10.0, 20.0, by_hand.FINISHED)]
    trace = by_hand.make_trace(platform, tasks, runs)
    periods = [(0.0, 10.0, math.inf, math.nan, math.nan), (10.0, 20.0, math.inf, math.nan, math.nan)]
    object.__setattr__(trace, "periods", np.array(periods, dtype=PERIOD))
    assert carried_over_energy(trace) == pytest.approx([0.0, 250.0], rel=1e-12)


def test_utility_of_a_window_over_what_is_possible():
    """One task arrives before the window, one can run nowhere; 0.01 a minute is lost."""
    tasks = make_tasks([60.0] * 3, [50.0, 100.0, 160.0], utility=flat(8.0, 8.0, 5.0, rate=0.01))
    runs = [(0, 0, 0, 50.0, 110.0, by_hand.FINISHED), (1, 0, 0, 110.0, 170.0, by_hand.FINISHED)]
    state = [TaskState.FINISHED, TaskState.FINISHED, TaskState.REJECTED]
    trace = day_trace(runs, tasks, final_state=state)
    shortest = np.array([6.0, 30.0, np.inf])
    facts = RunFacts(trace, trace_energy(trace), (80.0, 200.0), shortest_s=shortest)
    found = metrics.metrics_of(facts)
    possible = 8 * math.exp(-0.005)  # of the second task, half a minute after its arrival
    earned = 8 * math.exp(-0.01) / 2 + 8 * math.exp(-0.01 * 70 / 60)  # the first: half inside
    assert found["window_utility_possible"] == pytest.approx(possible, rel=1e-12)
    assert found["window_utility_share"] == pytest.approx(earned / possible, rel=1e-12)
    nothing = RunFacts(trace, trace_energy(trace), (170.0, 200.0), shortest_s=shortest)
    assert math.isnan(nothing.window_utility_share)


def test_the_shortest_times_of_estimates():
    """The fastest host and P-state that a task can have; infinite where it can run nowhere."""
    etc = [[[9.0, 4.0], [7.0, 8.0]], [[np.inf, np.inf], [3.0, 5.0]], [[np.inf] * 2, [np.inf] * 2]]
    task_type = [2, 0, 1]
    both = TypedEstimates(etc, np.ones((3, 2, 2)), task_type, [0, 1, 1])
    assert both.shortest_times().tolist() == [np.inf, 4.0, 3.0]
    first = TypedEstimates(etc, np.ones((3, 2, 2)), task_type, [0])  # no host of the second type
    assert first.shortest_times().tolist() == [np.inf, 4.0, np.inf]
    platform = plain_platform([2.0, 8.0])
    assert FlopsEstimates(platform, make_tasks([16.0, 40.0])).shortest_times().tolist() == [2, 5]


# How parallel jobs waited and how full their machine was, by hand.

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
