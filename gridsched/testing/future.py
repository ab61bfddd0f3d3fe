"""Check that a policy decides from what has arrived: nothing of later tasks may change it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from gridsched.model.tasks import Tasks
from gridsched.policy.base import Scheduler
from gridsched.policy.decisions import Decision
from gridsched.policy.state import State
from gridsched.testing.case import Case
from gridsched.testing.cases import cases_for
from gridsched.testing.playing import CheckFailed, play


def check_sees_no_future(scheduler: Scheduler) -> None:
    """What is submitted later changes no decision before; only its number is known."""
    for case in cases_for(scheduler):
        if case.estimates is not None:  # they belong to the very tasks of the case
            continue
        for time in np.unique(case.tasks.submit_time_s)[1:].tolist():
            expected = decided_before(time, case, scheduler.clone())
            tasks = with_other_future(case.tasks, time)
            other = replace(
                case, name=f"{case.name}, others from {time:g} s on", tasks=tasks,
                logged=_within_estimates(case.logged, tasks),
            )  # fmt: skip
            if decided_before(time, other, scheduler.clone()) != expected:
                raise CheckFailed(
                    f"{scheduler!r} on the case {case.name!r}: what is submitted from t = "
                    f"{time:g} s on changes what it decides before. Use nothing of tasks that "
                    "have not arrived."
                )


def _within_estimates(logged: Sequence[float] | None, tasks: Tasks) -> Sequence[float] | None:
    """Return how long the tasks really take: no longer than was requested."""
    if logged is None or tasks.requested_time_s is None:
        return logged
    return np.minimum(logged, tasks.requested_time_s).tolist()


def decided_before(time: float, case: Case, scheduler: Scheduler) -> list[str]:
    """Return in words when the scheduler was asked before `time` [s] and what it decided."""
    told: list[str] = []

    def around(state: State, ask: Callable[[], Iterable[Decision]]) -> Iterable[Decision]:
        decisions = ask()
        answer = decisions if decisions is None else list(decisions)
        if state.now < time:
            told.append(f"{state.now!r}: {answer!r}")
        return answer

    play(case, scheduler, around=around)
    return told


def with_other_future(tasks: Tasks, time: float) -> Tasks:
    """Return the tasks with others, as many, in place of those from `time` [s] on.

    These arrive up to twice as late, in the opposite order; their sizes lie further apart.
    """
    n = int(np.searchsorted(tasks.submit_time_s, time))
    order = np.concatenate([np.arange(n), np.arange(len(tasks))[: n - 1 if n else None : -1]])
    late = np.arange(len(tasks)) >= n
    submitted = tasks.submit_time_s
    later = time + 2.0 * (submitted - time) + 0.25
    flops = tasks.flops[order]
    if tasks.task_type is None:
        flops = np.where(late, flops**1.5 + 10.0 * np.arange(len(tasks)), flops)
    deadline = tasks.deadline_s
    if deadline is not None:
        deadline = np.where(late, later + (deadline - submitted)[order], deadline)
    width, requested = tasks.width, tasks.requested_time_s
    if requested is not None:
        requested = np.where(late, requested[order] * 1.5 + 10.0, requested)
    return replace(
        tasks, width=None if width is None else width[order], requested_time_s=requested,
        flops=flops, deadline_s=deadline, submit_time_s=np.where(late, later, submitted),
        task_type=None if tasks.task_type is None else tasks.task_type[order],
        utility=None if tasks.utility is None else tasks.utility.taken(order),
    )  # fmt: skip
