"""When each core is ready, and with how many joules before; when the files of a task are there.

A policy that maps each task at its arrival asks for it once a task, and queues may hold a whole
day's tasks: it is kept up to date instead of made again. Only hosts on which something happened
are looked at; an idle host's time lies in the past, and becomes `now` when it is asked for.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.energy import counted_inside
from gridsched.engine.run_state import RunState
from gridsched.engine.transfers import Transfers
from gridsched.errors import InputError
from gridsched.model.data_files import DataFiles
from gridsched.model.estimates import Estimates
from gridsched.model.platform import Platform
from gridsched.model.signals import EVEN
from gridsched.model.system import System
from gridsched.model.tasks import Tasks


class EnergyAboveIdle:
    """Estimated energies of tasks above what their cores draw when idle.

    A budget that reserves the idle power of every host until the period's end has to count of a
    task only what comes on top of it.

    Parameters
    ----------
    estimates : Estimates
    platform : Platform
    """

    def __init__(self, estimates: Estimates, platform: Platform) -> None:
        self._estimates = estimates
        self._core_idle_w = platform.most_idle_w / platform.cores

    def energy(self, task: int, host: int, pstate: int) -> float:
        """Return the energy of one task above idle [J]."""
        estimates = self._estimates
        idle_w = self._core_idle_w.item(host) * estimates.n_cores(task, host)
        run_time = estimates.run_time(task, host, pstate)
        return estimates.energy(task, host, pstate) - idle_w * run_time

    def energies(self, tasks: Integers, hosts: Integers, pstates: Integers) -> Floats:
        """Return the energies of tasks above idle [J], shape (tasks,)."""
        estimates = self._estimates
        idle_w = self._core_idle_w[hosts] * estimates.numbers_of_cores(tasks, hosts)
        run_times = estimates.run_times(tasks, hosts, pstates)
        return np.asarray(estimates.energies(tasks, hosts, pstates) - idle_w * run_times)


class QueueFollower(ABC):
    """Keeps something of each host up to date: of what runs there, then of its fixed queue.

    Parameters
    ----------
    run : RunState
    """

    def __init__(self, run: RunState) -> None:
        self._run = run
        self._version = [-1] * len(run.resources.cores)
        self._counted = [0] * len(run.resources.cores)
        self._read = 0

    @abstractmethod
    def _begin(self, host: int) -> None:
        """Look at what runs on the host, without its queue."""

    @abstractmethod
    def _append(self, host: int, entries: Iterator[tuple[int, int]]) -> None:
        """Add what comes next in the fixed queue: (task, P-state)."""

    def _happened(self) -> set[int]:
        """Return the hosts on which something has happened since the last time."""
        journal = self._run.journal
        happened = set(journal[self._read :])
        self._read = len(journal)
        return happened

    def _follow(self, host: int) -> None:
        """Bring one host up to date."""
        run, queue = self._run, self._run.fixed[host]
        if self._version[host] != run.version[host]:
            self._version[host] = run.version[host]
            self._counted[host] = 0
            self._begin(host)
        counted = self._counted[host]
        if counted < len(queue):
            self._counted[host] = len(queue)
            self._append(host, islice(queue, counted, None))


class ReadyTimes(QueueFollower):
    """Estimated ready times of all cores, and the energy of fixed queues within a period.

    Parameters
    ----------
    system : System
    run : RunState
    transfers : Transfers
        A queued task begins when its data are expected, as far as they are made.

    Attributes
    ----------
    counted : Estimates or EnergyAboveIdle
        What a budget counts of tasks: their energies, above idle where hosts draw any.
    """

    def __init__(self, system: System, run: RunState, transfers: Transfers) -> None:
        super().__init__(run)
        self._system, self._transfers = system, transfers
        self._run_time = system.estimates.run_time
        self.counted: Estimates | EnergyAboveIdle = system.estimates
        if system.platform.most_idle_w.any():
            self.counted = EnergyAboveIdle(system.estimates, system.platform)
        budget = system.rules.budget
        self._energy = None if budget is None else self.counted.energy
        weights = EVEN if budget is None else budget.weights
        self._weights = [weights.at_host(host) for host in range(len(run.resources.cores))]
        self._n_cores = system.estimates.n_cores
        #: whether executions have sets of hosts: what happens on hosts is then not followed one by one
        self._on_sets = run.resources.has_sets
        n = len(run.resources.cores)
        self._ready = np.full((n, max(run.resources.cores, default=1)), np.inf)
        #: the earliest end that a queue is built on; in the past it has to be built again
        self._base = np.full(n, np.inf)
        self._ends: list[list[float]] = [[]] * n
        self._now = 0.0
        self._period_end = math.inf
        self._inside_j = [0.0] * n

    def table(self, now: float) -> Floats:
        """Return the ready times [s] at `now`, shape (hosts, most cores), rows ascending."""
        ready = self._run.resources.core_ready(now)
        if ready is not None:
            for host in self._run.queued_hosts:
                self._update(host, now)
                ready[host] = self._ready[host]
            return np.maximum(ready, now)
        happened, late = self._happened(), np.flatnonzero(self._base < now)
        for host in happened.union(late.tolist()) if len(late) else happened:
            self._update(host, now)
        return np.maximum(self._ready, now)

    def begin_period(self, period_end: float) -> None:
        """Count energy up to `period_end` [s] from now on."""
        self._period_end = period_end
        self._version = [-1] * len(self._version)

    def inside_j(self, host: int, now: float) -> float:
        """Return what the host's fixed queue will draw from `now` to the period's end [J]."""
        self._update(host, now)
        return self._inside_j[host]

    def again(self) -> ReadyTimes:
        """Return ready times of the same run that have followed nothing so far."""
        return ReadyTimes(self._system, self._run, self._transfers)

    def _update(self, host: int, now: float) -> None:
        """Bring one host up to date, again where its queue would begin in the past."""
        if self._on_sets or self._base[host] < now or (self._run.fixed[host] and not self._counted[host]):
            self._version[host] = -1
        self._now = now
        self._follow(host)

    def _begin(self, host: int) -> None:
        """Let the host's queue begin behind what runs there."""
        run = self._run
        self._inside_j[host] = 0.0
        self._base[host] = np.inf
        if not run.is_open[host]:
            self._ready[host] = np.inf
            return
        ends = run.resources.core_ends(host)
        ends += [run.boot_end[host]] * (run.resources.cores[host] - len(ends))
        ends.sort()
        if run.fixed[host]:  # which is appended next
            ends = [max(end, self._now) for end in ends]
            self._base[host] = ends[0]
        else:
            self._ready[host, : len(ends)] = ends
        self._ends[host] = ends

    def _append(self, host: int, entries: Iterator[tuple[int, int]]) -> None:
        """Add the tasks of the fixed queue that are not counted yet; each takes the cores that are ready first."""
        ends, energy_of = self._ends[host], self._energy
        for task, pstate in entries:
            run_time = self._run_time(task, host, pstate)
            last = self._n_cores(task, host) - 1 if self._on_sets else 0
            if self._transfers.exists:
                ends[last] = max(ends[last], self._transfers.expected(task, host, self._now))
            if energy_of is not None:
                whole_j = energy_of(task, host, pstate)
                weights = self._weights[host]
                self._inside_j[host] += counted_inside(ends[last], run_time, whole_j, self._period_end, weights)
            ends[last] += run_time
            if len(ends) > 1:
                ends[:last] = [ends[last]] * last
                ends.sort()
        self._ready[host, : len(ends)] = ends


