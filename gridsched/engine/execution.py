"""Executions of tasks, the commands to a driver, the records of both, and the state of each task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.model.signals import Signal
from gridsched.model.trace import EXECUTION, HOST_CHANGE, ExecutionEnd, TaskState

# ----------------------
# Executions: one copy of a task each, the commands to a driver, and the records of both


#: Outcome of an execution that has not ended.
UNENDED = -1


class Timer(IntEnum):
    """What is due at a time of its own, in the order in which one instant applies it."""

    SWITCHED = 0
    DATA_READY = 1
    WAKE = 2
    RELEASE = 3


class Execution:
    """A copy of a task on a core; handed to the driver as the command to start it.

    Attributes
    ----------
    task, host, pstate : int
    hosts : ndarray of int64, or None
        All nodes of a parallel task, ascending; `host` is the first. None: the one host.
    parts : ndarray of int64, or None
        Where nodes are shared: how many parts of the job each node has; None: one.
    part_cores : int
        Where nodes are shared: cores of each part; else 0.
    start : float
        Start [s].
    end : float
        End [s]; set by the driver when it starts the execution.
    estimated_end : float
        The end the scheduler may know of [s].
    outcome : int
        `UNENDED`, or the `ExecutionEnd` once it ended.
    watts : float
        Average power [W], where a budget is kept.
    has_begun : bool
        False while its core waits for input files.
    is_awaited, is_reported : bool
        For a driver that waits until a simulator has reported all ends of an instant.
    """

    # no __slots__: defaults in the class make one of 100,000 executions cheaper to create
    outcome = UNENDED
    has_begun = False
    hosts: Integers | None = None
    parts: Integers | None = None
    part_cores = 0
    is_awaited = False
    is_reported = False
    watts = 0.0

    def __init__(self, task: int, host: int, pstate: int, start: float, estimated_end: float) -> None:
        self.task = task
        self.host = host
        self.pstate = pstate
        self.start = start
        self.end = estimated_end
        self.estimated_end = estimated_end

    @property
    def nodes(self) -> Integers:
        """Its nodes, ascending, of a parallel task."""
        assert self.hosts is not None
        return self.hosts

    @property
    def cores(self) -> Integers:
        """Cores that each of its nodes gives, where nodes are shared, shape (nodes,)."""
        parts = 1 if self.parts is None else self.parts
        return np.broadcast_to(parts * np.int64(self.part_cores), len(self.nodes))

    @property
    def width(self) -> int:
        """Number of its hosts."""
        return 1 if self.hosts is None else len(self.hosts)

    @property
    def all_hosts(self) -> list[int]:
        """Its hosts, ascending."""
        return [self.host] if self.hosts is None else self.hosts.tolist()

    def stop(self, time: float, outcome: ExecutionEnd) -> None:
        """Note that the execution ended at `time` [s] as `outcome`."""
        self.end = time
        self.outcome = int(outcome)

    def __repr__(self) -> str:
        return f"Execution(task={self.task}, host={self.host}, start={self.start!r})"


@dataclass(frozen=True, slots=True)
class Stop:
    """Command: end a running execution now; its result is not wanted."""

    execution: Execution


@dataclass(frozen=True, slots=True)
class TurnOff:
    """Command: switch the host off."""

    host: int


@dataclass(frozen=True, slots=True)
class TurnOn:
    """Command: switch the host on."""

    host: int


@dataclass(frozen=True, slots=True)
class SetPState:
    """Command: bring a host on which nothing runs into a P-state."""

    host: int
    pstate: int


Command = Execution | Stop | TurnOff | TurnOn | SetPState


def execution_records(executions: Sequence[Execution]) -> NDArray[np.void]:
    """Return executions as an array of `EXECUTION`, in order of their start."""
    records = np.empty(len(executions), dtype=EXECUTION)
    for name in EXECUTION.names or ():  # column by column: five times faster than row by row
        records[name] = list(map(attrgetter(name), executions))
    return records[_by_start(records["start"])]


def node_records(executions: Sequence[Execution]) -> dict[str, Integers]:
    """Return the hosts of parallel executions as in `Trace`, by their start."""
    starts = np.array([execution.start for execution in executions], dtype=np.float64)
    in_order = [executions[k] for k in _by_start(starts).tolist()]
    sets, cores = [each.nodes for each in in_order], [each.cores for each in in_order if each.part_cores]
    nothing = np.zeros(0, dtype=np.int64)
    return {
        "host_offsets": np.cumsum([0, *map(len, sets)], dtype=np.int64),
        "host_ids": np.concatenate([nothing, *sets]),
        "host_cores": np.concatenate([nothing, *cores]),
    }


def _by_start(starts: Floats) -> NDArray[np.intp]:
    return np.argsort(starts, kind="stable")


class HostChanges:
    """All changes in order; those of many nodes at once are kept as one array.

    Parameters
    ----------
    pstates : ndarray of int64, shape (hosts,)
        At time 0.
    is_on : list of bool
    """

    def __init__(self, pstates: Integers, is_on: list[bool]) -> None:
        self._blocks: list[NDArray[np.void]] = []
        self._singles: list[tuple[float, int, int, bool]] = [
            (0.0, host, pstate, is_on[host]) for host, pstate in enumerate(pstates.tolist())
        ]

    def add(self, time: float, host: int, pstate: int, is_on: bool) -> None:
        """Note what a host has from a time on [s]."""
        self._singles.append((time, host, pstate, is_on))

    def add_block(self, time: float, hosts: Integers, pstate: int) -> None:
        """Note a P-state of hosts that are on."""
        self._close_singles()
        block = np.empty(len(hosts), dtype=HOST_CHANGE)
        block["time"], block["host"], block["pstate"], block["is_on"] = time, hosts, pstate, True
        self._blocks.append(block)

    def _close_singles(self) -> None:
        if self._singles:
            self._blocks.append(np.array(self._singles, dtype=HOST_CHANGE))
            self._singles.clear()

    def records(self) -> NDArray[np.void]:
        """Return all changes so far."""
        self._close_singles()
        return np.concatenate([np.empty(0, dtype=HOST_CHANGE), *self._blocks])


def mean_weights(weights: Signal, executions: Sequence[Execution], start: ArrayLike, length: ArrayLike) -> Any:
    """Return what a joule of each execution weighs in the mean over some time, where it runs.

    Parameters
    ----------
    weights : Signal
    executions : sequence of Execution
    start, length : array_like
        Of the time [s].
    """
    if not weights.sites:
        return weights.mean(start, length)
    return weights.at_hosts(np.array([each.host for each in executions], dtype=np.int64), start, length)


# ----------------------
# Which state each task of a run is in, and which may be mapped


# plain integers: an attribute of an IntEnum costs several times as much
WAITING = int(TaskState.WAITING)
VIRTUAL = int(TaskState.VIRTUAL)
POSTPONED = int(TaskState.POSTPONED)
QUEUED = int(TaskState.QUEUED)
RUNNING = int(TaskState.RUNNING)
FINISHED = int(TaskState.FINISHED)


class TaskStates:
    """States of tasks: plain lists and a bytearray, because one is read or written at a time.

    Parameters
    ----------
    n_tasks : int

    Attributes
    ----------
    state_of : bytearray
        `TaskState` of each task.
    states : ndarray of uint8, shape (tasks,)
        The same, sharing its memory.
    open_tasks : int
        Tasks without a final state.
    n_virtual : int
        Tasks that are planned.
    postponed : list of int
        Tasks that wait for the next period.
    times_postponed : ndarray of int64, shape (tasks,)
    submitted : int
        Tasks from here on are not submitted yet.
    held : set of int
        Tasks before it that wait for others, and count as not submitted until then.
    """

    def __init__(self, n_tasks: int) -> None:
        self.state_of = bytearray(n_tasks)
        self.states = np.frombuffer(self.state_of, dtype=np.uint8)
        self.open_tasks = n_tasks
        self.n_virtual = 0
        self.postponed: list[int] = []
        self.times_postponed = np.zeros(n_tasks, dtype=np.int64)
        self.submitted = 0
        self.held: set[int] = set()
        #: no task before this one is mappable
        self._first_waiting = 0

    def submit(self, end: int, runnable: Booleans) -> bool:
        """Let the next tasks up to `end` wait, or be rejected; return whether any waits.

        Parameters
        ----------
        end : int
        runnable : ndarray of bool, shape (tasks,)
            Whether each task of the run runs anywhere.
        """
        first, self.submitted = self.submitted, end
        if end == first + 1 and runnable[first]:  # one task: no arrays
            self.state_of[first] = WAITING
            self.waits_from(first)
            return True
        waits = runnable[first:end]
        self.states[first:end] = np.where(waits, WAITING, TaskState.REJECTED)
        n_waiting = int(np.count_nonzero(waits))
        self.open_tasks -= end - first - n_waiting
        self.waits_from(first)
        return n_waiting > 0

    def end_task(self, task: int, state: int) -> None:
        """Give a task its final state."""
        self.n_virtual -= self.state_of[task] == VIRTUAL
        self.state_of[task] = state
        self.open_tasks -= 1

    def _move(self, task: int, state: int) -> None:
        self.n_virtual -= self.state_of[task] == VIRTUAL
        self.state_of[task] = state

    def postpone(self, task: int) -> None:
        """Let a mappable task wait for the next period."""
        self._move(task, POSTPONED)
        self.postponed.append(task)
        self.times_postponed[task] += 1

    def return_postponed(self) -> list[int]:
        """Let postponed tasks wait again, and return them."""
        returned, self.postponed = sorted(self.postponed), []
        for task in returned:
            self.waiting_again(task)
        return returned

    def waiting_again(self, task: int) -> None:
        """Put a submitted, queued or planned task back among the waiting ones."""
        self._move(task, WAITING)
        self.waits_from(task)

    def waits_from(self, task: int) -> None:
        """Note that this task waits, or later ones only."""
        if task < self._first_waiting:
            self._first_waiting = task

    def waiting(self) -> Iterator[int]:
        """Iterate over waiting and virtually queued tasks in order of their ids."""
        if self.n_virtual:
            yield from self.mappable().tolist()
            return
        for first in self.next_waiting(1):
            yield first
            find = self.state_of.find
            task = find(WAITING, first + 1)
            while task >= 0:
                yield task
                task = find(WAITING, task + 1)

    def next_waiting(self, count: int) -> list[int]:
        """Return the first `count` waiting or virtually queued tasks, or as many as there are."""
        if self.n_virtual:
            first: list[int] = self.mappable()[:count].tolist()
            return first
        find = self.state_of.find
        task = find(WAITING, self._first_waiting)
        tasks: list[int] = []
        if task >= 0:
            self._first_waiting = task
            while task >= 0 and len(tasks) < count:
                tasks.append(task)
                task = find(WAITING, task + 1)
        return tasks

    def mappable(self) -> Integers:
        """Return the ids of waiting and virtually queued tasks, ascending."""
        first = self._first_waiting
        states = self.states[first : self.submitted]
        wait = states == WAITING
        if self.n_virtual:
            wait |= states == VIRTUAL
        tasks: Integers = wait.nonzero()[0]
        tasks += first
        self._first_waiting = tasks.item(0) if len(tasks) else self.submitted
        return tasks
