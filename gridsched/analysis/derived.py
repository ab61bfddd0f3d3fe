"""Metrics that follow from stored rows; a new one needs no new run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from gridsched.analysis.bounds import study_bounds
from gridsched.metrics import BOUNDED, METRICS
from gridsched.metrics.table import FORMULA, Metric, value_of_row
from gridsched.spec.study import Study


def named_metrics(study: Study) -> set[str]:
    """Return the metrics that a study names: for its tables, its claims and its figures."""
    claimed = {name for each in study.claims for name in (each.metric, each.against_metric)}
    drawn = {name for each in study.figures for name in (each.metric, each.limit)}
    chosen = {each.variant.split()[1] for each in study.claims if each.variant}
    return {name for name in {*study.metrics, *claimed, *drawn, *chosen} if name}


def withheld_metrics(study: Study) -> set[str]:
    """Return the metrics that a study names and only its policies compute, if they are not run.

    Formulas that are computed from such metrics are among them.
    """
    if study.own is None or study.is_imported:
        return set()
    withheld = _needed(study) & study.own.computed_from_rows
    for each in study.formulas:  # one may name those before it
        if each.needs & withheld:
            withheld.add(each.metric.id)
    return withheld


def _needed(study: Study) -> set[str]:
    """Return the metrics that a study names, its formulas, and what these are computed from."""
    needed = named_metrics(study)
    for each in study.formulas:
        needed |= {each.metric.id, *each.needs}
    return needed


def with_derived(runs: pd.DataFrame, study: Study, inputs: Mapping[str, Path]) -> pd.DataFrame:
    """Return a study's rows with the metrics of rows that it names, and its formulas.

    Parameters
    ----------
    runs : DataFrame
        As `Store.rows` gives it.
    study : Study
        If it names a metric of bounds, all of them are added.
    inputs : mapping
        SHA-256 of a file -> where it lies.

    Returns
    -------
    DataFrame
        A further column for each of these metrics, empty where a run has not finished; without
        those of `withheld_metrics`.

    Raises
    ------
    InputError
        If an input file is missing, or a metric cannot be computed.
    """
    withheld = withheld_metrics(study)
    wanted = _metrics_of_rows(_needed(study) - withheld)
    formulas = [each.metric for each in study.formulas if each.metric.id not in withheld]
    if not wanted and not formulas:
        return runs
    finished = runs[runs["status"] == "finished"]
    stored = [metric.id for metric in METRICS.values() if metric.of in ("run", "plan")]
    rows = finished.reindex(columns=stored).to_dict("records")
    if any(metric.condition is BOUNDED for metric in wanted):
        bounds = study_bounds(study, inputs)
        rows = [
            {**row, "bounds": bounds[run_id]}
            for run_id, row in zip(finished["run_id"], rows, strict=True)
        ]
    columns: dict[str, pd.Series] = {}
    for metric in (*wanted, *formulas):  # a formula may name those before it
        values = [value_of_row(metric, row) for row in rows]
        for row, value in zip(rows, values, strict=True):
            row[metric.id] = value
        dtype = "float64" if metric.is_number else "object"
        columns[metric.id] = pd.Series(values, finished.index, dtype=dtype)
    return runs.assign(**columns)


def _metrics_of_rows(ids: set[str]) -> list[Metric]:
    """Return those of these metrics that follow from rows; if one is of bounds, all of these."""
    found = [
        metric
        for metric in METRICS.values()
        if metric.of == "row" and metric.condition is not FORMULA and metric.id in ids
    ]
    if not any(metric.condition is BOUNDED for metric in found):
        return found
    others = [metric for metric in found if metric.condition is not BOUNDED]
    return [*others, *(metric for metric in METRICS.values() if metric.condition is BOUNDED)]
