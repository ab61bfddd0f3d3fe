"""Checks of the keys of a study file about results: metrics, baseline, figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gridsched.errors import InputError, did_you_mean, which_instead
from gridsched.metrics import METRICS, known_metrics
from gridsched.metrics.group_metrics import COLUMNS
from gridsched.metrics.table import RESERVED
from gridsched.model.records import key_name
from gridsched.runs.claims_schema import DeclaredFigure
from gridsched.runs.figure_kinds import figure_kinds
from gridsched.runs.metric_formulas import Formula, declare, formula
from gridsched.runs.run_spec import OPTIMIZE
from gridsched.runs.study_axes import Axis, axis_values, workload_kinds
from gridsched.runs.study_document import KeyPath, StudyDocument
from gridsched.runs.study_schedulers import StudyScheduler


@dataclass(frozen=True)
class ResultKeys:
    """The keys of a study about its results, checked.

    Attributes
    ----------
    metrics : tuple of str
        The metrics that the report shows.
    baseline : str or None
    figures : tuple of DeclaredFigure
    where : dict
        Axis -> values of the runs that tables, figures and claims are of.
    formulas : tuple of Formula
        Its expressions.
    numbers : tuple of str
        All metrics that its runs have, or that follow from them.
    """

    metrics: tuple[str, ...]
    baseline: str | None
    figures: tuple[DeclaredFigure, ...]
    where: Mapping[str, tuple[Any, ...]]
    formulas: tuple[Formula, ...]
    numbers: tuple[str, ...]


def check_results(document: StudyDocument, axes: Sequence[Axis], schedulers: Sequence[StudyScheduler]) -> ResultKeys:
    """Return the keys of a study about its results.

    Raises
    ------
    InputError
        Naming the key at fault.
    """
    content = document.content
    numbers = [metric for metric in known_metrics(workload_kinds(document)) if metric.is_number]
    formulas = study_formulas(document, axes, [metric.id for metric in numbers])
    numbers += [each.metric for each in formulas]
    check = _Checks(document, [metric.id for metric in numbers], axes, schedulers)
    _check_groups(document, axes)
    for k, name in enumerate(content.metrics):
        check.metric(("metrics", k), name)
    if content.baseline is not None:
        check.label(("baseline",), content.baseline, check.labels)
    for k, figure in enumerate(content.figures):
        check.figure(("figures", k), figure)
    names = [figure.name for figure in content.figures]
    for k, name in enumerate(names):
        if name in names[:k]:
            document.refuse(("figures", k, "name"), f"is {name!r}, which another figure has.")
    return ResultKeys(
        content.metrics
        or tuple(
            metric.id for metric in numbers if metric.of == "run" and metric.condition.default and not metric.is_detail
        ),
        content.baseline,
        content.figures,
        axis_values(document, ("report", "where"), content.report.where, check.values_of),
        formulas,
        tuple(metric.id for metric in numbers),
    )


def _check_groups(document: StudyDocument, axes: Sequence[Axis]) -> None:
    """Refuse axes called as a column of the groups of jobs, if the study has any, and an axis of what groups them."""
    taken = ("group", *(column.key for column in COLUMNS))
    for name in [axis.name for axis in axes] if "group_by" in document.settings else []:
        if name == "group_by":
            document.refuse((name,), 'varies, which would repeat runs; one list is allowed, as in ["user", "size"].')
        if name in taken:
            document.refuse(("group", name), f"is a column of groups of jobs; not allowed: {', '.join(taken)}.")


def study_formulas(document: StudyDocument, axes: Sequence[Axis], known: Sequence[str]) -> tuple[Formula, ...]:
    """Return the metrics that a study gives as expressions; they are in the table of metrics then.

    Parameters
    ----------
    document : StudyDocument
    axes : sequence of Axis
    known : sequence of str
        Other metrics that it may name.

    Raises
    ------
    InputError
        Naming the expression at fault.
    """
    formulas: list[Formula] = []
    columns = {*RESERVED, *(axis.name for axis in axes)}
    for id, said in document.content.expressions.items():
        if id in columns:
            document.refuse(("expressions", id), "is a column of the results; choose another name.")
        names = [*known, *(each.metric.id for each in formulas)]
        try:
            formulas.append(
                formula(
                    id,
                    said.formula,
                    names,
                    unit=said.unit,
                    better=said.better,
                    meaning=said.meaning,
                    called=key_name(("expressions", id)),
                )
            )
        except InputError as error:
            raise InputError(f"{document.path}: {error}") from None
    declare(formulas)
    return tuple(formulas)


def check_planners(
    document: StudyDocument,
    axes: Sequence[Axis],
    schedulers: Sequence[StudyScheduler],
    runs: Callable[[None], Iterable[tuple[tuple[int, ...], Any]]],
) -> None:
    """Refuse a run of the driver ``optimize`` whose scheduler plans by no program.

    Parameters
    ----------
    document : StudyDocument
    axes : sequence of Axis
    schedulers : sequence of StudyScheduler
    runs : callable
        Yields the levels of the axes of all runs.
    """
    names = [axis.name for axis in axes]
    changes = {k: [change.get(("settings", "driver")) for change in axis.changes] for k, axis in enumerate(axes)}
    default = document.settings.get("driver")
    if OPTIMIZE not in (default, *(driver for each in changes.values() for driver in each)):
        return
    from gridsched.runs.optimization import is_planner, no_planner  # scipy is slow to load

    at = names.index("scheduler")
    others = {k for k, each in enumerate(schedulers) if not is_planner(each.id, each.parameters)}
    for levels, _ in runs(None) if others else ():
        drivers = [each[levels[k]] for k, each in changes.items() if each[levels[k]] is not None]
        if levels[at] in others and OPTIMIZE in (drivers or [default]):
            wrong = schedulers[levels[at]]
            document.refuse(wrong.path, f"cannot be planned: {no_planner(wrong.id)}.")


def no_metric(name: str, known: Sequence[str]) -> str:
    """Return what is wrong with a name that is none of the known metrics; empty if it is one."""
    if name in known:
        return ""
    metric = METRICS.get(name)
    if metric is not None and metric.is_number:
        return f"is {name!r}, which exists only with {metric.condition.words or 'comparisons of schedulers'}."
    return f"is {name!r}. {which_instead(name, known, 'docs/nomenclature.md', called='Metrics')}"


class _Checks:
    """Refuses what figures name and the study does not have."""

    def __init__(
        self, document: StudyDocument, metrics: list[str], axes: Sequence[Axis], schedulers: Sequence[StudyScheduler]
    ) -> None:
        self._document, self._metrics, self._schedulers = document, metrics, schedulers
        self.labels = [scheduler.label for scheduler in schedulers]
        self._families = [scheduler.family for scheduler in schedulers]
        self.values_of = {axis.name: axis.values for axis in axes}

    def metric(self, path: KeyPath, name: str | None) -> None:
        """Refuse what is not a metric of these runs; None names none."""
        if name is not None and (problem := no_metric(name, self._metrics)):
            self._document.refuse(path, problem)

    def label(self, path: KeyPath, label: str, legal: Iterable[str]) -> None:
        """Refuse what is none of some labels."""
        labels = list(dict.fromkeys(legal))
        if label not in labels:
            hint = did_you_mean(label, labels)
            self._document.refuse(path, f"is {label!r}. {hint}Schedulers: {', '.join(labels)}.")

    def figure(self, path: KeyPath, figure: DeclaredFigure) -> None:
        """Refuse a figure of no known kind, or of what the study does not have."""
        kinds = figure_kinds("declared")
        if figure.kind not in kinds:
            hint = did_you_mean(figure.kind, kinds)
            self._document.refuse((*path, "kind"), f"is {figure.kind!r}. {hint}Allowed: {', '.join(kinds)}.")
        kind = kinds[figure.kind]
        for key in kind.needs:
            if not getattr(figure, key):
                self._document.refuse((*path, key), f"is missing, which kind {figure.kind!r} needs.")
        self.metric((*path, "metric"), figure.metric or None)
        self.metric((*path, "limit"), figure.limit)
        is_parameter = any(figure.along in each.varied for each in self._schedulers)
        singles = self.labels if kind.is_of_variants or not is_parameter else []
        for k, family in enumerate(figure.schedulers):
            self.label((*path, "schedulers", k), family, [*self._families, *singles])
        axis_values(self._document, (*path, "where"), figure.where, self.values_of)
