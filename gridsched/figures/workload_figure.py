"""Sizes of tasks, widths and run times of parallel jobs, and when they are submitted."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from gridsched.figures.axes import (
    bin_edges,
    counts_axis,
    counts_in,
    plain_numbers,
    prefixed,
    quantity_axis,
    time_axis,
)
from gridsched.figures.figure_file import new_figure
from gridsched.figures.looks import MANY_STEPS, PLAIN
from gridsched.figures.table import Drawn, register_figure
from gridsched.model.tasks import Tasks
from gridsched.workloads.traces.job_table import JobTable

HOUR_S = 3600
#: Time is told in the first of these of which there are three.
TIME_UNITS = ((24 * HOUR_S, "d"), (HOUR_S, "h"))


@register_figure("sizes", "tasks", "Sizes of tasks, and when they are submitted.")
def workload_overview(tasks: Tasks, *, title: str = "") -> Drawn:
    """Draw how large the tasks are [flop] and, where times differ, when they come [s].

    Parameters
    ----------
    tasks : Tasks
    title : str
    """
    times = tasks.submit_time_s
    arrive_over_time = len(tasks) > 0 and times[-1] > times[0]
    figure = new_figure(9.0 if arrive_over_time else 5.6, 3.6)
    panels = figure.subplots(1, 2 if arrive_over_time else 1, squeeze=False)[0]
    _draw_sizes(panels[0], tasks.flops)
    if arrive_over_time:
        _draw_submissions(panels[1], times)
    if title:
        figure.suptitle(title)
    data = {"job_id": tasks.labels, "flops": tasks.flops, "submit_time_s": times}
    return Drawn(figure, data)


def _draw_sizes(axes: Axes, flops: NDArray[np.float64]) -> None:
    edges, is_log = bin_edges(flops, len(flops))
    factor, unit = prefixed("flop", float(edges[-1]))
    edges = edges / factor
    counts = counts_in(flops / factor, edges)
    axes.stairs(counts, edges, fill=True, **PLAIN)
    if len(flops):
        mean = float(flops.mean()) / factor
        axes.axvline(
            mean, color="black", linestyle="--", linewidth=1.0, label=f"mean {mean:,.4g} {unit}"
        )
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0))
    if is_log:
        axes.set_xscale("log")
    plain_numbers(axes.xaxis)
    axes.set_xlabel(f"Size [{unit}]")
    counts_axis(axes, "Tasks", 1.08 * float(counts.max(initial=0)))


def _draw_submissions(axes: Axes, times: NDArray[np.float64]) -> None:
    """Draw how many tasks have been submitted so far."""
    so_far = np.arange(1, len(times) + 1)
    axes.step(
        np.append(0.0, times), np.append(0, so_far), where="post", color="black", linewidth=1.2,
        rasterized=len(times) > MANY_STEPS,
    )  # fmt: skip
    time_axis(axes, float(times[-1]))
    counts_axis(axes, "Tasks submitted so far", 1.08 * len(times))
    axes.grid(axis="x")


@register_figure("jobs", "jobs", "Widths and run times of parallel jobs, and when they come.")
def jobs_overview(jobs: JobTable, *, title: str = "") -> Drawn:
    """Draw how wide and how long jobs are, and the node-hours submitted so far.

    Parameters
    ----------
    jobs : JobTable
    title : str
    """
    figure = new_figure(12.0, 3.6)
    axes = figure.subplots(1, 3)
    _draw_widths(axes[0], jobs.width)
    _draw_run_times(axes[1], jobs)
    _draw_work(axes[2], jobs)
    if title:
        figure.suptitle(title)
    data = {
        "job_id": jobs.job, "submit_time_s": jobs.submit_time_s, "run_time_s": jobs.run_time_s,
        "width": jobs.width, "requested_time_s": jobs.requested_time_s,
    }  # fmt: skip
    return Drawn(figure, data)


def _draw_widths(axes: Axes, width: NDArray[np.int64]) -> None:
    """Draw how many jobs have up to 1, 2, 4, ... nodes."""
    steps = np.arange(int(np.ceil(np.log2(max(int(width.max(initial=1)), 1)))) + 1)
    place = np.ceil(np.log2(np.maximum(width, 1))).astype(int)
    counts = np.bincount(place, minlength=len(steps))
    axes.bar(steps, counts, **PLAIN)
    shown = steps[:: -(-len(steps) // 7)]
    axes.set_xticks(shown, [f"{2**k:,}" for k in shown.tolist()])
    axes.set_xlabel("Nodes (up to)")
    counts_axis(axes, "Jobs")


def _draw_run_times(axes: Axes, jobs: JobTable) -> None:
    """Draw run times and, where known, requested times on one log axis."""
    asked = jobs.requested_time_s[~np.isnan(jobs.requested_time_s)]
    edges, _ = bin_edges(np.concatenate([jobs.run_time_s, asked]), len(jobs), wide=1.0)
    run = counts_in(jobs.run_time_s, edges)
    axes.stairs(run, edges, fill=True, label="run time", **PLAIN)
    if len(asked):
        requested = counts_in(asked, edges)
        axes.stairs(requested, edges, color="black", linestyle="--", label="requested time")
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    axes.set_xscale("log")
    plain_numbers(axes.xaxis)
    axes.set_xlabel("Time [s]")
    counts_axis(axes, "Jobs")


def _draw_work(axes: Axes, jobs: JobTable) -> None:
    """Draw the node-hours submitted so far, from the first submission on."""
    hours = np.cumsum(jobs.width * jobs.run_time_s) / HOUR_S
    times = jobs.submit_time_s - (jobs.submit_time_s[0] if len(jobs) else 0.0)
    end_s = float(times[-1]) if len(jobs) else 0.0
    second, unit_of_time = next((each for each in TIME_UNITS if end_s >= 3 * each[0]), (1, "s"))
    axes.step(
        np.append(0.0, times / second), np.append(0.0, hours), where="post",
        color="black", linewidth=1.2, rasterized=len(times) > MANY_STEPS,
    )  # fmt: skip
    axes.set_xlim(0.0, end_s / second or 1.0)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.set_xlabel(f"Since the first submission [{unit_of_time}]")
    quantity_axis(axes, "Node-hours submitted so far")
    axes.grid(axis="x")
    plain_numbers(axes.xaxis)
