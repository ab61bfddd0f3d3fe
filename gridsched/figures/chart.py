"""One chart of a tidy table: a mark of some kind for each row, a look for each series, panels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from gridsched.figures.axes import finish_bars_axis, plain_numbers, share_limits
from gridsched.figures.figure_file import new_figure
from gridsched.figures.looks import LineLook, Look

Floats = NDArray[np.float64]
Direction = Literal["x", "y"]
#: More lines than this have fainter bands.
_MANY = 4
_LIMIT = "#a5371b"


@dataclass(frozen=True)
class Panel:
    """One panel: where it stands, its title, and what the rows in it have in common."""

    row: int = 0
    column: int = 0
    title: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)

    def chosen(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of a table that belong to the panel."""
        for column, value in self.values.items():
            table = table[table[column] == value]
        return table


@dataclass(frozen=True)
class Scale:
    """What an axis of a chart shows.

    Attributes
    ----------
    column : str
        Of the table. Where it also has ``low`` and ``high``, they are the ends of intervals.
    label : str
    factor : float
        Numbers are divided by it.
    levels : mapping or None
        Value -> text of what stands along the axis; None of numbers.
    is_log : bool
    least, most : float or None
        Ends of the axis, as divided; default: what there is.
    origin : float or None
        A value that is always seen, drawn as a line.
    limit : (float, str) or None
        A value that is always seen, as divided, and its name: a dashed line. None where it is nan.
    is_shared : bool
        All panels have the same ends, however little of it some fill.
    """

    column: str
    label: str
    factor: float = 1.0
    levels: Mapping[Any, str] | None = None
    is_log: bool = False
    least: float | None = None
    most: float | None = None
    origin: float | None = None
    limit: tuple[float, str] | None = None
    is_shared: bool = False

    def places(self, table: pd.DataFrame, column: str = "") -> Floats:
        """Return where rows stand along the axis, by its own or another column."""
        values = table[column or self.column]
        if self.levels is not None:
            values = values.map({value: k for k, value in enumerate(self.levels)})
        return values.to_numpy(dtype=np.float64) / self.factor


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
    is_filled: NDArray[np.bool_]
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
        x, y = series.at[some], series.value[some]
        ends = None if series.ends is None else series.ends[:, some]
        if series.is_flat:
            x, y = y, x
        look = series.stroke | {"markerfacecolor": series.look.dark if is_filled else "none"}
        axes.errorbar(
            x,
            y,
            None if series.is_flat else ends,
            ends if series.is_flat else None,
            elinewidth=1.0,
            capsize=2.5,
            **look,
        )


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
    "lines": ChartKind(_draw_lines, {}, is_apart=False),
    "steps": ChartKind(_draw_steps, {"marker": ""}, is_apart=False),
}


def chart(
    table: pd.DataFrame,
    kind: str,
    x: Scale,
    y: Scale,
    looks: Mapping[Any, Look],
    *,
    hue: str = "scheduler",
    panels: Sequence[Panel] = (Panel(),),
    size: tuple[float, float] = (6.4, 4.0),
    slots: Mapping[Any, float] | None = None,
    filled: str = "",
    legend: str = "",
    handles: Sequence[Artist] = (),
) -> Figure | SubFigure:
    """Draw a table.

    Parameters
    ----------
    table : DataFrame
        Tidy: a row for each mark; of boxes and violins for each of their numbers.
    kind : str
        One of `KINDS`.
    x, y : Scale
    looks : mapping
        Value of `hue` -> how the series looks.
    hue : str
        The column of the series; empty if there is one series.
    panels : sequence of Panel
    size : (float, float)
        Of the figure [inch].
    slots : mapping, optional
        Where series stand side by side: how many places from the middle; default: in a row.
    filled : str
        Column that tells which markers are filled; default: all.
    legend : str
        Its title.
    handles : sequence of Artist
        More of the legend, which names all series with a label.

    Returns
    -------
    Figure or SubFigure
        Its axes are those of the panels.
    """
    way = KINDS[kind]
    figure = new_figure(*size)
    grid = figure.add_gridspec(max(panel.row for panel in panels) + 1, max(panel.column for panel in panels) + 1)
    all_axes = [figure.add_subplot(grid[panel.row, panel.column]) for panel in panels]
    slots = slots or {value: k - (len(looks) - 1) / 2 for k, value in enumerate(looks)}
    width = 0.84 / (max(slots.values()) - min(slots.values()) + 1)
    is_apart = way.is_apart and (x.levels is not None or y.levels is not None)
    for axes, panel in zip(all_axes, panels, strict=True):
        axes.set_title(panel.title, loc="left")
        rows = panel.chosen(table)
        for value, look in looks.items():
            part = rows[rows[hue] == value] if hue else rows
            if len(part):
                shift = slots[value] * width if is_apart else 0.0
                way.draw(
                    axes,
                    Series(
                        *_numbers(part, x, y, shift),
                        part[filled].to_numpy(dtype=bool) if filled else np.ones(len(part), bool),
                        look,
                        look.stroke() | (way.stroke or {}),
                        width,
                        len(looks),
                        is_flat=y.levels is not None,
                    ),
                )
    if kind == "bars":
        finish_bars_axis(all_axes, y.places(table))
    _finish(all_axes, panels, "x", x)
    _finish(all_axes, panels, "y", y)
    entries = [*(way.handle(look) for look in looks.values() if look.label), *handles]
    if entries:
        length = 2.0 if way.stroke is None else 3.0
        _draw_legend(figure, entries, title=legend or None, handlelength=length)
    return figure


