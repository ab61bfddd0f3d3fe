"""Makespan over energy: what is possible, the front, what each place earns, and stored plans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from gridsched.analysis.claim_values import Level, replicate_values, where_of
from gridsched.analysis.study_results import StudyResults, restricted
from gridsched.analysis.texts import axis_name, prefixed, value_text
from gridsched.campaign.segments import with_infinities
from gridsched.errors import InputError
from gridsched.figures.axes import plain_numbers, write_at
from gridsched.figures.chart import levels_along
from gridsched.figures.declared_figure import families_of, names_of, plotted_as_declared, plotted_levels
from gridsched.figures.figure_file import PlottedFigure, register_figure
from gridsched.figures.figure_style import legend_below, new_figure
from gridsched.figures.series_styles import LineStyle
from gridsched.metrics import METRICS
from gridsched.model.tariff import Tariff
from gridsched.runs.claims_schema import DeclaredFigure
from gridsched.runs.optimization import optimize
from gridsched.runs.run_spec import OPTIMIZE, RunSpec
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.systems.profit.answers import Landscape, front_answer, landscape, profit_answer

_POINT = ["energy_j", "makespan_s", "profit_rate"]
#: Columns of the data of plans: divided tasks, then whole ones.
_DIVIDED, _WHOLE = ("divided_energy_j", "divided_makespan_s"), ("energy_j", "makespan_s")
#: Contours of the profit rate, about.
CONTOURS = 9
#: Places along each axis at which the profit rate is computed for its contours.
GRID = 200
#: Energies above the largest drawn one that are shown, as a share of the range of the drawn ones.
FURTHER = 0.6
_FRONT: LineStyle = {"linewidth": 1.8, "color": "#2f6396", "label": "front of divided tasks"}


def _points(marker: str, size: float, color: str, width: float, label: str = "", fill: str = "none") -> LineStyle:
    return {
        "linestyle": "",
        "marker": marker,
        "markersize": size,
        "markerfacecolor": fill,
        "markeredgecolor": color,
        "markeredgewidth": width,
        "label": label,
    }


#: How the series of the data are drawn, but for the edges of what is possible.
_STYLES: dict[str, LineStyle] = {
    "front": {**_FRONT, "marker": "o", "markersize": 3.5},
    "schedules": _points("D", 3.5, "#606060", 0.7, "schedules of whole tasks"),
    "largest profit, divided": _points("s", 11, "#c0392b", 2, "largest profit, divided tasks"),
    "largest profit, whole": _points("D", 7, "#c0392b", 2, "its schedule of whole tasks"),
}
#: Fillings of stored plans of divided tasks, and colors of the bars on them.
_FILLS = ("none", "#f0b65a", "#c9b3d6")
_GAIN, _LOSS = "#6f9e5c", "#c0392b"
_BAR: dict[str, Any] = {"linewidth": 3.5, "alpha": 0.6}
#: Height of the largest bar [point].
_TALLEST = 110.0
#: Numbers on shorter bars are beside the square [point].
_NEAR = 8.0
#: Makespans of plans that differ by a larger factor are drawn on a logarithmic axis.
_LOGARITHMIC = 10.0


@register_figure("front", "landscape", "The front, the feasible region and profit contours.")
def front(subject: Landscape) -> PlottedFigure:
    """Draw makespan over energy, as figures 1 and 5 of paper 003.

    Parameters
    ----------
    subject : Landscape
    """
    figure = new_figure(7.6, 5.2)
    axes = figure.add_subplot()
    data = _draw_landscape(axes, subject)
    legend_below(figure, axes.get_legend_handles_labels()[0])
    return PlottedFigure(figure, data)


def _landscape_table(subject: Landscape) -> pd.DataFrame:
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


def _draw_landscape(axes: Axes, subject: Landscape) -> pd.DataFrame:
    """Draw a landscape on axes, without its legend; return what is drawn."""
    table = _landscape_table(subject)
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
    points = {name: table[table["series"] == name] for name in _STYLES}
    for (name, part), order in zip(points.items(), (3, 3, 4, 4), strict=True):
        if len(part):
            axes.plot(part["energy_j"] / factor, part["makespan_s"], zorder=order, **_STYLES[name])
    _set_limits(axes, subject, pd.concat(points.values())["energy_j"] / factor)
    if subject.tariff is not None:
        _draw_contours(axes, subject, subject.tariff, factor)
    if subject.profit is not None and np.isfinite(subject.profit.plan.power_cap_w):
        plan = subject.profit.plan
        _draw_cap(axes, factor, plan.power_cap_w, plan.tariff.pue)
    _label(axes, unit)
    return table


def _label(axes: Axes, unit: str) -> None:
    axes.set_xlabel(f"Energy [{unit}]")
    axes.set_ylabel("Makespan [s]")
    plain_numbers(axes.xaxis)
    plain_numbers(axes.yaxis)


def _set_limits(axes: Axes, subject: Landscape, energies: pd.Series) -> None:
    """Show the front and the plan whole, and of the region what is not far from them."""
    least, most = energies.min(), energies.max()
    width = max(most - least, 0.05 * most)
    axes.set_xlim(least - 0.1 * width, most + FURTHER * width)
    bottom, top = float(subject.makespans_s[0]), float(subject.makespans_s[-1])
    axes.set_ylim(bottom - 0.06 * (top - bottom), top)


def _draw_cap(axes: Axes, factor: float, cap_w: float, pue: float = 1.0) -> None:
    """Draw the line of a mean power; what lies below it draws more."""
    limits = axes.get_xlim(), axes.get_ylim()
    energies, below = np.array(limits[0]), limits[1][0]
    times = energies * factor * pue / cap_w
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
    standing = tariff.depreciation(subject.answer.bag.hosts)

    def rate(energy_j: Any, makespan_s: Any) -> Any:
        costs = tariff.overhead + tariff.energy_cost_per_j * tariff.pue * energy_j
        return (tariff.price - costs) / makespan_s - standing

    rates = rate(energy, np.maximum(makespan, 1e-3 * y[-1]))
    least, most = (np.interp(makespan, subject.makespans_s, edge) for edge in (subject.least_j, subject.most_j))
    possible = rates[(energy >= least) & (energy <= most)]
    rates_in_view = possible if possible.size else rates  # one type of machines leaves no room
    levels = MaxNLocator(CONTOURS).tick_values(rates_in_view.min(), rates_in_view.max())
    lines = axes.contour(x, y, rates, levels=levels, colors="#8c5a1a", linewidths=0.8, linestyles="dashed")
    divisor, letter = prefixed("", float(np.abs(levels).max()))
    axes.clabel(lines, fmt=lambda level: f"{level / divisor:,.4g}{letter if level else ''}", fontsize=7)
    if subject.profit is not None and subject.profit.plan.runs:  # what equals the largest profit
        best = rate(subject.profit.plan.energy_j, subject.profit.plan.makespan_s)
        axes.contour(x, y, rates, levels=[best], colors="#c0392b", linewidths=1.0)
    wear = ", before wear" if np.any(tariff.wear(len(subject.answer.bag.machine_types))) else ""
    axes.plot([], [], color="#8c5a1a", linewidth=0.8, linestyle="--", label=f"equal profit per second{wear}")


@register_figure("landscapes", "declared", "The feasible region with profit contours, by level.")
def landscapes(results: StudyResults, declared: DeclaredFigure) -> PlottedFigure:
    """Draw a panel for each level, of its first stored optimization.

    What is possible follows from the run's description, as bounds do: it is computed here.

    Raises
    ------
    InputError
        If a level has no stored run with the driver ``optimize``, or a file of it is damaged.
    """
    (family, *_) = families_of(results, declared, single=False)
    levels = plotted_levels(results, declared, family)
    figure = new_figure(3.6 * len(levels) + 0.6, 4.2)
    panels = figure.subplots(1, len(levels), squeeze=False)[0]
    texts = levels_along(declared.along, [level.value for level in levels], declared.infinite).levels or {}
    tables = []
    for axes, level in zip(panels, levels, strict=True):
        data = _draw_landscape(axes, _landscape(results, declared, level))
        axes.set_title(f"{axis_name(declared.along)} {texts[level.value]}")
        tables.append(data.assign(**{declared.along: level.value}))
    for axes in panels[1:]:
        axes.set_ylabel("")
    legend_below(figure, panels[0].get_legend_handles_labels()[0])
    return plotted_as_declared(declared, figure, pd.concat(tables, ignore_index=True))


def _landscape(results: StudyResults, declared: DeclaredFigure, level: Level) -> Landscape:
    """Return what is possible for the bag of a level's first run, and its most profitable plan."""
    where = {**where_of(results, declared.where), **level.where, "scheduler": (level.label,)}
    runs = restricted(results.shown, where).sort_values("replicate")
    for text in runs["scenario"].head(1):
        spec = RunSpec.read(with_infinities(json.loads(text)))
        if spec.settings.driver == OPTIMIZE:
            study = results.study
            maker = ScenarioMaker({f.sha256: f.checked() for f in study.inputs.values()}, Path())
            if study.is_imported:
                maker.load_policies(study.policies)
            task = maker.optimization(spec)
            plan = optimize(task).plan
            if plan.tariff is None:
                break
            limits = {"power_cap_w": plan.power_cap_w, "least_rate_per_s": plan.least_rate_per_s}
            answer = profit_answer(task.bag, plan.tariff, **limits)
            return landscape(front_answer(task.bag, plan.tariff), answer)
    raise InputError(
        f"Figure {declared.name!r}: {level.label} has no finished run with the driver "
        f"{OPTIMIZE!r} and a price; kind 'landscapes' draws such runs."
    )


