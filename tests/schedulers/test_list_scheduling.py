"""The work queue and other baselines, and sufferage."""

from __future__ import annotations

import numpy as np
import pytest
from batch_oracles import Instance
from clusters import plain_platform
from scheduler_cases import (
    RUNNING,
    data_platform,
    data_tasks,
    ex_a_platform,
    ex_a_tasks,
    pairs,
    platform_of,
    prepared,
    state_of,
    system_of,
)

from gridsched import Scenario, run
from gridsched.errors import InputError
from gridsched.model.data_files import DataFiles
from gridsched.model.platform import Cluster, Platform
from gridsched.model.task_types import TypedEstimates
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import ExecutionEnd
from gridsched.policy.decisions import Assign, Plan
from gridsched.schedulers.bag.baselines import MCT, OLB, WQR, RoundRobin, WorkQueue
from gridsched.schedulers.bag.batch import DynamicFPLTF, MaxMin, MinMin, Sufferage, XSufferage

# The work queue and the other baselines.

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
    """A bad parameter is named with what is allowed."""
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


# Sufferage, XSufferage, Min-Min, Max-Min and Dynamic FPLTF on hand-computed mapping events.


@pytest.fixture
def ex_a_with_state():
    """System, tasks and first state of EX-A."""
    tasks = ex_a_tasks()
    system = system_of(ex_a_platform(), tasks)
    return system, tasks, state_of(system, tasks)


def data_state(**changes):
    """Return system and first state of the example with input files."""
    tasks = data_tasks()
    system = system_of(data_platform(), tasks)
    files = {"file_available": np.array([[0.0, np.inf]]), "uplink_free": np.zeros(2)}
    return system, state_of(system, tasks, **{**files, **changes})


def test_first_sufferages_of_ex_a(ex_a_with_state):
    """The first iteration's sufferages are 10, 5, 20, 15 and 2.5 (algorithms A3)."""
    system, tasks, _ = ex_a_with_state
    etc = system.estimates.etc(range(5), range(3))
    case = Instance(list(range(5)), dict(enumerate(etc.tolist())), [[0.0]] * 3, [0, 1, 2])
    assert [case.evaluate(task, False)[1] for task in range(5)] == [10, 5, 20, 15, 2.5]
    assert len(tasks) == 5


def test_sufferage_order_of_decisions(ex_a_with_state):
    """t3->h1, t1->h2, t4->h1, t5->h3, t2->h2, where the last one ties with h3 (algorithms A3)."""
    system, _, state = ex_a_with_state
    (plan,) = prepared(Sufferage(), system).schedule(state)
    assert isinstance(plan, Plan)
    assert pairs([plan]) == [(2, 0), (0, 1), (3, 0), (4, 2), (1, 1)]


def test_pass_variant_gives_the_same_schedule(ex_a_with_state):
    """In passes h1 gets t3 then t4, h2 gets t1 then t2, h3 gets t5."""
    system, _, state = ex_a_with_state
    decisions = prepared(Sufferage(variant="pass"), system).schedule(state)
    assert sorted(pairs(decisions)) == [(0, 1), (1, 1), (2, 0), (3, 0), (4, 2)]


def test_an_equal_sufferage_evicts_nobody():
    """In a pass the first claimant keeps its host against an equal sufferage."""
    tasks = make_tasks([4, 4])
    system = system_of(platform_of([2, 1], [1, 1]), tasks)
    decisions = prepared(Sufferage(variant="pass"), system).schedule(state_of(system, tasks))
    assert pairs(decisions) == [(0, 0), (1, 0)]  # the loser: 2 + 2 = 4 on h1 ties with h2


@pytest.mark.parametrize("variant", ["greedy", "pass"])
@pytest.mark.parametrize("policy", [Sufferage, XSufferage])
def test_without_rescheduling_tasks_are_assigned(ex_a_with_state, policy, variant):
    """With ``reschedule=False`` the same mapping comes as fixed assignments."""
    system, _, state = ex_a_with_state
    planned = prepared(policy(variant), system).schedule(state)
    fixed = prepared(policy(variant, reschedule=False), system).schedule(state)
    assert all(isinstance(decision, Assign) for decision in fixed)
    assert pairs(fixed) == pairs(planned)


def test_single_host_orders_by_completion_time():
    """With one usable host the sufferage is its completion time: the largest task goes first."""
    tasks = make_tasks([1, 3, 2])
    system = system_of(platform_of([1, 1], [1, 1]), tasks)
    state = state_of(system, tasks, core_ready_time=np.array([[np.inf], [0.0]]))
    assert pairs(prepared(Sufferage(), system).schedule(state)) == [(1, 1), (2, 1), (0, 1)]


