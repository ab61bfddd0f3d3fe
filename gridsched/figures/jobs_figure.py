"""Widths and run times of parallel jobs, and how much of a machine they ask for over time."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullFormatter
from numpy.typing import NDArray

from gridsched.figures.axes import counts_axis, number_of_bins, plain_numbers
from gridsched.figures.figure_file import MANY_STEPS, PLAIN, new_figure
from gridsched.figures.table import Drawn, register_figure
from gridsched.workloads.traces.job_table import JobTable

MAX_BINS = 60
HOUR_S = 3600
#: Time is told in the first of these of which there are three.
TIME_UNITS = ((24 * HOUR_S, "d"), (HOUR_S, "h"))


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
    both = np.concatenate([jobs.run_time_s, asked])
    least, most = (both.min(), both.max()) if len(both) else (1.0, 1.0)
    n_bins = number_of_bins(len(jobs), MAX_BINS)
    edges = np.geomspace(least, max(most, least * 1.1), n_bins + 1)
    edges[-1] = max(edges[-1], most)
    run, _ = np.histogram(jobs.run_time_s, edges)
    axes.stairs(run, edges, fill=True, label="run time", **PLAIN)
    if len(asked):
        requested, _ = np.histogram(asked, edges)
        axes.stairs(requested, edges, color="black", linestyle="--", label="requested time")
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    axes.set_xscale("log")
    plain_numbers(axes.xaxis)
    axes.xaxis.set_minor_formatter(NullFormatter())
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
    axes.set_ylim(bottom=0.0)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.set_xlabel(f"Since the first submission [{unit_of_time}]")
    axes.set_ylabel("Node-hours submitted so far")
    axes.grid()
    for axis in (axes.xaxis, axes.yaxis):
        plain_numbers(axis)
