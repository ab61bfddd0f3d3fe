"""Parallel tasks that arrive all day, and the workload that they make with their clusters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers, distinct
from gridsched.errors import InputError, counted
from gridsched.model.parallel_estimates import ParallelEstimates, node_platform
from gridsched.model.rules import DAY_S
from gridsched.model.seeds import random_stream
from gridsched.model.task_types import TYPED_TASK_FLOPS, SystemWorkload, TaskTypes
from gridsched.model.tasks import Tasks, make_tasks
from gridsched.model.utility import UtilityFunctions
from gridsched.systems.utility.arrivals import (
    busy_hours_profile,
    draw_intervals,
    draw_waves,
    profile_arrivals,
    wave_arrivals,
)
from gridsched.systems.utility.parallel_csv import read_parallel_system, read_parallel_tasks, write_parallel_files
from gridsched.systems.utility.parallel_day import HOURS, ParallelDay
from gridsched.systems.utility.parallel_system import (
    Clusters,
    Demand,
    ParallelSystem,
    SampledTypes,
    Typical,
    draw_system,
    draw_types,
    stream_of_types,
)
from gridsched.systems.utility.sampled_utility import draw_priorities
from gridsched.workloads.etc_matrices import gamma
from gridsched.workloads.traces.job_table import JobTable
from gridsched.workloads.traces.swf import header_number, read_swf


def generate_parallel_day(spec: ParallelDay) -> SystemWorkload:
    """Draw clusters, types and tasks of paper 001, or read those that come from files.

    The same seed and replicate always give the same; each part has its own random stream, so
    that for instance other arrivals leave the clusters as they are.

    Parameters
    ----------
    spec : ParallelDay

    Returns
    -------
    SystemWorkload

    Raises
    ------
    InputError
        If a file of `spec` cannot be read or does not fit the others.
    """
    if spec.jobs_swf is not None:
        typical, demand, time_s = log_demand(spec)
        return _assembled(spec, typical, demand, time_s)
    system = draw_or_read_system(spec)
    demand = draw_demand(spec, system) if spec.tasks_csv is None else read_parallel_tasks(spec, system)
    nodes = system.clusters.nodes_for(demand.cores)
    time_s = system.times.time_s(demand.task_type, nodes)
    return _assembled(spec, system.typical(), demand, time_s)


def generate_files(spec: ParallelDay, output: Path, *, force: bool) -> tuple[Tasks, list[Path]]:
    """Generate a day and write it, clusters and estimates beside the tasks; return the tasks and the files."""
    settings = spec.settings_beside_files()
    tasks = generate_parallel_day(spec).tasks
    return tasks, write_parallel_files(draw_or_read_system(spec), tasks, output, settings, force=force)


def draw_or_read_system(spec: ParallelDay) -> ParallelSystem:
    """Return the clusters and task types that `spec` asks for."""
    return draw_system(spec) if spec.etc_csv is None else read_parallel_system(spec)


def draw_demand(spec: ParallelDay, system: ParallelSystem) -> Demand:
    """Draw when tasks arrive, of which type, and how many cores they ask for (algorithms C2.5, 8).

    Types with narrow tasks arrive in waves, those with wide ones mostly in the busy hours; or all
    types have their bursts at the same times.

    Raises
    ------
    InputError
        If there are not as many shares of task types as types.
    """
    n_types = len(system.type_names)
    share = np.array(spec.task_type_shares or np.ones(n_types), dtype=np.float64)
    if len(share) != n_types:
        raise InputError(
            f"task_type_shares has {len(share)} numbers; {spec.etc_csv} has {n_types} task types, and each needs one."
        )
    rate = spec.tasks_per_day / DAY_S * share / share.sum()
    rng = random_stream(spec.seed, "arrivals", spec.replicate)
    if spec.arrival_pattern == "bursts":
        edges, factor, _ = draw_intervals(rng, spec.bursts, spec.horizon_s)
        submit, types = profile_arrivals(rng, rate, edges, factor)
    else:
        wide = system.cores[:, 1] >= spec.wide_from_cores
        submit, types = _waves_and_busy_hours(spec, rng, rate, wide)
    order = np.argsort(submit, kind="stable")
    task_type = types[order]
    least, most = system.cores[task_type].T
    widths = random_stream(spec.seed, "tasks", spec.replicate)
    return Demand(submit[order], task_type, widths.integers(least, most, endpoint=True))


def _waves_and_busy_hours(
    spec: ParallelDay, rng: np.random.Generator, rate: Floats, wide: Booleans
) -> tuple[Floats, Integers]:
    """Draw arrivals as in paper 001 [s] and their types, not sorted."""
    waves = draw_waves(rng, rate[~wide], spec.waves_per_day, spec.wave_amplitude)
    wave_time, wave_type = wave_arrivals(rng, waves, spec.horizon_s)
    second = DAY_S / HOURS
    busy = (spec.busy_hours[0] * second, spec.busy_hours[1] * second)
    profile = busy_hours_profile(busy, spec.busy_factor, DAY_S - spec.warm_up_s, spec.horizon_s)
    wide_time, wide_type = profile_arrivals(rng, rate[wide], *profile)
    types = np.concatenate([np.flatnonzero(~wide)[wave_type], np.flatnonzero(wide)[wide_type]])
    return np.concatenate([wave_time, wide_time]), types


def _assembled(spec: ParallelDay, typical: Typical, demand: Demand, time_s: Floats) -> SystemWorkload:
    """Return the workload of tasks whose times are known, shape (tasks, clusters, P-states)."""
    clusters = typical.clusters
    name = demand.name or f"parallel workload (seed {spec.seed}, replicate {spec.replicate})"
    platform = node_platform(
        typical.time_s,
        typical.node_power_w,
        clusters.nodes.tolist(),
        cluster_names=clusters.names,
        name="clusters of the parallel workload",
    )
    tasks = make_tasks(
        np.full(len(demand.cores), TYPED_TASK_FLOPS),
        demand.submit_time_s,
        labels=demand.labels,
        task_type=demand.task_type,
        width=demand.cores,
        utility=_utility(spec, typical, demand, time_s),
        name=name,
    )
    estimates = ParallelEstimates(
        platform,
        time_s,
        clusters.nodes_for(demand.cores),
        typical.node_power_w,
        demand.task_type,
        typical_time_s=typical.time_s,
        typical_nodes=typical.nodes,
        cores_per_node=clusters.cores_per_node,
    )
    power = typical.node_power_w
    watts: Floats = np.where(np.isfinite(power), power, 0.0) * typical.nodes[..., None]
    types = TaskTypes(typical.time_s, watts, platform.cluster_of, typical.type_names, clusters.names)
    return SystemWorkload(platform, tasks, types, spec.rules, spec.window_s, estimates=estimates, notes=demand.notes)


def _utility(spec: ParallelDay, typical: Typical, demand: Demand, time_s: Floats) -> UtilityFunctions:
    """Return the utility functions of the tasks (algorithms C2.2; testbed: C6)."""
    if demand.utility is not None:
        return demand.utility
    n, rng = len(demand.cores), random_stream(spec.seed, "utility", spec.replicate)
    if spec.priority_of == "task":
        priority, urgency = draw_priorities(rng, n, spec.priority_ranges, spec.urgencies, spec.joint_percent)
    else:
        priority, urgency = typical.priority[demand.task_type], typical.urgency[demand.task_type]
    if spec.utility_classes == "plateau_linear":
        shortest = time_s.min(axis=(1, 2), initial=np.inf) / spec.urgency_unit_s
        # what can run nowhere earns nothing, whatever its function
        shortest = np.where(np.isfinite(shortest), shortest, 1.0)
        first, last = spec.plateau_times
        return UtilityFunctions.plateau_linear(
            priority, first * shortest, last * shortest, urgency_unit_s=spec.urgency_unit_s
        )
    classes = spec.draw_or_read_classes()
    return UtilityFunctions(priority, urgency, rng.integers(len(classes), size=n), classes, spec.urgency_unit_s)


@dataclass(frozen=True)
class LogDays:
    """Jobs of a log by days, and the days that trials take.

    Attributes
    ----------
    jobs : JobTable
        In order of submission, without those that are left out.
    begin_s : float
        When day 0 begins, on the clock of the log [s]; 0 or before it.
    days : tuple of int
        The days that are taken, in order; whole ones with enough jobs.
    """

    jobs: JobTable
    begin_s: float
    days: tuple[int, ...]

    def between(self, day: int, first_s: float, last_s: float) -> slice:
        """Return the jobs that were submitted between two times after a day's begin [s]."""
        begin = self.begin_s + day * DAY_S
        bounds = np.searchsorted(self.jobs.submit_time_s, [begin + first_s, begin + last_s])
        return slice(*bounds.tolist())


