"""The figures that a study declares: best variants, a metric along a parameter, mean series."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from gridsched.analysis.claim_values import (
    SERIES_OF,
    Level,
    levels_of,
    replicate_values,
    where_of,
)
from gridsched.analysis.statistics import half_widths, t_interval
from gridsched.analysis.study_results import StudyResults, restricted
from gridsched.analysis.texts import axis_name, value_text
from gridsched.campaign.row_table import SERIES_PREFIX
from gridsched.errors import InputError
from gridsched.figures.figure_file import new_figure, plain_numbers, prefixed
from gridsched.figures.study_figures import StudyFigure, metric_name, metric_unit
from gridsched.spec.study_document import DeclaredFigure

_LAST = {"facecolor": "#d6e2ee", "edgecolor": "#303030", "hatch": "///"}
_BEST = {"facecolor": "#2f6396", "edgecolor": "#303030"}
_SINGLE = {"facecolor": "#8a8a8a", "edgecolor": "#303030"}
_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
_MARKERS = "osv^DXP<>*"


def declared_figures(results: StudyResults) -> Iterator[StudyFigure]:
    """Yield the figures of a study's ``[[figures]]``; draw and save each within `style`.

    Raises
    ------
    InputError
        If one asks for a level or series that the study has not.
    """
    for declared in results.study.figures:
        figure, data = _KINDS[declared.kind](results, declared)
        caption = declared.caption or metric_name(declared.metric)
        yield StudyFigure(declared.name, "declared", _sentence(caption), figure, data)


def _sentence(caption: str) -> str:
    text = " ".join(caption.split())
    return text if text.endswith(".") else f"{text}."


def _families(results: StudyResults, declared: DeclaredFigure, *, single: bool) -> list[str]:
    if declared.schedulers:
        return list(declared.schedulers)
    names = dict.fromkeys(each.family for each in results.study.schedulers)
    return [name for name in names if single or _is_varied(results, name, declared.along)]


def _is_varied(results: StudyResults, family: str, along: str) -> bool:
    variants = [each for each in results.study.schedulers if each.family == family]
    return any(along in each.varied for each in variants) or along in results.varying_axes


def _levels(results: StudyResults, declared: DeclaredFigure, family: str) -> list[Level]:
    found = levels_of(results, family, declared.along)
    if not declared.levels:
        return found
    known = {level.value: level for level in found}
    for value in declared.levels:
        if value not in known:
            raise InputError(
                f"Figure {declared.name!r}: {family} has no {declared.along} {value_text(value)}. "
                f"Legal: {', '.join(map(value_text, known))}."
            )
    return [known[value] for value in declared.levels]


def _level_text(declared: DeclaredFigure, value: Any) -> str:
    is_infinite = isinstance(value, float) and math.isinf(value)
    return declared.infinite if is_infinite else value_text(value)


def _means(results: StudyResults, declared: DeclaredFigure, family: str) -> pd.DataFrame:
    """Return mean and interval of the metric at each level of a family."""
    where = where_of(results)
    rows = []
    for level in _levels(results, declared, family):
        values = replicate_values(results, level.label, {**where, **level.where}, declared.metric)
        interval = t_interval(values)
        rows.append({"scheduler": family, declared.along: level.value, **vars(interval)})
    return pd.DataFrame(rows)


def _scale(metric: str, largest: float) -> tuple[float, str]:
    unit = metric_unit(metric)
    factor, unit = prefixed(unit, largest) if unit == "J" else (1.0, unit)
    return factor, f"{metric_name(metric)} [{unit}]" if unit else metric_name(metric)


def _bars(axes: Axes, x: Any, data: pd.DataFrame, factor: float, width: float, look: dict) -> None:
    heights = data["mean"].to_numpy(dtype=np.float64) / factor
    half = ((data["high"] - data["low"]) / 2 / factor).fillna(0.0).to_numpy()
    axes.bar(x, np.nan_to_num(heights), width, linewidth=0.6, **look)
    axes.errorbar(x, heights, half, fmt="none", ecolor="#000000", elinewidth=0.9, capsize=2.5)


def _finish_bars(axes: Axes, labels: Sequence[str], label: str | None) -> None:
    axes.set_xticks(range(len(labels)), labels)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y")
    plain_numbers(axes.yaxis)
    if label:
        axes.set_ylabel(label)


# ---------------------------------------------------------------------- best variants


def _best(results: StudyResults, declared: DeclaredFigure) -> tuple[Figure, pd.DataFrame]:
    families = _families(results, declared, single=True)
    parts = []
    for family in families:
        if _is_varied(results, family, declared.along):
            means = _means(results, declared, family)
            is_best = means["mean"] == means["mean"].max()
            pair = [means[is_best].head(1).assign(bar="best"), means.tail(1).assign(bar="last")]
        else:
            values = replicate_values(results, family, where_of(results), declared.metric)
            row = {"scheduler": family, declared.along: np.nan, **vars(t_interval(values))}
            pair = [pd.DataFrame([{**row, "bar": "only"}])]
        parts += pair
    data = pd.concat(parts, ignore_index=True)
    factor, label = _scale(declared.metric, float(data["mean"].max()))
    figure = new_figure(1.6 + 1.25 * len(families), 4.0)
    axes = figure.subplots()
    looks = {"last": (-0.21, _LAST), "best": (0.21, _BEST), "only": (0.0, _SINGLE)}
    for bar, (shift, look) in looks.items():
        part = data[data["bar"] == bar]
        x = np.array([families.index(each) for each in part["scheduler"]]) + shift
        if len(part):
            _bars(axes, x, part, factor, 0.4, look)
    names = [fill(each.replace("_", " "), 13) for each in families]
    _finish_bars(axes, names, label)
    axes.set_ylim(bottom=0)
    along = axis_name(declared.along)
    for row in data[data["bar"] == "best"].itertuples(index=False):
        value = _level_text(declared, getattr(row, declared.along))
        axes.annotate(
            value, (families.index(row.scheduler) + 0.21, 0), (0, 4), textcoords="offset points",
            ha="center", fontsize=8, color="#ffffff", fontweight="bold",
        )  # fmt: skip
    figure.legend(
        handles=[
            Patch(label=_level_text(declared, math.inf), **_LAST),
            Patch(label=f"best {along} (written in the bar)", **_BEST),
        ],
        loc="outside lower center", ncols=2,
    )  # fmt: skip
    return figure, data


# ---------------------------------------------------------------------- a metric along levels


def _grid(families: list[str], width: float, height: float) -> tuple[Figure, list[Axes]]:
    columns = min(2, len(families))
    rows = math.ceil(len(families) / columns)
    figure = new_figure(width * columns, 0.6 + height * rows)
    panels = list(figure.subplots(rows, columns, squeeze=False, sharey=True).flat)
    for k, axes in enumerate(panels):
        if k >= len(families):
            axes.set_axis_off()
        elif len(families) > 1:
            axes.set_title(f"({chr(ord('a') + k)}) {families[k]}", loc="left")
        else:
            axes.set_title(families[k], loc="left")
    return figure, panels[: len(families)]


def _sweep(results: StudyResults, declared: DeclaredFigure) -> tuple[Figure, pd.DataFrame]:
    families = _families(results, declared, single=False)
    tables = [_means(results, declared, family) for family in families]
    data = pd.concat(tables, ignore_index=True)
    limit = _limit(results, declared, families[0])
    factor, label = _scale(declared.metric, float(np.nanmax([data["mean"].max(), limit])))
    figure, panels = _grid(families, 5.2, 3.0)
    for k, (axes, table) in enumerate(zip(panels, tables, strict=True)):
        _bars(axes, range(len(table)), table, factor, 0.72, _BEST)
        labels = [_level_text(declared, value) for value in table[declared.along]]
        _finish_bars(axes, labels, label if k % 2 == 0 else None)
        axes.tick_params(axis="x", labelsize=8)
        axes.set_xlabel(axis_name(declared.along).capitalize())
    _finish_y(panels, declared, limit / factor)
    if declared.limit:
        data[declared.limit] = limit
    return figure, data


def _limit(results: StudyResults, declared: DeclaredFigure, family: str) -> float:
    """Return the mean of the limit's metric, nan without a limit."""
    if declared.limit is None:
        return math.nan
    level = _levels(results, declared, family)[0]
    where = {**where_of(results), **level.where}
    return float(replicate_values(results, level.label, where, declared.limit).mean())


