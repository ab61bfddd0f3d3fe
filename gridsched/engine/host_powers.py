"""What every host draws now, by the power model: host by host, or in blocks of nodes."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gridsched.energy import host_power
from gridsched.engine.execution import Execution
from gridsched.engine.ledger import Ledger
from gridsched.model.platform import Platform


class HostPowers(Protocol):
    """The sum of all hosts' powers, kept up to date.

    Attributes
    ----------
    total_w : float
        What all hosts draw now [W].
    """

    total_w: float

    def changed(self, host: int) -> None:
        """Follow a host that changed its P-state or was switched."""

    def began(self, execution: Execution) -> None:
        """Follow an execution that computes from now on."""

    def ended(self, execution: Execution) -> None:
        """Follow an execution that ended, perhaps while it waited for its input files."""

    def set_speed(self, host: int, share: float) -> None:
        """Follow a host that has another share of its P-state's speed from now on."""

    def sum_anew(self) -> None:
        """Forget what rounding has added up."""


def host_powers(platform: Platform, ledger: Ledger) -> HostPowers:
    """Return the present powers of the hosts of a run of serial or of parallel tasks."""
    if ledger.nodes is not None:
        return PowersOfNodes(platform, ledger)
    return PowersOfHosts(platform, ledger)


class PowersOfHosts:
    """Powers of hosts of any number of cores, one host at a time.

    Parameters
    ----------
    platform : Platform
    ledger : Ledger
    """

    def __init__(self, platform: Platform, ledger: Ledger) -> None:
        self._platform = platform
        self._ledger = ledger
        #: power [W] by (host, P-state, busy cores at its full speed), filled when first asked for
        self._power: dict[tuple[int, int, float], float] = {}
        #: share of its P-state's speed that a host has, where it is another than the whole
        self._speed: dict[int, float] = {}
        self._computing = [
            sum(each.has_begun for each in ledger.running.get(host, ()))
            for host in range(len(platform))
        ]
        self._off_w = [host.off_w for host in platform.hosts]
        self._watts = [self._power_of(host) for host in range(len(platform))]
        self.total_w = 0.0
        self.sum_anew()

    def _power_of(self, host: int) -> float:
        ledger = self._ledger
        if host in ledger.switching_w:
            return ledger.switching_w[host]
        if not ledger.is_on[host]:
            return self._off_w[host]
        place = (host, ledger.pstate[host], self._computing[host] * self._speed.get(host, 1.0))
        watts = self._power.get(place)
        if watts is None:
            watts = self._power[place] = self._power_in(*place)
        return watts

    def _power_in(self, host: int, pstate: int, busy_cores: float) -> float:
        platform = self._platform
        return float(host_power(
            busy_cores, platform.cores[host], platform.idle_w[host, pstate],
            platform.epsilon_w[host, pstate], platform.busy_w[host, pstate],
        ))  # fmt: skip

    def changed(self, host: int) -> None:
        """Follow a host that began or ended something, changed its P-state, or was switched."""
        watts = self._power_of(host)
        self.total_w += watts - self._watts[host]
        self._watts[host] = watts

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

    def sum_anew(self) -> None:
        """Forget what rounding has added up."""
        self.total_w = math.fsum(self._watts)


class PowersOfNodes:
    """Powers of nodes, which are hosts of one core, all those of an execution together.

    Parameters
    ----------
    platform : Platform
    ledger : Ledger
    """

    def __init__(self, platform: Platform, ledger: Ledger) -> None:
        self._ledger = ledger
        self._off_w = np.array([host.off_w for host in platform.hosts], dtype=np.float64)
        self._platform = platform
        #: share of its P-state's speed that each node has
        self._share = np.ones(len(platform))
        self._idle_w = platform.idle_w
        self._busy_w = host_power(
            1, 1, platform.idle_w, platform.epsilon_w, platform.busy_w
        )  # fmt: skip
        hosts = np.arange(len(platform))
        idle: NDArray[np.float64] = self._idle_w[hosts, ledger.pstates]
        self._watts = np.where(ledger.switched_on, idle, self._off_w)
        for host, watts in ledger.switching_w.items():
            self._watts[host] = watts
        self.total_w = 0.0
        for execution in ledger.executing():
            self.began(execution)
        self.sum_anew()

    def changed(self, host: int) -> None:
        """Follow a node that changed its P-state or was switched."""
        ledger = self._ledger
        watts = self._off_w.item(host)
        if host in ledger.switching_w:
            watts = ledger.switching_w[host]
        elif ledger.is_on[host]:
            table = self._busy_w if ledger.is_busy(host) else self._idle_w
            watts = table.item(host, ledger.pstate[host])
        self.total_w += watts - self._watts.item(host)
        self._watts[host] = watts

    def began(self, execution: Execution) -> None:
        """Follow an execution that computes from now on."""
        assert execution.hosts is not None
        self._draw(execution.hosts, self._loaded(execution.hosts, execution.pstate))

    def ended(self, execution: Execution) -> None:
        """Follow an execution that ended."""
        assert execution.hosts is not None
        self._draw(execution.hosts, self._idle_w[execution.hosts, execution.pstate])

    def set_speed(self, host: int, share: float) -> None:
        """Follow a node that has another share of its P-state's speed from now on."""
        self._share[host] = share
        for execution in self._ledger.executing():
            if execution.hosts is not None and host in execution.hosts:
                self.began(execution)

    def _loaded(self, hosts: NDArray[np.int64], pstate: int) -> NDArray[np.float64]:
        """Return what nodes draw that compute together, at the speed of the slowest [W]."""
        share, platform = self._share[hosts].min(), self._platform
        if share == 1.0:
            return self._busy_w[hosts, pstate]
        return host_power(
            share, 1, platform.idle_w[hosts, pstate], platform.epsilon_w[hosts, pstate],
            platform.busy_w[hosts, pstate],
        )  # fmt: skip

    def _draw(self, hosts: NDArray[np.int64], watts: NDArray[np.float64]) -> None:
        self.total_w += float(watts.sum() - self._watts[hosts].sum())
        self._watts[hosts] = watts

    def sum_anew(self) -> None:
        """Forget what rounding has added up."""
        self.total_w = math.fsum(self._watts.tolist())
