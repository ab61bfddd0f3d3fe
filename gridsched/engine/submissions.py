"""Which tasks are submitted when, and which of them wait for others before they may start."""

from __future__ import annotations

import heapq
import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.engine.dispatch import Dispatch
from gridsched.engine.events import Timers
from gridsched.engine.execution import Timer
from gridsched.engine.run_state import RunState
from gridsched.engine.task_states import FINISHED, RUNNING, VIRTUAL, WAITING
from gridsched.model.dependencies import After, Block
from gridsched.model.holds import Holds
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.model.trace import TaskState


class Submissions:
    """Lets tasks wait from their submission on.

    Parameters
    ----------
    system : System
    tasks : Tasks
    run : RunState
    timers : Timers
    dispatch : Dispatch
    sees_all : bool
        Whether the policy is asked for all tasks that wait at every event; else for each one that is new.
    one_by_one : bool
        Whether each submission is an event of its own, however many are due (`Rules.mapping_events`).

    Attributes
    ----------
    returned : list of int
        Tasks submitted before that are new to the policy again, which is asked for each arrival.
    """

    def __init__(
        self,
        system: System,
        tasks: Tasks,
        run: RunState,
        timers: Timers,
        dispatch: Dispatch,
        *,
        sees_all: bool,
        one_by_one: bool = False,
    ) -> None:
        self._sees_all, self._one_by_one = sees_all, one_by_one
        self.returned: Sequence[int] = ()
        self._times = array("d", tasks.submit_time_s.tobytes())  # a list takes four times as much
        self._runnable = system.estimates.runnable(np.arange(len(tasks)), np.arange(system.n_hosts))
        #: tasks that end at their submission, before the policy sees them
        self._left_out: set[int] = set()
        self._run = run
        self._gate = Gate(tasks, run, timers, dispatch) if tasks.may_be_held else None

    @property
    def next_time(self) -> float:
        """When the next task is submitted [s]; infinite where none is left."""
        submitted = self._run.submitted
        return self._times[submitted] if submitted < len(self._times) else math.inf

    def take(self, now: float) -> bool:
        """Let the tasks that are due (or the next) wait, but for those that run nowhere; whether any waits."""
        first = self._run.submitted
        end = bisect_right(self._times, now, lo=first)
        if self._one_by_one:
            end = min(end, first + 1)
        waits = end > first and self._run.submit(end, self._runnable)
        for task in self._left_out.intersection(range(first, end)) if self._left_out else ():
            self._run.state_of[task] = int(TaskState.KILLED)
        if self._gate is not None and end > first:
            self._gate.hold(first, end, now)
        return waits

    def insert(self, task: int, time_s: float, *, runnable: bool) -> None:
        """Let a task have the place of one that is not submitted yet, which moves up with all behind it."""
        self._times.insert(task, time_s)
        self._times.pop()
        self._runnable[task + 1 :] = self._runnable[task:-1]
        self._runnable[task] = runnable
        self._left_out = {each + (each >= task) for each in self._left_out}

    def leave_out(self, task: int) -> None:
        """Have a task that is not submitted yet be killed when it is."""
        self._runnable[task] = False
        self._left_out.add(task)

    def release(self, now: float) -> bool:
        """Let tasks go that others have held; whether any wait now that are new to the policy."""
        if self._gate is None:
            return False
        released = self._gate.release(now)
        if released and not self._sees_all:
            self.returned = sorted({*self.returned, *released})
        return bool(released)

    def note_starts(self, now: float) -> None:
        """Have the instant come again if a task has started for which others wait."""
        if self._gate is not None:
            self._gate.note_starts(now)

    def return_waiting(self) -> None:
        """Make all tasks that wait new to the policy again."""
        waiting = self._run.states[: self._run.submitted] == WAITING
        self.returned = np.flatnonzero(waiting).tolist()

    def new_since(self, first: int) -> list[int]:
        """Take the tasks that wait and are new again, then those submitted from `first` on."""
        new = range(first, self._run.submitted)
        returned, self.returned = self.returned, ()
        return [*returned, *new] if returned else list(new)


