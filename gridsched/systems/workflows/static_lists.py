"""Static lists: every task is placed when it is submitted, into the earliest gap that holds it.

All rules have one rest: of hosts that are equally good the lowest id, of tasks of equal rank the lowest id.
"""

from __future__ import annotations

import heapq
from abc import abstractmethod
from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar

import numpy as np

from gridsched.arrays import Floats
from gridsched.model.system import System
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Assign, Decision
from gridsched.policy.state import State
from gridsched.systems.workflows.task_graph import Edge, TaskGraph, in_order
from gridsched.systems.workflows.timetable import Place, Timetable

#: Ranks that differ by less, relatively, are one: sums of the same numbers in another order.
_EQUAL = 1e-9


class StaticList(Scheduler):
    """Base of static lists: tasks in an order of their own, each into the earliest gap of the best host.

    A task keeps its host. Tasks that are submitted later are placed into what is left of the timetable.
    """

    traits: ClassVar[Traits] = Traits(trigger="event")

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Forget the last run's timetable."""
        self.system_ = system
        self.table_ = Timetable(system)
        #: P-states of tasks that have one of their own
        self.pstate_: dict[int, int] = {}

    def schedule(self, state: State) -> Iterable[Decision]:
        """Place all tasks that are in no queue, on their hosts in the order of their planned starts."""
        mappable, blocked = state.mappable, state.blocked
        if not len(mappable) and not len(blocked):
            return []
        waiting = np.union1d(mappable, blocked)
        self._free_ = set(mappable.tolist())
        graph = TaskGraph(state, self.system_, waiting)
        self._off_ = np.where(np.isfinite(state.ready_time), 0.0, np.inf)
        for task in graph.tasks:  # some may have been placed before, and stopped with their host
            self.table_.host.pop(task, None)
        self._place_all(graph, state.now)
        placed = [task for task in graph.tasks if task in self.table_.host]
        placed.sort(key=lambda task: (self.table_.start_s[task], task))
        answer = [Assign(task, self.table_.host[task], self.pstate_.get(task)) for task in placed]
        return answer if self.system_.rules.budget is None else self._admitted(answer, graph, state)

    def _admitted(self, answer: list[Assign], graph: TaskGraph, state: State) -> Iterator[Decision]:
        """Yield decisions on tasks all of whose others are queued: none may be behind one that a budget puts off.

        It could come behind that, in the queue of one host, and both would wait for ever.
        """
        put_off: set[int] = set()
        for decision in answer:
            task = decision.task
            if not any(edge.other in put_off for edge in graph.before[task]):
                yield decision
                if task in state.queue_tasks or task in state.running["task"]:
                    continue
            put_off.add(task)
            self.table_.remove(task)

    @abstractmethod
    def _place_all(self, graph: TaskGraph, now: float) -> None:
        """Place each task of a graph into the timetable."""

    def _ready(self, graph: TaskGraph, task: int, now: float) -> Floats | None:
        """Return when the data of a task are at each host [s]; None if it waits for another that has no place."""
        if task not in self._free_ and any(edge.other not in self.table_.host for edge in graph.before[task]):
            return None
        return self._ready_by_those_placed(graph, task, now)

    def _ready_by_those_placed(self, graph: TaskGraph, task: int, now: float) -> Floats:
        """Return when the data of a task are at each host that come from tasks with a place, and its files [s]."""
        ready = graph.staged_s.get(task, np.full(self.system_.n_hosts, now)) + self._off_
        for edge in graph.before[task]:
            host = self.table_.host.get(edge.other)
            if host is not None:
                np.maximum(ready, self.table_.end_s[edge.other] + graph.sent(edge, host), out=ready)
        return ready

    def _place(self, graph: TaskGraph, task: int, now: float, weight_s: Floats | None = None) -> None:
        """Place a task on the host of its earliest end, with weights; without any host it stays unplaced."""
        ready, time = self._ready(graph, task, now), graph.times_of(task)
        if ready is None:
            return
        place = self.table_.best_place(ready, time, weight_s, graph.cores[task])
        if place[0] >= 0:
            self.table_.place(task, place, time.item(place[0]))

    def _place_by_rank(self, graph: TaskGraph, now: float) -> None:
        """Place all tasks as HEFT does."""
        for task in in_order(graph.tasks, graph.upward_ranks()):
            self._place(graph, task, now)

    @staticmethod
    def _by_readiness(graph: TaskGraph, ranks: dict[int, float], place: Callable[[int], None]) -> None:
        """Place tasks whose predecessors are placed, the highest rank first."""
        left = dict(zip(graph.tasks, graph.counts_before(), strict=True))
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
        self._place_by_rank(graph, now)


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


