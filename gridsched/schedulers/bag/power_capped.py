"""Minimum completion time under a cap on the power of all hosts together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.model.estimates import Estimates
from gridsched.model.system import System
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Assign, Decision
from gridsched.policy.state import PowerState, State
from gridsched.power import host_power

#: Waiting tasks whose run times are looked up together.
_CHUNK = 64


class PowerCappedMCT(Scheduler):
    """Minimum Completion Time over hosts and P-states, within the watts that the cap leaves.

    Notes
    -----
    At every event the waiting tasks are visited by id, while a host that is free could still start
    something within the cap. Of a task's options, a host h and a P-state k, those count with
    ``P_h(k) - p_h <= remaining``: `p_h` is what the host draws now, ``P_h(k)`` what it would draw
    with the task on a core in P-state k (in the place of what runs there, if no core is free), and
    `remaining` the cap less the draw of all hosts. A host with a busy core keeps its P-state if it
    has several. The option with the smallest completion time ``r_h + t_h(k)`` is taken; of equal
    ones that with the smallest ``P_h(k) - p_h``, then the lowest host id, then the lowest P-state.
    If the host is free the task starts, and `remaining` becomes less. Otherwise the task waits,
    `r_h` becomes later for the tasks behind it, and all is decided again at the next event. Nothing
    is in a fixed queue, because the power at a task's later turn is unknown. A task
    without an option waits, too.

    Without a cap, where hosts have one P-state, this is `MCT` but for ties.

    References
    ----------
    .. [1] M. Maheswaran, S. Ali, H. J. Siegel, D. Hensgen, R. F. Freund, "Dynamic mapping of a
       class of independent tasks onto heterogeneous computing systems", JPDC 59(2), 1999: the rule.
    .. [2] M. Etinski, J. Corbalan, J. Labarta, M. Valero, "Optimizing job performance under a given
       power constraint in HPC centers", IGCC 2010 (not read): frequencies that fit a power limit.
    .. [3] O. Sarood, A. Langer, A. Gupta, L. Kale, "Maximizing throughput of overprovisioned HPC
       data centers under a strict power budget", SC 2014 (abstract read).
    """

    traits: ClassVar[Traits] = Traits(trigger="event", uses_dvfs=True, respects_power_cap=True)

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Look up what each host draws in each P-state.

        Raises
        ------
        InputError
            If tasks have input files.
        """
        if system.files is not None:
            raise InputError(
                "power_capped_mct: these tasks have input files, and tasks that wait for them use "
                "power later, at an unknown time. Leave out the files (--files)."
            )
        self.system_ = system
        self.n_pstates_ = system.estimates.n_pstates(system.platform)
        self.one_to_one_ = type(system.estimates).host_pstate is Estimates.host_pstate

    def schedule(self, state: State) -> Iterable[Decision]:
        """Start what may start within the cap."""
        if not state.next_waiting(1) or not state.idle_cores():
            return []
        return list(self._started(state))

    def _started(self, state: State) -> Iterator[Assign]:
        hosts = _Hosts(self.system_, state)
        tasks = state.mappable
        for first in range(0, len(tasks), _CHUNK):
            chunk = tasks[first : first + _CHUNK]
            run_times = self._run_times(state, chunk)
            for task, run_time in zip(chunk.tolist(), run_times, strict=True):
                if not hosts.may_start():
                    return
                option = hosts.best(run_time, self._pstates(state, task))
                if option is not None and hosts.take(*option, run_time):
                    yield Assign(task, *option[:2])

    def _run_times(self, state: State, tasks: Integers) -> Floats:
        """Estimated run times [s], shape (tasks, hosts, P-states); infinite where there is none."""
        hosts = np.arange(self.system_.n_hosts)
        times = [
            np.where(self.n_pstates_ > k, state.estimates.etc(tasks, hosts, k), np.inf)
            for k in range(int(self.n_pstates_.max()))
        ]
        return np.stack(times, axis=2)

    def _pstates(self, state: State, task: int) -> Integers:
        """The hosts' own P-states that serve a task, shape (hosts, P-states)."""
        levels = np.arange(int(self.n_pstates_.max()))
        pstates = np.minimum(levels, self.n_pstates_[:, None] - 1)
        if self.one_to_one_:
            return pstates
        own = state.estimates.host_pstate
        return np.array([[own(task, k, host) for k in row] for host, row in enumerate(pstates.tolist())])


class _Hosts:
    """What hosts draw and when they are ready, while tasks are placed in one answer.

    Parameters
    ----------
    system : System
    state : State
    """

    def __init__(self, system: System, state: State) -> None:
        platform, self._now = system.platform, state.now
        self._power = state.power
        self._ready = state.core_ready_time.copy()
        self._pstate = state.pstate.copy()
        self._busy = platform.cores - state.free_cores
        self._cores = platform.cores
        self._all = np.arange(len(platform))
        self._tables = platform.idle_w, platform.epsilon_w, platform.busy_w
        self._watts = self._draw(self._pstate[:, None], self._busy[:, None])[:, 0]
        every = np.broadcast_to(np.arange(platform.speed.shape[1]), platform.speed.shape)
        #: what a host draws at least with one core more at work [W]
        self._least = np.fmin.reduce(self._draw(every, self._one_more), axis=1)

    def _draw(self, pstates: Integers, busy: Integers) -> Floats:
        """Power [W] of each host in P-states, shape (hosts, P-states)."""
        idle, epsilon, full = (table[self._all[:, None], pstates] for table in self._tables)
        return host_power(busy, self._cores[:, None], idle, epsilon, full)

    @property
    def _one_more(self) -> Integers:
        """Busy cores of each host if it takes a task, shape (hosts, 1)."""
        return np.minimum(self._busy + 1, self._cores)[:, None]

    def may_start(self) -> bool:
        """Whether a free host might start something within the cap."""
        free = self._ready[:, 0] <= self._now
        return bool(self._power.allows((self._least - self._watts)[free]).any())

    def best(self, run_time: Floats, pstates: Integers) -> tuple[int, int, int, float] | None:
        """Return host, P-state, the host's own P-state and added watts of a task's best option.

        None where it has none. `run_time` [s] and the hosts' own `pstates` have the shape (hosts,
        P-states).
        """
        added = self._draw(pstates, self._one_more) - self._watts[:, None]
        end = np.where(self._power.allows(added), self._ready[:, :1] + run_time, np.inf)
        bound = (self._busy > 0) & (self._cores > 1)
        end = np.where(bound[:, None] & (pstates != self._pstate[:, None]), np.inf, end)
        earliest = end.min()
        if earliest == np.inf:
            return None
        place = int(np.where(end == earliest, added, np.inf).argmin())
        host, pstate = divmod(place, end.shape[1])
        return host, pstate, int(pstates[host, pstate]), float(added[host, pstate])

    def take(self, host: int, pstate: int, own: int, added_w: float, run_time: Floats) -> bool:
        """Give the task its place; return whether it starts now."""
        starts = bool(self._ready[host, 0] <= self._now)
        self._ready[host, 0] += run_time[host, pstate]
        self._ready[host].sort()
        if starts:
            self._busy[host] += 1
            self._pstate[host] = own
            self._watts[host] += added_w
            self._power = PowerState(self._power.draw_w + added_w, self._power.cap_w)
        return starts