class Gate:
    """Keeps tasks blocked until what they wait for has happened, their time has come, and their array has room.

    A blocked task may be queued or planned: it then starts when it is at the head and free. Each start or end is
    looked at once, with the pairs that wait for it; each task counts what it still waits for.

    Parameters
    ----------
    tasks : Tasks
        With dependencies, holds or both.
    run : RunState
    timers : Timers
    dispatch : Dispatch
        What serves the queues in which released tasks wait.
    """

    def __init__(self, tasks: Tasks, run: RunState, timers: Timers, dispatch: Dispatch) -> None:
        pairs, blocks = _with_blocks(tasks)
        self._run = run
        self._timers = timers
        self._dispatch = dispatch
        self._task: list[int] = pairs.task.tolist()
        self._kind: list[int] = pairs.kind.tolist()
        self._delay_s: list[float] = pairs.delay_s.tolist()
        self._has_data: list[bool] = pairs.has_data.tolist()
        #: pairs of each task that are not over, and one if its time has not come
        self._n_left: list[int] = np.bincount(pairs.task, minlength=len(run.states)).tolist()
        #: pairs that wait for each task's start, and for its end
        self._at_start: dict[int, list[int]] = {}
        self._at_end: dict[int, list[int]] = {}
        for pair, (on, kind) in enumerate(zip(pairs.on.tolist(), self._kind, strict=True)):
            (self._at_start if kind == After.START else self._at_end).setdefault(on, []).append(pair)
        #: how many tasks of each block have not started, or ended, and the blocks that wait for each task
        self._n_of_block: list[int] = [len(each.on) for each in blocks]
        self._kind_of_block: list[int] = [int(each.kind) for each in blocks]
        self._blocks_of: dict[int, list[int]] = {}
        for k, each in enumerate(blocks):
            for on in each.on.tolist():
                self._blocks_of.setdefault(on, []).append(k)
        #: when pairs are over whose delay runs [s], as a dictionary and as a heap with their pairs
        self._due_s: dict[int, float] = {}
        self._due: list[tuple[float, int]] = []
        #: tasks whose time is to come, as a heap by it [s]
        self._release_s: list[float] = [] if tasks.holds is None else tasks.holds.release_s.tolist()
        self._timed: list[tuple[float, int]] = []
        self._arrays = _Arrays(tasks.holds, run.held)
        #: tasks, held or not, that wait for what can never happen
        self._hopeless: set[int] = set()
        #: held tasks to be rejected, and to be released
        self._never: set[int] = set()
        self._ready: set[int] = set()

    def hold(self, first: int, end: int, now: float) -> None:
        """Block those of newly submitted tasks that wait for anything."""
        run = self._run
        pairs = range(bisect_left(self._task, first), bisect_left(self._task, end))
        held = {task for task in self._task[pairs.start : pairs.stop] if run.state_of[task] == WAITING}
        held |= self._hold_back(first, end, now)
        if not held:
            return
        run.block(list(held))
        self._never |= held & self._hopeless
        for task in held:
            if not self._n_left[task]:
                self._let(task)
        if self._due:
            self._wake_at(
                {self._due_s[pair] for pair in pairs if pair in self._due_s and self._task[pair] in held}, now
            )

    def _hold_back(self, first: int, end: int, now: float) -> set[int]:
        """Return which of newly submitted tasks have to wait for a time or for their turn."""
        held, times = set(), set()
        for task in range(first, end if self._release_s else first):
            if self._run.state_of[task] != WAITING:
                continue
            if (release_s := self._release_s[task]) > now:
                self._n_left[task] += 1
                heapq.heappush(self._timed, (release_s, task))
                times.add(release_s)
                held.add(task)
            elif self._arrays.has(task):
                held.add(task)
        self._wake_at(times, now)
        return held

    def release(self, now: float) -> list[int]:
        """Let tasks go for which all is over, at `now` [s]; return those that wait then, in no queue or plan.

        A task that waits for what can never happen, or for data that will never be made, is rejected, and so is who
        waits for its success.
        """
        released: list[int] = []
        while self._lets_go(now):
            never, ready = sorted(self._never & self._run.held), sorted(self._ready)
            self._never.clear()
            self._ready.clear()
            for each in never:
                self._reject(each)
            for each in ready:
                self._release(each)
            released += [each for each in ready if self._run.state_of[each] == WAITING]
        return released

    def _reject(self, task: int) -> None:
        for host in list(self._run.places.get(task, ())):
            self._dispatch.unqueue(task, host)
            self._dispatch.freed.append(host)
        self._run.held.discard(task)
        self._dispatch.give_up(task, TaskState.REJECTED)

    def _release(self, task: int) -> None:
        """Let a task wait like any; where it is queued or planned, its hosts are served."""
        run = self._run
        run.unblock(task)
        self._dispatch.freed += run.places.get(task, ())
        if run.state_of[task] == VIRTUAL:
            self._dispatch.vacant += run.virtual.hosts()

    def note_starts(self, now: float) -> None:
        """Have the instant come again if what was decided lets go of tasks that are held."""
        if self._lets_go(now):
            self._timers.set(now, Timer.RELEASE)

    def _lets_go(self, now: float) -> bool:
        """Look at what has started or ended, and at times that have come; whether held tasks are to be let go."""
        followed = self._run.followed
        if followed:
            self._run.followed = []
            for task in followed:
                self._follow(task, now)
        while self._due and self._due[0][0] <= now:
            pair = heapq.heappop(self._due)[1]
            del self._due_s[pair]
            self._count_down(self._task[pair])
        while self._timed and self._timed[0][0] <= now:
            self._count_down(heapq.heappop(self._timed)[1])
        self._ready.update(self._arrays.next_tasks())
        return bool(self._never or self._ready)

    def _follow(self, on: int, now: float) -> None:
        """Look at the pairs that wait for a task which has started or ended; it may wait again already."""
        state = self._run.state_of[on]
        over = self._at_start.pop(on, []) if state == RUNNING or state >= FINISHED else []
        over += self._over_of_blocks(on, state)
        if state >= FINISHED:
            self._arrays.ended(on)
            for pair in self._at_end.pop(on, ()):
                kind, is_made = self._kind[pair], state == FINISHED or not self._has_data[pair]
                if is_made and (kind == After.END or (kind == After.SUCCESS) == (state == FINISHED)):
                    over.append(pair)
                else:
                    self._give_up(self._task[pair])
        wakes = set()
        for pair in over:
            task, end = self._task[pair], now + self._delay_s[pair]
            if end <= now:
                self._count_down(task)
                continue
            self._due_s[pair] = end
            heapq.heappush(self._due, (end, pair))
            if task in self._run.held:
                wakes.add(end)
        self._wake_at(wakes, now)

    def _over_of_blocks(self, on: int, state: int) -> list[int]:
        """Return the pairs of blocks whose last task has started, or ended, with this one."""
        over, left = list[int](), list[int]()
        n_tasks = len(self._run.states)
        for k in self._blocks_of.pop(on, ()):
            kind = self._kind_of_block[k]
            is_start, has_ended = kind == After.START, state >= FINISHED
            if not has_ended and not (is_start and state == RUNNING):
                left.append(k)
            elif is_start or kind == After.END or (kind == After.SUCCESS) == (state == FINISHED):
                self._n_of_block[k] -= 1
                if not self._n_of_block[k]:
                    over += (self._at_start if is_start else self._at_end).pop(n_tasks + k, [])
            else:
                for pair in self._at_end.pop(n_tasks + k, ()):
                    self._give_up(self._task[pair])
        if left:
            self._blocks_of[on] = left
        return over

    def _count_down(self, task: int) -> None:
        self._n_left[task] -= 1
        if not self._n_left[task] and task in self._run.held:
            self._let(task)

    def _let(self, task: int) -> None:
        """Let a held task go that waits for nothing any more, or queue for its turn in its array."""
        if self._arrays.has(task):
            self._arrays.queue(task)
        else:
            self._ready.add(task)

    def _give_up(self, task: int) -> None:
        self._hopeless.add(task)
        if task in self._run.held:
            self._never.add(task)

    def _wake_at(self, times: Iterable[float], now: float) -> None:
        """Have instants at times to come [s]."""
        for time in sorted(times):
            if time > now:
                self._timers.set(time, Timer.RELEASE)


