"""Figures that a study declares, of one metric: bars, lines, points, boxes and violins."""

from __future__ import annotations

import math
from dataclasses import replace
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from gridsched.analysis.claim_values import levels_of, replicate_values
from gridsched.analysis.statistics import median_interval, t_interval
from gridsched.analysis.study_results import StudyResults
from gridsched.analysis.texts import axis_name
from gridsched.figures.chart import Scale, chart
from gridsched.figures.declared_levels import (
    along_scale,
    declared_drawn,
    drawn_labels,
    drawn_where,
    families_of,
    family_panels,
    is_varied,
    level_means,
    level_scale,
    limit_of,
    metric_scale,
    names_of,
)
from gridsched.figures.looks import BAR, BOX, LineLook, Look, series_looks
from gridsched.figures.table import Drawn
from gridsched.runs.claims_schema import DeclaredFigure

_LAST = Look("#d6e2ee", "///", "")
#: A box at the largest value must not look cut off by the end of the axis.
_ROOM = 1.12
_SINGLE = Look("#8a8a8a", None, "")
_PAPER: LineLook = {"marker": "D", "markersize": 6, "color": "#a5371b", "linestyle": "none"}
#: Quantiles that are kept of a distribution.
_SHARES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def best(results: StudyResults, declared: DeclaredFigure) -> Drawn:
    """Draw two bars for each family that varies, one for each other."""
    families = families_of(results, declared, single=True)
    data = pd.concat([_best_and_last(results, declared, family) for family in families], ignore_index=True)
    bests = data[data["bar"] == "best"]
    texts = level_scale(declared, [*bests[declared.along], math.inf]).levels or {}
    looks = {
        "last": replace(_LAST, label=texts[math.inf]),
        "best": replace(BAR, label=f"best {axis_name(declared.along)} (written in the bar)"),
        "only": _SINGLE,
    }
    x = Scale("scheduler", "", levels=_folded({each: each for each in families}))
    figure = chart(
        data,
        "bars",
        x,
        metric_scale(declared, float(data["mean"].max())),
        looks,
        hue="bar",
        slots={"last": -0.5, "only": 0.0, "best": 0.5},
        size=(1.6 + 1.25 * len(families), 4.0),
    )
    for row in bests.to_dict("records"):
        figure.axes[0].annotate(
            texts[row[declared.along]],
            (families.index(row["scheduler"]) + 0.21, 0),
            (0, 4),
            textcoords="offset points",
            xycoords=("data", "axes fraction"),
            ha="center",
            fontsize=8,
            color="#ffffff",
            fontweight="bold",
        )
    return declared_drawn(declared, figure, data)


def _best_and_last(results: StudyResults, declared: DeclaredFigure, family: str) -> pd.DataFrame:
    """Return the rows of a family that varies, or the one of another."""
    if is_varied(results, family, declared.along):
        means = level_means(results, declared, [family])
        is_best = means["mean"] == means["mean"].max()
        pair = means[is_best].head(1).assign(bar="best"), means.tail(1).assign(bar="last")
        return pd.concat(pair)
    values = replicate_values(results, family, drawn_where(results, declared), declared.metric)
    row = {"scheduler": family, declared.along: np.nan, **vars(t_interval(values))}
    return pd.DataFrame([{**row, "bar": "only"}])


def _folded(names: dict[str, str]) -> dict[str, str]:
    """Return names in lines that are short enough for all to stand side by side."""
    room = max(8, int(min(15, 110 / len(names))))
    return {label: fill(name.replace("_", " "), room, break_long_words=False) for label, name in names.items()}


def levels(results: StudyResults, declared: DeclaredFigure) -> Drawn:
    """Draw bars with their intervals, and the limit as a line."""
    families = families_of(results, declared, single=False)
    data = level_means(results, declared, families)
    limit = limit_of(results, declared, families[0])
    panels = family_panels({each: each for each in families})
    figure = chart(
        data,
        "bars",
        level_scale(declared, data[declared.along]),
        metric_scale(declared, float(data["mean"].max()), limit=limit, shared_up_to=math.inf),
        {"": BAR},
        hue="",
        panels=panels,
        size=(5.2 * min(2, len(panels)), 0.6 + 3.0 * (panels[-1].row + 1)),
    )
    if declared.limit:
        data[declared.limit] = limit
    return declared_drawn(declared, figure, data)


def lines(results: StudyResults, declared: DeclaredFigure) -> Drawn:
    """Draw means as lines, with 95 % intervals as bands."""
    families = families_of(results, declared, single=False)
    data = level_means(results, declared, families)
    y = metric_scale(declared, float(data["mean"].abs().max()))
    if data["mean"].min() < 0 < data["mean"].max():
        y = replace(y, origin=0.0)
    looks = series_looks(names_of(declared, families))
    x = along_scale(declared, data[declared.along])
    figure = chart(data, "lines", x, y, looks, size=(6.4, 4.0 if len(families) <= 4 else 5.0))
    return declared_drawn(declared, figure, data)


