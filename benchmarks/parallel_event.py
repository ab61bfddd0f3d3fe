"""Measure mapping events and trials of paper 001's heuristics against the plain loop, compiled.

Usage: python benchmarks/parallel_event.py [--output FILE]

A trial is the paper's system and 28 hours (generator `parallel`, seed 1), under 12 GJ at 5,000
tasks a day and 15 GJ at 10,000, on the reference driver. All figures are CPU time: the machine may
not be idle. Of a few events of each trial all tasks are placed by the heuristic and by the plain
loop, which searches every option of every task before each placement; both must decide alike.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform as machine
import time
from pathlib import Path

import numpy as np
from numba import njit

from gridsched import __version__
from gridsched.engine import Controller, reference
from gridsched.model.system import System
from gridsched.policy.registry import make_scheduler
from gridsched.schedulers.kernels.node_gaps import earliest
from gridsched.schedulers.kernels.parallel_greedy import map_parallel, worth
from gridsched.schedulers.kernels.parallel_options import (
    divisor_of,
    first_of,
    inside_j,
    no_placements,
    passes_filter,
    place,
)
from gridsched.workloads.parallel_day import ParallelDay
from gridsched.workloads.parallel_tasks import generate_parallel_day

HERE = Path(__file__).resolve().parent
BUDGET_J = {5_000: 12e9, 10_000: 15e9}
#: Mean of a mapping event [ms], and a trial [s].
GOALS = {
    ("max_upe", 5_000): 2.0, ("max_upe", 10_000): 10.0,
    ("max_upr", 5_000): 2.0, ("max_upr", 10_000): 8.0,
}  # fmt: skip
TRIAL_GOALS_S = {5_000: 8.0, 10_000: 30.0}
#: Every so many events one is placed by both loops, if it has no more tasks than that.
EACH, MOST_TASKS = 150, 700


@njit(cache=True, error_model="numpy")
def value_of(objective, rows, functions, n, c, k, start):
    """Objective of an option."""
    number, time_s = functions.utility_class[n], rows.time_s[n, c, k]
    cores = float(rows.nodes[n, c] * rows.cores_per_node[c])
    return worth(
        divisor_of(objective, time_s, rows.energy_j[n, c, k], cores), start + time_s,
        rows.arrival_s[n], functions.shapes, functions.first[number],
        functions.first[number + 1] - 1, functions.linear[number], functions.priority[n],
        functions.urgency[n], functions.unit_s,
    )  # fmt: skip


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
                time_s, energy = rows.time_s[n, c, k], rows.energy_j[n, c, k]
                cores = float(rows.nodes[n, c] * rows.cores_per_node[c])
                if time_s == np.inf or not passes_filter(
                    time_s, energy, cores, limits.task_budget_j, limits.resource_budget_w
                ):
                    continue
                start, _ = earliest(
                    profile.begin, profile.end, profile.n_nodes, profile.by_begin,
                    profile.by_end, profile.size, c, rows.nodes[n, c], time_s, np.inf,
                )  # fmt: skip
                day_end = limits.day_end
                if start >= day_end or inside_j(start, time_s, energy, day_end) > remaining_j:
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
        remaining_j -= inside_j(
            first, rows.time_s[row, c, k], rows.energy_j[row, c, k], limits.day_end
        )


class Watch:
    """Times a policy's events, and compares some of them with the plain loop."""

    def __init__(self, policy) -> None:
        self.policy, self.events_s, self.ratios = policy, [], []
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
        if len(self.events_s) % EACH == EACH - 1 and len(event.tasks) <= MOST_TASKS:
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
            fresh = made(state)
            policy.maker_.drop(fresh, policy.threshold_)
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


def measure(name: str, n_tasks: int) -> dict:
    """Run a trial."""
    spec = ParallelDay(seed=1, tasks_per_day=n_tasks, energy_budget_j=BUDGET_J[n_tasks])
    made = generate_parallel_day(spec)
    policy = make_scheduler(name)
    watch = Watch(policy)
    system = System(made.platform, made.estimates, rules=made.rules)
    controller = Controller(system, made.tasks, policy, rng=np.random.default_rng(0))
    began = time.process_time()
    reference.simulate(controller)
    spent = time.process_time() - began - watch.comparing_s
    events = np.array(watch.events_s[1:])  # the first one loads the kernels
    return {
        "scheduler": name, "tasks_per_day": n_tasks, "events": len(events),
        "event_mean_ms": float(events.mean() * 1e3), "event_most_ms": float(events.max() * 1e3),
        "event_goal_ms": GOALS[name, n_tasks], "trial_s": spent,
        "trial_goal_s": TRIAL_GOALS_S[n_tasks],
        "plain_over_lazy": [float(ratio) for ratio in watch.ratios],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=HERE / "parallel_event.json")
    arguments = parser.parse_args()
    rows = []
    for name, n_tasks in GOALS:
        rows.append(measure(name, n_tasks))
        ratios = rows[-1]["plain_over_lazy"] or [math.nan]
        print(
            "{scheduler} {tasks_per_day:6,} tasks a day: event {event_mean_ms:6.2f} ms in the mean "
            "(goal {event_goal_ms:g}), {event_most_ms:.0f} at most; trial {trial_s:.1f} s "
            "(goal {trial_goal_s:g})".format(**rows[-1])
            + f"; plain loop {np.median(ratios):.0f} times slower (median of {len(ratios)} events)",
            flush=True,
        )
    results = {
        "gridsched": __version__, "python": machine.python_version(), "cpus": os.cpu_count(),
        "mapping_event": rows,
    }  # fmt: skip
    arguments.output.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
