"""Logs by their names: the Standard Workload Format, sacct's output, Batsim's JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gridsched.errors import InputError
from gridsched.workloads.traces.batsim import read_batsim, write_batsim
from gridsched.workloads.traces.job_table import JobTable
from gridsched.workloads.traces.options import TraceOptions
from gridsched.workloads.traces.sacct import read_sacct
from gridsched.workloads.traces.swf import read_swf, write_swf

#: Speed of a node where no platform tells it [flop/s].
NODE_SPEED = 1e9
#: What logs are called, plain or with ``.gz`` at the end.
ENDINGS = {"swf": (".swf",), "batsim": (".json",), "sacct": (".sacct", ".psv", ".txt")}
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
    if kind is None:
        raise InputError(f"{path}: a trace is {LEGAL}, plain or with .gz at the end.")
    jobs = _READERS[kind](path, options, speed)
    return jobs.distinct().on_nodes(options.procs_per_node, _nodes_of_machine(jobs, options))


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
    return read_swf(path, nodes_from=_field_number(path, options))


def _batsim(path: str | Path, options: TraceOptions, speed: float) -> JobTable:
    options.refuse({"nodes_from"}, path, "in Batsim's JSON 'res' is the number of nodes")
    return read_batsim(path, speed=speed)


def _sacct(path: str | Path, options: TraceOptions, speed: float) -> JobTable:
    if options.nodes_from is None:
        why = "sacct tells nodes, unless --nodes-from names a column of processors"
        options.refuse({"procs_per_node"}, path, why)
        return read_sacct(path)
    return read_sacct(path, nodes_from=str(options.nodes_from))


_READERS: dict[str, Callable[[str | Path, TraceOptions, float], JobTable]] = {
    "swf": _swf,
    "batsim": _batsim,
    "sacct": _sacct,
}


#: What jobs can be written as.
_WRITERS: dict[str, Callable[..., None]] = {"swf": write_swf, "batsim": write_batsim}
WRITTEN = tuple(end for kind in _WRITERS for end in ENDINGS[kind])


def check_written(path: str | Path) -> None:
    """Raise `InputError` unless jobs can be written to a file of this name."""
    if Path(path).suffix.lower() not in WRITTEN:
        raise InputError(f"{path}: jobs are written as {' or '.join(WRITTEN)}.")


def write_jobs(jobs: JobTable, path: str | Path, *, force: bool = False) -> None:
    """Write jobs in the format that the file's name says, so that `read_jobs` reads them back.

    Parameters
    ----------
    jobs : JobTable
    path : path
        ``.swf``, or ``.json`` for Batsim.
    force : bool
        Whether an existing file may be replaced.

    Raises
    ------
    InputError
        If the name says no format, or the file exists already or cannot be written.
    """
    check_written(path)
    _WRITERS[str(format_of(path))](jobs, path, force=force)


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
