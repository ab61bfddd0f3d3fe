"""What the batch heuristics share: all waiting tasks are mapped together, anew at every event."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Assign, Decision, Plan
from gridsched.policy.state import State
from gridsched.schedulers.kernels.tables import FileTable, host_table, needed_files, no_files

Mapping = tuple[NDArray[np.int64], NDArray[np.int64]]


class BatchScheduler(Scheduler):
    """Base of policies that map all waiting tasks together at a mapping event.

    A subclass says how in `_map`. With `reschedule` the mapping is a plan, made anew at every
    event; without it a task, once mapped, stays in its host's queue.
    """

    traits: ClassVar[Traits] = Traits(asked="event")
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
    def _map(self, state: State, waiting: NDArray[np.int64]) -> Mapping:
        """Return the tasks in the order of the decisions, and the host of each."""

    def _run_times(self, state: State, tasks: NDArray[np.int64]) -> NDArray[np.float64]:
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

    def _kernel_arguments(self, state: State, waiting: NDArray[np.int64]) -> tuple[Any, ...]:
        """Return fresh arguments of `map_in_passes`; `map_greedily` takes a rule behind them."""
        core_ready = np.array(state.core_ready_time, dtype=np.float64)
        usable = np.flatnonzero(core_ready[:, 0] < np.inf)
        units = self.system_.platform.cluster_of[usable] if self._by_cluster else usable
        return (
            np.array(waiting, dtype=np.int64), self._run_times(state, waiting), core_ready,
            self.table_, self._file_table(state), float(state.now), self._by_cluster,
            len(np.unique(units)) == 1,
        )  # fmt: skip