@register_figure("plans", "declared", "Makespan over energy of plans, with what they earn as bars.")
def plans(results: StudyResults, declared: DeclaredFigure) -> PlottedFigure:
    """Draw squares for divided, diamonds for whole tasks; families that vary otherwise as a line.

    The bar on a square is the metric, downward where it is negative. A family with the parameter
    `power_cap_w` has its cap drawn. As figures 1 and 3 of paper 003.
    """
    families = families_of(results, declared, single=False)
    variants = [each for each in results.study.schedulers if each.family in families]
    swept = dict.fromkeys(each.family for each in variants if declared.along in each.varied)
    tables = {name: _plans(results, declared, name, name in swept) for name in families}
    data = pd.concat(tables.values(), ignore_index=True)
    factor, unit = prefixed("J", float(data["energy_j"].max()))
    figure = new_figure(7.6, 5.4)
    axes = figure.subplots()
    drawable = data.dropna(subset=["divided_makespan_s"])
    if np.ptp(np.log(drawable["divided_makespan_s"])) > np.log(_LOGARITHMIC):
        axes.set_yscale("log")
    largest = float(drawable[declared.metric].abs().max())
    names, k = names_of(declared, families), 0
    for family, table in tables.items():
        if family not in swept:
            _plot(axes, table.sort_values("divided_makespan_s"), _DIVIDED, factor, 2, _FRONT)
            continue
        label = f"{names[family]}, divided tasks" if len(swept) > 1 else "divided tasks"
        points = table.dropna(subset=["divided_makespan_s"])
        _plot(axes, points, _DIVIDED, factor, 3, _points("s", 8, "#303030", 1.2, label, _FILLS[k % len(_FILLS)]))
        _plot(axes, points, _WHOLE, factor, 4, _points("D", 4.5, "#a5371b", 1, "_again" if k else "whole tasks"))
        _draw_bars(axes, points, declared, factor, _TALLEST / largest if largest else 0.0, k)
        k += 1
    metric = METRICS[declared.metric].name.lower()
    axes.plot([], [], color=_GAIN, label=f"{metric} (number: {declared.along})", **_BAR)
    if (data[declared.metric] < 0).any():
        axes.plot([], [], color=_LOSS, label="loss", **_BAR)
    axes.margins(x=0.06, y=0.1)
    caps = dict.fromkeys(each.parameters.get("power_cap_w") for each in variants)
    for cap_w in filter(None, caps):
        _draw_cap(axes, factor, cap_w)
    _label(axes, unit)
    legend_below(figure, axes.get_legend_handles_labels()[0])
    return plotted_as_declared(declared, figure, data)


