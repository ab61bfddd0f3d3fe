"""The tiny systems on which the checks play policies of parallel jobs, and jobs that wait for others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gridsched.model.dependencies import After, Dependencies
from gridsched.model.parallel_estimates import ParallelEstimates, node_platform
from gridsched.model.platform import Cluster, Host, Partition, Platform, PState
from gridsched.model.rules import EnergyBudget
from gridsched.model.task_types import TYPED_TASK_FLOPS
from gridsched.model.tasks import Tasks, make_tasks
from gridsched.model.utility import UtilityFunctions
from gridsched.testing.playing import Case

#: Speed of a node in P-state 0 [flop/s].
_SPEED = 2e9


#: Who waits for whom, for what, and how long from then on [s]: a chain (0 to 2), a diamond (3 to 6), a fan-out.
_WAITS = (
    (1, 0, After.SUCCESS, 0.0),
    (2, 1, After.START, 3.0),
    (4, 3, After.SUCCESS, 0.0),
    (5, 3, After.END, 4.0),
    (6, 4, After.SUCCESS, 0.0),
    (6, 5, After.END, 0.0),
    (8, 7, After.START, 0.0),
    (9, 7, After.SUCCESS, 2.5),
)


def dependent(case: Case, name: str) -> Case:
    """Return a case called `name` in which the first tasks wait for each other, as a chain, a diamond and a fan-out.

    Parameters
    ----------
    case : Case
        Of at least ten tasks.
    name : str
    """
    task, on, kind, delay_s = map(np.array, zip(*_WAITS, strict=True))
    tasks = replace(case.tasks, dependencies=Dependencies(task, on, kind, delay_s), name=name)
    return replace(case, name=name, tasks=tasks)


def cluster_of(n_nodes: int, *, draws_idle: bool = True) -> Platform:
    """Return one cluster of equal nodes of two P-states.

    Parameters
    ----------
    n_nodes : int
    draws_idle : bool
        Whether nodes draw power while they run nothing.
    """
    idle = (5.0, 4.0) if draws_idle else (0.0, 0.0)
    pstates = PState(_SPEED, idle[0], 9.0, 40.0), PState(_SPEED / 2, idle[1], 6.0, 13.0)
    hosts = tuple(Host(f"node{k}", pstates, boot_time_s=3.0) for k in range(n_nodes))
    whole = (Cluster("cluster", tuple(range(n_nodes))),) if n_nodes else ()
    return Platform(hosts, whole, name=f"{n_nodes} nodes")


def _users(n: int) -> dict[str, list[str]]:
    return {"user": [("ann", "bob")[k % 2] for k in range(n)]}


def make_parallel_case(
    name: str,
    n_nodes: int,
    jobs: Sequence[tuple[float, float, int, float]],
    *,
    pstate: int = 0,
    hosts_off: tuple[int, ...] = (),
    draws_idle: bool = True,
    **rules: object,
) -> Case:
    """Return a case of rigid parallel jobs.

    Parameters
    ----------
    name : str
    n_nodes : int
    jobs : sequence of tuple
        (submission [s], run time [s], nodes, estimate [s]), as in algorithms I.
    pstate : int
        The scenario's P-state.
    hosts_off : tuple of int
        Nodes that are off at the start.
    draws_idle : bool
        Whether nodes draw power while they run nothing.
    **rules
        Further fields of the scenario.
    """
    submit, run, width, estimate = zip(*jobs, strict=True) if jobs else ((), (), (), ())
    tasks = make_tasks(
        [time * _SPEED for time in estimate],
        submit,
        width=width,
        requested_time_s=estimate,
        attributes=_users(len(jobs)),
        name=name,
    )
    return Case(
        name,
        cluster_of(n_nodes, draws_idle=draws_idle),
        tasks,
        pstate=pstate,
        hosts_off=hosts_off,
        logged=run,
        rules=rules,
    )


def _shared_case(name: str, width: int | Sequence[int]) -> Case:
    """Return ten jobs of so many parts, of one to four cores each, on two nodes of four cores in one partition."""
    pstates = PState(_SPEED, 5.0, 9.0, 40.0), PState(_SPEED / 2, 4.0, 6.0, 13.0)
    hosts = tuple(Host(f"node{k}", pstates, cores=4, boot_time_s=3.0) for k in range(2))
    platform = Platform(hosts, (Cluster("cluster", (0, 1)),), name="2 nodes", partitions=(Partition("all", (0, 1)),))
    times = np.array([6.0, 11.0, 3.0, 9.0, 5.0, 8.0, 2.0, 7.0, 4.0, 10.0])
    tasks = make_tasks(
        times * _SPEED,
        [0.0] * 7 + [5.0] * 3,
        width=width,
        demand=np.array([3, 1, 2, 4, 1, 2, 1, 3, 2, 1])[:, None],
        anywhere=True,
        attributes=_users(len(times)),
    )
    return Case(name, platform, tasks)


#: Section I's example: J1 to J4.
EXAMPLE = ((0, 10, 3, 10), (1, 5, 4, 5), (2, 20, 1, 20), (3, 7, 1, 7))
_MIXED = (
    (0, 10, 3, 12),
    (0, 4, 2, 9),
    (1, 5, 4, 5),
    (2, 20, 1, 33),
    (3, 7, 1, 7),
    (3, 2, 5, 6),
    (4, 1, 1, 1),
    (15, 6, 2, 8),
    (40, 3, 5, 4),
)

#: No two times are equal, nor any sums of them.
WITHOUT_TIES = make_parallel_case(
    "no parallel ties",
    6,
    [(0.37 * k, 7.13 + 3.71 * (k * 5 % 7), 1 + k * 3 % 5, 9.91 + 4.19 * (k * 5 % 7)) for k in range(12)],
)

#: What every policy of parallel jobs must cope with.
PARALLEL_CASES = (
    make_parallel_case("no jobs", 3, ()),
    make_parallel_case("one job, one node", 1, ((0, 7, 1, 9),)),
    make_parallel_case("more jobs than fit", 4, tuple((0, *job[1:]) for job in EXAMPLE)),
    make_parallel_case("jobs that arrive later", 4, EXAMPLE),
    make_parallel_case("jobs that end before their estimates", 5, _MIXED),
    make_parallel_case("equal jobs", 4, ((0, 10, 2, 10),) * 6),
    make_parallel_case(
        "jobs under a budget",
        5,
        _MIXED,
        draws_idle=False,
        budget=EnergyBudget(4000.0, period_s=60.0, first_period_start_s=3.0),
    ),
    make_parallel_case("the slow P-state", 5, _MIXED, pstate=1),
    make_parallel_case("a job that is too wide for the machine", 3, _MIXED),
    make_parallel_case("nodes that are off", 7, _MIXED, hosts_off=(0, 3)),
    make_parallel_case("asked every five seconds", 5, _MIXED, mapping_interval_s=5.0),
)


#: The same, of which some wait for others.
DEPENDENT_PARALLEL_CASES = (
    dependent(make_parallel_case("", 5, (*_MIXED, (40, 9, 1, 12))), "jobs that wait for others"),
)
_SECONDS = np.array([9.0, 4.0, 7.0, 5.0, 8.0, 3.0, 6.0, 2.0, 10.0, 1.0])
#: What those that let jobs share nodes must cope with besides: parts that may lie together, and tasks of one core.
SHARED_CASES = (
    dependent(_shared_case("", [1, 1, 3, 1, 2, 4, 6, 1, 2, 5]), "jobs that share nodes"),
    dependent(
        Case("", cluster_of(3), make_tasks(_SPEED * _SECONDS, [0.0] * 7 + [5.0] * 3, attributes=_users(10))),
        "serial tasks on nodes",
    ),
)
#: What policies that name one host for each task must cope with.
ONE_HOST_CASES = (
    dependent(make_parallel_case("", 3, [(0.0, each, 1, each) for each in _SECONDS.tolist()]), "jobs of one node"),
    dependent(_shared_case("", 1), "jobs of one part that share nodes"),
)


#: Cores of a node, and nodes, of the clusters A and B.
_CORES, _SIZES = (4, 2), (3, 4)
_INF = np.inf
#: Of a node by (task type, cluster, P-state) [W]; the third type runs on B only.
_NODE_POWER_W = np.array([[[40.3, 16.1], [31.7, 10.9]], [[52.9, 21.3], [27.1, 12.7]], [[_INF, _INF], [47.3, 19.9]]])
#: Run times on one node [s].
_ONE_NODE_S = np.array([[[10.13, 17.9], [21.7, 39.1]], [[31.3, 44.7], [23.9, 40.3]], [[_INF, _INF], [13.3, 22.7]]])


def parallel_estimates(platform: Platform, tasks: Tasks) -> ParallelEstimates:
    """Return what is known of tasks on the clusters A and B: more nodes are a little faster.

    Parameters
    ----------
    platform : Platform
    tasks : Tasks
        Of the types 0 to 2, with the cores that they ask for as their width.
    """
    assert tasks.task_type is not None
    nodes = -(-tasks.width[:, None] // np.array(_CORES))
    fits = nodes <= np.array(_SIZES)
    time_s = _ONE_NODE_S[tasks.task_type] * (0.25 + 0.75 / nodes[:, :, None])
    return ParallelEstimates(
        platform,
        np.where(fits[:, :, None], time_s, _INF),
        nodes,
        _NODE_POWER_W,
        tasks.task_type,
        typical_time_s=_ONE_NODE_S,
        typical_nodes=np.ones((3, 2), dtype=int),
        cores_per_node=_CORES,
    )


def make_parallel_utility_case(
    name: str, jobs: Sequence[tuple[float, int, int, float, float]], *, hosts_off: tuple[int, ...] = (), **rules: object
) -> Case:
    """Return a case of parallel tasks with utility functions on the clusters A and B.

    Parameters
    ----------
    name : str
    jobs : sequence of tuple
        (submission [s], task type, cores, priority, urgency [1/min]).
    hosts_off : tuple of int
        Nodes that are off at the start: 0 to 2 are A, 3 to 6 are B.
    **rules
        Further fields of the scenario.
    """
    submit, types, cores, priority, urgency = zip(*jobs, strict=True) if jobs else ((),) * 5
    platform = node_platform(_ONE_NODE_S, _NODE_POWER_W, _SIZES, cluster_names=("A", "B"), name="A and B")
    tasks = make_tasks(
        [TYPED_TASK_FLOPS] * len(jobs),
        submit,
        task_type=types,
        width=cores,
        name=name,
        utility=UtilityFunctions.exponential(priority, np.array(urgency)),
    )
    return Case(name, platform, tasks, estimates_of=parallel_estimates, hosts_off=hosts_off, rules=rules)


#: No two values of utility, per anything, are equal.
UTILITY_WITHOUT_TIES = make_parallel_utility_case(
    "no ties of parallel tasks",
    [(3.37 * k, k % 3, 1 + k * 5 % 8, 1.13 + 0.61 * (k * 7 % 11), 0.05 + 0.013 * (k * 3 % 7)) for k in range(12)],
)

#: What every policy of parallel tasks with utility functions must cope with.
PARALLEL_UTILITY_CASES = (
    make_parallel_utility_case("no parallel tasks", ()),
    make_parallel_utility_case("one parallel task", ((2.0, 0, 5, 3.0, 0.1),)),
    make_parallel_utility_case("more parallel tasks than fit", [(0.0, k % 3, 1 + k % 8, 2.0, 0.1) for k in range(9)]),
    make_parallel_utility_case(
        "parallel tasks that lose their worth",
        [(2.5 * k, k % 3, 8, 1.0, 1.5) for k in range(8)],
        mapping_interval_s=5.0,
    ),
    make_parallel_utility_case("equal parallel tasks", [(0.0, 1, 4, 1.0, 0.0)] * 6, mapping_interval_s=7.0),
    make_parallel_utility_case(
        "joules for some of the parallel tasks",
        [(3.1 * k, k % 3, 1 + k * 3 % 8, 1.0 + k % 4, 0.7) for k in range(12)],
        mapping_interval_s=5.0,
        budget=EnergyBudget(3e3, period_s=40.0, first_period_start_s=10.0),
    ),
    make_parallel_utility_case(
        "tasks too wide for a cluster, or for both; a node is off",
        [(2.5 * k, k % 3, 1 + k * 3 % 13, 1.0 + k % 4, 0.4) for k in range(10)],
        mapping_interval_s=5.0,
        hosts_off=(4,),
    ),
    make_parallel_utility_case(
        "periods that begin between two events",
        [(2.5 * k, k % 3, 1 + k * 3 % 9, 1.0 + k % 4, 0.4) for k in range(10)],
        mapping_interval_s=7.0,
        budget=EnergyBudget(4e3, period_s=30.0, first_period_start_s=5.0),
    ),
)
#: The same, of which some wait for others.
DEPENDENT_PARALLEL_UTILITY_CASES = (dependent(UTILITY_WITHOUT_TIES, "parallel tasks that wait for others"),)
