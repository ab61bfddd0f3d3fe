"""Tables for people: numbers aligned with sensible digits, blocks as wide as the terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import JustifyMethod

#: Significant digits of the largest number of a column.
DIGITS = 6
#: Blanks between two columns.
_GAP = 2
_NOTHING = "-"


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    key : str
        Where its values are found in the rows.
    header : str
        May hold line breaks; ``{unit}`` stands for the unit with its prefix.
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


def console() -> Console:
    """Return a console for results; a pipe or file gets unwrapped plain text."""
    wide = None if sys.stdout.isatty() else 10_000
    return Console(width=wide, highlight=False, soft_wrap=True)


def print_trimmed(out: Console, table: Table) -> None:
    """Print a table without blanks at the ends of its lines."""
    with out.capture() as captured:
        out.print(table, soft_wrap=False)
    out.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def print_notes(out: Console, notes: Iterable[str]) -> None:
    """Print sentences, a line each; on a terminal they are wrapped at words."""
    for note in notes:
        out.print(Text(note), soft_wrap=False)


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


def prefix(largest: float) -> tuple[float, str]:
    """Return the SI prefix, as (factor, letter), with which numbers up to `largest` are shown.

    Up to a million no prefix is needed; beyond, the largest lies between 1 and 1000.
    """
    if not 1e6 <= largest < math.inf:
        return 1.0, ""
    level = min(int(math.log10(largest)) // 3, 6)
    return 1000.0**level, " kMGTPE"[level]


def _written(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> list[tuple[Column, str, list[str]]]:
    """Return (column, header, cells) of each column."""
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
        elif column.kind == "share":
            cells = [share(value) for value in values]
        elif column.kind == "percent":
            cells = [percent(value) for value in values]
        elif column.kind == "exponent":
            cells = [_NOTHING if v is None else f"{v:.1e}" if v else "0" for v in values]
        else:
            cells = [_NOTHING if value is None else str(value) for value in values]
        header = column.header.replace("{unit}", letter + column.unit)
        written.append((column, header, cells))
    return written


def _blocks(widths: Sequence[int], available: int) -> list[list[int]]:
    """Return which columns stand side by side; the first one is repeated in each block."""
    blocks, used = [[0]], widths[0]
    for k, width in enumerate(widths[1:], start=1):
        if len(blocks[-1]) > 1 and used + _GAP + width > available:
            blocks.append([0])
            used = widths[0]
        blocks[-1].append(k)
        used += _GAP + width
    return blocks


def print_table(out: Console, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], title: str = "") -> None:
    """Print a table; what is wider than the terminal follows in a further block below.

    Parameters
    ----------
    out : Console
    columns : sequence of Column
        The first names the row.
    rows : sequence of mapping
    title : str
        A line above the table.
    """
    written = _written(columns, rows)
    widths = [
        max(cell_len(line) for cell in (header, *cells) for line in cell.split("\n")) for _, header, cells in written
    ]
    if title:
        out.print(Text(title, style="bold"), soft_wrap=False)
    for k, block in enumerate(_blocks(widths, out.width)):
        if k:
            out.print()
        print_trimmed(out, _rich_table([written[k] for k in block], len(rows)))


def _rich_table(written: Sequence[tuple[Column, str, list[str]]], n_rows: int) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0))
    lines = max(header.count("\n") for _, header, _ in written)
    for column, header, _ in written:
        justify: JustifyMethod = "left" if column.kind == "text" else "right"
        above = "\n" * (lines - header.count("\n"))
        table.add_column(Text(above + header), justify=justify, overflow="fold")
    for row in range(n_rows):
        cells = [cells[row] for _, _, cells in written]
        table.add_row(*(Text(cell, "bold" if cell == "best" else "") for cell in cells))
    return table


def _alone(value: float | None) -> str:
    """Write a number that has no column to agree with."""
    text = numbers([value])[0]
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def print_values(out: Console, rows: Sequence[tuple[str, float | str | None, str]], title: str = "") -> None:
    """Print named values with their units; numbers stand with their decimal points in line.

    Parameters
    ----------
    out : Console
    rows : sequence of (name, value, unit)
        A text is printed as it is.
    title : str
        A line above.
    """
    if title:
        out.print(Text(title, style="bold"))
    names = max((cell_len(name) for name, _, _ in rows), default=0)
    written = [None if isinstance(v, str) else _alone(v).partition(".") for _, v, _ in rows]
    whole, part = (
        max((len(cell[0 if k == 0 else 1] + cell[2] * k) for cell in written if cell), default=0) for k in (0, 1)
    )
    for (name, value, unit), cell in zip(rows, written, strict=True):
        text = value if cell is None else f"{cell[0]:>{whole}}{cell[1] + cell[2]:<{part}} {unit}"
        gap = " " * (names - cell_len(name) + _GAP)
        out.print(Text(f"{name}{gap}{text}".rstrip()))
