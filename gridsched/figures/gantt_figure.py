"""Who computed what when: hosts as rows, executions as bars."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from gridsched.arrays import Booleans, Floats
from gridsched.figures.axes import time_axis
from gridsched.figures.figure_file import PlottedFigure, register_figure
from gridsched.figures.figure_style import legend_below, new_figure
from gridsched.figures.series_styles import BOOT, OFF, SHUTDOWN, SeriesStyle
from gridsched.model.dependencies import After
from gridsched.model.timeline import Bars, bars_of, host_timeline
from gridsched.model.trace import ExecutionEnd, Trace

MAX_HOST_LABELS = 45
MAX_TASK_LABELS = 300
#: Of more data between hosts than this only the largest are drawn; more than the first are lines without heads.
MANY_SENT, MOST_SENT = 120, 2000
#: Of more waits for tasks of other hosts that make no data none is drawn.
MOST_WAITS = 200
#: From here on bars are distinguished by brightness alone, have no outline and no hatching (of which
#: a pixel shows nothing), and are stored as pixels, also in SVG and PDF.
MANY_BARS = 4000

SENT = "#a5371b"
FINISHED = SeriesStyle("#a9c6de", None, "finished")
ENDED = {
    ExecutionEnd.CANCELLED: SeriesStyle("#fff3dc", "/////", "cancelled copy"),
    ExecutionEnd.KILLED: SeriesStyle("#f3c7b8", "xxxxx", "killed"),
    ExecutionEnd.FAILED: SeriesStyle("#ffffff", "ooo", "failed"),
    ExecutionEnd.TIMEOUT: SeriesStyle("#d9cbe6", "....", "killed at its requested time"),
}
_CROWDED = ("#8a4b00", "#000000", "#b00000", "#7a7acc")
CROWDED_ENDED = {end: replace(ENDED[end], face=face, hatch=None) for end, face in zip(ENDED, _CROWDED, strict=True)}


def _rectangles(left: Floats, right: Floats, top: Floats, bottom: Floats) -> Floats:
    corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
    return np.stack([np.stack(corner, axis=1) for corner in corners], axis=1)


def _draw_areas(
    axes: Axes, corners: Floats, kinds: dict[SeriesStyle, Booleans], crowded: bool, **options: Any
) -> list[Patch]:
    """Draw areas, of corners of shape (areas, corners, 2), by their kinds; return what to say in the legend."""
    legend = []
    for series_style, rows in kinds.items():
        if rows.any():
            hatch = None if crowded else series_style.hatch
            some: Any = corners[rows]  # the stubs do not know that it takes arrays (faster)
            areas = PolyCollection(some, facecolor=series_style.face, hatch=hatch, rasterized=crowded, **options)
            areas.set_in_layout(False)  # they lie inside the axes; measuring them takes time
            axes.add_collection(areas, autolim=False)
            legend.append(Patch(label=series_style.label, **series_style.patch()))
    return legend


@register_figure("gantt", "run", "Who computed what when: hosts as rows, executions as bars.")
def gantt(trace: Trace) -> PlottedFigure:
    """Draw a Gantt chart.

    Cancelled, killed and failed executions are hatched; times in which a host is off are gray. Each
    core of a host has a lane of its own; a parallel job is one bar over hosts in a row. Data that tasks make
    for each other are arrows from the begin of their transfer on their host to its end on the other; what waits
    for a task of another host without data is joined to it by a dotted line.

    Parameters
    ----------
    trace : Trace
    """
    runs, bars = trace.executions, bars_of(trace)
    n_hosts = len(trace.platform)
    n_lanes = int(trace.platform.cores.sum())
    height = float(np.clip(0.26 * min(n_lanes, 4 * n_hosts), 1.2, 11.0))
    figure = new_figure(10.0, height + 1.2)
    axes = figure.subplots()
    legend: list[Artist] = [*_draw_switching(axes, trace), *_draw_executions(axes, trace, bars)]
    legend += _draw_transfers(axes, trace) + _draw_waits(axes, trace)
    _label_hosts(axes, trace)
    time_axis(axes, trace.horizon_s)
    legend_below(figure, legend)
    names, of_bar = [host.name for host in trace.platform.hosts], runs[bars.execution]
    data = {
        "job_id": trace.tasks.labels[of_bar["task"]],
        "host": [names[host] for host in bars.top.tolist()],
        "core": bars.core,
        "start_s": of_bar["start"],
        "end_s": of_bar["end"],
        "outcome": [ExecutionEnd(end).name.lower() for end in of_bar["outcome"].tolist()],
    }
    if trace.is_parallel:
        data["hosts"] = bars.rows
    if len(trace.host_cores):
        data["cores"] = bars.cores
    return PlottedFigure(figure, data)


def _draw_switching(axes: Axes, trace: Trace) -> list[Patch]:
    """Draw when hosts are off, boot or shut down; return what to say in the legend."""
    timeline = host_timeline(trace)
    states = {OFF: timeline.is_off, BOOT: timeline.is_booting, SHUTDOWN: timeline.is_shutting_down}
    kinds = {series_style: rows & (timeline.duration_s > 0) for series_style, rows in states.items()}
    host = timeline.host.astype(np.float64)
    box = _rectangles(timeline.time, timeline.end, host - 0.46, host + 0.46)
    crowded = max(int(rows.sum()) for rows in kinds.values()) > MANY_BARS
    return _draw_areas(axes, box, kinds, crowded, linewidth=0, edgecolor="#6a6a6a")


def _draw_executions(axes: Axes, trace: Trace, bars: Bars) -> list[Patch]:
    """Draw the bars; return what to say of them in the legend."""
    each, cores = bars.execution, trace.platform.cores[bars.top]
    runs = trace.executions[each]
    crowded = len(each) > MANY_BARS
    share = 1.0 if crowded else 0.84  # of a row; the rest keeps rows apart
    height = np.where(bars.rows > 1, bars.rows - 1 + share, bars.cores * (share / cores))
    top = bars.top - share / 2 + bars.core * (share / cores)
    box = _rectangles(runs["start"], runs["end"], top, top + height)
    styles = {ExecutionEnd.FINISHED: FINISHED, **(CROWDED_ENDED if crowded else ENDED)}
    kinds = {series_style: runs["outcome"] == end for end, series_style in styles.items()}
    style = {"linewidth": 0 if crowded else 0.4, "edgecolor": "#303030"}
    order = {"zorder": 2.5} if trace.is_parallel else {}  # above the lines between hosts
    legend = _draw_areas(axes, box, kinds, crowded, **style, **order)
    if len(runs) <= MAX_TASK_LABELS:
        _label_tasks(axes, trace, runs, top + height / 2, height)
    return legend


def _label_tasks(axes: Axes, trace: Trace, runs: NDArray[np.void], middle: Floats, height: Floats) -> None:
    """Write job ids into the bars of executions `runs` that have room for them."""
    row_inch = (axes.figure.bbox.height / axes.figure.dpi - 1.2) / max(len(trace.platform), 1)
    width_inch = 8.5 * (runs["end"] - runs["start"]) / (trace.horizon_s or 1.0)
    for k, (run, place) in enumerate(zip(runs, middle.tolist(), strict=True)):
        label = str(trace.tasks.labels[run["task"]])
        if height[k] * row_inch > 0.1 and width_inch[k] > 0.085 * len(label) + 0.04:
            axes.text(
                (run["start"] + run["end"]) / 2,
                place,
                label,
                ha="center",
                va="center",
                fontsize=7,
                clip_on=True,
                bbox=None
                if run["outcome"] == ExecutionEnd.FINISHED
                else {"facecolor": "white", "edgecolor": "none", "pad": 0.6},
            )


def _draw_transfers(axes: Axes, trace: Trace) -> list[Artist]:
    """Draw data on their way between hosts; return what to say of them in the legend."""
    sent = trace.transfers[trace.transfers["source"] != trace.transfers["target"]]
    if not len(sent):
        return []
    label = "data between hosts"
    if len(sent) > MOST_SENT:
        label = f"data between hosts: the largest {MOST_SENT:,} of {len(sent):,}"
        sent = sent[np.argsort(-sent["size_bytes"], kind="stable")[:MOST_SENT]]
    down = np.where(sent["target"] > sent["source"], 0.42, -0.42)  # from the edge of one row to that of the other
    begin = np.column_stack([sent["begin"], sent["source"] + down])
    end = np.column_stack([sent["end"], sent["target"] - down])
    if len(sent) <= MANY_SENT:
        arrows = axes.quiver(
            *begin.T, *(end - begin).T, angles="xy", scale_units="xy", scale=1, units="inches", width=0.011,
            headwidth=7, headlength=8, headaxislength=7, minlength=0, color=SENT, zorder=2.8, clip_on=False,
        )  # fmt: skip
        arrows.set_in_layout(False)
    else:
        segments: Any = np.stack([begin, end], axis=1)
        axes.add_collection(
            LineCollection(segments, colors=SENT, linewidths=0.5, alpha=0.35, zorder=2.8, rasterized=True),
            autolim=False,
        )
    return [Line2D([], [], color=SENT, linewidth=1.1, label=label)]


def _draw_waits(axes: Axes, trace: Trace) -> list[Artist]:
    """Join tasks to those of other hosts that wait for their ends, but not for data; return what to say of them."""
    if trace.tasks.dependencies is None or trace.is_parallel:
        return []
    pairs, done = trace.tasks.dependencies.by_task(), trace.of_outcome(ExecutionEnd.FINISHED)
    run = np.full(len(trace.tasks), -1)
    run[done["task"]] = np.arange(len(done))
    on, task = run[pairs.on], run[pairs.task]
    rows = (on >= 0) & (task >= 0) & (pairs.kind != After.START) & (pairs.size_bytes == 0)
    on, task = done[on[rows]], done[task[rows]]
    apart = on["host"] != task["host"]
    if not 0 < np.count_nonzero(apart) <= MOST_WAITS:
        return []
    on, task = on[apart], task[apart]
    down = np.where(task["host"] > on["host"], 0.42, -0.42)
    segments: Any = np.stack(
        [np.column_stack([on["end"], on["host"] + down]), np.column_stack([task["start"], task["host"] - down])], axis=1
    )
    lines = LineCollection(segments, colors="#303030", linewidths=0.8, linestyles=":", zorder=2.7)
    axes.add_collection(lines, autolim=False)
    return [Line2D([], [], color="#303030", linewidth=0.8, linestyle=":", label="waits, without data")]


def _label_hosts(axes: Axes, trace: Trace) -> None:
    """Name hosts, evenly thinned out where there are too many to read."""
    n = len(trace.platform)
    step = max(1, -(-n // MAX_HOST_LABELS))
    ticks = list(range(0, n, step))
    axes.set_yticks(ticks, [trace.platform.hosts[k].name for k in ticks])
    axes.set_ylim(n - 0.5, -0.5)
    axes.set_ylabel("Host" if step == 1 else f"Host (1 in {step} named, {n:,} in all)")
    axes.tick_params(axis="y", length=0 if step == 1 else 3)
    if n <= MAX_HOST_LABELS:
        axes.set_yticks(np.arange(n + 1) - 0.5, minor=True)
        axes.grid(axis="y", which="minor")
        axes.tick_params(axis="y", which="minor", length=0)
