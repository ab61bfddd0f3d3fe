"""What executions do, step by step: their programs, and how far each has come.

The default is one step, in which the execution computes: it is then an activity itself, and nothing here has a part in
it. Otherwise a program is a sequence: what the task receives from the master, the steps of its profile or its
computation, what it sends back.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from math import inf
from typing import Any, Final

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.engine.execution import Activity, Command, Execution, ParallelStep, Stop, Transfer
from gridsched.engine.link_traffic import LinkTraffic
from gridsched.engine.placed_steps import PlacedStep, PlacedSteps, StepRoutes
from gridsched.model.job_profiles import Step
from gridsched.model.limits import time_tolerance
from gridsched.model.routes import RouteSource
from gridsched.model.system import System
from gridsched.model.tasks import Tasks

#: The step in which an execution computes, at full speed on all its hosts.
COMPUTE: Final = Step()


@dataclass(frozen=True)
class ProgramRules:
    """What of a run gives its executions more steps than one.

    Attributes
    ----------
    routes : RouteSource
        Between hosts, for what parts send.
    master : str or None
        The host from which tasks receive their input, and to which they send their result; None: they do not.
    runs_profiles : bool
        Whether tasks do what their profiles specify.
    traffic_step_s : float or None
        Length of the steps in which bytes over each link are recorded [s]; None: they are not.
    """

    routes: RouteSource
    master: str | None = None
    runs_profiles: bool = False
    traffic_step_s: float | None = None


class ProgramRun:
    """An execution and its place in its program.

    Parameters
    ----------
    execution : Execution
    steps : iterator of Step
    names : tuple of str
        Its hosts, one for each part.
    speeds : ndarray of float64, shape (parts,)
        Of a core of each host in the execution's P-state [flop/s].
    cores : ndarray of int64, shape (parts,)
        Of each host.
    deadline : float
        When it is killed [s]; inf: never.
    n_levels : int
        Of switches that are known.
    traffic : LinkTraffic, optional
        Where its bytes are added over time.

    Attributes
    ----------
    activity : Execution, ParallelStep or None
        What it does now; None: it waits for the end of a delay, or is over.
    end_s : float or None
        When it ended to do anything but send messages to the master [s]; None: it has not begun.
    sent_bytes : ndarray of float64, shape (1 + levels,)
        What it has sent, and what of that left the switch of each level [byte].
    routes : object or None
        Of the last messages that it has sent; None: it has sent none.
    sums : ndarray of float64, shape (links,)
        What it has sent over each of the links of these routes [byte].
    before : dict of str to float
        What it had sent over each link before it took these routes [byte]; empty if it has taken no others.
    """

    def __init__(
        self,
        execution: Execution,
        steps: Iterator[Step],
        names: tuple[str, ...],
        speeds: Floats,
        cores: Floats,
        deadline: float = inf,
        n_levels: int = 0,
        traffic: LinkTraffic | None = None,
    ) -> None:
        self.execution = execution
        self.names, self.speeds, self.deadline = names, speeds, deadline
        self.activity: Activity | None = None
        self.end_s: float | None = None
        self._steps, self._cores, self._full_speed = steps, cores, speeds * cores
        self._placed: dict[int, PlacedStep] = {}
        self._step, self._began = COMPUTE, execution.start
        self._run_time_s = execution.estimated_end - execution.start
        self.sent_bytes = np.zeros(1 + n_levels)
        self.routes: StepRoutes | None = None
        self.sums = np.zeros(0)
        self.before: dict[str, float] = {}
        self._traffic = traffic

    def next_step(self, now: float, steps: PlacedSteps) -> Activity | float | None:
        """Go on to the next step that takes time, from now on [s].

        Returns
        -------
        Execution, ParallelStep, float or None
            What begins, how long it waits [s], or None: no step is left.
        """
        execution = self.execution
        for step in self._steps:
            if step is not COMPUTE and step.does_nothing:
                continue
            if self.end_s is None and not step.is_message:
                execution.start = self.end_s = now
            self._step, self._began = step, now
            if step is COMPUTE:
                execution.end = now + self._run_time_s
                self.activity = execution
                return execution
            if step.delay_s:
                return step.delay_s
            self.activity = ParallelStep(execution, self._place(step, steps), self.names, self.speeds, now)
            self.activity.traffic = self._traffic
            return self.activity
        if self.end_s is None:
            self.end_s = now
        return None

    def _place(self, step: Step, steps: PlacedSteps) -> PlacedStep:
        placed = self._placed.get(id(step))
        if placed is None or placed.step is not step:
            if len(self._placed) >= steps.MOST_KEPT:
                self._placed.pop(next(iter(self._placed)))
            placed = self._placed[id(step)] = steps.place(step, self.names)
        return placed

    def end_step(self, now: float, share: float) -> None:
        """Note that the step that it is at ends or is ended now [s], after a share of its work."""
        activity, self.activity = self.activity, None
        if not self._step.is_message:
            self.end_s = now
        if activity is None:
            return
        computed = self.execution.computed
        if activity is self.execution:
            if computed is not None:
                computed += (now - self._began) * self.shares_of_cores
            return
        assert isinstance(activity, ParallelStep)
        activity.note_end(now, share)
        flops = self._step.flops
        if len(flops) and computed is not None:
            computed[flops > 0, 0] += max(now - self._began - activity.placed.latency_s, 0.0)
            computed[:, 1] += share * flops / self._full_speed
        self._add_sent(activity.placed, share)

    @property
    def shares_of_cores(self) -> Floats:
        """One, and the share of the cores of each of its hosts that it has, shape (hosts, 2)."""
        return np.stack([np.ones(len(self._cores)), self.execution.cores / self._cores], axis=1)

    def _add_sent(self, placed: PlacedStep, share: float) -> None:
        """Note which share of a step's messages was sent."""
        if placed.routes is None:
            return
        self.sent_bytes += share * placed.sent_bytes
        if placed.routes is self.routes:
            self.sums += share * placed.link_bytes
            return
        before = self.before = self.link_bytes
        self.routes, self.sums = placed.routes, share * placed.link_bytes
        if before:
            self.sums += [before.get(link, 0.0) for link in placed.links]

    @property
    def link_bytes(self) -> dict[str, float]:
        """What it has sent over each link [byte]."""
        if self.routes is None:
            return self.before
        return self.before | dict(zip(self.routes.links, self.sums.tolist(), strict=True))


