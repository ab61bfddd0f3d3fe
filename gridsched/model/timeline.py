"""What each host did between one event and the next: a trace cut into constant stretches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.errors import InputError
from gridsched.model.platform import Platform
from gridsched.model.trace import Trace


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
        Where tasks have loads of their own (`Trace.load`), times the load of what runs.
    placements, first, last : ndarray of int64, shape (placements,)
        Place in `Trace.placed` (an execution on one of its hosts) of each placement, which covers
        the rows ``first`` to ``last - 1``.
    cores : ndarray of int64, shape (placements,), or None
        Cores of each placement; None where each has one.
    computing : ndarray of float64, shape (rows, 2), or None
        Where tasks have profiles (`Trace.computed`): share of the time in which the host computes, and mean
        load, over the whole of what runs there; None where whatever runs computes all the time.
    """

    host: Integers
    time: Floats
    end: Floats
    busy_cores: Integers
    pstate: Integers
    is_on: Booleans
    is_booting: Booleans
    is_shutting_down: Booleans
    placements: Integers
    first: Integers
    last: Integers
    speed_share: Floats | None = None
    cores: Integers | None = None
    computing: Floats | None = None

    @property
    def duration_s(self) -> Floats:
        """Length of each row [s]."""
        return self.end - self.time

    @property
    def is_busy(self) -> Booleans:
        """Whether at least one core is busy."""
        return self.is_on & (self.busy_cores > 0)

    @property
    def is_idle(self) -> Booleans:
        """Whether the host is on, has booted, and no core is busy."""
        return self.is_on & ~self.is_booting & (self.busy_cores == 0)

    @property
    def is_off(self) -> Booleans:
        """Whether the host is switched off and has shut down."""
        return ~self.is_on & ~self.is_shutting_down

    @property
    def states(self) -> tuple[Booleans, ...]:
        """Rows in which the host is busy, is idle, boots, shuts down, is off; each row is one of them."""
        return self.is_busy, self.is_idle, self.is_booting, self.is_shutting_down, self.is_off

    @property
    def settled(self) -> Booleans:
        """Rows that hold after all events of their instant on their host."""
        last = np.ones(len(self.host), dtype=bool)
        last[:-1] = (self.time[1:] != self.time[:-1]) | (self.host[1:] != self.host[:-1])
        return last

    def changes_of(self, values: NDArray[Any]) -> Booleans:
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
    return next(iter(host_timelines(trace)))


def host_timelines(trace: Trace, most_rows: int | None = None) -> Iterator[HostTimeline]:
    """Yield the timelines of some hosts after the other, in order of their ids.

    Parameters
    ----------
    trace : Trace
    most_rows : int, optional
        About how many rows one has, unless a single host has more; by default one has them all.

    Raises
    ------
    InputError
        As `host_timeline`.
    """
    changes = trace.host_changes[np.argsort(trace.host_changes["host"], kind="stable")]
    _check_first_rows(trace, changes)
    switch_end, speeds = _switch_ends(trace.platform, changes), _speed_changes(trace)
    execution, placed = trace.placed()
    n_hosts = len(trace.platform)
    if most_rows is None:
        yield _timeline(trace, (changes, switch_end), speeds, execution, placed, np.arange(len(placed)))
        return
    # short whole numbers are sorted faster
    by_host = np.argsort(placed.astype(np.min_scalar_type(n_hosts)), kind="stable")
    placements = np.append(0, np.cumsum(np.bincount(placed, minlength=n_hosts)))
    first = np.searchsorted(changes["host"], np.arange(n_hosts + 1))
    rows = 2 * placements + first
    low = 0
    while low < n_hosts:
        high = max(low + 1, int(np.searchsorted(rows, rows[low] + most_rows, side="right")) - 1)
        own, chosen = slice(first[low], first[high]), by_host[placements[low] : placements[high]]
        inside = (speeds.host >= low) & (speeds.host < high)
        yield _timeline(
            trace,
            (changes[own], switch_end[own]),
            _SpeedChanges(speeds.host[inside], speeds.date[inside], speeds.share[inside], speeds.owner[inside]),
            execution[chosen],
            placed[chosen],
            chosen,
        )
        low = high


