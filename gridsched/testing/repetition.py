"""Checks that a result depends on the scenario only: not on earlier runs or later tasks."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from gridsched.arrays import distinct
from gridsched.errors import InputError
from gridsched.model.platform import Platform
from gridsched.model.system import System
from gridsched.model.tasks import Tasks, make_tasks
from gridsched.model.trace import Trace
from gridsched.policy.base import Scheduler
from gridsched.policy.decisions import Decision
from gridsched.policy.state import State
from gridsched.testing.cases import (
    WORTH_WITHOUT_TIES,
    cases_for,
    make_host,
    make_stochastic_case,
    make_utility_case,
    on_each_case,
)
from gridsched.testing.parallel_cases import UTILITY_WITHOUT_TIES, WITHOUT_TIES
from gridsched.testing.playing import Case, CheckFailed, Watched, play, trace_of

#: No two sizes, speeds or powers are equal, nor are any sums of run times.
_NO_TIES = Case(
    "no ties",
    Platform(
        (
            make_host("h1", 97.13, busy_w=53.1),
            make_host("h2", 61.71, busy_w=29.9),
            make_host("h3", 43.37, busy_w=38.3),
            make_host("h4", 29.03, cores=2, busy_w=31.7),
        )
    ),
    make_tasks([1013.7, 467.1, 2029.3, 1531.9, 251.1, 877.7, 1291.3, 619.9, 337.1]),
)

#: The same for policies that need utility functions: every host is of a type of its own.
_NO_TYPED_TIES = make_utility_case(
    "no typed ties",
    [
        [[10.13, 14.91], [21.7, 27.3], [15.77, 17.11]],
        [[5.31, 7.93], [9.67, 14.23], [6.89, 10.71]],
        [[9.41, 14.37], [11.53, 15.19], [19.07, 23.3]],
    ],
    [0, 1, 2],
    [k % 3 for k in range(12)],
    [0.37 * k for k in range(12)],
    WORTH_WITHOUT_TIES,
)


#: The same for policies that need distributions; what is estimated comes true.
_NO_UNCERTAIN_TIES = make_stochastic_case(
    "no uncertain ties",
    [[[10.13, 14.91], [21.7, 27.3], [15.77, 17.11]], [[9.41, 14.37], [11.53, 15.19], [19.07, 23.3]]],
    [0, 1, 2],
    [k % 2 for k in range(12)],
    [3.37 * k for k in range(12)],
    luck=False,
)


def _without_ties(scheduler: Scheduler) -> Case:
    if scheduler.traits.parallel:
        return UTILITY_WITHOUT_TIES if scheduler.traits.needs_utility else WITHOUT_TIES
    if scheduler.traits.needs_distributions:
        return _NO_UNCERTAIN_TIES
    return _NO_TYPED_TIES if scheduler.traits.needs_utility else _NO_TIES


@on_each_case
def check_same_seed(scheduler: Scheduler, case: Case) -> None:
    """The same seed gives the same run, to the last bit."""
    if not same_run(trace_of(case, scheduler), play(case, scheduler.clone(), again=True)):
        raise CheckFailed(
            "two runs with the same seed differ. Draw from the rng that prepare() gets and from nothing "
            "else; do not rely on the order of a set."
        )


def check_seed_irrelevant(scheduler: Scheduler) -> None:
    """Without the trait `uses_rng` the seed changes nothing."""
    for case in (*cases_for(scheduler), _without_ties(scheduler)):
        first = trace_of(case, scheduler)
        if not all(same_run(first, play(case, scheduler.clone(), seed=seed, again=True)) for seed in (1, 2)):
            raise CheckFailed(
                f"{scheduler!r} on the case {case.name!r}: the seed changes the result; set Traits(uses_rng=True)."
            )


def check_reuse(scheduler: Scheduler) -> None:
    """An instance that was used before decides like a fresh one: prepare() forgets."""
    used = scheduler.clone()
    for case in (*cases_for(scheduler), *reversed(cases_for(scheduler))):
        if not same_run(play(case, used, again=True), trace_of(case, scheduler)):
            raise CheckFailed(
                f"{scheduler!r} on the case {case.name!r}: an instance that ran before decides "
                "otherwise than a fresh one. Set everything it remembers again in prepare()."
            )


def check_host_order(scheduler: Scheduler) -> None:
    """Without ties the order of the hosts in the platform changes nothing."""
    whole = _without_ties(scheduler)
    expected = by_name(trace_of(whole, scheduler))
    n = len(whole.platform)
    for order in (range(n)[::-1], (*range(1, n), 0)):
        other = _in_order(whole, order)
        if by_name(play(other, scheduler.clone())) != expected:
            raise CheckFailed(
                f"{scheduler!r}: with the {other.name} it decides otherwise, although nothing is "
                "equal. Choose hosts by what they are, not by their position; or set "
                "Traits(platform_order_matters=True)."
            )


def _in_order(case: Case, order: Sequence[int]) -> Case:
    """Return the case with its hosts in another order."""
    hosts, types = tuple(case.platform.hosts[h] for h in order), case.types
    if types is not None:
        types = replace(types, host_type=types.host_type[list(order)])
    return replace(case, name=f"hosts in the order {tuple(order)}", platform=Platform(hosts), types=types)


def same_run(first: Trace, second: Trace) -> bool:
    """Whether two traces hold the same records, bit by bit."""
    names = ("executions", "host_ids", "host_changes", "final_state")
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in names)


def by_name(trace: Trace) -> list[tuple[Any, ...]]:
    """Return (task, host name, P-state, start, end, outcome) of all executions, sorted."""
    names = [host.name for host in trace.platform.hosts]
    return sorted((task, names[host], *rest) for task, host, *rest in trace.executions.tolist())


@on_each_case
def check_sees_no_future(scheduler: Scheduler, case: Case) -> None:
    """What is submitted later changes nothing seen or decided before; only its number is known."""
    if case.estimates is not None:  # they belong to the very tasks of the case
        return
    times = distinct(case.tasks.submit_time_s)[1:].tolist()
    if not times:
        return
    all_decided, all_seen = before(math.inf, case, scheduler.clone())
    for since, time in pairwise([-math.inf, *times]):
        # what was seen before `since` has been compared with other tasks than all of those, and more
        decided = [what for now, what in all_decided if now < time]
        seen = [what for now, what in all_seen if since <= now < time]
        tasks = with_other_future(case.tasks, time)
        name = f"{case.name}, others from {time:g} s on"
        other = replace(case, name=name, tasks=tasks, logged=_within_estimates(case.logged, tasks))
        decided_then, seen_then = before(time, other, scheduler.clone(), since)
        for first, (_, second) in zip(seen, seen_then, strict=False):
            if differing := [k for k in {**first, **second} if first.get(k) != second.get(k)]:
                raise CheckFailed(
                    f"{differing[0]} shows before t = {time:g} s what is submitted from then on. Conceal it."
                )
        if [what for _, what in decided_then] != decided:
            raise CheckFailed(
                f"what is submitted from t = {time:g} s on changes what it decides before. Use nothing of "
                "tasks that have not arrived."
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


class _Enough(BaseException):
    """What happens from the time on is of no interest; no error of a run, which would be caught."""


def before(
    time: float, case: Case, scheduler: Scheduler, since: float = -math.inf
) -> tuple[list[tuple[float, str]], list[tuple[float, dict[str, object]]]]:
    """Return in words what the scheduler decided before `time` [s], and what it could see then, each with its instant.

    What it could see is the `public_values` of state, system and estimates, from `since` [s] on. The run ends at
    `time`.
    """
    decided: list[tuple[float, str]] = []
    seen: list[tuple[float, dict[str, object]]] = []

    def around(state: State, ask: Callable[[], Iterable[Decision]]) -> Iterable[Decision]:
        if state.now >= time:
            raise _Enough
        if state.now >= since:
            values = public_values({"state": state, "system": looking.system, "estimates": looking.system.estimates})
            seen.append((state.now, values))
        answer = ask()
        return answer if answer is None else noted(answer, state.now)

    def noted(answer: Iterable[Decision], now: float) -> Iterator[Decision]:
        decided.append((now, f"{now!r}"))
        for decision in answer:
            decided.append((now, f"{now!r}: {decision!r}"))
            yield decision

    looking = _Looking(scheduler, around)
    with contextlib.suppress(_Enough):
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
    _collect(values, of.items(), levels)
    return values


#: What is taken as it is shown.
_PLAIN = int, float, str, bytes, bytearray, np.generic, type(None)


def _collect(values: dict[str, object], named: Iterable[tuple[str, object]], levels: int) -> None:
    """Add the values of named objects: of one state there are hundreds, at each ask."""
    for name, value in named:
        if isinstance(value, np.ndarray):
            values[name] = value.dtype, value.shape, value.tobytes()
            if value.base is not None:
                values |= public_values({f"{name}.base": value.base})
        elif isinstance(value, _PLAIN):
            values[name] = repr(value)
        elif levels and isinstance(value, list | tuple):
            _collect(values, [(f"{name}[{k}]", each) for k, each in enumerate(value)], levels - 1)
        elif levels and not callable(value):
            _collect(values, _attributes(name, value), levels - 1)


#: Public names of classes that hold a value, in order.
_public_names: dict[type, tuple[str, ...]] = {}


def _attributes(of: str, owner: object) -> Iterator[tuple[str, object]]:
    """Iterate over the public attributes that a named object has in its present state, each with its dotted name."""
    kind = type(owner)
    names = _public_names.get(kind)
    if names is None:
        names = _public_names[kind] = tuple(sorted(_names_of_values(kind)))
    if own := {name for name in getattr(owner, "__dict__", ()) if not name.startswith("_")}.difference(names):
        names = tuple(sorted({*names, *own}))
    for name in names:
        try:
            value = getattr(owner, name)
        except (AttributeError, InputError):  # of parallel tasks, files or types alone
            continue
        yield f"{of}.{name}", value


def _names_of_values(kind: type) -> frozenset[str]:
    """Return the public names of a class that hold a value: its methods never do."""
    return frozenset(
        name
        for name in dir(kind)
        if not name.startswith("_") and not inspect.isfunction(inspect.getattr_static(kind, name))
    )


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
    requested = tasks.requested_time_s
    if requested is not None:
        requested = np.where(late, requested[order] * 1.5 + 10.0, requested)
    return replace(
        tasks,
        width=tasks.taken(order).width,
        requested_time_s=requested,
        flops=flops,
        deadline_s=deadline,
        submit_time_s=np.where(late, later, submitted),
        task_type=None if tasks.task_type is None else tasks.task_type[order],
        utility=None if tasks.utility is None else tasks.utility.taken(order),
        attributes={name: each.taken(order) for name, each in tasks.attributes.items()},
    )
