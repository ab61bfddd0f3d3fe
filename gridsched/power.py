"""Power over time, of each host and of all together: exact, from the records of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.model.limits import time_tolerance
from gridsched.model.timeline import HostTimeline, host_timeline
from gridsched.model.trace import Trace

Floats = NDArray[np.float64]


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
    """

    timeline: HostTimeline
    watts: Floats
    idle_w: Floats

    @cached_property
    def joules(self) -> Floats:
        """Energy of each row of the timeline [J]."""
        return self.watts * self.timeline.duration_s


def trace_power(trace: Trace) -> TracePower:
    """Return the power of each computing host of a trace.

    Raises
    ------
    InputError
        If a host has no row at time 0 in `Trace.host_changes`.
    """
    platform, timeline = trace.platform, host_timeline(trace)
    host, pstate = timeline.host, timeline.pstate
    if not platform.has_energy:
        unknown = np.full(len(host), np.nan)
        return TracePower(timeline, unknown, unknown)
    idle_w = platform.idle_w[host, pstate]
    off_w = np.array([h.off_w for h in platform.hosts], dtype=np.float64)[host]
    load: NDArray[np.float64] | NDArray[np.int64] = timeline.busy_cores
    if timeline.speed_share is not None:
        load = load * timeline.speed_share  # the rest of the speed is not there to be used
    watts = host_power(
        load,
        platform.cores[host],
        idle_w,
        platform.epsilon_w[host, pstate],
        platform.busy_w[host, pstate],
        timeline.is_on,
        off_w,
    )
    for rows, own in (
        (timeline.is_booting, [h.boot_w for h in platform.hosts]),
        (timeline.is_shutting_down, [h.shutdown_w for h in platform.hosts]),
    ):
        if rows.any():
            own_w = np.array(own, dtype=np.float64)[host]  # nan where there is none
            watts = np.where(rows, np.where(np.isnan(own_w), idle_w, own_w), watts)
    return TracePower(timeline, watts, idle_w)


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

    def taken(self, rows: NDArray[np.bool_]) -> GridPower:
        """Return the power from some of the times on."""
        return GridPower(
            self.time[rows],
            self.busy_w[rows],
            self.idle_w[rows],
            self.boot_w[rows],
            self.shutdown_w[rows],
            self.off_w[rows],
            self.horizon_s,
        )

    @property
    def total_w(self) -> Floats:
        """Power of all computing hosts [W]."""
        return self.busy_w + self.idle_w + self.boot_w + self.shutdown_w + self.off_w

    @property
    def energy_j(self) -> Floats:
        """Energy consumed up to each time [J]."""
        return np.append(0.0, np.cumsum(self.total_w[:-1] * np.diff(self.time)))[: len(self.time)]


def running_total(
    timeline: HostTimeline, quantities: Sequence[NDArray[Any]], *, rows: NDArray[np.bool_]
) -> tuple[Floats, list[Floats]]:
    """Sum over all hosts of per-host quantities that change with time, without drift.

    Parameters
    ----------
    timeline : HostTimeline
    quantities : sequence of ndarray, shape (rows of the timeline,)
        Each from the begin of each row on; at least 0.
    rows : ndarray of bool, shape (rows of the timeline,)
        The rows that count, each host's first settled one among them.

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
    counting = np.flatnonzero(rows)
    host, time = timeline.host[counting], timeline.time[counting]
    new_host = np.ones(len(host), dtype=bool)
    new_host[1:] = host[1:] != host[:-1]
    begins = np.flatnonzero(new_host)
    order = np.argsort(time, kind="stable")
    time = time[order]
    first = np.flatnonzero(np.append(True, time[1:] != time[:-1])[: len(time)])
    values = [each[counting] if each.any() else None for each in quantities]
    peaks = np.zeros((len(begins), len(values)))
    for k, each in enumerate(values):
        if each is not None:
            peaks[:, k] = np.maximum.reduceat(each, begins)
    exponent = 62 - int(np.frexp(max(peaks.sum(), 1e-300))[1])

    def total(each: NDArray[Any] | None) -> Floats:
        if each is None:
            return np.zeros(len(first))
        steps = np.rint(np.ldexp(each, exponent)).astype(np.int64)
        steps[1:] -= np.where(new_host[1:], 0, steps[:-1])
        sums = np.cumsum(np.add.reduceat(steps[order], first))
        return np.asarray(np.ldexp(sums.astype(np.float64), -exponent))

    return time[first], [total(each) for each in values]


def grid_power(trace: Trace, power: TracePower | None = None) -> GridPower:
    """Power of all computing hosts together over time, by what they are doing.

    Integrated over the run it gives the parts of `HostEnergy` summed over the computing hosts.

    Parameters
    ----------
    trace : Trace
    power : TracePower, optional
        `trace_power` of the trace, where the caller has it already.
    """
    power = trace_power(trace) if power is None else power
    timeline = power.timeline
    states = (timeline.is_busy, timeline.is_idle, timeline.is_booting, timeline.is_shutting_down, timeline.is_off)
    watts = np.nan_to_num(power.watts)
    parts = [np.where(rows, watts, 0.0) for rows in states]
    time, totals = running_total(timeline, parts, rows=timeline.settled)
    if not trace.platform.has_energy:
        totals = [np.full_like(time, np.nan)] * len(totals)
    busy, idle, boot, shutdown, off = totals
    return GridPower(time, busy, idle, boot, shutdown, off, trace.horizon_s)


def peak_power_w(trace: Trace, power: TracePower | None = None) -> float:
    """Largest power of all computing hosts together over the run [W]; nan where none is known.

    What lasts no longer than an instant is no power: ends and starts of one instant may lie a
    rounding apart.

    Parameters
    ----------
    trace : Trace
    power : TracePower, optional
        As for `grid_power`.
    """
    grid = grid_power(trace, power)
    lasts = np.diff(np.append(grid.time, trace.horizon_s))
    widths = np.array([time_tolerance(time) for time in grid.time.tolist()])
    return float(grid.total_w[lasts > widths].max(initial=0.0))
