"""What a machine did, by its log, beside what schedulers would have done with the same jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from pathlib import Path
from typing import Any

import numpy as np

from gridsched.analysis.log_layout import Layout, layout_of
from gridsched.arrays import Floats
from gridsched.errors import InputError, counted
from gridsched.metrics.places import TABLES
from gridsched.metrics.run_metrics import waiting_time_s
from gridsched.model.calendar import time_zone
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.trace import EXECUTION, HOST_CHANGE, ExecutionEnd, TaskState, Trace
from gridsched.platform_io.hostlists import expand_hostlist
from gridsched.runs.checks import check_tables
from gridsched.runs.preparation import prepare
from gridsched.runs.run import RunResult
from gridsched.scenario import LoadedScenario
from gridsched.workloads.traces.sacct import moment, read_sacct
from gridsched.workloads.traces.sharing import listed_resources
from gridsched.workloads.traces.trace_options import TraceOptions

#: What the machine's own schedule is called.
LOG = "the log"
#: A log that needs no options.
_DEFAULTS = TraceOptions()


@dataclass(frozen=True)
class LoggedSchedule:
    """When jobs started by a log, and where.

    Attributes
    ----------
    start_s : dict of str to float
        By the ids of jobs, since the begin of the log [s]; no job starts before its submission.
    hosts : dict of str to tuple of str
        Names of nodes; empty if the log has none.
    submit_s : dict of str to float
        Likewise as the starts.
    cores : dict of str to int
        How many each job had on all its nodes; 0 where the log does not state this.
    """

    start_s: Mapping[str, float]
    hosts: Mapping[str, tuple[str, ...]]
    submit_s: Mapping[str, float]
    cores: Mapping[str, int]


def read_schedule(path: str | Path, options: TraceOptions = _DEFAULTS) -> LoggedSchedule:
    """Read when and where jobs ran, of the output of ``sacct -P``.

    Parameters
    ----------
    path : path
    options : TraceOptions, optional
        How the log is read, as for the run.

    Raises
    ------
    InputError
        If it cannot be read, or has no column Start.
    """
    zone, nodes_from = options.log_zone, options.nodes_from
    jobs = read_sacct(
        path,
        nodes_from=None if nodes_from is None else str(nodes_from),
        tells_resources=True,
        tells_schedule=True,
        zone=zone,
        cluster=options.cluster,
    ).distinct()
    if "start" not in jobs.attributes:
        raise InputError(f"{path}: no column Start; add it to sacct's --format to see what the machine did.")
    ids = [str(each) for each in jobs.ids.tolist()]
    clock = None if zone is None else time_zone(zone, "--log-zone")
    start_s = np.array([_moment(text, clock) for text in jobs.attributes["start"].tolist()])
    nothing = np.array([""] * len(jobs), dtype=object)
    lists, cpus, *tres = (jobs.attributes.get(name, nothing).tolist() for name in ("hosts", "cpus", "tres"))
    names = {text: _names(text) for text in set(lists)}
    return LoggedSchedule(
        dict(zip(ids, start_s.tolist(), strict=True)),
        dict(zip(ids, (names[text] for text in lists), strict=True)),
        dict(zip(ids, jobs.submit_time_s.tolist(), strict=True)),
        dict(zip(ids, map(_cores, cpus, *tres), strict=True)),
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


def _cores(cpus: str, tres: str) -> int:
    """Return the cores that a job had in all, 0 if that is not known."""
    text = listed_resources(tres).get("cpu", cpus)
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def scenario_of_log(base: LoadedScenario) -> LoadedScenario:
    """Return what is known of a log's jobs and its machine, prepared as for a run, without failures and maintenance.

    Parameters
    ----------
    base : LoadedScenario
        Of runs of the jobs.

    Raises
    ------
    InputError
        As `gridsched.runs.preparation.prepare`.
    """
    return prepare(replace(base, driver="reference", failures=None, maintenance=(), cfg=(), log=()))


def trace_of_log(scenario: LoadedScenario, logged: LoggedSchedule) -> tuple[Trace, Layout]:
    """Return what happened by a log, as a run of the same jobs would have left it; nothing of it is simulated.

    Parameters
    ----------
    scenario : LoadedScenario
        That of `scenario_of_log`.
    logged : LoggedSchedule

    Returns
    -------
    trace : Trace
        Each job ran once. Jobs lie on the nodes that the log names; where it names none, or others, on free ones.
        Nodes are on all the time, but for those that are off from the start and have no job.
    layout : Layout

    Raises
    ------
    InputError
        If the log does not contain when a job started.
    """
    platform, tasks = scenario.platform, scenario.tasks
    labels = [str(each) for each in tasks.labels]
    start_s = np.array([logged.start_s[each] for each in labels]) - min(logged.submit_s[each] for each in labels)
    if np.isnan(start_s).any():
        label = labels[int(np.argmax(np.isnan(start_s)))]
        raise InputError(f"{tasks.name}: job {label} has no Start; only jobs that ran can be compared.")
    assert isinstance(scenario.run_times, LoggedRunTimes)
    end_s = start_s + scenario.run_times.logged_s
    known = np.array([logged.cores[each] for each in labels]) if tasks.share_nodes else np.zeros(len(tasks), np.int64)
    n_cores = np.where(known > 0, known, tasks.size)
    pstates = scenario.system.pstates
    layout = layout_of(platform, pstates, tasks, start_s, end_s, n_cores, [logged.hosts[each] for each in labels])
    order = np.lexsort((np.arange(len(tasks)), start_s))
    hosts, cores = ([each[k] for k in order.tolist()] for each in (layout.hosts, layout.cores))
    first = np.array([each[0] for each in hosts])
    runs = np.zeros(len(order), dtype=EXECUTION)
    runs["task"], runs["host"], runs["pstate"] = order, first, pstates[first]
    runs["start"], runs["end"], runs["outcome"] = start_s[order], end_s[order], ExecutionEnd.FINISHED
    changes = np.zeros(len(platform), dtype=HOST_CHANGE)
    changes["host"], changes["pstate"], changes["is_on"] = np.arange(len(platform)), pstates, True
    idle = np.setdiff1d(np.array(scenario.ids_off, dtype=np.int64), np.concatenate(hosts))
    changes["is_on"][idle] = False
    trace = Trace(
        platform,
        tasks,
        executions=runs,
        host_changes=changes,
        final_state=np.full(len(tasks), TaskState.FINISHED, dtype=np.int64),
        horizon_s=float(end_s.max()),
        mapping_events=0,
        as_estimated=False,
        host_offsets=np.cumsum([0, *map(len, hosts)]),
        host_ids=np.concatenate(hosts),
        host_cores=np.concatenate(cores) if tasks.share_nodes else np.zeros(0, dtype=np.int64),
        load=scenario.run_times.load,
        carbon=scenario.system.carbon,
    )
    check_tables(scenario, trace.horizon_s)
    return trace, layout


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
        How long each job waited [s], the mean of the draws in which it started; nan if it started in none.
    row : dict
        ``schedule``, ``makespan_s``, ``utilisation``, ``mean_wait_s``, ``median_wait_s``,
        ``longest_wait_s``, ``rank_correlation`` of waits with the log's, ``energy_j``, and those of `EXTRAS` that
        the run has: means of all draws but for the correlation, which is that of the mean waits. None where
        something is not known. Waits are those of jobs that started.
    trace : Trace
        Of the first draw.
    notes : tuple of str
        What must be known to read the row.
    """

    name: str
    wait_s: Floats
    row: dict[str, Any]
    trace: Trace
    notes: tuple[str, ...] = ()


