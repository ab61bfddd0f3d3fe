"""The figures of a study: bars, sweeps, box plots, and energy against makespan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gridsched.analysis import statistics
from gridsched.analysis.study_results import StudyResults
from gridsched.analysis.texts import axis_name, value_text
from gridsched.figures.figure_file import new_figure, plain_numbers, prefixed
from gridsched.figures.study_layout import Layout, Panel, SeriesLook

_UNITS = {"_s": "s", "_j": "J", "_js": "J s", "_flops": "flop"}
_ENERGIES = ("energy_j", "energy_model_j")


@dataclass(frozen=True)
class StudyFigure:
    """A drawn figure with its file name, its caption, and the data that it shows."""

    name: str
    kind: str
    caption: str
    figure: Figure
    data: pd.DataFrame


def is_share(metric: str) -> bool:
    """Whether a metric says by which share something else is exceeded; it is shown in percent."""
    return metric.endswith("_above_bound")


def metric_unit(metric: str) -> str:
    """Return the unit in which a metric is shown; empty if it is a pure number."""
    if is_share(metric):
        return "%"
    return next((unit for end, unit in _UNITS.items() if metric.endswith(end)), "")


def metric_name(metric: str) -> str:
    """Return a metric's name in words, without its unit."""
    unit_end = next((end for end in _UNITS if metric.endswith(end)), "")
    words = metric.removesuffix(unit_end).replace("_", " ")
    return words[:1].upper() + words[1:]


def figures_of(results: StudyResults, layout: Layout) -> Iterator[StudyFigure]:
    """Yield the figures of a study, one at a time; draw and save each within `style`."""
    metrics = list(results.distinct_metrics)[:4]
    group = [*results.cell_axes, "scheduler"]
    means = {name: statistics.group_intervals(results.shown, group, name) for name in metrics}
    for page_number, page in enumerate(layout.page_values(), start=1):
        suffix = f"-{page_number}" if layout.n_pages > 1 else ""
        for metric in metrics:
            yield _bars(layout, page, metric, means[metric], suffix)
        if layout.is_sweep:
            for metric in metrics:
                yield _sweep(layout, page, metric, means[metric], suffix)
        if len(results.labels) > 1:
            for metric in (name for name in metrics if not is_share(name)):
                yield _boxes(results, layout, page, metric, suffix)
        energy = next((name for name in _ENERGIES if name in metrics), None)
        if energy and "makespan_s" in metrics:
            yield _pareto(layout, page, means["makespan_s"], means[energy], energy, suffix)


def _grid(layout: Layout, page: dict[str, Any]) -> tuple[Figure, list[tuple[Panel, Axes]]]:
    panels = layout.panels(page)
    rows = max(panel.row for panel in panels) + 1
    columns = max(panel.column for panel in panels) + 1
    width = max(6.4, 4.1 * columns) if layout.x else 6.4
    figure = new_figure(width, 1.0 + 2.5 * rows)
    grid = figure.subplots(rows, columns, squeeze=False)
    for panel in panels:
        grid[panel.row, panel.column].set_title(panel.title, loc="left")
    return figure, [(panel, grid[panel.row, panel.column]) for panel in panels]


def _legend(figure: Figure, handles: list[Any]) -> None:
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(len(handles), 6),
        handlelength=2.4,
    )  # fmt: skip


def _figure(
    layout: Layout, name: str, kind: str, caption: str, drawn: tuple[Figure, pd.DataFrame]
) -> StudyFigure:
    figure, data = drawn
    axes = [axis for axis in (layout.rows, layout.columns) if axis]
    by = f" One panel for each combination of {' and '.join(map(axis_name, axes))}." if axes else ""
    return StudyFigure(name, kind, caption + by, figure, data)


def _x_labels(axes: Axes, layout: Layout) -> None:
    axes.set_xticks(range(len(layout.x_values)), [value_text(each) for each in layout.x_values])
    axes.tick_params(axis="x", length=0)
    if layout.x:
        axes.set_xlabel(axis_name(layout.x).capitalize())


def _places(layout: Layout, table: pd.DataFrame) -> np.ndarray:
    """Return the index along x of each row."""
    if layout.x is None:
        return np.zeros(len(table))
    index = {value: k for k, value in enumerate(layout.x_values)}
    return table[layout.x].map(index).to_numpy(dtype=np.float64)


