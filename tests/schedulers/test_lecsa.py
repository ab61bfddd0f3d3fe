"""LECSA's selection, dealing and switching off (paper 004, algorithms A6 and A7)."""

from __future__ import annotations

import numpy as np
import pytest
from bag_cases import TABLE_2, environment, ex_a_platform, ex_a_tasks, pairs, platform_of, prepared, state_of, system_of
from plain_hosts import plain_platform

from gridsched import Scenario, run
from gridsched.errors import InputError
from gridsched.model.estimates import TypedEstimates
from gridsched.model.tasks import make_tasks
from gridsched.policy.decisions import PowerOff
from gridsched.schedulers.bag.lecsa import LECSA, select_hosts, share_for


def switched_off(decisions) -> list[int]:
    """Return the hosts that are switched off."""
    return [decision.host for decision in decisions if isinstance(decision, PowerOff)]


@pytest.mark.parametrize(
    ("heterogeneity", "share"),
    [
        (0, 0.2),
        (1e-9, 0.2),
        (1e-8, 0.4),
        (0.25, 0.4),
        (0.26, 0.6),
        (0.5, 0.6),
        (0.51, 0.8),
        (0.75, 0.8),
        (0.76, 1.0),
        (1.0, 1.0),
    ],
)
def test_share_steps(heterogeneity, share):
    """The ceiling step function of A6.3."""
    assert share_for(heterogeneity) == share


def test_share_rules_on_ten_hosts():
    """With eps = 10, 9, ..., 1 and p = 0.30 value takes {10, 9, 8, 7}, count and levels three."""
    eps = np.arange(10.0, 0.0, -1.0)
    assert eps[select_hosts(eps, 0.30, "value")].tolist() == [10, 9, 8, 7]
    assert eps[select_hosts(eps, 0.30, "count")].tolist() == [10, 9, 8]
    assert eps[select_hosts(eps, 0.30, "levels")].tolist() == [10, 9, 8]
    assert eps[select_hosts(eps, 0.30, "range")].tolist() == [10, 9, 8]  # at least 7.3


@pytest.mark.parametrize(("nominal", "n_hosts"), [(0.0, 3), (0.1, 4)])
def test_value_rule_with_enough_tasks(nominal, n_hosts):
    """eps .098, .094, .081, .070: threshold .0784 keeps three hosts, .0588 all four (A6)."""
    platform = platform_of([1.0] * 4, [0.098, 0.094, 0.081, 0.070])
    tasks = make_tasks([10.0] * 8, nominal_heterogeneity=nominal)
    system = system_of(platform, tasks)
    decisions = prepared(LECSA(), system).schedule(state_of(system, tasks))
    assert len({host for _, host in pairs(decisions)}) == n_hosts


def test_few_tasks_use_the_top_thirty_percent():
    """Four tasks on ten hosts: value deals to {10, 9, 8, 7}, count gives {10} two tasks."""
    tasks = make_tasks([4, 3, 2, 1])
    system = system_of(platform_of([1] * 10, range(1, 11)), tasks)
    state = state_of(system, tasks)
    decisions = prepared(LECSA(), system).schedule(state)
    assert pairs(decisions) == [(0, 9), (1, 8), (2, 7), (3, 6)]
    counted = prepared(LECSA(share_rule="count"), system).schedule(state)
    assert pairs(counted) == [(0, 9), (1, 8), (2, 7), (3, 9)]


def test_equal_tasks_and_hosts_take_the_heterogeneity_branch():
    """n = N: with H = 0 the share is 0.20, not 0.30."""
    tasks = make_tasks([5.0] * 10)
    system = system_of(platform_of([1] * 10, range(1, 11)), tasks)
    decisions = prepared(LECSA(), system).schedule(state_of(system, tasks))
    assert {host for _, host in pairs(decisions)} == {7, 8, 9}  # at least 0.8 * 10


def test_rules_agree_that_equal_efficiencies_are_all_selected():
    """Value, levels and range select all equal hosts; count the lowest ids; one host is enough."""
    eps = np.full(5, 3.0)
    for rule in ("value", "levels", "range"):
        assert select_hosts(eps, 0.2, rule).tolist() == [0, 1, 2, 3, 4]
    assert select_hosts(eps, 0.2, "count").tolist() == [0]
    assert select_hosts(eps, 0.6, "count").tolist() == [0, 1, 2]
    for rule in ("value", "levels", "range", "count"):
        assert select_hosts(np.array([2.0]), 0.2, rule).tolist() == [0]


def test_share_of_a_count_is_not_rounded_up_by_binary_fractions():
    """0.07 of 100 hosts are 7, although 0.07 * 100 > 7 in binary."""
    assert 0.07 * 100 > 7
    assert len(select_hosts(np.ones(100), 0.07, "count")) == 7


