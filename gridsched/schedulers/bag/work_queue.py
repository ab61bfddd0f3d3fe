"""Workqueue, without and with replication: neither knows speeds or sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np

from gridsched.model.system import System
from gridsched.policy.base import Scheduler, Traits, check_choice, check_whole_number
from gridsched.policy.decisions import Assign, Decision
from gridsched.policy.state import State

#: Waiting tasks that are looked at together.
_CHUNK = 1024


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

    traits: ClassVar[Traits] = Traits(asked="event", platform_order_matters=True)

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Note whether every task runs on every host."""
        self.pstate_ = system.pstate
        estimates = system.estimates
        self.always_feasible_ = estimates.always_feasible
        if not self.always_feasible_:
            self.group_of_ = estimates.host_groups(np.arange(system.n_hosts), system.pstate)

    def schedule(self, state: State) -> Iterable[Decision]:
        """Give waiting tasks to idle cores."""
        if self.always_feasible_:
            # runs once for each of 100,000 tasks: no array is built here
            cores = state.idle_cores()
            return list(map(Assign, state.next_waiting(len(cores)), cores))
        return list(self._first_feasible(state))

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
            times = state.estimates.etc(tasks, [host], self.pstate_)[:, 0]
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

    References
    ----------
    .. [1] D. Paranhos da Silva, W. Cirne, F. Brasileiro, "Trading cycles for information: using
       replication to schedule bag-of-tasks applications on computational grids", Euro-Par 2003.
    """

    traits: ClassVar[Traits] = Traits(
        asked="event", replicates=True, uses_rng=True, platform_order_matters=True
    )

    def __init__(self, max_replicas: int = 2, pick: str = "oldest") -> None:
        self.max_replicas = max_replicas
        self.pick = pick

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters and keep the random generator."""
        check_whole_number("wqr", "max_replicas", self.max_replicas, 1)
        check_choice("wqr", "pick", self.pick, ("oldest", "random"))
        super().prepare(system, rng)
        self.rng_ = rng

    def schedule(self, state: State) -> Iterable[Decision]:
        """Give waiting tasks to idle cores, and copies of running tasks to those left over."""
        decisions = list(super().schedule(state))
        if self.max_replicas == 1:
            return decisions
        cores = state.idle_cores()
        for decision in decisions:
            cores.remove(decision.host)
        if cores:  # nothing waits any more that they could run
            decisions += self._copies(state, decisions, cores)
        return decisions

    def _copies(self, state: State, started: list[Assign], cores: list[int]) -> list[Assign]:
        copies = state.running[["start", "task", "host"]].tolist()
        copies += [(state.now, decision.task, decision.host) for decision in started]
        holders: dict[int, list[int]] = {}  # hosts of each running task, in order of first start
        for _, task, host in sorted(copies):
            holders.setdefault(task, []).append(host)
        order = {task: k for k, task in enumerate(holders)}
        run_time, pstate = state.estimates.run_time, self.pstate_
        decisions = []
        for host in cores:
            candidates = [
                task for task, hosts in holders.items()
                if len(hosts) < self.max_replicas and host not in hosts
                and run_time(task, host, pstate) < np.inf
            ]  # fmt: skip
            if not candidates:
                continue
            if self.pick == "oldest":
                task = min(candidates, key=lambda task: (len(holders[task]), order[task]))
            else:
                task = sorted(candidates)[int(self.rng_.integers(len(candidates)))]
            holders[task].append(host)
            decisions.append(Assign(task, host))
        return decisions
