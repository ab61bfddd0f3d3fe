"""Metrics that people compute from others: ``ed2p = "energy_j * makespan_s ** 2"``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gridsched.errors import InputError, did_you_mean
from gridsched.metrics.table import FORMULA, METRICS, Metric, declare_metric
from gridsched.runs.expressions import COMPUTATIONS, Evaluate, Language

_HOW_TO_COMPUTE = (
    "Write metrics and numbers with + - * / ** and parentheses, and abs, sqrt, exp, log, min, max, "
    'as "energy_j * makespan_s ** 2".'
)
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "min": lambda *values: np.min(values),
    "max": lambda *values: np.max(values),
}


@dataclass(frozen=True)
class Formula:
    """A metric that is computed from others.

    Attributes
    ----------
    metric : Metric
        Its entry; of rows.
    needs : frozenset of str
        The metrics that it is computed from, formulas among them.
    """

    metric: Metric
    needs: frozenset[str]


def formula(
    id: str,
    text: str,
    known: Collection[str],
    *,
    unit: str = "",
    better: Literal["less", "more"] | None = None,
    meaning: str = "",
    called: str = "",
) -> Formula:
    """Return the metric that an expression describes.

    Parameters
    ----------
    id : str
        Its name.
    text : str
        The expression.
    known : collection of str
        The metrics that it may name.
    unit, better, meaning : str
        Of the metric's entry.
    called : str
        What the expression is called in messages; default `id`.

    Raises
    ------
    InputError
        If the id is none, or taken, or the expression cannot be understood.
    """
    called = called or id
    if not id.isidentifier():
        raise InputError(f"{called}: is not a name of letters, digits and underscores.")
    taken = METRICS.get(id)
    if taken is not None and taken.condition is not FORMULA:
        raise InputError(f"{called}: is a metric already ({taken.sentence}). Choose another name.")
    needs: set[str] = set()

    def name(word: str) -> str:
        if word not in known:
            near = did_you_mean(word, known)
            raise InputError(f"{word!r} is not a metric to compute with. {near}".rstrip())
        needs.add(word)
        return word

    compute = Language(COMPUTATIONS, name, _HOW_TO_COMPUTE, _number, _FUNCTIONS).compiled(text, called)
    try:
        _value(compute, dict.fromkeys(needs, 1.0), needs)
    except (TypeError, ValueError):
        raise InputError(f"{called} {text!r}: a function has too few or many values.") from None
    said = f"{meaning}: `{text}`" if meaning else f"`{text}`"
    metric = Metric(id, unit, said, lambda row: _value(compute, row, needs), "row", FORMULA, better)
    return Formula(metric, frozenset(needs))


def declare(formulas: Iterable[Formula]) -> None:
    """Put formulas into the table of metrics, so that they have names and units in tables."""
    for each in formulas:
        declare_metric(each.metric)


def _number(value: object) -> np.float64:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{value!r} is not a number.")
    return np.float64(value)


def _value(compute: Evaluate, row: Mapping[str, Any], needs: Collection[str]) -> float | None:
    """Return the value for a row; None where a metric that it needs has none, or it is infinite."""
    operands = {id: row.get(id) for id in needs}
    if any(value is None for value in operands.values()):
        return None
    with np.errstate(all="ignore"):
        value = float(compute({id: np.float64(value) for id, value in operands.items()}))
    return value if np.isfinite(value) else None
