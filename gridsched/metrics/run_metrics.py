"""Makespan, work, times, chances and carbon of a run, from its records.

A mean or maximum over no tasks is nan; counts, times and energies of nothing are 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.energy import HostEnergy, trace_energy
from gridsched.model.timeline import time_tolerances
from gridsched.model.trace import ExecutionEnd, TaskState, Trace
from gridsched.power import TracePower

#: Bound of the bounded slowdown of parallel jobs [s] (D. G. Feitelson, L. Rudolph, "Metrics and
#: benchmarking for parallel job scheduling", JSSPP 1998; not read).
SLOWDOWN_BOUND_S = 10.0
#: Note name -> function that counts in a note of policies, called with the trace and the note.
COUNTS_OF_NOTES: dict[str, Callable[[Trace, Floats], dict[str, Floats]]] = {}
#: Equal parts of [0, 1] in which predicted chances are counted.
CHANCE_BINS = 20


def makespan_s(trace: Trace) -> float:
    """Last finish of a task minus first submission [s]; 0 if no task finished.

    The meaning of Batsim 5; Batsim 4 used the last finish alone. A job killed at its requested time counts.
    """
    finish = trace.executions["end"][trace.had_turn]
    if not len(finish):
        return 0.0
    return float(finish.max() - trace.tasks.submit_time_s.min())


def not_computing_time_s(trace: Trace) -> float:
    """Node-seconds beyond what nodes needed to compute at full speed [s], of jobs with profiles (`Trace.computed`).

    Of nodes that are shared, a job counts by its share of their cores.
    """
    execution, host = trace.placed()
    lasted = (trace.executions["end"] - trace.executions["start"])[execution]
    if len(trace.host_cores):
        lasted = lasted * trace.host_cores / trace.platform.cores[host]
    return float(np.maximum(lasted - trace.computed[:, 1], 0.0).sum())


def busy_time_s(trace: Trace) -> float:
    """Time cores (or nodes) spent executing, over all executions, cancelled ones too [s]."""
    length = trace.executions["end"] - trace.executions["start"]
    return float(np.sum(length * trace.n_cores if trace.is_parallel else length))


def lost_work_s(trace: Trace) -> float:
    """Time cores (or nodes) spent on executions that ended because their host went down [s]."""
    failed = trace.executions["outcome"] == ExecutionEnd.FAILED
    length = trace.executions["end"] - trace.executions["start"]
    return float(np.sum((length * trace.n_cores)[failed]))


def utilisation(trace: Trace) -> float:
    """Node-seconds executed over nodes times makespan, in [0, 1]; nan if no task finished.

    Where nodes are shared, cores are counted in the place of nodes. Counted from the first
    submission until the last finish, wasted executions too.
    """
    makespan = makespan_s(trace)
    if makespan <= 0:
        return float("nan")
    runs, last = trace.executions, trace.tasks.submit_time_s.min() + makespan
    length = np.maximum(np.minimum(runs["end"], last) - runs["start"], 0.0)
    size = int(trace.platform.cores.sum()) if len(trace.host_cores) else len(trace.platform.hosts)
    return float(np.sum(length * trace.n_cores) / (size * makespan))


def useful_flops(trace: Trace) -> float:
    """Work of executions that finished their task [flop]."""
    return float(trace.executed_flops()[trace.was_useful].sum())


def wasted_flops(trace: Trace) -> float:
    """Work of executions that were cancelled, killed or failed [flop] (algorithm A2, WQR)."""
    return float(trace.executed_flops()[~trace.was_useful].sum())


def waste_ratio(trace: Trace) -> float:
    """Wasted work over all executed work, in [0, 1]; 0 if nothing was executed."""
    wasted, useful = wasted_flops(trace), useful_flops(trace)
    return wasted / (useful + wasted) if wasted else 0.0


def hosts_used(trace: Trace) -> int:
    """Number of hosts that executed anything."""
    return int(np.count_nonzero(np.bincount(trace.placed_hosts)))


def count_in_state(trace: Trace, *states: TaskState) -> int:
    """Number of tasks that ended in one of `states`."""
    return int(np.isin(trace.final_state, states).sum())


def is_late(trace: Trace) -> Booleans:
    """Whether each task finished after its deadline, shape (tasks,).

    A finish in the deadline's instant is in time; a task without a deadline is never late.
    """
    deadline = trace.tasks.deadline_s
    if deadline is None:
        return np.zeros(len(trace.tasks), dtype=np.bool_)
    late: Booleans = trace.finish_time_s > deadline + time_tolerances(deadline)
    return late


def is_missed(trace: Trace) -> Booleans:
    """Whether each task is late or did not finish at all, shape (tasks,)."""
    missed: Booleans = is_late(trace) | (trace.final_state != TaskState.FINISHED)
    return missed


def mean_time_to_deadline_s(trace: Trace) -> float:
    """Mean time from submission to deadline [s] of the tasks that have one; nan if none has."""
    deadline = trace.tasks.deadline_s
    if deadline is None:
        return float("nan")
    given = (deadline - trace.tasks.submit_time_s)[np.isfinite(deadline)]
    return float(given.mean()) if len(given) else float("nan")


def deciding_execution(trace: Trace) -> Integers:
    """The execution that decides the metrics of each task, -1 if it never started, shape (tasks,).

    The copy that finished the task, or was killed at its requested time; else the one that started
    last. A task's start, waiting time and host are this copy's, so that waiting time + execution time =
    flow time.
    """
    runs = trace.executions
    chosen = np.full(len(trace.tasks), -1, dtype=np.int64)
    chosen[runs["task"]] = np.arange(len(runs))  # in order of start: the last one stays
    done = np.flatnonzero(trace.had_turn)
    chosen[runs["task"][done]] = done
    return chosen


def of_deciding(trace: Trace, column: str) -> Floats:
    """A column of each task's deciding execution, nan where it never started."""
    chosen = deciding_execution(trace)
    values = np.full(len(chosen), np.nan)
    values[chosen >= 0] = trace.executions[column][chosen[chosen >= 0]]
    return values