class _Pairs(NamedTuple):
    """Who waits for whom, as `Dependencies`, in order of the tasks that wait."""

    task: Integers
    on: Integers
    kind: Integers
    delay_s: Floats
    has_data: Booleans


def _with_blocks(tasks: Tasks) -> tuple[_Pairs, tuple[Block, ...]]:
    """Return who waits for whom, and the blocks, each of which has a number behind those of all tasks."""
    edges = tasks.dependencies
    if edges is None:
        none = np.zeros(0, dtype=np.int64)
        return _Pairs(none, none, none, np.zeros(0), np.zeros(0, dtype=np.bool_)), ()
    parts = [_Pairs(edges.task, edges.on, edges.kind, edges.delay_s, edges.size_bytes > 0)]
    for number, each in enumerate(edges.blocks, start=len(tasks)):
        n = len(each.task)
        of_block = np.full(n, number), np.full(n, int(each.kind)), np.full(n, each.delay_s), np.zeros(n, dtype=np.bool_)
        parts.append(_Pairs(each.task, *of_block))
    pairs = _Pairs(*map(np.concatenate, zip(*parts, strict=True)))
    order = np.argsort(pairs.task, kind="stable")
    sorted_pairs = _Pairs(
        pairs.task[order], pairs.on[order], pairs.kind[order], pairs.delay_s[order], pairs.has_data[order]
    )
    return sorted_pairs, edges.blocks


