"""What the figures that a study declares share: families, levels, bars, the limit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from gridsched.analysis.claim_values import Level, levels_of, replicate_values, where_of
from gridsched.analysis.statistics import t_interval
from gridsched.analysis.study_results import StudyResults
from gridsched.analysis.texts import axis_name, value_text
from gridsched.errors import InputError
from gridsched.figures.axes import axes_words, plain_numbers
from gridsched.figures.figure_file import PatchLook, new_figure
from gridsched.figures.study_panels import scale_of
from gridsched.figures.table import Drawn
from gridsched.metrics import METRICS
from gridsched.spec.claims_schema import DeclaredFigure

BEST: PatchLook = {"facecolor": "#2f6396", "edgecolor": "#303030"}


def declared_drawn(
    declared: DeclaredFigure, figure: Figure | SubFigure, data: pd.DataFrame
) -> Drawn:
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


def drawn_labels(results: StudyResults, declared: DeclaredFigure) -> list[str]:
    """Return the labels of what is drawn one by one, families taken apart."""
    variants = results.study.schedulers
    found = []
    for name in families_of(results, declared, single=True):
        found += [each.label for each in variants if name in (each.label, each.family)]
    return list(dict.fromkeys(found))


def names_of(declared: DeclaredFigure, labels: list[str]) -> list[str]:
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
    return names


def drawn_levels(results: StudyResults, declared: DeclaredFigure, family: str) -> list[Level]:
    """Return the levels of a family that are drawn; `InputError` where there is none such."""
    found = levels_of(results, family, declared.along, drawn_where(results, declared))
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


def level_text(declared: DeclaredFigure, value: Any, factor: float = 1.0) -> str:
    """Return a level for people, over the divisor of its axis."""
    is_infinite = isinstance(value, float) and math.isinf(value)
    scaled = value if factor == 1.0 else value / factor
    return declared.infinite if is_infinite else value_text(scaled)


def along_scale(declared: DeclaredFigure, values: Iterable[Any]) -> tuple[float, str]:
    """Return the divisor and the label of what varies: those of its metric, if it is one."""
    if declared.along not in METRICS:
        return 1.0, axis_name(declared.along).capitalize()
    return scale_of(declared.along, max(filter(math.isfinite, values), default=1.0))


def level_means(results: StudyResults, declared: DeclaredFigure, family: str) -> pd.DataFrame:
    """Return mean and interval of the metric at each level of a family."""
    where = drawn_where(results, declared)
    rows = []
    for level in drawn_levels(results, declared, family):
        values = replicate_values(results, level.label, {**where, **level.where}, declared.metric)
        interval = t_interval(values)
        rows.append({"scheduler": family, declared.along: level.value, **vars(interval)})
    return pd.DataFrame(rows)


def draw_bars(
    axes: Axes, x: Any, data: pd.DataFrame, factor: float, width: float, look: PatchLook
) -> None:
    """Draw bars with their intervals.

    Parameters
    ----------
    axes : Axes
    x : array_like
        Where the bars stand.
    data : DataFrame
        With ``mean``, ``low`` and ``high``.
    factor : float
        Values are divided by it.
    width : float
        Of a bar.
    look : PatchLook
        Keyword arguments of the bars.
    """
    heights = data["mean"].to_numpy(dtype=np.float64) / factor
    half = ((data["high"] - data["low"]) / 2 / factor).fillna(0.0).to_numpy()
    axes.bar(x, np.nan_to_num(heights), width, linewidth=0.6, **look)
    axes.errorbar(x, heights, half, fmt="none", ecolor="#000000", elinewidth=0.9, capsize=2.5)


def finish_bars(axes: Axes, labels: Sequence[str], label: str | None) -> None:
    """Label the axes of bars."""
    axes.set_xticks(range(len(labels)), labels)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y")
    plain_numbers(axes.yaxis)
    if label:
        axes.set_ylabel(label)


def family_panels(
    families: list[str], width: float, height: float
) -> tuple[Figure | SubFigure, list[Axes]]:
    """Return a figure with a panel for each family."""
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


def limit_of(results: StudyResults, declared: DeclaredFigure, family: str) -> float:
    """Return the mean of the limit's metric, nan without a limit."""
    if declared.limit is None:
        return math.nan
    level = drawn_levels(results, declared, family)[0]
    where = {**drawn_where(results, declared), **level.where}
    return float(replicate_values(results, level.label, where, declared.limit).mean())


def finish_y(panels: Sequence[Axes], declared: DeclaredFigure, limit: float) -> None:
    """Draw the limit and set the y axis that all panels share, once all have their data."""
    top = panels[0].get_ylim()[1]
    if declared.limit is not None and math.isfinite(limit):
        top = max(top, 1.08 * limit)
        for axes in panels:
            axes.axhline(limit, color="#a5371b", linestyle="--", linewidth=1.4)
            axes.annotate(
                METRICS[declared.limit].name, (1.0, limit), (-2, 3), ha="right",
                xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=8,
                color="#a5371b",
            )  # fmt: skip
    panels[0].set_ylim(0 if panels[0].get_yscale() == "linear" else None, top)
