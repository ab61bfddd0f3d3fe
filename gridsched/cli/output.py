"""What commands write and say: options of outputs, files, JSON, warnings."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer

from gridsched.errors import InputError, visible
from gridsched.extras import check_installed, load
from gridsched.files.csv_files import csv_text
from gridsched.files.json_files import json_text
from gridsched.files.output_files import check_writable, write_whole

#: A quoted cell of a megabyte would hide the rest of its message.
LONGEST_LINE = 1000

#: Declares an option of what is written and printed.
listed_with_outputs: Any = partial(typer.Option, rich_help_panel="Output")
#: Declares the option of the file that a command is there to write; its help is to be given.
output_option: Any = partial(typer.Option, "--output", "-o", metavar="FILE")


def plot_option(plotted: str) -> Any:
    """Return the option ``--plot`` of a command that draws this."""
    return listed_with_outputs(metavar="FILE", help=f"Draw {plotted} (.png, .svg, .pdf; data beside it).")


ForceOption = Annotated[bool, listed_with_outputs("--force", help="Replace existing files.")]
JsonOption = Annotated[bool, listed_with_outputs("--json", help="Print JSON instead of a table.")]
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

    def check(self, inputs: Sequence[Path | None], plot: Path | None = None, tables: Sequence[str] = ()) -> None:
        """Raise `InputError` early where a file, a figure at `plot` or one of further `tables` could not be written."""
        targets = {"--plot": figure_files(plot, self.output), "-o": table_file(self.output)}
        targets |= {f"-o (its {name})": _further_file(self.output, name) for name in tables}
        check_targets(targets, inputs, force=self.force)

    def write(
        self,
        rows: Sequence[Mapping[str, Any]],
        whole: Any,
        tables: Mapping[str, Sequence[Mapping[str, Any]]] = MappingProxyType({}),
    ) -> bool:
        """Write the files and print JSON, where asked for; return whether to print a table.

        Parameters
        ----------
        rows : sequence of mapping
            Of the .csv or .parquet file.
        whole
            What the .json file and ``--json`` hold.
        tables : mapping of str to sequence of mapping
            Name -> rows of a further .csv or .parquet file, ``FILE.NAME.csv``.
        """
        if self.output is not None:
            write_rows(self.output, rows, whole, force=self.force)
            for name, further in tables.items():
                for path in _further_file(self.output, name):
                    write_rows(path, further, None, force=self.force)
        if self.json:
            put_json(whole)
        return not (self.json or self.quiet)


#: A table is printed, and nothing is written.
PRINTED = Outputs()


def put(text: str = "", end: str = "\n") -> None:
    """Write lines to standard output, as `visible` has them; tables are printed by a `console`."""
    print(visible(text), end=end)


def put_json(value: object) -> None:
    """Write JSON to standard output."""
    print(json_text(value), end="")


def one_line(text: str) -> str:
    """Return a message in one line, as `visible` has it."""
    return visible(" ".join(text.split()))


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


def _further_file(path: Path | None, name: str) -> tuple[Path, ...]:
    """Return the file of a further table beside that of ``-o``; a .json file holds all in one."""
    return tuple(each.with_suffix(f".{name}{each.suffix}") for each in table_file(path) if each.suffix != ".json")


def figure_files(path: Path | None, table: Path | None = None) -> tuple[Path, ...]:
    """Return the files that ``--plot`` writes: the figure, and its data beside it, not over a `table` of ``-o``.

    Raises
    ------
    InputError
        If figures are not saved in the format of `path`.
    """
    if path is None:
        return ()
    from gridsched.figures.figure_file import check_target

    return check_target(path, force=True, table=table)


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
            if path.suffix.lower() == ".parquet":
                check_installed("pyarrow", "Parquet files")


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
    pa, parquet = (load(name, "Parquet files") for name in ("pyarrow", "pyarrow.parquet"))
    from gridsched.campaign.row_table import described_table

    stream = io.BytesIO()
    parquet.write_table(described_table(pa.table(dict(columns))), stream)
    return stream.getvalue()
