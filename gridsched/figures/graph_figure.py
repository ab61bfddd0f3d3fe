"""Tasks that wait for each other as a graph: in layers, with the hosts that ran them and the longest path."""

from __future__ import annotations

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Patch

from gridsched.analysis.graph_layout import RunGraph, run_graph
from gridsched.arrays import Booleans, Floats
from gridsched.figures.figure_file import PlottedFigure, register_figure
from gridsched.figures.figure_style import legend_below, new_figure
from gridsched.figures.series_styles import SeriesStyle, series_styles
from gridsched.model.trace import Trace

#: Tasks of up to so many hosts have the host's color.
MOST_HOSTS = 9
#: More tasks than this are dots without names.
MOST_NAMED = 250
_WIDTH, _LEFT_INCH, _LETTER_INCH = 10.0, 0.2, 0.082
#: Width of boxes, as a share of a layer: of long names and of short ones.
_WIDE, _SQUARE = 0.72, 0.4
#: Of the names, in full and at least [characters].
_LONGEST, _SHORTEST = 18, 3
_DARK, _DATA, _PALE = "#a5371b", "#2f6396", "#b4b4b4"
_LINES = (
    ("longest path", _DARK, 2.0),
    ("data sent between hosts", _DATA, 0.9),
    ("within a host, or no data", _PALE, 0.7),
)


@register_figure("graph", "run", "Tasks that wait for each other, in layers, with their hosts and the longest path.")
def graph(trace: Trace) -> PlottedFigure:
    """Draw the graph of a run's tasks from left to right.

    The longest path counts run times and transfers of the run, not the waits for hosts.

    Parameters
    ----------
    trace : Trace

    Raises
    ------
    InputError
        If no task waits for another.
    """
    shown = run_graph(trace)
    layout, n = shown.layout, len(trace.tasks)
    top, bottom = layout.range_y
    rows = bottom - top + 1.0
    per_layer = (_WIDTH - 2 * _LEFT_INCH) / (int(layout.x.max()) + 1)
    room = int((0.72 * per_layer - 0.06) / _LETTER_INCH)
    is_named = n <= MOST_NAMED and room >= _SHORTEST
    height = float(np.clip((0.34 if is_named else 0.16) * rows, 1.4, 11.0))
    is_named &= height / rows > 0.2
    figure = new_figure(_WIDTH, height + 0.9)
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set_xlim(-0.5, int(layout.x.max()) + 0.5)
    axes.set_ylim(bottom + 0.6, top - 0.6)
    width = (_WIDE if max(len(str(label)) for label in trace.tasks.labels.tolist()) > 3 else _SQUARE) * is_named
    legend: list[Artist] = [*_draw_edges(axes, shown, width)]
    names, styles = [host.name for host in trace.platform.hosts], _host_styles(trace, shown)
    if is_named:
        _draw_boxes(axes, trace, shown, styles, min(room, _LONGEST), width)
    else:
        _draw_dots(axes, shown, styles)
    legend += [
        Patch(facecolor=series_style.face, edgecolor="#303030", label=series_style.label)
        for series_style in styles.values()
    ]
    legend_below(figure, [each for each in legend if not str(each.get_label()).startswith("_")])
    return PlottedFigure(
        figure,
        {
            "job_id": trace.tasks.labels,
            "layer": layout.x,
            "host": [names[host] if host >= 0 else "" for host in shown.host.tolist()],
            "start_s": shown.start_s,
            "end_s": shown.end_s,
            "on_longest_path": shown.is_critical.astype(int),
        },
    )


def _host_styles(trace: Trace, shown: RunGraph) -> dict[int, SeriesStyle]:
    """Return how the tasks of each host look; -1 are those that did not finish, and all alike of many hosts."""
    used = np.unique(shown.host).tolist()
    ran = [host for host in used if host >= 0]
    styles = (
        series_styles({host: trace.platform.hosts[host].name for host in ran})
        if len(ran) <= MOST_HOSTS
        else dict.fromkeys(ran, SeriesStyle("#cfdeed", None, "_a host of many"))
    )
    return styles | ({-1: SeriesStyle("#ffffff", None, "not finished")} if -1 in used else {})


def _draw_edges(axes: Axes, shown: RunGraph, width: float) -> list[Line2D]:
    """Draw the edges between boxes of a width, those of the longest path last; return what to say of them."""
    half = np.array([width / 2, 0.0])
    is_sent = shown.is_sent & ~shown.on_path
    kinds: tuple[Booleans, ...] = (shown.on_path, is_sent, ~shown.on_path & ~is_sent)
    crowded, thin = len(shown.on_path) > 2_000, 0.6 if len(shown.on_path) > 250 else 1.0
    legend = []
    for order, ((label, color, thick), rows) in enumerate(zip(_LINES, kinds, strict=True)):
        if rows.any():
            curves = [shown.layout.curves[k].copy() for k in np.flatnonzero(rows).tolist()]
            for curve in curves:
                curve[0] += half
                curve[-1] -= half
            faint = 0.25 if crowded and order else 1.0
            lines = LineCollection(
                curves,
                colors=color,
                linewidths=thick * (thin if order else 1.0),
                alpha=faint,
                zorder=1.9 - 0.1 * order,
                rasterized=crowded,
            )
            axes.add_collection(lines, autolim=False)
            legend.append(Line2D([], [], color=color, linewidth=width, label=label))
    return legend


def _draw_boxes(
    axes: Axes, trace: Trace, shown: RunGraph, styles: dict[int, SeriesStyle], room: int, width: float
) -> None:
    layout, names = shown.layout, [str(label) for label in trace.tasks.labels.tolist()]
    for k, name in enumerate(names):
        series_style, x, y = styles[int(shown.host[k])], float(layout.x[k]), float(layout.y[k])
        box = FancyBboxPatch(
            (x - width / 2, y - 0.32),
            width,
            0.64,
            boxstyle="round,pad=0,rounding_size=0.08",
            facecolor=series_style.face,
            edgecolor=_DARK if shown.is_critical[k] else "#303030",
            linewidth=1.8 if shown.is_critical[k] else 0.5,
            zorder=2.2,
        )
        axes.add_patch(box)
        axes.text(x, y, shortened(name, room), ha="center", va="center", fontsize=7.5, zorder=2.4)


def shortened(name: str, room: int) -> str:
    """Return a name of at most so many characters, its begin and its end kept, by which names of one kind differ."""
    if len(name) <= room:
        return name
    last = max((room - 1) // 2, 1)
    return name[: max(room - 1 - last, 0)] + "\N{HORIZONTAL ELLIPSIS}" + name[-last:]


def _draw_dots(axes: Axes, shown: RunGraph, styles: dict[int, SeriesStyle]) -> None:
    layout = shown.layout
    faces = np.array([styles[host].face for host in shown.host.tolist()])
    size: Floats = np.where(shown.is_critical, 26.0, 14.0) if len(faces) <= 1_000 else np.full(len(faces), 5.0)
    axes.scatter(
        layout.x,
        layout.y,
        s=size,
        c=faces,
        edgecolors=np.where(shown.is_critical, _DARK, "#303030").tolist(),
        linewidths=np.where(shown.is_critical, 1.3, 0.3).tolist(),
        zorder=2.3,
        rasterized=len(faces) > 4_000,
    )
