"""The work queue and the other baselines."""

from __future__ import annotations

import numpy as np
import pytest
from scheduler_cases import RUNNING, ex_a_platform, ex_a_tasks, pairs, platform_of, prepared, state_of, system_of

from gridsched import Scenario, run
from gridsched.errors import InputError
from gridsched.model.estimates import TypedEstimates
from gridsched.model.platform import Cluster, Platform
from gridsched.model.tasks import DataFiles, make_tasks
from gridsched.model.trace import ExecutionEnd
from gridsched.policy.decisions import Plan
from gridsched.schedulers.bag.baselines import MCT, OLB, WQR, RoundRobin, WorkQueue

# Workqueue and its replicating form, asked one event at a time.


def running(*rows: tuple[int, int, float]) -> np.ndarray:
    """Return running copies (task, host, start), as a state lists them."""
    rows = sorted(rows, key=lambda row: (row[2], row[0], row[1]))
    return np.array([(t, h, 0, start, start + 1e9) for t, h, start in rows], dtype=RUNNING)


@pytest.fixture
def ex_a():
    """System and tasks of EX-A."""
    tasks = ex_a_tasks()
    return system_of(ex_a_platform(), tasks), tasks


def first_starts(platform, tasks) -> list[tuple[int, int]]:
    """Return (task, host) of what a work queue starts at t = 0, in order."""
    runs = run(Scenario(platform, tasks, "wq", driver="reference")).trace.executions
    return runs[runs["start"] == 0.0][["task", "host"]].tolist()


def test_idle_cores_take_tasks_in_order(ex_a):
    """At t = 0 h1, h2, h3 take t1, t2, t3 (algorithms A1)."""
    system, tasks = ex_a
    assert first_starts(system.platform, tasks) == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.usefixtures("both_paths")
def test_more_tasks_than_idle_cores_form_a_common_queue(ex_a):
    """One plan for all of them; it is asked again when tasks come or this queue is used up."""
    system, tasks = ex_a
    (decision,) = prepared(WorkQueue(), system).schedule(state_of(system, tasks))
    assert isinstance(decision, Plan)
    assert decision.tasks.tolist() == list(range(len(tasks)))
    assert decision.hosts is None
    ten = Scenario(platform_of([1.0], [1.0]), make_tasks(range(1, 11)), "wq", driver="reference")
    assert run(ten).trace.mapping_events == 2  # at 0 s, and when the last one starts


@pytest.mark.usefixtures("both_paths")
def test_arrivals_join_behind_the_common_queue():
    """Two tasks wait when the third arrives at 1 s: the host takes them in order of their ids."""
    tasks = make_tasks([10.0, 10.0, 10.0, 10.0, 5.0], [0.0, 0.0, 0.0, 1.0, 1.0])
    platform = platform_of([1.0], [1.0])
    trace = run(Scenario(platform, tasks, "wq", driver="reference")).trace
    assert trace.start_time_s.tolist() == [0.0, 10.0, 20.0, 30.0, 40.0]


def test_two_hosts_freed_together_take_tasks_by_host_id(ex_a):
    """At t = 10 h1 takes t4 and h2 takes t5."""
    system, tasks = ex_a
    state = state_of(system, tasks, mappable=np.array([3, 4]), idle=[0, 1])
    assert pairs(prepared(WorkQueue(), system).schedule(state)) == [(3, 0), (4, 1)]


def test_a_host_with_several_cores_takes_several_tasks():
    """A host is listed once for each free core."""
    tasks = make_tasks([1, 1, 1, 1])
    platform = platform_of([1, 1], [1, 1], cores=[2, 1])
    assert first_starts(platform, tasks) == [(0, 0), (1, 0), (2, 1)]


@pytest.mark.parametrize("policy", [WorkQueue, WQR])
def test_infeasible_pairs_are_passed_over(policy):
    """Host h1 cannot run type 0: it takes the first task of type 1."""
    tasks = make_tasks([1, 1, 1])
    estimates = TypedEstimates([[[np.inf], [1]], [[1], [1]]], np.ones((2, 2, 1)), [0, 1, 0], [0, 1])
    system = system_of(platform_of([1, 1], [1, 1]), tasks, estimates)
    decisions = prepared(policy(), system).schedule(state_of(system, tasks))
    assert pairs(decisions) == [(1, 0), (0, 1)]


