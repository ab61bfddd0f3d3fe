"""Measure mapping events and trials of paper 001's heuristics against the plain loop, compiled.

Usage: python benchmarks/parallel_event.py [--repeats R] [--no-simgrid]

A trial is the paper's system and 28 hours (generator `parallel`, seed 1), under 12 GJ at 5,000
tasks a day and 15 GJ at 10,000, on the reference driver, in a process of its own. All figures are
CPU time. The machine may not be idle: a trial is repeated, and each of its events, as the trial
itself, counts with the least of the repeats. Of a few events of each trial all tasks are placed by
the heuristic and by the plain loop, which searches every option of every task before each
placement; both must decide alike. One more trial has twice the nodes, tasks and joules; and one
runs on SimGrid, against a bare s4u loop that makes the same starts.
"""

from __future__ import annotations

import argparse
import math
import os
import platform as machine
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import table
from numba import njit
from rigid_jobs import bare, controller_of, in_a_process, on_reference, on_simgrid

from gridsched import __version__
from gridsched.drivers import reference
from gridsched.model.system import System
from gridsched.platform_io.xml_writer import parallel_platform_xml, write_platform
from gridsched.schedulers.kernels import warm_up
from gridsched.systems.utility.kernels.parallel_greedy import map_parallel
from gridsched.systems.utility.kernels.parallel_options import divisor_of, first_of, no_placements, place
from gridsched.systems.utility.kernels.parallel_queues import start_of
from gridsched.systems.utility.kernels.two_stage_options import quotient
from gridsched.systems.utility.kernels.utility_value import inside_j, utility_value
from gridsched.systems.utility.parallel_day import ParallelDay
from gridsched.systems.utility.parallel_tasks import generate_parallel_day

BUDGET_J = {5_000: 12e9, 10_000: 15e9}
#: Mean of a mapping event [ms], and a trial [s].
GOALS = {("max_upe", 5_000): 2.0, ("max_upe", 10_000): 10.0, ("max_upr", 5_000): 2.0, ("max_upr", 10_000): 8.0}
TRIAL_GOALS_S = {5_000: 8.0, 10_000: 30.0}
#: Peak memory of a trial's process [MB]; twice the nodes and tasks over once; SimGrid over bare.
MEMORY_GOAL_MB, DOUBLED_GOAL, SIMGRID_GOAL = 2_000, 2.0, 3.0
#: Every so many events one is placed by both loops, if it has no more tasks than that.
EACH, MOST_TASKS = 150, 700


@njit(cache=True, error_model="numpy")
def value_of(objective, rows, functions, n, c, k, start):
    """Objective of an option."""
    number, time_s = functions.utility_class[n], rows.time_s[n, c, k]
    cores = float(rows.nodes[n, c] * rows.cores_per_node[c])
    divisor = divisor_of(objective, time_s, rows.cost_j[n, c, k], cores)
    utility = utility_value(
        functions.shapes,
        functions.first[number],
        functions.first[number + 1] - 1,
        functions.linear[number],
        functions.priority[n],
        functions.urgency[n],
        (start + time_s - rows.arrival_s[n]) / functions.unit_s,
    )
    return quotient(utility, divisor)


@njit(cache=True, error_model="numpy")
def map_plainly(objective, nodes, profile, rows, functions, limits):
    """The two stages as they are defined: every option, every time."""
    m, clusters, pstates = rows.time_s.shape
    placed, count, remaining_j = no_placements(rows), 0, limits.remaining_j
    bits, left = np.empty((2, profile.bits.shape[2]), np.uint64), np.ones(m, np.bool_)
    while True:
        best, row, at, first = -np.inf, -1, -1, np.inf
        for n in range(m):
            if not left[n]:
                continue
            for o in range(clusters * pstates):
                c, k = o // pstates, o % pstates
                start = start_of(profile, rows, limits, n, c, k, remaining_j)
                if start == np.inf:
                    continue
                value = value_of(objective, rows, functions, n, c, k, start)
                if value > best:
                    best, row, at, first = value, n, o, start
        if row < 0:
            return first_of(placed, count)
        c, k = at // pstates, at % pstates
        profile = place(profile, nodes, rows, placed, count, row, c, k, first, bits)
        count += 1
        left[row] = False
        remaining_j -= inside_j(first, rows.time_s[row, c, k], rows.energy_j[row, c, k], limits.day_end, limits.weights)


