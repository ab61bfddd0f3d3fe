"""Parallel tasks from the days of a log, on clusters that differ (paper 001, 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import InputError
from gridsched.model.budget import DAY_S
from gridsched.model.seeds import random_stream
from gridsched.workloads.etc_matrices import gamma
from gridsched.workloads.parallel_day import ParallelDay
from gridsched.workloads.parallel_system import (
    Clusters,
    Demand,
    DrawnTypes,
    Typical,
    draw_types,
    stream_of_types,
)
from gridsched.workloads.traces.job_table import JobTable
from gridsched.workloads.traces.swf import read_swf

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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
        jobs = jobs.without(jobs.width > widest, f"wider than {widest:,} cores")
    if not len(jobs):
        raise InputError(f"{path}: no jobs that can be simulated.")
    begin_s = -_seconds_since_midnight(jobs)
    day = np.floor((jobs.submit_time_s - begin_s) / DAY_S).astype(np.int64)
    numbers, counts = np.unique(day, return_counts=True)
    whole = (numbers > day[0]) & (numbers < day[-1])
    chosen = numbers[whole & (counts >= least_jobs)][:most_days].tolist()
    if not chosen:
        raise InputError(
            f"{path}: no whole day with at least {least_jobs} jobs; set log_least_jobs lower."
        )
    return LogDays(jobs, begin_s, tuple(chosen))


def _seconds_since_midnight(jobs: JobTable) -> float:
    """Return the time of day at which the log's clock begins [s]; 0 if it does not tell."""
    numbers = []
    for key in ("UnixStartTime", "TimeZone"):
        text = jobs.header.get(key, "").split()
        numbers.append(int(text[0]) if text and text[0].lstrip("-").isdigit() else None)
    start, zone = numbers
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
    log = read_log_days(
        spec.jobs_swf, spec.log_days, spec.log_least_jobs, spec.log_widest_job
    )  # fmt: skip
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
    submit = np.concatenate([
        jobs.submit_time_s[rows] - log.begin_s - start * DAY_S + spec.warm_up_s
        for rows, start in parts
    ])  # fmt: skip
    run, cores, labels = (
        np.concatenate([values[rows] for rows, _ in parts])
        for values in (jobs.run_time_s, jobs.width, jobs.job)
    )
    drawn = draw_types(spec, stream_of_types(spec))
    rng = random_stream(spec.seed, "tasks", spec.replicate)
    task_type = rng.integers(len(drawn.type_names), size=len(run))
    time_s = _times(drawn, rng, task_type, cores, run, spec.time_cluster_cov)
    name = f"{Path(spec.jobs_swf).name}, day {day} ({trial + 1} of {n_days})"
    demand = Demand(
        submit, task_type, cores, _distinct(labels), name=name, notes=_notes(log, day)
    )  # fmt: skip
    return _typical(drawn, jobs, analysed), demand, time_s


def _times(
    drawn: DrawnTypes, rng: np.random.Generator, task_type: Integers, cores: Integers,
    run_s: Floats, cov: float,
) -> Floats:  # fmt: skip
    """Return run times on all clusters [s], shape (tasks, clusters, P-states)."""
    clusters = drawn.clusters
    runs = np.isfinite(drawn.reference_s[task_type])
    runs &= clusters.nodes_for(cores) <= clusters.nodes
    chance = rng.random(runs.shape)
    here = np.argmax(np.where(runs, chance, -1.0), axis=1)
    nominal = gamma(rng, run_s[:, None], cov, runs.shape)
    rows = np.arange(len(run_s))
    nominal[rows, here] = run_s
    nominal[~runs] = np.inf
    return np.asarray(nominal[..., None] * drawn.time_factor[task_type])


def _typical(drawn: DrawnTypes, jobs: JobTable, analysed: slice) -> Typical:
    """Return what the log's other days tell of a task; of one that has only this day, this day."""
    others = np.ones(len(jobs), dtype=bool)
    others[analysed] = False
    if not others.any():
        others[:] = True
    run_s, cores = float(jobs.run_time_s[others].mean()), int(jobs.width[others].mean())
    clusters: Clusters = drawn.clusters
    nodes = np.broadcast_to(clusters.nodes_for(np.array([cores])), drawn.reference_s.shape)
    runs = np.isfinite(drawn.reference_s) & (nodes <= clusters.nodes)
    time_s = np.where(runs, run_s, np.inf)[..., None] * drawn.time_factor
    return Typical(**drawn.known, time_s=time_s, nodes=nodes)


def _distinct(labels: Integers) -> Integers | None:
    """Return the jobs' numbers; None where the log uses one twice."""
    return labels if len(np.unique(labels)) == len(labels) else None


def _notes(log: LogDays, day: int) -> tuple[str, ...]:
    shown = ", ".join(map(str, log.days))
    days = f"days of the log: {shown}; this is day {day}"
    return (days, *map(str, log.jobs.dropped))
