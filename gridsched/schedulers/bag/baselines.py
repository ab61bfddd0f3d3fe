"""The usual baselines: immediate mode, where a task is mapped once, and workqueues."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import chain
from typing import ClassVar

import numpy as np

from gridsched.arrays import Floats, Integers, distinct
from gridsched.model.system import System
from gridsched.policy.base import Scheduler, Traits, check_choice, check_whole_number
from gridsched.policy.decisions import Assign, Decision, Plan
from gridsched.policy.state import SharedNodesState, State

#: Waiting tasks that are looked at together.
_CHUNK = 1024


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

    traits: ClassVar[Traits] = Traits(trigger="arrival", platform_order_matters=True)

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Start with the first host."""
        self.next_ = 0
        self.pstates_: list[int] = system.pstates.tolist()

    def schedule(self, state: State) -> Iterable[Decision]:
        """Assign the submitted task to the next host that can run it."""
        is_on, are_serial = state.is_on, state.tasks.are_serial
        n = len(is_on)
        for task in state.waiting():
            fits = None if are_serial else np.isfinite(state.estimates.etc([task], np.arange(n)))[0]
            for host in chain(range(self.next_, n), range(self.next_)):
                run_time = state.estimates.run_time(task, host, self.pstates_[host])
                if is_on[host] and run_time < np.inf and (fits is None or fits[host]):
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

    traits: ClassVar[Traits] = Traits(trigger="arrival", platform_order_matters=True)

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

    traits: ClassVar[Traits] = Traits(trigger="arrival")

    def _key(self, ready: Floats, run_time: Floats) -> Floats:
        return ready + run_time