class _SpeedChanges(NamedTuple):
    """Changes of the share of speed at which hosts compute.

    Attributes
    ----------
    host : ndarray of int64, shape (changes,)
    date, share : ndarray of float64, shape (changes,)
        From when on [s], and the share.
    owner : ndarray of int64, shape (changes,)
        Place in `Trace.placed` of what changes its speed, where executions have sets of hosts; else -1.
    """

    host: Integers
    date: Floats
    share: Floats
    owner: Integers


def _timeline(
    trace: Trace,
    switches: tuple[NDArray[np.void], Floats],
    speeds: _SpeedChanges,
    execution: Integers,
    placed: Integers,
    placements: Integers,
) -> HostTimeline:
    """Return the timeline of the hosts that have these changes and placements.

    The changes are sorted by host; each has the end of the switching that it begins [s].
    """
    runs, horizon = trace.executions, trace.horizon_s
    changes, switch_end = switches
    changed, dates, shares, owners = speeds
    lasts = np.isfinite(switch_end)
    hosts = (changes["host"], changes["host"][lasts], changed, placed, placed)
    times = (changes["time"], switch_end[lasts], dates, runs["start"][execution], runs["end"][execution])
    sizes = [len(part) for part in hosts]
    host = np.concatenate(hosts)
    time = np.minimum(np.concatenate(times), horizon)
    # in one instant: changes in their order, then starts before ends, so that first < last
    order = np.lexsort((time, host.astype(np.min_scalar_type(len(trace.platform)))))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    host, time = host[order], time[order]
    is_change = order < len(changes)
    n_changes, n_before = sizes[0] + sizes[1], sum(sizes[:3])
    first, last = np.split(rank[n_before:], 2)
    step = np.zeros(len(order), dtype=np.int64)
    cores = trace.host_cores[placements] if len(trace.host_cores) else None
    step[first], step[last] = (1, -1) if cores is None else (cores, -cores)
    busy = np.cumsum(step)
    state = order[np.maximum.accumulate(np.where(is_change, np.arange(len(order)), 0))]
    is_on = changes["is_on"][state]
    is_switching = (time < switch_end[state]) & (busy == 0)
    speed_share = None
    if len(changed):
        factors = np.concatenate([np.ones(n_changes), shares, np.ones(2 * len(placed))])
        # each host's own change, or the row at time 0 with which every host begins
        tells = is_change | ((order >= n_changes) & (order < n_before))
        tells[is_change] = time[is_change] == 0.0
        speed_share = factors[order[np.maximum.accumulate(np.where(tells, np.arange(len(order)), 0))]]
    if len(trace.load) or (len(changed) and cores is not None):
        rates = np.ones(len(placed)) if not len(trace.load) else trace.load[runs["task"][execution]]
        if cores is not None:
            rates = rates * cores
        at = np.full(len(trace.placed_hosts), -1)
        at[placements] = np.arange(len(placements))
        shares_at = rank[n_changes:n_before], at[owners], shares
        of_host, one_core = speed_share if cores is None else None, int(trace.platform.cores.max(initial=1)) == 1
        speed_share = _mean_rate(rates, first, last, shares_at, busy, of_host, one_core=one_core)
    end = np.full(len(time), horizon)
    end[:-1] = np.where(host[1:] != host[:-1], horizon, time[1:])
    return HostTimeline(
        host=host,
        time=time,
        end=end,
        busy_cores=busy,
        pstate=changes["pstate"][state],
        is_on=is_on,
        is_booting=is_on & is_switching,
        is_shutting_down=~is_on & is_switching,
        placements=placements,
        first=first,
        last=last,
        speed_share=speed_share,
        cores=cores,
        computing=_computing(trace, execution, placements, first, last, len(time)) if len(trace.computed) else None,
    )


def _computing(
    trace: Trace, execution: Integers, placements: Integers, first: Integers, last: Integers, n_rows: int
) -> Floats:
    """Return `HostTimeline.computing`; where nodes are shared, the sum of what runs on a host at a time."""
    lasted = (trace.executions["end"] - trace.executions["start"])[execution]
    shares = trace.computed[placements] / np.where(lasted > 0, lasted, 1.0)[:, None]
    rows = np.zeros((n_rows, 2))
    if len(trace.host_cores) or not trace.is_parallel:
        np.add.at(rows, first, shares)
        np.subtract.at(rows, last, shares)
        return np.maximum(np.cumsum(rows, axis=0), 0.0)
    spans = last - first
    within = np.repeat(first - np.append(0, np.cumsum(spans)[:-1])[: len(spans)], spans) + np.arange(spans.sum())
    rows[within] = np.repeat(shares, spans, axis=0)
    return rows