def test_several_cores_count_as_one_host():
    """A host's second core is not a second best: the sufferage of t1 and t2 is 4 - 2 = 2 and 6 - 3."""
    tasks = make_tasks([4, 6])
    system = system_of(platform_of([2, 1], [1, 1], cores=[2, 1]), tasks)
    decisions = prepared(Sufferage(), system).schedule(state_of(system, tasks))
    assert pairs(decisions) == [(1, 0), (0, 0)]


@pytest.mark.parametrize("variant", ["greedy", "pass"])
def test_xsufferage_keeps_tasks_near_their_files(variant):
    """Sufferages 0, 0, 100, 100: t3 and t4 go to A, t1 and t2 to B (algorithms A4)."""
    system, state = data_state()
    decisions = prepared(XSufferage(variant), system).schedule(state)
    assert sorted(pairs(decisions)) == [(0, 2), (1, 3), (2, 0), (3, 1)]
    if variant == "greedy":
        assert pairs(decisions) == [(2, 0), (3, 1), (0, 2), (1, 3)]


def test_sufferage_between_hosts_does_not_see_the_cluster():
    """All sufferages are 0 first: t1->a1, then t3->a2 (30), t2->b1, t4->a1 (algorithms A4)."""
    system, state = data_state()
    decisions = prepared(Sufferage(), system).schedule(state)
    assert pairs(decisions) == [(0, 0), (2, 1), (1, 2), (3, 0)]


def test_a_file_on_its_way_is_not_fetched_again():
    """With A off t3 brings f to B until 100 s; t4 finds it on its way and runs from 100 s too."""
    off = np.array([[np.inf], [np.inf], [0.0], [0.0]])
    system, state = data_state(core_ready_time=off, mappable=np.array([2, 3]))
    assert pairs(prepared(Sufferage(), system).schedule(state)) == [(2, 2), (3, 3)]


@pytest.mark.parametrize("variant", ["greedy", "pass"])
@pytest.mark.parametrize("policy", [Sufferage, XSufferage])
def test_transfers_to_one_cluster_are_serial(policy, variant):
    """The second file would reach B at 20 s: its task stays with the slow host that has it."""
    hosts = plain_platform([1, 15, 15]).hosts
    platform = Platform(hosts, (Cluster("A", (0,), 1.0), Cluster("B", (1, 2), 1.0)))
    files = DataFiles(("f", "g"), np.array([10.0, 10.0]), (("A",), ("A",)))
    tasks = make_tasks([15, 15], input_files=[(0,), (1,)], files=files)
    system = system_of(platform, tasks)
    state = state_of(system, tasks, file_available=np.array([[0.0, np.inf]] * 2), uplink_free=np.zeros(2))
    # t1: 15 s in A, 10 + 1 in B; then t2: 15 s in A, 20 + 1 in B
    assert pairs(prepared(policy(variant), system).schedule(state)) == [(0, 1), (1, 0)]


def test_a_clusters_second_host_is_no_second_cluster():
    """Sufferages between A = {h1, h2} and the slower B are 1 and 2: t2 goes first."""
    hosts = plain_platform([2, 2, 1]).hosts
    tasks = make_tasks([2, 4])
    platform = Platform(hosts, (Cluster("A", (0, 1)), Cluster("B", (2,))))
    system = system_of(platform, tasks)
    decisions = prepared(XSufferage(), system).schedule(state_of(system, tasks))
    assert pairs(decisions) == [(1, 0), (0, 1)]


def test_xsufferage_without_clusters_is_sufferage():
    """Where the platform declares no clusters, every host is one of its own."""
    rng = np.random.default_rng(3)
    tasks = make_tasks(rng.uniform(1, 9, 12))
    system = system_of(plain_platform(rng.uniform(1, 4, 5)), tasks)
    state = state_of(system, tasks)
    expected = pairs(prepared(Sufferage(), system).schedule(state))
    assert pairs(prepared(XSufferage(), system).schedule(state)) == expected


def test_xsufferage_prefers_the_lowest_cluster_among_equals():
    """Of equal clusters the lowest id wins, not the cluster with the lowest host id."""
    hosts = plain_platform([1, 1]).hosts
    tasks = make_tasks([1])
    system = system_of(Platform(hosts, (Cluster("x", (1,)), Cluster("y", (0,)))), tasks)
    assert pairs(prepared(XSufferage(), system).schedule(state_of(system, tasks))) == [(0, 1)]


