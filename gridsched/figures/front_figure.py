"""Makespan over energy: what is possible, the front, and what each place earns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from gridsched.analysis.claim_values import Level
from gridsched.analysis.study_results import StudyResults, restricted
from gridsched.analysis.texts import axis_name
from gridsched.campaign.segments import with_infinities
from gridsched.errors import InputError
from gridsched.figures.axes import plain_numbers, prefixed
from gridsched.figures.declared_levels import (
    declared_drawn,
    drawn_levels,
    drawn_where,
    families_of,
    level_scale,
)
from gridsched.figures.figure_file import new_figure
from gridsched.figures.looks import LineLook
from gridsched.figures.table import Drawn, register_figure
from gridsched.model.tariff import Tariff
from gridsched.optimize.answers import Landscape, front_answer, landscape, profit_answer
from gridsched.spec.claims_schema import DeclaredFigure
from gridsched.spec.optimization import optimize
from gridsched.spec.run_spec import OPTIMIZE, RunSpec
from gridsched.spec.scenario_maker import ScenarioMaker

Floats = NDArray[np.float64]
#: Rows of the data file: series, energy, makespan, profit rate.
Points = list[tuple[str, float, float, float]]
#: Contours of the profit rate, about.
CONTOURS = 9
#: Places along each axis at which the profit rate is computed for its contours.
GRID = 200
#: Energies above the largest drawn one that are shown, as a share of the range of the drawn ones.
FURTHER = 0.6
_DARK = "#2f6396"


@register_figure("front", "landscape", "The front, the feasible region and profit contours.")
def front(subject: Landscape, *, title: str = "") -> Drawn:
    """Draw makespan over energy, as figures 1 and 5 of paper 003.

    Parameters
    ----------
    subject : Landscape
    title : str
    """
    figure = new_figure(7.6, 5.2)
    points = draw_landscape(figure.add_subplot(), subject)
    figure.legend(loc="outside lower center", ncols=3)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=9.5, fontweight="bold")
    return Drawn(figure, points_table(points))


def points_table(points: Points) -> dict[str, list[Any]]:
    """Return what is drawn as columns."""
    names = ("series", "energy_j", "makespan_s", "profit_rate")
    return dict(zip(names, map(list, zip(*points, strict=True)), strict=True))


def draw_landscape(axes: Axes, subject: Landscape) -> Points:
    """Draw a landscape on axes, without its legend; return the points that are drawn."""
    factor, unit = prefixed("J", float(subject.answer.front.energies_j.max(initial=0.0)))
    points = _draw_region(axes, subject, factor) + _draw_front(axes, subject, factor)
    _set_limits(axes, subject, factor, points)
    tariff = subject.tariff
    if tariff is not None:
        _draw_contours(axes, subject, tariff, factor)
    if subject.profit is not None:
        points += _draw_plan(axes, subject, factor)
    axes.set_xlabel(f"Energy [{unit}]")
    axes.set_ylabel("Makespan [s]")
    plain_numbers(axes.xaxis)
    plain_numbers(axes.yaxis)
    return points


def _draw_region(axes: Axes, subject: Landscape, factor: float) -> Points:
    times = subject.makespans_s
    axes.fill_betweenx(
        times, subject.least_j / factor, subject.most_j / factor, facecolor="#e9eef4",
        edgecolor="#9aa7b5", linewidth=0.8, label="possible with divided tasks",
    )  # fmt: skip
    nothing = float("nan")
    return [
        (name, float(energy), float(time), nothing)
        for name, energies in (("least energy", subject.least_j), ("most energy", subject.most_j))
        for energy, time in zip(energies, times, strict=True)
    ]


def _draw_front(axes: Axes, subject: Landscape, factor: float) -> Points:
    """Draw the corners of the front, and the schedules of whole tasks made from them."""
    rows = subject.answer.rows()
    series: tuple[tuple[str, str, str, LineLook], ...] = (
        ("front", "energy_j", "makespan_s",
         {"marker": "o", "markersize": 3.5, "linewidth": 1.8, "color": _DARK,
          "label": "front of divided tasks"}),
        ("schedules", "schedule_energy_j", "schedule_makespan_s",
         {"marker": "D", "markersize": 3.5, "linestyle": "", "color": "#606060",
          "markerfacecolor": "none", "markeredgewidth": 0.7, "label": "schedules of whole tasks"}),
    )  # fmt: skip
    points: Points = []
    for name, energy, makespan, look in series:
        x, y = ([row[key] for row in rows] for key in (energy, makespan))
        axes.plot(np.array(x) / factor, y, zorder=3, **look)
        earns = [row.get("profit_rate", float("nan")) for row in rows]
        earns = earns if name == "front" else [float("nan")] * len(rows)
        points += [(name, *each) for each in zip(x, y, earns, strict=True)]
    return points


def _set_limits(axes: Axes, subject: Landscape, factor: float, points: Points) -> None:
    """Show the front and the plan whole, and of the region what is not far from them."""
    drawn = [point[1] for point in points if point[0] in ("front", "schedules")]
    if subject.profit is not None:
        drawn += [row["energy_j"] for row in subject.profit.rates() if row["energy_j"] < np.inf]
    least, most = min(drawn), max(drawn)
    width = max(most - least, 0.05 * most)
    axes.set_xlim((least - 0.1 * width) / factor, (most + FURTHER * width) / factor)
    bottom, top = float(subject.makespans_s[0]), float(subject.makespans_s[-1])
    axes.set_ylim(bottom - 0.06 * (top - bottom), top)


def _draw_contours(axes: Axes, subject: Landscape, tariff: Tariff, factor: float) -> None:
    """Draw where schedules earn the same per second; wear, which depends on more, is left out."""
    x, y = (np.linspace(*limits, GRID) for limits in (axes.get_xlim(), axes.get_ylim()))
    energy, makespan = np.meshgrid(x * factor, y)
    standing = tariff.depreciation(subject.answer.named.bag.hosts)

    def rate(energy_j: Any, makespan_s: Any) -> Any:
        costs = tariff.overhead + tariff.energy_cost_per_j * tariff.pue * energy_j
        return (tariff.price - costs) / makespan_s - standing

    rates = rate(energy, np.maximum(makespan, 1e-3 * y[-1]))
    least, most = (
        np.interp(makespan, subject.makespans_s, edge) for edge in (subject.least_j, subject.most_j)
    )
    possible = rates[(energy >= least) & (energy <= most)]
    shown = possible if possible.size else rates  # one type of machines leaves no room
    levels = MaxNLocator(CONTOURS).tick_values(shown.min(), shown.max())
    lines = axes.contour(
        x, y, rates, levels=levels, colors="#8c5a1a", linewidths=0.8, linestyles="dashed",
    )  # fmt: skip
    divisor, letter = prefixed("", float(np.abs(levels).max()))
    axes.clabel(lines, fmt=lambda level: f"{level / divisor:,.4g}{letter if level else ''}",
                fontsize=7)  # fmt: skip
    if subject.profit is not None and subject.profit.plan.runs:  # what equals the largest profit
        best = rate(subject.profit.plan.energy_j, subject.profit.plan.makespan_s)
        axes.contour(x, y, rates, levels=[best], colors="#c0392b", linewidths=1.0)
    wear = ", before wear" if np.any(tariff.wear(len(subject.answer.named.machine_types))) else ""
    axes.plot([], [], color="#8c5a1a", linewidth=0.8, linestyle="--",
              label=f"equal profit per second{wear}")  # fmt: skip


def _draw_plan(axes: Axes, subject: Landscape, factor: float) -> Points:
    """Draw the largest profit rate, by divided and whole tasks, and the power cap."""
    answer = subject.profit
    points: Points = []
    if answer is None:
        return points
    empty: LineLook = {"linestyle": "", "markerfacecolor": "none", "markeredgewidth": 2,
                         "markeredgecolor": "#c0392b"}  # fmt: skip
    looks: dict[str, LineLook] = {
        "divided": {"marker": "s", "markersize": 11, "label": "largest profit, divided tasks"},
        "whole": {"marker": "D", "markersize": 7, "label": "its schedule of whole tasks"},
    }  # fmt: skip
    if answer.plan.runs:
        for row in answer.rates():
            energy, time = row["energy_j"], row["time_s"]
            look = looks[row["tasks"]] | empty
            axes.plot(energy / factor, time, zorder=4, **look)
            points.append((f"largest profit, {row['tasks']}", energy, time, row["profit_rate"]))
    if np.isfinite(answer.plan.power_cap_w):
        joules = np.array(axes.get_xlim()) * factor
        time = joules * answer.plan.tariff.pue / answer.plan.power_cap_w
        below = axes.get_ylim()[0]
        axes.fill_between(
            joules / factor, below, np.maximum(time, below), facecolor="none", hatch="...",
            edgecolor="#b8b8b8", linewidth=0, label=f"above {answer.plan.power_cap_w:,.6g} W",
        )  # fmt: skip
        axes.plot(joules / factor, time, color="#505050", linewidth=1.2, scaley=False)
    return points


def landscapes(results: StudyResults, declared: DeclaredFigure) -> Drawn:
    """Draw a panel for each level, of its first stored optimisation.

    What is possible follows from the run's description, as bounds do: it is computed here.

    Raises
    ------
    InputError
        If a level has no stored run with the driver ``optimize``, or a file of it is damaged.
    """
    (family, *_) = families_of(results, declared, single=False)
    levels = drawn_levels(results, declared, family)
    figure = new_figure(3.6 * len(levels) + 0.6, 4.2)
    panels = figure.subplots(1, len(levels), squeeze=False)[0]
    texts = level_scale(declared, [level.value for level in levels]).levels or {}
    tables = []
    for axes, level in zip(panels, levels, strict=True):
        points = draw_landscape(axes, _landscape(results, declared, level))
        axes.set_title(f"{axis_name(declared.along)} {texts[level.value]}")
        tables.append(pd.DataFrame(points_table(points)).assign(**{declared.along: level.value}))
    for axes in panels[1:]:
        axes.set_ylabel("")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return declared_drawn(declared, figure, pd.concat(tables, ignore_index=True))


def _landscape(results: StudyResults, declared: DeclaredFigure, level: Level) -> Landscape:
    """Return what is possible for the bag of a level's first run, and its most profitable plan."""
    where = {**drawn_where(results, declared), **level.where, "scheduler": (level.label,)}
    runs = restricted(results.shown, where).sort_values("replicate")
    for text in runs["scenario"].head(1):
        described = with_infinities(json.loads(text))
        if RunSpec.read(described).settings.driver == OPTIMIZE:
            study = results.study
            maker = ScenarioMaker({f.sha256: f.checked() for f in study.inputs.values()}, Path())
            if study.is_imported:
                maker.load_policies(study.policies)
            wanted = maker.optimization(described)
            plan = optimize(wanted).plan
            if plan.tariff is None:
                break
            limits = {"power_cap_w": plan.power_cap_w, "least_rate_per_s": plan.least_rate_per_s}
            answer = profit_answer(wanted.named, plan.tariff, **limits)
            return landscape(front_answer(wanted.named, plan.tariff), answer)
    raise InputError(
        f"Figure {declared.name!r}: {level.label} has no finished run with the driver "
        f"{OPTIMIZE!r} and a price; kind 'landscapes' draws such runs."
    )
