"""``gridsched workload import`` and ``convert``, and the section of ``describe`` on parallel jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gridsched.analysis.workload_statistics import WorkloadStatistics, job_statistics
from gridsched.cli.options import with_options
from gridsched.cli.output import (
    ForceOption,
    JsonOption,
    QuietOption,
    check_targets,
    listed_with_outputs,
    output_option,
    put_json,
)
from gridsched.cli.tables import console, print_table
from gridsched.errors import InputError
from gridsched.files.json_files import json_text
from gridsched.files.output_files import write_whole
from gridsched.metrics.columns import Column
from gridsched.model.limits import LARGEST, SMALLEST
from gridsched.model.records import keys_of
from gridsched.platform_io.overrides import PowerOverride
from gridsched.workloads.bag import write_bag
from gridsched.workloads.load import check_kind, read_generator
from gridsched.workloads.rigid_jobs import RigidJobs, draw_rigid_jobs
from gridsched.workloads.traces.formats import (
    NODE_SPEED,
    check_written,
    endings,
    is_trace,
    read_jobs,
    stays_behind,
    write_jobs,
    written_endings,
)
from gridsched.workloads.traces.job_table import JobTable, reasons
from gridsched.workloads.traces.trace_options import NODE_POWER_W, OF_MACHINE, TraceOptions
from gridsched.workloads.traces.trace_system import serial_tasks

#: Options about who may run where and when, which mean nothing where nothing runs.
_OF_RUNS = {"partitions", "slurm_conf", "requests"}


@dataclass
class LogOptions:
    """How a log is read, as options: `trace` holds those that were given."""

    trace: dict[str, Any] = field(default_factory=dict)


@dataclass
class LogConversion:
    """The log that a command reads, and how it reports what was left out, as options."""

    log: Annotated[
        Path, typer.Argument(metavar="FILE", help=f"Log of jobs ({endings()}; also compressed, with .gz at the end).")
    ]
    report: Annotated[
        Path | None,
        listed_with_outputs(
            metavar="FILE", help=("Write everything that was left out, with its lines, to this .json file.")
        ),
    ] = None
    force: ForceOption = False
    json: JsonOption = False
    quiet: QuietOption = False

    def read(self, trace: Mapping[str, Any], output: Path, *, speed: float = NODE_SPEED) -> JobTable:
        """Return the jobs of the log; files that could not be written are refused before."""
        targets: dict[str, Sequence[Path]] = {"-o": [output], "--report": [self.report] if self.report else []}
        check_targets(targets, [self.log], force=self.force)
        how = TraceOptions(**trace)
        how.refuse(OF_MACHINE | _OF_RUNS, self.log, "nothing runs here")
        return read_jobs(self.log, how, speed=speed)

    def state(self, output: Path, what: str, jobs: JobTable) -> None:
        """Say what was written and what was left out."""
        whole = {what: len(jobs), "left_out": [each.as_json() for each in jobs.dropped], "notes": list(jobs.notes)}
        if self.report is not None:
            write_whole(self.report, json_text(whole), force=self.force)
        if self.json:
            put_json(whole)
        elif not self.quiet:
            out = console()
            out.print(f"Wrote {output}: {len(jobs):,} {what}.")
            print_rest(out, jobs)


#: Gives a command the options of logs.
with_log_options = with_options(LogOptions, records={"trace": keys_of(TraceOptions)})


def described_jobs(workload: Path, given: Mapping[str, Any]) -> JobTable | None:
    """Return the jobs of a log, or of a generator that draws some; None of another workload.

    Raises
    ------
    InputError
        If an option has no effect, or no job of a log is left.
    """
    options = TraceOptions(**given)
    if is_trace(workload):
        options.refuse(OF_MACHINE - {"nodes"} | _OF_RUNS, workload, "nothing runs here")
        jobs = read_jobs(workload, options)
        n_nodes = options.nodes or jobs.nodes_of_header
        jobs = jobs if n_nodes is None else jobs.that_fit(n_nodes)
        _refuse_empty(jobs, "describe")
        return jobs
    check_kind(workload)
    options.refuse(set(options.given), workload, "this workload is not a trace")
    parameters = read_generator(workload) if workload.suffix.lower() == ".toml" else None
    return draw_rigid_jobs(parameters) if isinstance(parameters, RigidJobs) else None


def _refuse_empty(jobs: JobTable, purpose: str) -> None:
    if not len(jobs):
        raise InputError(f"{jobs.name}: no job is left to {purpose}{reasons(jobs.dropped)}.")


def statistics_of_jobs(jobs: JobTable, given: Mapping[str, Any], power: str | None) -> WorkloadStatistics:
    """Return the statistics of jobs on the machine that the options or the log describe.

    Raises
    ------
    InputError
        If `power` is not a power of a node.
    """
    busy_w = NODE_POWER_W[1]
    if power is not None:
        watts = PowerOverride.read((power,)).of("", 1, jobs.name)
        if watts is None:
            raise InputError(f"--power {power!r}: the power of a node is needed here, IDLE:EPSILON:BUSY in W.")
        busy_w = watts[0][2]
    return job_statistics(jobs, TraceOptions(**given).nodes or jobs.nodes_of_header, busy_w)


#: Users and partitions that a table for people has; --json has all.
_MOST_ROWS = 10
_ENERGY = (
    Column("by", ""),
    Column("name", ""),
    Column("jobs", "jobs", "number"),
    Column("node_power_w", "a node,\nmean [W]", "rounded"),
    Column("measured_j", "measured\n[J]", "number"),
    Column("modelled_j", "by the model\n[J]", "number"),
    Column("modelled_above_measured", "model above\nmeasured", "percent"),
)


def print_energy(out: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print measured energy beside the model's, of the largest consumers."""
    if not rows:
        return
    largest: list[Mapping[str, Any]] = []
    for by in dict.fromkeys(row["by"] for row in rows):
        own = [row for row in rows if row["by"] == by]
        largest += own[:_MOST_ROWS]
        if len(own) > _MOST_ROWS:
            out.print(f"Of {len(own):,} by {by}, the {_MOST_ROWS} largest are shown; --json has all.")
    print_table(out, _ENERGY, largest, "Energy of the jobs that were metered")


