"""Static lists that choose P-states: by energy and time together, or by the slack that a plan leaves.

P-states are chosen on hosts of one core, since the cores of a host share one; elsewhere tasks run in the P-state that
their host starts in. Energy is what estimates have of a task: its power times its time.
"""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np

from gridsched.model.system import System
from gridsched.policy.base import Traits
from gridsched.systems.workflows.static_lists import StaticList
from gridsched.systems.workflows.task_graph import TaskGraph, in_order
from gridsched.systems.workflows.timetable import Place, Timetable, each_core

#: Energies that differ by less, relatively, are equal.
_EQUAL = 1e-9


class Option(NamedTuple):
    """A task's time and energy in one of a host's P-states [s], [J]."""

    pstate: int
    time_s: float
    energy_j: float


class PStateList(StaticList):
    """Base of static lists that choose P-states."""

    traits: ClassVar[Traits] = Traits(trigger="event", uses_dvfs=True)

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Forget the last run's timetable; find the P-states of each host."""
        super().prepare(system, rng)
        self.first_: list[int] = system.pstates.tolist()
        self.n_pstates_: list[int] = system.estimates.n_pstates(system.platform).tolist()
        self.one_core_: list[bool] = (system.platform.cores == 1).tolist()

    def _options(self, task: int, host: int) -> list[Option]:
        """Return what a task takes in each P-state that it may have on a host, in the order of these."""
        estimates = self.system_.estimates
        pstates = range(self.n_pstates_[host]) if self.one_core_[host] else (self.first_[host],)
        times = ((pstate, estimates.run_time(task, host, pstate)) for pstate in pstates)
        return [Option(p, time, estimates.energy(task, host, p)) for p, time in times if time < np.inf]


class ECS(PStateList):
    """Energy-conscious scheduling: the host and P-state of the greatest relative superiority.

    Notes
    -----
    Tasks are placed by falling upward rank. For each, hosts and their P-states are tried in order, and a place j takes
    the place of the best so far, b, where its relative superiority is positive:
    ``RS = -((E_j - E_b) / E_j + (EFT_j - EFT_b) / (EFT_j - min(EST_j, EST_b)))``, with the energy E of the task, and
    its earliest start and end, in gaps, EST and EFT. So of equal places the lowest host and P-state stay, and the
    order of hosts matters, because superiority over the best so far does not order places.

    Then makespan-conservative energy reduction: in the same order each task goes to the place of least energy at
    which it ends before anything that is planned behind it would have to move, and before the makespan; of equal ones
    to that of its earliest end, then to the lowest host and P-state. It moves only for less energy. All other tasks
    stay where they are, whereas the paper looks at the makespan alone.

    References
    ----------
    .. [1] Y. C. Lee, A. Y. Zomaya, "Minimizing energy consumption for precedence-constrained applications using
       dynamic voltage scaling", CCGrid 2009. https://doi.org/10.1109/CCGRID.2009.16
    .. [2] Y. C. Lee, A. Y. Zomaya, "Energy conscious scheduling for distributed computing systems under different
       operating conditions", IEEE TPDS 22(8), 2011. https://doi.org/10.1109/TPDS.2010.208
    """

    traits: ClassVar[Traits] = Traits(trigger="event", uses_dvfs=True, platform_order_matters=True)

    def _place_all(self, graph: TaskGraph, now: float) -> None:
        order = in_order(graph.tasks, graph.upward_ranks())
        for task in order:
            self._place_superior(graph, task, now)
        makespan = max((self.table_.end_s[task] for task in order if task in self.table_.host), default=now)
        for task in order:
            if task in self.table_.host:
                self._reduce(graph, task, now, makespan)

    def _place_superior(self, graph: TaskGraph, task: int, now: float) -> None:
        """Place a task by relative superiority."""
        ready = self._ready(graph, task, now)
        if ready is None:
            return
        best: tuple[Place, Option] | None = None
        for host in np.flatnonzero(np.isfinite(ready + graph.times_of(task))).tolist():
            for option in self._options(task, host):
                place = self.table_.place_on(host, ready.item(host), option.time_s, graph.cores[task])
                if best is None or superiority(place[2], option, best[0][2], best[1]) > 0:
                    best = place, option
        if best is not None:
            self.table_.place(task, best[0], best[1].time_s)
            self.pstate_[task] = best[1].pstate

    def _reduce(self, graph: TaskGraph, task: int, now: float, makespan: float) -> None:
        """Move a task to the place of least energy at which nothing else has to move."""
        table = self.table_
        host, start, time = table.host[task], table.start_s[task], table.end_s[task] - table.start_s[task]
        kept = host, table.core[task], start
        pstate = self.pstate_[task]
        least = self.system_.estimates.energy(task, host, pstate) * (1 - _EQUAL)
        ready = self._ready(graph, task, now)
        assert ready is not None  # it has a place
        table.remove(task)
        latest = np.full(len(ready), makespan)
        for edge in graph.behind[task]:
            if edge.other in table.host:
                there = table.host[edge.other]
                sent = [graph.sent(edge, source).item(there) for source in range(len(latest))]
                np.minimum(latest, table.start_s[edge.other] - np.array(sent), out=latest)
        best = (least, np.inf, host, pstate), kept, time
        can_run = np.isfinite(graph.times_of(task))
        for host in np.flatnonzero((ready < latest) & can_run).tolist():
            for option in self._options(task, host):
                if option.energy_j <= best[0][0]:
                    place = table.place_on(host, ready.item(host), option.time_s, graph.cores[task])
                    end = place[2] + option.time_s
                    if end <= latest[host]:
                        best = min(best, ((option.energy_j, end, host, option.pstate), place, option.time_s))
        table.place(task, best[1], best[2])
        self.pstate_[task] = best[0][3]


