"""What happened: the flat records of one run, the only thing metrics and exports read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.arrays import Booleans, Floats, Integers, distinct
from gridsched.errors import InputError, counted
from gridsched.model.host_profiles import Speeds
from gridsched.model.limits import LARGEST_RESULT
from gridsched.model.platform import Platform
from gridsched.model.signals import EVEN, Signal
from gridsched.model.tasks import Tasks


class TaskState(IntEnum):
    """Where a task is; the values from `FINISHED` on are final."""

    NOT_SUBMITTED = 0
    BLOCKED = 1
    WAITING = 2
    VIRTUAL = 3
    QUEUED = 4
    RUNNING = 5
    POSTPONED = 6
    FINISHED = 7
    DROPPED = 8
    REJECTED = 9
    KILLED = 10
    FAILED = 11
    UNFINISHED = 12


class ExecutionEnd(IntEnum):
    """How one execution (copy) of a task ended.

    `TIMEOUT`: it was killed when it had run as long as was asked for (`Rules.walltime`); its task is then
    `TaskState.KILLED`, and left its nodes as any that had its turn.
    """

    FINISHED = 0
    CANCELLED = 1
    KILLED = 2
    FAILED = 3
    TIMEOUT = 4


#: One execution of a task (replicas are executions of their own).
EXECUTION = np.dtype(
    [
        ("task", np.int64),
        ("host", np.int64),
        ("pstate", np.int64),
        ("start", np.float64),
        ("end", np.float64),
        ("outcome", np.int64),
    ]
)

#: A change of a host's P-state or of its power switch; every host has a row at time 0.
HOST_CHANGE = np.dtype([("time", np.float64), ("host", np.int64), ("pstate", np.int64), ("is_on", np.bool_)])

#: Data on their way: the pair of `Tasks.dependencies`, by task, that wanted them first, hosts, size [byte], times [s].
TRANSFER = np.dtype(
    [
        ("pair", np.int64),
        ("source", np.int64),
        ("target", np.int64),
        ("size_bytes", np.float64),
        ("begin", np.float64),
        ("end", np.float64),
    ]
)


class StepKind(IntEnum):
    """What a step of an execution is: it waits, computes, computes and sends at once, or its data come or go."""

    WAIT = 0
    COMPUTE = 1
    PARALLEL = 2
    RECEIVE = 3
    SEND = 4
    READ = 5
    WRITE = 6


#: A step of an execution whose program has several: its task and first host, which step it is, `StepKind`, times [s].
STEP = np.dtype(
    [
        ("task", np.int64),
        ("host", np.int64),
        ("number", np.int64),
        ("kind", np.int64),
        ("begin", np.float64),
        ("end", np.float64),
    ]
)

#: A period of the energy budget within the run: its bounds [s], its budget, what was drawn in it,
#: and the part of that which went to executions started before the period (algorithms B7) [J],
#: counted as the trace's `energy_weights` say.
PERIOD = np.dtype(
    [
        ("start", np.float64),
        ("end", np.float64),
        ("budget_j", np.float64),
        ("consumed_j", np.float64),
        ("carried_over_j", np.float64),
    ]
)


@dataclass(frozen=True)
class Trace:
    """Task and host records of one run.

    Attributes
    ----------
    platform : Platform
    tasks : Tasks
    executions : ndarray of `EXECUTION`
        One record for each execution, in order of their start.
    host_changes : ndarray of `HOST_CHANGE`
        P-state and on/off changes in order of time.
    final_state : ndarray of int64, shape (tasks,)
        `TaskState` of each task at the end.
    horizon_s : float
        End of the run [s]: the last finish, or the last message where a network is simulated.
    mapping_events : int
        How often the scheduler was asked.
    timing : dict
        Wall times; kept apart from everything that must repeat bit by bit.
    delegated_to : str
        The scheduler that another one chose to decide in its place; empty if none did.
    periods : ndarray of `PERIOD`
        The periods of the energy budget in order of time; empty without a budget.
    energy_weights : Signal
        What a joule counts in `periods`, by the time at which it is drawn.
    carbon : Signal or None
        The weight of a joule in grams [g/J], by time and host; None if it is not given.
    limited_by_budget : bool
        Whether a greater energy budget might have changed what happened; True unless the policy can exclude it.
    times_postponed : ndarray of int64, shape (tasks,)
        How often each task was postponed to the next period; by default never.
    host_offsets, host_ids : ndarray of int64
        Where tasks are parallel: execution k ran on the hosts
        ``host_ids[host_offsets[k]:host_offsets[k + 1]]``, ascending, and its ``host`` is the first
        of them. Empty where every execution has one host. `placed` serves both.
    host_cores : ndarray of int64
        Where nodes are shared: cores that each of `host_ids` gives. Empty where an execution has
        one core of its host, or whole nodes of one core.
    as_estimated : bool
        Tasks took the time that was estimated; False where the run had `RunTimes` of its own.
    load : ndarray of float64, shape (tasks,)
        Share of its nodes' range of power that each task drew; empty where that was the whole.
    computed : ndarray of float64, shape (placements, 2)
        Where tasks have profiles, of everything that ran on a host, as `placed` has them: seconds in which the
        host computed for it, and seconds that this would have taken at the host's full speed. Empty where
        whatever runs computes at full speed, or at `load`.
    link_bytes : dict of str to float
        Bytes that crossed each link of the platform, where tasks have profiles.
    sent_bytes : tuple of float
        Bytes that parts of tasks with profiles sent, and how many of these left the switch of each level
        (`Platform.switch_of`), the lowest first; empty where none have any.
    traffic_bytes : ndarray of float64, shape (links, steps)
        What of `link_bytes` crossed each of these links in each step of `traffic_step_s`, the first from 0 s on; empty
        where it was not recorded.
    traffic_step_s : float
        Length of these steps [s]; 0 where there are none.
    transfers : ndarray of `TRANSFER`
        Data between tasks that have arrived, in order of their begin.
    steps : ndarray of `STEP`
        Steps of the executions that had more than one, in order of the ends of these executions; a million at most.
    shortest_s : ndarray of float64, shape (tasks,)
        Where tasks of one core wait for each other: the estimated run time of each where it is shortest [s]; infinite
        where it can run nowhere. Empty elsewhere, and where it is not known.
    host_times_s : ndarray of float64, shape (hosts,)
        There, how long each host would take for all tasks one after the other [s] (`Estimates.host_times`).
    notes : dict of str to ndarray of float64, shape (tasks,)
        What the scheduler noted beside the tasks (`Traits.notes`), column by column; nan where
        nothing was noted.
    """

    platform: Platform
    tasks: Tasks
    executions: NDArray[np.void]
    host_changes: NDArray[np.void]
    final_state: Integers
    horizon_s: float
    mapping_events: int
    timing: dict[str, float] = field(default_factory=dict, compare=False)
    delegated_to: str = ""
    periods: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, dtype=PERIOD))
    energy_weights: Signal = EVEN
    times_postponed: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    as_estimated: bool = True
    host_offsets: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    host_ids: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    host_cores: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    transfers: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, dtype=TRANSFER))
    notes: dict[str, Floats] = field(default_factory=dict)
    load: Floats = field(default_factory=lambda: np.zeros(0))
    carbon: Signal | None = None
    computed: Floats = field(default_factory=lambda: np.zeros((0, 2)))
    link_bytes: dict[str, float] = field(default_factory=dict)
    shortest_s: Floats = field(default_factory=lambda: np.zeros(0))
    host_times_s: Floats = field(default_factory=lambda: np.zeros(0))
    sent_bytes: tuple[float, ...] = ()
    limited_by_budget: bool = True
    traffic_bytes: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    traffic_step_s: float = 0.0
    steps: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, dtype=STEP))

    def __post_init__(self) -> None:
        if not len(self.times_postponed):
            never = np.zeros(len(self.tasks), dtype=np.int64)
            object.__setattr__(self, "times_postponed", never)

    @property
    def is_parallel(self) -> bool:
        """Whether executions have sets of hosts."""
        return bool(len(self.host_offsets))

    @property
    def width(self) -> Integers:
        """Number of hosts of each execution, shape (executions,)."""
        if self.is_parallel:
            return np.diff(self.host_offsets)
        return np.ones(len(self.executions), dtype=np.int64)

    @property
    def placed_hosts(self) -> Integers:
        """Host of everything that ran on a host, as `placed` has them, shape (placements,)."""
        hosts: Integers = self.host_ids if self.is_parallel else self.executions["host"]
        return hosts

    @property
    def n_cores(self) -> Integers:
        """Cores of each execution on all its hosts, shape (executions,); whole nodes are one each."""
        if not len(self.host_cores):
            return self.width
        return np.add.reduceat(self.host_cores, self.host_offsets[:-1])

    def placed(self) -> tuple[Integers, Integers]:
        """Return execution and host of everything that ran on a host, shape (placements,) each.

        In order of the executions, then of their hosts: an execution of 57 nodes is 57 placements.
        """
        each = np.arange(len(self.executions))
        if self.is_parallel:
            each = np.repeat(each, self.width)
        return each, self.placed_hosts

    def hosts_of(self, execution: int) -> Integers:
        """Return the hosts of one execution, ascending."""
        if self.is_parallel:
            return self.host_ids[self.host_offsets[execution] : self.host_offsets[execution + 1]]
        return self.executions["host"][execution : execution + 1]

    def of_outcome(self, outcome: ExecutionEnd) -> NDArray[np.void]:
        """Return the executions that ended as `outcome`."""
        return self.executions[self.executions["outcome"] == outcome]

    @property
    def was_useful(self) -> Booleans:
        """Which executions finished their task, shape (executions,); work and energy of all others are wasted."""
        useful: Booleans = self.executions["outcome"] == ExecutionEnd.FINISHED
        return useful

    @property
    def start_time_s(self) -> Floats:
        """First start of each task [s], nan where it never started, shape (tasks,)."""
        first = np.full(len(self.tasks), np.nan)
        np.fmin.at(first, self.executions["task"], self.executions["start"])
        return first

    @property
    def finish_time_s(self) -> Floats:
        """Finish of each task [s], nan where it did not finish, shape (tasks,)."""
        return self._end_of(self.of_outcome(ExecutionEnd.FINISHED))

    @property
    def had_turn(self) -> Booleans:
        """Which executions ended for good: they finished their task, or had all of the time it asked for."""
        return np.isin(self.executions["outcome"], (ExecutionEnd.FINISHED, ExecutionEnd.TIMEOUT))

    @property
    def leave_time_s(self) -> Floats:
        """When each task finished, or was killed at its requested time [s]; nan where neither, shape (tasks,)."""
        return self._end_of(self.executions[self.had_turn])

    def _end_of(self, executions: NDArray[np.void]) -> Floats:
        """End of the task of each of some executions [s], nan for the other tasks."""
        end = np.full(len(self.tasks), np.nan)
        end[executions["task"]] = executions["end"]
        return end

    def executed_flops(self) -> Floats:
        """Work each execution really did [flop], shape (executions,).

        An execution did its run time times the speed, on each of its hosts; where the speed
        changes with time, what there was of it. Where all took as long as estimated, a finished
        one did just its task.
        """
        runs = self.executions
        speed = self.platform.speed[runs["host"], runs["pstate"]]
        if len(self.computed):
            execution, host = self.placed()
            speeds = self.platform.speed[host, runs["pstate"][execution]] * self.platform.cores[host]
            return np.asarray(np.bincount(execution, self.computed[:, 1] * speeds, len(runs)), dtype=np.float64)
        done = self._full_speed_s() * speed
        whole = runs["outcome"] == ExecutionEnd.FINISHED
        each = np.where(whole & self.as_estimated, self.tasks.flops[runs["task"]], done)
        return each * self.n_cores if self.is_parallel else each

    def _full_speed_s(self) -> Floats:
        """How long each execution would have taken at its P-state's full speed [s]."""
        runs = self.executions
        length = runs["end"] - runs["start"]
        if not self.platform.profiles.speeds:
            return length
        speeds = self.speeds()
        for k, (start, end) in enumerate(zip(runs["start"], runs["end"], strict=True)):
            speed = speeds.of(self.hosts_of(k))
            if speed is not None:
                length[k] = speed.work_s(float(start), float(end))
        return length

    def speeds(self) -> Speeds:
        """Return how fast its hosts computed over time."""
        return Speeds(self.platform.profiles, [host.name for host in self.platform.hosts])


