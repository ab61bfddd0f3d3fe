"""One folder for one run: Batsim's files, ours, and the archive that the run is read from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gridsched.energy import trace_energy, trace_power
from gridsched.errors import InputError
from gridsched.export import batsim_files, our_files
from gridsched.export.archive import Export, archive_bytes, as_json, read_archive
from gridsched.files.csv_files import csv_text
from gridsched.files.json_files import json_text
from gridsched.files.output_folder import FolderKind
from gridsched.model.trace import Trace

#: The archive; the file that makes a folder an export.
MARKER = "trace.npz"
FILES = frozenset({
    "jobs.csv", "hosts.csv", "machine_states.csv", "pstate_changes.csv", "consumed_energy.csv",
    "schedule.json", "executions.csv", "host_energy.csv", "provenance.json", "platform.json",
    "tasks.csv", "host_changes.csv", "timing.json", MARKER,
})  # fmt: skip
#: Written where there was an energy budget.
PERIODS_FILE = "periods.csv"
EXPORT = FolderKind("an export", MARKER, FILES | {PERIODS_FILE})


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
    power = trace_power(trace)
    energy, timeline = trace_energy(trace, power), power.timeline
    tables = {
        "jobs.csv": batsim_files.jobs_table(trace, workload_name, scheduler_pstates),
        "hosts.csv": batsim_files.hosts_table(trace),
        "machine_states.csv": batsim_files.machine_states_table(timeline),
        "pstate_changes.csv": batsim_files.pstate_changes_table(trace, timeline),
        "consumed_energy.csv": batsim_files.consumed_energy_table(trace, power),
        "host_energy.csv": our_files.host_energy_table(energy, plugin_j),
        "tasks.csv": our_files.tasks_table(trace),
        "executions.csv": our_files.executions_table(trace),
        "host_changes.csv": our_files.host_changes_table(trace),
    }
    if len(trace.periods):
        tables[PERIODS_FILE] = batsim_files.periods_table(trace)
    contents: dict[str, str | bytes] = {
        name: csv_text(table, for_people=True) for name, table in tables.items()
    }
    contents |= {
        "schedule.json": json_text(batsim_files.schedule_values(trace, energy), exact=True),
        "platform.json": json_text(as_json(trace.platform), exact=True),
        "provenance.json": json_text(provenance, exact=True),
        "timing.json": json_text(trace.timing, exact=True),
        MARKER: archive_bytes(Export(trace, plugin_j, provenance, workload_name)),
    }
    EXPORT.write(directory, contents, force=force)


def read_export(directory: Path) -> Export:
    """Read a run back from the archive in the folder that `write_export` made.

    Raises
    ------
    InputError
        If the folder is no export, or its archive is damaged.
    """
    directory = Path(directory)
    if not directory.is_dir():
        found = "is a file, not a folder" if directory.exists() else "does not exist"
        raise InputError(f"{directory}: {found}; give the folder of an export ('run --export').")
    if not (directory / MARKER).exists():
        why = "and so is no export; make one"
        if (directory / "trace.json").exists():
            why = "as it is an export of an older gridsched; make it anew"
        raise InputError(
            f"{directory}: has no {MARKER!r}, {why} with 'gridsched run ... --export DIR'."
        )
    return read_archive(directory / MARKER)
