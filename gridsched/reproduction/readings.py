"""Fit the reading of a paper on one part of its numbers, test it on the other.

A reading is one combination of the axes that represent what the paper leaves open, for instance the
rule by which hosts are selected and the distribution of speeds. Chosen by all of the paper's
numbers, the best of many readings flatters itself. So each is judged on one part (an environment),
and the one with the smallest error there is tested on the other part, which had no say in it.

The error is the mean absolute difference between the paper's number and ours, in the claims' unit.
Beside it is what a reading must beat to be worth anything: the error of predicting, for every
row, the mean of the paper's numbers in the fitted part.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gridsched.analysis import statistics
from gridsched.analysis.claim_values import flat
from gridsched.analysis.study_results import StudyResults, restricted
from gridsched.analysis.texts import (
    TextTable,
    axis_name,
    axis_text,
    axis_value,
    markdown_row,
    markdown_text,
    value_text,
)
from gridsched.errors import InputError, counted
from gridsched.runs.claims_schema import BEST_OTHER, Claim
from gridsched.runs.run_filter import full_name


@dataclass(frozen=True)
class Reading:
    """The errors of one reading for one column of the paper's table.

    Attributes
    ----------
    metric : str
        Metric of the claims that are compared.
    values : dict
        Axis -> value.
    errors : dict
        Part -> mean absolute error; nan where runs are missing.
    medians : dict
        Part -> median absolute error.
    constants : dict
        (fitted part, tested part) -> error of predicting the fitted part's mean.
    """

    metric: str
    values: dict[str, Any]
    errors: dict[Any, float]
    medians: dict[Any, float]
    constants: dict[tuple[Any, Any], float]


def fit_readings(results: StudyResults) -> list[Reading]:
    """Return every reading's errors, one after the other for each metric of the claims.

    Raises
    ------
    InputError
        If the study has no ``[readings]``, or its claims are no ``percent_more`` against
        ``best_other`` with a number and the split axis in `where`.
    """
    declared = results.study.document.content.readings
    if declared is None:
        raise InputError(f"The study {results.study.name!r} has no [readings] to fit.")
    names = [axis.name for axis in results.study.axes]
    axes = [full_name(name, names) for name in declared.axes]
    split = full_name(declared.split, names)
    readings = []
    for metric in dict.fromkeys(claim.ours.metric for claim in results.claims):
        claims = [claim for claim in results.claims if claim.ours.metric == metric]
        numbers = _paper_numbers(claims, names, split)
        constants = _constants(numbers, split)
        choices = [_variants(results, claims[0]) if axis == "scheduler" else results.values_of(axis) for axis in axes]
        for combination in itertools.product(*choices):
            values = dict(zip(axes, combination, strict=True))
            errors = _errors(results, metric, values, numbers, claims[0])
            parts = dict(iter(errors.groupby(split, sort=False)["error"]))
            readings.append(
                Reading(
                    metric,
                    values,
                    {part: float(group.mean(skipna=False)) for part, group in parts.items()},
                    {part: float(group.median(skipna=False)) for part, group in parts.items()},
                    constants,
                )
            )
    return readings


def _paper_numbers(claims: Sequence[Claim], names: list[str], split: str) -> pd.DataFrame:
    rows = []
    for claim in claims:
        where = {full_name(name, names): value for name, value in flat(claim.ours.where).items()}
        is_fit = claim.ours.name == "percent_more" and claim.ours.schedulers["against"] == BEST_OTHER
        if not is_fit or claim.paper is None or split not in where:
            raise InputError(
                f"Claim {claim.id!r}: readings are fitted to claims with statistic "
                f"'percent_more', against 'best_other', a number, and {split!r} in where."
            )
        rows.append({**where, "paper": claim.paper})
    return pd.DataFrame(rows)


def _constants(numbers: pd.DataFrame, split: str) -> dict[tuple[Any, Any], float]:
    parts = {part: group.to_numpy() for part, group in numbers.groupby(split, sort=False)["paper"]}
    return {
        (fitted, tested): float(np.abs(parts[tested] - parts[fitted].mean()).mean())
        for fitted, tested in itertools.product(parts, repeat=2)
    }


def _variants(results: StudyResults, claim: Claim) -> list[str]:
    """Return the labels that are variants of the claims' scheduler: same id, other parameters."""
    ids = {each.label: each.id for each in results.study.schedulers}
    return [label for label, id in ids.items() if id == ids.get(claim.ours.schedulers["scheduler"])]


