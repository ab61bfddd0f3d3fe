"""Runs of rigid jobs on one cluster, their oracles, and logs of the Parallel Workloads Archive."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import rigid_oracles as oracles

from gridsched import Scenario, run
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.tasks import make_tasks
from gridsched.testing.contract import illegal_places
from gridsched.workloads.traces.options import TraceOptions
from gridsched.workloads.traces.trace_system import trace_system

#: Logs of the Parallel Workloads Archive.
LOGS = Path(__file__).resolve().parents[3] / "shared" / "data" / "swf"
ORACLES = {"fcfs": oracles.fcfs, "easy_backfilling": oracles.easy, "conservative_backfilling": oracles.conservative}


def machine(n_nodes: int) -> Platform:
    """Return one cluster of equal nodes."""
    hosts = tuple(Host(f"n{k}", (PState(1e9, 50.0, 60.0, 200.0),)) for k in range(n_nodes))
    return Platform(hosts, (Cluster("cluster", tuple(range(n_nodes))),))


def scenario(jobs, n_nodes, scheduler, **options) -> Scenario:
    """Return a run of jobs as algorithms I gives them."""
    platform = machine(n_nodes)
    submit, length, width, estimate = map(np.array, zip(*jobs, strict=True))
    tasks = make_tasks(estimate * 1e9, submit, width=width, requested_time_s=estimate)
    options = {"driver": "reference"} | options
    return Scenario(platform, tasks, scheduler, run_times=LoggedRunTimes(platform, length), **options)


def starts(jobs, n_nodes, scheduler) -> list[float]:
    """Return the start of each job on the reference driver."""
    trace = run(scenario(jobs, n_nodes, scheduler)).trace
    assert illegal_places(trace) == []
    return trace.start_time_s.tolist()


def log_of(name: str) -> Path:
    """Return where a log of the archive lies; without it the test is skipped."""
    if not (path := LOGS / name).exists():
        pytest.skip(f"{path} is not there: logs of others are not part of this repository")
    return path


@cache
def jobs_of(name: str, procs_per_node: int = 1) -> tuple[list[tuple], int]:
    """Return the jobs of a log, from 0 s on, and the size of its machine."""
    found = trace_system(log_of(name), TraceOptions(procs_per_node=procs_per_node))
    jobs = found.jobs
    columns = jobs.submit_time_s, jobs.run_time_s, jobs.width, jobs.estimate_s
    rows = list(zip(*(each.tolist() for each in columns), strict=True))
    return rows, len(found.system.platform)
