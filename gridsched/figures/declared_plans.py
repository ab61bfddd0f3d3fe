"""Makespan over energy of plans, and what they earn: figures 1 and 3 of paper 003."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from gridsched.analysis.claim_values import replicate_values
from gridsched.analysis.study_results import StudyResults
from gridsched.analysis.texts import prefixed, value_text
from gridsched.figures.axes import plain_numbers
from gridsched.figures.declared_levels import declared_drawn, drawn_levels, drawn_where, families_of, names_of
from gridsched.figures.figure_file import new_figure
from gridsched.figures.front_figure import draw_cap
from gridsched.figures.table import Drawn
from gridsched.metrics import METRICS
from gridsched.runs.claims_schema import DeclaredFigure

#: Columns of the data: divided tasks, then whole ones.
_POINTS = ("divided_energy_j", "divided_makespan_s", "energy_j", "makespan_s")
_FRONT = "#2f6396"
_GAIN, _LOSS = "#6f9e5c", "#c0392b"
_BAR: dict[str, Any] = {"linewidth": 3.5, "alpha": 0.6}
_FILLS = ("none", "#f0b65a", "#c9b3d6")
#: Height of the largest bar [point].
_TALLEST = 110.0
#: Numbers on shorter bars stand beside the square [point].
_NEAR = 8.0
#: Makespans that differ by a larger factor are drawn on a logarithmic axis.
_LOGARITHMIC = 10.0


def plans(results: StudyResults, declared: DeclaredFigure) -> Drawn:
    """Draw squares for divided, diamonds for whole tasks; families that vary otherwise as a line.

    The bar on a square is the metric, downward where it is negative. A family with the parameter
    `power_cap_w` has its cap drawn.
    """
    families = families_of(results, declared, single=False)
    names = names_of(declared, families)
    swept = [name for name in families if _varies(results, name, declared.along)]
    tables = {name: _points(results, declared, name, name in swept) for name in families}
    data = pd.concat(tables.values(), ignore_index=True)
    factor, unit = prefixed("J", float(data["energy_j"].max()))
    figure = new_figure(7.6, 5.4)
    axes = figure.subplots()
    shown = data.dropna(subset=["divided_makespan_s"])
    if np.ptp(np.log(shown["divided_makespan_s"])) > np.log(_LOGARITHMIC):
        axes.set_yscale("log")
    for name in (each for each in families if each not in swept):
        front = tables[name].sort_values("divided_makespan_s")
        axes.plot(
            front["divided_energy_j"] / factor,
            front["divided_makespan_s"],
            color=_FRONT,
            linewidth=1.6,
            zorder=2,
            label="front of divided tasks",
        )
    largest = float(shown[declared.metric].abs().max())
    for k, name in enumerate(swept):
        points = tables[name].dropna(subset=["divided_makespan_s"])
        label = f"{names[name]}, divided tasks" if len(swept) > 1 else "divided tasks"
        _draw_points(axes, points, factor, k, label)
        _draw_bars(axes, points, declared, factor, _TALLEST / largest if largest else 0.0, k)
    metric = METRICS[declared.metric].name.lower()
    axes.plot([], [], color=_GAIN, label=f"{metric} (number: {declared.along})", **_BAR)
    if (data[declared.metric] < 0).any():
        axes.plot([], [], color=_LOSS, label="loss", **_BAR)
    axes.margins(x=0.06, y=0.1)
    for cap_w in _caps(results, families):
        draw_cap(axes, factor, cap_w)
    axes.set_xlabel(f"Energy [{unit}]")
    axes.set_ylabel("Makespan [s]")
    plain_numbers(axes.xaxis)
    plain_numbers(axes.yaxis)
    figure.legend(loc="outside lower center", ncols=3)
    return declared_drawn(declared, figure, data)


def _varies(results: StudyResults, family: str, along: str) -> bool:
    return any(along in each.varied for each in results.study.schedulers if each.family == family)


def _points(results: StudyResults, declared: DeclaredFigure, family: str, is_swept: bool) -> pd.DataFrame:
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
            {
                "scheduler": label,
                declared.along: value,
                "count": len(values["energy_j"]),
                **{name: float(each.mean()) for name, each in values.items()},
            }
        )
    return pd.DataFrame(rows)


def _draw_points(axes: Axes, points: pd.DataFrame, factor: float, k: int, label: str) -> None:
    """Draw the points of the k-th swept family."""
    axes.plot(
        points["divided_energy_j"] / factor,
        points["divided_makespan_s"],
        linestyle="",
        marker="s",
        markersize=8,
        markerfacecolor=_FILLS[k % len(_FILLS)],
        markeredgecolor="#303030",
        markeredgewidth=1.2,
        zorder=3,
        label=label,
    )
    axes.plot(
        points["energy_j"] / factor,
        points["makespan_s"],
        linestyle="",
        marker="D",
        markersize=4.5,
        markerfacecolor="none",
        markeredgecolor="#a5371b",
        zorder=4,
        label="_again" if k else "whole tasks",
    )


def _draw_bars(
    axes: Axes, points: pd.DataFrame, declared: DeclaredFigure, factor: float, per_unit: float, k: int
) -> None:
    """Draw a bar on each point; its level stands at the end."""
    side = 1 if k % 2 else -1
    for row in points.to_dict("records"):
        at = row["divided_energy_j"] / factor, row["divided_makespan_s"]
        height = row[declared.metric] * per_unit
        axes.annotate(
            "",
            at,
            (0, height),
            textcoords="offset points",
            zorder=1,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": _GAIN if height >= 0 else _LOSS,
                **_BAR,
                "shrinkA": 0,
                "shrinkB": 0,
            },
        )
        beyond = height + 2 if height > _NEAR else height - 9 if height < -_NEAR else -3
        axes.annotate(
            value_text(row[declared.along]),
            at,
            (3.5 * side if abs(height) > _NEAR else 7 * side, beyond),
            textcoords="offset points",
            ha="left" if k % 2 else "right",
            fontsize=7.5,
            color="#8c5a1a" if k % 2 else "#000000",
        )


def _caps(results: StudyResults, families: list[str]) -> list[float]:
    """Return the power caps of the families [W]."""
    caps = (each.parameters.get("power_cap_w") for each in results.study.schedulers if each.family in families)
    return list(dict.fromkeys(cap for cap in caps if cap is not None))
