"""A metric along what varies, a line for each family."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from gridsched.analysis.study_results import StudyResults
from gridsched.figures.axes import plain_numbers
from gridsched.figures.declared_panels import (
    along_scale,
    declared_drawn,
    families_of,
    level_means,
    names_of,
)
from gridsched.figures.figure_file import LineLook, new_figure
from gridsched.figures.study_panels import scale_of
from gridsched.figures.table import Drawn, register_figure
from gridsched.spec.claims_schema import DeclaredFigure

#: They differ in brightness, dashes and markers; a later one leaves an earlier one visible.
_LOOKS: tuple[LineLook, ...] = (
    {"color": "#a9c1d9", "linestyle": "-", "linewidth": 3.0, "marker": "s", "markersize": 7},
    {"color": "#a5371b", "linestyle": "--", "linewidth": 1.4, "marker": "o", "markersize": 4},
    {"color": "#303030", "linestyle": ":", "linewidth": 1.4, "marker": "^", "markersize": 5},
    {"color": "#2f6396", "linestyle": "-", "linewidth": 1.4, "marker": "D", "markersize": 4},
    {"color": "#d08a1d", "linestyle": "-", "linewidth": 1.6, "marker": "v", "markersize": 5},
    {"color": "#d08a1d", "linestyle": ":", "linewidth": 1.6, "marker": "P", "markersize": 5},
    {"color": "#4f7f4a", "linestyle": "--", "linewidth": 1.4, "marker": "s", "markersize": 4},
    {"color": "#4f7f4a", "linestyle": ":", "linewidth": 1.4, "marker": "X", "markersize": 5},
    {"color": "#7a4f93", "linestyle": "-.", "linewidth": 1.4, "marker": "<", "markersize": 4},
    {"color": "#808080", "linestyle": "-.", "linewidth": 1.4, "marker": ">", "markersize": 4},
)
#: More lines than this have a taller figure, a legend of several rows, and intervals as bars.
_MANY = 4
#: The points of many lines at one level stand apart by this share of the distance of two levels.
_APART = 0.05


@register_figure("lines", "declared", "A metric along what varies, a line for each family.")
def lines(results: StudyResults, declared: DeclaredFigure) -> Drawn:
    """Draw means as lines, with 95 % intervals as bands; of many lines as bars side by side."""
    families = families_of(results, declared, single=False)
    tables = [level_means(results, declared, family) for family in families]
    data = pd.concat(tables, ignore_index=True)
    factor, label = scale_of(declared.metric, float(data["mean"].abs().max()))
    along, along_label = along_scale(declared, data[declared.along])
    figure = new_figure(6.4, 4.0 if len(families) <= _MANY else 5.0)
    axes = figure.subplots()
    handles = []
    names = names_of(declared, families)
    for k, (table, name) in enumerate(zip(tables, names, strict=True)):
        look = _LOOKS[k % len(_LOOKS)]
        x = table[declared.along].to_numpy(dtype=np.float64) / along
        mean, low, high = (table[each].to_numpy() / factor for each in ("mean", "low", "high"))
        if len(families) > _MANY:
            x = x + (k - (len(families) - 1) / 2) * _apart(x)
            axes.errorbar(x, mean, (mean - low, high - mean), elinewidth=0.8, **look)
        else:
            axes.fill_between(x, low, high, color=look["color"], alpha=0.25, linewidth=0)
            axes.plot(x, mean, **look)
        handles.append(Line2D([], [], label=name, **look))
    if data["mean"].min() < 0 < data["mean"].max():
        axes.axhline(0, color="#808080", linewidth=0.8)
    axes.set_xlabel(along_label)
    axes.set_ylabel(label)
    axes.grid()
    plain_numbers(axes.yaxis)
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(len(handles), _MANY),
        handlelength=3.2,
    )  # fmt: skip
    drawn = declared_drawn(declared, figure, data)
    if len(families) <= _MANY:
        return drawn
    return replace(drawn, caption=f"{drawn.caption} Points of one level stand side by side.")


def _apart(x: NDArray[np.float64]) -> float:
    """Return how far apart points of one level stand."""
    steps = np.diff(np.sort(x))
    return _APART * float(steps.min()) if len(steps) else 0.0
