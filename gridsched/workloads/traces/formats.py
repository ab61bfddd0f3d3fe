"""Logs by their names, how they are read, and the machine they run on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sized
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from gridsched.errors import InputError
from gridsched.model.limits import LARGEST, SMALLEST
from gridsched.model.platform import PState
from gridsched.model.records import check_record
from gridsched.workloads.traces.batsim import read_batsim, write_batsim
from gridsched.workloads.traces.job_table import JobTable
from gridsched.workloads.traces.sacct import read_sacct
from gridsched.workloads.traces.swf import read_swf, write_swf
from gridsched.workloads.traces.tables import read_table, write_table

# ----------------------------------------------------------------------
# How a log is read, and the machine it runs on: options, keys of studies, provenance


#: Power of a node that idles and of one that computes [W], where nobody says it: a Taurus node of
#: Grid'5000 at its usual frequency, the node of Batsim's energy examples.
NODE_POWER_W = (95.0, 190.738)
#: More nodes than this are refused: each is a host of the simulation.
MAX_NODES = 1_000_000
#: Options that say what the machine is, and mean nothing where it is given or nothing runs.
OF_MACHINE = {"nodes", "boot", "shutdown"}
_GROUP = {"group": "Traces (SWF, sacct, Batsim's JSON, tables)"}


@dataclass(frozen=True, kw_only=True)
class TraceOptions:
    """What a log does not tell of itself.

    Attributes
    ----------
    nodes_from : str or int, optional
        Field that holds the number of nodes: in SWF its number (from 1; -1 is the last), in sacct's
        output its name.
    procs_per_node : int
        Processors of a node. Jobs take whole nodes; a machine of the header's size has so many
        times fewer.
    columns : str, optional
        Which columns of a table tell what; see `gridsched.workloads.traces.tables`.
    nodes : int, optional
        Nodes of the machine, where no platform is given; default what the log's header says.
    jobs_take : {"nodes", "cores"}
        Whole nodes; or what they ask for of nodes that they share: cores, memory, counted resources.
    partitions : path, optional
        Table of partitions (.toml), see `gridsched.workloads.traces.sharing`; default the
        platform's clusters.
    outcomes_from : {"log", "run"}
        Whether a job succeeded that others wait for: as the log says, where it does, or as it ends in the run.
    boot, shutdown : str, optional
        How long a node of that machine boots and shuts down [s] and what it draws meanwhile [W],
        as ``"120:150"``; default no time, and so no energy.

    Raises
    ------
    InputError
        Where a value is out of range.
    """

    nodes_from: Annotated[
        str | int | None,
        Field(
            description="Field of the log that holds the number of nodes: in SWF its number (-1: "
            "the last), in sacct's output its name.",
            examples=["FIELD"],
            json_schema_extra=_GROUP,
        ),
    ] = None
    procs_per_node: Annotated[
        int,
        Field(
            ge=1,
            le=MAX_NODES,
            description="Processors of a node, where the log counts processors; jobs take whole nodes. Default 1.",
            json_schema_extra=_GROUP,
        ),
    ] = 1
    columns: Annotated[
        str | None,
        Field(
            description="Columns of a table of jobs (.jobs.csv, .parquet): pm100, fdata, or OURS=THEIRS,...",
            examples=["MAP"],
            json_schema_extra=_GROUP,
        ),
    ] = None
    nodes: Annotated[
        int | None,
        Field(
            ge=1,
            le=MAX_NODES,
            description="Nodes of the machine without --platform; default the header's.",
            json_schema_extra=_GROUP,
        ),
    ] = None
    jobs_take: Annotated[
        Literal["nodes", "cores"],
        Field(
            description="Whole nodes, or cores (and memory, GPUs, where the log tells them) of nodes that they share.",
            json_schema_extra=_GROUP,
        ),
    ] = "nodes"
    partitions: Annotated[
        str | Path | None,
        Field(
            description="Table of partitions (.toml) that jobs name; jobs take whole nodes of them, or cores "
            "(--jobs-take). Without it clusters are partitions.",
            examples=["FILE"],
            json_schema_extra=_GROUP,
        ),
    ] = None
    outcomes_from: Annotated[
        Literal["log", "run"],
        Field(
            description="Whether a job that others wait for (afterok, afternotok) succeeded: by its State in the log "
            "of sacct (log), or as it ends in the run (run).",
            json_schema_extra=_GROUP,
        ),
    ] = "log"
    boot: Annotated[
        str | None,
        Field(
            description="Time a node boots and its power meanwhile, without --platform; default 0 s and 0 J.",
            examples=["S:W"],
            json_schema_extra=_GROUP,
        ),
    ] = None
    shutdown: Annotated[
        str | None, Field(description="Likewise for shutting down.", examples=["S:W"], json_schema_extra=_GROUP)
    ] = None

    def __post_init__(self) -> None:
        check_record(self, TraceOptions)
        _ = self.switching  # whose messages name the option

    @property
    def switching(self) -> dict[str, Any]:
        """How a node boots and shuts down, as the fields of `Host` behind one P-state."""
        values: dict[str, Any] = {"switch_pstates": ()}
        for name in ("boot", "shutdown"):
            if (text := getattr(self, name)) is not None:
                values[f"{name}_time_s"], watts = _time_and_power(name, text)
                values[f"{name}_pstate"] = 1 + len(values["switch_pstates"])
                values["switch_pstates"] += (PState(0.0, watts, watts, watts),)
        return values

    @property
    def shares(self) -> bool:
        """Whether jobs share nodes, whatever the platform."""
        return self.jobs_take == "cores" or self.partitions is not None

    @property
    def given(self) -> dict[str, str | int]:
        """The options that are not the usual ones."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["partitions"] = None if self.partitions is None else str(self.partitions)
        return {field.name: values[field.name] for field in fields(self) if values[field.name] != field.default}

    def refuse(self, names: set[str], owner: str | Path, why: str) -> None:
        """Raise `InputError` if one of these options is given, as it would have no effect."""
        for name in self.given:
            if name in names:
                raise InputError(f"{owner}: {name} has no effect: {why}. Leave it out.")


def _time_and_power(name: str, text: str) -> tuple[float, float]:
    """Return what an option says of booting or shutting down [s, W]."""
    try:
        time_s, watts = map(float, text.split(":"))
    except ValueError:
        time_s = watts = math.nan
    if SMALLEST <= time_s <= LARGEST and 0 <= watts <= LARGEST:
        return time_s, watts
    raise InputError(
        f"{name} is {text!r}; S:W is legal, a time greater than 0 s and a power of at least 0 W, as 120:150."
    )


# ----------------------------------------------------------------------
# Logs by their names: the Standard Workload Format, sacct's output, Batsim's JSON, tables


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
