"""The chance of a task, on every host at once, to miss its deadline (paper 002; algorithms D3).

Where all distributions stand on one grid, compiled loops keep the sum of what runs and what is
queued up to date: an append convolves once, and an impulse that passes is taken out of the sum
again, instead of convolving what remains. Otherwise each host's ready time is a `Pmf`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.ledger import Ledger
from gridsched.engine.ready_pmfs import ReadyPmfs
from gridsched.model.pmf import convolved_by_fft
from gridsched.model.stochastic import StochasticEstimates

if TYPE_CHECKING:
    from gridsched.model.pmf_grid import PmfGrid

Floats = NDArray[np.float64]

#: Impulses at both ends of a queue's sum that together weigh less than this are left out.
NEGLIGIBLE_MASS = 1e-18
#: Sums that take more products than this are made by FFT.
FFT_FROM = 1 << 21


class Chances(ABC):
    """Chances and expected times of tasks that are appended to one-core hosts."""

    @abstractmethod
    def late_masses(self, task: int, deadline_s: float, now: float) -> Floats:
        """Return the chance to end after the deadline, shape (hosts, P-states)."""

    @abstractmethod
    def queued_late_masses(self, deadline_s: Floats, now: float) -> Floats:
        """Return the chance of each queued task to end late, host after host, shape (queued,).

        The deadlines are those of all tasks that were submitted.
        """

    @abstractmethod
    def mean_ready(self, now: float) -> Floats:
        """Return when each host is ready in the mean [s], infinite if off, shape (hosts,)."""


def chances_of(
    ledger: Ledger, estimates: StochasticEstimates, ready_pmfs: ReadyPmfs
) -> Chances:  # fmt: skip
    """Return what tells the chances, the faster one where it is possible."""
    grid = estimates.grid() if ledger.one_core else None
    if grid is None:
        return PmfChances(ledger, estimates, ready_pmfs)
    return GridChances(ledger, estimates, grid)


class PmfChances(Chances):
    """Chances by distributions of any kind.

    Parameters
    ----------
    ledger : Ledger
    estimates : StochasticEstimates
    ready_pmfs : ReadyPmfs
    """

    def __init__(
        self, ledger: Ledger, estimates: StochasticEstimates, ready_pmfs: ReadyPmfs
    ) -> None:  # fmt: skip
        self._ledger = ledger
        self._n_hosts = len(ledger.cores)
        self._estimates = estimates
        self._ready_pmfs = ready_pmfs

    def late_masses(self, task: int, deadline_s: float, now: float) -> Floats:
        """Return the chance to end after the deadline, shape (hosts, P-states)."""
        of, known = self._ready_pmfs.of, self._estimates
        return np.array([
            known.late_masses(task, host, of(host, now), deadline_s)
            for host in range(self._n_hosts)
        ])  # fmt: skip

    def queued_late_masses(self, deadline_s: Floats, now: float) -> Floats:
        """Return the chance of each queued task to end late, host after host, shape (queued,)."""
        late = []
        for host in sorted(self._ledger.queued_hosts):
            ends = self._ready_pmfs.queued_ends(host, now)
            queue = self._ledger.fixed[host]
            late += [
                float(end.late_mass(deadline_s[task]))
                for (task, _), end in zip(queue, ends, strict=True)
            ]
        return np.array(late, dtype=np.float64)

    def mean_ready(self, now: float) -> Floats:
        """Return when each host is ready in the mean [s], infinite if off, shape (hosts,)."""
        return np.array([self._ready_pmfs.of(h, now).mean for h in range(self._n_hosts)])


class GridChances(Chances):
    """Chances by distributions on one grid, in compiled loops over all hosts.

    Parameters
    ----------
    ledger : Ledger
    estimates : StochasticEstimates
    grid : PmfGrid
        Its distributions.
    """

    def __init__(self, ledger: Ledger, estimates: StochasticEstimates, grid: PmfGrid) -> None:
        from gridsched.model import pmf_kernels  # loads the compiler

        self._kernels = pmf_kernels
        self._ledger = ledger
        self._estimates = estimates
        self._grid = grid
        n = len(ledger.cores)
        self._read = 0
        self._version = [-1] * n
        self._counted = [0] * n
        self._queue: list[Floats | None] = [None] * n
        #: of each queued task the first impulse and the tail of the sum of the queue up to it
        self._until: list[list[tuple[int, Floats]]] = [[] for _ in range(n)]
        self._host_type = estimates.host_type
        self._hosts = pmf_kernels.empty_host_table(n)

    def late_masses(self, task: int, deadline_s: float, now: float) -> Floats:
        """Return the chance to end after the deadline, shape (hosts, P-states)."""
        task_type = int(self._estimates.task_type[task])
        self._update()
        table = self._grid.table(task_type)
        for host in self._kernels.let_pass(self._hosts, table, now).tolist():
            self._add_up(host)
        return np.asarray(self._kernels.late_masses(
            self._hosts, table, self._host_type, task_type, now, deadline_s
        ))  # fmt: skip

    def queued_late_masses(self, deadline_s: Floats, now: float) -> Floats:
        """Return the chance of each queued task to end late, host after host, shape (queued,)."""
        self._update()
        ledger, hosts, table = self._ledger, self._hosts, self._grid.any_table
        self._kernels.let_pass(hosts, table, now)
        late_mass, late = self._kernels.late_mass_of_sum, []
        for host in sorted(ledger.queued_hosts):
            begin = int(hosts.offset[host] + hosts.passed[host])
            end = int(hosts.offset[host] + hosts.length[host])
            ready = hosts.begin[host] + table.step * (hosts.first[host] + hosts.passed[host])
            if table.after[begin] <= 0.0:  # it should have ended: now, as far as is known
                begin, end, ready = self._grid.zero, self._grid.zero + 1, now
            runs = table.mass[begin:end], table.after[begin : end + 1]
            late += [
                late_mass(*runs, after, ready + first * table.step, table.step, deadline_s[task])
                for (task, _), (first, after) in zip(
                    ledger.fixed[host], self._until[host], strict=True
                )
            ]
        return np.array(late, dtype=np.float64)

    def mean_ready(self, now: float) -> Floats:
        """Return when each host is ready in the mean [s], infinite if off, shape (hosts,)."""
        self._update()
        table = self._grid.any_table
        self._kernels.let_pass(self._hosts, table, now)
        return np.asarray(self._kernels.mean_ready(self._hosts, table, now))

    # ------------------------------------------------------------------ keeping up

    def _update(self) -> None:
        """Follow what has happened on the hosts since the last time."""
        ledger = self._ledger
        happened = set(ledger.journal[self._read :])
        self._read = len(ledger.journal)
        for host in happened:
            if self._version[host] != ledger.version[host]:
                self._begin(host)
            for task, pstate in islice(ledger.fixed[host], self._counted[host], None):
                self._append(host, task, pstate)

    def _begin(self, host: int) -> None:
        """Look at what runs on the host, without its queue."""
        ledger, hosts, kernels = self._ledger, self._hosts, self._kernels
        self._version[host] = ledger.version[host]
        self._counted[host] = 0
        self._queue[host] = None
        self._until[host] = []
        hosts.queue_length[host] = hosts.sum_length[host] = 0
        hosts.queue_mean[host] = 0.0
        running = ledger.running.get(host)
        if not ledger.is_on[host]:
            hosts.kind[host] = kernels.OFF
        elif running:
            copy = running[0]
            pstate = self._estimates.scheduler_pstate(copy.task, copy.pstate)
            place = self._place(copy.task, host, pstate)
            table = self._grid.table(place[0])
            hosts.kind[host] = kernels.UNCERTAIN
            hosts.begin[host] = copy.start
            hosts.first[host] = table.first[place]
            hosts.length[host] = table.length[place]
            hosts.offset[host] = table.offset[place]
            hosts.passed[host] = 0
        else:  # it runs nothing, or boots
            hosts.kind[host] = kernels.UNCERTAIN if ledger.fixed[host] else kernels.CERTAIN
            hosts.at[host] = hosts.begin[host] = ledger.boot_end[host]
            hosts.first[host], hosts.length[host] = 0, 1
            hosts.offset[host] = self._grid.zero
            hosts.passed[host] = 0

    def _append(self, host: int, task: int, pstate: int) -> None:
        """Add the task that comes next in the fixed queue."""
        hosts, place = self._hosts, self._place(task, host, pstate)
        hosts.kind[host] = self._kernels.UNCERTAIN
        table, masses = self._grid.table(place[0]), self._grid.masses(*place)
        first, queue = int(table.first[place]), self._queue[host]
        if queue is not None:
            first += int(hosts.queue_first[host])
            masses, left_out = _trimmed(self._convolved(masses, queue))
            first += left_out
        self._queue[host] = masses
        self._counted[host] += 1
        n = len(masses)
        hosts.queue_first[host], hosts.queue_length[host] = first, n
        hosts.queue_mean[host] += self._grid.mean_s[place]
        hosts.sum_length[host] = 0
        self._hosts = hosts = self._kernels.with_room(hosts, queue=n + 1)
        hosts.queue_after[host, : n + 1] = tail = _tail(masses)
        self._until[host].append((first, tail))

    def _add_up(self, host: int) -> None:
        """Convolve what is left of what runs with the queue."""
        hosts, queue = self._hosts, self._queue[host]
        assert queue is not None  # else there is no sum
        passed, length, offset = (
            int(column[host]) for column in (hosts.passed, hosts.length, hosts.offset)
        )
        table = self._grid.any_table
        masses = self._convolved(table.mass[offset + passed : offset + length], queue)
        n = length + len(queue) - 1
        self._hosts = hosts = self._kernels.with_room(hosts, sums=n + 1)
        hosts.sum_after[host, passed : n + 1] = _tail(masses)
        hosts.sum_length[host] = n
        hosts.sum_passed[host] = passed
        hosts.sum_share[host] = table.after[offset + passed]

    def _convolved(self, first: Floats, second: Floats) -> Floats:
        if len(first) * len(second) <= FFT_FROM:
            return np.asarray(self._kernels.convolved(first, second))
        return convolved_by_fft(first, second)

    def _place(self, task: int, host: int, pstate: int) -> tuple[int, int, int]:
        """Return where the run time of a task is found."""
        return int(self._estimates.task_type[task]), int(self._host_type[host]), pstate


def _tail(masses: Floats) -> Floats:
    """Return the mass behind the first n impulses, for n = 0 to all of them."""
    tail = np.zeros(len(masses) + 1)
    np.cumsum(masses[::-1], out=tail[:-1][::-1])
    return tail


def _trimmed(masses: Floats) -> tuple[Floats, int]:
    """Return the masses with sum 1, without negligible ends, and how many the begin has lost."""
    begin = int(np.searchsorted(np.cumsum(masses), NEGLIGIBLE_MASS))
    end = len(masses) - int(np.searchsorted(np.cumsum(masses[::-1]), NEGLIGIBLE_MASS))
    kept = masses[begin:end]
    return kept / kept.sum(), begin
