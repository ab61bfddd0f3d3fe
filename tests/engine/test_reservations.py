"""Reservations, and replicas that end each other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from clusters import plan_of
from scripted import PARALLEL, Scripted, at, at_times, controller_of, hosts, nodes, play, play_on_nodes, rows, starts

from gridsched.drivers import reference
from gridsched.engine.execution import Execution
from gridsched.engine.plans import Reservations
from gridsched.errors import IncompleteRun, InvalidDecision
from gridsched.metrics.run_metrics import wasted_flops
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import ExecutionEnd, TaskState
from gridsched.policy.base import Traits
from gridsched.policy.decisions import Allocate, Assign, Cancel, Drop, Plan, PowerOff, PowerOn

# Permanent reservations of nodes and place-holders: what starts when, and what is refused.

#: Two nodes busy until 10 s, then algorithms C6's tasks: 3 nodes 20 s, 2 nodes 10 s, 2 nodes 15 s.
C6 = [(0, 2, 10), (0, 3, 20), (0, 2, 10), (0, 2, 15)]
BUSY = Allocate(0, np.array([0, 1]))


def test_reservations_that_come_and_go_are_seen_in_order():
    """However they are made and taken, a policy sees those that are left by start, then by task, with their nodes."""
    rng, kept, left = np.random.default_rng(39), Reservations(50), []
    for task in range(300):
        made = Execution(task, 0, 0, float(rng.integers(20)), 100.0 + task)
        made.hosts = np.sort(rng.choice(50, size=rng.integers(1, 6), replace=False))
        if task % 7 == 0:
            made.parts = rng.integers(1, 4, size=len(made.hosts))
        kept.add(made)
        left.append(made)
        while len(left) > rng.integers(60):
            left.remove(kept.take())
        expected = sorted(left, key=lambda each: (each.start, each.task))
        nodes_of = [
            [node for node, parts in zip(each.nodes, each.parts_each, strict=True) for _ in range(parts)]
            for each in expected
        ]
        view = kept.view()
        assert view.task.tolist() == [each.task for each in expected]
        assert view.start.tolist() == [each.start for each in expected]
        assert view.end.tolist() == [each.end for each in expected]
        assert [view.hosts[a:b].tolist() for a, b in pairwise(view.offsets.tolist())] == nodes_of


def test_conservative_by_hand():
    """C6's conservative schedule: T1 at 10 s, T2 at once, T3 at 30 s."""
    reserved = []

    def answer(state):
        if state.now == 0:
            return [
                BUSY,
                Allocate(1, np.array([2, 0, 1]), start=10.0),
                Allocate(2, np.array([2, 3])),
                Allocate(3, np.array([1, 0]), start=30.0),
            ]
        view = state.nodes.reserved
        reserved.append(
            (
                state.now,
                view.task.tolist(),
                view.start.tolist(),
                view.end.tolist(),
                view.offsets.tolist(),
                view.hosts.tolist(),
                state.nodes.free_at.tolist(),
                len(view),
            )
        )
        assert not any(a.flags.writeable for a in (view.task, view.hosts, state.nodes.free_at))
        return []

    trace, _ = play_on_nodes(nodes(4), C6, answer)
    assert starts(trace) == {0: (0.0, [0, 1]), 1: (10.0, [0, 1, 2]), 2: (0.0, [2, 3]), 3: (30.0, [0, 1])}
    # at 10 s the first reservation starts before anybody is asked
    assert reserved == [
        (10.0, [3], [30.0], [45.0], [0, 2], [0, 1], [30.0, 30.0, 30.0, 10.0], 1),
        (30.0, [], [], [], [0], [], [45.0, 45.0, 30.0, 30.0], 0),
    ]


def test_reservations_of_one_start():
    """They start in the order in which they were made, and are shown in order of their tasks."""
    seen = []
    made = [Allocate(task, np.array([task, task + 3]), start=10.0) for task in (2, 0, 1)]

    def answer(state):
        view = state.nodes.reserved
        seen.append((state.now, view.task.tolist(), view.hosts.tolist()))
        return {0.0: made, 1.0: [Allocate(3, np.array([6]))]}.get(state.now, [])

    jobs = [(0, 2, 5), (0, 2, 5), (0, 2, 5), (1, 1, 3)]
    trace, _ = play_on_nodes(nodes(7), jobs, answer)
    assert seen[:2] == [(0.0, [], []), (1.0, [0, 1, 2], [0, 3, 1, 4, 2, 5])]
    assert trace.executions["task"].tolist() == [3, 2, 0, 1]
    assert trace.start_time_s.tolist() == [10.0, 10.0, 10.0, 1.0]
    for first, other in (([0, 1], [1, 2]), ([0, 1, 2], [1]), ([1], [0, 1])):
        reserve = [Allocate(t, np.array(n), start=10.0) for t, n in enumerate((first, other))]
        jobs = [(0, len(first), 5), (0, len(other), 5)]
        with pytest.raises(InvalidDecision, match=r"task 2, host 'n1'|host 1 is reserved"):
            play_on_nodes(nodes(3), jobs, at_times({0: reserve}))