def check_trace(trace: Trace) -> None:
    """Raise `InputError` where the records cannot be those of a run."""
    runs, changes, n = trace.executions, trace.host_changes, len(trace.tasks)
    columns: dict[str, NDArray[Any]] = {"final_state": trace.final_state, "times_postponed": trace.times_postponed}
    columns |= {f"notes.{name}": values for name, values in trace.notes.items()}
    if len(trace.load):
        columns["load"] = trace.load
        _check("tasks", "load", (trace.load > 0) & (trace.load <= 1), columns, "greater than 0, at most 1")
    for name, values in columns.items():
        count = len(values)
        if count != n:
            raise InputError(f"{name} has {count} rows for {counted(n, 'task')}.")
    for name, count in (("shortest_s", n), ("host_times_s", len(trace.platform))):
        times = getattr(trace, name)
        if times.shape not in ((0,), (count,)):
            raise InputError(f"{name} has shape {times.shape}; it must be {(count,)} or empty.")
        _check(name, "time", times >= 0, {"time": times}, "at least 0 s")
    legal = (runs["task"] >= 0) & (runs["task"] < n)
    _check("executions", "task", legal, runs, f"from 0 to {n - 1}")
    for name, records in (("executions", runs), ("host_changes", changes)):
        host, pstate = records["host"], records["pstate"]
        last = len(trace.platform) - 1
        _check(name, "host", (host >= 0) & (host <= last), records, f"from 0 to {last}")
        legal = (pstate >= 0) & (pstate < trace.platform.n_pstates[host])
        _check(name, "pstate", legal, records, "a P-state of its host")
    legal = (runs["start"] >= 0) & (runs["start"] <= LARGEST_RESULT)
    _check("executions", "start", legal, runs, "finite and at least 0 s")
    legal = (runs["end"] >= runs["start"]) & (runs["end"] <= LARGEST_RESULT)
    _check("executions", "end", legal, runs, "finite and not before the start")
    _check_node_sets(trace)
    if len(trace.computed):
        _check_computed(trace)
    _check("executions", "outcome", np.isin(runs["outcome"], list(ExecutionEnd)), runs, "an end")
    _check_transfers(trace)
    _check_steps(trace)
    _check_traffic(trace)
    legal = trace.times_postponed >= 0
    _check("tasks", "times_postponed", legal, {"times_postponed": trace.times_postponed}, ">= 0")
    legal = trace.periods["end"] > trace.periods["start"]
    legal[1:] &= trace.periods["start"][1:] >= trace.periods["end"][:-1]
    _check("periods", "start", legal, trace.periods, "before its end and after the last one's")
    legal = (np.diff(changes["time"], prepend=0.0) >= 0) & (changes["time"] <= LARGEST_RESULT)
    _check("host_changes", "time", legal, changes, "at least the time before, and finite")
    if len(distinct(changes["host"][changes["time"] == 0])) != len(trace.platform):
        raise InputError(f"host_changes: each of the {len(trace.platform)} hosts needs one at 0 s.")
    if not 0 <= trace.horizon_s <= LARGEST_RESULT:
        raise InputError(f"horizon_s is {trace.horizon_s}; it must be finite and at least 0 s.")
    finishes = np.bincount(runs["task"][runs["outcome"] == ExecutionEnd.FINISHED], minlength=n)
    wrong = finishes != (trace.final_state == TaskState.FINISHED)
    if wrong.any():
        task = int(np.argmax(wrong))
        raise InputError(
            f"job {trace.tasks.labels[task]} ends as state {trace.final_state[task]}, but has "
            f"{finishes[task]} finished executions."
        )


