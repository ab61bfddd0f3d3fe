"""A metric over the replicates, a box for each variant, beside the paper's medians."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from gridsched.analysis.claim_values import replicate_values
from gridsched.analysis.statistics import median_interval
from gridsched.analysis.study_results import StudyResults
from gridsched.figures.declared_panels import (
    declared_drawn,
    drawn_labels,
    drawn_where,
    finish_bars,
    names_of,
)
from gridsched.figures.figure_file import BoxLook, LineLook, new_figure
from gridsched.figures.study_panels import draw_boxes, scale_of
from gridsched.figures.table import Drawn, register_figure
from gridsched.spec.claims_schema import DeclaredFigure

_BOX: BoxLook = {"facecolor": "#a9c1d9", "edgecolor": "#303030", "linewidth": 0.8}
_PAPER: LineLook = {"marker": "D", "markersize": 6, "color": "#a5371b", "linestyle": "none"}


@register_figure("box", "declared", "A box for each variant: median, quartiles, whiskers.")
def variant_boxes(results: StudyResults, declared: DeclaredFigure) -> Drawn:
    """Draw the boxes; y reaches from 0 to the largest value of all runs, as in all such figures.

    Raises
    ------
    InputError
        If there are not as many names as boxes.
    """
    labels = drawn_labels(results, declared)
    names = names_of(declared, labels)
    where, metric = drawn_where(results, declared), declared.metric
    samples = [replicate_values(results, label, where, metric).to_numpy() for label in labels]
    data = _numbers(labels, samples).assign(paper=_paper_medians(results, metric, labels))
    largest = float(results.shown[metric].max())
    factor, axis_label = scale_of(metric, largest)
    figure = new_figure(1.6 + 1.15 * len(labels), 3.6)
    axes = figure.subplots()
    places = [k for k, sample in enumerate(samples) if len(sample)]
    if places:
        draw_boxes(axes, [samples[k] / factor for k in places], places, 0.5, _BOX)
    finish_bars(axes, names, axis_label)
    if len(declared.schedulers) == 1:
        axes.set_title(declared.schedulers[0], loc="left")
    axes.set_xlim(-0.6, len(labels) - 0.4)
    axes.set_ylim(0, 1.05 * largest / factor if largest > 0 else 1.0)
    if data["paper"].notna().any():
        axes.plot(np.arange(len(labels)) + 0.36, data["paper"] / factor, clip_on=False, **_PAPER)
        handle = Line2D([], [], label="median in the paper, where it is printed", **_PAPER)
        figure.legend(handles=[handle], loc="outside lower center")
    return declared_drawn(declared, figure, data)


def _numbers(labels: list[str], samples: list[np.ndarray]) -> pd.DataFrame:
    """Return the five numbers of each box, and the interval of its median."""
    rows = []
    for label, sample in zip(labels, samples, strict=True):
        shares = [0.0, 0.25, 0.75, 1.0]
        least, one, three, most = np.quantile(sample, shares) if len(sample) else [np.nan] * 4
        median = median_interval(sample)
        rows.append({
            "scheduler": label, "count": median.count, "minimum": least, "quartile_1": one,
            "median": median.mean, "quartile_3": three, "maximum": most,
            "median_low": median.low, "median_high": median.high,
        })  # fmt: skip
    return pd.DataFrame(rows)


def _paper_medians(results: StudyResults, metric: str, labels: list[str]) -> list[float]:
    """Return the paper's median of each label as the study's claims have it, else nan."""
    claimed = {
        str(claim.scheduler): claim.paper / claim.scale
        for claim in results.study.claims
        if claim.statistic == "median" and claim.metric == metric and claim.paper is not None
    }
    return [claimed.get(label, np.nan) for label in labels]
