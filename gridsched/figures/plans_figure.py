"""Makespan over energy of plans, and what they earn: figures 1 and 3 of paper 003."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gridsched.analysis.claim_values import replicate_values
from gridsched.analysis.study_results import StudyResults
from gridsched.analysis.texts import value_text
from gridsched.figures.declared_panels import (
    declared_drawn,
    drawn_levels,
    drawn_where,
    families_of,
)
from gridsched.figures.figure_file import new_figure, plain_numbers, prefixed
from gridsched.figures.table import Drawn, register_figure
from gridsched.metrics import METRICS
from gridsched.spec.study_document import DeclaredFigure

#: Columns of the data: divided tasks, then whole ones.
_POINTS = ("divided_energy_j", "divided_makespan_s", "energy_j", "makespan_s")
_FRONT = "#2f6396"
_GAIN, _LOSS, _CAP = "#6f9e5c", "#c0392b", "#505050"
#: Height of the largest bar, as a share of the range of makespans.
_TALLEST = 0.35


@register_figure("plans", "declared", "Makespan over energy of plans, with what they earn as bars.")
def plans(results: StudyResults, declared: DeclaredFigure) -> Drawn:
    """Draw squares for divided, diamonds for whole tasks; families that vary otherwise as a line.

    The bar on a square is the metric, downward where it is negative. A family with the parameter
    `power_cap_w` has its cap drawn.
    """
    families = families_of(results, declared, single=False)
    swept = [name for name in families if _varies(results, name, declared.along)]
    tables = {name: _points(results, declared, name, name in swept) for name in families}
    data = pd.concat(tables.values(), ignore_index=True)
    factor, unit = prefixed("J", float(data["energy_j"].max()))
    figure = new_figure(7.6, 5.4)
    axes = figure.subplots()
    handles = []
    for name in (each for each in families if each not in swept):
        front = tables[name].sort_values("divided_makespan_s")
        axes.plot(
            front["divided_energy_j"] / factor, front["divided_makespan_s"], color=_FRONT,
            linewidth=1.6, zorder=2,
        )  # fmt: skip
        handles.append(Line2D([], [], color=_FRONT, linewidth=1.6, label="front of divided tasks"))
    shown = data.dropna(subset=["divided_makespan_s"])
    tallest = _TALLEST * float(np.ptp(shown["divided_makespan_s"]))
    largest = float(shown[declared.metric].abs().max())
    for k, name in enumerate(swept):
        points = tables[name].dropna(subset=["divided_makespan_s"])
        _draw_points(axes, points, declared, factor, tallest / largest if largest else 0.0, k)
    handles += _handles(data, declared.metric)
    for cap_w in _caps(results, families):
        _draw_cap(axes, factor, cap_w)
        label = f"mean power of {cap_w / 1e3:,g} kW; beyond it, more"
        handles.append(Patch(facecolor="none", hatch="...", edgecolor="#b8b8b8", label=label))
    axes.set_xlabel(f"Energy [{unit}]")
    axes.set_ylabel("Makespan [s]")
    plain_numbers(axes.xaxis)
    plain_numbers(axes.yaxis)
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return declared_drawn(declared, figure, data)


def _varies(results: StudyResults, family: str, along: str) -> bool:
    return any(along in each.varied for each in results.study.schedulers if each.family == family)


def _points(
    results: StudyResults, declared: DeclaredFigure, family: str, is_swept: bool
) -> pd.DataFrame:
    """Return the means over replicates of each variant of a family."""
    where = drawn_where(results, declared)
    if is_swept:
        chosen = [(level.label, level.value) for level in drawn_levels(results, declared, family)]
    else:
        chosen = [(e.label, np.nan) for e in results.study.schedulers if e.family == family]
    names = dict.fromkeys((*_POINTS, declared.metric))
    rows = []
    for label, value in chosen:
        values = {name: replicate_values(results, label, where, name) for name in names}
        rows.append(
            {"scheduler": label, declared.along: value, "count": len(values["energy_j"]),
             **{name: float(each.mean()) for name, each in values.items()}}
        )  # fmt: skip
    return pd.DataFrame(rows)


def _draw_points(
    axes: Axes, points: pd.DataFrame, declared: DeclaredFigure, factor: float, per_unit: float,
    k: int,
) -> None:  # fmt: skip
    """Draw the points of one swept family; those of further families are filled."""
    fill = "none" if k == 0 else "#f0b65a"
    for row in points.to_dict("records"):
        x, y = row["divided_energy_j"] / factor, row["divided_makespan_s"]
        height = row[declared.metric] * per_unit
        axes.plot(
            [x, x], [y, y + height], color=_GAIN if height >= 0 else _LOSS, linewidth=4, alpha=0.55,
            solid_capstyle="butt", zorder=1,
        )  # fmt: skip
        axes.plot(x, y, marker="s", markersize=8, markerfacecolor=fill, markeredgecolor="#303030",
                  markeredgewidth=1.2, zorder=3)  # fmt: skip
        axes.plot(row["energy_j"] / factor, row["makespan_s"], marker="D", markersize=4.5,
                  markerfacecolor=fill, markeredgecolor="#a5371b", zorder=4)  # fmt: skip
        below = (-7, -3) if k == 0 else (7, -3)
        axes.annotate(
            value_text(row[declared.along]), (x, y), below, textcoords="offset points",
            ha="right" if k == 0 else "left", va="top", fontsize=7.5,
        )  # fmt: skip


def _handles(data: pd.DataFrame, metric: str) -> list[Line2D]:
    look = {"linestyle": "", "markerfacecolor": "none"}
    name = METRICS[metric].name.lower()
    handles = [
        Line2D([], [], marker="s", markersize=8, markeredgecolor="#303030", label="divided tasks",
               **look),
        Line2D([], [], marker="D", markersize=4.5, markeredgecolor="#a5371b", label="whole tasks",
               **look),
        Line2D([], [], color=_GAIN, linewidth=4, alpha=0.55, label=name),
    ]  # fmt: skip
    if (data[metric] < 0).any():
        handles.append(Line2D([], [], color=_LOSS, linewidth=4, alpha=0.55, label="loss"))
    return handles


def _caps(results: StudyResults, families: list[str]) -> list[float]:
    """Return the power caps of the families [W]."""
    found = (
        each.parameters.get("power_cap_w")
        for each in results.study.schedulers
        if each.family in families
    )
    return list(dict.fromkeys(cap for cap in found if cap is not None))


def _draw_cap(axes: Axes, factor: float, cap_w: float) -> None:
    """Draw the line of a mean power; what lies below it draws more."""
    limits = axes.get_xlim(), axes.get_ylim()
    joules = np.array(limits[0]) * factor
    axes.plot(joules / factor, joules / cap_w, color=_CAP, linestyle="--", linewidth=1.2)
    axes.fill_between(
        joules / factor, limits[1][0], joules / cap_w, facecolor="none", hatch="...",
        edgecolor="#b8b8b8", linewidth=0, zorder=0,
    )  # fmt: skip
    axes.set_xlim(*limits[0])
    axes.set_ylim(*limits[1])
