"""What becomes of a bag: its tasks, divided or whole, on machine types, and what they earn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np

from gridsched.model.tariff import Tariff
from gridsched.optimize.typed_bag import Floats, Integers, TypedBag

#: A part of a task so near a whole one is a whole one.
NEARLY_WHOLE = 1e-9


@dataclass(frozen=True, eq=False)
class MachineCounts:
    """What each machine of one type executes.

    Attributes
    ----------
    types : ndarray of int64, shape (k,)
        Task types that the machines execute, in the order of execution: longest first.
    counts : ndarray of int64, shape (k, machines)
        Tasks of each of these on each machine.
    loads_s : ndarray of float64, shape (machines,)
        When each machine finishes [s].
    ready_s : ndarray of float64, shape (machines,)
        When each machine began [s].
    """

    types: Integers
    counts: Integers
    loads_s: Floats
    ready_s: Floats


@dataclass(frozen=True, eq=False)
class BagPlan:
    """Tasks by type on machines by type, and what they earn.

    Attributes
    ----------
    bag : TypedBag
    x : ndarray of float64 or int64, shape (task types, machine types)
        Tasks by type, divided or whole; 0 where nothing runs.
    makespan_s : float
        Time at which the last machine type finishes, or the next bag begins [s] (eq. 3); infinite
        where nothing runs. A power cap may demand a pause before the next bag.
    energy_j : float
        Of all machines until then, idle power included, without PUE [J] (eq. 4); infinite where
        nothing runs.
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
    machines : tuple of MachineCounts
        Of whole tasks: for each machine type, what its machines execute.
    """

    bag: TypedBag
    x: Floats | Integers
    makespan_s: float
    energy_j: float
    tariff: Tariff | None = None
    profit_rate: float | None = None
    bound: float | None = None
    power_cap_w: float = np.inf
    least_rate_per_s: float = 0.0
    machines: tuple[MachineCounts, ...] = ()

    @property
    def runs(self) -> bool:
        """Whether running the bag is better than doing nothing, or demanded."""
        return bool(np.isfinite(self.makespan_s))

    @property
    def rate_per_s(self) -> float:
        """Bags per second r; 0 says "do not run"."""
        return 1.0 / self.makespan_s

    @property
    def keeps_rate(self) -> bool:
        """Whether the promised rate of bags is kept."""
        return not self.runs or self.makespan_s * self.least_rate_per_s <= 1 + NEARLY_WHOLE

    @property
    def finish_s(self) -> float:
        """When the last machine finishes whole tasks [s]."""
        return max(float(each.loads_s.max(initial=0.0)) for each in self.machines)

    @property
    def mean_power_w(self) -> float:
        """Drawn from the grid, PUE included [W]."""
        pue = 1.0 if self.tariff is None else self.tariff.pue
        return pue * (self.energy_j / self.makespan_s if self.runs else self.bag.all_idle_w)

    def profit_rate_under(self, tariff: Tariff) -> float:
        """Return what the plan earns if such bags follow each other [money/s] (eq. 6)."""
        busy_s = self.bag.host_busy_s(self.x)
        profit = tariff.profit(self.energy_j, busy_s, self.makespan_s, self.bag.hosts)
        return profit / self.makespan_s

    def under(self, tariff: Tariff | None) -> BagPlan:
        """Return the plan with what it earns under a tariff, if there is one."""
        if tariff is None:
            return self
        return replace(self, tariff=tariff, profit_rate=self.profit_rate_under(tariff))


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

    def divided(self, bag: TypedBag, tariff: Tariff | None) -> BagPlan:
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
