"""Tasks, parallel jobs, and systems with task types: sizes, times, and when they are submitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from gridsched.analysis.texts import prefixed, time_unit
from gridsched.analysis.workload_statistics import GENERAL, SPECIAL, is_special_machine_type, is_special_task_type
from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.figures.axes import bin_edges, counts_in, plain_numbers, quantity_axis, time_axis
from gridsched.figures.figure_file import PlottedFigure, register_figure
from gridsched.figures.figure_style import new_figure
from gridsched.figures.power_figure import Curve, draw_curves
from gridsched.figures.series_styles import PLAIN
from gridsched.model.task_types import SystemWorkload, TaskTypes
from gridsched.model.tasks import Tasks
from gridsched.model.utility import UtilityFunctions
from gridsched.workloads.traces.job_table import JobTable

HOUR_S = 3600
#: Areas of the two kinds: they differ in brightness and hatching, too.
AREAS: dict[str, dict[str, Any]] = {
    kind: {"fill": True, "facecolor": face, "hatch": hatch, "edgecolor": "#303030"}
    for kind, face, hatch in ((GENERAL, "#2f6396", None), (SPECIAL, "#f0b65a", "///"))
}
#: Bars of arrivals in a figure, at most.
MAX_INTERVALS = 192
MAX_BINS = 40
#: More utility classes than this are drawn as their range only.
MAX_CURVES = 40
#: Points of each utility curve.
CURVE_POINTS = 301
#: Rows of the data file: panel, series, x, y.
Points = list[tuple[str, str, float, float]]


@register_figure("sizes", "tasks", "Sizes of tasks, and when they are submitted.")
def workload_overview(tasks: Tasks) -> PlottedFigure:
    """Draw how large the tasks are [flop] and, where times differ, when they come [s].

    Parameters
    ----------
    tasks : Tasks
    """
    times = tasks.submit_time_s
    arrive_over_time = len(tasks) > 0 and times[-1] > times[0]
    figure = new_figure(9.0 if arrive_over_time else 5.6, 3.6)
    panels = figure.subplots(1, 2 if arrive_over_time else 1, squeeze=False)[0]
    _draw_sizes(panels[0], tasks.flops)
    if arrive_over_time:
        _draw_submissions(panels[1], times)
    data = {"job_id": tasks.labels, "flops": tasks.flops, "submit_time_s": times}
    return PlottedFigure(figure, data)


def _draw_histogram(
    axes: Axes, edges: Floats, is_log: bool, label: str, *groups: tuple[Floats, dict[str, Any]], as_shares: bool = False
) -> list[Floats]:
    """Draw how many values of each group, or what share of them [%], lie in each bin; return that."""
    heights = []
    for values, series_style in groups:
        counts = counts_in(values, edges)
        heights.append(100 * counts / len(values) if as_shares else counts.astype(np.float64))
        axes.stairs(heights[-1], edges, **series_style)
    if is_log:
        axes.set_xscale("log")
    plain_numbers(axes.xaxis)
    axes.set_xlabel(label)
    return heights


def _draw_sizes(axes: Axes, flops: Floats) -> None:
    edges, is_log = bin_edges(flops, len(flops))
    factor, unit = prefixed("flop", float(edges[-1]))
    bars = flops / factor, {"fill": True, **PLAIN.patch()}
    (counts,) = _draw_histogram(axes, edges / factor, is_log, f"Size [{unit}]", bars)
    if len(flops):
        mean = float(flops.mean()) / factor
        axes.axvline(mean, color="black", linestyle="--", linewidth=1.0, label=f"mean {mean:,.4g} {unit}")
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0))
    quantity_axis(axes, "Tasks", 1.08 * float(counts.max(initial=0)), is_count=True)


def _draw_so_far(axes: Axes, times: Floats, amounts: ArrayLike, label: str) -> None:
    """Draw what has been submitted so far, of so much at each of the times."""
    so_far = np.append(0.0, np.cumsum(amounts))
    draw_curves(axes, np.append(0.0, times), label, "", [Curve(so_far, "", is_steps=True)])
    axes.grid(axis="x")


def _draw_submissions(axes: Axes, times: Floats) -> None:
    """Draw how many tasks have been submitted so far."""
    _draw_so_far(axes, times, np.ones(len(times)), "")
    time_axis(axes, float(times[-1]))
    quantity_axis(axes, "Tasks submitted so far", 1.08 * len(times), is_count=True)


@register_figure("jobs", "jobs", "Widths and run times of parallel jobs, and when they come.")
def jobs_overview(jobs: JobTable) -> PlottedFigure:
    """Draw how wide and how long jobs are, and the node-hours submitted so far.

    Parameters
    ----------
    jobs : JobTable
    """
    figure = new_figure(12.0, 3.6)
    axes = figure.subplots(1, 3)
    _draw_widths(axes[0], jobs.width)
    _draw_run_times(axes[1], jobs)
    _draw_work(axes[2], jobs)
    data = {
        "job_id": jobs.ids,
        "submit_time_s": jobs.submit_time_s,
        "run_time_s": jobs.run_time_s,
        "width": jobs.width,
        "requested_time_s": jobs.requested_time_s,
    }
    return PlottedFigure(figure, data)


def _draw_widths(axes: Axes, width: Integers) -> None:
    """Draw how many jobs have up to 1, 2, 4, ... nodes."""
    steps = np.arange(int(np.ceil(np.log2(max(int(width.max(initial=1)), 1)))) + 1)
    place = np.ceil(np.log2(np.maximum(width, 1))).astype(int)
    counts = np.bincount(place, minlength=len(steps))
    axes.bar(steps, counts, **PLAIN.patch())
    ticks = steps[:: -(-len(steps) // 7)]
    axes.set_xticks(ticks, [f"{2**k:,}" for k in ticks.tolist()])
    axes.set_xlabel("Nodes (up to)")
    quantity_axis(axes, "Jobs", is_count=True)


def _draw_run_times(axes: Axes, jobs: JobTable) -> None:
    """Draw run times and, where known, requested times on one log axis."""
    asked = jobs.requested_time_s[np.isfinite(jobs.requested_time_s)]
    edges, _ = bin_edges(np.concatenate([jobs.run_time_s, asked]), len(jobs), wide=1.0)
    groups = [(jobs.run_time_s, {"fill": True, "label": "run time", **PLAIN.patch()})]
    if len(asked):
        groups.append((asked, {"color": "black", "linestyle": "--", "label": "requested time"}))
    _draw_histogram(axes, edges, True, "Time [s]", *groups)
    if len(asked):
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    quantity_axis(axes, "Jobs", is_count=True)


def _draw_work(axes: Axes, jobs: JobTable) -> None:
    """Draw the node-hours submitted so far, from the first submission on."""
    times = jobs.submit_time_s - (jobs.submit_time_s[0] if len(jobs) else 0.0)
    end_s = float(times[-1]) if len(jobs) else 0.0
    second, unit = time_unit(end_s)
    _draw_so_far(axes, times / second, jobs.width * jobs.run_time_s / HOUR_S, "Node-hours submitted so far")
    axes.set_xlim(0.0, end_s / second or 1.0)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.set_xlabel(f"Since the first submission [{unit}]")
    plain_numbers(axes.xaxis)


@register_figure("overview", "system", "Arrivals, times, energies and utility classes.")
def utility_workload(whole: SystemWorkload) -> PlottedFigure:
    """Draw arrivals over time, distributions of ETC and EEC, and the utility classes.

    Parameters
    ----------
    whole : SystemWorkload
        With task types and utility functions.

    Raises
    ------
    InputError
        If its tasks have none.
    """
    types, utility = whole.types, whole.tasks.utility
    if types is None or utility is None:
        raise InputError(
            f"{whole.tasks.name}: the tasks have no utility functions, which this figure shows. Draw the tasks alone."
        )
    figure = new_figure(9.6, 6.4)
    (arrivals, classes), (times, energies) = figure.subplots(2, 2)
    points = [
        *_draw_arrivals(arrivals, whole.tasks, types, whole.rules.horizon_s),
        *_draw_classes(classes, utility),
        *_draw_entries(times, types, types.etc, "ETC", "s"),
        *_draw_entries(energies, types, types.eec, "EEC", "J"),
    ]
    return PlottedFigure(figure, pd.DataFrame(points, columns=["panel", "series", "x", "y"]))


def _middles(edges: NDArray[Any]) -> Floats:
    return 0.5 * (edges[1:] + edges[:-1])


def arrival_interval_s(horizon_s: float) -> float:
    """Return a round length of time [s] that divides the horizon into a readable number."""
    steps = (1, 10, 60, 300, 600, 900, 1800, 3600, 7200, 21_600, 86_400)
    enough = (step for step in steps if horizon_s / step <= MAX_INTERVALS)
    return float(next(enough, horizon_s / MAX_INTERVALS))


def _draw_arrivals(axes: Axes, tasks: Tasks, types: TaskTypes, horizon_s: float | None) -> Points:
    """Draw tasks per hour, task types of special machines above the others."""
    last = float(tasks.submit_time_s[-1]) if len(tasks) else 0.0
    horizon_s = max(horizon_s or 0.0, last, 1.0)
    step = arrival_interval_s(horizon_s)
    # rounding of the horizon must not add an interval of no length
    edges = np.arange(int(np.ceil(horizon_s / step - 1e-9)) + 1) * step
    edges[-1] = horizon_s
    special = is_special_task_type(types)[tasks.task_type]
    below, points = np.zeros(len(edges) - 1), Points()
    for kind, rows in ((GENERAL, ~special), (SPECIAL, special)):
        if rows.any():
            rate = np.histogram(tasks.submit_time_s[rows], edges)[0] * 3600.0 / np.diff(edges)
            series_style = AREAS[kind] | {"linewidth": 0.4, "label": f"{kind} task types"}
            axes.stairs(below + rate, edges / 3600, baseline=below, **series_style)
            points += [("arrivals_per_h_over_h", kind, *p) for p in zip(_middles(edges) / 3600, rate, strict=True)]
            below = below + rate
    axes.set_title(f"Arrivals, per {_interval_name(step)}")
    axes.set_xlabel("Time [h]")
    axes.set_xlim(0, horizon_s / 3600)
    if horizon_s > 12 * 3600:
        axes.xaxis.set_major_locator(MaxNLocator(9, steps=[1, 1.2, 2.4, 6, 10]))
    quantity_axis(axes, "Tasks [1/h]", 1.25 * float(below.max(initial=0)))
    if points:
        axes.legend(loc="upper right", ncols=2)
    return points


def _interval_name(step: float) -> str:
    for size, name in ((86_400, "day"), (3600, "h"), (60, "min")):
        if step >= size and step % size == 0:
            return f"{step / size:g} {name}"
    return f"{step:g} s"


def _draw_entries(axes: Axes, types: TaskTypes, matrix: Floats, name: str, unit: str) -> Points:
    """Draw how often each size is among the matrix entries of P-state 0."""
    special = is_special_machine_type(types)
    groups = [
        (kind, matrix[:, chosen, 0][np.isfinite(types.etc[:, chosen, 0])])
        for kind, chosen in ((GENERAL, ~special), (SPECIAL, special))
    ]
    groups = [(kind, values) for kind, values in groups if len(values)]
    every = np.concatenate([values for _, values in groups]) if groups else np.ones(1)
    edges, is_log = bin_edges(every, len(every), most=MAX_BINS, wide=10.0)
    factor, shown_unit = prefixed(unit, float(edges[-1])) if unit == "J" else (1.0, unit)
    styles = (
        AREAS[kind]
        | {
            "linestyle": "-" if kind == GENERAL else "--",
            "alpha": 0.75,
            "label": f"{kind} machine types ({len(values):,} entries)",
        }
        for kind, values in groups
    )
    bars = [(values / factor, series_style) for (_, values), series_style in zip(groups, styles, strict=True)]
    label, panel = f"{name} [{shown_unit}]", f"share_percent_over_{name.lower()}_{unit.lower()}"
    shares = _draw_histogram(axes, edges / factor, is_log, label, *bars, as_shares=True)
    axes.set_title(f"{name} entries in P-state 0")
    quantity_axis(axes, "Share of the entries [%]", 1.3 * max((share.max() for share in shares), default=1.0))
    if groups:
        axes.legend(loc="upper right")
    middles = _middles(edges / factor) * factor
    return [
        (panel, kind, *pair)
        for (kind, _), share in zip(groups, shares, strict=True)
        for pair in zip(middles, share, strict=True)
    ]


def _draw_classes(axes: Axes, utility: UtilityFunctions) -> Points:
    """Draw each class's fraction of the priority over the time since arrival, and their mean."""
    urgency = float(np.median(utility.urgency)) if len(utility) else 0.0
    classes = utility.classes
    end = 1.08 * float(classes.start_time.max(initial=0.0))
    if end == 0:  # exponential classes only
        end = 5 / urgency if urgency > 0 else 1.0
    tau = np.linspace(0.0, end, CURVE_POINTS)
    curves = classes.fraction(np.arange(len(classes))[:, None], tau, urgency)
    series = {f"class {c}": curve for c, curve in enumerate(curves)}
    if len(series) > MAX_CURVES:
        series = {"lowest": curves.min(axis=0), "highest": curves.max(axis=0)}
        axes.fill_between(tau, *series.values(), color="#d6e2ee", label=f"range of {len(curves)} classes")
    else:
        labels = [f"each of {len(curves)} classes", *["_"] * len(curves)][: len(curves)]
        axes.plot(tau, curves.T, color="#2f6396", linewidth=0.7, alpha=0.7, label=labels)
    series["mean"] = curves.mean(axis=0)
    axes.plot(tau, series["mean"], color="black", linewidth=1.8, label="their mean")
    unit = {1.0: "s", 60.0: "min", 3600.0: "h"}.get(utility.urgency_unit_s, f"{utility.urgency_unit_s:g} s")
    axes.set_title(f"Utility classes, urgency {urgency:g} per {unit}")
    axes.set_xlabel(f"Finish minus arrival [{unit}]")
    axes.set_xlim(0, end)
    quantity_axis(axes, "Utility / priority", 1.02)
    axes.grid(axis="x")
    axes.legend(loc="upper right")
    panel = "fraction_over_urgency_units"
    return [(panel, name, *pair) for name, ys in series.items() for pair in zip(tau, ys, strict=True)]
