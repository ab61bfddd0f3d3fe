"""Whole tasks from divided ones: by hand, and as given one by one."""

from __future__ import annotations

import heapq
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.errors import InputError
from gridsched.optimize.recovery import longest_first, next_tasks

# Programs and runs count the same hosts, whose cores share wear, depreciation and power.


def one_by_one(durations, counts, machines):
    """Algorithm 2 as printed, in exact arithmetic: each task to the machine that is ready first."""
    ready = [(Fraction(0), k) for k in range(machines)]
    tasks = np.zeros((len(durations), machines), dtype=int)
    for i in sorted(range(len(durations)), key=lambda i: (-durations[i], i)):
        for _ in range(counts[i]):
            time, machine = heapq.heappop(ready)
            tasks[i, machine] += 1
            heapq.heappush(ready, (time + Fraction(durations[i]), machine))
    loads = [time for time, _ in sorted(ready, key=lambda each: each[1])]
    return tasks, loads


def instances(duration):
    """Durations and counts of task types."""
    return st.lists(st.tuples(duration, st.integers(0, 25)), min_size=1, max_size=6)


def test_by_hand():
    """E5: 5, 4, 3, 3, 3 on two machines give 8 and 10."""
    placed = longest_first([5, 4, 3], [1, 1, 3], machines=2)
    assert placed.types.tolist() == [0, 1, 2]
    assert placed.counts.tolist() == [[1, 0], [0, 1], [1, 2]]
    assert placed.loads_s.tolist() == [8, 10]


def test_ties_go_to_the_lowest_machine():
    """Five equal tasks on three machines; type 0 before type 1 of the same duration."""
    placed = longest_first([2, 2], [4, 1], machines=3)
    assert placed.types.tolist() == [0, 1]
    assert placed.counts.tolist() == [[2, 1, 1], [0, 1, 0]]


def test_a_machine_far_ahead_gets_nothing():
    """However far, without an overflow."""
    assert next_tasks(np.array([1e30, 0.0, 3.0]), 2.0, 3).tolist() == [0, 2, 1]


def test_no_tasks():
    """Nothing to place, even on no machine."""
    assert longest_first([2.0, np.inf], [0, 0], machines=2).loads_s.tolist() == [0, 0]
    assert len(longest_first([2.0], [0], machines=0).loads_s) == 0
    with pytest.raises(InputError, match="3 tasks"):
        longest_first([2.0], [3], machines=0)


@settings(max_examples=300, deadline=None)
@given(instances(st.integers(1, 40)), st.integers(1, 8))
def test_as_one_by_one(types, machines):
    """With whole durations: the same tasks on each machine."""
    durations, counts = zip(*types, strict=True)
    tasks, loads = one_by_one(durations, counts, machines)
    placed = longest_first(durations, counts, machines)
    assert np.array_equal(placed.counts, tasks[placed.types])
    assert placed.loads_s.tolist() == loads


@settings(max_examples=300, deadline=None)
@given(instances(st.floats(0.01, 100)), st.integers(1, 8))
def test_same_loads_with_any_durations(types, machines):
    """With rounding: the same loads, on machines that may have changed places."""
    durations, counts = zip(*types, strict=True)
    _, loads = one_by_one(durations, counts, machines)
    placed = longest_first(durations, counts, machines)
    assert sorted(placed.loads_s) == pytest.approx(sorted(map(float, loads)), rel=1e-12)
    assert placed.counts.sum(axis=1).tolist() == [counts[i] for i in placed.types]


def test_a_thousand_million_tasks():
    """All placed; loads differ by at most the longest task, the last tasks level them."""
    placed = longest_first([7.0, 3.0, 0.1], [10**8, 4 * 10**8, 5 * 10**8], machines=40)
    assert placed.counts.sum() == 10**9
    assert np.ptp(placed.loads_s) <= 0.1 + 1e-6
    assert placed.loads_s.sum() == pytest.approx(7e8 + 12e8 + 0.5e8)
