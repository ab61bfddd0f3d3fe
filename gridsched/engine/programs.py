"""What executions do, step by step: their programs, and how far each has come.

The default is one step, in which the execution computes: it is then an activity itself, and nothing here has a part in
it. Otherwise a program is a sequence: what the task receives from the master, the steps of its profile or its
computation, what it sends back.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Any, Final

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.engine.execution import Activity, Command, Execution, ParallelStep, Stop, Transfer
from gridsched.engine.host_powers import HostPowers
from gridsched.engine.link_traffic import LinkTraffic
from gridsched.engine.placed_steps import PlacedStep, PlacedSteps, StepRoutes
from gridsched.model.job_profiles import Step
from gridsched.model.limits import time_tolerance
from gridsched.model.platform import Platform
from gridsched.model.routes import RouteSource
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.model.trace import STEP, StepKind

#: So many steps are kept for the records.
MOST_STEPS = 1_000_000
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
    load : ndarray of float64, shape (tasks,)
        Share of its hosts' range of power that each task without a profile draws; empty: the whole.
    """

    routes: RouteSource
    master: str | None = None
    runs_profiles: bool = False
    traffic_step_s: float | None = None
    load: Floats = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True)
class PlacedParts:
    """The parts of an execution on its hosts.

    Attributes
    ----------
    names : tuple of str
        Host of each part.
    speeds, full_speeds : ndarray of float64, shape (parts,)
        Of the cores of each part, and of all cores of its host, in the execution's P-state [flop/s].
    place : ndarray of int64, shape (parts,)
        Which of the execution's hosts each part has.
    loads : ndarray of float64, shape (hosts,)
        Share of what each host can compute that the execution takes where it just computes.
    """

    names: tuple[str, ...]
    speeds: Floats
    full_speeds: Floats
    place: Integers
    loads: Floats

    @classmethod
    def of(cls, execution: Execution, platform: Platform, load: float = 1.0) -> PlacedParts:
        """Return the parts of an execution, on whose cores it takes this load; a part of a whole node has one core."""
        hosts = np.array(execution.all_hosts)
        place = np.repeat(np.arange(len(hosts)), execution.parts_each)
        speed, cores = platform.speed[hosts, execution.pstate], platform.cores[hosts]
        names = tuple(platform.hosts[h].name for h in hosts[place].tolist())
        of_part = speed[place] * (execution.part_cores or 1)
        return cls(names, of_part, (speed * cores)[place], place, load * execution.cores / cores)


