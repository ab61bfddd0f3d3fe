"""Power and energy: the formulas, and the exact integration of a trace. No simulator.

Everything here is computed from the records of a run and the platform's wattages alone, so that
SimGrid's energy plugin can be checked against it. Power is piecewise constant: it changes when an
execution starts or ends, when a host changes its P-state, and when it is switched on or off.

The parts of a host's energy:

======== =====================================================================================
busy     all it draws while at least one core is busy
idle     what it draws while it is on, has booted, and no core is busy
boot     what it draws from being switched on until it takes tasks
shutdown what it draws from being switched off until it is off
off      what it draws while switched off, when it has shut down
======== =====================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from gridsched.arrays import Floats, Integers
from gridsched.model.signals import Signal
from gridsched.model.timeline import HostTimeline, spread_evenly
from gridsched.model.trace import Trace
from gridsched.power import GridPower, GridTotal, TracePower, power_blocks, trace_power


def task_energy(flops: ArrayLike, efficiency: ArrayLike) -> Floats:
    """Energy of tasks on one-core hosts [J], paper 004 eq. 1: ``ecTask_ij = w_i / eps_j``.

    Parameters
    ----------
    flops : array_like
        Work [flop].
    efficiency : array_like
        Efficiency of the host [flop/J], that is (flop/s)/W; broadcast against `flops`.
    """
    return np.asarray(flops, dtype=np.float64) / np.asarray(efficiency, dtype=np.float64)


def host_energy_004(task_energies_j: ArrayLike, idle_time_s: float, idle_w: float) -> float:
    """Energy of one host [J], paper 004 eq. 2: its tasks' energy, and its idle power while idle.

    Parameters
    ----------
    task_energies_j : array_like
        Energy of each task it ran [J].
    idle_time_s : float
        Time within the makespan in which it is on and runs nothing [s].
    idle_w : float
        Idle power [W].
    """
    return float(np.sum(task_energies_j) + idle_time_s * idle_w)


def total_energy(host_energies_j: ArrayLike) -> float:
    """Energy of the grid [J], paper 004 eq. 3: the sum over its hosts."""
    return float(np.sum(host_energies_j))


def link_energy(
    wattage: Mapping[str, tuple[float, float]],
    bandwidth: Mapping[str, float],
    link_bytes: Mapping[str, float],
    end_s: float,
) -> dict[str, float]:
    """Energy of links until the end of a run [J]: idle power all the time, and the rest by what they carry.

    Power is linear in what a link carries at each moment, as SimGrid's link energy plugin has it (A.-C. Orgerie,
    B. Amersho, T. Haudebourg, M. Quinson, M. Rifai, D. Lopez Pacheco, L. Lefevre, "Simulation toolbox for studying
    energy consumption in wired networks", CNSM 2017). So the bytes decide alone, whenever they are sent.

    Parameters
    ----------
    wattage : mapping of str to (float, float)
        Power of a link that carries nothing, and of one that carries all it can [W].
    bandwidth : mapping of str to float
        [byte/s]
    link_bytes : mapping of str to float
        What each has carried [byte].
    end_s : float
        [s]
    """
    return {
        link: idle_w * end_s + (busy_w - idle_w) * link_bytes.get(link, 0.0) / bandwidth[link]
        for link, (idle_w, busy_w) in wattage.items()
    }


def energy_inside(start: float, run_time: float, energy: float, end: float) -> float:
    """Share of a task's energy that falls before a period's end [J] (algorithms B7).

    Parameters
    ----------
    start, run_time : float
        When the task starts and how long it runs [s].
    energy : float
        Its whole energy [J].
    end : float
        End of the period [s].
    """
    if start >= end:
        return 0.0
    if start + run_time <= end:
        return energy
    return energy * ((end - start) / run_time)


def counted_inside(start: float, run_time: float, energy: float, end: float, weights: Signal) -> float:
    """Return what a task's energy before a period's end counts in the budget [J].

    Parameters
    ----------
    start, run_time, energy, end : float
        As for `energy_inside`.
    weights : Signal
        What a joule counts, by the time at which it is drawn.
    """
    if start >= end:
        return 0.0
    inside_j = energy_inside(start, run_time, energy, end)
    return inside_j * float(weights.mean(start, min(run_time, end - start)))


def relative_difference(first_j: ArrayLike, second_j: ArrayLike) -> Floats:
    """Difference of `first_j` and `second_j` [J], relative to the larger; nan if one is nan.

    It is 0 if both are 0.
    """
    first, second = np.asarray(first_j, dtype=np.float64), np.asarray(second_j, dtype=np.float64)
    larger = np.maximum(np.abs(first), np.abs(second))
    return np.abs(first - second) / np.where(larger == 0, 1.0, larger)


class HostEnergyRow(TypedDict):
    """Energy [J] of a host by the plugin and by the model; of all computing hosts, as ``total``."""

    host: str
    role: str
    plugin_j: float
    model_j: float
    relative_difference: float
    tolerance: float


#: Relative difference of joules by plugin and model that is allowed for rounding.
ENERGY_TOLERANCE = 1e-9
#: How much later or earlier SimGrid may have each event [s]: its ``precision/timing``, of which a plugin knows nothing.
_EVENT_S = 1e-9


@dataclass(frozen=True)
class HostEnergy:
    """Energy of each host over [0, horizon]: computing hosts first, then the others.

    Every array but the last has shape (hosts,); all are in joules, and nan where no power is
    known. `busy_j`, `idle_j`, `boot_j`, `shutdown_j` and `off_j` sum to `total_j`; `wasted_j`
    is a part of `busy_j`.

    Attributes
    ----------
    names, roles : tuple of str
        Role ``computing``, ``master`` or ``unused``; the last two are always on and idle in
        the P-state that their file specifies, and are left out of the grid's totals.
    total_j : ndarray of float64
    busy_j : ndarray of float64
        All the host draws while at least one core is busy: on one-core hosts eq. 1 of paper 004.
    idle_j : ndarray of float64
        While it is on, has booted, and no core is busy.
    boot_j, shutdown_j : ndarray of float64
        While it boots or shuts down: `Host.boot_w`, `Host.shutdown_w`, or its idle power.
    off_j : ndarray of float64
        While it is switched off and has shut down.
    above_idle_j : ndarray of float64
        What it draws above its idle power: the sum of `task_energy_j` of its executions.
    wasted_j : ndarray of float64
        Share of `busy_j` that went into executions which did not finish their task.
    execution_j : ndarray of float64, shape (executions,)
        `busy_energy_j` of each execution.
    """

    names: tuple[str, ...]
    roles: tuple[str, ...]
    total_j: Floats
    busy_j: Floats
    idle_j: Floats
    boot_j: Floats
    shutdown_j: Floats
    off_j: Floats
    above_idle_j: Floats
    wasted_j: Floats
    execution_j: Floats

    def __len__(self) -> int:
        return len(self.names)

    @property
    def n_computing(self) -> int:
        """Number of computing hosts; they are the first ones."""
        return self.roles.count("computing")

    def grid_total(self, part: str = "total_j") -> float:
        """Sum of one of the arrays over the computing hosts [J] (paper 004 eq. 3)."""
        return total_energy(getattr(self, part)[: self.n_computing])


def _sum_by_host(values: Floats, host: Integers, sums: Floats) -> None:
    """Sum `values` by ascending `host` into `sums`; pairwise: running sums lose digits over long runs."""
    if len(values):
        present, first = np.unique(host, return_index=True)
        sums[present] = np.add.reduceat(values, first)


def _share_by_placement(timeline: HostTimeline, joules: Floats) -> Floats:
    """Divide each row's `joules` evenly among the cores that are busy in it [J].

    Parameters
    ----------
    timeline : HostTimeline
    joules : ndarray of float64, shape (rows of the timeline,)

    Returns
    -------
    ndarray of float64, shape (placements,)
        Of each execution on each of its hosts; see `Trace.placed`.
    """
    count = len(timeline.first)
    if not count:
        return np.zeros(0)
    each = joules / np.maximum(timeline.busy_cores, 1)
    beginning = np.full(len(each), -1)
    beginning[timeline.first] = np.arange(count)
    order = beginning[beginning >= 0]  # by their first rows: keeps the sums between them short
    pairs = np.stack([timeline.first[order], timeline.last[order]], axis=1).ravel()
    shares = np.empty(count)
    shares[order] = np.add.reduceat(each, pairs)[::2]
    return shares if timeline.cores is None else shares * timeline.cores


def _share_by_execution(trace: Trace, shares: Floats) -> Floats:
    """Sum the shares of an execution on its hosts [J], shape (executions,)."""
    if not trace.is_parallel or not len(shares):
        return shares
    return np.add.reduceat(shares, trace.host_offsets[:-1])


def task_energy_j(trace: Trace) -> Floats:
    """Energy of each execution above the idle power of its host [J], shape (executions,).

    What a host with b busy cores draws above its idle power is shared evenly by the b cores.
    On each host these shares, its idle power while it is on, and its power while it is off sum
    to its total.
    """
    power = trace_power(trace)
    return _share_by_execution(trace, _share_by_placement(power.timeline, power.above_idle_j))


def busy_energy_j(trace: Trace) -> Floats:
    """Energy of each execution with its share of the idle power [J], shape (executions,).

    All a host with b busy cores draws is shared evenly by the b cores. On one-core hosts
    this is `task_energy` (paper 004 eq. 1). The shares sum to `HostEnergy.busy_j`.
    """
    power = trace_power(trace)
    return _share_by_execution(trace, _share_by_placement(power.timeline, power.joules))


def energy_and_power(trace: Trace, power: TracePower | None = None) -> tuple[HostEnergy, GridPower]:
    """Return `trace_energy` and `grid_power` of a trace, which is cut into its stretches once for both.

    Parameters
    ----------
    trace : Trace
    power : TracePower, optional
        As for `trace_energy`.
    """
    total = GridTotal(trace)
    return trace_energy(trace, power, watch=total.add), total.result(power)


def trace_energy(
    trace: Trace,
    power: TracePower | None = None,
    signal: Signal | None = None,
    *,
    watch: Callable[[TracePower], None] | None = None,
) -> HostEnergy:
    """Integrate the power of every host over [0, `Trace.horizon_s`], exactly.

    Parameters
    ----------
    trace : Trace
    power : TracePower, optional
        `trace_power` of the trace, where the caller has it already.
    signal : Signal, optional
        What joules weigh: all that is returned is then in its unit.
    watch : callable, optional
        Given each of the `power_blocks`.

    Returns
    -------
    HostEnergy

    Raises
    ------
    InputError
        If a host has no row at time 0 in `Trace.host_changes`.

    Notes
    -----
    Of the trace only times, hosts, P-states and outcomes are used; nothing of SimGrid's meter.
    """
    platform, n = trace.platform, len(trace.platform)
    parts, shares = np.zeros((7, n)), np.empty(len(trace.placed_hosts))
    for each in power_blocks(trace, power):
        if watch is not None:
            watch(each)
        block = each if signal is None else replace(each, signal=signal)
        timeline = block.timeline
        shares[timeline.placements] = _share_by_placement(timeline, block.joules)
        for rows, part in zip(timeline.states, parts, strict=False):
            if rows.any():
                _sum_by_host(np.where(rows, block.joules, 0.0), timeline.host, part)
        if (is_busy := timeline.is_busy).any():
            _sum_by_host(np.where(is_busy, block.above_idle_j, 0.0), timeline.host, parts[5])
    _wasted(trace, shares, parts[6])
    total = parts[0] + parts[1] + parts[2] + parts[3] + parts[4]
    others = platform.idle_hosts_named
    rest = np.array([host.pstates[host.pstate].unused_w * trace.horizon_s for _, host in others])
    if signal is not None:
        rest *= [signal.mean_at_host(host, 0.0, trace.horizon_s) for host in range(n, len(rest) + n)]
    if not platform.has_energy:
        rest[:] = np.nan
    nothing = np.zeros(len(others))
    busy, idle, boot, shutdown, off, above, wasted = (np.append(part, nothing) for part in parts)
    idle[n:] = rest
    return HostEnergy(
        names=tuple(host.name for host in platform.hosts) + tuple(h.name for _, h in others),
        roles=("computing",) * n + tuple(role for role, _ in others),
        total_j=np.append(total, rest),
        busy_j=busy,
        idle_j=idle,
        boot_j=boot,
        shutdown_j=shutdown,
        off_j=off,
        above_idle_j=above,
        wasted_j=wasted,
        execution_j=_share_by_execution(trace, shares),
    )


def _wasted(trace: Trace, shares: Floats, wasted_j: Floats) -> None:
    """Sum by host what went into executions that did not finish their task [J], shape (hosts,)."""
    useful = trace.was_useful
    if not useful.all():
        execution, placed = trace.placed()
        order = np.argsort(placed, kind="stable")
        each = np.where(useful[execution], 0.0, shares)
        _sum_by_host(each[order], placed[order], wasted_j)


def grid_energy_between(trace: Trace, edges: Floats, power: TracePower | None = None) -> Floats:
    """Energy of all computing hosts between one time and the next [J], exact.

    Parameters
    ----------
    trace : Trace
    edges : ndarray of float64, shape (intervals + 1,)
        Ascending times [s]; nothing is drawn before 0 and after `Trace.horizon_s`.
    power : TracePower, optional
        As for `trace_energy`.

    Returns
    -------
    ndarray of float64, shape (intervals,)
    """
    power = trace_power(trace) if power is None else power
    timeline, some = power.timeline, power.joules != 0.0
    return spread_evenly(timeline.time[some], timeline.end[some], power.joules[some], edges)


def carried_over_energy(trace: Trace, power: TracePower | None = None) -> Floats:
    """Energy that executions from before each period drew in it, shape (periods,) [J].

    All a host draws is shared evenly by what runs there (algorithms B7), and counts as the
    trace's `energy_weights` say.
    """
    carried = np.zeros(len(trace.periods))
    power = trace_power(trace) if power is None else power
    timeline, runs = power.timeline, trace.executions
    each, (execution, _) = power.joules / np.maximum(timeline.busy_cores, 1), trace.placed()
    for k, (begin, end) in enumerate(trace.periods[["start", "end"]].tolist()):
        over = ((runs["start"] < begin) & (runs["end"] > begin))[execution]
        if over.any():
            cores = trace.host_cores[over] if len(trace.host_cores) else None
            steps = np.bincount(timeline.first[over], cores, len(each) + 1)
            steps -= np.bincount(timeline.last[over], cores, len(each) + 1)
            count = np.cumsum(steps)[: len(each)]
            for signal, rows in trace.energy_weights.by_site(timeline.host):
                edges, weights = signal.stretches(begin, end)
                carried[k] += spread_evenly(timeline.time, timeline.end, each * count * rows, edges) @ weights
    return carried


def compare_energy(
    trace: Trace, plugin_j: Mapping[str, float], energy: HostEnergy | None = None
) -> list[HostEnergyRow]:
    """Compare the plugin's joules, by host name, with the model's of a trace, host by host.

    Parameters
    ----------
    trace : Trace
    plugin_j : mapping
        Energy of each metered host by SimGrid's plugin [J].
    energy : HostEnergy, optional
        `trace_energy` of the trace, where the caller has it already.

    Returns
    -------
    list of dict
        For each metered host: ``host``, ``role``, ``plugin_j``, ``model_j`` [J] and
        ``relative_difference`` and ``tolerance``, the most of it that is allowed; then a row ``total`` of the
        computing hosts.

    Notes
    -----
    A relative 1e-9 is allowed for rounding, and for SimGrid's clock 1e-9 s at the greatest power of the host for
    each event there. The latter counts where tasks take less than a second.
    """
    energy = trace_energy(trace) if energy is None else energy
    columns = energy.names, energy.roles, energy.total_j.tolist(), _clock_j(trace).tolist()
    metered = [
        (name, role, plugin_j[name], model, clock_j)
        for name, role, model, clock_j in zip(*columns, strict=True)
        if name in plugin_j
    ]
    computing = [row for row in metered if row[1] == "computing"]
    plugin_total = float(sum(row[2] for row in computing))
    model_total = float(sum(row[3] for row in computing))
    metered.append(("total", "computing", plugin_total, model_total, float(sum(row[4] for row in computing))))
    differences = relative_difference([row[2] for row in metered], [row[3] for row in metered]).tolist()
    return [
        {
            "host": host,
            "role": role,
            "plugin_j": plugin,
            "model_j": model,
            "relative_difference": difference,
            "tolerance": ENERGY_TOLERANCE + clock_j / (max(plugin, model) or 1.0),
        }
        for (host, role, plugin, model, clock_j), difference in zip(metered, differences, strict=True)
    ]


def _clock_j(trace: Trace) -> Floats:
    """Return by how much the precision of SimGrid's clock can change the energy of each host [J], shape (hosts,).

    Computing hosts come first, then the others. An execution begins and ends, and a run ends; the records of host
    changes have its begin.
    """
    everyone = trace.platform.everyone
    n_events = 2 * np.bincount(trace.placed_hosts, minlength=len(everyone))
    n_events += np.bincount(trace.host_changes["host"], minlength=len(everyone)) + 1
    most_w = np.array([max(pstate.busy_w for pstate in host.pstates) for host in everyone])
    return np.asarray(_EVENT_S * n_events * most_w)