def test_a_reservation_is_kept_whatever_ends_early():
    """The busy nodes are free at 4 s; the reservation starts at 10 s, as planned."""
    seen = []

    def answer(state):
        seen.append((state.now, state.mappable.tolist(), state.nodes.free_at.tolist()))
        reserve = [BUSY, Allocate(1, np.array([0, 1, 2]), start=10.0)]
        return reserve if state.now == 0 else []

    trace, _ = play_on_nodes(nodes(3), C6[:2], answer, logged=[4.0, 20.0])
    assert starts(trace)[1] == (10.0, [0, 1, 2])
    # its start is no reason to ask; once reserved it is not mappable
    assert seen == [(0.0, [0, 1], [0.0, 0.0, 0.0]), (4.0, [], [4.0, 4.0, 4.0])]


def test_a_reservation_that_finds_its_nodes_busy_voids_the_run():
    """Its predecessor takes 12 s where 10 were estimated: the message names task and host."""
    with pytest.raises(InvalidDecision, match="t = 10 s, task 2, host 'n1'"):
        play_on_nodes(
            nodes(3),
            C6[:2],
            at_times({0: [Allocate(0, np.array([1, 2])), Allocate(1, np.array([0, 1, 2]), start=10.0)]}),
            logged=[12.0, 20.0],
        )


@pytest.mark.parametrize(
    ("decisions", "why"),
    [
        ([Allocate(1, np.array([0, 1, 2]), start=9.5)], r"task 2: host 0 is free from 10 s on .*; 9.5 s is too early"),
        (
            [Allocate(1, np.array([0, 1, 2]), start=10.0), Allocate(2, np.array([2, 3]), start=29.0)],
            r"task 3: host 2 is reserved from 10 s to 30 s by .* for from 29 s to 39 s",
        ),
        (
            [Allocate(1, np.array([1, 2, 3]), start=10.0), Allocate(3, np.array([2, 3]))],
            r"task 4: host 2 is reserved from 10 s to 30 s by .* for from 0 s to 15 s",
        ),
        ([Allocate(1, np.array([0, 1, 2]), start=-1.0)], "start is -1.0; it must lie at or after"),
        ([Allocate(1, np.array([0, 1, 2]), start=np.nan)], "start is nan; it must lie at or after"),
        ([Allocate(1, np.array([0, 1, 2]), start="10")], "start is '10'; it must lie at or after"),
        ([Allocate(1, np.array([0, 1]), start=10.0)], "the task takes 3 nodes, not 2"),
        ([Allocate(1, np.array([0, 1, 4]), start=10.0)], "its nodes lie in several clusters"),
        (
            [Allocate(1, np.array([0, 1, 2]), start=10.0), Allocate(1, np.array([0, 1, 2]), start=30)],
            "the task is queued",
        ),
        ([Allocate(1, np.array([0, 1, 2]), start=10.0), Drop(1)], "needs the trait 'may_drop'"),
        ([Allocate(1, np.array([1, 2, 3]), start=10.0), PowerOff(3)], "or is reserved there"),
        ([Allocate(2, np.array([4, 5]), start=10.0)], "host 5 is off; PowerOn it first"),
        ([PowerOn(5), Allocate(2, np.array([4, 5]), start=1.0)], "host 5 is free from 2 s on"),
    ],
)
def test_what_cannot_be_reserved(decisions, why):
    """Overlaps, times in the past, too few nodes, another cluster, hosts that are off."""
    with pytest.raises(InvalidDecision, match=why):
        play_on_nodes(nodes(4, 2, boot_time_s=2.0), C6, at_times({0: [BUSY, *decisions]}), hosts_off=(5,))


