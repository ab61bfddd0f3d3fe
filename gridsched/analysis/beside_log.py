"""What a machine did, by its log, beside what schedulers would have done with the same jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from pathlib import Path
from typing import Any

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.metrics.run_metrics import waiting_time_s
from gridsched.model.calendar import time_zone
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.trace import EXECUTION, ExecutionEnd, TaskState, Trace
from gridsched.platform_io.hostlists import expand_hostlist
from gridsched.runs.run import RunResult
from gridsched.sim.scenario import LoadedScenario
from gridsched.workloads.traces.sacct import moment, read_sacct

#: What the machine's own schedule is called.
LOG = "the log"


@dataclass(frozen=True)
class LoggedSchedule:
    """When jobs started by a log, and where.

    Attributes
    ----------
    start_s : dict of str to float
        By the ids of jobs, since the begin of the log [s].
    hosts : dict of str to tuple of str
        Names of nodes; empty if the log has none.
    submit_s : dict of str to float
        Likewise as the starts.
    """

    start_s: Mapping[str, float]
    hosts: Mapping[str, tuple[str, ...]]
    submit_s: Mapping[str, float]


def read_schedule(path: str | Path, zone: str | None = None, cluster: str | None = None) -> LoggedSchedule:
    """Read when and where jobs ran, of the output of ``sacct -P``.

    Parameters
    ----------
    path : path
    zone : str, optional
        Time zone of dates that have none, as for the run (`gridsched.workloads.traces.sacct.read_sacct`).
    cluster : str, optional
        The cluster whose jobs are read, as for the run.

    Raises
    ------
    InputError
        If it cannot be read, or has no column Start.
    """
    jobs = read_sacct(path, tells_schedule=True, zone=zone, cluster=cluster)
    if "start" not in jobs.attributes:
        raise InputError(f"{path}: no column Start; add it to sacct's --format to see what the machine did.")
    ids = [str(each) for each in jobs.ids.tolist()]
    clock = None if zone is None else time_zone(zone, "--log-zone")
    starts = [_moment(text, clock) for text in jobs.attributes["start"].tolist()]
    lists = jobs.attributes.get("hosts", np.array([""] * len(jobs), dtype=object)).tolist()
    names = {text: _names(text) for text in set(lists)}
    return LoggedSchedule(
        dict(zip(ids, starts, strict=True)),
        dict(zip(ids, (names[text] for text in lists), strict=True)),
        dict(zip(ids, jobs.submit_time_s.tolist(), strict=True)),
    )


def _moment(text: str, zone: tzinfo | None) -> float:
    try:
        return moment(text, zone)
    except ValueError:
        return np.nan


def _names(text: str) -> tuple[str, ...]:
    try:
        return tuple(expand_hostlist(text)) if text else ()
    except InputError:
        return ()


def trace_of_log(trace: Trace, logged: LoggedSchedule, run_s: Floats | None = None) -> Trace:
    """Return what happened by a log, as a run of the same jobs would have left it.

    Parameters
    ----------
    trace : Trace
        Of a run of the log's jobs.
    logged : LoggedSchedule
    run_s : ndarray of float64, shape (tasks,), optional
        How long each took by the log [s]; by default as long as in the run.

    Returns
    -------
    Trace
        Jobs lie on the nodes that the log names, with equal parts on each; where it names none, or others,
        on those of the run.

    Raises
    ------
    InputError
        If the log does not contain when a job started.
    """
    labels = [str(each) for each in trace.tasks.labels]
    begin = min(logged.submit_s[each] for each in labels)
    id_of = {host.name: h for h, host in enumerate(trace.platform.hosts)}
    order = np.argsort([logged.start_s[labels[task]] for task in trace.executions["task"].tolist()], kind="stable")
    runs = np.zeros(len(order), dtype=EXECUTION)
    hosts: list[Integers] = []
    cores: list[Integers] = []
    n_cores = trace.n_cores
    for place, k in enumerate(order.tolist()):
        task, start, end, _ = (trace.executions[name][k] for name in ("task", "start", "end", "outcome"))
        began = logged.start_s[labels[task]] - begin
        if np.isnan(began):
            raise InputError(
                f"{trace.tasks.name}: job {labels[task]} has no Start; only jobs that ran can be compared."
            )
        named = [id_of.get(name, -1) for name in logged.hosts[labels[task]]]
        if named and min(named) >= 0:
            here = np.sort(np.array(named, dtype=np.int64))
            total = int(n_cores[k])
            each = np.full(len(here), total // len(here), dtype=np.int64)
            each[: total % len(here)] += 1
        else:
            span = slice(trace.host_offsets[k], trace.host_offsets[k + 1])
            here = trace.host_ids[span]
            each = trace.host_cores[span] if len(trace.host_cores) else np.ones(len(here), dtype=np.int64)
        pstate = int(trace.executions["pstate"][k])
        took = (end - start) if run_s is None else run_s[task]
        runs[place] = task, here[0], pstate, began, began + took, ExecutionEnd.FINISHED
        hosts.append(here)
        cores.append(each)
    empty = np.zeros(0, dtype=np.int64)
    return replace(
        trace,
        executions=runs,
        host_changes=trace.host_changes[trace.host_changes["time"] <= 0],
        final_state=np.where(trace.final_state == TaskState.FINISHED, trace.final_state, TaskState.FINISHED),
        horizon_s=float(runs["end"].max(initial=0.0)),
        host_offsets=np.cumsum([0, *map(len, hosts)]),
        host_ids=np.concatenate([empty, *hosts]),
        host_cores=np.concatenate([empty, *cores]) if len(trace.host_cores) else empty,
    )


#: The shortest time that a drawn job runs [s].
_SHORTEST_S = 0.01


def sampled_within_seconds(scenario: LoadedScenario, seed: int) -> LoadedScenario:
    """Return a scenario of a log with times drawn within the seconds that the log prints.

    Parameters
    ----------
    scenario : LoadedScenario
        Of a log that rounds down to whole seconds: submissions, starts and ends.
    seed : int

    Returns
    -------
    LoadedScenario
        Jobs are submitted up to a second later; of one second the order stays. They run up to a
        second longer or shorter: the difference of an end and a start that were both rounded down.
    """
    rng, tasks = np.random.default_rng(seed), scenario.tasks
    submit_s = np.sort(np.floor(tasks.submit_time_s) + rng.uniform(0.0, 1.0, len(tasks)))
    submit_s[:1] = tasks.submit_time_s[:1]
    times = scenario.run_times
    if isinstance(times, LoggedRunTimes):
        run_s = times.logged_s + rng.uniform(0.0, 1.0, len(tasks)) - rng.uniform(0.0, 1.0, len(tasks))
        times = LoggedRunTimes(scenario.platform, np.maximum(run_s, _SHORTEST_S), times.power_w)
    return replace(scenario, tasks=replace(tasks, submit_time_s=submit_s), run_times=times)


@dataclass(frozen=True)
class Beside:
    """A schedule of a log's jobs, beside the log's own.

    Attributes
    ----------
    name : str
    wait_s : ndarray of float64, shape (jobs,)
        How long each job waited [s], the mean of all draws.
    row : dict
        ``schedule``, ``makespan_s``, ``utilisation``, ``mean_wait_s``, ``median_wait_s``,
        ``longest_wait_s``, ``rank_correlation`` of waits with the log's, ``energy_j``: means of all
        draws but for the correlation, which is that of the mean waits.
    trace : Trace
        Of the first draw.
    """

    name: str
    wait_s: Floats
    row: dict[str, Any]
    trace: Trace


def beside_log(name: str, results: Sequence[RunResult], log_wait_s: Floats | None = None) -> Beside:
    """Return what runs of one scheduler give, beside the waits of the log.

    Parameters
    ----------
    name : str
    results : sequence of RunResult
        One for each draw of the submissions; at least one.
    log_wait_s : ndarray of float64, optional
        The log's; None for the log itself.
    """
    waits = np.array([waiting_time_s(each.trace) for each in results])
    wait_s = waits.mean(axis=0)
    summaries = [each.summary() for each in results]
    row: dict[str, Any] = {"schedule": name}
    row |= {key: float(np.mean([each[key] for each in summaries])) for key in ("makespan_s", "utilisation")}
    row |= {
        "mean_wait_s": float(waits.mean()),
        "median_wait_s": float(np.median(waits, axis=1).mean()),
        "longest_wait_s": float(waits.max(axis=1).mean()),
        "rank_correlation": 1.0 if log_wait_s is None else rank_correlation(wait_s, log_wait_s),
        "energy_j": float(np.mean([each["energy_model_j"] for each in summaries])),
    }
    return Beside(name, wait_s, row, results[0].trace)


def beside_itself(result: RunResult, base: LoadedScenario, logged: LoggedSchedule) -> Beside:
    """Return the log's own schedule, with the joules that the model gives for it.

    Parameters
    ----------
    result : RunResult
        A run of its jobs on its platform.
    base : LoadedScenario
        With the times that the log prints.
    logged : LoggedSchedule
    """
    run_s = base.run_times.logged_s if isinstance(base.run_times, LoggedRunTimes) else None
    trace = trace_of_log(replace(result.trace, tasks=base.tasks), logged, run_s)
    own = replace(result, trace=trace, plugin_j=None, scenario=replace(base, driver="reference"))
    return beside_log(LOG, [own])


def rank_correlation(one: Floats, other: Floats) -> float:
    """Return Spearman's rank correlation, equal values sharing their mean rank; nan where one does not vary."""
    first, second = _ranks(one), _ranks(other)
    if min(first.std(), second.std()) == 0:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def _ranks(values: Floats) -> Floats:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return np.asarray((last - (count - 1) / 2)[place.reshape(-1)])