class Watch:
    """Times a policy's events, and compares some of them with the plain loop."""

    def __init__(self, policy, *, compares: bool) -> None:
        self.policy, self.compares, self.events_s, self.ratios = policy, compares, [], []
        self.placed, self.in_between, self.comparing_s = policy._placed, 0.0, 0.0
        self.schedule = policy.schedule
        policy._placed, policy.schedule = self.compared, self.timed

    def timed(self, state):
        """Answer as the policy does; note the CPU time."""
        self.in_between = 0.0
        began = time.thread_time()
        decisions = list(self.schedule(state))
        self.events_s.append(time.thread_time() - began - self.in_between)
        return decisions

    def compared(self, event, state):
        """Place as the policy does; sometimes compare."""
        began = time.thread_time()
        due = self.compares and len(self.events_s) % EACH == EACH - 1
        if due and len(event.tasks) <= MOST_TASKS:
            self.compare(event, state)
        self.in_between += time.thread_time() - began
        self.comparing_s += self.in_between
        return self.placed(event, state)

    def compare(self, event, state) -> None:
        """Place all tasks of an event in both ways."""
        policy, made = self.policy, self.policy.maker_.event
        limits = policy.filter_.tightened(event.limits, state.energy, event.profile)
        objectives = policy._objectives(state.energy, state.now)
        answers, seconds = [], []
        for plainly in (True, False):
            fresh, _ = made(state, policy.threshold_)
            about = policy.maker_.nodes, fresh.profile, fresh.rows, fresh.functions, limits
            began = time.thread_time()
            if plainly:
                answers.append(map_plainly(objectives[0], *about))
            else:
                answers.append(map_parallel(*objectives, math.inf, *about))
            seconds.append(time.thread_time() - began)
        for one, other in zip(*answers, strict=True):
            if not np.array_equal(one, other):
                raise SystemExit(f"t = {state.now:g} s: the two loops decide differently.")
        if len(event.tasks) > 50:
            self.ratios.append(seconds[0] / seconds[1])


def workload_of(n_tasks: int, times: int = 1):
    """Return the workload, with so many times the nodes, tasks and joules."""
    default = ParallelDay()
    general, special = (
        tuple((times * nodes, cores) for nodes, cores in clusters)
        for clusters in (default.general_clusters, default.special_clusters)
    )
    return generate_parallel_day(
        ParallelDay(
            seed=1,
            tasks_per_day=times * n_tasks,
            energy_budget_j=times * BUDGET_J[n_tasks],
            general_clusters=general,
            special_clusters=special,
        )
    )


def trial(name: str, made, *, compares: bool) -> tuple:
    """Return CPU seconds of a trial and of each event, and how much slower the plain loop is."""
    controller = controller_of(System(made.platform, made.estimates, rules=made.rules), made.tasks, name)
    watch = Watch(controller.scheduler, compares=compares)
    began = time.process_time()
    reference.simulate(controller)
    spent = time.process_time() - began - watch.comparing_s
    return spent, np.array(watch.events_s), watch.ratios


def trials(name: str, n_tasks: int, times: int, repeats: int) -> dict:
    """Repeat a trial; call it in a process of its own."""
    made = workload_of(n_tasks, times)
    found = [trial(name, made, compares=times == 1 and not k) for k in range(repeats)]
    events = np.min([events for _, events, _ in found], axis=0)
    return {
        "scheduler": name,
        "tasks_per_day": times * n_tasks,
        "nodes": len(made.platform),
        "events": len(events),
        "event_mean_ms": float(events.mean() * 1e3),
        "event_most_ms": float(events.max() * 1e3),
        "trial_s": min(spent for spent, _, _ in found),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "plain_over_lazy": [float(ratio) for ratio in found[0][2]],
    }