def _errors(
    results: StudyResults, metric: str, values: dict[str, Any], numbers: pd.DataFrame, claim: Claim
) -> pd.DataFrame:
    """Return the paper's numbers with the absolute error of one reading."""
    scheduler: str = values.get("scheduler", claim.ours.schedulers["scheduler"])
    others = [label for label in _variants(results, claim) if label != scheduler]
    frame = restricted(results.finished, {axis: (value,) for axis, value in values.items() if axis != "scheduler"})
    frame = frame[~frame["scheduler"].isin(others)]
    cells = [name for name in numbers if name != "paper"]
    pairs = statistics.paired_differences(frame, cells, metric, scheduler)
    best = statistics.best_other(frame, cells, metric, scheduler)
    chosen = pairs.merge(best, on=[*cells, "scheduler"])
    ours = statistics.group_intervals(chosen, cells, "difference_percent")[[*cells, "mean"]]
    both = numbers.merge(ours, on=cells, how="left")
    return both.assign(error=(both["mean"] - both["paper"]).abs())


def best_reading(readings: Sequence[Reading], part: Any) -> Reading:
    """Return the reading with the smallest error on a part; of equals the first.

    Raises
    ------
    InputError
        If no reading has all the runs that its error needs.
    """
    known = [each for each in readings if not math.isnan(each.errors[part])]
    if not known:
        raise InputError(f"No reading has finished runs for all numbers of {part}.")
    return min(known, key=lambda each: each.errors[part])


def readings_table(results: StudyResults, readings: Sequence[Reading]) -> list[TextTable]:
    """Return for each metric the fits both ways; then the errors of every reading."""
    by_metric: dict[str, list[Reading]] = {}
    for reading in readings:
        by_metric.setdefault(reading.metric, []).append(reading)
    fits = TextTable(
        "Fitted on one part, tested on the other",
        ["column", "fitted on", "reading", "error there", "tested on", "error", "constant's error", "rank"],
        [row for metric, group in by_metric.items() for row in _fits(metric, group)],
        note="Mean absolute error in points of percent. Constant: predict the mean of the paper's "
        "numbers of the fitted part. Rank: of the chosen reading among all on the tested part.",
    )
    tables = [fits]
    for metric, group in by_metric.items():
        parts = list(group[0].errors)
        rows = [
            [
                *(axis_value(axis, value) for axis, value in each.values.items()),
                *(f"{each.errors[part]:.1f}" for part in parts),
                *(f"{each.medians[part]:.1f}" for part in parts),
            ]
            for each in group
        ]
        header = [
            *(axis_name(axis) for axis in group[0].values),
            *(f"{value_text(part)}: mean error" for part in parts),
            *(f"{value_text(part)}: median error" for part in parts),
        ]
        title = f"All {len(group)} readings: {metric}"
        note = f"{counted(results.study.replicates, 'replicate')}; absolute errors in points of percent."
        tables.append(TextTable(title, header, rows, len(group[0].values), note))
    return tables


def _fits(metric: str, group: list[Reading]) -> list[list[str]]:
    rows = []
    for fitted, tested in itertools.permutations(group[0].errors, 2):
        chosen = best_reading(group, fitted)
        error = chosen.errors[tested]
        known = [each.errors[tested] for each in group if not math.isnan(each.errors[tested])]
        rank = 1 + sum(each < error for each in known)
        rows.append(
            [
                metric,
                value_text(fitted),
                axis_text(chosen.values),
                f"{chosen.errors[fitted]:.1f}",
                value_text(tested),
                f"{error:.1f}",
                f"{chosen.constants[fitted, tested]:.1f}",
                f"{rank} of {len(known)}",
            ]
        )
    return rows


def readings_frame(readings: Sequence[Reading]) -> pd.DataFrame:
    """Return the readings as a data frame: one row for each reading, metric and part."""
    return pd.DataFrame(
        [
            {
                "metric": each.metric,
                **each.values,
                "part": part,
                "mean_absolute_error": error,
                "median_absolute_error": each.medians[part],
            }
            for each in readings
            for part, error in each.errors.items()
        ]
    )


def readings_markdown(results: StudyResults, readings: Sequence[Reading]) -> str:
    """Return the tables of the readings as Markdown."""
    lines = [f"# {results.study.name}: readings fitted and tested", ""]
    for table in readings_table(results, readings):
        lines += [f"## {markdown_text(table.title)}", "", markdown_text(table.note), ""]
        lines += [markdown_row(table.header), "|" + "---|" * len(table.header)]
        lines += [markdown_row(row) for row in table.rows]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"
