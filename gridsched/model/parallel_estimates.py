"""Parallel tasks on several clusters: time, power and nodes by (task, cluster, P-state).

Paper 001: a task takes whole nodes of one cluster, as many as its cores need there, and all its
nodes share one P-state (algorithms C1, C2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.arrays import Booleans, Floats, Integers, distinct
from gridsched.errors import InputError, counted
from gridsched.model.estimates import Estimates, PStates, energy_matrix
from gridsched.model.platform import Cluster, Host, Platform
from gridsched.model.task_types import typed_pstates
from gridsched.model.tasks import Tasks


class ParallelEstimates(Estimates):
    """Time, power and nodes of parallel tasks by (task, cluster, P-state).

    Energies and powers are those of a task's whole allocation, on all its nodes. The nodes of a
    cluster have SimGrid P-states for the task types that it runs only: where r types of lower
    number run there, P-state k of a type is the node's P-state ``r * K + k`` (`node_platform`).

    Parameters
    ----------
    platform : Platform
        Clusters of equal one-core hosts: the nodes.
    time_s : array_like, shape (tasks, clusters, P-states)
        Run time [s]; infinite where a task cannot run: its type does not run there, or it needs
        more nodes than the cluster has.
    nodes : array_like of int, shape (tasks, clusters)
        Nodes that each task takes; any number where it cannot run.
    node_power_w : array_like, shape (task types, clusters, P-states)
        Power of one node while it runs a task of the type [W]; infinite or nan where the cluster
        does not run the type.
    task_type : array_like of int, shape (tasks,)
    typical_time_s : array_like, shape (task types, clusters, P-states), optional
        Run time at the type's mean width [s], known before any task arrives; infinite where that
        is infeasible.
    typical_nodes : array_like of int, shape (task types, clusters), optional
        Nodes at the type's mean width.
    cores_per_node : array_like of int, shape (clusters,) or ()
        Cores that count as allocated for each node (paper 001, eq. 1).

    Attributes
    ----------
    time_s, nodes, node_power_w, task_type, typical_time_s, typical_nodes, cores_per_node
        As given, as arrays; in what a policy sees, of the tasks that have arrived.
    energy_j : ndarray of float64, shape (tasks, clusters, P-states)
        Energy of the whole allocation: time x nodes x power [J]; infinite where infeasible.

    Raises
    ------
    InputError
        If shapes or the platform do not fit, a feasible time or power is not positive, or a task
        takes more nodes than its cluster has.
    """

    _of_tasks = ("time_s", "nodes", "task_type", "energy_j")

    def __init__(
        self,
        platform: Platform,
        time_s: ArrayLike,
        nodes: ArrayLike,
        node_power_w: ArrayLike,
        task_type: ArrayLike,
        *,
        typical_time_s: ArrayLike | None = None,
        typical_nodes: ArrayLike | None = None,
        cores_per_node: ArrayLike = 1,
    ) -> None:
        self.time_s = np.asarray(time_s, dtype=np.float64)
        self.nodes = np.asarray(nodes, dtype=np.int64)
        self.node_power_w = np.asarray(node_power_w, dtype=np.float64)
        self.task_type = np.asarray(task_type, dtype=np.int64)
        self.typical_time_s = _optional(typical_time_s, np.float64)
        self.typical_nodes = _optional(typical_nodes, np.int64)
        n_clusters = len(platform.clusters)
        self.cores_per_node = np.broadcast_to(np.asarray(cores_per_node, dtype=np.int64), n_clusters)
        self._check_shapes(n_clusters)
        runs = types_that_run(self.node_power_w)
        self._check_values(platform, runs)
        #: the types of lower number that run on the cluster of a type
        self._rank: Integers = np.cumsum(runs, axis=0, dtype=np.int64) - runs
        self._check_platform(platform, runs)
        self._n_pstates = self.time_s.shape[2]
        self._cluster_of: list[int] = platform.cluster_of.tolist()
        self._cluster_ids = platform.cluster_of
        self.energy_j = energy_matrix(self.time_s, self.nodes[:, :, None] * self.node_power_w[self.task_type])
        for array in (self.time_s, self.nodes, self.node_power_w, self.task_type, self.energy_j):
            array.setflags(write=False)

    # ------------------------------------------------------------------ checks

    def _check_shapes(self, n_clusters: int) -> None:
        n_tasks, n_types = len(self.task_type), len(self.node_power_w)
        k = self.time_s.shape[2] if self.time_s.ndim == 3 else 0
        by_type = n_types, n_clusters, k
        expected: list[tuple[str, NDArray[Any] | None, tuple[int, ...]]] = [
            ("time_s", self.time_s, (n_tasks, n_clusters, k)),
            ("nodes", self.nodes, (n_tasks, n_clusters)),
            ("node_power_w", self.node_power_w, by_type),
            ("typical_time_s", self.typical_time_s, by_type),
            ("typical_nodes", self.typical_nodes, by_type[:2]),
        ]
        for name, array, shape in expected:
            if array is not None and (array.shape != shape or not k):
                raise InputError(
                    f"{name} has shape {array.shape}; with {counted(n_tasks, 'task')}, {counted(n_types, 'task type')} "
                    f"and {counted(n_clusters, 'cluster')} it must be {shape}, of at least one P-state."
                )
        if n_tasks and not 0 <= self.task_type.min() <= self.task_type.max() < n_types:
            raise InputError(
                f"Task types reach from {self.task_type.min()} to {self.task_type.max()}; "
                f"node_power_w has types 0 to {n_types - 1}."
            )

    def _check_values(self, platform: Platform, runs: Booleans) -> None:
        """Raise unless what is feasible has times, powers and nodes that can be."""
        power = self.node_power_w[runs]
        if (power < 0).any():
            raise InputError("node_power_w must be at least 0 W wherever a cluster runs a type.")
        feasible = np.isfinite(self.time_s)
        if np.isnan(self.time_s).any() or (self.time_s[feasible] <= 0).any():
            raise InputError("time_s must be greater than 0, or infinite where infeasible.")
        places = feasible.any(axis=2)
        for task, c in np.argwhere(places & ~runs[self.task_type])[:1].tolist():
            raise InputError(
                f"time_s of task {task} is finite on cluster {platform.clusters[c].name!r}, where "
                f"node_power_w has no power for its type {self.task_type[task]}."
            )
        sizes = np.array([len(cluster.hosts) for cluster in platform.clusters], dtype=np.int64)
        wrong = places & ((self.nodes < 1) | (self.nodes > sizes[None, :]))
        for task, c in np.argwhere(wrong)[:1].tolist():
            raise InputError(
                f"Task {task} takes {counted(int(self.nodes[task, c]), 'node')} of cluster "
                f"{platform.clusters[c].name!r}, which has {sizes[c]}; give it an infinite time "
                "there."
            )

    def _check_platform(self, platform: Platform, runs: Booleans) -> None:
        """Raise unless nodes have P-states for the types that their clusters run."""
        expected = runs.sum(axis=0) * self.time_s.shape[2]
        actual = platform.n_pstates
        for h in np.flatnonzero(actual != expected[platform.cluster_of])[:1].tolist():
            raise InputError(
                f"{platform.name}: host {platform.hosts[h].name!r} has {actual[h]} P-states; its "
                f"cluster needs {expected[platform.cluster_of[h]]}, one for each P-state of each "
                "task type that runs there (node_platform makes such hosts)."
            )

    # ------------------------------------------------------------------ what schedulers ask

    def of(self, tasks: Tasks) -> Self:
        """Refuse: every task has times of its own.

        Raises
        ------
        InputError
            Always.
        """
        raise InputError(f"{tasks.name}: estimates of parallel tasks are of these tasks only.")

    def _block(self, matrix: NDArray[Any], tasks: ArrayLike, hosts: ArrayLike, *pstate: PStates) -> NDArray[Any]:
        clusters = self._cluster_ids[np.asarray(hosts)]
        return matrix[(np.asarray(tasks)[:, None], clusters[None, :], *pstate)]

    def etc(self, tasks: ArrayLike, hosts: ArrayLike, pstate: PStates = 0) -> Floats:
        """Run time by the host's cluster [s], shape (tasks, hosts)."""
        return self._block(self.time_s, tasks, hosts, pstate)

    def apc(self, tasks: ArrayLike, hosts: ArrayLike, pstate: PStates = 0) -> Floats:
        """Power of all the nodes that a task takes [W]; infinite where it cannot run."""
        tasks, clusters = np.asarray(tasks), self._cluster_ids[np.asarray(hosts)]
        power = self.node_power_w[self.task_type[tasks][:, None], clusters[None, :], pstate]
        watts = self._block(self.nodes, tasks, hosts) * power
        return np.where(np.isfinite(self.etc(tasks, hosts, pstate)), watts, np.inf)

    def eec(self, tasks: ArrayLike, hosts: ArrayLike, pstate: PStates = 0) -> Floats:
        """Energy of the whole allocation [J], shape (tasks, hosts)."""
        return self._block(self.energy_j, tasks, hosts, pstate)

    def runnable(self, tasks: ArrayLike, hosts: ArrayLike) -> Booleans:
        """Whether each task can run on a cluster of any of the hosts, in any P-state."""
        clusters = distinct(self._cluster_ids[np.asarray(hosts)])
        times = self.time_s[np.asarray(tasks)[:, None], clusters[None, :]]
        return np.asarray(np.isfinite(times).any(axis=(1, 2)))

    def shortest_times(self) -> Floats:
        """Least run time of each task over clusters and P-states [s], shape (tasks,)."""
        return np.asarray(self.time_s.min(axis=(1, 2), initial=np.inf))

    def width(self, task: int, host: int) -> int:
        """Nodes that the task takes on the host's cluster."""
        return int(self.nodes.item(task, self._cluster_of[host]))

    def widths(self, tasks: Integers, hosts: Integers) -> Integers:
        """Nodes that task k takes on the cluster of host k, shape (tasks,)."""
        return self.nodes[tasks, self._cluster_ids[hosts]]

    def run_time(self, task: int, host: int, pstate: int) -> float:
        """Run time on the host's cluster [s]."""
        return float(self.time_s.item(task, self._cluster_of[host], pstate))

    def run_times(self, tasks: Integers, hosts: Integers, pstates: Integers) -> Floats:
        """Run times [s] of task k on the cluster of host k in P-state k, shape (tasks,)."""
        return self.time_s[tasks, self._cluster_ids[hosts], pstates]

    def energy(self, task: int, host: int, pstate: int) -> float:
        """Energy of the whole allocation on the host's cluster [J]."""
        return float(self.energy_j.item(task, self._cluster_of[host], pstate))

    def energies(self, tasks: Integers, hosts: Integers, pstates: Integers) -> Floats:
        """Energies [J] of task k on the cluster of host k in P-state k, shape (tasks,)."""
        return self.energy_j[tasks, self._cluster_ids[hosts], pstates]

    def n_pstates(self, platform: Platform) -> Integers:
        """P-states of `time_s`, for each host, shape (hosts,)."""
        return np.full(len(platform), self._n_pstates)

    def host_pstate(self, task: int, pstate: int, host: int) -> int:
        """Return ``r * K + k``: r types of lower number run on the host's cluster."""
        rank = int(self._rank.item(self.task_type.item(task), self._cluster_of[host]))
        return rank * self._n_pstates + pstate

    def scheduler_pstate(self, task: int, host_pstate: int) -> int:
        """Return k of ``r * K + k``."""
        return host_pstate % self._n_pstates

    def host_groups(self, hosts: ArrayLike, pstate: PStates = 0) -> Integers:
        """Hosts of one cluster form a group, shape (hosts,)."""
        return self._cluster_ids[np.asarray(hosts)]


