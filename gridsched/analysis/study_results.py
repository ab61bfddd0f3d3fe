"""The stored runs of one study, as report and claims read them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from gridsched.analysis import statistics
from gridsched.analysis.bounds import study_bounds
from gridsched.campaign.row_table import GROUP, GROUPS, read_groups
from gridsched.campaign.store import Store
from gridsched.errors import InputError, counted
from gridsched.metrics import BOUNDED, BOUNDED_CARBON, METRICS
from gridsched.metrics.table import FORMULA, Metric, value_of_row
from gridsched.runs.claims_schema import Claim
from gridsched.runs.result_frames import arrow_stream
from gridsched.runs.run_filter import run_filter
from gridsched.runs.study import Study

#: Two metrics are drawn as one if all their values agree this well.
_SAME = 1e-6


@dataclass(frozen=True)
class StudyResults:
    """A study and one row for each of its runs, stored or missing.

    Attributes
    ----------
    study : Study
    runs : DataFrame
        As `Store.rows` gives it: ``run_id``, ``status``, ``error``, the axes, the metrics; and
        the derived metrics that the study names.
    damage : list of str
        What the store found damaged.
    place : str
        The store's folder, for messages.
    withheld : str
        What is left out because the study's Python is not run, in words.
    groups : DataFrame
        A row for each finished run and each group of its jobs, where the study has ``group_by``, else none: ``run_id``,
        the axes, ``group_by``, ``group``, and what `gridsched.metrics.group_metrics.group_rows` computes.
    """

    study: Study
    runs: pd.DataFrame
    damage: list[str]
    place: str
    withheld: str = ""
    groups: pd.DataFrame = field(default_factory=pd.DataFrame)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return `runs` as a stream of Arrow: ``polars.from_arrow(results)``, ``pyarrow.table(results)``."""
        return arrow_stream(self.runs, requested_schema)

    @property
    def cell_axes(self) -> list[str]:
        """The axes besides scheduler and replicate."""
        return [axis.name for axis in self.study.axes if axis.name != "scheduler"]

    @property
    def varying_axes(self) -> list[str]:
        """Those of `cell_axes` of which the report shows more than one value."""
        return [name for name in self.cell_axes if len(self.shown_values(name)) > 1]

    @property
    def labels(self) -> list[str]:
        """The schedulers' labels in the study's order."""
        return [scheduler.label for scheduler in self.study.schedulers]

    @property
    def varied_parameters(self) -> list[str]:
        """The schedulers' parameters that vary within a family of labels."""
        return list(dict.fromkeys(n for each in self.study.schedulers for n in each.varied))

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """The study's claims; none where its file of claims is not trusted."""
        return _claims(self.study)

    @property
    def baseline(self) -> str:
        """The label that the others are compared with; the first one where the study names none."""
        return self.study.baseline or self.labels[0]

    @cached_property
    def finished(self) -> pd.DataFrame:
        """The runs that have metrics."""
        return self.runs[self.runs["status"] == "finished"]

    @cached_property
    def shown(self) -> pd.DataFrame:
        """Those of `finished` that the study's report is of; its tables and figures show them."""
        return restricted(self.finished, self.study.report_where)

    @cached_property
    def failed(self) -> pd.DataFrame:
        """The runs that ended with an error."""
        return self.runs[self.runs["status"] == "failed"]

    @property
    def metrics(self) -> list[str]:
        """The study's metrics of which the store has a value."""
        return [name for name in self.study.metrics if self._has_values(name)]

    def _has_values(self, metric: str) -> bool:
        # The reference driver has no plugin: its rows hold None where a plugin is compared.
        return metric in self.runs and bool(self.runs[metric].notna().any())

    @cached_property
    def constant_metrics(self) -> dict[str, float]:
        """The metrics that have one and the same value in all runs, of which there are several."""
        several = self.shown[self.metrics] if len(self.shown) > 1 else self.shown[[]]
        return {name: float(values.iloc[0]) for name, values in several.items() if (values == values.iloc[0]).all()}

    @cached_property
    def distinct_metrics(self) -> dict[str, list[str]]:
        """The metrics that vary from run to run, each with those that agree with it to 1e-6."""
        kept: dict[str, list[str]] = {}
        for name in (each for each in self.metrics if each not in self.constant_metrics):
            values = self.shown[name]
            for other in kept:
                reference = self.shown[other]
                if len(values) and ((values - reference).abs() <= _SAME * reference.abs()).all():
                    kept[other].append(name)
                    break
            else:
                kept[name] = []
        return kept

    @cached_property
    def provenance(self) -> list[tuple[str, str, int]]:
        """What the stored runs say of their making: (what, value, number of runs)."""
        counts: dict[tuple[str, str], int] = {}
        for text, count in self.runs["provenance"].dropna().value_counts().items():
            for name, value in json.loads(text).items():
                if not isinstance(value, dict | list):
                    counts[name, str(value)] = counts.get((name, str(value)), 0) + int(count)
        return [(name, value, count) for (name, value), count in sorted(counts.items())]

    def values_of(self, axis: str) -> tuple[Any, ...]:
        """Return the values of an axis in the study's order."""
        return next(each.values for each in self.study.axes if each.name == axis)

    def shown_values(self, axis: str) -> tuple[Any, ...]:
        """Return those values of an axis that the study's report is of."""
        return self.study.report_where.get(axis, self.values_of(axis))

    def matching(self, text: str) -> pd.DataFrame:
        """Return the runs that an expression as for ``--only`` means."""
        if text not in self._masks:  # claims share their explanations' expressions
            is_meant, axes = run_filter(text, self.study.axis_names), self.runs[list(self.study.axis_names)]
            self._masks[text] = [is_meant(run) for run in axes.to_dict("records")]
        return self.runs[self._masks[text]]

    @cached_property
    def memo(self) -> dict[Any, pd.Series]:
        """What `claim_values.replicate_values` has found; claims and figures ask again."""
        return {}

    @cached_property
    def _masks(self) -> dict[str, list[bool]]:
        return {}

    @cached_property
    def plain(self) -> pd.DataFrame:
        """The runs with axes, status and metrics alone; axes are categories, quick to choose by."""
        metrics = dict.fromkeys([*self.metrics, *(claim.ours.metric for claim in self.claims)])
        names = ["run_id", "status", *self.study.axis_names, *(name for name in metrics if name in self.runs)]
        return self.runs[names].astype({axis.name: "category" for axis in self.study.axes})

    @cached_property
    def _differences(self) -> dict[tuple[str, str], tuple[pd.DataFrame, pd.DataFrame]]:
        return {}

    def differences(self, metric: str, scheduler: str) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return all paired differences from a scheduler, and the best other one of each cell."""
        key = metric, scheduler
        if key not in self._differences:
            finished = self.plain[self.plain["status"] == "finished"]
            cells = self.cell_axes
            self._differences[key] = (
                statistics.paired_differences(finished, cells, metric, scheduler),
                statistics.best_other(finished, cells, metric, scheduler),
            )
        return self._differences[key]


def restricted(frame: pd.DataFrame, where: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Return the rows whose axes have one of the given values.

    Parameters
    ----------
    frame : DataFrame
    where : mapping
        Axis -> values.
    """
    for axis, values in where.items():
        frame = frame[frame[axis].isin(list(values))]
    return frame