def test_xsufferage_in_one_cluster_takes_the_latest_completion_first():
    """With one cluster the sufferage is its smallest completion time."""
    hosts = plain_platform([2, 1]).hosts
    tasks = make_tasks([1, 8, 4])
    system = system_of(Platform(hosts, (Cluster("x", (0, 1)),)), tasks)
    decisions = prepared(XSufferage(), system).schedule(state_of(system, tasks))
    # t2: 4 on h1; then t3: min(4 + 2, 4) = 4 on h2; then t1: 4.5 on h1
    assert pairs(decisions) == [(1, 0), (2, 1), (0, 0)]


def test_min_min_and_max_min_on_ex_a(ex_a_with_state):
    """The orders of decisions, computed by hand."""
    system, _, state = ex_a_with_state
    # Min-Min: t5 2.5 h1; t2 7.5 h1; t1 17.5 h1; t4 30 h2 (h1 32.5); t3 37.5 h1
    assert pairs(prepared(MinMin(), system).schedule(state)) == [(4, 0), (1, 0), (0, 0), (3, 1), (2, 0)]
    # Max-Min: t3 20 h1; t4 30 h2; t1 30 h1; t2 20 h3; t5 30 h3 (h1 32.5, h2 35)
    assert pairs(prepared(MaxMin(), system).schedule(state)) == [(2, 0), (3, 1), (0, 0), (1, 2), (4, 2)]


def test_dynamic_fpltf_on_ex_a(ex_a_with_state):
    """t3->h1, t4->h2, t1->h1, t2->h3, t5->h3 (algorithms A5)."""
    system, _, state = ex_a_with_state
    assert pairs(prepared(DynamicFPLTF(), system).schedule(state)) == [(2, 0), (3, 1), (0, 0), (1, 2), (4, 2)]


def test_replanning_at_20_s_changes_nothing(ex_a_with_state):
    """At t = 20 h1 and h3 are free and h2 busy until 30: t1->h1, t5->h3 as before."""
    system, tasks, _ = ex_a_with_state
    state = state_of(
        system, tasks, now=20.0, mappable=np.array([0, 4]), core_ready_time=np.array([[20.0], [30.0], [20.0]])
    )
    assert pairs(prepared(DynamicFPLTF(), system).schedule(state)) == [(0, 0), (4, 2)]


@pytest.mark.parametrize(("other_speed", "host"), [(51, 1), (49, 0), (50, 0)])
def test_task_cost_under_background_load(other_speed, host):
    """``TaskCost(1000 flop, 100 flop/s, load 0.5) = 20 s``: as good as an idle 50-flop/s host."""
    tasks = make_tasks([1000])
    system = system_of(plain_platform([100, other_speed]), tasks)
    state = state_of(system, tasks, background_load=np.array([0.5, 0.0]))
    assert pairs(prepared(DynamicFPLTF(), system).schedule(state)) == [(0, host)]


def test_what_runs_is_stretched_by_the_load():
    """10 s left at load 0.5 last 20 s; a load of 1 makes a host unusable."""
    tasks = make_tasks([1000])
    system = system_of(plain_platform([1000, 1000, 1000]), tasks)
    state = state_of(
        system,
        tasks,
        now=5.0,
        background_load=np.array([0.5, 0.0, 1.0]),
        core_ready_time=np.array([[15.0], [25.5], [5.0]]),
    )
    # h1: 5 + 20 + 2 = 27; h2: 25.5 + 1 = 26.5
    assert pairs(prepared(DynamicFPLTF(), system).schedule(state)) == [(0, 1)]


@pytest.mark.parametrize("policy", [Sufferage, XSufferage, MinMin, MaxMin, DynamicFPLTF])
def test_nothing_to_map_means_no_decision(ex_a_with_state, policy):
    """Without waiting tasks, or with all hosts off, nothing is decided."""
    system, tasks, _ = ex_a_with_state
    ready = prepared(policy(), system)
    assert not list(ready.schedule(state_of(system, tasks, mappable=np.array([], dtype=int))))
    off = np.full((3, 1), np.inf)
    assert not list(ready.schedule(state_of(system, tasks, core_ready_time=off)))


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (Sufferage(variant="greed"), "Did you mean 'greedy'"),
        (XSufferage(variant=2), "'variant' of xsufferage is 2"),
        (Sufferage(reschedule="yes"), "'reschedule' of sufferage is 'yes'"),
        (MaxMin(reschedule=None), "'reschedule' of max_min is None"),
    ],
)
def test_bad_parameters_of_sufferage(ex_a_with_state, policy, words):
    """A bad parameter is named with what is allowed."""
    with pytest.raises(InputError, match=words):
        prepared(policy, ex_a_with_state[0])
