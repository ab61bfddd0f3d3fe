"""Statistics of a workload: of a bag, of jobs, of a system with task types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.model.parallel_estimates import ParallelEstimates
from gridsched.model.rules import DAY_S
from gridsched.model.task_types import SystemWorkload, TaskTypes
from gridsched.model.tasks import Tasks
from gridsched.workloads.traces.job_table import JobTable
from gridsched.workloads.traces.trace_options import NODE_POWER_W

GENERAL, SPECIAL = "general", "special"
#: A number by its key in JSON: key, name for people, unit, value.
Statistic = tuple[str, str, str, Any]


@dataclass(frozen=True)
class WorkloadStatistics:
    """The statistics of a workload.

    Attributes
    ----------
    numbers : list of (key, name, unit, value)
    rows : mapping
        Lists of rows by key.
    parallel : WorkloadStatistics, optional
        What there is of parallel tasks besides.
    """

    numbers: list[Statistic]
    rows: Mapping[str, list[Any]] = field(default_factory=dict)
    parallel: WorkloadStatistics | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return all of it by key."""
        beside = {} if self.parallel is None else self.parallel.as_dict()
        return {key: value for key, _, _, value in self.numbers} | dict(self.rows) | beside

    def named(self) -> list[tuple[str, Any, str]]:
        """Return (name, value, unit) of each number."""
        return [(name, value, unit) for _, name, unit, value in self.numbers]


def is_special_machine_type(types: TaskTypes) -> Booleans:
    """Return which machine types run fewer task types than another, shape (machine types,)."""
    runs = np.isfinite(types.etc).any(axis=2).sum(axis=0)
    return np.asarray(runs < runs.max(initial=0))


def is_special_task_type(types: TaskTypes) -> Booleans:
    """Return which task types run on a special machine type, shape (task types,)."""
    runs = np.isfinite(types.etc).any(axis=2)
    return np.asarray(np.asarray(runs)[:, is_special_machine_type(types)].any(axis=1))


def task_statistics(tasks: Tasks) -> WorkloadStatistics:
    """Return numbers of a bag of tasks."""
    flops, times = tasks.flops, tasks.submit_time_s
    return WorkloadStatistics(
        [
            ("tasks", "tasks", "", len(tasks)),
            ("total_flops", "work in all", "flop", float(flops.sum())),
            ("mean_flops", "mean size", "flop", _of(np.mean, flops)),
            ("min_flops", "smallest size", "flop", _of(np.min, flops)),
            ("median_flops", "median size", "flop", _of(np.median, flops)),
            ("max_flops", "largest size", "flop", _of(np.max, flops)),
            ("cov_flops", "coefficient of variation", "", _of(lambda f: f.std() / f.mean(), flops)),
            ("measured_heterogeneity", "measured heterogeneity", "", _of(lambda f: np.ptp(f) / f.mean(), flops)),
            ("nominal_heterogeneity", "nominal heterogeneity", "", tasks.nominal_heterogeneity),
            ("first_submission_s", "first submission", "s", _of(np.min, times)),
            ("last_submission_s", "last submission", "s", _of(np.max, times)),
            ("input_bytes", "input in all", "byte", float(tasks.input_bytes.sum())),
            ("output_bytes", "output in all", "byte", float(tasks.output_bytes.sum())),
            ("input_files", "input files", "", 0 if tasks.files is None else len(tasks.files)),
        ]
    )


def _of(function: Callable[[NDArray[Any]], Any], values: NDArray[Any]) -> float:
    """Return a number of values; nan of none."""
    return float(function(values)) if len(values) else float("nan")


#: Attributes by which measured energy is listed, beside all jobs.
BY = ("partition", "user")


def energy_rows(jobs: JobTable, busy_w: float) -> list[dict[str, Any]]:
    """Return measured and modeled energy of the jobs that were metered: of all, by partition, by user.

    Parameters
    ----------
    jobs : JobTable
    busy_w : float
        Power of a node that computes, by the model [W].

    Returns
    -------
    list of dict
        ``by`` (``all``, or what `name` is), ``name``, ``jobs``, mean power of a node over its time
        ``node_power_w`` [W], ``measured_j``, ``modelled_j`` [J] and ``modelled_above_measured``, relative.
        Of each kind the largest consumers come first; empty where nothing was measured.
    """
    known = ~np.isnan(jobs.node_power_w)
    if not known.any():
        return []
    node_s = (jobs.width * jobs.run_time_s)[known]
    measured_j = jobs.node_power_w[known] * node_s

    def row(by: str, name: str, chosen: Booleans) -> dict[str, Any]:
        joules, seconds = float(measured_j[chosen].sum()), float(node_s[chosen].sum())
        return {
            "by": by,
            "name": name,
            "jobs": int(chosen.sum()),
            "node_power_w": joules / seconds,
            "measured_j": joules,
            "modelled_j": busy_w * seconds,
            "modelled_above_measured": busy_w * seconds / joules - 1.0,
        }

    rows = [row("all", "", np.ones(len(node_s), dtype=bool))]
    for by in BY:
        if (texts := jobs.attributes.get(by)) is not None:
            # a text beside an array would lose the NUL characters at its end
            names, place = np.unique(texts[known], return_inverse=True)
            some = [row(by, name, place == k) for k, name in enumerate(names.tolist())]
            rows += sorted(some, key=lambda each: -each["measured_j"])
    return rows


