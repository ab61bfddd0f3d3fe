"""What a joule weighs, by the time and the place at which it is drawn, and in what unit.

Prices and the carbon intensity of power are such signals; joules that count as they are, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.errors import InputError

#: Changes of a signal that a run may have.
MOST_CHANGES = 1_000_000
J_PER_KWH = 3.6e6
#: In tables, the length of a cycle that never ends [s].
_NEVER_S = 1e300
#: Rows of a table of weights.
BEGIN, COUNTED, WEIGHT = 0, 1, 2


@dataclass(frozen=True)
class Unit:
    """The unit in which joules are counted, and the names of everything that uses it.

    Attributes
    ----------
    name : str
        In files.
    words : str
        Behind an amount, in messages.
    budget : str
        Field of `EnergyBudget` that holds a budget in it.
    excess : str
        Metric of the amount by which one was exceeded.
    """

    name: str
    words: str
    budget: str
    excess: str


JOULES = Unit("j", "J", "energy_j", "budget_excess_j")
MONEY = Unit("money", "of money", "money", "money_excess")
CARBON = Unit("g", "g", "carbon_g", "carbon_excess_g")
#: By name, in the order of the features that use them.
UNITS = {each.name: each for each in (JOULES, MONEY, CARBON)}


@dataclass(frozen=True)
class Signal:
    """What a joule weighs, by the time and the place at which it is drawn.

    A budget in money is kept in joules at the mean price: a joule weighs its price over the mean
    price. So budgets in any unit are one account, and what a scheduler compares with energies is
    in the unit of energies.

    Attributes
    ----------
    begin_s : tuple of float
        When each stretch of one weight begins [s]; the first is 0.
    weight : tuple of float
        What a joule weighs in each.
    cycle_s : float
        After which the first stretch comes again [s]; infinite if it never does.
    per_j : float or None
        What a joule of weight 1 is in the unit, such as the mean price [money/J]; None where
        joules are counted.
    unit : str
        Name of the `Unit`.
    end_s : float
        End of its last interval [s].
    sites : tuple of Signal
        Of sites that differ; the signal itself is then the mean over the computing hosts.
    site : tuple of int
        Which of them each host has: the computing hosts, then the others; -1 where it is unknown.

    Raises
    ------
    InputError
        If the stretches do not ascend from 0 within the cycle, or a weight is negative.
    """

    begin_s: tuple[float, ...] = (0.0,)
    weight: tuple[float, ...] = (1.0,)
    cycle_s: float = math.inf
    per_j: float | None = None
    unit: str = JOULES.name
    end_s: float = math.inf
    sites: tuple[Signal, ...] = ()
    site: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        ends = (*self.begin_s[1:], self.cycle_s)
        ascend = all(begin < end for begin, end in zip(self.begin_s, ends, strict=False))
        if not (
            self.unit in UNITS
            and len(self.weight) == len(self.begin_s) > 0 == self.begin_s[0]
            and ascend
            and all(0.0 <= weight < math.inf for weight in self.weight)
            and all(-1 <= site < len(self.sites) for site in self.site)
        ):
            raise InputError(
                f"Energy weights {self.weight[:8]} from {self.begin_s[:8]} s on: they must be "
                f"at least 0, one for each time, and the times ascend from 0 to {self.cycle_s:g} s."
            )

    @classmethod
    def relative(cls, begin_s: Sequence[float], per_j: Sequence[float], cycle_s: float, mean: float, unit: str) -> Self:
        """Return the weights by what a joule is in a unit, relative to its mean over a cycle.

        Parameters
        ----------
        begin_s, per_j : sequence of float
            From when on [s] it is how much.
        cycle_s : float
            After which the first holds again [s].
        mean : float
            Of `per_j` over a cycle.
        unit : str
        """
        kept = [0, *(k for k, (old, new) in enumerate(pairwise(per_j), 1) if old != new)]
        if len(kept) == 1:  # no rounding: it is as if joules were counted
            return cls(per_j=per_j[0], unit=unit)
        return cls(tuple(begin_s[k] for k in kept), tuple(per_j[k] / mean for k in kept), cycle_s, mean, unit)

    def at_host(self, host: int) -> Signal:
        """Return the signal of a computing host."""
        return self.sites[self.site[host]] if self.sites else self

    def by_site(self, hosts: Integers) -> list[tuple[Signal, Booleans | bool]]:
        """Return the signal of each site, and which of some hosts are there; all, without sites."""
        if not self.sites:
            return [(self, True)]
        site = np.array(self.site)[hosts]
        return [(each, site == k) for k, each in enumerate(self.sites)]

    def of_power(self, watts: Floats) -> Signal:
        """Return what a joule weighs on average over all hosts that draw some powers [W]."""
        if not self.sites or not watts.sum() > 0:
            return self
        begin_s = np.unique(np.concatenate([each.begin_s for each in self.sites]))
        parts = [watts[rows].sum() * each.at(begin_s) for each, rows in self.by_site(np.arange(len(watts)))]
        weight = tuple((np.sum(parts, axis=0) / watts.sum()).tolist())
        return replace(self, begin_s=tuple(begin_s.tolist()), weight=weight, sites=(), site=())

    def of_hosts(self, hosts: Integers) -> Signal:
        """Return what a joule weighs on average over some computing hosts."""
        if not self.sites:
            return self
        shares = np.zeros(len(self.site))
        shares[hosts] = 1.0
        return self.of_power(shares)

    def later(self, time: float) -> Signal:
        """Return the signal as it is from a time on [s], which becomes 0."""
        if self.is_even or time <= 0:
            return self
        end = time + self.cycle_s if math.isfinite(self.cycle_s) else max(self.begin_s[-1], time) + 1.0
        edges, weight = self.stretches(time, end)
        sites = tuple(each.later(time) for each in self.sites)
        begin_s = tuple((edges[:-1] - time).tolist())
        return replace(self, begin_s=begin_s, weight=tuple(weight.tolist()), end_s=self.end_s - time, sites=sites)

    def normalised(self) -> Signal:
        """Return the signal with weights relative to their mean over a cycle, or over its intervals."""
        if len(self.weight) == 1 and not self.sites:
            return replace(self, weight=(1.0,), per_j=self.weight[0])
        end_s = self.cycle_s if math.isfinite(self.cycle_s) else self.end_s
        end_s = end_s if math.isfinite(end_s) else self.begin_s[-1]
        mean = float(np.average(self.weight, weights=np.diff([*self.begin_s, end_s]))) if end_s > 0 else self.weight[0]

        def over_mean(each: Signal) -> Signal:
            return replace(each, weight=tuple(weight / mean for weight in each.weight), per_j=mean)

        return replace(over_mean(self), sites=tuple(map(over_mean, self.sites)))

    def mean_at_host(self, host: int, start: float, length: float) -> float:
        """Return what `mean` does at one host; nan where it is unknown."""
        site = self.site[host] if self.sites else 0
        return math.nan if site < 0 else float((self.sites or (self,))[site].mean(start, length))

    def at_hosts(self, hosts: Integers, start: ArrayLike, length: ArrayLike) -> Any:
        """Return what `mean` does, each at its own computing host."""
        if not self.sites:
            return self.mean(start, length)
        site = np.array(self.site)[hosts]
        start, length = np.broadcast_to(start, site.shape), np.broadcast_to(length, site.shape)
        weights = np.empty(len(site))
        for k in np.unique(site).tolist():
            of_site = site == k
            weights[of_site] = self.sites[k].mean(start[of_site], length[of_site])
        return weights

    def amount(self, counted_j: float) -> float:
        """Return what counts so many joules [J] in the unit."""
        return counted_j if self.per_j is None else counted_j * self.per_j

    def words(self, counted_j: float) -> str:
        """Return what counts so many joules [J] in the unit, in words."""
        return f"{self.amount(counted_j):.6g} {UNITS[self.unit].words}"

    @property
    def is_even(self) -> bool:
        """Whether a joule counts 1 at any time."""
        return self.weight == (1.0,) and not self.sites

    @property
    def least(self) -> float:
        """The least weight there is."""
        return min(min(each.weight) for each in self.sites or (self,))

    @property
    def most(self) -> float:
        """The largest weight there is."""
        return max(max(each.weight) for each in self.sites or (self,))

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
        """Return what a joule counts on average over some time, drawn at a constant power.

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
            changes = begins_of_lines(self.begin_s, self.cycle_s, begin, end)
        inner = changes[(changes > begin) & (changes < end)]
        edges = np.concatenate([[begin], inner, [end]])
        return edges, self.at(np.concatenate([[begin], inner]))