def with_goals(row: dict) -> dict:
    """Return what was measured, with its goals."""
    n_tasks = row["tasks_per_day"]
    return {
        **row,
        "event_goal_ms": GOALS[row["scheduler"], n_tasks],
        "trial_goal_s": TRIAL_GOALS_S[n_tasks],
        "memory_goal_mb": MEMORY_GOAL_MB,
    }


def doubled(row: dict, repeats: int) -> dict:
    """Measure twice the nodes and tasks of a trial that was measured."""
    found = in_a_process(trials, row["scheduler"], row["tasks_per_day"], 2, repeats)
    of_once = {f"{name}_ratio": found[name] / row[name] for name in ("event_mean_ms", "trial_s")}
    return {**found, **of_once, "ratio_goal": DOUBLED_GOAL}


def against_simgrid(name: str, n_tasks: int) -> dict:
    """Run a trial on SimGrid, and its starts in a bare loop."""
    made = workload_of(n_tasks)
    about = System(made.platform, made.estimates, rules=made.rules), made.tasks, None, name
    seconds, trace = on_reference(*about)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "platform.xml"
        write_platform(made.platform, path, command="benchmarks/parallel_event.py")
        path.write_text(parallel_platform_xml(path) or path.read_text())
        bare_s, bare_end = in_a_process(bare, path, trace)
        simgrid_s, end = in_a_process(on_simgrid, path, *about)
    for found, wanted in ((bare_end, trace.executions["end"].max()), (end, trace.horizon_s)):
        if abs(found - wanted) > 1e-9 * wanted:
            raise SystemExit(f"A run on SimGrid ends at {found} s, the reference at {wanted} s.")
    return {
        "scheduler": name,
        "tasks_per_day": n_tasks,
        "node_executions": int(trace.width.sum()),
        "reference_s": seconds,
        "simgrid_s": simgrid_s,
        "bare_s": bare_s,
        "ratio": simgrid_s / bare_s,
        "ratio_goal": SIMGRID_GOAL,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-simgrid", action="store_true")
    arguments = parser.parse_args()
    warm_up()
    results = {
        "gridsched": __version__,
        "python": machine.python_version(),
        "cpus": os.cpu_count(),
        "repeats": arguments.repeats,
        "mapping_event": [],
    }
    for name, n_tasks in GOALS:
        row = with_goals(in_a_process(trials, name, n_tasks, 1, arguments.repeats))
        results["mapping_event"].append(row)
        ratios = row["plain_over_lazy"] or [math.nan]
        print(
            "{scheduler} {tasks_per_day:6,} tasks a day: event {event_mean_ms:.2f} ms in the mean "
            "(goal {event_goal_ms:g}), {event_most_ms:.0f} at most; trial {trial_s:.1f} s (goal "
            "{trial_goal_s:g}), {peak_memory_mb:.0f} MB (goal {memory_goal_mb:g})".format(**row)
            + f"; plain loop {np.median(ratios):.0f} times slower (median of {len(ratios)} events)",
            flush=True,
        )
    results["doubled"] = [
        doubled(row, arguments.repeats) for row in results["mapping_event"] if row["tasks_per_day"] == min(BUDGET_J)
    ]
    for row in results["doubled"]:
        print(
            "{scheduler}, twice the nodes, tasks and joules: event {event_mean_ms_ratio:.2f} "
            "times, trial {trial_s_ratio:.2f} times (goal {ratio_goal:g})".format(**row),
            flush=True,
        )
    if not arguments.no_simgrid:
        row = results["simgrid"] = against_simgrid("max_upe", min(BUDGET_J))
        print(
            "{scheduler} on SimGrid {simgrid_s:.1f} s, bare loop {bare_s:.1f} s: {ratio:.2f} "
            "times (goal {ratio_goal:g})".format(**row),
            flush=True,
        )
    table.record("parallel_event", results)


if __name__ == "__main__":
    main()
