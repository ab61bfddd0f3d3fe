"""Figures that a study declares, of one metric: bars, lines, points, boxes and violins."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from gridsched.analysis.claim_values import Level, levels_of, replicate_values, where_of
from gridsched.analysis.statistics import median_interval, t_interval
from gridsched.analysis.study_results import StudyResults
from gridsched.analysis.texts import axis_name, axis_title, value_text
from gridsched.errors import InputError
from gridsched.figures.axes import axes_words, scale_of, write_at
from gridsched.figures.chart import Panel, Scale, chart, levels_along, numbers_along
from gridsched.figures.figure_file import PlottedFigure, register_figure
from gridsched.figures.series_styles import BAR, BOX, LineStyle, SeriesStyle, series_styles
from gridsched.metrics import METRICS
from gridsched.runs.claims_schema import DeclaredFigure

_LAST = SeriesStyle("#d6e2ee", "///", "")
#: A box at the largest value must not look cut off by the end of the axis.
_ROOM = 1.12
_SINGLE = SeriesStyle("#8a8a8a", None, "")
_PAPER: LineStyle = {"marker": "D", "markersize": 6, "color": "#a5371b", "linestyle": "none"}
#: Quantiles that are kept of a distribution.
_SHARES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def plotted_as_declared(declared: DeclaredFigure, figure: Figure | SubFigure, data: pd.DataFrame) -> PlottedFigure:
    """Return a declared figure with its caption as a sentence."""
    words = METRICS[declared.metric].name if declared.metric else declared.name
    caption = " ".join((declared.caption or words).split()).removesuffix(".")
    return PlottedFigure(figure, data, declared.name, f"{caption}.{axes_words(figure)}")


def families_of(results: StudyResults, declared: DeclaredFigure, *, single: bool) -> list[str]:
    """Return the families that are drawn; `single`: also those that do not vary."""
    families = dict.fromkeys(each.family for each in results.study.schedulers)
    varied = (name for name in families if single or _is_varied(results, name, declared.along))
    return list(declared.schedulers or varied)


def _is_varied(results: StudyResults, family: str, along: str) -> bool:
    """Whether a family has several levels of what varies."""
    variants = (each for each in results.study.schedulers if each.family == family)
    return along in results.varying_axes or any(along in each.varied for each in variants)


def plotted_labels(results: StudyResults, declared: DeclaredFigure) -> dict[str, str]:
    """Return how each variant is called that is drawn one by one, families taken apart."""
    labels = [
        each.label
        for name in families_of(results, declared, single=True)
        for each in results.study.schedulers
        if name in (each.label, each.family)
    ]
    return names_of(declared, list(dict.fromkeys(labels)))


def names_of(declared: DeclaredFigure, labels: list[str]) -> dict[str, str]:
    """Return how the labels are called in a figure.

    Raises
    ------
    InputError
        If there are not as many names as labels.
    """
    names = list(declared.names) or labels
    if len(names) != len(labels):
        raise InputError(
            f"Figure {declared.name!r}: {len(names)} names for {len(labels)} variants; give one "
            f"for each of {', '.join(labels)}."
        )
    return dict(zip(labels, names, strict=True))


def plotted_levels(results: StudyResults, declared: DeclaredFigure, family: str) -> list[Level]:
    """Return the levels of a family that are drawn; `InputError` where there is none such."""
    levels = levels_of(results, family, declared.along, where_of(results, declared.where))
    by_value = {level.value: level for level in levels}
    for value in declared.levels:
        if value not in by_value:
            raise InputError(
                f"Figure {declared.name!r}: {family} has no {declared.along} {value_text(value)}. "
                f"Allowed: {', '.join(map(value_text, by_value))}."
            )
    return [by_value[value] for value in declared.levels] or levels


def _samples(results: StudyResults, declared: DeclaredFigure, family: str, metric: str = "") -> dict[Any, pd.Series]:
    """Return a metric, by default that of the figure, of each replicate by the levels that are drawn."""
    where = where_of(results, declared.where)
    return {
        level.value: replicate_values(results, level.label, {**where, **level.where}, metric or declared.metric)
        for level in plotted_levels(results, declared, family)
    }


def _level_means(results: StudyResults, declared: DeclaredFigure, families: Iterable[str]) -> pd.DataFrame:
    """Return mean and interval of the metric at each level of each family."""
    return pd.DataFrame(
        {"scheduler": family, declared.along: level, **vars(t_interval(sample))}
        for family in families
        for level, sample in _samples(results, declared, family).items()
    )


def metric_scale(
    declared: DeclaredFigure, largest: float, column: str = "mean", *, limit: float = math.nan, **keys: Any
) -> Scale:
    """Return the axis of the metric.

    Parameters
    ----------
    declared : DeclaredFigure
    largest : float
        The largest value, by which its unit is chosen.
    column : str
        Of the table.
    limit : float
        Value of the figure's limit, if it has one.
    **keys
        Others of a `Scale`.
    """
    factor, label = scale_of(declared.metric, float(np.nanmax([largest, limit])))
    if declared.metric.endswith("_share"):
        keys["ceiling"] = 1.0 / factor  # a part of a whole, which an interval of a mean may exceed
    if declared.limit is not None:
        keys["limit"] = limit / factor, METRICS[declared.limit].name
    return Scale(column, label, factor, **keys)


def limit_of(results: StudyResults, declared: DeclaredFigure, family: str) -> float:
    """Return the mean of the limit's metric, nan without a limit."""
    if declared.limit is None:
        return math.nan
    if declared.along:
        return float(next(iter(_samples(results, declared, family, declared.limit).values())).mean())
    return float(replicate_values(results, family, where_of(results, declared.where), declared.limit).mean())