def _mean_rate(
    rates: Floats,
    first: Integers,
    last: Integers,
    changes: tuple[Integers, Integers, Floats],
    busy: Integers,
    share_of_host: Floats | None,
    *,
    one_core: bool,
) -> Floats:
    """Return at which share of their speed the busy cores of a host compute on average, shape (rows,).

    Parameters
    ----------
    rates : ndarray of float64, shape (placements,)
        Cores of each placement by the share of its load.
    first, last : ndarray of int64, shape (placements,)
        The rows in which it begins and ends.
    changes : tuple of ndarray
        Rows in which placements change their speed, which placements, and the share of speed from then on.
    busy : ndarray of int64, shape (rows,)
        Busy cores.
    share_of_host : ndarray of float64, shape (rows,), or None
        Share of speed of all that runs on the host; None where each placement has its own.
    one_core : bool
        Whether no host has more than one core.
    """
    row, placement, share = changes
    if one_core and not len(row):  # sums would round
        spans = last - first
        rows = np.repeat(first - np.append(0, np.cumsum(spans)[:-1])[: len(spans)], spans) + np.arange(spans.sum())
        load = np.ones(len(busy))
        load[rows] = np.repeat(rates, spans)
        return load if share_of_host is None else load * share_of_host
    step = np.zeros(len(busy))
    if share_of_host is not None or not len(row):
        np.add.at(step, first, rates)
        np.subtract.at(step, last, rates)
    else:
        order = np.lexsort((row, placement))
        row, placement, share = row[order], placement[order], share[order]
        before = np.append(0.0, share[:-1])
        before[np.append(True, placement[1:] != placement[:-1])] = 0.0
        np.add.at(step, row, rates[placement] * (share - before))
        ends = np.append(placement[1:] != placement[:-1], True)
        np.subtract.at(step, last[placement[ends]], rates[placement[ends]] * share[ends])
    load = np.where(busy > 0, np.cumsum(step) / np.maximum(busy, 1), 1.0)
    return load if share_of_host is None else load * share_of_host


def _speed_changes(trace: Trace) -> _SpeedChanges:
    """Return each change of the speed at which a host computes.

    A node computes at the speed of the slowest one that its execution has.
    """
    nothing = np.zeros(0, dtype=np.int64)
    changes = [(nothing, np.zeros(0), np.zeros(0), nothing)]
    if trace.platform.profiles.speeds and trace.is_parallel:
        changes += _changes_of_nodes(trace)
    elif trace.platform.profiles.speeds:
        speeds = trace.speeds()
        for h in speeds.changing.tolist():
            speed = speeds.of(np.array([h]))
            assert speed is not None
            dates, shares = speed.changes(trace.horizon_s)
            changes.append((np.full(len(dates), h), dates, shares, np.full(len(dates), -1)))
    return _SpeedChanges(*map(np.concatenate, zip(*changes, strict=True)))


def _changes_of_nodes(trace: Trace) -> Iterator[tuple[Integers, Floats, Floats, Integers]]:
    """Yield nodes, dates [s], shares and placements of each execution, from its start on."""
    speeds, runs = trace.speeds(), trace.executions
    for k, (start, end) in enumerate(runs[["start", "end"]].tolist()):
        nodes = trace.hosts_of(k)
        speed, dates, shares = speeds.of(nodes), np.array([start]), np.ones(1)
        if speed is not None:
            dates, shares = speed.changes(end, start)
        n, placement = len(dates), trace.host_offsets[k] + np.arange(len(nodes))
        yield np.repeat(nodes, n), np.tile(dates, len(nodes)), np.tile(shares, len(nodes)), np.repeat(placement, n)


def _check_first_rows(trace: Trace, changes: NDArray[np.void]) -> None:
    """Raise `InputError` unless each host's changes begin at time 0."""
    hosts, first = np.unique(changes["host"], return_index=True)
    if len(hosts) != len(trace.platform) or (changes["time"][first] != 0).any():
        raise InputError(
            f"The trace's host changes need a row at time 0 for each of the platform's {len(trace.platform)} hosts."
        )


