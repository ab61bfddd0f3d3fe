"""Jobs that share nodes, for policies with one queue: what starts now, and where."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.model.estimates import PLACES
from gridsched.model.system import System
from gridsched.model.tasks import SharedJobs
from gridsched.policy.decisions import Allocate
from gridsched.policy.state import SharedNodesState, State
from gridsched.schedulers.kernels.shared_nodes import Jobs, Machine, Running, conservative, easy, fcfs

#: Rules by the id of the policy.
RULES = {"fcfs": fcfs, "easy_backfilling": easy, "conservative_backfilling": conservative}


class SharedQueue:
    """Starts jobs of one queue on parts of nodes.

    Parameters
    ----------
    system : System
        Whose platform has partitions.
    rule : callable
        One of `RULES`.

    Attributes
    ----------
    n_cores : int
        Of the whole machine.
    """

    def __init__(self, system: System, rule: Callable[..., int]) -> None:
        partitions = system.platform.partitions
        hosts = [np.array(partition.hosts, dtype=np.int64) for partition in partitions]
        members = np.zeros((len(partitions), system.n_hosts), dtype=np.bool_)
        for k, some in enumerate(hosts):
            members[k, some] = True
        self.n_cores = int(system.platform.cores.sum())
        self._places = np.empty(self.n_cores, dtype=np.int64)
        work = np.empty(2 * self.n_cores, dtype=np.int64)
        offsets = np.cumsum([0, *map(len, hosts)], dtype=np.int64)
        self._machine = Machine(np.concatenate(hosts), offsets, members, PLACES.index(system.rules.place), work)
        self._priority = np.array([partition.priority for partition in partitions], dtype=np.int64)
        self._pstates, self._rule = system.pstates, rule
        self._first = [partition.hosts[0] for partition in partitions]

    def learn(self, state: State) -> None:
        """Take over what the jobs that have been submitted so far take."""
        self._shared: SharedJobs = state.tasks.shared

    def place_of(self, task: int) -> tuple[int, int]:
        """Return a host of a job's partition, and the P-state of all there."""
        host = self._first[self._shared.partition.item(task)]
        return host, self._pstates.item(host)

    def cores_of(self, task: int) -> int:
        """Return how many cores a job takes in all."""
        return self._shared.width.item(task) * self._shared.demand.item(task, 0)

    def factor_of(self, queue: Integers) -> Floats:
        """Return the priority of each job's partition over the largest, at least 0."""
        return np.maximum(self._priority, 0)[self._shared.partition[queue]] / max(self._priority.max(), 1)

    def by_priority(self, queue: Integers) -> Integers:
        """Return a queue with the jobs of partitions of higher priority before the others."""
        priority = self._priority[self._shared.partition[queue]]
        return queue[np.argsort(-priority, kind="stable")] if np.ptp(self._priority) else queue

    def starts(
        self, state: State, queue: Integers, run_time_s: Floats, end: Floats | None, starts: Integers
    ) -> list[Allocate]:
        """Return what starts now, and put the ids into `starts`.

        Parameters
        ----------
        state : State
        queue : ndarray of int64, shape (m,)
            Ids of the jobs that wait, in their order.
        run_time_s : ndarray of float64
            Estimated run times by id [s].
        end : ndarray of float64, shape (running,), optional
            Ends of what runs, in the order of `State.running` [s], in the place of the estimated.
        starts : ndarray of int64
        """
        nodes = state.nodes
        assert isinstance(nodes, SharedNodesState)
        ends = nodes.estimated_end
        if end is not None:
            tasks = state.running["task"]
            order = np.argsort(tasks)
            ends = end[order[np.searchsorted(tasks, nodes.rows[0], sorter=order)]]
            ends.setflags(write=False)  # as a state gives them
        jobs, running = Jobs(*self._shared, run_time_s), Running(ends, nodes.rows, nodes.pool)
        count = self._rule(state.now, queue, jobs, self._machine, nodes.left, running, starts, self._places)
        decisions, begin = [], 0
        for task in starts[:count].tolist():
            until = begin + self._shared.width.item(task)
            decisions.append(Allocate(task, self._places[begin:until]))
            begin = until
        return decisions
