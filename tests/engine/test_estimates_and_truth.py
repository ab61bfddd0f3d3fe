"""Estimates by task type, tasks that fit nowhere, and true run times that differ."""

from __future__ import annotations

import numpy as np
import pytest
from scripted import at, first_host, hosts, idle_hosts, plan, play, rows

from gridsched.errors import IncompleteRun, InputError
from gridsched.model.estimates import FlopsEstimates, TypedEstimates
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import TaskState
from gridsched.policy.base import Traits
from gridsched.policy.decisions import Assign

INF = float("inf")


def typed(etc, task_type, host_type) -> TypedEstimates:
    """Estimates of (task type, host type, P-state) with 10 W everywhere."""
    etc = np.array(etc, dtype=float)
    return TypedEstimates(etc, np.full(etc.shape, 10.0), task_type, host_type)


def test_run_times_come_from_the_etc_matrix():
    """Type 0 takes 4 s on the first host type and 6 s on the second; flops do not count."""
    tasks = make_tasks([1.0, 1e9], task_type=[0, 0])
    estimates = typed([[[4.0], [6.0]]], [0, 0], [0, 1])
    answer = at((0.0, [Assign(0, 0), Assign(1, 1)]))
    trace, _ = play(hosts(10, 10), tasks, answer, estimates=estimates)
    assert trace.finish_time_s.tolist() == [4.0, 6.0]


def test_a_task_that_fits_nowhere_is_rejected_before_the_policy_sees_it():
    """Type 1 runs on no host: its task is never mappable, and final."""
    tasks = make_tasks([1.0, 1.0], task_type=[1, 0])
    estimates = typed([[[4.0]], [[INF]]], [1, 0], [0])
    trace, policy = play(hosts(10), tasks, first_host, estimates=estimates)
    assert policy.asked_ == [(0.0, [1])]
    assert trace.final_state.tolist() == [TaskState.REJECTED, TaskState.FINISHED]


@pytest.mark.parametrize("asked", ["start", "arrival", "event"])
def test_a_run_of_rejected_tasks_asks_nobody(asked):
    """Where nothing fits there is nothing to decide."""
    tasks = make_tasks([1.0, 1.0], 3.0, task_type=[0, 0])
    trace, policy = play(hosts(10), tasks, first_host, Traits(asked), estimates=typed([[[INF]]], [0, 0], [0]))
    assert policy.times == []
    assert trace.final_state.tolist() == [TaskState.REJECTED] * 2
    assert trace.horizon_s == 3.0


def test_a_task_that_fits_in_another_pstate_is_not_rejected():
    """Infeasible in P-state 0 only: the policy may still run it in P-state 1."""
    platform = Platform((Host("h1", (PState(10.0), PState(5.0))),))
    tasks = make_tasks([1.0], task_type=[0])
    estimates = typed([[[INF, 7.0]]], [0], [0])
    answer = at((0.0, [Assign(0, 0, 1)]))
    trace, _ = play(platform, tasks, answer, estimates=estimates)
    assert rows(trace) == [(0.0, 0, 0, 7.0)]


def test_a_host_type_that_no_host_has_makes_nothing_feasible():
    """Columns of the matrix without a host do not count as places to run."""
    tasks = make_tasks([1.0], task_type=[0])
    estimates = typed([[[INF], [5.0]]], [0], [0])
    assert estimates.runnable([0], [0]).tolist() == [False]
    trace, _ = play(hosts(10), tasks, first_host, estimates=estimates)
    assert trace.final_state.tolist() == [TaskState.REJECTED]


def test_typed_estimates_check_their_matrices():
    """Shapes and signs are checked when the estimates are made."""
    with pytest.raises(InputError, match="both need"):
        TypedEstimates(np.ones((1, 1, 1)), np.ones((1, 2, 1)), [0], [0])
    with pytest.raises(InputError, match=r"ETC.* 0"):
        TypedEstimates([[[0.0]]], [[[1.0]]], [0], [0])
    with pytest.raises(InputError, match=r"ETC.* 0"):
        TypedEstimates([[[float("nan")]]], [[[1.0]]], [0], [0])
    with pytest.raises(InputError, match=r"APC.*0 W"):
        TypedEstimates([[[1.0]]], [[[-1.0]]], [0], [0])


