"""Checks of what a study file says of results: metrics, baseline, claims, figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gridsched.errors import InputError, did_you_mean
from gridsched.metrics import METRICS, known_metrics
from gridsched.metrics.table import RESERVED
from gridsched.model.records import key_name, shown_value
from gridsched.runs.claims_schema import Claim, DeclaredFigure
from gridsched.runs.figure_kinds import figure_kinds
from gridsched.runs.formulas import Formula, declare, formula
from gridsched.runs.run_spec import OPTIMIZE
from gridsched.runs.study_axes import Axis, axis_values, workload_kinds
from gridsched.runs.study_document import KeyPath, StudyDocument
from gridsched.runs.study_schedulers import StudyScheduler


@dataclass(frozen=True)
class ResultKeys:
    """What a study says of its results, checked.

    Attributes
    ----------
    metrics : tuple of str
        The metrics that the report shows.
    baseline : str or None
    claims : tuple of Claim
    figures : tuple of DeclaredFigure
    where : dict
        Axis -> values of the runs that tables, figures and claims are of.
    formulas : tuple of Formula
        Its expressions.
    """

    metrics: tuple[str, ...]
    baseline: str | None
    claims: tuple[Claim, ...]
    figures: tuple[DeclaredFigure, ...]
    where: Mapping[str, tuple[Any, ...]]
    formulas: tuple[Formula, ...]


def check_results(document: StudyDocument, axes: Sequence[Axis], schedulers: Sequence[StudyScheduler]) -> ResultKeys:
    """Return what a study says of results.

    Raises
    ------
    InputError
        Naming the key at fault.
    """
    content = document.content
    numbers = [metric for metric in known_metrics(workload_kinds(document)) if metric.is_number]
    formulas = study_formulas(document, axes, [metric.id for metric in numbers])
    numbers += [each.metric for each in formulas]
    known = tuple(metric.id for metric in numbers)
    for k, name in enumerate(content.metrics):
        _check_metric(document, ("metrics", k), name, known)
    labels = [scheduler.label for scheduler in schedulers]
    families = list(dict.fromkeys(scheduler.family for scheduler in schedulers))
    if content.baseline is not None:
        _check_label(document, ("baseline",), content.baseline, labels)
    values_of = {axis.name: axis.values for axis in axes}
    claims = study_claims(document)
    for k, claim in claims:
        _check_claim(document, ("claims", k), claim, known, [*labels, *families], values_of)
    for k, figure in enumerate(content.figures):
        parameters = {name for each in schedulers for name in each.varied}
        singles = [] if figure.along in parameters else labels
        _check_figure(document, ("figures", k), figure, known, families, labels, singles)
        axis_values(document, ("figures", k, "where"), figure.where, values_of)
    names = [figure.name for figure in content.figures]
    for k, name in enumerate(names):
        if name in names[:k]:
            document.refuse(("figures", k, "name"), f"is {name!r}, which another figure has.")
    return ResultKeys(
        content.metrics
        or tuple(
            metric.id for metric in numbers if metric.of == "run" and metric.condition.usual and not metric.is_detail
        ),
        content.baseline,
        tuple(claim for _, claim in claims),
        content.figures,
        axis_values(document, ("report", "where"), content.report.where, values_of),
        formulas,
    )


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
    """Refuse a run of the driver ``optimize`` whose scheduler plans by no programme.

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
    usual = document.settings.get("driver")
    if OPTIMIZE not in (usual, *(driver for each in changes.values() for driver in each)):
        return
    from gridsched.runs.optimization import is_planner, no_planner  # scipy is slow to load

    at = names.index("scheduler")
    others = {k for k, each in enumerate(schedulers) if not is_planner(each.id, each.parameters)}
    for levels, _ in runs(None) if others else ():
        drivers = [each[levels[k]] for k, each in changes.items() if each[levels[k]] is not None]
        if levels[at] in others and OPTIMIZE in (drivers or [usual]):
            wrong = schedulers[levels[at]]
            document.refuse(wrong.path, f"cannot be planned: {no_planner(wrong.id)}.")


def _check_claim(
    document: StudyDocument,
    path: KeyPath,
    claim: Claim,
    known: tuple[str, ...],
    labels: list[str],
    values_of: Mapping[str, tuple[Any, ...]],
) -> None:
    _check_metric(document, (*path, "metric"), claim.metric, known)
    if claim.against_metric is not None:
        _check_metric(document, (*path, "against_metric"), claim.against_metric, known)
    if claim.variant:
        _check_metric(document, (*path, "variant"), claim.variant.split()[1], known)
    if claim.scheduler is not None:
        _check_label(document, (*path, "scheduler"), claim.scheduler, labels)
    axis_values(document, (*path, "where"), claim.where, values_of)
    axis_values(document, (*path, "against_where"), claim.against_where, values_of)


