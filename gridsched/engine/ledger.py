"""Where every task and host is: the bookkeeping behind the controller and the state view.

Plain lists and a bytearray, because one number is read or written at a time; the scheduler's
view builds arrays from them when asked for.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.execution import Execution
from gridsched.engine.virtual_queues import VirtualQueues
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.model.trace import EXECUTION, HOST_CHANGE, TaskState

# plain integers: an attribute of an IntEnum costs several times as much
WAITING = int(TaskState.WAITING)
VIRTUAL = int(TaskState.VIRTUAL)
POSTPONED = int(TaskState.POSTPONED)
QUEUED = int(TaskState.QUEUED)
RUNNING = int(TaskState.RUNNING)
FINISHED = int(TaskState.FINISHED)


class Ledger:
    """Mutable record of one run.

    Attributes
    ----------
    state_of : bytearray
        `TaskState` of each task.
    free : list of int
        Free cores of each host.
    is_on : list of bool
    boot_end : list of float
        Time until which a host boots [s].
    pstate : list of int
    running : list of list of Execution
        On each host, in order of start.
    fixed : list of deque of (task, pstate)
        Fixed queue of each host.
    virtual : VirtualQueues
    executions : list of Execution
        All of them, in order of start.
    open_tasks : int
        Tasks without a final state.
    busy_cores : int
        Cores that execute, or wait for the input files of what they will execute.
    """

    def __init__(self, system: System, tasks: Tasks, hosts_off: frozenset[int]) -> None:
        n = system.n_hosts
        self.state_of = bytearray(len(tasks))
        self.cores: list[int] = system.platform.cores.tolist()
        self.one_core = max(self.cores, default=1) == 1
        self.free = list(self.cores)
        self.is_on = [h not in hosts_off for h in range(n)]
        self.boot_end = [0.0] * n
        self.states = np.frombuffer(self.state_of, dtype=np.uint8)
        self.pstate = [system.pstate] * n
        self.running: list[list[Execution]] = [[] for _ in range(n)]
        self.fixed: list[deque[tuple[int, int]]] = [deque() for _ in range(n)]
        self.virtual = VirtualQueues(n)
        self.executions: list[Execution] = []
        self.copies: dict[int, list[Execution]] = {}
        self.queued_copies: set[int] = set()
        self.host_changes = [(0.0, h, system.pstate, self.is_on[h]) for h in range(n)]
        self.open_tasks = len(tasks)
        #: hosts on which more than an append to the fixed queue, or just that, has happened
        self.changed: set[int] = set(range(n))
        self.grown: set[int] = set()
        #: hosts whose fixed queue has had more than appends
        self.requeued: set[int] = set()
        self.busy_cores = 0
        self.n_virtual = 0
        #: tasks from here on are not submitted yet; none before `_first_waiting` is mappable
        self.submitted = 0
        self._first_waiting = 0
        #: ids of hosts that are on, not booting, and have a free core; ascending. Their fixed
        #: queues are empty, because a free core takes from them at once.
        self.idle: list[int] = [h for h in range(n) if self.is_on[h]]

    def core_freed(self, host: int) -> None:
        """Give a core back; the host becomes idle if it was full."""
        self.busy_cores -= 1
        self.changed.add(host)
        self.free[host] += 1
        if self.free[host] == 1:
            insort(self.idle, host)

    def core_taken(self, host: int) -> None:
        """Take a core; a full host is no longer idle."""
        self.busy_cores += 1
        self.changed.add(host)
        self.free[host] -= 1
        if not self.free[host]:
            del self.idle[bisect_left(self.idle, host)]

    def append_fixed(self, host: int, task: int, pstate: int) -> None:
        """Append a task to the host's fixed queue."""
        self.fixed[host].append((task, pstate))
        self.grown.add(host)

    def take_fixed(self, host: int) -> tuple[int, int]:
        """Take the head of the host's fixed queue."""
        self.requeued.add(host)
        return self.fixed[host].popleft()

    def remove_fixed(self, host: int, entry: tuple[int, int]) -> None:
        """Take the first such entry out of the host's fixed queue."""
        self.fixed[host].remove(entry)
        self.changed.add(host)
        self.requeued.add(host)

    def set_idle(self, host: int, *, idle: bool) -> None:
        """Add the host to, or take it out of, the hosts that can take a task."""
        k = bisect_left(self.idle, host)
        present = k < len(self.idle) and self.idle[k] == host
        if idle and not present:
            self.idle.insert(k, host)
        elif present and not idle:
            del self.idle[k]

    def host_changed(self, time: float, host: int) -> None:
        """Note the host's present P-state and power switch."""
        self.host_changes.append((time, host, self.pstate[host], self.is_on[host]))
        self.changed.add(host)

    def waiting_again(self, task: int) -> None:
        """Put a submitted, queued or planned task back among the waiting ones."""
        self.state_of[task] = WAITING
        if task < self._first_waiting:
            self._first_waiting = task

    def plan(
        self, tasks: NDArray[np.int64], hosts: NDArray[np.int64], pstates: NDArray[np.int64]
    ) -> None:
        """Put waiting tasks into the virtual queues, which are empty."""
        self.virtual.replace(tasks, hosts, pstates)
        self.states[tasks] = VIRTUAL
        self.n_virtual = len(tasks)

    def withdraw_plan(self) -> None:
        """Let all planned tasks wait again."""
        if self.n_virtual:
            tasks = self.virtual.tasks
            planned = tasks[self.states[tasks] == VIRTUAL]
            self.states[planned] = WAITING
            self._first_waiting = min(self._first_waiting, int(planned.min(initial=self.submitted)))
            self.n_virtual = 0
        self.virtual.clear()

    def next_planned(self, host: int) -> tuple[int, int] | None:
        """Take the next (task, P-state) that is still planned for the host; None if none is."""
        virtual = self.virtual
        while virtual.has(host):
            task, pstate = virtual.pop(host)
            if self.state_of[task] == VIRTUAL:
                self.n_virtual -= 1
                return task, pstate
        return None

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
            return self.mappable()[:count].tolist()
        find = self.state_of.find
        task = find(WAITING, self._first_waiting)
        tasks = []
        if task >= 0:
            self._first_waiting = task
            while task >= 0 and len(tasks) < count:
                tasks.append(task)
                task = find(WAITING, task + 1)
        return tasks

    def mappable(self) -> NDArray[np.int64]:
        """Return the ids of waiting and virtually queued tasks, ascending."""
        first = self._first_waiting
        states = self.states[first : self.submitted]
        tasks = np.flatnonzero((states == WAITING) | (states == VIRTUAL)) + first
        self._first_waiting = int(tasks[0]) if len(tasks) else self.submitted
        return tasks

    def execution_records(self) -> NDArray[np.void]:
        """Return all executions as an array of `EXECUTION`, in order of their start."""
        records = np.empty(len(self.executions), dtype=EXECUTION)
        for name in EXECUTION.names:  # column by column: five times faster than row by row
            records[name] = list(map(attrgetter(name), self.executions))
        return records[np.argsort(records["start"], kind="stable")]

    def host_change_records(self) -> NDArray[np.void]:
        """Return all host changes as an array of `HOST_CHANGE`."""
        return np.array(self.host_changes, dtype=HOST_CHANGE)
