"""What a run is judged by: one function per metric, units in the names.

A mean or maximum over no tasks is nan; counts, times and energies of nothing are 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gridsched.energy import HostEnergy, grid_energy_between, trace_energy
from gridsched.errors import InputError
from gridsched.model.timeline import spread_evenly
from gridsched.model.trace import ExecutionEnd, TaskState, Trace

Floats = NDArray[np.float64]

#: A series may have so many steps.
MOST_STEPS = 1_000_000


# ---------------------------------------------------------------------- the whole run


def makespan_s(trace: Trace) -> float:
    """Last finish of a task minus first submission [s]; 0 if no task finished.

    The meaning of Batsim 5; Batsim 4 used the last finish alone.
    """
    finish = trace.of_outcome(ExecutionEnd.FINISHED)["end"]
    if not len(finish):
        return 0.0
    return float(finish.max() - trace.tasks.submit_time_s.min())


def busy_time_s(trace: Trace) -> float:
    """Time cores spent executing, summed over all executions, cancelled ones too [s]."""
    return float(np.sum(trace.executions["end"] - trace.executions["start"]))


def useful_flops(trace: Trace) -> float:
    """Work of executions that finished their task [flop]."""
    useful = trace.executions["outcome"] == ExecutionEnd.FINISHED
    return float(trace.executed_flops()[useful].sum())


def wasted_flops(trace: Trace) -> float:
    """Work of executions that were cancelled, killed or failed [flop] (algorithm A2, WQR)."""
    wasted = trace.executions["outcome"] != ExecutionEnd.FINISHED
    return float(trace.executed_flops()[wasted].sum())


def waste_ratio(trace: Trace) -> float:
    """Wasted work over all executed work, in [0, 1]; 0 if nothing was executed."""
    wasted, useful = wasted_flops(trace), useful_flops(trace)
    return wasted / (useful + wasted) if wasted else 0.0


def hosts_used(trace: Trace) -> int:
    """Number of hosts that executed anything."""
    return len(np.unique(trace.executions["host"]))


def count_in_state(trace: Trace, *states: TaskState) -> int:
    """Number of tasks that ended in one of `states`."""
    return int(np.isin(trace.final_state, states).sum())


# ---------------------------------------------------------------------- each task


def deciding_execution(trace: Trace) -> NDArray[np.int64]:
    """The execution that tells of each task, -1 if it never started, shape (tasks,).

    The copy that finished the task, otherwise the one that started last. A task's start, waiting
    time and host are this copy's, so that waiting time + execution time = flow time.
    """
    runs = trace.executions
    chosen = np.full(len(trace.tasks), -1, dtype=np.int64)
    chosen[runs["task"]] = np.arange(len(runs))  # in order of start: the last one stays
    done = np.flatnonzero(runs["outcome"] == ExecutionEnd.FINISHED)
    chosen[runs["task"][done]] = done
    return chosen


def _of_deciding(trace: Trace, column: str) -> Floats:
    """A column of each task's deciding execution, nan where it never started."""
    chosen = deciding_execution(trace)
    values = np.full(len(chosen), np.nan)
    values[chosen >= 0] = trace.executions[column][chosen[chosen >= 0]]
    return values


def waiting_time_s(trace: Trace) -> Floats:
    """Submission to the start of the deciding execution [s], nan if never started."""
    return _of_deciding(trace, "start") - trace.tasks.submit_time_s


def execution_time_s(trace: Trace) -> Floats:
    """Length of the deciding execution [s], nan if never started."""
    return _of_deciding(trace, "end") - _of_deciding(trace, "start")


def flow_time_s(trace: Trace) -> Floats:
    """Submission to finish [s] (turnaround time), nan if the task did not finish."""
    return trace.finish_time_s - trace.tasks.submit_time_s


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


# ---------------------------------------------------------------------- utility


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
    if trace.tasks.utility is None:
        raise InputError(f"{trace.tasks.name}: the tasks have no utility functions.")
    flow = flow_time_s(trace)
    done, earned = np.flatnonzero(~np.isnan(flow)), np.zeros(len(flow))
    earned[done] = trace.tasks.utility.value(done, flow[done])
    return earned


def utility_possible(trace: Trace) -> float:
    """Utility of all tasks if each finished the moment it arrived: the sum of priorities."""
    return float(trace.tasks.utility.priority.sum())


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


def energy_between(trace: Trace, begin_s: float, end_s: float) -> float:
    """Energy of all computing hosts in an interval [J], by the model, exact.

    Parameters
    ----------
    trace : Trace
    begin_s, end_s : float
        Begin and end of the interval [s].
    """
    return float(_energy_in(trace, [(begin_s, end_s)])[0])


def _energy_in(trace: Trace, intervals: Sequence[tuple[float, float]]) -> Floats:
    """Energy of all computing hosts in each of the intervals [J], which may overlap."""
    edges = np.unique(np.array(intervals, dtype=np.float64))
    parts = np.append(grid_energy_between(trace, edges), 0.0)
    return np.array([parts[(edges >= begin) & (edges < end)].sum() for begin, end in intervals])