def test_many_reservations_share_nodes_one_after_the_other():
    """More of them than there is room at first; each starts when its predecessor ends."""
    n = 150
    jobs = [(0, 1 + k % 2, 3) for k in range(n)]
    trace, _ = play_on_nodes(
        nodes(2), jobs, at_times({0: [Allocate(k, np.arange(1 + k % 2), start=3.0 * k) for k in range(n)][::-1]})
    )
    assert starts(trace) == {k: (3.0 * k, list(range(1 + k % 2))) for k in range(n)}


def test_a_horizon_leaves_reservations_unfinished():
    """Nothing starts at 10 s or later; what runs then goes on."""
    trace, _ = play_on_nodes(
        nodes(3), C6[:2], at_times({0: [BUSY, Allocate(1, np.array([0, 1, 2]), start=10.0)]}), horizon_s=10.0
    )
    assert trace.final_state.tolist() == [TaskState.FINISHED, TaskState.UNFINISHED]


# ---------------------------------------------------------------------- place-holders


def test_place_holders_start_when_their_time_comes():
    """Mapping events at 0 and 25 s: three start in between, without another question."""
    trace, policy = play_on_nodes(
        nodes(4),
        C6,
        at_times(
            {
                0: [plan_of((3, 30, [1, 0]), (1, 10, [2, 1, 0]), (2, 0, [2, 3]), (0, 0, [0, 1]))],
                25: [plan_of((3, 32, [0, 1]))],
            }
        ),
        interval=25.0,
    )
    assert starts(trace) == {2: (0.0, [2, 3]), 0: (0.0, [0, 1]), 1: (10.0, [0, 1, 2]), 3: (32.0, [0, 1])}
    assert policy.asked_ == [(0.0, [0, 1, 2, 3]), (25.0, [3])]


def test_place_holders_are_withdrawn_before_the_next_ask():
    """At 4 s a job ends early: all wait again, and without a new plan they stay so."""
    seen = []

    def answer(state):
        seen.append((state.now, state.mappable.tolist(), len(state.nodes.reserved)))
        plans = {0.0: plan_of((0, 0, [0, 1]), (1, 10, [0, 1, 2])), 4.0: plan_of()}
        if state.now == 4:
            return [plans[4.0], Allocate(1, np.array([2, 1, 0]))]
        return [plans[state.now]] if state.now in plans else []

    trace, _ = play_on_nodes(nodes(3), C6[:2], answer, logged=[4.0, 20.0])
    assert seen == [(0.0, [0, 1], 0), (4.0, [1], 0)]
    assert starts(trace)[1] == (4.0, [0, 1, 2])
    with pytest.raises(IncompleteRun, match=r"1 of 2.*t = 4 s"):
        play_on_nodes(
            nodes(3), C6[:2], at_times({0: [plan_of((0, 0, [0, 1]), (1, 10, [0, 1, 2]))]}), logged=[4.0, 20.0]
        )


