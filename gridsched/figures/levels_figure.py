"""A metric at each level of what varies, a panel for each family."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gridsched.analysis.study_results import StudyResults
from gridsched.figures.axes import finish_bars_axis
from gridsched.figures.declared_panels import (
    BEST,
    along_scale,
    declared_drawn,
    draw_bars,
    families_of,
    family_panels,
    finish_bars,
    finish_y,
    level_means,
    level_text,
    limit_of,
)
from gridsched.figures.study_panels import scale_of
from gridsched.figures.table import Drawn, register_figure
from gridsched.spec.claims_schema import DeclaredFigure


@register_figure("sweep", "declared", "Bars of a metric at each level, a panel for each family.")
def levels(results: StudyResults, declared: DeclaredFigure) -> Drawn:
    """Draw bars with their intervals, and the limit as a line."""
    families = families_of(results, declared, single=False)
    tables = [level_means(results, declared, family) for family in families]
    data = pd.concat(tables, ignore_index=True)
    limit = limit_of(results, declared, families[0])
    factor, label = scale_of(declared.metric, float(np.nanmax([data["mean"].max(), limit])))
    along, along_label = along_scale(declared, data[declared.along])
    figure, panels = family_panels(families, 5.2, 3.0)
    for k, (axes, table) in enumerate(zip(panels, tables, strict=True)):
        draw_bars(axes, range(len(table)), table, factor, 0.72, BEST)
        labels = [level_text(declared, value, along) for value in table[declared.along]]
        finish_bars(axes, labels, label if k % 2 == 0 else None)
        axes.tick_params(axis="x", labelsize=8)
        axes.set_xlabel(along_label)
    finish_bars_axis(panels, data["mean"] / factor)
    finish_y(panels, declared, limit / factor)
    if declared.limit:
        data[declared.limit] = limit
    return declared_drawn(declared, figure, data)
