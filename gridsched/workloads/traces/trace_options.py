"""How a log is read, and the machine it runs on: options, keys of studies, provenance."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from gridsched.errors import InputError
from gridsched.model.calendar import time_zone
from gridsched.model.limits import LARGEST, SMALLEST
from gridsched.model.platform import PState
from gridsched.model.records import check_record

#: Power of a node that idles and of one that computes [W], if it is not given: a Taurus node of
#: Grid'5000 at its usual frequency, the node of Batsim's energy examples.
NODE_POWER_W = (95.0, 190.738)
#: More nodes than this are refused: each is a host of the simulation.
MAX_NODES = 1_000_000
#: Options that say what the machine is, and mean nothing where it is given or nothing runs.
OF_MACHINE = {"nodes", "boot", "shutdown"}
_GROUP = {"group": "Traces (SWF, sacct, Batsim's JSON, tables)"}


@dataclass(frozen=True, kw_only=True)
class TraceOptions:
    """What a log does not state of itself.

    Attributes
    ----------
    nodes_from : str or int, optional
        Field that holds the number of nodes: in SWF its number (from 1; -1 is the last), in sacct's
        output its name.
    procs_per_node : int
        Processors of a node. Jobs take whole nodes; a machine of the header's size has so many
        times fewer.
    columns : str, optional
        Which columns of a table hold what; see `gridsched.workloads.traces.tables`.
    nodes : int, optional
        Nodes of the machine, if no platform is given; default the number in the log's header.
    allocation : {"nodes", "cores"}
        Whole nodes; or what they ask for of nodes that they share: cores, memory, counted resources.
    partitions : path, optional
        Table of partitions (.toml), see `gridsched.workloads.traces.partitions`; default the
        platform's clusters.
    slurm_conf : path, optional
        The ``slurm.conf`` of the machine: nodes, partitions, and for `slurm` how its queue is
        scheduled; see `gridsched.platform_io.slurm_conf`. Jobs share nodes if it specifies this.
    profiles : path, optional
        Table of profiles (.toml) that the column ``profile`` of a table of jobs names, see
        `gridsched.workloads.traces.profile_table`.
    requests : {"log", "exact", "twice"}
        What jobs have requested: as in the log; or just what they take, as if users knew it; or as in the log
        and at least twice what they take, as Batsim's converter of SWF logs writes walltimes.
    outcomes_from : {"log", "run"}
        Whether a job succeeded that others wait for: as in the log, if it states this, or as it ends in the run.
    cluster : str, optional
        The cluster whose jobs are read, where sacct's output has those of several (``sacct -M``).
    log_zone : str, optional
        Time zone of the log's dates that have none, and of those that are typed: ``UTC``, ``+01:00``,
        ``Europe/Berlin``; default that of the log.
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
            description="Processors of a node, if the log counts processors; jobs take whole nodes. Default 1.",
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
            description="Number of nodes of the machine, without --platform; default: as in the log's header.",
            json_schema_extra=_GROUP,
        ),
    ] = None
    allocation: Annotated[
        Literal["nodes", "cores"],
        Field(
            description="Whole nodes, or cores (and memory, GPUs, if the log has them) of nodes that they share.",
            json_schema_extra=_GROUP,
        ),
    ] = "nodes"
    partitions: Annotated[
        str | Path | None,
        Field(
            description="Table of partitions (.toml) that jobs name; jobs take whole nodes of them, or cores "
            "(--allocation). Without it, each cluster is a partition.",
            examples=["FILE"],
            json_schema_extra=_GROUP,
        ),
    ] = None
    slurm_conf: Annotated[
        str | Path | None,
        Field(
            description="The machine's slurm.conf: nodes, partitions, and for scheduler slurm weights and parameters. "
            "With --platform the hosts are those of the platform; the file sets the rest.",
            examples=["FILE"],
            json_schema_extra=_GROUP,
        ),
    ] = None
    profiles: Annotated[
        str | Path | None,
        Field(
            description="Table of profiles (.toml): computation and messages of jobs' parts, named by the column "
            "profile of a table of jobs (.jobs.csv, .parquet).",
            examples=["FILE"],
            json_schema_extra=_GROUP,
        ),
    ] = None
    requests: Annotated[
        Literal["log", "exact", "twice"],
        Field(
            description="Run times that jobs request: those of the log, exactly those that they take (exact), or "
            "those of the log and at least twice those that they take (twice).",
            json_schema_extra=_GROUP,
        ),
    ] = "log"
    outcomes_from: Annotated[
        Literal["log", "run"],
        Field(
            description="Whether a job that others wait for (afterok, afternotok) succeeded: by its State in the log "
            "of sacct (log), or as it ends in the run (run).",
            json_schema_extra=_GROUP,
        ),
    ] = "log"
    cluster: Annotated[
        str | None,
        Field(
            description="Cluster whose jobs are read, if the output of sacct has those of several (sacct -M).",
            examples=["NAME"],
            json_schema_extra=_GROUP,
        ),
    ] = None
    log_zone: Annotated[
        str | None,
        Field(
            description="Time zone of the log's dates, if they have none: UTC, +01:00, Europe/Berlin. Default: as in "
            "the log.",
            examples=["ZONE"],
            json_schema_extra=_GROUP,
        ),
    ] = None
    boot: Annotated[
        str | None,
        Field(
            description="Time and power of booting a node, without --platform; default 0 s and 0 J.",
            examples=["S:W"],
            json_schema_extra=_GROUP,
        ),
    ] = None
    shutdown: Annotated[
        str | None,
        Field(
            description="Time and power of shutting down, as for --boot.", examples=["S:W"], json_schema_extra=_GROUP
        ),
    ] = None

    def __post_init__(self) -> None:
        check_record(self, TraceOptions)
        _ = self.switching  # whose messages name the option
        if self.log_zone is not None:
            time_zone(self.log_zone, "log_zone")
        if self.partitions is not None and self.slurm_conf is not None:
            raise InputError("partitions and slurm_conf both define partitions; leave out one of them.")

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
        return self.allocation == "cores" or self.partitions is not None or self.slurm_conf is not None

    @property
    def given(self) -> dict[str, str | int]:
        """The options that are not the usual ones."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("partitions", "slurm_conf", "profiles"):
            values[name] = None if values[name] is None else str(values[name])
        return {field.name: values[field.name] for field in fields(self) if values[field.name] != field.default}

    def refuse(self, names: set[str], owner: str | Path, why: str) -> None:
        """Raise `InputError` if one of these options is given, as it would have no effect."""
        for name in self.given:
            if name in names:
                raise InputError(f"{owner}: {name} has no effect: {why}. Leave it out.")


def _time_and_power(name: str, text: str) -> tuple[float, float]:
    """Return the meaning of an option about booting or shutting down [s, W]."""
    try:
        time_s, watts = map(float, text.split(":"))
    except ValueError:
        time_s = watts = math.nan
    if SMALLEST <= time_s <= LARGEST and 0 <= watts <= LARGEST:
        return time_s, watts
    raise InputError(
        f"{name} is {text!r}; S:W is allowed, a time greater than 0 s and a power of at least 0 W, as 120:150."
    )
