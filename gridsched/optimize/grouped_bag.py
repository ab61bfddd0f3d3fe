"""Tasks and machines of a run, gathered into types for the linear programs.

Tasks with types keep them. Of a bag without, tasks of one size are one type, and each core of a
host is a machine of its own. Its power is what the host's least power curve has for it
(`bag_bounds.host_power_curve`): where that is a straight line, the core's share of the host's
power, idle power too; where it bends, because ``epsilon < idle``, the first core of a host is a
machine of another type than the further ones, which have no idle power. No schedule draws less.
Some draws just that where hosts have one core, or ``epsilon = idle``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.model.estimates import Estimates
from gridsched.model.platform import Platform, PState
from gridsched.model.tariff import Tariff
from gridsched.model.task_types import TypedEstimates
from gridsched.model.tasks import Tasks
from gridsched.optimize.bag_bounds import host_power_curve
from gridsched.optimize.typed_bag import BagPlan, MachineCounts, TypedBag, typed_bag


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
