"""The usual figures of a study's report: means, sweeps, paired differences, energy and makespan."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gridsched.analysis import statistics
from gridsched.analysis.study_results import StudyResults, restricted
from gridsched.analysis.texts import axis_name, axis_text, value_text
from gridsched.campaign.run_records import read_records, records_file
from gridsched.figures.axes import axes_words, axis_scale, scale_of
from gridsched.figures.chart import Scale, chart
from gridsched.figures.looks import Look
from gridsched.figures.study_layout import Layout
from gridsched.figures.table import Drawn, register_figure
from gridsched.metrics import METRICS

_ENERGIES = ("energy_j", "energy_model_j")
#: So many combinations of axes get a figure of finished tasks.
MAX_FIGURES = 4


def _drawn(
    layout: Layout,
    page: dict[str, Any],
    table: pd.DataFrame,
    kind: str,
    x: Scale,
    y: Scale,
    name: str,
    caption: str,
    **options: Any,
) -> Drawn:
    """Draw a panel for each combination of two axes; the caption says so, and of their axes."""
    panels = layout.panels(page)
    columns = max(panel.column for panel in panels) + 1
    size = max(6.4, 4.1 * columns) if layout.x else 6.4, 1.0 + 2.5 * len(panels) / columns
    looks = options.pop("looks", layout.looks)
    if x.column == "scheduler":  # each stands at its name
        looks = {label: replace(look, label="") for label, look in looks.items()}
        options["slots"] = dict.fromkeys(looks, 0.0)
    figure = chart(table, kind, x, y, looks, panels=panels, size=size, **options)
    axes = [axis for axis in (layout.rows, layout.columns) if axis]
    names = " and ".join(axis_name(axis) for axis in axes)
    by = f" One panel for each combination of {names}." if axes else ""
    data = pd.concat([panel.chosen(table) for panel in panels])
    return Drawn(figure, data, name, caption + by + axes_words(figure))


def _levels(layout: Layout, looks: Mapping[str, Look]) -> Scale:
    """Return the axis of the values along x; of the schedulers where nothing else varies."""
    if layout.x is None:
        return Scale("scheduler", "", levels={label: label for label in looks})
    factor, label = axis_scale(layout.x, layout.x_values)
    texts = {value: value_text(value / factor if factor > 1 else value) for value in layout.x_values}
    return Scale(layout.x, label, levels=texts)


@register_figure("bars", "study", "Means by scheduler.", heading="Means", place=10, is_usual=True)
def bars(results: StudyResults, layout: Layout) -> Iterator[Drawn]:
    """Yield a figure for each page and metric: a bar with its interval for each scheduler."""
    words = "by scheduler: mean and 95 % confidence interval."
    yield from _of_means(layout, "bars", "bars", _levels(layout, layout.looks), words)


def _of_means(layout: Layout, name: str, kind: str, x: Scale, words: str) -> Iterator[Drawn]:
    """Yield a chart of means for each page and metric."""
    for page, suffix in layout.numbered_pages():
        for metric in layout.metrics:
            means = layout.means(metric)
            factor, label = scale_of(metric, float(means["mean"].max()))
            yield _drawn(
                layout,
                page,
                means,
                kind,
                x,
                Scale("mean", label, factor),
                f"{name}-{metric}{suffix}",
                f"{label} {words}",
            )


@register_figure("sweep", "study", "Means along an axis of numbers.", heading="Sweeps", place=20, is_usual=True)
def sweep(results: StudyResults, layout: Layout) -> Iterator[Drawn]:
    """Yield a figure for each page and metric: a line with a band for each scheduler."""
    if not layout.is_sweep or layout.x is None:
        return
    name = axis_name(layout.x)
    words = f"along {name}: mean, and 95 % confidence interval as a band. The y axes do not begin at 0."
    factor, label = axis_scale(layout.x, layout.x_values)
    yield from _of_means(layout, "sweep", "lines", Scale(layout.x, label, factor), words)


@register_figure(
    "boxes", "study", "Paired differences from the baseline.", heading="Paired differences", place=30, is_usual=True
)
def boxes(results: StudyResults, layout: Layout) -> Iterator[Drawn]:
    """Yield a figure for each page and metric: a box for each scheduler but the baseline."""
    if len(results.labels) < 2:
        return
    looks = {name: look for name, look in layout.looks.items() if not look.is_baseline}
    for page, suffix in layout.numbered_pages():
        for metric in (name for name in layout.metrics if not METRICS[name].is_share):
            pairs = statistics.paired_differences(results.shown, results.cell_axes, metric, results.baseline)
            if not pairs["difference_percent"].notna().any():
                continue  # nothing is above a baseline of 0 by a share
            label = f"{METRICS[metric].name}:\nmore than {results.baseline} [%]"
            caption = (
                f"{METRICS[metric].name} above that of {results.baseline}, paired over replicates "
                "[%]: median, quartiles, whiskers to 1.5 interquartile ranges, and what lies "
                "outside."
            )
            drawn = _drawn(
                layout,
                page,
                pairs,
                "boxes",
                _levels(layout, looks),
                Scale("difference_percent", label, origin=0.0),
                f"boxes-{metric}{suffix}",
                caption,
                looks=looks,
            )
            yield replace(drawn, data=_quantiles(results, drawn.data))


def _quantiles(results: StudyResults, pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the five numbers of each box."""
    groups = pairs.groupby([*results.cell_axes, "scheduler"], sort=False)["difference_percent"]
    table = groups.quantile([0.0, 0.25, 0.5, 0.75, 1.0]).unstack()
    table.columns = ["minimum", "quartile_1", "median", "quartile_3", "maximum"]
    return table.assign(count=groups.count()).reset_index()


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
    along = f" One point for each {axis_name(layout.x)}, joined in their order." if layout.x else ""
    caption = (
        f"Means of energy and makespan by scheduler.{along} Filled: no other scheduler of the same "
        "combination has both less energy and less makespan."
    )
    for page, suffix in layout.numbered_pages():
        yield _drawn(
            layout,
            page,
            both,
            "paths",
            Scale("makespan_s", "Makespan [s]", shared_up_to=1.0),
            Scale(metric, label, factor, shared_up_to=1.0),
            f"pareto-{metric}{suffix}",
            caption,
            filled="efficient",
            is_direct=True,
        )


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
    parts = [part for _, part in table.groupby(cell, sort=False, dropna=False)] if cell else [table]
    for part in parts:
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
def finished_tasks(results: StudyResults, layout: Layout) -> Iterator[Drawn]:
    """Yield a figure for each of the first combinations of which records are stored."""
    store = Path(results.place)
    runs = restricted(results.shown, layout.values)
    kept = runs[[records_file(store, run_id).exists() for run_id in runs["run_id"]]]
    if not len(kept):
        return
    keys = [*results.varying_axes, "replicate"]
    groups = itertools.islice(kept.groupby(keys, sort=False), MAX_FIGURES)
    for number, (key, group) in enumerate(groups, start=1):
        ids = dict(zip(group["scheduler"], group["run_id"], strict=True))
        looks = {label: look for label, look in layout.looks.items() if label in ids}
        curves = [
            finished_over_time(read_records(store, ids[label])).assign(scheduler=label, run_id=ids[label])
            for label in looks
        ]
        data = pd.concat(curves, ignore_index=True)
        figure = chart(
            data,
            "steps",
            Scale("time_s", "Time [s]"),
            Scale("tasks_finished", "Finished tasks"),
            looks,
            size=(7.0, 4.0),
        )
        of = axis_text(dict(zip(keys, key, strict=True)))
        yield Drawn(figure, data, f"trace-{number}", f"Finished tasks over time: {of}.")


def finished_over_time(records: pd.DataFrame) -> pd.DataFrame:
    """Return ``time_s`` and ``tasks_finished`` at each instant at which tasks finish, from 0 s."""
    is_end = (records["record"] == "execution") & (records["outcome"] == "finished")
    times, counts = np.unique(records.loc[is_end, "end_s"].to_numpy(), return_counts=True)
    return pd.DataFrame(
        {"time_s": np.concatenate([[0.0], times]), "tasks_finished": np.concatenate([[0], np.cumsum(counts)])}
    )
