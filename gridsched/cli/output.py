"""What commands print and write: tables for people, files, JSON, warnings."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gridsched.errors import InputError
from gridsched.files.csv_files import csv_text
from gridsched.files.output_files import check_writable, json_text, write_whole
from gridsched.metrics.columns import Column, numbers, written_columns

if TYPE_CHECKING:
    from rich.console import JustifyMethod

#: A cell of a megabyte that is quoted in a message would hide what the message says.
LONGEST_LINE = 1000
#: Blanks between two columns of a table.
_GAP = 2

#: Declares an option of what is written and printed.
listed_with_outputs: Any = partial(typer.Option, rich_help_panel="Output")
#: Declares the option of the file that a command is there to write; its help is to be given.
output_option: Any = partial(typer.Option, "--output", "-o", metavar="FILE")


def plot_option(drawn: str) -> Any:
    """Return the option ``--plot`` of a command that draws this."""
    return listed_with_outputs(metavar="FILE", help=f"Draw {drawn} (.png, .svg, .pdf; data beside it).")


ForceOption = Annotated[bool, listed_with_outputs("--force", help="Replace what exists.")]
JsonOption = Annotated[bool, listed_with_outputs("--json", help="Print JSON, not a table.")]
QuietOption = Annotated[bool, listed_with_outputs("--quiet", help="Print nothing but errors.")]


@dataclass(frozen=True)
class Outputs:
    """What a command writes and prints, as options."""

    output: Annotated[
        Path | None,
        output_option(help="Write all figures to this .json, .csv or .parquet file.", rich_help_panel="Output"),
    ] = None
    force: ForceOption = False
    json: JsonOption = False
    quiet: QuietOption = False

    def check(self, inputs: Sequence[Path | None], plot: Path | None = None) -> None:
        """Raise `InputError` early where a file, or a figure at `plot`, could not be written."""
        targets = {"--plot": figure_files(plot), "-o": table_file(self.output)}
        check_targets(targets, inputs, force=self.force)

    def write(self, rows: Sequence[Mapping[str, Any]], whole: Any) -> bool:
        """Write the file and print JSON, where asked for; return whether to print a table."""
        if self.output is not None:
            write_rows(self.output, rows, whole, force=self.force)
        if self.json:
            print(json_text(whole), end="")
        return not (self.json or self.quiet)


#: A table is printed, and nothing is written.
PRINTED = Outputs()


def one_line(text: str) -> str:
    """Return a message without line breaks and control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def say(text: str) -> None:
    """Write one line to stderr; of a very long one the middle is left out."""
    line = one_line(text)
    if len(line) > LONGEST_LINE:
        half = LONGEST_LINE // 2
        line = f"{line[:half]} ... {line[-half:]}"
    sys.stderr.write(f"gridsched: {line}\n")


def warn(lines: Iterable[str]) -> None:
    """Write warnings to stderr, one line each."""
    for line in lines:
        say(f"warning: {line}")


def table_file(path: Path | None) -> tuple[Path, ...]:
    """Return the file that ``-o`` writes, if any.

    Raises
    ------
    InputError
        If its ending is none of these.
    """
    if path is None:
        return ()
    if path.suffix.lower() not in (".json", ".csv", ".parquet"):
        ending = path.suffix or "no ending"
        raise InputError(f"{path}: -o writes .json, .csv or .parquet; found {ending!r}.")
    return (path,)


def figure_files(path: Path | None) -> tuple[Path, ...]:
    """Return the files that ``--plot`` writes: the figure, and its data beside it.

    Raises
    ------
    InputError
        If figures are not saved in the format of `path`.
    """
    if path is None:
        return ()
    from gridsched.figures.figure_file import check_target

    return check_target(path, force=True)


def check_targets(targets: Mapping[str, Sequence[Path]], inputs: Sequence[Path | None] = (), *, force: bool) -> None:
    """Raise `InputError` early, before a long run, where a file could not be written.

    Parameters
    ----------
    targets : mapping of str to paths
        Option -> files it writes.
    inputs : sequence of path or None
        Files that no output may replace, not even with ``--force``.
    force : bool
        Whether existing files may be replaced.
    """
    taken = {os.path.realpath(path): f"the input {path}" for path in inputs if path is not None}
    for option, files in targets.items():
        for path in files:
            place = os.path.realpath(path)
            if place in taken:
                raise InputError(f"{option} would write {path} over {taken[place]}; rename it.")
            taken[place] = f"what {option} writes"
            check_writable(path, force=force)


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]], whole: Any, *, force: bool) -> None:
    """Write rows as CSV or Parquet, or `whole` as JSON, by the ending of `path`."""
    if path.suffix.lower() == ".json":
        write_whole(path, json_text(whole), force=force)
        return
    names = dict.fromkeys(key for row in rows for key in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    if path.suffix.lower() == ".parquet":
        write_whole(path, _parquet_bytes(columns), force=force)
    else:
        write_whole(path, csv_text(columns, for_people=True), force=force)


def _parquet_bytes(columns: Mapping[str, Sequence[Any]]) -> bytes:
    """Return columns as a Parquet file, with unit and meaning of each metric."""
    import pyarrow as pa  # slow to load
    import pyarrow.parquet as pq

    from gridsched.campaign.row_table import described_table

    stream = io.BytesIO()
    pq.write_table(described_table(pa.table(dict(columns))), stream)
    return stream.getvalue()


# ---------------------------------------------------------------------- tables for people


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
