"""Utility and energy of a run: of all of it, of its window, and of the periods of its budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gridsched.arrays import Floats, distinct
from gridsched.energy import grid_energy_between
from gridsched.errors import InputError
from gridsched.metrics.run_metrics import flow_time_s
from gridsched.model.signals import EVEN, Signal
from gridsched.model.timeline import spread_evenly
from gridsched.model.trace import ExecutionEnd, Trace
from gridsched.model.utility import UtilityFunctions
from gridsched.power import TracePower, trace_power

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
    edges = distinct(np.array(intervals, dtype=np.float64))
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