class LookaheadHEFT(StaticList):
    """HEFT with lookahead: a task goes where those that wait for it would end earliest.

    Notes
    -----
    Tasks are placed by falling upward rank, as with HEFT. On each host a task is tried in its earliest gap,
    and then all that wait for it are placed as HEFT would place them, by falling rank, by the data of those
    that have a place. The task goes to the host for which the latest of these ends is least (section 3). Of
    equals it is the host on which the task itself ends earliest, then the lowest id. A task for which none waits
    goes to the host of its earliest end. It takes as many times longer than HEFT as there are hosts times tasks
    that wait for one.

    References
    ----------
    .. [1] L. F. Bittencourt, R. Sakellariou, E. R. M. Madeira, "DAG scheduling using a lookahead variant of the
       heterogeneous earliest finish time algorithm", PDP 2010. https://doi.org/10.1109/PDP.2010.56
    """

    def _place_all(self, graph: TaskGraph, now: float) -> None:
        ranks = graph.upward_ranks()
        for task in in_order(graph.tasks, ranks):
            edges = {edge.other: edge for edge in graph.behind[task]}
            children = [edges[child] for child in in_order(list(edges), ranks)]
            if children:
                self._look_ahead(graph, task, children, now)
            else:
                self._place(graph, task, now)

    def _look_ahead(self, graph: TaskGraph, task: int, children: list[Edge], now: float) -> None:
        """Place a task by the latest end of those that wait for it."""
        table, ready, time = self.table_, self._ready(graph, task, now), graph.times_of(task)
        if ready is None:
            return
        others = [self._ready_by_those_placed(graph, child.other, now) for child in children]
        best: tuple[tuple[float, float, int], Place] = (np.inf, np.inf, -1), (-1, -1, np.inf)
        for host in np.flatnonzero(np.isfinite(ready + time)).tolist():
            place = table.place_on(host, ready.item(host), time.item(host), graph.cores[task])
            table.place(task, place, time.item(host))
            end, latest, placed = table.end_s[task], -np.inf, []
            for child, known in zip(children, others, strict=True):
                child_ready = np.maximum(known, end + graph.sent(child, host))
                child_time = graph.times_of(child.other)
                at = table.best_place(child_ready, child_time, None, graph.cores[child.other])
                if at[0] >= 0:
                    table.place(child.other, at, child_time.item(at[0]))
                    placed.append(child.other)
                    latest = max(latest, table.end_s[child.other])
            for each in reversed([task, *placed]):
                table.remove(each)
            best = min(best, ((latest if placed else end, end, host), place))
        if best[1][0] >= 0:
            table.place(task, best[1], time.item(best[1][0]))


