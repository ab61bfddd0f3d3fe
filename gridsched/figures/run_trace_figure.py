"""Energy, utility, power and tasks of one run, step by step (paper 000, fig. 7)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from gridsched.analysis.texts import prefixed
from gridsched.arrays import Floats, Integers
from gridsched.energy import grid_energy_between
from gridsched.errors import InputError
from gridsched.figures.axes import hours_axis, quantity_axis
from gridsched.figures.figure_file import new_figure
from gridsched.figures.looks import BUSY
from gridsched.figures.table import Drawn, register_figure
from gridsched.metrics import MOST_STEPS, utility_between
from gridsched.model.trace import ExecutionEnd, Trace

#: Length of a step in paper 000 [s]; runs of less than so many of them get as many shorter ones.
STEP_S, FEWEST_STEPS = 1200.0, 72
#: More boundaries than this would hide what lies between them.
MOST_BOUNDARIES = 60
TASK_CURVES = (("tasks_submitted", "submitted", "#000000", (0, (1, 1))), ("tasks_finished", "finished", BUSY.face, "-"))


@register_figure("trace", "run", "Energy, utility, power and tasks of a run, step by step.")
def run_trace(trace: Trace, *, step_s: float | None = None) -> Drawn:
    """Draw energy and utility so far, mean power, and tasks over time.

    Where there is an energy budget, energy and utility begin anew in each of its periods and
    the budgets are drawn as lines.

    Parameters
    ----------
    trace : Trace
    step_s : float, optional
        Length of a step [s]; default 20 min, or a 72nd of a run of less than a day.

    Raises
    ------
    InputError
        If the steps are no steps or too many.
    """
    steps = trace_steps(trace, step_s)
    panels = [_draw_energy, _draw_power, _draw_tasks]
    if "utility" in steps:
        panels.insert(1, _draw_utility)
    figure = new_figure(9.0, 1.0 + 1.7 * len(panels))
    rows = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, draw in zip(rows, panels, strict=True):
        draw(axes, steps)
        axes.grid(axis="x")
        _mark_boundaries(axes, trace)
    hours_axis(rows[-1], 0.0, float(steps["until_s"].iloc[-1]))
    figure.align_ylabels(rows)
    return Drawn(figure, steps)


def trace_steps(trace: Trace, step_s: float | None = None) -> pd.DataFrame:
    """Return what happened in each step of a run; steps begin anew with each budget period.

    Parameters
    ----------
    trace : Trace
    step_s : float, optional
        As for `run_trace` [s].

    Returns
    -------
    pandas.DataFrame
        ``from_s, until_s, period`` (-1 outside all), ``energy_j`` and ``utility`` so far in the
        period at ``until_s`` (without periods: in the run), ``budget_j`` (nan without a finite
        one), ``mean_power_w``, ``tasks_submitted``, ``tasks_started``, ``tasks_finished`` (in the
        step). Without utility functions ``utility`` is missing.
    """
    bounds, period = _segments(trace)
    edges, segment = _edges(bounds, _step(trace, step_s))
    begin, end = edges[:-1], edges[1:]
    joules = grid_energy_between(trace, edges)
    steps = {"from_s": begin, "until_s": end, "period": period[segment], "energy_j": _so_far(joules, segment)}
    if trace.tasks.utility is not None:
        steps["utility"] = _so_far(utility_between(trace, edges), segment)
    budget = np.append(trace.periods["budget_j"], np.nan)[period[segment]]
    if not trace.energy_weights.is_even:  # so much money buys no certain energy
        budget = np.full_like(budget, np.nan)
    runs = trace.executions
    finished = runs["end"][runs["outcome"] == ExecutionEnd.FINISHED]
    steps |= {
        "budget_j": np.where(np.isfinite(budget), budget, np.nan),
        "mean_power_w": joules / (end - begin),
        "tasks_submitted": _counts(trace.tasks.submit_time_s, edges),
        "tasks_started": _counts(trace.start_time_s, edges),
        "tasks_finished": _counts(finished, edges),
    }
    return pd.DataFrame(steps)


def _end(trace: Trace) -> float:
    """When the run ends [s]; an empty one is drawn as one of 1 s."""
    return float(trace.horizon_s) or 1.0


def _step(trace: Trace, step_s: float | None) -> float:
    end = _end(trace)
    if step_s is None:
        return min(STEP_S, end / FEWEST_STEPS)
    if not 0 < step_s < np.inf or end / step_s > MOST_STEPS:
        raise InputError(
            f"Steps of {step_s:g} s: they must be longer than 0 s, and at most {MOST_STEPS:,} in the run's {end:g} s."
        )
    return step_s


def _segments(trace: Trace) -> tuple[Floats, Integers]:
    """Return the times that cut the run into periods, and the period of each part (-1: none)."""
    end, periods = _end(trace), trace.periods
    bounds = np.concatenate([[0.0, end], periods["start"], periods["end"]])
    bounds = np.unique(bounds[(bounds >= 0) & (bounds <= end)])
    period = np.searchsorted(periods["start"], bounds[:-1], side="right") - 1
    inside = (period >= 0) & (bounds[:-1] < np.append(periods["end"], -np.inf)[period])
    return bounds, np.where(inside, period, -1)


def _edges(bounds: Floats, step_s: float) -> tuple[Floats, Integers]:
    """Return the bounds of all steps, and the segment that each step is in."""
    counts = np.maximum(np.ceil(np.diff(bounds) / step_s * (1 - 1e-12)), 1).astype(np.int64)
    parts = [begin + step_s * np.arange(n) for begin, n in zip(bounds[:-1], counts, strict=True)]
    return np.concatenate([*parts, bounds[-1:]]), np.repeat(np.arange(len(counts)), counts)


def _so_far(parts: Floats, segment: Integers) -> Floats:
    return pd.Series(parts).groupby(segment).cumsum().to_numpy()


def _counts(times: Floats, edges: Floats) -> Integers:
    return np.histogram(times[~np.isnan(times)], edges)[0]


def _draw_curve(axes: Axes, steps: pd.DataFrame, name: str, factor: float) -> None:
    """Draw a quantity so far; it begins at 0 in each period."""
    for _, part in steps.groupby((steps["period"].diff() != 0).cumsum()):
        time = np.append(part["from_s"].iloc[0], part["until_s"])
        axes.plot(time, np.append(0.0, part[name]) / factor, color=BUSY.face, linewidth=1.4)


def _draw_energy(axes: Axes, steps: pd.DataFrame) -> None:
    budget = steps["budget_j"].to_numpy()
    largest = max(steps["energy_j"].max(), float(np.nanmax(budget, initial=0.0)))
    factor, unit = prefixed("J", largest)
    _draw_curve(axes, steps, "energy_j", factor)
    known = ~np.isnan(budget)
    if known.any():
        axes.hlines(
            budget[known] / factor,
            steps["from_s"][known],
            steps["until_s"][known],
            color="black",
            linestyle="-",
            linewidth=1.0,
            label="budget of the period",
        )
        axes.legend(loc="lower right")
    quantity_axis(axes, f"Energy so far\n[{unit}]", 1.1 * largest / factor)


def _draw_utility(axes: Axes, steps: pd.DataFrame) -> None:
    _draw_curve(axes, steps, "utility", 1.0)
    quantity_axis(axes, "Utility so far")


def _draw_power(axes: Axes, steps: pd.DataFrame) -> None:
    factor, unit = prefixed("W", float(steps["mean_power_w"].max()))
    edges = np.append(steps["from_s"], steps["until_s"].iloc[-1])
    axes.stairs(
        steps["mean_power_w"] / factor, edges, fill=True, facecolor="#d6e2ee", edgecolor=BUSY.face, linewidth=0.8
    )
    quantity_axis(axes, f"Mean power\n[{unit}]")


def _draw_tasks(axes: Axes, steps: pd.DataFrame) -> None:
    edges = np.append(steps["from_s"], steps["until_s"].iloc[-1])
    for name, label, color, line in TASK_CURVES:
        axes.stairs(steps[name], edges, color=color, linestyle=line, linewidth=1.2, label=label, baseline=None)
    axes.legend(loc="upper right", ncols=2)
    most = float(steps[[name for name, *_ in TASK_CURVES]].to_numpy().max())
    quantity_axis(axes, "Tasks\nin the step", 1.25 * max(most, 1.0))


def _mark_boundaries(axes: Axes, trace: Trace) -> None:
    """Mark where periods of the budget begin."""
    starts = trace.periods["start"]
    if len(starts) <= MOST_BOUNDARIES:
        for start in starts[(starts > 0) & (starts < _end(trace))]:
            axes.axvline(start, color="#606060", linewidth=0.9, linestyle=(0, (6, 3)))
