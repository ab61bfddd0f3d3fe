"""Sheets of XLS and XLSX files, read by a child process with limits on memory and time."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from gridsched.errors import InputError, MissingDependency
from gridsched.platform_io import workbook_child

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
        If the content is no workbook, too large, or breaks its reader.
    MissingDependency
        If python-calamine is not installed.
    """
    if importlib.util.find_spec("python_calamine") is None:
        raise MissingDependency(
            f"{path}: is a spreadsheet; reading it needs: pip install python-calamine"
        )
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
        raise _unreadable(
            path, f"its reader broke off; it may use {MEMORY // 2**20:,} MB and {CPU_S} s"
        )
    if text.startswith("error: "):
        raise _unreadable(path, text.removeprefix("error: "))
    return json.loads(text)


def _unreadable(path: str | Path, reason: str) -> InputError:
    return InputError(f"{path}: not readable as a spreadsheet: {reason.rstrip('.')}.")
