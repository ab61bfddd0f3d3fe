"""What Slurm's accounting has of jobs: the output of ``sacct -P``, a table with bars, or of ``sacct --json``.

The first line names the columns, in any order; others than those below are passed over.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from pathlib import Path

import numpy as np

from gridsched.errors import InputError, counted, did_you_mean
from gridsched.files.foreign_files import foreign_file, head_of
from gridsched.model.calendar import Calendar, seconds_of, time_zone
from gridsched.workloads.traces.dependencies import PART, option_of
from gridsched.workloads.traces.job_table import MAX_LINES_NAMED, MOST_DIGITS, NOT_OF_THE_FORMAT, JobRows, JobTable
from gridsched.workloads.traces.sacct_json import COLUMNS, is_json_of_sacct, json_rows
from gridsched.workloads.traces.sacct_rows import JOB, Cells, table_rows

#: Columns with the same content, the first that a file has counts.
NODES = ("AllocNodes", "NNodes")
#: What Slurm writes where it has no number.
NO_VALUE = 0xFFFF_FFFF_FFFF_FFF0
#: What ConsumedEnergy ends with.
_PREFIXES = {"K": 1e3, "M": 1e6, "G": 1e9}
#: What jobs ask of the features of nodes.
CONSTRAINT = "Constraints"
#: What names of users and the like are called, and their columns; of several the first that a file has.
NAMED = {
    "user": ("User",),
    "account": ("Account",),
    "partition": ("Partition",),
    "qos": ("QOS",),
    "constraint": (CONSTRAINT,),
}
#: What jobs take: cores, trackable resources, memory; what was allocated goes before what was asked
#: for. Before 21.08 Slurm printed generic resources of each node as ReqGRES.
RESOURCES = {
    "cpus": ("AllocCPUS", "NCPUS", "ReqCPUS"),
    "tres": ("AllocTRES",),
    "asked_tres": ("ReqTRES",),
    "memory": ("ReqMem",),
    "gres": ("ReqGRES",),
}
#: When a job started, and where.
SCHEDULE = {"start": ("Start",), "hosts": ("NodeList",)}
#: States of jobs that had not ended when the table was made.
NOT_ENDED = ("RUNNING", "PENDING", "SUSPENDED", "RESIZING", "CONFIGURING", "COMPLETING")
#: States of jobs that ended without success, which afternotok waits for.
NO_SUCCESS = (
    "BOOT_FAIL",
    "CANCELLED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "REVOKED",
    "TIMEOUT",
)
STEP = "a step of a job (sacct -X leaves them out)"
GOING_ON = "had not ended"
#: Which cluster a record is of, where `sacct -M` prints those of several.
CLUSTER = "Cluster"
_UNKNOWN = ("", "Unknown", "None", "N/A")
#: Seconds of a day, an hour, a minute.
_DAY, _HOUR, _MINUTE = 86_400, 3_600, 60


def read_sacct(
    path: str | Path,
    *,
    nodes_from: str | None = None,
    tells_resources: bool = False,
    takes_outcomes: bool = True,
    tells_schedule: bool = False,
    zone: str | None = None,
    cluster: str | None = None,
) -> JobTable:
    """Read the output of ``sacct -P``, with or without ``-X``, or of ``sacct --json``.

    Parameters
    ----------
    path : path
    nodes_from : str, optional
        Column that holds the number of nodes, instead of AllocNodes or NNodes.
    tells_resources : bool
        Whether the table has what jobs take of nodes, as the texts of `RESOURCES`.
    takes_outcomes : bool
        Whether dependencies on the success of a job take its State.
    tells_schedule : bool
        Whether the table has when jobs started and where, as the texts of `SCHEDULE`.
    zone : str, optional
        Time zone of dates that have none, see `gridsched.model.calendar.time_zone`.
    cluster : str, optional
        The cluster whose jobs are read, where the file has those of several (``sacct -M``).

    Returns
    -------
    JobTable
        Jobs that ran and ended, in order of submission; what was left out, and why, is in
        `dropped`.

    Raises
    ------
    InputError
        If the file cannot be read, lacks a column that is needed, or has jobs of several clusters of which none
        is named.

    Notes
    -----
    Times without a zone are read as they are, where `zone` does not say it: an hour that a clock was turned back
    counts twice. Numbers of seconds (``SLURM_TIME_FORMAT=%s``) are fine, too. A job is as long as ElapsedRaw (or
    Elapsed) states, else from Start to End. Where a JobID is not a whole number (``17_3``, of an
    array), all jobs are numbered by their lines, and keep their ids as names. Parts of a
    heterogeneous job (``17+0``, ``17+1``) are jobs of their own; a note counts them. Of several records of a job,
    which Slurm has of requeued ones (``sacct -D``), the last one counts.
    """
    named = NAMED | (RESOURCES if tells_resources else {}) | (SCHEDULE if tells_schedule else {})
    rows, attempts = JobRows(path, tuple(named)), _Attempts()
    parts: dict[str, set[str]] = {}
    names, source = (COLUMNS, json_rows(path)) if is_json_of_sacct(_head(path)) else table_rows(path)
    texts = [next((each for each in columns if each in names), "") for columns in named.values()]
    job, nodes = _columns(path, names, nodes_from)
    clock, first = None if zone is None else time_zone(zone, "--log-zone"), ""
    tells_dependencies = not {"Dependency", "SubmitLine"}.isdisjoint(names)
    clusters, early = Counter[str](), dict[int, str]()
    for number, cells in source:
        clusters[cells.get(CLUSTER, "")] += bool(cells)
        if not cells:
            rows.drop(number, NOT_OF_THE_FORMAT)
        elif cluster is not None and cells.get(CLUSTER) != cluster:
            rows.drop(number, f"of another cluster than {cluster} (--cluster)")
        elif "." in cells[job]:
            rows.drop(number, STEP)
        else:
            try:
                submit_s, start_s = (moment(cells.get(each, ""), clock) for each in ("Submit", "Start"))
                attempts.add(number, cells[job], submit_s, start_s)
                eligible_s = moment(cells.get("Eligible", ""), clock)
                if start_s < submit_s:  # by a clock that was set, or a record that was repaired
                    early[number] = cells[job]
                    submit_s, eligible_s = start_s, math.nan
                rows.holds.read(number, cells, submit_s, eligible_s, start_s)
                if cells.get("State", "").startswith(NOT_ENDED):
                    rows.drop(number, GOING_ON)
                    continue
                rows.add(
                    number,
                    cells[job],
                    submit_s,
                    _run_time(cells, clock),
                    _count(cells[nodes]),
                    _requested(cells),
                    [cells.get(column, "") for column in texts],
                    _mean_power(cells, clock),
                )
                first = first or cells["Submit"]
                name = cells.get("JobID", cells[job])
                if (part := PART.fullmatch(name)) and _run_time(cells, clock) > 0:
                    parts.setdefault(part["whole"], set()).add(name)
                if tells_dependencies:
                    rows.dependencies.name(number, name)
                    text = cells.get("Dependency") or option_of(cells.get("SubmitLine", ""))
                    rows.dependencies.read(number, text, name)
                    if takes_outcomes and cells.get("State", "").startswith(NO_SUCCESS):
                        rows.dependencies.fail(number)
            except ValueError:
                rows.drop(number, NOT_OF_THE_FORMAT)
    _check_clusters(path, clusters, cluster)
    rows.supersede(attempts.earlier())
    table = rows.table(
        "no row of 'sacct -P': as many values as columns are needed.", header={}, notes=_notes(parts, early)
    )
    return table if not len(table) else replace(table, calendar=Calendar.of(_date(first), zone))


class _Attempts:
    """The records of each job: one for each time that it was started, and the last one counts."""

    def __init__(self) -> None:
        self._job, self._line = array("q"), array("q")
        self._submit_s, self._start_s = array("d"), array("d")
        self._code: dict[str, int] = {}

    def add(self, line: int, job: str, submit_s: float, start_s: float) -> None:
        """Note a record; one without a start is later than those with one [s]."""
        if job:
            is_number = job.isdecimal() and len(job) <= MOST_DIGITS
            self._job.append(int(job) if is_number else self._code.setdefault(job, -1 - len(self._code)))
            self._line.append(line)
            self._submit_s.append(submit_s)
            self._start_s.append(math.inf if math.isnan(start_s) else start_s)

    def earlier(self) -> set[int]:
        """Return the lines of records that a later one of their job replaces."""
        order = np.lexsort((self._line, self._start_s, self._submit_s, self._job))
        job, line = np.array(self._job)[order], np.array(self._line)[order]
        return set(line[:-1][job[1:] == job[:-1]].tolist())


def _check_clusters(path: str | Path, clusters: Collection[str], asked: str | None) -> None:
    """Raise `InputError` if a file has jobs of several clusters and none is asked for, or of none that is."""
    names = sorted(filter(None, clusters))
    named = ", ".join(names[:5]) + ", ..." * (len(names) > 5)
    if asked is None and len(names) > 1:
        raise InputError(
            f"{path}: column {CLUSTER} names {len(names)} clusters, {named}: each is a machine with jobs, and numbers "
            "of jobs, of its own. Choose one by --cluster NAME."
        )
    if asked is not None and asked not in names:
        has = f"column {CLUSTER} names {named}" if names else f"it has no column {CLUSTER}"
        raise InputError(f"{path}: no job is of cluster {asked[:40]!r}: {has}. {did_you_mean(asked, names)}".strip())


def is_sacct(path: str | Path) -> bool:
    """Whether a file's content is sacct's output, as a table with bars or JSON; one that cannot be read is not."""
    head = _head(path)
    names = head.split("\n", 1)[0].strip().split("|")
    return ("Submit" in names and not set(JOB).isdisjoint(names)) or is_json_of_sacct(head)


def _head(path: str | Path) -> str:
    return (head_of(path) or b"").decode(errors="replace").lstrip("\ufeff")


def _notes(parts: Mapping[str, Collection[str]], early: Mapping[int, str]) -> tuple[str, ...]:
    """Say how many parts of heterogeneous jobs run on their own, and which jobs start before their submission."""
    notes = list[str]()
    if early:
        named = ", ".join(f"{job[:40]} in line {line}" for line, job in list(early.items())[:MAX_LINES_NAMED])
        more = ", ..." * (len(early) > MAX_LINES_NAMED)
        jobs = counted(len(early), "job starts before its", "jobs start before their")
        notes.append(f"{jobs} submission (job {named}{more}): the start is taken as the submission")
    wholes = [len(names) for names in parts.values() if len(names) > 1]
    if wholes:
        jobs = counted(len(wholes), "heterogeneous job")
        notes.append(
            f"{sum(wholes):,} parts of {jobs}: each is a job of its own, and nothing makes them start together"
        )
    return tuple(notes)


def _columns(path: str | Path, names: Sequence[str], nodes_from: str | None) -> tuple[str, str]:
    """Return the columns of job and nodes; `InputError` where one is missing."""

    def first(*known: str) -> str:
        for name in known:
            if name in names:
                return name
        if said := foreign_file(path):
            raise InputError(f"{path}: {said}")
        hint = did_you_mean(known[0], names)
        raise InputError(
            f"{path}, line 1: no column {' or '.join(known)}. {hint}sacct's output needs one; make "
            "it by 'sacct -P -X --format "
            "JobIDRaw,Submit,Start,End,ElapsedRaw,TimelimitRaw,AllocNodes,AllocCPUS,State'."
        )

    first("Submit")
    first("ElapsedRaw", "Elapsed", "Start")
    return first(*JOB), first(*(NODES if nodes_from is None else (nodes_from,)))


def moment(text: str, zone: tzinfo | None = None) -> float:
    """Return a point in time [s]; nan where it is unknown; without a zone it is in `zone`, or as if in UTC."""
    if text in _UNKNOWN:
        return math.nan
    stamp = _date(text)
    return float(text) if stamp is None else seconds_of(stamp, zone)


def _date(text: str) -> datetime | None:
    """Return a date; None where the text is a number of seconds, or unknown."""
    return None if text in _UNKNOWN or text.isdecimal() else datetime.fromisoformat(text)


def _run_time(cells: Cells, zone: tzinfo | None = None) -> float:
    """Return how long a job ran [s]; nan where that is unknown."""
    if cells.get("ElapsedRaw"):
        return float(cells["ElapsedRaw"])
    if cells.get("Elapsed"):
        return _duration(cells["Elapsed"])
    return moment(cells.get("End", ""), zone) - moment(cells.get("Start", ""), zone)


def _requested(cells: Cells) -> float:
    """Return the time limit of a job [s]; infinite where it has only that of its partition, nan where it is unknown."""
    raw, text = cells.get("TimelimitRaw", ""), cells.get("Timelimit", "")
    if raw.isdecimal():
        return float(raw) * _MINUTE
    if text[:1].isdecimal():
        return _duration(text)
    return math.inf if raw or text else math.nan  # Partition_Limit, UNLIMITED: nothing that could be taken as a guess


def _duration(text: str) -> float:
    """Return ``[days-]hours:minutes:seconds`` [s]."""
    days, _, clock = text.rpartition("-")
    parts = [float(part) for part in clock.split(":")]
    if len(parts) > len((_HOUR, _MINUTE, 1)):
        raise ValueError
    weights = (_HOUR, _MINUTE, 1)[-len(parts) :]
    return float(days or 0) * _DAY + sum(w * p for w, p in zip(weights, parts, strict=True))


def _mean_power(cells: Cells, zone: tzinfo | None = None) -> float:
    """Return the joules of a job over how long it ran [W]; nan where one of them is unknown."""
    text = cells.get("ConsumedEnergyRaw") or cells.get("ConsumedEnergy", "")
    factor = _PREFIXES.get(text[-1:].upper(), 1.0)
    try:
        joules = float(text[:-1] if text[-1:].upper() in _PREFIXES else text) * factor
    except ValueError:
        return math.nan
    run_time_s = _run_time(cells, zone)
    return joules / run_time_s if 0 < joules < NO_VALUE and run_time_s > 0 else math.nan


def _count(text: str) -> float:
    """Return a number of nodes; 0 where it is unknown."""
    return float(text) if text else 0.0
