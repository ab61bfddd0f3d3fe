"""Schedules of the jobs of one log: how long jobs waited, and how many cores were busy over time."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from gridsched.arrays import Floats
from gridsched.figures.axes import time_axis
from gridsched.figures.figure_file import PlottedFigure, register_figure
from gridsched.figures.figure_style import legend_below, new_figure
from gridsched.metrics.run_metrics import waiting_time_s
from gridsched.model.trace import Trace

#: Color, line and width of each schedule; they differ in gray, too.
_STYLES = (("#000000", "-", 2.4), ("#c44e00", "-", 1.5), ("#2f6396", "--", 1.5), ("#6d9e3f", "-.", 1.5),
          ("#8a5a9e", ":", 1.9), ("#777777", (0, (5, 1, 1, 1, 1, 1)), 1.3))  # fmt: skip
#: Stretches over which busy cores are averaged.
_STRETCHES = 120


@register_figure("waits_and_use", "schedules", "Waits of jobs and cores in use, of several schedules of one log.")
def waits_and_use(schedules: Mapping[str, Trace]) -> PlottedFigure:
    """Draw the share of jobs that waited no longer than a time, and the share of cores in use over time.

    Parameters
    ----------
    schedules : mapping of str to Trace
        By their names; of the same jobs.
    """
    figure = new_figure(9.0, 3.8)
    left, right = figure.subplots(1, 2)
    rows: list[tuple[str, str, float, float]] = []
    end_s = max(trace.horizon_s for trace in schedules.values())
    longest_s = max(float(_waits_s(trace).max(initial=0.0)) for trace in schedules.values())
    edges = np.linspace(0.0, end_s, _STRETCHES + 1)
    handles = []
    for (name, trace), (color, line, width) in zip(schedules.items(), itertools.cycle(_STYLES)):
        wait_s = _waits_s(trace)
        share = np.arange(1, len(wait_s) + 1) / max(len(wait_s), 1)
        series_style = {"color": color, "linestyle": line, "linewidth": width, "label": name}
        handles += left.step(np.r_[0.0, wait_s], np.r_[0.0, share], where="post", **series_style)
        use = _use(trace, edges)
        right.stairs(use, edges, baseline=None, **series_style)
        rows += [("waits", name, x, y) for x, y in zip(wait_s.tolist(), share.tolist(), strict=True)]
        rows += [("use", name, x, y) for x, y in zip(edges[:-1].tolist(), use.tolist(), strict=True)]
    for axes, last in ((left, longest_s), (right, end_s)):
        time_axis(axes, last)
        axes.set_ylim(0.0, 1.02)
    left.set_xlabel(f"Wait {left.get_xlabel()[left.get_xlabel().find('[') :]}")
    left.set_ylabel("Share of jobs that waited no longer")
    right.set_ylabel("Share of cores in use")
    legend_below(figure, handles)
    columns = ("panel", "schedule", "time_s", "share")
    return PlottedFigure(figure, {name: [row[k] for row in rows] for k, name in enumerate(columns)})


def _waits_s(trace: Trace) -> Floats:
    """Return how long the jobs waited that started [s], ascending."""
    wait_s = waiting_time_s(trace)
    return np.sort(wait_s[~np.isnan(wait_s)])


def _use(trace: Trace, edges: Floats) -> Floats:
    """Return the share of cores in use in each stretch between two edges."""
    runs, cores = trace.executions, trace.n_cores
    size = int(trace.platform.cores.sum()) if len(trace.host_cores) else len(trace.platform)
    busy = np.zeros(len(edges) - 1)
    for start, end, n in zip(runs["start"], runs["end"], cores, strict=True):
        busy += n * np.maximum(np.minimum(end, edges[1:]) - np.maximum(start, edges[:-1]), 0.0)
    return busy / (size * np.diff(edges))
