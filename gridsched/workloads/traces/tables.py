"""Jobs from tables: our own CSV and Parquet, and those of others by a map of their columns."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import numpy as np

from gridsched.errors import InputError, did_you_mean
from gridsched.extras import load
from gridsched.files.csv_files import cells_of_header, csv_text
from gridsched.files.input_files import check_size
from gridsched.files.output_files import write_whole
from gridsched.model.calendar import Calendar, seconds_of, time_zone
from gridsched.model.job_profiles import Profile
from gridsched.model.tasks import MOST_NODES
from gridsched.workloads.traces.dependencies import KINDS
from gridsched.workloads.traces.job_table import NOT_OF_THE_FORMAT, JobRows, JobTable
from gridsched.workloads.traces.log_lines import MAX_BYTES, numbered_lines
from gridsched.workloads.traces.logged_holds import LoggedHolds
from gridsched.workloads.traces.profile_table import read_profiles, write_profiles

#: Columns that name things, and what they are called in `JobTable.attributes`.
NAMED = ("user", "group", "account", "queue", "partition", "qos", "constraint")
NEEDED = ("id", "submit_time_s", "run_time_s", "nodes")
#: Power of a job in one of these: of all nodes, of one node [W], or its energy [J].
POWERS = ("power_w", "node_power_w", "energy_j")
#: When jobs were eligible, and wanted to begin; the name of their array, and how many of its tasks run at once.
HOLDS = ("eligible_time_s", "begin_time_s", "array", "array_limit")
COLUMNS = (*NEEDED, "requested_time_s", "requested_time_min", *NAMED, *POWERS, *KINDS, *HOLDS, "profile")
#: Maps of columns for tables of others: PM100 of Marconi100 (Antici et al. 2023; powers of the whole
#: job every 20 s), F-DATA of Fugaku (Antici et al. 2024; mean power of the whole job).
MAPS: Mapping[str, Mapping[str, str]] = {
    "pm100": {
        "id": "job_id",
        "submit_time_s": "submit_time",
        "eligible_time_s": "eligible_time",
        "run_time_s": "run_time",
        "nodes": "num_nodes_alloc",
        "requested_time_min": "time_limit",
        "user": "user_id",
        "partition": "partition",
        "qos": "qos",
        "power_w": "node_power_consumption",
    },
    "fdata": {
        "id": "jid",
        "submit_time_s": "adt",
        "run_time_s": "duration",
        "nodes": "nnuma",
        "requested_time_s": "elpl",
        "user": "usr",
        "power_w": "avgpcon",
    },
}
#: Conditions as they are written.
_WORDS = {int(kind): word for word, kind in KINDS.items() if word != "aftercorr"}
_MINUTE = 60.0
#: Rows of Parquet files that are held at a time, and that a file may have.
_BATCH, _MOST_ROWS = 65_536, 100_000_000


def read_columns(text: str | None, path: str | Path) -> dict[str, str]:
    """Return which column of a table contains which key, as ``--columns`` specifies it.

    Parameters
    ----------
    text : str, optional
        A name of `MAPS`, pairs ``OURS=THEIRS``, or both, separated by commas; columns that it does not
        name have our names, unless a map is named.
    path : path
        The table, for messages.

    Raises
    ------
    InputError
        If it names something else.
    """
    items = [part.strip() for part in (text or "").split(",") if part.strip()]
    columns = {} if any(item in MAPS for item in items) else {name: name for name in COLUMNS}
    for item in items:
        name, equals, theirs = item.partition("=")
        if not equals and item in MAPS:
            columns |= MAPS[item]
        elif equals and name in COLUMNS and theirs:
            columns[name] = theirs
        else:
            hint = did_you_mean(name, COLUMNS if equals else MAPS)
            legal = f"{', '.join(MAPS)}, or OURS=THEIRS with one of {', '.join(COLUMNS)}"
            raise InputError(f"{path}: --columns {item!r} names no column. {hint}Allowed: {legal}.")
    return columns


def read_table(
    path: str | Path,
    columns: str | None = None,
    *,
    profiles: str | Path | None = None,
    speed: float = 1.0,
    zone: str | None = None,
) -> JobTable:
    """Read jobs from ``.jobs.csv`` (plain or compressed by gzip) or ``.parquet``.

    Parameters
    ----------
    path : path
    columns : str, optional
        See `read_columns`; columns that it does not name are passed over.
    profiles : path, optional
        Table of the profiles that the column ``profile`` names; jobs that name one need no run time, and a table with
        this column needs no ``run_time_s``.
    speed : float
        Of a node, which determines how long a profile computes [flop/s].
    zone : str, optional
        Time zone of dates that have none, see `gridsched.model.calendar.time_zone`.

    Raises
    ------
    InputError
        If the file cannot be read, or lacks a column that is needed.
    """
    column_of = read_columns(columns, path)
    is_parquet = str(path).lower().endswith(".parquet")
    header, values = (_parquet_rows if is_parquet else _csv_rows)(Path(path), list(column_of.values()))
    has_profiles = column_of.get("profile") in header
    for name in NEEDED:
        if name == "run_time_s" and has_profiles:
            continue
        if (theirs := column_of.get(name)) not in header:
            hint = did_you_mean(theirs or name, header)
            raise InputError(f"{path}: no column {theirs or name!r} ({name}). {hint}--columns names it.")
    present = {name: theirs for name, theirs in column_of.items() if theirs in header}
    rows = JobRows(path, [name for name in NAMED if name in present])
    known = _Profiles({} if profiles is None else read_profiles(profiles), speed)
    clock = None if zone is None else time_zone(zone, "--log-zone")
    first: datetime | None = None
    for number, cells in values:
        if cells is None:
            rows.drop(number, NOT_OF_THE_FORMAT)
            continue
        row = {name: cells.get(theirs) for name, theirs in present.items()}
        try:
            stamp = _date(row["submit_time_s"])
            _add(rows, number, row, known, clock)
            first = first or stamp
        except _NoProfile as error:
            rows.drop(number, str(error))
        except (OverflowError, TypeError, ValueError):
            rows.drop(number, NOT_OF_THE_FORMAT)
    table = rows.table(
        "most rows are not of the format; id, times [s] and nodes are needed.", header={}, profiles=known.used
    )
    if first is not None:
        return replace(table, calendar=Calendar.of(first, zone))
    if zone is not None:
        raise InputError(f"{path}: log_zone has no effect: its times are numbers of seconds. Leave it out.")
    return table


def write_table(jobs: JobTable, path: str | Path, *, force: bool = False) -> None:
    """Write jobs as ``.jobs.csv``, with all that is known of them, so that `read_table` reads them back.

    Their profiles, if they have any, go to the file that `files_of_table` names.

    Raises
    ------
    InputError
        If the file exists already, or cannot be written.
    """
    dates = None if jobs.calendar is None else jobs.calendar.dates(jobs.submit_time_s.tolist())
    columns: dict[str, Any] = {
        "id": jobs.ids,
        "submit_time_s": jobs.submit_time_s if dates is None else dates,
        "run_time_s": jobs.run_time_s,
        "nodes": jobs.width,
        "requested_time_s": jobs.requested_time_s,
    }
    columns |= {name: jobs.attributes[name] for name in NAMED if name in jobs.attributes}
    columns |= {} if jobs.holds is None else _columns_of(jobs.holds, None if dates is None else jobs.calendar)
    if len(jobs.power_w):
        columns["power_w"] = jobs.power_w
    if len(jobs.profile):
        names = write_profiles(jobs.profiles, files_of_table(path)[1], force=force)
        columns["profile"] = [names[k] if k >= 0 else "" for k in jobs.profile.tolist()]
    place = {line: k for k, line in enumerate(jobs.lines.tolist())}
    for line, on, kind, delay_s in jobs.after.tolist():
        if line in place and on in place:
            cells = columns.setdefault(_WORDS[kind], [""] * len(jobs))
            delay = f"+{delay_s / _MINUTE!r}" if delay_s else ""
            cells[place[line]] += f"{' ' * bool(cells[place[line]])}{jobs.ids[place[on]]}{delay}"
    for block in jobs.after_arrays:
        delay = f"+{block.delay_s / _MINUTE!r}" if block.delay_s else ""
        others = " ".join(f"{name}{delay}" for name in _names_of(jobs, [place[on] for on in block.on if on in place]))
        cells = columns.setdefault(_WORDS[block.kind], [""] * len(jobs))
        for k in (place[line] for line in block.line.tolist() if line in place):
            cells[k] += f"{' ' * bool(cells[k])}{others}"
    write_whole(path, csv_text(columns), force=force)


def files_of_table(path: str | Path) -> tuple[Path, Path]:
    """Return a table ``NAME.jobs.csv`` and that of the profiles that it names, ``NAME.profiles.toml`` beside it."""
    path = Path(path)
    return path, path.with_name(f"{path.name[: -len('.jobs.csv')]}.profiles.toml")


def _names_of(jobs: JobTable, tasks: Sequence[int]) -> list[str]:
    """Return what names some jobs: the number of an array, where they are all of its tasks that there are."""
    names = [str(jobs.ids[k]) for k in tasks]
    arrays = {name.partition("_")[0] for name in names}
    if len(arrays) == 1 and len(jobs.names):
        whole = arrays.pop()
        if sum(name == whole or name.startswith(f"{whole}_") for name in jobs.names.tolist()) == len(names):
            return [whole]
    return names


def _columns_of(holds: LoggedHolds, calendar: Calendar | None) -> dict[str, Any]:
    """Return those of the columns `HOLDS` that are not empty; times as dates, if there is a calendar."""
    columns: dict[str, Any] = {}
    for name, times_s in zip(HOLDS, (holds.eligible_s, holds.begin_s), strict=False):
        known = np.flatnonzero(~np.isnan(times_s)).tolist()
        dates = None if calendar is None else calendar.dates(times_s[known].tolist())
        if known:
            columns[name] = [""] * len(times_s)
            for k, text in zip(known, times_s[known].tolist() if dates is None else dates, strict=True):
                columns[name][k] = text
    if len(holds.limit):
        columns["array"] = [f"a{each}" if each >= 0 else "" for each in holds.array.tolist()]
        columns["array_limit"] = [holds.limit.item(each) if each >= 0 else "" for each in holds.array.tolist()]
    return columns


class _NoProfile(Exception):
    """A job names a profile that it cannot have."""


class _Profiles:
    """The profiles of a table, and those that jobs name.

    Parameters
    ----------
    by_name : mapping of str to Profile
    speed : float
        Of a node [flop/s].
    """

    def __init__(self, by_name: Mapping[str, Profile], speed: float) -> None:
        self._by_name, self._speed = by_name, speed
        self._numbers: dict[str, int] = {}

    @property
    def used(self) -> tuple[Profile, ...]:
        """Those that jobs name."""
        return tuple(self._by_name[name] for name in self._numbers)

    def number_and_time(self, name: str, nodes: float, requested_s: float) -> tuple[int, float]:
        """Return the number of a profile, and how long it computes; what was asked for where it only sends [s]."""
        profile = self._by_name.get(name)
        if profile is None:
            hint = did_you_mean(name, self._by_name) or "--profiles FILE defines them. "
            raise _NoProfile(f"a profile {name[:40]!r} that no table has. {hint}".strip().rstrip("."))
        try:
            profile.check_width(int(nodes))
        except InputError as error:
            raise _NoProfile(f"the profile {name[:40]!r} does not fit: {error}") from None
        return self._numbers.setdefault(name, len(self._numbers)), profile.computing_s(
            int(nodes), self._speed
        ) or requested_s


def _add(rows: JobRows, number: int, row: Mapping[str, Any], profiles: _Profiles, zone: tzinfo | None) -> None:
    job, run_time_s, nodes = _text(row["id"]), _number(row.get("run_time_s")), _number(row["nodes"])
    requested = _number(row.get("requested_time_s"))
    if math.isnan(requested):
        requested = _MINUTE * _number(row.get("requested_time_min"))
    names = [_text(row[name]) for name in NAMED if name in row]
    profile = -1
    if name := _text(row.get("profile")):
        profile, run_time_s = profiles.number_and_time(name, nodes, requested)
    submit_s = _moment(row["submit_time_s"], zone)
    if not row.keys().isdisjoint(HOLDS):
        eligible_s, begin_s = (_moment(row.get(name), zone) for name in HOLDS[:2])
        limit = _number(row.get("array_limit"))
        most = int(limit) if 1 <= limit <= MOST_NODES else None
        rows.holds.add(number, eligible_s, begin_s, _text(row.get("array")), most)
    rows.add(number, job, submit_s, run_time_s, nodes, requested, names, _power(row), profile)
    if not row.keys().isdisjoint(KINDS):
        rows.dependencies.name(number, job)
        for word in KINDS:
            for on in _text(row.get(word)).replace(":", " ").split():
                rows.dependencies.read(number, f"{word}:{on}", job)


def _power(row: Mapping[str, Any]) -> float:
    """Return the mean power of all nodes of a job [W]; nan if it is unknown."""
    run_time_s, nodes = _number(row.get("run_time_s")), _number(row["nodes"])
    if not math.isnan(watts := _number(row.get("power_w"))):
        return watts
    if not math.isnan(watts := _number(row.get("node_power_w"))):
        return watts * nodes
    joules = _number(row.get("energy_j"))
    return joules / run_time_s if run_time_s > 0 else math.nan


def _number(value: Any) -> float:
    """Return a number; nan where there is none. Of several it is the mean, of a time its seconds."""
    if value is None or value == "":
        return math.nan
    if isinstance(value, list):
        numbers = [number for number in map(_number, value) if not math.isnan(number)]
        return math.fsum(numbers) / len(numbers) if numbers else math.nan
    return value.total_seconds() if hasattr(value, "total_seconds") else float(value)


def _date(value: Any) -> datetime | None:
    """Return a point in time that is given as a date; None where it is a number of seconds, or unknown."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, str) and value.strip():
        try:
            float(value)
        except ValueError:
            return datetime.fromisoformat(value)
    return None


