"""What ``sacct --json`` prints, as the columns of ``sacct -P``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gridsched.errors import InputError
from gridsched.workloads.traces.log_lines import whole_text

#: The columns that every job has, empty if JSON lacks them.
COLUMNS = (
    "JobID",
    "Cluster",
    "Submit",
    "Eligible",
    "Start",
    "End",
    "ElapsedRaw",
    "TimelimitRaw",
    "AllocNodes",
    "AllocTRES",
    "ReqTRES",
    "NodeList",
    "State",
    "User",
    "Account",
    "Partition",
    "QOS",
    "Constraints",
    "SubmitLine",
    "ArrayTaskLimit",
    "ConsumedEnergyRaw",
)
#: What every job of sacct's JSON has, and neither Batsim's nor squeue's.
_MARK = re.compile(r'"association"\s*:\s*\{')


def is_json_of_sacct(head: str) -> bool:
    """Whether a file that begins so is sacct's JSON."""
    return head.lstrip("\ufeff \t\r\n").startswith("{") and _MARK.search(head) is not None


def json_rows(path: str | Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number of each job and its texts by columns of `COLUMNS`.

    Parameters
    ----------
    path : path
        Output of ``sacct --json`` of Slurm 21.08 or newer: numbers are plain, or tables with ``set``, ``infinite``
        and ``number``, and a state is a text or a list.

    Raises
    ------
    InputError
        If it is no such JSON.
    """
    try:
        content = json.loads(whole_text(Path(path)))
    except (ValueError, RecursionError) as error:
        what = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise InputError(f"{path}: no output of 'sacct --json': {what}.") from None
    jobs = content.get("jobs") if isinstance(content, dict) else None
    if not isinstance(jobs, list):
        raise InputError(f"{path}: no output of 'sacct --json': it has no list 'jobs'.")
    for number, job in enumerate(jobs, start=1):
        yield number, _texts(job) if isinstance(job, dict) else {}


def _texts(job: Mapping[str, Any]) -> dict[str, str]:
    time, tres, association = (_table(job, key) for key in ("time", "tres", "association"))
    allocated = _resources(tres, "allocated")
    energy = next((item.partition("=")[2] for item in allocated if item.startswith("energy=")), "")
    current = _table(job, "state").get("current")
    return {
        "JobID": _name(job),
        "Cluster": _text(job, "cluster"),
        "Submit": _number(time, "submission"),
        "Eligible": _moment(time, "eligible"),
        "Start": _moment(time, "start"),
        "End": _moment(time, "end"),
        "ElapsedRaw": _number(time, "elapsed"),
        "TimelimitRaw": _limit(time.get("limit")),
        "AllocNodes": _number(job, "allocation_nodes"),
        "AllocTRES": ",".join(item for item in allocated if not item.startswith("energy=")),
        "ReqTRES": ",".join(_resources(tres, "requested")),
        "NodeList": _text(job, "nodes"),
        "State": str(current[0] if isinstance(current, list) and current else current or ""),
        "User": _text(job, "user") or _text(association, "user"),
        "Account": _text(job, "account") or _text(association, "account"),
        "Partition": _text(job, "partition"),
        "QOS": _text(job, "qos"),
        "Constraints": _text(job, "constraints"),
        "SubmitLine": _text(job, "submit_line"),
        "ArrayTaskLimit": _array_limit(_table(job, "array")),
        "ConsumedEnergyRaw": energy,
    }


def _table(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = values.get(key)
    return found if isinstance(found, dict) else {}


def _text(values: Mapping[str, Any], key: str) -> str:
    found = values.get(key)
    return found if isinstance(found, str) else ""


def _number(values: Mapping[str, Any], key: str) -> str:
    """Return a whole number as a text; empty where it is not set or has no bound."""
    found = values.get(key)
    if isinstance(found, dict):
        is_set = found.get("set", True) and not found.get("infinite", False)
        found = found.get("number") if is_set else None
    return str(found) if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else ""


def _limit(found: Any) -> str:
    """Return a time limit in minutes, or what sacct prints where there is none."""
    if isinstance(found, dict):
        if found.get("infinite", False):
            return "UNLIMITED"
        if not found.get("set", True):
            return "Partition_Limit"
    return _number({"limit": found}, "limit")


def _moment(values: Mapping[str, Any], key: str) -> str:
    """Return a time in seconds; 0 means unknown."""
    text = _number(values, key)
    return "" if text == "0" else text


def _name(job: Mapping[str, Any]) -> str:
    """Return the id of a job as sacct prints it: of an array, of a heterogeneous job, or plain."""
    array, het = _table(job, "array"), _table(job, "het")
    if (whole := _number(array, "job_id")) not in ("", "0") and (task := _number(array, "task_id")):
        return f"{whole}_{task}"
    if (whole := _number(het, "job_id")) not in ("", "0") and (part := _number(het, "job_offset")):
        return f"{whole}+{part}"
    return _number(job, "job_id")


def _array_limit(array: Mapping[str, Any]) -> str:
    """Return how many tasks of an array may run at once; empty if that has no limit."""
    for key in ("limits", "max", "running"):
        array = _table(array, key)
    return _number(array, "tasks")


def _resources(tres: Mapping[str, Any], key: str) -> list[str]:
    """Return trackable resources as sacct lists them; its memory is in MB."""
    items, found = [], tres.get(key)
    for each in found if isinstance(found, list) else ():
        if isinstance(each, dict) and (count := _number(each, "count")):
            kind, name = _text(each, "type"), _text(each, "name")
            items.append(f"{kind}/{name}={count}" if name else f"{kind}={count}" + ("M" if kind == "mem" else ""))
    return items
