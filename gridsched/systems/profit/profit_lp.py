"""The largest profit rate of a bag that is processed again and again (paper 003, IV and VI)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gridsched.arrays import Floats
from gridsched.errors import InputError
from gridsched.model.tariff import Tariff
from gridsched.optimize.relaxation import ROUNDOFF, Infeasible, Relaxation, Solution, least_costs, relaxation, sum_below
from gridsched.optimize.typed_bag import BagPlan, TypedBag

#: A rate so far below the scale of its program is found again on its own scale.
SMALL_RATE = 1e-3


@dataclass(frozen=True, eq=False, kw_only=True)
class ProfitPlan(BagPlan):
    """The best use of the machines by divided tasks, and what no schedule can exceed.

    Attributes
    ----------
    tariff : Tariff
    profit_rate : float
        Of `x`, or where nothing runs of standing still, which loses less [money/s].
    bound : float
        Upper bound of the profit rate of every schedule, of whole or divided tasks [money/s].
    machine_worth : ndarray of float64, shape (machine types,)
        What one machine more of each type would add to the profit rate [money/s].
    watt_worth : float
        What one watt more under the power cap would add [money/s].
    task_worth : ndarray of float64, shape (task types,)
        What one task less of each type in the bag would add [money/s].

    Notes
    -----
    Worths are derivatives: true for small changes, and where the optimum changes its machines just
    here, true on one side only. They follow from the prices that also prove `bound`.
    """

    tariff: Tariff
    profit_rate: float
    bound: float
    machine_worth: Floats
    watt_worth: float
    task_worth: Floats

    def describe(self) -> str:
        """Return one line that states what to do and what it earns."""
        if not self.runs:
            return (
                f"Do not run: no way of processing this bag within the limits earns more than "
                f"standing still, {self.profit_rate:,.6g} a second."
            )
        return (
            f"A bag every {self.makespan_s:,.6g} s for {self.energy_j:,.6g} J earns "
            f"{self.profit_rate:,.6g} a second; no schedule earns more than {self.bound:,.6g}."
        )


def most_profit(
    bag: TypedBag, tariff: Tariff, *, power_cap_w: float = np.inf, least_rate_per_s: float = 0.0
) -> ProfitPlan:
    """Solve program (10): the largest profit per second of processing such bags.

    Parameters
    ----------
    bag : TypedBag
    tariff : Tariff
    power_cap_w : float
        Largest mean power drawn from the grid, PUE included [W].
    least_rate_per_s : float
        Bags per second that have been promised, r_min (service-level agreement).

    Returns
    -------
    ProfitPlan

    Raises
    ------
    InputError
        If the cap is below what the idle machines draw, or the promised rate cannot be kept.

    Notes
    -----
    With ``z = x / MS`` and ``r = 1 / MS`` the program is [1]_ (10) with the extensions (11) and
    (12): maximize ``(p - oh) r - c Pbar - sum_ij z_ij ETC_ij wear_j - sum_j M_j depreciation_j``,
    where a machine has the part `TypedBag.host_share` of a host's wear and depreciation, subject to
    ``sum_j z_ij = T_i r``, ``sum_i z_ij ETC_ij <= M_j``, ``Pbar <= P_max``, where
    ``Pbar = PUE (sum_ij z_ij ETC_ij (APC_ij - APC0_j) + sum_j M_j APC0_j)``.

    The upper bound is Lagrange's function at the prices mu_j >= 0 of machine type j's row and
    nu >= 0 of a watt. With the cost k_i of a task of type i at these prices, where it is cheapest,
    ``w = p - oh - sum_i T_i k_i`` is what a bag is worth, and no schedule earns more than

        max(r_min w, r_max w) + sum_j mu_j + nu (P_max - PUE idle) - c PUE idle - depreciation

    for any prices and any r_max that no schedule exceeds. At the exact prices w is 0 or the bag
    does not run; the solver's error makes w r_max a little larger than needed, never too small.

    References
    ----------
    .. [1] K. M. Tarplee, A. A. Maciejewski, H. J. Siegel, "Energy-aware profit maximizing
       scheduling algorithm for heterogeneous computing systems", CCGrid 2014.

    Examples
    --------
    >>> from gridsched.optimize.typed_bag import typed_bag
    >>> bag = typed_bag([[2, 4]], [[10, 2.5]], tasks=[12], machines=[1, 1])
    >>> plan = most_profit(bag, Tariff(price=300), power_cap_w=10)
    >>> round(plan.makespan_s, 9), plan.x.round(9).tolist(), round(plan.profit_rate, 9)
    (19.2, [[7.2, 4.8]], 5.625)
    """
    if not (power_cap_w > 0 and 0 <= least_rate_per_s < np.inf):
        raise InputError(
            f"The power cap must be positive and the promised rate from 0 on; found "
            f"{power_cap_w:g} W and {least_rate_per_s:g} bags a second."
        )
    programme = _Programme(bag, tariff, power_cap_w, least_rate_per_s)
    try:
        solution, base = programme.solve()
    except Infeasible as error:
        raise InputError(programme.why_infeasible()) from error
    return programme.plan(solution, base)


@dataclass(frozen=True, eq=False)
class _Programme:
    """Program (10) of one bag and one tariff."""

    bag: TypedBag
    tariff: Tariff
    power_cap_w: float
    least_rate: float

    @property
    def wear(self) -> Floats:
        return self.tariff.wear(len(self.bag.machines)) * self.bag.host_share

    @property
    def room_w(self) -> float:
        """Power under the cap that idle machines leave [W]; what is only rounding is none."""
        room_w = self.power_cap_w - self.tariff.pue * self.bag.all_idle_w
        return 0.0 if abs(room_w) <= 4 * ROUNDOFF * self._cap_terms_w() else room_w

    @property
    def standing_still(self) -> float:
        """Profit rate of machines that only idle [money/s]."""
        idle_w = self.tariff.pue * self.bag.all_idle_w
        costs = self.tariff.energy_cost_per_j * idle_w
        return 0.0 - costs - self.tariff.depreciation(self.bag.hosts)

    # ------------------------------------------------------------------ solution

    def solve(self) -> tuple[Solution, Relaxation]:
        """Solve on a scale of time on which the answer is not small; return the scale, too."""
        if self.room_w < 0 and np.all(self.bag.extra_w >= 0):
            raise Infeasible("The idle machines alone draw more than the cap.")
        base = relaxation(self.bag, self._longest_wait())
        solution = self._on_scale(base)
        rate = max(solution.last / base.scale_s, self.least_rate)
        if 0 < rate * base.scale_s < SMALL_RATE:
            base = Relaxation(self.bag, 1.0 / rate)
            solution = self._on_scale(base)
        return solution, base

    def _longest_wait(self) -> float:
        """Time that the bag's least energy above idle needs under the power cap [s]."""
        least_j = float(self.bag.tasks @ least_costs(self.bag, 1.0, 0.0 * self.bag.idle_w))
        return max(self.tariff.pue * least_j / self.room_w, 0.0) if self.room_w > 0 else 0.0

    def _on_scale(self, base: Relaxation, for_rate_only: bool = False) -> Solution:
        bag, tariff = self.bag, self.tariff
        per_bag = bag.tasks[:, None] * bag.runnable / base.scale_s  # machine-seconds per second
        watts = per_bag * tariff.pue * bag.extra_w
        cost = tariff.energy_cost_per_j * watts + per_bag * self.wear
        cost_of_rho = -(tariff.price - tariff.overhead) / base.scale_s
        if for_rate_only:
            cost, cost_of_rho = 0.0 * cost, -1.0
        row, size = None, 1.0
        if np.isfinite(self.power_cap_w):
            size = max(abs(self.room_w), float(np.abs(watts).max())) or 1.0
            row = (watts / size, 0.0, self.room_w / size)
        solution = base.solve_rates(cost, cost_of_rho, self.least_rate * base.scale_s, row)
        return Solution(solution.shares, solution.last, solution.machine_prices, solution.row_price / size)

    def why_infeasible(self) -> str:
        """Return the reason why the constraints exclude each other."""
        if self.room_w < 0:
            return (
                f"The power cap is {self.power_cap_w:g} W, but the idle machines alone draw "
                f"{self.power_cap_w - self.room_w:g} W (PUE {self.tariff.pue:g}); raise the cap or "
                f"leave machines out."
            )
        free = _Programme(self.bag, self.tariff, self.power_cap_w, 0.0)
        base = relaxation(self.bag, self._longest_wait())
        rate = max(0.0, free._on_scale(base, for_rate_only=True).last) / base.scale_s
        under = f" under {self.power_cap_w:g} W" if np.isfinite(self.power_cap_w) else ""
        return (
            f"The promised rate is {self.least_rate:g} bags a second; the machines finish at most "
            f"{rate:g}{under}. Promise less, or add machines."
        )

    # ------------------------------------------------------------------ what follows from it

    def plan(self, solution: Solution, base: Relaxation) -> ProfitPlan:
        """Return a schedule that keeps all constraints, the bound and the worths."""
        bag, tariff = self.bag, self.tariff
        per_joule = tariff.pue * (tariff.energy_cost_per_j + solution.row_price)
        prices = base.prices_of_all(solution.machine_prices, per_joule, self.wear)
        costs = least_costs(bag, per_joule, self.wear + prices / np.maximum(bag.machines, 1))
        x, rate = self._schedule(solution, base)
        profit_rate = self._profit_rate(x, rate)
        if self.least_rate == 0 and profit_rate <= self.standing_still:
            x, rate, profit_rate = 0.0 * x, 0.0, self.standing_still
        length = 1.0 / rate if rate > 0 else np.inf
        return ProfitPlan(
            bag,
            x,
            length,
            bag.energy_j(x, length) if rate > 0 else np.inf,
            power_cap_w=self.power_cap_w,
            least_rate_per_s=self.least_rate,
            tariff=tariff,
            profit_rate=profit_rate,
            bound=self._bound(prices, solution.row_price, costs),
            machine_worth=self._machine_worth(costs, per_joule),
            watt_worth=solution.row_price,
            task_worth=rate * costs,
        )

    def _schedule(self, solution: Solution, base: Relaxation) -> tuple[Floats, float]:
        """Return x and r of a solution, r lowered until machines and cap bear it."""
        x = base.divided_tasks(solution.shares)
        rate = solution.last / base.scale_s
        if rate == 0 or (x.sum(axis=1) == 0)[self.bag.tasks > 0].any():
            return 0.0 * x, 0.0
        length = max(1.0 / rate, float(self.bag.finish_s(x).max()))
        consumed = self.tariff.pue * self.bag.above_idle_j(x)
        if consumed > 0 and np.isfinite(self.power_cap_w):
            length = max(length, consumed / self.room_w if self.room_w > 0 else np.inf)
        return x, 1.0 / length

    def _profit_rate(self, x: Floats, rate: float) -> float:
        tariff, above = self.tariff, self.bag.above_idle_j(x)
        wear = float(self.bag.busy_s(x) @ self.wear)
        costs = tariff.overhead + tariff.energy_cost_per_j * tariff.pue * above + wear
        return rate * (tariff.price - costs) + self.standing_still

    def _bound(self, machine_prices: Floats, watt_price: float, costs: Floats) -> float:
        """Return Lagrange's function at these prices, rounded up."""
        bag, tariff = self.bag, self.tariff
        # all terms with the opposite sign, so that rounding down the sum rounds up the bound
        bag_loses = sum_below(bag.tasks * costs, tariff.overhead, -tariff.price)
        quickest = np.where(bag.usable, bag.etc, np.inf).min(axis=1)[bag.tasks > 0]
        work = float(bag.tasks[bag.tasks > 0] @ quickest)
        most_rate = float(bag.machines.sum()) / work * (1 + 1e-9)
        watts = watt_price * self.room_w if watt_price > 0 else 0.0
        loses = sum_below(
            min(self.least_rate * bag_loses, most_rate * bag_loses),
            -machine_prices,
            -watts,
            tariff.energy_cost_per_j * tariff.pue * bag.machines * bag.idle_w,
            bag.hosts * tariff.depreciation_by_type(len(bag.machines)),
            # the cap's room is itself a difference of rounded numbers
            -4 * ROUNDOFF * watt_price * self._cap_terms_w(),
        )
        return 0.0 - loses

    def _cap_terms_w(self) -> float:
        if not np.isfinite(self.power_cap_w):
            return 0.0
        return len(self.bag.machines) * (self.power_cap_w + self.tariff.pue * self.bag.all_idle_w)

    def _machine_worth(self, costs: Floats, per_joule: float) -> Floats:
        """Return what one machine more of each type adds, also of types without machines."""
        bag = self.bag
        can = np.isfinite(bag.etc) & (bag.tasks > 0)[:, None]
        saved = costs[:, None] / np.where(can, bag.etc, 1.0) - per_joule * bag.extra_w - self.wear
        per_second = np.maximum(np.where(can, saved, -np.inf).max(axis=0), 0.0)
        loss = self.tariff.depreciation_by_type(len(per_second)) * bag.host_share
        worth: Floats = per_second - per_joule * bag.idle_w - loss
        return worth


def relative_decrease(upper: float, lower: float) -> float:
    """Return ``(upper - lower) / upper`` of two profit rates; nan unless the upper is positive."""
    return (upper - lower) / upper if upper > 0 else float("nan")
