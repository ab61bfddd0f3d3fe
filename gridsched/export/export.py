"""One folder for one run: Batsim's files, ours, and enough to read the run back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gridsched.energy import (
    HostEnergy,
    busy_energy_j,
    relative_difference,
    task_energy_j,
    trace_energy,
)
from gridsched.errors import InputError
from gridsched.export import batsim_files, records
from gridsched.export.platform_json import platform_values
from gridsched.files.csv_files import csv_text, read_table
from gridsched.files.json_files import json_text, read_json
from gridsched.files.output_folder import FolderKind
from gridsched.model.timeline import host_timeline
from gridsched.model.trace import Trace

#: The file that makes a folder an export.
MARKER = "trace.json"
FILES = frozenset({
    "jobs.csv", "hosts.csv", "machine_states.csv", "pstate_changes.csv", "consumed_energy.csv",
    "schedule.json", "executions.csv", "host_energy.csv", "provenance.json", "platform.json",
    "tasks.csv", "host_changes.csv", "timing.json", MARKER,
})  # fmt: skip
#: Written where there was an energy budget.
PERIODS_FILE = "periods.csv"
EXPORT = FolderKind("an export", MARKER, FILES | {PERIODS_FILE})


@dataclass(frozen=True)
class Export:
    """A run read back from its folder.

    Attributes
    ----------
    trace : Trace
    plugin_j : dict of str to float, or None
        Energy SimGrid's plugin metered, by host name [J]; None if no host was metered.
    provenance : dict
    workload_name : str
    """

    trace: Trace
    plugin_j: dict[str, float] | None
    provenance: dict[str, Any]
    workload_name: str


def host_energy_table(
    energy: HostEnergy, plugin_j: dict[str, float] | None
) -> batsim_files.Columns:
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
        "busy_j": energy.busy_j,
        "idle_j": energy.idle_j,
        "boot_j": energy.boot_j,
        "off_j": energy.off_j,
        "above_idle_j": energy.above_idle_j,
        "wasted_j": energy.wasted_j,
    }


def check_export_folder(directory: Path, *, force: bool = False) -> None:
    """Raise `InputError` if `write_export` would refuse `directory`; call it before a run."""
    EXPORT.check(Path(directory), force=force)


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
    check_export_folder(directory, force=force)
    energy, timeline = trace_energy(trace), host_timeline(trace)
    tables = {
        "jobs.csv": batsim_files.jobs_table(trace, workload_name, scheduler_pstates),
        "hosts.csv": batsim_files.hosts_table(trace),
        "machine_states.csv": batsim_files.machine_states_table(timeline),
        "pstate_changes.csv": batsim_files.pstate_changes_table(trace, timeline),
        "consumed_energy.csv": batsim_files.consumed_energy_table(trace, timeline),
        "host_energy.csv": host_energy_table(energy, plugin_j),
    }
    if len(trace.periods):
        tables[PERIODS_FILE] = batsim_files.periods_table(trace)
    contents = {name: csv_text(columns) for name, columns in tables.items()}
    contents |= {
        "schedule.json": json_text(batsim_files.schedule_values(trace, energy), exact=True),
        "executions.csv": records.executions_table(
            trace, task_energy_j(trace), busy_energy_j(trace)
        ),
        "host_changes.csv": records.host_changes_table(trace),
        "tasks.csv": records.tasks_table(trace),
        "platform.json": json_text(platform_values(trace.platform), exact=True),
        "provenance.json": json_text(provenance, exact=True),
        "timing.json": json_text(trace.timing, exact=True),
        MARKER: json_text(records.trace_values(trace, workload_name), exact=True),
    }
    EXPORT.write(directory, contents, force=force)


def read_export(directory: Path) -> Export:
    """Read a run back from the folder `write_export` made.

    Raises
    ------
    InputError
        If the folder is no export, or a file is missing, cut off or holds an illegal value; the
        message names the file and the line or field.
    """
    directory = Path(directory)
    if not directory.is_dir():
        found = "is a file, not a folder" if directory.exists() else "does not exist"
        raise InputError(f"{directory}: {found}; give the folder of an export ('run --export').")
    if not (directory / MARKER).exists():
        raise InputError(
            f"{directory}: has no {MARKER!r} and so is no export; make one with "
            "'gridsched run ... --export DIR'."
        )
    trace, workload_name = records.read_trace(directory)
    path = directory / "host_energy.csv"
    table = read_table(path, {"host": "text", "plugin_j": "number or empty"})
    expected = [host.name for host in trace.platform.hosts]
    expected += [host.name for _, host in trace.platform.idle_hosts_named]
    if table["host"] != expected:
        raise InputError(f"{path}: its hosts are not those of platform.json, in that order.")
    metered = {
        name: joules
        for name, joules in zip(table["host"], table["plugin_j"].tolist(), strict=True)
        if joules == joules
    }
    provenance = read_json(directory / "provenance.json")
    return Export(trace, metered or None, provenance, workload_name)
