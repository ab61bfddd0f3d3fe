"""Measure jobs that share nodes under EASY, on the reference driver, beside the same with whole nodes.

Usage: python benchmarks/shared_jobs.py [--jobs N] [--repeats R] [--place P]

1,024 nodes of 64 cores; jobs are those of `rigid_jobs.py`, and of each of their nodes they take 1
to 64 cores in powers of two and 1 to 4 GB a core; they arrive at a load of 0.90 of the cores. Each
figure is the least CPU time of the repeats, and the largest memory that Python and NumPy have held.
"""

from __future__ import annotations

import argparse
import json
import tracemalloc

import numpy as np
from rigid_jobs import on_reference, system_of

from gridsched.model.estimates import RequestedTimes
from gridsched.model.platform import Cluster, Host, Partition, Platform
from gridsched.model.rules import Rules
from gridsched.model.system import System
from gridsched.model.tasks import make_tasks

CORES = 64


def shared_system_of(n_jobs: int, place: str) -> tuple:
    """Return the system, the jobs and their true run times."""
    whole, tasks, truth = system_of(n_jobs)
    rng = np.random.default_rng(1)
    cores = 2 ** rng.integers(0, CORES.bit_length(), n_jobs)
    memory = cores * rng.integers(1024, 4096, n_jobs)
    hosts = tuple(
        Host(f"n{k}", whole.platform.hosts[0].pstates, cores=CORES, resources=(("memory_mb", 262_144),))
        for k in range(len(whole.platform))
    )
    every = tuple(range(len(hosts)))
    platform = Platform(hosts, (Cluster("nodes", every),), partitions=(Partition("all", every),))
    jobs = make_tasks(
        tasks.flops,
        tasks.submit_time_s * (cores.mean() / CORES),
        width=tasks.width,
        requested_time_s=tasks.requested_time_s,
        demand=np.column_stack([cores, memory]),
        resources=("cores", "memory_mb"),
    )
    return System(platform, RequestedTimes(platform, jobs), rules=Rules(place=place)), jobs, truth


def measured(case: tuple, repeats: int) -> dict[str, float]:
    """Return jobs a second and MB of a case."""
    seconds = min(on_reference(*case)[0] for _ in range(repeats))
    tracemalloc.start()
    trace = on_reference(*case)[1]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {"jobs_per_s": len(trace.tasks) / seconds, "peak_mb": peak / 2**20}


def main() -> None:
    """Measure both and print them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--place", default="pack")
    asked = parser.parse_args()
    on_reference(*system_of(200))
    on_reference(*shared_system_of(200, asked.place))
    whole = measured(system_of(asked.jobs), asked.repeats)
    shared = measured(shared_system_of(asked.jobs, asked.place), asked.repeats)
    print(json.dumps({"jobs": asked.jobs, "whole": whole, "shared": shared}, indent=2))


if __name__ == "__main__":
    main()
