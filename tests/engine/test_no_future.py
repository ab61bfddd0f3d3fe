"""A policy sees what has been submitted, and of later tasks nothing but their number."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from scripted import ANYTHING, hosts, idle_hosts, play

from gridsched.engine.live_state import LiveState
from gridsched.errors import InputError
from gridsched.model.estimates import FlopsEstimates, RequestedTimes, TypedEstimates
from gridsched.model.parallel_estimates import ParallelEstimates, node_platform
from gridsched.model.tasks import ArrivedTasks, make_tasks
from gridsched.model.utility import UtilityFunctions
from gridsched.policy.state import State
from gridsched.testing.repetition import public_values

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


def scene(late: float, *, width=None, requested=None):
    """Return two tasks at 0 and two at 50 s, with every column; `late` tells of the later ones."""
    when = np.array([0.0, 0.0, 50.0, 50.0])
    mark = np.where(when > 0, late, 3.0)
    return make_tasks(
        mark,
        when,
        input_bytes=mark,
        output_bytes=mark,
        deadline_s=mark + when,
        labels=mark.astype(int) + np.arange(4),
        task_type=np.where(when > 0, late > 9, 0),
        utility=UtilityFunctions.exponential(mark, mark),
        input_files=[(0,)] * 2 + [(0,) * int(late)] * 2,
        width=None if width is None else np.where(when > 0, 2 if late > 9 else 1, width),
        requested_time_s=None if requested is None else mark,
    )


TWO_NODES = node_platform(np.ones((1, 1, 1)), np.ones((1, 1, 1)), [2])
KINDS = {
    "flops": (hosts(10, 10), {}, FlopsEstimates),
    "parallel flops": (TWO_NODES, {"width": 1}, FlopsEstimates),
    "requested times": (hosts(10, 10), {"requested": True}, RequestedTimes),
    "types": (
        hosts(10, 10),
        {},
        lambda _, tasks: TypedEstimates([[[2.0]], [[3.0]]], np.ones((2, 1, 1)), tasks.task_type, [0, 0]),
    ),
    "parallel types": (
        TWO_NODES,
        {"width": 1},
        lambda platform, tasks: ParallelEstimates(
            platform, tasks.flops[:, None, None], tasks.width[:, None], np.ones((1, 1, 1)), [0] * 4
        ),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_public_shows_tasks_to_come(kind):
    """State, system and estimates hold the same, whatever comes later; no method changes that."""
    platform, columns, estimates_of = KINDS[kind]
    pictures = []
    for late in (7.0, 11.0):
        tasks, seen = scene(late, **columns), []

        def answer(state, seen=seen):
            if state.now < 50:
                for owner in (state, state.estimates):
                    for name in dir(owner):
                        for numbers in ((10**6,), (state.now, 4)):
                            with suppress(TypeError, IndexError, AttributeError, InputError):
                                getattr(owner, name)(*numbers) if name[0] != "_" else None
                seen.append(public_values({"state": state, "estimates": state.estimates}))
            return [] if "parallel" in kind else idle_hosts(state)

        traits = replace(ANYTHING, parallel="parallel" in kind)
        play(platform, tasks, answer, traits, estimates=estimates_of(platform, tasks), horizon_s=60)
        pictures.append(seen)
    assert "state.tasks.flops.base" in pictures[0][0]
    assert "estimates.always_feasible" in pictures[0][0]
    for first, second in zip(*pictures, strict=True):
        assert [name for name in first | second if first.get(name) != second.get(name)] == []


def test_a_state_has_the_names_of_its_contract_alone():
    """What the controller does with the state is no method of it."""
    assert [name for name in dir(LiveState) if name[0] != "_" and not hasattr(State, name)] == []


def test_utility_functions_and_types_are_cut_as_the_tasks_are():
    """The columns of tasks that have arrived are copies, the files' needs are cut with them."""
    utility = UtilityFunctions.exponential([4.0, 3.0, 2.0, 1.0], 0.1)
    tasks = make_tasks(
        [1.0] * 4, [0.0, 1.0, 2.0, 3.0], task_type=[3, 2, 1, 0], utility=utility, input_files=[(0,), (), (1,), ()]
    )
    arrived = ArrivedTasks(tasks)
    first = arrived.first(2)
    assert first.task_type.tolist() == [3, 2]
    assert first.utility.priority.tolist() == [4.0, 3.0]
    assert first.input_files == ((0,), ())
    assert not np.shares_memory(first.flops, tasks.flops)
    assert not first.flops.flags.writeable
    assert arrived.first(4).utility.priority.tolist() == [4.0, 3.0, 2.0, 1.0]
    assert len(first) == 2