class WorkQueue(Scheduler):
    """Workqueue: every idle core takes the next waiting task.

    Notes
    -----
    Tasks wait in order of submission. At every event idle cores take tasks in order of their
    hosts' ids; where a host cannot run the first waiting task it takes the first one it can.

    References
    ----------
    .. [1] D. Paranhos da Silva, W. Cirne, F. Brasileiro, "Trading cycles for information: using
       replication to schedule bag-of-tasks applications on computational grids", Euro-Par 2003.
    """

    traits: ClassVar[Traits] = Traits(trigger="event", platform_order_matters=True)

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Note whether every task runs on every host."""
        self.pstates_: list[int] = system.pstates.tolist()
        estimates = system.estimates
        self.always_feasible_ = estimates.always_feasible
        rules = system.rules
        # where every task may wait for any core, and takes it at once
        self.plans_ = (
            self.always_feasible_
            and system.files is None
            and rules.budget is None
            and rules.mapping_interval_s is None
            and not rules.pending_slots
        )
        if not self.always_feasible_:
            self.group_of_ = estimates.host_groups(np.arange(system.n_hosts), system.pstates)

    def schedule(self, state: State) -> Iterable[Decision]:
        """Give waiting tasks to idle cores."""
        if not self.always_feasible_:
            return list(self._first_feasible(state))
        if not state.next_waiting(1):
            return []
        cores = state.idle_cores()
        if not cores:
            return []
        waiting = state.next_waiting(len(cores) + 1)
        if len(waiting) > len(cores) and self.plans_:
            return [Plan(state.mappable, None)]  # and no one is asked until these have started
        return list(map(Assign, waiting, cores))

    def _first_feasible(self, state: State) -> Iterator[Assign]:
        candidates: dict[int, Iterator[int]] = {}  # of each group of hosts, those not yet passed
        taken: set[int] = set()
        for host in state.idle_cores():
            group = int(self.group_of_[host])
            if group not in candidates:
                candidates[group] = self._that_can_run(state, host)
            for task in candidates[group]:
                if task not in taken:
                    taken.add(task)
                    yield Assign(task, host)
                    break

    def _that_can_run(self, state: State, host: int) -> Iterator[int]:
        """Iterate over the waiting tasks that the host can run; few are looked at in advance."""
        waiting = state.mappable
        for first in range(0, len(waiting), _CHUNK):
            tasks = waiting[first : first + _CHUNK]
            times = state.estimates.etc(tasks, [host], self.pstates_[host])[:, 0]
            yield from tasks[np.isfinite(times)].tolist()


class WQR(WorkQueue):
    """Workqueue with replication: idle hosts copy running tasks when nothing waits any more.

    Parameters
    ----------
    max_replicas : int
        Most copies of a task at one time, the original included; 1 is Workqueue.
    pick : {"oldest", "random"}
        Which running task is copied: the one with the fewest copies, of those the one that
        started first, then the lowest id; or a uniformly random one.

    Notes
    -----
    Only tasks with fewer than `max_replicas` running copies are copied, and none is copied to a
    host that already runs it. The first copy to finish finishes the task; the controller cancels
    the others in that instant and their hosts choose again.

    Decided here, because the sources do not specify it (docs/schedulers/bags.md): a task runs from when
    it has a core, also while that core waits for its input files, and may be copied. Its start is
    then the time at which the files are there; in the instant of the decision, that instant. Idle
    hosts take copies in order of their ids, wherever the files lie.

    References
    ----------
    .. [1] D. Paranhos da Silva, W. Cirne, F. Brasileiro, "Trading cycles for information: using
       replication to schedule bag-of-tasks applications on computational grids", Euro-Par 2003.
    """

    traits: ClassVar[Traits] = Traits(trigger="event", replicates=True, uses_rng=True, platform_order_matters=True)

    def __init__(self, max_replicas: int = 2, pick: str = "oldest") -> None:
        self.max_replicas = max_replicas
        self.pick = pick

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters and keep the random generator."""
        check_whole_number("wqr", "max_replicas", self.max_replicas, 1)
        check_choice("wqr", "pick", self.pick, ("oldest", "random"))
        super().prepare(system, rng)
        self.rng_ = rng
        #: (copies, first start, task) of tasks that may be copied; some have changed since
        self.heap_: list[tuple[int, float, int]] | None = None
        #: tasks given out whose start was not looked at yet
        self.given_: list[int] = []
        #: what nodes have left that jobs share
        self.left_: Integers | None = None

    def schedule(self, state: State) -> Iterable[Decision]:
        """Give waiting tasks to idle cores, and copies of running tasks to those left over."""
        decisions = list(super().schedule(state))
        if self.max_replicas == 1:
            return decisions
        started: dict[int, list[int]] = {}
        for decision in decisions:
            if isinstance(decision, Plan):
                self.given_ += decision.tasks.tolist()
                return decisions
            if isinstance(decision, Assign):
                started[decision.task] = [decision.host]
        if state.tasks.share_nodes:
            self.heap_ = None  # an idle core may be too little: what was given starts at any time
            if started:
                return decisions
            nodes = state.nodes
            assert isinstance(nodes, SharedNodesState)  # as its tasks do
            self.left_ = np.array(nodes.left)
        cores = _without(state.idle_cores(), [host for hosts in started.values() for host in hosts])
        if cores:  # nothing waits any more that they could run
            copy = self._copy_random if self.pick == "random" else self._copy_oldest
            decisions += copy(state, started, cores)
        else:
            self.given_ += started
        return decisions

    def _may_copy(self, state: State, task: int, hosts: list[int], host: int) -> bool:
        """Whether a task that runs on `hosts` may have a copy on `host`."""
        runs = len(hosts) < self.max_replicas and host not in hosts
        if self.left_ is not None and (self.left_[host] < self._need(state, task)).any():
            return False
        return runs and state.estimates.run_time(task, host, self.pstates_[host]) < np.inf

    def _need(self, state: State, task: int) -> Integers:
        """Return what a job takes whose parts lie on one node."""
        tasks = state.tasks
        need: Integers = tasks.demand[task] * tasks.width[task]
        return need

    def _copied(self, state: State, task: int, host: int) -> Assign:
        if self.left_ is not None:
            self.left_[host] -= self._need(state, task)
        return Assign(task, host)

    def _copy_random(self, state: State, started: dict[int, list[int]], cores: list[int]) -> Iterator[Assign]:
        hosts_of = {task: hosts.copy() for task, hosts in started.items()}
        for copy in state.running:
            hosts_of.setdefault(int(copy["task"]), []).append(int(copy["host"]))
        for host in cores:
            few = [t for t in sorted(hosts_of) if len(hosts_of[t]) < self.max_replicas]
            if not few:
                break
            candidates = [t for t in few if self._may_copy(state, t, hosts_of[t], host)]
            if candidates:
                task = candidates[int(self.rng_.integers(len(candidates)))]
                hosts_of[task].append(host)
                yield self._copied(state, task, host)

    def _copy_oldest(self, state: State, started: dict[int, list[int]], cores: list[int]) -> Iterator[Assign]:
        """Yield copies; only the tasks at the top of the heap are looked at.

        The heap's numbers of a task may be out of date, but only too small: copies are added,
        starts move on while files or messages are under way, and a task that is done goes away.
        """
        places = {task: [(host, state.now) for host in hosts] for task, hosts in started.items()}
        if self.heap_ is None:
            self.heap_, self.given_ = [], distinct(state.running["task"]).tolist()
        for task in (*self.given_, *started):
            heappush(self.heap_, (1, 0.0, task))
        self.given_ = []
        for host in cores:
            if not self.heap_:
                break
            passed_over = []
            while self.heap_:
                entry = heappop(self.heap_)
                task = entry[2]
                if task not in places:
                    places[task] = state.copies_of(task)
                copies = places[task]
                if not copies or len(copies) >= self.max_replicas:
                    continue
                if entry[:2] != (len(copies), copies[0][1]):
                    heappush(self.heap_, (len(copies), copies[0][1], task))
                elif self._may_copy(state, task, [h for h, _ in copies], host):
                    copies.append((host, state.now))
                    heappush(self.heap_, (len(copies), copies[0][1], task))
                    yield self._copied(state, task, host)
                    break
                else:
                    passed_over.append(entry)
            for entry in passed_over:
                heappush(self.heap_, entry)


def _without(cores: list[int], taken: list[int]) -> list[int]:
    """Return the cores that are left of those of hosts; most often the first ones are taken."""
    if cores[: len(taken)] == taken:
        return cores[len(taken) :]
    for host in taken:
        cores.remove(host)
    return cores
