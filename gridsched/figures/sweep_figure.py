"""Means of a metric along an axis of numbers, as lines with their intervals."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from gridsched.analysis.study_results import StudyResults
from gridsched.analysis.texts import axis_name
from gridsched.figures.axes import plain_numbers
from gridsched.figures.study_layout import Layout
from gridsched.figures.study_panels import (
    draw_line,
    draw_panels,
    line_handle,
    panels_drawn,
    scale_of,
)
from gridsched.figures.table import Drawn, register_figure


@register_figure(
    "sweep", "study", "Means along an axis of numbers.", heading="Sweeps", place=20, is_usual=True
)
def sweep(results: StudyResults, layout: Layout) -> Iterator[Drawn]:
    """Yield a figure for each page and metric: a line with a band for each scheduler."""
    if not layout.is_sweep or layout.x is None:
        return
    handles = [line_handle(look) for look in layout.looks]
    for page, suffix in layout.numbered_pages():
        for metric in layout.metrics:
            means = layout.means(metric)
            factor, label = scale_of(metric, float(means["mean"].max()))
            draw = partial(_draw, layout=layout, along=layout.x, factor=factor)
            caption = (
                f"{label} along {axis_name(layout.x)}: mean, and 95 % confidence interval as a "
                "band. The y axes do not begin at 0."
            )
            drawn = draw_panels(layout, page, means, draw, handles, label)
            yield panels_drawn(layout, f"sweep-{metric}{suffix}", caption, *drawn)


def _draw(axes: Axes, table: pd.DataFrame, layout: Layout, along: str, factor: float) -> None:
    for look in layout.looks:
        part = table[table["scheduler"] == look.label].sort_values(along)
        x = part[along].to_numpy(dtype=np.float64)
        low, high = (part[name].to_numpy() / factor for name in ("low", "high"))
        axes.fill_between(x, low, high, color=look.dark, alpha=0.2, linewidth=0)
        draw_line(axes, x, part["mean"].to_numpy() / factor, look)
    axes.grid(axis="y")
    plain_numbers(axes.yaxis)
    axes.set_xlabel(axis_name(along).capitalize())
