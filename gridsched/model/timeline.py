"""What each host did between one event and the next: a trace cut into constant stretches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import InputError
from gridsched.model.platform import Platform
from gridsched.model.trace import Trace

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HostTimeline:
    """Stretches in which a computing host's state is constant; rows by host, then by time.

    Attributes
    ----------
    host : ndarray of int64, shape (rows,)
    time, end : ndarray of float64
        Begin and end of the row [s]. Where several events share an instant, all rows but the
        last of it have no length.
    busy_cores, pstate : ndarray of int64
    is_on, is_booting, is_shutting_down : ndarray of bool
        A host that shuts down is on no more.
    speed_share : ndarray of float64, or None
        Share of its P-state's speed at which the host computes; None where it always is the whole.
    first, last : ndarray of int64, shape (placements,)
        Placement k (`Trace.placed`: an execution on one of its hosts) covers the rows ``first[k]``
        to ``last[k] - 1``.
    """

    host: Ids
    time: Floats
    end: Floats
    busy_cores: Ids
    pstate: Ids
    is_on: Flags
    is_booting: Flags
    is_shutting_down: Flags
    first: Ids
    last: Ids
    speed_share: Floats | None = None

    @property
    def duration_s(self) -> Floats:
        """Length of each row [s]."""
        return self.end - self.time

    @property
    def is_busy(self) -> Flags:
        """Whether at least one core is busy."""
        return self.is_on & (self.busy_cores > 0)

    @property
    def is_idle(self) -> Flags:
        """Whether the host is on, has booted, and no core is busy."""
        return self.is_on & ~self.is_booting & (self.busy_cores == 0)

    @property
    def is_off(self) -> Flags:
        """Whether the host is switched off and has shut down."""
        return ~self.is_on & ~self.is_shutting_down

    @property
    def settled(self) -> Flags:
        """Rows that hold after all events of their instant on their host."""
        last = np.ones(len(self.host), dtype=bool)
        last[:-1] = (self.time[1:] != self.time[:-1]) | (self.host[1:] != self.host[:-1])
        return last

    def changes_of(self, values: NDArray[Any]) -> Flags:
        """Settled rows whose value differs from the host's settled row before, or is its first."""
        rows = np.flatnonzero(self.settled)
        differs = np.ones(len(rows), dtype=bool)
        differs[1:] = (values[rows[1:]] != values[rows[:-1]]) | (self.host[rows[1:]] != self.host[rows[:-1]])
        chosen = np.zeros(len(self.host), dtype=bool)
        chosen[rows[differs]] = True
        return chosen


def _switch_ends(platform: Platform, changes: NDArray[np.void]) -> Floats:
    """Until when the host boots or shuts down after each change (sorted by host) [s], or -inf.

    What a host is at first took no time. A change of a host that is off ends its shutting down.
    """
    host, is_on = changes["host"], changes["is_on"]
    times = np.array([(h.shutdown_time_s, h.boot_time_s) for h in platform.hosts])
    takes = times[host, is_on.astype(np.int64)]
    begins = np.ones(len(changes), dtype=bool)
    switched = np.zeros(len(changes), dtype=bool)
    switched[1:] = (host[1:] == host[:-1]) & (is_on[1:] != is_on[:-1])
    begins[1:] = switched[1:] | (host[1:] != host[:-1]) | ~is_on[1:]
    ends = np.where(switched & (takes > 0), changes["time"] + takes, -np.inf)
    return ends[np.maximum.accumulate(np.where(begins, np.arange(len(changes)), 0))]


def host_timeline(trace: Trace) -> HostTimeline:
    """Cut the run into stretches in which each host's state is constant.

    Parameters
    ----------
    trace : Trace

    Returns
    -------
    HostTimeline
        Over [0, `Trace.horizon_s`]; what is later is moved to the horizon.

    Raises
    ------
    InputError
        If a host has no row at time 0 in `Trace.host_changes`.
    """
    runs, horizon = trace.executions, trace.horizon_s
    changes = trace.host_changes[np.argsort(trace.host_changes["host"], kind="stable")]
    _check_first_rows(trace, changes)
    switch_end = _switch_ends(trace.platform, changes)
    lasts = np.isfinite(switch_end)
    changed, dates, shares = _speed_changes(trace)
    execution, placed = trace.placed()  # the one place where sets of nodes are expanded
    hosts = (changes["host"], changes["host"][lasts], changed, placed, placed)
    times = (changes["time"], switch_end[lasts], dates, runs["start"][execution], runs["end"][execution])
    sizes = [len(part) for part in hosts]
    host = np.concatenate(hosts)
    time = np.minimum(np.concatenate(times), horizon)
    # in one instant: changes in their order, then starts before ends, so that first < last;
    # the sort is stable, and short whole numbers are sorted faster
    order = np.lexsort((time, host.astype(np.min_scalar_type(len(trace.platform)))))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    host, time = host[order], time[order]
    is_change = order < len(changes)
    n_changes, n_before = sizes[0] + sizes[1], sum(sizes[:3])
    first, last = np.split(rank[n_before:], 2)
    step = np.zeros(len(order), dtype=np.int64)
    step[first], step[last] = 1, -1
    busy = np.cumsum(step)
    state = order[np.maximum.accumulate(np.where(is_change, np.arange(len(order)), 0))]
    is_on = changes["is_on"][state]
    is_switching = (time < switch_end[state]) & (busy == 0)
    speed_share = None
    if len(changed):
        known = np.concatenate([np.ones(n_changes), shares, np.ones(2 * len(placed))])
        # each host's own change, or the row at time 0 with which every host begins
        tells = is_change | ((order >= n_changes) & (order < n_before))
        tells[is_change] = time[is_change] == 0.0
        speed_share = known[order[np.maximum.accumulate(np.where(tells, np.arange(len(order)), 0))]]
    return HostTimeline(
        host=host,
        time=time,
        end=_ends(host, time, horizon),
        busy_cores=busy,
        pstate=changes["pstate"][state],
        is_on=is_on,
        is_booting=is_on & is_switching,
        is_shutting_down=~is_on & is_switching,
        first=first,
        last=last,
        speed_share=speed_share,
    )


