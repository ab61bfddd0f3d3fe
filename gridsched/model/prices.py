"""Prices that vary over the day: what a bag pays, and what a joule costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gridsched.arrays import Floats
from gridsched.errors import InputError
from gridsched.model.platform import Platform
from gridsched.model.series import SiteSeries, site_signal
from gridsched.model.signals import MONEY, Signal, begins_of_lines


@dataclass(frozen=True)
class PriceSeries:
    """Prices by time of day: line k holds from ``time_s[k]`` until the next line begins.

    After a period (`Tariff.prices_period_s`) the first line holds again.

    Attributes
    ----------
    time_s : tuple of float
        When each line begins [s]; the first is 0, and they ascend.
    price : tuple of float
        What a bag pays that is finished then and is the only unfinished one [money].
    energy_cost_per_j : tuple of float
        What a joule costs [money/J].
    per_waiting_bag : tuple of float
        What a bag pays more (or less, if negative) for each other bag that has been submitted and
        is unfinished at that time [money]. No bag pays less than 0.
    sites : SiteSeries or None
        What a joule costs at each site [money/J], in the place of `energy_cost_per_j`, which is
        then a mean.
    last_until_s : float
        When the last line ends [s], unless the first one holds again; infinite: it holds for ever. A table with
        dates sets it.

    Raises
    ------
    InputError
        If the columns differ in length, or the times do not ascend from 0.
    """

    time_s: tuple[float, ...]
    price: tuple[float, ...]
    energy_cost_per_j: tuple[float, ...]
    per_waiting_bag: tuple[float, ...]
    sites: SiteSeries | None = None
    last_until_s: float = math.inf

    def __post_init__(self) -> None:
        columns = (self.price, self.energy_cost_per_j, self.per_waiting_bag)
        if any(len(column) != len(self.time_s) for column in columns):
            raise InputError(
                f"Prices: {len(self.time_s)} times go with {[len(each) for each in columns]} "
                "prices, energy costs and prices by backlog; give one of each for each time."
            )
        times = np.array(self.time_s)
        if not len(times) or times[0] != 0 or not np.all(np.diff(times) > 0):
            raise InputError(f"Prices: the times are {list(self.time_s)[:8]}; they must ascend from 0 s.")

    @classmethod
    def of_energy(cls, time_s: Sequence[float], energy_cost_per_j: Sequence[float]) -> PriceSeries:
        """Return a series of what joules cost alone, for a budget in money.

        Parameters
        ----------
        time_s : sequence of float
            When each line begins [s].
        energy_cost_per_j : sequence of float
            [money/J].
        """
        nothing = (0.0,) * len(time_s)
        return cls(tuple(time_s), nothing, tuple(energy_cost_per_j), nothing)

    @classmethod
    def by_site(cls, sites: SiteSeries, price: float = 0.0) -> PriceSeries:
        """Return a series of what joules cost at each site, and of one price of a bag.

        Parameters
        ----------
        sites : SiteSeries
            [money/J].
        price : float
            What a bag pays [money].
        """
        mean = float(np.mean([value for series in sites.series for value in series.value]))
        last_until_s = min(math.inf if each.last_until_s is None else each.last_until_s for each in sites.series)
        return cls((0.0,), (price,), (mean,), (0.0,), sites, last_until_s)

    def check_period(self, period_s: float, key: str = "prices_period_s") -> None:
        """Raise `InputError` unless the last line begins before a period [s] is over.

        `key` is the period's name, for the message.
        """
        if self.sites is not None:
            self.sites.check_period(period_s, key)
        if not self.time_s[-1] < period_s:
            raise InputError(
                f"Prices: the last line begins at {self.time_s[-1]:g} s, and the series begins "
                f"again after {period_s:g} s ({key}); make the period longer."
            )

    def begins(self, period_s: float, until_s: float) -> Floats:
        """Return when lines begin, from 0 to `until_s` [s]; entry k is one of line k mod lines.

        Parameters
        ----------
        period_s : float
            After which the first line holds again [s]; infinite if it never does.
        until_s : float

        Raises
        ------
        InputError
            As `begins_of_lines`.
        """
        begins = begins_of_lines(self.time_s, period_s, 0.0, until_s)
        return begins[begins <= until_s]

    def now_and_next(self, period_s: float, now_s: float) -> tuple[int, float]:
        """Return the line that holds at a time, and when the next one begins [s].

        Parameters
        ----------
        period_s : float
            After which the first line holds again [s].
        now_s : float

        Returns
        -------
        line : int
        next_s : float
            Infinite if no line follows.
        """
        reach_s = 0.0 if math.isinf(period_s) else period_s
        begins = begins_of_lines(self.time_s, period_s, max(now_s - reach_s, 0.0), now_s + 2 * reach_s)
        place = int(np.searchsorted(begins, now_s, side="right"))
        following = float(begins[place]) if place < len(begins) else math.inf
        return (place - 1) % len(self.time_s), following

    def mean(self, period_s: float) -> tuple[float, float, float]:
        """Return the means over a period of price, energy cost and price by backlog.

        Of a series that never begins again: over the time until its last line ends, or if that holds for
        ever until it begins, or that line if it is the only one.

        Parameters
        ----------
        period_s : float
            [s].
        """
        end = min(period_s, self.last_until_s)
        end = self.time_s[-1] if math.isinf(end) else end
        lasts = np.diff([*self.time_s, end])
        weights = lasts if lasts.sum() > 0 else np.ones(1)
        columns = (self.price, self.energy_cost_per_j, self.per_waiting_bag)
        price, energy_cost, waiting = (float(np.average(each, weights=weights)) for each in columns)
        return price, energy_cost, waiting

    def end_s(self, period_s: float) -> float:
        """Return until when there are prices [s]; the series begins again after a period [s]."""
        return self.last_until_s if math.isinf(period_s) else math.inf

    def signal(self, period_s: float, platform: Platform) -> Signal:
        """Return what a joule costs at each host [money/J]; the series begins again after a period [s].

        Raises
        ------
        InputError
            If the price at some host is not known.
        """
        if self.sites is None:
            return Signal(self.time_s, self.energy_cost_per_j, period_s, 1.0, MONEY.name, self.end_s(period_s))
        return site_signal(self.sites, platform, period_s, 1.0, MONEY, ("energy price", "the prices", ""))

    def energy_price(self, period_s: float) -> Signal:
        """Return what a joule costs relative to its mean over a period [s]."""
        mean = self.mean(period_s)[1]
        return Signal.relative(self.time_s, self.energy_cost_per_j, period_s, mean, MONEY.name)

    def paid(self, line: ArrayLike, waiting: ArrayLike) -> Floats:
        """Return what a bag pays [money].

        Parameters
        ----------
        line : array_like of int
            The line that holds when it is finished.
        waiting : array_like of int
            Other bags that are unfinished then.
        """
        lines = np.asarray(line, dtype=np.int64)
        price, more = np.array(self.price)[lines], np.array(self.per_waiting_bag)[lines]
        return np.maximum(price + more * np.asarray(waiting), 0.0)
