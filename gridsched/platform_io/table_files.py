"""Rows of a table file, whatever its kind, by content and not by the file's name."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridsched.errors import InputError
from gridsched.files.input_files import read_bytes
from gridsched.platform_io.table_headers import header_score
from gridsched.platform_io.workbook import read_sheets
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
    "top500:rank": "Rank", "top500:system-name": "Name", "top500:computer": "Computer",
    "top500:installation-site-name": "Site", "top500:year": "Year",
    "top500:number-of-processors": "Total Cores", "top500:r-max": "Rmax [GFlop/s]",
    "top500:r-peak": "Rpeak [GFlop/s]", "top500:power": "Power (kW)",
}  # fmt: skip
#: Longer tables are refused.
MAX_ROWS = 100_000


@dataclass(frozen=True)
class RawTable:
    """Header and rows as they stand in the file.

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
        Whether a comma in a number may stand for the decimal point (columns are parted by ``;``).
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
        If the file is missing, empty, too large, binary, or has no recognisable header row, or
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
        raise InputError(
            f"{path}: is a binary file of an unknown kind; CSV, TSV, XLS and XLSX are read."
        )
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
        raise _no_header(path)
    records = _parse(path, text, delimiter)
    return _below_header(records, index, "text", decimal_comma=delimiter == ";")


def _below_header(
    records: Sequence[tuple[int, Sequence[Any]]], index: int, kind: str, *,
    decimal_comma: bool = False,
) -> RawTable:  # fmt: skip
    """Return the table whose header is the record `index`."""
    body = [(line, list(cells)) for line, cells in records[index + 1 :] if _has_content(cells)]
    return RawTable(
        [str(cell).strip() for cell in records[index][1]], [cells for _, cells in body],
        [line for line, _ in body], kind, decimal_comma=decimal_comma, preamble=index,
    )  # fmt: skip


def _parse(
    path: str | Path, text: str, delimiter: str, limit: int | None = None
) -> list[tuple[int, list[str]]]:
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
        raise InputError(
            f"{path}, line {reader.line_num}: not readable as text: {error}."
        ) from None
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
