"""CSV tables with named columns, read with the line number of every row."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gridsched.errors import InputError, did_you_mean
from gridsched.model.limits import LARGEST, SMALLEST


@dataclass(frozen=True)
class Row:
    """One row of a table: its file, line and cells by column."""

    path: Path
    line: int
    cells: dict[str, str]

    def fail(self, column: str, legal: str) -> InputError:
        """Return the error that says what the cell holds and what is legal."""
        found = self.cells.get(column, "")
        return InputError(f"{self.path}, line {self.line}: {column} is {found!r}; {legal}.")

    def number(
        self, column: str, *, least: float = 0.0, above: bool = False, default: float | None = None
    ) -> float:
        """Return a number of at least (or, with `above`, greater than) `least`, up to `LARGEST`."""
        text = self.cells.get(column, "")
        if not text and default is not None:
            return default
        legal = (
            f"it must be a finite number {'>' if above else '>='} {least:g}, at most {LARGEST:g}"
        )
        try:
            value = float(text)
        except ValueError:
            raise self.fail(column, legal) from None
        if not least <= value <= LARGEST or (above and value < least + SMALLEST):
            raise self.fail(column, legal)
        return value

    def whole_number(self, column: str) -> int:
        """Return a whole number that fits 64 bits."""
        try:
            value = int(self.cells.get(column, ""))
        except ValueError:
            raise self.fail(column, "it must be a whole number") from None
        if not -(2**63) <= value < 2**63:
            raise self.fail(column, "it must fit 64 bits")
        return value


def read_rows(
    path: str | Path, text: str, required: Sequence[str], optional: Sequence[str] = ()
) -> Iterator[Row]:
    """Yield the rows of a CSV text whose header names its columns.

    Lines that start with ``#`` and blank lines are passed over.

    Raises
    ------
    InputError
        If the header lacks a column or has an unknown or repeated one, or a row has too many or
        too few cells.
    """
    path = Path(path)
    numbered = [(k, line) for k, line in enumerate(text.splitlines(), start=1)]
    numbered = [(k, line) for k, line in numbered if line.strip() and not line.startswith("#")]
    reader = csv.reader((line for _, line in numbered), strict=True)
    legal = [*required, *optional]

    def line_read() -> int:
        """Return the number of the line the reader has come to."""
        return numbered[reader.line_num - 1][0] if numbered else 1

    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(path, line_read(), header, required, legal)
        for cells in reader:
            line = line_read()
            if len(cells) != len(header):
                raise InputError(
                    f"{path}, line {line}: {len(cells)} cells where the header has {len(header)}."
                )
            stripped = (cell.strip() for cell in cells)
            yield Row(path, line, dict(zip(header, stripped, strict=True)))
    except csv.Error as error:
        raise InputError(f"{path}, line {line_read()}: no readable CSV: {error}.") from None


def _check_header(
    path: Path, line: int, header: list[str], required: Sequence[str], legal: Sequence[str]
) -> None:
    shown = ",".join(legal)
    for name in required:
        if name not in header:
            raise InputError(f"{path}, line {line}: no column {name!r}; the header is {shown}.")
    for k, name in enumerate(header):
        if name not in legal:
            hint = did_you_mean(name, legal)
            raise InputError(f"{path}, line {line}: unknown column {name!r}. {hint}Legal: {shown}.")
        if name in header[:k]:
            raise InputError(f"{path}, line {line}: column {name!r} stands twice.")
