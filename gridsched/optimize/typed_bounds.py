"""The least possible makespan and energy of a run's tasks, gathered into types, by linear programming.

Tasks with types keep them. Of a bag without, tasks of one size are one type, and each core of a
host is a machine of its own. Its power is what the host's least power curve has for it
(`bag_bounds.host_power_curve`): where that is a straight line, the core's share of the host's
power, idle power too; where it bends, because ``epsilon < idle``, the first core of a host is a
machine of another type than the further ones, which have no idle power. No schedule draws less.
Some draws just that where hosts have one core, or ``epsilon = idle``.

Both follow from programme (5) of paper 003, in which tasks are divided among machine types. What is
told is not the solver's optimum but Lagrange's function at its prices, rounded down
(`pareto_front.Line`): a solver's tolerance cannot lift it above the true optimum.

A machine that draws less at work than idle may always do useless work, a copy of a task.

Where a scheduler chooses P-states, each pair of types takes the least time and the least energy of
all P-states, even if no P-state has both. Where hosts may be switched off, idle power is not
counted.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.errors import InputError
from gridsched.model.estimates import Estimates
from gridsched.model.platform import Platform, PState
from gridsched.model.tariff import Tariff
from gridsched.model.task_types import TaskTypes, TypedEstimates
from gridsched.model.tasks import Tasks
from gridsched.optimize.bag_bounds import BagBounds, host_power_curve
from gridsched.optimize.pareto_front import FrontSolver
from gridsched.optimize.relaxation import ROUNDOFF
from gridsched.optimize.typed_bag import BagPlan, MachineCounts, TypedBag, typed_bag

# ----------------------
# Tasks and machines of a run, gathered into types for the linear programmes


@dataclass(frozen=True, eq=False)
class GroupedBag:
    """A bag by types, and who is who.

    Attributes
    ----------
    bag : TypedBag
    tasks : ndarray of int64, shape (tasks,)
        Integers of the tasks, those of type 0 first, then those of type 1, and so on.
    machines : tuple of ndarray of int64
        For each machine type the host of each of its machines, ascending.
    cores : tuple of ndarray of int64
        For each machine type which core of its host each of its machines is.
    host_types : ndarray of int64, or None
        Of tasks with types: the host type that each machine type is.
    """

    bag: TypedBag
    tasks: Integers
    machines: tuple[Integers, ...]
    cores: tuple[Integers, ...]
    host_types: Integers | None = None

    def tariff(self, of_host_types: Tariff | None) -> Tariff | None:
        """Return a tariff by host type as one by machine type of `bag`."""
        if of_host_types is None or self.host_types is None:
            return of_host_types
        return of_host_types.for_each(self.host_types)

    def ready_s(self, core_ready_s: Floats) -> tuple[Floats, ...]:
        """Return when each machine of each type is ready [s].

        Parameters
        ----------
        core_ready_s : ndarray of float64, shape (hosts, most cores)
            When each core of each host is ready [s]; rows ascend.
        """
        return tuple(core_ready_s[hosts, cores] for hosts, cores in zip(self.machines, self.cores, strict=True))

    def placed(self, plan: BagPlan) -> tuple[Integers, Integers]:
        """Return tasks and their hosts, each host's tasks in the order of execution.

        Parameters
        ----------
        plan : BagPlan
            Of whole tasks of `bag`.

        Returns
        -------
        tasks, hosts : ndarray of int64
            A host with several cores takes its tasks in the order of their planned starts, so
            that each core executes what its machine was given, or the like of it.
        """
        first = np.concatenate([[0], np.cumsum(self.bag.tasks)])[:-1]
        parts = []
        for j, placed in enumerate(plan.machines):
            for k, counts, start_s in _rows(placed, self.bag.etc[:, j]):
                ids = self.tasks[first[k] : first[k] + counts.sum()]
                first[k] += len(ids)
                before = np.repeat(np.cumsum(counts) - counts, counts)
                starts = np.repeat(start_s, counts)
                starts = starts + (np.arange(len(ids)) - before) * self.bag.etc[k, j]
                parts.append((ids, np.repeat(self.machines[j], counts), starts))
        tasks, hosts, starts = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.lexsort((starts, hosts))
        return tasks[order], hosts[order]


def _rows(placed: MachineCounts, durations_s: Floats) -> Iterator[tuple[int, Integers, Floats]]:
    """Yield task type, tasks on each machine, and when each machine begins with them [s]."""
    ready = placed.ready_s
    for k, counts in zip(placed.types.tolist(), placed.counts, strict=True):
        yield k, counts, ready
        ready = ready + counts * durations_s[k]


def grouped_bag(
    platform: Platform,
    estimates: Estimates,
    tasks: Tasks,
    ids: Integers,
    hosts: Integers,
    pstates: Integers | int = 0,
    sites: Integers | int = 0,
) -> GroupedBag:
    """Gather some tasks on some hosts into types.

    Parameters
    ----------
    platform : Platform
    estimates : Estimates
    tasks : Tasks
    ids : ndarray of int64
        At least one task of `tasks`.
    hosts : ndarray of int64
    pstates : ndarray of int64, shape (hosts,), or int
        P-state of all executions on each of the hosts.
    sites : ndarray of int64, shape (hosts,), or int
        Machines of two sites are no one type.

    Raises
    ------
    InputError
        If a task can run on none of the hosts, or typed tasks meet hosts with several cores.
    """
    if isinstance(estimates, TypedEstimates):
        return _of_types(platform, estimates, ids, hosts, pstates, sites)
    sizes, of_task = np.unique(tasks.flops[ids], return_inverse=True)
    (speed, apc_w, idle_w, share), machines = _machines(platform, hosts, pstates, sites)
    bag = typed_bag(
        sizes[:, None] / speed,
        np.broadcast_to(apc_w, (len(sizes), len(speed))),
        np.bincount(of_task),
        [len(each) for each in machines],
        idle_w,
        share,
    )
    every, cores = zip(*(each.T for each in machines), strict=True)
    return GroupedBag(bag, ids[np.argsort(of_task, kind="stable")], every, cores)


def _machines(
    platform: Platform, hosts: Integers, pstates: Integers | int, sites: Integers | int
) -> tuple[Floats, tuple[Integers, ...]]:
    """Return what the cores of hosts are as machines, gathered into types.

    Returns
    -------
    figures : ndarray of float64, shape (4, machine types)
        Speed [flop/s], power of an executing and of an idle machine [W], share of a host.
    machines : tuple of ndarray of int64, shape (machines, 2)
        For each type the host and the core of each machine, ascending.
    """
    columns = (
        *(each[hosts, pstates] for each in (platform.speed, platform.idle_w, platform.epsilon_w, platform.busy_w)),
        platform.cores[hosts],
        np.broadcast_to(sites, hosts.shape),
    )
    kinds, of_host = _distinct_rows(np.stack(columns, axis=1))
    rows, where = [], []
    for kind, figures in enumerate(kinds.T.tolist()):
        same = np.sort(hosts[of_host == kind])
        first = 0
        for row, number in _segments(PState(*figures[:4]), int(figures[4])):
            rows.append((*row, figures[5]))
            cores = np.arange(first, first + number)
            where.append(np.stack([np.repeat(same, number), np.tile(cores, len(same))], axis=1))
            first += number
    types, of_row = _distinct_rows(np.array(rows))
    gathered = (
        np.concatenate([each for each, k in zip(where, of_row, strict=True) if k == j]) for j in range(types.shape[1])
    )
    return types[:4], tuple(each[np.lexsort(each.T[::-1])] for each in gathered)


def _segments(state: PState, cores: int) -> Iterator[tuple[tuple[float, float, float, float], int]]:
    """Yield the straight parts of a host's least power curve as machines, and how many cores."""
    corners = host_power_curve(cores, (state,), None)
    idle_w, others_w = corners[0][1], 0.0
    for (rate, _), (next_rate, next_w) in pairwise(corners):
        number = round((next_rate - rate) / state.speed)
        busy_w = (next_w - others_w) / number
        yield (state.speed, busy_w, idle_w / number, 1 / cores), number
        idle_w, others_w = 0.0, next_w


