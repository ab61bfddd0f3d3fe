"""What the heuristics of parallel tasks choose from (algorithms C3 to C5).

An option of a task is a cluster and a P-state, at its earliest start. Everything of a task is
in one row; option ``cluster * P-states + P-state``. Times [s], energies [J].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers, Words
from gridsched.systems.utility.kernels import inner, kernel
from gridsched.systems.utility.kernels.node_gaps import NodeProfile, take, write_hosts
from gridsched.systems.utility.kernels.node_profile import ClusterNodes, first_starts, with_room

_INF = np.inf
#: More nodes than any cluster has.
NEVER = np.int64(2**62)


class Objective(NamedTuple):
    """What an objective divides the utility of an option by: a sum of what it takes, weighted.

    Attributes
    ----------
    option, time, resource, energy : float
        Weight of the option itself, of its run time [1/s], of its resources, which are its nodes'
        cores times the time [1/(core-s)], and of its cost, which is its energy [1/J].
    """

    option: float = 0.0
    time: float = 0.0
    resource: float = 0.0
    energy: float = 0.0


#: Utility; utility per time, per resources, per energy (paper 001, eq. 2 to 5).
UTIL, UPT = Objective(option=1.0), Objective(time=1.0)
UPR, UPE = Objective(resource=1.0), Objective(energy=1.0)


class ParallelRows(NamedTuple):
    """The mappable tasks of an event, by ascending id.

    Attributes
    ----------
    time_s : ndarray, shape (rows, clusters, P-states)
        Infinite where a task cannot run.
    energy_j : ndarray, same shape
        Of the whole allocation.
    cost_j : ndarray, same shape
        What it counts in the budget if it runs from now on; in a budget in joules `energy_j`.
    nodes : ndarray of int64, shape (rows, clusters)
    arrival_s : ndarray, shape (rows,)
    cores_per_node : ndarray of int64, shape (clusters,)
    """

    time_s: Floats
    energy_j: Floats
    cost_j: Floats
    nodes: Integers
    arrival_s: Floats
    cores_per_node: Integers


class ParallelLimits(NamedTuple):
    """What options must keep.

    Attributes
    ----------
    now, day_end : float
        Nothing may start at or after the day's end [s].
    remaining_j : float
        Energy that is left of the day's, as the budget counts it [J].
    task_budget_j : float
        Largest cost of an option that passes the filter [J].
    resource_budget_w : float
        Largest cost per resource that passes the filter [W per core].
    weights : ndarray
        What a joule counts, a table of `gridsched.model.signals`.
    """

    now: float
    day_end: float
    remaining_j: float
    task_budget_j: float
    resource_budget_w: float
    weights: Floats


class Placed(NamedTuple):
    """Allocations in the order in which they were decided.

    Attributes
    ----------
    rows, pstates : ndarray of int64, shape (placed,)
    starts : ndarray, shape (placed,)
        [s].
    offsets, hosts : ndarray of int64
        Nodes of the k-th: ``hosts[offsets[k]:offsets[k + 1]]``.
    """

    rows: Integers
    pstates: Integers
    starts: Floats
    offsets: Integers
    hosts: Integers


@inner
def passes_filter(time: float, cost: float, cores: float, task_budget_j: float, resource_budget_w: float) -> bool:
    """Whether an option may cost so much (algorithms C5)."""
    if not cost <= task_budget_j:
        return False
    return resource_budget_w == _INF or cost / (time * cores) <= resource_budget_w


@inner
def divisor_of(objective: Objective, time: float, cost: float, cores: float) -> float:
    """What an objective divides the utility by."""
    one, per_s, per_core_s, per_j = objective
    return one + per_s * time + per_core_s * (time * cores) + per_j * cost


@kernel
def no_placements(rows: ParallelRows) -> Placed:
    """Return room for an allocation of every row."""
    m, most = len(rows.time_s), 0
    for n in range(m):
        widest = 0
        for c in range(rows.nodes.shape[1]):
            for k in range(rows.time_s.shape[2]):
                if rows.time_s[n, c, k] < _INF:
                    widest = max(widest, rows.nodes[n, c])
                    break
        most += widest
    return Placed(
        np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m), np.zeros(m + 1, np.int64), np.empty(most, np.int64)
    )


@inner
def room_for(profile: NodeProfile, c: int) -> int:
    """Rows that a cluster's gaps may need once a further task has its nodes there."""
    return 3 * profile.size[c] + 2


