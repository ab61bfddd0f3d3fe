"""The least possible makespan and energy of tasks with types, by linear programming.

Both follow from program (5) of paper 003, in which tasks are divided among machine types. What is
returned is not the solver's optimum but Lagrange's function at its prices, rounded down
(`pareto_front.Line`): a solver's tolerance cannot lift it above the true optimum.

A machine that draws less at work than idle may always do useless work, a copy of a task.

Where a scheduler chooses P-states, each pair of types takes the least time and the least energy of
all P-states, even if no P-state has both. Where hosts may be switched off, idle power is not
counted.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np

from gridsched.arrays import Booleans
from gridsched.errors import InputError
from gridsched.model.task_types import TaskTypes
from gridsched.model.tasks import Tasks
from gridsched.optimize.bag_bounds import BagBounds
from gridsched.optimize.pareto_front import FrontSolver
from gridsched.optimize.relaxation import ROUNDOFF
from gridsched.optimize.task_paths import least_makespan_of_paths, task_paths
from gridsched.optimize.typed_bag import TypedBag


def typed_bounds(
    types: TaskTypes,
    tasks: Tasks,
    pstate: int = 0,
    *,
    may_switch_off: bool = False,
    free_pstates: bool = False,
    hosts_off: Collection[int] = (),
) -> BagBounds:
    """Bound makespan and energy of any schedule of all these tasks from below.

    Parameters
    ----------
    types : TaskTypes
        ETC, APC, idle power, and the hosts, which have one core each.
    tasks : Tasks
        All of them are executed; those that can run nowhere are left out.
    pstate : int
        The scenario's P-state, in which all executions are without `free_pstates`.
    may_switch_off : bool
        Hosts may be switched off and on at any time: energy without idle.
    free_pstates : bool
        A scheduler chooses P-states (trait `uses_dvfs`).
    hosts_off : collection of int
        Hosts that are off at the start; without `may_switch_off` they stay off.

    Raises
    ------
    InputError
        If there are tasks and no host to run them.

    Notes
    -----
    A late submission enters by each task alone: no makespan is less than the time from the first
    submission until the task has arrived and run where it runs fastest. Where tasks wait for each other,
    `least_makespan_of_paths` besides.
    """
    nothing = BagBounds(0.0, 0.0, not may_switch_off, free_pstates)
    if not len(tasks):
        return nothing
    is_on = np.ones(len(types.host_type), dtype=bool)
    is_on[[] if may_switch_off else list(hosts_off)] = False
    if not is_on.any():
        raise InputError(f"{tasks.name}: no host is on, so the tasks have no bounds.")
    bag = _relaxed_bag(types, tasks, is_on, pstate, may_switch_off, free_pstates)
    if not bag.tasks.any():
        return nothing
    solver = FrontSolver(bag)
    solver.weighted(0.0, 1.0)
    solver.weighted(1.0, 0.0)
    makespan, energy = solver.proven.least_makespan_s, solver.proven.least_energy_j(math.inf)
    quickest = np.where(bag.usable, bag.etc, np.inf).min(axis=1)[tasks.task_type]
    alone = tasks.submit_time_s - tasks.submit_time_s[0] + quickest
    makespan = max(makespan, float(alone[np.isfinite(quickest)].max()))
    if tasks.dependencies is not None:
        quickest = np.where(np.isfinite(quickest), quickest, 0.0)  # what can run nowhere is left out
        on_all = np.ones(int(is_on.sum()))
        makespan = max(makespan, least_makespan_of_paths(task_paths(tasks, quickest), quickest, on_all))
    frugal = np.where(bag.usable, bag.runnable * bag.extra_w, np.inf).min(axis=1)
    above_idle = math.fsum((bag.tasks * np.where(bag.tasks > 0, frugal, 0.0)).tolist())
    above_idle -= 4 * ROUNDOFF * abs(above_idle)
    energy = max(energy, above_idle + bag.all_idle_w * makespan)
    before_j = bag.all_idle_w * float(tasks.submit_time_s[0])

    def front(makespan_s: float) -> float:
        solver.prove_within(makespan_s)
        return solver.proven.least_energy_j(makespan_s) + before_j

    return BagBounds(makespan, energy + before_j, not may_switch_off, free_pstates, front)


def _relaxed_bag(
    types: TaskTypes, tasks: Tasks, is_on: Booleans, pstate: int, may_switch_off: bool, free_pstates: bool
) -> TypedBag:
    """Return a bag in which every pair has its least time and least energy above idle power."""
    levels = slice(None) if free_pstates else slice(pstate, pstate + 1)
    etc, apc = types.etc[:, :, levels], types.apc[:, :, levels]
    idle_w = np.zeros_like(types.idle_w) if may_switch_off else np.array(types.idle_w)
    can = np.isfinite(etc)
    # a useless copy keeps a machine busy that draws less than when it is idle
    idle_w = np.minimum(idle_w, np.where(can, apc, np.inf).min(axis=(0, 2)))
    above = np.full(etc.shape, np.inf)
    above[can] = etc[can] * np.broadcast_to(apc - idle_w[:, None], etc.shape)[can]
    time_s, above_j = etc.min(axis=2), above.min(axis=2)
    runs = np.isfinite(time_s)
    watts = np.zeros(time_s.shape)
    watts[runs] = above_j[runs] / time_s[runs]
    # rounded down, so that time x (power - idle power) is not above the least energy
    watts -= 4 * ROUNDOFF * (np.abs(watts) + idle_w)
    machines = np.bincount(types.host_type[is_on], minlength=len(idle_w))
    assert tasks.task_type is not None  # by the check of `types`
    counts = np.bincount(tasks.task_type, minlength=len(etc))
    homeless = ~(runs & (machines > 0)).any(axis=1)
    counts, whole = np.where(homeless, 0, counts), np.ones(len(idle_w))
    return TypedBag(time_s, watts + idle_w, counts, machines, idle_w, whole)
