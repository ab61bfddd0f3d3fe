"""Columns of tables for people: numbers with sensible digits, units with prefixes.

The command line and notebooks write them alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

from gridsched.errors import visible
from gridsched.model.records import check_choices

#: Significant digits of the largest number of a column.
DIGITS = 6
_NOTHING = "-"


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    key : str
        Where its values are found in the rows.
    header : str
        May hold line breaks; ``{unit}`` becomes the unit with its prefix.
    kind : {"text", "figure", "number", "rounded", "percent", "share", "exponent"}
        How values are written: as they are; likewise, but aligned right; with equal decimals;
        likewise, with one digit less; as what a ratio is above or below 0, in per cent; as a share
        of the best, in per cent; with an exponent.
    unit : str
        It gets an SI prefix where numbers are large.
    scale : str
        Columns with the same word here share their prefix; by default each has its own.
    """

    key: str
    header: str
    kind: Literal["text", "figure", "number", "rounded", "percent", "share", "exponent"] = "text"
    unit: str = ""
    scale: str = ""

    def __post_init__(self) -> None:
        check_choices(self)


def _is_known(value: Any) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def numbers(values: Sequence[float | None], digits: int = DIGITS) -> list[str]:
    """Write numbers with equal decimals, `digits` significant ones of the largest.

    Whole numbers have no decimals and 0 is ``0``; a value too small for the common decimals is
    written with an exponent; None and nan become ``-``.

    Examples
    --------
    >>> numbers([80.0, 33.25, None])
    ['80.0000', '33.2500', '-']
    >>> numbers([2430.0, 17000.0])
    ['2,430', '17,000']
    """
    known = [abs(float(v)) for v in values if _is_known(v)]
    largest = max(known, default=0.0)
    decimals = 0
    if not all(v == int(v) for v in known) or largest >= 1e15:
        decimals = digits - 1 - (math.floor(math.log10(largest)) if largest else 0)
    if largest >= 1e15 or decimals > digits + 2:
        return [f"{v:.{digits - 1}e}" if _is_known(v) else _NOTHING for v in values]
    decimals = max(decimals, 0)
    return [_number(v, decimals) for v in values]


def _number(value: float | None, decimals: int) -> str:
    if not _is_known(value):
        return _NOTHING
    text = f"{value:,.{decimals}f}"
    if not text.strip("-0.,"):
        return f"{value:.1e}" if value else "0"
    return text


def percent(value: float | None) -> str:
    """Write by how much something is above the best, which is 0.

    Examples
    --------
    >>> percent(0.5), percent(0.0), percent(None)
    ('+50.0 %', 'best', '-')
    """
    if not _is_known(value):
        return _NOTHING
    return "best" if value == 0 else f"{100 * value:+,.1f} %"


def share(value: float | None) -> str:
    """Write which share of the best something is.

    Examples
    --------
    >>> share(0.975), share(1.0), share(None)
    ('97.5 %', 'best', '-')
    """
    if not _is_known(value):
        return _NOTHING
    return "best" if value == 1 else f"{100 * value:,.1f} %"


def prefix(largest: float, least: float = 1e6) -> tuple[float, str]:
    """Return the SI prefix, as (factor, letter), with which numbers up to `largest` are shown.

    Below `least`, 1000 or more, no prefix is needed; from there on the largest lies between 1 and 1000.
    """
    if not least <= largest < math.inf:
        return 1.0, ""
    level = min(int(math.log10(largest)) // 3, 6)
    return 1000.0**level, " kMGTPE"[level]


def amount(value: float, unit: str) -> str:
    """Return a number with its unit; joules with a prefix.

    Examples
    --------
    >>> amount(2.5e9, "J"), amount(86_400.0, "s"), amount(5, "")
    ('2.5 GJ', '86,400 s', '5')
    """
    factor, letter = prefix(abs(value)) if unit.startswith("J") else (1.0, "")
    return f"{value / factor:,.6g} {letter}{unit}".rstrip()


def written_columns(
    columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]
) -> list[tuple[Column, str, list[str]]]:
    """Return (column, header, cells) of each column.

    Parameters
    ----------
    columns : sequence of Column
    rows : sequence of mapping
    """
    largest: dict[str, float] = {}
    for column in columns:
        values = [row.get(column.key) for row in rows] if column.unit else []
        sizes = [abs(value) for value in values if _is_known(value)]
        scale = column.scale or column.key
        largest[scale] = max([largest.get(scale, 0.0), *sizes])
    written = []
    for column in columns:
        values = [row.get(column.key) for row in rows]
        factor, letter = prefix(largest[column.scale or column.key])
        if column.kind in ("number", "rounded"):
            digits = DIGITS - (column.kind == "rounded")
            cells = numbers([v / factor if _is_known(v) else None for v in values], digits)
        else:
            cells = list(map(_WRITERS.get(column.kind, _text), values))
        written.append((column, column.header.replace("{unit}", letter + column.unit), cells))
    return written


def _text(value: Any) -> str:
    """Return a cell; a tuple has a line for each part, and a text, which may come from a file, one line."""
    if isinstance(value, tuple):
        return "\n".join(map(_text, value))
    return _NOTHING if value is None else visible(str(value), breaks=False)


def _exponent(value: float | None) -> str:
    if value is None:
        return _NOTHING
    return f"{value:.1e}" if value else "0"


#: How values of a kind are written one by one.
_WRITERS: dict[str, Callable[[Any], str]] = {"share": share, "percent": percent, "exponent": _exponent}
