"""The batch heuristics: all waiting tasks are mapped together, again at every event."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from gridsched.arrays import Floats, Integers, distinct
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.policy.base import Scheduler, Traits, check_choice
from gridsched.policy.decisions import Assign, Decision, Plan
from gridsched.policy.state import State
from gridsched.schedulers.kernels.batch import MAX_MIN, MIN_MIN, SUFFERAGE, map_greedily, map_in_order, map_in_passes
from gridsched.schedulers.kernels.tables import FileTable, host_table, needed_files, no_files

Mapping = tuple[Integers, Integers]


class BatchScheduler(Scheduler):
    """Base of policies that map all waiting tasks together at a mapping event.

    A subclass chooses in `_map`. With `reschedule` the mapping is a plan, made again at every
    event; without it a task, once mapped, stays in its host's queue.
    """

    traits: ClassVar[Traits] = Traits(trigger="event")
    reschedule: bool = True
    _reads_files: ClassVar[bool] = False
    _by_cluster: ClassVar[bool] = False

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Group hosts by their run times (and clusters)."""
        hosts = np.arange(system.n_hosts)
        self.system_ = system
        self.files_ = system.files if self._reads_files and system.files else None
        self.tasks_: Tasks | None = None
        self.table_ = host_table(
            system.estimates.host_groups(hosts, system.pstates),
            system.platform.cluster_of,
            by_cluster=self._by_cluster,
            with_files=self.files_ is not None,
        )

    def schedule(self, state: State) -> Iterable[Decision]:
        """Map all waiting tasks."""
        waiting = state.mappable
        if not len(waiting):
            return []
        tasks, hosts = self._map(state, waiting)
        if not len(tasks):
            return []
        if self.reschedule:
            return [Plan(tasks, hosts)]
        pairs = zip(tasks.tolist(), hosts.tolist(), strict=True)
        return [Assign(task, host) for task, host in pairs]

    @abstractmethod
    def _map(self, state: State, waiting: Integers) -> Mapping:
        """Return the tasks in the order of the decisions, and the host of each."""

    def _run_times(self, state: State, tasks: Integers) -> Floats:
        """Estimated run times [s], shape (columns of `table_`, tasks)."""
        hosts = self.table_.representatives
        etc = state.estimates.etc(tasks, hosts, self.system_.pstates[hosts])
        return np.array(etc.T, order="C")

    def _file_table(self, state: State) -> FileTable:
        if self.files_ is None:
            return no_files()
        if self.tasks_ is not state.tasks:  # the first event, or further tasks have arrived
            self.tasks_ = state.tasks
            self.needs_ = needed_files(state.tasks)
        clusters = self.system_.platform.clusters
        return FileTable(
            *self.needs_,
            np.array(self.files_.size_bytes, dtype=np.float64),
            np.array(state.file_available, dtype=np.float64, order="C"),
            np.array(state.uplink_free, dtype=np.float64),
            np.array([cluster.latency_s for cluster in clusters], dtype=np.float64),
            np.array([cluster.bandwidth for cluster in clusters], dtype=np.float64),
        )

    def _kernel_arguments(self, state: State, waiting: Integers) -> tuple[Any, ...]:
        """Return fresh arguments of `map_in_passes`; `map_greedily` takes a rule behind them."""
        core_ready = np.array(state.core_ready_time, dtype=np.float64)
        usable = np.flatnonzero(core_ready[:, 0] < np.inf)
        units = self.system_.platform.cluster_of[usable] if self._by_cluster else usable
        return (
            np.array(waiting, dtype=np.int64),
            self._run_times(state, waiting),
            core_ready,
            self.table_,
            self._file_table(state),
            float(state.now),
            self._by_cluster,
            len(distinct(units)) == 1,
        )


