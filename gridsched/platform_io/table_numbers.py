"""Cells of a table as numbers and texts."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import InputError
from gridsched.model.limits import LARGEST, SMALLEST
from gridsched.platform_io.table_files import RawTable
from gridsched.platform_io.table_headers import Column

_UNKNOWN = {"", "-", "--", "n/a", "na", "nan", "none", "null", "?"}
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")


def cell_number(cell: Any, *, decimal_comma: bool = False) -> float:
    """Return a cell as a float, nan for the usual marks of a missing value.

    Raises
    ------
    ValueError
        If it is neither 0 nor a number from `SMALLEST` to `LARGEST`.
    """
    if isinstance(cell, (int, float)) and not isinstance(cell, bool):
        value = float(cell)
    else:
        text = str(cell).strip().replace("\u00a0", "")
        if text.lower() in _UNKNOWN:
            return math.nan
        if decimal_comma:
            text = text.replace(",", ".", 1) if text.count(",") == 1 else text
        elif _THOUSANDS.fullmatch(text):
            text = text.replace(",", "")
        value = float(text)
    if value < 0 or value > LARGEST or 0 < value < SMALLEST:
        raise ValueError("out of range")
    return value


def number_column(path: str | Path, raw: RawTable, column: Column | None) -> NDArray[np.float64]:
    """Return a column as floats, nan where it is missing.

    Raises
    ------
    InputError
        If a cell is no finite number of 0 or more; the message names line and column.
    """
    values = np.full(len(raw.rows), np.nan)
    if column is None:
        return values
    for k, (row, line) in enumerate(zip(raw.rows, raw.lines, strict=True)):
        cell = row[column.index] if column.index < len(row) else ""
        try:
            values[k] = cell_number(cell, decimal_comma=raw.decimal_comma)
        except ValueError:
            raise InputError(
                f"{path}, line {line}: column {column.header!r} is {str(cell)[:40]!r}; a number of "
                f"0 to {LARGEST:g}, or an empty cell, is legal."
            ) from None
    return values


def text_column(raw: RawTable, column: Column | None) -> list[str]:
    """Return a column as texts without blanks around them, empty where it is missing."""
    if column is None:
        return [""] * len(raw.rows)
    return [str(row[column.index]).strip() if column.index < len(row) else "" for row in raw.rows]
