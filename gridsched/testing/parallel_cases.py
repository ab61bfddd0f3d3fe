"""The tiny systems on which the checks play policies of parallel jobs."""

from __future__ import annotations

from collections.abc import Sequence

from gridsched.model.budget import EnergyBudget
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.model.tasks import make_tasks
from gridsched.testing.cases import Case

#: Speed of a node in P-state 0 [flop/s].
_SPEED = 2e9


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


def make_parallel_case(
    name: str, n_nodes: int, jobs: Sequence[tuple[float, float, int, float]],
    *, pstate: int = 0, hosts_off: tuple[int, ...] = (), draws_idle: bool = True, **rules: object,
) -> Case:  # fmt: skip
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
        [time * _SPEED for time in estimate], submit, width=width, requested_time_s=estimate,
        name=name,
    )  # fmt: skip
    return Case(
        name, cluster_of(n_nodes, draws_idle=draws_idle), tasks, pstate=pstate,
        hosts_off=hosts_off, logged=run, rules=rules,
    )  # fmt: skip


#: Section I's example: J1 to J4.
EXAMPLE = ((0, 10, 3, 10), (1, 5, 4, 5), (2, 20, 1, 20), (3, 7, 1, 7))
_MIXED = (
    (0, 10, 3, 12), (0, 4, 2, 9), (1, 5, 4, 5), (2, 20, 1, 33), (3, 7, 1, 7), (3, 2, 5, 6),
    (4, 1, 1, 1), (15, 6, 2, 8), (40, 3, 5, 4),
)  # fmt: skip

#: No two times are equal, nor any sums of them.
WITHOUT_TIES = make_parallel_case("no parallel ties", 6, [
    (0.37 * k, 7.13 + 3.71 * (k * 5 % 7), 1 + k * 3 % 5, 9.91 + 4.19 * (k * 5 % 7))
    for k in range(12)
])  # fmt: skip

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