def _scale(means: pd.DataFrame, metric: str) -> tuple[float, str]:
    unit = metric_unit(metric)
    factor = 0.01 if is_share(metric) else 1.0
    if unit in ("J", "J s"):
        factor, unit = prefixed(unit, float(means["mean"].max()))
    return factor, f"{metric_name(metric)} [{unit}]" if unit else metric_name(metric)


# ---------------------------------------------------------------------- bars and sweeps


def _bars(
    layout: Layout, page: dict[str, Any], metric: str, means: pd.DataFrame, suffix: str
) -> StudyFigure:
    figure, panels = _grid(layout, page)
    factor, label = _scale(means, metric)
    width = 0.84 / len(layout.looks)
    shown = []
    for panel, axes in panels:
        table = panel.chosen(means)
        shown.append(table)
        for k, look in enumerate(layout.looks):
            part = table[table["scheduler"] == look.label]
            x = _places(layout, part) + (k - (len(layout.looks) - 1) / 2) * width
            heights = part["mean"].to_numpy() / factor
            half = (part["high"] - part["low"]).fillna(0.0).to_numpy() / 2 / factor
            axes.bar(x, heights, width, linewidth=0.5, **look.patch)
            axes.errorbar(x, heights, half, fmt="none", ecolor="#000000", elinewidth=0.8, capsize=1)
        axes.set_ylim(bottom=0)
        axes.grid(axis="y")
        plain_numbers(axes.yaxis)
        _x_labels(axes, layout)
        if panel.column == 0:
            axes.set_ylabel(label)
    _legend(figure, [Patch(label=look.label, **look.patch) for look in layout.looks])
    caption = f"{label} by scheduler: mean and 95 % confidence interval."
    return _figure(layout, f"bars-{metric}{suffix}", "bars", caption, (figure, pd.concat(shown)))


def _sweep(
    layout: Layout, page: dict[str, Any], metric: str, means: pd.DataFrame, suffix: str
) -> StudyFigure:
    figure, panels = _grid(layout, page)
    factor, label = _scale(means, metric)
    shown = []
    for panel, axes in panels:
        table = panel.chosen(means)
        shown.append(table)
        for look in layout.looks:
            part = table[table["scheduler"] == look.label].sort_values(layout.x)
            x = part[layout.x].to_numpy(dtype=np.float64)
            low, high = (part[name].to_numpy() / factor for name in ("low", "high"))
            axes.fill_between(x, low, high, color=look.dark, alpha=0.2, linewidth=0)
            _line(axes, x, part["mean"].to_numpy() / factor, look)
        axes.grid(axis="y")
        plain_numbers(axes.yaxis)
        axes.set_xlabel(axis_name(layout.x).capitalize())
        if panel.column == 0:
            axes.set_ylabel(label)
    _legend(figure, [_handle(look) for look in layout.looks])
    caption = (
        f"{label} along {axis_name(layout.x)}: mean, and 95 % confidence interval as a band. "
        "The y axes do not begin at 0."
    )
    return _figure(layout, f"sweep-{metric}{suffix}", "sweep", caption, (figure, pd.concat(shown)))


def _line(axes: Axes, x: np.ndarray, y: np.ndarray, look: SeriesLook) -> None:
    axes.plot(
        x, y, color=look.dark, linestyle=look.line, linewidth=1.8 if look.is_baseline else 1.1,
        marker=look.marker, markersize=7 if look.is_baseline else 4,
    )  # fmt: skip


def _handle(look: SeriesLook, *, line: str | None = None) -> Line2D:
    return Line2D(
        [], [], color=look.dark, linestyle=look.line if line is None else line, label=look.label,
        marker=look.marker, markersize=7 if look.is_baseline else 4,
    )  # fmt: skip


# ---------------------------------------------------------------------- paired differences


