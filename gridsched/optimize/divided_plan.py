"""What a programme makes of a bag, as planners hand it on: tasks divided among machine types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from gridsched.model.tariff import Tariff
from gridsched.optimize.front_solver import FrontPoint
from gridsched.optimize.profit_lp import ProfitPlan
from gridsched.optimize.typed_bag import Floats, TypedBag


@dataclass(frozen=True, eq=False)
class DividedPlan:
    """Divided tasks by type, and what they earn.

    Attributes
    ----------
    x : ndarray of float64, shape (task types, machine types)
        Tasks by type; 0 where nothing runs.
    makespan_s : float
        Of the divided tasks [s]; infinite where nothing runs.
    energy_j : float
        Of all machines until then, idle power included [J]; infinite where nothing runs.
    tariff : Tariff or None
        What profits are counted by.
    profit_rate : float or None
        What such bags earn if they follow each other [money/s]; None without a tariff.
    bound : float or None
        What no schedule earns more than [money/s]; None where the programme bounds no profit.
    power_cap_w : float
        Largest mean power drawn from the grid, PUE included [W].
    least_rate_per_s : float
        Bags per second that have been promised.
    """

    x: Floats
    makespan_s: float
    energy_j: float
    tariff: Tariff | None = None
    profit_rate: float | None = None
    bound: float | None = None
    power_cap_w: float = np.inf
    least_rate_per_s: float = 0.0

    @property
    def runs(self) -> bool:
        """Whether running the bag is better than doing nothing, or demanded."""
        return bool(np.isfinite(self.makespan_s))


@runtime_checkable
class Planner(Protocol):
    """A policy whose plan follows from a programme on the bag alone.

    Such a policy can be asked for its plan without a run (driver ``optimize`` of studies).

    Attributes
    ----------
    power_off_unused : bool
        Whether a run of it switches hosts off that the plan does not use.
    """

    power_off_unused: bool

    def divided(self, bag: TypedBag, tariff: Tariff | None) -> DividedPlan:
        """Solve the programme.

        Parameters
        ----------
        bag : TypedBag
        tariff : Tariff or None
            What the scenario says of prices and costs.

        Raises
        ------
        InputError
            If a parameter is out of range, or a limit cannot be kept.
        """


def of_profit_plan(
    plan: ProfitPlan, *, power_cap_w: float = np.inf, least_rate_per_s: float = 0.0
) -> DividedPlan:
    """Return the solution of programme (10), with the limits that it was found under."""
    return DividedPlan(
        plan.x, plan.makespan_s, plan.energy_j, plan.tariff, plan.profit_rate, plan.bound,
        power_cap_w, least_rate_per_s,
    )  # fmt: skip


def of_front_point(bag: TypedBag, point: FrontPoint, tariff: Tariff | None) -> DividedPlan:
    """Return a point of the front of programme (5), with what it earns."""
    rate = None if tariff is None else point_profit_rate(bag, point, tariff)
    return DividedPlan(point.x, point.makespan_s, point.energy_j, tariff, rate)


def point_profit_rate(bag: TypedBag, point: FrontPoint, tariff: Tariff) -> float:
    """Return what a point of the front earns if such bags follow each other [money/s] (eq. 6)."""
    busy_s = bag.host_busy_s(point.x)
    profit = tariff.profit(point.energy_j, busy_s, point.makespan_s, bag.hosts)
    return profit / point.makespan_s
