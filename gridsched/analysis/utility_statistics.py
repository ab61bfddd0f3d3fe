"""What can be said of a system with task types, and of its workload, in numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.model.budget import DAY_S
from gridsched.model.parallel_estimates import ParallelEstimates
from gridsched.model.task_types import SystemWorkload, TaskTypes
from gridsched.model.tasks import Tasks

GENERAL, SPECIAL = "general", "special"


def is_special_machine_type(types: TaskTypes) -> NDArray[np.bool_]:
    """Return which machine types run fewer task types than another, shape (machine types,)."""
    runs = np.isfinite(types.etc).any(axis=2).sum(axis=0)
    return np.asarray(runs < runs.max(initial=0))


def is_special_task_type(types: TaskTypes) -> NDArray[np.bool_]:
    """Return which task types run on a special machine type, shape (task types,)."""
    runs = np.isfinite(types.etc).any(axis=2)
    return np.asarray(np.asarray(runs)[:, is_special_machine_type(types)].any(axis=1))


def workload_statistics(whole: SystemWorkload) -> dict[str, Any]:
    """Return numbers of a system and its workload.

    Parameters
    ----------
    whole : SystemWorkload
        With task types and utility functions.

    Returns
    -------
    dict
        Numbers; ``arrivals`` and ``matrices`` are lists of rows: see `arrival_rows` and
        `matrix_rows`. ``offered_load`` is the tasks' run time (mean over the machines that can run
        them, P-state 0) over the machines' time to the horizon. Of parallel tasks there are
        ``clusters``, too: see `cluster_rows`.
    """
    tasks, types, functions = whole.tasks, whole.types, whole.tasks.utility
    assert types is not None
    assert functions is not None
    end = float(tasks.submit_time_s[-1]) if len(tasks) else 0.0
    horizon_s = end if whole.rules.horizon_s is None else whole.rules.horizon_s
    parallel = whole.estimates if isinstance(whole.estimates, ParallelEstimates) else None
    return {
        "tasks": len(tasks),
        "horizon_s": horizon_s,
        "tasks_per_day": _per_day(len(tasks), horizon_s),
        "machines": len(types.host_type),
        "machine_types": types.etc.shape[1],
        "task_types": types.etc.shape[0],
        "pstates": types.etc.shape[2],
        "offered_load": (
            offered_load(tasks, types, horizon_s) if parallel is None
            else parallel_load(parallel, len(types.host_type), horizon_s)
        ),
        "utility_classes": len(functions.classes),
        "utility_possible": float(functions.priority.sum()),
        "mean_priority": float(functions.priority.mean()) if len(tasks) else None,
        "mean_urgency": float(functions.urgency.mean()) if len(tasks) else None,
        "urgency_unit_s": functions.urgency_unit_s,
        "energy_budget_j": None if whole.rules.budget is None else whole.rules.budget.energy_j,
        "money_budget": None if whole.rules.budget is None else whole.rules.budget.money,
        "arrivals": arrival_rows(tasks, types, horizon_s),
        "matrices": matrix_rows(types),
        **({} if parallel is None else _parallel_statistics(whole, parallel)),
    }  # fmt: skip


def _per_day(count: float, horizon_s: float) -> float | None:
    return count * DAY_S / horizon_s if horizon_s > 0 else None


def offered_load(tasks: Tasks, types: TaskTypes, horizon_s: float) -> float | None:
    """Return run time of all tasks, each the mean of its machines, over machine time.

    Parameters
    ----------
    tasks : Tasks
    types : TaskTypes
    horizon_s : float
        [s].

    Returns
    -------
    float or None
        None without machine time.
    """
    on_hosts = types.etc[:, types.host_type, 0]
    feasible = np.isfinite(on_hosts)
    total = np.where(feasible, on_hosts, 0.0).sum(axis=1)
    mean_s = total / np.maximum(feasible.sum(axis=1), 1)
    available_s = horizon_s * len(types.host_type)
    return float(mean_s[tasks.task_type].sum() / available_s) if available_s > 0 else None


def parallel_load(estimates: ParallelEstimates, n_nodes: int, horizon_s: float) -> float | None:
    """Return the time that all parallel tasks occupy nodes over the nodes' time.

    Each task counts with the mean over the clusters that can run it, in P-state 0.

    Parameters
    ----------
    estimates : ParallelEstimates
    n_nodes : int
    horizon_s : float
        [s].

    Returns
    -------
    float or None
        None without machine time.
    """
    time_s = estimates.time_s[:, :, 0]
    feasible = np.isfinite(time_s)
    node_s = np.where(feasible, time_s, 0.0) * estimates.nodes
    mean_s = node_s.sum(axis=1) / np.maximum(feasible.sum(axis=1), 1)
    available_s = horizon_s * n_nodes
    return float(mean_s.sum() / available_s) if available_s > 0 else None


def _parallel_statistics(whole: SystemWorkload, estimates: ParallelEstimates) -> dict[str, Any]:
    cores, shortest = whole.tasks.width, estimates.shortest_times()
    assert cores is not None  # parallel tasks have widths
    some = len(whole.tasks) > 0
    return {
        "cores": int(cluster_cores(whole, estimates).sum()),
        "mean_cores_of_tasks": float(cores.mean()) if some else None,
        "median_cores_of_tasks": float(np.median(cores.astype(np.float64))) if some else None,
        "max_cores_of_tasks": int(cores.max()) if some else None,
        "tasks_that_fit_nowhere": int((~np.isfinite(shortest)).sum()),
        "notes": list(whole.notes),
        "clusters": cluster_rows(whole, estimates),
    }


def cluster_cores(whole: SystemWorkload, estimates: ParallelEstimates) -> NDArray[np.int64]:
    """Return the cores of each cluster, shape (clusters,)."""
    sizes = np.array([len(cluster.hosts) for cluster in whole.platform.clusters])
    return np.asarray(sizes * estimates.cores_per_node)


def cluster_rows(whole: SystemWorkload, estimates: ParallelEstimates) -> list[dict[str, Any]]:
    """Return of each cluster its nodes and cores, and the types and tasks that can run there."""
    runs = np.isfinite(estimates.time_s).any(axis=2).sum(axis=0).tolist()
    types = np.isfinite(estimates.node_power_w).all(axis=2).sum(axis=0).tolist()
    cores, per_node = cluster_cores(whole, estimates).tolist(), estimates.cores_per_node.tolist()
    return [
        {
            "cluster": cluster.name, "nodes": len(cluster.hosts), "cores_per_node": per_node[c],
            "cores": cores[c], "task_types": types[c], "tasks": runs[c],
        }
        for c, cluster in enumerate(whole.platform.clusters)
    ]  # fmt: skip


def arrival_rows(tasks: Tasks, types: TaskTypes, horizon_s: float) -> list[dict[str, Any]]:
    """Return for each kind of task types how many tasks arrive, and the types' rates [1/day].

    Parameters
    ----------
    tasks : Tasks
    types : TaskTypes
    horizon_s : float
        [s].
    """
    assert tasks.task_type is not None  # as `types` tells
    counts = np.bincount(tasks.task_type, minlength=len(types.etc))
    rows = []
    for kind, chosen in _kinds(is_special_task_type(types)):
        each = counts[chosen]
        rates = {
            f"{name}_per_day": _per_day(float(function(each)), horizon_s)
            for name, function in (("min", np.min), ("mean", np.mean), ("max", np.max))
        }
        rows.append({"kind": kind, "task_types": len(each), "tasks": int(each.sum()), **rates})
    return rows


def matrix_rows(types: TaskTypes) -> list[dict[str, Any]]:
    """Return mean, coefficient of variation, minimum and maximum of ETC, APC and EEC.

    One row for each matrix, kind of machine types and P-state; over the feasible entries of task
    types and machine types.
    """
    rows = []
    matrices = (("etc", "s", types.etc), ("apc", "W", types.apc), ("eec", "J", types.eec))
    for name, unit, matrix in matrices:
        for kind, columns in _kinds(is_special_machine_type(types)):
            for k in range(matrix.shape[2]):
                values = matrix[:, columns, k][np.isfinite(types.etc[:, columns, k])]
                if not len(values):
                    continue
                mean = float(values.mean())
                rows.append({
                    "matrix": name, "unit": unit, "machine_types": kind, "pstate": k,
                    "entries": len(values), "mean": mean,
                    "cov": float(values.std() / mean) if mean > 0 else None,
                    "min": float(values.min()), "max": float(values.max()),
                })  # fmt: skip
    return rows


def _kinds(special: NDArray[np.bool_]) -> list[tuple[str, NDArray[np.bool_]]]:
    both = ((GENERAL, ~special), (SPECIAL, special))
    return [(kind, chosen) for kind, chosen in both if chosen.any()]
