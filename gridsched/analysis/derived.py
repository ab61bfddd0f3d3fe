"""Metrics that follow from stored rows; a new one needs no new run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gridsched.analysis.bounds import BOUND_METRICS, bound_fields, study_bounds

if TYPE_CHECKING:
    import pandas as pd

    from gridsched.spec.study import Study

#: Names that a study may put among its metrics beside those of `metric_names`.
DERIVED_METRICS = ("energy_delay_js", *BOUND_METRICS)
_NEEDED = ["makespan_s", "energy_j", "tasks", "tasks_finished"]


def with_derived(runs: pd.DataFrame, study: Study, inputs: Mapping[str, Path]) -> pd.DataFrame:
    """Return a study's rows with the derived metrics that it names.

    Parameters
    ----------
    runs : DataFrame
        As `Store.rows` gives it.
    study : Study
        If it names a metric of bounds, all fields of `bound_fields` are added.
    inputs : mapping
        SHA-256 of a file -> where it lies.

    Returns
    -------
    DataFrame
        Further columns: ``energy_delay_js``, energy times makespan [J s], and the bounds.

    Raises
    ------
    InputError
        If an input file is missing.
    """
    import pandas as pd

    named = {*study.metrics, *(claim.metric for claim in study.claims)}
    columns: dict[str, pd.Series] = {}
    known = runs.reindex(columns=_NEEDED)
    if "energy_delay_js" in named:
        columns["energy_delay_js"] = known["energy_j"] * known["makespan_s"]
    if named.intersection(BOUND_METRICS):
        bounds = study_bounds(study, inputs)
        rows = zip(runs["run_id"], known.to_dict("records"), strict=True)
        fields = pd.DataFrame(
            [bound_fields(bounds[run_id], row) for run_id, row in rows], index=runs.index
        )
        numbers = fields[list(BOUND_METRICS)].astype("float64")
        columns.update({name: numbers[name] for name in numbers})
        columns["energy_bound_counts_idle"] = fields["energy_bound_counts_idle"]
    return runs.assign(**columns)
