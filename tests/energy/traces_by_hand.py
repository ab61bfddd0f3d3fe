"""Traces written down by hand: the example EX-A under several schedulers, and awkward ones."""

from __future__ import annotations

import heapq

import numpy as np

from gridsched.model.data_files import DataFiles
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.model.tasks import Tasks, make_tasks
from gridsched.model.trace import EXECUTION, HOST_CHANGE, TaskState, Trace

FINISHED, CANCELLED, KILLED = 0, 1, 2


def example_platform(idle_w: float = 4.0, **changes: object) -> Platform:
    """Hosts of EX-A: speeds 100, 50, 25 flop/s, efficiencies 2, 2.5, 5 flop/J, idle 4 W."""
    pairs = ((100.0, 2.0), (50.0, 2.5), (25.0, 5.0))
    hosts = tuple(Host(f"h{k}", (PState(s, idle_w, s / eps, s / eps),)) for k, (s, eps) in enumerate(pairs, start=1))
    return Platform(hosts, name="EX-A", **changes)


def example_tasks() -> Tasks:
    """Tasks of EX-A: 1000, 500, 2000, 1500 and 250 flop, all there at time 0."""
    return make_tasks([1000, 500, 2000, 1500, 250], name="EX-A")


def make_trace(
    platform: Platform,
    tasks: Tasks,
    executions: list[tuple],
    switches: list[tuple] = (),
    horizon_s: float | None = None,
    final_state: list[int] | None = None,
) -> Trace:
    """Build a trace from (task, host, pstate, start, end, outcome) and later host changes."""
    runs = np.array(sorted(executions, key=lambda row: row[3]), dtype=EXECUTION)
    first = [(0.0, h, 0, True) for h in range(len(platform))]
    changes = np.array(first + sorted(switches, key=lambda row: row[0]), dtype=HOST_CHANGE)
    if final_state is None:
        final_state = [int(TaskState.FINISHED)] * len(tasks)
    if horizon_s is None:
        horizon_s = float(runs["end"].max()) if len(runs) else 0.0
    return Trace(platform, tasks, runs, changes, np.array(final_state, dtype=np.int64), horizon_s, 4)


def work_queue() -> Trace:
    """Algorithm A1 on EX-A."""
    return make_trace(
        example_platform(),
        example_tasks(),
        [
            (0, 0, 0, 0.0, 10.0, FINISHED),
            (1, 1, 0, 0.0, 10.0, FINISHED),
            (2, 2, 0, 0.0, 80.0, FINISHED),
            (3, 0, 0, 10.0, 25.0, FINISHED),
            (4, 1, 0, 10.0, 15.0, FINISHED),
        ],
    )


def replication(copies: int) -> Trace:
    """Algorithm A2 on EX-A with 2 or 3 copies of a task at most."""
    begin = [
        (0, 0, 0, 0.0, 10.0, FINISHED),
        (1, 1, 0, 0.0, 10.0, FINISHED),
        (3, 0, 0, 10.0, 25.0, FINISHED),
        (4, 1, 0, 10.0, 15.0, FINISHED),
    ]
    if copies == 2:
        rest = [(2, 2, 0, 0.0, 55.0, CANCELLED), (2, 1, 0, 15.0, 55.0, FINISHED)]
    else:
        rest = [(2, 2, 0, 0.0, 45.0, CANCELLED), (2, 1, 0, 15.0, 45.0, CANCELLED), (2, 0, 0, 25.0, 45.0, FINISHED)]
    return make_trace(example_platform(), example_tasks(), begin + rest)


def beaten_replica() -> Trace:
    """Algorithm A2 where the original wins, the usual case: h2 copies task 0, and is too slow."""
    return make_trace(
        example_platform(),
        make_tasks([1000, 250], name="EX-A"),
        [
            (0, 0, 0, 0.0, 10.0, FINISHED),
            (1, 1, 0, 0.0, 5.0, FINISHED),
            (0, 2, 0, 0.0, 10.0, CANCELLED),
            (0, 1, 0, 5.0, 10.0, CANCELLED),
        ],
    )