def _finish_y(panels: Sequence[Axes], declared: DeclaredFigure, limit: float) -> None:
    """Draw the limit and set the y axis that all panels share, once all have their data."""
    top = panels[0].get_ylim()[1]
    if math.isfinite(limit):
        top = max(top, 1.08 * limit)
        for axes in panels:
            axes.axhline(limit, color="#a5371b", linestyle="--", linewidth=1.4)
            axes.annotate(
                metric_name(declared.limit or ""), (1.0, limit), (-2, 3), ha="right",
                xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=8,
                color="#a5371b",
            )  # fmt: skip
    panels[0].set_ylim(0, top)


# ---------------------------------------------------------------------- series


def _traces(results: StudyResults, declared: DeclaredFigure) -> tuple[Figure, pd.DataFrame]:
    if declared.metric not in SERIES_OF:
        raise InputError(
            f"Figure {declared.name!r}: metric is {declared.metric!r}; series lead to "
            f"{', '.join(SERIES_OF)}."
        )
    families = _families(results, declared, single=False)
    limit = _limit(results, declared, families[0])
    curves = {
        family: [
            (level.value, mean_series(results, level, SERIES_OF[declared.metric]))
            for level in _levels(results, declared, family)
        ]
        for family in families
    }
    largest = max(
        (curve["mean"].max() for lines in curves.values() for _, curve in lines if len(curve)),
        default=0.0,
    )
    factor, label = _scale(declared.metric, float(np.nanmax([largest, limit])))
    figure, panels = _grid(families, 5.2, 3.6)
    for k, (axes, family) in enumerate(zip(panels, families, strict=True)):
        looks = _line_looks(len(curves[family]))
        for look, (_, curve) in zip(looks, curves[family], strict=True):
            if len(curve):
                _draw_series(axes, curve, factor, look)
        axes.set_xlabel("Time since the window's begin [h]")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 3, 6, 10]))
        axes.grid()
        plain_numbers(axes.yaxis)
        if k == 0:
            axes.set_ylabel(label)
    _finish_y(panels, declared, limit / factor)
    values = [value for value, _ in curves[families[0]]]
    handles = [
        Line2D([], [], label=_level_text(declared, value), **look)
        for value, look in zip(values, _line_looks(len(values)), strict=True)
    ]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=len(handles), handlelength=3.2,
        title=axis_name(declared.along).capitalize(), title_fontsize=9,
    )  # fmt: skip
    tables = [
        curve.assign(**{"scheduler": family, declared.along: value})
        for family, lines in curves.items()
        for value, curve in lines
    ]
    return figure, pd.concat(tables, ignore_index=True)