class Programs:
    """Lets executions go through their programs; what they send and compute is noted.

    Parameters
    ----------
    system : System
    tasks : Tasks
    rules : ProgramRules

    Attributes
    ----------
    next_time : float
        When a delay ends or an execution is to be killed [s]; inf: never.
    commands : list of Command
        What begins and what is stopped, to be taken by who advances it.
    remaining : callable
        The driver's `Driver.remaining`.
    """

    def __init__(self, system: System, tasks: Tasks, rules: ProgramRules) -> None:
        self._tasks, self._rules = tasks, rules
        self._steps = PlacedSteps(rules.routes, system.platform)
        self._traffic = None if rules.traffic_step_s is None else LinkTraffic(rules.traffic_step_s)
        self._names = [host.name for host in system.platform.hosts]
        self._speed, self._cores = system.platform.speed, system.platform.cores
        self._kills = system.rules.walltime == "kill"
        self._n_levels = len(system.platform.switch_of)
        self._runs: dict[Execution, ProgramRun] = {}
        #: when delays end, and when executions are killed [s]; a number keeps runs from being compared
        self._due: list[tuple[float, int, ProgramRun, bool]] = []
        self._number = count()
        self._over: list[ProgramRun] = []
        self.commands: list[Command] = []
        self.next_time = inf
        self.remaining: Callable[[Activity], float] = _nothing_remains
        self._row: dict[str, int] = {}
        self._sums = np.zeros(0)
        self.sent_bytes = np.zeros(1 + self._n_levels)

    @property
    def records_traffic(self) -> bool:
        """Whether it is recorded what crosses links over time."""
        return self._traffic is not None

    # ------------------------------------------------------------------ going on

    def begin(self, execution: Execution, now: float) -> None:
        """Let an execution that has its hosts and its data begin its program."""
        task = execution.task
        hosts = np.array(execution.all_hosts)
        steps = self._program_of(task, len(hosts))
        deadline = execution.estimated_end if self._kills else inf
        names = tuple(self._names[h] for h in hosts.tolist())
        speeds, cores = self._speed[hosts, execution.pstate], self._cores[hosts]
        if self._rules.runs_profiles:
            execution.computed = np.zeros((len(hosts), 2))
        run = ProgramRun(execution, steps, names, speeds, cores, deadline, self._n_levels, self._traffic)
        self._runs[execution] = run
        if deadline < inf:
            heapq.heappush(self._due, (deadline, next(self._number), run, True))
        self._go_on(run, now)
        self._find_next_time(now)

    def _program_of(self, task: int, parts: int) -> Iterator[Step]:
        """Yield the steps of a task on so many parts."""
        tasks, master = self._tasks, self._rules.master
        number = -1 if tasks.profile is None or not self._rules.runs_profiles else int(tasks.profile[task])
        received = 0.0 if master is None else tasks.input_bytes.item(task)
        sent = 0.0 if master is None else tasks.output_bytes.item(task)
        if received:
            yield _message(parts, received, str(master), comes=True)
        if number < 0:
            yield COMPUTE
        else:
            yield from tasks.profiles[number].steps(parts)
        if sent:
            yield _message(parts, sent, str(master), comes=False)

    def _go_on(self, run: ProgramRun, now: float) -> None:
        """Begin the next step; a run that has none is over."""
        begun = run.next_step(now, self._steps)
        if begun is None:
            self._over.append(run)
        elif isinstance(begun, float):
            heapq.heappush(self._due, (now + begun, next(self._number), run, False))
        else:
            self.commands.append(begun)

    def advance(self, now: float, ended: Sequence[Activity]) -> list[Execution]:
        """Let executions go on whose steps have ended by now [s]; return those that are over, in their order."""
        for activity in ended:
            if not isinstance(activity, Transfer):
                self._step_ends(self._runs[activity if isinstance(activity, Execution) else activity.execution], now)
        limit = now + time_tolerance(now)
        for run, kills in self._take_due(limit):
            if not kills:
                self._step_ends(run, now)
            elif run not in self._over:
                run.execution.is_cut = True
                self._over.append(run)
        over, self._over = self._over, []
        for run in over:
            self._end(run, now)
        self._find_next_time(now)
        return [run.execution for run in over]

    def _take_due(self, limit: float) -> Iterator[tuple[ProgramRun, bool]]:
        """Take the runs of which a delay ends by a time [s], then those that are to be killed by then."""
        killed = []
        while self._due and self._due[0][0] <= limit:
            _, _, run, kills = heapq.heappop(self._due)
            if run.execution not in self._runs:
                continue
            if kills:
                killed.append(run)
            else:
                yield run, False
        for run in killed:
            yield run, True

    def _step_ends(self, run: ProgramRun, now: float) -> None:
        run.end_step(now, 1.0)
        self._go_on(run, now)

    def _find_next_time(self, now: float) -> None:
        while self._due and self._due[0][2].execution not in self._runs:
            heapq.heappop(self._due)
        # what is over already is to be reported at once
        self.next_time = now if self._over else self._due[0][0] if self._due else inf

    def stop(self, execution: Execution, now: float) -> None:
        """End an execution before its end, wherever it is."""
        run = self._runs[execution]
        if run in self._over:
            self._over.remove(run)
        self._end(run, now)
        self._find_next_time(now)

    def _end(self, run: ProgramRun, now: float) -> None:
        """End a run wherever it is, and add up what it has sent."""
        execution = run.execution
        del self._runs[execution]
        if (activity := run.activity) is not None:
            share = 1.0 - self.remaining(activity)
            self.commands.append(Stop(activity))
            run.end_step(now, share)
        if run.end_s is None:
            execution.start = execution.end = now
        else:
            execution.end = run.end_s
        self._add_up(run)

    # ------------------------------------------------------------------ records

    def _add_up(self, run: ProgramRun) -> None:
        """Note what an execution has sent that ends."""
        self.sent_bytes += run.sent_bytes
        if run.routes is None:
            return
        if run.before:
            sent = run.link_bytes
            rows = self._rows(sent)  # which may make room first
            self._sums[rows] += list(sent.values())
            return
        if run.routes.rows is None:
            run.routes.rows = self._rows(run.routes.links)
        self._sums[run.routes.rows] += run.sums

    def _rows(self, links: Collection[str]) -> Integers:
        """Return the places of links among the sums, with room for all of them."""
        rows = np.array([self._row.setdefault(link, len(self._row)) for link in links], dtype=np.int64)
        if len(self._row) > len(self._sums):
            self._sums = np.append(self._sums, np.zeros(2 * len(self._row) - len(self._sums)))
        return rows

    def records(self) -> dict[str, Any]:
        """Return what a `Trace` has of them."""
        if not self._rules.runs_profiles:
            return {}
        link_bytes = dict(zip(self._row, self._sums.tolist(), strict=False))
        records: dict[str, Any] = {"link_bytes": link_bytes, "sent_bytes": tuple(self.sent_bytes.tolist())}
        if self._traffic is not None and self._row:
            records |= {"traffic_bytes": self._traffic.bytes_of(self._row), "traffic_step_s": self._traffic.step_s}
        return records


def _message(parts: int, size_bytes: float, master: str, *, comes: bool) -> Step:
    """Return the step in which the first part receives a message from the master, or sends one to it."""
    ends = np.array([parts]), np.array([0])
    source, target = ends if comes else ends[::-1]
    return Step(0.0, np.zeros(0), source, target, np.array([size_bytes]), master, is_message=True)


def _nothing_remains(_activity: Activity) -> float:
    """Be the driver of executions that no driver has begun."""
    return 0.0
