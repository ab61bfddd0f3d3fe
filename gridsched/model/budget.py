"""An energy budget: how many joules each period (a day, say) may draw."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from gridsched.errors import InputError

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
        Length of a period [s].
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

    energy_j: float
    period_s: float = DAY_S
    first_period_start_s: float = 0.0
    on_exhaustion: Literal["refuse", "stop"] = "refuse"
    carry_over: bool = False
    periods: int | None = None

    def __post_init__(self) -> None:
        if not self.energy_j > 0:
            self._refuse("energy_j", self.energy_j, "it must be greater than 0 J")
        if not 0 < self.period_s < math.inf:
            self._refuse("period_s", self.period_s, "it must be greater than 0 s and finite")
        if not 0 <= self.first_period_start_s < math.inf:
            self._refuse(
                "first_period_start_s", self.first_period_start_s, "it must be at least 0 s"
            )
        if self.on_exhaustion not in ("refuse", "stop"):
            self._refuse("on_exhaustion", self.on_exhaustion, "legal are 'refuse' and 'stop'")
        if self.periods is not None and self.periods < 1:
            self._refuse("periods", self.periods, "it must be at least 1")
        if self.carry_over and self.periods is None:
            self._refuse("periods", None, "carry_over needs the number of periods")

    def _refuse(self, name: str, value: object, legal: str) -> None:
        raise InputError(f"Energy budget: {name} is {value!r}; {legal}.")

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
        """Return when a period starts [s]."""
        return self.first_period_start_s + period * self.period_s
