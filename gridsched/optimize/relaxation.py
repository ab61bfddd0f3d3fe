"""The linear relaxation that the programs (5) and (10) of paper 003 share, solved by HiGHS.

**Variables.** Both programs speak of tasks x_ij and a length MS, (10) after division by MS. Here
the share ``g_ij = x_ij / T_i`` of a type replaces x_ij, and times are measured in S, the length
of the schedule that divides one type after the other among all machines. Then

    sum_j g_ij = rho,    sum_i b_ij g_ij <= m,    b_ij = T_i ETC_ij / (M_j S)

with rho = 1 and m = MS / S in (5), and m = 1 and rho = S / MS in (10). All numbers are near 1, the
same for 10^4 and 10^9 tasks, so that HiGHS's absolute tolerances mean the same everywhere and the
work depends on the numbers of types only.

**Why its answer is no bound yet.** HiGHS returns a solution that keeps the constraints, and prices
that keep the dual's, up to a tolerance; its value may be on either side of the optimum. What is
reported is made of two parts, neither of which trusts the tolerance:

- the *value* belongs to a schedule of divided tasks that keeps all constraints: shares are made
  non-negative, each row is scaled to the sum that it must have, and lengths follow from them;
- the *bound* is Lagrange's function at the solver's prices (of a second on each machine type, of a
  watt), which for any prices whatever is on the safe side of the optimum: each task goes where it
  is cheapest at these prices, a minimum over machine types that is taken over all pairs. Its
  floating-point error is bounded (Higham's n u sum|terms|) and taken off, too.

So a tolerance makes a bound at worst a little weaker; it never lifts it above the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gridsched.arrays import Booleans, Floats
from gridsched.errors import GridschedError
from gridsched.extras import load
from gridsched.long_work import SOLVING, long_work
from gridsched.optimize.typed_bag import TypedBag

if TYPE_CHECKING:
    from scipy import sparse

#: What needs SciPy here.
_PROGRAMMES = "Linear programs"
#: Twice the unit roundoff of float64: relative error of one operation, generously.
ROUNDOFF = float(np.finfo(np.float64).eps)
#: Feasibility tolerance asked of HiGHS, in the scaled variables.
TOLERANCE = 1e-9
#: HiGHS's own tolerance, asked of a second try.
DEFAULT_TOLERANCE = 1e-7
#: A pair that all tasks of a type would keep busy for so many S is left out of the program, but
#: not of the bound; a user may write 1e30 s for "cannot run".
LONGEST_SHARE = 1e9


@dataclass(frozen=True, eq=False)
class Solution:
    """What HiGHS found.

    Attributes
    ----------
    shares : ndarray of float64, shape (task types, machine types)
        g, not negative.
    last : float
        The last variable: rho or m.
    machine_prices : ndarray of float64, shape (machine types,)
        What the objective loses if machines of a type have 1 instead of 0 more of their row.
    row_price : float
        The same of the further row.
    last_price : float
        The same of the upper bound of the last variable.
    """

    shares: Floats
    last: float
    machine_prices: Floats
    row_price: float = 0.0
    last_price: float = 0.0


class Infeasible(GridschedError):
    """A linear program has no solution; its caller explains why."""


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The constraints of a bag, ready for objectives.

    Attributes
    ----------
    bag : TypedBag
    scale_s : float
        S, the unit of time [s].
    """

    bag: TypedBag
    scale_s: float

    @cached_property
    def _b(self) -> Floats:
        per_machine = self.bag.tasks[:, None] / np.maximum(self.bag.machines, 1)
        b: Floats = per_machine * self.bag.runnable / self.scale_s
        return b

    @cached_property
    def _left_out(self) -> Booleans:
        return self.bag.usable & (self._b > LONGEST_SHARE)

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
        """Task type, machine type and b of each variable."""
        i, j = np.nonzero(self.bag.usable & ~self._left_out)
        return i, j, self._b[i, j]

    def prices_of_all(
        self, machine_prices: Floats, per_joule: float, wear: Floats | float = 0.0, total: float | None = None
    ) -> Floats:
        """Raise the solver's prices until no pair that was left out is cheaper than the others.

        Parameters
        ----------
        machine_prices : ndarray of float64, shape (machine types,)
            Of all machines of a type together, for a second each [unit/s].
        per_joule : float
            Price of energy above idle [unit/J].
        wear : ndarray of float64, shape (machine types,), or float
            Price of a machine's second apart from `machine_prices` [unit/s].
        total : float, optional
            What the prices must add up to, rounded down [unit/s]; it is shared as the solver
            shares it, after what the pairs left out need.
        """
        needed = self._least_prices(machine_prices, per_joule, wear)
        if total is None:
            return np.maximum(machine_prices, needed)
        above = np.maximum(machine_prices - needed, 0.0)
        whole = float(above.sum())
        shares = above / whole if whole > 0 else self.bag.machines / self.bag.machines.sum()
        left = max(total - float(needed.sum()), 0.0)
        prices: Floats = needed + shares * left * (1 - (len(needed) + 4) * ROUNDOFF)
        return prices

    def _least_prices(self, machine_prices: Floats, per_joule: float, wear: Floats | float) -> Floats:
        """Return prices at which what was left out stays dear, whatever rounding takes off."""
        bag = self.bag
        if not self._left_out.any():
            return np.zeros(len(bag.machines))
        machines = np.maximum(bag.machines, 1)
        energy = per_joule * bag.extra_w
        costs = bag.runnable * (energy + wear + machine_prices / machines)
        least = np.where(bag.usable & ~self._left_out, costs, np.inf).min(axis=1)
        least = np.where(np.isfinite(least), np.maximum(least, 0.0), 0.0)[:, None]
        margin = 32 * ROUNDOFF * (np.abs(energy) + np.abs(wear))
        needed = least / np.where(self._left_out, bag.etc, 1.0) - energy - wear + margin
        prices: Floats = np.where(self._left_out, needed * machines, 0.0).max(axis=0)
        return np.maximum(prices, 0.0)

    def solve_lengths(
        self, cost: Floats, cost_of_m: float, most_m: float = np.inf, row: tuple[Floats, float, float] | None = None
    ) -> Solution:
        """Minimize over program (5): rho is 1, m is free.

        Parameters
        ----------
        cost : ndarray of float64, shape (task types, machine types)
            Objective's coefficients of g.
        cost_of_m : float
        most_m : float
            Upper bound of m.
        row : tuple (coefficients of g, coefficient of m, right-hand side), optional
            A further constraint ``<=``.

        Raises
        ------
        Infeasible
        """
        return self._solve(cost, cost_of_m, (0.0, most_m), 1.0, 0.0, row)

    def solve_rates(
        self, cost: Floats, cost_of_rho: float, least_rho: float, row: tuple[Floats, float, float] | None = None
    ) -> Solution:
        """Minimize over program (10): m is 1, rho is at least `least_rho`.

        Parameters
        ----------
        cost : ndarray of float64, shape (task types, machine types)
            Objective's coefficients of g.
        cost_of_rho, least_rho : float
        row : tuple (coefficients of g, coefficient of rho, right-hand side), optional
            A further constraint ``<=``.

        Raises
        ------
        Infeasible
        """
        return self._solve(cost, cost_of_rho, (least_rho, np.inf), 0.0, 1.0, row)

    def _solve(
        self,
        cost: Floats,
        cost_of_last: float,
        bounds_of_last: tuple[float, float],
        row_sum: float,
        capacity: float,
        row: tuple[Floats, float, float] | None,
    ) -> Solution:
        """Minimize with either rho (then `row_sum` is 0) or m (then `capacity` is 0) as last."""
        i, j, b = self._pairs
        n, (n_tasks, n_machines) = len(i), self.bag.etc.shape
        types = np.flatnonzero(self.bag.tasks > 0)
        row_of = np.zeros(n_tasks, dtype=np.intp)
        row_of[types] = np.arange(len(types))
        unit = np.maximum(b, 1.0)  # of each variable, so that no coefficient is above 1
        sums = _with_last(1.0 / unit, row_of[i], len(types), row_sum - 1.0)
        limits = _with_last(b / unit, j, n_machines, capacity - 1.0)
        right = np.full(n_machines, capacity)
        if row is not None:
            sparse = load("scipy.sparse", _PROGRAMMES)
            further = sparse.csr_array(np.append(row[0][i, j] / unit, row[1])[None])
            limits = sparse.vstack([limits, further], format="csr")
            right = np.append(right, row[2])
        coefficients = np.append(cost[i, j] / unit, cost_of_last)
        size = float(np.abs(coefficients).max()) or 1.0
        bounds = np.tile((0.0, np.inf), (n + 1, 1))
        bounds[n] = bounds_of_last
        answer = _highs(
            c=coefficients / size, A_ub=limits, b_ub=right, A_eq=sums, b_eq=np.full(len(types), row_sum), bounds=bounds
        )
        shares = np.zeros((n_tasks, n_machines))
        shares[i, j] = np.maximum(answer.x[:n], 0.0) / unit
        prices = np.maximum(-answer.ineqlin.marginals, 0.0) * size
        return Solution(
            shares,
            float(answer.x[n]),
            prices[:n_machines],
            float(prices[n_machines]) if row is not None else 0.0,
            max(-float(answer.upper.marginals[n]), 0.0) * size,
        )

    def divided_tasks(self, shares: Floats) -> Floats:
        """Return x of shares: each row scaled so that it holds all tasks of its type."""
        total = shares.sum(axis=1)
        x: Floats = self.bag.tasks[:, None] * shares / np.where(total > 0, total, 1.0)[:, None]
        return x


