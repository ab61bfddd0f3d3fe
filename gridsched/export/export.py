"""One folder for one run: Batsim's files, ours, and the archive that the run is read from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gridsched.energy import HostEnergy, busy_energy_j, relative_difference, task_energy_j, trace_energy
from gridsched.errors import InputError
from gridsched.export import batsim_files
from gridsched.export.archive import Export, archive_bytes, as_json, read_archive
from gridsched.export.batsim_files import Columns
from gridsched.export.trace_events import trace_events_text
from gridsched.files.csv_files import csv_text, interval_set
from gridsched.files.json_files import json_text
from gridsched.files.output_files import FolderKind
from gridsched.files.ro_crate import CRATE, Origin, crate_text
from gridsched.metrics.run_metrics import trace_carbon
from gridsched.model.tasks import deadline_column
from gridsched.model.trace import ExecutionEnd, TaskState, Trace
from gridsched.power import trace_power

#: The archive; the file that makes a folder an export.
MARKER = "trace.npz"
#: The file that holds the provenance.
PROVENANCE = "provenance.json"
#: Written where there was an energy budget.
PERIODS_FILE = "periods.csv"
#: What each file of a folder holds.
HOLDS = {
    "jobs.csv": "jobs, as Batsim writes them",
    "hosts.csv": "hosts, their speeds and powers",
    "machine_states.csv": "numbers of hosts in each state over time, as Batsim writes them",
    "pstate_changes.csv": "changes of P-states, as Batsim writes them",
    "consumed_energy.csv": "energy [J] and power [W] over time, as Batsim writes them",
    "schedule.json": "totals of the schedule, with Batsim's names",
    "executions.csv": "every execution of every task: host, P-state, begin, end, energy",
    "host_energy.csv": "energy of each host [J] by SimGrid's plugin and by the model, and its parts",
    PROVENANCE: "versions, inputs with SHA-256, parameters, seed, command",
    "platform.json": "the platform as it was used",
    "tasks.csv": "tasks, and how each ended",
    "host_changes.csv": "P-state and switch of each host, and their changes",
    "timing.json": "wall times of the run [s]",
    "trace_events.json": "the run in Trace Event Format, for Perfetto",
    MARKER: "the archive from which the run is read back",
    # where there was an energy budget
    PERIODS_FILE: "periods of the energy budget",
}
FILES = frozenset(HOLDS) - {PERIODS_FILE} | {CRATE}
#: The columns of each host's energy.
_PARTS = ("busy_j", "idle_j", "boot_j", "shutdown_j", "off_j", "above_idle_j", "wasted_j")
#: Its `check` refuses, before a run, a folder that `write_export` would refuse.
EXPORT = FolderKind("an export", MARKER, FILES | {PERIODS_FILE})


def write_export(
    trace: Trace,
    plugin_j: dict[str, float] | None,
    provenance: dict[str, Any],
    directory: Path,
    *,
    workload_name: str,
    scheduler_pstates: int | None = None,
    force: bool = False,
) -> None:
    """Write a run's files into a new folder, all or nothing.

    Parameters
    ----------
    trace : Trace
    plugin_j : dict of str to float, or None
        Energy SimGrid's plugin metered, by host name [J].
    provenance : dict
        Written as it is; must be JSON, numpy numbers and paths allowed.
    directory : Path
        Target; missing parents are made.
    workload_name : str
        Batsim's `workload_name` of every job.
    scheduler_pstates : int, optional
        P-states that schedulers choose from, where hosts have so many for each task type.
    force : bool
        Replace an existing export; the old one stays until the new one is complete.

    Raises
    ------
    InputError
        If the folder exists and may not be replaced, or cannot be written.
    """
    directory = Path(directory)
    EXPORT.check(directory, force=force)
    power = trace_power(trace)
    energy, timeline = trace_energy(trace, power), power.timeline
    tables = {
        "jobs.csv": batsim_files.jobs_table(trace, workload_name, scheduler_pstates),
        "hosts.csv": batsim_files.hosts_table(trace),
        "machine_states.csv": batsim_files.machine_states_table(timeline),
        "pstate_changes.csv": batsim_files.pstate_changes_table(trace, timeline),
        "consumed_energy.csv": batsim_files.consumed_energy_table(trace, power),
        "host_energy.csv": host_energy_table(energy, plugin_j),
        "tasks.csv": tasks_table(trace),
        "executions.csv": executions_table(trace),
        "host_changes.csv": host_changes_table(trace),
    }
    if len(trace.periods):
        tables[PERIODS_FILE] = batsim_files.periods_table(trace)
    contents: dict[str, str | bytes] = {name: csv_text(table, for_people=True) for name, table in tables.items()}
    contents |= {
        "schedule.json": json_text(batsim_files.schedule_values(trace, energy), exact=True),
        "platform.json": json_text(as_json(trace.platform), exact=True),
        PROVENANCE: json_text(provenance, exact=True),
        "timing.json": json_text(trace.timing, exact=True),
        "trace_events.json": trace_events_text(trace, power),
        MARKER: archive_bytes(Export(trace, plugin_j, provenance, workload_name)),
    }
    held = {name: HOLDS[name] for name in HOLDS if name in contents}
    contents[CRATE] = _crate(held, provenance)
    EXPORT.write(directory, contents, force=force)


def _crate(files: Mapping[str, str], provenance: Mapping[str, Any]) -> str:
    """Return the metadata of an export, whose files hold what `files` describes."""
    scheduler, workload = provenance.get("scheduler", "a scheduler"), provenance.get("workload", "a workload")
    description = (
        f"Records of a simulated run of gridsched: {workload} on {provenance.get('platform')} under {scheduler}, "
        f"seed {provenance.get('seed')}. {PROVENANCE} describes the run in full."
    )
    inputs = list(dict(provenance.get("inputs") or {}).items())
    origin = Origin(f"Simulation of {workload} under {scheduler}", provenance, inputs, provenance.get("command"))
    return crate_text(f"{scheduler} on {workload}", description, files, origin)


def read_export(directory: Path) -> Export:
    """Read a run back from the archive in the folder that `write_export` made.

    Raises
    ------
    InputError
        If the folder is not an export, or its archive is damaged.
    """
    directory = Path(directory)
    if not directory.is_dir():
        problem = "is a file, not a folder" if directory.exists() else "does not exist"
        raise InputError(f"{directory}: {problem}; give the folder of an export ('run --export').")
    if not (directory / MARKER).exists():
        raise InputError(
            f"{directory}: has no {MARKER!r}, and so is not an export; make one with 'gridsched run ... --export DIR'."
        )
    return read_archive(directory / MARKER)


def host_energy_table(energy: HostEnergy, plugin_j: dict[str, float] | None) -> Columns:
    """Rows of ``host_energy.csv``: plugin and model joules of each host, and their parts.

    The plugin's joules and the difference are nan, and empty in the file, where a host was not
    metered.
    """
    metered = plugin_j or {}
    plugin = np.array([metered.get(name, math.nan) for name in energy.names], dtype=np.float64)
    return {
        "host": list(energy.names),
        "role": list(energy.roles),
        "plugin_j": plugin,
        "model_j": energy.total_j,
        "relative_difference": relative_difference(plugin, energy.total_j),
        **{name: getattr(energy, name) for name in _PARTS},
    }


def tasks_table(trace: Trace) -> Columns:
    """Rows of ``tasks.csv``: the tasks in order of their ids, and how each ended."""
    tasks, n = trace.tasks, len(trace.tasks)
    names, asked = ("priority", "urgency", "utility_class"), ("width", "requested_time_s")
    return {
        "job_id": tasks.labels,
        "flops": tasks.flops,
        "submission_time": tasks.submit_time_s,
        "input_bytes": tasks.input_bytes,
        "output_bytes": tasks.output_bytes,
        "task_type": [None] * n if tasks.task_type is None else tasks.task_type,
        "input_files": [" ".join(map(str, row)) for row in tasks.input_files or ((),) * n],
        "final_state": [TaskState(state).name.lower() for state in trace.final_state.tolist()],
        "times_postponed": trace.times_postponed,
        **{name: getattr(tasks.utility, name) for name in names if tasks.utility is not None},
        **deadline_column(tasks),
        **{name: getattr(tasks, name) for name in asked if getattr(tasks, name) is not None},
        **{f"noted_{name}": values for name, values in trace.notes.items()},
    }


def executions_table(trace: Trace) -> Columns:
    """Rows of ``executions.csv``: every copy of every task, cancelled ones too."""
    runs = trace.executions
    names = [host.name for host in trace.platform.hosts]
    carbon = trace_carbon(trace)
    nodes = [interval_set(trace.hosts_of(k)) for k in range(len(runs))] if trace.is_parallel else []
    return {
        "job_id": trace.tasks.labels[runs["task"]],
        "host_id": runs["host"],
        "host": [names[host] for host in runs["host"].tolist()],
        "pstate": runs["pstate"],
        "starting_time": runs["start"],
        "finish_time": runs["end"],
        "outcome": [ExecutionEnd(end).name.lower() for end in runs["outcome"].tolist()],
        "executed_flops": trace.executed_flops(),
        "consumed_energy": task_energy_j(trace),
        "energy_with_idle": busy_energy_j(trace),
        **({"allocated_resources": nodes} if trace.is_parallel else {}),
        **({} if carbon is None else {"carbon_g": carbon.execution_j}),
    }


def host_changes_table(trace: Trace) -> Columns:
    """Rows of ``host_changes.csv``: P-state and switch of every host, and their changes."""
    changes = trace.host_changes
    return {"time": changes["time"], "host_id": changes["host"], "pstate": changes["pstate"], "is_on": changes["is_on"]}
