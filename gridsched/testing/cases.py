"""The tiny systems on which the checks play a scheduler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, wraps
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gridsched.model.platform import Host, Platform, PState
from gridsched.model.rules import EnergyBudget
from gridsched.model.stochastic import Distributions, GammaTimes, StochasticTypes
from gridsched.model.task_types import TYPED_TASK_FLOPS, TaskTypes, TypedEstimates, typed_platform
from gridsched.model.tasks import make_tasks
from gridsched.model.utility import UtilityClasses, UtilityFunctions
from gridsched.policy.base import Scheduler, Traits
from gridsched.testing.parallel_cases import (
    DEPENDENT_PARALLEL_CASES,
    DEPENDENT_PARALLEL_UTILITY_CASES,
    ONE_HOST_CASES,
    PARALLEL_CASES,
    PARALLEL_UTILITY_CASES,
    SHARED_CASES,
    dependent,
)
from gridsched.testing.playing import CARBON, UNCERTAINTY, Case, told


def make_host(name: str, *speeds: float, cores: int = 1, busy_w: float = 40.0) -> Host:
    """Return a host called `name` whose power falls with its speed.

    Each of its `cores` has the `speeds` [flop/s] of its P-states; with all busy P-state k draws
    ``busy_w / 2**k`` [W], from `busy_w` on.
    """
    pstates = tuple(PState(speed, idle_w=4.0, epsilon_w=6.0, busy_w=busy_w / 2**k) for k, speed in enumerate(speeds))
    return Host(name, pstates, cores=cores)


def _typed_case() -> Case:
    """Two task types; the second host cannot run the first, the third not the second."""
    etc = np.array([[[10.0], [np.inf], [8.0]], [[6.0], [9.0], [np.inf]]])
    task_type = [0, 1, 0, 1, 0]
    tasks = make_tasks([1.0] * 5, [0.0, 0.0, 0.0, 4.0, 4.0], task_type=task_type)
    estimates = TypedEstimates(etc, np.full(etc.shape, 20.0), task_type, [0, 1, 2])
    platform = Platform(tuple(make_host(f"h{k}", 1.0) for k in range(1, 4)), name="typed")
    return Case("pairs that cannot run", platform, tasks, estimates=estimates)


def _tiny_cases() -> tuple[Case, ...]:
    three = Platform((make_host("fast", 100.0, busy_w=50.0), make_host("middle", 50.0), make_host("slow", 25.0)))
    identical = Platform(tuple(make_host(f"same{k}", 10.0) for k in range(1, 4)))
    several_cores = Platform((make_host("quad", 20.0, cores=4), make_host("dual", 30.0, cores=2)))
    several_pstates = Platform((make_host("a", 80.0, 40.0), make_host("b", 60.0, 30.0, 15.0)))
    idle_free = Platform(
        tuple(
            Host(f"free{k}", (PState(speed, 0.0, watts, watts),))
            for k, (speed, watts) in enumerate(((100.0, 50.0), (50.0, 20.0), (25.0, 8.0)))
        )
    )
    sizes = [1000.0, 500.0, 2000.0, 1500.0, 250.0]
    return (
        Case("no tasks", three, make_tasks([])),
        Case("one task, one host", Platform((make_host("only", 10.0),)), make_tasks([70.0])),
        Case("more tasks than hosts", three, make_tasks(sizes)),
        Case("more hosts than tasks", three, make_tasks([300.0, 100.0])),
        Case("identical hosts", identical, make_tasks([30.0, 50.0, 10.0, 20.0, 40.0])),
        Case("equal sizes", three, make_tasks([100.0] * 7)),
        Case("several cores", several_cores, make_tasks([*sizes, 800.0, 800.0, 800.0, 600.0])),
        Case("several P-states", several_pstates, make_tasks(sizes), pstate=1),
        Case("a late task in a slow P-state", several_pstates, make_tasks([90.0], 7.0), pstate=1),
        Case("tasks that arrive later", three, make_tasks(sizes, [0.0, 0.0, 5.0, 5.0, 400.0])),
        Case("equal tasks, others later", three, make_tasks([100.0] * 6 + [900.0, 20.0], [0.0] * 6 + [500.0] * 2)),
        _typed_case(),
        Case(
            "an energy budget each minute",
            idle_free,
            make_tasks([*sizes, 900.0, 700.0]),
            rules={"budget": EnergyBudget(1000.0, period_s=60.0)},
        ),
    )


#: What every scheduler of serial tasks must cope with.
TINY_CASES = _tiny_cases()
#: And what they must cope with where tasks wait for others.
DEPENDENT_CASES = (
    dependent(
        Case(
            "",
            Platform(
                (make_host("fast", 100.0, busy_w=50.0), make_host("slow", 25.0), make_host("dual", 40.0, cores=2))
            ),
            make_tasks(
                [1000.0, 500.0, 2000.0, 1500.0, 250.0, 300.0, 700.0, 1100.0, 900.0, 400.0], [0.0] * 7 + [9.0] * 3
            ),
        ),
        "tasks that wait for others",
    ),
)
#: What one that respects power caps must cope with besides: one host at full power, or both slowly.
CAPPED_CASES = (
    Case(
        "a power cap",
        Platform((make_host("a", 80.0, 40.0), make_host("b", 60.0, 30.0, 15.0))),
        make_tasks([1000.0, 500.0, 2000.0, 1500.0, 250.0], [0.0, 0.0, 5.0, 5.0, 90.0]),
        rules={"power_cap_w": 45.0},
    ),
)

#: Priority, urgency [1/min] and class (see `_utility_classes`) of a task, in turn.
_WORTH = ((8.0, 0.01, 0), (4.0, 0.1, 1), (1.0, 0.01, 2), (2.0, 0.0, 1), (4.0, 0.6, 0))
#: The same without plateaus, on which options are worth the same.
WORTH_WITHOUT_TIES = ((8.0, 0.013, 0), (4.0, 0.11, 0), (1.7, 0.017, 0), (2.3, 0.031, 0))


def _utility_classes() -> UtilityClasses:
    """Pure exponential; steps with a hard end after 50 min; constant, then linear to 0."""
    steps = ([0.0, 20.0, 50.0], [1.0, 0.5, 0.0], [1.0, 0.5, 1.0])
    return UtilityClasses.joined(
        [
            UtilityClasses.exponential(),
            UtilityClasses.from_intervals([steps]),
            UtilityClasses.plateau_linear(30.0, 90.0),
        ]
    )


def make_utility_case(
    name: str,
    etc_min: ArrayLike,
    host_type: list[int],
    task_type: list[int],
    arrival_min: list[float],
    worth: Sequence[tuple[float, float, int]] = _WORTH,
    **rules: Any,
) -> Case:
    """Return a case of tasks with types and utility functions; powers fall with the P-state.

    Parameters
    ----------
    name : str
    etc_min : array_like, shape (task types, host types, P-states)
        Times [min].
    host_type, task_type : list of int
        Of each host and of each task.
    arrival_min : list of float
        Of each task [min].
    worth : sequence of tuple
        (priority, urgency [1/min], class), given to the tasks in turn.
    **rules
        Further fields of the scenario.
    """
    etc = np.asarray(etc_min, dtype=np.float64) * 60.0
    j, k = np.arange(etc.shape[1])[:, None], np.arange(etc.shape[2])[None, :]
    types = TaskTypes(etc, np.broadcast_to((200.0 - 37.0 * j) / 1.6**k, etc.shape).copy(), np.array(host_type))
    of_task = [worth[n % len(worth)] for n in range(len(task_type))]
    priority, urgency, number = np.array(of_task, dtype=np.float64).reshape(-1, 3).T
    tasks = make_tasks(
        [TYPED_TASK_FLOPS] * len(task_type),
        np.array(arrival_min) * 60.0,
        name=name,
        task_type=np.array(task_type, dtype=np.int64),
        utility=UtilityFunctions(priority, urgency, number.astype(np.int64), _utility_classes()),
    )
    rules = {"mapping_interval_s": 60.0, "pending_slots": 1, **rules}
    return Case(name, typed_platform(types), tasks, types=types, rules=rules)


def _utility_cases() -> tuple[Case, ...]:
    """Cases for policies that need utility functions."""
    inf = np.inf
    two = [[[10, 14], [20, 28]], [[5, 7], [10, 14]], [[10, 14], [11, 15]]]
    special: list[list[list[float]]] = [[[1, 1.4], [12, 16]], [[inf, inf], [8, 11]], [[inf, inf], [9, 13]]]
    twelve = [k % 3 for k in range(12)]
    at_once, one_by_one = [0.0] * 12, [0.7 * k for k in range(12)]
    refused = EnergyBudget(400e3, period_s=3600.0)
    return (
        make_utility_case("no typed tasks", two, [0, 1], [], []),
        make_utility_case("one typed task, one host", two, [0], [1], [0.0]),
        make_utility_case("more typed tasks than hosts", two, [0, 1], twelve, at_once),
        make_utility_case("a special host", special, [0, 1, 1], twelve, one_by_one),
        make_utility_case("equal hosts of a type", two, [1, 0, 1, 0], [0] * 8, [0.0] * 8),
        make_utility_case("no pending slot", two, [0, 1], twelve, one_by_one, pending_slots=0),
        make_utility_case("whenever something happens", two, [0, 1], twelve, one_by_one, mapping_interval_s=None),
        make_utility_case(
            "an energy budget each hour", two, [0, 1], twelve, [9.0 * k for k in range(12)], budget=refused
        ),
        make_utility_case(
            "an energy budget for hardly anything", two, [0, 1], twelve, at_once, budget=replace(refused, energy_j=60e3)
        ),
    )


#: What every scheduler of tasks with utility functions must cope with.
UTILITY_CASES = _utility_cases()


#: The same, where tasks wait for others.
DEPENDENT_UTILITY_CASES = (
    dependent(
        make_utility_case(
            "",
            [[[10, 14], [20, 28]], [[5, 7], [10, 14]]],
            [0, 1, 1],
            [k % 2 for k in range(12)],
            [0.7 * k for k in range(12)],
        ),
        "typed tasks that wait for others",
    ),
)


def _typed_bags() -> tuple[Case, ...]:
    """Cases of tasks with types and nothing else, on hosts that draw idle power."""
    inf = np.inf
    etc = np.array([[[10.0], [15.0]], [[8.0], [4.0]], [[inf], [6.0]]])
    apc = np.array([[[40.0], [20.0]], [[30.0], [45.0]], [[0.0], [25.0]]])
    names = "typed tasks", "typed tasks, idle power"
    cases = []
    for name, idle_w in zip(names, (np.zeros(2), np.array([5.0, 2.0])), strict=True):
        types = TaskTypes(etc, apc, np.array([0, 1, 0]), idle_w=idle_w)
        tasks = make_tasks([TYPED_TASK_FLOPS] * 9, task_type=[0, 1, 2, 0, 1, 2, 0, 1, 0], name=name)
        cases.append(Case(name, typed_platform(types), tasks, types=types))
    return tuple(cases)


#: Cases that schedulers of task types must cope with, too.
TYPED_CASES = _typed_bags()


def make_stochastic_case(
    name: str,
    mean_s: Any,
    host_type: list[int],
    task_type: list[int],
    arrival_s: Any,
    *,
    slack_s: float = 40.0,
    luck: bool = True,
    boot_time_s: float = 0.0,
    distributions: Distributions | None = None,
    **rules: Any,
) -> Case:
    """Return a case of tasks with uncertain run times and deadlines.

    Parameters
    ----------
    name : str
    mean_s : array_like, shape (task types, host types, P-states)
        Mean run times [s].
    host_type, task_type : list of int
        Of each host and of each task.
    arrival_s : array_like
        Of each task [s].
    slack_s : float
        From arrival to deadline [s].
    luck : bool
        Whether tasks take another time than estimated.
    boot_time_s : float
        Of the hosts [s].
    distributions : Distributions, optional
        In place of gamma distributions around the means.
    **rules
        Further fields of the scenario.
    """
    means = np.asarray(mean_s, dtype=np.float64)
    j, k = np.arange(means.shape[1])[:, None], np.arange(means.shape[2])[None, :]
    watts = np.broadcast_to((130.0 - 17.0 * j) / 1.9**k, means.shape[1:])
    types = StochasticTypes(
        means,
        np.broadcast_to(watts, means.shape).copy(),
        np.array(host_type),
        distributions=distributions or GammaTimes(means, UNCERTAINTY, 1.0),
    )
    hosts = tuple(
        Host(
            f"core{n + 1}",
            tuple(PState(1e9 / 1.2**k, w, w, w) for k, w in enumerate(watts[kind].tolist())),
            boot_time_s=boot_time_s,
        )
        for n, kind in enumerate(host_type)
    )
    arrivals = np.asarray(arrival_s, dtype=np.float64)
    tasks = make_tasks(
        [TYPED_TASK_FLOPS] * len(task_type),
        arrivals,
        name=name,
        task_type=np.array(task_type, dtype=np.int64),
        deadline_s=arrivals + slack_s,
    )
    shares = tuple((0.37 + 0.618 * k) % 1.0 for k in range(len(task_type)))
    return Case(name, Platform(hosts), tasks, types=types, luck=shares if luck else None, rules=rules)


def _stochastic_cases() -> tuple[Case, ...]:
    """Cases for policies that need distributions of run times."""
    inf = np.inf
    two = [[[10, 14], [15, 21]], [[20, 28], [12, 17]]]
    partly = [[[10, 14], [inf, inf]], [[20, inf], [12, 17]]]
    ten = [k % 2 for k in range(10)]
    budget = EnergyBudget(9e3, period_s=1e9, enforcement="stop")
    return (
        make_stochastic_case("no uncertain tasks", two, [0, 1], [], []),
        make_stochastic_case("one uncertain task, one host", two, [0], [1], [3.0]),
        make_stochastic_case("more uncertain tasks than hosts", two, [0, 1], ten, [0.0] * 10),
        make_stochastic_case("equal cores", two, [0, 0, 1, 1], ten, [4.5 * k for k in range(10)]),
        make_stochastic_case(
            "uncertain tasks with places where they cannot run", partly, [0, 1, 1], ten, [3.0 * k for k in range(10)]
        ),
        make_stochastic_case("no deadline can be met", two, [0, 1], ten, [2.0 * k for k in range(10)], slack_s=1.0),
        make_stochastic_case(
            "an energy budget that ends the run", two, [0, 1], ten, [6.0 * k for k in range(10)], budget=budget
        ),
    )


#: What every scheduler that needs distributions must cope with.
STOCHASTIC_CASES = _stochastic_cases()


#: The same, where tasks wait for others.
DEPENDENT_STOCHASTIC_CASES = (
    dependent(
        make_stochastic_case(
            "",
            [[[10, 14], [15, 21]], [[20, 28], [12, 17]]],
            [0, 1],
            [k % 2 for k in range(10)],
            [4.5 * k for k in range(10)],
        ),
        "uncertain tasks that wait for others",
    ),
)


def on_each_case(check: Callable[[Scheduler, Case], None]) -> Callable[[Scheduler], None]:
    """Return a check of a scheduler on all its cases; what it finds names scheduler and case."""

    @wraps(check)
    def on_all_cases(scheduler: Scheduler) -> None:
        for case in cases_for(scheduler):
            with told(case, scheduler):
                check(scheduler, case)

    return on_all_cases


def cases_for(scheduler: Scheduler) -> tuple[Case, ...]:
    """Return the tiny cases that suit the scheduler: all kinds of tasks that its traits allow.

    A policy that plans once, at the start, knows nothing of tasks that arrive or are free later.
    """
    return _cases_for(scheduler.traits)


@cache
def _cases_for(traits: Traits) -> tuple[Case, ...]:
    if traits.parallel:
        if traits.needs_utility:
            return PARALLEL_UTILITY_CASES + DEPENDENT_PARALLEL_UTILITY_CASES
        return PARALLEL_CASES + DEPENDENT_PARALLEL_CASES + (SHARED_CASES if traits.shares else ())
    cases = TINY_CASES + DEPENDENT_CASES
    if traits.needs_utility:
        cases = UTILITY_CASES + DEPENDENT_UTILITY_CASES
    elif not traits.by_types:
        cases += tuple(case for case in ONE_HOST_CASES if not traits.one_core or case.tasks.size.max() == 1)
    if traits.by_types:
        cases += TYPED_CASES
    if traits.respects_power_cap:
        cases += CAPPED_CASES
    if traits.needs_distributions:
        cases = STOCHASTIC_CASES + DEPENDENT_STOCHASTIC_CASES
    if traits.needs_carbon:
        cases = tuple(replace(case, rules={**case.rules, "carbon": CARBON}) for case in cases)
    if traits.plans_once:
        return tuple(case for case in cases if case.tasks.are_one_bag)
    return cases
