"""One copy of a task on one host, and the commands a controller gives its driver."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from gridsched.model.trace import ExecutionEnd

#: Outcome of an execution that has not ended.
UNENDED = -1


class Timer(IntEnum):
    """What is due at a time of its own, in the order in which one instant applies it."""

    SWITCHED = 0
    DATA_READY = 1
    WAKE = 2


class Execution:
    """A copy of a task on a core; handed to the driver as the command to start it.

    Attributes
    ----------
    task, host, pstate : int
    hosts : ndarray of int64, or None
        All nodes of a parallel task, ascending; `host` is the first. None: the one host.
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
    hosts: NDArray[np.int64] | None = None
    is_awaited = False
    is_reported = False
    watts = 0.0

    def __init__(
        self, task: int, host: int, pstate: int, start: float, estimated_end: float
    ) -> None:
        self.task = task
        self.host = host
        self.pstate = pstate
        self.start = start
        self.end = estimated_end
        self.estimated_end = estimated_end

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
