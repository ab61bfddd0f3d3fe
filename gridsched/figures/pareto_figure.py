"""Energy against makespan: which schedulers no other one beats in both."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pandas as pd
from matplotlib.axes import Axes

from gridsched.analysis.study_results import StudyResults
from gridsched.analysis.texts import axis_name
from gridsched.figures.axes import plain_numbers
from gridsched.figures.study_layout import Layout
from gridsched.figures.study_panels import draw_panels, line_handle, panels_drawn, scale_of
from gridsched.figures.table import Drawn, register_figure

_ENERGIES = ("energy_j", "energy_model_j")


@register_figure("pareto", "study", "Energy against makespan.", place=40, is_usual=True)
def pareto(results: StudyResults, layout: Layout) -> Iterator[Drawn]:
    """Yield a figure for each page: a point for each scheduler and level along x."""
    metric = next((name for name in _ENERGIES if name in layout.metrics), None)
    if metric is None or "makespan_s" not in layout.metrics:
        return
    makespan, energy = layout.means("makespan_s"), layout.means(metric)
    factor, label = scale_of(metric, float(energy["mean"].max()))
    keys = [name for name in makespan if name not in ("mean", "low", "high", "count")]
    both = makespan[[*keys, "mean"]].merge(energy[[*keys, "mean"]], on=keys)
    both = both.rename(columns={"mean_x": "makespan_s", "mean_y": metric})
    both["efficient"] = efficient(both, [k for k in keys if k != "scheduler"], metric)
    handles = [line_handle(look, line="") for look in layout.looks]
    draw = partial(_draw, layout=layout, metric=metric, factor=factor)
    along = f" One point for each {axis_name(layout.x)}." if layout.x else ""
    caption = (
        f"Means of energy and makespan by scheduler.{along} Filled: no other scheduler of the same "
        "combination has both less energy and less makespan."
    )
    for page, suffix in layout.numbered_pages():
        drawn = draw_panels(layout, page, both, draw, handles, label)
        yield panels_drawn(layout, f"pareto-{metric}{suffix}", caption, *drawn)


def _draw(axes: Axes, table: pd.DataFrame, layout: Layout, metric: str, factor: float) -> None:
    for look in layout.looks:
        part = table[table["scheduler"] == look.label]
        for is_efficient in (False, True):
            some = part[part["efficient"] == is_efficient]
            axes.plot(
                some["makespan_s"], some[metric] / factor, linestyle="", marker=look.marker,
                markersize=9 if look.is_baseline else 6, color=look.dark, alpha=0.85,
                markerfacecolor=look.dark if is_efficient else "none",
            )  # fmt: skip
    axes.grid()
    plain_numbers(axes.xaxis)
    plain_numbers(axes.yaxis)
    axes.set_xlabel("Makespan [s]")


def efficient(table: pd.DataFrame, cell: list[str], metric: str) -> list[bool]:
    """Return whether no other row of the same cell is better in one metric and no worse in both.

    Parameters
    ----------
    table : DataFrame
        With the columns ``makespan_s`` and `metric`.
    cell : list of str
        Columns that make a cell.
    metric : str
        The other objective; less is better.
    """
    found = pd.Series(True, index=table.index)
    parts = [part for _, part in table.groupby(cell, sort=False, dropna=False)] if cell else [table]
    for part in parts:
        points = part[["makespan_s", metric]].to_numpy()
        no_worse = (points[None, :, :] <= points[:, None, :]).all(axis=2)
        better = (points[None, :, :] < points[:, None, :]).any(axis=2)
        found[part.index] = ~(no_worse & better).any(axis=1)
    return found.tolist()