class MinMin(BatchScheduler):
    """Min-Min: the task that can complete first is mapped first.

    Parameters
    ----------
    reschedule : bool
        Withdraw and map again all tasks that have not started, at every event; otherwise a task
        is mapped once, when it is submitted.

    Notes
    -----
    With ``CT_ij = r_j + w_i / s_j``, repeat: find each task's smallest CT (the lowest host id of
    equals); map the task for which it is smallest (then the lowest id); raise the host's `r_j`.

    References
    ----------
    .. [1] O. H. Ibarra, C. E. Kim, "Heuristic algorithms for scheduling independent tasks on
       nonidentical processors", JACM 24(2), 1977.
    .. [2] M. Maheswaran, S. Ali, H. J. Siegel, D. Hensgen, R. F. Freund, "Dynamic mapping of a
       class of independent tasks onto heterogeneous computing systems", JPDC 59(2), 1999.
    """

    _id: ClassVar[str] = "min_min"
    _rule: ClassVar[int] = MIN_MIN

    def __init__(self, reschedule: bool = True) -> None:
        self.reschedule = reschedule

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameter; group hosts."""
        check_choice(self._id, "reschedule", self.reschedule, (True, False))
        super().prepare(system, rng)

    def _map(self, state: State, waiting: Integers) -> Mapping:
        arguments = self._kernel_arguments(state, waiting)
        return map_greedily(*arguments, self._rule)


class MaxMin(MinMin):
    """Max-Min: the task whose earliest completion is latest is mapped first.

    Parameters
    ----------
    reschedule : bool
        As in `MinMin`.

    Notes
    -----
    As `MinMin`, but each time the task with the largest of the smallest completion times (then
    the lowest id) is mapped.

    References
    ----------
    .. [1] M. Maheswaran, S. Ali, H. J. Siegel, D. Hensgen, R. F. Freund, "Dynamic mapping of a
       class of independent tasks onto heterogeneous computing systems", JPDC 59(2), 1999.
    """

    _id: ClassVar[str] = "max_min"
    _rule: ClassVar[int] = MAX_MIN


class Sufferage(BatchScheduler):
    """Sufferage over hosts.

    Parameters
    ----------
    variant : {"greedy", "pass"}
        Map one task after the other, always the one with the largest sufferage; or in passes, in
        each of which a host goes to the claimant with the largest sufferage.
    reschedule : bool
        Withdraw and map again all tasks that have not started, at every event; otherwise a task
        is mapped once, when it is submitted.

    Notes
    -----
    With the completion time ``CT_ij = max(r_j, A_ic) + w_i / s_j`` (`r_j` when host j is free,
    `A_ic` when the task's input files are in its cluster) the sufferage of a task is the second
    smallest minus the smallest CT over hosts; with a single usable host it is that host's CT.
    Greedy: map the task with the largest sufferage (then the lowest id) to its best host (the
    lowest id of equals), raise that host's ready time, repeat. Pass: visit tasks by id; each
    claims its best host, and takes it from an earlier claimant only with a strictly larger
    sufferage; losers try again in the next pass, with ready times brought up to date.

    References
    ----------
    .. [1] M. Maheswaran, S. Ali, H. J. Siegel, D. Hensgen, R. F. Freund, "Dynamic mapping of a
       class of independent tasks onto heterogeneous computing systems", JPDC 59(2), 1999.
    .. [2] H. Casanova, A. Legrand, D. Zagorodnov, F. Berman, "Heuristics for scheduling parameter
       sweep applications in grid environments", HCW 2000.
    """

    _id: ClassVar[str] = "sufferage"
    _reads_files: ClassVar[bool] = True

    def __init__(self, variant: str = "greedy", reschedule: bool = True) -> None:
        self.variant = variant
        self.reschedule = reschedule

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters; group hosts."""
        check_choice(self._id, "variant", self.variant, ("greedy", "pass"))
        check_choice(self._id, "reschedule", self.reschedule, (True, False))
        super().prepare(system, rng)

    def _map(self, state: State, waiting: Integers) -> Mapping:
        arguments = self._kernel_arguments(state, waiting)
        if self.variant == "greedy":
            return map_greedily(*arguments, SUFFERAGE)
        return map_in_passes(*arguments)


class XSufferage(Sufferage):
    """Sufferage over clusters, which keeps tasks near their input files.

    Parameters
    ----------
    variant : {"greedy", "pass"}
        As in `Sufferage`.
    reschedule : bool
        As in `Sufferage`.

    Notes
    -----
    As `Sufferage`, with the sufferage taken between clusters: second smallest minus smallest of
    the clusters' smallest completion times; the task goes to the best host of its best cluster
    (then the lowest cluster id, then the lowest host id). Clusters are the platform's netzones;
    where it has none every host is a cluster, and XSufferage is Sufferage. With a single usable
    cluster the sufferage is its smallest completion time.

    Missing input files reach a cluster one task's after the other's over its uplink:
    ``A_ic = max(now, last file on its way, [max(now, link_c) + latency_c + bytes / bandwidth_c])``.

    References
    ----------
    .. [1] H. Casanova, A. Legrand, D. Zagorodnov, F. Berman, "Heuristics for scheduling parameter
       sweep applications in grid environments", HCW 2000.
    """

    _id: ClassVar[str] = "xsufferage"
    _by_cluster: ClassVar[bool] = True


class DynamicFPLTF(BatchScheduler):
    """Dynamic Fastest Processor to Largest Task First.

    Notes
    -----
    At every event all tasks that have not started are planned again, by size descending (then the
    lowest id): each goes to the host with the smallest ``TBA_j + TaskCost_ij`` (then the lowest
    id), whose time to become available grows by the cost. ``TaskCost_ij = (w_i / s_j) /
    (1 - load_j)``; what a host still has to do is stretched by its load in the same way; a load
    of 1 or more makes the host unusable.

    References
    ----------
    .. [1] D. Paranhos da Silva, W. Cirne, F. Brasileiro, "Trading cycles for information: using
       replication to schedule bag-of-tasks applications on computational grids", Euro-Par 2003.
    """

    def _map(self, state: State, waiting: Integers) -> Mapping:
        order = np.argsort(-state.tasks.flops[waiting], kind="stable")
        load = np.array(state.background_load, dtype=np.float64)
        ready = np.array(state.core_ready_time)
        if load.any():  # without load the very same numbers: no rounding by now + (r - now)
            load[load >= 1.0] = 1.0
            with np.errstate(divide="ignore", invalid="ignore"):
                stretched = state.now + (ready - state.now) / (1.0 - load)[:, None]
            ready = np.where(load[:, None] > 0.0, stretched, ready)
            ready[load == 1.0] = np.inf
            load[load == 1.0] = 0.0
        hosts = map_in_order(order, self._run_times(state, waiting), ready, self.table_.column_of, load)
        placed = hosts >= 0
        return waiting[order][placed], hosts[placed]