def _line_looks(number: int) -> list[dict[str, Any]]:
    """Return line styles that differ in brightness, dashes and markers."""
    colours = matplotlib.colormaps["cividis"](np.linspace(0.78, 0.0, max(number, 2)))
    return [
        {
            "color": colours[k], "linestyle": _LINES[k % len(_LINES)], "linewidth": 1.5,
            "marker": _MARKERS[k % len(_MARKERS)], "markersize": 4,
        }
        for k in range(number)
    ]  # fmt: skip


def _draw_series(axes: Axes, curve: pd.DataFrame, factor: float, look: dict[str, Any]) -> None:
    time, mean, low, high = (
        curve[name].to_numpy() / (1.0 if name == "time_h" else factor)
        for name in ("time_h", "mean", "low", "high")
    )
    axes.fill_between(time, low, high, color=look["color"], alpha=0.2, linewidth=0)
    axes.plot(time, mean, markevery=max(1, len(time) // 8), **look)
    axes.set_xlim(time[0], time[-1])


def mean_series(results: StudyResults, level: Level, series: str) -> pd.DataFrame:
    """Return the mean of a series over replicates.

    Parameters
    ----------
    results : StudyResults
    level : Level
    series : str
        One of the series of `gridsched.campaign.measure.SERIES`.

    Returns
    -------
    DataFrame
        ``time_h`` since the window's begin [h], ``mean``, ``low``, ``high``, ``count``; empty
        where no run has the series.

    Raises
    ------
    InputError
        If the runs have different times.
    """
    names = [SERIES_PREFIX + "time_s", SERIES_PREFIX + series]
    empty = pd.DataFrame(columns=["time_h", "mean", "low", "high", "count"], dtype=np.float64)
    if not set(names) <= set(results.shown):
        return empty
    where = {**where_of(results), **level.where, "scheduler": (level.label,)}
    chosen = restricted(results.shown, where).dropna(subset=names)
    if not len(chosen):
        return empty
    times = {tuple(each) for each in chosen[names[0]]}
    if len(times) > 1:
        raise InputError(f"{level.label}: its runs have series of {len(times)} different times.")
    time = np.array(times.pop())
    values = np.stack(chosen[names[1]].to_list()).astype(np.float64)
    by_replicate = pd.DataFrame(values).groupby(chosen["replicate"].to_numpy()).mean()
    n = len(by_replicate)
    mean = by_replicate.mean().to_numpy()
    half = half_widths(by_replicate.std(ddof=1).to_numpy(), np.full(len(mean), n))
    return pd.DataFrame({
        "time_h": (time - time[0]) / 3600.0, "mean": mean, "low": mean - half, "high": mean + half,
        "count": n,
    })  # fmt: skip


_KINDS = {"best": _best, "sweep": _sweep, "traces": _traces}
