"""Every decision the contract forbids is refused, and the message says where and why."""

from __future__ import annotations

import numpy as np
import pytest
from scripted import ANYTHING, Scripted, at, controller_of, hosts, plan, play

from gridsched.errors import InputError, InvalidDecision
from gridsched.model.estimates import TypedEstimates
from gridsched.model.tasks import make_tasks
from gridsched.policy.base import Traits
from gridsched.policy.decisions import Assign, Cancel, Drop, Note, Plan, Postpone, PowerOff, PowerOn, WakeAt

PLAIN = Traits(asked="event")
MAY_CANCEL = Traits(asked="event", may_cancel=True)
NOTES = Traits(asked="event", notes=("a",))

#: decisions at t = 0, traits, what the message must say; hosts h1, h2 (off), three tasks 7, 8, 9.
REFUSED = [
    ([Assign(3, 0)], PLAIN, "task 3, host 'h1': there are tasks 0 to 2"),
    ([Assign(-1, 0)], PLAIN, "task -1, host 'h1': there are tasks 0 to 2"),
    ([Assign(0, 2)], PLAIN, "task 7, host 2: there are hosts 0 to 1"),
    ([Assign(0, -1)], PLAIN, "task 7, host -1: there are hosts 0 to 1"),
    ([Assign(1.0, 0)], PLAIN, "task is 1.0; it must be a whole number"),
    ([Assign(0, None)], PLAIN, "host is None; it must be a whole number"),
    ([Assign(0, 0, 0.5)], PLAIN, "pstate is 0.5; it must be a whole number"),
    ([Assign(0, 0, 1)], PLAIN, "task 7, host 'h1': the host has P-states 0 to 0, not 1"),
    ([Assign(0, 1)], PLAIN, "task 7, host 'h2': the host is off; PowerOn it first"),
    ([Assign(0, 0), Assign(0, 0)], PLAIN, "Assign of a running task needs the trait 'replicates'"),
    ([Assign(0, 0), Assign(1, 0), Assign(1, 0)], ANYTHING, "task 8, host 'h1': the task is queued"),
    ([Drop(0), Assign(0, 0)], ANYTHING, "task 7, host 'h1': the task is dropped"),
    ([plan((0, 0), (0, 0))], PLAIN, "task 7, host 'h1': Plan holds a task twice, or one that is"),
    ([Assign(0, 0), plan((0, 0))], PLAIN, "task 7, host 'h1': .* one that is running"),
    ([plan((0, 5))], PLAIN, "task 7, host 5: there are hosts 0 to 1"),
    ([plan((0, 1))], PLAIN, "task 7, host 'h2': the host is off"),
    ([Plan([0, 1], [0])], PLAIN, "Plan has 2 tasks, 1 hosts"),
    ([Plan([0.7], [0])], PLAIN, r"Plan.tasks is \[0.7\]; it must be an array of whole numbers"),
    ([Plan([0], [[0]])], PLAIN, r"Plan.hosts is \[\[0\]\]; it must be an array of whole numbers"),
    ([Plan([0], [0], ["a"])], PLAIN, r"Plan.pstates is \['a'\]; it must be an array"),
    ([Assign(0, 0), Assign(1, 0), Cancel(1)], PLAIN, "a queued task needs the trait 'may_cancel'"),
    ([Assign(0, 0), Cancel(0)], MAY_CANCEL, "a running copy needs the trait 'replicates'"),
    ([Cancel(0)], ANYTHING, "task 7: no queued or running copy is there; the task is waiting"),
    ([Assign(0, 0), Cancel(0, 1)], ANYTHING, "task 7, host 'h2': no queued or running"),
    ([Assign(0, 0), Cancel(0, 2)], ANYTHING, "task 7, host 2: there are hosts 0 to 1"),
    ([Assign(0, 0), Cancel(0, -1)], ANYTHING, "task 7, host -1: there are hosts 0 to 1"),
    ([Cancel(9)], ANYTHING, "task 9: there are tasks 0 to 2"),
    ([Note(0, "b", 1.0)], NOTES, "task 7: Note in column 'b'; Traits.notes has a"),
    ([Note(0, "a", np.nan)], NOTES, "task 7: Note of nan in column 'a'; it must be a finite"),
    ([Note(0, "a", "much")], NOTES, "task 7: Note of 'much' in column 'a'"),
    ([Note(9, "a", 1.0)], NOTES, "task 9: there are tasks 0 to 2"),
    ([Drop(0)], PLAIN, "Drop needs the trait 'may_drop'"),
    ([Drop(9)], ANYTHING, "task 9: there are tasks 0 to 2"),
    ([Assign(0, 0), Drop(0)], ANYTHING, "only a mappable task can be dropped; it is running"),
    ([Postpone(0)], PLAIN, "Postpone needs the trait 'may_drop'"),
    ([Postpone(0)], ANYTHING, "task 7: Postpone waits for the next budget period"),
    ([PowerOff(0)], PLAIN, "PowerOff needs the trait 'powers_hosts'"),
    ([PowerOff(4)], ANYTHING, "host 4: there are hosts 0 to 1"),
    ([PowerOff(1)], ANYTHING, "host 'h2': PowerOff of a host that is off"),
    ([Assign(0, 0), PowerOff(0)], ANYTHING, "host 'h1': PowerOff while something runs, is fixed"),
    ([PowerOn(1), PowerOff(1), Assign(0, 1)], ANYTHING, "task 7, host 'h2': the host is off"),
    ([PowerOn(0)], PLAIN, "PowerOn needs the trait 'powers_hosts'"),
    ([PowerOn(0)], ANYTHING, "host 'h1': PowerOn of a host that is on"),
    ([WakeAt(0.0)], PLAIN, r"WakeAt\(0.0\) must lie in the future"),
    ([WakeAt(float("nan"))], PLAIN, r"WakeAt\(nan\) must lie in the future"),
    ([WakeAt(float("inf"))], PLAIN, r"WakeAt\(inf\) must lie in the future"),
    (["wq"], PLAIN, "'wq' is no decision; see gridsched.policy.decisions"),
    (None, PLAIN, r"schedule\(\) returned None; return a list of decisions"),
]


