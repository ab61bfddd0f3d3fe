"""Tables, values and notes as commands print them for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from gridsched.errors import visible
from gridsched.metrics.columns import Column, numbers, written_columns

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, JustifyMethod, RenderableType
#: Blanks between two columns of a table.
_GAP = 2


class _Console(Console):
    """Prints what names hold as `visible` has it, and takes no brackets or colons in them for markup."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield what is printed of something."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def console() -> Console:
    """Return a console for results; a pipe or file gets unwrapped plain text."""
    wide = None if sys.stdout.isatty() else 10_000
    return _Console(width=wide, highlight=False, markup=False, emoji=False, soft_wrap=True)


def print_trimmed(out: Console, table: Table) -> None:
    """Print a table without blanks at the ends of its lines."""
    with out.capture() as captured:
        out.print(table, soft_wrap=False)
    out.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def print_notes(out: Console, notes: Iterable[str]) -> None:
    """Print sentences, a line each; on a terminal they are wrapped at words."""
    for note in notes:
        out.print(Text(note), soft_wrap=False)


def _blocks(widths: Sequence[int], available: int) -> list[list[int]]:
    """Return which columns are side by side; the first one is repeated in each block."""
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
    written = written_columns(columns, rows)
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
    """Print named values with their units; numbers have their decimal points in line.

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
    rows = [(visible(name), visible(value) if isinstance(value, str) else value, unit) for name, value, unit in rows]
    names = max((cell_len(name) for name, _, _ in rows), default=0)
    written = [None if isinstance(v, str) else _alone(v).partition(".") for _, v, _ in rows]
    whole, part = (
        max((len(cell[0 if k == 0 else 1] + cell[2] * k) for cell in written if cell), default=0) for k in (0, 1)
    )
    for (name, value, unit), cell in zip(rows, written, strict=True):
        text = value if cell is None else f"{cell[0]:>{whole}}{cell[1] + cell[2]:<{part}} {unit}"
        gap = " " * (names - cell_len(name) + _GAP)
        out.print(Text(f"{name}{gap}{text}".rstrip()))
