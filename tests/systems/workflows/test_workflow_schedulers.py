"""Schedules that papers print, by hand; and what holds for all: a plan is what happens where no link is shared."""

from __future__ import annotations

import numpy as np
import pytest
from workflow_examples import ARABNEJAD, TOPCUOGLU, dependencies, played, random_scenario, scenario_of

from gridsched import Host, Platform, PState, make_tasks
from gridsched.model.network import Network
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Assign
from gridsched.policy.registry import make_scheduler
from gridsched.scenario import LoadedScenario
from gridsched.sim.child import simulate_reference
from gridsched.systems.workflows.task_graph import TaskGraph

STATIC = ["heft", "cpop", "peft", "lookahead_heft", "dls", "hbmct", "ecs", "heft_slack", "ees"]
IDS = [
    *STATIC, "ready_mct", "ready_met", "ready_olb", "ready_min_min", "ready_max_min", "ready_sufferage",
]  # fmt: skip


class Looks(Scheduler):
    """Keep the graph of all tasks, and run them on the first host."""

    traits = Traits(trigger="event")

    def __init__(self, seen: list | None = None) -> None:
        self.seen = seen

    def prepare(self, system, rng) -> None:
        """Keep the system."""
        self.system_ = system

    def schedule(self, state):
        """Look once; then another one schedules."""
        tasks = np.union1d(state.mappable, state.blocked)
        if len(tasks):
            self.seen.append(TaskGraph(state, self.system_, tasks))
        return [Assign(task, 0) for task in tasks.tolist()]


def graph_of(example) -> TaskGraph:
    """Return the graph of a printed example."""
    seen: list[TaskGraph] = []
    scheduler = Looks(seen)
    simulate_reference(scenario_of(example, scheduler), scheduler)
    return seen[0]


def test_the_schedule_of_heft():
    """Topcuoglu's figure 3: each task's machine, start and end; 80 in all."""
    assert played(TOPCUOGLU, "heft") == {
        1: (3, 0, 9), 2: (1, 27, 40), 3: (3, 9, 28), 4: (2, 18, 26), 5: (3, 28, 38),
        6: (2, 26, 42), 7: (3, 38, 49), 8: (1, 57, 62), 9: (2, 56, 68), 10: (2, 73, 80),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("example", "id", "makespan"), [(TOPCUOGLU, "cpop", 86), (ARABNEJAD, "heft", 133), (ARABNEJAD, "peft", 122)]
)
def test_printed_makespans(example, id, makespan):
    """CPOP's of Topcuoglu's example, HEFT's and PEFT's of Arabnejad's."""
    assert max(end for _, _, end in ((m, s, e.expected) for m, s, e in played(example, id).values())) == makespan


def test_printed_ranks():
    """Upward ranks of both examples, and the mean optimistic costs of the second, in the order of the tasks.

    The costs of tasks 3 and 9 are by hand: (27 + 41 + 43) / 3 and (13 + 16 + 20) / 3.
    """
    topcuoglu, arabnejad = graph_of(TOPCUOGLU), graph_of(ARABNEJAD)
    assert [*topcuoglu.upward_ranks().values()][::-1] == pytest.approx(
        [108, 77, 80, 80, 69, 63.333, 42.667, 35.667, 44.333, 14.667], abs=5e-4
    )
    assert [*arabnejad.upward_ranks().values()][::-1] == pytest.approx(
        [169, 114.3, 102.7, 110, 129.7, 119.3, 52.7, 92, 42.3, 20.7], abs=0.05
    )
    assert arabnejad.optimistic_costs().mean(axis=1) == pytest.approx(
        [72.7, 41, 37, 43.7, 31, 41.7, 17, 20.7, 49 / 3, 0], abs=0.05
    )


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("id", IDS)
def test_a_run_keeps_to_its_data_and_cores(id, cores):
    """No task starts before its data are there, no host runs more than its cores; the makespan is no less than both."""
    for seed in range(5):
        scenario = random_scenario(seed, id, cores)
        done = simulate_reference(scenario, make_scheduler(id)).executions
        at = {e["task"]: (e["host"], e["start"], e["end"]) for e in done}
        assert len(at) == len(scenario.tasks)
        pairs, routes = scenario.tasks.dependencies, scenario.between_hosts
        for task, on, size in zip(pairs.task, pairs.on, pairs.size_bytes, strict=True):
            (host, start, _), (source, _, end) = at[task], at[on]
            late = (
                routes.latency_s[source, host] + size / routes.bandwidth[source, host] if source != host and size else 0
            )
            assert start >= end + late - 1e-9
        for host, start, _ in at.values():
            assert sum(h == host and s <= start < e - 1e-9 for h, s, e in at.values()) <= cores


