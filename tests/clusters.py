"""Clusters of nodes, plain hosts, and policies with prepared answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from gridsched.model.parallel_estimates import ParallelEstimates, node_platform
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.task_types import TYPED_TASK_FLOPS
from gridsched.model.tasks import Tasks, make_tasks
from gridsched.model.trace import Trace
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Allocate, Decision, Plan
from gridsched.policy.state import State
from gridsched.runs.run import run
from gridsched.scenario import Scenario
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences

# Two clusters of nodes on which parallel tasks of two types run, small enough to count by hand.

INF = np.inf
#: Cores of a node in A (3 nodes, a1 to a3) and B (4 nodes, b1 to b4).
CORES = (4, 2)
SIZES = (3, 4)
#: Of the types on A and B in two P-states [W]; the second runs on B only.
NODE_POWER_W = np.array([[[40.0, 16.0], [30.0, 10.0]], [[INF, INF], [50.0, 20.0]]])
#: For one node's work [s]; half as fast in the second P-state.
TYPICAL_S = np.array([[[10.0, 20.0], [20.0, 40.0]], [[INF, INF], [12.0, 24.0]]])
PARALLEL = Traits(trigger="event", parallel=True)
OF_BUDGETS = Traits(trigger="event", parallel=True, respects_budget=True, may_drop=True)


def nodes_needed(cores: np.ndarray) -> np.ndarray:
    """Nodes that tasks of so many cores take on each cluster, shape (tasks, clusters)."""
    return -(-np.asarray(cores)[:, None] // np.array(CORES))


def estimates_of(platform: Platform, tasks: Tasks) -> ParallelEstimates:
    """Times of `TYPICAL_S`, whatever the width; too wide or of the second type on A: inf."""
    nodes = nodes_needed(tasks.width)
    fits = nodes <= np.array(SIZES)
    time_s = np.where(fits[:, :, None], TYPICAL_S[tasks.task_type], INF)
    return ParallelEstimates(
        platform,
        time_s,
        nodes,
        NODE_POWER_W,
        tasks.task_type,
        typical_time_s=TYPICAL_S,
        typical_nodes=np.array([[1, 2], [1, 2]]),
        cores_per_node=CORES,
    )


def two_clusters(idle_w: float = 5.0) -> Platform:
    """A with hosts 0 to 2 and B with hosts 3 to 6."""
    return node_platform(TYPICAL_S, NODE_POWER_W, SIZES, idle_w=idle_w, cluster_names=("A", "B"), name="A and B")


def jobs(*rows: tuple[float, int, int]) -> Tasks:
    """Return tasks of (submission [s], task type, cores)."""
    submit, task_type, cores = zip(*rows, strict=True) if rows else ((), (), ())
    return make_tasks([TYPED_TASK_FLOPS] * len(rows), submit, task_type=task_type, width=cores)


class Answering(Scheduler):
    """Decides as a test specifies; also in the simulating process, which gets it by value."""

    def __init__(self, answer: Callable[[State], Iterable[Decision]], traits: Traits = PARALLEL) -> None:
        self.answer = answer
        self.traits = traits

    def schedule(self, state: State) -> Iterable[Decision]:
        return self.answer(state)


def scenario(
    tasks: Tasks,
    answer: Callable[[State], Iterable[Decision]],
    *,
    traits: Traits = PARALLEL,
    idle_w: float = 5.0,
    **changes,
) -> Scenario:
    """Return a scenario on A and B, on the reference driver by default."""
    platform = two_clusters(idle_w)
    changes.setdefault("driver", "reference")
    return Scenario(platform, tasks, Answering(answer, traits), estimates=estimates_of(platform, tasks), **changes)


def on_both(tasks: Tasks, answer: Callable[[State], Iterable[Decision]], **changes) -> Trace:
    """Run on both drivers; assert that they agree, joules of the plugin too; return the trace."""
    expected = run(scenario(tasks, answer, **changes))
    result = run(scenario(tasks, answer, driver="simgrid", timeout_s=60.0, **changes))
    assert trace_differences(expected.trace, result.trace) == []
    assert metered_differences(result) == []
    assert len(result.plugin_j) == 7
    assert (expected.trace.periods == result.trace.periods).all()
    assert (expected.trace.times_postponed == result.trace.times_postponed).all()
    return expected.trace


def plan_of(*entries: tuple[int, float, list[int]], pstates: list[int] | None = None) -> Plan:
    """Return place-holders of (task, start [s], nodes)."""
    tasks, times, sets = zip(*entries, strict=True) if entries else ((), (), ())
    return Plan(
        np.array(tasks, dtype=np.int64),
        np.array([h for s in sets for h in s], dtype=np.int64),
        None if pstates is None else np.array(pstates, dtype=np.int64),
        np.cumsum([0, *map(len, sets)]),
        np.array(times, dtype=np.float64),
    )


def steps(answers: dict[float, list[Decision]]) -> Callable[[State], list[Decision]]:
    """Answer with the decisions given for a time; with none at other times."""
    return lambda state: answers.get(state.now, [])


def first_fit(state: State) -> list[Decision]:
    """Start each waiting task on the lowest free nodes of the first cluster that has enough.

    Tasks of even ids take the first P-state, the others the second.
    """
    free, decisions = state.nodes.free.copy(), []
    for task in state.mappable.tolist():
        for first, size in ((0, 3), (3, 4)):
            there = first + np.flatnonzero(free[first : first + size])
            width = state.estimates.width(task, first)
            if state.estimates.run_time(task, first, 0) < INF and len(there) >= width:
                decisions.append(Allocate(task, there[:width], task % 2))
                free[there[:width]] = False
                break
    return decisions


# Platforms of hosts that differ in nothing but their speeds.


def plain_platform(speeds: Iterable[float]) -> Platform:
    """Return one-core hosts ``h1``, ``h2``, ... with these speeds [flop/s] and no power figures."""
    return Platform(tuple(Host(f"h{k}", (PState(float(s)),)) for k, s in enumerate(speeds, start=1)))
