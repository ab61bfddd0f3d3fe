"""What the usual figures of a study share: panels for two axes, series, labels, legends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from gridsched.analysis.texts import axis_name, value_text
from gridsched.figures.axes import PlainNumbers, axes_words, plain_numbers, share_limits
from gridsched.figures.figure_file import BoxLook, PatchLook, new_figure, prefixed
from gridsched.figures.study_layout import Layout, SeriesLook
from gridsched.figures.table import Drawn
from gridsched.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.typing import LineStyleType


def draw_panels(
    layout: Layout,
    page: dict[str, Any],
    table: pd.DataFrame,
    draw: Callable[[Axes, pd.DataFrame], None],
    handles: Sequence[Any],
    label: str,
) -> tuple[Figure | SubFigure, pd.DataFrame]:
    """Draw a panel for each combination of two axes; return the figure and the rows it shows.

    Parameters
    ----------
    layout : Layout
    page : dict
        Values of the axes of which each combination has a figure of its own.
    table : DataFrame
        Rows of all panels.
    draw : callable
        ``draw(axes, rows)`` draws the rows of one panel.
    handles : sequence
        Of the legend.
    label : str
        Of the y axes.
    """
    panels = layout.panels(page)
    rows = max(panel.row for panel in panels) + 1
    columns = max(panel.column for panel in panels) + 1
    width = max(6.4, 4.1 * columns) if layout.x else 6.4
    figure = new_figure(width, 1.0 + 2.5 * rows)
    grid = figure.subplots(rows, columns, squeeze=False)
    shown = []
    for panel in panels:
        axes, part = grid[panel.row, panel.column], panel.chosen(table)
        shown.append(part)
        axes.set_title(panel.title, loc="left")
        draw(axes, part)
        if panel.column == 0:
            axes.set_ylabel(label)
    _make_comparable([grid[panel.row, panel.column] for panel in panels])
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(len(handles), 6), handlelength=2.4
    )
    return figure, pd.concat(shown)


def _make_comparable(panels: Sequence[Axes]) -> None:
    """Give panels the same limits where that leaves them readable, and one number format."""
    for direction in ("x", "y"):
        share_limits(panels, direction)
        axes = [getattr(panel, f"{direction}axis") for panel in panels]
        plain_numbers(
            *(axis for axis in axes if isinstance(axis.get_major_formatter(), PlainNumbers))
        )


def panels_drawn(
    layout: Layout, name: str, caption: str, figure: Figure | SubFigure, data: pd.DataFrame
) -> Drawn:
    """Return a figure of panels; its caption says what they are, and what their axes are like."""
    axes = [axis for axis in (layout.rows, layout.columns) if axis]
    by = f" One panel for each combination of {' and '.join(map(axis_name, axes))}." if axes else ""
    return Drawn(figure, data, name, caption + by + axes_words(figure))


def label_x(axes: Axes, layout: Layout) -> None:
    """Name the levels along x."""
    axes.set_xticks(range(len(layout.x_values)), [value_text(each) for each in layout.x_values])
    axes.tick_params(axis="x", length=0)
    if layout.x:
        axes.set_xlabel(axis_name(layout.x).capitalize())


def places_along_x(layout: Layout, table: pd.DataFrame) -> np.ndarray:
    """Return the index along x of each row."""
    if layout.x is None:
        return np.zeros(len(table))
    index = {value: k for k, value in enumerate(layout.x_values)}
    return table[layout.x].map(index).to_numpy(dtype=np.float64)


def scale_of(metric: str, largest: float) -> tuple[float, str]:
    """Return the divisor and the label under which a metric of such values is drawn."""
    entry = METRICS[metric]
    if entry.unit in ("J", "J s"):
        factor, unit = prefixed(entry.unit, largest)
        return factor, entry.title_in(unit)
    return 0.01 if entry.is_share else 1.0, entry.title


def draw_boxes(
    axes: Axes, samples: Sequence[np.ndarray], x: Any, width: float, look: PatchLook | BoxLook
) -> None:
    """Draw a box for each sample: median, quartiles, whiskers to 1.5 interquartile ranges.

    Parameters
    ----------
    axes : Axes
    samples : sequence of ndarray
    x : array_like
        Where the boxes stand.
    width : float
        Of a box.
    look : PatchLook or BoxLook
        Keyword arguments of the boxes.
    """
    axes.boxplot(
        samples, positions=x, widths=width, patch_artist=True, manage_ticks=False,
        boxprops={"linewidth": 0.5, **look}, medianprops={"color": "#000000"},
        whiskerprops={"linewidth": 0.7}, capprops={"linewidth": 0.7},
        flierprops={"marker": ".", "markersize": 2, "markeredgecolor": "#303030"},
    )  # fmt: skip


def draw_line(axes: Axes, x: np.ndarray, y: np.ndarray, look: SeriesLook) -> None:
    """Draw a series as a line with markers."""
    axes.plot(
        x, y, color=look.dark, linestyle=look.line, linewidth=1.8 if look.is_baseline else 1.1,
        marker=look.marker, markersize=7 if look.is_baseline else 4,
    )  # fmt: skip


def line_handle(look: SeriesLook, *, line: LineStyleType | None = None) -> Line2D:
    """Return what stands for a series in the legend."""
    return Line2D(
        [], [], color=look.dark, linestyle=look.line if line is None else line, label=look.label,
        marker=look.marker, markersize=7 if look.is_baseline else 4,
    )  # fmt: skip