@pytest.mark.parametrize("n_files", [0, 8])
@pytest.mark.parametrize("id", STATIC)
def test_a_plan_is_what_happens(id, n_files):
    """Where no two transfers share a link a static list ends when it planned to, on hosts of one core.

    Files that no task makes are sent when their readers are queued.
    """
    for seed in range(10):
        scenario = random_scenario(seed, id, n_files=n_files)
        scheduler = make_scheduler(id)
        done = simulate_reference(scenario, scheduler).executions
        planned = scheduler.table_
        for e in done:
            assert e["host"] == planned.host[e["task"]]
            if id == "ecs":  # what it has moved may end earlier, and so what waits for it
                assert e["end"] <= planned.end_s[e["task"]] + 1e-9
            else:
                assert e["end"] == pytest.approx(planned.end_s[e["task"]])


def test_tasks_of_the_ready_rules_by_hand():
    """Three free tasks of 4, 2 and 3 flop on hosts of 1 and 0.5 flop/s, and one of 1 flop that waits for nothing big.

    Min-Min: 2 first on h0 (0-2), then 3 (2-5 on h0 before 0-6 on h1), then 4 (0-8 on h1, before 5-9 on h0).
    Max-Min: 4 on h0 (0-4), then 3 (0-6 on h1), then 2 (4-6 on h0).
    MCT and OLB: 4 on h0 (0-4), 2 on h1 (0-4), 3 on h0 (4-7). MET: all on h0.
    Sufferage: 4 loses 8 - 4 on h0, most; then 2 loses 6 - 4, 3 loses 7 - 6: 2 on h1 (0-4), then 3 on h0 (4-7).
    """
    expected = {
        "ready_min_min": {0: (1, 0, 8), 1: (0, 0, 2), 2: (0, 2, 5)},
        "ready_max_min": {0: (0, 0, 4), 1: (0, 4, 6), 2: (1, 0, 6)},
        "ready_mct": {0: (0, 0, 4), 1: (1, 0, 4), 2: (0, 4, 7)},
        "ready_met": {0: (0, 0, 4), 1: (0, 4, 6), 2: (0, 6, 9)},
        "ready_olb": {0: (0, 0, 4), 1: (1, 0, 4), 2: (0, 4, 7)},
        "ready_sufferage": {0: (0, 0, 4), 1: (1, 0, 4), 2: (0, 4, 7)},
    }
    platform = Platform(tuple(Host(f"h{k}", (PState(s, 1.0, 2.0, 2.0),)) for k, s in enumerate((1.0, 0.5))))
    for id, spans in expected.items():
        scenario = LoadedScenario(platform, make_tasks([4.0, 2.0, 3.0]), id, driver="reference")
        done = simulate_reference(scenario, make_scheduler(id)).executions
        assert {e["task"]: (e["host"], e["start"], e["end"]) for e in done} == spans, id


def test_workflows_that_come_later_fill_what_is_left():
    """Two tasks at 0 s on one host, one at 3 s: HEFT places it behind them, and it ends at 10 + 5 s."""
    platform = Platform((Host("h", (PState(1.0, 1.0, 2.0, 2.0),)),))
    tasks = make_tasks([4.0, 6.0, 5.0], [0.0, 0.0, 3.0], dependencies=dependencies([(0, 1, 7.0)]))
    network = Network(np.zeros((1, 1)), np.ones((1, 1)))
    scenario = LoadedScenario(platform, tasks, "heft", driver="reference", between_hosts=network)
    assert simulate_reference(scenario, make_scheduler("heft")).executions["end"].tolist() == [4.0, 10.0, 15.0]
