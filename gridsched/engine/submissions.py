"""Which tasks are submitted when, and which of them wait for others before they may start."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.engine.dispatch import Dispatch
from gridsched.engine.events import Timers
from gridsched.engine.execution import Timer
from gridsched.engine.run_state import RunState
from gridsched.engine.task_states import FINISHED, RUNNING, VIRTUAL, WAITING
from gridsched.model.dependencies import After, Dependencies
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
        self._times: list[float] = tasks.submit_time_s.tolist()
        self._runnable = system.estimates.runnable(np.arange(len(tasks)), np.arange(system.n_hosts))
        self._run = run
        self._tracker: DependencyTracker | None = None
        if tasks.dependencies is not None:
            self._tracker = DependencyTracker(tasks.dependencies, run, timers, dispatch)

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
        if self._tracker is not None and end > first:
            self._tracker.hold(first, end, now)
        return waits

    def release(self, now: float) -> bool:
        """Let tasks go that others have held; whether any wait now that are new to the policy."""
        if self._tracker is None:
            return False
        released = self._tracker.release(now)
        if released and not self._sees_all:
            self.returned = sorted({*self.returned, *released})
        return bool(released)

    def note_starts(self, now: float) -> None:
        """Have the instant come again if a task has started for which others wait."""
        if self._tracker is not None:
            self._tracker.note_starts(now)

    def return_waiting(self) -> None:
        """Make all tasks that wait new to the policy again."""
        waiting = self._run.states[: self._run.submitted] == WAITING
        self.returned = np.flatnonzero(waiting).tolist()

    def new_since(self, first: int) -> list[int]:
        """Take the tasks that wait and are new again, then those submitted from `first` on."""
        new = range(first, self._run.submitted)
        returned, self.returned = self.returned, ()
        return [*returned, *new] if returned else list(new)


class DependencyTracker:
    """Keeps tasks blocked until what they wait for has happened.

    A blocked task may be queued or planned: it then starts when it is at the head and free.

    Parameters
    ----------
    dependencies : Dependencies
    run : RunState
    timers : Timers
    dispatch : Dispatch
        What serves the queues in which released tasks stand.
    """

    def __init__(self, dependencies: Dependencies, run: RunState, timers: Timers, dispatch: Dispatch) -> None:
        self._all = dependencies.by_task()
        self._run = run
        self._timers = timers
        self._dispatch = dispatch
        #: when each pair is over [s]: nan until that is known, infinite if it never will be
        self._over: Floats = np.full(len(self._all), np.nan)
        #: pairs of which the other task has come, and is not so far
        self._open: Integers = np.zeros(0, dtype=np.int64)
        #: pairs of tasks that are held
        self._pairs: Integers = np.zeros(0, dtype=np.int64)
        self._is_held = np.zeros(len(run.states), dtype=np.bool_)
        self._is_open = np.zeros_like(self._is_held)
        self._by_other = np.argsort(self._all.on, kind="stable")
        self._any_of_starts = bool((self._all.kind == After.START).any())

    def hold(self, first: int, end: int, now: float) -> None:
        """Block those of newly submitted tasks that wait for others."""
        low, high = np.searchsorted(self._all.on, [first, end], sorter=self._by_other)
        self._open = np.concatenate([self._open, self._by_other[low:high]])
        low, high = np.searchsorted(self._all.task, [first, end])
        pairs = np.arange(low, high)
        pairs = pairs[self._run.states[self._all.task[pairs]] == WAITING]
        held = np.unique(self._all.task[pairs])
        self._is_held[held] = True
        self._run.block(held.tolist())
        self._pairs = np.concatenate([self._pairs, pairs])
        self._wake_at(self._over[pairs], now)

    def release(self, now: float) -> list[int]:
        """Let tasks go for which all is over, at `now` [s]; return those that wait then, in no queue or plan.

        A task that waits for what can never happen is rejected, and so is who waits for its success.
        """
        released: list[int] = []
        again = True
        while again:
            self._find_over(now)
            task, over = self._all.task[self._pairs], self._over[self._pairs]
            never = np.unique(task[np.isinf(over)]).tolist()
            for each in never:
                self._reject(each)
            ready = self._all_over(task, over <= now)
            for each in ready:
                self._release(each)
            self._pairs = self._pairs[self._is_held[task]]
            released += [each for each in ready if self._run.state_of[each] == WAITING]
            again = bool(never)
        return released

    def _all_over(self, task: Integers, is_over: Booleans) -> list[int]:
        """Return the tasks all of whose pairs are over, ascending; only what is over is sorted."""
        self._is_open[task[~is_over]] = True
        some = task[is_over]
        ready: list[int] = np.unique(some[~self._is_open[some]]).tolist()
        self._is_open[task] = False
        return ready

    def _reject(self, task: int) -> None:
        for host in list(self._run.places.get(task, ())):
            self._dispatch.unqueue(task, host)
            self._dispatch.freed.append(host)
        self._run.held.discard(task)
        self._is_held[task] = False
        self._run.end_task(task, TaskState.REJECTED)

    def _release(self, task: int) -> None:
        """Let a task wait like any; where it is queued or planned, its hosts are served."""
        run = self._run
        run.unblock(task)
        self._is_held[task] = False
        self._dispatch.freed += run.places.get(task, ())
        if run.state_of[task] == VIRTUAL:
            self._dispatch.vacant += run.virtual.hosts()

    def note_starts(self, now: float) -> None:
        """Have the instant come again if what was decided lets go of tasks that are held."""
        if len(self._open) and self._find_over(now):
            over = self._over[self._pairs]
            if ((over <= now) | np.isinf(over)).any():
                self._timers.set(now, Timer.RELEASE)

    def _find_over(self, now: float) -> bool:
        """Find when pairs are over whose other task has come so far; whether any is new."""
        state = self._run.states[self._all.on[self._open]]
        if not self._any_of_starts and not (state >= FINISHED).any():
            return False
        kind = self._all.kind[self._open]
        is_final, is_success = state >= FINISHED, state == FINISHED
        met = np.choose(kind, [is_final | (state == RUNNING), is_final, is_success, is_final & ~is_success])
        is_settled = met | is_final
        if not is_settled.any():
            return False
        pairs = self._open[is_settled]
        self._over[pairs] = np.where(met[is_settled], now + self._all.delay_s[pairs], np.inf)
        self._open = self._open[~is_settled]
        self._wake_at(self._over[pairs[self._is_held[self._all.task[pairs]]]], now)
        return True

    def _wake_at(self, times: Floats, now: float) -> None:
        """Have instants at times to come [s]."""
        for time in np.unique(times[np.isfinite(times) & (times > now)]).tolist():
            self._timers.set(time, Timer.RELEASE)
