"""How a metric is distributed over the replicates, along what varies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from gridsched.analysis.claim_values import levels_of, replicate_values
from gridsched.analysis.study_results import StudyResults
from gridsched.analysis.texts import axis_name, value_text
from gridsched.figures.declared_panels import (
    declared_drawn,
    drawn_where,
    families_of,
    finish_bars,
    names_of,
)
from gridsched.figures.figure_file import new_figure
from gridsched.figures.study_panels import scale_of
from gridsched.figures.table import Drawn, register_figure
from gridsched.spec.claims_schema import DeclaredFigure

_LOOKS = (("#d6e2ee", ""), ("#7fa3c7", "///"), ("#1b3a5c", ""), ("#f0b65a", "..."))
#: Places at which a density is computed, and quantiles that are kept.
_POINTS, _SHARES = 200, (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@register_figure("violins", "declared", "The distribution over replicates, along what varies.")
def violins(results: StudyResults, declared: DeclaredFigure) -> Drawn:
    """Draw a violin with its median for each scheduler and level; all have the same width."""
    labels = families_of(results, declared, single=True)
    samples = {label: _samples(results, declared, label) for label in labels}
    levels = list(next(iter(samples.values())))
    data = pd.DataFrame(
        {"scheduler": label, declared.along: level, "count": len(sample), "mean": sample.mean(),
         **{f"quantile_{q:g}": np.quantile(sample, q) for q in _SHARES}}
        for label, found in samples.items() for level, sample in found.items() if len(sample)
    )  # fmt: skip
    factor, text = scale_of(declared.metric, float(data["mean"].abs().max()))
    figure = new_figure(6.4, 4.0)
    axes = figure.subplots()
    width = 0.84 / len(labels)
    for k, label in enumerate(labels):
        places = np.arange(len(levels)) + (k - (len(labels) - 1) / 2) * width
        values = [samples[label][level] / factor for level in levels]
        _draw(axes, places, values, 0.9 * width, *_LOOKS[k % len(_LOOKS)])
    finish_bars(axes, [value_text(level) for level in levels], text)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(axis_name(declared.along).capitalize())
    figure.legend(
        handles=[
            Patch(facecolor=face, hatch=hatch, edgecolor="#303030", label=name)
            for name, (face, hatch) in zip(names_of(declared, labels), _LOOKS, strict=False)
        ],
        loc="outside lower center", ncols=len(labels),
    )  # fmt: skip
    return declared_drawn(declared, figure, data)


def _samples(
    results: StudyResults, declared: DeclaredFigure, label: str
) -> dict[object, np.ndarray]:
    """Return the metric of each replicate by level of an axis."""
    where = drawn_where(results, declared)
    found = {
        level.value: replicate_values(
            results, level.label, {**where, **level.where}, declared.metric
        ).to_numpy()
        for level in levels_of(results, label, declared.along, where)
    }
    return {level: found[level] for level in declared.levels or found}


def _draw(
    axes: Axes, places: np.ndarray, samples: list[np.ndarray], width: float, face: str, hatch: str
) -> None:
    known = [k for k, sample in enumerate(samples) if len(sample) > 1 and np.ptp(sample) > 0]
    if not known:
        return
    drawn = [samples[k] for k in known]
    # a list, where matplotlib's own types have one collection
    bodies: Any = axes.violinplot(
        drawn, places[known], widths=width, showextrema=False, points=_POINTS
    )["bodies"]  # fmt: skip
    for body in bodies:
        body.set(facecolor=face, edgecolor="#303030", alpha=1.0, linewidth=0.6, hatch=hatch)
    medians = [float(np.median(sample)) for sample in drawn]
    axes.plot(
        places[known], medians, linestyle="", marker="o", markersize=4.5, markerfacecolor="#ffffff",
        markeredgecolor="#000000", zorder=4,
    )  # fmt: skip
