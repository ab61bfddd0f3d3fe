"""An energy budget: how many joules each period (a day, say) may draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from gridsched.errors import InputError
from gridsched.model.limits import SMALLEST
from gridsched.model.records import KeyName, check_record

#: Seconds of a day, the usual period.
DAY_S = 86_400.0


@dataclass(frozen=True)
class EnergyBudget:
    """Joules that may be drawn in each period (paper 000, II-B and V-D).

    Attributes
    ----------
    energy_j : float
        Budget of one period [J]; infinite gives periods without a limit.
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

    Raises
    ------
    InputError
        Where a value is out of range.
    """

    energy_j: Annotated[
        float,
        KeyName("energy_budget_j"),
        Field(
            ge=SMALLEST, allow_inf_nan=True, description="Joules each period may draw; inf: any."
        ),
    ]
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

    def __post_init__(self) -> None:
        check_record(self, EnergyBudget, "Energy budget: ")
        if self.carry_over and self.periods is None:
            raise InputError(
                "Energy budget: budget_periods is missing; budget_carry_over needs it."
            )

    def period_at(self, time: float) -> int:
        """Return the number of the period that holds `time` [s]; -1 before the first."""
        if time < self.first_period_start_s:
            return -1
        index = int((time - self.first_period_start_s) / self.period_s)
        # rounding of the quotient must not put a boundary into the period before it
        while self.start_of(index + 1) <= time:
            index += 1
        while self.start_of(index) > time:
            index -= 1
        return index

    def start_of(self, period: int) -> float:
        """Return when a period starts [s]; infinite if there is no such period."""
        if period == 0:  # zero periods last no time, even if each is infinite
            return self.first_period_start_s
        return self.first_period_start_s + period * self.period_s
