"""Batsim's workloads: JSON with jobs and the profiles that say what they do."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gridsched.errors import InputError
from gridsched.files.json_files import json_text
from gridsched.files.output_files import write_whole
from gridsched.workloads.traces.job_table import NOT_OF_THE_FORMAT, JobRows, JobTable, plain_number, whole_text

#: Profiles of flops on each node: their name, and their name in old versions.
HOMOGENEOUS = ("parallel_homogeneous", "msg_par_hg")
KNOWN = ("delay", *HOMOGENEOUS)


def read_batsim(path: str | Path, *, speed: float) -> JobTable:
    """Read a workload of Batsim, plain or compressed by gzip.

    Parameters
    ----------
    path : path
    speed : float
        Speed of a node, which decides how long the flops of a profile take [flop/s].

    Returns
    -------
    JobTable
        In order of submission. Where ids are no whole numbers, all jobs are numbered by their
        places in the file.

    Raises
    ------
    InputError
        If the file cannot be read, or is no such workload.

    Notes
    -----
    Profiles ``delay`` and ``parallel_homogeneous`` are known. What the latter send (``com``) is not
    simulated, and no job is killed at its walltime, which is the time it asked for; both are told.
    """
    content = _content(path)
    jobs, profiles = content["jobs"], content["profiles"]
    rows, told = JobRows(path), Counter[str]()
    for place, job in enumerate(jobs, start=1):
        try:
            profile = profiles[job["profile"]]
            kind = profile["type"]
            if kind not in KNOWN:
                rows.drop(place, f"profile of type {str(kind)[:40]!r}; {KNOWN[0]} and {KNOWN[1]} are known")
                continue
            run_s = _run_time(profile, speed)
            walltime_s = float(job.get("walltime", -1))
            times = float(job["subtime"]), run_s
            rows.add(place, str(job["id"]), *times, float(job["res"]), walltime_s)
            told["com"] += bool(profile.get("com"))
            told["late"] += 0 < walltime_s < run_s
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            rows.drop(place, NOT_OF_THE_FORMAT)
    needs = "most jobs lack id, subtime, res or a profile that is there."
    header = {"MaxProcs": str(content["nb_res"])} if "nb_res" in content else {}
    return rows.table(needs, header=header, notes=_notes(told), has_lines=False)


def _content(path: str | Path) -> dict[str, Any]:
    try:
        content = json.loads(whole_text(Path(path)))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: no valid JSON: {error}.") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: no workload of Batsim: it must be an object.")
    for key, kind, word in (("jobs", list, "a list"), ("profiles", dict, "an object")):
        if not isinstance(content.get(key), kind):
            raise InputError(f"{path}: no workload of Batsim: it needs {key!r}, {word}.")
    return content


def _run_time(profile: Mapping[str, Any], speed: float) -> float:
    """Return how long a job of a profile runs [s]."""
    if profile["type"] in HOMOGENEOUS:
        return float(profile["cpu"]) / speed
    return float(profile["delay"])


def _notes(told: Counter[str]) -> tuple[str, ...]:
    notes = []
    if told["com"]:
        notes.append(f"{told['com']:,} jobs send bytes (com), which is not simulated")
    if told["late"]:
        notes.append(f"{told['late']:,} jobs run beyond their walltime, where Batsim kills them; they run to their end")
    return tuple(notes)


def write_batsim(jobs: JobTable, path: str | Path, *, n_nodes: int | None = None, force: bool = False) -> None:
    """Write jobs as a workload of Batsim, each with a profile of its run time (``delay``).

    Parameters
    ----------
    jobs : JobTable
    path : path
    n_nodes : int, optional
        Size of the machine; default the header's, or else the widest job.
    force : bool
        Whether an existing file may be replaced.

    Raises
    ------
    InputError
        If the file exists already, or cannot be written.
    """
    profiles, written = {}, []
    columns = (jobs.job, jobs.submit_time_s, jobs.run_time_s, jobs.width, jobs.requested_time_s)
    for job, submit, run, width, requested in zip(*(column.tolist() for column in columns), strict=True):
        name = f"delay_{plain_number(run)}"
        profiles[name] = {"type": "delay", "delay": plain_number(run)}
        entry = {"id": str(job), "subtime": plain_number(submit), "res": width, "profile": name}
        if not math.isnan(requested):
            entry["walltime"] = plain_number(requested)
        written.append(entry)
    size = n_nodes or jobs.nodes_of_header or int(jobs.width.max(initial=1))
    content = {"nb_res": size, "jobs": written, "profiles": profiles}
    write_whole(path, json_text(content), force=force)