class DLS(StaticList):
    """Dynamic level scheduling: of all ready tasks and hosts the pair of the greatest dynamic level.

    Notes
    -----
    ``DL(i, j) = SL(i) - max(data_ij, free_j) + (E*(i) - E(i, j))``: E* is the median of a task's times
    over hosts (the greatest finite one where the median is not), and the static level SL is the greatest sum of E* on
    a way from the task to an end, without transfers. `data_ij` is when the task's data are at the host, `free_j` when
    what is planned there has ended: there is no insertion into gaps. Of equal pairs it is the lowest task id, then the
    lowest host id. On hosts of several cores, `free_j` is
    when as many cores are free as the task takes.

    References
    ----------
    .. [1] G. C. Sih, E. A. Lee, "A compile-time scheduling heuristic for interconnection-constrained heterogeneous
       processor architectures", IEEE TPDS 4(2), 1993. https://doi.org/10.1109/71.207593
    """

    def _place_all(self, graph: TaskGraph, now: float) -> None:
        median_s = graph.median_times()
        levels = graph.static_levels(median_s)
        worth = (levels + median_s)[:, None] - graph.time_s
        data_s = np.full(graph.time_s.shape, np.inf)
        left = graph.counts_before()
        ready = [row for row, count in enumerate(left) if not count]
        new = ready
        while ready:
            for row in new:
                data = self._ready(graph, graph.tasks[row], now)
                data_s[row] = np.inf if data is None else data
            free_s = {n: self.table_.free_s(n) for n in {graph.cores[graph.tasks[row]] for row in ready}}
            free = np.array([free_s[graph.cores[graph.tasks[row]]] for row in ready])
            level = worth[ready] - np.maximum(data_s[ready], free)
            k, host = divmod(int(level.argmax()), level.shape[1])
            row = ready.pop(k)
            task = graph.tasks[row]
            if level[k, host] > -np.inf:  # else no host that is on can run it
                place = self.table_.place_behind(host, data_s.item(row, host), graph.cores[task])
                self.table_.place(task, place, graph.time_s.item(row, host))
            new = []
            for edge in graph.behind[task]:
                child = graph.row[edge.other]
                left[child] -= 1
                if not left[child]:
                    insort(ready, child)
                    new.append(child)


class HBMCT(StaticList):
    """Hybrid heuristic: groups of tasks that do not wait for each other, each balanced over the hosts.

    Notes
    -----
    Tasks are taken by falling upward rank; one that waits for any of the present group begins the next. Each group is
    placed by balanced minimum completion time: at first every task is where it alone would end earliest behind what
    was planned before, of equal places on the lowest host. Then, again and again, the core on which the group ends
    latest gives away the task, to the core, by which the group's end becomes least, as long as it becomes less. The
    tasks of a group on one core go in the order in which their data come; there is no insertion into gaps. Of equal
    moves it is that by which the core that takes ends earliest, then the lowest task id, then the lowest host id; a
    change of less than 1e-9 of the group's end is none. Tasks of several cores are refused: a group is balanced core
    by core.

    References
    ----------
    .. [1] R. Sakellariou, H. Zhao, "A hybrid heuristic for DAG scheduling on heterogeneous systems", HCW in IPDPS
       2004 (not read: by descriptions of others). https://doi.org/10.1109/IPDPS.2004.1303065
    """

    traits: ClassVar[Traits] = Traits(trigger="event", one_core=True)

    def _place_all(self, graph: TaskGraph, now: float) -> None:
        for group in independent_groups(graph, in_order(graph.tasks, graph.upward_ranks())):
            tasks, data = [], []
            for task in sorted(group):
                ready = self._ready(graph, task, now)
                if ready is not None and np.isfinite(ready + graph.times_of(task)).any():
                    tasks.append(task)
                    data.append(ready)
            if tasks:
                self._balance(graph, tasks, np.array(data))

    def _balance(self, graph: TaskGraph, tasks: list[int], ready_s: Floats) -> None:
        """Place the tasks of a group by balanced minimum completion time."""
        time_s = np.array([graph.times_of(task) for task in tasks])
        time_s[np.isinf(ready_s)] = np.inf
        cores = [(host, core) for host, several in enumerate(self.table_.cores) for core in range(len(several))]
        of_host = [host for host, _ in cores]
        time_s, ready_s = time_s[:, of_host], ready_s[:, of_host]
        free_s = [self.table_.cores[host][core].starts[-1] for host, core in cores]
        first = (np.maximum(ready_s, free_s) + time_s).argmin(axis=1)
        on = [np.flatnonzero(first == c).tolist() for c in range(len(cores))]
        loads = [Load(free_s[c], ready_s[:, c], time_s[:, c], on[c]) for c in range(len(cores))]
        while True:
            ends = np.array([load.end_s if load.rows else -np.inf for load in loads])
            worst = int(ends.argmax())
            rows = loads[worst].rows_by_id
            there = np.array([load.ends_with[rows] for load in loads]).T  # (tasks on the worst, cores)
            after = np.maximum(there, loads[worst].ends_without(rows)[:, None])
            after = np.maximum(after, _greatest_of_others(ends, worst))
            after[:, worst] = np.inf
            k, target = divmod(int(np.where(after == after.min(), there, np.inf).argmin()), len(cores))
            if not after[k, target] < ends[worst] - _EQUAL * abs(ends[worst]):
                break
            moved = rows[k]
            for c, now_on in ((worst, set(loads[worst].rows) - {moved}), (target, {*loads[target].rows, moved})):
                loads[c] = Load(free_s[c], ready_s[:, c], time_s[:, c], sorted(now_on))
        for (host, core), load, column in zip(cores, loads, range(len(cores)), strict=True):
            start = free_s[column]
            for row in load.rows:
                start = max(start, ready_s.item(row, column))
                self.table_.place(tasks[row], (host, core, start), time_s.item(row, column))
                start = self.table_.end_s[tasks[row]]


