"""Energy, utility, power and tasks of one run, step by step (paper 000, fig. 7)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from gridsched.analysis.texts import prefixed
from gridsched.arrays import Floats, Integers
from gridsched.energy import grid_energy_between
from gridsched.errors import InputError
from gridsched.figures.axes import quantity_axis
from gridsched.figures.figure_file import PlottedFigure, register_figure
from gridsched.figures.power_figure import Curve, draw_curves, finish_panels, stacked_panels
from gridsched.figures.series_styles import BUSY, IDLE
from gridsched.metrics.window_metrics import MOST_STEPS, utility_between
from gridsched.model.trace import ExecutionEnd, Trace

#: Length of a step in paper 000 [s]; runs of less than so many of them get as many shorter ones.
STEP_S, FEWEST_STEPS = 1200.0, 72
#: More boundaries than this would hide what lies between them.
MOST_BOUNDARIES = 60


@register_figure("trace", "run", "Energy, utility, power and tasks of a run, step by step.")
def run_trace(trace: Trace, *, step_s: float | None = None) -> PlottedFigure:
    """Draw energy and utility so far, mean power, and tasks over time.

    Where there is an energy budget, energy and utility begin again in each of its periods and
    the budgets are drawn as lines.

    Parameters
    ----------
    trace : Trace
    step_s : float, optional
        Length of a step [s]; default 20 min, or a 72nd of a run of less than a day.

    Raises
    ------
    InputError
        If the steps are not steps or too many.
    """
    steps = trace_steps(trace, step_s)
    edges = np.append(steps["from_s"], steps["until_s"].iloc[-1])
    so_far = {"energy_j": "J", "utility": ""} if "utility" in steps else {"energy_j": "J"}
    figure, panels = stacked_panels(4.4 + 1.7 * len(so_far), *[1] * (2 + len(so_far)))
    for axes, (name, unit) in zip(panels, so_far.items(), strict=False):
        _draw_so_far(axes, steps, name, unit)
    factor, unit = prefixed("W", float(steps["mean_power_w"].max()))
    watts = steps["mean_power_w"] / factor
    panels[-2].stairs(watts, edges, fill=True, facecolor=IDLE.face, edgecolor=BUSY.face, linewidth=0.8)
    quantity_axis(panels[-2], f"Mean power\n[{unit}]")
    last = steps.iloc[[*range(len(steps)), -1]]  # whose numbers hold to its end
    submitted = Curve(last["tasks_submitted"], "submitted", line=(0, (1, 1)), is_steps=True)
    finished = Curve(last["tasks_finished"], "finished", BUSY.face, is_steps=True)
    most = 1.1 * max(1.0, float(last[["tasks_submitted", "tasks_finished"]].to_numpy().max()))  # below the legend
    draw_curves(panels[-1], edges, "Tasks\nin the step", "", [submitted, finished], most)
    panels[-1].legend(loc="upper right", ncols=2)
    for axes in panels:
        axes.grid(axis="x")
        _mark_boundaries(axes, trace)
    finish_panels(figure, panels, float(edges[-1]), ())
    return PlottedFigure(figure, steps)


def trace_steps(trace: Trace, step_s: float | None = None) -> pd.DataFrame:
    """Return what happened in each step of a run; steps begin again with each budget period.

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


def _draw_so_far(axes: Axes, steps: pd.DataFrame, name: str, unit: str) -> None:
    """Draw a quantity so far, which begins at 0 in each period, and its budget, if there is one."""
    parts = [part for _, part in steps.groupby((steps["period"].diff() != 0).cumsum())]
    time = np.concatenate([[part["from_s"].iloc[0], *part["until_s"], np.nan] for part in parts])
    so_far = np.concatenate([[0.0, *part[name], np.nan] for part in parts])
    budgets = steps[steps["budget_j"].notna()] if name == "energy_j" else steps[:0]
    label, most = f"{name.partition('_')[0].capitalize()} so far", budgets["budget_j"].to_numpy().max(initial=0.0)
    factor, _ = draw_curves(axes, time, label, unit, [Curve(so_far, label, BUSY.face)], most)
    if len(budgets):
        heights, ends = budgets["budget_j"] / factor, (budgets["from_s"], budgets["until_s"])
        axes.hlines(heights, *ends, color="black", linewidth=1.0, label="budget of the period")
        axes.legend(handles=axes.collections, loc="lower right")


def _mark_boundaries(axes: Axes, trace: Trace) -> None:
    """Mark where periods of the budget begin."""
    starts = trace.periods["start"]
    if len(starts) <= MOST_BOUNDARIES:
        for start in starts[(starts > 0) & (starts < _end(trace))]:
            axes.axvline(start, color="#606060", linewidth=0.9, linestyle=(0, (6, 3)))