def print_rest(out: Console, jobs: JobTable) -> None:
    """Print what was left out of a log, a line for each reason."""
    for line in (*map(str, jobs.dropped), *jobs.notes):
        out.print(line, soft_wrap=True)


@with_log_options
def import_command(
    options: LogOptions,
    conversion: LogConversion,
    output: Annotated[Path, output_option(help="Tasks to write (.csv).")],
    speed: Annotated[float, typer.Option(metavar="F", help="Speed of the log's machine [flop/s].")] = NODE_SPEED,
) -> None:
    """Make a bag of tasks from the serial jobs of a log.

    Examples
    --------
    gridsched workload import examples/four_nodes.swf -o tasks.csv

    gridsched workload import examples/four_nodes.swf --speed 1e9 -o fast.csv --report left_out.json

    A task has as many flops as a host of --speed does in the run time of its job.
    """
    if output.suffix.lower() != ".csv":
        raise InputError(f"{output}: tasks are written as .csv.")
    if not SMALLEST <= speed <= LARGEST:
        raise InputError(f"--speed is {speed:g}; it must be greater than 0, at most {LARGEST:g}.")
    jobs = conversion.read(options.trace, output, speed=speed)
    tasks = serial_tasks(jobs, speed)
    _refuse_empty(tasks.jobs, "make a task of")
    write_bag(tasks.tasks, output, force=conversion.force)
    conversion.state(output, "tasks", tasks.jobs)


@with_log_options
def convert(
    options: LogOptions,
    conversion: LogConversion,
    output: Annotated[Path, output_option(help=f"Jobs to write ({' or '.join(written_endings())}).")],
) -> None:
    """Write the jobs of a log that can be run in another format: SWF, Batsim's JSON, a table.

    Examples
    --------
    gridsched workload convert examples/four_nodes.swf -o log.swf

    gridsched workload convert examples/four_nodes.swf --procs-per-node 2 -o workload.json
    """
    check_written(output)
    jobs = conversion.read(options.trace, output)
    _refuse_empty(jobs, "write")
    write_jobs(jobs, output, force=conversion.force)
    if (lost := stays_behind(jobs, output)) is not None:
        jobs = replace(jobs, notes=(*jobs.notes, lost))
    conversion.state(output, "jobs", jobs)
