"""Metrics of parts of a run: of a window of time, and of groups of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.arrays import Floats, Integers
from gridsched.energy import busy_energy_j, grid_energy_between, task_energy_j
from gridsched.errors import InputError, did_you_mean
from gridsched.metrics.run_metrics import (
    SLOWDOWN_BOUND_S,
    flow_time_s,
    makespan_s,
    mean_of_finished,
    slowdown,
    waiting_time_s,
)
from gridsched.model.estimates import node_amounts
from gridsched.model.signals import EVEN, Signal
from gridsched.model.tasks import CORES
from gridsched.model.timeline import spread_evenly
from gridsched.model.trace import ExecutionEnd, TaskState, Trace
from gridsched.model.utility import UtilityFunctions
from gridsched.power import TracePower, trace_power

# ----------------------
# Utility and energy of a run: of all of it, of its window, and of the periods of its budget


#: A series may have so many steps.
MOST_STEPS = 1_000_000


def utility_earned(trace: Trace) -> Floats:
    """Utility of each task at its finish (paper 000, II-C); 0 if it did not finish.

    Returns
    -------
    ndarray of float64, shape (tasks,)

    Raises
    ------
    InputError
        If the tasks have no utility functions.
    """
    functions, flow = _functions(trace), flow_time_s(trace)
    done, earned = np.flatnonzero(~np.isnan(flow)), np.zeros(len(flow))
    earned[done] = functions.value(done, flow[done])
    return earned


def _functions(trace: Trace) -> UtilityFunctions:
    if trace.tasks.utility is None:
        raise InputError(f"{trace.tasks.name}: the tasks have no utility functions.")
    return trace.tasks.utility


def utility_possible(trace: Trace) -> float:
    """Utility of all tasks if each finished the moment it arrived: the sum of priorities."""
    return float(_functions(trace).priority.sum())


def utility_possible_between(trace: Trace, window_s: tuple[float, float], shortest_s: Floats) -> float:
    """Utility if each task that arrives in an interval ran at once where it is fastest.

    The maximum system utility of paper 001, section 4.4.2.

    Parameters
    ----------
    trace : Trace
    window_s : tuple of float
        Begin and end [s].
    shortest_s : ndarray of float64, shape (tasks,)
        Shortest run times [s]; infinite where a task can run nowhere.
    """
    arrival = trace.tasks.submit_time_s
    arrived = np.flatnonzero((arrival >= window_s[0]) & (arrival < window_s[1]))
    return float(_functions(trace).value(arrived, shortest_s[arrived]).sum())


def utility_between(trace: Trace, edges: Floats) -> Floats:
    """Utility earned between one time and the next, prorated (algorithms B7).

    A task that runs from s to e earns in an interval the share of its utility that the interval
    has of [s, e]; s and e are those of the copy that finished it.

    Parameters
    ----------
    trace : Trace
    edges : ndarray of float64, shape (intervals + 1,)
        Ascending times [s].

    Returns
    -------
    ndarray of float64, shape (intervals,)
    """
    done = trace.of_outcome(ExecutionEnd.FINISHED)
    return spread_evenly(done["start"], done["end"], utility_earned(trace)[done["task"]], edges)


# ---------------------------------------------------------------------- windows and periods


def energy_in(
    trace: Trace, intervals: Sequence[tuple[float, float]], weights: Signal = EVEN, power: TracePower | None = None
) -> Floats:
    """Energy of all computing hosts in each of the intervals [J], which may overlap.

    A joule counts what `weights` say; `power` is `trace_power` of the trace, where it is known.
    """
    if weights.sites:
        power = trace_power(trace) if power is None else power
        return np.sum(
            [
                energy_in(trace, intervals, each, replace(power, watts=np.where(rows, power.watts, 0.0)))
                for each, rows in weights.by_site(power.timeline.host)
            ],
            axis=0,
        )
    edges = np.unique(np.array(intervals, dtype=np.float64))
    if len(edges) and not weights.is_even:
        edges = np.union1d(edges, weights.stretches(edges.item(0), edges.item(-1))[0])
    parts = np.append(grid_energy_between(trace, edges, power) * weights.at(edges[:-1]), 0.0)
    return np.array([parts[(edges >= begin) & (edges < end)].sum() for begin, end in intervals])


def window_series(
    trace: Trace, window_s: tuple[float, float], step_s: float = 1200.0, power: TracePower | None = None
) -> dict[str, Floats]:
    """Energy and prorated utility from the begin of a window on, step by step.

    Parameters
    ----------
    trace : Trace
    window_s : tuple of float
        Begin and end [s].
    step_s : float
        Length of a step [s]; the last one ends with the window. Paper 000, fig. 7: 20 min.
    power : TracePower, optional
        `trace_power` of the trace, where the caller has it already.

    Returns
    -------
    dict of str to ndarray of float64, shape (steps + 1,)
        ``time_s``; ``energy_j`` and ``utility``, 0 at the begin and the window's total at its end.
        Without utility functions no utility is earned.

    Raises
    ------
    InputError
        If the window ends before it begins, or has too many steps.
    """
    begin, end = window_s
    if not (begin < end < np.inf and end - begin <= MOST_STEPS * step_s < np.inf):
        raise InputError(
            f"Window [{begin:g}, {end:g}] s in steps of {step_s:g} s: it must end after it begins "
            f"and have 1 to {MOST_STEPS:,} steps."
        )
    steps = max(1, int(np.ceil((end - begin) / step_s * (1 - 1e-12))))
    time = np.append(begin + step_s * np.arange(steps), end)
    earned = np.zeros(steps) if trace.tasks.utility is None else utility_between(trace, time)
    return {"time_s": time, "energy_j": _so_far(grid_energy_between(trace, time, power)), "utility": _so_far(earned)}


def _so_far(parts: Floats) -> Floats:
    return np.append(0.0, np.cumsum(parts))


def period_intervals(periods: NDArray[np.void]) -> list[tuple[float, float]]:
    """Begin and end of each period of the energy budget [s]."""
    return list(zip(periods["start"].tolist(), periods["end"].tolist(), strict=True))


# ----------------------
# Jobs of a run by who submitted them, where they ran, and how large they are; fairness among users


#: What jobs may be grouped by, beside the attributes that a log tells.
PARTITION, SIZE = "partition", "size"
HOUR_S = 3600.0


def groups_of(trace: Trace) -> list[str]:
    """Return what the jobs of a trace can be grouped by."""
    attributes = [name for name, each in trace.tasks.attributes.items() if each.names]
    parted = [PARTITION] if trace.platform.partitions else []
    return list(dict.fromkeys([*parted, *attributes, SIZE]))


def group_of(trace: Trace, by: str) -> tuple[list[str], Integers]:
    """Return the names of groups, and the group of each task; -1 where a log tells none.

    Raises
    ------
    InputError
        If jobs cannot be grouped so.
    """
    tasks, legal = trace.tasks, groups_of(trace)
    if by not in legal or tasks.are_serial:
        hint = did_you_mean(by, legal)
        raise InputError(f"{tasks.name}: its jobs have no {by!r} to go by. {hint}Legal: {', '.join(legal)}.")
    if by == PARTITION and tasks.partition is not None:
        return [each.name for each in trace.platform.pools], tasks.partition
    if by == SIZE:
        power = np.ceil(np.log2(tasks.size)).astype(np.int64)
        names = [f"up to {2**k:,}" for k in range(int(power.max(initial=0)) + 1)]
        return names, power
    attribute = tasks.attributes[by]
    return list(attribute.names), attribute.codes


def execution_energy_j(trace: Trace, share_idle: str) -> Floats:
    """Return the energy that each execution is charged [J], shape (executions,).

    Parameters
    ----------
    trace : Trace
    share_idle : {"cores", "node"}
        The idle power of a busy node is shared by the cores that are busy, or left to the node:
        then the shares and the nodes' idle power sum to what the nodes draw.
    """
    return busy_energy_j(trace) if share_idle == "cores" else task_energy_j(trace)


def group_rows(trace: Trace, by: str, fair_start_s: Floats, share_idle: str = "cores") -> list[dict[str, Any]]:
    """Return a row for each group of jobs, those of no group last.

    Parameters
    ----------
    trace : Trace
    by : str
        One of `groups_of`.
    fair_start_s : ndarray of float64, shape (tasks,)
        When each job starts under FCFS [s]; nan where it never does.
    share_idle : {"cores", "node"}

    Returns
    -------
    list of dict
        ``group``, ``jobs``, ``finished``, ``core_hours`` (of whole nodes: node hours),
        ``mean_waiting_s``, ``mean_bounded_slowdown``, ``unfairness_s`` (the mean time that jobs
        start later than under FCFS), ``energy_j``; of partitions ``utilisation_NAME`` of each
        resource: what jobs took of it over what there is, until the makespan's end.
    """
    names, group = group_of(trace, by)
    runs, wait = trace.executions, waiting_time_s(trace)
    slow = slowdown(trace, SLOWDOWN_BOUND_S)
    late = np.maximum(trace.tasks.submit_time_s + wait - fair_start_s, 0.0)
    spent = (runs["end"] - runs["start"]) * trace.n_cores
    energy = execution_energy_j(trace, share_idle)
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
            "mean_waiting_s": mean_of_finished(wait[own]),
            "mean_bounded_slowdown": mean_of_finished(slow[own]),
            "unfairness_s": mean_of_finished(late[own]),
            "energy_j": float(energy[ran].sum()),
        }
        if by == PARTITION and trace.tasks.demand is not None:
            row |= _utilisations(trace, k, ran)
        rows.append(row)
    return rows


def _utilisations(trace: Trace, partition: int, ran: Any) -> dict[str, float]:
    """Return what jobs of a partition took of each resource over what its nodes have, by key."""
    runs, tasks, makespan = trace.executions, trace.tasks, makespan_s(trace)
    if not makespan:
        return {}
    hosts = list(trace.platform.pools[partition].hosts)
    there = node_amounts(trace.platform, tasks.resources)[hosts].sum(axis=0)
    each = tasks.shared.demand[runs["task"][ran]] * tasks.shared.width[runs["task"][ran], None]
    taken = (each * (runs["end"] - runs["start"])[ran, None]).sum(axis=0)
    shares = taken / np.maximum(there, 1) / makespan
    return {f"utilisation_{name}": float(share) for name, share in zip(tasks.resources, shares, strict=True) if share}


def utilisation_keys(rows: list[dict[str, Any]]) -> list[str]:
    """Return the keys of utilisations that any row has, cores first."""
    first = f"utilisation_{CORES}"
    keys = {key for row in rows for key in row if key.startswith("utilisation_")}
    return sorted(keys, key=lambda key: (key != first, key))


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
    told = (users.codes >= 0) & ~np.isnan(slow)
    count = np.bincount(users.codes[told])
    mean = np.bincount(users.codes[told], slow[told])[count > 0] / count[count > 0]
    return float(mean.sum() ** 2 / (len(mean) * (mean**2).sum())) if len(mean) else float("nan")