def lecsa(*, switch_off: bool) -> Trace:
    """Algorithm A6 on EX-A; hosts are switched off when their own list is done."""
    return make_trace(
        example_platform(),
        example_tasks(),
        [
            (2, 2, 0, 0.0, 80.0, FINISHED),
            (1, 2, 0, 80.0, 100.0, FINISHED),
            (3, 1, 0, 0.0, 30.0, FINISHED),
            (4, 1, 0, 30.0, 35.0, FINISHED),
            (0, 0, 0, 0.0, 10.0, FINISHED),
        ],
        [(10.0, 0, 0, False), (35.0, 1, 0, False), (100.0, 2, 0, False)] * switch_off,
    )


def everything_at_once() -> Trace:
    """Two cores, two P-states, off, boot, kill, drop, rejection, master, bystander, files."""
    node = Host(
        "node", (PState(10.0, 20.0, 30.0, 50.0), PState(5.0, 10.0, 15.0, 25.0)), cores=2, off_w=1.0, boot_time_s=10.0
    )
    bare = Host("bare", (PState(20.0),), has_energy=False)
    platform = Platform(
        (node, bare),
        clusters=(Cluster("c1", (0,), 1e6, 1e-3), Cluster("c2", (1,))),
        master=Host("boss", (PState(1.0, 7.0, 8.0, 9.0),)),
        bystanders=(Host("spare", (PState(1.0, 3.0, 3.0, 3.0),)),),
        name="awkward",
        warnings=("host 'bare' has no wattage_per_state",),
    )
    files = DataFiles(("a", "b"), np.array([10.0, 2.5]), (("c1",), ("c1", "bare")))
    tasks = make_tasks(
        [100.0, 200.0, 50.0, 400.0, 30.0, 60.0],
        [0, 0, 5, 5, 60, 60.5],
        labels=[7, 3, 5, 9, 11, 2],
        input_bytes=[0, 8, 0, 0, 0, 0.1],
        task_type=[0, 1, 0, 1, 0, 0],
        files=files,
        input_files=[(), (0,), (), (0, 1), (), ()],
        nominal_heterogeneity=0.5,
        name="six",
    )
    state = TaskState
    return make_trace(
        platform,
        tasks,
        [
            (0, 0, 0, 0.0, 10.0, FINISHED),
            (1, 0, 0, 0.0, 20.0, FINISHED),
            (2, 0, 1, 50.0, 60.0, FINISHED),
            (3, 1, 0, 60.0, 70.0, KILLED),
        ],
        [(25.0, 0, 0, False), (35.0, 0, 0, True), (47.0, 0, 1, True)],
        70.0,
        [state.FINISHED, state.FINISHED, state.FINISHED, state.KILLED, state.DROPPED, state.REJECTED],
    )


def empty() -> Trace:
    """No tasks on the hosts of EX-A."""
    return make_trace(example_platform(), make_tasks([]), [])


def list_schedule(n_hosts: int, n_tasks: int, cores: int = 1, seed: int = 0, cancel_every: int = 0) -> Trace:
    """A work queue of random tasks on random hosts; every `cancel_every`-th is cancelled."""
    rng = np.random.default_rng(seed)
    speeds = rng.uniform(50.0, 100.0, n_hosts)
    watts = np.sort(rng.uniform(3.0, 300.0, (n_hosts, 3)), axis=1)
    platform = Platform(
        tuple(
            Host(f"node-{h}", (PState(float(speeds[h]), *map(float, watts[h])),), cores, off_w=0.5)
            for h in range(n_hosts)
        )
    )
    flops = rng.uniform(100.0, 1000.0, n_tasks)
    free = [(0.0, h, c) for h in range(n_hosts) for c in range(cores)]
    runs, state = [], []
    for task in range(n_tasks):
        start, host, core = heapq.heappop(free)
        end = start + float(flops[task] / speeds[host])
        lost = bool(cancel_every) and task % cancel_every == 0
        runs.append((task, host, 0, start, end, KILLED if lost else FINISHED))
        state.append(int(TaskState.KILLED if lost else TaskState.FINISHED))
        heapq.heappush(free, (end, host, core))
    return make_trace(platform, make_tasks(flops), runs, final_state=state)
