"""Sizes of a workload's tasks, and when they are submitted."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from gridsched.figures.axes import counts_axis, number_of_bins, plain_numbers
from gridsched.figures.figure_file import (
    MANY_STEPS,
    PLAIN,
    new_figure,
    prefixed,
    time_axis,
)
from gridsched.figures.table import Drawn, register_figure
from gridsched.model.tasks import Tasks

#: Sizes that span more than this factor are counted in bins of equal ratio, on a log axis.
WIDE_RANGE = 100.0
MAX_BINS = 60


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


def size_bins(flops: NDArray[np.float64]) -> tuple[NDArray[np.float64], bool]:
    """Return the edges [flop] of a histogram of the sizes, and whether they grow by a ratio.

    Equal sizes, and none at all, give one bin.
    """
    least, largest = (float(flops.min()), float(flops.max())) if len(flops) else (1.0, 1.0)
    if largest <= least * (1 + 1e-9):
        return np.array([0.5 * least, 1.5 * least]), False
    n = number_of_bins(len(flops), MAX_BINS)
    if largest > WIDE_RANGE * least:
        return np.geomspace(least, largest, n + 1), True
    return np.linspace(least, largest, n + 1), False


def _draw_sizes(axes: Axes, flops: NDArray[np.float64]) -> None:
    edges, is_log = size_bins(flops)
    factor, unit = prefixed("flop", float(edges[-1]))
    edges = edges / factor
    # rounding must not push the smallest or largest size out of the outer bins
    counts, _ = np.histogram(np.clip(flops / factor, edges[0], edges[-1]), edges)
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
    axes.set_ylim(0.0, 1.08 * float(counts.max(initial=0)) or 1.0)
    counts_axis(axes, "Tasks")


def _draw_submissions(axes: Axes, times: NDArray[np.float64]) -> None:
    """Draw how many tasks have been submitted so far."""
    so_far = np.arange(1, len(times) + 1)
    axes.step(
        np.append(0.0, times), np.append(0, so_far), where="post", color="black", linewidth=1.2,
        rasterized=len(times) > MANY_STEPS,
    )  # fmt: skip
    time_axis(axes, float(times[-1]))
    axes.set_ylim(0.0, 1.08 * len(times))
    counts_axis(axes, "Tasks submitted so far")
    axes.grid(axis="x")