def _of_types(
    platform: Platform,
    estimates: TypedEstimates,
    ids: Integers,
    hosts: Integers,
    pstates: Integers | int,
    sites: Integers | int,
) -> GroupedBag:
    several = hosts[platform.cores[hosts] > 1]
    if len(several):
        raise InputError(
            f"{platform.name}: host {platform.hosts[several[0]].name} has several cores; tasks "
            f"with types need hosts of one core each."
        )
    task_types, of_task = np.unique(estimates.task_type[ids], return_inverse=True)
    kinds = np.stack(np.broadcast_arrays(estimates.host_type[hosts], pstates, sites), axis=1)
    (host_types, levels, _), of_host = _distinct_rows(kinds)
    chosen = task_types[:, None], host_types[None, :], levels[None, :]
    machines = tuple(hosts[of_host == j] for j in range(len(host_types)))
    bag = typed_bag(
        estimates.etc_matrix[chosen],
        estimates.apc_matrix[chosen],
        np.bincount(of_task),
        [len(each) for each in machines],
        estimates.idle_w[host_types],
    )
    first = tuple(np.zeros_like(each) for each in machines)
    return GroupedBag(bag, ids[np.argsort(of_task, kind="stable")], machines, first, host_types)


def _distinct_rows(rows: NDArray[Any]) -> tuple[NDArray[Any], Integers]:
    """Return the columns of the distinct rows, in ascending order, and which one each row is."""
    classes, which = np.unique(rows, axis=0, return_inverse=True)
    return classes.T, which.reshape(-1)


# ----------------------
# The least possible makespan and energy of tasks with types, by linear programming


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
    submission until the task has arrived and run where it runs fastest.
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
    assert tasks.task_type is not None  # as `types` tells
    counts = np.bincount(tasks.task_type, minlength=len(etc))
    homeless = ~(runs & (machines > 0)).any(axis=1)
    counts, whole = np.where(homeless, 0, counts), np.ones(len(idle_w))
    return TypedBag(time_s, watts + idle_w, counts, machines, idle_w, whole)
