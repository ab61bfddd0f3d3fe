"""One chart of a tidy table: a mark of some kind for each row, a look for each series, panels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from gridsched.analysis.texts import is_number, value_text
from gridsched.arrays import Floats
from gridsched.figures.axes import axis_scale, finish_bars_axis, plain_numbers, share_limits, write_at
from gridsched.figures.figure_style import legend_below, new_figure
from gridsched.figures.marks import KINDS, MOST_LABELS, Series, name_series
from gridsched.figures.series_styles import SeriesStyle

Direction = Literal["x", "y"]
_LIMIT = "#a5371b"


@dataclass(frozen=True)
class Panel:
    """One panel: its place, its title, and what the rows in it have in common."""

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
        Value -> text of what is along the axis; None of numbers.
    is_log : bool
    least, most : float or None
        Ends of the axis, as divided; default: what there is.
    origin : float or None
        A value that is always seen, drawn as a line.
    limit : (float, str) or None
        A value that is always seen, as divided, and its name: a dashed line. None where it is nan.
    ceiling : float or None
        Ends of intervals above it, as divided, are drawn at it.
    shared_up_to : float
        Panels have the same ends, unless these are so many times those of the smallest panel:
        inf: always, 1: where all are equal anyway.
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
    ceiling: float | None = None
    shared_up_to: float = 3.0

    def places(self, table: pd.DataFrame, column: str = "") -> Floats:
        """Return where rows are along the axis, by its own or another column."""
        values = table[column or self.column]
        if self.levels is not None:
            values = values.map({value: k for k, value in enumerate(self.levels)})
        return values.to_numpy(dtype=np.float64) / self.factor


def numbers_along(axis: str, values: Iterable[Any]) -> Scale:
    """Return a study's axis of numbers, with the unit that its name has; logarithmic where they are multiples."""
    found = list(values)
    factor, label = axis_scale(axis, found)
    return Scale(axis, label, factor, is_log=_are_multiples(found))


def _are_multiples(numbers: Sequence[Any]) -> bool:
    """Whether at least three positive numbers reach over more than a power of ten by steps of about one ratio."""
    if not all(is_number(each) and 0 < each < math.inf for each in numbers):
        return False
    steps = [after / before for before, after in pairwise(sorted(set(numbers)))]
    return len(steps) > 1 and max(numbers) > 30 * min(numbers) and max(steps) < 3 * min(steps)


def levels_along(axis: str, values: Iterable[Any], infinite: str = "inf") -> Scale:
    """Return a study's axis as levels, of which an infinite one may have a name."""
    levels = list(dict.fromkeys(values))
    numbers = numbers_along(axis, levels)
    texts = [value_text(level / numbers.factor if numbers.factor > 1 else level) for level in levels]
    names = [infinite if level == math.inf else text for level, text in zip(levels, texts, strict=True)]
    return replace(numbers, factor=1.0, is_log=False, levels=dict(zip(levels, names, strict=True)))


