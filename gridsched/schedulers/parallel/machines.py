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
from gridsched.schedulers.kernels.availability import (
    ALL,
    CONTIGUOUS,
    PACK,
    Nodes,
    reserve_counted,
    some_may_start,
    starts_now,
)
from gridsched.schedulers.parallel.counted_slots import Pools, equal_places
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
            freed = state.freed
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

    Reservations for all jobs hold a number of places of a pool wherever nothing else matters: no pool overlaps
    it, each part of all jobs that wait and run there takes one place of a node (`equal_places`), parts need not be
    neighbors, and no job would stay until nodes go down. Otherwise they hold nodes.
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
        self._pools = Pools(self._members)
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
        what_runs = self._what_runs(state, end, down_now)
        ends, rows, pool = what_runs
        nodes = Nodes(
            jobs.demand, jobs.anywhere, jobs.partition, longest_s, hosts, self._offsets, self._members, self._placement,
            self._switch, pool, down, down_s, self._exactly, self._at_least, *self._room_of_places(queue),
        )  # fmt: skip
        rows = for_kernels(rows)

        def started(reservations: int, queue: Integers) -> list[Allocate]:
            starts = self._room(queue)
            count = starts_now(reservations, now, queue, run_time_s, width, left, ends, rows, starts, nodes)
            return self._as_decisions(starts[:count], width)

        if self._reservations != ALL or self._placement == CONTIGUOUS:
            return started(self._reservations, queue)
        counted, rest = self._counted_starts(state, queue, run_time_s, longest_s, width, end, what_runs, down, down_s)
        decisions = started(0, for_kernels(counted)) if len(counted) else []
        if len(rest):
            decisions += started(ALL, for_kernels(rest))
        if len(counted) and len(rest):
            place = {task: k for k, task in enumerate(queue.tolist())}
            decisions.sort(key=lambda each: place[each.task])
        return decisions

    def _room_of_places(self, queue: Integers) -> tuple[Integers, Integers]:
        """Return arrays for the places of what starts of a queue."""
        if len(queue) > len(self._n_places):
            self._n_places = np.empty(2 * len(queue), dtype=np.int64)
        return self._places, self._n_places

    def _as_decisions(self, starts: Integers, width: Integers) -> list[Allocate]:
        """Return what starts, with its places, as decisions."""
        decisions, begin = [], 0
        for task, n in zip(starts.tolist(), self._n_places[: len(starts)].tolist(), strict=True):
            some, parts = self._places[:, begin : begin + n]
            decisions.append(Allocate(task, some.copy() if n == width.item(task) else np.repeat(some, parts)))
            begin += n
        return decisions

    # ------------------------------------------------------------------ where the number of places is enough

    def _counted_starts(
        self,
        state: State,
        queue: Integers,
        run_time_s: Floats,
        longest_s: Floats,
        width: Integers,
        end: Floats | None,
        what_runs: tuple[Floats, Integers, Integers],
        down: Integers,
        down_s: Floats,
    ) -> tuple[Integers, Integers]:
        """Return what starts where places are counted, with reservations for all, and the queue of the other pools."""
        now, pools, running = state.now, self._pools, self._running(state, end, what_runs)
        pool_of = pools.of_partition[self._jobs.partition[queue]]
        starts, is_counted = np.zeros(len(queue), dtype=np.bool_), np.zeros(len(queue), dtype=np.bool_)
        for p in distinct(pool_of).tolist():
            mine = pool_of == p
            found = self._free_places(state, p, queue[mine], running[0], what_runs, down, down_s)
            if found is None:
                continue
            free, back_s, back = found
            here = pools.of_partition[self._jobs.partition[running[0]]] == p
            ends = for_kernels(np.concatenate([running[1][here], back_s]))
            freed = for_kernels(np.concatenate([running[2][here], back]))
            some = for_kernels(queue[mine])
            room = np.empty(len(some), dtype=np.int64)
            count, last_s = reserve_counted(now, some, run_time_s, width, free, ends, freed, room)
            later_s = (longest_s[some] - run_time_s[some]).max()
            goes_down = down_s[0, pools.members[p, down] & (down_s[0] > now)]
            if last_s + later_s <= goes_down.min(initial=np.inf):
                is_counted |= mine
                starts |= mine & np.isin(queue, room[:count])
        return queue[starts], queue[~is_counted]

    def _running(
        self, state: State, end: Floats | None, what_runs: tuple[Floats, Integers, Integers]
    ) -> tuple[Integers, Floats, Integers]:
        """Return tasks, ends [s] and numbers of parts of what runs."""
        if isinstance(state.nodes, SharedNodesState):
            ends, rows, pool = what_runs
            until = np.cumsum(np.append(0, pool[1]))
            return rows[0], ends, until[rows[1] + rows[2]] - until[rows[1]]
        running = state.running
        return running["task"], running["estimated_end"] if end is None else end, state.freed

    def _free_places(
        self,
        state: State,
        p: int,
        queue: Integers,
        running: Integers,
        what_runs: tuple[Floats, Integers, Integers],
        down: Integers,
        down_s: Floats,
    ) -> tuple[int, Floats, Integers] | None:
        """Return how many places of a pool are free now, and when others are again [s]; None if nodes matter.

        Others are those of nodes that are down now, by known times.
        """
        pools, jobs, nodes = self._pools, self._jobs, state.nodes
        if not pools.apart[p]:
            return None
        if self._amounts is None:
            self._amounts = node_amounts(self._platform, state.tasks.resources)
        there = np.concatenate([queue, running[pools.of_partition[jobs.partition[running]] == p]])
        lie_apart = bool((~jobs.anywhere[there] & (jobs.width[there] > 1)).any())
        places = equal_places(self._amounts[pools.members[p]], jobs.demand[there], lie_apart=lie_apart)
        if places is None:
            return None
        has = np.zeros(len(self._platform), dtype=np.int64)
        has[pools.members[p]] = places
        taken = np.zeros(len(has), dtype=np.int64)
        if isinstance(nodes, SharedNodesState):
            _, rows, pool = what_runs
            before = np.cumsum(rows[2]) - rows[2]
            columns = np.repeat(rows[1] - before, rows[2]) + np.arange(rows[2].sum())
            np.add.at(taken, pool[0, columns], pool[1, columns])
        is_up = pools.members[p] & (nodes.free | (taken > 0))
        free = np.where(is_up, has - taken, 0)
        is_down = (down_s[0] <= state.now) & (state.now < down_s[1]) & (down_s[1] < np.inf)
        return int(free.sum()), down_s[1, is_down], has[down[is_down]]

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
            free_at[nodes.free_at == np.inf] = np.inf  # what is drained does not come back with the job
        free_at[down] = np.inf
        taken = np.flatnonzero(~nodes.free & (free_at < np.inf))
        each = np.arange(len(taken))  # as a job of its own, as wide as the first
        rows, pool = read_only(np.stack([0 * each, each, 0 * each + 1])), np.stack([taken, 0 * each + 1])
        return read_only(free_at[taken]), rows, read_only(pool)
