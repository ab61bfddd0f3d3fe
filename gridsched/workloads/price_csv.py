"""Prices that vary over the day, from a CSV table."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from gridsched.files.csv_files import Format, Number
from gridsched.model.limits import LARGEST
from gridsched.model.prices import PriceSeries
from gridsched.model.rules import EnergyBudget
from gridsched.model.tariff import Tariff

Priced = TypeVar("Priced", Tariff | None, EnergyBudget | None)
J_PER_KWH = 3.6e6
#: Columns that are missing, and empty cells, are as the tariff says.
PRICES = Format(
    {
        "time_s": Number(),
        "price": Number(default=math.nan),
        "energy_cost_per_kwh": Number(default=math.nan),
        "price_per_waiting_bag": Number(-LARGEST, default=0.0),
    },
    rows="prices",
)


def read_prices(path: str | Path, tariff: Tariff | None = None) -> PriceSeries:
    """Read prices by time of day, one line for each change.

    Parameters
    ----------
    path : path
        CSV ``time_s[,price][,energy_cost_per_kwh][,price_per_waiting_bag]``.
    tariff : Tariff, optional
        Says the price and the energy cost where the table does not. Without it the table must say
        what energy costs, which is positive, and nothing pays.

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value.
    """
    if tariff is None:
        table = PRICES.read(path, energy_cost_per_kwh=Number(above=True))
        tariff = Tariff(price=0.0)
    else:
        table = PRICES.read(path)
    times = table["time_s"]
    if times[0] != 0:
        raise table.fail(0, "time_s", "the first line begins at 0")
    for row in range(1, len(table)):
        if times[row] <= times[row - 1]:
            raise table.fail(row, "time_s", f"it must be greater than the line before's, {times[row - 1]:g}")
    costs = (each / J_PER_KWH for each in table["energy_cost_per_kwh"])
    return PriceSeries(
        tuple(times),
        tuple(tariff.price if math.isnan(each) else each for each in table["price"]),
        tuple(tariff.energy_cost_per_j if math.isnan(each) else each for each in costs),
        tuple(table["price_per_waiting_bag"]),
    )


def with_prices_read(priced: Priced) -> Priced:
    """Return a tariff or a budget with the file of prices that it names read; any other as it is."""
    if priced is None or not isinstance(priced.prices, str | Path):
        return priced
    prices = read_prices(priced.prices, priced if isinstance(priced, Tariff) else None)
    return replace(priced, prices=prices)
