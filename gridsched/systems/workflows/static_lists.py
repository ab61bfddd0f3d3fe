"""Static lists: every task is placed when it is submitted, into the earliest gap that holds it.

All rules have one rest: of hosts that are equally good the lowest id, of tasks of equal rank the lowest id.
"""

from __future__ import annotations

import heapq
import math
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable
from operator import sub
from typing import ClassVar

import numpy as np

from gridsched.arrays import Floats
from gridsched.model.system import System
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Assign, Decision
from gridsched.policy.state import State
from gridsched.systems.workflows.task_graph import TaskGraph, in_order

#: Ranks that differ by less, relatively, are one: sums of the same numbers in another order.
_EQUAL = 1e-9


class Core:
    """What is free on one core: begins and ends of its gaps [s], ascending; the last one has no end."""

    def __init__(self) -> None:
        self.starts: list[float] = [0.0]
        self.ends: list[float] = [math.inf]

    def gap(self, ready_s: float, time_s: float) -> float:
        """Return the earliest start from `ready_s` on of a task that takes so long [s]."""
        k = bisect_right(self.ends, ready_s)
        start = max(ready_s, self.starts[k])
        while start + time_s > self.ends[k]:
            k += 1
            start = max(ready_s, self.starts[k])
        return start

    def take(self, start_s: float, end_s: float) -> None:
        """Plan a task in a gap, which leaves up to two."""
        k = bisect_right(self.starts, start_s) - 1
        left, right = self.starts[k], self.ends[k]
        starts, ends = [], []
        if left < start_s:
            starts, ends = [left], [start_s]
        if end_s < right:
            starts.append(end_s)
            ends.append(right)
        self.starts[k : k + 1] = starts
        self.ends[k : k + 1] = ends


class Timetable:
    """Which task is planned where and when.

    Parameters
    ----------
    system : System
    """

    def __init__(self, system: System) -> None:
        cores = system.platform.cores
        self.cores = [[Core() for _ in range(count)] for count in cores.tolist()]
        shape = len(cores), int(cores.max(initial=1))
        is_core = np.arange(shape[1]) < cores[:, None]
        #: from when on each core is free for good [s]; infinite where there is no core
        self._last_s = np.where(is_core, 0.0, np.inf)
        #: until when each core has gaps before that, and how long the longest is [s]; none: before all times
        self._gaps_until_s = np.full(shape, -np.inf)
        self._longest_s = np.full(shape, -np.inf)
        self.host: dict[int, int] = {}
        self.start_s: dict[int, float] = {}
        self.end_s: dict[int, float] = {}

    def best_place(self, ready_s: Floats, time_s: Floats, weight_s: Floats | None = None) -> tuple[int, int, float]:
        """Return host, core and start [s] of the least end of a task, or of the least end plus a host's weight.

        Of equals it is the lowest host, and there the earliest start on the lowest core. Only gaps are looked at
        that may hold the task and end it earlier than behind all that is planned.

        Parameters
        ----------
        ready_s, time_s : ndarray of float64, shape (hosts,)
            When the task's data are there, and how long it takes; infinite: not there.
        weight_s : ndarray of float64, shape (hosts,), optional
        """
        least_s = ready_s + time_s
        core = self._last_s.argmin(axis=1)
        behind_s = np.maximum(ready_s, self._last_s[np.arange(len(core)), core])
        key_s = behind_s + time_s
        if weight_s is not None:
            key_s = key_s + weight_s
        host = int(key_s.argmin())
        best_s = float(key_s[host])
        if best_s == np.inf:
            return -1, -1, np.inf
        best = best_s, host, float(behind_s[host]), self._core_behind(host, core.item(host), behind_s.item(host))
        may = (least_s[:, None] <= self._gaps_until_s) & (self._longest_s >= time_s[:, None])
        if weight_s is not None:
            least_s = least_s + weight_s
        may &= least_s[:, None] <= best_s
        hosts, cores = may.nonzero()
        for place in least_s[hosts].argsort(kind="stable").tolist():
            host, k = hosts.item(place), cores.item(place)
            if least_s.item(host) > best[0]:
                break
            start = self.cores[host][k].gap(ready_s.item(host), time_s.item(host))
            key = start + time_s.item(host)
            if weight_s is not None:
                key += weight_s.item(host)
            best = min(best, (key, host, start, k))
        return best[1], best[3], best[2]

    def _core_behind(self, host: int, core: int, start_s: float) -> int:
        """Return the lowest core of a host on which a task can start behind all that is planned there."""
        row = self._last_s[host]
        return core if len(row) == 1 else int((row <= start_s).argmax())

    def place(self, task: int, place: tuple[int, int, float], time_s: Floats) -> None:
        """Plan a task at a place that `best_place` found."""
        host, core, start = place
        end = start + float(time_s[host])
        taken = self.cores[host][core]
        taken.take(start, end)
        self._last_s[host, core] = taken.starts[-1]
        if len(taken.starts) > 1:
            self._gaps_until_s[host, core] = taken.ends[-2]
            longest = max(map(sub, taken.ends[:-1], taken.starts))
            self._longest_s[host, core] = longest + _EQUAL * taken.ends[-2]
        else:
            self._gaps_until_s[host, core] = self._longest_s[host, core] = -np.inf
        self.host[task], self.start_s[task], self.end_s[task] = host, start, end


