"""Platforms, tasks and states that tests of schedulers share: of bags, of utility, of rigid jobs."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import rigid_oracles as oracles

from gridsched import Scenario, run
from gridsched.model.data_files import DataFiles
from gridsched.model.estimates import Estimates, FlopsEstimates
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.model.rules import EnergyBudget
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.signals import EVEN, Signal
from gridsched.model.system import System
from gridsched.model.task_types import TYPED_TASK_FLOPS, TaskTypes, typed_platform
from gridsched.model.tasks import Tasks, make_tasks
from gridsched.model.utility import UtilityFunctions
from gridsched.policy.base import Scheduler
from gridsched.policy.decisions import Assign, Plan
from gridsched.testing.decision_checks import illegal_places
from gridsched.workloads.traces.trace_options import TraceOptions
from gridsched.workloads.traces.trace_system import trace_system

# Example EX-A, the environments of paper 004, and a plain data object in the place of a state.

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
        "blocked": np.zeros(0, dtype=np.int64),
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
    state.idle_since = np.where(state.is_on & (state.free_cores == cores), 0.0, np.inf)
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


# What a joule counts in the random events that kernels and plain loops decide.


def random_weights(draw: random.Random) -> dict[str, Any]:
    """Return weights that change around 30 s, or in half of the events none.

    Half of them fall, so that what is too much at first may be possible later.
    """
    if draw.random() < 0.5:
        return {}
    begins = [0.0, *sorted(draw.sample(range(28, 45), draw.randint(1, 3)))]
    of_each = draw.sample((0.25, 0.5, 1.0, 2.0, 3.0), len(begins))
    if draw.random() < 0.5:
        of_each.sort(reverse=True)
    weights = [(float(begin), weight) for begin, weight in zip(begins, of_each, strict=True)]
    return {"weights": weights, "cycle": draw.choice((45.0, 50.0, 1e3))}


def weights_of(event: Any) -> Signal:
    """Return what the package has in place of an event's `weights` and `cycle`."""
    if not event.weights:
        return EVEN
    begins, weights = zip(*event.weights, strict=True)
    return Signal(begins, weights, event.cycle, 1.0)


# The worked example of algorithms B6, and small typed workloads with utility functions.

MINUTE = 60.0
#: Task types A, B, C on machine types M1, M2 in P-states 0 and 1 [min], and their powers [W].
ETC_MIN = [[[10, 14], [20, 28]], [[5, 7], [10, 14]], [[10, 14], [10, 14]]]
APC_W = [[[200, 130], [100, 65]]] * 3
#: (priority, urgency) of A, B and C.
WORTH = ((8, 0.01), (4, 0.1), (1, 0.01))


def b6_types() -> TaskTypes:
    """Return the types of the worked example."""
    etc = np.array(ETC_MIN, dtype=float) * MINUTE
    return TaskTypes(etc, np.array(APC_W, dtype=float), np.array([0, 1]))


def exponential_tasks(submit_s, task_type, worth) -> Tasks:
    """Return tasks with purely exponential utility functions, in minutes."""
    priority, urgency = np.array(worth, dtype=float).T
    return make_tasks(
        [TYPED_TASK_FLOPS] * len(task_type),
        submit_s,
        task_type=task_type,
        utility=UtilityFunctions.exponential(priority, urgency),
    )


def b6_scenario(scheduler: str, driver: str = "reference", **changes) -> Scenario:
    """Return the worked example: three tasks at time 0, a mapping event every minute."""
    types = b6_types()
    values = {
        "mapping_interval_s": MINUTE,
        "pending_slots": 1,
        "types": types,
        "driver": driver,
        "parameters": {"energy_leniency": float("inf")},
        **changes,
    }
    tasks = exponential_tasks(0.0, [0, 1, 2], WORTH)
    return Scenario(typed_platform(types), tasks, scheduler, **values)


def day(energy_j: float, period_min: float, **changes) -> EnergyBudget:
    """Return a budget for periods of some minutes."""
    return EnergyBudget(energy_j, period_s=period_min * MINUTE, **changes)


# Runs of rigid jobs on one cluster, their oracles, and logs of the Parallel Workloads Archive.

#: Logs of the Parallel Workloads Archive.
LOGS = Path(__file__).resolve().parents[3] / "shared" / "data" / "swf"
ORACLES = {"fcfs": oracles.fcfs, "easy_backfilling": oracles.easy, "conservative_backfilling": oracles.conservative}


def machine(n_nodes: int) -> Platform:
    """Return one cluster of equal nodes."""
    hosts = tuple(Host(f"n{k}", (PState(1e9, 50.0, 60.0, 200.0),)) for k in range(n_nodes))
    return Platform(hosts, (Cluster("cluster", tuple(range(n_nodes))),))


def scenario(jobs, n_nodes, scheduler, **options) -> Scenario:
    """Return a run of jobs as algorithms I gives them."""
    platform = machine(n_nodes)
    submit, length, width, estimate = map(np.array, zip(*jobs, strict=True))
    tasks = make_tasks(estimate * 1e9, submit, width=width, requested_time_s=estimate)
    options = {"driver": "reference"} | options
    return Scenario(platform, tasks, scheduler, run_times=LoggedRunTimes(platform, length), **options)


def starts(jobs, n_nodes, scheduler) -> list[float]:
    """Return the start of each job on the reference driver."""
    trace = run(scenario(jobs, n_nodes, scheduler)).trace
    assert illegal_places(trace) == []
    return trace.start_time_s.tolist()


def log_of(name: str) -> Path:
    """Return where a log of the archive lies; without it the test is skipped."""
    if not (path := LOGS / name).exists():
        pytest.skip(f"{path} is not there: logs of others are not part of this repository")
    return path


@cache
def jobs_of(name: str, procs_per_node: int = 1) -> tuple[list[tuple], int]:
    """Return the jobs of a log, from 0 s on, and the size of its machine."""
    found = trace_system(log_of(name), TraceOptions(procs_per_node=procs_per_node))
    jobs = found.jobs
    columns = jobs.submit_time_s, jobs.run_time_s, jobs.width, jobs.estimate_s
    rows = list(zip(*(each.tolist() for each in columns), strict=True))
    return rows, len(found.system.platform)