def points(results: StudyResults, declared: DeclaredFigure) -> Drawn:
    """Draw a row of points with 95 % intervals for each level; a level without runs has none."""
    labels = families_of(results, declared, single=True)
    data = level_means(results, declared, labels)
    rows = data.loc[data["mean"].notna(), declared.along].unique().tolist()
    data = data[data[declared.along].isin(rows)].reset_index(drop=True)
    y = replace(level_scale(declared, rows), label=axis_name(declared.along).capitalize())
    x = metric_scale(declared, float(data["mean"].abs().max()), is_log=True)
    looks = series_looks(names_of(declared, labels))
    figure = chart(data, "points", x, y, looks, size=(6.4, 1.4 + 0.55 * len(rows)))
    for edge in np.arange(0.5, len(rows) - 1):
        figure.axes[0].axhline(edge, color="#c0c0c0", linewidth=0.6)
    return declared_drawn(declared, figure, data)


def boxes(results: StudyResults, declared: DeclaredFigure) -> Drawn:
    """Draw the boxes; y reaches from 0 to above the largest value of all runs, as in all such figures.

    Raises
    ------
    InputError
        If there are not as many names as boxes.
    """
    names, metric = drawn_labels(results, declared), declared.metric
    where = drawn_where(results, declared)
    samples = {label: replicate_values(results, label, where, metric) for label in names}
    data = pd.DataFrame([_numbers(*each) for each in samples.items()])
    data["paper"] = _paper_medians(results, metric, list(names))
    largest = float(results.shown[metric].max())
    limit = limit_of(results, declared, next(iter(names)))
    y = metric_scale(declared, largest, "value", limit=limit, least=0.0)
    y = replace(y, most=_ROOM * largest / y.factor if largest > 0 else 1.0)
    has_paper = bool(data["paper"].notna().any())
    of_paper = Line2D([], [], label="median in the paper, where it is printed", **_PAPER)
    figure = chart(
        _long(samples, "scheduler"),
        "boxes",
        Scale("scheduler", "", levels=_folded(names)),
        y,
        {"": BOX},
        hue="",
        size=(1.6 + 1.15 * len(names), 3.6),
        handles=[of_paper] if has_paper else [],
    )
    (axes,) = figure.axes
    if len(declared.schedulers) == 1:
        axes.set_title(declared.schedulers[0], loc="left")
    if has_paper:
        axes.plot(np.arange(len(names)) + 0.46, data["paper"] / y.factor, clip_on=False, **_PAPER)
    return declared_drawn(declared, figure, data)


def _long(samples: dict[Any, pd.Series], column: str) -> pd.DataFrame:
    """Return a row for each number of some samples."""
    parts = [pd.DataFrame({column: key, "value": each}) for key, each in samples.items()]
    return pd.concat(parts, ignore_index=True)


def _numbers(label: str, sample: pd.Series) -> dict[str, Any]:
    """Return the five numbers of a box, and the interval of its median."""
    shares = [0.0, 0.25, 0.75, 1.0]
    least, one, three, most = np.quantile(sample, shares) if len(sample) else [np.nan] * 4
    median = median_interval(sample.to_numpy())
    return {
        "scheduler": label,
        "count": median.count,
        "minimum": least,
        "quartile_1": one,
        "median": median.mean,
        "quartile_3": three,
        "maximum": most,
        "median_low": median.low,
        "median_high": median.high,
    }


def _paper_medians(results: StudyResults, metric: str, labels: list[str]) -> list[float]:
    """Return the paper's median of each label as the study's claims have it, else nan."""
    claimed = {
        str(claim.scheduler): claim.paper / claim.scale
        for claim in results.study.claims
        if claim.statistic == "median" and claim.metric == metric and claim.paper is not None
    }
    return [claimed.get(label, np.nan) for label in labels]


def violins(results: StudyResults, declared: DeclaredFigure) -> Drawn:
    """Draw a violin with its median for each scheduler and level; all have the same width."""
    labels = families_of(results, declared, single=True)
    samples = {label: _samples(results, declared, label) for label in labels}
    data = pd.DataFrame(
        {
            "scheduler": label,
            declared.along: level,
            "count": len(sample),
            "mean": sample.mean(),
            **{f"quantile_{q:g}": np.quantile(sample, q) for q in _SHARES},
        }
        for label, by_level in samples.items()
        for level, sample in by_level.items()
        if len(sample)
    )
    numbers = [_long(by_level, declared.along).assign(scheduler=label) for label, by_level in samples.items()]
    figure = chart(
        pd.concat(numbers),
        "violins",
        level_scale(declared, samples[labels[0]]),
        metric_scale(declared, float(data["mean"].abs().max()), "value", least=0.0),
        series_looks(names_of(declared, labels)),
    )
    return declared_drawn(declared, figure, data)


def _samples(results: StudyResults, declared: DeclaredFigure, label: str) -> dict[object, pd.Series]:
    """Return the metric of each replicate by level of an axis."""
    where = drawn_where(results, declared)
    by_level = {
        level.value: replicate_values(results, level.label, {**where, **level.where}, declared.metric)
        for level in levels_of(results, label, declared.along, where)
    }
    return {level: by_level[level] for level in declared.levels or by_level}
