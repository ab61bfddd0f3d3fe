"""What the figures that a study declares share: families, levels, names, scales."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure, SubFigure

from gridsched.analysis.claim_values import Level, levels_of, replicate_values, where_of
from gridsched.analysis.statistics import t_interval
from gridsched.analysis.study_results import StudyResults
from gridsched.analysis.texts import value_text
from gridsched.errors import InputError
from gridsched.figures.axes import axes_words, axis_scale, scale_of
from gridsched.figures.chart import Panel, Scale
from gridsched.figures.table import Drawn
from gridsched.metrics import METRICS
from gridsched.runs.claims_schema import DeclaredFigure


def declared_drawn(declared: DeclaredFigure, figure: Figure | SubFigure, data: pd.DataFrame) -> Drawn:
    """Return a declared figure with its caption as a sentence."""
    shown = METRICS[declared.metric].name if declared.metric else declared.name
    caption = " ".join((declared.caption or shown).split())
    caption = caption if caption.endswith(".") else f"{caption}."
    return Drawn(figure, data, declared.name, caption + axes_words(figure))


def families_of(results: StudyResults, declared: DeclaredFigure, *, single: bool) -> list[str]:
    """Return the families that are drawn; `single`: also those that do not vary."""
    if declared.schedulers:
        return list(declared.schedulers)
    names = dict.fromkeys(each.family for each in results.study.schedulers)
    return [name for name in names if single or is_varied(results, name, declared.along)]


def drawn_where(results: StudyResults, declared: DeclaredFigure) -> dict[str, tuple[Any, ...]]:
    """Return axis -> values of the runs that are drawn."""
    return where_of(results, declared.where)


def is_varied(results: StudyResults, family: str, along: str) -> bool:
    """Whether a family has several levels of what varies."""
    variants = [each for each in results.study.schedulers if each.family == family]
    return any(along in each.varied for each in variants) or along in results.varying_axes


def drawn_labels(results: StudyResults, declared: DeclaredFigure) -> dict[str, str]:
    """Return how each variant is called that is drawn one by one, families taken apart."""
    variants = results.study.schedulers
    labels = [
        each.label
        for name in families_of(results, declared, single=True)
        for each in variants
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


def drawn_levels(results: StudyResults, declared: DeclaredFigure, family: str) -> list[Level]:
    """Return the levels of a family that are drawn; `InputError` where there is none such."""
    levels = levels_of(results, family, declared.along, drawn_where(results, declared))
    if not declared.levels:
        return levels
    known = {level.value: level for level in levels}
    for value in declared.levels:
        if value not in known:
            raise InputError(
                f"Figure {declared.name!r}: {family} has no {declared.along} {value_text(value)}. "
                f"Legal: {', '.join(map(value_text, known))}."
            )
    return [known[value] for value in declared.levels]


def level_means(results: StudyResults, declared: DeclaredFigure, families: Iterable[str]) -> pd.DataFrame:
    """Return mean and interval of the metric at each level of each family."""
    where = drawn_where(results, declared)
    rows = []
    for family in families:
        for level in drawn_levels(results, declared, family):
            of = {**where, **level.where}
            interval = t_interval(replicate_values(results, level.label, of, declared.metric))
            rows.append({"scheduler": family, declared.along: level.value, **vars(interval)})
    return pd.DataFrame(rows)


def along_scale(declared: DeclaredFigure, values: Iterable[Any]) -> Scale:
    """Return the axis of what varies as numbers, with the unit that its name says."""
    factor, label = axis_scale(declared.along, values)
    return Scale(declared.along, label, factor)


def level_scale(declared: DeclaredFigure, values: Iterable[Any]) -> Scale:
    """Return the axis of what varies as levels."""
    levels = list(dict.fromkeys(values))
    numbers = along_scale(declared, levels)
    texts = {
        level: declared.infinite
        if is_infinite(level)
        else value_text(level if numbers.factor == 1.0 else level / numbers.factor)
        for level in levels
    }
    return Scale(declared.along, numbers.label, levels=texts)


def is_infinite(level: Any) -> bool:
    """Whether a level is called `DeclaredFigure.infinite`."""
    return isinstance(level, float) and math.isinf(level)


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
    if declared.limit is not None:
        keys["limit"] = limit / factor, METRICS[declared.limit].name
    return Scale(column, label, factor, **keys)


def limit_of(results: StudyResults, declared: DeclaredFigure, family: str) -> float:
    """Return the mean of the limit's metric, nan without a limit."""
    if declared.limit is None:
        return math.nan
    label, where = family, drawn_where(results, declared)
    if declared.along:
        level = drawn_levels(results, declared, family)[0]
        label, where = level.label, {**where, **level.where}
    return float(replicate_values(results, label, where, declared.limit).mean())


def family_panels(names: dict[str, str]) -> list[Panel]:
    """Return a panel for each scheduler or family, two in a row."""
    return [
        Panel(k // 2, k % 2, f"({chr(ord('a') + k)}) {name}" if len(names) > 1 else name, {"scheduler": label})
        for k, (label, name) in enumerate(names.items())
    ]
