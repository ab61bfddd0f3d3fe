"""The probability that a task misses its deadline, on all hosts at once (paper 002; algorithms D3).

Where all distributions have one grid, compiled loops keep the sum of what runs and what is
queued up to date: an append convolves once, and an impulse that passes is taken out of the sum
again, instead of convolving what remains. Otherwise each host's ready time is a `Pmf`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from gridsched.arrays import Floats
from gridsched.engine.ready_times import QueueFollower
from gridsched.engine.run_state import RunState
from gridsched.errors import counted
from gridsched.model import pmf_kernels
from gridsched.model.pmf import Pmf, convolved_by_fft, point_mass
from gridsched.model.stochastic import StochasticEstimates

if TYPE_CHECKING:
    from gridsched.model.pmf import PmfGrid


#: Impulses at both ends of a queue's sum that together weigh less than this are left out.
NEGLIGIBLE_MASS = 1e-18
#: Sums that take more products than this are made by FFT.
FFT_FROM = 1 << 21


class ReadyPmfs(QueueFollower):
    """When one-core hosts could start a newly appended task, as distributions of any kind.

    What runs ends by its distribution, without the impulses that have passed; the fixed queue is
    convolved with it. Both parts are kept, so that an append convolves once.

    Parameters
    ----------
    run : RunState
    estimates : StochasticEstimates
    """

    def __init__(self, run: RunState, estimates: StochasticEstimates) -> None:
        super().__init__(run)
        self._estimates = estimates
        #: when what runs or boots on a host ends, as known at its start [s]
        self._end: dict[int, Pmf] = {}
        #: how long the fixed queue behind it takes
        self._queue: dict[int, Pmf] = {}

    def of(self, host: int, now: float) -> Pmf:
        """Return when `host` is ready, as known at `now` [s].

        Raises
        ------
        AttributeError
            If the host has several cores.
        """
        run = self._run
        if run.resources.cores[host] != 1:
            raise AttributeError(
                f"state.ready_pmf: host {host} has {counted(run.resources.cores[host], 'core')}; distributions of "
                "ready times are known of hosts with one core only."
            )
        if not run.is_open[host]:
            return point_mass(np.inf)
        if not run.is_busy(host) and not run.fixed[host]:
            return point_mass(max(run.boot_end[host], now))
        self._follow(host)
        end, queue = self._end[host].not_before(now), self._queue.get(host)
        return end if queue is None else _followed(end, queue)

    def _begin(self, host: int) -> None:
        """Look at what runs on the host, without its queue."""
        self._queue.pop(host, None)
        running = self._run.resources.on_host(host)
        if running:
            copy = running[0]
            pstate = self._estimates.scheduler_pstate(copy.task, copy.pstate)
            self._end[host] = self._estimates.pmf(copy.task, host, pstate).shifted(copy.start)
        else:
            self._end[host] = point_mass(self._run.boot_end[host])

    def _append(self, host: int, entries: Iterator[tuple[int, int]]) -> None:
        """Add the run times of what comes next in the fixed queue."""
        for task, pstate in entries:
            run_time, queue = self._estimates.pmf(task, host, pstate), self._queue.get(host)
            self._queue[host] = run_time if queue is None else queue.convolved(run_time)

    def late_probabilities(self, task: int, deadline_s: float, now: float) -> Floats:
        """Return the probability to end after the deadline, shape (hosts, P-states)."""
        return np.array(
            [
                self._estimates.late_probabilities(task, host, self.of(host, now), deadline_s)
                for host in range(len(self._run.resources.cores))
            ]
        )

    def queued_late_probabilities(self, deadline_s: Floats, now: float) -> Floats:
        """Return the probability of each queued task to end late, host after host, (queued,).

        The deadlines are those of all tasks that were submitted.
        """
        late = []
        for host in sorted(self._run.queued_hosts):
            self._follow(host)
            end = self._end[host].not_before(now)
            for task, pstate in self._run.fixed[host]:
                end = _followed(end, self._estimates.pmf(task, host, pstate))
                late.append(float(end.late_probability(deadline_s[task])))
        return np.array(late, dtype=np.float64)

    def mean_ready(self, now: float) -> Floats:
        """Return when each host is ready on average [s], infinite if off, shape (hosts,)."""
        return np.array([self.of(host, now).mean for host in range(len(self._run.resources.cores))])

    def fastest(self) -> ReadyPmfs | GridMissProbabilities:
        """Return the fastest computation of probabilities and means: on one grid, if there is one."""
        grid = self._estimates.grid() if self._run.resources.one_core else None
        return self if grid is None else GridMissProbabilities(self._run, self._estimates, grid)


def _followed(end: Pmf, run_time: Pmf) -> Pmf:
    """Return when the run time ends that begins at `end`; what is certain needs no common grid."""
    if len(end) == 1:
        return run_time.shifted(float(end.times[0]))
    return end.convolved(run_time)


class GridMissProbabilities(QueueFollower):
    """Chances by distributions on one grid, in compiled loops over all hosts.

    Parameters
    ----------
    run : RunState
    estimates : StochasticEstimates
    grid : PmfGrid
        Its distributions.
    """

    def __init__(self, run: RunState, estimates: StochasticEstimates, grid: PmfGrid) -> None:
        super().__init__(run)
        self._estimates = estimates
        self._grid = grid
        n = len(run.resources.cores)
        self._queue: list[Floats | None] = [None] * n
        #: of each queued task the first impulse and the tail of the sum of the queue up to it
        self._until: list[list[tuple[int, Floats]]] = [[] for _ in range(n)]
        self._host_type = estimates.host_type
        self._hosts = pmf_kernels.empty_host_table(n)

    def late_probabilities(self, task: int, deadline_s: float, now: float) -> Floats:
        """Return the probability to end after the deadline, shape (hosts, P-states)."""
        task_type = int(self._estimates.task_type[task])
        self._update()
        table = self._grid.table(task_type)
        for host in pmf_kernels.let_pass(self._hosts, table, now).tolist():
            self._add_up(host)
        return np.asarray(
            pmf_kernels.late_probabilities(self._hosts, table, self._host_type, task_type, now, deadline_s)
        )

    def queued_late_probabilities(self, deadline_s: Floats, now: float) -> Floats:
        """Return the probability of each queued task to end late, host after host, (queued,)."""
        self._update()
        run, hosts, table = self._run, self._hosts, self._grid.any_table
        pmf_kernels.let_pass(hosts, table, now)
        late_probability, late = pmf_kernels.late_probability_of_sum, []
        for host in sorted(run.queued_hosts):
            begin = int(hosts.offset[host] + hosts.passed[host])
            end = int(hosts.offset[host] + hosts.length[host])
            ready = hosts.begin[host] + table.step * (hosts.first[host] + hosts.passed[host])
            if table.after[begin] <= 0.0:  # it should have ended: now, as far as is known
                begin, end, ready = self._grid.zero, self._grid.zero + 1, now
            runs = table.mass[begin:end], table.after[begin : end + 1]
            late += [
                late_probability(*runs, after, ready + first * table.step, table.step, deadline_s[task])
                for (task, _), (first, after) in zip(run.fixed[host], self._until[host], strict=True)
            ]
        return np.array(late, dtype=np.float64)

    def mean_ready(self, now: float) -> Floats:
        """Return when each host is ready on average [s], infinite if off, shape (hosts,)."""
        self._update()
        table = self._grid.any_table
        pmf_kernels.let_pass(self._hosts, table, now)
        return np.asarray(pmf_kernels.mean_ready(self._hosts, table, now))

    # ------------------------------------------------------------------ keeping up

    def _update(self) -> None:
        """Follow what has happened on the hosts since the last time."""
        for host in self._happened():
            self._follow(host)

    def _begin(self, host: int) -> None:
        """Look at what runs on the host, without its queue."""
        run, hosts = self._run, self._hosts
        self._queue[host] = None
        self._until[host] = []
        hosts.queue_length[host] = hosts.sum_length[host] = 0
        hosts.queue_mean[host] = 0.0
        running = run.resources.on_host(host)
        if not run.is_open[host]:
            hosts.kind[host] = pmf_kernels.OFF
        elif running:
            copy = running[0]
            pstate = self._estimates.scheduler_pstate(copy.task, copy.pstate)
            place = self._place(copy.task, host, pstate)
            table = self._grid.table(place[0])
            hosts.kind[host] = pmf_kernels.UNCERTAIN
            hosts.begin[host] = copy.start
            hosts.first[host] = table.first[place]
            hosts.length[host] = table.length[place]
            hosts.offset[host] = table.offset[place]
            hosts.passed[host] = 0
        else:  # it runs nothing, or boots
            hosts.kind[host] = pmf_kernels.UNCERTAIN if run.fixed[host] else pmf_kernels.CERTAIN
            hosts.at[host] = hosts.begin[host] = run.boot_end[host]
            hosts.first[host], hosts.length[host] = 0, 1
            hosts.offset[host] = self._grid.zero
            hosts.passed[host] = 0

    def _append(self, host: int, entries: Iterator[tuple[int, int]]) -> None:
        """Add the tasks that come next in the fixed queue."""
        for task, pstate in entries:
            self._append_one(host, task, pstate)

    def _append_one(self, host: int, task: int, pstate: int) -> None:
        hosts, place = self._hosts, self._place(task, host, pstate)
        hosts.kind[host] = pmf_kernels.UNCERTAIN
        table, masses = self._grid.table(place[0]), self._grid.masses(*place)
        first, queue = int(table.first[place]), self._queue[host]
        if queue is not None:
            first += int(hosts.queue_first[host])
            masses, left_out = _trimmed(self._convolved(masses, queue))
            first += left_out
        self._queue[host] = masses
        n = len(masses)
        hosts.queue_first[host], hosts.queue_length[host] = first, n
        hosts.queue_mean[host] += self._grid.mean_s[place]
        hosts.sum_length[host] = 0
        self._hosts = hosts = pmf_kernels.with_room(hosts, queue=n + 1)
        hosts.queue_after[host, : n + 1] = tail = _tail(masses)
        self._until[host].append((first, tail))

    def _add_up(self, host: int) -> None:
        """Convolve what is left of what runs with the queue."""
        hosts, queue = self._hosts, self._queue[host]
        assert queue is not None  # else there is no sum
        passed, length, offset = (int(column[host]) for column in (hosts.passed, hosts.length, hosts.offset))
        table = self._grid.any_table
        masses = self._convolved(table.mass[offset + passed : offset + length], queue)
        n = length + len(queue) - 1
        self._hosts = hosts = pmf_kernels.with_room(hosts, sums=n + 1)
        hosts.sum_after[host, passed : n + 1] = _tail(masses)
        hosts.sum_length[host] = n
        hosts.sum_passed[host] = passed
        hosts.sum_share[host] = table.after[offset + passed]

    def _convolved(self, first: Floats, second: Floats) -> Floats:
        if len(first) * len(second) <= FFT_FROM:
            return np.asarray(pmf_kernels.convolved(first, second))
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