class StaticList(Scheduler):
    """Base of static lists: tasks in an order of their own, each into the earliest gap of the best host.

    A task keeps its host. Tasks that are submitted later are placed into what is left of the timetable.
    """

    traits: ClassVar[Traits] = Traits(asked="event")

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Forget the last run's timetable."""
        self.system_ = system
        self.table_ = Timetable(system)

    def schedule(self, state: State) -> Iterable[Decision]:
        """Place all tasks that stand in no queue, on their hosts in the order of their planned starts."""
        waiting = np.union1d(state.mappable, state.blocked)
        if not len(waiting):
            return []
        graph = TaskGraph(state, self.system_, waiting)
        self._off_ = np.where(np.isfinite(state.ready_time), 0.0, np.inf)
        for task in graph.tasks:  # some may have been placed before, and stopped with their host
            self.table_.host.pop(task, None)
        self._place_all(graph, state.now)
        placed = [task for task in graph.tasks if task in self.table_.host]
        placed.sort(key=lambda task: (self.table_.start_s[task], task))
        return [Assign(task, self.table_.host[task]) for task in placed]

    @abstractmethod
    def _place_all(self, graph: TaskGraph, now: float) -> None:
        """Place each task of a graph into the timetable."""

    def _ready(self, graph: TaskGraph, task: int, now: float) -> Floats | None:
        """Return when the data of a task are at each host [s]; None if another of them has no place."""
        ready = np.full(self.system_.n_hosts, now) + self._off_
        for edge in graph.before[task]:
            if edge.other not in self.table_.host:
                return None
            host = self.table_.host[edge.other]
            np.maximum(ready, self.table_.end_s[edge.other] + graph.sent(edge, host), out=ready)
        return ready

    def _place(self, graph: TaskGraph, task: int, now: float, weight_s: Floats | None = None) -> None:
        """Place a task on the host of its earliest end, with weights; without any host it stays unplaced."""
        ready, time = self._ready(graph, task, now), graph.times_of(task)
        if ready is None:
            return
        place = self.table_.best_place(ready, time, weight_s)
        if place[0] >= 0:
            self.table_.place(task, place, time)

    @staticmethod
    def _by_readiness(graph: TaskGraph, ranks: dict[int, float], place: Callable[[int], None]) -> None:
        """Place tasks whose predecessors are placed, the highest rank first."""
        left = {task: sum(e.other in graph.row for e in graph.before[task]) for task in graph.tasks}
        ready = [(-ranks[task], task) for task in graph.tasks if not left[task]]
        heapq.heapify(ready)
        while ready:
            _, task = heapq.heappop(ready)
            place(task)
            for edge in graph.behind[task]:
                left[edge.other] -= 1
                if not left[edge.other]:
                    heapq.heappush(ready, (-ranks[edge.other], edge.other))


