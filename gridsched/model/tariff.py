"""Money as one value: what a bag of tasks pays, and what operating the machines costs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from gridsched.arrays import Floats
from gridsched.errors import InputError
from gridsched.model.energy_cost import PerEnergy, with_unit_read
from gridsched.model.limits import LARGEST
from gridsched.model.platform import Platform
from gridsched.model.prices import PriceSeries
from gridsched.model.records import KeyName, check_record
from gridsched.model.rules import DAY_S, EnergyBudget
from gridsched.model.signals import Signal


@dataclass(frozen=True)
class Tariff:
    """Price of a bag of tasks and costs of processing it (paper 003, II and VI).

    Attributes
    ----------
    price : float
        What a bag pays [money].
    energy_cost_per_j : float
        What a joule costs [money/J], or a text with another unit of energy, as ``"0.30/kWh"``.
    pue : float
        Power usage effectiveness: power drawn from the grid over power of the machines, at least 1.
    overhead : float
        Cost of a bag apart from its energy, such as billing [money].
    wear_per_s : float or tuple of float
        Maintenance of one machine for each second it executes tasks [money/s]; one number for all,
        or one for each machine type (eq. 11). A machine is a host; with b of c cores busy it wears
        b / c as fast.
    depreciation_per_s : float or tuple of float
        Purchase price of one machine over its life [money/s], whatever it does; one number, or one
        for each machine type (eq. 12).
    prices : PriceSeries or path, optional
        Prices that vary over the day; they go before `price` and `energy_cost_per_j`. A path names
        their CSV file, which is read with the scenario. Each instant at which tasks are submitted
        then begins a bag of its own, which pays when its last task finishes.
    prices_period_s : float or None
        After which the prices are those of the first line again [s]; infinite: the last line holds for ever.
        None: a day, and of a table with dates never: it must cover the run.

    Raises
    ------
    InputError
        Where a value is out of range.

    Notes
    -----
    All energies here are the machines' own; the PUE is applied by the methods. With c the energy
    cost, E the energy and F_j M_j the busy machine-seconds, a bag that takes the time MS earns
    ``price - overhead - c pue E - sum_j F_j M_j wear_j - MS sum_j M_j depreciation_j``.
    """

    price: Annotated[float, KeyName("price"), Field(ge=0, le=LARGEST, description="Price of the bag [money].")]
    energy_cost_per_j: Annotated[
        float,
        KeyName("energy_cost"),
        PerEnergy(),
        Field(
            ge=0,
            le=LARGEST,
            description="Cost of energy with its unit: 0.30/kWh, 90/MWh, 8.3e-8/J; default 1/J. A number without a "
            "unit is per joule, and at most 1e-4.",
            examples=["X/kWh"],
        ),
    ] = 1.0
    pue: Annotated[
        float,
        KeyName("pue"),
        Field(
            ge=1,
            le=LARGEST,
            description="Ratio of the power from the grid to the power of the machines (PUE); default 1.",
        ),
    ] = 1.0
    overhead: Annotated[
        float,
        KeyName("overhead"),
        Field(ge=0, le=LARGEST, description="Cost of a bag apart from its energy [money]; default 0."),
    ] = 0.0
    wear_per_s: Annotated[
        float | tuple[float, ...],
        KeyName("wear_per_s"),
        Field(description="Maintenance of a busy host [money/s]; default 0."),
    ] = 0.0
    depreciation_per_s: Annotated[
        float | tuple[float, ...],
        KeyName("depreciation_per_s"),
        Field(description="Loss of value of a host, busy or not [money/s]; default 0."),
    ] = 0.0
    prices: Annotated[
        PriceSeries | str | Path | None,
        KeyName("prices"),
        Field(
            description="Prices by time of day (.csv: time_s,price,energy_cost_per_kwh,price_per_waiting_bag).",
            examples=["FILE"],
        ),
    ] = None
    prices_period_s: Annotated[
        float | None,
        KeyName("prices_period_s"),
        Field(
            gt=0,
            description="Time after which the prices repeat; inf: the last line holds forever. Default: a day, and "
            "of a table with dates never: it must cover the run.",
        ),
    ] = None

    def __post_init__(self) -> None:
        if isinstance(self.energy_cost_per_j, str):
            object.__setattr__(self, "energy_cost_per_j", with_unit_read("energy_cost", self.energy_cost_per_j))
        check_record(self, Tariff, "Tariff: ")
        if isinstance(self.prices, PriceSeries):
            self.prices.check_period(self.prices_cycle_s)
        for name in ("wear_per_s", "depreciation_per_s"):
            values = np.asarray(getattr(self, name), dtype=np.float64)
            if not np.all((values >= 0) & (values <= LARGEST)):
                raise InputError(
                    f"Tariff: {name} is {getattr(self, name)!r}; it must be at least 0 and at most {LARGEST:g}."
                )

    @property
    def prices_cycle_s(self) -> float:
        """`prices_period_s`, with its default [s]."""
        return DAY_S if self.prices_period_s is None else self.prices_period_s

    @classmethod
    def of_budget(cls, budget: EnergyBudget | None) -> Tariff | None:
        """Return the prices of a budget in money, to which no bag pays anything; None without."""
        if budget is None or budget.money is None:
            return None
        return cls(price=0.0, prices=budget.prices, prices_period_s=budget.prices_period_s)

    def priced(self, gamma: float, least_energy_j: float) -> Tariff:
        """Return the same costs with a price of `gamma` times what some energy costs.

        Parameters
        ----------
        gamma : float
        least_energy_j : float
            Of the machines [J], without PUE; the least that can process the bag (algorithms E4).
        """
        return replace(self, price=gamma * self.energy_cost_per_j * self.pue * least_energy_j)

    def energy_price(self, platform: Platform) -> Signal | None:
        """Return what a joule costs by time and host [money/J]; None where it is always the same."""
        return self.prices.signal(self.prices_cycle_s, platform) if isinstance(self.prices, PriceSeries) else None

    def now_and_next(self, time_s: float, waiting: int = 0) -> tuple[Tariff, float]:
        """Return the tariff that holds at a time, and when another one does [s].

        Parameters
        ----------
        time_s : float
        waiting : int
            Other bags that are unfinished.

        Returns
        -------
        tariff : Tariff
            Without a series: its price is what a bag pays that is finished now.
        change_s : float
            Infinite if nothing will change.
        """
        if not isinstance(self.prices, PriceSeries):
            return self, math.inf
        line, change_s = self.prices.now_and_next(self.prices_cycle_s, time_s)
        return self.of_line(line, waiting), change_s

    def of_line(self, line: int, waiting: int = 0) -> Tariff:
        """Return the tariff of one line of the series; `waiting` other bags are unfinished."""
        assert isinstance(self.prices, PriceSeries)
        price = float(self.prices.paid(line, waiting))
        return self._fixed(price, self.prices.energy_cost_per_j[line])

    def lines_from(self, time_s: float) -> range:
        """Return the lines of the series that hold at a time [s] or at a later one."""
        assert isinstance(self.prices, PriceSeries)
        every = range(len(self.prices.time_s))
        if not math.isinf(self.prices_cycle_s):
            return every
        return every[self.prices.now_and_next(self.prices_cycle_s, time_s)[0] :]

    def mean(self, waiting: int = 0) -> Tariff:
        """Return the tariff with the mean prices of a period, without a series."""
        if not isinstance(self.prices, PriceSeries):
            return self
        price, energy_cost, per_bag = self.prices.mean(self.prices_cycle_s)
        return self._fixed(max(price + per_bag * waiting, 0.0), energy_cost)

    def _fixed(self, price: float, energy_cost_per_j: float) -> Tariff:
        return replace(self, price=price, energy_cost_per_j=energy_cost_per_j, prices=None)

    def for_each(self, machine_type: ArrayLike) -> Tariff:
        """Return the tariff of machines one by one, each a type of its own.

        Parameters
        ----------
        machine_type : array_like of int, shape (machines,)
            Type of each machine.
        """
        return replace(
            self,
            wear_per_s=_for_each(self.wear_per_s, machine_type),
            depreciation_per_s=_for_each(self.depreciation_per_s, machine_type),
        )

    def wear(self, machine_types: int) -> Floats:
        """Return the wear of one machine of each type [money/s]; refuses another number of them."""
        return _by_type("wear_per_s", self.wear_per_s, machine_types)

    def depreciation(self, machines: ArrayLike) -> float:
        """Return the depreciation of all machines together [money/s] (eq. 12).

        Parameters
        ----------
        machines : array_like, shape (machine types,)
        """
        counts = np.asarray(machines)
        return float(counts @ self.depreciation_by_type(len(counts)))

    def depreciation_by_type(self, machine_types: int) -> Floats:
        """Return what one machine of each type loses in value [money/s]."""
        return _by_type("depreciation_per_s", self.depreciation_per_s, machine_types)

    def cost_of(self, energy_j: float) -> float:
        """Return what an energy of the machines costs where prices do not vary, PUE included [money]."""
        return self.energy_cost_per_j * self.pue * energy_j

    def profit(self, energy_j: float, busy_s: ArrayLike, length_s: float, machines: ArrayLike) -> float:
        """Return what one bag earns [money].

        Parameters
        ----------
        energy_j : float
            Of the machines, over `length_s`.
        busy_s : array_like, shape (machine types,)
            Machine-seconds of work on each type.
        length_s : float
            From the bag's start until the next bag can start.
        machines : array_like, shape (machine types,)
        """
        busy = np.asarray(busy_s)
        running = self.cost_of(energy_j) + float(busy @ self.wear(len(busy)))
        return self.price - self.overhead - running - length_s * self.depreciation(machines)


def depreciation_per_s(cost: ArrayLike, lifetime_s: ArrayLike) -> tuple[float, ...]:
    """Return purchase price over mean time to failure, by machine type [money/s] (eq. 12).

    Parameters
    ----------
    cost : array_like
        Purchase price of one machine of each type [money].
    lifetime_s : array_like
        Mean time to failure [s].

    Raises
    ------
    InputError
        If a price is negative or a lifetime is not positive.
    """
    price, life = np.asarray(cost, dtype=np.float64), np.asarray(lifetime_s, dtype=np.float64)
    if not (np.all(price >= 0) and np.all(life > 0)):
        raise InputError(
            f"Depreciation needs prices of at least 0 and positive lifetimes; found {cost!r} and {lifetime_s!r}."
        )
    return tuple(float(rate) for rate in np.atleast_1d(price / life))


def _for_each(value: float | tuple[float, ...], machine_type: ArrayLike) -> float | tuple[float, ...]:
    if not isinstance(value, tuple):
        return value
    return tuple(value[j] for j in np.asarray(machine_type).tolist())


def _by_type(name: str, value: float | tuple[float, ...], machine_types: int) -> Floats:
    if not isinstance(value, tuple):
        return np.full(machine_types, value)
    if len(value) != machine_types:
        raise InputError(
            f"{name} has {len(value)} numbers; there are {machine_types} machine types. Give one "
            f"for each, or one for all."
        )
    return np.array(value)
