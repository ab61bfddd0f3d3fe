"""Tasks that wait for each other as schedulers see them: neighbors, run times by host, and how long data take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.model.network import Network
from gridsched.model.system import System
from gridsched.policy.state import State


@dataclass(frozen=True)
class Edge:
    """Data that one task makes for another.

    Attributes
    ----------
    other : int
        The task at the other end.
    size_bytes : float
        All that the one makes for the other [byte].
    mean_s : float
        How long they take between two hosts that differ, on average over these [s].
    """

    other: int
    size_bytes: float
    mean_s: float


class TaskGraph:
    """Some of a run's tasks, which are to be placed, with their neighbors.

    Parameters
    ----------
    state : State
    system : System
    tasks : ndarray of int64
        Their ids, ascending; every task comes behind those that it waits for.

    Attributes
    ----------
    tasks : list of int
    time_s : ndarray of float64, shape (tasks, hosts)
        Estimated run times [s]; infinite where a task cannot run.
    mean_s : dict of int to float
        Their mean over the hosts that can run the task.
    cores : dict of int to int
        How many each task takes at once, on one host.
    before, behind : dict of int to list of Edge
        What each task waits for, of all tasks; which of `tasks` wait for it.
    staged_s : dict of int to ndarray of float64, shape (hosts,)
        When the files that no task makes could be at each host [s], for those of `tasks` that read any.
    """

    def __init__(self, state: State, system: System, tasks: Integers) -> None:
        self.tasks: list[int] = tasks.tolist()
        self.network = system.network
        hosts = np.arange(system.n_hosts)
        self.time_s: Floats = np.array(state.estimates.etc(tasks, hosts, system.pstates[hosts]), dtype=np.float64)
        can_run = np.isfinite(self.time_s)
        sums = np.where(can_run, self.time_s, 0.0).sum(axis=1) / np.maximum(can_run.sum(axis=1), 1)
        self.mean_s: dict[int, float] = dict(zip(self.tasks, sums.tolist(), strict=True))
        numbers = system.estimates.numbers_of_cores(tasks, np.zeros(len(tasks), dtype=np.int64))
        self.cores: dict[int, int] = dict(zip(self.tasks, numbers.tolist(), strict=True))
        self.row = {task: k for k, task in enumerate(self.tasks)}
        self.before: dict[int, list[Edge]] = {task: [] for task in self.tasks}
        self.behind: dict[int, list[Edge]] = {task: [] for task in self.tasks}
        sizes = self._sizes(state)
        latency_s, per_byte_s = mean_costs(system.network)
        for (task, on), size in sizes.items():
            mean_s = latency_s + size * per_byte_s if size else 0.0
            self.before[task].append(Edge(on, size, mean_s))
            if on in self.behind:
                self.behind[on].append(Edge(task, size, mean_s))
        staged = state.tasks.staged
        readers = set() if staged is None else set(staged.task.tolist())
        self.staged_s: dict[int, Floats] = {task: state.data_ready(task) for task in self.tasks if task in readers}

    def _sizes(self, state: State) -> dict[tuple[int, int], float]:
        """Return the bytes of each pair of a task and one that it waits for."""
        pairs = state.tasks.dependencies
        sizes: dict[tuple[int, int], float] = {}
        if pairs is not None:
            rows = zip(pairs.task.tolist(), pairs.on.tolist(), pairs.size_bytes.tolist(), strict=True)
            for task, on, size in rows:
                if task in self.row:
                    sizes[task, on] = sizes.get((task, on), 0.0) + size
        return sizes

    def times_of(self, task: int) -> Floats:
        """Return the run times of a task [s], shape (hosts,)."""
        times: Floats = self.time_s[self.row[task]]
        return times

    def sent(self, edge: Edge, source: int) -> Floats:
        """Return how long the data of an edge take from a host to each [s], shape (hosts,)."""
        if self.network is None or not edge.size_bytes:
            return np.zeros(self.time_s.shape[1])
        return self.network.from_host(edge.size_bytes, source)

    def upward_ranks(self) -> dict[int, float]:
        """Return each task's longest way to an end [s], its own mean time included.

        Topcuoglu, Hariri, Wu 2002, eq. 8: mean time plus the greatest, over those that wait for it, of mean
        transfer plus rank.
        """
        ranks: dict[int, float] = {}
        for task in reversed(self.tasks):
            ranks[task] = self.mean_s[task] + max((e.mean_s + ranks[e.other] for e in self.behind[task]), default=0.0)
        return ranks

    def downward_ranks(self) -> dict[int, float]:
        """Return each task's longest way from a begin [s], without its own time; their eq. 10."""
        ranks: dict[int, float] = {}
        for task in self.tasks:
            ways = (ranks[e.other] + self.mean_s[e.other] + e.mean_s for e in self.before[task] if e.other in ranks)
            ranks[task] = max(ways, default=0.0)
        return ranks

    def median_times(self) -> Floats:
        """Return each task's median time over hosts [s]; where that is infinite, its greatest finite one.

        As Sih and Lee 1993 have it; shape (tasks,).
        """
        median = np.median(self.time_s, axis=1)
        greatest: Floats = np.where(np.isfinite(self.time_s), self.time_s, -np.inf).max(axis=1, initial=-np.inf)
        return np.where(np.isfinite(median), median, greatest)

    def static_levels(self, times_s: Floats) -> Floats:
        """Return each task's longest way to an end by given times [s], without transfers, shape (tasks,)."""
        levels: Floats = times_s.copy()
        for row in range(len(self.tasks) - 1, -1, -1):
            levels[row] += max((levels.item(self.row[e.other]) for e in self.behind[self.tasks[row]]), default=0.0)
        return levels

    def counts_before(self) -> list[int]:
        """Return for how many of the graph's own tasks each waits."""
        return [sum(edge.other in self.row for edge in self.before[task]) for task in self.tasks]

    def optimistic_costs(self) -> Floats:
        """Return what is at least left behind each task on each host [s], shape (tasks, hosts).

        Arabnejad and Barbosa 2014, eq. 4: the greatest, over those that wait for it, of the least over hosts of
        their own cost, their time, and the mean transfer if the host is another one.
        """
        costs = np.zeros_like(self.time_s)
        for row in range(len(self.tasks) - 1, -1, -1):
            for edge in self.behind[self.tasks[row]]:
                left = costs[self.row[edge.other]] + self.time_s[self.row[edge.other]]
                np.maximum(costs[row], np.minimum(left, left.min() + edge.mean_s), out=costs[row])
        return costs


def mean_costs(network: Network | None) -> tuple[float, float]:
    """Return the mean latency [s] and the mean time of a byte [s] between two hosts that differ."""
    if network is None or len(network.latency_s) < 2:
        return 0.0, 0.0
    apart = ~np.eye(len(network.latency_s), dtype=bool)
    return float(network.latency_s[apart].mean()), float((1.0 / network.bandwidth[apart]).mean())


def in_order(tasks: Sequence[int], ranks: dict[int, float]) -> list[int]:
    """Return tasks by falling rank; of equals the lowest id, which comes before those that wait for it."""
    return sorted(tasks, key=lambda task: (-ranks[task], task))
