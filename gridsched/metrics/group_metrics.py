"""Metrics of groups of jobs: by who submitted them, where they ran, and how large they are; fairness among users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.energy import busy_energy_j, task_energy_j
from gridsched.errors import InputError, did_you_mean
from gridsched.metrics.columns import Column
from gridsched.metrics.run_metrics import SLOWDOWN_BOUND_S, makespan_s, mean_of_finished, slowdown, waiting_time_s
from gridsched.model.platform import Platform
from gridsched.model.room_on_nodes import node_amounts
from gridsched.model.tasks import CORES, Tasks
from gridsched.model.trace import TaskState, Trace

#: The keys by which jobs may be grouped, beside the attributes of a log.
PARTITION, SIZE = "partition", "size"
HOUR_S = 3600.0
#: The number of jobs of a group, and what it received from its scheduler; of `group_rows`.
JOBS = Column("jobs", "jobs", "number")
COLUMNS = (
    JOBS,
    Column("core_hours", "core\nhours", "rounded"),
    Column("mean_waiting_time_s", "mean\nwait [{unit}]", "rounded", "s"),
    Column("mean_bounded_slowdown", "mean bounded\nslowdown", "rounded"),
    Column("unfairness_s", "later than\nFCFS [{unit}]", "rounded", "s"),
    Column("energy_j", "energy\n[{unit}]", "rounded", "J"),
)


def groups_of(tasks: Tasks, platform: Platform) -> list[str]:
    """Return what tasks on a platform can be grouped by; nothing for serial tasks."""
    if tasks.are_serial:
        return []
    attributes = [name for name, each in tasks.attributes.items() if each.names]
    parted = [PARTITION] if platform.partitions and tasks.share_nodes else []
    return list(dict.fromkeys([*parted, *attributes, SIZE]))


def group_of(tasks: Tasks, platform: Platform, by: str) -> tuple[list[str], Integers]:
    """Return the names of groups, and the group of each task; -1 if a log contains none.

    Parameters
    ----------
    tasks : Tasks
    platform : Platform
    by : str
        One of `groups_of`.

    Raises
    ------
    InputError
        If the tasks cannot be grouped by this.
    """
    allowed = groups_of(tasks, platform)
    if not allowed:
        raise InputError(f"{tasks.name}: serial tasks are not grouped by {by!r}; only parallel jobs are.")
    if by not in allowed:
        hint = did_you_mean(by, allowed)
        raise InputError(f"{tasks.name}: its jobs have no {by!r} to group by. {hint}Allowed: {', '.join(allowed)}.")
    if by == PARTITION and tasks.share_nodes:
        names = list(dict.fromkeys(each.name for each in platform.pools))
        whole = np.array([names.index(each.name) for each in platform.pools], dtype=np.int64)
        return names, whole[tasks.partition]
    if by == SIZE:
        power = np.ceil(np.log2(tasks.size)).astype(np.int64)
        names = [f"up to {2**k:,}" for k in range(int(power.max(initial=0)) + 1)]
        return names, power
    attribute = tasks.attributes[by]
    return list(attribute.names), attribute.codes


def execution_energy_j(trace: Trace, idle_attribution: str) -> Floats:
    """Return the energy that each execution is charged [J], shape (executions,).

    Parameters
    ----------
    trace : Trace
    idle_attribution : {"cores", "node"}
        The idle power of a busy node is shared by the cores that are busy, or left to the node:
        then the shares and the nodes' idle power sum to what the nodes draw.
    """
    return busy_energy_j(trace) if idle_attribution == "cores" else task_energy_j(trace)


def group_rows(trace: Trace, by: str, fair_start_s: Floats, idle_attribution: str = "cores") -> list[dict[str, Any]]:
    """Return a row for each group of jobs, those of no group last.

    Parameters
    ----------
    trace : Trace
    by : str
        One of `groups_of`.
    fair_start_s : ndarray of float64, shape (tasks,)
        When each job starts under FCFS [s]; nan where it never does.
    idle_attribution : {"cores", "node"}

    Returns
    -------
    list of dict
        ``group``, ``jobs``, ``finished``, ``core_hours`` (of whole nodes: node hours),
        ``mean_waiting_time_s``, ``mean_bounded_slowdown``, ``unfairness_s`` (the mean time that jobs
        start later than under FCFS), ``energy_j``; of partitions ``utilisation_NAME`` of each
        resource: what jobs took of it over what there is, until the makespan's end.
    """
    names, group = group_of(trace.tasks, trace.platform, by)
    runs, wait = trace.executions, waiting_time_s(trace)
    slow = slowdown(trace, SLOWDOWN_BOUND_S)
    late = np.maximum(trace.tasks.submit_time_s + wait - fair_start_s, 0.0)
    spent = (runs["end"] - runs["start"]) * trace.n_cores
    energy = execution_energy_j(trace, idle_attribution)
    rows = []
    for k, name in [*enumerate(names), (-1, "(none)")]:
        own = group == k
        if not own.any():
            continue
        ran = own[runs["task"]]
        row = {
            "group": name,
            "jobs": int(own.sum()),
            "finished": int((own & (trace.final_state == TaskState.FINISHED)).sum()),
            "core_hours": float(spent[ran].sum() / HOUR_S),
            "mean_waiting_time_s": mean_of_finished(wait[own]),
            "mean_bounded_slowdown": mean_of_finished(slow[own]),
            "unfairness_s": mean_of_finished(late[own]),
            "energy_j": float(energy[ran].sum()),
        }
        if by == PARTITION and trace.tasks.share_nodes:
            row |= _utilisations(trace, name, ran)
        rows.append(row)
    return rows


def _utilisations(trace: Trace, partition: str, ran: Any) -> dict[str, float]:
    """Return what jobs of a partition took of each resource over what its nodes have, by key."""
    runs, tasks, makespan = trace.executions, trace.tasks, makespan_s(trace)
    if not makespan:
        return {}
    hosts = sorted({h for each in trace.platform.pools if each.name == partition for h in each.hosts})
    there = node_amounts(trace.platform, tasks.resources)[hosts].sum(axis=0, dtype=np.float64)
    each = tasks.demand[runs["task"][ran]] * tasks.width[runs["task"][ran], None]
    taken = (each * (runs["end"] - runs["start"])[ran, None]).sum(axis=0)
    shares = taken / np.maximum(there, 1) / makespan
    return {f"utilisation_{name}": float(share) for name, share in zip(tasks.resources, shares, strict=True) if share}


def in_one_table(groups: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return rows of groups below each other, with ``group_by`` before their keys.

    Parameters
    ----------
    groups : mapping
        `group_rows` by what the jobs are grouped by.
    """
    return [{"group_by": by, **row} for by, rows in groups.items() for row in rows]


