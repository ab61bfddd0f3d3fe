"""Metrics that follow from stored rows; a new one needs no new run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from gridsched.analysis.bounds import study_bounds
from gridsched.metrics import BOUNDED, METRICS
from gridsched.metrics.table import value_of_row
from gridsched.spec.study import Study


def named_metrics(study: Study) -> set[str]:
    """Return the metrics that a study names: for its tables, its claims and its figures."""
    claimed = {name for each in study.claims for name in (each.metric, each.against_metric)}
    drawn = {name for each in study.figures for name in (each.metric, each.limit)}
    chosen = {each.variant.split()[1] for each in study.claims if each.variant}
    return {name for name in {*study.metrics, *claimed, *drawn, *chosen} if name}


def withheld_metrics(study: Study) -> set[str]:
    """Return the metrics that a study names and only its policies compute, if they are not run."""
    if study.own is None or study.is_imported:
        return set()
    return named_metrics(study) & study.own.computed_from_rows


def with_derived(runs: pd.DataFrame, study: Study, inputs: Mapping[str, Path]) -> pd.DataFrame:
    """Return a study's rows with the metrics of rows that it names.

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
    named = named_metrics(study)
    named -= withheld_metrics(study)
    wanted = [metric for metric in METRICS.values() if metric.of == "row" and metric.id in named]
    if any(metric.condition is BOUNDED for metric in wanted):
        others = [metric for metric in wanted if metric.condition is not BOUNDED]
        wanted = [*others, *(m for m in METRICS.values() if m.condition is BOUNDED)]
    if not wanted:
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
    columns = {
        metric.id: pd.Series(
            [value_of_row(metric, row) for row in rows], finished.index,
            dtype="float64" if metric.is_number else "object",
        )
        for metric in wanted
    }  # fmt: skip
    return runs.assign(**columns)
