"""The program of the largest profit rate, solved again whenever something has changed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np

from gridsched.arrays import Integers, distinct
from gridsched.errors import InputError
from gridsched.model.prices import PriceSeries
from gridsched.model.system import System
from gridsched.model.tariff import Tariff
from gridsched.optimize.grouped_bag import GroupedBag, grouped_bag
from gridsched.optimize.recovery import recover
from gridsched.policy.base import Scheduler, Traits, check_choice
from gridsched.policy.decisions import Assign, Decision, Drop, Plan, WakeAt
from gridsched.policy.state import State
from gridsched.systems.profit.linear_programmes import possible_tasks, priced
from gridsched.systems.profit.profit_lp import ProfitPlan, most_profit


class LPRolling(Scheduler):
    """The largest profit rate of all that waits, for bags that arrive and prices that vary.

    The program (10) of [1]_ is solved whenever tasks are submitted and, with `replan`, whenever
    a price changes. Its bag is every task that has not started; it pays each of their bags' prices
    as far as its tasks still wait. Tasks are divided among machine types, rounded, and placed
    longest first behind what the machines still execute. While no way of running them earns more
    than standing still, nothing starts until the next change. Tasks that would pay at no price
    that is known are dropped, once no others are to come.

    Parameters
    ----------
    replan : bool
        Plan waiting tasks again at every change; otherwise each task is planned once, as soon as
        it pays.
    prices : {"now", "mean"}
        Use the prices of the moment, or their means over a period.

    Notes
    -----
    Our own use of the program, not the paper's, where one bag follows the other at once: it finds
    the best rate for the moment, not the best moment. Tasks submitted in one instant are a bag; a
    part of a bag is worth the share of its price that its number of tasks has.

    References
    ----------
    .. [1] K. M. Tarplee, A. A. Maciejewski, H. J. Siegel, "Energy-aware profit maximizing
       scheduling algorithm for heterogeneous computing systems", CCGrid 2014.
    """

    #: Among equal optima the solver's choice depends on the order of the machine types.
    traits: ClassVar[Traits] = Traits(
        trigger="event", may_drop=True, platform_order_matters=True, by_types=True, one_core=True
    )

    def __init__(self, replan: bool = True, prices: str = "now") -> None:
        self.replan = replan
        self.prices = prices

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters and forget the last run.

        Raises
        ------
        InputError
            If a parameter is out of range.
        """
        check_choice("lp_rolling", "replan", self.replan, (True, False))
        check_choice("lp_rolling", "prices", self.prices, ("now", "mean"))
        tariff = system.tariff
        if tariff is not None and isinstance(tariff.prices, PriceSeries) and tariff.prices.sites is not None:
            raise InputError(
                "lp_rolling uses one energy price at a time, and these differ by site; give prices without the "
                "column host, or take lp_max_profit with weigh=money."
            )
        self.system_ = system
        self.known_: tuple[int, bytes] = 0, b""
        self.change_s_ = -math.inf
        self.stands_still_ = False
        self.may_be_put_off_ = False
        self.wakes_ = system.rules.mapping_interval_s is None

    def schedule(self, state: State) -> Iterable[Decision]:
        """Plan what waits if anything has changed since it was planned."""
        free = len(state.tasks) - len(state.blocked), state.is_on.tobytes()
        before, self.may_be_put_off_ = self.may_be_put_off_, self._may_be_put_off(state)
        if (
            free == self.known_
            and state.now < self.change_s_
            # what a budget puts off waits again later, and no submission or price announces this
            and not (before or self.may_be_put_off_)
            # the price by backlog changes, too; it is looked at again when all else has finished
            and not (self.stands_still_ and not len(state.running))
        ):
            return []
        self.known_ = free
        return list(self._decided(state))

    def _may_be_put_off(self, state: State) -> bool:
        """Whether the period's budget may not admit all that waits, wherever it runs."""
        energy, waiting, hosts = state.energy, state.mappable, np.flatnonzero(state.is_on)
        if energy.budget_j == math.inf or not len(waiting) or not len(hosts):
            return False
        pairs = waiting, hosts, self.system_.pstates[hosts]
        most_j, most_s = (
            float(np.where(np.isfinite(each), each, 0.0).max(axis=1).sum())
            for each in (state.estimates.eec(*pairs), state.estimates.etc(*pairs))
        )
        ready = state.ready_time
        last_s = float(ready.max(initial=state.now, where=np.isfinite(ready))) + most_s
        return most_j * energy.weights.most > energy.remaining_j or last_s >= energy.period_end

    def _decided(self, state: State) -> Iterator[Decision]:
        changed = state.now >= self.change_s_
        bags = Backlog(state)
        tariff, self.change_s_ = self._tariff(state.now, bags.others)
        if changed and self.wakes_ and self.change_s_ < math.inf:
            yield WakeAt(self.change_s_)
        hosts = np.flatnonzero(state.is_on)
        pstates = self.system_.pstates[hosts]
        waiting = possible_tasks(state, hosts, pstates)
        self.stands_still_ = False
        if not len(waiting):
            return
        grouped = grouped_bag(self.system_.platform, state.estimates, state.tasks, waiting, hosts, pstates)
        plan = self._planned(grouped, tariff, bags.share(waiting))
        if plan.runs:
            yield from self._placed(grouped, plan, state)
            return
        self.stands_still_ = True
        is_over = not state.tasks_to_arrive and not len(state.running)
        if is_over and self._pays_never(grouped, bags, waiting, state.now):
            yield from (Drop(task) for task in waiting.tolist())
        elif self.replan:
            yield Plan(waiting[:0], waiting[:0], waiting[:0])

    def _tariff(self, now: float, others: int) -> tuple[Tariff | None, float]:
        """Return the tariff to use, and when another one holds [s]."""
        told = self.system_.tariff
        if told is None:
            return None, math.inf
        tariff, change_s = told.now_and_next(now, others)
        return (tariff, change_s) if self.prices == "now" else (told.mean(others), math.inf)

    def _planned(self, grouped: GroupedBag, tariff: Tariff | None, share: float) -> ProfitPlan:
        """Solve the program of what waits; it is `share` bags."""
        bag, tariff = grouped.bag, grouped.tariff(tariff)
        if tariff is None:
            return most_profit(bag, priced(bag, None))
        return most_profit(bag, replace(tariff, price=tariff.price * share, overhead=tariff.overhead * share))

    def _pays_never(self, grouped: GroupedBag, bags: Backlog, waiting: Integers, now: float) -> bool:
        """Whether what waits pays at none of the prices that are known."""
        tariff = self.system_.tariff
        if self.prices == "mean" or tariff is None or not isinstance(tariff.prices, PriceSeries):
            return True
        share = bags.share(waiting)
        tariffs = (tariff.of_line(line, bags.others) for line in tariff.lines_from(now))
        return not any(self._planned(grouped, each, share).runs for each in tariffs)

    def _placed(self, grouped: GroupedBag, plan: ProfitPlan, state: State) -> Iterator[Decision]:
        """Place the plan's tasks behind what is already there."""
        ready = grouped.ready_s(state.core_ready_time - state.now)
        tasks, hosts = grouped.placed(recover(grouped.bag, plan.x, ready))
        # each host is as long at work in any order; a bag pays when its last task is done
        older_first = np.lexsort((state.tasks.submit_time_s[tasks], hosts))
        tasks, hosts = tasks[older_first], hosts[older_first]
        pstates = self.system_.pstates[hosts]
        if self.replan:
            yield Plan(tasks, hosts, pstates)
        else:
            places = zip(tasks.tolist(), hosts.tolist(), pstates.tolist(), strict=True)
            yield from (Assign(*place) for place in places)


class Backlog:
    """What is unfinished of the bags that have been submitted; one submission time is one bag.

    Parameters
    ----------
    state : State

    Attributes
    ----------
    others : int
        Unfinished bags but one: with so many others each of them shares its price.
    """

    def __init__(self, state: State) -> None:
        tasks = state.tasks
        _, self._bag = np.unique(tasks.submit_time_s, return_inverse=True)
        self._size = np.bincount(self._bag)
        unfinished = np.concatenate([state.mappable, state.blocked, state.queue_tasks, state.running["task"]])
        self.others = max(len(distinct(self._bag[unfinished])) - 1, 0)

    def share(self, tasks: Integers) -> float:
        """Return how many bags some tasks are, each a share of its own."""
        return float((1.0 / self._size[self._bag[tasks]]).sum())