def test_a_planned_task_may_go_another_way():
    """Allocated, or dropped, in the answer that planned it: its place-holder is void."""
    traits = Traits(trigger="start", parallel=True, may_drop=True)
    trace, _ = play_on_nodes(
        nodes(5),
        C6,
        at_times(
            {
                0: [
                    plan_of((0, 0, [0, 1]), (1, 5, [1, 2, 3]), (2, 12, [0, 4]), (3, 40, [0, 3])),
                    Allocate(1, np.array([1, 2, 3]), start=10.0),
                    Drop(3),
                ]
            }
        ),
        traits=traits,
    )
    assert starts(trace) == {0: (0.0, [0, 1]), 1: (10.0, [1, 2, 3]), 2: (12.0, [0, 4])}
    assert trace.final_state[3] == TaskState.DROPPED


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (Plan(np.array([1]), None), "a Plan without hosts needs tasks that one host can hold"),
        (Plan(np.array([1]), np.array([0])), "the task takes 3 nodes, not 1"),
        (
            Plan(np.array([1]), np.array([0.5]), None, np.array([0, 1]), np.array([0])),
            "must be an array of whole numbers",
        ),
        (Plan(np.array([1]), np.array([0]), None, np.array([0, 1]), np.array(["a"])), "must be an array of numbers"),
        (
            Plan(np.array([1]), np.array([0]), None, np.array([0]), np.array([1.0])),
            "Plan has 1 task, 1 start, 1 offset; it needs a start for each task, and one",
        ),
        (
            Plan(np.array([1]), np.array([0, 1, 2]), None, np.array([0, 2]), np.array([1.0])),
            "Plan.offsets must rise from 0 to 3, the number of hosts",
        ),
        (
            Plan(np.array([1]), np.array([0, 1, 2]), np.array([0, 1]), np.array([0, 3]), np.ones(1)),
            "Plan has 1 task and 2 pstates",
        ),
        (plan_of((1, -1, [0, 1, 2])), r"task 2: Plan.starts holds .*-1.0.* s; it must lie"),
        (plan_of((1, np.inf, [0, 1, 2])), "Plan.starts holds .*inf.* s; it must lie at or"),
        (plan_of((9, 5, [0, 1, 2])), "there are tasks 0 to 3"),
        (plan_of((1, 5, [0, 1, 6])), "there are hosts 0 to 5"),
        (plan_of((1, 5, [0, 1, 2]), (1, 50, [0, 1, 2])), "Plan holds a task twice"),
        (plan_of((0, 5, [0, 1])), "one that is running"),
        (plan_of((1, 5, [0, 1])), "task 2: the task takes 3 nodes, not 2"),
        (plan_of((1, 5, [0, 1, 2]), pstates=[2]), "P-states 0 to 1, not 2"),
        (plan_of((2, 9, [3, 3])), "a host is listed twice"),
        (plan_of((2, 9, [3, 4])), "place-holder starts, and its nodes lie in several"),
        (plan_of((1, 5, [0, 2, 3])), r"t = 5 s, task 2: its .* starts, and host 0 is busy"),
        (plan_of((2, 5, [2, 3]), (3, 9, [3, 2])), "t = 9 s, task 4: .* host 2 is busy"),
        (plan_of((2, 5, [4, 5])), "t = 5 s, task 3: .* starts, and host 5 is off"),
    ],
)
def test_what_cannot_be_planned(plan, why):
    """A plan is judged when it is made, its nodes when a task starts."""
    with pytest.raises(InvalidDecision, match=why):
        play_on_nodes(nodes(4, 2), C6, at_times({0: [BUSY, plan]}), hosts_off=(5,), traits=PARALLEL)


def test_a_place_holder_respects_reservations():
    """The reservation from 12 s on is permanent; a place-holder until 15 s cannot start there."""
    with pytest.raises(InvalidDecision, match=r"task 4.*host 3"):
        play_on_nodes(nodes(4), C6, at_times({0: [Allocate(2, np.array([2, 3]), start=12.0), plan_of((3, 2, [0, 3]))]}))


def test_serial_tasks_have_no_plan_of():
    """Offsets and starts mean sets of nodes."""
    policy = Scripted(lambda state: [plan_of((0, 0, [0]))], Traits(trigger="event"))
    with pytest.raises(InvalidDecision, match="parallel"):
        reference.simulate(controller_of(nodes(2), make_tasks([10.0]), policy))


# Copies of running tasks: who wins, who is cancelled, what a cancelled copy leaves behind.


def outcomes(trace) -> dict[tuple[int, int], int]:
    """Return the outcome of each execution by (task, host)."""
    return {(task, host): outcome for task, host, outcome in trace.executions[["task", "host", "outcome"]].tolist()}


def test_the_first_copy_to_finish_finishes_the_task():
    """The slower copy is cancelled in that instant, with the flops it did as waste."""
    answer = at((0.0, [Assign(0, 1), Assign(0, 0)]))
    trace, _ = play(hosts(10, 5), [20.0], answer)
    assert rows(trace) == [(0.0, 0, 0, 2.0), (0.0, 1, 0, 2.0)]
    assert outcomes(trace) == {(0, 0): ExecutionEnd.FINISHED, (0, 1): ExecutionEnd.CANCELLED}
    assert wasted_flops(trace) == 10.0


def test_of_copies_that_finish_together_the_lowest_host_id_wins():
    """Although the copy on h2 was started first, the one on h1 counts."""
    answer = at((0.0, [Assign(0, 1), Assign(0, 0)]))
    trace, _ = play(hosts(10, 10), [20.0], answer)
    assert outcomes(trace) == {(0, 0): ExecutionEnd.FINISHED, (0, 1): ExecutionEnd.CANCELLED}
    assert wasted_flops(trace) == 20.0