def _boxes(
    results: StudyResults, layout: Layout, page: dict[str, Any], metric: str, suffix: str
) -> StudyFigure:
    figure, panels = _grid(layout, page)
    pairs = statistics.paired_differences(
        results.shown, results.cell_axes, metric, results.baseline
    )
    looks = [look for look in layout.looks if not look.is_baseline]
    width = 0.84 / len(looks)
    summaries = []
    for panel, axes in panels:
        table = panel.chosen(pairs)
        for k, look in enumerate(looks):
            part = table[table["scheduler"] == look.label]
            values, places = _boxed(layout, part)
            positions = places + (k - (len(looks) - 1) / 2) * width
            if len(values):
                _draw_boxes(axes, values, positions, width, look)
        axes.axhline(0, color="#1b3a5c", linewidth=1.2)
        axes.grid(axis="y")
        axes.set_xlim(-0.5, len(layout.x_values) - 0.5)
        _x_labels(axes, layout)
        if panel.column == 0:
            axes.set_ylabel(f"{metric_name(metric)}:\nmore than {results.baseline} [%]")
        summaries.append(table)
    _legend(figure, [Patch(label=look.label, **look.patch) for look in looks])
    caption = (
        f"{metric_name(metric)} above that of {results.baseline}, paired over replicates [%]: "
        "median, quartiles, whiskers to 1.5 interquartile ranges, and what lies outside."
    )
    data = _quantiles(results, pd.concat(summaries))
    return _figure(layout, f"boxes-{metric}{suffix}", "boxes", caption, (figure, data))


def _boxed(layout: Layout, part: pd.DataFrame) -> tuple[list[np.ndarray], np.ndarray]:
    part = part[part["difference_percent"].notna()]
    places = _places(layout, part)
    values = part["difference_percent"].to_numpy()
    known = np.unique(places)
    return [values[places == place] for place in known], known


def _draw_boxes(
    axes: Axes, values: list[np.ndarray], positions: np.ndarray, width: float, look: SeriesLook
) -> None:
    axes.boxplot(
        values, positions=positions, widths=0.86 * width, patch_artist=True, manage_ticks=False,
        boxprops={**look.patch, "linewidth": 0.5}, medianprops={"color": "#000000"},
        whiskerprops={"linewidth": 0.7}, capprops={"linewidth": 0.7},
        flierprops={"marker": ".", "markersize": 2, "markeredgecolor": "#303030"},
    )  # fmt: skip


def _quantiles(results: StudyResults, pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the five numbers of each box."""
    groups = pairs.groupby([*results.cell_axes, "scheduler"], sort=False)["difference_percent"]
    table = groups.quantile([0.0, 0.25, 0.5, 0.75, 1.0]).unstack()
    table.columns = ["minimum", "quartile_1", "median", "quartile_3", "maximum"]
    return table.assign(count=groups.count()).reset_index()


# ---------------------------------------------------------------------- two objectives


def _pareto(
    layout: Layout,
    page: dict[str, Any],
    makespan: pd.DataFrame,
    energy: pd.DataFrame,
    metric: str,
    suffix: str,
) -> StudyFigure:
    figure, panels = _grid(layout, page)
    factor, label = _scale(energy, metric)
    keys = [name for name in makespan if name not in ("mean", "low", "high", "count")]
    both = makespan[[*keys, "mean"]].merge(energy[[*keys, "mean"]], on=keys)
    both = both.rename(columns={"mean_x": "makespan_s", "mean_y": metric})
    both["efficient"] = efficient(both, [k for k in keys if k != "scheduler"], metric)
    shown = []
    for panel, axes in panels:
        table = panel.chosen(both)
        shown.append(table)
        for look in layout.looks:
            part = table[table["scheduler"] == look.label]
            _scatter(axes, part, metric, factor, look)
        axes.grid()
        plain_numbers(axes.xaxis)
        plain_numbers(axes.yaxis)
        axes.set_xlabel("Makespan [s]")
        if panel.column == 0:
            axes.set_ylabel(label)
    _legend(figure, [_handle(look, line="") for look in layout.looks])
    along = f" One point for each {axis_name(layout.x)}." if layout.x else ""
    caption = (
        f"Means of energy and makespan by scheduler.{along} Filled: no other scheduler of the same "
        "combination has both less energy and less makespan."
    )
    drawn = figure, pd.concat(shown)
    return _figure(layout, f"pareto-{metric}{suffix}", "pareto", caption, drawn)


def _scatter(axes: Axes, part: pd.DataFrame, metric: str, factor: float, look: SeriesLook) -> None:
    for is_efficient in (False, True):
        some = part[part["efficient"] == is_efficient]
        axes.plot(
            some["makespan_s"], some[metric] / factor, linestyle="", marker=look.marker,
            markersize=9 if look.is_baseline else 6, color=look.dark, alpha=0.85,
            markerfacecolor=look.dark if is_efficient else "none",
        )  # fmt: skip


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
