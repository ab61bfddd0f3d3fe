"""Paired differences from the baseline, as boxes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from gridsched.analysis import statistics
from gridsched.analysis.study_results import StudyResults
from gridsched.figures.study_layout import Layout, SeriesLook
from gridsched.figures.study_panels import (
    draw_boxes,
    draw_panels,
    label_x,
    panels_drawn,
    places_along_x,
)
from gridsched.figures.table import Drawn, register_figure
from gridsched.metrics import METRICS


@register_figure(
    "boxes", "study", "Paired differences from the baseline.", heading="Paired differences",
    place=30, is_usual=True,
)  # fmt: skip
def boxes(results: StudyResults, layout: Layout) -> Iterator[Drawn]:
    """Yield a figure for each page and metric: a box for each scheduler but the baseline."""
    if len(results.labels) < 2:
        return
    looks = [look for look in layout.looks if not look.is_baseline]
    handles = [Patch(label=look.label, **look.patch) for look in looks]
    draw = partial(_draw, layout=layout, looks=looks)
    for page, suffix in layout.numbered_pages():
        for metric in (name for name in layout.metrics if not METRICS[name].is_share):
            pairs = statistics.paired_differences(
                results.shown, results.cell_axes, metric, results.baseline
            )
            if not pairs["difference_percent"].notna().any():
                continue  # nothing is above a baseline of 0 by a share
            label = f"{METRICS[metric].name}:\nmore than {results.baseline} [%]"
            figure, shown = draw_panels(layout, page, pairs, draw, handles, label)
            caption = (
                f"{METRICS[metric].name} above that of {results.baseline}, paired over replicates "
                "[%]: median, quartiles, whiskers to 1.5 interquartile ranges, and what lies "
                "outside."
            )
            data = _quantiles(results, shown)
            yield panels_drawn(layout, f"boxes-{metric}{suffix}", caption, figure, data)


def _draw(axes: Axes, table: pd.DataFrame, layout: Layout, looks: list[SeriesLook]) -> None:
    width = 0.84 / len(looks)
    for k, look in enumerate(looks):
        part = table[(table["scheduler"] == look.label) & table["difference_percent"].notna()]
        places, values = places_along_x(layout, part), part["difference_percent"].to_numpy()
        known = np.unique(places)
        if len(known):
            samples = [values[places == place] for place in known]
            centres = known + (k - (len(looks) - 1) / 2) * width
            draw_boxes(axes, samples, centres, 0.86 * width, look.patch)
    axes.axhline(0, color="#1b3a5c", linewidth=1.2)
    axes.grid(axis="y")
    axes.set_xlim(-0.5, len(layout.x_values) - 0.5)
    label_x(axes, layout)


def _quantiles(results: StudyResults, pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the five numbers of each box."""
    groups = pairs.groupby([*results.cell_axes, "scheduler"], sort=False)["difference_percent"]
    table = groups.quantile([0.0, 0.25, 0.5, 0.75, 1.0]).unstack()
    table.columns = ["minimum", "quartile_1", "median", "quartile_3", "maximum"]
    return table.assign(count=groups.count()).reset_index()