def waiting_time_s(trace: Trace) -> Floats:
    """Submission to the start of the deciding execution [s], nan if never started."""
    return of_deciding(trace, "start") - trace.tasks.submit_time_s


def execution_time_s(trace: Trace) -> Floats:
    """Length of the deciding execution [s], nan if never started."""
    return of_deciding(trace, "end") - of_deciding(trace, "start")


def flow_time_s(trace: Trace) -> Floats:
    """Submission to finish [s] (turnaround time), nan if the task did not finish.

    Of a job that was killed at its requested time, to that.
    """
    return trace.leave_time_s - trace.tasks.submit_time_s


def stretch(flow_s: Floats, run_s: Floats) -> Floats:
    """Flow time over execution time, at least 1; infinite if a task of no length waited.

    Parameters
    ----------
    flow_s, run_s : ndarray of float64
        Flow and execution times [s]; nan gives nan.
    """
    ratio = np.where(flow_s > 0, np.inf, np.where(np.isnan(flow_s), np.nan, 1.0))
    np.divide(flow_s, run_s, out=ratio, where=run_s > 0)
    return np.maximum(ratio, 1.0)


def slowdown(trace: Trace, bound_s: float = 0.0) -> Floats:
    """Stretch of each task, nan if it did not finish.

    Parameters
    ----------
    trace : Trace
    bound_s : float
        Executions shorter than this count as this long [s] (bounded slowdown; 10 s is common
        for parallel workloads); 0 bounds nothing.
    """
    return stretch(flow_time_s(trace), np.maximum(execution_time_s(trace), bound_s))


def mean_of_finished(values: Floats) -> float:
    """Mean of the values that are not nan; nan if there is none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def max_of_finished(values: Floats) -> float:
    """Largest of the values that are not nan; nan if there is none."""
    known = values[~np.isnan(values)]
    return float(known.max()) if len(known) else float("nan")


def chance_counts(trace: Trace, chance: Floats) -> dict[str, Floats]:
    """Count tasks by the chance to end in time that was predicted for them.

    Parameters
    ----------
    trace : Trace
    chance : ndarray of float64, shape (tasks,)
        Predicted chance of each task to meet its deadline; nan where none was predicted.

    Returns
    -------
    dict of str to ndarray of float64, shape (`CHANCE_BINS`,)
        ``chance_tasks``: tasks by chance; ``chance_sum``: the sum of their chances, which is how
        many are expected in time; ``chance_in_time``: how many were.

    Notes
    -----
    Only tasks whose deadline lies within the run count. Of others it is not known whether they
    would have met it, and those among them that did finish are the quick ones.
    """
    deadline = trace.tasks.deadline_s
    if deadline is None:
        none = np.zeros(CHANCE_BINS)
        return {"chance_tasks": none, "chance_sum": none, "chance_in_time": none}
    counted = np.flatnonzero(~np.isnan(chance) & (deadline <= trace.horizon_s))
    known = chance[counted]
    place = np.minimum((known * CHANCE_BINS).astype(np.int64), CHANCE_BINS - 1)
    in_time = ~is_missed(trace)[counted]

    def summed(weights: Floats) -> Floats:
        return np.bincount(place, weights, CHANCE_BINS).astype(np.float64)

    return {
        "chance_tasks": summed(np.ones(len(counted))),
        "chance_sum": summed(known),
        "chance_in_time": summed(in_time.astype(np.float64)),
    }


def series_of_notes(trace: Trace) -> dict[str, list[float]]:
    """Return what a run's notes are counted by, as lists of numbers that repeat exactly."""
    return {
        name: counts.tolist()
        for note, count in COUNTS_OF_NOTES.items()
        if note in trace.notes
        for name, counts in count(trace, trace.notes[note]).items()
    }


def trace_carbon(trace: Trace, power: TracePower | None = None) -> HostEnergy | None:
    """Return what every host emitted over the run [g], in the places of joules; None without an intensity.

    Parameters
    ----------
    trace : Trace
    power : TracePower, optional
        As for `trace_energy`.
    """
    return None if trace.carbon is None else trace_energy(trace, power, trace.carbon)


def data_times_s(trace: Trace) -> Floats:
    """Return how long the data of each pair took to the host on which they were needed [s], shape (pairs,).

    Pairs are `Tasks.dependencies`, by task. Data that pairs share were sent once to a host, and count for each of
    them; what stayed on its host took no time. Files that no task makes are of no pair.
    """
    if trace.tasks.dependencies is None:
        return np.zeros(0)
    pairs = trace.tasks.dependencies.by_task()
    places = zip(pairs.on.tolist(), pairs.item.tolist(), strict=True)
    keys = [(on, item if item >= 0 else -1 - pair) for pair, (on, item) in enumerate(places)]
    done = trace.of_outcome(ExecutionEnd.FINISHED)
    host = np.full(len(trace.tasks), -1)
    host[done["task"]] = done["host"]
    took = {
        (keys[sent["pair"]], int(sent["target"])): float(sent["end"] - sent["begin"])
        for sent in trace.transfers[trace.transfers["pair"] < len(keys)]
    }
    needed = zip(keys, host[pairs.task].tolist(), strict=True)
    return np.array([took.get(each, 0.0) for each in needed], dtype=np.float64)