@pytest.mark.parametrize(
    ("number", "n_tasks", "heterogeneity", "levels"),
    [
        (1, 29, 0.0, {9, 10}),
        (1, 29, 1.0, {9, 10}),
        (1, 720, 0.0, {9}),
        (1, 720, 0.25, {9, 10}),
        (1, 720, 0.5, {9, 10}),
        (1, 720, 0.75, {9, 10}),
        (1, 720, 1.0, {9, 10, 11}),
        (2, 29, 0.5, {8, 9, 13, 6}),
        (2, 144, 0.0, {8, 9, 13}),
        (2, 144, 0.25, {8, 9, 13, 6, 10}),
        (2, 144, 0.5, {8, 9, 13, 6, 10, 7, 12}),
        (2, 144, 0.75, {8, 9, 13, 6, 10, 7, 12, 14}),
        (2, 144, 1.0, set(range(6, 15))),
    ],
)
def test_hosts_selected_in_the_environments_of_the_paper(number, n_tasks, heterogeneity, levels):
    """The selections of A7, in thousands of flop/s; the others are switched off at once."""
    rng = np.random.default_rng(7)
    sizes = rng.uniform(1 - heterogeneity / 2, 1 + heterogeneity / 2, n_tasks)
    tasks = make_tasks(1e6 * sizes, nominal_heterogeneity=heterogeneity)
    system = system_of(environment(number), tasks)
    decisions = list(prepared(LECSA(), system).schedule(state_of(system, tasks)))
    selected = {h for h in range(90) if system.speed[h] / 1000 in levels}
    assert len(selected) == len(levels) * (30 if number == 1 else 10)
    used = {host for _, host in pairs(decisions)}
    assert used <= selected
    assert len(used) == min(len(selected), n_tasks)
    assert sorted(switched_off(decisions)) == sorted(set(range(90)) - used)
    best = max(levels, key=lambda level: TABLE_2[1000 * level])
    assert system.speed[pairs(decisions)[0][1]] == 1000 * best


def test_dealing_on_ex_a():
    """t3, t4, t1, t2, t5 to h3, h2, h1, h3, h2; or the last two to h3 (A6.5)."""
    tasks = ex_a_tasks()
    system = system_of(ex_a_platform(), tasks)
    state = state_of(system, tasks)
    dealt = pairs(prepared(LECSA(), system).schedule(state))
    assert dealt == [(2, 2), (3, 1), (0, 0), (1, 2), (4, 1)]
    first = pairs(prepared(LECSA(leftover="first"), system).schedule(state))
    assert first == [(2, 2), (3, 1), (0, 0), (1, 2), (4, 2)]


def test_switching_off_over_time():
    """Unused hosts at once, the others when their list is done; never before all has arrived."""
    tasks = make_tasks([2, 1])
    system = system_of(platform_of([1, 1, 1], [10, 9.9, 1]), tasks)
    nothing = np.array([], dtype=int)
    start = state_of(system, tasks)
    done = state_of(
        system,
        tasks,
        mappable=nothing,
        is_on=np.array([True, True, False]),
        free_cores=np.array([1, 0, 1]),
        queue_length=np.zeros(3, dtype=int),
    )
    for switch_off, expected in (("unused+done", ([2], [0])), ("unused", ([2], [])), ("none", ([], []))):
        policy = prepared(LECSA(switch_off=switch_off), system)
        assert tuple(switched_off(policy.schedule(state)) for state in (start, done)) == expected
    waiting_for_more = state_of(system, tasks, tasks_to_arrive=1)
    assert switched_off(prepared(LECSA(), system).schedule(waiting_for_more)) == []


def test_a_later_bag_changes_no_choice():
    """Ten equal tasks on three hosts go to the best one (p = 20 %), whatever comes at 10,000 s."""
    platform = platform_of([1.0, 1.0, 1.0], [0.09, 0.07, 0.04])
    for later in ([], [3.0], [500.0, 1.0]):
        tasks = make_tasks([10.0] * 10 + later, [0.0] * 10 + [1e4] * len(later))
        trace = run(Scenario(platform, tasks, LECSA(), driver="reference")).trace
        assert trace.executions["host"][trace.executions["task"] < 10].tolist() == [0] * 10
        assert trace.finish_time_s[9] == 100.0


def test_a_host_with_a_queue_or_a_busy_core_stays_on():
    """Only a host where nothing runs and nothing is queued is switched off."""
    tasks = make_tasks([1])
    system = system_of(platform_of([1, 1, 1], [1, 1, 1], cores=[2, 1, 2]), tasks)
    state = state_of(
        system,
        tasks,
        mappable=np.array([], dtype=int),
        free_cores=np.array([1, 1, 2]),
        queue_length=np.array([0, 1, 0]),
    )
    assert switched_off(prepared(LECSA(), system).schedule(state)) == [2]


def test_infeasible_hosts_are_passed_over():
    """A task goes to the next selected host that can run it, else to the best one that can."""
    tasks = make_tasks([2, 1])
    etc = [[[np.inf], [1], [1]], [[np.inf], [np.inf], [1]]]
    estimates = TypedEstimates(etc, np.ones((2, 3, 1)), [0, 1], [0, 1, 2])
    system = system_of(platform_of([1, 1, 1], [10, 9, 1]), tasks, estimates)
    decisions = prepared(LECSA(), system).schedule(state_of(system, tasks))
    assert pairs(decisions) == [(0, 1), (1, 2)]


def test_hosts_without_power_figures_are_refused():
    """The message names the host and what is missing."""
    tasks = make_tasks([1])
    system = system_of(plain_platform([1, 2]), tasks)
    with pytest.raises(InputError, match=r"'h1'.*wattage_per_state"):
        prepared(LECSA(), system)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"share_rule": "values"}, "Did you mean 'value'"),
        ({"leftover": "last"}, "'leftover' of lecsa is 'last'"),
        ({"switch_off": "all"}, "'switch_off' of lecsa is 'all'"),
        ({"few_tasks_share": 0.0}, r"'few_tasks_share' of lecsa is 0.0; it must be in \(0, 1\]"),
        ({"few_tasks_share": float("nan")}, "'few_tasks_share' of lecsa is nan"),
        ({"few_tasks_share": "0.3"}, "'few_tasks_share' of lecsa is '0.3'"),
    ],
)
def test_bad_parameters(parameters, words):
    """A bad parameter is named with what is legal."""
    system = system_of(ex_a_platform(), ex_a_tasks())
    with pytest.raises(InputError, match=words):
        prepared(LECSA(**parameters), system)
