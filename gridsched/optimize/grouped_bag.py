"""Tasks and machines of a run, gathered into types for the linear programmes.

Tasks with types keep them. Of a bag without, tasks of one size are one type, and each core of a
host is a machine of its own: it has the core's share of the host's power, idle power too. That is
exact for hosts with one core, and for others where the power with one busy core more rises evenly
from the idle power (``epsilon = idle``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import InputError
from gridsched.model.estimates import Estimates, TypedEstimates
from gridsched.model.platform import Platform
from gridsched.model.tasks import Tasks
from gridsched.optimize.lpt import MachineCounts
from gridsched.optimize.recovery import Allocation
from gridsched.optimize.typed_bag import Integers, TypedBag, typed_bag


@dataclass(frozen=True, eq=False)
class GroupedBag:
    """A bag by types, and who is who.

    Attributes
    ----------
    bag : TypedBag
    tasks : ndarray of int64, shape (tasks,)
        Ids of the tasks, those of type 0 first, then those of type 1, and so on.
    machines : tuple of ndarray of int64
        For each machine type the host of each of its machines.
    """

    bag: TypedBag
    tasks: Integers
    machines: tuple[Integers, ...]

    def ready_s(self, core_ready_s: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """Return when each machine of each type is ready [s].

        Parameters
        ----------
        core_ready_s : ndarray of float64, shape (hosts, most cores)
            When each core of each host is ready [s]; rows ascend.
        """
        return tuple(
            core_ready_s[hosts, np.arange(len(hosts)) - np.searchsorted(hosts, hosts)]
            for hosts in self.machines
        )

    def energy_of_used_j(self, allocation: Allocation, off_w: NDArray[np.float64]) -> float:
        """Return the energy until the makespan if hosts without tasks are off from the start [J].

        Parameters
        ----------
        allocation : Allocation
            Of `bag`.
        off_w : ndarray of float64, shape (hosts of the platform,)
            Power of each host while it is off [W].
        """
        used = np.zeros(len(off_w), dtype=bool)
        for hosts, placed in zip(self.machines, allocation.machines, strict=True):
            used[hosts[placed.loads_s > 0]] = True
        unused = [hosts[~used[hosts]] for hosts in self.machines]
        idle_w = float(np.array([len(hosts) for hosts in unused]) @ self.bag.idle_w)
        off = np.unique(np.concatenate(unused))
        saved_w = idle_w - float(off_w[off].sum())
        return allocation.energy_j() - saved_w * allocation.finish_s

    def placed(self, allocation: Allocation) -> tuple[Integers, Integers]:
        """Return tasks and their hosts, each host's tasks in the order of execution.

        Parameters
        ----------
        allocation : Allocation
            Of `bag`.

        Returns
        -------
        tasks, hosts : ndarray of int64
            A host with several cores takes its tasks in the order of their planned starts, so
            that each core executes what its machine was given, or the like of it.
        """
        first = np.concatenate([[0], np.cumsum(self.bag.tasks)])[:-1]
        parts = []
        for j, placed in enumerate(allocation.machines):
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


def _rows(
    placed: MachineCounts, durations_s: NDArray[np.float64]
) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.float64]]]:
    """Yield task type, tasks on each machine, and when each machine begins with them [s]."""
    ready = placed.ready_s
    for k, counts in zip(placed.types.tolist(), placed.counts, strict=True):
        yield k, counts, ready
        ready = ready + counts * durations_s[k]


def grouped_bag(
    platform: Platform, estimates: Estimates, tasks: Tasks, ids: Integers, hosts: Integers,
    pstates: Integers | int = 0,
) -> GroupedBag:  # fmt: skip
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

    Raises
    ------
    InputError
        If a task can run on none of the hosts, or typed tasks meet hosts with several cores.
    """
    if isinstance(estimates, TypedEstimates):
        return _of_types(platform, estimates, ids, hosts, pstates)
    sizes, of_task = np.unique(tasks.flops[ids], return_inverse=True)
    cores = platform.cores[hosts]
    figures = (
        platform.speed[hosts, pstates],
        platform.busy_w[hosts, pstates] / cores,
        platform.idle_w[hosts, pstates] / cores,
    )
    (speed, busy_w, idle_w), of_host = _distinct_rows(np.stack(figures, axis=1))
    return _grouped(
        sizes[:, None] / speed, np.broadcast_to(busy_w, (len(sizes), len(speed))), idle_w,
        ids, of_task, np.repeat(hosts, cores), np.repeat(of_host, cores),
    )  # fmt: skip


def _of_types(
    platform: Platform, estimates: TypedEstimates, ids: Integers, hosts: Integers,
    pstates: Integers | int,
) -> GroupedBag:  # fmt: skip
    several = hosts[platform.cores[hosts] > 1]
    if len(several):
        raise InputError(
            f"{platform.name}: host {platform.hosts[several[0]].name} has several cores; tasks "
            f"with types need hosts of one core each."
        )
    task_types, of_task = np.unique(estimates.task_type[ids], return_inverse=True)
    kinds = np.stack(np.broadcast_arrays(estimates.host_type[hosts], pstates), axis=1)
    (host_types, levels), of_host = _distinct_rows(kinds)
    chosen = task_types[:, None], host_types[None, :], levels[None, :]
    return _grouped(
        estimates.etc_matrix[chosen], estimates.apc_matrix[chosen],
        estimates.idle_w[host_types], ids, of_task, hosts, of_host,
    )  # fmt: skip


def _distinct_rows(rows: NDArray[Any]) -> tuple[NDArray[Any], Integers]:
    """Return the columns of the distinct rows, in ascending order, and which one each row is."""
    found, which = np.unique(rows, axis=0, return_inverse=True)
    return found.T, which.reshape(-1)


def _grouped(
    etc: NDArray[np.float64], apc: NDArray[np.float64], idle_w: NDArray[np.float64],
    ids: Integers, of_task: Integers, machines: Integers, of_machine: Integers,
) -> GroupedBag:  # fmt: skip
    counts = np.bincount(of_task, minlength=len(etc))
    numbers = np.bincount(of_machine, minlength=len(idle_w))
    return GroupedBag(
        typed_bag(etc, apc, counts, numbers, idle_w),
        ids[np.argsort(of_task, kind="stable")],
        tuple(machines[of_machine == j] for j in range(len(idle_w))),
    )