def test_scalar_and_array_estimates_agree():
    """`run_time` is the scalar twin of `etc`; energy is time times power."""
    two_cores = Host("a", (PState(8.0, 1, 2, 40), PState(4.0, 1, 2, 12)), cores=2)
    platform = Platform((two_cores, Host("b", (PState(3.0, 1, 2, 9),))))
    tasks = make_tasks([24.0, 6.0])
    estimates = FlopsEstimates(platform, tasks)
    assert estimates.etc([0, 1], [0, 1]).tolist() == [[3.0, 8.0], [0.75, 2.0]]
    assert estimates.run_time(0, 0, 1) == estimates.etc([0], [0], 1)[0, 0] == 6.0
    assert estimates.eec([0], [0, 1]).tolist() == [[3.0 * 20.0, 8.0 * 9.0]]
    assert estimates.eec([0], [0], 1).tolist() == [[6.0 * 6.0]]


def test_the_policy_sees_estimates_the_run_takes_the_truth():
    """True times are doubled: the policy expects the end at 1 s and learns of it at 2 s."""
    seen = {}

    def answer(state):
        seen[state.now] = (state.ready_time.tolist(), state.running["estimated_end"].tolist())
        return first_host(state)

    tasks = make_tasks([10.0, 20.0, 30.0], [0.0, 0.0, 1.5])
    trace, _ = play(hosts(10), tasks, answer, run_time=lambda task, host, pstate: tasks.flops[task] / 5.0)
    assert trace.finish_time_s.tolist() == [2.0, 6.0, 12.0]
    assert seen[1.5] == ([3.5], [1.0])  # late already: free now, then the queued 2 s
    assert seen[2.0] == ([7.0], [4.0])


def test_a_task_that_ends_early_frees_its_host_early():
    """With shorter true times plans run down earlier than planned."""
    answer = at((0.0, [plan((0, 0), (1, 0), (2, 1))]))
    trace, policy = play(hosts(10, 10), [50.0, 50.0, 50.0], answer, run_time=lambda task, host, pstate: 1.0 + task)
    assert rows(trace) == [(0.0, 0, 0, 1.0), (0.0, 1, 2, 3.0), (1.0, 0, 1, 3.0)]
    assert policy.times == [0.0, 1.0]


def test_random_true_times_keep_every_task_once_and_the_hosts_busy():
    """Whatever the truth, a work queue runs each task once and leaves no gap on a host."""
    rng = np.random.default_rng(3)
    truth = rng.gamma(2.0, 5.0, (40, 4))
    trace, _ = play(hosts(1, 2, 3, 4), [10.0] * 40, idle_hosts, run_time=lambda task, host, _: truth[task, host])
    assert sorted(trace.executions["task"].tolist()) == list(range(40))
    lengths = trace.executions["end"] - trace.executions["start"]
    expected = truth[trace.executions["task"], trace.executions["host"]]
    np.testing.assert_allclose(lengths, expected, rtol=1e-12)
    for host in range(4):
        runs = trace.executions[trace.executions["host"] == host]
        assert runs["start"].tolist() == [0.0, *runs["end"][:-1].tolist()]


def test_an_incomplete_run_tells_how_many_tasks_are_left():
    """The message counts, gives the time and names the tasks."""
    with pytest.raises(IncompleteRun, match=r"2 of 3.*t = 5 s.*2, 3"):
        play(hosts(10), [50.0, 1.0, 1.0], at((0.0, [Assign(0, 0)])))


def test_an_incomplete_run_names_ten_tasks_and_counts_the_rest():
    """A bag of a million tasks makes no sentence of a million names."""
    with pytest.raises(IncompleteRun, match=r"1, 2, 3, 4, 5, 6, 7, 8, 9, 10.* 3"):
        play(hosts(10), [1.0] * 13, lambda state: [])