def _highs(**programme: Any) -> Any:
    """Return HiGHS's answer: by the simplex method, or where that gives up, by interior points."""
    optimize = load("scipy.optimize", _PROGRAMMES)
    for method, tolerance in (("highs-ds", TOLERANCE), ("highs-ipm", DEFAULT_TOLERANCE)):
        options = {"primal_feasibility_tolerance": tolerance, "dual_feasibility_tolerance": tolerance}
        with long_work(SOLVING):
            answer = optimize.linprog(**programme, method=method, options=options)
        if answer.status == 0:
            return answer
        if answer.status == 2:
            raise Infeasible("The linear program has no solution.")
    raise GridschedError(f"HiGHS solved no linear program: {answer.message}")


def _with_last(values: Floats, rows: NDArray[np.intp], n_rows: int, last: float) -> sparse.csr_array:
    """Return a matrix with one entry in each column, and a last column of one number."""
    sparse = load("scipy.sparse", _PROGRAMMES)
    n = len(values)
    if last == 0.0:
        return sparse.csr_array((values, (rows, np.arange(n))), shape=(n_rows, n + 1))
    entries = np.concatenate([values, np.full(n_rows, last)])
    where = (np.concatenate([rows, np.arange(n_rows)]), np.concatenate([np.arange(n), np.full(n_rows, n)]))
    return sparse.csr_array((entries, where), shape=(n_rows, n + 1))


