"""Reads a workbook in a process of its own, as an untrusted file may break its reader.

Run as a script: the workbook comes by standard input, its sheets go to standard output as JSON, or
a line that begins with ``error:``. It loads nothing of gridsched.
"""

from __future__ import annotations

import io
import json
import resource
import sys
from datetime import date, datetime, time, timedelta
from typing import Any


def main(memory: int, cpu_s: int, most_rows: int, most_cells: int) -> str:
    """Return the sheets as JSON, each a list of rows.

    Parameters
    ----------
    memory : int
        Limit of the address space [byte].
    cpu_s : int
        Limit of the CPU time [s].
    most_rows, most_cells : int
        Larger sheets are refused.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    import python_calamine

    data = io.BytesIO(sys.stdin.buffer.read())
    try:
        book = python_calamine.CalamineWorkbook.from_filelike(data)
        return _sheets(book, most_rows, most_cells)
    except (python_calamine.CalamineError, ValueError, OSError, MemoryError) as error:
        return f"error: {' '.join(str(error).split())[:200] or type(error).__name__}"


def _sheets(book: Any, most_rows: int, most_cells: int) -> str:
    sheets = []
    for name in book.sheet_names:
        sheet = book.get_sheet_by_name(name)
        if sheet.total_height > most_rows or sheet.total_height * sheet.total_width > most_cells:
            return (
                f"error: sheet {name[:40]!r} has {sheet.total_height:,} rows and "
                f"{sheet.total_width:,} columns; at most {most_rows:,} rows and {most_cells:,} "
                "cells are read"
            )
        rows = sheet.to_python(skip_empty_area=False)
        sheets.append([[_plain(cell) for cell in row] for row in rows])
    return json.dumps(sheets)


def _plain(cell: Any) -> Any:
    """Return a cell in a type of JSON; whole numbers without a decimal point."""
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    return str(cell) if isinstance(cell, date | datetime | time | timedelta) else cell


if __name__ == "__main__":
    sys.stdout.write(main(*map(int, sys.argv[1:])))
