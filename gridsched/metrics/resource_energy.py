"""Energy of what hosts have beside cores: GPUs, memory, any counted resource whose power the platform states.

SimGrid's energy plugin knows cores alone. So this energy follows from the records of a run by one rule, whichever
driver did it, and is shown beside that of the hosts, not in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gridsched.arrays import Floats
from gridsched.model.platform import Host
from gridsched.model.resource_types import is_type, whole_of
from gridsched.model.signals import Signal
from gridsched.model.tasks import CORES, MEMORY, WHOLE_NODE
from gridsched.model.timeline import host_timelines
from gridsched.model.trace import Trace

#: Power of memory is by 2**30 byte, and hosts have 2**20 byte of it as a unit.
_UNITS_OF_POWER = {MEMORY: 1.0 / 1024.0}
#: Rows of a timeline that are held together.
_BLOCK_ROWS = 1 << 15


@dataclass(frozen=True)
class ResourceEnergy:
    """What the resources of each computing host draw over a run [J], or in the unit of a signal.

    Attributes
    ----------
    idle_j : ndarray of float64, shape (hosts,)
        Of all units at their idle power, while the host is on.
    busy_j : ndarray of float64, shape (hosts,)
        Of the units that jobs have, above their idle power.
    execution_j : ndarray of float64, shape (executions,)
        Of the units that each execution has, at their busy power.
    """

    idle_j: Floats
    busy_j: Floats
    execution_j: Floats

    @property
    def total_j(self) -> Floats:
        """All that the resources of each host draw [J], shape (hosts,)."""
        return self.idle_j + self.busy_j


def idle_power_w(host: Host) -> float:
    """Return what all resources of a host draw that no job has [W]."""
    has = dict(host.resources)
    return sum(has[name] * _UNITS_OF_POWER.get(name, 1.0) * idle_w for name, idle_w, _ in host.unit_power)


def resource_energy(trace: Trace, signal: Signal | None = None) -> ResourceEnergy:
    """Return the energy of resources of a run, exactly, from its records and the platform alone.

    Parameters
    ----------
    trace : Trace
    signal : Signal, optional
        What joules weigh: all that is returned is then in its unit.

    Notes
    -----
    Each unit of a resource draws its idle power while its host is on (it boots then, too), its busy power while a job
    has it, and nothing while the host is off or shuts down. A job has what each of its parts asks for. Units of no
    type are of all types of the host, by their numbers, where types have power. Where jobs ask for nothing but nodes or
    cores, one that takes all of a node has all units of it. A serial task has none. Memory counts by 2**30 byte.
    """
    platform, runs = trace.platform, trace.executions
    idle_w = np.array([idle_power_w(host) for host in platform.hosts])
    idle_j = np.zeros(len(platform))
    for timeline in host_timelines(trace, _BLOCK_ROWS):
        on = timeline.is_on & (idle_w[timeline.host] > 0)
        host, begin, length = timeline.host[on], timeline.time[on], timeline.duration_s[on]
        weight = 1.0 if signal is None else signal.at_hosts(host, begin, length)
        idle_j += np.bincount(host, idle_w[host] * length * weight, len(platform))
    execution, host = trace.placed()
    begin = np.minimum(runs["start"], trace.horizon_s)[execution]
    length = np.minimum(runs["end"], trace.horizon_s)[execution] - begin
    above_w, whole_w = np.zeros(len(host)), np.zeros(len(host))
    for name in sorted({name for each in platform.hosts for name, _, _ in each.unit_power}):
        power = {h: watts for h, each in enumerate(platform.hosts) for own, *watts in each.unit_power if own == name}
        unit_w = np.array([power.get(h, (0.0, 0.0)) for h in range(len(platform))]) * _UNITS_OF_POWER.get(name, 1.0)
        units = _units(trace, name)
        above_w += units * (unit_w[:, 1] - unit_w[:, 0])[host]
        whole_w += units * unit_w[host, 1]
    weight = 1.0 if signal is None else signal.at_hosts(host, begin, length)
    seconds = length * weight
    busy_j = np.bincount(host, above_w * seconds, len(platform)).astype(np.float64)
    each_j = np.bincount(execution, whole_w * seconds, len(runs)).astype(np.float64)
    return ResourceEnergy(idle_j, busy_j, each_j)


def _units(trace: Trace, name: str) -> Floats:
    """Return how many units of a resource each execution has on each of its hosts, shape (placements,)."""
    tasks, platform = trace.tasks, trace.platform
    execution, host = trace.placed()
    if not trace.is_parallel:
        return np.zeros(len(host))
    has, of_type = (
        np.array(each, dtype=np.float64) for each in zip(*(_has(h, name) for h in platform.hosts), strict=True)
    )
    if tasks.resources in ((WHOLE_NODE,), (CORES,)):
        whole = trace.host_cores == platform.cores[host] if len(trace.host_cores) else np.ones(len(host), dtype=bool)
        return np.where(whole, has[host], 0.0)
    demand = tasks.demand[trace.executions["task"][execution]]
    asked = dict(zip(tasks.resources, demand.T, strict=True))
    units = asked.get(name, np.zeros(len(host)))
    if is_type(name):
        typed = [each for other, each in asked.items() if is_type(other) and whole_of(other) == whole_of(name)]
        # units of no type are of all types that the host has, by their numbers
        units = units + (asked.get(whole_of(name), 0.0) - sum(typed)) * of_type[host]
    found: Floats = trace.host_cores / asked[CORES] * units
    return found


def _has(host: Host, name: str) -> tuple[int, float]:
    """Return how many units of a resource or type a host has, and which share these are of the resource."""
    has = dict(host.resources)
    return has.get(name, 0), has.get(name, 0) / max(has.get(whole_of(name), 0), 1)
