"""Immediate-mode baselines: a task is mapped once, when it is submitted."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from itertools import chain
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gridsched.model.system import System
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Assign, Decision
from gridsched.policy.state import State

Floats = NDArray[np.float64]


class RoundRobin(Scheduler):
    """Round robin: task after task to host after host.

    Notes
    -----
    The k-th task goes to the queue of the next host in platform order, after the one that took
    the task before; hosts that are off or cannot run the task are passed over.

    References
    ----------
    .. [1] Textbook baseline.
    """

    traits: ClassVar[Traits] = Traits(asked="arrival", platform_order_matters=True)

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Start with the first host."""
        self.next_ = 0
        self.pstates_: list[int] = system.pstates.tolist()

    def schedule(self, state: State) -> Iterable[Decision]:
        """Assign the submitted task to the next host that can run it."""
        is_on = state.is_on
        n = len(is_on)
        for task in state.waiting():
            for host in chain(range(self.next_, n), range(self.next_)):
                run_time = state.estimates.run_time(task, host, self.pstates_[host])
                if is_on[host] and run_time < np.inf:
                    self.next_ = (host + 1) % n
                    return [Assign(task, host)]
        return []


class _Immediate(Scheduler):
    """Base of policies that assign a submitted task to the host with the smallest key."""

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Remember all host ids."""
        self.hosts_ = np.arange(system.n_hosts)
        self.pstates_ = system.pstates

    def schedule(self, state: State) -> Iterable[Decision]:
        """Assign the submitted task."""
        decisions = []
        for task in state.waiting():
            run_time = state.estimates.etc([task], self.hosts_, self.pstates_)[0]
            key = self._key(state.ready_time, run_time)
            host = int(np.argmin(key))
            if key[host] < np.inf:
                decisions.append(Assign(task, host))
        return decisions

    @abstractmethod
    def _key(self, ready: Floats, run_time: Floats) -> Floats:
        """Return what is smallest for the host to choose [s], shape (hosts,)."""


class OLB(_Immediate):
    """Opportunistic Load Balancing: to the host that becomes ready first.

    Notes
    -----
    A submitted task goes to the host with the smallest ready time (then the lowest id) among
    those that can run it, however long it takes there.

    References
    ----------
    .. [1] T. D. Braun et al., "A comparison of eleven static heuristics for mapping a class of
       independent tasks onto heterogeneous distributed computing systems", JPDC 61(6), 2001.
    """

    traits: ClassVar[Traits] = Traits(asked="arrival", platform_order_matters=True)

    def _key(self, ready: Floats, run_time: Floats) -> Floats:
        return np.where(run_time < np.inf, ready, np.inf)


class MCT(_Immediate):
    """Minimum Completion Time: to the host where the task completes first.

    Notes
    -----
    A submitted task goes to the host with the smallest ``r_j + w_i / s_j`` (then the lowest id).

    References
    ----------
    .. [1] M. Maheswaran, S. Ali, H. J. Siegel, D. Hensgen, R. F. Freund, "Dynamic mapping of a
       class of independent tasks onto heterogeneous computing systems", JPDC 59(2), 1999.
    """

    traits: ClassVar[Traits] = Traits(asked="arrival")

    def _key(self, ready: Floats, run_time: Floats) -> Floats:
        return ready + run_time