def as_written_today(value: Any) -> Any:
    """Return a signal as JSON has it today, where an older archive holds prices."""
    if not isinstance(value, dict) or "money_per_j" not in value:
        return value
    price = value["money_per_j"]
    others = {name: each for name, each in value.items() if name != "money_per_j"}
    return {**others, "per_j": price, "unit": JOULES.name if price is None else MONEY.name}


def begins_of_lines(begin_s: Sequence[float], cycle_s: float, begin: float, end: float) -> Floats:
    """Return when the lines of a table begin, in all cycles that some time has a part of [s].

    Parameters
    ----------
    begin_s : sequence of float
        When each line begins in the first cycle [s]; ascending from 0.
    cycle_s : float
        After which the first line holds again [s]; infinite if it never does.
    begin, end : float
        The time [s].

    Raises
    ------
    InputError
        If there are more than `MOST_CHANGES`.
    """
    cycle = min(cycle_s, _NEVER_S)
    first, last = math.floor(begin / cycle), math.floor(end / cycle)
    if (changes := (last - first + 1) * len(begin_s)) > MOST_CHANGES:
        raise InputError(
            f"Prices or intensities change {float(changes):,.6g} times in {end - begin:g} s; at most {MOST_CHANGES:,} "
            "changes are counted."
        )
    cycles = np.arange(first, last + 1)
    return np.asarray((cycle * cycles[:, None] + np.array(begin_s)).ravel())


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
EVEN = Signal()