def superiority(start_s: float, option: Option, best_start_s: float, best: Option) -> float:
    """Return how much better a place is than the best so far (ECS): more than 0 where it is.

    Parameters
    ----------
    start_s : float
        Earliest start there [s].
    option : Option
    best_start_s : float
    best : Option
    """
    end, best_end = start_s + option.time_s, best_start_s + best.time_s
    energy = (option.energy_j - best.energy_j) / option.energy_j if option.energy_j > 0 else 0.0
    return -(energy + (end - best_end) / (end - min(start_s, best_start_s)))


class SlackList(PStateList):
    """Base of lists that make HEFT's plan and then slow down tasks that have time, in place.

    Notes
    -----
    Hosts, cores and their order of tasks stay HEFT's, and so does the end of the plan. A task may take a P-state in
    which its host idles at no more than in the one that it starts in, and in which ``E - idle_w t`` is less, where
    `idle_w` is what the host draws idle in the P-state that it starts in: a slower task takes the place of idle
    time. So where a plan is what happens, on hosts of one core, the run draws no more than under HEFT.
    """

    def remark_on(self, system: System) -> str:
        """Return that it decides as HEFT on hosts of which none has P-states to choose from."""
        has_choice = (system.estimates.n_pstates(system.platform) > 1) & (system.platform.cores == 1)
        if has_choice.any():
            return ""
        return "decides as heft here: no host of one core has several P-states"

    def _place_all(self, graph: TaskGraph, now: float) -> None:
        self._place_by_rank(graph, now)
        tasks = [task for task in graph.tasks if task in self.table_.host]
        if not tasks:
            return
        steps = {task: self._steps(task) for task in tasks}
        plan = SlackPlan(graph, self.table_, {task: steps[task][0].time_s for task in tasks}, now)
        chosen = self._slow_down(plan, steps)
        for task, k in chosen.items():
            self.pstate_[task] = steps[task][k].pstate
        plan.write()

    def _steps(self, task: int) -> list[Option]:
        """Return a task's time and energy as planned, then in slower P-states each of which draws less."""
        host = self.table_.host[task]
        first, estimates, idle_w = self.first_[host], self.system_.estimates, self.system_.platform.idle_w[host]
        options = {option.pstate: option for option in self._options(task, host)}
        idle = {pstate: idle_w.item(estimates.host_pstate(task, pstate, host)) for pstate in options}
        steps = [options[first]]
        for option in sorted(options.values(), key=lambda option: (option.time_s, option.pstate)):
            above = option.energy_j - idle[first] * option.time_s
            last = steps[-1].energy_j - idle[first] * steps[-1].time_s
            slower = option.time_s > steps[-1].time_s and idle[option.pstate] <= idle[first]
            if slower and above < last - _EQUAL * abs(last):
                steps.append(option)
        return steps

    @abstractmethod
    def _slow_down(self, plan: SlackPlan, steps: dict[int, list[Option]]) -> dict[int, int]:
        """Give tasks more time in a plan; return which of its steps each takes.

        Parameters
        ----------
        plan : SlackPlan
        steps : dict of int to list of Option
            Of each task, as `_steps` returns them.
        """


