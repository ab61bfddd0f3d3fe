"""Cost per task of gridsched's drivers beside bare s4u loops: writes `drivers` of benchmarks/results.json.

Usage: python benchmarks/run.py [--tasks N] [--repeats R]

Both sides of a ratio run alternately in fresh processes pinned to one CPU; each figure is the
median of the repeats, each ratio the median of the pairs' ratios. docs/performance.md's table is rewritten from
the file, unless another output is named.
"""

from __future__ import annotations

import argparse
import json
import os
import platform as machine
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from gridsched import Cluster, Host, Platform, PState, Scenario, __version__, make_tasks, run
from gridsched.platform_io.xml_reader import read_platform
from gridsched.platform_io.xml_writer import NetworkLinks, write_platform

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import table  # noqa: E402

#: (name, way of the bare loop, changes of the scenario, goal for the ratio by hosts)
CASES = (
    ("ExecTasks", "exectask", {"execution_mode": "maestro"}, {100: 1.75, 1000: 1.75}),
    ("one leading actor, over bare workers", "workers", {"execution_mode": "actors"}, {100: 1.3, 1000: 1.0}),
    ("two messages a task", "messages", {"network": "platform"}, {100: 1.2, 1000: 1.2}),
)
REFERENCE_GOALS_US = {"100": 5.0, "1000": 5.5}
#: How much more a task may cost on 2,000 hosts than on 100, where tasks arrive at a load of 0.9.
GROWTH_GOALS = {"mct": 2.0, "wqr": 3.0}


def make_platform(path: Path, n_hosts: int) -> None:
    """Write a star of hosts around a master, with energy."""
    speeds = np.random.default_rng(0).uniform(6000, 14000, n_hosts).tolist()
    hosts = tuple(Host(f"host{k}", (PState(s, 10, 20, 100),)) for k, s in enumerate(speeds))
    master = Host("master", (PState(1e4, 10, 20, 100),))
    cluster = Cluster("cluster", tuple(range(n_hosts)), 1e9, 1e-4)
    links = NetworkLinks(host_bandwidth=1e8, host_latency_s=1e-4)
    write_platform(Platform(hosts, (cluster,), master), path, command="benchmarks/run.py", network=links)


def bare_seconds(kind: str, platform: Path, n_hosts: int, n_tasks: int) -> float:
    """Run one bare loop in a process of its own."""
    command = [sys.executable, str(HERE / "bare_loops.py"), kind, str(platform)]
    done = subprocess.run([*command, str(n_hosts), str(n_tasks)], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[0])


def measure_pair(kind: str, scenario: Scenario, platform: Path, n_hosts: int, repeats: int) -> dict[str, float]:
    """Measure a bare loop and gridsched alternately; microseconds per task and their ratio."""
    n_tasks = len(scenario.tasks)
    bare, ours = [], []
    for _ in range(repeats):
        bare.append(bare_seconds(kind, platform, n_hosts, n_tasks))
        ours.append(run(scenario).timing["simulate_s"])
    ratios = [o / b for o, b in zip(ours, bare, strict=True)]
    return {
        "bare_us": statistics.median(bare) / n_tasks * 1e6,
        "gridsched_us": statistics.median(ours) / n_tasks * 1e6,
        "ratio": statistics.median(ratios),
    }


def measure_reference(scenario: Scenario, repeats: int) -> float:
    """Microseconds per task of the reference driver, everything included."""
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        run(scenario)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds) / len(scenario.tasks) * 1e6


def measure_growth(scheduler: str, n_tasks: int, repeats: int) -> dict[str, float]:
    """Microseconds per task of the reference driver on 100 and on 2,000 hosts at a load of 0.9."""
    cost = {}
    for n_hosts in (100, 2000):
        rng = np.random.default_rng(2)
        speeds = rng.uniform(6000, 14000, n_hosts)
        sizes = rng.uniform(5e5, 15e5, n_tasks)
        between_s = sizes.mean() / (0.9 * speeds.sum())
        arrivals = np.cumsum(rng.exponential(between_s, n_tasks))
        hosts = tuple(Host(f"host{k}", (PState(s, 10, 20, 100),)) for k, s in enumerate(speeds))
        scenario = Scenario(Platform(hosts), make_tasks(sizes, arrivals), scheduler, driver="reference")
        cost[n_hosts] = measure_reference(scenario, repeats)
    return {"us_100": cost[100], "us_2000": cost[2000], "ratio": cost[2000] / cost[100]}


def measure_overhead(folder: Path, repeats: int = 20) -> float:
    """Milliseconds of a whole run of five tasks on three hosts through the fork server."""
    path = folder / "small.xml"
    make_platform(path, 3)
    scenario = Scenario(path, make_tasks([1e6] * 5), "wq")
    run(scenario)
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        run(scenario)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds) * 1e3


def measure_all(n_tasks: int, repeats: int) -> dict:
    """Run every case and return the figures."""
    sizes = np.random.default_rng(1).uniform(5e5, 15e5, n_tasks)
    rows, reference, whole_run_s = [], {}, float("nan")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for n_hosts in (100, 1000):
            path = folder / f"hosts{n_hosts}.xml"
            make_platform(path, n_hosts)
            for case, kind, changes, goals in CASES:
                bytes_each = 1000.0 if kind == "messages" else 0.0
                tasks = make_tasks(sizes, input_bytes=bytes_each, output_bytes=bytes_each)
                scenario = replace(Scenario(path, tasks, "wq"), **changes)
                figures = measure_pair(kind, scenario, path, n_hosts, repeats)
                rows.append({"case": case, "hosts": n_hosts, **figures, "goal": goals[n_hosts]})
                print(json.dumps(rows[-1]), flush=True)
            scenario = Scenario(read_platform(path), make_tasks(sizes), "wq", driver="reference")
            reference[str(n_hosts)] = measure_reference(scenario, repeats)
            print(f"reference, {n_hosts} hosts: {reference[str(n_hosts)]:.2f} us", flush=True)
            if n_hosts == 100:
                began = time.perf_counter()
                run(Scenario(path, make_tasks(sizes), "wq"))
                whole_run_s = time.perf_counter() - began
        overhead_ms = measure_overhead(folder)
    growth = []
    for scheduler, goal in GROWTH_GOALS.items():
        figures = measure_growth(scheduler, min(n_tasks, 20_000), repeats)
        growth.append({"scheduler": scheduler, **figures, "goal": goal})
        print(json.dumps(growth[-1]), flush=True)
    return {
        "gridsched": __version__,
        "python": machine.python_version(),
        "cpus": os.cpu_count(),
        "tasks": n_tasks,
        "repeats": repeats,
        "simgrid_driver": rows,
        "reference_us": reference,
        "reference_goals_us": REFERENCE_GOALS_US,
        "growth": growth,
        "run_overhead_ms": overhead_ms,
        "run_overhead_goal_ms": 50.0,
        "whole_run_s": whole_run_s,
        "batsim_s": 38.5,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    results = measure_all(arguments.tasks, arguments.repeats)
    table.record("drivers", results)
    print(table.DRIVERS.render(results))
    table.DRIVERS.rewrite_document(results)


if __name__ == "__main__":
    main()