def _speed_changes(trace: Trace) -> tuple[Ids, Floats, Floats]:
    """Return host, date [s] and share of each change of the speed at which a host computes.

    A node computes at the speed of the slowest one that its execution has.
    """
    found = [(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))]
    if trace.platform.profiles.speeds and trace.is_parallel:
        found += _changes_of_nodes(trace)
    elif trace.platform.profiles.speeds:
        speeds = trace.speeds()
        for h in speeds.changing.tolist():
            speed = speeds.of(np.array([h]))
            assert speed is not None
            dates, shares = speed.changes(trace.horizon_s)
            found.append((np.full(len(dates), h), dates, shares))
    hosts, times, values = zip(*found, strict=True)
    return np.concatenate(hosts), np.concatenate(times), np.concatenate(values)


def _changes_of_nodes(trace: Trace) -> Iterator[tuple[Ids, Floats, Floats]]:
    """Yield nodes, dates [s] and shares of each execution, from its start on."""
    speeds, runs = trace.speeds(), trace.executions
    for k, (start, end) in enumerate(runs[["start", "end"]].tolist()):
        nodes = trace.hosts_of(k)
        speed, dates, shares = speeds.of(nodes), np.array([start]), np.ones(1)
        if speed is not None:
            dates, shares = speed.changes(end, start)
        yield np.repeat(nodes, len(dates)), np.tile(dates, len(nodes)), np.tile(shares, len(nodes))


def _check_first_rows(trace: Trace, changes: NDArray[np.void]) -> None:
    """Raise `InputError` unless each host's changes begin at time 0."""
    hosts, first = np.unique(changes["host"], return_index=True)
    if len(hosts) != len(trace.platform) or (changes["time"][first] != 0).any():
        raise InputError(
            f"The trace's host changes need a row at time 0 for each of the platform's {len(trace.platform)} hosts."
        )


def _ends(host: Ids, time: Floats, horizon_s: float) -> Floats:
    """End of each row [s]: the host's next event, or the horizon."""
    end = np.full(len(time), horizon_s)
    end[:-1] = np.where(host[1:] != host[:-1], horizon_s, time[1:])
    return end


def spread_evenly(start: Floats, end: Floats, amount: Floats, edges: Floats) -> Floats:
    """Divide amounts, each spread evenly over its stretch, among the intervals between `edges`.

    Parameters
    ----------
    start, end : ndarray of float64, shape (stretches,)
        Begin and end of each stretch [s]; one of no length counts where it begins.
    amount : ndarray of float64, shape (stretches,)
        At least 0, in any unit.
    edges : ndarray of float64, shape (intervals + 1,)
        Ascending times [s]; what lies outside them is left out.

    Returns
    -------
    ndarray of float64, shape (intervals,)
    """
    n, length = len(edges) - 1, end - start
    begin, stop = np.maximum(start, edges[0]), np.minimum(end, edges[-1])
    inside = stop > begin
    points = (length == 0) & (start >= edges[0]) & (start < edges[-1])
    at = np.searchsorted(edges, start[points], side="right") - 1
    sums = np.bincount(at, amount[points], minlength=n).astype(np.float64)
    begin, stop, length, amount = begin[inside], stop[inside], length[inside], amount[inside]
    first = np.searchsorted(edges, begin, side="right") - 1
    last = np.searchsorted(edges, stop, side="left") - 1
    one = first == last
    head = np.where(one, stop, edges[first + 1]) - begin
    sums += np.bincount(first, amount * (head / length), minlength=n)
    # only stretches longer than an interval cover it whole: their rates are small and sum well
    begin, stop, length, amount, first, last = (each[~one] for each in (begin, stop, length, amount, first, last))
    sums += np.bincount(last, amount * ((stop - edges[last]) / length), minlength=n)
    rate = amount / length
    steps = np.bincount(first + 1, rate, minlength=n + 1) - np.bincount(last, rate, minlength=n + 1)
    return sums + np.maximum(np.cumsum(steps[:n]), 0.0) * np.diff(edges)