def test_wqr_copies_only_when_nothing_waits(ex_a):
    """At t = 15 h2 takes a copy of t3, which runs longest; at t = 10 a task waited."""
    system, tasks = ex_a
    policy = prepared(WQR(), system)
    now_10 = state_of(system, tasks, mappable=np.array([3, 4]), idle=[0, 1], running=running((2, 2, 0.0)))
    assert pairs(policy.schedule(now_10)) == [(3, 0), (4, 1)]
    now_15 = state_of(
        system, tasks, mappable=np.array([], dtype=int), idle=[1], running=running((2, 2, 0.0), (3, 0, 10.0))
    )
    assert pairs(policy.schedule(now_15)) == [(2, 1)]


def test_wqr_respects_the_most_copies(ex_a):
    """At t = 25 t3 has two copies: h1 stays idle with 2, and makes the third with 3."""
    system, tasks = ex_a
    state = state_of(
        system, tasks, mappable=np.array([], dtype=int), idle=[0], running=running((2, 2, 0.0), (2, 1, 15.0))
    )
    assert pairs(prepared(WQR(max_replicas=2), system).schedule(state)) == []
    assert pairs(prepared(WQR(max_replicas=3), system).schedule(state)) == [(2, 0)]
    assert pairs(prepared(WQR(max_replicas=1), system).schedule(state)) == []


def test_wqr_order_of_candidates():
    """Fewest copies first, then the oldest first start, then the lowest id."""
    tasks = make_tasks([1] * 5)
    system = system_of(platform_of([1] * 8, [1] * 8), tasks)
    state = state_of(
        system,
        tasks,
        now=9.0,
        mappable=np.array([], dtype=int),
        idle=[5, 6, 7],
        running=running((4, 0, 1.0), (4, 1, 2.0), (3, 2, 3.0), (1, 3, 3.0), (0, 4, 4.0)),
    )
    assert pairs(prepared(WQR(max_replicas=3), system).schedule(state)) == [(1, 5), (3, 6), (0, 7)]


def test_wqr_copies_tasks_started_in_the_same_instant():
    """With fewer tasks than hosts the spare hosts copy at once, but no host its own task."""
    tasks = make_tasks([1, 1])
    system = system_of(platform_of([1] * 4, [1] * 4, cores=[1, 2, 1, 1]), tasks)
    decisions = prepared(WQR(), system).schedule(state_of(system, tasks))
    assert pairs(decisions) == [(0, 0), (1, 1), (0, 1), (1, 2)]


def far_file(sizes: list[float]) -> list[tuple]:
    """Run WQR where h1 and h2 (B) are 10 s away from the file of the first task, in A with h3."""
    clusters = (Cluster("B", (0, 1), bandwidth=100.0), Cluster("A", (2,)))
    hosts = platform_of([100.0] * 3, [1.0] * 3).hosts
    file = DataFiles(("f",), np.array([1000.0]), (("A",),))
    tasks = make_tasks(sizes, input_files=[(0,)] + [()] * (len(sizes) - 1), files=file)
    scenario = Scenario(Platform(hosts, clusters=clusters), tasks, "wqr", driver="reference")
    columns = ["task", "host", "start", "end", "outcome"]
    return sorted(run(scenario).trace.executions[columns].tolist())


def test_wqr_copies_a_task_whose_core_waits_for_its_files():
    """At t = 0 task 0 waits on h1 for its file; idle h3, where that is, takes its copy and wins.

    h1 would compute from 10 s to 40 s; it is cancelled at 30 s.
    """
    done, cancelled = int(ExecutionEnd.FINISHED), int(ExecutionEnd.CANCELLED)
    assert far_file([3000.0, 3000.0]) == [
        (0, 0, 10.0, 30.0, cancelled),
        (0, 2, 0.0, 30.0, done),
        (1, 1, 0.0, 30.0, done),
    ]


def test_wqr_takes_the_arrival_of_the_files_for_the_start():
    """At 2 s h3 copies task 1, which began at 0 s, not task 0, which will begin at 10 s.

    At 30 s task 1 is done; of the idle h2 and h3 the first copies task 0.
    """
    done, cancelled = int(ExecutionEnd.FINISHED), int(ExecutionEnd.CANCELLED)
    assert far_file([3000.0, 3000.0, 200.0]) == [
        (0, 0, 10.0, 40.0, done),
        (0, 1, 30.0, 40.0, cancelled),
        (1, 1, 0.0, 30.0, done),
        (1, 2, 2.0, 30.0, cancelled),
        (2, 2, 0.0, 2.0, done),
    ]


