"""Makespan over energy: what is possible, the front, and what each place earns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from gridsched.analysis.claim_values import Level
from gridsched.analysis.study_results import StudyResults, restricted
from gridsched.analysis.texts import axis_name, prefixed
from gridsched.campaign.segments import with_infinities
from gridsched.errors import InputError
from gridsched.figures.axes import plain_numbers
from gridsched.figures.declared_levels import declared_drawn, drawn_levels, drawn_where, families_of, level_scale
from gridsched.figures.figure_file import new_figure
from gridsched.figures.looks import LineLook
from gridsched.figures.table import Drawn, register_figure
from gridsched.model.tariff import Tariff
from gridsched.optimize.answers import Landscape, front_answer, landscape, profit_answer
from gridsched.runs.claims_schema import DeclaredFigure
from gridsched.runs.optimization import optimize
from gridsched.runs.run_spec import OPTIMIZE, RunSpec
from gridsched.runs.scenario_maker import ScenarioMaker

_POINT = ["energy_j", "makespan_s", "profit_rate"]
#: Contours of the profit rate, about.
CONTOURS = 9
#: Places along each axis at which the profit rate is computed for its contours.
GRID = 200
#: Energies above the largest drawn one that are shown, as a share of the range of the drawn ones.
FURTHER = 0.6
_PLAN: LineLook = {"linestyle": "", "markerfacecolor": "none", "markeredgewidth": 2, "markeredgecolor": "#c0392b"}
#: How the series of the data are drawn, but for the edges of what is possible.
_LOOKS: dict[str, LineLook] = {
    "front": {
        "marker": "o",
        "markersize": 3.5,
        "linewidth": 1.8,
        "color": "#2f6396",
        "label": "front of divided tasks",
    },
    "schedules": {
        "marker": "D",
        "markersize": 3.5,
        "linestyle": "",
        "color": "#606060",
        "markerfacecolor": "none",
        "markeredgewidth": 0.7,
        "label": "schedules of whole tasks",
    },
    "largest profit, divided": {**_PLAN, "marker": "s", "markersize": 11, "label": "largest profit, divided tasks"},
    "largest profit, whole": {**_PLAN, "marker": "D", "markersize": 7, "label": "its schedule of whole tasks"},
}


@register_figure("front", "landscape", "The front, the feasible region and profit contours.")
def front(subject: Landscape) -> Drawn:
    """Draw makespan over energy, as figures 1 and 5 of paper 003.

    Parameters
    ----------
    subject : Landscape
    """
    figure = new_figure(7.6, 5.2)
    data = draw_landscape(figure.add_subplot(), subject)
    figure.legend(loc="outside lower center", ncols=3)
    return Drawn(figure, data)


def landscape_table(subject: Landscape) -> pd.DataFrame:
    """Return what is drawn: the edges of what is possible, the front, schedules, the plan."""
    corners = pd.DataFrame(subject.answer.rows())
    schedules = corners[["schedule_energy_j", "schedule_makespan_s"]].set_axis(_POINT[:2], axis=1)
    parts = {
        name: pd.DataFrame({"energy_j": joules, "makespan_s": subject.makespans_s})
        for name, joules in (("least energy", subject.least_j), ("most energy", subject.most_j))
    }
    parts |= {"front": corners, "schedules": schedules}
    if subject.profit is not None and subject.profit.plan.runs:
        for row in subject.profit.rates():
            plan = pd.DataFrame([row]).rename(columns={"time_s": "makespan_s"})
            parts[f"largest profit, {row['tasks']}"] = plan
    series = [part.reindex(columns=_POINT).assign(series=name) for name, part in parts.items()]
    return pd.concat(series, ignore_index=True)[["series", *_POINT]]


def draw_landscape(axes: Axes, subject: Landscape) -> pd.DataFrame:
    """Draw a landscape on axes, without its legend; return what is drawn."""
    table = landscape_table(subject)
    factor, unit = prefixed("J", float(subject.answer.front.energies_j.max(initial=0.0)))
    axes.fill_betweenx(
        subject.makespans_s,
        subject.least_j / factor,
        subject.most_j / factor,
        facecolor="#e9eef4",
        edgecolor="#9aa7b5",
        linewidth=0.8,
        label="possible with divided tasks",
    )
    points = {name: table[table["series"] == name] for name in _LOOKS}
    for (name, part), order in zip(points.items(), (3, 3, 4, 4), strict=True):
        if len(part):
            look = _LOOKS[name]
            axes.plot(part["energy_j"] / factor, part["makespan_s"], zorder=order, **look)
    _set_limits(axes, subject, pd.concat(points.values())["energy_j"] / factor)
    if subject.tariff is not None:
        _draw_contours(axes, subject, subject.tariff, factor)
    if subject.profit is not None and np.isfinite(subject.profit.plan.power_cap_w):
        plan = subject.profit.plan
        draw_cap(axes, factor, plan.power_cap_w, plan.tariff.pue)
    axes.set_xlabel(f"Energy [{unit}]")
    axes.set_ylabel("Makespan [s]")
    plain_numbers(axes.xaxis)
    plain_numbers(axes.yaxis)
    return table


def _set_limits(axes: Axes, subject: Landscape, energies: pd.Series) -> None:
    """Show the front and the plan whole, and of the region what is not far from them."""
    least, most = energies.min(), energies.max()
    width = max(most - least, 0.05 * most)
    axes.set_xlim(least - 0.1 * width, most + FURTHER * width)
    bottom, top = float(subject.makespans_s[0]), float(subject.makespans_s[-1])
    axes.set_ylim(bottom - 0.06 * (top - bottom), top)


def draw_cap(axes: Axes, factor: float, cap_w: float, pue: float = 1.0) -> None:
    """Draw the line of a mean power; what lies below it draws more."""
    limits = axes.get_xlim(), axes.get_ylim()
    energies = np.array(limits[0])
    times = energies * factor * pue / cap_w
    below = limits[1][0]
    axes.plot(energies, times, color="#505050", linestyle="--", linewidth=1.2)
    axes.fill_between(
        energies,
        below,
        np.maximum(times, below),
        facecolor="none",
        hatch="...",
        edgecolor="#b8b8b8",
        linewidth=0,
        zorder=0,
        label=f"more than {cap_w / 1e3:,g} kW",
    )
    axes.set(xlim=limits[0], ylim=limits[1])


def _draw_contours(axes: Axes, subject: Landscape, tariff: Tariff, factor: float) -> None:
    """Draw where schedules earn the same per second; wear, which depends on more, is left out."""
    x, y = (np.linspace(*limits, GRID) for limits in (axes.get_xlim(), axes.get_ylim()))
    energy, makespan = np.meshgrid(x * factor, y)
    standing = tariff.depreciation(subject.answer.named.bag.hosts)

    def rate(energy_j: Any, makespan_s: Any) -> Any:
        costs = tariff.overhead + tariff.energy_cost_per_j * tariff.pue * energy_j
        return (tariff.price - costs) / makespan_s - standing

    rates = rate(energy, np.maximum(makespan, 1e-3 * y[-1]))
    least, most = (np.interp(makespan, subject.makespans_s, edge) for edge in (subject.least_j, subject.most_j))
    possible = rates[(energy >= least) & (energy <= most)]
    shown = possible if possible.size else rates  # one type of machines leaves no room
    levels = MaxNLocator(CONTOURS).tick_values(shown.min(), shown.max())
    lines = axes.contour(x, y, rates, levels=levels, colors="#8c5a1a", linewidths=0.8, linestyles="dashed")
    divisor, letter = prefixed("", float(np.abs(levels).max()))
    axes.clabel(lines, fmt=lambda level: f"{level / divisor:,.4g}{letter if level else ''}", fontsize=7)
    if subject.profit is not None and subject.profit.plan.runs:  # what equals the largest profit
        best = rate(subject.profit.plan.energy_j, subject.profit.plan.makespan_s)
        axes.contour(x, y, rates, levels=[best], colors="#c0392b", linewidths=1.0)
    wear = ", before wear" if np.any(tariff.wear(len(subject.answer.named.machine_types))) else ""
    axes.plot([], [], color="#8c5a1a", linewidth=0.8, linestyle="--", label=f"equal profit per second{wear}")


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
        data = draw_landscape(axes, _landscape(results, declared, level))
        axes.set_title(f"{axis_name(declared.along)} {texts[level.value]}")
        tables.append(data.assign(**{declared.along: level.value}))
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