class Load:
    """Tasks of a group on one core, in the order in which their data come.

    Parameters
    ----------
    free_s : float
        From when on the core is free [s].
    ready_s, time_s : ndarray of float64, shape (tasks,)
        Of all tasks of the group, if they were on this core [s].
    rows : list of int
        Those that are.

    Attributes
    ----------
    rows : list of int
        In the order in which they run.
    rows_by_id : list of int
    end_s : float
        When the last ends [s].
    ends_with : ndarray of float64, shape (tasks,)
        When the last would end if each task of the group were here, too [s].
    """

    def __init__(self, free_s: float, ready_s: Floats, time_s: Floats, rows: list[int]) -> None:
        self.rows_by_id = sorted(rows)
        self.rows = sorted(rows, key=lambda row: (ready_s.item(row), row))
        ready, self._time = ready_s[self.rows], time_s[self.rows]
        behind = np.append(np.cumsum(self._time[::-1])[::-1], 0.0)  # from each task on
        begins = np.maximum(ready, free_s) + behind[:-1]
        #: when what is here ends if it is built on one of the first k tasks or `free_s`, and on one from the k-th on
        first = np.append(free_s + behind[0], begins)
        self._by_first = np.maximum.accumulate(first)
        self._by_rest = np.append(np.maximum.accumulate(begins[::-1])[::-1], -np.inf)
        self.end_s = float(self._by_first[-1])
        k = np.searchsorted(ready, ready_s, side="right")
        own = np.maximum(ready_s, free_s) + time_s + behind[k]
        self.ends_with = np.maximum(np.maximum(self._by_first[k] + time_s, own), self._by_rest[k])

    def ends_without(self, rows: list[int]) -> Floats:
        """Return when the last would end without each of some tasks that are here [s], shape (rows,)."""
        k = np.array([self.rows.index(row) for row in rows])
        without: Floats = np.maximum(self._by_first[k] - self._time[k], self._by_rest[k + 1])
        return without if len(self.rows) > 1 else np.full(len(rows), -np.inf)


def _greatest_of_others(ends_s: Floats, worst: int) -> Floats:
    """Return for each core the greatest end of all but itself and the worst [s], shape (cores,)."""
    others = ends_s.copy()
    others[worst] = -np.inf
    first = int(others.argmax())
    greatest = np.full(len(others), others[first])
    others[first] = -np.inf
    greatest[first] = others.max()
    return greatest


def independent_groups(graph: TaskGraph, order: Iterable[int]) -> list[list[int]]:
    """Return tasks in groups of which none waits for another of its group, in an order that is given."""
    groups: list[list[int]] = []
    present: set[int] = set()
    for task in order:
        if not groups or any(edge.other in present for edge in graph.before[task]):
            groups.append([])
            present = set()
        groups[-1].append(task)
        present.add(task)
    return groups
