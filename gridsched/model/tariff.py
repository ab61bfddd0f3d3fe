"""Money as one value: what a bag of tasks pays, and what operating the machines costs."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, Field

from gridsched.errors import InputError
from gridsched.model.limits import LARGEST

Floats = NDArray[np.float64]
Money = Annotated[float, Field(ge=0, le=LARGEST)]


class Tariff(BaseModel):
    """Price of a bag of tasks and costs of processing it (paper 003, II and VI).

    Attributes
    ----------
    price : float
        What a bag pays [money].
    energy_cost_per_j : float
        What a joule costs [money/J].
    pue : float
        Power usage effectiveness: power drawn from the grid over power of the machines, at least 1.
    overhead : float
        Cost of a bag apart from its energy, such as billing [money].
    wear_per_s : float or tuple of float
        Maintenance of one machine for each second it executes tasks [money/s]; one number for all,
        or one for each machine type (eq. 11).
    depreciation_per_s : float or tuple of float
        Purchase price of one machine over its life [money/s], whatever it does; one number, or one
        for each machine type (eq. 12).

    Notes
    -----
    All energies here are the machines' own; the PUE is applied by the methods. With c the energy
    cost, E the energy and F_j M_j the busy machine-seconds, a bag that takes the time MS earns
    ``price - overhead - c pue E - sum_j F_j M_j wear_j - MS sum_j M_j depreciation_j``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    price: Money
    energy_cost_per_j: Money = 1.0
    pue: float = Field(default=1.0, ge=1, le=LARGEST)
    overhead: Money = 0.0
    wear_per_s: Money | tuple[Money, ...] = 0.0
    depreciation_per_s: Money | tuple[Money, ...] = 0.0

    def wear(self, machine_types: int) -> Floats:
        """Return the wear of one machine of each type [money/s]; refuses another number of them."""
        return _by_type("wear_per_s", self.wear_per_s, machine_types)

    def depreciation(self, machines: ArrayLike) -> float:
        """Return the depreciation of all machines together [money/s] (eq. 12).

        Parameters
        ----------
        machines : array_like of int, shape (machine types,)
        """
        counts = np.asarray(machines)
        return float(counts @ self.depreciation_by_type(len(counts)))

    def depreciation_by_type(self, machine_types: int) -> Floats:
        """Return what one machine of each type loses in value [money/s]."""
        return _by_type("depreciation_per_s", self.depreciation_per_s, machine_types)

    def profit(
        self, energy_j: float, busy_s: ArrayLike, length_s: float, machines: ArrayLike
    ) -> float:
        """Return what one bag earns [money].

        Parameters
        ----------
        energy_j : float
            Of the machines, over `length_s`.
        busy_s : array_like, shape (machine types,)
            Machine-seconds of work on each type.
        length_s : float
            From the bag's start until the next bag can start.
        machines : array_like of int, shape (machine types,)
        """
        busy = np.asarray(busy_s)
        running = self.energy_cost_per_j * self.pue * energy_j + float(busy @ self.wear(len(busy)))
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
            f"Depreciation needs prices of at least 0 and positive lifetimes; found {cost!r} and "
            f"{lifetime_s!r}."
        )
    return tuple(float(rate) for rate in np.atleast_1d(price / life))


def _by_type(name: str, value: float | tuple[float, ...], machine_types: int) -> Floats:
    if not isinstance(value, tuple):
        return np.full(machine_types, value)
    if len(value) != machine_types:
        raise InputError(
            f"{name} has {len(value)} numbers; there are {machine_types} machine types. Give one "
            f"for each, or one for all."
        )
    return np.array(value)