def _check_transfers(trace: Trace) -> None:
    """Raise `InputError` where data between tasks cannot have gone so."""
    sent, pairs, last = trace.transfers, trace.tasks.dependencies, len(trace.platform) - 1
    n_pairs = sum(0 if each is None else len(each) for each in (pairs, trace.tasks.staged))
    _check("transfers", "pair", (sent["pair"] >= 0) & (sent["pair"] < n_pairs), sent, f"from 0 to {n_pairs - 1}")
    for end in ("source", "target"):
        _check("transfers", end, (sent[end] >= 0) & (sent[end] <= last), sent, f"from 0 to {last}")
    legal = (sent["size_bytes"] >= 0) & (sent["size_bytes"] <= LARGEST_RESULT)
    _check("transfers", "size_bytes", legal, sent, "finite and at least 0 bytes")
    legal = (sent["begin"] >= 0) & (sent["end"] >= sent["begin"]) & (sent["end"] <= LARGEST_RESULT)
    _check("transfers", "end", legal, sent, "finite and not before the begin")


def _check_steps(trace: Trace) -> None:
    """Raise `InputError` where steps cannot have gone so."""
    steps, n, last = trace.steps, len(trace.tasks), len(trace.platform) - 1
    _check("steps", "task", (steps["task"] >= 0) & (steps["task"] < n), steps, f"from 0 to {n - 1}")
    _check("steps", "host", (steps["host"] >= 0) & (steps["host"] <= last), steps, f"from 0 to {last}")
    _check("steps", "number", steps["number"] >= 0, steps, "at least 0")
    _check("steps", "kind", np.isin(steps["kind"], list(StepKind)), steps, "a kind of step")
    legal = (steps["begin"] >= 0) & (steps["end"] >= steps["begin"]) & (steps["end"] <= LARGEST_RESULT)
    _check("steps", "end", legal, steps, "finite and not before the begin")


