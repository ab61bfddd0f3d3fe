"""A run as files in a folder, and as trace events for Perfetto and Chrome.

In trace events a process is a cluster, its threads are the cores of its hosts. Times are whole microseconds, so
that what ends and what begins in one instant never overlap in a viewer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.energy import HostEnergy, busy_energy_j, relative_difference, task_energy_j, trace_energy
from gridsched.errors import InputError
from gridsched.export import batsim_files
from gridsched.export.archive import Export, archive_bytes, as_json, read_archive
from gridsched.export.batsim_files import Columns
from gridsched.files.csv_files import csv_text, interval_set
from gridsched.files.output_files import FolderKind, json_text
from gridsched.metrics.run_metrics import trace_carbon
from gridsched.model.tasks import deadline_column
from gridsched.model.timeline import HostTimeline, core_lanes
from gridsched.model.trace import ExecutionEnd, TaskState, Trace, down_times
from gridsched.power import TracePower, grid_power, trace_power

# ----------------------
# A run in Chrome's trace-event format, which Perfetto and chrome://tracing open


Event = dict[str, Any]
#: Bars of a viewer: process and thread of each, begin and end [us], and what else is said.
Bars = tuple[Integers, Integers, Integers, Integers, list[Event]]

#: With more bars a job of several nodes has one on its first node alone: viewers hold no more.
MOST_BARS = 500_000
#: Number of the process that draws the power of all hosts; clusters have the next ones.
_GRID = 1
_SWITCHED = ("", "boot", "shutdown", "off", "down")
_JSON = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_FIRST_NODE_ALONE = "Each job stands on the first core of the first of its nodes alone."


def trace_events_text(trace: Trace, power: TracePower) -> str:
    """Return the run as JSON in the trace-event format, one event a line.

    Parameters
    ----------
    trace : Trace
    power : TracePower
        `trace_power` of the trace.

    References
    ----------
    .. [1] "Trace Event Format", the Chromium project: complete (``X``), counter (``C``) and
       metadata (``M``) events; ``ts`` and ``dur`` in microseconds.
    """
    execution, host = trace.placed()
    placement, core = core_lanes(trace)
    first_alone = trace.is_parallel and len(placement) > MOST_BARS
    if first_alone:
        placement, first = np.unique(execution[placement], return_index=True)
        execution, host, core = np.arange(len(trace.executions)), trace.executions["host"], core[first]
    threads = _Threads(trace)
    tables = [
        _executions(trace, execution[placement], host[placement], core, threads),
        _switched(trace, power.timeline, threads),
    ]
    events = chain(threads.names(), _without_overlap(tables), _power(trace, power))
    lines = ",\n".join(map(_JSON.encode, events))
    about = {"platform": trace.platform.name, "workload": trace.tasks.name}
    if first_alone:
        about["note"] = _FIRST_NODE_ALONE
    return f'{{"displayTimeUnit":"ms","otherData":{_JSON.encode(about)},"traceEvents":[\n{lines}\n]}}\n'


class _Threads:
    """The numbers of processes and threads in a trace.

    Parameters
    ----------
    trace : Trace
    """

    def __init__(self, trace: Trace) -> None:
        platform = trace.platform
        self._trace = trace
        # hosts without clusters are each a cluster of their own
        self._is_flat = all(len(cluster.hosts) == 1 for cluster in platform.clusters)
        n_processes = 1 if self._is_flat else len(platform.clusters)
        self.process = _GRID + 1 + (np.zeros_like(platform.cluster_of) if self._is_flat else platform.cluster_of)
        #: thread of each host's first core
        self.first = _GRID + 1 + n_processes + np.cumsum(platform.cores) - platform.cores

    def bars(self, host: Integers, core: Integers | int, start: Floats, end: Floats, said: list[Event]) -> Bars:
        """Return bars on cores of hosts, from begin to end [s], and what else is said of them."""
        return self.process[host], self.first[host] + core, _microseconds(start), _microseconds(end), said

    def names(self) -> Iterator[Event]:
        """Yield the names of processes and threads."""
        platform = self._trace.platform
        processes = ["hosts"] if self._is_flat else [cluster.name for cluster in platform.clusters]
        for process, name in enumerate(["grid", *processes], start=_GRID):
            yield _name("process_name", process, 0, name)
        for host, process, first in zip(platform.hosts, self.process.tolist(), self.first.tolist(), strict=True):
            for core in range(host.cores):
                name = host.name if host.cores == 1 else f"{host.name}, core {core}"
                yield _name("thread_name", process, first + core, name)


def _name(kind: str, process: int, thread: int, name: str) -> Event:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def _executions(trace: Trace, execution: Integers, host: Integers, core: Integers, threads: _Threads) -> Bars:
    """Return a bar for each execution on each core that it has."""
    runs, tasks = trace.executions, trace.tasks
    values = {
        "task": tasks.labels[runs["task"]],
        "pstate": runs["pstate"],
        "outcome": [ExecutionEnd(end).name.lower() for end in runs["outcome"].tolist()],
        "wait_s": runs["start"] - tasks.submit_time_s[runs["task"]],
        **({"hosts": trace.width} if trace.is_parallel else {}),
        **({"energy_j": busy_energy_j(trace)} if trace.platform.has_energy else {}),
    }
    word = "job" if trace.is_parallel else "task"
    details = []
    columns = [each.tolist() if isinstance(each, np.ndarray) else each for each in values.values()]
    for row in zip(*columns, strict=True):
        arguments = dict(zip(values, row, strict=True))
        outcome = "" if arguments["outcome"] == "finished" else f" ({arguments['outcome']})"
        details.append({"name": f"{word} {arguments['task']}{outcome}", "cat": "execution", "args": arguments})
    events = [details[k] for k in execution.tolist()]
    return threads.bars(host, core, runs["start"][execution], runs["end"][execution], events)


def _switched(trace: Trace, timeline: HostTimeline, threads: _Threads) -> Bars:
    """Return a bar on the first core for each time in which a host boots, shuts down or is off."""
    state = np.select([timeline.is_booting, timeline.is_shutting_down, timeline.is_off], [1, 2, 3], 0)
    rows = np.flatnonzero(timeline.changes_of(state))
    host, start, state = timeline.host[rows], timeline.time[rows], state[rows]
    end = np.full(len(rows), trace.horizon_s)
    end[:-1] = np.where(host[1:] == host[:-1], start[1:], trace.horizon_s)
    chosen = (state > 0) & (end > start)
    host, start, end, state = host[chosen], start[chosen], end[chosen], state[chosen]
    for failed, begin, back in down_times(trace):
        state[(host == failed) & (state == 3) & (start >= begin) & (start < back)] = 4
    events = [{"name": _SWITCHED[k], "cat": "host", "args": {}} for k in state.tolist()]
    return threads.bars(host, 0, start, end, events)


def _without_overlap(tables: list[Bars]) -> Iterator[Event]:
    """Yield the bars by thread and time; one that ends a rounding late ends where the next begins."""
    process, thread, start, end = (np.concatenate(column) for column in list(zip(*tables, strict=True))[:4])
    events = [event for *_, said in tables for event in said]
    order = np.lexsort((end, start, thread))
    same = thread[order][1:] == thread[order][:-1]
    last = end[order[:-1]]
    end[order[:-1]] = np.where(same, np.minimum(last, start[order][1:]), last)
    columns = (each[order].tolist() for each in (process, thread, start, end - start))
    for k, pid, tid, ts, dur in zip(order.tolist(), *columns, strict=True):
        yield {**events[k], "ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur}


def _microseconds(time_s: Floats) -> Integers:
    return np.rint(time_s * 1e6).astype(np.int64)


def _power(trace: Trace, power: TracePower) -> Iterator[Event]:
    """Yield the power of all computing hosts whenever it changes; nothing where none is known."""
    if not trace.platform.has_energy:
        return
    series = grid_power(trace, power)
    for time, watts in zip(_microseconds(series.time).tolist(), series.total_w.tolist(), strict=True):
        yield {"name": "power", "ph": "C", "pid": _GRID, "ts": time, "args": {"W": watts}}


# ----------------------
# One folder for one run: Batsim's files, ours, and the archive that the run is read from


#: The archive; the file that makes a folder an export.
MARKER = "trace.npz"
FILES = frozenset(
    {
        "jobs.csv",
        "hosts.csv",
        "machine_states.csv",
        "pstate_changes.csv",
        "consumed_energy.csv",
        "schedule.json",
        "executions.csv",
        "host_energy.csv",
        "provenance.json",
        "platform.json",
        "tasks.csv",
        "host_changes.csv",
        "timing.json",
        "trace_events.json",
        MARKER,
    }
)
#: Written where there was an energy budget.
PERIODS_FILE = "periods.csv"
#: What is told of each host's energy.
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
        "provenance.json": json_text(provenance, exact=True),
        "timing.json": json_text(trace.timing, exact=True),
        "trace_events.json": trace_events_text(trace, power),
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
        problem = "is a file, not a folder" if directory.exists() else "does not exist"
        raise InputError(f"{directory}: {problem}; give the folder of an export ('run --export').")
    if not (directory / MARKER).exists():
        raise InputError(
            f"{directory}: has no {MARKER!r}, and so is no export; make one with 'gridsched run ... --export DIR'."
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
