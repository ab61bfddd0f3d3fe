"""A run's tasks and hosts as tables for a notebook, under the names that the user gave them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from gridsched.energy import HostEnergy
from gridsched.extras import check_installed, load
from gridsched.metrics import METRICS
from gridsched.metrics.columns import amount
from gridsched.metrics.group_metrics import execution_energy_j
from gridsched.metrics.resource_energy import idle_power_w, resource_energy
from gridsched.metrics.run_metrics import deciding_execution, execution_time_s, trace_carbon, waiting_time_s
from gridsched.metrics.table import is_metered, shown_metrics
from gridsched.model.carbon import embodied_g
from gridsched.model.trace import ExecutionEnd, TaskState, Trace

if TYPE_CHECKING:
    import pandas as pd  # slow to load


#: What the energy of a host goes into.
_PARTS = ("busy", "idle", "boot", "shutdown", "off", "wasted")


def tasks_frame(trace: Trace, idle_attribution: str = "cores") -> pd.DataFrame:
    """Return a row for each task, by its id: what it was, when and where it ran, how it ended.

    Times are in s; start, wait and host are those of the copy that finished the task, otherwise of
    the one that started last. `energy_j` is what all its copies drew, with the idle power of busy
    hosts unless `idle_attribution` is ``"node"``, and
    `carbon_g` what they emitted [g], if that is known; `energy_resources_j` is what the GPUs, memory and the like
    that they had drew, where the platform states it.
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
        "energy_j": np.bincount(runs["task"], execution_energy_j(trace, idle_attribution), minlength=len(tasks)),
    }
    if (carbon := trace_carbon(trace)) is not None:
        columns["carbon_g"] = np.bincount(runs["task"], carbon.execution_j, minlength=len(tasks))
    if any(host.unit_power for host in trace.platform.hosts):
        each_j = resource_energy(trace).execution_j
        columns["energy_resources_j"] = np.bincount(runs["task"], each_j, minlength=len(tasks))
    return pd.DataFrame(columns, index=pd.Index(tasks.labels, name="task"))


def hosts_frame(trace: Trace, energy: HostEnergy, plugin_j: Mapping[str, float] | None) -> pd.DataFrame:
    """Return a row for each host, by its name: what it did, and what it drew and emitted [s, J, g].

    Hosts that compute nothing are there too, with their role. `energy_j` is what SimGrid's plugin has metered; of a
    run that has none, the model's, as in the row of the run.
    """
    import pandas as pd

    runs, n = trace.executions, len(trace.platform)
    execution, placed = trace.placed()
    length = (runs["end"] - runs["start"])[execution]
    if len(trace.host_cores):
        length = length * trace.host_cores
    finished = (runs["outcome"] == ExecutionEnd.FINISHED)[execution]
    nothing = np.zeros(len(energy) - n)
    columns = {
        "role": energy.roles,
        "finished": np.append(np.bincount(placed[finished], minlength=n), nothing).astype(int),
        "core_busy_s": np.append(np.bincount(placed, length, minlength=n), nothing),
        "energy_j": [plugin_j.get(name, np.nan) for name in energy.names] if plugin_j else energy.total_j,
        "energy_model_j": energy.total_j,
    }
    columns |= {f"{part}_j": getattr(energy, f"{part}_j") for part in _PARTS}
    if (carbon := trace_carbon(trace)) is not None:
        columns["carbon_g"] = carbon.total_j
    everyone = trace.platform.everyone
    if any(host.unit_power for host in trace.platform.hosts):
        others = [idle_power_w(host) * trace.horizon_s for host in everyone[n:]]
        columns["energy_resources_j"] = np.append(resource_energy(trace).total_j, others)
    if any(host.embodied_kg for host in everyone):
        columns["carbon_embodied_g"] = embodied_g(everyone, trace.horizon_s)
    return pd.DataFrame(columns, index=pd.Index(energy.names, name="host"))


def page_of_traces(runs: Sequence[tuple[str, Trace]]) -> Any:
    """Return a page to look at runs on one time axis, which a notebook shows, and `save` writes.

    Parameters
    ----------
    runs : sequence of (str, Trace)
        With their titles.

    Returns
    -------
    gridsched.page.run_panels.RunPage

    Raises
    ------
    MissingDependency
        If Bokeh is not installed.
    """
    check_installed("bokeh", "Pages of runs")
    # by name: the room of pages is above this one
    page, data = (import_module(f"gridsched.page.{name}") for name in ("run_panels", "run_data"))
    return page.run_page([data.ShownRun(*each) for each in runs])


def arrow_stream(frame: pd.DataFrame, schema: object) -> object:
    """Return a frame as a stream of Arrow, for packages that read tables by its C interface.

    Parameters
    ----------
    frame : DataFrame
        Its index is left out.
    schema : PyCapsule or None
        The schema that the reader asks for.

    Returns
    -------
    PyCapsule

    Raises
    ------
    MissingDependency
        If pyarrow is not installed.

    References
    ----------
    .. [1] "The Arrow PyCapsule Interface",
       https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html
    """
    return load("pyarrow", "Streams of Arrow").Table.from_pandas(frame, preserve_index=False).__arrow_c_stream__(schema)


def short_text(where: str, summary: Mapping[str, Any]) -> str:
    """Return a run in one line: what ran, and its most telling metrics."""
    energy = "energy_j" if is_metered([summary]) else "energy_model_j"
    parts = [
        f"{METRICS[id].row_name} {amount(summary[id], METRICS[id].unit)}"
        for id in ("utility", "makespan_s", energy, "profit")
        if summary.get(id) is not None
    ]
    parts.append(f"{summary['tasks_finished']:,} of {summary['tasks']:,} tasks finished")
    return f"<RunResult {where}: {', '.join(parts)}>"


def html_table(title: str, summary: Mapping[str, Any]) -> str:
    """Return what is not 0 of a run's metrics as a table of HTML, as ``gridsched run`` shows them."""
    from html import escape  # for notebooks alone

    shown = ((metric, summary[metric.id]) for metric in shown_metrics("run", [summary]))
    rows = "".join(
        f"<tr><th style='text-align:left'>{'&emsp;' * metric.is_part}{escape(metric.row_name)}</th>"
        f"<td>{escape(value if metric.form == 'text' else amount(value, metric.unit))}</td></tr>"
        for metric, value in shown
        if value
    )
    return f"<table><caption>{escape(title)}</caption>{rows}</table>"
