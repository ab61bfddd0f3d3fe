"""Power over time, of each host and of all together: exact, from the records of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridsched.energy import timeline_watts
from gridsched.model.instants import instant_width
from gridsched.model.timeline import HostTimeline, host_timeline
from gridsched.model.trace import Trace

Floats = NDArray[np.float64]

#: The power of a host from `time` on, until its next row.
POWER_CHANGE = np.dtype([("time", np.float64), ("host", np.int64), ("watts", np.float64)])


def power_series(trace: Trace) -> NDArray[np.void]:
    """Return every change of a computing host's power, exact, in order of time, then host.

    Returns
    -------
    ndarray of `POWER_CHANGE`
        Each host has a row at time 0; between two rows of a host its power is constant.
    """
    timeline = host_timeline(trace)
    watts, _ = timeline_watts(trace, timeline)
    rows = np.flatnonzero(timeline.changes_of(watts))
    rows = rows[np.lexsort((timeline.host[rows], timeline.time[rows]))]
    series = np.empty(len(rows), dtype=POWER_CHANGE)
    series["time"], series["host"] = timeline.time[rows], timeline.host[rows]
    series["watts"] = watts[rows]
    return series


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
            self.time[rows], self.busy_w[rows], self.idle_w[rows], self.boot_w[rows],
            self.shutdown_w[rows], self.off_w[rows], self.horizon_s,
        )  # fmt: skip

    @property
    def total_w(self) -> Floats:
        """Power of all computing hosts [W]."""
        return self.busy_w + self.idle_w + self.boot_w + self.shutdown_w + self.off_w

    @property
    def energy_j(self) -> Floats:
        """Energy consumed up to each time [J]."""
        return np.append(0.0, np.cumsum(self.total_w[:-1] * np.diff(self.time)))[: len(self.time)]


def running_total(
    timeline: HostTimeline, values: Floats, *, rows: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Sum over all hosts of a per-host quantity that changes with time, without drift.

    Parameters
    ----------
    timeline : HostTimeline
    values : ndarray, shape (rows of the timeline, quantities)
        The quantities from the begin of each row on; at least 0.
    rows : ndarray of bool, shape (rows of the timeline,)
        The rows that count, each host's first settled one among them.

    Returns
    -------
    time : ndarray of float64, shape (instants,)
    total : ndarray of float64, shape (instants, quantities)

    Notes
    -----
    Differences are summed as integers (multiples of 2**-62 of the largest possible total), so
    that whatever was added is taken away again exactly.
    """
    counting = np.flatnonzero(rows)
    host, time, values = timeline.host[counting], timeline.time[counting], values[counting]
    new_host = np.ones(len(host), dtype=bool)
    new_host[1:] = host[1:] != host[:-1]
    peaks = np.maximum.reduceat(values, np.flatnonzero(new_host)) if len(host) else values
    exponent = 62 - int(np.frexp(max(peaks.sum(), 1e-300))[1])
    scaled = np.rint(np.ldexp(values, exponent)).astype(np.int64)
    steps = scaled.copy()
    steps[1:][~new_host[1:]] -= scaled[:-1][~new_host[1:]]
    order = np.argsort(time, kind="stable")
    times, first = np.unique(time[order], return_index=True)
    sums = np.add.reduceat(steps[order], first) if len(host) else steps
    return times, np.ldexp(np.cumsum(sums, axis=0).astype(np.float64), -exponent)


def grid_power(trace: Trace) -> GridPower:
    """Power of all computing hosts together over time, by what they are doing.

    Integrated over the run it gives the parts of `HostEnergy` summed over the computing hosts.
    """
    timeline = host_timeline(trace)
    watts, _ = timeline_watts(trace, timeline)
    states = (
        timeline.is_busy, timeline.is_idle, timeline.is_booting, timeline.is_shutting_down,
        timeline.is_off,
    )  # fmt: skip
    parts = np.stack([np.where(rows, np.nan_to_num(watts), 0.0) for rows in states], axis=1)
    time, total = running_total(timeline, parts, rows=timeline.settled)
    if not trace.platform.has_energy:
        total = np.full_like(total, np.nan)
    busy, idle, boot, shutdown, off = total.T
    return GridPower(time, busy, idle, boot, shutdown, off, trace.horizon_s)


def peak_power_w(trace: Trace) -> float:
    """Largest power of all computing hosts together over the run [W]; nan where none is known.

    What lasts no longer than an instant is no power: ends and starts of one instant may lie a
    rounding apart.
    """
    power = grid_power(trace)
    lasts = np.diff(np.append(power.time, trace.horizon_s))
    widths = np.array([instant_width(time) for time in power.time.tolist()])
    return float(power.total_w[lasts > widths].max(initial=0.0))
