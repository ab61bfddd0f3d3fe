"""Tables of a study's report: axes, means with intervals, differences, what ran and failed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pandas as pd

from gridsched.analysis import statistics
from gridsched.analysis.study_results import StudyResults, restricted
from gridsched.analysis.texts import TextTable, axis_name, axis_value, number_text, read_unit
from gridsched.errors import counted
from gridsched.figures.axes import scale_of
from gridsched.metrics import BOUNDED, BOUNDED_CARBON, METRICS, Metric
from gridsched.metrics.columns import Column
from gridsched.metrics.group_metrics import JOBS
from gridsched.runs.study_schedulers import scheduler_texts

#: So many groups of jobs are listed on a page; the files beside it have all.
_MOST_GROUPS = 20


def baseline_text(results: StudyResults) -> str:
    """Return what the others are compared with, and where that is chosen; nothing with one scheduler."""
    if len(results.labels) < 2:
        return ""
    why = "baseline" if results.study.baseline else "first scheduler; 'baseline' in its file names another"
    return f"Differences are from {results.baseline}, the study's {why}."


def axes_table(results: StudyResults) -> TextTable:
    """Return the axes of a study with their values."""
    rows = []
    for axis in results.study.axes:
        is_scheduler = axis.name == "scheduler"
        shown = scheduler_texts(results.study.schedulers) if is_scheduler else axis.values
        texts = (axis_value(axis.name, value) for value in shown)
        rows.append([axis_name(axis.name), str(len(axis.values)), ", ".join(texts)])
    rows.append(["replicate", str(results.study.replicates), f"seed {results.study.seed}"])
    return TextTable("Axes", ["axis", "values", ""], rows)


def mean_frame(results: StudyResults, metric: str) -> pd.DataFrame:
    """Return mean and interval of a metric for each cell and scheduler.

    Those of ``energy_j`` have ``energy_source`` beside them.
    """
    group = [*results.cell_axes, "scheduler"]
    frame = statistics.group_intervals(results.shown, group, metric)
    if metric == "energy_j" and "energy_source" in results.shown:
        by_cell = results.shown.groupby(group, sort=False, dropna=False)["energy_source"]
        frame = frame.merge(by_cell.agg(_sources).reset_index(), on=group, how="left")
    return frame


def _sources(values: pd.Series) -> str:
    return " and ".join(sorted(values.dropna().unique()))


def difference_frame(results: StudyResults, metric: str) -> pd.DataFrame:
    """Return mean and interval of the paired differences from the baseline [%]."""
    pairs = statistics.paired_differences(results.shown, results.cell_axes, metric, results.baseline)
    return statistics.group_intervals(pairs, [*results.cell_axes, "scheduler"], "difference_percent")


def mean_table(results: StudyResults, metric: str, frame: pd.DataFrame) -> TextTable:
    """Return `mean_frame` with a column for each scheduler; the best of a setting is marked.

    Numbers have the unit that the figures have.
    """
    note = _what_cells_are(results)
    entry = METRICS[metric]
    if "energy_source" in frame:
        note += f" Energy by {_sources(frame['energy_source'])}."
    if entry.condition in (BOUNDED, BOUNDED_CARBON):
        states = "whether or not hosts are off, and in any P-state"
        if "fixed" in metric:
            states = "where every host is on to the end and in its P-state, as the study sets them"
        note += f" The bound is the least possible for this bag on this platform, with divisible tasks, {states}."
    factor, title = scale_of(metric, float(frame["mean"].abs().max()))
    frame = frame.assign(**{name: frame[name] / factor for name in ("mean", "low", "high")})
    best = _best_of_settings(results, frame, metric)
    return _pivoted(results, frame.assign(is_best=best), results.labels, title, note, signed=False)


def _what_cells_are(results: StudyResults) -> str:
    """Return the sentence on the numbers in tables of means."""
    return f"Mean ± half-width of the 95 % interval of {counted(results.study.replicates, 'replicate')}."


def _best_of_settings(results: StudyResults, frame: pd.DataFrame, metric: str, least: float = math.nan) -> pd.Series:
    """Return which means are the best of their setting; none where all are, or none is better.

    `least`, if given, is what they have to beat.
    """
    better = METRICS[metric].better
    if better is None:
        return pd.Series(False, frame.index)
    sign = 1 if better == "less" else -1
    means = sign * frame["mean"]
    keys = [frame[axis] for axis in results.cell_axes] or [pd.Series(0, frame.index)]
    groups = means.groupby(keys, dropna=False)
    low, high = groups.transform("min"), groups.transform("max")
    close = 1e-9 * low.abs()
    return (means <= low + close) & (high > low + close if math.isnan(least) else means < sign * least)


def difference_table(results: StudyResults, metric: str, frame: pd.DataFrame) -> TextTable:
    """Return `difference_frame` with a column for each scheduler but the baseline."""
    labels = [label for label in results.labels if label != results.baseline]
    title = f"{METRICS[metric].name}: how much more than {results.baseline} [%]"
    note = (
        f"100 (other - {results.baseline}) / {results.baseline}, paired over replicates; mean ± "
        f"half-width of the 95 % interval. Positive: {results.baseline} has less."
    )
    best = _best_of_settings(results, frame, metric, least=0.0)
    return _pivoted(results, frame.assign(is_best=best), labels, title, note, signed=True)


def group_frame(results: StudyResults, by: str, column: Column) -> pd.DataFrame:
    """Return mean and interval of a column of groups of jobs for each cell, group and scheduler.

    Parameters
    ----------
    results : StudyResults
    by : str
        What the jobs are grouped by.
    column : Column
        Of `gridsched.metrics.group_metrics.columns_of`.
    """
    keys = [*results.cell_axes, "group", "scheduler"]
    return statistics.group_intervals(_shown_groups(results, by), keys, column.key)


def _shown_groups(results: StudyResults, by: str) -> pd.DataFrame:
    groups = restricted(results.groups, results.study.report_where)
    return groups[groups["group_by"] == by]


def group_table(results: StudyResults, by: str, column: Column, frame: pd.DataFrame) -> TextTable:
    """Return `group_frame` with a column for each scheduler.

    Of more than `_MOST_GROUPS` groups it has those with the most jobs, these first.
    """
    note = _what_cells_are(results)
    jobs = _shown_groups(results, by).groupby("group", sort=False)[JOBS.key].sum()
    if len(jobs) > _MOST_GROUPS:
        note += f" The {_MOST_GROUPS} groups of {len(jobs):,} with the most jobs; the .csv file has all."
        most = list(jobs.sort_values(ascending=False, kind="stable").index[:_MOST_GROUPS])
        frame = frame[frame["group"].isin(most)].sort_values("group", key=lambda name: name.map(most.index))
    factor, unit = 1.0, ""
    if column.kind == "share":
        factor, unit = 0.01, "%"
    elif column.unit:
        factor, unit = read_unit(column.unit, float(frame["mean"].abs().max()))
    frame = frame.assign(**{name: frame[name] / factor for name in ("mean", "low", "high")})
    heading = column.header.replace("\n", " ").partition(" [")[0] + (f" [{unit}]" if unit else "")
    title = f"Jobs by {by}: {heading}"
    return _pivoted(results, frame, results.labels, title, note, signed=False, beside={"group": by})


def _pivoted(
    results: StudyResults,
    frame: pd.DataFrame,
    labels: list[str],
    title: str,
    note: str,
    *,
    signed: bool,
    beside: Mapping[str, str] = MappingProxyType({}),
) -> TextTable:
    """Return a frame with a column for each scheduler; `beside` are columns that are labels beside axes, by heading."""
    axes, variants = [*results.varying_axes, *beside], {each.label: each for each in results.study.schedulers}
    families = list(dict.fromkeys(variants[label].family for label in labels))
    label_axes, n = [*axes, *results.varied_parameters], results.study.replicates
    rows: dict[tuple[Any, ...], list[str]] = {}
    best = []
    for cell in frame.to_dict("records"):
        variant = variants[cell["scheduler"]]
        place = (*(cell[axis] for axis in axes), *(variant.varied.get(name, "-") for name in results.varied_parameters))
        row = rows.setdefault(place, [*map(axis_value, label_axes, place), *["-"] * len(families)])
        column = len(label_axes) + families.index(variant.family)
        row[column] = number_text(cell["mean"], (cell["high"] - cell["low"]) / 2, signed=signed)
        if cell["count"] < n:
            row[column] += f" ({cell['count']})"
        if cell.get("is_best"):
            best.append((place, column))
    if (frame["count"] < n).any():
        note += " In brackets: the number of replicates, where some are missing."
    if best:
        where = f", where it is better than {results.baseline}" if signed else ""
        note += f" Bold: the best of each setting{where}."
    headings = [beside.get(name, axis_name(name)) for name in label_axes]
    header, row_of = [*headings, *families], {place: k for k, place in enumerate(rows)}
    marked = frozenset((row_of[place], column) for place, column in best)
    return TextTable(title, header, list(rows.values()), len(label_axes), note, marked)


def constants_text(results: StudyResults) -> list[str]:
    """Return a sentence for each value that metrics have in all runs."""
    metrics: dict[float, list[Metric]] = {}
    for metric, value in results.constant_metrics.items():
        metrics.setdefault(value, []).append(METRICS[metric])
    sentences = []
    for value, same in metrics.items():
        *others, last = (each.name.lower() for each in same)
        words = f"{', '.join(others)} and {last}" if others else last
        unit = same[0].unit if value != 0 and len({each.unit for each in same}) == 1 else ""
        text = f"{words[:1].upper()}{words[1:]}: all {value:,.6g} {unit}".rstrip()
        sentences.append(f"{text}.")
    return sentences


def failure_table(results: StudyResults) -> TextTable:
    """Return the failed runs by error text, the commonest first, with an example of each."""
    rows = []
    several = [name for name in results.cell_axes if len(results.values_of(name)) > 1]
    for error, group in sorted(results.failed.groupby("error", dropna=False), key=lambda each: -len(each[1])):
        first = group.iloc[0]
        place = ", ".join(
            f"{axis_name(name)} {axis_value(name, first[name])}" for name in (*several, "scheduler", "replicate")
        )
        rows.append([str(len(group)), str(error), str(first["run_id"]), place])
    return TextTable("Failed runs", ["runs", "error", "first run", "of"], rows)


def provenance_table(results: StudyResults) -> TextTable:
    """Return what the stored runs say of their making."""
    rows = [[name, value, f"{count:,}"] for name, value, count in results.provenance]
    rows += [[f"input {file.name}", f"SHA-256 {file.sha256}", ""] for file in results.study.inputs.values()]
    return TextTable("Provenance", ["what", "value", "runs"], rows)