def relaxation(bag: TypedBag, longest_s: float = 0.0) -> Relaxation:
    """Return the constraints of a bag.

    Parameters
    ----------
    bag : TypedBag
    longest_s : float
        S is at least this long [s], for constraints that keep machines waiting.
    """
    rates = np.where(bag.usable, bag.machines / np.where(bag.usable, bag.etc, 1.0), 0.0).sum(axis=1)
    has = bag.tasks > 0
    return Relaxation(bag, max(float((bag.tasks[has] / rates[has]).sum()), longest_s))


def least_costs(bag: TypedBag, per_joule: float, per_second: Floats) -> Floats:
    """Return the least cost of a task of each type at given prices, rounded down.

    On machine type j a task costs ``ETC_ij (per_joule (APC_ij - APC0_j) + per_second_j)``.

    Parameters
    ----------
    bag : TypedBag
    per_joule : float
        Price of energy above idle [unit/J].
    per_second : ndarray of float64, shape (machine types,)
        Price of a machine's second [unit/s].

    Returns
    -------
    ndarray of float64, shape (task types,)
        0 for types without tasks.
    """
    energy = per_joule * bag.extra_w
    cost = bag.runnable * (energy + per_second)
    cost -= 4 * ROUNDOFF * bag.runnable * (np.abs(energy) + np.abs(per_second))
    least: Floats = np.where(bag.usable, cost, np.inf).min(axis=1)
    return np.where(bag.tasks > 0, least, 0.0)


def sum_below(*terms: Floats | float) -> float:
    """Return a sum of floats that is not above their exact sum, although nearly so."""
    every = np.concatenate([np.atleast_1d(term) for term in terms])
    return float(every.sum() - (len(every) + 2) * ROUNDOFF * np.abs(every).sum())
