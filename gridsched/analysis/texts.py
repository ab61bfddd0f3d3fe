"""Numbers, axis values and tables as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gridsched.metrics.columns import prefix
from gridsched.metrics.table import unit_of, without_unit

#: Units that get an SI prefix; times stay in seconds.
_PREFIXED = ("", "J", "J s", "W", "flop", "g", "byte")
#: What is never written with its prefix.
_OWN_NAMES = {"Mg": "t", "Gg": "kt"} | {f"{letter}byte": f"{letter}B" for letter in "kMGTPE"}


@dataclass(frozen=True)
class TextTable:
    """A table for people.

    Attributes
    ----------
    title : str
    header : list of str
    rows : list of list of str
    n_labels : int
        Number of leading columns that are not numbers.
    note : str
    marked : frozenset of tuple of int
        Row and column of the cells that are set off, as the best ones.
    """

    title: str
    header: list[str]
    rows: list[list[str]]
    n_labels: int = 1
    note: str = ""
    marked: frozenset[tuple[int, int]] = frozenset()


def number_text(value: float, half_width: float = math.nan, *, signed: bool = False) -> str:
    """Return a mean with the half-width of its interval, to the digits that the interval leaves.

    Parameters
    ----------
    value, half_width : float
        nan as half-width leaves it out.
    signed : bool
        Write the plus sign too.

    Examples
    --------
    >>> number_text(1234.5678, 12.3)
    '1,235 ± 12'
    >>> number_text(-0.123456, signed=True)
    '-0.1235'
    """
    if math.isnan(value):
        return "-"
    sign = "+" if signed else ""
    if math.isnan(half_width):
        return _plain(value, 4, sign)
    if abs(half_width) <= 1e-9 * max(abs(value), 1e-300):
        return f"{_plain(value, 5, sign)} ± 0"
    digits = 1 - math.floor(math.log10(half_width))
    if not -15 < digits < 15:
        return f"{value:{sign}.4g} ± {half_width:.2g}"
    if abs(value) >= 1e9 or half_width < 1e-4:
        return f"{value:{sign}.4g} ± {half_width:.2g}"
    places = max(0, digits)
    return f"{value:{sign},.{places}f} ± {half_width:,.{places}f}"


def _plain(value: float, digits: int, sign: str) -> str:
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e9:
        return f"{value:{sign}.{digits}g}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:{sign},.{places}f}"


def prefixed(unit: str, largest: float) -> tuple[float, str]:
    """Return (divisor, unit with SI prefix) so that `largest` is shown between 1 and 1000.

    Examples
    --------
    >>> prefixed("J", 8e9), prefixed("s", 86_400.0), prefixed("g", 2e6)
    ((1000000000.0, 'GJ'), (1.0, 's'), (1000000.0, 't'))
    """
    factor, letter = prefix(largest if unit in _PREFIXED else 1.0, least=1000.0)
    return factor, _OWN_NAMES.get(letter + unit, letter + unit)


def read_unit(unit: str, largest: float) -> tuple[float, str]:
    """Return (divisor, unit) in which an axis up to `largest` is read: hours and days, and SI prefixes.

    Examples
    --------
    >>> read_unit("s", 86_400.0), read_unit("J", 8e9)
    ((3600.0, 'h'), (1000000000.0, 'GJ'))
    """
    return time_unit(largest) if unit == "s" else prefixed(unit, largest)


def time_unit(end_s: float) -> tuple[float, str]:
    """Return by what seconds are divided for a time of this length [s], and the unit."""
    for seconds, unit, least in ((86_400.0, "d", 4), (3600.0, "h", 2)):
        if end_s >= least * seconds:
            return seconds, unit
    return 1.0, "s"


def axis_name(axis: str) -> str:
    """Return an axis in words: its last part without the unit.

    Examples
    --------
    >>> axis_name("workload.energy_budget_j")
    'energy budget'
    """
    return without_unit(axis.rpartition(".")[2])


#: Names of axes that are not words.
_ACRONYMS = ("ccr", "pue")


def axis_title(axis: str) -> str:
    """Return an axis in words as a title begins, acronyms in capitals.

    Examples
    --------
    >>> axis_title("workload.ccr")
    'CCR'
    """
    name = axis_name(axis)
    return name.upper() if name in _ACRONYMS else name.capitalize()


def axis_value(axis: str, value: Any) -> str:
    """Return a value of an axis with its unit.

    Examples
    --------
    >>> axis_value("energy_budget_j", 8e9), axis_value("tasks", 10_000)
    ('8 GJ', '10,000')
    """
    unit = unit_of(axis)
    if not unit or not is_number(value) or math.isinf(value):
        return value_text(value)
    factor, unit = prefixed(unit, abs(value))
    return f"{value_text(value / factor)} {unit}"


def is_number(value: Any) -> bool:
    """Return whether a value is a number, which a truth value is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def value_text(value: Any) -> str:
    """Return a value for people, numbers as on the axes of figures."""
    if is_number(value):
        return f"{value:,.10g}" if abs(value) < 1e10 else f"{value:g}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(value_text, value)) + "]"
    return "none" if value is None else str(value)


def axis_text(values: dict[str, Any]) -> str:
    """Return axis values in words; texts speak for themselves, numbers need their axis' name."""
    parts = [
        value if isinstance(value, str) else f"{axis_name(axis)} {axis_value(axis, value)}"
        for axis, value in values.items()
    ]
    return ", ".join(parts)


def markdown_text(text: str) -> str:
    """Return a text for Markdown without HTML, links, images and line breaks of its own."""
    for mark, written in (("\\", "\\\\"), ("[", "\\["), ("&", "&amp;"), ("<", "&lt;")):
        text = text.replace(mark, written)
    return " ".join(text.split())


def markdown_row(cells: Iterable[str]) -> str:
    """Return a row of a table in Markdown."""
    return "| " + " | ".join(markdown_text(cell).replace("|", "\\|") for cell in cells) + " |"