def family_panels(names: dict[str, str], width: float, height: float) -> dict[str, Any]:
    """Return for `chart` a panel for each scheduler or family, two in a row, and the size [inch]."""
    panels = [
        Panel(k // 2, k % 2, f"({chr(ord('a') + k)}) {name}" if len(names) > 1 else name, {"scheduler": label})
        for k, (label, name) in enumerate(names.items())
    ]
    return {"panels": panels, "size": (width * min(2, len(panels)), 0.6 + height * (panels[-1].row + 1))}


def _folded(names: dict[str, str]) -> Scale:
    """Return the axis of schedulers, whose names are in lines that are short enough to be side by side."""
    room = max(8, int(min(15, 110 / len(names))))
    lines = {label: fill(name.replace("_", " "), room, break_long_words=False) for label, name in names.items()}
    return Scale("scheduler", "", levels=lines)


@register_figure("best", "declared", "Bars of each family's best and last variant.")
def best(results: StudyResults, declared: DeclaredFigure) -> PlottedFigure:
    """Draw two bars for each family that varies, one for each other."""
    families = families_of(results, declared, single=True)
    data = pd.concat([_best_and_last(results, declared, family) for family in families], ignore_index=True)
    bests = data[data["bar"] == "best"]
    texts = levels_along(declared.along, [*bests[declared.along], math.inf], declared.infinite).levels or {}
    styles = {
        "last": replace(_LAST, label=texts[math.inf]),
        "best": replace(BAR, label=f"best {axis_name(declared.along)} (written in the bar)"),
        "only": _SINGLE,
    }
    x, y = _folded({each: each for each in families}), metric_scale(declared, float(data["mean"].max()))
    slots, size = {"last": -0.5, "only": 0.0, "best": 0.5}, (1.6 + 1.25 * len(families), 4.0)
    figure = chart(data, "bars", x, y, styles, hue="bar", slots=slots, size=size)
    for row in bests.to_dict("records"):
        at, style = (families.index(row["scheduler"]) + 0.21, 0), {"color": "#ffffff", "fontweight": "bold"}
        text = texts[row[declared.along]]
        write_at(figure.axes[0], text, at, (0, 4), "center", xycoords=("data", "axes fraction"), **style)
    return plotted_as_declared(declared, figure, data)


def _best_and_last(results: StudyResults, declared: DeclaredFigure, family: str) -> pd.DataFrame:
    """Return the rows of a family that varies, or the one of another."""
    if _is_varied(results, family, declared.along):
        means = _level_means(results, declared, [family])
        is_best = means["mean"] == means["mean"].max()
        return pd.concat((means[is_best].head(1).assign(bar="best"), means.tail(1).assign(bar="last")))
    values = replicate_values(results, family, where_of(results, declared.where), declared.metric)
    row = {"scheduler": family, declared.along: np.nan, **vars(t_interval(values))}
    return pd.DataFrame([{**row, "bar": "only"}])


@register_figure("sweep", "declared", "Bars of a metric at each level, a panel for each family.")
def levels(results: StudyResults, declared: DeclaredFigure) -> PlottedFigure:
    """Draw bars with their intervals, and the limit as a line."""
    families = families_of(results, declared, single=False)
    data = _level_means(results, declared, families)
    limit = limit_of(results, declared, families[0])
    x = levels_along(declared.along, data[declared.along], declared.infinite)
    y = metric_scale(declared, float(data["mean"].max()), limit=limit, shared_up_to=math.inf)
    panels = family_panels({each: each for each in families}, 5.2, 3.0)
    figure = chart(data, "bars", x, y, {"": BAR}, hue="", **panels)
    if declared.limit:
        data[declared.limit] = limit
    return plotted_as_declared(declared, figure, data)


@register_figure("lines", "declared", "A metric along what varies, a line for each family.")
def lines(results: StudyResults, declared: DeclaredFigure) -> PlottedFigure:
    """Draw means as lines, with 95 % intervals as bands."""
    families = families_of(results, declared, single=False)
    data = _level_means(results, declared, families)
    y = metric_scale(declared, float(data["mean"].abs().max()))
    if data["mean"].min() < 0 < data["mean"].max():
        y = replace(y, origin=0.0)
    styles, x = series_styles(names_of(declared, families)), numbers_along(declared.along, data[declared.along])
    figure = chart(data, "lines", x, y, styles, size=(6.4, 4.0 if len(families) <= 4 else 5.0))
    return plotted_as_declared(declared, figure, data)


@register_figure("points", "declared", "Means on a logarithmic axis, a row for each level.", is_of_variants=True)
def points(results: StudyResults, declared: DeclaredFigure) -> PlottedFigure:
    """Draw a row of points with 95 % intervals for each level; a level without runs has none."""
    labels = families_of(results, declared, single=True)
    data = _level_means(results, declared, labels)
    rows = data.loc[data["mean"].notna(), declared.along].unique().tolist()
    data = data[data[declared.along].isin(rows)].reset_index(drop=True)
    y = replace(levels_along(declared.along, rows, declared.infinite), label=axis_title(declared.along))
    x = metric_scale(declared, float(data["mean"].abs().max()), is_log=True)
    styles = series_styles(names_of(declared, labels))
    figure = chart(data, "points", x, y, styles, size=(6.4, 1.4 + 0.55 * len(rows)))
    for edge in np.arange(0.5, len(rows) - 1):
        figure.axes[0].axhline(edge, color="#c0c0c0", linewidth=0.6)
    return plotted_as_declared(declared, figure, data)


@register_figure(
    "box", "declared", "A box for each variant: median, quartiles, whiskers.", needs=("metric",), is_of_variants=True
)
def boxes(results: StudyResults, declared: DeclaredFigure) -> PlottedFigure:
    """Draw the boxes; y reaches from 0 to above the largest value of all runs, as in all such figures.

    Raises
    ------
    InputError
        If there are not as many names as boxes.
    """
    names, metric = plotted_labels(results, declared), declared.metric
    where = where_of(results, declared.where)
    samples = {label: replicate_values(results, label, where, metric) for label in names}
    data = pd.DataFrame([_numbers(*each) for each in samples.items()])
    data["paper"] = _paper_medians(results, metric, list(names))
    largest = float(results.shown[metric].max())
    limit = limit_of(results, declared, next(iter(names)))
    y = metric_scale(declared, largest, "value", limit=limit, least=0.0)
    y = replace(y, most=_ROOM * largest / y.factor if largest > 0 else 1.0)
    has_paper = bool(data["paper"].notna().any())
    of_paper = [Line2D([], [], label="median in the paper, where it is printed", **_PAPER)] if has_paper else []
    size = 1.6 + 1.15 * len(names), 3.6
    numbers = _long(samples, "scheduler")
    figure = chart(numbers, "boxes", _folded(names), y, {"": BOX}, hue="", size=size, handles=of_paper)
    (axes,) = figure.axes
    if len(declared.schedulers) == 1:
        axes.set_title(declared.schedulers[0], loc="left")
    if has_paper:
        axes.plot(np.arange(len(names)) + 0.46, data["paper"] / y.factor, clip_on=False, **_PAPER)
    return plotted_as_declared(declared, figure, data)


def _long(samples: dict[Any, pd.Series], column: str) -> pd.DataFrame:
    """Return a row for each number of some samples."""
    parts = [pd.DataFrame({column: key, "value": each}) for key, each in samples.items()]
    return pd.concat(parts, ignore_index=True)


def _numbers(label: str, sample: pd.Series) -> dict[str, Any]:
    """Return the five numbers of a box, and the interval of its median."""
    least, one, three, most = np.quantile(sample, [0.0, 0.25, 0.75, 1.0]) if len(sample) else [np.nan] * 4
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
        claim.ours.schedulers["scheduler"]: claim.paper / claim.scale
        for claim in results.claims
        if claim.ours.name == "median" and claim.ours.metric == metric and claim.paper is not None
    }
    return [claimed.get(label, np.nan) for label in labels]


@register_figure("violins", "declared", "The distribution over replicates, along what varies.", is_of_variants=True)
def violins(results: StudyResults, declared: DeclaredFigure) -> PlottedFigure:
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
    x = levels_along(declared.along, samples[labels[0]], declared.infinite)
    y = metric_scale(declared, float(data["mean"].abs().max()), "value", least=0.0)
    figure = chart(pd.concat(numbers), "violins", x, y, series_styles(names_of(declared, labels)))
    return plotted_as_declared(declared, figure, data)
