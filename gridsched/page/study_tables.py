"""The tables of a study: means with intervals, paired differences, what was run, what failed."""

from __future__ import annotations

import pandas as pd

from gridsched.analysis import statistics
from gridsched.analysis.study_results import StudyResults
from gridsched.analysis.texts import (
    TextTable,
    axis_name,
    number_text,
    value_text,
)
from gridsched.metrics import BOUNDED, METRICS
from gridsched.spec.study_schedulers import scheduler_texts


def axes_table(results: StudyResults) -> TextTable:
    """Return the axes of a study with their values."""
    rows = []
    for axis in results.study.axes:
        is_scheduler = axis.name == "scheduler"
        shown = scheduler_texts(results.study.schedulers) if is_scheduler else axis.values
        rows.append(
            [axis_name(axis.name), str(len(axis.values)), ", ".join(map(value_text, shown))]
        )
    rows.append(["replicate", str(results.study.replicates), f"seed {results.study.seed}"])
    return TextTable("Axes", ["axis", "values", ""], rows)


def mean_frame(results: StudyResults, metric: str) -> pd.DataFrame:
    """Return mean and interval of a metric for each cell and scheduler.

    Beside those of ``energy_j`` stands ``energy_source``.
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
    pairs = statistics.paired_differences(
        results.shown, results.cell_axes, metric, results.baseline
    )
    group = [*results.cell_axes, "scheduler"]
    return statistics.group_intervals(pairs, group, "difference_percent")


def mean_table(results: StudyResults, metric: str, frame: pd.DataFrame) -> TextTable:
    """Return `mean_frame` with a column for each scheduler; the least mean of a row is marked."""
    note = f"Mean ± half-width of the 95 % interval of {results.study.replicates} replicates."
    entry = METRICS[metric]
    if "energy_source" in frame:
        note += f" Energy by {_sources(frame['energy_source'])}."
    if entry.condition is BOUNDED:
        note += f" {_bound_note(results, metric)}"
    if entry.is_share:
        frame = frame.assign(**{name: 100 * frame[name] for name in ("mean", "low", "high")})
    return _pivoted(results, frame, results.labels, entry.title, note, signed=False)


def _bound_note(results: StudyResults, metric: str) -> str:
    """Return what the bound is, and whether that of energy counts idle power."""
    text = "The bound is the least possible for this bag on this platform, with divisible tasks"
    if not metric.startswith("energy"):
        return f"{text}."
    counted = set(results.runs["energy_bound_counts_idle"])
    idle = {
        (True,): "it counts the idle power of every host to the end",
        (False,): "it does not count idle power, as some of the schedulers may switch hosts off",
    }.get(tuple(counted), "it counts idle power where no scheduler may switch hosts off")
    return f"{text}; {idle}."


def difference_table(results: StudyResults, metric: str, frame: pd.DataFrame) -> TextTable:
    """Return `difference_frame` with a column for each scheduler but the baseline."""
    labels = [label for label in results.labels if label != results.baseline]
    title = f"{METRICS[metric].name}: how much more than {results.baseline} [%]"
    note = (
        f"100 (other - {results.baseline}) / {results.baseline}, paired over replicates; mean ± "
        f"half-width of the 95 % interval. Positive: {results.baseline} needs less."
    )
    return _pivoted(results, frame, labels, title, note, signed=True)


def _pivoted(
    results: StudyResults,
    frame: pd.DataFrame,
    labels: list[str],
    title: str,
    note: str,
    *,
    signed: bool,
) -> TextTable:
    axes, parameters = results.varying_axes, results.varied_parameters
    variants = {each.label: each for each in results.study.schedulers}
    families = list(dict.fromkeys(variants[label].family for label in labels))
    texts: dict[tuple, dict[str, str]] = {}
    keys = list(zip(*(frame[axis] for axis in axes), strict=True)) or [()] * len(frame)
    columns = (frame[name].tolist() for name in ("scheduler", "mean", "low", "high", "count"))
    for key, label, mean, low, high, count in zip(keys, *columns, strict=True):
        text = number_text(mean, (high - low) / 2, signed=signed)
        if count < results.study.replicates:
            text += f" ({count})"
        varied = (variants[label].varied.get(name, "-") for name in parameters)
        texts.setdefault((*key, *varied), {})[variants[label].family] = text
    rows = [
        [*map(value_text, key), *(cells.get(family, "-") for family in families)]
        for key, cells in texts.items()
    ]
    if (frame["count"] < results.study.replicates).any():
        note += " In brackets: the number of replicates, where some are missing."
    header = [*map(axis_name, (*axes, *parameters)), *families]
    return TextTable(title, header, rows, len(axes) + len(parameters), note)


def failure_table(results: StudyResults) -> TextTable:
    """Return the failed runs by error text, the commonest first, with an example of each."""
    rows = []
    several = [name for name in results.cell_axes if len(results.values_of(name)) > 1]
    for error, group in sorted(
        results.failed.groupby("error", dropna=False), key=lambda each: -len(each[1])
    ):
        first = group.iloc[0]
        place = ", ".join(
            f"{axis_name(name)} {value_text(first[name])}"
            for name in (*several, "scheduler", "replicate")
        )
        rows.append([str(len(group)), str(error), str(first["run_id"]), place])
    return TextTable("Failed runs", ["runs", "error", "first run", "of"], rows)


def provenance_table(results: StudyResults) -> TextTable:
    """Return what the stored runs say of their making."""
    rows = [[name, value, f"{count:,}"] for name, value, count in results.provenance]
    for file in results.study.inputs.values():
        rows.append([f"input {file.name}", f"SHA-256 {file.sha256}", ""])
    return TextTable("Provenance", ["what", "value", "runs"], rows)
