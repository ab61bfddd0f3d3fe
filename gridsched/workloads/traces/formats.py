"""Logs by their names: the Standard Workload Format, sacct's output, Batsim's JSON, tables."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from functools import partial
from pathlib import Path

from gridsched.errors import InputError, counted
from gridsched.long_work import long_work
from gridsched.plugins import JobFormat, Plugin, Table, loaded, report
from gridsched.workloads.traces.job_table import JobTable
from gridsched.workloads.traces.sacct import is_sacct, read_sacct
from gridsched.workloads.traces.trace_options import TraceOptions

#: Speed of a node if no platform states it [flop/s].
NODE_SPEED = 1e9
_TRACES = "gridsched.workloads.traces"
#: The formats that no system adds.
_CORE = (
    JobFormat("swf", (".swf",), f"{_TRACES}.formats:_swf", f"{_TRACES}.swf:write_swf"),
    JobFormat("sacct", (".sacct", ".psv", ".txt"), f"{_TRACES}.formats:_sacct"),
    JobFormat("table", (".jobs.csv", ".parquet"), f"{_TRACES}.formats:_table", f"{_TRACES}.tables:write_table"),
)
#: Endings of bags and generators, of what is compressed, and of platforms: no format takes them.
_TAKEN = (".csv", ".toml", ".gz", ".xml")


def _formats_of(plugin: Plugin) -> Iterator[tuple[str, JobFormat]]:
    """Yield the formats of a plugin by endings; those that would take files of other kinds are reported."""
    for each in plugin.formats:
        for ending in each.endings:
            if ending in _TAKEN or not ending.startswith(".") or ending != ending.lower().strip() or len(ending) < 2:
                why = "is one of gridsched's" if ending in _TAKEN else "is none such as '.log', in lower case"
                report(f"Plugin {plugin.name!r}: the ending {ending!r} of format {each.name!r} {why}: it is left out.")
            else:
                yield ending, each


#: By the endings of the names of files.
FORMATS: Table[str, JobFormat] = Table(
    "format", _formats_of, {ending: each for each in _CORE for ending in each.endings}
)


def endings() -> str:
    """Return in words what logs are called, plain or with ``.gz`` at the end."""
    return ", ".join(FORMATS)


def written_endings() -> tuple[str, ...]:
    """Return what files are called that jobs can be written to."""
    return tuple(end for end, each in FORMATS.items() if each.write and end == each.endings[0])


def format_of(path: str | Path) -> str | None:
    """Return the format of a log, None if it is none: by its file's name, or sacct's output by its content."""
    found = _format_of(path)
    return None if found is None else found.name


def _format_of(path: str | Path) -> JobFormat | None:
    name = Path(path).name.lower().removesuffix(".gz")
    named = next((each for end, each in FORMATS.items() if name.endswith(end)), None)
    if named in _CORE or name.endswith(".toml"):
        return named
    # people keep sacct's output under other names: as .csv, .json, .log, ...
    return next(each for each in _CORE if each.name == "sacct") if is_sacct(path) else named


def is_trace(path: str | Path) -> bool:
    """Whether a file is a log of parallel jobs, by its name or as the output of sacct."""
    return format_of(path) is not None


def read_jobs(
    path: str | Path, options: TraceOptions, *, speed: float = NODE_SPEED, keeps_profiles: bool = False
) -> JobTable:
    """Read a log of any format.

    Parameters
    ----------
    path : path
        The format follows from the name (`FORMATS`), which may end with ``.gz``; sacct's output is known under
        any name.
    options : TraceOptions
    speed : float
        Speed of a node, if work is given in flops [flop/s].
    keeps_profiles : bool
        Whether jobs keep what their parts compute and send; else they are what they compute
        (`JobTable.without_profiles`).

    Returns
    -------
    JobTable
        Jobs that ran, in order of submission, in nodes, and so is the header's size of the
        machine; each number once.

    Raises
    ------
    InputError
        If the file cannot be read, or is no such log.
    """
    found = _format_of(path)  # once: it may look into the file
    kind = None if found is None else found.name
    if kind != "sacct":
        options.refuse({"outcomes_from"}, path, "only sacct's output has a State of each job")
        options.refuse({"cluster"}, path, "only sacct's output names the cluster of each job")
    if kind not in ("swf", "sacct", "table"):
        options.refuse({"log_zone"}, path, "jobs of this format have no dates")
    if kind != "table":
        options.refuse({"columns"}, path, "this format names its columns itself")
        options.refuse({"profiles"}, path, "a table of jobs names profiles of a table, and this format none")
    if found is None:
        raise InputError(f"{path}: a trace is {endings()}, plain or with .gz at the end.")
    with long_work(f"reading {path}"):
        jobs: JobTable = loaded(found.read, f"Format {found.name!r}")(path, options, speed)
    if not keeps_profiles:
        jobs = jobs.without_profiles()
    per_node = 1 if options.allocation == "cores" else options.procs_per_node
    return jobs.distinct().on_nodes(per_node, _nodes_of_machine(jobs, options))


def _nodes_of_machine(jobs: JobTable, options: TraceOptions) -> int | None:
    """Return how many nodes the machine has by the log's header, None if it does not say.

    Where widths are taken from a field of nodes, the header's nodes count before its processors.
    """
    if options.procs_per_node > 1:
        procs = jobs.size_of_machine("MaxProcs")
        return None if procs is None else max(1, procs // options.procs_per_node)
    keys = () if options.nodes_from is None else ("MaxNodes", "MaxProcs")
    return jobs.size_of_machine(*keys)


def _swf(path: str | Path, options: TraceOptions, speed: float) -> JobTable:
    from gridsched.workloads.traces.swf import read_swf  # each reader when a log of its format is read

    jobs = read_swf(path, nodes_from=_field_number(path, options), tells_memory=options.shares, zone=options.log_zone)
    if jobs.calendar is None:
        options.refuse({"log_zone"}, path, "its header has no UnixStartTime, so its jobs have no dates")
    return jobs


def _sacct(path: str | Path, options: TraceOptions, speed: float) -> JobTable:
    takes_outcomes = options.outcomes_from == "log"
    read = partial(read_sacct, path, takes_outcomes=takes_outcomes, zone=options.log_zone, cluster=options.cluster)
    if options.allocation == "cores":
        return read(tells_resources=True)
    if options.nodes_from is None:
        why = "sacct contains nodes, unless --nodes-from names a column of processors"
        options.refuse({"procs_per_node"}, path, why)
        return read()
    return read(nodes_from=str(options.nodes_from))


def _table(path: str | Path, options: TraceOptions, speed: float) -> JobTable:
    from gridsched.workloads.traces.tables import read_table

    options.refuse({"nodes_from"}, path, "--columns nodes=COLUMN names the column of the nodes")
    return read_table(path, options.columns, profiles=options.profiles, speed=speed, zone=options.log_zone)


def check_written(path: str | Path) -> None:
    """Raise `InputError` unless jobs can be written to a file of this name."""
    if not str(path).lower().endswith(written := written_endings()):
        raise InputError(f"{path}: jobs are written as {' or '.join(written)}.")


def stays_behind(jobs: JobTable, path: str | Path) -> str | None:
    """Return, in words, what a file of this name cannot keep of the jobs; None if it keeps all."""
    ending = str(path).lower()
    parts: dict[str, Sized] = {
        "ids that are not numbers": jobs.names if ending.endswith(".swf") else (),
        "names of users and the like": jobs.attributes,
        "measured power": jobs.power_w,
        "dependencies": jobs.waiting_lines,
        "times before which jobs cannot start, and limits of arrays": jobs.holds or (),
    }
    lost = [what for what, values in parts.items() if len(values) and not ending.endswith(".jobs.csv")]
    notes = [f"{', '.join(lost)} are not written; a file *.jobs.csv keeps them"] if lost else []
    if jobs.without_limit.any() and not ending.endswith(".jobs.csv"):
        n = counted(int(jobs.without_limit.sum()), "job")
        notes.append(f"{n} without a time limit are written as asking for a year; a file *.jobs.csv keeps them")
    keeps_dates = jobs.calendar is None or (
        jobs.calendar.dates(jobs.submit_time_s.tolist()) is not None
        if ending.endswith(".jobs.csv")
        else ending.endswith(".swf") and jobs.calendar.begin_unix_s is not None
    )
    if not keeps_dates:
        notes.append("dates are not written; *.jobs.csv keeps them, and *.swf if their zone is known (--log-zone)")
    return "; ".join(notes) or None


def write_jobs(jobs: JobTable, path: str | Path, *, force: bool = False) -> None:
    """Write jobs in the format of the file's name, so that `read_jobs` reads them back.

    Parameters
    ----------
    jobs : JobTable
    path : path
        ``.swf``, ``.json`` for Batsim, or ``.jobs.csv``.
    force : bool
        Whether an existing file may be replaced.

    Raises
    ------
    InputError
        If the name is of no format, or the file exists already or cannot be written.
    """
    check_written(path)
    found = next(FORMATS[end] for end in written_endings() if str(path).lower().endswith(end))
    loaded(found.write, f"Format {found.name!r}")(jobs, path, force=force)


def _field_number(path: str | Path, options: TraceOptions) -> int | None:
    field = options.nodes_from
    if field is None:
        return None
    try:
        number = int(field)
    except ValueError:
        number = 0
    if number == 0:
        raise InputError(
            f"{path}: nodes_from is {field!r}; in SWF it is the number of a field: 1 is the first, -1 the last."
        )
    return number