def job_statistics(jobs: JobTable, n_nodes: int | None, busy_w: float = NODE_POWER_W[1]) -> WorkloadStatistics:
    """Return numbers of jobs, nan or None where there is nothing to state.

    Parameters
    ----------
    jobs : JobTable
    n_nodes : int or None
        Nodes of the machine, if they are known.
    busy_w : float
        Power of a node that computes [W]; see `energy_rows`.

    Notes
    -----
    ``node_seconds`` is what the jobs take of the machine [s]; ``offered_load`` the same over what
    the machine has from the first submission to the last; ``overestimation`` the node-seconds that
    users asked for over those that their jobs took, where both are known. ``left_out`` and
    ``notes`` describe the rest.
    """
    times, run_s, width = jobs.submit_time_s, jobs.run_time_s, jobs.width
    node_seconds = float((width * run_s).sum())
    span_s = float(times[-1] - times[0]) if len(jobs) else 0.0
    load = node_seconds / (span_s * n_nodes) if span_s and n_nodes else float("nan")
    asked = np.isfinite(jobs.requested_time_s)
    used = float((width * run_s)[asked].sum())
    requested = float((width[asked] * jobs.requested_time_s[asked]).sum())
    numbers: list[Statistic] = [
        ("jobs", "jobs", "", len(jobs)),
        ("nodes", "nodes of the machine", "", n_nodes),
        ("submissions_span_s", "first to last submission", "s", span_s),
        ("node_seconds", "node-seconds in all", "s", node_seconds),
        ("offered_load", "offered load", "", load),
        ("mean_width", "mean width", "", _of(np.mean, width)),
        ("median_width", "median width", "", _of(np.median, width)),
        ("max_width", "widest job", "", int(width.max(initial=0))),
        ("serial_jobs", "jobs of one node", "", int((width == 1).sum())),
        ("mean_run_time_s", "mean run time", "s", _of(np.mean, run_s)),
        ("median_run_time_s", "median run time", "s", _of(np.median, run_s)),
        ("max_run_time_s", "longest run time", "s", float(run_s.max(initial=0.0))),
        ("jobs_with_request", "jobs that asked for a time", "", int(asked.sum())),
        ("overestimation", "asked for over used", "", requested / used if used else float("nan")),
    ]
    if len(lines := jobs.waiting_lines):
        waiting = int(np.isin(jobs.lines, lines).sum())
        numbers.append(("jobs_with_dependencies", "jobs that wait for others", "", waiting))
    if jobs.without_limit.any():
        free = int(jobs.without_limit.sum())
        numbers.append(("jobs_without_limit", "jobs without a time limit", "", free))
    left_out = [each.as_json() for each in jobs.dropped]
    rows: dict[str, list[Any]] = {"left_out": left_out, "notes": list(jobs.notes)}
    if energy := energy_rows(jobs, busy_w):
        rows["energy"] = energy
    return WorkloadStatistics(numbers, rows)


