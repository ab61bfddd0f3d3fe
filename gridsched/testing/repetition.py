"""Checks that a result depends on the scenario only: seed, earlier runs, order of hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gridsched.model.platform import Platform
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import Trace
from gridsched.policy.base import Scheduler
from gridsched.testing.case import Case
from gridsched.testing.cases import (
    WORTH_WITHOUT_TIES,
    cases_for,
    make_host,
    make_stochastic_case,
    make_utility_case,
)
from gridsched.testing.parallel_cases import UTILITY_WITHOUT_TIES, WITHOUT_TIES
from gridsched.testing.playing import CheckFailed, play

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
    [
        [[10.13, 14.91], [21.7, 27.3], [15.77, 17.11]],
        [[9.41, 14.37], [11.53, 15.19], [19.07, 23.3]],
    ],
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


def check_same_seed(scheduler: Scheduler) -> None:
    """The same seed gives the same run, to the last bit."""
    for case in cases_for(scheduler):
        first = play(case, scheduler.clone(), seed=7)
        second = play(case, scheduler.clone(), seed=7)
        if not same_run(first, second):
            raise CheckFailed(
                f"{scheduler!r} on the case {case.name!r}: two runs with the same seed differ. "
                "Draw from the rng that prepare() gets and from nothing else; do not rely on the "
                "order of a set."
            )


def check_seed_irrelevant(scheduler: Scheduler) -> None:
    """Without the trait `uses_rng` the seed changes nothing."""
    for case in (*cases_for(scheduler), _without_ties(scheduler)):
        runs = [play(case, scheduler.clone(), seed=seed) for seed in (0, 1, 2)]
        if not all(same_run(runs[0], other) for other in runs[1:]):
            raise CheckFailed(
                f"{scheduler!r} on the case {case.name!r}: the seed changes the result; set "
                "Traits(uses_rng=True)."
            )


def check_reuse(scheduler: Scheduler) -> None:
    """An instance that was used before decides like a fresh one: prepare() forgets."""
    used = scheduler.clone()
    for case in (*cases_for(scheduler), *reversed(cases_for(scheduler))):
        if not same_run(play(case, used), play(case, scheduler.clone())):
            raise CheckFailed(
                f"{scheduler!r} on the case {case.name!r}: an instance that ran before decides "
                "otherwise than a fresh one. Set everything it remembers anew in prepare()."
            )


def check_host_order(scheduler: Scheduler) -> None:
    """Without ties the order of the hosts in the platform changes nothing."""
    whole = _without_ties(scheduler)
    expected = by_name(play(whole, scheduler.clone()))
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
    return replace(
        case, name=f"hosts in the order {tuple(order)}", platform=Platform(hosts), types=types
    )


def same_run(first: Trace, second: Trace) -> bool:
    """Whether two traces hold the same records, bit by bit."""
    return (
        np.array_equal(first.executions, second.executions)
        and np.array_equal(first.host_ids, second.host_ids)
        and np.array_equal(first.host_changes, second.host_changes)
        and np.array_equal(first.final_state, second.final_state)
    )


def by_name(trace: Trace) -> list[tuple[Any, ...]]:
    """Return (task, host name, P-state, start, end, outcome) of all executions, sorted."""
    names = [host.name for host in trace.platform.hosts]
    return sorted((task, names[host], *rest) for task, host, *rest in trace.executions.tolist())
