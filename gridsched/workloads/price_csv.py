"""Prices that vary over the day, from a CSV table."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from gridsched.files.csv_files import Format, Number
from gridsched.files.input_files import read_text
from gridsched.model.limits import LARGEST
from gridsched.model.prices import PriceSeries
from gridsched.model.rules import EnergyBudget
from gridsched.model.signals import J_PER_KWH
from gridsched.model.tariff import Tariff
from gridsched.workloads.signal_csv import read_site_series

Priced = TypeVar("Priced", Tariff | None, EnergyBudget | None)
ENERGY_COST = "energy_cost_per_kwh"
#: Columns that are missing, and empty cells, are as the tariff says.
PRICES = Format(
    {
        "time_s": Number(),
        "price": Number(default=math.nan),
        ENERGY_COST: Number(default=math.nan),
        "price_per_waiting_bag": Number(-LARGEST, default=0.0),
    },
    rows="prices",
)


def read_prices(path: str | Path, tariff: Tariff | None = None) -> PriceSeries:
    """Read prices by time of day, one line for each change.

    Parameters
    ----------
    path : path
        CSV ``time_s[,price][,energy_cost_per_kwh][,price_per_waiting_bag]``, or by site
        ``host,time_s,energy_cost_per_kwh``: hosts as in a table of carbon intensities.
    tariff : Tariff, optional
        Says the price and the energy cost where the table does not. Without it the table must say
        what energy costs, which is positive, and nothing pays.

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value.
    """
    if _is_by_site(path):
        costs_by_site = read_site_series(path, ENERGY_COST)
        rows = (replace(each, value=tuple(v / J_PER_KWH for v in each.value)) for each in costs_by_site.series)
        price = 0.0 if tariff is None else tariff.price
        return PriceSeries.by_site(replace(costs_by_site, series=tuple(rows)), price)
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


def _is_by_site(path: str | Path) -> bool:
    """Whether the head of a table has a column of hosts."""
    lines = (line.strip() for line in read_text(path).splitlines())
    head = next((line for line in lines if line and not line.startswith("#")), "")
    return "host" in [name.strip() for name in head.split(",")]


def with_prices_read(priced: Priced) -> Priced:
    """Return a tariff or a budget with the file of prices that it names read; any other as it is."""
    if priced is None or not isinstance(priced.prices, str | Path):
        return priced
    prices = read_prices(priced.prices, priced if isinstance(priced, Tariff) else None)
    return replace(priced, prices=prices)
