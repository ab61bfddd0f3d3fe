"""The claims of a study file: tables of claims taken apart, explanations put to their claims."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gridsched.model.records import shown_value
from gridsched.spec.claims_schema import Claim
from gridsched.spec.study_document import KeyPath, StudyDocument

#: Fields of a claim that a column of its rows can hold; every other column is an axis.
_FIELDS = (
    "kind", "paper", "tolerance", "tolerance_set", "tolerance_ground", "text", "scheduler",
    "against", "levels", "hours", "against_hours", "metric", "against_where",
)  # fmt: skip


def study_claims(document: StudyDocument) -> list[tuple[int, Claim]]:
    """Return each claim with the index of the table in the file that it comes from.

    A table with `columns` and `rows` is one claim a row, called ``ID-1``, ``ID-2``, ...; columns
    are fields of a claim or axes. A text of `explanations` belongs to all claims that it lists.
    """
    found = [
        (k, each)
        for k, claim in enumerate(document.content.claims)
        for each in _rows_of(document, k, claim)
    ]
    places: dict[str, int] = {}
    for place, (k, claim) in enumerate(found):
        if claim.id in places:
            document.refuse(("claims", k, "id"), f"is {claim.id!r}, which another claim has.")
        places[claim.id] = place
        if claim.kind == "number" and claim.paper is None:
            document.refuse(
                ("claims", k, "kind"), f"is 'number', and claim {claim.id!r} has none in 'paper'."
            )
    for e, explanation in enumerate(document.content.explanations):
        for c, id in enumerate(explanation.claims):
            path = ("explanations", e, "claims", c)
            if id not in places:
                document.refuse(path, f"is {id!r}; no claim is called so.")
            k, claim = found[places[id]]
            if claim.explanation:
                document.refuse(path, f"is {id!r}, which has an explanation already.")
            update = {"explanation": explanation.text, "run_ids": explanation.run_ids}
            found[places[id]] = (k, claim.model_copy(update=update))
    return found


def _rows_of(document: StudyDocument, k: int, claim: Claim) -> Iterator[Claim]:
    if not claim.rows and not claim.columns:
        yield claim
        return
    for r, row in enumerate(claim.rows):
        yield _row_of(document, ("claims", k, "rows", r), claim, f"{claim.id}-{r + 1}", row)


def _row_of(
    document: StudyDocument, path: KeyPath, claim: Claim, id: str, row: tuple[Any, ...]
) -> Claim:
    if len(row) != len(claim.columns):
        document.refuse(
            path, f"has {len(row)} values for {len(claim.columns)} columns: {shown_value(row)}."
        )
    values: dict[str, Any] = dict(zip(claim.columns, row, strict=True))
    update = {name: values.pop(name) for name in _FIELDS if name in values}
    content = claim.model_dump(exclude={"rows", "columns"}) | update
    content |= {"id": id, "where": {**claim.where, **values}}
    return document.check(Claim, content, lambda _: path)
