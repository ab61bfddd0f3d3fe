"""`attend`: asked at time 0 and at every event before `schedule`; and since when hosts are idle."""

from __future__ import annotations

import numpy as np
import pytest
from scripted import Scripted, controller_of, hosts, play

from gridsched.engine import reference
from gridsched.errors import InvalidDecision
from gridsched.model.platform import homogeneous_cluster
from gridsched.model.tasks import make_tasks
from gridsched.policy.base import Traits
from gridsched.policy.decisions import Allocate, Assign, PowerOff, PowerOn, WakeAt

INF = float("inf")


class Attending(Scripted):
    """Notes when it attends, and when it is asked for which tasks."""

    def __init__(self, answer, attended, traits) -> None:
        super().__init__(answer, traits)
        self.attended = attended

    def prepare(self, system, rng) -> None:
        super().prepare(system, rng)
        self.seen_: list[tuple] = []

    def attend(self, state):
        self.seen_.append(("attends", state.now, state.mappable.tolist()))
        return self.attended(state)

    def schedule(self, state):
        self.seen_.append(("schedules", state.now, state.mappable.tolist()))
        return self.answer(state)


def test_an_arrival_scheduler_attends_before_each_event():
    """It sees all tasks that wait, wakes, and its decisions apply before `schedule` is asked."""

    def attended(state):
        if state.now == 3.0:
            return [PowerOff(1), WakeAt(6.0)]
        return [PowerOn(1)] if state.now == 7.0 else []

    def answer(state):
        host = 1 if state.now == 7.0 else 0
        assert state.is_on[host]
        return [Assign(task, host) for task in state.waiting()]

    traits = Traits(asked="arrival", attends=True, powers_hosts=True)
    policy = Attending(answer, attended, traits)
    tasks = make_tasks([1.0, 1.0, 9.0], [3.0, 3.0, 7.0])
    reference.simulate(controller_of(hosts(1.0, 1.0, boot_time_s=4.0), tasks, policy))
    assert policy.seen_ == [
        ("attends", 0, []),
        ("attends", 3, [0, 1]),
        ("schedules", 3, [0]),
        ("schedules", 3, [1]),
        ("attends", 4, []),
        ("attends", 5, []),
        ("attends", 6, []),
        ("attends", 7, [2]),
        ("schedules", 7, [2]),
        ("attends", 11, []),
    ]


def test_attend_must_return_decisions():
    """None is no answer."""
    policy = Attending(lambda state: [], lambda state: None, Traits(asked="event", attends=True))
    with pytest.raises(InvalidDecision, match=r"attend\(\) returned None"):
        reference.simulate(controller_of(hosts(1.0), [1.0], policy))


def test_since_when_serial_hosts_are_idle():
    """From time 0, from the last end of several cores, from the end of booting; else infinite."""
    seen = {}

    def answer(state):
        seen[state.now] = state.idle_since.tolist()
        return {
            0.0: [Assign(0, 0), Assign(1, 0), PowerOff(2), WakeAt(4.0)],
            4.0: [PowerOn(2)],
            5.0: [WakeAt(8.0)],
            8.0: [Assign(2, 1)],
        }.get(state.now, [])

    tasks = make_tasks([2.0, 5.0, 1.0])
    play(hosts(1.0, 1.0, 1.0, cores=2, boot_time_s=3.0), tasks, answer)
    assert seen == {
        0.0: [0, 0, 0],
        2.0: [INF, 0, INF],
        4.0: [INF, 0, INF],
        5.0: [5, 0, INF],
        7.0: [5, 0, 7],
        8.0: [5, 0, 7],
    }


def test_since_when_nodes_are_idle():
    """Nodes of a job are idle from its end on."""
    seen = {}

    def answer(state):
        seen[state.now] = state.idle_since.tolist()
        chosen = {0.0: [Allocate(0, np.array([0, 1]))], 4.0: [Allocate(1, np.array([1, 2]))]}
        return chosen.get(state.now, [])

    tasks = make_tasks([3.0, 2.0], [0.0, 4.0], width=[2, 2])
    platform = homogeneous_cluster(3, idle_w=1.0, busy_w=2.0, speed=1.0)
    play(platform, tasks, answer, Traits(asked="event", parallel=True))
    assert seen == {0.0: [0, 0, 0], 3.0: [3, 3, 0], 4.0: [3, 3, 0]}
