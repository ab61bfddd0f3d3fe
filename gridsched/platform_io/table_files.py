"""Rows and cells of a table file, whatever its kind, by content and not by the file's name."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gridsched.arrays import Floats
from gridsched.errors import InputError
from gridsched.extras import check_installed
from gridsched.files.foreign_files import foreign_kind
from gridsched.files.input_files import read_bytes
from gridsched.model.limits import LARGEST, SMALLEST
from gridsched.platform_io import workbook_child
from gridsched.platform_io.table_headers import Column, header_score
from gridsched.platform_io.xml_document import parse_xml

#: Larger files are refused; the longest real list has 500 rows and 0.3 MB.
MAX_BYTES = 64 * 2**20
#: The header is looked for in this many rows; lists start with one or two lines of text.
HEADER_WITHIN = 30
_LEAST_SCORE = 3
_DELIMITERS = ",\t;|:"
#: Element of a machine in the XML of top500.org -> heading of its column; Rmax and Rpeak are in
#: GFlop/s, power in kW.
_XML_COLUMNS = {
    "top500:rank": "Rank",
    "top500:system-name": "Name",
    "top500:computer": "Computer",
    "top500:installation-site-name": "Site",
    "top500:year": "Year",
    "top500:number-of-processors": "Total Cores",
    "top500:r-max": "Rmax [GFlop/s]",
    "top500:r-peak": "Rpeak [GFlop/s]",
    "top500:power": "Power (kW)",
}
#: Longer tables are refused.
MAX_ROWS = 100_000


@dataclass(frozen=True)
class RawTable:
    """Header and rows as they are in the file.

    Attributes
    ----------
    headers : list of str
        Column names, blanks and duplicates included.
    rows : list of list
        Cells below the header: text, or numbers where the file is a spreadsheet.
    lines : list of int
        Line or sheet row of each row, from 1.
    kind : str
        What the content is: ``text``, ``spreadsheet`` or ``xml``, where a line is a machine's
        number.
    decimal_comma : bool
        Whether a comma in a number may be the decimal point (columns are separated by ``;``).
    preamble : int
        Rows above the header.
    """

    headers: list[str]
    rows: list[list[Any]]
    lines: list[int]
    kind: str
    decimal_comma: bool = False
    preamble: int = 0


def read_raw_table(path: str | Path) -> RawTable:
    """Return the table in a CSV, TSV, XLS or XLSX file, or in the XML of a TOP500 list.

    Raises
    ------
    InputError
        If the file is missing, empty, too large, binary, or has no recognizable header row, or
        more than `MAX_ROWS` rows.
    """
    data = read_bytes(path, MAX_BYTES, "a table of machines")
    if data.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        return _from_spreadsheet(path, data)
    if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") and b"top500:list" in data[:4096]:
        return _from_top500_xml(path, data)
    return _from_text(path, _decode(path, data))


def _decode(path: str | Path, data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encodings = ["utf-16"]
    elif b"\0" in data:
        raise InputError(f"{path}: is a binary file of an unknown kind; CSV, TSV, XLS and XLSX are read.")
    else:
        encodings = ["utf-8-sig", "cp1252", "latin-1"]
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        return text.replace("\r\n", "\n").replace("\r", "\n")
    raise InputError(f"{path}: the text has no readable encoding; save it as UTF-8.")


def _from_text(path: str | Path, text: str) -> RawTable:
    best: tuple[int, str, int] = (0, ",", 0)
    for delimiter in _DELIMITERS:
        head = _parse(path, text, delimiter, HEADER_WITHIN)
        index, score = _find_header([cells for _, cells in head])
        if score > best[0]:
            best = (score, delimiter, index)
    score, delimiter, index = best
    if score < _LEAST_SCORE:
        said = foreign_kind(text)
        raise InputError(f"{path}: {said}") if said else _no_header(path)
    records = _parse(path, text, delimiter)
    return _below_header(records, index, "text", decimal_comma=delimiter == ";")


def _below_header(
    records: Sequence[tuple[int, Sequence[Any]]], index: int, kind: str, *, decimal_comma: bool = False
) -> RawTable:
    """Return the table whose header is the record `index`."""
    body = [(line, list(cells)) for line, cells in records[index + 1 :] if _has_content(cells)]
    return RawTable(
        [str(cell).strip() for cell in records[index][1]],
        [cells for _, cells in body],
        [line for line, _ in body],
        kind,
        decimal_comma=decimal_comma,
        preamble=index,
    )


def _parse(path: str | Path, text: str, delimiter: str, limit: int | None = None) -> list[tuple[int, list[str]]]:
    # Real files hold inch marks and stray quotes, so the csv module reads leniently.
    reader = csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter)
    records: list[tuple[int, list[str]]] = []
    try:
        for cells in reader:
            records.append((reader.line_num, cells))
            if limit is not None and len(records) >= limit:
                break
            if len(records) > MAX_ROWS:
                raise InputError(
                    f"{path}, line {reader.line_num}: more than {MAX_ROWS:,} rows; a table of "
                    "machines has at most so many."
                )
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: not readable as text: {error}.") from None
    return records


def _from_spreadsheet(path: str | Path, data: bytes) -> RawTable:
    for rows in read_sheets(path, data, MAX_ROWS):
        records = list(enumerate(rows, start=1))
        head = [[str(cell) for cell in cells] for _, cells in records[:HEADER_WITHIN]]
        index, score = _find_header(head)
        if score >= _LEAST_SCORE:
            return _below_header(records, index, "spreadsheet")
    raise _no_header(path)


def _from_top500_xml(path: str | Path, data: bytes) -> RawTable:
    """Return a list as top500.org gives it in XML, a row for each machine."""
    root = parse_xml(path, data, with_text=_XML_COLUMNS)
    rows = []
    for site in root.walk():
        if site.tag == "top500:site":
            texts = {each.tag: "".join(each.text or ()).strip() for each in site.walk()}
            rows.append([texts.get(tag, "") for tag in _XML_COLUMNS])
    if not rows:
        raise InputError(f"{path}: a list of top500.org without any <top500:site>.")
    return RawTable(list(_XML_COLUMNS.values()), rows, list(range(1, len(rows) + 1)), "xml")


def _has_content(cells: Sequence[Any]) -> bool:
    """Whether a row is neither empty nor a comment."""
    filled = [text for cell in cells if (text := str(cell).strip())]
    return bool(filled) and not filled[0].startswith("#")


def _find_header(rows: Sequence[Sequence[str]]) -> tuple[int, int]:
    scores = [header_score(row) for row in rows]
    best = max(scores, default=0)
    return (scores.index(best) if scores else 0), best


def _no_header(path: str | Path) -> InputError:
    return InputError(
        f"{path}: no header row found in the first {HEADER_WITHIN} rows. A Green500 or TOP500 list "
        "names columns such as Rank, Mflops/Watt, Power, Rmax, Computer; our own format "
        "name,speed,efficiency,idle_power_w."
    )


LEGAL_NUMBER = f"a number of 0 to {LARGEST:g}, or an empty cell,"
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


def number_column(
    path: str | Path, raw: RawTable, column: Column | None, faults: dict[int, str] | None = None
) -> Floats:
    """Return a column as floats, nan where it is missing.

    Parameters
    ----------
    path : str or Path
        The file, for messages.
    raw : RawTable
    column : Column, optional
    faults : dict, optional
        Receives what is wrong in a row, by its place, instead of an error at the first.

    Raises
    ------
    InputError
        If a cell is not a finite number of 0 or more; the message names line and column.
    """
    values = np.full(len(raw.rows), np.nan)
    if column is None:
        return values
    for k, (row, line) in enumerate(zip(raw.rows, raw.lines, strict=True)):
        cell = row[column.index] if column.index < len(row) else ""
        try:
            values[k] = cell_number(cell, decimal_comma=raw.decimal_comma)
        except ValueError:
            found = f"line {line}: column {column.header!r} is {str(cell)[:40]!r}"
            if faults is None:
                raise InputError(f"{path}, {found}; {LEGAL_NUMBER} is allowed.") from None
            faults.setdefault(k, found)
    return values


def text_column(raw: RawTable, column: Column | None) -> list[str]:
    """Return a column as texts without blanks around them, empty where it is missing."""
    if column is None:
        return [""] * len(raw.rows)
    return [str(row[column.index]).strip() if column.index < len(row) else "" for row in raw.rows]


#: What the child may use: address space [byte], CPU time and wall time [s].
MEMORY, CPU_S, WALL_S = 1 << 30, 20, 60
#: Larger sheets are refused.
MAX_CELLS = 4_000_000


def read_sheets(path: str | Path, data: bytes, most_rows: int) -> list[list[list[Any]]]:
    """Return the rows of each sheet of a workbook.

    Parameters
    ----------
    path : str or Path
        The file, for messages.
    data : bytes
        Its content.
    most_rows : int
        Longer sheets are refused.

    Raises
    ------
    InputError
        If the content is not a workbook, too large, or breaks its reader.
    MissingDependency
        If python-calamine is not installed.
    """
    check_installed("python_calamine", f"{path}: spreadsheets")
    limits = map(str, (MEMORY, CPU_S, most_rows, MAX_CELLS))
    command = [sys.executable, "-I", workbook_child.__file__, *limits]
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=WALL_S, check=False)
    except subprocess.TimeoutExpired:
        raise _unreadable(path, f"it takes longer than {WALL_S} s to read") from None
    except OSError as error:
        raise InputError(f"{path}: no process can be started: {error.strerror}.") from None
    text = done.stdout.decode(errors="replace")
    if done.returncode or not text:
        raise _unreadable(path, f"its reader broke off; it may use {MEMORY // 2**20:,} MB and {CPU_S} s")
    if text.startswith("error: "):
        raise _unreadable(path, text.removeprefix("error: "))
    return json.loads(text)


def _unreadable(path: str | Path, reason: str) -> InputError:
    return InputError(f"{path}: not readable as a spreadsheet: {reason.rstrip('.')}.")
