"""Fixed queues, virtual queues, the pending slot, withdrawal and dropping."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scripted import ANYTHING, at, first_host, hosts, plan, play, rows

from gridsched.errors import InvalidDecision
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.task_types import TypedEstimates
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import TaskState
from gridsched.policy.base import Traits
from gridsched.policy.decisions import Assign, Cancel, Drop, Plan, PowerOff, PowerOn, WakeAt

pytestmark = pytest.mark.usefixtures("both_paths")


def test_a_fixed_queue_is_first_in_first_out():
    """Tasks run in the order in which they were assigned, not in that of their ids."""
    answer = at((0.0, [Assign(2, 0), Assign(0, 0), Assign(1, 0)]))
    trace, _ = play(hosts(10), [10.0, 20.0, 30.0], answer)
    assert rows(trace) == [(0.0, 0, 2, 3.0), (3.0, 0, 0, 4.0), (4.0, 0, 1, 6.0)]


def test_several_cores_take_from_one_queue():
    """A host with two cores runs two tasks at a time, each at a core's full speed."""
    trace, _ = play(hosts(10, cores=2), [10.0, 30.0, 20.0], first_host)
    assert trace.start_time_s.tolist() == [0.0, 0.0, 1.0]
    assert trace.finish_time_s.tolist() == [1.0, 3.0, 3.0]


def test_a_free_core_takes_the_fixed_queue_before_the_virtual_one():
    """The assigned task goes first although the planned one was there before."""
    answer = at((0.0, [Assign(0, 0), plan((1, 0)), Assign(2, 0)]))
    trace, _ = play(hosts(10), [10.0, 10.0, 10.0], answer)
    assert trace.start_time_s.tolist() == [0.0, 2.0, 1.0]


def test_a_plan_replaces_all_virtual_queues():
    """Tasks a new plan leaves out are waiting again; planned ones stay mappable."""
    seen = {}

    def answer(state):
        seen[state.now] = state.mappable.tolist()
        if state.now == 0:
            return [plan((0, 0), (1, 0), (2, 1), (3, 1))]
        return [plan((1, 1))] if state.now == 1 else [Assign(3, 0)] if state.now == 2 else []

    trace, _ = play(hosts(10, 10), [10.0, 10.0, 20.0, 10.0], answer)
    assert seen == {0.0: [0, 1, 2, 3], 1.0: [1, 3], 2.0: [1, 3]}
    assert rows(trace) == [(0.0, 0, 0, 1.0), (0.0, 1, 2, 2.0), (2.0, 0, 3, 3.0), (2.0, 1, 1, 3.0)]


def test_without_a_new_plan_virtual_queues_stay_as_they_are():
    """A silent policy keeps its plan."""
    answer = at((0.0, [plan((0, 0), (2, 0), (1, 0))]))
    trace, _ = play(hosts(10), [10.0, 20.0, 30.0], answer)
    assert rows(trace) == [(0.0, 0, 0, 1.0), (1.0, 0, 2, 4.0), (4.0, 0, 1, 6.0)]


def test_assigning_a_planned_task_takes_it_out_of_the_plan():
    """A task of the plan that is assigned runs once, where it was assigned."""
    answer = at((0.0, [plan((0, 0), (1, 0)), Assign(1, 1)]))
    trace, _ = play(hosts(10, 5), [10.0, 10.0], answer)
    assert rows(trace) == [(0.0, 0, 0, 1.0), (0.0, 1, 1, 2.0)]


def test_a_plan_forgets_what_was_assigned_out_of_an_earlier_one():
    """Task 1: planned on h1, assigned to h2, cancelled, planned on h3: it runs on h3."""
    running = [Assign(0, 0), Assign(2, 1), Assign(3, 2), Assign(4, 3)]
    answer = at((0.0, [*running, plan((1, 0)), Assign(1, 1)]), (1.0, [Cancel(1), plan((1, 2))]))
    trace, _ = play(hosts(10, 10, 10, 10), [20.0, 10.0, 40.0, 30.0, 10.0], answer)
    assert [row for row in rows(trace) if row[2] == 1] == [(3.0, 2, 1, 4.0)]


