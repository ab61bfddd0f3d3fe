"""The machine of policies with one queue: which jobs of the queue start now, and where.

Of equal nodes that jobs have whole their number is enough (`CountedNodes`). Where jobs share nodes,
or some are down at times that everybody knows, nodes are looked at one by one (`EachNode`).
"""

from __future__ import annotations

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers, distinct
from gridsched.model.maintenance import Maintenance
from gridsched.model.room_on_nodes import PLACES, node_amounts
from gridsched.model.system import System
from gridsched.policy.decisions import Allocate
from gridsched.policy.state import NodesState, SharedNodesState, State
from gridsched.schedulers.kernels.availability import PACK, Nodes, some_may_start, starts_now
from gridsched.schedulers.parallel.predictors import for_kernels, read_only


class CountedNodes:
    """Equal nodes that jobs have whole; the free ones of the lowest ids are taken.

    Parameters
    ----------
    system : System
        Of one cluster.
    reservations : int
        As of `starts_now`.

    Attributes
    ----------
    size : int
        Nodes, or cores where jobs share nodes.
    n_hosts : int
        Nodes.
    has_priorities : bool
        Whether some partitions come before others.
    """

    has_priorities = False

    def __init__(self, system: System, reservations: int) -> None:
        self.size = self.n_hosts = system.n_hosts
        self._reservations, self._pstate = reservations, system.pstate
        self._starts = np.empty(0, dtype=np.int64)

    def is_full(self, state: State) -> bool:
        """Whether nothing can start now: cheap."""
        return not state.nodes.n_free

    def learn(self, state: State) -> None:
        """Take over what is known of the jobs that have been submitted so far."""

    def job(self, task: int, state: State) -> tuple[float, int]:
        """Return estimated run time [s] and size of a job."""
        return state.estimates.run_time(task, 0, self._pstate), state.estimates.width(task, 0)

    def by_priority(self, queue: Integers) -> Integers:
        """Return a queue with the jobs of partitions of higher priority before the others."""
        return queue

    def factor_of(self, queue: Integers) -> Floats | None:
        """Return the priority of each job's partition over the largest, at least 0; None without partitions."""
        return None

    def hosts_of(self, queue: Integers) -> Integers | None:
        """Return the nodes that each job asks for; None where these are its size."""
        return None

    def _room(self, queue: Integers) -> Integers:
        """Return an array for as many starts."""
        if len(queue) > len(self._starts):
            self._starts = np.empty(2 * len(queue), dtype=np.int64)
        return self._starts

    def starts(
        self, state: State, queue: Integers, run_time_s: Floats, longest_s: Floats, size: Integers, end: Floats | None
    ) -> list[Allocate]:
        """Return what starts now.

        Parameters
        ----------
        state : State
        queue : ndarray of int64, shape (m,)
            Ids of the jobs that wait, in their order.
        run_time_s, longest_s : ndarray of float64
            How long each job runs as predicted, and at most, by id [s].
        size : ndarray of int64
            Of jobs, by id.
        end : ndarray of float64, shape (running,), optional
            Ends of what runs, in the order of `State.running` [s], in the place of the estimated.
        """
        nodes = state.nodes
        widths = size[queue]
        if widths.min() > nodes.n_free:
            return []
        if widths.sum() <= nodes.n_free:  # by every rule
            return self._on_first_nodes(queue, nodes, size)
        starts, freed = self._room(queue), nodes.width
        if end is None:
            end = nodes.estimated_end
        else:
            freed = state.running["width"]
        queue, end, freed = for_kernels(queue), for_kernels(end), for_kernels(freed)
        count = starts_now(self._reservations, state.now, queue, run_time_s, size, nodes.n_free, end, freed, starts, ())
        return self._on_first_nodes(starts[:count], nodes, size) if count else []

    def first_in_order(
        self, state: State, queue: Integers, run_time_s: Floats, longest_s: Floats, size: Integers, end: Floats | None
    ) -> Booleans:
        """Return which jobs of a queue start as long as none overtakes, and the first that then cannot.

        Parameters are those of `starts`. Of several partitions there is one such first of each.
        """
        fits = np.cumsum(size[queue]) <= state.nodes.n_free
        return np.arange(len(queue)) <= np.count_nonzero(fits)

    def _on_first_nodes(self, tasks: Integers, nodes: NodesState, size: Integers) -> list[Allocate]:
        """Let jobs start, each on the free nodes of the lowest ids."""
        free, begin, decisions = nodes.free.nonzero()[0], 0, []
        for task in tasks.tolist():
            until = begin + int(size[task])
            decisions.append(Allocate(task, free[begin:until]))
            begin = until
        return decisions


