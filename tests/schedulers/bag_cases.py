"""Example EX-A, the environments of paper 004, and a plain data object in the place of a state."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from gridsched.model.estimates import Estimates, FlopsEstimates
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.model.system import System
from gridsched.model.tasks import DataFiles, Tasks, make_tasks
from gridsched.policy.base import Scheduler
from gridsched.policy.decisions import Assign, Plan

#: Table 2 of paper 004: simulated speed [flop/s] and efficiency [flop/J].
TABLE_2 = {
    6000: 0.070,
    7000: 0.045,
    8000: 0.098,
    9000: 0.094,
    10000: 0.066,
    11000: 0.018,
    12000: 0.049,
    13000: 0.081,
    14000: 0.029,
}
#: Fields of a state's `running`.
RUNNING = [("task", int), ("host", int), ("pstate", int), ("start", float), ("estimated_end", float)]


def platform_of(speeds, efficiencies, idle_w: float = 4.0, cores=None) -> Platform:
    """Return hosts h1, h2, ... with busy power cores * speed / efficiency."""
    cores = cores or [1] * len(speeds)
    return Platform(
        tuple(
            Host(f"h{k}", (PState(float(s), idle_w, c * s / e, c * s / e),), cores=c)
            for k, (s, e, c) in enumerate(zip(speeds, efficiencies, cores, strict=True), start=1)
        )
    )


def ex_a_platform() -> Platform:
    """Hosts of EX-A: 100, 50, 25 flop/s with 2, 2.5, 5 flop/J."""
    return platform_of([100, 50, 25], [2.0, 2.5, 5.0])


def ex_a_tasks() -> Tasks:
    """Tasks of EX-A, 5250 flop together."""
    return make_tasks([1000, 500, 2000, 1500, 250])


def environment(number: int) -> Platform:
    """Environment 1 or 2 of paper 004 with ``grid="levels"``, ids in a fixed mixed order."""
    levels = [s for s in TABLE_2 if number == 2 or 9000 <= s <= 11000]
    speeds = np.random.default_rng(number).permutation(np.repeat(levels, 90 // len(levels)))
    return platform_of(speeds.tolist(), [TABLE_2[s] for s in speeds.tolist()])


def data_platform() -> Platform:
    """Clusters A = {a1, a2} and B = {b1, b2} of algorithms A4, 10 B/s each."""
    hosts = tuple(Host(name, (PState(100.0),)) for name in ("a1", "a2", "b1", "b2"))
    return Platform(hosts, (Cluster("A", (0, 1), 10.0), Cluster("B", (2, 3), 10.0)))


def data_tasks() -> Tasks:
    """Four tasks of 3000 flop; the last two need a file of 1000 B that only A has."""
    file = DataFiles(("f",), np.array([1000.0]), (("A",),))
    return make_tasks([3000] * 4, input_files=[(), (), (0,), (0,)], files=file)


def system_of(platform: Platform, tasks: Tasks, estimates: Estimates | None = None) -> System:
    """Return the system of a scenario without further rules."""
    return System(platform, estimates or FlopsEstimates(platform, tasks), files=tasks.files)


def state_of(system: System, tasks: Tasks, **changes) -> SimpleNamespace:
    """Return what a policy sees: by default all hosts idle, all tasks waiting, time 0."""
    cores = system.platform.cores
    n = len(cores)
    ready = np.full((n, int(cores.max())), np.inf)
    for h in range(n):
        ready[h, : cores[h]] = 0.0
    values = {
        "now": 0.0,
        "tasks": tasks,
        "estimates": system.estimates,
        "tasks_to_arrive": 0,
        "mappable": np.arange(len(tasks)),
        "core_ready_time": ready,
        "is_on": np.ones(n, dtype=bool),
        "free_cores": cores.copy(),
        "queue_length": np.zeros(n, dtype=np.int64),
        "background_load": np.zeros(n),
        "running": np.zeros(0, dtype=RUNNING),
        "idle": [h for h in range(n) for _ in range(int(cores[h]))],
        **changes,
    }
    state = SimpleNamespace(**values)
    state.ready_time = state.core_ready_time[:, 0].copy()
    state.waiting = lambda: iter(state.mappable.tolist())
    state.next_waiting = lambda count: state.mappable[:count].tolist()
    state.copies_of = lambda task: [
        (int(copy["host"]), float(copy["start"])) for copy in state.running if copy["task"] == task
    ]
    state.idle_cores = lambda: list(state.idle)
    for value in vars(state).values():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    return state


def prepared(scheduler: Scheduler, system: System, seed: int = 0) -> Scheduler:
    """Return the scheduler, prepared."""
    scheduler.prepare(system, np.random.default_rng(seed))
    return scheduler


def pairs(decisions) -> list[tuple[int, int]]:
    """Return (task, host) of every `Assign` and of every entry of a `Plan`, in order."""
    found = []
    for decision in decisions:
        if isinstance(decision, Plan):
            found += list(zip(decision.tasks.tolist(), decision.hosts.tolist(), strict=True))
        elif isinstance(decision, Assign):
            found.append((decision.task, decision.host))
    return found
