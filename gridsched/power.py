"""Power over time, of each host and of all together: exact, from the records of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.model.platform import Platform
from gridsched.model.signals import Signal
from gridsched.model.timeline import HostTimeline, host_timeline, host_timelines, time_tolerances
from gridsched.model.trace import Trace

#: A timeline with quantities of its rows, and which of its rows count.
Block = tuple[HostTimeline, Sequence[NDArray[Any]], Booleans]
#: Rows that are integrated together (they stay in a processor's cache), and rows that are kept.
_BLOCK_ROWS, _KEPT_ROWS = 1 << 15, 1 << 18
#: So many values of a quantity are counted one by one.
_FEW_VALUES = 8


def host_power(
    busy_cores: ArrayLike,
    cores: ArrayLike,
    idle_w: ArrayLike,
    epsilon_w: ArrayLike,
    busy_w: ArrayLike,
    is_on: ArrayLike = True,
    off_w: ArrayLike = 0.0,
) -> Floats:
    """Power of hosts [W] as SimGrid 4.1's ``host_energy`` plugin computes it.

    Off: `off_w`. On with load 0: `idle_w`. On with load x in (0, 1]:
    ``epsilon_w + x * (busy_w - epsilon_w)``, where x = busy cores / cores, at most 1.

    Parameters
    ----------
    busy_cores, cores : array_like
        Cores that compute, and cores there are; all arguments broadcast.
    idle_w, epsilon_w, busy_w : array_like
        Power of the whole host in its P-state [W]: no load, the least load, all cores busy.
    is_on : array_like of bool
    off_w : array_like
        Power while switched off [W].
    """
    load = np.minimum(np.asarray(busy_cores) / np.asarray(cores), 1.0)
    loaded = epsilon_w + load * (np.asarray(busy_w) - epsilon_w)
    return np.where(is_on, np.where(load > 0, loaded, idle_w), off_w)


@dataclass(frozen=True)
class TracePower:
    """Power of each computing host of a trace over time; who integrates it twice keeps it.

    Attributes
    ----------
    timeline : HostTimeline
    watts, idle_w : ndarray of float64, shape (rows of the timeline,)
        Power and idle power [W]; nan where no power is known (`Platform.has_energy`).
    signal : Signal or None
        What a joule weighs: energies are then in its unit. None: joules.
    """

    timeline: HostTimeline
    watts: Floats
    idle_w: Floats
    signal: Signal | None = None

    @cached_property
    def joules(self) -> Floats:
        """Energy of each row of the timeline [J]."""
        return self._weighed(self.watts)

    @property
    def above_idle_j(self) -> Floats:
        """Energy of each row above idle power [J]."""
        return self._weighed(self.watts - self.idle_w)

    def _weighed(self, watts: Floats) -> Floats:
        joules = watts * self.timeline.duration_s
        if self.signal is None:
            return joules
        timeline = self.timeline
        return joules * self.signal.at_hosts(timeline.host, timeline.time, timeline.duration_s)


def trace_power(trace: Trace) -> TracePower:
    """Return the power of each computing host of a trace.

    Raises
    ------
    InputError
        If a host has no row at time 0 in `Trace.host_changes`.
    """
    return _power(trace.platform, host_timeline(trace))


def power_blocks(trace: Trace, power: TracePower | None = None) -> Iterator[TracePower]:
    """Yield the power of some hosts after the other: of a large run all at once would fill the memory.

    Parameters
    ----------
    trace : Trace
    power : TracePower, optional
        That of all hosts, where the caller has it; it is then yielded.
    """
    if power is not None:
        yield power
        return
    for timeline in host_timelines(trace, _BLOCK_ROWS):
        yield _power(trace.platform, timeline)


def kept_power(trace: Trace) -> TracePower | None:
    """Return `trace_power` of a run that is small enough to keep it, else None."""
    rows = 2 * len(trace.host_changes) + 2 * len(trace.placed_hosts)
    return trace_power(trace) if rows <= _KEPT_ROWS else None


def _power(platform: Platform, timeline: HostTimeline) -> TracePower:
    host, pstate = timeline.host, timeline.pstate
    if not platform.has_energy:
        unknown = np.full(len(host), np.nan)
        return TracePower(timeline, unknown, unknown)
    idle_w = platform.idle_w[host, pstate]
    off_w, boot_w, shutdown_w = platform.unready_w.T
    load: Floats | Integers = timeline.busy_cores
    if timeline.speed_share is not None:
        load = load * timeline.speed_share  # the rest of the speed is not there to be used
    watts = host_power(
        load,
        platform.cores[host],
        idle_w,
        platform.epsilon_w[host, pstate],
        platform.busy_w[host, pstate],
        timeline.is_on,
        off_w[host],
    )
    if timeline.computing is not None:
        watts = np.where(timeline.is_busy, _mean_power(platform, timeline, idle_w), watts)
    for rows, own in ((timeline.is_booting, boot_w), (timeline.is_shutting_down, shutdown_w)):
        if rows.any():
            own_w = own[host]
            watts = np.where(rows, np.where(np.isnan(own_w), idle_w, own_w), watts)
    return TracePower(timeline, watts, idle_w)


def _mean_power(platform: Platform, timeline: HostTimeline, idle_w: Floats) -> Floats:
    """Return the mean power of hosts over what runs there [W]: by `host_power`, of hosts that compute a part of it.

    While it computes at load x a host draws ``epsilon_w + x * (busy_w - epsilon_w)``, else `idle_w`; so the mean
    follows from the share of the time in which it computes and from the mean load, whatever the load is when.
    """
    assert timeline.computing is not None
    share, load = timeline.computing.T
    epsilon_w = platform.epsilon_w[timeline.host, timeline.pstate]
    busy_w = platform.busy_w[timeline.host, timeline.pstate]
    return np.asarray(idle_w + share * (epsilon_w - idle_w) + load * (busy_w - epsilon_w))


@dataclass(frozen=True)
class GridPower:
    """Power of all computing hosts together; constant from each time to the next.

    Attributes
    ----------
    time : ndarray of float64, shape (instants,)
        Instants at which something changed [s]; ascending, the first is 0.
    busy_w, idle_w, boot_w, shutdown_w, off_w : ndarray of float64
        Power of the hosts that are in that state from `time` on [W].
    horizon_s : float
        End of the last stretch [s].
    """

    time: Floats
    busy_w: Floats
    idle_w: Floats
    boot_w: Floats
    shutdown_w: Floats
    off_w: Floats
    horizon_s: float

    @property
    def total_w(self) -> Floats:
        """Power of all computing hosts [W]."""
        return self.busy_w + self.idle_w + self.boot_w + self.shutdown_w + self.off_w

    @property
    def peak_w(self) -> float:
        """Largest power of all computing hosts together over the run [W]; nan where none is known.

        What lasts no longer than an instant is not a power: ends and starts of one instant may lie a
        rounding apart.
        """
        lasts = np.diff(np.append(self.time, self.horizon_s))
        return float(self.total_w[lasts > time_tolerances(self.time)].max(initial=0.0))

    @property
    def energy_j(self) -> Floats:
        """Energy consumed up to each time [J]."""
        return np.append(0.0, np.cumsum(self.total_w[:-1] * np.diff(self.time)))[: len(self.time)]


def running_total(blocks: Callable[[], Iterable[Block]]) -> tuple[Floats, list[Floats]]:
    """Sum over all hosts of per-host quantities that change with time, without drift.

    Parameters
    ----------
    blocks : callable
        Returns timelines that have each host once, each with the same number of quantities of its
        rows (from the begin of each row on, at least 0), and which of its rows count, each host's
        first settled one among them. It is called twice where the rows are many.

    Returns
    -------
    time : ndarray of float64, shape (instants,)
    totals : list of ndarray of float64, shape (instants,)
        Of each quantity.

    Notes
    -----
    Differences are summed as integers (multiples of 2**-62 of the largest possible total), so
    that whatever was added is taken away again exactly.
    """
    total = RunningTotal()
    for block in blocks():
        total.add(*block)
    return total.result(blocks)


class _Steps(NamedTuple):
    """Steps of a quantity on the hosts of a block: after an instant, so many `more` hosts have this value.

    Attributes
    ----------
    instant : ndarray of int64, shape (steps,)
        Which of the block's instants.
    value : ndarray of float64, shape (steps,)
    more : ndarray of int64, shape (steps,)
    """

    instant: Integers
    value: Floats
    more: Integers


class RunningTotal:
    """What `running_total` sums, block by block: each is looked at once, as long as its steps can be kept."""

    def __init__(self) -> None:
        self._peaks: list[Floats] = []
        self._times: list[Floats] = []
        self._steps: list[list[_Steps]] | None = []
        self._n_steps = 0

    def add(self, timeline: HostTimeline, quantities: Sequence[NDArray[Any]], rows: Booleans) -> None:
        """Add a block: see `running_total`."""
        counting = np.flatnonzero(rows)
        own, is_new = timeline.time[counting], _is_new(timeline.host[counting])
        begins = np.flatnonzero(is_new)
        values = [np.asarray(each[counting], dtype=np.float64) for each in quantities]
        self._peaks.append(np.stack([np.maximum.reduceat(each, begins) for each in values], axis=1))
        order = np.argsort(own, kind="stable")
        first = np.flatnonzero(_is_new(own[order]))
        self._times.append(own[order[first]])
        if self._steps is None:
            return
        instant = np.empty(len(own), dtype=np.int64)
        instant[order] = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(own))))
        steps = [_steps_of(each, is_new, instant, len(first)) for each in values]
        self._n_steps += sum(len(each.more) for each in steps)
        self._steps.append(steps)
        if self._n_steps > 4 * _KEPT_ROWS:  # they are smaller than rows
            self._steps = None

    def result(self, blocks: Callable[[], Iterable[Block]]) -> tuple[Floats, list[Floats]]:
        """Return instants and totals; `blocks` yields the same blocks again, where they have too many steps."""
        time = _distinct(np.concatenate(self._times))
        exponent = 62 - int(np.frexp(max(np.concatenate(self._peaks).sum(), 1e-300))[1])
        sums = np.zeros((self._peaks[0].shape[1], len(time)), dtype=np.int64)
        all_steps = self._steps_again(blocks) if self._steps is None else self._steps
        for times, steps in zip(self._times, all_steps, strict=True):
            instants = np.searchsorted(time, times)
            for total, (instant, value, more) in zip(sums, steps, strict=True):
                np.add.at(total, instants[instant], more * np.rint(np.ldexp(value, exponent)).astype(np.int64))
        return time, [np.ldexp(np.cumsum(total).astype(np.float64), -exponent) for total in sums]

    def _steps_again(self, blocks: Callable[[], Iterable[Block]]) -> Iterator[list[_Steps]]:
        for (timeline, quantities, rows), times in zip(blocks(), self._times, strict=True):
            counting = np.flatnonzero(rows)
            is_new, instant = _is_new(timeline.host[counting]), np.searchsorted(times, timeline.time[counting])
            values = [np.asarray(each[counting], dtype=np.float64) for each in quantities]
            yield [_steps_of(each, is_new, instant, len(times)) for each in values]


def _steps_of(values: Floats, is_new: Booleans, instant: Integers, n_instants: int) -> _Steps:
    """Return the steps of a quantity's rows; those of hosts that have the same value are one, where values are few."""
    before = np.where(is_new, 0.0, np.append(0.0, values[:-1]))
    changed = np.flatnonzero(values != before)
    after, before, at = values[changed], before[changed], instant[changed]
    found: list[_Steps] = []
    rest = after[after != 0.0]
    while len(rest) and len(found) < _FEW_VALUES:
        value = rest[0]
        count = np.bincount(at[after == value], minlength=n_instants)
        count -= np.bincount(at[before == value], minlength=n_instants)
        instants = np.flatnonzero(count)
        found.append(_Steps(instants, np.full(len(instants), value), count[instants]))
        rest = rest[rest != value]
    if len(rest):
        ones = np.ones(len(at), dtype=np.int64)
        found = [_Steps(at, after, ones), _Steps(at, before, -ones)]
    found = found or [_Steps(at[:0], after[:0], at[:0])]
    return _Steps(*(np.concatenate(each) for each in zip(*found, strict=True)))