def _check_traffic(trace: Trace) -> None:
    """Raise `InputError` unless what crossed each link over time is what crossed it in all."""
    sent, step_s = trace.traffic_bytes, trace.traffic_step_s
    if not 0 <= step_s <= LARGEST_RESULT or (step_s == 0) != (sent.size == 0):
        raise InputError(f"traffic_step_s is {step_s!r} for {sent.size} numbers; steps need a length greater than 0 s.")
    if not sent.size:
        return
    if sent.ndim != 2 or len(sent) != len(trace.link_bytes):
        raise InputError(f"traffic_bytes has the shape {sent.shape}; {len(trace.link_bytes)} rows are needed.")
    if (sent.shape[1] - 1) * step_s > trace.horizon_s * (1 + 1e-9):
        raise InputError(f"traffic_bytes has {sent.shape[1]} steps of {step_s:g} s; the run ends before.")
    whole = np.array(list(trace.link_bytes.values()))
    legal = (sent >= 0).all(axis=1) & (np.abs(sent.sum(axis=1) - whole) <= 1e-6 * whole)
    _check("traffic_bytes", "sum", legal, {"sum": sent.sum(axis=1)}, "that of link_bytes, of numbers of at least 0")


def _check_node_sets(trace: Trace) -> None:
    """Raise `InputError` unless each execution of parallel tasks has hosts, the first its own."""
    offsets, ids, runs = trace.host_offsets, trace.host_ids, trace.executions
    if not len(offsets) and not len(ids):
        return
    if len(offsets) != len(runs) + 1 or offsets[0] != 0 or (np.diff(offsets) < 1).any():
        raise InputError(f"host_offsets: {len(runs)} executions need as many ascending offsets + 1.")
    last = len(trace.platform) - 1
    if offsets[-1] != len(ids) or (ids < 0).any() or (ids > last).any():
        raise InputError(f"host_ids: {offsets[-1]} hosts from 0 to {last} are needed.")
    cores = trace.host_cores
    if len(cores) and (len(cores) != len(ids) or (cores < 1).any() or (cores > trace.platform.cores[ids]).any()):
        raise InputError("host_cores: each of host_ids gives at least one core, and no more than it has.")
    within = np.ones(len(ids), dtype=bool)
    within[offsets[:-1]] = False
    if (ids[1:] <= ids[:-1])[within[1:]].any() or (ids[offsets[:-1]] != runs["host"]).any():
        raise InputError("host_ids: the hosts of an execution ascend from its own host.")


