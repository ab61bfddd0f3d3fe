"""Mean series of some levels over time, a panel for each family."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from gridsched.analysis.claim_values import SERIES_OF, Level, Where
from gridsched.analysis.statistics import half_widths
from gridsched.analysis.study_results import StudyResults, restricted
from gridsched.analysis.texts import axis_name
from gridsched.campaign.row_table import SERIES_PREFIX
from gridsched.errors import InputError
from gridsched.figures.axes import plain_numbers
from gridsched.figures.declared_panels import (
    declared_drawn,
    drawn_levels,
    drawn_where,
    families_of,
    family_panels,
    finish_y,
    level_text,
    limit_of,
)
from gridsched.figures.study_panels import scale_of
from gridsched.figures.table import Drawn, register_figure
from gridsched.spec.claims_schema import DeclaredFigure

_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
_MARKERS = "osv^DXP<>*"


@register_figure("traces", "declared", "Mean series of some levels, a panel for each family.")
def series(results: StudyResults, declared: DeclaredFigure) -> Drawn:
    """Draw lines with bands, and the limit as a line; `InputError` where there is no series."""
    if declared.metric not in SERIES_OF:
        raise InputError(
            f"Figure {declared.name!r}: metric is {declared.metric!r}; series lead to "
            f"{', '.join(SERIES_OF)}."
        )
    families = families_of(results, declared, single=False)
    limit = limit_of(results, declared, families[0])
    curves = {
        family: [
            (
                level.value,
                mean_series(
                    results, level, SERIES_OF[declared.metric], drawn_where(results, declared)
                ),
            )
            for level in drawn_levels(results, declared, family)
        ]
        for family in families
    }
    largest = max(
        (curve["mean"].max() for lines in curves.values() for _, curve in lines if len(curve)),
        default=0.0,
    )
    factor, label = scale_of(declared.metric, float(np.nanmax([largest, limit])))
    figure, panels = family_panels(families, 5.2, 3.6)
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
    finish_y(panels, declared, limit / factor)
    values = [value for value, _ in curves[families[0]]]
    handles = [
        Line2D([], [], label=level_text(declared, value), **look)
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
    return declared_drawn(declared, figure, pd.concat(tables, ignore_index=True))


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


def mean_series(results: StudyResults, level: Level, series: str, where: Where) -> pd.DataFrame:
    """Return the mean of a series over replicates.

    Parameters
    ----------
    results : StudyResults
    level : Level
    series : str
        One of the series of `gridsched.campaign.measure.SERIES`.
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
    return pd.DataFrame({
        "time_h": (time - time[0]) / 3600.0, "mean": mean, "low": mean - half, "high": mean + half,
        "count": n,
    })  # fmt: skip