def _plans(results: StudyResults, declared: DeclaredFigure, family: str, is_swept: bool) -> pd.DataFrame:
    """Return the means over replicates of each variant of a family."""
    where = where_of(results, declared.where)
    if is_swept:
        variants = {level.label: level.value for level in plotted_levels(results, declared, family)}
    else:
        variants = {each.label: np.nan for each in results.study.schedulers if each.family == family}
    rows = []
    for label, value in variants.items():
        names = dict.fromkeys((*_DIVIDED, *_WHOLE, declared.metric))
        values = {name: replicate_values(results, label, where, name) for name in names}
        means = {name: float(each.mean()) for name, each in values.items()}
        rows.append({"scheduler": label, declared.along: value, "count": len(values["energy_j"]), **means})
    return pd.DataFrame(rows)


def _plot(
    axes: Axes, table: pd.DataFrame, columns: tuple[str, str], factor: float, order: int, series_style: LineStyle
) -> None:
    energy, makespan = columns
    axes.plot(table[energy] / factor, table[makespan], zorder=order, **series_style)


def _draw_bars(
    axes: Axes, points: pd.DataFrame, declared: DeclaredFigure, factor: float, per_unit: float, k: int
) -> None:
    """Draw a bar on each point; its level is at the end."""
    side = 1 if k % 2 else -1
    for row in points.to_dict("records"):
        at = row["divided_energy_j"] / factor, row["divided_makespan_s"]
        height = row[declared.metric] * per_unit
        bar = {"arrowstyle": "-", "color": _GAIN if height >= 0 else _LOSS, **_BAR, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", at, (0, height), textcoords="offset points", annotation_clip=False, zorder=1, arrowprops=bar)
        beyond = height + 2 if height > _NEAR else height - 9 if height < -_NEAR else -3
        offset = 3.5 * side if abs(height) > _NEAR else 7 * side, beyond
        align, color = ("left", "#8c5a1a") if k % 2 else ("right", "#000000")
        write_at(axes, value_text(row[declared.along]), at, offset, align, fontsize=7.5, color=color)