def _distinct(values: Floats) -> Floats:
    """Return the values once each, ascending; `numpy.unique` takes longer to load than most runs."""
    ascending = np.sort(values)
    return ascending[_is_new(ascending)]


def _is_new(values: NDArray[Any]) -> Booleans:
    """Whether each value differs from the one before; the first does."""
    return np.append(True, values[1:] != values[:-1])[: len(values)]


def grid_power(trace: Trace, power: TracePower | None = None) -> GridPower:
    """Power of all computing hosts together over time, by what they are doing.

    Integrated over the run it gives the parts of `HostEnergy` summed over the computing hosts.

    Parameters
    ----------
    trace : Trace
    power : TracePower, optional
        `trace_power` of the trace, where the caller has it already.
    """
    total = GridTotal(trace)
    for each in power_blocks(trace, power):
        total.add(each)
    return total.result(power)


class GridTotal:
    """Sums the power of all computing hosts of a trace while somebody else goes through its `power_blocks`."""

    def __init__(self, trace: Trace) -> None:
        self._trace, self._total = trace, RunningTotal()

    def add(self, power: TracePower) -> None:
        """Add the next block."""
        self._total.add(*_by_state(power))

    def result(self, power: TracePower | None = None) -> GridPower:
        """Return the sum of all blocks; `power` as for `grid_power`."""
        trace = self._trace
        time, totals = self._total.result(lambda: map(_by_state, power_blocks(trace, power)))
        if not trace.platform.has_energy:
            totals = [np.full_like(time, np.nan)] * len(totals)
        busy, idle, boot, shutdown, off = totals
        return GridPower(time, busy, idle, boot, shutdown, off, trace.horizon_s)


def _by_state(power: TracePower) -> Block:
    """Return the power of a block's rows by what their hosts are doing."""
    timeline, watts = power.timeline, np.nan_to_num(power.watts)
    return timeline, [np.where(rows, watts, 0.0) for rows in timeline.states], timeline.settled


def peak_power_w(trace: Trace, power: TracePower | None = None) -> float:
    """Return `GridPower.peak_w` of a trace; `power` as for `grid_power`."""
    return grid_power(trace, power).peak_w
