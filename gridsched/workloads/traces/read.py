"""Open a log by its name: the Standard Workload Format, sacct's output, Batsim's JSON."""

from __future__ import annotations

from pathlib import Path

from gridsched.errors import InputError
from gridsched.workloads.traces.job_table import JobTable
from gridsched.workloads.traces.options import TraceOptions
from gridsched.workloads.traces.swf import read_swf

#: Speed of a node where no platform tells it [flop/s].
NODE_SPEED = 1e9
#: What logs are called, plain or with ``.gz`` at the end.
ENDINGS = {"swf": (".swf",)}
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
        Jobs that ran, in order of submission, in nodes; each number once.

    Raises
    ------
    InputError
        If the file cannot be read, or is no such log.
    """
    if format_of(path) is None:
        raise InputError(f"{path}: a trace is {LEGAL}, plain or with .gz at the end.")
    jobs = read_swf(path, nodes_from=_field_number(path, options))
    return jobs.distinct().on_nodes(options.procs_per_node)


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
            f"{path}: nodes_from is {field!r}; in SWF it is the number of a field: 1 is the first, "
            "-1 the last."
        )
    return number