def test_a_pending_slot_fixes_the_head_of_a_virtual_queue():
    """With one pending slot the task behind the running one is not mappable any more."""
    seen = {}

    def answer(state):
        seen[state.now] = state.mappable.tolist()
        return [plan((0, 0), (1, 0), (2, 0), (3, 0))] if state.now == 0 else []

    trace, _ = play(hosts(10), [10.0] * 4, answer, pending_slots=1, interval=1.0)
    assert seen == {0.0: [0, 1, 2, 3], 1.0: [3], 2.0: [], 3.0: []}
    assert trace.start_time_s.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_the_pending_slot_is_filled_before_the_policy_is_asked():
    """At t = 1 task 2 has moved up, so that a plan that forgets it changes nothing."""
    for interval in (1.0, None):
        answer = at((0.0, [plan((0, 0), (1, 0), (2, 0))]), (1.0, [plan((3, 1))]))
        trace, _ = play(hosts(10, 10), [10.0] * 4, answer, pending_slots=1, interval=interval)
        assert trace.start_time_s.tolist() == [0.0, 1.0, 2.0, 1.0]


def test_a_planned_task_starts_where_a_host_has_booted_between_mapping_events():
    """No policy is asked at the end of the boot, and the plan names the task that goes there."""
    answer = at((0.0, [PowerOff(1), plan((0, 0))]), (10.0, [PowerOn(1), plan((1, 1))]))
    trace, policy = play(hosts(1, 10, boot_time_s=3.0), [30.0, 10.0], answer, interval=10.0)
    assert trace.start_time_s.tolist() == [0.0, 13.0]
    assert 13.0 not in policy.times


def test_a_planned_task_starts_where_a_copy_was_cancelled_between_mapping_events():
    """The copy that wins on one host sets a core free on the other, which the plan then takes."""
    answer = at((0.0, [Assign(0, 0), Assign(0, 1), plan((1, 1))]))
    trace, _ = play(hosts(10, 5), [50.0, 10.0], answer, interval=10.0)
    assert trace.start_time_s.tolist() == [0.0, 5.0]


def test_a_cancelled_queued_task_is_waiting_again():
    """A task taken out of a fixed queue can be assigned elsewhere."""
    answer = at((0.0, [Assign(0, 0), Assign(1, 0), Assign(2, 1)]), (1.0, [Cancel(1), Assign(1, 1)]))
    trace, _ = play(hosts(10, 10), [30.0, 10.0, 10.0], answer, Traits("event", may_cancel=True))
    assert rows(trace) == [(0.0, 0, 0, 3.0), (0.0, 1, 2, 1.0), (1.0, 1, 1, 2.0)]


def test_a_dropped_task_is_final_and_never_starts():
    """Waiting and planned tasks can be dropped."""
    answer = at((0.0, [Assign(0, 0), plan((1, 0)), Drop(1), Drop(2)]))
    trace, _ = play(hosts(10), [10.0] * 3, answer, Traits("event", may_drop=True))
    states = [TaskState.FINISHED, TaskState.DROPPED, TaskState.DROPPED]
    assert trace.final_state.tolist() == states
    assert rows(trace) == [(0.0, 0, 0, 1.0)]


def test_all_tasks_dropped_is_a_complete_run():
    """A run of which nothing is left to do is done."""
    trace, policy = play(hosts(10), make_tasks([1.0, 1.0], 4.0), lambda s: [Drop(t) for t in s.waiting()])
    assert policy.times == [4.0]
    assert trace.horizon_s == 4.0


def test_decisions_apply_in_order_each_seeing_the_earlier_ones():
    """The second assignment of a call finds the host taken by the first."""
    answer = at((0.0, [Assign(1, 0), Assign(0, 0)]))
    trace, _ = play(hosts(10), [10.0, 20.0], answer)
    assert rows(trace) == [(0.0, 0, 1, 2.0), (2.0, 0, 0, 3.0)]


def test_the_state_shows_queues_and_ready_times():
    """Ready times count running work and fixed queues, not virtual ones."""
    seen = {}

    def answer(state):
        seen[state.now] = {
            "ready": state.ready_time.tolist(),
            "cores": state.core_ready_time.tolist(),
            "queue": state.queue_tasks.tolist(),
            "offsets": state.queue_offsets.tolist(),
            "length": state.queue_length.tolist(),
            "free": state.free_cores.tolist(),
            "running": state.running[["task", "estimated_end"]].tolist(),
            "idle": state.idle_cores(),
        }
        if state.now > 0:
            return []
        return [Assign(0, 0), Assign(1, 0), Assign(2, 0), Assign(3, 1), plan((4, 1))]

    play(hosts(10, 10, 10, cores=2), [30.0, 50.0, 10.0, 20.0, 60.0], answer)
    assert seen[2.0] == {
        "ready": [4.0, 2.0, 2.0],
        "cores": [[4.0, 5.0], [2.0, 6.0], [2.0, 2.0]],
        "queue": [2],
        "offsets": [0, 1, 1, 1],
        "length": [1, 0, 0],
        "free": [0, 1, 2],
        "running": [(0, 3.0), (1, 5.0), (4, 6.0)],
        "idle": [1, 2, 2],
    }


