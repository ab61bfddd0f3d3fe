"""Metrics of workflows: by hand on a printed schedule, and slack by playing a run again with one task later."""

from __future__ import annotations

import numpy as np
import pytest
from test_workflow_schedulers import TOPCUOGLU, random_scenario, scenario_of

from gridsched import Host, Platform, PState, RunFacts, make_tasks, run
from gridsched.energy import trace_energy
from gridsched.metrics import METRICS
from gridsched.metrics.table import metrics_of
from gridsched.model.dependencies import After, Dependencies
from gridsched.optimize.typed_bounds import typed_bounds
from gridsched.policy.registry import make_scheduler
from gridsched.scenario import LoadedScenario
from gridsched.sim.child import simulate_reference
from gridsched.systems.workflows.workflow_metrics import slack_s, wait_from_ready_s


def facts_of(scenario, id):
    """Return what the metrics of a run are computed from."""
    trace = run(scenario.changed(scheduler=id, driver="reference")).trace
    return RunFacts(trace, trace_energy(trace))


@pytest.fixture(scope="module")
def printed():
    """HEFT's run of Topcuoglu's example, 80 long."""
    return facts_of(scenario_of(TOPCUOGLU, "heft"), "heft")


def test_ratios_of_the_printed_schedule(printed):
    """Tasks 1, 2, 9 and 10 take 9 + 13 + 12 + 7 = 41 at least; machine 1 takes 127 for all, the others 130 and 143."""
    row = metrics_of(printed)
    assert row["schedule_length_ratio"] == pytest.approx(80 / 41)
    assert row["speedup"] == pytest.approx(127 / 80)
    assert row["efficiency"] == pytest.approx(127 / 80 / 3)


def test_data_and_readiness_of_the_printed_schedule(printed):
    """Edges between two machines: 1-2, 1-4, 1-6, 2-9, 4-8, 5-9, 6-8, 7-10, 8-10; and starts behind the last parent."""
    assert metrics_of(printed)["moved_bytes"] == 18 + 9 + 14 + 16 + 27 + 13 + 15 + 17 + 11
    assert wait_from_ready_s(printed.trace).tolist() == pytest.approx([0, 18, 0, 9, 19, 17, 10, 15, 16, 5])
    assert metrics_of(printed)["mean_wait_from_ready_s"] == pytest.approx(10.9)


def test_slack_of_the_printed_schedule(printed):
    """From the last: 10 at 80; 9 before it on its machine, 5; 8 sends 11 until 73; 7 sends 17; and so on."""
    assert slack_s(printed.trace).tolist() == pytest.approx([0, 5, 7, 0, 7, 0, 7, 0, 5, 0])
    assert metrics_of(printed)["mean_slack_s"] == pytest.approx(3.1)


def test_slack_before_a_task_that_starts_at_once():
    """1 (2 s) may start when 0 (3 s) has, 2 (6 s) follows 1, and 3 takes 12: 0 may start 4 s later, as 1 and 2 may."""
    pairs = Dependencies(
        np.array([1, 2]), np.array([0, 1]), np.array([int(After.START), int(After.END)]), np.zeros(2), np.zeros(2)
    )
    hosts = tuple(Host(f"h{k}", (PState(1.0, 1.0, 2.0, 2.0),)) for k in range(3))
    tasks = make_tasks([3.0, 2.0, 6.0, 12.0], dependencies=pairs)
    trace = simulate_reference(LoadedScenario(Platform(hosts), tasks, "mct"), make_scheduler("mct"))
    assert trace.executions["start"][np.argsort(trace.executions["task"])].tolist() == [0, 0, 2, 0]
    assert slack_s(trace).tolist() == [4, 4, 4, 0]


def test_the_bound_of_the_printed_example():
    """The longest path takes 41; the least times of all, 88, on three machines, no more: HEFT's 80 is above."""
    scenario = scenario_of(TOPCUOGLU, "heft")
    assert typed_bounds(scenario.types, scenario.tasks).makespan_s == pytest.approx(41)


def played_again(scenario, trace, late_task, late_s):
    """Return the last end if a task takes longer, with hosts, orders, other lengths and transfers of a run."""
    runs, pairs, routes = trace.executions, scenario.tasks.dependencies, scenario.between_hosts
    host = {int(e["task"]): int(e["host"]) for e in runs}
    end, free = {}, {}
    for e in runs:
        task = int(e["task"])
        begin = free.get(host[task], 0.0)
        for on, size in zip(pairs.on[pairs.task == task], pairs.size_bytes[pairs.task == task], strict=True):
            source = host[int(on)]
            apart = source != host[task] and size
            sent = routes.latency_s[source, host[task]] + size / routes.bandwidth[source, host[task]] if apart else 0.0
            begin = max(begin, end[int(on)] + sent)
        end[task] = free[host[task]] = begin + (e["end"] - e["start"]) + (late_s if task == late_task else 0.0)
    return max(end.values())


@pytest.mark.parametrize("id", ["heft", "cpop"])  # data leave when they are made, as all is placed at first
@pytest.mark.parametrize("seed", range(4))
def test_slack_is_how_much_later_a_task_may_end(seed, id):
    """With its slack a task moves no last end; with 1 s more it moves it by 1 s."""
    scenario = random_scenario(seed, id)
    trace = simulate_reference(scenario, make_scheduler(id))
    slack, last = slack_s(trace), played_again(scenario, trace, -1, 0.0)
    assert last == pytest.approx(trace.horizon_s)
    for task in range(len(scenario.tasks)):
        assert played_again(scenario, trace, task, slack[task]) == pytest.approx(last)
        assert played_again(scenario, trace, task, slack[task] + 1.0) == pytest.approx(last + 1.0)


def test_tasks_without_edges_have_no_such_metric():
    """The condition is that tasks wait for each other."""
    scenario = random_scenario(0, "heft")
    bag = scenario.tasks.__class__(**{**vars(scenario.tasks), "dependencies": None})
    alone = scenario.__class__(scenario.platform, bag, "mct", driver="reference")
    trace = simulate_reference(alone, make_scheduler("mct"))
    names = {each.id for each in METRICS.values() if each.condition.words.startswith("tasks of one host that wait")}
    assert len(names) == 6
    assert not names & set(metrics_of(RunFacts(trace, trace_energy(trace))))