class HEFT(StaticList):
    """HEFT: tasks by falling upward rank, each into the gap in which it ends earliest.

    Notes
    -----
    ``rank_u(i) = w_i + max_j (c_ij + rank_u(j))`` over the tasks j that wait for i, with the mean time w over hosts
    and the mean transfer c between two hosts that differ (eq. 8). A task goes to the host of its earliest end, with
    insertion into gaps (section 4.1); of equal ends to the lowest host id. Equal ranks: the lowest task id.

    References
    ----------
    .. [1] H. Topcuoglu, S. Hariri, M.-Y. Wu, "Performance-effective and low-complexity task scheduling for
       heterogeneous computing", IEEE TPDS 13(3), 2002. https://doi.org/10.1109/71.993206
    """

    def _place_all(self, graph: TaskGraph, now: float) -> None:
        for task in in_order(graph.tasks, graph.upward_ranks()):
            self._place(graph, task, now)


class CPOP(StaticList):
    """CPOP: the tasks of the critical path on the one host that runs them all in the least time.

    Notes
    -----
    A task's priority is its upward plus its downward rank (eq. 8 and 10). The critical path begins at the task of
    the greatest priority that waits for none, and goes on with a task of that priority that waits for it, the
    lowest id of several. Its host has the least sum of its tasks' times. All other tasks go, as they get ready and
    by falling priority, to the host of their earliest end with insertion (section 4.2).

    References
    ----------
    .. [1] H. Topcuoglu, S. Hariri, M.-Y. Wu, "Performance-effective and low-complexity task scheduling for
       heterogeneous computing", IEEE TPDS 13(3), 2002. https://doi.org/10.1109/71.993206
    """

    def _place_all(self, graph: TaskGraph, now: float) -> None:
        up, down = graph.upward_ranks(), graph.downward_ranks()
        ranks = {task: up[task] + down[task] for task in graph.tasks}
        path = self._critical_path(graph, ranks)
        sums = graph.time_s[[graph.row[task] for task in path]].sum(axis=0) + self._off_
        host = int(np.argmin(sums))
        elsewhere = np.full(len(sums), np.inf)
        elsewhere[host] = 0.0
        weight = {task: elsewhere for task in path if np.isfinite(sums[host])}
        self._by_readiness(graph, ranks, lambda task: self._place(graph, task, now, weight.get(task)))

    @staticmethod
    def _critical_path(graph: TaskGraph, ranks: dict[int, float]) -> list[int]:
        first = [task for task in graph.tasks if not any(e.other in graph.row for e in graph.before[task])]
        path = in_order(first, ranks)[:1]
        length = ranks[path[0]]
        while True:
            on = [e.other for e in graph.behind[path[-1]] if ranks[e.other] >= length * (1 - _EQUAL)]
            if not on:
                return path
            path.append(min(on))


class PEFT(StaticList):
    """PEFT: as HEFT, but looking at what is at least left behind a task on each host.

    Notes
    -----
    The optimistic cost table (eq. 4) holds the least time that is left behind each task if it runs on each host.
    Of the tasks that are ready the one of the greatest mean over hosts (eq. 5) goes to the host of the least end
    plus optimistic cost (eq. 6), with insertion; of equals to the lowest host id.

    References
    ----------
    .. [1] H. Arabnejad, J. G. Barbosa, "List scheduling algorithm for heterogeneous systems by an optimistic cost
       table", IEEE TPDS 25(3), 2014. https://doi.org/10.1109/TPDS.2013.57
    """

    def _place_all(self, graph: TaskGraph, now: float) -> None:
        costs = graph.optimistic_costs()
        means = np.where(np.isfinite(costs), costs, 0.0).sum(axis=1) / np.maximum(np.isfinite(costs).sum(axis=1), 1)
        ranks = dict(zip(graph.tasks, means.tolist(), strict=True))
        self._by_readiness(graph, ranks, lambda task: self._place(graph, task, now, costs[graph.row[task]]))
