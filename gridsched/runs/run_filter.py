"""Which runs are meant: comparisons of axes with values, as ``--only`` and claims have them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from gridsched.errors import InputError, did_you_mean
from gridsched.runs.expressions import DECISIONS, Language

_HOW_TO_CHOOSE = "Write comparisons of axes with values, as \"scheduler == 'lecsa' and replicate < 5\"."


def full_name(name: str, names: Collection[str]) -> str:
    """Return the axis that a name means: its own, or its last part where that is unique.

    Raises
    ------
    InputError
        If there is none, or several.
    """
    if name in names:
        return name
    candidates = [each for each in names if each.rpartition(".")[2] == name]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise InputError(f"{name!r} may mean {' or '.join(candidates)}; write it in full.")
    raise InputError(f"{name!r} is not an axis of this study. {did_you_mean(name, names)}Axes: {', '.join(names)}.")


def run_filter(text: str, axes: Collection[str], name: str = "--only") -> Callable[[Mapping[str, Any]], bool]:
    """Return a function that decides whether a run with these axis values is meant.

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
    evaluate = Language(DECISIONS, lambda axis: full_name(axis, axes), _HOW_TO_CHOOSE).compiled(text, name)

    def is_meant(values: Mapping[str, Any]) -> bool:
        try:
            return bool(evaluate(values))
        except TypeError as error:
            raise InputError(f"{name} {text!r}: cannot be compared: {error}.") from None

    return is_meant
