"""A metric of each family's best and last variant, side by side."""

from __future__ import annotations

import math
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.patches import Patch

from gridsched.analysis.claim_values import replicate_values
from gridsched.analysis.statistics import t_interval
from gridsched.analysis.study_results import StudyResults
from gridsched.analysis.texts import axis_name
from gridsched.figures.axes import finish_bars_axis
from gridsched.figures.declared_panels import (
    BEST,
    declared_drawn,
    draw_bars,
    drawn_where,
    families_of,
    finish_bars,
    is_varied,
    level_means,
    level_text,
)
from gridsched.figures.figure_file import PatchLook, new_figure
from gridsched.figures.study_panels import scale_of
from gridsched.figures.table import Drawn, register_figure
from gridsched.spec.claims_schema import DeclaredFigure

_LAST: PatchLook = {"facecolor": "#d6e2ee", "edgecolor": "#303030", "hatch": "///"}
_SINGLE: PatchLook = {"facecolor": "#8a8a8a", "edgecolor": "#303030"}


@register_figure("best", "declared", "Bars of each family's best and last variant.")
def best(results: StudyResults, declared: DeclaredFigure) -> Drawn:
    """Draw two bars for each family that varies, one for each other."""
    families = families_of(results, declared, single=True)
    parts = []
    for family in families:
        if is_varied(results, family, declared.along):
            means = level_means(results, declared, family)
            is_best = means["mean"] == means["mean"].max()
            pair = [means[is_best].head(1).assign(bar="best"), means.tail(1).assign(bar="last")]
        else:
            values = replicate_values(
                results, family, drawn_where(results, declared), declared.metric
            )
            row = {"scheduler": family, declared.along: np.nan, **vars(t_interval(values))}
            pair = [pd.DataFrame([{**row, "bar": "only"}])]
        parts += pair
    data = pd.concat(parts, ignore_index=True)
    factor, label = scale_of(declared.metric, float(data["mean"].max()))
    figure = new_figure(1.6 + 1.25 * len(families), 4.0)
    axes = figure.subplots()
    looks = {"last": (-0.21, _LAST), "best": (0.21, BEST), "only": (0.0, _SINGLE)}
    for bar, (shift, look) in looks.items():
        part = data[data["bar"] == bar]
        x = np.array([families.index(each) for each in part["scheduler"]]) + shift
        if len(part):
            draw_bars(axes, x, part, factor, 0.4, look)
    names = [fill(each.replace("_", " "), 13) for each in families]
    finish_bars(axes, names, label)
    finish_bars_axis([axes], data["mean"] / factor)
    along = axis_name(declared.along)
    for row in data[data["bar"] == "best"].itertuples(index=False):
        value = level_text(declared, getattr(row, declared.along))
        axes.annotate(
            value, (families.index(row.scheduler) + 0.21, 0), (0, 4), textcoords="offset points",
            xycoords=("data", "axes fraction"), ha="center", fontsize=8, color="#ffffff",
            fontweight="bold",
        )  # fmt: skip
    figure.legend(
        handles=[
            Patch(label=level_text(declared, math.inf), **_LAST),
            Patch(label=f"best {along} (written in the bar)", **BEST),
        ],
        loc="outside lower center", ncols=2,
    )  # fmt: skip
    return declared_drawn(declared, figure, data)
