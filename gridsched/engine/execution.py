"""Executions of tasks and transfers of what they make, the commands to a driver, and the records of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.arrays import Floats, Integers
from gridsched.model.signals import Signal
from gridsched.model.trace import EXECUTION, HOST_CHANGE, ExecutionEnd

#: Outcome of an execution that has not ended.
UNENDED = -1


class Timer(IntEnum):
    """What is due at a time of its own, in the order in which one instant applies it."""

    SWITCHED = 0
    DATA_READY = 1
    WAKE = 2
    RELEASE = 3


class Execution:
    """A copy of a task on its hosts; handed to the driver as the command to start it.

    Attributes
    ----------
    task, host, pstate : int
    hosts : ndarray of int64, or None
        All its hosts, ascending; `host` is the first. None: a core of the one host.
    parts : ndarray of int64, or None
        How many parts of the task each host has; None: one.
    part_cores : int
        Cores of each part; 0 where parts are whole nodes.
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
    is_cut : bool
        Its end is that of its requested time, at which it is killed; set by the driver, too.
    computed : ndarray of float64, shape (hosts, 2), or None
        Where tasks have profiles: seconds in which each host computed, and seconds that this would have
        taken at its full speed, on all its cores; set by the driver.
    is_awaited, is_reported : bool
        For a driver that waits until a simulator has reported all ends of an instant.
    """

    # no __slots__: defaults in the class make one of 100,000 executions cheaper to create
    outcome = UNENDED
    has_begun = False
    hosts: Integers | None = None
    parts: Integers | None = None
    part_cores = 0
    is_cut = False
    is_awaited = False
    is_reported = False
    watts = 0.0
    computed: Floats | None = None

    def __init__(self, task: int, host: int, pstate: int, start: float, estimated_end: float) -> None:
        self.task = task
        self.host = host
        self.pstate = pstate
        self.start = start
        self.end = estimated_end
        self.estimated_end = estimated_end

    @property
    def nodes(self) -> Integers:
        """Its hosts, ascending, where it has a set of them."""
        assert self.hosts is not None
        return self.hosts

    @property
    def cores(self) -> Integers:
        """Cores that each of its hosts gives, shape (hosts,)."""
        return self.parts_each * np.int64(self.part_cores or 1)

    @property
    def parts_each(self) -> Integers:
        """Parts of the task that each of its hosts has, shape (hosts,)."""
        return np.ones(self.width, dtype=np.int64) if self.parts is None else self.parts

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


class Transfer:
    """Data on their way from one host to another; handed to the driver as the command to send them.

    Attributes
    ----------
    pair : int
        Position in `Tasks.dependencies` of the first pair that wants them.
    key : int
        Which data: a number that pairs have in common which share them.
    source, target : int
    size_bytes : float
    begin : float
        [s]
    end : float
        Arrival [s]: as a lone transfer, until the driver reports it.
    outcome : int
        `UNENDED`.
    """

    __slots__ = ("begin", "end", "key", "outcome", "pair", "size_bytes", "source", "target")

    def __init__(self, pair: int, key: int, source: int, target: int, size_bytes: float, begin: float, end: float):
        self.pair = pair
        self.key = key
        self.source = source
        self.target = target
        self.size_bytes = size_bytes
        self.begin = begin
        self.end = end
        self.outcome = UNENDED


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


Command = Execution | Transfer | Stop | TurnOff | TurnOn | SetPState


def execution_records(executions: Sequence[Execution]) -> NDArray[np.void]:
    """Return executions as an array of `EXECUTION`, in order of their start."""
    records = np.empty(len(executions), dtype=EXECUTION)
    for name in EXECUTION.names or ():  # column by column: five times faster than row by row
        records[name] = list(map(attrgetter(name), executions))
    return records[_by_start(records["start"])]


def node_records(executions: Sequence[Execution]) -> dict[str, Integers]:
    """Return the hosts of executions on sets of them as in `Trace`, by their start."""
    starts = np.array([execution.start for execution in executions], dtype=np.float64)
    in_order = [executions[k] for k in _by_start(starts).tolist()]
    sets = [each.nodes for each in in_order]
    nothing = np.zeros(0, dtype=np.int64)
    return {
        "host_offsets": np.cumsum([0, *map(len, sets)], dtype=np.int64),
        "host_ids": np.concatenate([nothing, *sets]),
        "host_cores": _cores_of([each for each in in_order if each.part_cores]),
    }


def computed_records(executions: Sequence[Execution]) -> Floats:
    """Return `Trace.computed` of executions, by their start; empty where none has a profile."""
    if not any(execution.computed is not None for execution in executions):
        return np.zeros((0, 2))
    starts = np.array([execution.start for execution in executions], dtype=np.float64)
    in_order = [executions[k] for k in _by_start(starts).tolist()]
    return np.concatenate([np.zeros((each.width, 2)) if each.computed is None else each.computed for each in in_order])


def _cores_of(executions: Sequence[Execution]) -> Integers:
    """Return how many cores each host gives to executions on sets of them, one after the other."""
    widths = [each.width for each in executions]
    cores = np.repeat(np.array([each.part_cores for each in executions], dtype=np.int64), widths)
    if any(each.parts is not None for each in executions):
        cores *= np.concatenate([each.parts_each for each in executions])
    return cores


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
        return self.since(0)[0]

    def since(self, mark: int) -> tuple[NDArray[np.void], int]:
        """Return the changes since a mark, and the next mark; the first is 0."""
        self._close_singles()
        return np.concatenate([np.empty(0, dtype=HOST_CHANGE), *self._blocks[mark:]]), len(self._blocks)


def mean_weights(weights: Signal, executions: Sequence[Execution], start: ArrayLike, length: ArrayLike) -> Any:
    """Return what a joule of each execution weighs on average over some time, where it runs.

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
