"""Which state each task of a run is in, and which may be mapped."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gridsched.arrays import Booleans, Integers
from gridsched.model.trace import TaskState

# plain integers: an attribute of an IntEnum costs several times as much
BLOCKED = int(TaskState.BLOCKED)
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
    n_spare : int
        So many of them, the last ones, are none yet: rows for tasks that may be added.

    Attributes
    ----------
    n_tasks : int
        Tasks of the run, without spare rows.
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
        Submitted tasks that wait for others, or are held back: blocked, or in a queue or a plan that they enter.
    followed : list of int or None
        Tasks that have started or come to a final state since somebody looked; None where no task is ever held.
    """

    def __init__(self, n_tasks: int, n_spare: int = 0) -> None:
        self.n_tasks = self.open_tasks = n_tasks - n_spare
        self.state_of = bytearray(n_tasks)
        self.states = np.frombuffer(self.state_of, dtype=np.uint8)
        self.states[self.n_tasks :] = TaskState.DROPPED
        self.n_virtual = 0
        self.postponed: list[int] = []
        self.times_postponed = np.zeros(n_tasks, dtype=np.int64)
        self.submitted = 0
        self.held: set[int] = set()
        self.followed: list[int] | None = None
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
        if self.followed is not None and n_waiting < end - first:
            self.followed += (np.flatnonzero(~waits) + first).tolist()
        self.waits_from(first)
        return n_waiting > 0

    def add_task(self) -> None:
        """Let the first spare row be that of a task which is not submitted yet."""
        self.state_of[self.n_tasks] = int(TaskState.NOT_SUBMITTED)
        self.n_tasks += 1
        self.open_tasks += 1

    def end_task(self, task: int, state: int) -> None:
        """Give a task its final state."""
        self.n_virtual -= self.state_of[task] == VIRTUAL
        self.state_of[task] = state
        self.open_tasks -= 1
        if self.followed is not None:
            self.followed.append(task)

    def blocked(self) -> Integers:
        """Return the ids of tasks that wait for others and are in no queue or plan, ascending."""
        return np.flatnonzero(self.states[: self.submitted] == BLOCKED) if self.held else np.zeros(0, dtype=np.int64)

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
        """Put a submitted, queued or planned task back among the waiting ones, or the blocked."""
        if task in self.held:
            self._move(task, BLOCKED)
            return
        self._move(task, WAITING)
        self.waits_from(task)

    def block(self, tasks: list[int]) -> None:
        """Let tasks that wait come to wait for others."""
        self.held.update(tasks)
        self.states[tasks] = BLOCKED

    def unblock(self, task: int) -> None:
        """Let a task for which all others have done what it waited for wait like any; a queue keeps it."""
        self.held.discard(task)
        if self.state_of[task] == BLOCKED:
            self.waiting_again(task)

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
