"""What happened: the flat records of one run, the only thing metrics and exports read."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from gridsched.model.host_profiles import Speeds
from gridsched.model.platform import Platform
from gridsched.model.prices import EVEN, EnergyWeights
from gridsched.model.tasks import Tasks


class TaskState(IntEnum):
    """Where a task is; the values from `FINISHED` on are final."""

    NOT_SUBMITTED = 0
    WAITING = 1
    VIRTUAL = 2
    QUEUED = 3
    RUNNING = 4
    POSTPONED = 5
    FINISHED = 6
    DROPPED = 7
    REJECTED = 8
    KILLED = 9
    FAILED = 10
    UNFINISHED = 11


class ExecutionEnd(IntEnum):
    """How one execution (copy) of a task ended."""

    FINISHED = 0
    CANCELLED = 1
    KILLED = 2
    FAILED = 3


#: One execution of a task (replicas are executions of their own).
EXECUTION = np.dtype([
    ("task", np.int64), ("host", np.int64), ("pstate", np.int64),
    ("start", np.float64), ("end", np.float64), ("outcome", np.int64),
])  # fmt: skip

#: A change of a host's P-state or of its power switch; every host has a row at time 0.
HOST_CHANGE = np.dtype([
    ("time", np.float64), ("host", np.int64), ("pstate", np.int64), ("is_on", np.bool_),
])  # fmt: skip

#: A period of the energy budget within the run: its bounds [s], its budget, what was drawn in it,
#: and the part of that which went to executions started before the period (algorithms B7) [J],
#: counted as the trace's `energy_weights` say.
PERIOD = np.dtype([
    ("start", np.float64), ("end", np.float64), ("budget_j", np.float64),
    ("consumed_j", np.float64), ("carried_over_j", np.float64),
])  # fmt: skip


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
    energy_weights : EnergyWeights
        What a joule counts in `periods`, by the time at which it is drawn.
    times_postponed : ndarray of int64, shape (tasks,)
        How often each task was postponed to the next period; by default never.
    host_offsets, host_ids : ndarray of int64
        Where tasks are parallel: execution k ran on the hosts
        ``host_ids[host_offsets[k]:host_offsets[k + 1]]``, ascending, and its ``host`` is the first
        of them. Empty where every execution has one host. `placed` serves both.
    as_estimated : bool
        Tasks took the time that was estimated; False where the run had `RunTimes` of its own.
    notes : dict of str to ndarray of float64, shape (tasks,)
        What the scheduler noted beside the tasks (`Traits.notes`), column by column; nan where
        nothing was noted.
    """

    platform: Platform
    tasks: Tasks
    executions: NDArray[np.void]
    host_changes: NDArray[np.void]
    final_state: NDArray[np.int64]
    horizon_s: float
    mapping_events: int
    timing: dict[str, float] = field(default_factory=dict, compare=False)
    delegated_to: str = ""
    periods: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, dtype=PERIOD))
    energy_weights: EnergyWeights = EVEN
    times_postponed: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    as_estimated: bool = True
    host_offsets: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    host_ids: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    notes: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not len(self.times_postponed):
            never = np.zeros(len(self.tasks), dtype=np.int64)
            object.__setattr__(self, "times_postponed", never)

    @property
    def is_parallel(self) -> bool:
        """Whether executions have sets of hosts."""
        return bool(len(self.host_offsets))

    @property
    def width(self) -> NDArray[np.int64]:
        """Number of hosts of each execution, shape (executions,)."""
        if self.is_parallel:
            return np.diff(self.host_offsets)
        return np.ones(len(self.executions), dtype=np.int64)

    def placed(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return execution and host of everything that ran on a host, shape (placements,) each.

        In order of the executions, then of their hosts: an execution of 57 nodes is 57 placements.
        """
        each = np.arange(len(self.executions))
        if self.is_parallel:
            return np.repeat(each, self.width), self.host_ids
        return each, self.executions["host"]

    def hosts_of(self, execution: int) -> NDArray[np.int64]:
        """Return the hosts of one execution, ascending."""
        if self.is_parallel:
            return self.host_ids[self.host_offsets[execution] : self.host_offsets[execution + 1]]
        return self.executions["host"][execution : execution + 1]

    def of_outcome(self, outcome: ExecutionEnd) -> NDArray[np.void]:
        """Return the executions that ended as `outcome`."""
        return self.executions[self.executions["outcome"] == outcome]

    @property
    def start_time_s(self) -> NDArray[np.float64]:
        """First start of each task [s], nan where it never started, shape (tasks,)."""
        first = np.full(len(self.tasks), np.nan)
        np.fmin.at(first, self.executions["task"], self.executions["start"])
        return first

    @property
    def finish_time_s(self) -> NDArray[np.float64]:
        """Finish of each task [s], nan where it did not finish, shape (tasks,)."""
        done = self.of_outcome(ExecutionEnd.FINISHED)
        finish = np.full(len(self.tasks), np.nan)
        finish[done["task"]] = done["end"]
        return finish

    def executed_flops(self) -> NDArray[np.float64]:
        """Work each execution really did [flop], shape (executions,).

        An execution did its run time times the speed, on each of its hosts; where the speed
        changes with time, what there was of it. Where all took as long as estimated, a finished
        one did just its task.
        """
        runs = self.executions
        speed = self.platform.speed[runs["host"], runs["pstate"]]
        done = self._full_speed_s() * speed
        whole = runs["outcome"] == ExecutionEnd.FINISHED
        each = np.where(whole & self.as_estimated, self.tasks.flops[runs["task"]], done)
        return each * self.width if self.is_parallel else each

    def _full_speed_s(self) -> NDArray[np.float64]:
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
