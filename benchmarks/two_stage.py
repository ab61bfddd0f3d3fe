"""Measure a mapping event of the utility heuristics against the plain loop, compiled as well.

Usage: python benchmarks/two_stage.py [--repeats R]

Events are those of paper 000's system: 100 machines of 13 types, 3 P-states. The plain loop looks
at every option of every task before each assignment; both must decide alike. Each figure is the
median of the repeats (the plain loop with 5,000 tasks runs once).
"""

from __future__ import annotations

import argparse
import os
import platform as machine
import statistics
import time

import numpy as np
import table
from numba import njit

from gridsched import __version__
from gridsched.model.signals import EVEN
from gridsched.schedulers.kernels.tables import COMP, UPE, UPT, UTIL, type_tables
from gridsched.systems.utility.kernels.two_stage import map_two_stage
from gridsched.systems.utility.kernels.utility_value import utility_tables, utility_value
from gridsched.systems.utility.utility_day import UtilityDay, generate_utility_day

HEURISTICS = {"max_max_util": UTIL, "max_max_upt": UPT, "max_max_upe": UPE, "min_min_completion_time": COMP}
NOON_S, DAY_END_S = 43_200.0, 86_400.0


@njit(cache=True, error_model="numpy")
def worth(objective, functions, task, elapsed_s, time, energy, end):
    """Objective of one option."""
    if objective == COMP:
        return -end
    c = functions.utility_class[task]
    utility = utility_value(
        functions.shapes,
        functions.first[c],
        functions.first[c + 1] - 1,
        functions.linear[c],
        functions.priority[task],
        functions.urgency[task],
        elapsed_s / functions.unit_s,
    )
    if objective == UPT:
        return utility / time
    return utility / energy if objective == UPE else utility


@njit(cache=True, error_model="numpy")
def earliest_of_types(host_type, ready, first):
    """Write the earliest-ready host of each type into `first`."""
    first[:] = -1
    for host in range(len(ready)):
        j = host_type[host]
        if first[j] < 0 or ready[host] < ready[first[j]]:
            first[j] = host


@njit(cache=True, error_model="numpy")
def map_plainly(objective, tables, functions, task_type, arrival_s, tasks, ready_time, day_end):
    """The two stages as they are defined, without an energy budget: every option, every time."""
    etc, eec = tables.etc, tables.eec
    ready, m = ready_time.copy(), len(tasks)
    first = np.empty(etc.shape[1], np.int64)
    left = np.ones(m, np.bool_)
    answer = np.empty((m, 3), np.int64)
    for count in range(m):
        earliest_of_types(tables.host_type, ready, first)
        best, chosen, host, pstate = -np.inf, -1, -1, -1
        for n in range(m):
            if not left[n]:
                continue
            i = task_type[tasks[n]]
            for j in range(etc.shape[1]):
                h = first[j]
                for k in range(etc.shape[2]):
                    end = ready[h] + etc[i, j, k]
                    if end == np.inf or ready[h] >= day_end:
                        continue
                    value = worth(
                        objective, functions, tasks[n], end - arrival_s[tasks[n]], etc[i, j, k], eec[i, j, k], end
                    )
                    wins = value == best and n == chosen and (h, k) < (host, pstate)
                    if value > best or wins:
                        best, chosen, host, pstate = value, n, h, k
        left[chosen] = False
        ready[host] += etc[task_type[tasks[chosen]], tables.host_type[host], pstate]
        answer[count] = tasks[chosen], host, pstate
    return answer


def event_of(n_tasks: int) -> tuple:
    """Return the system, the tasks that arrived last before noon, and busy machines."""
    whole = generate_utility_day(UtilityDay(seed=1))
    tasks, types = whole.tasks, whole.types
    last = int(np.searchsorted(tasks.submit_time_s, NOON_S))
    waiting = np.arange(last - n_tasks, last)
    ready = NOON_S + np.random.default_rng(1).uniform(0, 1200, len(types.host_type))
    return types, tasks, waiting, ready


def seconds(call, repeats: int) -> tuple[float, tuple]:
    """Return the median wall time of a call, and its answer."""
    answer, taken = call(), []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken), answer


def measure(name: str, n_tasks: int, repeats: int) -> dict:
    """Measure one heuristic on one event, and compare the decisions."""
    objective = HEURISTICS[name]
    types, tasks, waiting, ready = event_of(n_tasks)
    tables = type_tables(types.etc, types.eec, types.host_type, objective)
    about = (
        objective,
        tables,
        utility_tables(tasks.utility),
        np.array(tasks.task_type),
        np.array(tasks.submit_time_s),
        waiting,
        ready,
    )
    limits = np.inf, np.inf, DAY_END_S, EVEN.table
    lazy_s, lazy = seconds(lambda: map_two_stage(*about, *limits), 20 * repeats)
    plain_s, plain = seconds(lambda: map_plainly(*about, DAY_END_S), repeats)
    if not np.array_equal(np.column_stack(lazy[:3]), plain):
        raise SystemExit(f"{name} with {n_tasks} tasks: the two loops decide differently.")
    return {
        "scheduler": name,
        "tasks": n_tasks,
        "lazy_ms": lazy_s * 1e3,
        "plain_ms": plain_s * 1e3,
        "ratio": plain_s / lazy_s,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    rows = []
    for n_tasks in (1000, 5000):
        for name in HEURISTICS:
            rows.append(measure(name, n_tasks, arguments.repeats if n_tasks == 1000 else 1))
            print(
                "{scheduler:24} {tasks:5} tasks: {lazy_ms:7.2f} ms, plain loop {plain_ms:9.1f} "
                "ms, ratio {ratio:6.0f}".format(**rows[-1]),
                flush=True,
            )
    results = {
        "gridsched": __version__,
        "python": machine.python_version(),
        "cpus": os.cpu_count(),
        "repeats": arguments.repeats,
        "mapping_event": rows,
        "ratio_goal": 100.0,
        "ms_goal": {"1000": 5.0, "5000": 60.0},
    }
    table.record("two_stage", results)


if __name__ == "__main__":
    main()
