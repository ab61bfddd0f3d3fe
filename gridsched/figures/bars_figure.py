"""Means of a metric by scheduler, as bars with their intervals."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from gridsched.analysis.study_results import StudyResults
from gridsched.figures.axes import finish_bars_axis, plain_numbers
from gridsched.figures.study_layout import Layout
from gridsched.figures.study_panels import (
    draw_panels,
    label_x,
    panels_drawn,
    places_along_x,
    scale_of,
)
from gridsched.figures.table import Drawn, register_figure


@register_figure("bars", "study", "Means by scheduler.", heading="Means", place=10, is_usual=True)
def bars(results: StudyResults, layout: Layout) -> Iterator[Drawn]:
    """Yield a figure for each page and metric: a bar with its interval for each scheduler."""
    handles = [Patch(label=look.label, **look.patch) for look in layout.looks]
    for page, suffix in layout.numbered_pages():
        for metric in layout.metrics:
            means = layout.means(metric)
            factor, label = scale_of(metric, float(means["mean"].max()))
            draw = partial(_draw, layout=layout, factor=factor, drawn=means["mean"] / factor)
            caption = f"{label} by scheduler: mean and 95 % confidence interval."
            drawn = draw_panels(layout, page, means, draw, handles, label)
            yield panels_drawn(layout, f"bars-{metric}{suffix}", caption, *drawn)


def _draw(axes: Axes, table: pd.DataFrame, layout: Layout, factor: float, drawn: pd.Series) -> None:
    width = 0.84 / len(layout.looks)
    for k, look in enumerate(layout.looks):
        part = table[table["scheduler"] == look.label]
        x = places_along_x(layout, part) + (k - (len(layout.looks) - 1) / 2) * width
        heights = part["mean"].to_numpy() / factor
        half = (part["high"] - part["low"]).fillna(0.0).to_numpy() / 2 / factor
        axes.bar(x, heights, width, linewidth=0.5, **look.patch)
        axes.errorbar(x, heights, half, fmt="none", ecolor="#000000", elinewidth=0.8, capsize=1)
    finish_bars_axis([axes], drawn)
    axes.grid(axis="y")
    plain_numbers(axes.yaxis)
    label_x(axes, layout)