#: Metrics beside those of every row, which exist with carbon, a tariff, or units that have power.
EXTRAS = TABLES["beside"]


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
    started = ~np.isnan(waits)
    times = started.sum(axis=0)
    wait_s = np.where(times > 0, np.where(started, waits, 0.0).sum(axis=0) / np.maximum(times, 1), np.nan)
    summaries = [_summary(each) for each in results]
    row: dict[str, Any] = {"schedule": name}
    row |= {key: _mean([each[key] for each in summaries]) for key in ("makespan_s", "utilisation")}
    of_draws = [each[there] for each, there in zip(waits, started, strict=True) if there.any()]
    both = times > 0
    row |= {
        "mean_wait_s": _mean([float(each.mean()) for each in of_draws]),
        "median_wait_s": _mean([float(np.median(each)) for each in of_draws]),
        "longest_wait_s": _mean([float(each.max()) for each in of_draws]),
        "rank_correlation": 1.0 if log_wait_s is None else rank_correlation(wait_s[both], log_wait_s[both]),
        "energy_j": _mean([each["energy_model_j"] for each in summaries]),
    }
    row |= {key: _mean([each[key] for each in summaries]) for key in EXTRAS if all(key in each for each in summaries)}
    return Beside(name, wait_s, row, results[0].trace, _not_started(name, results))


def _summary(result: RunResult) -> dict[str, Any]:
    """Return the metrics of a run, and what its energy costs, if that is known."""
    summary: dict[str, Any] = result.summary()
    return summary if result.scenario.tariff is None else summary | {"energy_cost": result.facts.energy_cost}


def _mean(values: Sequence[float]) -> float | None:
    """Return the mean; None of nothing."""
    return float(np.mean(values)) if values else None


def _not_started(name: str, results: Sequence[RunResult]) -> tuple[str, ...]:
    """Say how many jobs did not start."""
    never = np.isnan(results[0].trace.start_time_s)
    if not never.any():
        return ()
    states = [TaskState(each).name.lower() for each in np.unique(results[0].trace.final_state[never]).tolist()]
    job = counted(int(never.sum()), "job does", "jobs do")
    first = f"the first is job {results[0].trace.tasks.labels[never][0]}"
    return (f"{name}: {job} not start ({', '.join(states)}; {first}); the waits are those of the others",)


def beside_itself(base: LoadedScenario, logged: LoggedSchedule) -> Beside:
    """Return the log's own schedule, with the joules that the model gives for it; no run takes part in it.

    Parameters
    ----------
    base : LoadedScenario
        Its jobs on its platform, with the times that the log prints.
    logged : LoggedSchedule
    """
    scenario = scenario_of_log(base)
    trace, layout = trace_of_log(scenario, logged)
    own = beside_log(LOG, [RunResult(scenario, trace, None, {})])
    notes = [*layout.notes]
    if layout.is_overfull:
        own.row["utilisation"] = None
    if layout.no_energy:
        left_out = [key for key in ("energy_j", *EXTRAS) if key in own.row]
        own.row.update(dict.fromkeys(left_out))
        what = "utilization and energy" if layout.is_overfull else "energy"
        notes.append(f"{what} of the log (and what follows from it) is left out: {layout.no_energy}")
    if base.maintenance or base.failures is not None or scenario.platform.profiles.states:
        notes.append("in the log's row nodes are on all the time: by the log alone it is not known when they were down")
    return replace(own, notes=tuple(notes))


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
