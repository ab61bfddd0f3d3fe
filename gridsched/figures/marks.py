"""How series look, and the marks of charts: how each kind draws the rows of one series in one panel.

Figures are readable in grey: what differs in colour differs in brightness, hatching or shape too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gridsched.arrays import Booleans, Floats

if TYPE_CHECKING:
    from matplotlib.typing import LineStyleType, MarkerType

#: From here on lines and areas of steps are stored as pixels, also in SVG and PDF.
MANY_STEPS = 4000
#: More lines than this have fainter bands.
_MANY = 4
#: Distance of two names, as a share of the panel's height; so many have room.
_GAP = 0.072
MOST_LABELS = 13


class PatchLook(TypedDict, total=False):
    """Keyword arguments of a matplotlib patch, or of bars."""

    facecolor: str
    edgecolor: str
    hatch: str | None


class LineLook(TypedDict, total=False):
    """Keyword arguments of a matplotlib line and its markers."""

    color: str
    linestyle: LineStyleType
    linewidth: float
    marker: MarkerType
    markersize: float
    markeredgecolor: str
    markeredgewidth: float
    markerfacecolor: str
    label: str


@dataclass(frozen=True)
class Look:
    """How a series, or a kind of area, is drawn.

    Attributes
    ----------
    face : str
        Colour of areas.
    hatch : str or None
        Of areas.
    label : str
        Its name in the legend.
    dark : str
        Colour of lines and markers.
    marker, line : str
    is_baseline : bool
        It stands out.
    width : float
        Of lines [point].
    """

    face: str
    hatch: str | None
    label: str
    dark: str = "#2f6396"
    marker: MarkerType = "o"
    line: LineStyleType = "-"
    is_baseline: bool = False
    width: float = 1.3

    def patch(self) -> PatchLook:
        """Return keyword arguments for a matplotlib patch or collection."""
        return {"facecolor": self.face, "hatch": self.hatch, "edgecolor": "#303030"}

    def stroke(self) -> LineLook:
        """Return keyword arguments for a line with markers."""
        return {
            "color": self.dark,
            "linestyle": self.line,
            "marker": self.marker,
            "linewidth": self.width,
            "markersize": 8 if self.is_baseline else 5,
        }


BUSY = Look("#2f6396", None, "busy")
WASTED = Look("#f0b65a", "xxx", "wasted")
IDLE = Look("#d6e2ee", "///", "idle")
BOOT = Look("#ffffff", "+++", "booting")
SHUTDOWN = Look("#c9c9c9", "---", "shutting down")
OFF = Look("#8a8a8a", "...", "off")

#: Bars that are not told apart; the same of charts, and their boxes.
PLAIN = Look("#7d97b2", None, "_plain")
BAR, BOX = Look("#2f6396", None, ""), Look("#a9c1d9", None, "")

#: Fill, hatching, line colour, marker and line of the series of a chart, in order.
_SERIES: tuple[tuple[str, str | None, str, MarkerType, LineStyleType], ...] = (
    ("#cfdeed", None, "#5b8db8", "o", "-"),
    ("#f0b65a", "///", "#d07d00", "s", "--"),
    ("#a8c99a", "...", "#3f7f3a", "^", "-."),
    ("#e0a093", "xxx", "#a5371b", "D", ":"),
    ("#c9b3d6", "\\\\\\", "#7a4f93", "v", "--"),
    ("#8fd0cc", "+++", "#00898a", "P", "-."),
    ("#8a8a8a", "---", "#6a6a6a", "X", ":"),
    ("#f3c7df", "ooo", "#c9499a", "<", "--"),
    ("#e3e3a0", "|||", "#8c8c00", ">", "-."),
)
_BASELINE = Look("#1b3a5c", None, "", "#1b3a5c", "*", "-", is_baseline=True, width=1.8)
_LINES: tuple[LineStyleType, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
_MARKERS = "osv^DXP<>*"


def series_looks(names: Mapping[Any, str] | Iterable[str], *, baseline: Any = None) -> dict[Any, Look]:
    """Return how each series of a chart looks.

    Parameters
    ----------
    names : mapping, or iterable of str
        Value in the table -> name in the legend, or values that are their own names.
    baseline : object, optional
        The value that stands out; with more than nine series, the tenth does.
    """
    named = names if isinstance(names, Mapping) else {name: name for name in names}
    ours = [  # a later line leaves an earlier one visible
        Look(face, hatch, "", dark, marker, line, width=max(1.2, 2.4 - 0.3 * k))
        for k, (face, hatch, dark, marker, line) in enumerate(_SERIES)
    ]
    looks = itertools.cycle(ours if baseline in named else [*ours, _BASELINE])
    return {
        value: replace(_BASELINE if value == baseline else next(looks), label=name) for value, name in named.items()
    }


def level_looks(levels: Sequence[Any], names: Iterable[str]) -> dict[Any, Look]:
    """Return how each level of something that varies looks: the later, the darker."""
    colours = matplotlib.colormaps["cividis"](np.linspace(0.78, 0.0, max(len(levels), 2)))
    return {
        level: Look(to_hex(colour), None, name, to_hex(colour), _MARKERS[k % len(_MARKERS)], _LINES[k % len(_LINES)])
        for k, (level, name, colour) in enumerate(zip(levels, names, colours, strict=False))
    }


# ---------------------------------------------------------------------- marks


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
    look : Look
    stroke : LineLook
        Keyword arguments of its lines and markers.
    width : float
        Of bars, boxes and violins.
    count : int
        Number of all series.
    is_flat : bool
        What varies stands along y.
    """

    at: Floats
    value: Floats
    ends: Floats | None
    is_filled: Booleans
    look: Look
    stroke: LineLook
    width: float
    count: int
    is_flat: bool

    def samples(self) -> tuple[list[float], list[Floats]]:
        """Return each place that has numbers, and these."""
        is_number = ~np.isnan(self.value)
        places = np.unique(self.at[is_number]).tolist()
        return places, [self.value[is_number & (self.at == place)] for place in places]


