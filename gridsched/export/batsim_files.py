"""The tables of Batsim's output files, so that evalys and users' own scripts read our runs.

Hosts are numbered by their position in the platform, from 0; those that compute nothing come
last and appear in `hosts_table` only. What Batsim leaves open or prints as ``NA`` is settled
here: every number is exact, and every table has its header even if it has no rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched import metrics
from gridsched.arrays import Floats
from gridsched.energy import HostEnergy, busy_energy_j, task_energy_j
from gridsched.files.csv_files import interval_set
from gridsched.metrics import run_metrics, window_metrics
from gridsched.metrics.run_metrics import of_deciding, trace_carbon
from gridsched.model.tasks import deadline_column
from gridsched.model.timeline import HostTimeline, host_timeline
from gridsched.model.trace import ExecutionEnd, TaskState, Trace
from gridsched.power import TracePower, grid_power, running_total

Columns = dict[str, NDArray[Any] | list[Any]]

#: Batsim's P-states of a host that is being switched on, or off.
SWITCHING_ON, SWITCHING_OFF = -1, -2
#: Batsim's word for a state of a host -> which rows of a timeline are in it.
STATES = {
    "sleeping": "is_off",
    "switching_on": "is_booting",
    "switching_off": "is_shutting_down",
    "idle": "is_idle",
    "computing": "is_busy",
}
#: Values of a schedule that are metrics of the run.
_METRICS = {
    "consumed_joules": "energy_model_j",
    "makespan": "makespan_s",
    "max_slowdown": "max_slowdown",
    "max_turnaround_time": "max_flow_time_s",
    "max_waiting_time": "max_waiting_time_s",
    "mean_slowdown": "mean_slowdown",
    "mean_turnaround_time": "mean_flow_time_s",
    "mean_waiting_time": "mean_waiting_time_s",
}


def batsim_state(trace: Trace) -> list[str]:
    """Batsim's word for the final state of each task.

    Dropped, rejected and never started tasks are ``REJECTED``.
    """
    words = {
        TaskState.FINISHED: "COMPLETED_SUCCESSFULLY",
        TaskState.FAILED: "COMPLETED_FAILED",
        TaskState.DROPPED: "REJECTED",
        TaskState.REJECTED: "REJECTED",
    }
    chosen, outcome = run_metrics.deciding_execution(trace), trace.executions["outcome"].tolist()
    at_walltime = {ExecutionEnd.TIMEOUT: "COMPLETED_WALLTIME_REACHED"}
    return [
        words.get(state) or at_walltime.get(outcome[run], "COMPLETED_KILLED") if run >= 0 else "REJECTED"
        for state, run in zip(trace.final_state.tolist(), chosen.tolist(), strict=True)
    ]


def jobs_table(trace: Trace, workload_name: str, scheduler_pstates: int | None = None) -> Columns:
    """Rows of ``jobs.csv``: one for each task, in order of submission.

    Start, host and execution time are those of the copy that finished the task. Batsim's columns
    are followed by ours: `consumed_energy` [J] is what all copies drew above the hosts' idle
    power, `energy_with_idle` [J] includes their share of it (eq. 1 of paper 004 on one-core
    hosts); `executions` counts the copies. `pstate` is the host's; `scheduler_pstate` the one that
    the scheduler chose, where hosts have `scheduler_pstates` of them for each task type.
    """
    tasks, runs, n = trace.tasks, trace.executions, len(trace.tasks)
    state = np.array(batsim_state(trace), dtype=object)
    ran = state != "REJECTED"
    carbon, submit = trace_carbon(trace), tasks.submit_time_s

    def of_task(values: Floats) -> Floats:
        return np.where(ran, np.bincount(runs["task"], values, minlength=n), np.nan)

    names = ("start", "end", "pstate", "host")
    start, end, pstate, host = (np.where(ran, of_deciding(trace, name), np.nan) for name in names)
    length, turnaround = end - start, end - submit
    pstates = [None if k != k else int(k) for k in pstate.tolist()]
    hosts: list[int | str | None] = [
        None if h != h else interval_set(trace.hosts_of(run)) if trace.is_parallel else int(h)
        for run, h in zip(run_metrics.deciding_execution(trace).tolist(), host.tolist(), strict=True)
    ]
    requested = tasks.requested_time_s
    types = ["task"] * n if tasks.task_type is None else [f"type{t}" for t in tasks.task_type]
    return {
        "job_id": tasks.labels,
        "workload_name": [workload_name] * n,
        "profile": types,
        "submission_time": submit,
        "requested_number_of_resources": tasks.width,
        # -1 is Batsim's word for no walltime
        "requested_time": [-1] * n if requested is None else requested,
        "success": np.array(state == "COMPLETED_SUCCESSFULLY", dtype=bool),
        "final_state": state,
        "starting_time": start,
        "execution_time": length,
        "finish_time": end,
        "waiting_time": start - submit,
        "turnaround_time": turnaround,
        "stretch": run_metrics.stretch(turnaround, length),
        "allocated_resources": hosts,
        "consumed_energy": of_task(task_energy_j(trace)),
        "metadata": [""] * n,
        "energy_with_idle": of_task(busy_energy_j(trace)),
        "executions": np.bincount(runs["task"], minlength=n),
        "pstate": pstates,
        "flops": tasks.flops,
        **_some_columns(trace, pstates, scheduler_pstates),
        # of all copies, their share of idle power included
        **({} if carbon is None else {"carbon_g": of_task(carbon.execution_j)}),
        **deadline_column(tasks),
    }


def _some_columns(trace: Trace, pstates: list[int | None], scheduler_pstates: int | None) -> Columns:
    """Return task types, P-states as the scheduler counts them, and what each task earned and could have earned."""
    functions, columns = trace.tasks.utility, Columns()
    if trace.tasks.task_type is not None:
        columns["task_type"] = trace.tasks.task_type
    if scheduler_pstates is not None:
        columns["scheduler_pstate"] = [None if pstate is None else pstate % scheduler_pstates for pstate in pstates]
    if functions is not None:
        columns |= {
            "utility": window_metrics.utility_earned(trace),
            "utility_possible": functions.priority,
            "priority": functions.priority,
            "urgency": functions.urgency,
            "utility_class": functions.utility_class,
        }
    if functions is not None or len(trace.periods):
        columns["times_postponed"] = trace.times_postponed
    return columns


def hosts_table(trace: Trace) -> Columns:
    """Rows of ``hosts.csv``: names and P-state 0 of every host; speeds [flop/s], power [W].

    `sleep_pstate` is the number that stands for "off" in ``pstate_changes.csv``.
    """
    platform = trace.platform
    others = platform.idle_hosts_named
    hosts = platform.hosts + tuple(host for _, host in others)
    return {
        "id": list(range(len(hosts))),
        "name": [host.name for host in hosts],
        "role": ["computing"] * len(platform) + [role for role, _ in others],
        "cores": [host.cores for host in hosts],
        "speed": [host.pstates[0].speed for host in hosts],
        "idle_power": [host.pstates[0].idle_w for host in hosts],
        "epsilon_power": [host.pstates[0].epsilon_w for host in hosts],
        "busy_power": [host.pstates[0].busy_w for host in hosts],
        "off_power": [host.off_w for host in hosts],
        "boot_time": [host.boot_time_s for host in hosts],
        "shutdown_time": [host.shutdown_time_s for host in hosts],
        "has_energy": [int(host.has_energy) for host in hosts],
        "sleep_pstate": [len(host.pstates) for host in hosts],
    }


def machine_states_table(timeline: HostTimeline) -> Columns:
    """Rows of ``machine_states.csv``: hosts in each state, from each time of change on."""
    flags = [getattr(timeline, flag).astype(np.float64) for flag in STATES.values()]
    time, totals = running_total(lambda: [(timeline, flags, timeline.settled)])
    counts = np.stack(totals, axis=1).astype(np.int64)
    changed = np.ones(len(time), dtype=bool)
    changed[1:] = (counts[1:] != counts[:-1]).any(axis=1)
    numbers = zip(STATES, counts[changed].T, strict=True)
    return {"time": time[changed], **{f"nb_{state}": number for state, number in numbers}}


def pstate_changes_table(trace: Trace, timeline: HostTimeline) -> Columns:
    """Rows of ``pstate_changes.csv``: P-state of each host at time 0, then every change.

    As in Batsim, a host that is off has a P-state of its own (`sleep_pstate` in ``hosts.csv``,
    one more than its last); one that boots has P-state -1, and one that shuts down -2.
    """
    shown = np.where(timeline.is_on, timeline.pstate, trace.platform.n_pstates[timeline.host])
    shown[timeline.is_booting] = SWITCHING_ON
    shown[timeline.is_shutting_down] = SWITCHING_OFF
    rows = np.flatnonzero(timeline.changes_of(shown))
    rows = rows[np.lexsort((timeline.host[rows], timeline.time[rows]))]
    return {"time": timeline.time[rows], "machine_id": timeline.host[rows], "new_pstate": shown[rows]}


def consumed_energy_table(trace: Trace, power: TracePower) -> Columns:
    """Rows of ``consumed_energy.csv``: one for each start (s), end (e) and host change (p).

    `energy` is what the computing hosts consumed up to `time` [J]; the last row is at the end of
    the run. `epower` is their power until `time`, as in Batsim (at time 0: from then on) [W],
    `wattmin` the power from `time` on if nothing were running [W].
    """
    runs, changes, grid = trace.executions, trace.host_changes, grid_power(trace, power)
    later = changes["time"][changes["time"] > 0]
    parts = (runs["end"], np.concatenate([grid.time[:1], later]), runs["start"])
    time = np.minimum(np.concatenate(parts), trace.horizon_s)
    kind = np.repeat(np.array(["e", "p", "s"]), [len(part) for part in parts])
    order = np.lexsort((kind, time))
    time, kind = time[order], kind[order]
    if len(time) and time[-1] < trace.horizon_s:
        time, kind = np.append(time, trace.horizon_s), np.append(kind, "p")
    step = np.searchsorted(grid.time, time, side="right") - 1
    energy = grid.energy_j[step] + grid.total_w[step] * (time - grid.time[step])
    before = np.where(time == grid.time[step], np.maximum(step - 1, 0), step)
    timeline = power.timeline
    least = np.nan_to_num(np.where(timeline.is_busy, power.idle_w, power.watts))
    _, (wattmin,) = running_total(lambda: [(timeline, [least], timeline.settled)])
    return {
        "time": time,
        "energy": energy,
        "event_type": kind,
        "wattmin": wattmin[step],
        "epower": grid.total_w[before],
    }


def periods_table(trace: Trace) -> Columns:
    """Rows of ``periods.csv``: one for each period of the energy budget [s, J or money].

    `budget_j` is empty where there is no limit. `consumed_j` is the controller's account, and
    `carried_over_j` the part of it that executions from before the period drew. Of a budget in
    money all three are in money, and end with `_money`.
    """
    periods, factor, unit = trace.periods, trace.energy_weights.per_j or 1.0, trace.energy_weights.unit
    budget = np.where(np.isfinite(periods["budget_j"]), periods["budget_j"], np.nan)
    return {
        "start_s": periods["start"],
        "end_s": periods["end"],
        f"budget_{unit}": budget * factor,
        f"consumed_{unit}": periods["consumed_j"] * factor,
        f"carried_over_{unit}": periods["carried_over_j"] * factor,
    }


def schedule_values(trace: Trace, energy: HostEnergy) -> dict[str, float | int | str | None]:
    """The values of ``schedule.json``; None where nothing finished.

    Waiting, turnaround and slowdown count finished tasks. The makespan is the last finish minus
    the first submission, as in Batsim 5 (Batsim 4: the last finish). Times of hosts are summed
    over the computing hosts from time 0 to the end of the run.
    """
    summary, timeline = metrics.summary(trace, energy), host_timeline(trace)
    states = batsim_state(trace)
    rejected, success = states.count("REJECTED"), states.count("COMPLETED_SUCCESSFULLY")
    n = len(states)
    values = {
        **{name: summary[metric] for name, metric in _METRICS.items()},
        "energy_source": "model",
        "nb_computing_machines": len(trace.platform),
        "nb_jobs": n,
        "nb_jobs_finished": n - rejected,
        "nb_jobs_killed": n - rejected - success,
        "nb_jobs_rejected": rejected,
        "nb_jobs_success": success,
        "success_rate": success / n if n else None,
        **{
            f"time_{state}": float(timeline.duration_s[getattr(timeline, rows)].sum()) for state, rows in STATES.items()
        },
    }
    return {key: None if value != value else value for key, value in sorted(values.items())}
