"""Copies of running tasks: who wins, who is cancelled, what a cancelled copy leaves behind."""

from __future__ import annotations

from scripted import at, hosts, play, rows

from gridsched.metrics import wasted_flops
from gridsched.model.trace import ExecutionEnd
from gridsched.policy.decisions import Assign, Cancel


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
    """It can be assigned anew and then starts from the beginning."""
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
