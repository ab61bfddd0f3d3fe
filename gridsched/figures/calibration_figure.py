"""Predicted chances to be in time against observed frequencies, a panel for each variant."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from gridsched.analysis.statistics import proportion_intervals
from gridsched.analysis.study_results import StudyResults, restricted
from gridsched.campaign.row_table import SERIES_PREFIX
from gridsched.errors import InputError
from gridsched.figures.declared_panels import (
    declared_drawn,
    drawn_labels,
    drawn_where,
    family_panels,
    names_of,
)
from gridsched.figures.table import Drawn, register_figure
from gridsched.spec.claims_schema import DeclaredFigure

_COUNTS = ("chance_tasks", "chance_sum", "chance_in_time")


@register_figure(
    "calibration", "declared", "Predicted chance to be in time against the observed frequency."
)
def calibration(results: StudyResults, declared: DeclaredFigure) -> Drawn:
    """Draw a point for each part of the chances, with its binomial interval.

    Raises
    ------
    InputError
        If no run of a variant has predicted chances.
    """
    labels = drawn_labels(results, declared)
    tables = {label: _table(results, declared, label) for label in labels}
    figure, panels = family_panels(names_of(declared, labels), 3.6, 3.3)
    for axes, table in zip(panels, tables.values(), strict=True):
        _draw(axes, table)
    for k, axes in enumerate(panels):
        if k % 2 == 0:
            axes.set_ylabel("Observed share in time")
        if k >= len(panels) - 2:
            axes.set_xlabel("Predicted chance to be in time")
    data = pd.concat([table.assign(scheduler=label) for label, table in tables.items()])
    return declared_drawn(declared, figure, data)


def _table(results: StudyResults, declared: DeclaredFigure, label: str) -> pd.DataFrame:
    """Return the counts of all chosen runs together, a row for each part that has tasks."""
    names = [SERIES_PREFIX + name for name in _COUNTS]
    where = {**drawn_where(results, declared), "scheduler": (label,)}
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
    return pd.DataFrame({
        "predicted": expected / n, "observed": in_time / n, "low": low, "high": high, "tasks": n,
        "runs": len(runs),
    })  # fmt: skip


def _draw(axes: Axes, table: pd.DataFrame) -> None:
    axes.plot([0, 1], [0, 1], color="#8a8a8a", linewidth=1.0)
    ends = [table["observed"] - table["low"], table["high"] - table["observed"]]
    axes.errorbar(
        table["predicted"], table["observed"], ends, fmt="o", color="#2f6396", markersize=4,
        ecolor="#303030", elinewidth=0.9, capsize=2.0,
    )  # fmt: skip
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.grid()
    expected, found = (table[name] @ table["tasks"] for name in ("predicted", "observed"))
    text = f"{table['tasks'].sum():,.0f} tasks\n{expected:,.0f} expected in time\n{found:,.0f} were"
    axes.text(0.04, 0.96, text, transform=axes.transAxes, va="top", fontsize=8)