@dataclass(slots=True)
class Transfer:
    """Files on their way into a cluster from `begin` to `end` [s].

    `fixed` once a task relies on them that cannot be planned again.
    """

    begin: float
    end: float
    files: list[int]
    fixed: bool

    def is_kept(self, now: float) -> bool:
        """Whether a new plan at `now` [s] leaves the transfer alone."""
        return self.fixed or self.begin <= now


class Staging:
    """Where each input file is, and until when each cluster's uplink is busy (algorithms A4).

    Transfers into one cluster are serial over its uplink. A transfer belongs to a fixed assignment,
    or to a plan; a new plan withdraws those that have not begun.

    Parameters
    ----------
    platform : Platform
        Its clusters' `bandwidth` [byte/s] and `latency_s` [s] are used.
    tasks : Tasks
        With `input_files`.
    files : DataFiles

    Raises
    ------
    InputError
        If a file lies at a place the platform does not have.
    """

    exists = True

    def __init__(self, platform: Platform, tasks: Tasks, files: DataFiles) -> None:
        self.cluster_of: list[int] = platform.cluster_of.tolist()
        self._needs = tasks.input_files or ((),) * len(tasks)
        self._sizes = files.size_bytes
        self._clusters = platform.clusters
        self.available = np.full((len(files), len(platform.clusters)), np.inf)
        self.uplink_free = np.zeros(len(platform.clusters))
        #: transfers into each cluster, in order of booking
        self._booked: list[list[Transfer]] = [[] for _ in platform.clusters]
        cluster_of = {cluster.name: c for c, cluster in enumerate(platform.clusters)}
        for h, host in enumerate(platform.hosts):
            cluster_of.setdefault(host.name, int(platform.cluster_of[h]))
        for f, places in enumerate(files.locations):
            for place in places:
                if place not in cluster_of:
                    names = ", ".join(cluster.name for cluster in platform.clusters[:5])
                    raise InputError(
                        f"File {files.names[f]!r} is located at {place!r}, which is not a cluster or "
                        f"host of {platform.name}; its clusters start with: {names}."
                    )
                self.available[f, cluster_of[place]] = 0.0

    def data_ready(self, task: int, cluster: int, now: float, *, fixed: bool = True) -> float:
        """Return when the task's files are in the cluster [s], booking missing transfers.

        A booking that is not `fixed` can be withdrawn until it begins; a `fixed` call fixes those
        that were made before for the same files, too.
        """
        needed = list(self._needs[task])
        if not needed:
            return now
        if fixed:
            for transfer in self._booked[cluster]:
                if not transfer.fixed:
                    transfer.fixed = any(f in transfer.files for f in needed)
        times = self.available[needed, cluster]
        ready = max([now, *times[np.isfinite(times)].tolist()])
        missing = [f for f, time in zip(needed, times, strict=True) if time == np.inf]
        if missing:
            begin = max(now, float(self.uplink_free[cluster]))
            place = self._clusters[cluster]
            end = begin + place.latency_s + float(self._sizes[missing].sum()) / place.bandwidth
            ready = max(ready, end)
            self.available[missing, cluster] = ready
            self.uplink_free[cluster] = ready
            self._booked[cluster].append(Transfer(begin, ready, missing, fixed))
        return ready

    def ready_on(self, task: int, hosts: Iterable[int], now: float) -> float:
        """Return when the task's files are on all of some hosts [s], booking missing transfers for good."""
        clusters = sorted({self.cluster_of[each] for each in hosts})
        return max(self.data_ready(task, cluster, now) for cluster in clusters)

    def begun(self, now: float) -> tuple[Floats, Floats]:
        """Return (file available [s], uplink free [s]) of what a new plan cannot withdraw."""
        available, uplink_free = self.available.copy(), np.zeros(len(self._clusters))
        for cluster, booked in enumerate(self._booked):
            for transfer in booked:
                if transfer.is_kept(now):
                    uplink_free[cluster] = transfer.end
                else:
                    available[transfer.files, cluster] = np.inf
        return available, uplink_free

    def withdraw_planned(self, now: float) -> None:
        """Forget all planned transfers that have not begun at `now` [s]."""
        self.available, self.uplink_free = self.begun(now)
        for booked in self._booked:
            booked[:] = [transfer for transfer in booked if transfer.is_kept(now)]

    def book_plan(self, tasks: Iterable[int], clusters: Iterable[int], now: float) -> None:
        """Book the transfers of a plan in its order."""
        for task, cluster in zip(tasks, clusters, strict=True):
            self.data_ready(int(task), int(cluster), now, fixed=False)


class NoStaging(Staging):
    """A run whose tasks need no input files."""

    exists = False

    def __init__(self) -> None:
        self.cluster_of = []

    def ready_on(self, task: int, hosts: Iterable[int], now: float) -> float:
        """Return when the task's files are there [s]: now."""
        return now

    def withdraw_planned(self, now: float) -> None:
        """Withdraw nothing."""
