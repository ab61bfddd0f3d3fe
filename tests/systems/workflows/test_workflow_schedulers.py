"""Schedules that papers print, by hand; and what holds for all: a plan is what happens where no link is shared."""

from __future__ import annotations

import numpy as np
import pytest

from gridsched import Host, Platform, PState, make_tasks
from gridsched.model.dependencies import After, Dependencies
from gridsched.model.network import Network
from gridsched.model.task_types import TYPED_TASK_FLOPS, TaskTypes, typed_platform
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Assign
from gridsched.policy.registry import make_scheduler
from gridsched.sim.child import simulate_reference
from gridsched.sim.scenario import LoadedScenario
from gridsched.systems.workflows.task_graph import TaskGraph

IDS = ["heft", "cpop", "peft", "ready_mct", "ready_min_min", "ready_max_min", "ready_sufferage"]
#: Topcuoglu, Hariri, Wu, TPDS 2002, figure 2: times of ten tasks on three machines, and (task, task, data).
TOPCUOGLU = (
    [[14, 16, 9], [13, 19, 18], [11, 13, 19], [13, 8, 17], [12, 13, 10],
     [13, 16, 9], [7, 15, 11], [5, 11, 14], [18, 12, 20], [21, 7, 16]],
    [(1, 2, 18), (1, 3, 12), (1, 4, 9), (1, 5, 11), (1, 6, 14), (2, 8, 19), (2, 9, 16), (3, 7, 23), (4, 8, 27),
     (4, 9, 23), (5, 9, 13), (6, 8, 15), (7, 10, 17), (8, 10, 11), (9, 10, 13)],
)  # fmt: skip
#: Arabnejad, Barbosa, TPDS 2014: their example.
ARABNEJAD = (
    [[22, 21, 36], [22, 18, 18], [32, 27, 43], [7, 10, 4], [29, 27, 35],
     [26, 17, 24], [14, 25, 30], [29, 23, 36], [15, 21, 8], [13, 16, 33]],
    [(1, 2, 17), (1, 3, 31), (1, 4, 29), (1, 5, 13), (1, 6, 7), (2, 9, 30), (2, 8, 3), (3, 7, 16), (4, 9, 7),
     (4, 8, 11), (5, 9, 57), (6, 8, 5), (7, 10, 9), (8, 10, 42), (9, 10, 7)],
)  # fmt: skip


class Looks(Scheduler):
    """Keep the graph of all tasks, and run them on the first host."""

    traits = Traits(asked="event")

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


def dependencies(rows) -> Dependencies:
    """Return (other, task, bytes), counted from 0, as dependencies on ends."""
    on, task, size = (np.array(column) for column in zip(*sorted(rows, key=lambda row: row[1]), strict=True))
    return Dependencies(task, on, np.full(len(task), int(After.END)), np.zeros(len(task)), size.astype(float))


def scenario_of(example, scheduler) -> LoadedScenario:
    """Return the run of a printed example, data at 1 byte/s between machines."""
    times, rows = example
    n, hosts = len(times), len(times[0])
    types = TaskTypes(
        np.array(times, float)[:, :, None], np.full((n, hosts, 1), 10.0), np.arange(hosts), idle_w=np.full(hosts, 1.0)
    )
    pairs = dependencies([(a - 1, b - 1, size) for a, b, size in rows])
    tasks = make_tasks([TYPED_TASK_FLOPS] * n, task_type=np.arange(n), dependencies=pairs)
    network = Network(np.zeros((hosts, hosts)), np.ones((hosts, hosts)))
    platform = typed_platform(types)
    return LoadedScenario(
        platform, tasks, scheduler, types=types, estimates=types.estimates(tasks), between_hosts=network
    )


def played(example, id: str):
    """Return {task: (machine, start, end)} as printed."""
    scenario = scenario_of(example, id)
    trace = simulate_reference(scenario, make_scheduler(id))
    return {
        e["task"] + 1: (e["host"] + 1, pytest.approx(e["start"]), pytest.approx(e["end"])) for e in trace.executions
    }


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


def random_scenario(seed: int, id: str, cores: int = 1) -> LoadedScenario:
    """Return a random graph on hosts of random speeds, with random ways between them."""
    rng = np.random.default_rng(seed)
    n, hosts = 25, 4
    pairs = {(int(on), task): float(rng.integers(0, 300)) for task in range(1, n) for on in rng.integers(0, task, 2)}
    tasks = make_tasks(
        rng.uniform(50, 500, n), dependencies=dependencies([(on, task, size) for (on, task), size in pairs.items()])
    )
    speeds = rng.uniform(1, 9, hosts)
    platform = Platform(
        tuple(Host(f"h{k}", (PState(float(s), 1.0, 2.0, 2.0),), cores=cores) for k, s in enumerate(speeds))
    )
    ways = Network(rng.uniform(0, 5, (hosts, hosts)), rng.uniform(1, 20, (hosts, hosts)))
    return LoadedScenario(platform, tasks, id, driver="reference", between_hosts=ways)


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("id", IDS)
def test_a_run_keeps_to_its_data_and_cores(id, cores):
    """No task starts before its data are there, no host runs more than its cores; the makespan is no less than both."""
    for seed in range(5):
        scenario = random_scenario(seed, id, cores)
        done = simulate_reference(scenario, make_scheduler(id)).executions
        at = {e["task"]: (e["host"], e["start"], e["end"]) for e in done}
        assert len(at) == len(scenario.tasks)
        pairs, ways = scenario.tasks.dependencies, scenario.between_hosts
        for task, on, size in zip(pairs.task, pairs.on, pairs.size_bytes, strict=True):
            (host, start, _), (source, _, end) = at[task], at[on]
            late = ways.latency_s[source, host] + size / ways.bandwidth[source, host] if source != host and size else 0
            assert start >= end + late - 1e-9
        for host, start, _ in at.values():
            assert sum(h == host and s <= start < e - 1e-9 for h, s, e in at.values()) <= cores


@pytest.mark.parametrize("id", ["heft", "peft", "cpop"])
def test_a_plan_is_what_happens(id):
    """Where no two transfers share a link a static list ends when it planned to, on hosts of one core."""
    for seed in range(10):
        scenario = random_scenario(seed, id)
        scheduler = make_scheduler(id)
        done = simulate_reference(scenario, scheduler).executions
        planned = scheduler.table_
        for e in done:
            assert (e["host"], e["end"]) == (planned.host[e["task"]], pytest.approx(planned.end_s[e["task"]]))


def test_tasks_of_the_ready_rules_by_hand():
    """Three free tasks of 4, 2 and 3 flop on hosts of 1 and 0.5 flop/s, and one of 1 flop that waits for nothing big.

    Min-Min: 2 first on h0 (0-2), then 3 (2-5 on h0 before 0-6 on h1), then 4 (0-8 on h1, before 5-9 on h0).
    Max-Min: 4 on h0 (0-4), then 3 (0-6 on h1), then 2 (4-6 on h0).
    MCT: 4 on h0 (0-4), 2 on h1 (0-4), 3 on h0 (4-7).
    Sufferage: 4 loses 8 - 4 on h0, most; then 2 loses 6 - 4, 3 loses 7 - 6: 2 on h1 (0-4), then 3 on h0 (4-7).
    """
    expected = {
        "ready_min_min": {0: (1, 0, 8), 1: (0, 0, 2), 2: (0, 2, 5)},
        "ready_max_min": {0: (0, 0, 4), 1: (0, 4, 6), 2: (1, 0, 6)},
        "ready_mct": {0: (0, 0, 4), 1: (1, 0, 4), 2: (0, 4, 7)},
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
