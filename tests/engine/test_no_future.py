"""A policy sees what has been submitted, and of later tasks nothing but their number."""

from __future__ import annotations

import numpy as np
import pytest
from scripted import hosts, idle_hosts, play

from gridsched.model.estimates import TypedEstimates
from gridsched.model.tasks import make_tasks
from gridsched.model.utility import UtilityFunctions

LATER = make_tasks([30.0, 10.0, 20.0, 40.0], [0.0, 0.0, 5.0, 100.0])


def test_tasks_end_at_the_last_one_submitted():
    """Two tasks at 0, three from 5 s on, four from 100 s on; the same object in between."""
    seen = []

    def answer(state):
        seen.append((state.now, state.tasks.flops.tolist(), state.tasks_to_arrive))
        assert state.tasks is state.tasks
        assert len(state.tasks.submit_time_s) == len(state.tasks.labels) == len(state.tasks)
        return idle_hosts(state)

    play(hosts(10), LATER, answer)
    flops = [30.0, 10.0, 20.0, 40.0]
    expected = [(0.0, 2), (3.0, 2), (4.0, 2), (5.0, 3), (7.0, 3), (100.0, 4), (104.0, 4)]
    assert seen[: len(expected)] == [(time, flops[:n], 4 - n) for time, n in expected][: len(seen)]
    assert [time for time, *_ in seen][:4] == [0.0, 3.0, 4.0, 5.0]


def test_heterogeneity_is_that_of_the_submitted_tasks():
    """(30 - 10) / 20 = 1 first; equal tasks have none, though others come later."""
    seen = {}

    def answer(state):
        seen[state.now] = state.tasks.heterogeneity
        return idle_hosts(state)

    play(hosts(10), make_tasks([10.0, 10.0, 30.0], [0.0, 0.0, 50.0]), answer)
    assert seen[0.0] == 0.0
    assert seen[50.0] == 1.0  # 20 / (50 / 3) is more than 1


def test_estimates_refuse_tasks_to_come():
    """Flops or types of later tasks are not there: every way of asking ends in an IndexError."""
    types = np.zeros(4, dtype=np.int64)
    typed = TypedEstimates([[[2.0]]], [[[1.0]]], types, [0])
    for estimates in (None, typed):
        refused = []

        def answer(state, refused=refused):
            n = len(state.tasks)
            assert state.estimates.etc(range(n), [0]).shape == (n, 1)
            assert state.estimates.run_time(n - 1, 0, 0) > 0
            for ask in (
                lambda: state.estimates.run_time(n, 0, 0),
                lambda: state.estimates.etc([n], [0]),
                lambda: state.estimates.eec([0, n], [0]),
            ):
                if state.tasks_to_arrive:
                    with pytest.raises(IndexError):
                        ask()
                    refused.append(n)
            return idle_hosts(state)

        play(hosts(10), LATER, answer, estimates=estimates)
        assert {2, 3} == set(refused)


def test_utility_functions_and_types_are_cut_as_the_tasks_are():
    """The columns of `Tasks.first` are views of the first tasks, the files' needs among them."""
    utility = UtilityFunctions.exponential([4.0, 3.0, 2.0, 1.0], 0.1)
    tasks = make_tasks(
        [1.0] * 4, [0.0, 1.0, 2.0, 3.0], task_type=[3, 2, 1, 0], utility=utility,
        input_files=[(0,), (), (1,), ()],
    )  # fmt: skip
    first = tasks.first(2)
    assert first.task_type.tolist() == [3, 2]
    assert first.utility.priority.tolist() == [4.0, 3.0]
    assert first.input_files == ((0,), ())
    assert np.shares_memory(first.flops, tasks.flops)
    assert tasks.first(4) is tasks