def test_copies_are_cancelled_before_the_policy_is_asked():
    """When the winner ends, the loser's host is idle already."""
    seen = {}

    def answer(state):
        seen[state.now] = (state.idle_cores(), state.running["task"].tolist())
        return [Assign(0, 0), Assign(0, 1), Assign(1, 2)] if state.now == 0 else []

    play(hosts(10, 5, 1), [20.0, 20.0], answer)
    assert seen[2.0] == ([0, 1], [1])


def test_a_queued_copy_of_a_finished_task_never_starts():
    """Copies that still wait in a fixed queue go with the finish."""
    answer = at((0.0, [Assign(0, 0), Assign(1, 1), Assign(0, 1)]))
    trace, _ = play(hosts(10, 5), [10.0, 20.0], answer)
    assert rows(trace) == [(0.0, 0, 0, 1.0), (0.0, 1, 1, 4.0)]


def test_all_finishes_of_an_instant_come_before_any_queue_moves_on():
    """Tasks 0 and 1 end together; the copy of 1 that waits behind 0 is not started for nothing."""
    answer = at((0.0, [Assign(0, 0), Assign(1, 1), Assign(1, 0), Assign(2, 0)]))
    trace, _ = play(hosts(10, 10), [10.0, 10.0, 10.0], answer)
    assert rows(trace) == [(0.0, 0, 0, 1.0), (0.0, 1, 1, 1.0), (1.0, 0, 2, 2.0)]


def test_a_queue_moves_on_behind_a_cancelled_copy():
    """The host of a cancelled copy takes its next task in the same instant."""
    answer = at((0.0, [Assign(0, 0), Assign(0, 1), Assign(1, 1)]))
    trace, _ = play(hosts(10, 5), [20.0, 10.0], answer)
    assert rows(trace)[2] == (2.0, 1, 1, 4.0)


def test_a_policy_can_cancel_a_running_copy_on_a_host():
    """Cancel with a host ends the copy there; the other goes on."""
    answer = at((0.0, [Assign(0, 0), Assign(0, 1), Assign(1, 2)]), (1.0, [Cancel(0, 0)]))
    trace, _ = play(hosts(10, 5, 10), [20.0, 10.0], answer)
    assert outcomes(trace)[0, 0] == ExecutionEnd.CANCELLED
    assert trace.finish_time_s.tolist() == [4.0, 1.0]


def test_a_task_whose_last_copy_is_cancelled_is_waiting_again():
    """It can be assigned again and then starts from the beginning."""
    answer = at((0.0, [Assign(0, 1), Assign(1, 0)]), (1.0, [Cancel(0), Assign(0, 0)]))
    trace, policy = play(hosts(10, 5), [20.0, 10.0], answer)
    assert policy.asked_[1] == (1.0, [])
    assert rows(trace) == [(0.0, 0, 1, 1.0), (0.0, 1, 0, 1.0), (1.0, 0, 0, 3.0)]
    assert wasted_flops(trace) == 5.0


def test_a_task_with_a_copy_in_a_queue_is_not_waiting():
    """After its running copy was cancelled the queued one counts; it is not mappable."""
    seen = {}

    def answer(state):
        seen[state.now] = state.mappable.tolist()
        if state.now == 0:
            return [Assign(0, 0), Assign(1, 1), Assign(2, 2), Assign(0, 1)]
        return [Cancel(0, 0)] if state.now == 1 else []

    trace, _ = play(hosts(10, 5, 10), [90.0, 20.0, 10.0], answer)
    assert seen == {0.0: [0, 1, 2], 1.0: [], 4.0: []}
    assert trace.finish_time_s.tolist() == [22.0, 4.0, 1.0]


def test_a_queued_copy_can_be_cancelled_while_another_runs():
    """Cancel with the host of a queued copy takes it out of that queue."""
    answer = at((0.0, [Assign(0, 0), Assign(1, 1), Assign(2, 2), Assign(0, 1)]), (1.0, [Cancel(0, 1)]))
    trace, _ = play(hosts(10, 5, 10), [90.0, 20.0, 10.0], answer)
    assert rows(trace) == [(0.0, 0, 0, 9.0), (0.0, 1, 1, 4.0), (0.0, 2, 2, 1.0)]


def test_a_copy_that_starts_and_is_cancelled_in_one_call_took_no_time():
    """Assign and Cancel of one call leave an execution of no length."""
    answer = at((0.0, [Assign(0, 0), Cancel(0), Assign(0, 1)]))
    trace, _ = play(hosts(10, 5), [10.0], answer)
    assert rows(trace) == [(0.0, 0, 0, 0.0), (0.0, 1, 0, 2.0)]
