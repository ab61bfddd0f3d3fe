"""Single points of energy against makespan: programme (5) of paper 003, and what it proves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gridsched.optimize.bag_plan import BagPlan
from gridsched.optimize.relaxation import (
    Infeasible,
    Relaxation,
    Solution,
    least_costs,
    relaxation,
    sum_below,
)
from gridsched.optimize.typed_bag import TypedBag

#: The second of two objectives may worsen the first by so much (algorithms, E1).
LEXICOGRAPHIC_SLACK = 1e-9


@dataclass(frozen=True)
class Line:
    """What no schedule is below: ``per_joule E + per_second MS >= least``.

    Attributes
    ----------
    per_joule, per_second : float
        Weights of energy and makespan, not negative.
    least : float
    """

    per_joule: float
    per_second: float
    least: float


class FrontSolver:
    """Programme (5) of one bag; collects the lines that its solutions prove.

    Attributes
    ----------
    bag : TypedBag
    lines : list of Line
        One for each programme solved so far.

    Notes
    -----
    The ends of the front are lexicographic optima, found with a slack in the first objective. The
    slack's price is the slope of the front's last edge there; weights twice as steep, or half,
    have the corner itself as their only optimum, free of the slack.
    """

    def __init__(self, bag: TypedBag) -> None:
        self.bag = bag
        self.base: Relaxation = relaxation(bag)
        self.lines: list[Line] = []
        self._energy = bag.tasks[:, None] * bag.runnable * bag.extra_w

    def weighted(self, per_joule: float, per_second: float) -> BagPlan:
        """Minimise ``per_joule E + per_second MS``."""
        solution = self.base.solve_lengths(
            per_joule * self._energy, self._cost_of_m(per_joule, per_second)
        )
        self.lines.append(self._line(solution, per_joule, per_second))
        return self._point(solution)

    def shortest(self) -> BagPlan:
        """Least makespan, and of those the least energy."""
        least = self.weighted(0.0, 1.0)
        most_m = least.makespan_s / self.base.scale_s * (1 + LEXICOGRAPHIC_SLACK)
        solution = self.base.solve_lengths(self._energy, self._cost_of_m(1.0, 0.0), most_m)
        slope = solution.last_price / self.base.scale_s
        corner = self._point(solution) if slope == 0 else self.weighted(1.0, 2 * slope)
        missed = corner.makespan_s > least.makespan_s * (1 + LEXICOGRAPHIC_SLACK)
        return self._point(solution) if missed else corner

    def cheapest(self) -> BagPlan:
        """Least energy, and of those the least makespan."""
        least = self.weighted(1.0, 0.0)
        size = abs(least.energy_j) or 1.0
        row = (
            self._energy / size,
            self._cost_of_m(1.0, 0.0) / size,
            least.energy_j / size + LEXICOGRAPHIC_SLACK,
        )
        solution = self.base.solve_lengths(0.0 * self._energy, 1.0, row=row)
        gentle = solution.row_price * self.base.scale_s / size
        corner = self._point(solution) if gentle == 0 else self.weighted(1.0, 0.5 / gentle)
        missed = corner.energy_j > least.energy_j + LEXICOGRAPHIC_SLACK * size
        return self._point(solution) if missed else corner

    def prove_within(self, makespan_s: float) -> None:
        """Add the line that bounds the energy of schedules of at most this makespan [s] best.

        None is added where the solver finds no schedule so short.
        """
        most_m = makespan_s / self.base.scale_s * (1 + LEXICOGRAPHIC_SLACK)
        try:
            solution = self.base.solve_lengths(self._energy, self._cost_of_m(1.0, 0.0), most_m)
        except Infeasible:
            return
        self.lines.append(self._line(solution, 1.0, solution.last_price / self.base.scale_s))

    def energy_within(self, makespan_s: float, sign: float) -> float:
        """Least (`sign` 1) or most (-1) energy of all machines being on for this time [J]."""
        solution = self.base.solve_lengths(
            sign * self._energy, 0.0, makespan_s / self.base.scale_s * (1 + LEXICOGRAPHIC_SLACK)
        )
        return self.bag.energy_j(self.base.divided_tasks(solution.shares), makespan_s)

    def _cost_of_m(self, per_joule: float, per_second: float) -> float:
        return self.base.scale_s * (per_second + per_joule * self.bag.all_idle_w)

    def _point(self, solution: Solution) -> BagPlan:
        x = self.base.divided_tasks(solution.shares)
        makespan = float(self.bag.finish_s(x).max())
        return BagPlan(self.bag, x, makespan, self.bag.energy_j(x, makespan))

    def _line(self, solution: Solution, per_joule: float, per_second: float) -> Line:
        """Return Lagrange's function at the solver's prices, rounded down.

        The prices of all machine types' rows add up to the cost of a second of makespan.
        """
        bag = self.bag
        prices = solution.machine_prices / self.base.scale_s
        second = per_second + per_joule * bag.all_idle_w
        prices = self.base.prices_of_all(prices, per_joule, total=second)
        costs = least_costs(bag, per_joule, prices / np.maximum(bag.machines, 1))
        return Line(per_joule, per_second, sum_below(bag.tasks * costs))
