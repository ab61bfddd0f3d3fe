"""The tables of an export beside Batsim's: joules by host, and the trace for people to read."""

from __future__ import annotations

import math

import numpy as np

from gridsched.energy import HostEnergy, busy_energy_j, relative_difference, task_energy_j
from gridsched.export.batsim_files import Columns
from gridsched.files.interval_sets import interval_set
from gridsched.model.tasks import Tasks, deadline_column
from gridsched.model.trace import ExecutionEnd, TaskState, Trace


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
        "busy_j": energy.busy_j,
        "idle_j": energy.idle_j,
        "boot_j": energy.boot_j,
        "shutdown_j": energy.shutdown_j,
        "off_j": energy.off_j,
        "above_idle_j": energy.above_idle_j,
        "wasted_j": energy.wasted_j,
    }


def tasks_table(trace: Trace) -> Columns:
    """Rows of ``tasks.csv``: the tasks in order of their ids, and how each ended."""
    tasks, n = trace.tasks, len(trace.tasks)
    names = () if tasks.utility is None else ("priority", "urgency", "utility_class")
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
        **{name: getattr(tasks.utility, name) for name in names},
        **deadline_column(tasks),
        **_of_jobs(tasks),
        **{f"noted_{name}": values for name, values in trace.notes.items()},
    }


def _of_jobs(tasks: Tasks) -> Columns:
    """Columns of what jobs asked for: nodes and time, each where the tasks have it."""
    names = ("width", "requested_time_s")
    return {name: getattr(tasks, name) for name in names if getattr(tasks, name) is not None}


def executions_table(trace: Trace) -> Columns:
    """Rows of ``executions.csv``: every copy of every task, cancelled ones too."""
    runs = trace.executions
    names = [host.name for host in trace.platform.hosts]
    sets: Columns = {}
    if trace.is_parallel:
        sets["allocated_resources"] = [interval_set(trace.hosts_of(k)) for k in range(len(runs))]
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
        **sets,
    }


def host_changes_table(trace: Trace) -> Columns:
    """Rows of ``host_changes.csv``: P-state and switch of every host, and their changes."""
    changes = trace.host_changes
    return {
        "time": changes["time"], "host_id": changes["host"], "pstate": changes["pstate"],
        "is_on": changes["is_on"],
    }  # fmt: skip