def chart(
    table: pd.DataFrame,
    kind: str,
    x: Scale,
    y: Scale,
    styles: Mapping[Any, SeriesStyle],
    *,
    hue: str = "scheduler",
    panels: Sequence[Panel] = (Panel(),),
    size: tuple[float, float] = (6.4, 4.0),
    slots: Mapping[Any, float] | None = None,
    filled: str = "",
    legend: str = "",
    handles: Sequence[Artist] = (),
    is_direct: bool = False,
) -> Figure | SubFigure:
    """Draw a table.

    Parameters
    ----------
    table : DataFrame
        Tidy: a row for each mark; of boxes and violins for each of their numbers.
    kind : str
        One of `KINDS`.
    x, y : Scale
    styles : mapping
        Value of `hue` -> how the series looks.
    hue : str
        The column of the series; empty if there is one series.
    panels : sequence of Panel
    size : (float, float)
        Of the figure [inch].
    slots : mapping, optional
        Where series are side by side: how many places from the middle; default: in a row.
    filled : str
        Column that specifies which markers are filled; default: all.
    legend : str
        Its title.
    handles : sequence of Artist
        More of the legend, which names all series with a label.
    is_direct : bool
        Each panel names its series beside their points instead, unless they are too many.

    Returns
    -------
    Figure or SubFigure
        Its axes are those of the panels.
    """
    marks = KINDS[kind]
    figure = new_figure(*size)
    grid = figure.add_gridspec(max(panel.row for panel in panels) + 1, max(panel.column for panel in panels) + 1)
    all_axes = [figure.add_subplot(grid[panel.row, panel.column]) for panel in panels]
    slots = slots or {value: k - (len(styles) - 1) / 2 for k, value in enumerate(styles)}
    width = 0.84 / (max(slots.values()) - min(slots.values()) + 1)
    is_apart = marks.is_apart and (x.levels is not None or y.levels is not None)
    is_direct = is_direct and len(styles) <= MOST_LABELS
    plotted: list[tuple[Axes, Series]] = []
    for axes, panel in zip(all_axes, panels, strict=True):
        axes.set_title(panel.title, loc="left")
        rows = panel.chosen(table)
        for value, series_style in styles.items():
            part = rows[rows[hue] == value] if hue else rows
            if len(part):
                shift = slots[value] * width if is_apart else 0.0
                series = Series(
                    *_numbers(part, x, y, shift),
                    part[filled].to_numpy(dtype=bool) if filled else np.ones(len(part), bool),
                    series_style,
                    series_style.stroke() | (marks.stroke or {}),
                    width,
                    len(styles),
                    is_flat=y.levels is not None,
                )
                marks.draw(axes, series)
                plotted.append((axes, series))
    if kind == "bars":
        finish_bars_axis(all_axes, y.places(table))
    _finish(all_axes, panels, "x", x)
    _finish(all_axes, panels, "y", y)
    if is_direct:
        name_series(plotted)
    entries = [
        *(marks.handle(series_style) for series_style in styles.values() if series_style.label and not is_direct),
        *handles,
    ]
    if len(entries) > 1 or legend:  # one series needs no name: the caption has it
        legend_below(figure, entries, title=legend or None, handlelength=2.0 if marks.stroke is None else 3.0)
    return figure


def _numbers(rows: pd.DataFrame, x: Scale, y: Scale, shift: float) -> tuple[Floats, Floats, Floats | None]:
    """Return where rows are, their numbers, and how far intervals reach below and above."""
    along, numbers = (x, y) if y.levels is None else (y, x)
    value = numbers.places(rows)
    ends = None
    if {"low", "high"} <= set(rows):
        low, high = (numbers.places(rows, end) for end in ("low", "high"))
        if numbers.ceiling is not None:
            high = np.minimum(high, numbers.ceiling)
        ends = np.maximum([value - low, high - value], 0.0)  # rounding apart
    return along.places(rows) + shift, value, ends


def _finish(all_axes: Sequence[Axes], panels: Sequence[Panel], direction: Direction, scale: Scale) -> None:
    """Set limits, ticks and label of the panels' x or y axes, which are alike where they can be."""
    if scale.levels is not None:
        _set_levels(all_axes, direction, scale.levels)
    else:
        _set_numbers(all_axes, direction, scale)
    is_common = len({getattr(axes, f"get_{direction}lim")() for axes in all_axes}) == 1
    places = {(panel.row, panel.column) for panel in panels}
    for axes, panel in zip(all_axes, panels, strict=True):
        if direction == "x":
            is_inner, names = (panel.row + 1, panel.column) in places, {"labelbottom": False}
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
    share_limits(all_axes, direction, most=scale.shared_up_to)
    plain_numbers(*(getattr(axes, f"{direction}axis") for axes in all_axes))


def _draw_limit(axes: Axes, limit: float, name: str) -> None:
    """Draw a limit of the numbers along y with its name above it, for which there is room."""
    axes.axhline(limit, color=_LIMIT, linestyle="--", linewidth=1.4)
    write_at(axes, name, (1.0, limit), (-2, 3), "right", xycoords=("axes fraction", "data"), color=_LIMIT)
    axes.set_ylim(None, max(axes.get_ylim()[1], 1.08 * limit))
