"""Which of the jobs that a queue would start a cap on power admits."""

from __future__ import annotations

import numpy as np

from gridsched.arrays import Floats, Integers, distinct
from gridsched.model.system import System
from gridsched.policy.decisions import Allocate
from gridsched.policy.state import PowerState, SharedNodesState, State
from gridsched.power import host_power


class PowerRoom:
    """The watts that a cap leaves to the jobs that start in an instant, in their order.

    Parameters
    ----------
    system : System

    Attributes
    ----------
    is_full : bool
        Whether a job has found too few watts since the last look: none that comes behind it starts then.

    Notes
    -----
    A job that starts takes what its hosts draw more with it than without: of shared nodes what its cores add, and what
    a node draws from its first busy core on. Nothing is reserved ahead. A job that the cap puts off waits until enough
    of what runs has ended, and none behind it in the queue overtakes it meanwhile.
    """

    def __init__(self, system: System) -> None:
        platform = system.platform
        self.is_full = False
        self._cores, self._pstates = platform.cores, system.pstates
        self._tables = platform.idle_w, platform.epsilon_w, platform.busy_w
        idle_w = platform.idle_w[np.arange(len(platform)), system.pstates]
        boot_w = np.array([np.inf if host.boot_w is None else host.boot_w for host in platform.hosts])
        #: what each host draws more once it has booted [W]
        self._more_booted_w = np.maximum(idle_w - boot_w, 0.0)

    def look(self, state: State) -> None:
        """Take over what the hosts draw now, before anything starts."""
        self._state, self.is_full = state, False
        self._busy, self._pstate = self._cores - state.free_cores, state.pstate.copy()
        boots = state.is_on & (self._busy == 0) & ~state.nodes.free
        self._power = PowerState(state.power.draw_w + float(self._more_booted_w[boots].sum()), state.power.cap_w)

    def admitted(self, state: State, starts: list[Allocate]) -> list[Allocate]:
        """Return those of the starts, which are in their order, that come before the first without enough watts."""
        self.look(state)
        return [each for each in starts if self.takes(each)]

    def takes(self, start: Allocate) -> bool:
        """Whether a job may start on its hosts; if so, it has its watts from now on."""
        if self.is_full:
            return False
        state, hosts = self._state, distinct(start.hosts)
        if isinstance(state.nodes, SharedNodesState):
            parts = np.searchsorted(hosts, start.hosts)
            cores = np.bincount(parts, minlength=len(hosts)) * state.parts.demand.item(start.task, 0)
        else:
            cores = self._cores[hosts]
        first = int(hosts[0])
        pstate = state.estimates.host_pstate(start.task, int(self._pstates[first]), first)
        busy = self._busy[hosts]
        more_w = self._draw(hosts, busy + cores, np.full(len(hosts), pstate)) - self._draw(
            hosts, busy, self._pstate[hosts]
        )
        added_w = float(more_w.sum())
        if not self._power.allows(added_w):
            self.is_full = True
            return False
        self._power = PowerState(self._power.draw_w + added_w, self._power.cap_w)
        self._busy[hosts], self._pstate[hosts] = busy + cores, pstate
        return True

    def _draw(self, hosts: Integers, busy: Integers, pstates: Integers) -> Floats:
        """Return what hosts draw with so many busy cores in P-states [W]."""
        return host_power(busy, self._cores[hosts], *(table[hosts, pstates] for table in self._tables))
