"""Prices that vary over the day: what a bag pays, what a joule costs and counts in a budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.errors import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Changes of prices that a run may have.
MOST_CHANGES = 1_000_000
#: Stands in tables for a cycle that never ends [s].
_NEVER_S = 1e300
#: Rows of a table of weights.
BEGIN, COUNTED, WEIGHT = 0, 1, 2


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

    Raises
    ------
    InputError
        If the columns differ in length, or the times do not ascend from 0.
    """

    time_s: tuple[float, ...]
    price: tuple[float, ...]
    energy_cost_per_j: tuple[float, ...]
    per_waiting_bag: tuple[float, ...]

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

    def check_period(self, period_s: float, key: str = "prices_period_s") -> None:
        """Raise `InputError` unless the last line begins before a period [s] is over.

        `key` is the period's name, for the message.
        """
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
            If there are more than `MOST_CHANGES`.
        """
        periods = 1 if math.isinf(period_s) else math.floor(until_s / period_s) + 1
        if periods * len(self.time_s) > MOST_CHANGES:
            raise InputError(
                f"Prices change {periods * len(self.time_s):,} times in {until_s:g} s; at most "
                f"{MOST_CHANGES:,} changes are counted."
            )
        return self._between(0, periods, period_s, until_s)

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
        if math.isinf(period_s):
            begins, first = self._between(0, 1, period_s, math.inf), 0
        else:
            first = max(math.floor(now_s / period_s) - 1, 0)
            begins = self._between(first, first + 4, period_s, math.inf)
        place = int(np.searchsorted(begins, now_s, side="right"))
        following = float(begins[place]) if place < len(begins) else math.inf
        return (place - 1) % len(self.time_s), following

    def mean(self, period_s: float) -> tuple[float, float, float]:
        """Return the means over a period of price, energy cost and price by backlog.

        Of a series that never begins again: over the time until its last line, or that line if
        it is the only one.

        Parameters
        ----------
        period_s : float
            [s].
        """
        end = self.time_s[-1] if math.isinf(period_s) else period_s
        lasts = np.diff([*self.time_s, end])
        weights = lasts if lasts.sum() > 0 else np.ones(1)
        columns = (self.price, self.energy_cost_per_j, self.per_waiting_bag)
        price, energy_cost, waiting = (float(np.average(each, weights=weights)) for each in columns)
        return price, energy_cost, waiting

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

    def _between(self, first: int, end: int, period_s: float, until_s: float) -> Floats:
        """Return when lines begin in the periods `first` to ``end - 1``, up to `until_s` [s]."""
        shifts = np.zeros(1) if math.isinf(period_s) else np.arange(first, end) * period_s
        begins: Floats = (shifts[:, None] + np.array(self.time_s)).ravel()
        return begins[begins <= until_s]


@dataclass(frozen=True)
class EnergyWeights:
    """What a joule counts in a budget, by the time at which it is drawn.

    A budget in money is kept in joules at the mean price: a joule counts as its price over the mean
    price. So budgets in joules and in money are one account, and what a scheduler compares with
    energies is in the unit of energies.

    Attributes
    ----------
    begin_s : tuple of float
        When each stretch of one weight begins [s]; the first is 0.
    weight : tuple of float
        What a joule counts in each.
    cycle_s : float
        After which the first stretch comes again [s]; infinite if it never does.
    money_per_j : float or None
        The mean price, that of a joule of weight 1 [money/J]; None where joules are counted.

    Raises
    ------
    InputError
        If the stretches do not ascend from 0 within the cycle, or a weight is not positive.
    """

    begin_s: tuple[float, ...] = (0.0,)
    weight: tuple[float, ...] = (1.0,)
    cycle_s: float = math.inf
    money_per_j: float | None = None

    def __post_init__(self) -> None:
        ends = (*self.begin_s[1:], self.cycle_s)
        ascend = all(begin < end for begin, end in zip(self.begin_s, ends, strict=False))
        if not (
            len(self.weight) == len(self.begin_s) > 0 == self.begin_s[0]
            and ascend
            and all(0.0 < weight < math.inf for weight in self.weight)
        ):
            raise InputError(
                f"Energy weights {self.weight[:8]} from {self.begin_s[:8]} s on: they must be "
                f"positive, one for each time, and the times ascend from 0 to {self.cycle_s:g} s."
            )

    @classmethod
    def of_prices(cls, prices: PriceSeries, cycle_s: float) -> EnergyWeights:
        """Return the weights by the energy costs of a series, which begins again after a time [s].

        Parameters
        ----------
        prices : PriceSeries
        cycle_s : float
        """
        costs = prices.energy_cost_per_j
        kept = [0, *(k for k, (old, new) in enumerate(pairwise(costs), 1) if old != new)]
        if len(kept) == 1:  # no rounding: it is as if joules were counted
            return cls(money_per_j=costs[0])
        mean = prices.mean(cycle_s)[1]
        return cls(tuple(prices.time_s[k] for k in kept), tuple(costs[k] / mean for k in kept), cycle_s, mean)

    @property
    def is_even(self) -> bool:
        """Whether a joule counts 1 at any time."""
        return self.weight == (1.0,)

    @property
    def least(self) -> float:
        """The least weight there is."""
        return min(self.weight)

    @property
    def most(self) -> float:
        """The largest weight there is."""
        return max(self.weight)

    @cached_property
    def table(self) -> Floats:
        """The weights as kernels want them: see `counted_s`; without columns if they are even."""
        if self.is_even:
            return np.empty((3, 0))
        cycle = min(self.cycle_s, _NEVER_S)
        begins = np.array([*self.begin_s, cycle])
        weights = np.array([*self.weight, self.weight[0]])
        counted = np.append(0.0, np.cumsum(weights[:-1] * np.diff(begins)))
        return np.stack([begins, counted, weights])

    def mean(self, start: ArrayLike, length: ArrayLike) -> Any:
        """Return what a joule counts in the mean over some time, drawn at a constant power.

        Parameters
        ----------
        start, length : array_like
            [s]; of no length, or of an infinite one: the weight at its start. What never starts
            counts as from 0 on.

        Returns
        -------
        ndarray of float64, or float
        """
        if self.is_even:
            return 1.0
        start, length = np.asarray(start, dtype=np.float64), np.asarray(length, dtype=np.float64)
        lasts = (length > 0.0) & np.isfinite(length) & np.isfinite(start)
        usable, start = np.where(lasts, length, 1.0), np.where(np.isfinite(start), start, 0.0)
        span = counted_s(start + usable, self.table) - counted_s(start, self.table)
        return np.where(lasts, span / usable, self.at(start))

    def cost_j(self, energy_j: Floats, start: ArrayLike, run_time: ArrayLike) -> Floats:
        """Return what executions count that draw some energies at a constant power each [J].

        Parameters
        ----------
        energy_j : ndarray of float64
            [J]; returned as it is where the weights are even.
        start, run_time : array_like
            [s].
        """
        return energy_j if self.is_even else energy_j * self.mean(start, run_time)

    def at(self, time: ArrayLike) -> Floats:
        """Return what a joule counts at some times [s]."""
        if self.is_even:
            return np.ones(np.shape(time))
        table = self.table
        within = np.asarray(time) % table[BEGIN, -1]
        column = np.searchsorted(table[BEGIN, 1:-1], within, side="right")
        return np.asarray(table[WEIGHT, column])

    def after(self, time: float, counted: float) -> float:
        """Return until when a constant 1 W, from a time on [s], counts so many joules [s].

        Parameters
        ----------
        time : float
        counted : float
            At least 0 [J].
        """
        if self.is_even:
            return time + counted
        table = self.table
        target = float(counted_s(time, table)) + counted
        cycles = math.floor(target / table[COUNTED, -1])
        rest = target - cycles * table[COUNTED, -1]
        column = int(np.searchsorted(table[COUNTED, 1:-1], rest, side="right"))
        within = (rest - table[COUNTED, column]) / table[WEIGHT, column]
        return float(cycles * table[BEGIN, -1] + (table[BEGIN, column] + within))

    def stretches(self, begin: float, end: float) -> tuple[Floats, Floats]:
        """Cut a time into stretches of one weight.

        Parameters
        ----------
        begin, end : float
            [s], finite.

        Returns
        -------
        edges : ndarray of float64, shape (stretches + 1,)
            [s], from `begin` to `end`.
        weights : ndarray of float64, shape (stretches,)
        """
        changes = np.empty(0)
        if not self.is_even:
            cycle = self.table[BEGIN, -1]
            first, last = math.floor(begin / cycle), math.floor(end / cycle)
            shifts = cycle * np.arange(first, last + 1)
            changes = (shifts[:, None] + np.array(self.begin_s)).ravel()
        inner = changes[(changes > begin) & (changes < end)]
        edges = np.concatenate([[begin], inner, [end]])
        return edges, self.at(np.concatenate([[begin], inner]))


def counted_s(time: Any, table: Floats) -> Any:
    """Return what a constant 1 W counts from 0 to a time [J]; compiled for kernels, too.

    Parameters
    ----------
    time : float or ndarray of float64
        [s].
    table : ndarray of float64, shape (3, stretches + 1)
        When each stretch begins [s], what 1 W counts until then [J], and the weight in it. The last
        column is the end of the cycle, after which the first stretch comes again.
    """
    cycles = np.floor(time / table[BEGIN, -1])
    within = time - cycles * table[BEGIN, -1]
    column = np.searchsorted(table[BEGIN, 1:-1], within, side="right")
    so_far = table[COUNTED, column] + table[WEIGHT, column] * (within - table[BEGIN, column])
    return cycles * table[COUNTED, -1] + so_far


#: Joules count as they are.
EVEN = EnergyWeights()
