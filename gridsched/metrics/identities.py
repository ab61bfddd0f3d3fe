"""What holds of every run without randomness, computed from its records in two ways each.

Little's law: the integral over time of how many tasks wait is the sum of their waiting times. Energy of
equal hosts: what all draw that idle for the whole run, and what computing adds for the time that cores
compute.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gridsched.arrays import distinct
from gridsched.energy import HostEnergy, relative_difference
from gridsched.metrics.run_metrics import busy_time_s
from gridsched.model.trace import Trace

#: Both ways of each sum many numbers.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Identity:
    """One amount, computed in two ways.

    Attributes
    ----------
    name : str
    unit : str
    direct, other : float
        From the records of tasks or hosts one by one, and by the law.
    why_not : str
        Why it is not held against this run; empty where it is.
    """

    name: str
    unit: str
    direct: float = np.nan
    other: float = np.nan
    why_not: str = ""

    @property
    def relative_difference(self) -> float:
        """Difference of both over the larger; nan where it is not held."""
        return float(relative_difference(self.direct, self.other))

    @property
    def fails(self) -> bool:
        """Whether it is held, and both differ by more than `TOLERANCE` relative."""
        return not self.why_not and not self.relative_difference <= TOLERANCE


def littles_law(trace: Trace) -> Identity:
    """Return the sum of waiting times, and the integral of how many tasks wait, by time [s].

    Of tasks that started once; for a task that starts again the records do not show how long it waited
    between.
    """
    name, runs = "Little's law", trace.executions
    times_started = np.bincount(runs["task"], minlength=len(trace.tasks))
    if not (times_started == 1).any():
        return Identity(name, "s", why_not="no task started just once")
    once = runs[times_started[runs["task"]] == 1]
    submitted, started = trace.tasks.submit_time_s[once["task"]], once["start"]
    changes = np.concatenate([submitted, started])
    steps = np.repeat([1, -1], len(once))
    order = np.argsort(changes, kind="stable")
    waiting = np.cumsum(steps[order])
    by_time = float(np.sum(waiting[:-1] * np.diff(changes[order])))
    return Identity(name, "s", float(np.sum(started - submitted)), by_time)


def energy_of_busy_time(trace: Trace, energy: HostEnergy) -> Identity:
    """Return the energy of equal hosts [J], summed host by host, and by the time that their cores compute."""
    name, platform = "energy by busy time", trace.platform
    why = _why_not_by_busy_time(trace)
    if why:
        return Identity(name, "J", why_not=why)
    state = platform.hosts[0].pstates[int(trace.host_changes["pstate"][0])]
    idle_j = state.idle_w * len(platform) * trace.horizon_s
    added_w = (state.busy_w - state.idle_w) / platform.hosts[0].cores
    return Identity(name, "J", energy.grid_total(), idle_j + added_w * busy_time_s(trace))


def _why_not_by_busy_time(trace: Trace) -> str:
    """Return why energy does not follow from busy time alone; empty where it does."""
    hosts, changes = trace.platform.hosts, trace.host_changes
    first = hosts[0]
    if any(host.pstates != first.pstates or host.cores != first.cores for host in hosts):
        return "hosts differ"
    if not trace.platform.has_energy:
        return "no host has power"
    if not changes["is_on"].all():
        return "hosts are switched, or go down"
    if len(distinct(changes["pstate"])) > 1:
        return "hosts change their P-states"
    state = first.pstates[int(changes["pstate"][0])]
    if first.cores > 1 and state.epsilon_w != state.idle_w:
        return "a host draws more as soon as one of its cores computes"
    if len(trace.load) or len(trace.computed) or trace.platform.profiles.speeds:
        return "tasks have loads, or hosts speeds, of their own"
    return ""


def identities_of(trace: Trace, energy: HostEnergy) -> tuple[Identity, ...]:
    """Return all of them for a run.

    Parameters
    ----------
    trace : Trace
    energy : HostEnergy
        `trace_energy` of the trace.
    """
    return littles_law(trace), energy_of_busy_time(trace, energy)