class SlackPlan:
    """A plan in which tasks may take longer: who is before and behind whom, and until when each has time.

    Parameters
    ----------
    graph : TaskGraph
    table : Timetable
    time_s : dict of int to float
        What each task takes of the graph that has a place [s].
    now : float
        No task starts before [s].

    Attributes
    ----------
    order : list of int
        Tasks by their planned starts.
    time_s : dict of int to float
        What each takes now [s].
    """

    def __init__(self, graph: TaskGraph, table: Timetable, time_s: dict[int, float], now: float) -> None:
        self._table = table
        self.order = sorted(time_s, key=lambda task: (table.start_s[task], task))
        self.time_s = time_s
        self._start_s = {task: table.start_s[task] for task in time_s}
        self._end_s = {task: table.end_s[task] for task in time_s}
        self._makespan = max(self._end_s.values())
        cores: dict[tuple[int, int], list[int]] = {}
        for task in sorted(table.host, key=lambda task: (table.start_s[task], task)):
            for core in each_core(table.core[task]):
                cores.setdefault((table.host[task], core), []).append(task)
        #: tasks that are next on the task's cores, and that were last there
        self._behind_on_cores: dict[int, list[int]] = {}
        self._before_on_cores: dict[int, list[int]] = {}
        for row in cores.values():
            for before, behind in pairwise(row):
                self._behind_on_cores.setdefault(before, []).append(behind)
                self._before_on_cores.setdefault(behind, []).append(before)
        host = table.host
        #: when the files that a task reads are at its host, or the present time [s]
        self._earliest_s = {
            task: graph.staged_s[task].item(host[task]) if task in graph.staged_s else now for task in time_s
        }
        self._before = {
            task: [
                (e.other, graph.sent(e, host[e.other]).item(host[task])) for e in graph.before[task] if e.other in host
            ]
            for task in time_s
        }
        self._behind: dict[int, list[tuple[int, float]]] = {task: [] for task in time_s}
        for task in time_s:
            for other, sent in self._before[task]:
                if other in self._behind:
                    self._behind[other].append((task, sent))

    def latest_ends(self) -> dict[int, float]:
        """Return until when each task may take without moving the plan's end, all others as long as now [s]."""
        latest: dict[int, float] = {}
        for task in reversed(self.order):
            end = self._makespan
            for other, sent in self._behind[task]:
                end = min(end, latest[other] - self.time_s[other] - sent)
            for behind in self._behind_on_cores.get(task, ()):
                start = latest[behind] - self.time_s[behind] if behind in latest else self._table.start_s[behind]
                end = min(end, start)
            latest[task] = end
        return latest

    def start(self, task: int) -> float:
        """Return when a task can start by the ends of those before it [s]."""
        ends = [self._earliest_s[task], *(self._end(other) + sent for other, sent in self._before[task])]
        ends += map(self._end, self._before_on_cores.get(task, ()))
        return max(ends)

    def take(self, task: int, start_s: float, time_s: float) -> None:
        """Have a task start and take so long [s]."""
        self._start_s[task], self.time_s[task], self._end_s[task] = start_s, time_s, start_s + time_s

    def _end(self, task: int) -> float:
        return self._end_s[task] if task in self._end_s else self._table.end_s[task]

    def write(self) -> None:
        """Bring the timetable up to date."""
        table = self._table
        places = {task: (table.host[task], table.core[task], self._start_s[task]) for task in self.order}
        for task in self.order:
            table.remove(task)
        for task in self.order:
            table.place(task, places[task], self.time_s[task])


class HEFTWithSlack(SlackList):
    """HEFT, then each task in its turn as slowly as saves energy and the makespan allows.

    Notes
    -----
    Slack reclamation: tasks by their planned starts; each starts as early as those before it allow, and takes of its
    P-states that of the least ``E - idle_w t`` (see `SlackList`) in which it ends by the time by which it must end if
    all tasks behind it take as long as planned. So the first task on a path takes all slack that it can use. Equal
    starts: the lowest task id.

    References
    ----------
    .. [1] H. Topcuoglu, S. Hariri, M.-Y. Wu, "Performance-effective and low-complexity task scheduling for
       heterogeneous computing", IEEE TPDS 13(3), 2002. https://doi.org/10.1109/71.993206
    .. [2] M. Emami, Y. Ghiasi, N. Jaberi, "Energy-aware scheduling using dynamic voltage-frequency scaling",
       arXiv:1206.1984, 2012 (abstract read).
    """

    def _slow_down(self, plan: SlackPlan, steps: dict[int, list[Option]]) -> dict[int, int]:
        latest, chosen = plan.latest_ends(), {}
        for task in plan.order:
            start = plan.start(task)
            fits = [k for k, step in enumerate(steps[task]) if k == 0 or start + step.time_s <= latest[task]]
            chosen[task] = fits[-1]
            plan.take(task, start, steps[task][fits[-1]].time_s)
        return chosen


class EES(SlackList):
    """Enhanced energy-efficient scheduling: the slack of HEFT's plan is shared among the tasks that can use it.

    Notes
    -----
    Rounds: tasks by their planned starts, each one step to the next slower P-state that saves energy (see
    `SlackList`), if it then still ends by the time by which it must end with all tasks behind it as long as they take
    now; rounds end when no task has taken a step. So tasks on one way share its slack, each a step before any takes
    a second, where `heft_slack` gives it to the first. The paper shares slack at one common frequency of all tasks
    on a processor between critical ones; P-states here are few, and steps replace it. Equal starts: the lowest
    task id.

    References
    ----------
    .. [1] Q. Huang, S. Su, J. Li, P. Xu, K. Shuang, X. Huang, "Enhanced energy-efficient scheduling for parallel
       applications in cloud", CCGrid 2012 (not read: by descriptions of others).
       https://doi.org/10.1109/CCGrid.2012.49
    """

    def _slow_down(self, plan: SlackPlan, steps: dict[int, list[Option]]) -> dict[int, int]:
        chosen = dict.fromkeys(plan.order, 0)
        changes = True
        while changes:
            changes, latest = False, plan.latest_ends()
            for task in plan.order:
                start, k = plan.start(task), chosen[task] + 1
                if k < len(steps[task]) and start + steps[task][k].time_s <= latest[task]:
                    chosen[task], changes = k, True
                plan.take(task, start, steps[task][chosen[task]].time_s)
        return chosen