def test_wqr_random_pick_follows_the_generator():
    """The same generator gives the same copies, another one eventually others."""
    tasks = make_tasks([1] * 6)
    system = system_of(platform_of([1] * 9, [1] * 9), tasks)
    copies = running(*((t, t, 0.0) for t in range(6)))
    state = state_of(system, tasks, mappable=np.array([], dtype=int), idle=[6, 7, 8], running=copies)
    chosen = [pairs(prepared(WQR(pick="random"), system, k).schedule(state)) for k in range(5)]
    assert chosen[0] == pairs(prepared(WQR(pick="random"), system, 0).schedule(state))
    assert len({tuple(choice) for choice in chosen}) > 1
    for choice in chosen:
        assert len({task for task, _ in choice}) == 3  # at most two copies of each


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"max_replicas": 0}, "'max_replicas' of wqr is 0; it must be a whole number >= 1"),
        ({"max_replicas": 2.0}, "'max_replicas' of wqr is 2.0"),
        ({"pick": "eldest"}, "Did you mean 'oldest'"),
    ],
)
def test_bad_parameters(ex_a, parameters, words):
    """A bad parameter is named with what is legal."""
    with pytest.raises(InputError, match=words):
        prepared(WQR(**parameters), ex_a[0])


# Round robin, OLB and MCT map each task when it is submitted.


def arrivals(policy, system, tasks, ready=None) -> list[tuple[int, int]]:
    """Submit all tasks at time 0, one ask each, as a controller does."""
    ready = np.zeros((system.n_hosts, 1)) if ready is None else np.array(ready, dtype=float)
    policy = prepared(policy, system)
    mapped = []
    for task in range(len(tasks)):
        state = state_of(
            system, tasks, mappable=np.array([task]), core_ready_time=ready.copy(), is_on=ready[:, 0] < np.inf
        )
        for _, host in (decided := pairs(policy.schedule(state))):
            ready[host, 0] += system.estimates.run_time(task, host, 0)
        mapped += decided
    return mapped


@pytest.mark.parametrize(
    ("policy", "hosts"),
    [
        (RoundRobin(), [0, 1, 2, 0, 1]),
        (OLB(), [0, 1, 2, 0, 1]),  # ready: 0 0 0 | 10 0 0 | 10 10 0 | 10 10 80 | 25 10 80
        (MCT(), [0, 1, 0, 1, 2]),  # t1 10; t2 10 (h1 15); t3 30 (h2 50); t4 40 (h1 45); t5 10
    ],
)
def test_ex_a(policy, hosts):
    """The hosts of t1 to t5 of EX-A."""
    tasks = ex_a_tasks()
    system = system_of(ex_a_platform(), tasks)
    assert arrivals(policy, system, tasks) == list(enumerate(hosts))


@pytest.mark.parametrize("policy", [RoundRobin(), OLB(), MCT()])
def test_hosts_that_are_off_get_nothing(policy):
    """With h1 off everything goes to h2; with both off nothing is decided."""
    tasks = make_tasks([1, 1])
    system = system_of(platform_of([2, 1], [1, 1]), tasks)
    assert arrivals(policy, system, tasks, [[np.inf], [0.0]]) == [(0, 1), (1, 1)]
    assert arrivals(policy, system, tasks, [[np.inf], [np.inf]]) == []


@pytest.mark.parametrize("policy", [RoundRobin(), OLB(), MCT()])
def test_infeasible_hosts_are_passed_over(policy):
    """A task that h1 cannot run goes to h2, however busy that is."""
    tasks = make_tasks([1])
    estimates = TypedEstimates([[[np.inf], [5.0]]], np.ones((1, 2, 1)), [0], [0, 1])
    system = system_of(platform_of([1, 1], [1, 1]), tasks, estimates)
    assert arrivals(policy, system, tasks, [[0.0], [9.0]]) == [(0, 1)]


def test_ties_go_to_the_lowest_host():
    """Equal completion times: MCT and OLB take the lowest id."""
    tasks = make_tasks([2, 2, 2])
    system = system_of(platform_of([1, 1, 1], [1, 1, 1]), tasks)
    assert arrivals(MCT(), system, tasks) == [(0, 0), (1, 1), (2, 2)]
    assert arrivals(OLB(), system, tasks) == [(0, 0), (1, 1), (2, 2)]


def test_round_robin_starts_anew_in_a_new_run():
    """`prepare` forgets where the last run stopped."""
    tasks = make_tasks([1, 1])
    system = system_of(platform_of([1, 1, 1], [1, 1, 1]), tasks)
    policy = RoundRobin()
    assert arrivals(policy, system, tasks) == arrivals(policy, system, tasks) == [(0, 0), (1, 1)]