class _Arrays:
    """Tasks of arrays of which only so many may run at once: those that queue for their turn.

    Parameters
    ----------
    holds : Holds or None
    held : set of int
        Tasks that are held.
    """

    def __init__(self, holds: Holds | None, held: Container[int]) -> None:
        self._held = held
        self._array: list[int] = [] if holds is None or not len(holds.limit) else holds.array.tolist()
        self._free: list[int] = [] if holds is None else holds.limit.tolist()
        self._queues: list[list[int]] = [[] for _ in self._free]
        self._has_turn: set[int] = set()
        #: arrays at which something has changed
        self._changed: set[int] = set()

    def has(self, task: int) -> bool:
        """Whether a task is of an array with a limit."""
        return bool(self._array) and self._array[task] >= 0

    def queue(self, task: int) -> None:
        """Let a task queue for its turn."""
        own = self._array[task]
        heapq.heappush(self._queues[own], task)
        self._changed.add(own)

    def ended(self, task: int) -> None:
        """Note that a task will not run any more: another one may have its turn."""
        if task in self._has_turn:
            self._has_turn.discard(task)
            self._free[self._array[task]] += 1
            self._changed.add(self._array[task])

    def next_tasks(self) -> Iterator[int]:
        """Take the tasks whose turn it is, of each array those with the lowest ids."""
        for changed in sorted(self._changed):
            queue = self._queues[changed]
            while queue and self._free[changed]:
                task = heapq.heappop(queue)
                if task in self._held:
                    self._has_turn.add(task)
                    self._free[changed] -= 1
                    yield task
        self._changed.clear()