def _check_computed(trace: Trace) -> None:
    """Raise `InputError` unless hosts computed no longer than executions had them, and no more than at full speed."""
    execution, _ = trace.placed()
    if trace.computed.shape != (len(execution), 2):
        raise InputError(f"computed has shape {trace.computed.shape}; {(len(execution), 2)} is needed.")
    lasted = (trace.executions["end"] - trace.executions["start"])[execution] * (1 + 1e-6) + 1e-6
    computing, full = trace.computed.T
    legal = (computing >= 0) & (computing <= lasted) & (full >= 0) & (full <= lasted)
    _check("computed", "seconds", legal, {"seconds": computing}, "at least 0 s, and no longer than the execution")


def _check(records: str, column: str, legal: Booleans, values: Any, need: str) -> None:
    if not legal.all():
        row = int(np.argmin(legal))
        value = values[column][row].item()
        raise InputError(f"{records}: row {row}: {column} is {value!r}; it must be {need}.")


def down_times(trace: Trace) -> Iterator[tuple[int, float, float]]:
    """Yield host, begin and end [s] of each time in which a host was down by its state profile."""
    state_of = trace.platform.profiles.state_of
    for h, host in enumerate(trace.platform.hosts):
        if host.name not in state_of:
            continue
        began: float | None = None
        for date, value in state_of[host.name].events():
            if date > trace.horizon_s:
                break
            if value == 0 and began is None:
                began = date
            elif value > 0 and began is not None:
                yield h, began, date
                began = None
        if began is not None:
            yield h, began, trace.horizon_s
