"""CSV tables: columns out with every digit, columns in with every value checked."""

from __future__ import annotations

import csv
import io
import re
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gridsched.arrays import Integers
from gridsched.errors import InputError, did_you_mean
from gridsched.files.input_files import in_blocks, read_text
from gridsched.model.limits import LARGEST, MAX_NAME, SMALLEST

_INT64 = 2**63 - 1
#: Longer cells are cut in messages.
_SHOWN = 80
#: Texts are cut into lines by so many characters and the rest of the line.
_PIECE = 1 << 16
T = TypeVar("T")


#: A text that begins so is a formula to a spreadsheet; numbers may begin with a sign.
_FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.]*([eE][+-]?\d+)?$)")


def csv_text(columns: Mapping[str, Iterable[Any]], *, for_people: bool = False) -> str:
    """Return a CSV table: header, then one line a row.

    Parameters
    ----------
    columns : mapping of str to iterable
        Columns of equal length. Numbers are written so that they read back exactly; nan and None
        become empty fields, booleans 0 and 1.
    for_people : bool
        Write a quote before texts that a spreadsheet would take for formulas, so that none of
        another's making is run; not for files that are read back.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    cells = [_printable(column) for column in columns.values()]
    if for_people:
        cells = [[_no_formula(cell) for cell in column] for column in cells]
    writer.writerow(map(_no_formula, columns) if for_people else columns)
    writer.writerows(zip(*cells, strict=True))
    return stream.getvalue()


def _no_formula(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def _printable(column: Any) -> list[Any]:
    if hasattr(column, "dtype"):  # an array, or a frame's column
        if column.dtype == bool:
            column = column.astype(np.int64)
        is_whole = column.dtype.kind in "iu"
        cells: list[Any] = column.tolist()
        if is_whole:
            return cells
        column = cells
    return ["" if value is None or value != value else value for value in column]


class Column(ABC):
    """What the cells of a column may hold: `Number`, `Whole` or `Text`."""

    @property
    @abstractmethod
    def default(self) -> float | str | None:
        """Value of all cells where the column is missing; None: it is needed."""

    @abstractmethod
    def read(self, text: str) -> float | str:
        """Return the value of a cell; `ValueError` states what is allowed."""

    def read_all(self, texts: Sequence[str]) -> Sequence[float | str]:
        """Return the values of many cells, without blanks around them; `ValueError` where one is not allowed."""
        return [self.read(text.strip()) for text in texts]


@dataclass(frozen=True)
class Number(Column):
    """A column of finite numbers.

    Attributes
    ----------
    least, most : float
        Limits of a value.
    above : bool
        Whether it must be greater than `least`.
    default : float or None
        Value of an empty cell, and of all cells where the column is missing; None: it is needed.
    """

    least: float = 0.0
    most: float = LARGEST
    above: bool = False
    default: float | None = None

    def read(self, text: str) -> float:
        """Return the value of a cell; `ValueError` states what is allowed."""
        if not text and self.default is not None:
            return self.default
        value = _parsed(float, text)
        if value is None or not self.least <= value <= self.most or (self.above and value < self.least + SMALLEST):
            sign = ">" if self.above else ">="
            raise ValueError(f"it must be a finite number {sign} {self.least:g}, at most {self.most:g}")
        return value

    def read_all(self, texts: Sequence[str]) -> Sequence[float | str]:
        """Return the values of many cells; `ValueError` where one is not allowed, or empty."""
        values = list(map(float, texts))
        least = self.least + SMALLEST if self.above else self.least
        if not all(least <= value <= self.most for value in values):
            raise ValueError
        return values


@dataclass(frozen=True)
class Whole(Column):
    """A column of whole numbers from `least` to `most`; `default` as of `Number`."""

    least: int = -(2**63)
    most: int = _INT64
    default: int | None = None

    def read(self, text: str) -> int:
        """Return the value of a cell; `ValueError` states what is allowed."""
        if not text and self.default is not None:
            return self.default
        value = _parsed(int, text)
        if value is None:
            raise ValueError("it must be a whole number")
        if not self.least <= value <= self.most:
            raise ValueError(
                f"it must lie from {self.least} to {self.most}"
                if self.most < _INT64
                else f"it must be at least {self.least} and fit 64 bits"
            )
        return value

    def read_all(self, texts: Sequence[str]) -> Sequence[float | str]:
        """Return the values of many cells; `ValueError` where one is not allowed."""
        values = list(map(int, texts))
        if not self.least <= min(values) <= max(values) <= self.most:
            raise ValueError
        return values


@dataclass(frozen=True)
class Text(Column):
    """A column of texts.

    Attributes
    ----------
    is_name : bool
        Whether a cell must not be empty, nor look like a comment.
    default : str or None
        Text of all cells where the column is missing; None: it is needed.
    """

    is_name: bool = False
    default: str | None = None

    def read(self, text: str) -> str:
        """Return a cell; `ValueError` states what is allowed."""
        if self.is_name and (not text or text.startswith("#")):
            raise ValueError("a name that does not begin with '#' is needed")
        if self.is_name and len(text) > MAX_NAME:
            raise ValueError(f"a name has at most {MAX_NAME:,} characters")
        return text


def _parsed(kind: Callable[[str], T], text: str) -> T | None:
    try:
        return kind(text)
    except ValueError:
        return None


_DTYPES = {Number: np.float64, Whole: np.int64, Text: object}


class Table:
    """Checked columns of a CSV file, which know their lines.

    Parameters
    ----------
    path : Path
    columns : mapping of str to Number, Whole or Text
        The columns that the file may have.

    Attributes
    ----------
    lines : array of int
        Line of each row.
    """

    def __init__(self, path: Path, columns: Mapping[str, Column]) -> None:
        self.path = path
        self.lines = array("q")
        self._kinds = columns
        self._columns: dict[str, list[Any]] = {name: [] for name in columns}

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, name: str) -> list[Any]:
        return self._columns[name]

    def array(self, name: str) -> NDArray[Any]:
        """Return a column as an array of 64-bit numbers, or of texts."""
        return np.array(self[name], dtype=_DTYPES[type(self._kinds[name])])

    def fail(self, row: int, column: str, legal: str) -> InputError:
        """Return the error that shows the content of a cell and what is allowed."""
        return _fault(self.path, self.lines[row], column, str(self[column][row]), legal)

    def refuse_repeats(self, columns: Sequence[str]) -> None:
        """Raise `InputError` where rows have equal values in all of `columns`."""
        keys = self[columns[0]] if len(columns) == 1 else list(zip(*(self[name] for name in columns), strict=True))
        if len(set(keys)) == len(keys):
            return
        first: dict[Any, int] = {}
        for row, key in enumerate(keys):
            before = first.setdefault(key, row)
            if before != row:
                legal = f"line {self.lines[before]} has the same {', '.join(columns)}"
                raise self.fail(row, columns[-1], legal)

    def places(self, column: str, names: Iterable[str], owner: object) -> list[int]:
        """Return the place of each text of a column among `names`, which `owner` has.

        Raises
        ------
        InputError
            Naming the first text that is not among them.
        """
        place = {name: k for k, name in enumerate(names)}
        for row, text in enumerate(self[column]):
            if text not in place:
                legal = f"{owner} does not have it. {did_you_mean(text, place)}"
                raise self.fail(row, column, legal.rstrip(" ."))
        return [place[text] for text in self[column]]


@dataclass(frozen=True)
class Format:
    """A format of CSV files, which are read and written by one table of its columns.

    Attributes
    ----------
    columns : mapping of str to Number, Whole or Text
        What the cells of each column may hold.
    key : tuple of str
        Columns in which no two rows have equal values.
    rows : str
        What its rows are, for messages, where a file without rows is refused.
    trailing_commas : bool
        Whether empty cells behind the last column are passed over.
    """

    columns: Mapping[str, Column]
    key: tuple[str, ...] = ()
    rows: str = ""
    trailing_commas: bool = False

    def named(self, *values: Any) -> dict[str, Any]:
        """Return the values of the first columns by name, as `csv_text` writes them."""
        return dict(zip(self.columns, values, strict=False))

    def read(self, path: str | Path, text: str | None = None, **others: Column) -> Table:
        """Read a file whose header names its columns, in any order.

        Lines that start with ``#`` and blank lines are passed over, and so are blanks around cells.

        Parameters
        ----------
        path : path
        text : str, optional
            Content of the file, where it has been read already.
        **others : Number, Whole or Text
            Columns that may hold something else in this file.

        Raises
        ------
        InputError
            Naming the line: if the header lacks a column or has an unknown or repeated one, a row
            has too many or too few cells, a cell is not allowed, or a row repeats an earlier one.
        """
        table = _read(Path(path), {**self.columns, **others}, text, trailing_commas=self.trailing_commas)
        if self.key:
            table.refuse_repeats(self.key)
        if self.rows and not len(table):
            raise InputError(f"{path}: no {self.rows}; at least one line is needed.")
        return table


def _read(path: Path, columns: Mapping[str, Column], text: str | None, *, trailing_commas: bool) -> Table:
    table = Table(path, columns)
    rows = _numbered_rows(table.path, read_text(path) if text is None else text)
    line, header = next(rows, (1, []))
    header = [name.strip() for name in header]
    while trailing_commas and header[-1:] == [""]:
        header.pop()
    _check_header(table.path, line, header, columns)
    plan = [(name, columns[name]) for name in header]
    for block in in_blocks(rows):
        try:  # by columns, where nothing is wrong
            by_column = [
                column.read_all(texts)
                for (_, column), texts in zip(plan, zip(*(cells for _, cells in block), strict=True), strict=True)
            ]
        except ValueError:
            for line, cells in block:
                _read_row(table, plan, line, cells, trailing_commas=trailing_commas)
        else:
            for name, values in zip(header, by_column, strict=True):
                table[name].extend(values)
            table.lines.extend(line for line, _ in block)
    for name, column in columns.items():
        if name not in header:
            table[name].extend([column.default] * len(table))
    return table


def _read_row(
    table: Table, plan: Sequence[tuple[str, Column]], line: int, cells: list[str], *, trailing_commas: bool
) -> None:
    """Add a row to a table; raise `InputError` where it is none."""
    while trailing_commas and len(cells) > len(plan) and not cells[-1].strip():
        cells.pop()
    if len(cells) != len(plan):
        raise InputError(f"{table.path}, line {line}: {len(cells)} cells where the header has {len(plan)}.")
    for (name, column), cell in zip(plan, cells, strict=True):
        try:
            table[name].append(column.read(cell.strip()))
        except ValueError as error:
            raise _fault(table.path, line, name, cell.strip(), str(error)) from None
    table.lines.append(line)


def _fault(path: Path, line: int, column: str, found: str, legal: str) -> InputError:
    shown = found if len(found) <= _SHOWN else f"{found[:_SHOWN]}..."
    return InputError(f"{path}, line {line}: {column} is {shown!r}; {legal}.")


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a text, as `str.splitlines` gives them: some thousand are there at one time."""
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin + _PIECE) + 1 or len(text)
        yield from text[begin:end].splitlines()
        begin = end


