"""A run that executes nothing: the program of a planner, and the schedule it leads to.

Studies ask for it by ``driver = "optimize"``. It has the description, the id and the row of any
other run; its metrics are those of a plan.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gridsched.errors import InputError
from gridsched.metrics import PlanFacts, metrics_of_plan
from gridsched.metrics.table import MetricValue
from gridsched.model.tariff import Tariff
from gridsched.optimize.recovery import earnings, recover
from gridsched.optimize.typed_bag import BagPlan, Planner, TypedBag
from gridsched.policy.registry import entries, make_scheduler, scheduler_class, usable


@dataclass(frozen=True, eq=False)
class Optimization:
    """What is to be planned.

    Attributes
    ----------
    bag : TypedBag
    scheduler : str
        Id of a `Planner`.
    parameters : mapping
    tariff : Tariff or None
        What the bag pays, and what operating the machines costs.
    """

    bag: TypedBag
    scheduler: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    tariff: Tariff | None = None


@dataclass(frozen=True, eq=False)
class Optimized:
    """What a program and the recovery of its solution gave.

    Attributes
    ----------
    plan : BagPlan
        Of divided tasks.
    whole : BagPlan or None
        Of whole tasks; None where nothing runs.
    facts : PlanFacts
    notes : tuple of str
        What the program does not see of the bag.
    timing : dict of str to float
        Wall times [s].
    """

    plan: BagPlan
    whole: BagPlan | None
    facts: PlanFacts
    notes: tuple[str, ...] = ()
    timing: dict[str, float] = field(default_factory=dict)

    def metrics(self) -> dict[str, MetricValue]:
        """Return every metric of the plan; they repeat exactly, wall times are not among them."""
        return metrics_of_plan(self.facts)


def optimize(wanted: Optimization) -> Optimized:
    """Solve the program of a planner, round its solution and place whole tasks (paper 003).

    Parameters
    ----------
    wanted : Optimization

    Raises
    ------
    InputError
        If the scheduler follows no program, or its limits cannot be kept.
    """
    began = time.perf_counter()
    planner = make_scheduler(wanted.scheduler, wanted.parameters)
    if not isinstance(planner, Planner):
        raise InputError(f"{no_planner(wanted.scheduler)}.")
    if wanted.tariff is not None and wanted.tariff.prices is not None:
        raise InputError(
            "prices vary over the day, and the driver 'optimize' knows no time of day. Take "
            "another driver, or leave prices out."
        )
    if (weigh := getattr(planner, "weigh", "energy")) != "energy":
        raise InputError(
            f"weigh={weigh!r} depends on time and site, and the driver 'optimize' knows neither. Take another "
            "driver, or leave it out."
        )
    if planner.power_off_unused:
        raise InputError(
            "power_off_unused switches hosts off, and the driver 'optimize' has none. Take another "
            "driver, or leave it out."
        )
    plan = planner.divided(wanted.bag, wanted.tariff)
    solved = time.perf_counter()
    whole = recover(wanted.bag, plan.x) if plan.runs else None
    ended = time.perf_counter()
    facts = _facts(plan, whole)
    timing = {"programme_s": solved - began, "recovery_s": ended - solved, "run_s": ended - began}
    return Optimized(plan, whole, facts, wanted.bag.notes, timing)


def is_planner(scheduler: str, parameters: Mapping[str, Any]) -> bool:
    """Whether a scheduler can be asked for its plan without a run."""
    return isinstance(make_scheduler(scheduler, parameters), Planner)


def no_planner(scheduler: str) -> str:
    """Return the problem about a scheduler that plans by no program."""
    ids = [each.id for each in entries() if "typed" in each.accepts]
    planners = [id for id in usable(ids) if hasattr(scheduler_class(id), "divided")]
    return (
        f"scheduler {scheduler!r} follows no linear program, and the driver 'optimize' executes "
        f"nothing; it takes planners as {', '.join(planners)}. Take another driver"
    )


def _facts(plan: BagPlan, whole: BagPlan | None) -> PlanFacts:
    """Return what metrics are computed from."""
    tasks = int(plan.bag.tasks.sum())
    if whole is None:
        nothing = (float("nan"),) * 5
        still = plan.profit_rate
        return PlanFacts(tasks, False, *nothing, still, still, None, plan.bound)
    rate = profit = None
    if plan.tariff is not None:
        earned = earnings(whole, plan.tariff, power_cap_w=plan.power_cap_w, least_rate_per_s=plan.least_rate_per_s)
        rate = earned.profit_rate_under(plan.tariff)
        profit = rate * earned.makespan_s
    return PlanFacts(
        tasks,
        True,
        plan.makespan_s,
        plan.energy_j,
        whole.makespan_s,
        whole.energy_j,
        float(np.sum(plan.bag.busy_s(whole.x))),
        plan.profit_rate,
        rate,
        profit,
        plan.bound,
    )
