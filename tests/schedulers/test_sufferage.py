"""Sufferage, XSufferage, Min-Min, Max-Min and Dynamic FPLTF on hand-computed mapping events."""

from __future__ import annotations

import numpy as np
import pytest
from batch_oracles import Instance
from clusters import plain_platform
from scheduler_cases import (
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

from gridsched.errors import InputError
from gridsched.model.platform import Cluster, Platform
from gridsched.model.tasks import DataFiles, make_tasks
from gridsched.policy.decisions import Assign, Plan
from gridsched.schedulers.bag.batch import DynamicFPLTF, MaxMin, MinMin, Sufferage, XSufferage


@pytest.fixture
def ex_a():
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


def test_first_sufferages_of_ex_a(ex_a):
    """The first iteration's sufferages are 10, 5, 20, 15 and 2.5 (algorithms A3)."""
    system, tasks, _ = ex_a
    etc = system.estimates.etc(range(5), range(3))
    case = Instance(list(range(5)), dict(enumerate(etc.tolist())), [[0.0]] * 3, [0, 1, 2])
    assert [case.evaluate(task, False)[1] for task in range(5)] == [10, 5, 20, 15, 2.5]
    assert len(tasks) == 5


def test_sufferage_order_of_decisions(ex_a):
    """t3->h1, t1->h2, t4->h1, t5->h3, t2->h2, where the last one ties with h3 (algorithms A3)."""
    system, _, state = ex_a
    (plan,) = prepared(Sufferage(), system).schedule(state)
    assert isinstance(plan, Plan)
    assert pairs([plan]) == [(2, 0), (0, 1), (3, 0), (4, 2), (1, 1)]


def test_pass_variant_gives_the_same_schedule(ex_a):
    """In passes h1 gets t3 then t4, h2 gets t1 then t2, h3 gets t5."""
    system, _, state = ex_a
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
def test_without_rescheduling_tasks_are_assigned(ex_a, policy, variant):
    """With ``reschedule=False`` the same mapping comes as fixed assignments."""
    system, _, state = ex_a
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
    """A host's second core is no second best: the sufferage of t1 and t2 is 4 - 2 = 2 and 6 - 3."""
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


def test_min_min_and_max_min_on_ex_a(ex_a):
    """The orders of decisions, computed by hand."""
    system, _, state = ex_a
    # Min-Min: t5 2.5 h1; t2 7.5 h1; t1 17.5 h1; t4 30 h2 (h1 32.5); t3 37.5 h1
    assert pairs(prepared(MinMin(), system).schedule(state)) == [(4, 0), (1, 0), (0, 0), (3, 1), (2, 0)]
    # Max-Min: t3 20 h1; t4 30 h2; t1 30 h1; t2 20 h3; t5 30 h3 (h1 32.5, h2 35)
    assert pairs(prepared(MaxMin(), system).schedule(state)) == [(2, 0), (3, 1), (0, 0), (1, 2), (4, 2)]


def test_dynamic_fpltf_on_ex_a(ex_a):
    """t3->h1, t4->h2, t1->h1, t2->h3, t5->h3 (algorithms A5)."""
    system, _, state = ex_a
    assert pairs(prepared(DynamicFPLTF(), system).schedule(state)) == [(2, 0), (3, 1), (0, 0), (1, 2), (4, 2)]


def test_replanning_at_20_s_changes_nothing(ex_a):
    """At t = 20 h1 and h3 are free and h2 busy until 30: t1->h1, t5->h3 as before."""
    system, tasks, _ = ex_a
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
def test_nothing_to_map_means_no_decision(ex_a, policy):
    """Without waiting tasks, or with all hosts off, nothing is decided."""
    system, tasks, _ = ex_a
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
def test_bad_parameters(ex_a, policy, words):
    """A bad parameter is named with what is legal."""
    with pytest.raises(InputError, match=words):
        prepared(policy, ex_a[0])
