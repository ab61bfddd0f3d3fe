"""The Standard Workload Format of the Parallel Workloads Archive: logs in, logs out.

Eighteen numbers a line, separated by blanks, -1 where something is unknown; lines that begin with
a semicolon are comments, those of the form ``; Key: value`` the header.
"""

from __future__ import annotations

import gzip
import math
import re
import zlib
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import InputError
from gridsched.files.input_files import check_size
from gridsched.files.output_files import write_whole
from gridsched.workloads.traces.job_table import JobTable, dropped_lines

#: Fields of a line, by position (from 0).
JOB, SUBMIT, RUN, ALLOCATED, REQUESTED, REQUESTED_TIME, STATUS = 0, 1, 3, 4, 7, 8, 10
#: Fields that every line must have: up to the requested time.
LEAST_FIELDS = REQUESTED_TIME + 1
N_FIELDS = 18
#: Larger logs are refused [byte].
MAX_BYTES = 16 << 30
#: A log is no log if it has more lines than this that are none of its format.
MAX_BAD_SHARE = 0.5
#: Largest number that a field may hold [s or nodes].
LARGEST_FIELD = 1e12

#: Status of lines that tell of a part of a job, which has another line for the whole.
PARTS = {"2", "3", "4"}

_HEADER = re.compile(r"^;\s*([A-Za-z][\w .-]*?)\s*:\s*(.*?)\s*$")
_NODE_COUNT = re.compile(r":(\d+)x\d+$")


def read_swf(path: str | Path, *, nodes_from: int | None = None) -> JobTable:
    """Read a log, plain or compressed by gzip, line by line.

    Parameters
    ----------
    path : path
    nodes_from : int, optional
        Field (from 1) that holds the number of nodes instead of fields 5 and 8: a number, or a
        text that ends with ``:NODESxCORES`` as in Frontier's logs. -1 is the last field.

    Returns
    -------
    JobTable
        Jobs that ran, in order of submission; what was left out, and why, is in `dropped`.

    Raises
    ------
    InputError
        If the file cannot be read, or is no such log.

    Notes
    -----
    Allocated processors count; where they are unknown, requested ones. Leading and repeated blanks
    and further fields are fine. A line that is not of the format is dropped and counted, and so is
    one that tells of a part of a job that was stopped and went on: another tells of the whole.
    """
    columns = {name: array("d") for name in ("submit", "run", "width", "requested")}
    jobs, lines = array("q"), array("q")
    header: dict[str, str] = {}
    malformed: list[int] = []
    parts: list[int] = []
    for number, text in _lines(Path(path)):
        if text.startswith(";"):
            found = _HEADER.match(text)
            if found:
                header.setdefault(found[1], found[2])
            continue
        fields = text.split()
        if not fields:
            continue
        try:
            row = _row(fields, nodes_from)
        except (ValueError, IndexError):
            malformed.append(number)
            continue
        if len(fields) > STATUS and fields[STATUS] in PARTS:
            parts.append(number)
            continue
        jobs.append(row[0])
        lines.append(number)
        for column, value in zip(columns.values(), row[1:], strict=True):
            column.append(value)
    if len(malformed) > MAX_BAD_SHARE * (len(malformed) + len(jobs) + len(parts)):
        raise InputError(
            f"{path}, line {malformed[0]}: no line of the Standard Workload Format; it needs at "
            f"least {LEAST_FIELDS} numbers separated by blanks."
        )
    table = JobTable(
        _integers(jobs), _floats(columns["submit"]), _floats(columns["run"]),
        _floats(columns["width"]).astype(np.int64), _floats(columns["requested"]),
        name=str(path), header=header,
        dropped=dropped_lines({
            "not of the format": malformed,
            "part of a job that stopped and went on (status 2 to 4)": parts,
        }),
        lines=_integers(lines),
    )  # fmt: skip
    return table.without(~(table.submit_time_s >= 0), "no submission time").runnable().in_order()


def _row(fields: list[str], nodes_from: int | None) -> tuple[int, float, float, float, float]:
    """Return (job, submission, run time, width, requested time) of a line.

    Raises
    ------
    ValueError, IndexError
        If the line is not of the format.
    """
    if len(fields) < LEAST_FIELDS:
        raise IndexError
    numbers = [float(fields[k]) for k in (SUBMIT, RUN, ALLOCATED, REQUESTED, REQUESTED_TIME)]
    submit, run, allocated, requested, requested_time = numbers
    width = allocated if allocated > 0 else requested
    if nodes_from is not None:
        width = _nodes(fields[nodes_from - 1 if nodes_from > 0 else nodes_from])
    for value in (*numbers, width):
        if not abs(value) <= LARGEST_FIELD:
            raise ValueError
    if width != math.floor(width):
        raise ValueError
    return int(fields[JOB]), submit, run, width, requested_time if requested_time > 0 else math.nan


def _nodes(text: str) -> float:
    """Return the number of nodes of a field: ``250`` or ``frontier:excl:250x112``."""
    found = _NODE_COUNT.search(text)
    return float(found[1] if found else text)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number, text) of the lines of a log; logs are read as they come, never whole."""
    try:
        check_size(path, MAX_BYTES)
        with path.open("rb") as stream:
            is_gzip = stream.read(2) == b"\x1f\x8b"
        with (gzip.open if is_gzip else open)(path, "rt", **_TEXT) as stream:
            for number, text in enumerate(stream, start=1):
                yield number, text.strip()
    except (OSError, EOFError, zlib.error) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path}: cannot be read: {said}.") from None


#: Comments of old logs are in any encoding; numbers are ASCII in all of them.
_TEXT = {"encoding": "utf-8", "errors": "replace"}


def _integers(values: array) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def _floats(values: array) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64)


def write_swf(jobs: JobTable, path: str | Path, *, force: bool = False) -> None:
    """Write jobs as a log that `read_swf` reads back.

    Parameters
    ----------
    jobs : JobTable
        Whole seconds are written without a point, others with every digit.
    path : path
    force : bool
        Whether an existing file may be replaced.

    Raises
    ------
    InputError
        If the file exists already, or cannot be written.
    """
    header = {"Version": "2.2", **jobs.header}
    text = [f"; {key}: {value}" for key, value in header.items()]
    rows = zip(
        jobs.job.tolist(), jobs.submit_time_s.tolist(), jobs.run_time_s.tolist(),
        jobs.width.tolist(), jobs.requested_time_s.tolist(), strict=True,
    )  # fmt: skip
    for job, submit, run, width, requested in rows:
        fields = ["-1"] * N_FIELDS
        fields[JOB], fields[SUBMIT], fields[RUN] = str(job), _number(submit), _number(run)
        fields[ALLOCATED] = fields[REQUESTED] = str(width)
        fields[REQUESTED_TIME] = "-1" if math.isnan(requested) else _number(requested)
        text.append(" ".join(fields))
    write_whole(path, "\n".join(text) + "\n", force=force)


def _number(value: float) -> str:
    return str(int(value)) if value == math.floor(value) else repr(value)