@lru_cache(maxsize=1)
def read_log_days(path: str, most_days: int, least_jobs: int, widest: int | None) -> LogDays:
    """Read a log and choose its first whole days with enough jobs.

    Parameters
    ----------
    path : str
    most_days : int
        So many days are taken, or fewer if there are not so many.
    least_jobs : int
        A day is taken if so many jobs were submitted that are not left out.
    widest : int or None
        Jobs of more cores are left out.

    Raises
    ------
    InputError
        If the log cannot be read, or has no such day.

    Notes
    -----
    Days begin at midnight by the header's ``UnixStartTime`` and ``TimeZone``; without the first,
    at multiples of a day on the log's clock. A day is whole if the log has jobs before and after.
    """
    jobs = read_swf(path)
    if widest is not None:
        jobs = jobs.without(jobs.width > widest, f"wider than {counted(widest, 'core')}")
    if not len(jobs):
        raise InputError(f"{path}: no jobs that can be simulated.")
    begin_s = -_seconds_since_midnight(jobs)
    day = np.floor((jobs.submit_time_s - begin_s) / DAY_S).astype(np.int64)
    numbers, counts = np.unique(day, return_counts=True)
    whole = (numbers > day[0]) & (numbers < day[-1])
    chosen = numbers[whole & (counts >= least_jobs)][:most_days].tolist()
    if not chosen:
        raise InputError(f"{path}: no whole day with at least {least_jobs} jobs; set log_least_jobs lower.")
    return LogDays(jobs, begin_s, tuple(chosen))


