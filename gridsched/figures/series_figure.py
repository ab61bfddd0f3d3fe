"""Figures that a study declares, of the series of its runs: means over time, chances in time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from gridsched.analysis.claim_values import SERIES_OF, Level, Where, where_of
from gridsched.analysis.statistics import half_widths, proportion_intervals
from gridsched.analysis.study_results import StudyResults, restricted
from gridsched.analysis.texts import axis_title
from gridsched.campaign.row_table import SERIES_PREFIX
from gridsched.errors import InputError
from gridsched.figures.chart import Scale, chart, levels_along
from gridsched.figures.declared_figure import (
    families_of,
    family_panels,
    limit_of,
    metric_scale,
    plotted_as_declared,
    plotted_labels,
    plotted_levels,
)
from gridsched.figures.figure_file import PlottedFigure, register_figure
from gridsched.figures.series_styles import BAR, level_styles
from gridsched.runs.claims_schema import DeclaredFigure

_COUNTS = ("chance_tasks", "chance_sum", "chance_in_time")


@register_figure("traces", "declared", "Mean series of some levels, a panel for each family.")
def series(results: StudyResults, declared: DeclaredFigure) -> PlottedFigure:
    """Draw lines with bands, and the limit as a line; `InputError` where there is no series."""
    if declared.metric not in SERIES_OF:
        raise InputError(
            f"Figure {declared.name!r}: metric is {declared.metric!r}; series lead to {', '.join(SERIES_OF)}."
        )
    families = families_of(results, declared, single=False)
    limit = limit_of(results, declared, families[0])
    where, name = where_of(results, declared.where), SERIES_OF[declared.metric]
    data = pd.concat(
        [
            mean_series(results, level, name, where).assign(**{"scheduler": family, declared.along: level.value})
            for family in families
            for level in plotted_levels(results, declared, family)
        ],
        ignore_index=True,
    )
    levels = levels_along(declared.along, data[declared.along], declared.infinite).levels or {}
    x = Scale("time_h", "Time since the window's begin [h]", least=0.0, most=float(data["time_h"].max()))
    y = metric_scale(declared, float(data["mean"].max()), limit=limit, least=0.0, shared_up_to=math.inf)
    styles, legend = level_styles(list(levels), levels.values()), axis_title(declared.along)
    panels = family_panels({each: each for each in families}, 5.2, 3.6)
    figure = chart(data, "lines", x, y, styles, hue=declared.along, legend=legend, **panels)
    for axes in figure.axes:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 3, 6, 10]))
    return plotted_as_declared(declared, figure, data)


def mean_series(results: StudyResults, level: Level, series: str, where: Where) -> pd.DataFrame:
    """Return the mean of a series over replicates.

    Parameters
    ----------
    results : StudyResults
    level : Level
    series : str
        One of the series of `gridsched.campaign.worker.SERIES`.
    where : mapping
        Axis -> values of the runs that count.

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
    where = {**where, **level.where, "scheduler": (level.label,)}
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
    return pd.DataFrame(
        {"time_h": (time - time[0]) / 3600.0, "mean": mean, "low": mean - half, "high": mean + half, "count": n}
    )


@register_figure(
    "calibration",
    "declared",
    "Predicted chance to be in time against the observed frequency.",
    needs=(),
    is_of_variants=True,
)
def calibration(results: StudyResults, declared: DeclaredFigure) -> PlottedFigure:
    """Draw a point for each part of the chances, with its binomial interval.

    Raises
    ------
    InputError
        If no run of a variant has predicted chances.
    """
    names = plotted_labels(results, declared)
    tables = {label: _chances(results, declared, label) for label in names}
    data = pd.concat([table.assign(scheduler=label) for label, table in tables.items()])
    x = Scale("predicted", "Predicted chance to be in time", least=-0.02, most=1.02)
    y = replace(x, column="observed", label="Observed share in time")
    figure = chart(data, "points", x, y, {"": BAR}, hue="", **family_panels(names, 3.6, 3.3))
    for axes, table in zip(figure.axes, tables.values(), strict=True):
        axes.plot([0, 1], [0, 1], color="#8a8a8a", linewidth=1.0, zorder=1)
        expected, observed = (table[name] @ table["tasks"] for name in ("predicted", "observed"))
        axes.text(
            0.04,
            0.96,
            f"{table['tasks'].sum():,.0f} tasks\n{expected:,.0f} expected in time\n{observed:,.0f} were",
            transform=axes.transAxes,
            va="top",
            fontsize=8,
        )
    return plotted_as_declared(declared, figure, data)


def _chances(results: StudyResults, declared: DeclaredFigure, label: str) -> pd.DataFrame:
    """Return the counts of all chosen runs together, a row for each part that has tasks."""
    names = [SERIES_PREFIX + name for name in _COUNTS]
    where = {**where_of(results, declared.where), "scheduler": (label,)}
    runs = restricted(results.shown, where)
    runs = runs.dropna(subset=names) if set(names) <= set(runs) else runs[:0]
    if not len(runs):
        raise InputError(
            f"Figure {declared.name!r}: no run of {label} has predicted chances; schedulers that "
            "note 'predicted_chance' have them."
        )
    n, expected, in_time = (np.sum(runs[name].to_list(), axis=0) for name in names)
    some = n > 0
    n, expected, in_time = n[some], expected[some], in_time[some]
    low, high = proportion_intervals(in_time, n)
    return pd.DataFrame(
        {"predicted": expected / n, "observed": in_time / n, "low": low, "high": high, "tasks": n, "runs": len(runs)}
    )
