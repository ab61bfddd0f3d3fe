"""What is done to a run from outside while it goes on: jobs are cancelled, hosts drained, the power capped."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable

from gridsched.engine.dispatch import Dispatch
from gridsched.engine.host_switches import withdraw_from
from gridsched.engine.run_state import RunState
from gridsched.engine.submissions import Submissions
from gridsched.engine.task_states import FINISHED, POSTPONED, VIRTUAL
from gridsched.model.stimuli import CancelTask, DrainHost, ResumeHost, SetPowerCap, Stimulus, TimedStimulus
from gridsched.model.trace import ExecutionEnd, TaskState


class Outside:
    """Applies what is done from outside at its time; no policy learns of it before.

    Parameters
    ----------
    stimuli : iterable of TimedStimulus
        What is known before the run, in any order; those of one time are applied in this order.
    run : RunState
    dispatch : Dispatch
    submissions : Submissions
    set_cap : callable
        Lets the hosts draw so much together [W]; returns whether that is new.

    Attributes
    ----------
    next_time : float
        When the next is due [s]; infinite where none is known.
    is_open : bool
        Whether more may come that is not known yet.
    returns_at : float
        When who drives the run may do more at the latest [s]; infinite where that is not known.
    """

    def __init__(
        self,
        stimuli: Iterable[TimedStimulus],
        run: RunState,
        dispatch: Dispatch,
        submissions: Submissions,
        set_cap: Callable[[float], bool],
    ) -> None:
        self._heap: list[tuple[float, int, Stimulus]] = []
        self._n_added = 0
        self._run = run
        self._dispatch = dispatch
        self._submissions = submissions
        self._set_cap = set_cap
        self.next_time = math.inf
        self.is_open, self.returns_at = False, math.inf
        for each in stimuli:
            self.add(*each)

    def add(self, time_s: float, stimulus: Stimulus) -> None:
        """Have something done at a time to come [s]."""
        heapq.heappush(self._heap, (time_s, self._n_added, stimulus))
        self._n_added += 1
        self.next_time = self._heap[0][0]

    def insert(self, task: int) -> None:
        """Have what is known of tasks that are not submitted be of those behind an added one, as these move up."""
        self._heap = [(time, k, TimedStimulus(time, each).moved(task).stimulus) for time, k, each in self._heap]

    def apply(self, now: float) -> bool:
        """Do what is due at `now` [s]; return whether any of it has changed anything."""
        changes = returns = False
        while self.next_time <= now:
            stimulus = heapq.heappop(self._heap)[2]
            self.next_time = self._heap[0][0] if self._heap else math.inf
            match stimulus:
                case CancelTask(task):
                    changes |= self._cancel(task, now)
                case DrainHost(host):
                    returns |= self._drain(host, now)
                case ResumeHost(host):
                    returns |= self._resume(host)
                case SetPowerCap(cap_w):
                    changes |= self._set_cap(cap_w)
        if returns:
            self._submissions.return_waiting()
        return changes or returns

    def _cancel(self, task: int, now: float) -> bool:
        """Give a task that has none its final state, wherever it is; return whether the policy sees this."""
        run, dispatch = self._run, self._dispatch
        state = run.state_of[task]
        if state >= FINISHED:
            return False
        if task >= run.submitted:
            self._submissions.leave_out(task)
            return False
        if state == POSTPONED:
            run.postponed.remove(task)
        elif state == VIRTUAL:  # what is planned behind it may find room
            dispatch.vacant += run.virtual.hosts()
        for each in run.reservations.withdraw(task=task):
            dispatch.uncount_execution(each, now)
        for host in sorted(run.queued_hosts):
            while any(queued == task for queued, _ in run.fixed[host]):
                dispatch.unqueue(task, host)
                dispatch.freed.append(host)
        for copy in [each for each in run.executing() if each.task == task]:
            dispatch.withdraw(copy, now, ExecutionEnd.KILLED)
        run.held.discard(task)
        dispatch.give_up(task, int(TaskState.KILLED))
        return True

    def _drain(self, host: int, now: float) -> bool:
        """Take a host out of those that tasks may go to; return whether it was among them."""
        run = self._run
        if run.is_drained(host):
            return False
        is_needed_elsewhere = bool(run.held and run.fixed[host])
        withdraw_from(host, run, self._dispatch, now)
        run.drain(host)
        if is_needed_elsewhere:
            self._withdraw_held()
        return True

    def _withdraw_held(self) -> None:
        """Let queued tasks that wait for others wait again: they could come before those in their new queue."""
        run, dispatch = self._run, self._dispatch
        for host in sorted(run.queued_hosts):
            for task, _ in list(run.fixed[host]):
                if task in run.held:
                    dispatch.unqueue(task, host)
                    dispatch.freed.append(host)

    def _resume(self, host: int) -> bool:
        """Let a host take tasks again; return whether it was drained."""
        if not self._run.is_drained(host):
            return False
        self._run.resume(host)
        self._dispatch.vacant.append(host)
        return True