def _moment(value: Any, zone: tzinfo | None) -> float:
    """Return a point in time [s]: of a number, a date, or a text with one of them."""
    stamp = _date(value)
    return _number(value) if stamp is None else seconds_of(stamp, zone)


def _text(value: Any) -> str:
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value == math.floor(value) else str(value).strip()


Rows = Iterator[tuple[int, Mapping[str, Any] | None]]


def _csv_rows(path: Path, columns: Sequence[str]) -> tuple[Sequence[str], Rows]:
    """Return the header of a CSV file and its rows with their lines; None for one of another length."""
    lines = ((number, text) for number, text in numbered_lines(path) if text and not text.startswith("#"))
    first, names = next(lines, (1, ""))
    header = cells_of_header(path, names, first)

    def rows() -> Rows:
        for number, text in lines:
            try:
                cells = next(csv.reader([text]), [])
            except csv.Error:
                cells = []
            yield number, dict(zip(header, map(str.strip, cells), strict=True)) if len(cells) == len(header) else None

    return header, rows()


def _parquet_rows(path: Path, columns: Sequence[str]) -> tuple[Sequence[str], Rows]:
    """Return the columns of a Parquet file and its rows, of the columns that are asked for alone."""
    pa, parquet = (load(name, "Parquet files") for name in ("pyarrow", "pyarrow.parquet"))
    try:
        check_size(path, MAX_BYTES)
        file = parquet.ParquetFile(path)
        if file.metadata.num_rows > _MOST_ROWS:
            raise InputError(f"{path}: {file.metadata.num_rows:,} rows; at most {_MOST_ROWS:,} are read.")
        header = file.schema_arrow.names
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: cannot be read as Parquet: {str(error).splitlines()[0]}.") from None

    def rows() -> Rows:
        number = 0
        try:
            for batch in file.iter_batches(_BATCH, columns=[name for name in columns if name in header]):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
        except (OSError, pa.ArrowException, ValueError) as error:
            raise InputError(f"{path}: cannot be read behind row {number}: {str(error).splitlines()[0]}.") from None

    return header, rows()