class ProgramRun:
    """An execution and its place in its program.

    Parameters
    ----------
    execution : Execution
    steps : iterator of Step
    parts : PlacedParts
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
    is_over : bool
        Whether no step is left.
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
        parts: PlacedParts,
        n_levels: int = 0,
        traffic: LinkTraffic | None = None,
    ) -> None:
        self.execution, self.parts = execution, parts
        self.activity: Activity | None = None
        self.end_s: float | None = None
        self.is_over = False
        self._steps = steps
        self._placed: dict[int, PlacedStep] = {}
        self._step, self._began = COMPUTE, execution.start
        #: until when, and up to which share of the step, it has been counted what it has computed
        self._counted_s: float | None = None
        self._counted = 0.0
        self._run_time_s = execution.estimated_end - execution.start
        #: of its steps so far: which kind, begin and end [s]
        self.steps: list[tuple[int, float, float]] = []
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
            self._step, self._began, self._counted_s, self._counted = step, now, None, 0.0
            if step is COMPUTE:
                execution.end = now + self._run_time_s
                self.activity = execution
                return execution
            if step.delay_s:
                return step.delay_s
            self.activity = ParallelStep(execution, self._place(step, steps), self.parts.names, self.parts.speeds, now)
            self.activity.traffic = self._traffic
            return self.activity
        if self.end_s is None:
            self.end_s = now
        self.is_over = True
        return None

    def _place(self, step: Step, steps: PlacedSteps) -> PlacedStep:
        placed = self._placed.get(id(step))
        if placed is None or placed.step is not step:
            if len(self._placed) >= steps.MOST_KEPT:
                self._placed.pop(next(iter(self._placed)))
            placed = self._placed[id(step)] = steps.place(step, self.parts.names)
        return placed

    @property
    def computes_on(self) -> list[int]:
        """Places of those of its hosts on which the present step computes."""
        if self.activity is self.execution:
            return list(range(len(self.parts.loads)))
        flops = self._step.flops
        return sorted(set(self.parts.place[np.flatnonzero(flops)].tolist())) if len(flops) else []

    @property
    def computes_from(self) -> float:
        """When the present step begins to compute [s]."""
        activity = self.activity
        return self._began + (activity.placed.latency_s if isinstance(activity, ParallelStep) else 0.0)

    def count(self, now: float, share: float, *, alone: bool) -> Floats:
        """Count what it has computed until now [s], up to a share of its step; return what came to it.

        Parameters
        ----------
        now : float
        share : float
        alone : bool
            Whether nothing else computes on its hosts; else only what it has computed is counted, not for how long.

        Returns
        -------
        ndarray of float64, shape (hosts, 2)
            Seconds, as `Execution.computed` has them.
        """
        more = np.zeros((len(self.parts.loads), 2))
        if self.activity is None:
            return more
        places, since = self.computes_on, self._counted_s
        latency_s = self.computes_from - self._began
        # in this order, as rounding has always been
        seconds = max(now - self._began - latency_s if since is None else now - max(since, self.computes_from), 0.0)
        if self.activity is self.execution:
            more[:, 1] = seconds * self.parts.loads
        elif places:
            done = (share - self._counted) * self._step.flops / self.parts.full_speeds
            np.add.at(more[:, 1], self.parts.place, done)
        if alone:
            more[places, 0] = seconds
        self._counted_s, self._counted = now, share
        assert self.execution.computed is not None
        self.execution.computed += more
        return more

    def end_step(self, now: float, share: float) -> None:
        """Note that the step that it is at ends or is ended now [s], after a share of its work."""
        activity, self.activity = self.activity, None
        self.steps.append((self._kind(), self._began, now))
        if not self._step.is_message:
            self.end_s = now
        if isinstance(activity, ParallelStep):
            activity.note_end(now, share)
            self._add_sent(activity.placed, share)

    def _kind(self) -> int:
        """Return what the present step is."""
        step, n_parts = self._step, len(self.parts.names)
        if step is COMPUTE or (not step.delay_s and not len(step.size_bytes)):
            return StepKind.COMPUTE
        if step.delay_s:
            return StepKind.WAIT
        if not step.storage:
            return StepKind.PARALLEL
        comes = step.source.item(0) == n_parts
        if step.is_message:
            return StepKind.RECEIVE if comes else StepKind.SEND
        return StepKind.READ if comes else StepKind.WRITE

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


class Together:
    """Divides the time in which several executions compute on a host evenly among them.

    So the seconds of all together are those in which the host computes, whose power is another than when it is idle.
    """

    def __init__(self) -> None:
        #: of each host what computes there: the place that this host has in it, and from when on [s]
        self._on: dict[int, dict[ProgramRun, tuple[int, float]]] = {}
        self._counted: dict[int, float] = {}

    def begin(self, run: ProgramRun, now: float) -> None:
        """Note that the present step of a run computes, now [s] or when its latency is over."""
        hosts = run.execution.all_hosts
        for place in run.computes_on:
            self.count(hosts[place], now)
            self._on.setdefault(hosts[place], {})[run] = place, run.computes_from

    def end(self, run: ProgramRun) -> None:
        """Note that it computes no more; until now is counted."""
        for host in run.execution.all_hosts:
            self._on.get(host, {}).pop(run, None)

    def count(self, host: int, now: float) -> float:
        """Count what has come to each until now [s]; return for how long the host has computed since the last time."""
        since, self._counted[host] = self._counted.get(host, now), now
        members = self._on.get(host)
        if not members or now <= since:
            return 0.0
        computed_s = 0.0
        for time in sorted({now, *(begin for _, begin in members.values() if since < begin < now)}):
            active = [(run, place) for run, (place, begin) in members.items() if begin <= since]
            for run, place in active:
                assert run.execution.computed is not None
                run.execution.computed[place, 0] += (time - since) / len(active)
            computed_s += time - since if active else 0.0
            since = time
        return computed_s


class Programs:
    """Lets executions go through their programs; what they send and compute is noted.

    Parameters
    ----------
    system : System
    tasks : Tasks
    rules : ProgramRules
    powers : HostPowers
        They follow what computes; of profiles they know the most that these could draw.

    Attributes
    ----------
    next_time : float
        When a delay ends or an execution is to be killed [s]; inf: never.
    commands : list of Command
        What begins and what is stopped, to be taken by who advances it.
    remaining : callable
        The driver's `Driver.remaining`.
    """

    exist = True

    def __init__(self, system: System, tasks: Tasks, rules: ProgramRules, powers: HostPowers) -> None:
        self._tasks, self._rules, self._powers = tasks, rules, powers
        self._steps = PlacedSteps(rules.routes, system.platform)
        self._traffic = None if rules.traffic_step_s is None else LinkTraffic(rules.traffic_step_s)
        self._platform = system.platform
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
        #: where several executions compute on a host
        self._together = Together() if tasks.share_nodes or tasks.are_serial else None
        #: what hosts have drawn above idle, where it is to be counted [J]
        self._joules: Floats | None = None
        self._step_rows: list[tuple[int, int, int, int, float, float]] = []
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
        load = self._rules.load.item(execution.task) if len(self._rules.load) else 1.0
        parts = PlacedParts.of(execution, self._platform, load)
        steps = self._program_of(execution.task, len(parts.names))
        deadline = execution.estimated_end if self._kills else inf
        if self._rules.runs_profiles:
            execution.computed = np.zeros((len(parts.loads), 2))
        run = ProgramRun(execution, steps, parts, self._n_levels, self._traffic)
        self._runs[execution] = run
        execution.rests = not self._rules.runs_profiles
        if self._rules.runs_profiles:
            self._powers.began(execution)
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
            if self._rules.runs_profiles:
                if self._together is not None:
                    self._together.begin(run, now)
            elif begun is run.execution:
                run.execution.rests = False
                self._powers.began(run.execution)

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
        self._end_step(run, now, 1.0)
        self._go_on(run, now)

    def _end_step(self, run: ProgramRun, now: float, share: float) -> None:
        """End the present step of a run after a share of it."""
        if self._rules.runs_profiles:
            self._count(run, now, share)
            if self._together is not None:
                self._together.end(run)
        elif run.activity is run.execution:
            self._powers.ended(run.execution)
            run.execution.rests = True
        run.end_step(now, share)

    def _count(self, run: ProgramRun, now: float, share: float) -> None:
        """Count what a run has computed until now [s], up to a share of its step, and the joules of that."""
        hosts = run.execution.all_hosts
        more = run.count(now, share, alone=self._together is None)
        if self._together is not None:
            more[:, 0] = [self._together.count(h, now) for h in hosts]
        if self._joules is not None:
            rows = hosts, [run.execution.pstate] * len(hosts)
            platform = self._platform
            above_w = platform.epsilon_w[rows] - platform.idle_w[rows], platform.busy_w[rows] - platform.epsilon_w[rows]
            self._joules[hosts] += more[:, 0] * above_w[0] + more[:, 1] * above_w[1]

    def drawn_j(self, now: float) -> Floats:
        """Return what each host has drawn until now [s] above what it draws idle, by its computing [J], shape (hosts,).

        From the first call on; before it, nothing is counted.
        """
        if self._joules is None:
            self._joules = np.zeros(len(self._platform))
        for run in self._runs.values():
            if (activity := run.activity) is not None:
                self._count(run, now, 1.0 - self.remaining(activity))
        return self._joules

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
        if not run.is_over:
            share = 1.0
            if (activity := run.activity) is not None:
                share = 1.0 - self.remaining(activity)
                self.commands.append(Stop(activity))
            self._end_step(run, now, share)
        if run.end_s is None:
            execution.start = execution.end = now
        else:
            execution.end = run.end_s
        if len(run.steps) > 1 and len(self._step_rows) < MOST_STEPS:
            rows = enumerate(run.steps[: MOST_STEPS - len(self._step_rows)])
            self._step_rows += [(execution.task, execution.host, number, *step) for number, step in rows]
        self._add_up(run)

    # ------------------------------------------------------------------ records

    def note_transfer(self, transfer: Transfer) -> None:
        """Note what crosses links with data that have arrived."""
        hosts = self._platform.hosts
        names = hosts[transfer.source].name, hosts[transfer.target].name
        rows = self._rows(self._rules.routes.route(*names).links)
        np.add.at(self._sums, rows, transfer.size_bytes)

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
        steps = {"steps": np.array(self._step_rows, dtype=STEP)}
        if not self._rules.runs_profiles:
            return steps
        link_bytes = dict(zip(self._row, self._sums.tolist(), strict=False))
        records: dict[str, Any] = {**steps, "link_bytes": link_bytes, "sent_bytes": tuple(self.sent_bytes.tolist())}
        if self._traffic is not None and self._row:
            records |= {"traffic_bytes": self._traffic.bytes_of(self._row), "traffic_step_s": self._traffic.step_s}
        return records


class PlainPrograms(Programs):
    """A run whose executions just compute: each is an activity itself.

    Parameters
    ----------
    powers : HostPowers
    """

    exist = False

    def __init__(self, powers: HostPowers) -> None:
        self._powers, self._traffic = powers, None
        self.commands, self.next_time, self.remaining = [], inf, _nothing_remains

    def begin(self, execution: Execution, now: float) -> None:
        """Let an execution that has its hosts and its data compute."""
        self._powers.began(execution)
        self.commands.append(execution)

    def stop(self, execution: Execution, now: float) -> None:
        """End an execution before its end."""
        self.commands.append(Stop(execution))

    def note_transfer(self, transfer: Transfer) -> None:
        """Note nothing."""

    def records(self) -> dict[str, Any]:
        """Return nothing."""
        return {}


def _message(parts: int, size_bytes: float, master: str, *, comes: bool) -> Step:
    """Return the step in which the first part receives a message from the master, or sends one to it."""
    ends = np.array([parts]), np.array([0])
    source, target = ends if comes else ends[::-1]
    return Step(0.0, np.zeros(0), source, target, np.array([size_bytes]), master, is_message=True)


def _nothing_remains(_activity: Activity) -> float:
    """Be the driver of executions that no driver has begun."""
    return 0.0
