"""The Python files that hold the claims of studies: how they are found, run and checked."""

from __future__ import annotations

import runpy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gridsched.errors import InputError, did_you_mean, error_of_policy
from gridsched.model.records import gravest, key_name, problem_of, shown_value
from gridsched.runs.claims_schema import BEST_OTHER, Claim, Explanation, Ours
from gridsched.runs.run_filter import full_name
from gridsched.runs.study_axes import Axis
from gridsched.runs.study_checks import no_metric
from gridsched.runs.study_document import StudyDocument, shipped_study_file
from gridsched.runs.study_schedulers import StudyScheduler

_PACKAGE = Path(__file__).parents[1]


def shipped_claims_file(document: StudyDocument) -> Path:
    """Return the file of claims of the shipped study that a study names for its claims.

    Raises
    ------
    InputError
        If there is no such study, or it has no claims.
    """
    name = document.content.claims
    try:
        path = shipped_study_file(name).with_suffix(".py")
    except InputError as error:
        document.refuse(("claims",), f"is {name!r}: {error} A file of claims ends in .py.")
    if not path.is_file():
        document.refuse(("claims",), f"is {name!r}, a study that comes with gridsched and has no claims.")
    return path


def read_claims(path: Path) -> tuple[Claim, ...]:
    """Run a file of claims; return its ``CLAIMS`` with its ``EXPLANATIONS``.

    Parameters
    ----------
    path : Path
        It is run as it is; those of gridsched are imported, as others of its claims build upon them.

    Raises
    ------
    InputError
        If it cannot be run, or holds no allowed claims.
    """
    names = _names_in(path)
    claims: Any = names.get("CLAIMS")
    explanations: Any = names.get("EXPLANATIONS", ())
    for name, values, kind in (("CLAIMS", claims, Claim), ("EXPLANATIONS", explanations, Explanation)):
        if not isinstance(values, list | tuple) or not all(isinstance(each, kind) for each in values):
            raise InputError(
                f"{path}: {name} is {shown_value(values)}; it should be a list of {kind.__name__} records."
            )
    found: dict[str, Claim] = {}
    for claim in claims:
        if claim.id in found:
            raise InputError(f"{path}: claim {claim.id!r} is there twice; give each its own id.")
        found[claim.id] = claim
    for explanation in explanations:
        for id in explanation.claims:
            if id not in found:
                hint = did_you_mean(id, found)
                raise InputError(f"{path}: an explanation is of claim {id!r}; no claim is called so. {hint}".rstrip())
            if found[id].explanation:
                raise InputError(f"{path}: claim {id!r} has two explanations; one is allowed.")
            found[id] = replace(found[id], explanation=explanation.text, run_ids=explanation.run_ids)
    return tuple(found.values())


def _names_in(path: Path) -> Mapping[str, Any]:
    """Return what a file of claims defines."""
    try:
        if path.is_relative_to(_PACKAGE):
            return vars(import_module(".".join(path.relative_to(_PACKAGE.parent).with_suffix("").parts)))
        return runpy.run_path(str(path))
    except KeyboardInterrupt:
        raise
    except ValidationError as error:
        first = gravest(error)
        key = key_name(first["loc"]) if first["loc"] else "a value"
        raise InputError(f"{path}: in a {error.title}, {key} {problem_of(first)}") from None
    except BaseException as error:  # noqa: BLE001 - a user's file may raise anything
        raise InputError(f"{path}: cannot be run: {error_of_policy(error)}") from None


def checked_claims(
    path: Path, metrics: Sequence[str], axes: Sequence[Axis], schedulers: Sequence[StudyScheduler]
) -> tuple[Claim, ...]:
    """Return the claims of a file, of metrics, axes and schedulers that a study has.

    Parameters
    ----------
    path : Path
    metrics : sequence of str
        Those that the study has.
    axes : sequence of Axis
    schedulers : sequence of StudyScheduler

    Raises
    ------
    InputError
        Naming the claim at fault; see `read_claims`, too.
    """
    values_of = {axis.name: axis.values for axis in axes}
    claims = read_claims(path)
    for claim in claims:
        for wrong in (
            *(f"metric {no_metric(name, metrics)}" for name in sorted(claim.ours.metrics) if name not in metrics),
            *_wrong_schedulers(claim.ours, schedulers),
            *_wrong_axes(claim.ours, values_of),
        ):
            raise InputError(f"{path}: claim {claim.id!r}: {wrong}")
    return claims


def _wrong_schedulers(ours: Ours, schedulers: Sequence[StudyScheduler]) -> list[str]:
    """Return what is wrong with the schedulers that a claim names, in words."""
    labels = list(dict.fromkeys(each.label for each in schedulers))
    families = list(dict.fromkeys(each.family for each in schedulers))
    wrong = []
    for key, name in ours.schedulers.items():
        legal = [*labels, *(families if ours.takes_families or ours.variant else ())]
        if key == "against":
            legal = [BEST_OTHER, *legal]
        if name in legal:
            continue
        if name in families:
            wrong.append(f"{key} is {name!r}, of which there are variants: take one's label, or `of_variant`.")
        else:
            wrong.append(f"{key} is {name!r}. {did_you_mean(name, legal)}Allowed: {', '.join(legal)}.")
    return wrong


def _wrong_axes(ours: Ours, values_of: Mapping[str, tuple[Any, ...]]) -> list[str]:
    """Return what is wrong with the runs that a claim chooses, in words."""
    wrong = []
    for key in ("where", "against_where"):
        for name, value in (ours.arguments.get(key) or {}).items():
            try:
                legal = values_of[full_name(name, values_of)]
            except InputError as error:
                wrong.append(f"{key} is wrong: {error}")
                continue
            asked = (value,) if value in legal or not isinstance(value, tuple | list) else value
            for each in asked:
                if each not in legal:
                    shown = ", ".join(shown_value(choice) for choice in legal)
                    wrong.append(f"{key} asks for {name} {shown_value(each)}; it has the values {shown}.")
    return wrong
