"""The Standard Workload Format of the Parallel Workloads Archive: logs in, logs out.

Eighteen numbers a line, separated by blanks, -1 where something is unknown; lines that begin with
a semicolon are comments, those of the form ``; Key: value`` the header.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import available_timezones

import numpy as np

from gridsched.arrays import Floats
from gridsched.files.input_files import in_blocks
from gridsched.files.output_files import write_whole
from gridsched.model.calendar import Calendar, offset_name, seconds_of, time_zone
from gridsched.workloads.traces.job_table import (
    LARGEST_FIELD,
    MOST_DIGITS,
    NOT_OF_THE_FORMAT,
    JobRows,
    JobTable,
    plain_number,
)
from gridsched.workloads.traces.log_lines import numbered_lines

#: Fields of a line, by position (from 0).
JOB, SUBMIT, RUN, ALLOCATED, REQUESTED, REQUESTED_TIME, STATUS = 0, 1, 3, 4, 7, 8, 10
#: Field of the job that one follows, and of the time from that one's end to its submission [s].
PRECEDING, THINK_TIME = 16, 17
#: Field of the memory that was asked for [KB for each processor].
MEMORY = 9
#: What names of users, groups, queues and partitions are called, and their fields.
NAMED = {"user": 11, "group": 12, "queue": 14, "partition": 15}
#: Fields that every line must have: up to the requested time.
LEAST_FIELDS = REQUESTED_TIME + 1
N_FIELDS = 18
#: Status of lines that describe a part of a job, which has another line for the whole.
PARTS = {"2", "3", "4"}
PART = "part of a job that stopped and went on (status 2 to 4)"

_DAY_S = 86_400
#: A whole number as tools write it that keep all columns as floats: ``1.0``, ``-1.0``.
_DECIMALS = re.compile(r"(?<!\S)(-?[0-9]+)\.0+(?!\S)")
_NODE_COUNT = re.compile(r":([0-9]{1,9})x[0-9]+$")


def read_swf(
    path: str | Path, *, nodes_from: int | None = None, tells_memory: bool = False, zone: str | None = None
) -> JobTable:
    """Read a log, plain or compressed by gzip, line by line.

    Parameters
    ----------
    path : path
    nodes_from : int, optional
        Field (from 1) that holds the number of nodes instead of fields 5 and 8: a number, or a
        text that ends with ``:NODESxCORES`` as in Frontier's logs. -1 is the last field.
    tells_memory : bool
        Whether the table has the memory of each processor, as ``processor_kb``.
    zone : str, optional
        Time zone of the log's calendar, see `calendar_of_header`.

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
    one that describes a part of a job that was stopped and went on: another describes the whole.
    """
    named = {**NAMED, "processor_kb": MEMORY} if tells_memory else NAMED
    rows = JobRows(path, tuple(named))
    header: dict[str, str] = {}
    for block in in_blocks(_job_lines(path, header)):
        _add_all(rows, block, nodes_from, named)
    needs = f"no line of the Standard Workload Format; it needs at least {LEAST_FIELDS} numbers separated by blanks."
    return replace(rows.table(needs, header=header), calendar=calendar_of_header(header, zone))


def _job_lines(path: str | Path, header: dict[str, str]) -> Iterator[tuple[int, list[str]]]:
    """Yield number and fields of each line of a job; what comments state goes to `header`."""
    for number, text in numbered_lines(Path(path)):
        if text.startswith(";"):
            key, colon, value = text.removeprefix(";").partition(":")
            if colon and key.lstrip()[:1].isalpha():
                header.setdefault(key.strip(), value.strip())
        elif fields := (_DECIMALS.sub(r"\1", text) if ".0" in text else text).split():
            yield number, fields


def header_number(header: Mapping[str, str], key: str) -> int | None:
    """Return a whole number of the header; None where it has none."""
    text = header.get(key, "").split()
    return int(text[0]) if text and text[0].lstrip("-").isdecimal() and len(text[0]) <= MOST_DIGITS else None


def calendar_of_header(header: Mapping[str, str], zone: str | None = None) -> Calendar | None:
    """Return the calendar by the header's ``UnixStartTime``, None without it.

    The zone is `zone`, else that of ``TimeZoneString`` (``Europe/Paris``), else so far from UTC as ``TimeZone``
    states [s], else UTC.
    """
    start, offset_s = (header_number(header, key) for key in ("UnixStartTime", "TimeZone"))
    if start is None or not 0 <= start <= LARGEST_FIELD:
        return None
    if zone is None and (named := header.get("TimeZoneString", "").strip()) and named in available_timezones():
        zone = named
    if zone is None:
        zone = offset_name(offset_s) if offset_s is not None and abs(offset_s) < _DAY_S else "UTC"
    return Calendar(float(start), zone)


def _add_all(
    rows: JobRows, lines: Sequence[tuple[int, list[str]]], nodes_from: int | None, named: Mapping[str, int]
) -> None:
    """Add the jobs of lines by columns; one by one where any of them is not of the format."""
    jobs = [(number, fields) for number, fields in lines if len(fields) <= STATUS or fields[STATUS] not in PARTS]
    try:
        columns = _columns([fields for _, fields in jobs], nodes_from, named.values())
        rows.extend([number for number, _ in jobs], *columns)
    except (ValueError, IndexError):
        for number, fields in lines:
            _add(rows, number, fields, nodes_from, named)
        return
    if len(jobs) < len(lines):
        for number, fields in lines:
            if len(fields) > STATUS and fields[STATUS] in PARTS:
                rows.drop(number, PART)
    for number, fields in jobs:
        if len(fields) > PRECEDING and fields[PRECEDING] != "-1":
            _need(rows, number, fields)


def _columns(
    lines: Sequence[list[str]], nodes_from: int | None, named: Iterable[int]
) -> tuple[list[int], Floats, Floats, Floats, Floats, list[list[str]]]:
    """Return what `_row` does of each line, by columns.

    Raises
    ------
    ValueError, IndexError
        If a line is not of the format, or has not all fields.
    """
    submit, run, allocated, requested, requested_time = (
        np.array([float(fields[k]) for fields in lines]) for k in (SUBMIT, RUN, ALLOCATED, REQUESTED, REQUESTED_TIME)
    )
    width = np.where(allocated > 0, allocated, requested)
    if nodes_from is not None:
        place = nodes_from - 1 if nodes_from > 0 else nodes_from
        width = np.array([_nodes(fields[place]) for fields in lines])
    names = []
    for k in named:
        texts = [fields[k] for fields in lines]
        known = {text: "" if text == "-1" else text for text in set(texts)}
        names.append([known[text] for text in texts])
    return [int(fields[JOB]) for fields in lines], submit, run, width, requested_time, names


def _add(rows: JobRows, number: int, fields: list[str], nodes_from: int | None, named: Mapping[str, int]) -> None:
    """Add the job of a line, or leave it out."""
    try:
        if len(fields) > STATUS and fields[STATUS] in PARTS:
            rows.drop(number, PART)
        else:
            rows.add(number, *_row(fields, nodes_from, named.values()))
            _need(rows, number, fields)
    except (ValueError, IndexError):
        rows.drop(number, NOT_OF_THE_FORMAT)


def _need(rows: JobRows, number: int, fields: list[str]) -> None:
    """Let the job of a line wait for the one that it follows."""
    if (follows := _preceding(fields)) is not None:
        rows.dependencies.need(number, follows[0], delay_s=follows[1])


def _row(
    fields: list[str], nodes_from: int | None, named: Iterable[int]
) -> tuple[str, float, float, float, float, list[str]]:
    """Return (job, submission, run time, width, requested time, names) of a line.

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
    names = [fields[k] if k < len(fields) and fields[k] != "-1" else "" for k in named]
    return str(int(fields[JOB])), submit, run, width, requested_time, names


