"""Logs by their names: the Standard Workload Format, sacct's output, Batsim's JSON, tables."""

from __future__ import annotations

from collections.abc import Callable, Sized
from functools import partial
from pathlib import Path

from gridsched.errors import InputError
from gridsched.workloads.traces.batsim import read_batsim, write_batsim
from gridsched.workloads.traces.job_table import JobTable
from gridsched.workloads.traces.sacct import read_sacct
from gridsched.workloads.traces.swf import read_swf, write_swf
from gridsched.workloads.traces.tables import read_table, write_table
from gridsched.workloads.traces.trace_options import TraceOptions

#: Speed of a node where no platform tells it [flop/s].
NODE_SPEED = 1e9
#: What logs are called, plain or with ``.gz`` at the end.
ENDINGS = {
    "swf": (".swf",),
    "batsim": (".json",),
    "sacct": (".sacct", ".psv", ".txt"),
    "table": (".jobs.csv", ".parquet"),
}
#: The same in words.
LEGAL = ", ".join(end for ends in ENDINGS.values() for end in ends)


def format_of(path: str | Path) -> str | None:
    """Return the format of a log by its file's name, None if that is no log's."""
    name = Path(path).name.lower().removesuffix(".gz")
    return next((each for each, ends in ENDINGS.items() if name.endswith(ends)), None)


def is_trace(path: str | Path) -> bool:
    """Whether a file's name says that it is a log of parallel jobs."""
    return format_of(path) is not None


def read_jobs(path: str | Path, options: TraceOptions, *, speed: float = NODE_SPEED) -> JobTable:
    """Read a log of any format.

    Parameters
    ----------
    path : path
        The format follows from the name (`ENDINGS`), and may end with ``.gz``.
    options : TraceOptions
    speed : float
        Speed of a node, where work is told in flops [flop/s].

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
    kind = format_of(path)
    if kind != "sacct":
        options.refuse({"outcomes_from"}, path, "only sacct's output has a State of each job")
    if kind != "table":
        options.refuse({"columns"}, path, "this format names its columns itself")
    if kind is None:
        raise InputError(f"{path}: a trace is {LEGAL}, plain or with .gz at the end.")
    jobs = _READERS[kind](path, options, speed)
    per_node = 1 if options.jobs_take == "cores" else options.procs_per_node
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
    return read_swf(path, nodes_from=_field_number(path, options), tells_memory=options.shares)


def _batsim(path: str | Path, options: TraceOptions, speed: float) -> JobTable:
    options.refuse({"nodes_from"}, path, "in Batsim's JSON 'res' is the number of nodes")
    return read_batsim(path, speed=speed)


def _sacct(path: str | Path, options: TraceOptions, speed: float) -> JobTable:
    read = partial(read_sacct, path, takes_outcomes=options.outcomes_from == "log")
    if options.jobs_take == "cores":
        return read(tells_resources=True)
    if options.nodes_from is None:
        why = "sacct tells nodes, unless --nodes-from names a column of processors"
        options.refuse({"procs_per_node"}, path, why)
        return read()
    return read(nodes_from=str(options.nodes_from))


def _table(path: str | Path, options: TraceOptions, speed: float) -> JobTable:
    options.refuse({"nodes_from"}, path, "--columns nodes=COLUMN says which column holds the nodes")
    return read_table(path, options.columns)


_READERS: dict[str, Callable[[str | Path, TraceOptions, float], JobTable]] = {
    "swf": _swf,
    "batsim": _batsim,
    "sacct": _sacct,
    "table": _table,
}


#: What jobs can be written as.
_WRITERS: dict[str, Callable[..., None]] = {".swf": write_swf, ".json": write_batsim, ".jobs.csv": write_table}
WRITTEN = tuple(_WRITERS)


def check_written(path: str | Path) -> None:
    """Raise `InputError` unless jobs can be written to a file of this name."""
    if not str(path).lower().endswith(WRITTEN):
        raise InputError(f"{path}: jobs are written as {' or '.join(WRITTEN)}.")


def stays_behind(jobs: JobTable, path: str | Path) -> str | None:
    """Return, in words, what a file of this name cannot tell of the jobs; None if it tells all."""
    ending = str(path).lower()
    parts: dict[str, Sized] = {
        "ids that are no numbers": jobs.names if ending.endswith(".swf") else (),
        "names of users and the like": jobs.attributes,
        "measured power": jobs.power_w,
        "dependencies": jobs.after,
    }
    lost = [what for what, values in parts.items() if len(values)]
    if not lost or ending.endswith(".jobs.csv"):
        return None
    return f"{', '.join(lost)} are not written; a file *.jobs.csv keeps them"


def write_jobs(jobs: JobTable, path: str | Path, *, force: bool = False) -> None:
    """Write jobs in the format that the file's name says, so that `read_jobs` reads them back.

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
        If the name says no format, or the file exists already or cannot be written.
    """
    check_written(path)
    ending = next(end for end in WRITTEN if str(path).lower().endswith(end))
    _WRITERS[ending](jobs, path, force=force)


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