@dataclass(frozen=True)
class Bars:
    """The bars of a chart: an execution on cores of one host, or on several whole hosts in a row.

    Attributes
    ----------
    execution : ndarray of int64, shape (bars,)
    top, rows : ndarray of int64, shape (bars,)
        First row, and number of rows.
    core, cores : ndarray of int64, shape (bars,)
        First core of the host, and number of cores; 0 and 1 of whole hosts.
    """

    execution: Integers
    top: Integers
    rows: Integers
    core: Integers
    cores: Integers


def bars_of(trace: Trace, row_of: Integers | None = None) -> Bars:
    """Return a bar for each execution; of a parallel one, one for each of its runs of rows or cores.

    Parameters
    ----------
    trace : Trace
    row_of : ndarray of int64, shape (hosts,), optional
        Row in which each host is drawn; default in order of the platform.
    """
    execution, row = trace.placed()
    if row_of is not None:
        row = row_of[row]
    placement, core = core_lanes(trace)
    execution, row = execution[placement], row[placement]
    order = np.lexsort((core, row, execution))
    execution, row, core = execution[order], row[order], core[order]
    new = np.ones(len(row), dtype=bool)
    same = execution[1:] == execution[:-1]
    if len(trace.host_cores):
        new[1:] = ~(same & (row[1:] == row[:-1]) & (core[1:] == core[:-1] + 1))
    elif trace.is_parallel:
        new[1:] = ~(same & (row[1:] == row[:-1] + 1))
    first = np.flatnonzero(new)
    number, one = np.diff(np.append(first, len(row))), np.ones(len(first), dtype=np.int64)
    rows, cores = (one, number) if len(trace.host_cores) else (number, one)
    return Bars(execution[first], row[first], rows, core[first], cores)


def core_lanes(trace: Trace) -> tuple[Integers, Integers]:
    """Give everything that ran on a host its cores there, the lowest that are free.

    Returns
    -------
    placement, core : ndarray of int64, shape (placed cores,)
        A row for each core: whose it is, in the order of `Trace.placed`, and its number in the host.
    """
    execution, host = trace.placed()
    number = trace.host_cores if len(trace.host_cores) else np.ones(len(host), dtype=np.int64)
    core = np.zeros(int(number.sum()), dtype=np.int64)
    last = np.cumsum(number)
    runs, of_host = trace.executions, trace.platform.cores
    free_from: dict[int, list[float]] = {}
    for k in np.flatnonzero(of_host[host] > 1).tolist():
        run, lanes = runs[execution[k]], int(number[k])
        start, end = float(run["start"]), float(run["end"])
        ends = free_from.setdefault(int(host[k]), [0.0] * int(of_host[host[k]]))
        chosen = [lane for lane, free in enumerate(ends) if free <= start][:lanes]
        if len(chosen) < lanes:  # an end that rounding makes late
            chosen = sorted(np.argsort(ends, kind="stable")[:lanes].tolist())
        core[last[k] - lanes : last[k]] = chosen
        for lane in chosen:
            ends[lane] = end
    return np.repeat(np.arange(len(host)), number), core


def time_tolerances(times: Floats) -> Floats:
    """Return `gridsched.model.limits.time_tolerance` of each time [s]."""
    return np.where(times < 1000.0, 1e-9, 1e-12 * times)


def spread_evenly(start: Floats, end: Floats, amount: Floats, edges: Floats) -> Floats:
    """Divide amounts, each spread evenly over its stretch, among the intervals between `edges`.

    Parameters
    ----------
    start, end : ndarray of float64, shape (stretches,)
        Begin and end of each stretch [s]; one of no length counts where it begins.
    amount : ndarray of float64, shape (stretches,)
        At least 0, in any unit.
    edges : ndarray of float64, shape (intervals + 1,)
        Ascending times [s]; what lies outside them is left out. None or one: no intervals.

    Returns
    -------
    ndarray of float64, shape (intervals,)
    """
    n, length = len(edges) - 1, end - start
    if n < 1:  # a run that ended before its first period has no edges
        return np.zeros(0)
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
