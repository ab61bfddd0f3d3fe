"""Means of a metric along what varies, on a logarithmic axis: levels that differ by magnitudes."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gridsched.analysis.study_results import StudyResults
from gridsched.analysis.texts import axis_name
from gridsched.figures.declared_panels import (
    declared_drawn,
    families_of,
    level_means,
    level_text,
    names_of,
)
from gridsched.figures.figure_file import MarkerLook, new_figure
from gridsched.figures.study_panels import scale_of
from gridsched.figures.table import Drawn, register_figure
from gridsched.spec.claims_schema import DeclaredFigure

#: They differ in shape, fill and brightness.
_LOOKS: tuple[MarkerLook, ...] = (
    {"marker": "o", "markerfacecolor": "#ffffff", "color": "#303030"},
    {"marker": "s", "markerfacecolor": "#2f6396", "color": "#2f6396"},
    {"marker": "^", "markerfacecolor": "#f0b65a", "color": "#8a5a00"},
    {"marker": "D", "markerfacecolor": "#7d97b2", "color": "#4a5a6a"},
)
#: Distance of the points of one level, in levels.
_STEP = 0.2


@register_figure("points", "declared", "Means on a logarithmic axis, a row for each level.")
def points(results: StudyResults, declared: DeclaredFigure) -> Drawn:
    """Draw a row of points with 95 % intervals for each level; a level without runs has none."""
    labels = families_of(results, declared, single=True)
    tables = [level_means(results, declared, label) for label in labels]
    data = pd.concat(tables, ignore_index=True)
    levels = data.loc[data["mean"].notna(), declared.along].unique().tolist()
    data = data[data[declared.along].isin(levels)].reset_index(drop=True)
    factor, text = scale_of(declared.metric, float(data["mean"].abs().max()))
    figure = new_figure(6.4, 1.4 + 0.55 * len(levels))
    axes = figure.subplots()
    for k, (label, name) in enumerate(zip(labels, names_of(declared, labels), strict=True)):
        part = data[data["scheduler"] == label]
        mean, low, high = (
            part[each].to_numpy(dtype=np.float64) / factor for each in ("mean", "low", "high")
        )
        places = [levels.index(each) for each in part[declared.along]]
        y = np.array(places) + (k - (len(labels) - 1) / 2) * _STEP
        spread = np.nan_to_num(np.maximum([mean - low, high - mean], 0.0))
        axes.errorbar(
            mean, y, xerr=spread, linestyle="", label=name, markersize=6, elinewidth=1.2,
            capsize=2.5, **_LOOKS[k % len(_LOOKS)],
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yticks(range(len(levels)), [level_text(declared, level) for level in levels])
    axes.set_ylim(len(levels) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_ylabel(axis_name(declared.along).capitalize())
    axes.set_xlabel(text)
    axes.grid(axis="x", which="both", linewidth=0.4)
    for edge in np.arange(0.5, len(levels) - 1):
        axes.axhline(edge, color="#c0c0c0", linewidth=0.6)
    figure.legend(loc="outside lower center", ncols=len(labels))
    return declared_drawn(declared, figure, data)