def columns_of(rows: Sequence[Mapping[str, Any]]) -> list[Column]:
    """Return the columns of numbers that rows of groups have, utilizations last, that of cores first of these."""
    first = f"utilisation_{CORES}"
    used = {key for row in rows for key in row if key.startswith("utilisation_")}
    of_resources = sorted(used, key=lambda key: (key != first, key))
    return [*COLUMNS, *(Column(key, f"{key.removeprefix('utilisation_')}\nused", "share") for key in of_resources)]


def user_fairness(trace: Trace) -> float:
    """Return Jain's index of the users' mean bounded slowdowns, in (0, 1]; nan without users.

    1 where all have the same, 1 / n where one of n users has all of it.

    References
    ----------
    .. [1] R. Jain, D.-M. Chiu, W. Hawe, "A quantitative measure of fairness and discrimination for
       resource allocation in shared computer systems", DEC-TR-301, 1984 (not read).
    """
    users = trace.tasks.attributes.get("user")
    if users is None:
        return float("nan")
    slow = slowdown(trace, SLOWDOWN_BOUND_S)
    known = (users.codes >= 0) & ~np.isnan(slow)
    count = np.bincount(users.codes[known])
    mean = np.bincount(users.codes[known], slow[known])[count > 0] / count[count > 0]
    return float(mean.sum() ** 2 / (len(mean) * (mean**2).sum())) if len(mean) else float("nan")