def window_series(
    trace: Trace, window_s: tuple[float, float], step_s: float = 1200.0
) -> dict[str, Floats]:
    """Energy and prorated utility from the begin of a window on, step by step.

    Parameters
    ----------
    trace : Trace
    window_s : tuple of float
        Begin and end [s].
    step_s : float
        Length of a step [s]; the last one ends with the window. Paper 000, fig. 7: 20 min.

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
    return {
        "time_s": time,
        "energy_j": _so_far(grid_energy_between(trace, time)),
        "utility": _so_far(earned),
    }


def _so_far(parts: Floats) -> Floats:
    return np.append(0.0, np.cumsum(parts))


def carried_over_energy(trace: Trace, energy: HostEnergy) -> Floats:
    """Energy that executions from before each period drew in it, shape (periods,) [J].

    Each execution's energy is prorated over its time (algorithms B7).
    """
    runs = trace.executions
    carried = np.zeros(len(trace.periods))
    for k, (begin, end) in enumerate(_bounds(trace.periods)):
        over = (runs["start"] < begin) & (runs["end"] > begin)
        started, ended = runs["start"][over], runs["end"][over]
        edges = np.array([begin, end])
        carried[k] = spread_evenly(started, ended, energy.execution_j[over], edges)[0]
    return carried


def _bounds(periods: NDArray[np.void]) -> list[tuple[float, float]]:
    return list(zip(periods["start"].tolist(), periods["end"].tolist(), strict=True))


def utility_values(
    trace: Trace, energy: HostEnergy, window_s: tuple[float, float] | None
) -> dict[str, float | int]:
    """Return what `summary` adds where there are utility functions, a window, or a budget.

    What a period drew is taken from the records alone, not from the controller's account.
    """
    values: dict[str, float | int] = {}
    has_utility, periods = trace.tasks.utility is not None, trace.periods
    intervals = _bounds(periods) + ([] if window_s is None else [window_s])
    drawn = _energy_in(trace, intervals) if intervals else np.zeros(0)
    if has_utility:
        values["utility"] = float(utility_earned(trace).sum())
        values["utility_possible"] = utility_possible(trace)
    if window_s is not None:
        if has_utility:
            values["window_utility"] = float(utility_between(trace, np.array(window_s))[0])
        values["window_energy_j"] = float(drawn[-1])
    if has_utility or len(periods):
        values["tasks_postponed"] = int(np.count_nonzero(trace.times_postponed))
    if len(periods):
        carried = carried_over_energy(trace, energy)
        excess = drawn[: len(periods)] - periods["budget_j"] - carried
        values["budget_excess_j"] = float(excess.max(initial=0.0))
        values["carried_over_j"] = float(carried.max())
    return values


# ---------------------------------------------------------------------- all in one row


def summary(
    trace: Trace,
    energy: HostEnergy | None = None,
    window_s: tuple[float, float] | None = None,
) -> dict[str, float | int]:
    """Return every metric of a run under its name with its unit, in the order of a report.

    Parameters
    ----------
    trace : Trace
    energy : HostEnergy, optional
        `trace_energy` of the same trace, where the caller has it already.
    window_s : tuple of float, optional
        Begin and end of the time that the ``window_`` metrics cover [s].

    Returns
    -------
    dict
        With utility functions also ``utility``, ``utility_possible`` and ``tasks_postponed``;
        with a window ``window_energy_j`` and ``window_utility``; with a budget
        ``tasks_postponed``, ``carried_over_j`` (the most that executions from before a period
        drew in it) and ``budget_excess_j`` (the most that a period drew beyond its budget and
        beyond that, at least 0).

    Notes
    -----
    Energies are the model's and count the computing hosts over [0, horizon]; waiting time, flow
    time and slowdown count finished tasks. Wall times are not in it: it repeats exactly.
    """
    energy = trace_energy(trace) if energy is None else energy
    finished = ~np.isnan(trace.finish_time_s)
    waiting = np.where(finished, waiting_time_s(trace), np.nan)
    flow, slow = flow_time_s(trace), slowdown(trace)
    return {
        "makespan_s": makespan_s(trace),
        "busy_time_s": busy_time_s(trace),
        "energy_model_j": energy.grid_total("total_j"),
        "energy_busy_j": energy.grid_total("busy_j"),
        "energy_idle_j": energy.grid_total("idle_j"),
        "energy_boot_j": energy.grid_total("boot_j"),
        "energy_off_j": energy.grid_total("off_j"),
        "energy_wasted_j": energy.grid_total("wasted_j"),
        "wasted_flops": wasted_flops(trace),
        "waste_ratio": waste_ratio(trace),
        "hosts_used": hosts_used(trace),
        "executions": len(trace.executions),
        "tasks": len(trace.tasks),
        "tasks_finished": count_in_state(trace, TaskState.FINISHED),
        "tasks_dropped": count_in_state(trace, TaskState.DROPPED),
        "tasks_rejected": count_in_state(trace, TaskState.REJECTED),
        "tasks_killed": count_in_state(trace, TaskState.KILLED),
        "tasks_failed": count_in_state(trace, TaskState.FAILED),
        "tasks_unfinished": count_in_state(trace, TaskState.UNFINISHED),
        "mean_waiting_time_s": mean_of_finished(waiting),
        "mean_flow_time_s": mean_of_finished(flow),
        "mean_slowdown": mean_of_finished(slow),
        "max_waiting_time_s": max_of_finished(waiting),
        "max_flow_time_s": max_of_finished(flow),
        "max_slowdown": max_of_finished(slow),
        "horizon_s": float(trace.horizon_s),
        "mapping_events": trace.mapping_events,
        **utility_values(trace, energy, window_s),
    }
