"""``--only EXPR``: which runs of a study are meant, as an expression over its axes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from gridsched.errors import InputError
from gridsched.spec.expressions import DECISIONS, Language
from gridsched.spec.study_axes import full_name

_HOW = "Write comparisons of axes with values, as \"scheduler == 'lecsa' and replicate < 5\"."


def run_filter(
    text: str, axes: Collection[str], name: str = "--only"
) -> Callable[[Mapping[str, Any]], bool]:
    """Return a function that says whether a run with these axis values is meant.

    Parameters
    ----------
    text : str
        Comparisons (``==, !=, <, <=, >, >=, in, not in``) of axes and values, joined by ``and``,
        ``or``, ``not``.
    axes : collection of str
        Names of the axes.
    name : str
        What the expression is called in messages.

    Raises
    ------
    InputError
        If it cannot be understood; the returned function, where types cannot be compared.
    """
    evaluate = Language(DECISIONS, lambda axis: full_name(axis, axes), _HOW).compiled(text, name)

    def is_meant(values: Mapping[str, Any]) -> bool:
        try:
            return bool(evaluate(values))
        except TypeError as error:
            raise InputError(f"{name} {text!r}: cannot be compared: {error}.") from None

    return is_meant