@pytest.mark.parametrize(("decisions", "traits", "message"), REFUSED)
def test_refused(decisions, traits, message):
    """The message names scheduler, time, task (by its label), host and reason, in one line."""
    tasks = make_tasks([10.0, 10.0, 10.0], labels=[7, 8, 9])
    with pytest.raises(InvalidDecision, match=message) as refused:
        play(hosts(10, 10), tasks, lambda state: decisions, traits, hosts_off=(1,))
    text = str(refused.value)
    assert text.startswith("Scripted() at t = 0 s")
    assert text.endswith(".")
    assert "\n" not in text


def test_a_wake_up_is_refused_with_a_mapping_interval():
    """With an interval the policy is asked at its multiples and at no other time."""
    with pytest.raises(InvalidDecision, match="WakeAt"):
        play(hosts(10), [10.0], lambda state: [WakeAt(1.0)], PLAIN, interval=5.0)


def test_a_task_cannot_go_where_it_cannot_run():
    """A host on which the estimate is infinite is no place for the task."""
    tasks = make_tasks([1.0], task_type=[0])
    estimates = TypedEstimates([[[np.inf], [2.0]]], [[[1.0], [1.0]]], [0], [0, 1])
    with pytest.raises(InvalidDecision, match="task 1, host 'h1'"):
        play(hosts(10, 10), tasks, at((0.0, [Assign(0, 0)])), PLAIN, estimates=estimates)


def test_the_message_names_the_time():
    """A refusal later in the run tells when."""
    answer = at((0.0, [Assign(0, 0)]), (2.5, [Assign(1, 3)]))
    with pytest.raises(InvalidDecision, match=r"t = 2\.5 s, task 2, host 3"):
        play(hosts(10), [25.0, 1.0], answer, PLAIN)


def test_numpy_numbers_are_whole_numbers():
    """Ids taken from arrays need no conversion."""
    answer = at((0.0, [Assign(np.int64(0), np.int32(0), np.uint8(0))]))
    trace, _ = play(hosts(10), [10.0], answer, PLAIN)
    assert trace.finish_time_s.tolist() == [1.0]


def test_decisions_may_come_from_a_generator():
    """A generator is read to its end before its first decision is applied."""
    queue_lengths = []

    def answer(state):
        for task in state.waiting():
            queue_lengths.append(int(state.queue_length[0]))
            yield Assign(task, 0)

    trace, _ = play(hosts(10), [10.0, 10.0, 10.0], answer, PLAIN)
    assert trace.finish_time_s.tolist() == [1.0, 2.0, 3.0]
    assert queue_lengths == [0, 0, 0]


def test_a_pstate_that_a_host_lacks_is_refused_before_the_run():
    """The scenario's P-state must exist on every host."""
    policy = Scripted(lambda state: [])
    with pytest.raises(InputError, match=r"'h1'.*0 to 0.*P-state 1"):
        controller_of(hosts(10), [1.0], policy, pstate=1)