def system_statistics(whole: SystemWorkload) -> WorkloadStatistics:
    """Return numbers of a system and its workload.

    Parameters
    ----------
    whole : SystemWorkload
        With task types and utility functions.

    Notes
    -----
    ``arrivals`` and ``matrices`` are lists of rows: see `arrival_rows` and `matrix_rows`.
    ``offered_load`` is the tasks' run time (mean over the machines that can run them, P-state 0)
    over the machines' time to the horizon. Of parallel tasks there are ``clusters``, too: see
    `cluster_rows`.
    """
    tasks, types, functions = whole.tasks, whole.types, whole.tasks.utility
    assert types is not None
    assert functions is not None
    end = float(tasks.submit_time_s[-1]) if len(tasks) else 0.0
    horizon_s = end if whole.rules.horizon_s is None else whole.rules.horizon_s
    parallel = whole.estimates if isinstance(whole.estimates, ParallelEstimates) else None
    load = (
        offered_load(tasks, types, horizon_s)
        if parallel is None
        else parallel_load(parallel, len(types.host_type), horizon_s)
    )
    budget = whole.rules.budget
    numbers: list[Statistic] = [
        ("tasks", "tasks", "", len(tasks)),
        ("horizon_s", "simulated time", "s", horizon_s),
        ("tasks_per_day", "tasks per day", "", _per_day(len(tasks), horizon_s)),
        ("machines", "machines", "", len(types.host_type)),
        ("machine_types", "machine types", "", types.etc.shape[1]),
        ("task_types", "task types", "", types.etc.shape[0]),
        ("pstates", "P-states", "", types.etc.shape[2]),
        ("offered_load", "offered load", "", load),
        ("utility_classes", "utility classes", "", len(functions.classes)),
        ("utility_possible", "utility at most", "", float(functions.priority.sum())),
        ("mean_priority", "mean priority", "", _mean(functions.priority)),
        ("mean_urgency", "mean urgency", "1/unit", _mean(functions.urgency)),
        ("urgency_unit_s", "urgency unit", "s", functions.urgency_unit_s),
        ("energy_budget_j", "energy budget of a period", "J", budget and budget.energy_j),
        ("money_budget", "energy budget of a period, in money", "", budget and budget.money),
    ]
    rows = {"arrivals": arrival_rows(tasks, types, horizon_s), "matrices": matrix_rows(types)}
    beside = None if parallel is None else _parallel_statistics(whole, parallel)
    return WorkloadStatistics(numbers, rows, beside)


def _mean(values: NDArray[Any]) -> float | None:
    return float(values.mean()) if len(values) else None


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
    mean_s = _mean_of_feasible(types.etc[:, types.host_type, 0])
    available_s = horizon_s * len(types.host_type)
    return float(mean_s[tasks.task_type].sum() / available_s) if available_s > 0 else None


def _mean_of_feasible(time_s: Floats) -> Floats:
    """Return the mean of the finite times of each row [s]; 0 where there is none."""
    feasible = np.isfinite(time_s)
    return np.where(feasible, time_s, 0.0).sum(axis=1) / np.maximum(feasible.sum(axis=1), 1)


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
    mean_s = _mean_of_feasible(estimates.time_s[:, :, 0] * estimates.nodes)
    available_s = horizon_s * n_nodes
    return float(mean_s.sum() / available_s) if available_s > 0 else None


def _parallel_statistics(whole: SystemWorkload, estimates: ParallelEstimates) -> WorkloadStatistics:
    cores, shortest = whole.tasks.width, estimates.shortest_times()
    assert cores is not None  # parallel tasks have widths
    some = len(whole.tasks) > 0
    numbers: list[Statistic] = [
        ("cores", "cores", "", int(cluster_cores(whole, estimates).sum())),
        ("mean_cores_of_tasks", "cores of a task, mean", "", _mean(cores)),
        ("median_cores_of_tasks", "median", "", float(np.median(cores)) if some else None),
        ("max_cores_of_tasks", "most", "", int(cores.max()) if some else None),
        ("tasks_that_fit_nowhere", "tasks that fit nowhere", "", int((~np.isfinite(shortest)).sum())),
    ]
    clusters = cluster_rows(whole, estimates)
    return WorkloadStatistics(numbers, {"notes": list(whole.notes), "clusters": clusters})


def cluster_cores(whole: SystemWorkload, estimates: ParallelEstimates) -> Integers:
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
            "cluster": cluster.name,
            "nodes": len(cluster.hosts),
            "cores_per_node": per_node[c],
            "cores": cores[c],
            "task_types": types[c],
            "tasks": runs[c],
        }
        for c, cluster in enumerate(whole.platform.clusters)
    ]


def arrival_rows(tasks: Tasks, types: TaskTypes, horizon_s: float) -> list[dict[str, Any]]:
    """Return for each kind of task types how many tasks arrive, and the types' rates [1/day].

    Parameters
    ----------
    tasks : Tasks
    types : TaskTypes
    horizon_s : float
        [s].
    """
    assert tasks.task_type is not None  # by the check of `types`
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
                rows.append(
                    {
                        "matrix": name,
                        "unit": unit,
                        "machine_types": kind,
                        "pstate": k,
                        "entries": len(values),
                        "mean": mean,
                        "cov": float(values.std() / mean) if mean > 0 else None,
                        "min": float(values.min()),
                        "max": float(values.max()),
                    }
                )
    return rows


def _kinds(special: Booleans) -> list[tuple[str, Booleans]]:
    both = ((GENERAL, ~special), (SPECIAL, special))
    return [(kind, chosen) for kind, chosen in both if chosen.any()]
