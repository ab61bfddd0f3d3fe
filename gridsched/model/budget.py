"""An energy budget: how many joules each period (a day, say) may draw, or what they may cost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from gridsched.errors import InputError
from gridsched.model.energy_weights import EVEN, EnergyWeights
from gridsched.model.limits import LARGEST, SMALLEST
from gridsched.model.prices import PriceSeries
from gridsched.model.records import KeyName, check_record

#: Seconds of a day, the usual period.
DAY_S = 86_400.0


@dataclass(frozen=True)
class EnergyBudget:
    """Joules that may be drawn in each period (paper 000, II-B and V-D), or what they may cost.

    Attributes
    ----------
    energy_j : float or None
        Budget of one period [J]; infinite gives periods without a limit. None: it is in money.
    period_s : float
        Length of a period [s]; infinite: one budget for the whole run.
    first_period_start_s : float
        Before it nothing is limited or counted [s] (paper 001's warm-up).
    on_exhaustion : {"refuse", "stop"}
        ``refuse``: a decision whose energy inside the present period exceeds what remains is
        invalid. ``stop``: the run ends when the consumption reaches the budget, and what is
        unfinished is killed.
    carry_over : bool
        Each period gets what is left of the budgets of all `periods`, divided by the periods
        that are left (algorithms B7: ``E_day = E_left_of_year / days_left``).
    periods : int or None
        Number of periods that share the whole budget; needed with `carry_over`.
    money : float or None
        Budget of one period [money], in place of `energy_j`.
    prices : PriceSeries or path, optional
        What a joule costs by time; needed with `money`. A path names a CSV file, which is read with
        the scenario. All prices are known to every scheduler from the start.
    prices_period_s : float
        After which the prices are those of the first line again [s]; default a day.
    ONE_OF : tuple of str
        Of these fields one is given, and no other.

    Raises
    ------
    InputError
        Where a value is out of range, or the budget is not either in joules or in money.

    Notes
    -----
    The account of a budget in money is kept in joules at the mean price; see `EnergyWeights`.
    """

    ONE_OF: ClassVar[tuple[str, ...]] = ("energy_j", "money")

    energy_j: Annotated[
        float | None,
        KeyName("energy_budget_j"),
        Field(
            ge=SMALLEST, allow_inf_nan=True, description="Joules each period may draw; inf: any."
        ),
    ] = None
    period_s: Annotated[
        float,
        KeyName("budget_period_s"),
        Field(
            ge=SMALLEST,
            allow_inf_nan=True,
            description="Length of a period; inf: the whole run; default a day.",
        ),
    ] = DAY_S
    first_period_start_s: Annotated[
        float,
        KeyName("first_period_start_s"),
        Field(
            ge=0,
            allow_inf_nan=False,
            description="Before it nothing is limited or counted; default 0.",
        ),
    ] = 0.0
    on_exhaustion: Annotated[
        Literal["refuse", "stop"],
        KeyName("on_exhaustion"),
        Field(
            description="refuse: nothing may exceed the budget (default); stop: the run ends "
            "with it."
        ),
    ] = "refuse"
    carry_over: Annotated[
        bool,
        KeyName("budget_carry_over"),
        Field(description="What a period leaves is shared by the later ones."),
    ] = False
    periods: Annotated[
        int | None,
        KeyName("budget_periods"),
        Field(
            ge=1, description="Number of periods that share the whole budget, for the carry-over."
        ),
    ] = None
    money: Annotated[
        float | None,
        KeyName("money_budget"),
        Field(
            ge=SMALLEST,
            le=LARGEST,
            description="Money each period may spend on energy, instead of energy_budget_j.",
        ),
    ] = None
    prices: Annotated[
        PriceSeries | str | Path | None,
        KeyName("budget_prices"),
        Field(
            description="What energy costs by time, for money_budget (.csv: "
            "time_s,energy_cost_per_kwh).",
            examples=["FILE"],
        ),
    ] = None
    prices_period_s: Annotated[
        float,
        KeyName("budget_prices_period_s"),
        Field(
            gt=0,
            allow_inf_nan=True,
            description="When these prices begin again; inf: never; default a day.",
        ),
    ] = DAY_S

    def __post_init__(self) -> None:
        check_record(self, EnergyBudget, "Energy budget: ")
        if self.carry_over and self.periods is None:
            raise InputError(
                "Energy budget: budget_periods is missing; budget_carry_over needs it."
            )
        if (self.energy_j is None) == (self.money is None):
            found = "neither" if self.money is None else "both"
            raise InputError(
                "Energy budget: it is in joules (energy_budget_j) or in money (money_budget); "
                f"{found} of them is given."
            )
        if (self.money is None) != (self.prices is None):
            missing, given = "budget_prices", "money_budget"
            if self.money is None:
                missing, given = given, missing
            raise InputError(f"Energy budget: {given} has no effect without {missing}; give both.")
        if isinstance(self.prices, PriceSeries):
            self._check_prices(self.prices)

    def _check_prices(self, prices: PriceSeries) -> None:
        prices.check_period(self.prices_period_s, "budget_prices_period_s")
        for time, cost in zip(prices.time_s, prices.energy_cost_per_j, strict=True):
            if not 0 < cost <= LARGEST:
                raise InputError(
                    f"Energy budget: from {time:g} s on a joule costs {cost:g}; under a budget in "
                    "money every price must be positive."
                )

    @cached_property
    def weights(self) -> EnergyWeights:
        """What a joule counts, by time; the scenario must be loaded."""
        if self.money is None:
            return EVEN
        assert isinstance(self.prices, PriceSeries), "the scenario has been loaded"
        return EnergyWeights.of_prices(self.prices, self.prices_period_s)

    @property
    def limit_j(self) -> float:
        """Budget of one period as it is counted [J]: what its money buys at the mean price."""
        return self.amount / (self.weights.money_per_j or 1.0)

    @property
    def amount(self) -> float:
        """Budget of one period in its own unit [J, or money]."""
        amount = self.energy_j if self.money is None else self.money
        assert amount is not None  # one of them is given
        return amount

    @property
    def words(self) -> str:
        """The budget of one period with its unit."""
        return f"{self.amount:g} {'J' if self.money is None else 'of money'}"

    def start_of(self, period: int) -> float:
        """Return when a period starts [s]; infinite if there is no such period."""
        if period == 0:  # zero periods last no time, even if each is infinite
            return self.first_period_start_s
        return self.first_period_start_s + period * self.period_s
