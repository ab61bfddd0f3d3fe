"""CSV tables: columns out with every digit, columns in with every value checked."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import InputError
from gridsched.files.input_files import read_text
from gridsched.model.limits import LARGEST_RESULT

#: Larger files are refused: the longest one of ten million tasks has about a gigabyte.
MAX_BYTES = 4 << 30

Kind = Literal["integer", "number", "number or empty", "text"]


def csv_text(columns: Mapping[str, Iterable]) -> str:
    """Return a CSV table: header, then one line a row.

    Parameters
    ----------
    columns : mapping of str to iterable
        Columns of equal length. Numbers are written so that they read back exactly; nan and None
        become empty fields, booleans 0 and 1.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*map(_printable, columns.values()), strict=True))
    return stream.getvalue()


def _printable(column: Iterable) -> list:
    if isinstance(column, np.ndarray):
        if column.dtype == bool:
            column = column.astype(np.int64)
        is_float = column.dtype.kind == "f"
        column = column.tolist()
        if not is_float:
            return column
    return ["" if value is None or value != value else value for value in column]


def read_table(path: Path, kinds: Mapping[str, Kind]) -> dict[str, NDArray | list[str]]:
    """Read the named columns of a CSV file; further columns are left alone.

    Parameters
    ----------
    path : Path
    kinds : mapping of str to str
        Kind of each column that must be there. Numbers must be finite; an empty field of
        ``number or empty`` is nan.

    Returns
    -------
    dict of str to ndarray (int64 or float64) or list of str

    Raises
    ------
    InputError
        Naming the file, the line, the column and what was found.
    """
    header, rows = _rows(path)
    missing = [name for name in kinds if name not in header]
    if missing:
        raise InputError(f"{path}: line 1: column {missing[0]!r} is missing.")
    for line, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise InputError(
                f"{path}: line {line}: {len(row)} fields where the header has {len(header)}."
            )
    table = list(zip(*rows, strict=True)) if rows else [()] * len(header)
    return {name: _column(path, name, kind, table[header.index(name)])
            for name, kind in kinds.items()}  # fmt: skip


def _rows(path: Path) -> tuple[list[str], list[list[str]]]:
    text = read_text(path, MAX_BYTES)
    try:
        header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    except csv.Error as error:
        raise InputError(f"{path}: is not a CSV file: {error}.") from None
    except ValueError:
        raise InputError(f"{path}: is empty; a header line is needed.") from None
    return header, rows


def _column(path: Path, name: str, kind: Kind, fields: tuple[str, ...]) -> NDArray | list[str]:
    if kind == "text":
        return list(fields)
    try:
        if kind == "integer":
            return np.array(list(map(int, fields)), dtype=np.int64)
        if kind == "number or empty":
            fields = [field or "nan" for field in fields]
        values = np.array(list(map(float, fields)), dtype=np.float64)
    except (ValueError, OverflowError):
        values = None
    if values is None or not _are_legal(values, kind):
        raise InputError(_first_fault(path, name, kind, fields))
    return values


def _are_legal(values: NDArray[np.float64], kind: Kind) -> bool:
    within = np.abs(values) <= LARGEST_RESULT
    return bool((within | (np.isnan(values) & (kind == "number or empty"))).all())


def _first_fault(path: Path, name: str, kind: Kind, fields: Iterable[str]) -> str:
    for line, field in enumerate(fields, start=2):
        try:
            number = (int if kind == "integer" else float)(field)
        except ValueError:
            number = math.nan
        most = 2**63 - 1 if kind == "integer" else LARGEST_RESULT
        is_legal = abs(number) <= most
        if not is_legal and not (kind == "number or empty" and field == "nan"):
            need = "a whole number" if kind == "integer" else "a finite number"
            return f"{path}: line {line}: column {name!r} is {field!r}; it must be {need}."
    return f"{path}: column {name!r} holds a value that is not {kind}."