def read_results(path: str | Store, study: Study | None = None) -> StudyResults:
    """Read a study's runs from a store.

    Parameters
    ----------
    path : str or Store
        The store, or its folder.
    study : Study, optional
        Default: the one that was run last.

    Raises
    ------
    InputError
        If there is no store, no such study in it, or none of its runs.
    """
    store = path if isinstance(path, Store) else Store.open(path)
    chosen = store.study() if study is None else study
    runs = store.rows(chosen)
    damage = [*store.damaged_studies, *store.damage]
    n_missing = int((runs["status"] == "missing").sum())
    if n_missing and (aside := store.set_aside()):
        damage.append(f"{aside}; {counted(n_missing, 'run of the study is', 'runs of the study are')} missing")
    if n_missing == len(runs):
        damaged = f" Damaged: {'; '.join(damage[:3])}." if damage else ""
        raise InputError(
            f"{store.root}: holds no run of the study {chosen.name!r} as it is now; "
            f"'gridsched study run' fills it.{damaged}"
        )
    groups = _groups(runs, list(chosen.axis_names), damage)
    derived = with_derived(runs.drop(columns=GROUPS, errors="ignore"), chosen, store.inputs())
    return StudyResults(chosen, derived, damage, str(store.root), _withheld(chosen), groups)


def _groups(runs: pd.DataFrame, axes: list[str], damage: list[str]) -> pd.DataFrame:
    """Return a row for each run and group of its jobs; `damage` receives what is no such row."""
    rows: list[dict[str, Any]] = []
    if GROUPS in runs:
        stored = runs[runs[GROUPS].notna()]
        for run, text in zip(stored[["run_id", *axes]].to_dict("records"), stored[GROUPS], strict=True):
            try:
                rows += [{**run, **dict.fromkeys(GROUP), **group} for group in read_groups(text)]
            except InputError as error:
                damage.append(f"run {run['run_id']}: {error} They are left out.")
    return pd.DataFrame(rows)


def _withheld(study: Study) -> str:
    """Return in words what only the study's own Python computes, draws or claims, if it is not run."""
    metrics = sorted(withheld_metrics(study))
    parts = [f"metric {name}" for name in metrics]
    if study.own is not None and not study.is_imported and study.own.may_draw:
        parts.append("figures of its own")
    names = study.document.content.policies if parts else ()
    if not study.has_trusted_claims:
        parts.append("its claims")
        names = (*names, study.document.content.claims)
    if not parts:
        return ""
    files = ", ".join(study.inputs[name].name for name in names)
    return f"{', '.join(parts)}: left out, because {files} of the store is not run unasked"


def named_metrics(study: Study) -> set[str]:
    """Return the metrics that a study names: for its tables, its claims and its figures."""
    claimed = {name for each in _claims(study) for name in each.ours.metrics}
    plotted = {name for each in study.figures for name in (each.metric, each.limit)}
    return {name for name in {*study.metrics, *claimed, *plotted} if name}


def _claims(study: Study) -> tuple[Claim, ...]:
    """Return a study's claims; none where its file of claims is not trusted."""
    return study.claims if study.has_trusted_claims else ()


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
        SHA-256 of a file -> its path.

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
    if any(metric.condition in (BOUNDED, BOUNDED_CARBON) for metric in wanted):
        bounds = study_bounds(study, inputs)
        rows = [{**row, "bounds": bounds[run_id]} for run_id, row in zip(finished["run_id"], rows, strict=True)]
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
    of_rows = [each for each in METRICS.values() if each.of == "row" and each.condition is not FORMULA]
    has_bounds = any(each.condition is BOUNDED and each.id in ids for each in of_rows)
    metrics = [each for each in of_rows if each.id in ids or (has_bounds and each.condition is BOUNDED)]
    return sorted(metrics, key=lambda each: each.condition is BOUNDED)