def _check_figure(
    document: StudyDocument,
    path: KeyPath,
    figure: DeclaredFigure,
    known: tuple[str, ...],
    families: list[str],
    labels: list[str],
    singles: list[str],
) -> None:
    kinds = figure_kinds("declared")
    kind = kinds.get(figure.kind)
    if kind is None:
        hint = did_you_mean(figure.kind, kinds)
        document.refuse((*path, "kind"), f"is {figure.kind!r}. {hint}Legal: {', '.join(kinds)}.")
    for key in kind.needs:
        if not getattr(figure, key):
            document.refuse((*path, key), f"is missing, which kind {figure.kind!r} needs.")
    if figure.metric:
        _check_metric(document, (*path, "metric"), figure.metric, known)
    if figure.limit is not None:
        _check_metric(document, (*path, "limit"), figure.limit, known)
    for k, family in enumerate(figure.schedulers):
        legal = [*families, *(labels if kind.is_of_variants else singles)]
        _check_label(document, (*path, "schedulers", k), family, legal)


def _check_metric(document: StudyDocument, path: KeyPath, name: str, known: tuple[str, ...]) -> None:
    metric = METRICS.get(name)
    if metric is not None and metric.is_number and name not in known:
        words = metric.condition.words or "comparisons of schedulers"
        document.refuse(path, f"is {name!r}, which exists only with {words}.")
    if name not in known:
        document.refuse(path, f"is {name!r}. {did_you_mean(name, known)}Metrics: {', '.join(known)}.")


def _check_label(document: StudyDocument, path: KeyPath, label: str, labels: list[str]) -> None:
    if label not in labels:
        legal = list(dict.fromkeys(labels))
        document.refuse(path, f"is {label!r}. {did_you_mean(label, legal)}Schedulers: {', '.join(legal)}.")


#: Fields of a claim that a column of its rows can hold; every other column is an axis.
_FIELDS = (
    "kind",
    "paper",
    "tolerance",
    "tolerance_set",
    "tolerance_ground",
    "text",
    "scheduler",
    "against",
    "levels",
    "hours",
    "against_hours",
    "metric",
    "against_where",
)


def study_claims(document: StudyDocument) -> list[tuple[int, Claim]]:
    """Return each claim with the index of the table in the file that it comes from.

    A table with `columns` and `rows` is one claim a row, called ``ID-1``, ``ID-2``, ...; columns
    are fields of a claim or axes. A text of `explanations` belongs to all claims that it lists.
    """
    rows = [(k, each) for k, claim in enumerate(document.content.claims) for each in _rows_of(document, k, claim)]
    places: dict[str, int] = {}
    for place, (k, claim) in enumerate(rows):
        if claim.id in places:
            document.refuse(("claims", k, "id"), f"is {claim.id!r}, which another claim has.")
        places[claim.id] = place
        if claim.kind == "number" and claim.paper is None:
            document.refuse(("claims", k, "kind"), f"is 'number', and claim {claim.id!r} has none in 'paper'.")
    for e, explanation in enumerate(document.content.explanations):
        for c, id in enumerate(explanation.claims):
            path = ("explanations", e, "claims", c)
            if id not in places:
                document.refuse(path, f"is {id!r}; no claim is called so.")
            k, claim = rows[places[id]]
            if claim.explanation:
                document.refuse(path, f"is {id!r}, which has an explanation already.")
            update = {"explanation": explanation.text, "run_ids": explanation.run_ids}
            rows[places[id]] = (k, claim.model_copy(update=update))
    return rows


def _rows_of(document: StudyDocument, k: int, claim: Claim) -> Iterator[Claim]:
    if not claim.rows and not claim.columns:
        yield claim
        return
    for r, row in enumerate(claim.rows):
        yield _row_of(document, ("claims", k, "rows", r), claim, f"{claim.id}-{r + 1}", row)


def _row_of(document: StudyDocument, path: KeyPath, claim: Claim, id: str, row: tuple[Any, ...]) -> Claim:
    if len(row) != len(claim.columns):
        document.refuse(path, f"has {len(row)} values for {len(claim.columns)} columns: {shown_value(row)}.")
    values: dict[str, Any] = dict(zip(claim.columns, row, strict=True))
    update = {name: values.pop(name) for name in _FIELDS if name in values}
    content = claim.model_dump(exclude={"rows", "columns"}) | update
    content |= {"id": id, "where": {**claim.where, **values}}
    return document.check(Claim, content, lambda _: path)