def _optional(values: ArrayLike | None, kind: type) -> NDArray[Any] | None:
    return None if values is None else np.asarray(values, dtype=kind)


def types_that_run(node_power_w: Floats) -> Booleans:
    """Whether each cluster runs each task type: whether its node power is finite.

    Parameters
    ----------
    node_power_w : ndarray of float64, shape (task types, clusters, P-states)
        Infinite or nan where a type does not run.

    Returns
    -------
    ndarray of bool, shape (task types, clusters)
    """
    return np.asarray(np.isfinite(node_power_w).all(axis=2))


def node_platform(
    typical_time_s: Floats,
    node_power_w: Floats,
    sizes: Sequence[int],
    *,
    idle_w: ArrayLike = 0.0,
    cluster_names: Sequence[str] | None = None,
    name: str = "parallel platform",
) -> Platform:
    """Return clusters of one-core nodes that SimGrid can meter for `ParallelEstimates`.

    A node has one SimGrid P-state for each P-state of each task type that its cluster runs, and
    no other: with all types of paper 001 on all its nodes the platform would be three times as
    large. How fast a P-state is makes no difference, since every task has times of its own; it
    does `TYPED_TASK_FLOPS` in the type's typical time.

    Parameters
    ----------
    typical_time_s : ndarray of float64, shape (task types, clusters, P-states)
        Run time at the type's mean width [s]; infinite where that is infeasible.
    node_power_w : ndarray of float64, same shape
        Power of one node while it runs a task of the type [W]; infinite or nan where the cluster
        does not run the type.
    sizes : sequence of int
        Nodes of each cluster.
    idle_w : array_like, shape (clusters,) or ()
        Power of a node that runs nothing [W].
    cluster_names : sequence of str, optional
        Default ``c1``, ``c2``, ...; the nodes of c1 are ``c1-1``, ``c1-2``, ...
    name : str
        Used in messages.

    Raises
    ------
    InputError
        If a cluster has no nodes or runs no type.
    """
    runs = types_that_run(node_power_w)
    names = cluster_names or [f"c{c + 1}" for c in range(len(sizes))]
    idle = np.broadcast_to(np.asarray(idle_w, dtype=np.float64), len(sizes)).tolist()
    hosts: list[Host] = []
    clusters: list[Cluster] = []
    for c, (cluster, size) in enumerate(zip(names, sizes, strict=True)):
        if size < 1 or not runs[:, c].any():
            raise InputError(
                f"{name}: cluster {cluster!r} has {counted(size, 'node')} and runs {runs[:, c].sum()} task "
                "types; it needs at least one of each. Leave it out."
            )
        time = typical_time_s[runs[:, c], c]
        pstates = typed_pstates(np.where(np.isfinite(time), time, 1.0), node_power_w[runs[:, c], c], idle[c])
        clusters.append(Cluster(cluster, tuple(range(len(hosts), len(hosts) + size))))
        hosts += [Host(f"{cluster}-{k + 1}", pstates) for k in range(size)]
    return Platform(tuple(hosts), tuple(clusters), name=name)
