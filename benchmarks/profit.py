"""Measure the profit program and its recovery from 10^4 to 10^9 tasks, and placing one by one.

Usage: python benchmarks/profit.py [--repeats R] [--plain-up-to N]

The system has the size of paper 003's: 30 task types, 9 machine types, 360 machines; a second one
has 500 task types on 100 machine types of 40 machines. Measured are the checked arrays ("model"),
program (10) with bound and worths ("lp"), and rounding with LPT by counts ("recovery"). The same
tasks are then placed one by one, with a heap of machines, compiled; both must give the same loads.
Each figure is the median of the repeats; CPU seconds are beside it, for a machine that is not idle.
"""

from __future__ import annotations

import argparse
import heapq
import os
import platform as machine
import statistics
import time

import numpy as np
import table
from numba import njit

from gridsched import __version__
from gridsched.model.tariff import Tariff
from gridsched.optimize.pareto_front import least_energy
from gridsched.optimize.recovery import recover
from gridsched.optimize.typed_bag import typed_bag
from gridsched.systems.profit.profit_lp import most_profit
from gridsched.systems.profit.profit_system import ProfitBag, draw_profit_system, draw_task_counts

GAMMA = 1.2
GOALS_MS = {10**exponent: 15.0 if exponent <= 6 else 20.0 for exponent in range(4, 10)}
LARGE_GOAL_MS = 2000.0


@njit(cache=True)
def place_one_by_one(durations, counts, machines):
    """Algorithm 2 as printed: each task to the machine that is ready first."""
    ready = [(0.0, k) for k in range(machines)]
    for i in np.argsort(-durations, kind="mergesort"):
        for _ in range(counts[i]):
            time_s, k = ready[0]
            heapq.heapreplace(ready, (time_s + durations[i], k))
    loads = np.empty(machines)
    for time_s, k in ready:
        loads[k] = time_s
    return loads


def arrays_of(spec: ProfitBag) -> tuple:
    """Return the arrays of a bag."""
    system = draw_profit_system(spec)
    counts = draw_task_counts(spec, system)
    return system.etc, system.apc, counts, system.machines, system.idle_w


def measure(spec: ProfitBag, repeats: int, plain_up_to: int) -> dict:
    """Measure one bag."""
    arrays = arrays_of(spec)
    tariff = Tariff(price=GAMMA * least_energy(typed_bag(*arrays)).energy_j)
    parts: list[tuple[float, ...]] = []
    for _ in range(repeats + 1):
        cpu, times = time.process_time(), [time.perf_counter()]
        bag = typed_bag(*arrays)
        times.append(time.perf_counter())
        plan = most_profit(bag, tariff)
        times.append(time.perf_counter())
        found = recover(bag, plan.x)
        times.append(time.perf_counter())
        parts.append((*np.diff(times), times[-1] - times[0], time.process_time() - cpu))
    medians = [1e3 * statistics.median(part) for part in zip(*parts[1:], strict=True)]
    row = dict(zip(("model_ms", "lp_ms", "recovery_ms", "total_ms", "cpu_ms"), medians, strict=True))
    row = {"tasks": spec.tasks, "task_types": spec.task_types, "machine_types": spec.machine_types, **row}
    if spec.tasks <= plain_up_to:
        row["one_by_one_ms"] = plain_ms(bag, found)
        row["ratio"] = row["one_by_one_ms"] / row["recovery_ms"]
    return row


def plain_ms(bag, found) -> float:
    """Measure placing the same tasks one by one, and compare the loads [ms]."""
    columns = [
        (np.ascontiguousarray(bag.etc[:, j]), np.ascontiguousarray(found.tasks[:, j]), int(count))
        for j, count in enumerate(bag.machines)
    ]
    place_one_by_one(columns[0][0], 0 * columns[0][1], 1)  # compile
    began = time.perf_counter()
    loads = [place_one_by_one(*column) for column in columns]
    taken = time.perf_counter() - began
    for one, counted in zip(loads, found.machines, strict=True):
        # sums of 10^6 and more rounded numbers; on machines that may have changed places
        if not np.allclose(np.sort(one), np.sort(counted.loads_s), rtol=1e-8):
            raise SystemExit(f"{bag.tasks.sum():,} tasks: the two ways place them differently.")
    return 1e3 * taken


def show(row: dict) -> None:
    """Print one line."""
    line = (
        "{task_types:4} x {machine_types:3} types {tasks:13,} tasks: {total_ms:8.2f} ms "
        "(model {model_ms:.2f}, lp {lp_ms:.2f}, recovery {recovery_ms:.2f}; CPU {cpu_ms:.2f})"
    ).format(**row)
    if "ratio" in row:
        line += "; one by one {one_by_one_ms:.1f} ms, ratio {ratio:.1f}".format(**row)
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--plain-up-to", type=int, default=10**8)
    arguments = parser.parse_args()
    rows = []
    for tasks in GOALS_MS:
        rows.append(measure(ProfitBag(tasks=tasks), arguments.repeats, arguments.plain_up_to))
        show(rows[-1])
    large = ProfitBag(task_types=500, machine_types=100, tasks=10**6)
    rows.append(measure(large, max(arguments.repeats // 7, 1), 0))
    show(rows[-1])
    results = {
        "gridsched": __version__,
        "python": machine.python_version(),
        "cpus": os.cpu_count(),
        "repeats": arguments.repeats,
        "gamma": GAMMA,
        "profit": rows,
        "ms_goal": {str(tasks): goal for tasks, goal in GOALS_MS.items()},
        "ms_goal_500_x_100": LARGE_GOAL_MS,
    }
    table.record("profit", results)


if __name__ == "__main__":
    main()
