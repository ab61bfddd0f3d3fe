"""What every host draws now, by the power model: host by host, or in blocks of nodes; a cap."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.engine.decision_validator import Refusal
from gridsched.engine.execution import Command, Execution
from gridsched.engine.run_state import RunState
from gridsched.errors import InputError
from gridsched.model.platform import Platform
from gridsched.policy.base import Scheduler
from gridsched.policy.state import PowerState
from gridsched.power import host_power


class HostPowers(ABC):
    """The sum of all hosts' powers, kept up to date.

    Parameters
    ----------
    platform : Platform
    run : RunState

    Attributes
    ----------
    total_w : float
        What all hosts draw now [W].
    """

    _watts: Any  # a list, or an array where blocks of it change

    def __init__(self, platform: Platform, run: RunState) -> None:
        self._platform = platform
        self._run = run
        self._off_w = [host.off_w for host in platform.hosts]
        self._watts = [self._power_of(host) for host in range(len(platform))]
        self.total_w = math.fsum(self._watts)

    @property
    def watts(self) -> Floats:
        """What each host draws now [W], shape (hosts,)."""
        return np.asarray(self._watts)

    def _power_of(self, host: int) -> float:
        run = self._run
        if host in run.switching_w:
            return run.switching_w[host]
        return self._power_on(host) if run.is_on[host] else self._off_w[host]

    @abstractmethod
    def _power_on(self, host: int) -> float:
        """Return what a host draws that is on and neither boots nor shuts down otherwise [W]."""

    def changed(self, host: int) -> None:
        """Follow a host that began or ended something, changed its P-state, or was switched."""
        watts = self._power_of(host)
        self.total_w += watts - float(self._watts[host])
        self._watts[host] = watts

    @abstractmethod
    def began(self, execution: Execution) -> None:
        """Follow an execution that computes from now on."""

    @abstractmethod
    def ended(self, execution: Execution) -> None:
        """Follow an execution that ended, perhaps while it waited for its input files."""

    @abstractmethod
    def set_speed(self, host: int, share: float) -> None:
        """Follow a host that has another share of its P-state's speed from now on."""

    def sum_anew(self) -> None:
        """Forget what rounding has added up."""
        self.total_w = math.fsum(self._watts)


def host_powers(platform: Platform, run: RunState) -> HostPowers:
    """Return the present powers of the hosts of a run of serial or of parallel tasks."""
    kind = PowersOfHosts if run.nodes is None else PowersOfNodes
    return kind(platform, run)


class PowersOfHosts(HostPowers):
    """Powers of hosts of any number of cores, one host at a time."""

    def __init__(self, platform: Platform, run: RunState) -> None:
        #: power [W] by (host, P-state, busy cores at its full speed), filled when first asked for
        self._power: dict[tuple[int, int, float], float] = {}
        #: share of its P-state's speed that a host has, where it is another than the whole
        self._speed: dict[int, float] = {}
        self._computing = [sum(each.has_begun for each in run.running.get(host, ())) for host in range(len(platform))]
        super().__init__(platform, run)

    def _power_on(self, host: int) -> float:
        pstate, platform = self._run.pstate[host], self._platform
        place = (host, pstate, self._computing[host] * self._speed.get(host, 1.0))
        watts = self._power.get(place)
        if watts is None:
            watts = self._power[place] = float(
                host_power(
                    place[2],
                    platform.cores[host],
                    platform.idle_w[host, pstate],
                    platform.epsilon_w[host, pstate],
                    platform.busy_w[host, pstate],
                )
            )
        return watts

    def set_speed(self, host: int, share: float) -> None:
        """Follow a host that has another share of its P-state's speed from now on."""
        self._speed[host] = share
        self.changed(host)

    def began(self, execution: Execution) -> None:
        """Follow an execution that computes from now on."""
        self._computing[execution.host] += 1
        self.changed(execution.host)

    def ended(self, execution: Execution) -> None:
        """Follow an execution that ended, perhaps while it waited for its input files."""
        self._computing[execution.host] -= execution.has_begun
        self.changed(execution.host)


class PowersOfNodes(HostPowers):
    """Powers of nodes, which are hosts of one core, all those of an execution together."""

    def __init__(self, platform: Platform, run: RunState) -> None:
        #: share of its P-state's speed that each node has
        self._share = np.ones(len(platform))
        self._idle_w = platform.idle_w
        self._busy_w = host_power(1, 1, platform.idle_w, platform.epsilon_w, platform.busy_w)
        super().__init__(platform, run)
        self._watts = np.array(self._watts)

    def _power_on(self, host: int) -> float:
        table = self._busy_w if self._run.is_busy(host) else self._idle_w
        return table.item(host, self._run.pstate[host])

    def began(self, execution: Execution) -> None:
        """Follow an execution that computes from now on."""
        self._draw(execution.nodes, self._loaded(execution.nodes, execution.pstate))

    def ended(self, execution: Execution) -> None:
        """Follow an execution that ended."""
        self._draw(execution.nodes, self._idle_w[execution.nodes, execution.pstate])

    def set_speed(self, host: int, share: float) -> None:
        """Follow a node that has another share of its P-state's speed from now on."""
        self._share[host] = share
        for execution in self._run.executing():
            if host in execution.nodes:
                self.began(execution)

    def _loaded(self, hosts: Integers, pstate: int) -> Floats:
        """Return what nodes draw that compute together, at the speed of the slowest [W]."""
        share, platform = self._share[hosts].min(), self._platform
        if share == 1.0:
            return self._busy_w[hosts, pstate]
        return host_power(
            share, 1, platform.idle_w[hosts, pstate], platform.epsilon_w[hosts, pstate], platform.busy_w[hosts, pstate]
        )

    def _draw(self, hosts: Integers, watts: Floats) -> None:
        self.total_w += float(watts.sum() - self._watts[hosts].sum())
        self._watts[hosts] = watts


class PowerCap:
    """Holds a run to a limit on the power of all its hosts together.

    Parameters
    ----------
    cap_w : float
        [W].
    powers : HostPowers
        What the hosts draw; only read.
    platform : Platform

    Raises
    ------
    InputError
        If the hosts draw more than the cap before anything runs.
    """

    def __init__(self, cap_w: float, powers: HostPowers, platform: Platform) -> None:
        self._cap_w = cap_w
        self._powers = powers
        if self._is_exceeded():
            raise InputError(
                f"power_cap_w is {cap_w:g} W, but the hosts of {platform.name} draw "
                f"{powers.total_w:g} W before anything runs. Raise the cap, or switch hosts off "
                "(--hosts-off)."
            )

    def refusal(self, commands: Iterable[Command], scheduler: Scheduler) -> Refusal | None:
        """Say why what happened in an instant draws too much.

        Parameters
        ----------
        commands : iterable of Command
            What began in it; the message names the last execution.
        scheduler : Scheduler
        """
        if not self._is_exceeded():
            return None
        self._powers.sum_anew()
        if not self._is_exceeded():
            return None
        why = f"the hosts would draw {self._powers.total_w:.6g} W, and the cap (power_cap_w) is {self._cap_w:.6g} W"
        if not scheduler.traits.heeds_power_cap:
            why += "; this scheduler heeds no cap, power_capped_mct does"
        begun = [each for each in commands if isinstance(each, Execution)]
        return (why, begun[-1].task, begun[-1].host) if begun else (why, None, None)

    def _is_exceeded(self) -> bool:
        return not PowerState(self._powers.total_w, self._cap_w).allows(0.0).item()
