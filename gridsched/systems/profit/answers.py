"""What the programs answer about a bag, as rows for tables, files and figures."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gridsched.arrays import Floats
from gridsched.model.tariff import Tariff
from gridsched.optimize.pareto_front import ParetoFront, exact_front, feasible_energies
from gridsched.optimize.recovery import earnings, recover
from gridsched.optimize.typed_bag import BagPlan, TypedBag
from gridsched.systems.profit.profit_lp import ProfitPlan, most_profit, relative_decrease

#: Makespans at which the edge of the feasible region is computed.
REGION_POINTS = 40
#: Least room in a figure above and to the right of what is drawn.
MARGIN = 1.12


@dataclass(frozen=True, eq=False)
class ProfitAnswer:
    """The largest profit rate by divided tasks, and a schedule of whole ones.

    Attributes
    ----------
    plan : ProfitPlan
    whole : BagPlan or None
        Of whole tasks; None where nothing runs.
    """

    plan: ProfitPlan
    whole: BagPlan | None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the program does not see of the bag, and a promise that whole tasks break."""
        if self.whole is None or self.whole.keeps_rate:
            return self.plan.bag.notes
        return (
            *self.plan.bag.notes,
            f"whole tasks take {self.whole.makespan_s:,.6g} s a bag, too slow for the promised "
            f"{self.plan.least_rate_per_s:,.6g} a second.",
        )

    def rates(self) -> list[dict[str, Any]]:
        """Return a row for the divided tasks and, where anything runs, one for the whole ones."""
        return [
            {
                "tasks": tasks,
                "profit_rate": plan.profit_rate,
                "rate_per_s": plan.rate_per_s,
                "time_s": plan.makespan_s,
                "energy_j": plan.energy_j,
                "mean_power_w": plan.mean_power_w,
                "keeps_rate": tasks == "divided" or plan.keeps_rate,
            }
            for tasks, plan in (("divided", self.plan), ("whole", self.whole))
            if plan is not None
        ]

    def machines(self) -> list[dict[str, Any]]:
        """Return a row for each machine type: its work, and what one machine more is worth."""
        plan, bag = self.plan, self.plan.bag
        capacity = bag.machines * plan.makespan_s if plan.runs else np.ones(len(bag.machines))
        busy = bag.busy_s(plan.x) / np.maximum(capacity, np.finfo(np.float64).tiny)
        return [
            {
                "machine_type": name,
                "machines": int(bag.machines[j]),
                "divided_tasks": float(plan.x[:, j].sum()),
                "busy_share": float(busy[j]),
                "machine_worth": float(plan.machine_worth[j]),
            }
            for j, name in enumerate(bag.machine_types)
        ]

    def tasks(self) -> list[dict[str, Any]]:
        """Return a row for each task type that has tasks: what one task less is worth."""
        bag = self.plan.bag
        return [
            {"task_type": name, "tasks": int(bag.tasks[i]), "task_worth": float(self.plan.task_worth[i])}
            for i, name in enumerate(bag.task_types)
            if bag.tasks[i]
        ]

    def places(self) -> list[dict[str, Any]]:
        """Return a row for each pair of types that has work: its divided and whole tasks."""
        bag, whole = self.plan.bag, 0 * self.plan.x if self.whole is None else self.whole.x
        return [
            {
                "task_type": bag.task_types[i],
                "machine_type": bag.machine_types[j],
                "etc_s": float(bag.etc[i, j]),
                "apc_w": float(bag.apc[i, j]),
                "divided_tasks": float(self.plan.x[i, j]),
                "tasks": int(whole[i, j]),
            }
            for i, j in np.argwhere((self.plan.x > 0) | (whole > 0)).tolist()
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return all of it, for JSON."""
        return {
            "bag": self.plan.bag.describe(),
            "tariff": asdict(self.plan.tariff),
            "runs": self.plan.runs,
            "profit_rate_bound": self.plan.bound,
            "relative_decrease": self.relative_decrease,
            "rates": self.rates(),
            "watt_worth": self.plan.watt_worth,
            "machines": self.machines(),
            "task_types": self.tasks(),
            "places": self.places(),
            "notes": list(self.notes),
        }

    @property
    def relative_decrease(self) -> float:
        """How far the schedule of whole tasks is below the bound, as a share of it."""
        if self.whole is None or self.whole.profit_rate is None:
            return float("nan")
        return relative_decrease(self.plan.bound, self.whole.profit_rate)


def profit_answer(
    bag: TypedBag, tariff: Tariff, *, power_cap_w: float = np.inf, least_rate_per_s: float = 0.0
) -> ProfitAnswer:
    """Solve program (10) and place whole tasks as its solution specifies.

    Parameters
    ----------
    bag : TypedBag
    tariff : Tariff
    power_cap_w : float
        Largest mean power drawn from the grid, PUE included [W].
    least_rate_per_s : float
        Promised bags per second.

    Raises
    ------
    InputError
        If cap or promise cannot be kept.
    """
    limits = {"power_cap_w": power_cap_w, "least_rate_per_s": least_rate_per_s}
    plan = most_profit(bag, tariff, **limits)
    return ProfitAnswer(plan, earnings(recover(bag, plan.x), tariff, **limits) if plan.runs else None)


@dataclass(frozen=True, eq=False)
class FrontAnswer:
    """The front of energy against makespan, and schedules of whole tasks near its corners.

    Attributes
    ----------
    bag : TypedBag
    front : ParetoFront
    schedules : tuple of BagPlan
        Of whole tasks, one for each point of the front.
    tariff : Tariff or None
        With it each point has a profit rate.
    """

    bag: TypedBag
    front: ParetoFront
    schedules: tuple[BagPlan, ...]
    tariff: Tariff | None = None

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each corner, by rising makespan."""
        slopes = [*self.front.joules_per_second.tolist(), None]
        return [self._row(*each) for each in zip(self.front.points, self.schedules, slopes, strict=True)]

    def _row(self, point: BagPlan, whole: BagPlan, slope: float | None) -> dict[str, Any]:
        first, last = self.front.points[0], self.front.points[-1]
        row = {
            "makespan_s": point.makespan_s,
            "energy_j": point.energy_j,
            "makespan_above_least": point.makespan_s / first.makespan_s - 1,
            "energy_above_least": point.energy_j / last.energy_j - 1 if last.energy_j else None,
            "mean_power_w": point.energy_j / point.makespan_s,
            "joules_per_second": slope,
            "schedule_makespan_s": whole.makespan_s,
            "schedule_energy_j": whole.energy_j,
        }
        if self.tariff is not None:
            row["profit_rate"] = point.profit_rate_under(self.tariff)
        return row

    def as_dict(self) -> dict[str, Any]:
        """Return all of it, for JSON."""
        return {
            "bag": self.bag.describe(),
            "complete": self.front.complete,
            "tariff": None if self.tariff is None else asdict(self.tariff),
            "front": self.rows(),
            "notes": list(self.bag.notes),
        }


def front_answer(bag: TypedBag, tariff: Tariff | None = None, *, most_points: int = 200) -> FrontAnswer:
    """Walk the front of a bag, and place whole tasks as each of its corners specifies.

    Parameters
    ----------
    bag : TypedBag
    tariff : Tariff, optional
    most_points : int
        Corners, at most; of a front with more, so many that are even.
    """
    front = exact_front(bag, most_points)
    return FrontAnswer(bag, front, tuple(recover(bag, point.x) for point in front.points), tariff)


@dataclass(frozen=True, eq=False)
class Landscape:
    """Energies and makespans that are possible, and what they earn: paper 003's figures 1 and 5.

    Attributes
    ----------
    answer : FrontAnswer
    profit : ProfitAnswer or None
    makespans_s, least_j, most_j : ndarray of float64
        Edge of the feasible region of divided tasks: with all machines on for a makespan, the
        least and the most energy.
    """

    answer: FrontAnswer
    profit: ProfitAnswer | None
    makespans_s: Floats
    least_j: Floats
    most_j: Floats

    @property
    def tariff(self) -> Tariff | None:
        """What a profit is counted by."""
        return self.answer.tariff if self.profit is None else self.profit.plan.tariff


def landscape(answer: FrontAnswer, profit: ProfitAnswer | None = None) -> Landscape:
    """Compute the edge of the feasible region around a front and, if given, a plan.

    Parameters
    ----------
    answer : FrontAnswer
    profit : ProfitAnswer, optional
        Of the same bag.
    """
    front = answer.front
    plans = [front.points[-1], *(() if profit is None else (profit.plan, profit.whole))]
    last = max(plan.makespan_s for plan in plans if plan is not None and plan.runs)
    first = front.least_makespan_s * (1 + 1e-9)
    corners = front.makespans_s[front.makespans_s > first]
    corners = corners[:: 1 + len(corners) // REGION_POINTS]
    times = np.union1d(np.linspace(first, MARGIN * last, REGION_POINTS), corners)
    edges = np.array([feasible_energies(answer.bag, time) for time in times])
    return Landscape(answer, profit, times, edges[:, 0], edges[:, 1])
