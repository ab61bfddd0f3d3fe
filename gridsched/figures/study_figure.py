"""The usual figures of a study's report: means, sweeps, paired differences, energy and makespan."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gridsched.analysis.statistics import group_intervals, paired_differences
from gridsched.analysis.study_results import StudyResults, restricted
from gridsched.analysis.texts import axis_name, axis_text, is_number, value_text
from gridsched.campaign.run_records import read_records, records_file
from gridsched.errors import InputError
from gridsched.figures.axes import axes_words, scale_of
from gridsched.figures.chart import Panel, Scale, chart, levels_along, numbers_along
from gridsched.figures.figure_file import PlottedFigure, register_figure
from gridsched.figures.series_styles import SeriesStyle, series_styles
from gridsched.metrics import METRICS
from gridsched.runs.figure_kinds import figure_kinds

_ENERGIES = ("energy_j", "energy_model_j")
#: More panels than this would be unreadable; further combinations are in the tables only.
MAX_COLUMNS, MAX_ROWS, MAX_PAGES, MAX_METRICS = 4, 4, 2, 4
#: So many combinations of axes get a figure of finished tasks.
MAX_FIGURES = 4


@dataclass(frozen=True)
class Layout:
    """How a study's axes become panels, x axis and series of its figures.

    Attributes
    ----------
    x : str or None
        Axis along x; None if nothing varies but the scheduler.
    rows, columns : str or None
        Axes of the panels.
    pages : tuple of str
        Further axes: one figure for each of their combinations, up to `MAX_PAGES`.
    styles : dict
        Label of a scheduler -> how it is drawn in every figure.
    values : dict
        Values of the varying axes, in order.
    metrics : tuple of str
        What is drawn.
    results : StudyResults
    """

    x: str | None
    rows: str | None
    columns: str | None
    pages: tuple[str, ...]
    styles: dict[str, SeriesStyle]
    values: dict[str, tuple[Any, ...]]
    metrics: tuple[str, ...]
    results: StudyResults

    def means(self, metric: str) -> pd.DataFrame:
        """Return mean and interval of a metric for each cell and scheduler."""
        return group_intervals(self.results.shown, [*self.results.cell_axes, "scheduler"], metric)

    @property
    def combinations(self) -> list[dict[str, Any]]:
        """The axis values of each figure that there would be, if all were drawn."""
        values = itertools.product(*(self.values[axis] for axis in self.pages))
        return [dict(zip(self.pages, each, strict=True)) for each in values]

    def numbered_pages(self) -> Iterator[tuple[list[Panel], str]]:
        """Yield the panels of each figure that is drawn, and the end of its name."""
        several = self.combinations
        for number, page in enumerate(several[:MAX_PAGES], start=1):
            yield self.panels(page), f"-{number}" if len(several) > 1 else ""

    def panels(self, page: dict[str, Any]) -> list[Panel]:
        """Return the panels of a page, of its axis values and those of rows and columns."""
        panels = []
        for r, row in enumerate(self.values[self.rows][:MAX_ROWS] if self.rows else [None]):
            for c, column in enumerate(self.values[self.columns][:MAX_COLUMNS] if self.columns else [None]):
                own = {self.rows: row, self.columns: column}
                values = page | {axis: value for axis, value in own.items() if axis}
                panels.append(Panel(r, c, axis_text(values), values))
        return panels


def layout_of(
    results: StudyResults, *, metrics: Sequence[str] | None = None, where: Mapping[str, Sequence[Any]] | None = None
) -> Layout:
    """Choose x (the longest axis of numbers, else the longest), columns, rows, pages by length.

    Parameters
    ----------
    results : StudyResults
    metrics : sequence of str, optional
        What is drawn; by default the first `MAX_METRICS` of those that vary.
    where : mapping, optional
        Axis -> values that are drawn; by default those that the report is of.

    Raises
    ------
    InputError
        If there is no such axis, value or metric.
    """
    if metrics is None:
        metrics = list(results.distinct_metrics)[:MAX_METRICS]
    for metric in metrics:
        _check("metric", metric, results.metrics)
    values = {axis: results.shown_values(axis) for axis in results.varying_axes}
    for axis, some in (where or {}).items():
        _check("varying axis", axis, list(values))
        for value in some:
            _check(f"value of {axis}", value, values[axis])
        values[axis] = tuple(value for value in values[axis] if value in some)
    fixed = [axis for axis in values if len(values[axis]) == 1]
    by_length = sorted((axis for axis in values if axis not in fixed), key=lambda axis: -len(values[axis]))
    numeric = [axis for axis in by_length if all(map(is_number, values[axis]))]
    x = next(iter(numeric or by_length), None)
    columns, rows, *pages = [*(axis for axis in by_length if axis != x), None, None]
    styles = series_styles(results.labels, baseline=results.baseline)
    several = (*fixed, *filter(None, pages))
    return Layout(x, rows, columns, several, styles, values, tuple(metrics), results)


def _check(what: str, name: Any, legal: Sequence[Any]) -> None:
    """Refuse what the study has not."""
    if name not in legal:
        texts = ", ".join(map(value_text, legal))
        raise InputError(f"The study has no {what} {value_text(name)}. Allowed: {texts}.")


def _plotted(
    layout: Layout,
    panels: list[Panel],
    table: pd.DataFrame,
    kind: str,
    x: Scale,
    y: Scale,
    name: str,
    caption: str,
    **options: Any,
) -> PlottedFigure:
    """Draw a panel for each combination of two axes; the caption states this, and describes their axes."""
    columns = max(panel.column for panel in panels) + 1
    size = max(6.4, 4.1 * columns) if layout.x else 6.4, 1.0 + 2.5 * len(panels) / columns
    styles = options.pop("styles", layout.styles)
    if x.column == "scheduler":  # each is at its name
        styles = {label: replace(series_style, label="") for label, series_style in styles.items()}
        options["slots"] = dict.fromkeys(styles, 0.0)
    figure = chart(table, kind, x, y, styles, panels=panels, size=size, **options)
    axes = [axis for axis in (layout.rows, layout.columns) if axis]
    names = " and ".join(axis_name(axis) for axis in axes)
    by = f" One panel for each combination of {names}." if axes else ""
    data = pd.concat([panel.chosen(table) for panel in panels])
    return PlottedFigure(figure, data, name, caption + by + axes_words(figure))


def _levels(layout: Layout, styles: Mapping[str, SeriesStyle]) -> Scale:
    """Return the axis of the values along x; of the schedulers where nothing else varies."""
    if layout.x is None:
        return Scale("scheduler", "", levels={label: label for label in styles})
    return levels_along(layout.x, layout.values[layout.x])


@register_figure("bars", "study", "Means by scheduler.", heading="Means", place=10, is_default=True)
def bars(results: StudyResults, layout: Layout) -> Iterator[PlottedFigure]:
    """Yield a figure for each page and metric: a bar with its interval for each scheduler."""
    words = "by scheduler: mean and 95 % confidence interval."
    yield from _of_means(layout, "bars", "bars", _levels(layout, layout.styles), words)


@register_figure("sweep", "study", "Means along an axis of numbers.", heading="Sweeps", place=20, is_default=True)
def sweep(results: StudyResults, layout: Layout) -> Iterator[PlottedFigure]:
    """Yield a figure for each page and metric: a line with a band for each scheduler."""
    along = layout.values[layout.x] if layout.x else ()
    if layout.x and len(along) >= 3 and all(map(is_number, along)):
        name = axis_name(layout.x)
        words = f"along {name}: mean, and 95 % confidence interval as a band. The y axes do not begin at 0."
        yield from _of_means(layout, "sweep", "lines", numbers_along(layout.x, along), words)


def _of_means(layout: Layout, name: str, kind: str, x: Scale, words: str) -> Iterator[PlottedFigure]:
    """Yield a chart of means for each page and metric."""
    for panels, suffix in layout.numbered_pages():
        for metric in layout.metrics:
            means = layout.means(metric)
            factor, label = scale_of(metric, float(means["mean"].max()))
            y = Scale("mean", label, factor)
            yield _plotted(layout, panels, means, kind, x, y, f"{name}-{metric}{suffix}", f"{label} {words}")


@register_figure(
    "boxes", "study", "Paired differences from the baseline.", heading="Paired differences", place=30, is_default=True
)
def boxes(results: StudyResults, layout: Layout) -> Iterator[PlottedFigure]:
    """Yield a figure for each page and metric: a box for each scheduler but the baseline."""
    styles = {name: series_style for name, series_style in layout.styles.items() if not series_style.is_baseline}
    for panels, suffix in layout.numbered_pages() if styles else ():
        for metric in (name for name in layout.metrics if not METRICS[name].is_share):
            pairs = paired_differences(results.shown, results.cell_axes, metric, results.baseline)
            if not pairs["difference_percent"].notna().any():
                continue  # nothing is above a baseline of 0 by a share
            x, name = _levels(layout, styles), METRICS[metric].name
            y = Scale("difference_percent", f"{name}:\nmore than {results.baseline} [%]", origin=0.0)
            caption = (
                f"{name} above that of {results.baseline}, paired over replicates [%]: median, quartiles, "
                "whiskers to 1.5 interquartile ranges, and what lies outside."
            )
            plotted = _plotted(layout, panels, pairs, "boxes", x, y, f"boxes-{metric}{suffix}", caption, styles=styles)
            yield replace(plotted, data=_quantiles(results, plotted.data))


def _quantiles(results: StudyResults, pairs: Any) -> pd.DataFrame:
    """Return the five numbers of each box."""
    groups = pairs.groupby([*results.cell_axes, "scheduler"], sort=False)["difference_percent"]
    table = groups.quantile([0.0, 0.25, 0.5, 0.75, 1.0]).unstack()
    table.columns = ["minimum", "quartile_1", "median", "quartile_3", "maximum"]
    return table.assign(count=groups.count()).reset_index()


@register_figure("pareto", "study", "Energy against makespan.", place=40, is_default=True)
def pareto(results: StudyResults, layout: Layout) -> Iterator[PlottedFigure]:
    """Yield a figure for each page: a point for each scheduler and level along x."""
    metric = next((name for name in _ENERGIES if name in layout.metrics), None)
    if metric is None or "makespan_s" not in layout.metrics:
        return
    cell = results.cell_axes
    means = (layout.means(name)[[*cell, "scheduler", "mean"]] for name in ("makespan_s", metric))
    both = pd.merge(*means, on=[*cell, "scheduler"])
    both = both.rename(columns={"mean_x": "makespan_s", "mean_y": metric})
    both["efficient"] = efficient(both, cell, metric)
    factor, label = scale_of(metric, float(both[metric].max()))
    x = Scale("makespan_s", "Makespan [s]", shared_up_to=1.0)
    y = Scale(metric, label, factor, shared_up_to=1.0)
    along = f" One point for each {axis_name(layout.x)}, joined in their order." if layout.x else ""
    caption = (
        f"Means of energy and makespan by scheduler.{along} Filled: no other scheduler of the same "
        "combination has both less energy and less makespan."
    )
    for panels, suffix in layout.numbered_pages():
        name, options = f"pareto-{metric}{suffix}", {"filled": "efficient", "is_direct": True}
        yield _plotted(layout, panels, both, "paths", x, y, name, caption, **options)


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
    mask = pd.Series(True, index=table.index)
    for _, part in table.groupby(cell, sort=False, dropna=False) if cell else [("", table)]:
        points = part[["makespan_s", metric]].to_numpy()
        no_worse = (points[None, :, :] <= points[:, None, :]).all(axis=2)
        better = (points[None, :, :] < points[:, None, :]).any(axis=2)
        mask[part.index] = ~(no_worse & better).any(axis=1)
    return mask.tolist()


@register_figure(
    "trace",
    "study",
    "Finished tasks over time, of the runs whose records are kept.",
    heading="Finished tasks over time",
    place=50,
)
def finished_tasks(results: StudyResults, layout: Layout) -> Iterator[PlottedFigure]:
    """Yield a figure for each of the first combinations of which records are stored."""
    store = Path(results.place)
    runs = restricted(results.shown, layout.values)
    recorded = runs[[records_file(store, run_id).exists() for run_id in runs["run_id"]]]
    if not len(recorded):
        return
    keys = [*results.varying_axes, "replicate"]
    groups = itertools.islice(recorded.groupby(keys, sort=False), MAX_FIGURES)
    for number, (key, group) in enumerate(groups, start=1):
        ids = dict(zip(group["scheduler"], group["run_id"], strict=True))
        styles = {label: series_style for label, series_style in layout.styles.items() if label in ids}
        curves = [
            finished_over_time(read_records(store, ids[label])).assign(scheduler=label, run_id=ids[label])
            for label in styles
        ]
        data = pd.concat(curves, ignore_index=True)
        x, y = Scale("time_s", "Time [s]"), Scale("tasks_finished", "Finished tasks")
        figure = chart(data, "steps", x, y, styles, size=(7.0, 4.0))
        of = axis_text(dict(zip(keys, key, strict=True)))
        yield PlottedFigure(figure, data, f"trace-{number}", f"Finished tasks over time: {of}.")


def finished_over_time(records: pd.DataFrame) -> pd.DataFrame:
    """Return ``time_s`` and ``tasks_finished`` at each instant at which tasks finish, from 0 s."""
    is_end = (records["record"] == "execution") & (records["outcome"] == "finished")
    times, counts = np.unique(records.loc[is_end, "end_s"].to_numpy(), return_counts=True)
    return pd.DataFrame(
        {"time_s": np.concatenate([[0.0], times]), "tasks_finished": np.concatenate([[0], np.cumsum(counts)])}
    )


_DECLARED = "The study's figures"
_NAME = re.compile(r"[A-Za-z][\w.-]*")


def study_figures(results: StudyResults, layout: Layout) -> Iterator[tuple[str, PlottedFigure]]:
    """Yield each figure with its heading, one at a time; draw and save each within `style`.

    Raises
    ------
    InputError
        If a declared figure asks for a level or series that the study has not, or a figure has
        a name that is none for a file, or another figure's.
    """
    kinds, default = figure_kinds("declared"), figure_kinds("study").values()
    own = ((_DECLARED, kinds[each.kind].draw(results, each)) for each in results.study.figures)
    others = (
        (kind.heading or kind.sentence.rstrip("."), plotted)
        for kind in default
        if not (kind.is_default and results.study.figures)
        for plotted in kind.draw(results, layout)
    )
    names: set[str] = set()
    for heading, plotted in itertools.chain(own, others):
        if not _NAME.fullmatch(plotted.name) or plotted.name in names:
            raise InputError(
                f"{heading}: a figure is called {plotted.name!r}; its name must begin with a letter, "
                "hold letters, digits, '_', '-' and '.', and be that of no other figure."
            )
        names.add(plotted.name)
        yield heading, plotted