def _numbers(rows: pd.DataFrame, x: Scale, y: Scale, shift: float) -> tuple[Floats, Floats, Floats | None]:
    """Return where rows stand, their numbers, and how far intervals reach below and above."""
    along, numbers = (x, y) if y.levels is None else (y, x)
    value = numbers.places(rows)
    ends = None
    if {"low", "high"} <= set(rows):
        low, high = (numbers.places(rows, end) for end in ("low", "high"))
        ends = np.maximum([value - low, high - value], 0.0)  # rounding apart
    return along.places(rows) + shift, value, ends


def _finish(all_axes: Sequence[Axes], panels: Sequence[Panel], direction: Direction, scale: Scale) -> None:
    """Set limits, ticks and label of the panels' x or y axes, which are alike where they can be."""
    if scale.levels is not None:
        _set_levels(all_axes, direction, scale.levels)
    else:
        _set_numbers(all_axes, direction, scale)
    is_common = len({getattr(axes, f"get_{direction}lim")() for axes in all_axes}) == 1
    taken = {(panel.row, panel.column) for panel in panels}
    for axes, panel in zip(all_axes, panels, strict=True):
        if direction == "x":
            is_inner, names = (panel.row + 1, panel.column) in taken, {"labelbottom": False}
        else:
            is_inner, names = panel.column > 0, {"labelleft": False}
        if not is_inner:
            getattr(axes, f"set_{direction}label")(scale.label)
        elif is_common:
            axes.tick_params(axis=direction, **names)


def _set_levels(all_axes: Sequence[Axes], direction: Direction, levels: Mapping[Any, str]) -> None:
    ends = (-0.6, len(levels) - 0.4)
    for axes in all_axes:
        getattr(axes, f"set_{direction}ticks")(range(len(levels)), list(levels.values()))
        getattr(axes, f"set_{direction}lim")(*(ends if direction == "x" else ends[::-1]))
        axes.tick_params(axis=direction, length=0)


def _set_numbers(all_axes: Sequence[Axes], direction: Direction, scale: Scale) -> None:
    line = "axhline" if direction == "y" else "axvline"
    for axes in all_axes:
        if scale.is_log:
            getattr(axes, f"set_{direction}scale")("log")
        if scale.origin is not None:
            getattr(axes, line)(scale.origin, color="#1b3a5c", linewidth=1.0, zorder=1.5)
        if scale.limit is not None and np.isfinite(scale.limit[0]):
            _draw_limit(axes, *scale.limit)
        if scale.least is not None and getattr(axes, f"get_{direction}scale")() == "linear":
            getattr(axes, f"set_{direction}lim")(scale.least)
        if scale.most is not None:
            getattr(axes, f"set_{direction}lim")(None, scale.most)
        axes.grid(axis=direction)
    share_limits(all_axes, direction, most=np.inf if scale.is_shared else 3.0)
    plain_numbers(*(getattr(axes, f"{direction}axis") for axes in all_axes))


def _draw_limit(axes: Axes, limit: float, name: str) -> None:
    """Draw a limit of the numbers along y with its name above it, for which there is room."""
    axes.axhline(limit, color=_LIMIT, linestyle="--", linewidth=1.4)
    axes.annotate(
        name,
        (1.0, limit),
        (-2, 3),
        ha="right",
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        fontsize=8,
        color=_LIMIT,
    )
    axes.set_ylim(None, max(axes.get_ylim()[1], 1.08 * limit))


def _draw_legend(figure: Figure | SubFigure, handles: Sequence[Artist], **options: Any) -> None:
    """Draw a legend below the panels, with as many entries side by side as have room."""
    widths = [0.75 + 0.075 * len(str(handle.get_label())) for handle in handles]
    room = figure.bbox.width / figure.dpi
    columns = len(widths) if sum(widths) <= room else max(1, int(room / max(widths)))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, title_fontsize=9, **options)
