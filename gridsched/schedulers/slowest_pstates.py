"""P-states for schedulers that choose none: as slow as the makespan allows."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import numpy as np

from gridsched.arrays import Integers
from gridsched.errors import InputError
from gridsched.model.limits import time_tolerance
from gridsched.model.system import System
from gridsched.policy.base import Scheduler, Traits, check_number
from gridsched.policy.decisions import Assign, Decision, Plan
from gridsched.policy.state import State
from gridsched.schedulers.wrapping import TraitsOfWrapped, Wrapper

#: Tasks that a host is given in one answer.
Placed = dict[int, list[int]]


class SlowestPStates(Wrapper):
    """Another scheduler chooses hosts and order; each host computes as slowly as there is time.

    Parameters
    ----------
    scheduler : str or Scheduler
        Who chooses hosts and order: an id, alone or with parameters
        (``"max_min(reschedule=False)"``), or an instance. It must not choose P-states itself.
    within : float
        How much longer than without this wrapper it may take, at least 1: see the notes.

    Notes
    -----
    This is slack reclamation, the second of the two passes (make a schedule, then slow down what
    has time) that energy-aware scheduling with DVFS mostly consists of [1]_, with deadlines for
    tasks in [2]_. The bound is a time D by which everything must end. When tasks get a place that
    had none before, ``D = max(D, s + within * (E - s))``: s is the first submission, and E the
    latest end, as estimated, of all that runs, is queued and is placed now, were the latter done in
    the P-states that hosts start in. Each host takes for all that it is given in one answer the
    P-state in which that takes longest (of equal ones the last) among those in which it ends by D;
    where there is none, the one it starts in. While submitted tasks have no place nothing is slowed
    down, because they will need the time. A host of several cores on which something runs keeps its
    P-state.

    With ``within = 1``, a bag that the scheduler places once for all (as with ``reschedule=False``)
    and estimates that come true the makespan is the scheduler's own. A scheduler that places tasks
    again at later events can end later, because hosts that are slowed down become ready later.
    Tasks in a common queue (`WorkQueue`) run in the P-states that hosts start in, and transfers of
    input files are not counted.

    References
    ----------
    .. [1] M. Emami, Y. Ghiasi, N. Jaberi, "Energy-aware scheduling using dynamic voltage-frequency
       scaling", arXiv:1206.1984, 2012 (abstract read).
    .. [2] K. H. Kim, R. Buyya, J. Kim, "Power aware scheduling of bag-of-tasks applications with
       deadline constraints on DVS-enabled clusters", CCGrid 2007 (not read).
    """

    _id: ClassVar[str] = "slowest_pstates"
    traits: ClassVar[Traits] = TraitsOfWrapped(uses_dvfs=True)  # type: ignore[assignment]

    def __init__(self, scheduler: str | Scheduler = "max_min(reschedule=False)", within: float = 1.0) -> None:
        self.scheduler = scheduler
        self.within = within

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters; forget the last run.

        Raises
        ------
        InputError
            If a parameter is out of range, or the scheduler chooses P-states or places parallel
            tasks.
        """
        check_number(self._id, "within", self.within, lambda x: 1 <= x < math.inf, "at least 1")
        super().prepare(system, rng)
        traits = self.wrapped_.traits
        if traits.uses_dvfs or traits.parallel:
            does = "places parallel tasks" if traits.parallel else "chooses P-states itself"
            raise InputError(f"slowest_pstates cannot wrap {self.wrapped_!r}, which {does}.")
        self.system_ = system
        self.n_pstates_: list[int] = system.estimates.n_pstates(system.platform).tolist()
        self.deadline_ = -math.inf
        #: tasks that had a place before
        self.placed_: set[int] = set()
        self.first_: list[int] = system.pstates.tolist()
        #: P-state that each host was last given
        self.chosen_ = dict(enumerate(self.first_))

    def _decided(self, answer: list[Decision], state: State) -> Iterable[Decision]:
        placed = _placed(answer)
        if not placed:
            return answer
        placed_tasks = {task for tasks in placed.values() for task in tasks}
        new = placed_tasks - self.placed_
        self.placed_ |= new
        if _some_wait(answer, placed_tasks, state, self.wrapped_.traits.trigger):
            chosen = {host: self.first_[host] for host in placed}
        else:
            if new:
                self._extend(placed, state)
            chosen = {host: self._slowest(host, placed[host], state) for host in placed}
        chosen |= {host: self.chosen_[host] for host in placed if self._is_bound(host, state)}
        self.chosen_ |= chosen
        return list(_with_pstates(answer, chosen))

    def _extend(self, placed: Placed, state: State) -> None:
        """Let the deadline be late enough for what gets a place now."""
        ready = state.core_ready_time
        latest = float(ready[np.isfinite(ready)].max(initial=state.now))
        for host, tasks in placed.items():
            latest = max(latest, self._end(host, tasks, self.first_[host], state))
        first = float(state.tasks.submit_time_s[0])
        self.deadline_ = max(self.deadline_, first + self.within * (latest - first))

    def _end(self, host: int, tasks: Sequence[int], pstate: int, state: State) -> float:
        """When the last of some tasks ends, each on the host's core that is ready first [s]."""
        times = state.estimates.etc(tasks, [host], pstate)[:, 0]
        cores = state.core_ready_time[host, : self.system_.platform.cores[host]].tolist()
        if len(cores) == 1:
            return float(cores[0] + times.sum())
        latest = -math.inf
        for time in times.tolist():
            end = cores[0] + time
            heapq.heapreplace(cores, end)
            latest = max(latest, end)
        return latest

    def _is_bound(self, host: int, state: State) -> bool:
        """Whether other work on a host of several cores leaves it no choice."""
        cores = int(self.system_.platform.cores[host])
        at_work = state.free_cores[host] < cores or state.queue_length[host] > 0
        return cores > 1 and bool(at_work)

    def _slowest(self, host: int, tasks: Sequence[int], state: State) -> int:
        """The slowest P-state in which the host ends its tasks by the deadline."""
        limit = self.deadline_ + time_tolerance(self.deadline_)
        best, longest = self.first_[host], -math.inf
        for pstate in range(self.n_pstates_[host]):
            end = self._end(host, tasks, pstate, state)
            if longest <= end <= limit:
                best, longest = pstate, end
        return best