def test_arrays_of_the_state_cannot_be_written_to():
    """Whatever a policy sees is read-only, the single task of an arrival, too."""
    names = [
        "mappable",
        "ready_time",
        "core_ready_time",
        "free_cores",
        "pstate",
        "is_on",
        "queue_length",
        "queue_tasks",
        "queue_offsets",
        "running",
        "background_load",
    ]
    writeable = []

    def answer(state):
        writeable.extend(name for name in names if getattr(state, name).flags.writeable)
        return first_host(state)

    for asked in ("start", "arrival", "event"):
        play(hosts(10, 10), [10.0, 20.0], answer, Traits(trigger=asked))
    assert writeable == []


def test_any_free_core_takes_from_a_common_queue():
    """Five tasks of 10, 20, 10, 10 and 10 flop on two hosts of 10 flop/s, planned together."""
    trace, policy = play(hosts(10, 10), [10.0, 20.0, 10.0, 10.0, 10.0], at((0.0, [Plan(np.arange(5), None)])))
    assert rows(trace) == [(0.0, 0, 0, 1.0), (0.0, 1, 1, 2.0), (1.0, 0, 2, 2.0), (2.0, 0, 3, 3.0), (2.0, 1, 4, 3.0)]
    assert policy.times == [0.0, 2.0]  # at 1 s task 4 is still planned: nothing to decide


def test_a_host_leaves_its_other_pstate_for_a_task_of_the_common_queue():
    """100 flop at 5 flop/s end at 20 s; then come 10 s each at 10 flop/s, the P-state of the scenario."""
    host = Host("h0", (PState(10.0, 1.0, 2.0, 2.0), PState(5.0, 1.0, 2.0, 2.0)))
    answer = at((0.0, [Assign(0, 0, 1), Plan(np.arange(1, 4), None)]))
    trace, _ = play(Platform((host,)), [100.0] * 4, answer, replace(ANYTHING, uses_dvfs=True))
    assert rows(trace) == [(0.0, 0, 0, 20.0), (20.0, 0, 1, 30.0), (30.0, 0, 2, 40.0), (40.0, 0, 3, 50.0)]
    assert trace.host_changes[["time", "pstate"]].tolist() == [(0.0, 0), (0.0, 1), (20.0, 0)]


def test_a_new_plan_replaces_a_common_queue_and_a_common_queue_a_plan():
    """What a plan leaves out is waiting again; what is assigned has left the queue."""
    wake = [WakeAt(1.0), WakeAt(2.0), WakeAt(3.0)]
    answer = at(
        (0.0, [Assign(0, 0), Plan(np.array([2, 1]), None), *wake]),
        (1.0, [plan((3, 0))]),
        (2.0, [Plan(np.array([1, 3]), None), Assign(2, 0)]),
    )
    trace, policy = play(hosts(10), [50.0, 10.0, 10.0, 10.0], answer)
    assert policy.asked_[1:4] == [(1.0, [1, 2, 3]), (2.0, [1, 2, 3]), (3.0, [1, 3])]
    assert [row[2] for row in rows(trace)] == [0, 2, 1, 3]


@pytest.mark.parametrize(
    ("decision", "word"),
    [
        (Plan(np.array([0, 5]), None), "there are tasks 0 to 1"),
        (Plan(np.array([1, 1]), None), "holds a task twice"),
        (Plan(np.array([0]), None, np.array([0])), "has no P-states: the scenario's is used"),
    ],
)
def test_illegal_common_queues_are_refused(decision, word):
    """Each of its tasks must exist and wait; it has the scenario's P-state."""
    with pytest.raises(InvalidDecision, match=word):
        play(hosts(10), [10.0, 10.0], at((0.0, [decision])))


def test_a_common_queue_needs_tasks_that_run_everywhere():
    """A core must not have to look for a task that it can run."""
    tasks = make_tasks([1.0, 1.0], task_type=[0, 1])
    etc = np.array([[[4.0], [np.inf]], [[4.0], [4.0]]])
    estimates = TypedEstimates(etc, np.ones(etc.shape), [0, 1], [0, 1])
    with pytest.raises(InvalidDecision, match="needs tasks that run on every host"):
        play(hosts(10, 10), tasks, at((0.0, [Plan(np.arange(2), None)])), estimates=estimates)