def _draw_bars(axes: Axes, series: Series) -> None:
    axes.bar(series.at, np.nan_to_num(series.value), series.width, linewidth=0.6, **series.look.patch())
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
            color=series.look.dark,
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
        look = series.stroke | {"markerfacecolor": series.look.dark if is_filled else "none"}
        axes.errorbar(x, y, y_ends, x_ends, elinewidth=1.0, capsize=2.5, **look)


def _draw_paths(axes: Axes, series: Series) -> None:
    """Draw points, and a thin line from each to the next."""
    axes.plot(series.at, series.value, color=series.look.dark, linewidth=0.8, alpha=0.6)
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
        boxprops={"linewidth": 0.6, **series.look.patch()},
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
            bodies[0].set(alpha=1.0, linewidth=0.6, **series.look.patch())
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
    stroke : LineLook or None
        What its lines and markers have of their own; None if the legend shows areas.
    is_apart : bool
        Series stand side by side at each level.
    """

    draw: Callable[[Axes, Series], None]
    stroke: LineLook | None = None
    is_apart: bool = True

    def handle(self, look: Look) -> Artist:
        """Return what stands for a series in the legend."""
        if self.stroke is None:
            return Patch(label=look.label, **look.patch())
        return Line2D([], [], **(look.stroke() | self.stroke | {"label": look.label}))


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


def name_series(drawn: Iterable[tuple[Axes, Series]]) -> None:
    """Write the name of each series to the right of its panel, with a line to its last point.

    Parameters
    ----------
    drawn : iterable of (Axes, Series)
        The panels have their final limits.
    """
    panels: dict[Axes, list[Series]] = {}
    for axes, series in drawn:
        panels.setdefault(axes, []).append(series)
    for axes, several in panels.items():
        into = axes.transData - axes.transAxes
        ends = [(each.at[k], each.value[k]) for each in several for k in [int(np.nanargmax(each.at))]]
        heights = into.transform(ends)[:, 1]
        order = np.argsort(heights, kind="stable")
        for k, height in zip(order.tolist(), spread(heights[order], _GAP), strict=True):
            colour = several[k].look.dark
            axes.annotate(
                several[k].look.label,
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
    from scipy.optimize import isotonic_regression  # slow to load

    steps = gap * np.arange(len(heights))
    # without the steps, places that are apart are places that do not fall
    level = np.clip(heights - steps, 0.0, 1.0 - gap * (len(heights) - 1))
    return isotonic_regression(level).x + steps
