"""JSON: numbers out with every digit."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path


def json_text(value: object, *, exact: bool = False) -> str:
    """Return indented JSON for people and their programs.

    Parameters
    ----------
    value : object
        As `plain` takes it.
    exact : bool
        Keep nan and infinities as Python's ``json`` does, so that they read back. JSON lacks
        them, so by default they are null.
    """
    indent = 1 if exact else 2
    value = plain(value, lacking=float if exact else _null)
    return _visible(json.dumps(value, indent=indent, ensure_ascii=False)) + "\n"


def _visible(text: str) -> str:
    """Return JSON of the same meaning without characters that a terminal obeys: it may be printed on one."""
    return "\n".join(
        line if line.isprintable() else "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in line)
        for line in text.split("\n")
    )


def json_line(value: object) -> str:
    """Return JSON in one line, for programs that read a command's progress."""
    return _visible(json.dumps(value, ensure_ascii=False))


def canonical_text(value: object) -> str:
    """Return JSON with sorted keys and no blanks: equal values give equal texts.

    Infinities are written as Python's ``Infinity``.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def stored_text(value: object) -> str:
    """Return JSON in one line: nan is null, infinities are the texts ``inf`` and ``-inf``."""
    return json.dumps(plain(value, lacking=_infinity_text), separators=(",", ":"), ensure_ascii=False)


def _null(number: float) -> None:
    return None


def _infinity_text(number: float) -> str | None:
    return None if math.isnan(number) else "inf" if number > 0 else "-inf"


def plain(value: object, *, lacking: Callable[[float], object] = _null) -> object:
    """Return a value in JSON's own types.

    Parameters
    ----------
    value : object
        Mappings, lists, tuples, arrays, numpy numbers, paths, and what JSON has itself.
    lacking : callable
        What is written for nan and infinities; by default null.
    """
    if hasattr(value, "tolist"):  # an array, or a number of numpy's
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return lacking(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item, lacking=lacking) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, lacking=lacking) for item in value]
    return str(value) if isinstance(value, Path) else value
