"""Parallel tasks on several clusters: reference driver, SimGrid, model and plugin agree."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from clusters import estimates_of, first_fit, jobs, on_both, plan_of, scenario, steps, two_clusters

from gridsched import run
from gridsched.energy import trace_energy
from gridsched.errors import InvalidDecision
from gridsched.model.rules import EnergyBudget
from gridsched.model.run_times import DrawnRunTimes
from gridsched.model.trace import TaskState
from gridsched.policy.decisions import Allocate
from gridsched.sim.library import HOW_TO_INSTALL, is_installed
from gridsched.testing.contract import illegal_places

needs_simgrid = pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)


@needs_simgrid
def test_two_clusters_by_hand():
    """Type 0 on A and on B, type 1 on B; 5 W idle: nodes, ends and joules of every node."""
    trace = on_both(
        jobs((0, 0, 9), (0, 0, 3), (0, 1, 4), (1, 0, 13)),
        steps({0: [Allocate(0, np.array([2, 0, 1])), Allocate(1, np.array([3, 4]), 1), Allocate(2, np.array([6, 5]))]}),
    )
    # 13 cores are 4 nodes of A and 7 of B: more than either has
    assert trace.final_state.tolist() == [TaskState.FINISHED] * 3 + [TaskState.REJECTED]
    assert trace.host_ids.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert trace.executions["end"].tolist() == [10.0, 40.0, 12.0]
    assert trace.executions["pstate"].tolist() == [0, 1, 2]
    joules = trace_energy(trace).total_j
    assert joules[:3].tolist() == [10 * 40 + 30 * 5] * 3
    assert joules[3:].tolist() == [400, 400, 12 * 50 + 28 * 5, 12 * 50 + 28 * 5]


@needs_simgrid
def test_many_tasks_on_two_clusters():
    """Sixty tasks of both types and P-states, mapped at events and at mapping intervals."""
    rng = np.random.default_rng(5)
    tasks = jobs(
        *zip(
            np.cumsum(rng.exponential(4.0, 60)).round(2).tolist(),
            rng.integers(0, 2, 60).tolist(),
            rng.integers(1, 9, 60).tolist(),
            strict=True,
        )
    )
    assert (on_both(tasks, first_fit).final_state == TaskState.FINISHED).all()
    on_both(tasks, first_fit, mapping_interval_s=7.0)


def earliest(state):
    """Give each waiting task the earliest start in any cluster, node by node.

    Every third task gets a reservation, the others place-holders.
    """
    taken = [[(-1.0, t)] for t in state.nodes.free_at.tolist()]
    view = state.nodes.reserved
    for k, (begin, end) in enumerate(pairwise(view.offsets.tolist())):
        for h in view.hosts[begin:end].tolist():
            taken[h].append((view.start.item(k), view.end.item(k)))
    plan, decisions = [], []
    for task in state.mappable.tolist():
        options = []
        for nodes in (range(3), range(3, 7)):
            width, time = (
                f(task, nodes[0], *k) for f, k in ((state.estimates.width, ()), (state.estimates.run_time, (task % 2,)))
            )
            for s in sorted({e for h in nodes for _, e in taken[h]}) if time < np.inf else ():
                free = [h for h in nodes if all(e <= s or b >= s + time for b, e in taken[h])]
                if len(free) >= width:
                    options.append((s, time, free[:width]))
                    break
        start, time, hosts = min(options)
        for h in hosts:
            taken[h].append((start, start + time))
        if task % 3:
            plan.append((task, start, hosts))
        else:
            decisions.append(Allocate(task, np.array(hosts), task % 2, start))
    pstates = [task % 2 for task, _, _ in plan]
    return [*decisions, plan_of(*plan, pstates=pstates)]


@needs_simgrid
@pytest.mark.parametrize(
    ("interval", "budget"), [(None, None), (7.0, EnergyBudget(9000.0, period_s=150.0, first_period_start_s=20.0))]
)
def test_reservations_and_place_holders(interval, budget):
    """Sixty tasks on profiles of the nodes: nothing overlaps, and no reservation moves.

    With a budget tasks are put off, alike on both drivers.
    """
    rng = np.random.default_rng(6)
    tasks = jobs(
        *zip(
            np.cumsum(rng.exponential(4.0, 60)).round(2).tolist(),
            rng.integers(0, 2, 60).tolist(),
            rng.integers(1, 9, 60).tolist(),
            strict=True,
        )
    )
    reserved = {}

    def answer(state):
        decisions = earliest(state)
        reserved.update({d.task: d.start for d in decisions if isinstance(d, Allocate)})
        return decisions

    rules = {"mapping_interval_s": interval, "budget": budget}
    run(scenario(tasks, answer, **rules))
    trace = on_both(tasks, earliest, **rules)
    assert (trace.final_state == TaskState.FINISHED).all()
    assert illegal_places(trace, estimates_of(two_clusters(), tasks)) == []
    assert len(reserved) == 20
    if budget is None:
        assert {task: trace.start_time_s[task] for task in reserved} == reserved
    else:
        assert trace.times_postponed.sum() > 10
    waited = trace.start_time_s - tasks.submit_time_s
    assert (waited > (interval or 0.0)).sum() > 10


@needs_simgrid
def test_a_late_predecessor_voids_the_run_on_both_drivers():
    """The first task takes 12 s where 10 were estimated, and its node is reserved from 10 s on."""
    tasks = jobs((0, 0, 4), (0, 0, 9))
    truth = DrawnRunTimes(estimates_of(two_clusters(), tasks), [0.5, 0.5], lambda share, estimate: 1.2 * estimate)
    answer = steps({0: [Allocate(0, np.array([1])), Allocate(1, np.array([0, 1, 2]), start=10.0)]})
    for driver in ("reference", "simgrid"):
        with pytest.raises(InvalidDecision, match="t = 10 s, task 2, host 'A-2'"):
            run(scenario(tasks, answer, driver=driver, run_times=truth))
