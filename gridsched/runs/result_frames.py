"""A run's tasks and hosts as tables for a notebook, under the names that the user gave them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gridsched.energy import HostEnergy, busy_energy_j
from gridsched.metrics import METRICS
from gridsched.metrics.run_metrics import deciding_execution, execution_time_s, waiting_time_s
from gridsched.model.trace import ExecutionEnd, TaskState, Trace

if TYPE_CHECKING:
    import pandas as pd  # slow to load

#: What a run is told by first, where it has it.
_TOLD = ("utility", "makespan_s", "energy_j", "profit", "tasks_finished", "tasks")


def tasks_frame(trace: Trace) -> pd.DataFrame:
    """Return a row for each task, by its id: what it was, when and where it ran, how it ended.

    Times are in s; start, wait and host are those of the copy that finished the task, otherwise of
    the one that started last. `energy_j` is what all its copies drew, idle power included.
    """
    import pandas as pd

    tasks, runs = trace.tasks, trace.executions
    chosen = deciding_execution(trace)
    has_run = chosen >= 0
    names = np.array([host.name for host in trace.platform.hosts], dtype=object)
    host = np.full(len(tasks), None, dtype=object)
    host[has_run] = names[runs["host"][chosen[has_run]]]
    waiting = waiting_time_s(trace)
    columns = {
        "flops": tasks.flops,
        "submit_s": tasks.submit_time_s,
        "start_s": tasks.submit_time_s + waiting,
        "finish_s": trace.finish_time_s,
        "waiting_s": waiting,
        "run_s": execution_time_s(trace),
        "host": host,
        "state": [TaskState(state).name.lower() for state in trace.final_state.tolist()],
        "copies": np.bincount(runs["task"], minlength=len(tasks)),
        "energy_j": np.bincount(runs["task"], busy_energy_j(trace), minlength=len(tasks)),
    }
    return pd.DataFrame(columns, index=pd.Index(tasks.labels, name="task"))


def hosts_frame(trace: Trace, energy: HostEnergy, plugin_j: Mapping[str, float] | None) -> pd.DataFrame:
    """Return a row for each host, by its name: what it did and what it drew [s, J].

    Hosts that compute nothing are there too, with their role.
    """
    import pandas as pd

    runs, n = trace.executions, len(trace.platform)
    execution, placed = trace.placed()
    length = (runs["end"] - runs["start"])[execution]
    finished = (runs["outcome"] == ExecutionEnd.FINISHED)[execution]
    nothing = np.zeros(len(energy) - n)
    columns = {
        "role": energy.roles,
        "finished": np.append(np.bincount(placed[finished], minlength=n), nothing).astype(int),
        "core_busy_s": np.append(np.bincount(placed, length, minlength=n), nothing),
        "energy_j": [(plugin_j or {}).get(name, np.nan) for name in energy.names],
        "energy_model_j": energy.total_j,
        "busy_j": energy.busy_j,
        "idle_j": energy.idle_j,
        "boot_j": energy.boot_j,
        "shutdown_j": energy.shutdown_j,
        "off_j": energy.off_j,
        "wasted_j": energy.wasted_j,
    }
    return pd.DataFrame(columns, index=pd.Index(energy.names, name="host"))


def short_text(name: str, where: str, summary: Mapping[str, Any]) -> str:
    """Return a run in one line: what ran, and its most telling metrics."""
    parts = [
        f"{METRICS[id].row_name} {summary[id]:,.6g} {METRICS[id].unit}".rstrip()
        for id in _TOLD[:-2]
        if summary.get(id) is not None
    ]
    parts.append(f"{summary['tasks_finished']:,} of {summary['tasks']:,} tasks finished")
    return f"<{name} {where}: {', '.join(parts)}>"


def html_table(title: str, summary: Mapping[str, Any]) -> str:
    """Return a run's metrics as a table of HTML."""
    from html import escape  # for notebooks alone

    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(METRICS[id].row_name)}</th>"
        f"<td>{escape(_cell(value))} {escape(METRICS[id].unit)}</td></tr>"
        for id, value in summary.items()
        if id in METRICS
    )
    return f"<table><caption>{escape(title)}</caption>{rows}</table>"


def _cell(value: Any) -> str:
    if isinstance(value, str) or value is None:
        return value or "-"
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"
