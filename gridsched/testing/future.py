"""Check that a policy decides from what has arrived: nothing of later tasks may change it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gridsched.errors import InputError
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.policy.base import Scheduler
from gridsched.policy.decisions import Decision
from gridsched.policy.state import State
from gridsched.testing.case import Case
from gridsched.testing.cases import cases_for
from gridsched.testing.playing import CheckFailed, Watched, play


def check_sees_no_future(scheduler: Scheduler) -> None:
    """What is submitted later changes nothing seen or decided before; only its number is known."""
    for case in cases_for(scheduler):
        if case.estimates is not None:  # they belong to the very tasks of the case
            continue
        for time in np.unique(case.tasks.submit_time_s)[1:].tolist():
            decided, seen = before(time, case, scheduler.clone())
            tasks = with_other_future(case.tasks, time)
            other = replace(
                case, name=f"{case.name}, others from {time:g} s on", tasks=tasks,
                logged=_within_estimates(case.logged, tasks),
            )  # fmt: skip
            decided_then, seen_then = before(time, other, scheduler.clone())
            for first, second in zip(seen, seen_then, strict=False):
                if differing := [k for k in {**first, **second} if first.get(k) != second.get(k)]:
                    raise CheckFailed(
                        f"{scheduler!r} on the case {case.name!r}: {differing[0]} shows before t = "
                        f"{time:g} s what is submitted from then on. Conceal it."
                    )
            if decided_then != decided:
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


class _Looking(Watched):
    """A scheduler under observation, and the system that it was prepared for."""

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        self.system = system
        super().prepare(system, rng)


def before(
    time: float, case: Case, scheduler: Scheduler
) -> tuple[list[str], list[dict[str, object]]]:
    """Return in words what the scheduler decided before `time` [s], and what it could see then.

    What it could see is the `public_values` of state, system and estimates.
    """
    decided: list[str] = []
    seen: list[dict[str, object]] = []

    def around(state: State, ask: Callable[[], Iterable[Decision]]) -> Iterable[Decision]:
        if state.now < time:
            seen.append(public_values(
                {"state": state, "system": looking.system, "estimates": looking.system.estimates}
            ))  # fmt: skip
        decisions = ask()
        answer = decisions if decisions is None else list(decisions)
        if state.now < time:
            decided.append(f"{state.now!r}: {answer!r}")
        return answer

    looking = _Looking(scheduler, around)
    play(case, looking)
    return decided, seen


def public_values(of: Mapping[str, object], levels: int = 2) -> dict[str, object]:
    """Return what public attributes of some objects hold, by dotted name.

    Parameters
    ----------
    of : mapping of str to object
    levels : int
        How many attributes deep to look. Of an array its bytes are taken, and those of every
        array that it is a view of; methods are not called.
    """
    values: dict[str, object] = {}
    for name, value in of.items():
        if isinstance(value, np.ndarray):
            values[name] = value.dtype, value.shape, value.tobytes()
            if value.base is not None:
                values |= public_values({f"{name}.base": value.base})
        elif value is None or isinstance(value, int | float | str | bytes | bytearray | np.generic):
            values[name] = repr(value)
        elif levels and isinstance(value, list | tuple):
            each = {f"{name}[{k}]": each for k, each in enumerate(value)}
            values |= public_values(each, levels - 1)
        elif levels and not callable(value):
            values |= public_values({f"{name}.{k}": v for k, v in _attributes(value)}, levels - 1)
    return values


def _attributes(owner: object) -> Iterable[tuple[str, Any]]:
    """Iterate over the public attributes that an object has in its present state."""
    for name in dir(owner):
        if not name.startswith("_"):
            try:
                yield name, getattr(owner, name)
            except (AttributeError, InputError):  # of parallel tasks, files or types alone
                continue


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