def _numbered_rows(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the last line of each row and its cells."""
    line = 1

    def lines() -> Iterator[str]:
        nonlocal line
        for number, content in enumerate(_lines(text), start=1):
            if content.strip() and not content.startswith("#"):
                line = number
                yield content

    try:
        for cells in csv.reader(lines(), strict=True):
            yield line, cells
    except csv.Error as error:
        raise InputError(f"{path}, line {line}: no readable CSV: {error}.") from None


def cells_of_header(path: str | Path, line: str, number: int = 1) -> list[str]:
    """Return the names in a line of CSV, without blanks around them.

    Raises
    ------
    InputError
        If a cell of it is longer than any name, or it is no CSV.
    """
    try:
        return [name.strip() for name in next(csv.reader([line]), [])]
    except csv.Error as error:
        raise InputError(f"{path}, line {number}: no readable CSV: {error}.") from None


#: What other tools write between cells.
_OTHER_MARKS = {";": "semicolons", "\t": "tabs"}


def _check_header(path: Path, line: int, header: list[str], columns: Mapping[str, Column]) -> None:
    header_text = ",".join(columns)
    if not any(header):
        raise InputError(f"{path}: the file is empty; a table is expected, whose header is {header_text}.")
    for name, column in columns.items():
        if name not in header and column.default is None:
            by = next((words for mark, words in _OTHER_MARKS.items() if mark in header[0]), None)
            hint = "" if by is None else f" Its cells are separated by {by}; write commas."
            raise InputError(f"{path}, line {line}: no column {name!r}; the header is {header_text}.{hint}")
    for k, name in enumerate(header):
        if name not in columns:
            hint = did_you_mean(name, columns)
            raise InputError(f"{path}, line {line}: unknown column {name!r}. {hint}Allowed: {header_text}.")
        if name in header[:k]:
            raise InputError(f"{path}, line {line}: column {name!r} appears twice.")


def interval_set(numbers: Integers) -> str:
    """Return ascending numbers as an interval set: ``0-3 7`` for 0, 1, 2, 3 and 7."""
    gaps = np.flatnonzero(np.diff(numbers) != 1)
    first = numbers[np.concatenate([[0], gaps + 1])].tolist()
    last = numbers[np.concatenate([gaps, [len(numbers) - 1]])].tolist()
    return " ".join(str(low) if low == high else f"{low}-{high}" for low, high in zip(first, last, strict=True))