@inner
def occupy(profile: NodeProfile, rows: ParallelRows, n: int, c: int, k: int, start: float, work: Words) -> None:
    """Take the nodes of row `n` on cluster `c` in P-state `k` from `start` on.

    The profile has `room_for` it; `work` are bits for two rows; the first are those of the nodes
    then.
    """
    take(profile, c, start, rows.time_s[n, c, k], rows.nodes[n, c], work[0], work[1])


@kernel
def place(
    profile: NodeProfile,
    nodes: ClusterNodes,
    rows: ParallelRows,
    placed: Placed,
    count: int,
    n: int,
    c: int,
    k: int,
    start: float,
    work: Words,
) -> NodeProfile:
    """Write row `n` as the `count`-th placement; the rest is as in `occupy`.

    Returns the profile, which is a larger one if it had no room.
    """
    profile = with_room(profile, room_for(profile, c))
    occupy(profile, rows, n, c, k, start, work)
    placed.rows[count], placed.pstates[count], placed.starts[count] = n, k, start
    placed.offsets[count + 1] = write_hosts(work[0], nodes.first[c], nodes.hosts, placed.hosts, placed.offsets[count])
    return profile


@kernel
def first_of(placed: Placed, count: int) -> Placed:
    """Return the first `count` placements."""
    return Placed(
        placed.rows[:count],
        placed.pstates[:count],
        placed.starts[:count],
        placed.offsets[: count + 1],
        placed.hosts[: placed.offsets[count]],
    )


def chosen_of(placed: Placed, chosen: Booleans) -> Placed:
    """Return some of the placements.

    Parameters
    ----------
    placed : Placed
    chosen : ndarray of bool, shape (placed,)
    """
    widths = np.diff(placed.offsets)
    return Placed(
        placed.rows[chosen],
        placed.pstates[chosen],
        placed.starts[chosen],
        np.concatenate([[0], np.cumsum(widths[chosen])]),
        placed.hosts[np.repeat(chosen, widths)],
    )


class Options(NamedTuple):
    """What is known of each option.

    Attributes
    ----------
    start : ndarray, shape (rows, clusters * P-states)
        It starts no earlier [s]; infinite if it never can.
    exact_until : ndarray of int64, same shape
        `start` is exact until more nodes than that were taken in the cluster; -1: it is a bound.
    divisor, value : ndarray, same shape
        What divides the utility, and the objective at `start`; -inf if the option is none now.
    taken : ndarray of int64, shape (clusters,)
        Nodes that were taken in this event.
    aside : ndarray of int64, shape (clusters, rows * P-states)
        Options ``row * P-states + P-state`` that need too much energy.
    n_aside : ndarray of int64, shape (clusters,)
    aside_until : ndarray of int64, shape (clusters,)
        Least `exact_until` of them.
    """

    start: Floats
    exact_until: Integers
    divisor: Floats
    value: Floats
    taken: Integers
    aside: Integers
    n_aside: Integers
    aside_until: Integers


@kernel
def list_options(profile: NodeProfile, nodes: ClusterNodes, rows: ParallelRows, limits: ParallelLimits) -> Options:
    """Return all options that pass the filter, with the earliest starts that are easily computed."""
    m, clusters, pstates = rows.time_s.shape
    shape = m, clusters * pstates
    options = Options(
        np.full(shape, _INF),
        np.full(shape, -1, np.int64),
        np.empty(shape),
        np.full(shape, -_INF),
        np.zeros(clusters, np.int64),
        np.empty((clusters, m * pstates), np.int64),
        np.zeros(clusters, np.int64),
        np.full(clusters, NEVER, np.int64),
    )
    task_budget_j, resource_budget_w = limits.task_budget_j, limits.resource_budget_w
    time_s, cost_j, widths = rows.time_s, rows.cost_j, rows.nodes
    start, exact_until = options.start, options.exact_until
    for c in range(clusters):
        n_nodes, per_node = nodes.first[c + 1] - nodes.first[c], rows.cores_per_node[c]
        starts, spare = first_starts(profile, c, n_nodes)
        for n in range(m):
            width = widths[n, c]
            if width > n_nodes:
                continue
            cores = float(width * per_node)
            for k in range(pstates):
                time = time_s[n, c, k]
                if time < _INF and passes_filter(time, cost_j[n, c, k], cores, task_budget_j, resource_budget_w):
                    start[n, c * pstates + k] = starts[width - 1]
                    exact_until[n, c * pstates + k] = spare[width - 1]
    return options