def _preceding(fields: list[str]) -> tuple[str, float] | None:
    """Return the number of the job that one follows, and how long after its end [s]; None without."""
    if len(fields) <= PRECEDING or fields[PRECEDING] == "-1":
        return None
    try:
        job, think_s = int(fields[PRECEDING]), float(fields[THINK_TIME]) if len(fields) > THINK_TIME else 0.0
    except ValueError:  # some logs have other things there
        return None
    return (str(job), max(think_s, 0.0)) if job > 0 and think_s <= LARGEST_FIELD else None


def _nodes(text: str) -> float:
    """Return the number of nodes of a field: ``250`` or ``frontier:excl:250x112``."""
    match = _NODE_COUNT.search(text)
    return float(match[1] if match else text)


def _calendar_entries(jobs: JobTable) -> dict[str, str]:
    """Return the entries of a header that `calendar_of_header` reads, where the log's zone is known."""
    begin_s = None if jobs.calendar is None else jobs.calendar.begin_unix_s
    if jobs.calendar is None or begin_s is None or "UnixStartTime" in jobs.header:
        return {}
    zone = str(jobs.calendar.zone)
    offset = seconds_of(datetime.fromtimestamp(0, UTC).replace(tzinfo=None), time_zone(zone, "the log"))
    entry = {"TimeZoneString": zone} if zone in available_timezones() else {"TimeZone": str(round(-offset))}
    return {"UnixStartTime": str(math.floor(begin_s)), **entry}


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
    header = {"Version": "2.2", **jobs.header, **_calendar_entries(jobs)}
    text = [f"; {key}: {value}" for key, value in header.items()]
    rows = zip(
        jobs.job.tolist(),
        jobs.submit_time_s.tolist(),
        jobs.run_time_s.tolist(),
        jobs.width.tolist(),
        jobs.with_limits().requested_time_s.tolist(),
        strict=True,
    )
    for job, submit, run, width, requested in rows:
        fields: list[float] = [-1] * N_FIELDS
        fields[JOB], fields[SUBMIT], fields[RUN] = job, submit, run
        fields[ALLOCATED] = fields[REQUESTED] = width
        fields[REQUESTED_TIME] = -1 if math.isnan(requested) else requested
        text.append(" ".join(str(plain_number(value)) for value in fields))
    write_whole(path, "\n".join(text) + "\n", force=force)
