"""Graphs of tasks that tests of workflows share: printed examples, and random ones."""

from __future__ import annotations

import numpy as np
import pytest

from gridsched import Host, Platform, PState, make_tasks
from gridsched.model.dependencies import After, Dependencies
from gridsched.model.network import Network
from gridsched.model.staged_files import StagedFiles
from gridsched.model.task_types import TYPED_TASK_FLOPS, TaskTypes, typed_platform
from gridsched.policy.registry import make_scheduler
from gridsched.scenario import LoadedScenario
from gridsched.sim.child import simulate_reference

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


def random_scenario(seed: int, id: str, cores: int = 1, *, n_files: int = 0) -> LoadedScenario:
    """Return a random graph on hosts of random speeds, with random routes between them, and files on the first host."""
    rng = np.random.default_rng(seed)
    n, hosts = 25, 4
    pairs = {(int(on), task): float(rng.integers(0, 300)) for task in range(1, n) for on in rng.integers(0, task, 2)}
    tasks = make_tasks(
        rng.uniform(50, 500, n),
        dependencies=dependencies([(on, task, size) for (on, task), size in pairs.items()]),
        staged=random_files(seed, n, n_files) if n_files else None,
    )
    speeds = rng.uniform(1, 9, hosts)
    platform = Platform(
        tuple(Host(f"h{k}", (PState(float(s), 1.0, 2.0, 2.0),), cores=cores) for k, s in enumerate(speeds))
    )
    routes = Network(rng.uniform(0, 5, (hosts, hosts)), rng.uniform(1, 20, (hosts, hosts)))
    return LoadedScenario(platform, tasks, id, driver="reference", between_hosts=routes)


def random_files(seed: int, n_tasks: int, n_files: int) -> StagedFiles:
    """Return files of random sizes on host h0, each of which three tasks read."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 600, n_files).astype(float)
    task = np.concatenate([rng.choice(n_tasks, 3, replace=False) for _ in range(n_files)])
    file = np.repeat(np.arange(n_files), 3)
    order = np.argsort(task, kind="stable")
    return StagedFiles("h0", task[order], file[order], sizes[file[order]])