class EachNode(CountedNodes):
    """Nodes of which it matters which a job has: jobs share them, some are down for maintenance, or `Rules.place`.

    Parameters
    ----------
    system : System
        With partitions, or of one cluster of nodes that jobs have whole.
    reservations : int
        As of `starts_now`.

    Notes
    -----
    With maintenance, a job has nodes only that stay up for as long as it may run. Of those where
    it is laid in order of their ids, the ones that go down first come first.
    """

    def __init__(self, system: System, reservations: int) -> None:
        platform = system.platform
        self._reservations, self._starts = reservations, np.empty(0, dtype=np.int64)
        self._shares = bool(platform.partitions)
        self._pstates = system.pstates
        parts = platform.partitions or platform.clusters
        hosts = [np.array(each.hosts, dtype=np.int64) for each in parts]
        self._members = np.zeros((len(hosts), len(platform)), dtype=np.bool_)
        for k, some in enumerate(hosts):
            self._members[k, some] = True
        self._hosts, self._offsets = np.concatenate(hosts), np.cumsum([0, *map(len, hosts)], dtype=np.int64)
        priority = [each.priority for each in platform.partitions] or [0]
        self._priority, self.has_priorities = np.array(priority, dtype=np.int64), min(priority) < max(priority)
        self._placement, self._switch = PLACES.index(system.rules.placement), platform.switch_of
        self.size, self.n_hosts = int(platform.cores.sum()), len(platform)
        self._places = np.empty((2, self.size), dtype=np.int64)
        most = int(platform.cores.max(initial=1))
        self._exactly, self._at_least = np.empty(most + 2, dtype=np.int64), np.empty(most + 2, dtype=np.int64)
        self._n_places = np.empty(0, dtype=np.int64)
        self._platform = platform
        self._amounts: Integers | None = None
        windows = [(each, each.hosts(platform)) for each in map(Maintenance.read, system.rules.maintenance)]
        down = [(h, each.begin_s, each.end_s + platform.hosts[h].boot_time_s) for each, some in windows for h in some]
        self._down = np.array([host for host, _, _ in down], dtype=np.int64)
        self._down_s = np.array([times for _, *times in down], dtype=np.float64).reshape(-1, 2).T.copy()
        #: nodes of what runs, where its end is predicted
        self._nodes_of: dict[int, Integers] = {}

    def is_full(self, state: State) -> bool:
        """Whether nothing can start now: cheap."""
        return not self._shares and not state.nodes.n_free

    def learn(self, state: State) -> None:
        """Take over what is known of the jobs that have been submitted so far."""
        self._jobs = state.parts

    def job(self, task: int, state: State) -> tuple[float, int]:
        """Return estimated run time [s] and size of a job."""
        estimates, host = state.estimates, self._hosts.item(self._offsets[self._jobs.partition.item(task)])
        return estimates.run_time(task, host, self._pstates.item(host)), estimates.n_cores(task, host)

    def by_priority(self, queue: Integers) -> Integers:
        """Return a queue with the jobs of partitions of higher priority before the others."""
        if not self.has_priorities:
            return queue
        return queue[np.argsort(-self._priority[self._jobs.partition[queue]], kind="stable")]

    def factor_of(self, queue: Integers) -> Floats | None:
        """Return the priority of each job's partition over the largest, at least 0; None without partitions."""
        if not self._shares:
            return None
        return np.maximum(self._priority, 0)[self._jobs.partition[queue]] / max(self._priority.max(), 1)

    def hosts_of(self, queue: Integers) -> Integers | None:
        """Return the nodes that each job asks for, one where its cores may lie anywhere; None where these are its size.

        A job that does not request nodes asks Slurm for one at least.
        """
        if not self._shares:
            return None
        return np.where(self._jobs.anywhere[queue], 1, self._jobs.width[queue])

    def starts(
        self, state: State, queue: Integers, run_time_s: Floats, longest_s: Floats, size: Integers, end: Floats | None
    ) -> list[Allocate]:
        """Return what starts now, as `CountedNodes.starts`."""
        decisions = self._chosen(state, queue, run_time_s, longest_s, size, end)
        if end is not None and not self._shares:
            self._nodes_of = {task: self._nodes_of[task] for task in state.running["task"].tolist()}
            self._nodes_of |= {each.task: each.hosts for each in decisions}
        return decisions

    def _chosen(
        self, state: State, queue: Integers, run_time_s: Floats, longest_s: Floats, size: Integers, end: Floats | None
    ) -> list[Allocate]:
        """Return what starts now, and where; nothing is noted."""
        jobs, now = self._jobs, state.now
        down, down_s, hosts = self._down, self._down_s, self._hosts
        down_now = down
        if len(down):
            is_ahead = down_s[1] > now
            down, down_s = down[is_ahead], np.compress(is_ahead, down_s, axis=1)
            hosts, down_now = self._first_down_first(now, down, down_s[0]), down[down_s[0] <= now]
        left, width, queue = self._left_now(state, down_now), jobs.width, for_kernels(queue)
        if not self._shares:
            width = for_kernels(size)
        if not some_may_start(left, queue, width, jobs.demand, jobs.anywhere, self._at_least):
            return []
        starts = self._room(queue)
        if len(starts) > len(self._n_places):
            self._n_places = np.empty(len(starts), dtype=np.int64)
        ends, rows, pool = self._what_runs(state, end, down_now)
        nodes = Nodes(
            jobs.demand, jobs.anywhere, jobs.partition, longest_s, hosts, self._offsets, self._members, self._placement,
            self._switch, pool, down, down_s, self._exactly, self._at_least, self._places, self._n_places,
        )  # fmt: skip
        rows = for_kernels(rows)
        count = starts_now(self._reservations, now, queue, run_time_s, width, left, ends, rows, starts, nodes)
        decisions: list[Allocate] = []
        if not count:
            return decisions
        begin = 0
        for task, n in zip(starts[:count].tolist(), self._n_places[:count].tolist(), strict=True):
            some, parts = self._places[:, begin : begin + n]
            decisions.append(Allocate(task, some.copy() if n == width.item(task) else np.repeat(some, parts)))
            begin += n
        return decisions

    def first_in_order(
        self, state: State, queue: Integers, run_time_s: Floats, longest_s: Floats, size: Integers, end: Floats | None
    ) -> Booleans:
        """Return which jobs start as long as none overtakes, and the first of each partition that then cannot."""
        self._reservations, default = 0, self._reservations
        decisions = self._chosen(state, queue, run_time_s, longest_s, size, end)
        self._reservations = default
        first: Booleans = np.isin(queue, [each.task for each in decisions])
        partition = self._jobs.partition[queue]
        for k in distinct(partition[~first]).tolist():
            first[np.flatnonzero(~first & (partition == k))[0]] = True
        return first

    def _first_down_first(self, now: float, down: Integers, begin_s: Floats) -> Integers:
        """Return the hosts of the partitions, in each those first that go down first, then by ids."""
        if self._placement != PACK:
            return self._hosts
        next_s, is_ahead = np.full(len(self._platform), np.inf), begin_s > now
        np.minimum.at(next_s, down[is_ahead], begin_s[is_ahead])
        partition = np.repeat(np.arange(len(self._members)), np.diff(self._offsets))
        return self._hosts[np.lexsort((next_s[self._hosts], partition))]

    def _left_now(self, state: State, down: Integers) -> Integers:
        """Return what nodes have left, shape (hosts, resources).

        Nodes that are `down` now have all of theirs left; the rule knows when they are up.
        """
        nodes = state.nodes
        if isinstance(nodes, SharedNodesState):
            left = nodes.left
            if not len(down):
                return left
        else:
            left = nodes.free.astype(np.int64)[:, None]
        if len(down):
            if self._amounts is None:
                self._amounts = node_amounts(self._platform, state.tasks.resources)
            left = left.copy()
            left[down] = self._amounts[down]
        return read_only(left)

    def _what_runs(self, state: State, end: Floats | None, down: Integers) -> tuple[Floats, Integers, Integers]:
        """Return ends [s], rows and pool of what runs, as `Nodes` has them; nodes are `down` now that run nothing."""
        nodes = state.nodes
        if isinstance(nodes, SharedNodesState):
            ends, rows = nodes.estimated_end, nodes.rows
            if end is not None:
                tasks = state.running["task"]
                order = np.argsort(tasks)
                ends = read_only(end[order[np.searchsorted(tasks, rows[0], sorter=order)]])
            return ends, rows, nodes.pool
        free_at = nodes.free_at.copy()
        if end is not None:
            for task, time in zip(state.running["task"].tolist(), end.tolist(), strict=True):
                free_at[self._nodes_of[task]] = time
        free_at[down] = np.inf
        taken = np.flatnonzero(~nodes.free & (free_at < np.inf))
        each = np.arange(len(taken))  # as a job of its own, as wide as the first
        rows, pool = read_only(np.stack([0 * each, each, 0 * each + 1])), np.stack([taken, 0 * each + 1])
        return read_only(free_at[taken]), rows, read_only(pool)
