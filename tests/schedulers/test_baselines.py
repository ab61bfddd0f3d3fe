"""Round robin, OLB and MCT map each task when it is submitted."""

from __future__ import annotations

import numpy as np
import pytest
from bag_cases import ex_a_platform, ex_a_tasks, pairs, platform_of, prepared, state_of, system_of

from gridsched.model.estimates import TypedEstimates
from gridsched.model.tasks import make_tasks
from gridsched.schedulers.bag.baselines import MCT, OLB, RoundRobin


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