def _placed(answer: Iterable[Decision]) -> Placed:
    """Return the tasks that each host is given, in their order."""
    placed: Placed = {}
    for decision in answer:
        if isinstance(decision, Assign):
            placed.setdefault(int(decision.host), []).append(int(decision.task))
        elif isinstance(decision, Plan) and decision.hosts is not None:
            pairs = zip(decision.hosts.tolist(), decision.tasks.tolist(), strict=True)
            for host, task in pairs:
                placed.setdefault(host, []).append(task)
    return placed


def _some_wait(answer: Iterable[Decision], given: set[int], state: State, trigger: str) -> bool:
    """Whether submitted tasks are left without a place, while some are given theirs."""
    if any(isinstance(each, Plan) and each.hosts is None for each in answer):
        return True
    if any(task not in given for task in state.waiting()):
        return True
    # task by task: the others of a bag are asked for in the same instant, but later
    return trigger == "arrival" and len(state.tasks) > max(given) + 1


def _with_pstates(answer: Iterable[Decision], chosen: dict[int, int]) -> Iterator[Decision]:
    """Yield the decisions with the P-states of their hosts."""
    for decision in answer:
        if isinstance(decision, Assign):
            yield Assign(decision.task, decision.host, chosen[int(decision.host)])
        elif isinstance(decision, Plan) and decision.hosts is not None:
            pstates: Integers = np.array([chosen[host] for host in decision.hosts.tolist()], dtype=np.int64)
            yield Plan(decision.tasks, decision.hosts, pstates)
        else:
            yield decision
