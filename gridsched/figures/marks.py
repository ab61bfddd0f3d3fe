"""The marks of charts: how each kind draws the rows of one series in one panel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gridsched.analysis.statistics import without_falls
from gridsched.arrays import Booleans, Floats
from gridsched.figures.series_styles import LineStyle, SeriesStyle

#: From here on lines and areas of steps are stored as pixels, also in SVG and PDF.
MANY_STEPS = 4000
#: More lines than this have fainter bands.
_MANY = 4
#: Distance of two names, as a share of the panel's height; so many have room.
_GAP = 0.072
MOST_LABELS = 13


@dataclass(frozen=True)
class Series:
    """The rows of one series in one panel.

    Attributes
    ----------
    at, value : ndarray
        Along what varies, and the numbers.
    ends : ndarray, shape (2, rows), or None
        How far intervals reach below and above the numbers.
    is_filled : ndarray of bool
        How markers are drawn.
    series_style : SeriesStyle
    stroke : LineStyle
        Keyword arguments of its lines and markers.
    width : float
        Of bars, boxes and violins.
    count : int
        Number of all series.
    is_flat : bool
        What varies is along y.
    """

    at: Floats
    value: Floats
    ends: Floats | None
    is_filled: Booleans
    series_style: SeriesStyle
    stroke: LineStyle
    width: float
    count: int
    is_flat: bool

    def samples(self) -> tuple[list[float], list[Floats]]:
        """Return each place that has numbers, and these."""
        is_number = ~np.isnan(self.value)
        places = np.unique(self.at[is_number]).tolist()
        return places, [self.value[is_number & (self.at == place)] for place in places]


def _draw_bars(axes: Axes, series: Series) -> None:
    axes.bar(series.at, np.nan_to_num(series.value), series.width, linewidth=0.6, **series.series_style.patch())
    axes.errorbar(
        series.at,
        series.value,
        series.ends,
        fmt="none",
        ecolor="#000000",
        elinewidth=0.8,
        capsize=1.0 if series.width < 0.3 else 2.5,
    )


def _draw_lines(axes: Axes, series: Series) -> None:
    order = np.argsort(series.at, kind="stable")
    at, value = series.at[order], series.value[order]
    if series.ends is not None:
        below, above = series.ends[:, order]
        axes.fill_between(
            at,
            value - below,
            value + above,
            color=series.series_style.dark,
            linewidth=0,
            alpha=0.22 if series.count <= _MANY else 0.08,
        )
    axes.plot(at, value, markevery=max(1, len(at) // 8), **series.stroke)


def _draw_points(axes: Axes, series: Series) -> None:
    for is_filled in (False, True):
        some = series.is_filled == is_filled
        ends = None if series.ends is None else series.ends[:, some]
        along, across = (series.at[some], None), (series.value[some], ends)
        (x, x_ends), (y, y_ends) = (across, along) if series.is_flat else (along, across)
        series_style = series.stroke | {"markerfacecolor": series.series_style.dark if is_filled else "none"}
        axes.errorbar(x, y, y_ends, x_ends, elinewidth=1.0, capsize=2.5, **series_style)


def _draw_paths(axes: Axes, series: Series) -> None:
    """Draw points, and a thin line from each to the next."""
    axes.plot(series.at, series.value, color=series.series_style.dark, linewidth=0.8, alpha=0.6)
    _draw_points(axes, series)


def _draw_boxes(axes: Axes, series: Series) -> None:
    """Draw median, quartiles, whiskers to 1.5 interquartile ranges, and what lies outside."""
    places, samples = series.samples()
    axes.boxplot(
        samples,
        positions=places,
        widths=0.86 * series.width,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"linewidth": 0.6, **series.series_style.patch()},
        medianprops={"color": "#000000"},
        whiskerprops={"linewidth": 0.7},
        capprops={"linewidth": 0.7},
        flierprops={"marker": ".", "markersize": 2, "markeredgecolor": "#303030"},
    )


def _draw_violins(axes: Axes, series: Series) -> None:
    """Draw distributions, all as wide, with their medians; equal numbers are a median alone."""
    places, samples = series.samples()
    for place, sample in zip(places, samples, strict=True):
        if np.ptp(sample) > 0:
            # a list, where matplotlib's own types have one collection
            bodies: Any = axes.violinplot([sample], [place], widths=0.9 * series.width, showextrema=False, points=200)[
                "bodies"
            ]
            bodies[0].set(alpha=1.0, linewidth=0.6, **series.series_style.patch())
    axes.plot(
        places,
        [float(np.median(sample)) for sample in samples],
        linestyle="",
        marker="o",
        markersize=4.5,
        markerfacecolor="#ffffff",
        markeredgecolor="#000000",
        zorder=4,
    )


def _draw_steps(axes: Axes, series: Series) -> None:
    axes.step(series.at, series.value, where="post", **series.stroke)


@dataclass(frozen=True)
class ChartKind:
    """A kind of chart.

    Attributes
    ----------
    draw : callable
        Draws a `Series` in axes.
    stroke : LineStyle or None
        What its lines and markers have of their own; None if the legend shows areas.
    is_apart : bool
        Series are side by side at each level.
    """

    draw: Callable[[Axes, Series], None]
    stroke: LineStyle | None = None
    is_apart: bool = True

    def handle(self, series_style: SeriesStyle) -> Artist:
        """Return what represents a series in the legend."""
        if self.stroke is None:
            return Patch(label=series_style.label, **series_style.patch())
        return Line2D([], [], **(series_style.stroke() | self.stroke | {"label": series_style.label}))


#: All kinds of charts.
KINDS = {
    "bars": ChartKind(_draw_bars),
    "boxes": ChartKind(_draw_boxes),
    "violins": ChartKind(_draw_violins),
    "points": ChartKind(_draw_points, {"linestyle": ""}),
    "paths": ChartKind(_draw_paths, {"linestyle": ""}),
    "lines": ChartKind(_draw_lines, {}, is_apart=False),
    "steps": ChartKind(_draw_steps, {"marker": ""}, is_apart=False),
}


def name_series(plotted: Iterable[tuple[Axes, Series]]) -> None:
    """Write the name of each series to the right of its panel, with a line to its last point.

    Parameters
    ----------
    plotted : iterable of (Axes, Series)
        The panels have their final limits.
    """
    panels: dict[Axes, list[Series]] = {}
    for axes, series in plotted:
        panels.setdefault(axes, []).append(series)
    for axes, several in panels.items():
        into = axes.transData - axes.transAxes
        ends = [(each.at[k], each.value[k]) for each in several for k in [int(np.nanargmax(each.at))]]
        heights = into.transform(ends)[:, 1]
        order = np.argsort(heights, kind="stable")
        for k, height in zip(order.tolist(), spread(heights[order], _GAP), strict=True):
            colour = several[k].series_style.dark
            axes.annotate(
                several[k].series_style.label,
                ends[k],
                (1.03, height),
                textcoords="axes fraction",
                va="center",
                fontsize=7.5,
                color=colour,
                annotation_clip=False,
                arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.7, "linestyle": ":", "shrinkB": 3},
            )


def spread(heights: Floats, gap: float) -> Floats:
    """Return the places from 0 to 1 that are nearest to sorted ones and `gap` apart.

    Examples
    --------
    >>> spread(np.array([0.5, 0.5, 1.2]), 0.25).tolist()
    [0.375, 0.625, 1.0]
    """
    steps = gap * np.arange(len(heights))
    # without the steps, places that are apart are places that do not fall
    level = np.clip(heights - steps, 0.0, 1.0 - gap * (len(heights) - 1))
    return without_falls(level) + steps
