"""What energy costs: an amount of money with the unit of energy that it buys."""

from __future__ import annotations

import re

from gridsched.errors import InputError
from gridsched.model.limits import LARGEST
from gridsched.model.signals import J_PER_KWH

#: A bare number is per joule up to here [money/J], which is 360 a kWh; above it was meant otherwise.
MOST_BARE = 1e-4
_J_PER_WH = J_PER_KWH / 1e3
#: Units of energy [J].
UNITS_J = {
    "J": 1.0,
    "kJ": 1e3,
    "MJ": 1e6,
    "GJ": 1e9,
    "Wh": _J_PER_WH,
    "kWh": J_PER_KWH,
    "MWh": _J_PER_WH * 1e6,
    "GWh": _J_PER_WH * 1e9,
}
_COST = re.compile(r"\s*(?P<amount>[^/\s]+)\s*(?:/\s*(?P<unit>\S+)\s*)?")


class PerEnergy:
    """Marks a field whose value is a cost of energy [money/J], which options and keys take with a unit."""


def cost_per_joule(value: float | str) -> float:
    """Return what a joule costs [money/J].

    Parameters
    ----------
    value : float or str
        With a unit, as ``0.30/kWh``; a number without one is per joule.

    Raises
    ------
    ValueError
        If it is no such number, or has no unit and is above `MOST_BARE`. The text follows "KEY is VALUE; ".

    Examples
    --------
    >>> cost_per_joule("90/MWh") == 90 / 3.6e9
    True
    """
    found = _COST.fullmatch(str(value))
    try:
        amount = float(found["amount"]) if found and not isinstance(value, bool) else -1.0
    except ValueError:
        amount = -1.0
    if found is None or not 0 <= amount <= LARGEST:
        raise ValueError("an amount of money of 0 or more and a unit of energy is allowed, as '0.3/kWh'")
    unit = found["unit"]
    if unit is None and amount > MOST_BARE:
        shown = found["amount"]
        raise ValueError(
            f"its unit is missing: write '{shown}/kWh' or '90/MWh', or '{shown}/J' if a joule costs so much (a number "
            f"without a unit is per joule, and at most {MOST_BARE:g})"
        )
    if unit is not None and unit not in UNITS_J:
        *others, last = UNITS_J
        raise ValueError(f"{unit!r} is no unit of energy; {', '.join(others)} or {last} is allowed")
    return amount / UNITS_J[unit or "J"]


def with_unit_read(key: str, text: str) -> float:
    """Return what a joule costs by the text of a key [money/J]; see `cost_per_joule`.

    Raises
    ------
    InputError
        As `cost_per_joule`, with the key.
    """
    try:
        return cost_per_joule(text)
    except ValueError as error:
        raise InputError(f"{key} is {text!r}; {error}.") from None