def _seconds_since_midnight(jobs: JobTable) -> float:
    """Return the time of day at which the log's clock begins [s]; 0 if it does not tell."""
    start, zone = (header_number(jobs.header, key) for key in ("UnixStartTime", "TimeZone"))
    return 0.0 if start is None else float((start + (zone or 0)) % DAY_S)


def log_demand(spec: ParallelDay) -> tuple[Typical, Demand, Floats]:
    """Return one day of a log as parallel tasks: trial r takes the r-th chosen day.

    With `log_again` the first day follows the last, with other task types. The warm-up is the end
    of the chosen day before; of the first one, of the log's day before. A job's run time is that
    on one of its type's clusters, drawn uniformly from those that are large enough; times on the
    others vary around it.

    Returns
    -------
    typical : Typical
    demand : Demand
    time_s : ndarray of float64, shape (tasks, clusters, P-states)
        [s].

    Raises
    ------
    InputError
        If the log cannot be read or has not so many days.
    """
    assert spec.jobs_swf is not None
    log = read_log_days(spec.jobs_swf, spec.log_days, spec.log_least_jobs, spec.log_widest_job)
    trial, n_days = spec.replicate, len(log.days)
    if spec.log_again:
        trial %= n_days
    if trial >= n_days:
        raise InputError(
            f"{spec.jobs_swf}: {n_days} whole days have at least {spec.log_least_jobs} jobs, and "
            f"replicate {trial} needs one more than {trial}; run at most {n_days} replicates, or "
            "set log_again."
        )
    day = log.days[trial]
    before = log.days[trial - 1] if trial else day - 1
    warm_up = log.between(before, DAY_S - spec.warm_up_s, DAY_S)
    analysed = log.between(day, 0.0, DAY_S)
    parts = [(warm_up, before + 1), (analysed, day)]
    jobs = log.jobs
    submit = np.concatenate(
        [jobs.submit_time_s[rows] - log.begin_s - start * DAY_S + spec.warm_up_s for rows, start in parts]
    )
    run, cores, labels = (
        np.concatenate([values[rows] for rows, _ in parts]) for values in (jobs.run_time_s, jobs.width, jobs.job)
    )
    sampled = draw_types(spec, stream_of_types(spec))
    rng = random_stream(spec.seed, "tasks", spec.replicate)
    task_type = rng.integers(len(sampled.type_names), size=len(run))
    time_s = _times(sampled, rng, task_type, cores, run, spec.time_cluster_cov)
    name = f"{Path(spec.jobs_swf).name}, day {day} ({trial + 1} of {n_days})"
    demand = Demand(submit, task_type, cores, _distinct(labels), name=name, notes=_notes(log, day))
    return _typical(sampled, jobs, analysed), demand, time_s


def _times(
    sampled: SampledTypes, rng: np.random.Generator, task_type: Integers, cores: Integers, run_s: Floats, cov: float
) -> Floats:
    """Return run times on all clusters [s], shape (tasks, clusters, P-states)."""
    clusters = sampled.clusters
    runs = np.isfinite(sampled.reference_s[task_type])
    runs &= clusters.nodes_for(cores) <= clusters.nodes
    chance = rng.random(runs.shape)
    here = np.argmax(np.where(runs, chance, -1.0), axis=1)
    nominal = gamma(rng, run_s[:, None], cov, runs.shape)
    rows = np.arange(len(run_s))
    nominal[rows, here] = run_s
    nominal[~runs] = np.inf
    return np.asarray(nominal[..., None] * sampled.time_factor[task_type])


def _typical(sampled: SampledTypes, jobs: JobTable, analysed: slice) -> Typical:
    """Return what the log's other days show of a task; of one that has only this day, this day."""
    others = np.ones(len(jobs), dtype=bool)
    others[analysed] = False
    if not others.any():
        others[:] = True
    run_s, cores = float(jobs.run_time_s[others].mean()), int(jobs.width[others].mean())
    clusters: Clusters = sampled.clusters
    nodes = np.broadcast_to(clusters.nodes_for(np.array([cores])), sampled.reference_s.shape)
    runs = np.isfinite(sampled.reference_s) & (nodes <= clusters.nodes)
    time_s = np.where(runs, run_s, np.inf)[..., None] * sampled.time_factor
    return Typical(**sampled.known, time_s=time_s, nodes=nodes)


def _distinct(labels: Integers) -> Integers | None:
    """Return the jobs' numbers; None where the log uses one twice."""
    return labels if len(distinct(labels)) == len(labels) else None


def _notes(log: LogDays, day: int) -> tuple[str, ...]:
    day_list = ", ".join(map(str, log.days))
    days = f"days of the log: {day_list}; this is day {day}"
    return (days, *map(str, log.jobs.dropped))
