"""Plans from linear programs, made once for the whole bag (paper 003)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from gridsched.arrays import Integers
from gridsched.model.system import System
from gridsched.model.tariff import Tariff
from gridsched.optimize.grouped_bag import GroupedBag, grouped_bag
from gridsched.optimize.pareto_front import exact_front, least_energy, weighted_point
from gridsched.optimize.recovery import recover
from gridsched.optimize.typed_bag import BagPlan, TypedBag
from gridsched.policy.base import Scheduler, Traits, TraitsWith, check_choice, check_number
from gridsched.policy.decisions import Decision, Drop, Plan, PowerOff
from gridsched.policy.state import State
from gridsched.schedulers.weighing import mean_weights, signals_of_groups, weighing_signal
from gridsched.systems.profit.profit_lp import most_profit

#: Price over the cost of the least energy if the bag's price is not given: near the knee of
#: the front (paper 003, V-B).
DEFAULT_GAMMA = 1.2
#: Corners of a front that are looked at; one of more is cut evenly.
MOST_CORNERS = 1000


def priced(bag: TypedBag, tariff: Tariff | None, gamma: float | None = None) -> Tariff:
    """Return the prices that profits use: the given ones, or `gamma` times the least energy."""
    if tariff is not None and gamma is None:
        return tariff
    factor = DEFAULT_GAMMA if gamma is None else gamma
    return (tariff or Tariff(price=0.0)).priced(factor, least_energy(bag).energy_j)


def _check_range(owner: str, name: str, value: object, least: float, most: float) -> None:
    """Raise `InputError` unless parameter `name` of `owner` is a number in a range."""
    legal = f"a number from {least:g} to {most:g}"
    check_number(owner, name, value, lambda number: least <= number <= most, legal)


def _check_gamma(owner: str, gamma: object) -> None:
    """Raise `InputError` unless parameter `gamma` of `owner` is a factor, or not given."""
    if gamma is not None:
        _check_range(owner, "gamma", gamma, 0.0, 1e9)


def possible_tasks(state: State, hosts: Integers, pstates: Integers) -> Integers:
    """Return the mappable tasks that can run on some of the hosts.

    Parameters
    ----------
    state : State
    hosts : ndarray of int64
    pstates : ndarray of int64, shape (hosts,)
        Of each of them.
    """
    waiting = np.array(state.mappable, dtype=np.int64)
    if not len(waiting) or not len(hosts):
        return waiting[:0]
    possible = np.isfinite(state.estimates.etc(waiting, hosts, pstates))
    return waiting[possible.any(axis=1)]


class _PlannedOnce(Scheduler):
    """Base of policies that divide the bag by a linear program, round it and place it by LPT."""

    #: Among equal optima the solver's choice depends on the order of the machine types.
    traits = TraitsWith(
        Traits(trigger="start", may_drop=True, platform_order_matters=True, by_types=True),
        "power_off_unused",
        powers_hosts=True,
    )
    power_off_unused: bool
    #: What an energy is in the program: see `gridsched.schedulers.weighing`.
    weigh: str = "energy"

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters.

        Raises
        ------
        InputError
            If one is out of range.
        """
        self._check()
        check_choice(type(self).__name__, "power_off_unused", self.power_off_unused, (True, False))
        self.weights_ = weighing_signal(type(self).__name__, self.weigh, system)
        self.system_ = system

    def schedule(self, state: State) -> Iterable[Decision]:
        """Plan every waiting task; what cannot run on any host that is on is left."""
        system, hosts = self.system_, np.flatnonzero(state.is_on)
        pstates = system.pstates[hosts]
        waiting = possible_tasks(state, hosts, pstates)
        if not len(waiting):
            return []
        sites = np.array(self.weights_.site, dtype=np.int64)[hosts] if self.weights_.sites else 0
        grouped = grouped_bag(system.platform, state.estimates, state.tasks, waiting, hosts, pstates, sites)
        divided = self._weighed(grouped, state.now)
        if not divided.runs:
            return [Drop(task) for task in waiting.tolist()]
        tasks, planned = grouped.placed(recover(grouped.bag, divided.x))
        plan = Plan(tasks, planned, system.pstates[planned])
        unused = np.setdiff1d(hosts, planned).tolist() if self.power_off_unused else []
        return [plan, *(PowerOff(host) for host in unused)]

    def _weighed(self, grouped: GroupedBag, now: float) -> BagPlan:
        """Solve the program; by request of `weigh`, by the weights of joules while such a plan lasts."""
        tariff = grouped.tariff(self.system_.tariff)
        if self.weights_.is_even:
            return self.divided(grouped.bag, tariff)
        tariff = None if tariff is None else tariff.mean()
        plan = self.divided(grouped.bag, tariff)
        signals = signals_of_groups(self.weights_, grouped.machines)
        weights = mean_weights(signals, now, plan.makespan_s if plan.runs else 0.0)
        bag = replace(grouped.bag, apc=grouped.bag.apc * weights, idle_w=grouped.bag.idle_w * weights)
        return self.divided(bag, tariff)

    @abstractmethod
    def _check(self) -> None:
        """Raise `InputError` where a parameter is out of range."""

    @abstractmethod
    def divided(self, bag: TypedBag, tariff: Tariff | None) -> BagPlan:
        """Solve the program of a bag; `tariff` contains the scenario's prices and costs."""


class LPMaxProfit(_PlannedOnce):
    """The largest profit per second if such bags follow each other (program (10) of [1]_).

    Tasks are divided among machine types by the program, rounded, and placed on machines
    longest first. If processing the bag loses more than standing still, all tasks are dropped.

    Parameters
    ----------
    gamma : float, optional
        Price of the bag over the cost of the least energy that can process it. By default the
        tariff of the scenario sets the price; 1.2 if there is none.
    power_cap_w : float, optional
        Largest mean power drawn from the grid, PUE included [W]; default none.
    least_rate_per_s : float
        Bags per second that have been promised.
    power_off_unused : bool
        Switch off at once every host that gets no task. The program does not know it: it counts
        all machines as on.
    weigh : {"energy", "money", "carbon"}
        Joules count as such, or by what they cost or emit at each site on average over the time that
        the plan lasts which weighs them all alike (beyond the paper). Powers are weighed relative
        to their mean, under a cap, too.

    References
    ----------
    .. [1] K. M. Tarplee, A. A. Maciejewski, H. J. Siegel, "Energy-aware profit maximizing
       scheduling algorithm for heterogeneous computing systems", CCGrid 2014.
    """

    def __init__(
        self,
        gamma: float | None = None,
        power_cap_w: float | None = None,
        least_rate_per_s: float = 0.0,
        power_off_unused: bool = False,
        weigh: str = "energy",
    ) -> None:
        self.gamma = gamma
        self.power_cap_w = power_cap_w
        self.least_rate_per_s = least_rate_per_s
        self.power_off_unused = power_off_unused
        self.weigh = weigh

    def _check(self) -> None:
        _check_gamma("lp_max_profit", self.gamma)
        if self.power_cap_w is not None:
            _check_range("lp_max_profit", "power_cap_w", self.power_cap_w, 1e-9, 1e30)
        _check_range("lp_max_profit", "least_rate_per_s", self.least_rate_per_s, 0.0, 1e30)

    def divided(self, bag: TypedBag, tariff: Tariff | None) -> BagPlan:
        """Solve program (10)."""
        self._check()
        return most_profit(
            bag,
            priced(bag, tariff, self.gamma),
            power_cap_w=np.inf if self.power_cap_w is None else self.power_cap_w,
            least_rate_per_s=self.least_rate_per_s,
        )


class LPPareto(_PlannedOnce):
    """A point of the front of energy against makespan of divided tasks (program (5) of [1]_).

    Parameters
    ----------
    energy_weight : float
        Weight alpha of the energy: what is minimized is ``alpha E / E_min + (1 - alpha) MS /
        MS_min``. 0 is the least energy of the shortest, 1 the shortest of the least energy.
    power_off_unused : bool
        Switch off at once every host that gets no task. The program does not know it: it counts
        all machines as on.

    References
    ----------
    .. [1] K. M. Tarplee, A. A. Maciejewski, H. J. Siegel, "Energy-aware profit maximizing
       scheduling algorithm for heterogeneous computing systems", CCGrid 2014.
    """

    def __init__(self, energy_weight: float = 0.5, power_off_unused: bool = False) -> None:
        self.energy_weight = energy_weight
        self.power_off_unused = power_off_unused

    def _check(self) -> None:
        _check_range("lp_pareto", "energy_weight", self.energy_weight, 0.0, 1.0)

    def divided(self, bag: TypedBag, tariff: Tariff | None) -> BagPlan:
        """Solve program (5) with the weight of the energy."""
        self._check()
        return weighted_point(bag, self.energy_weight).under(tariff)


class LPParetoProfit(_PlannedOnce):
    """The point of the front of energy against makespan that earns most per second (IV of [1]_).

    The front of divided tasks (program (5)) is walked, and of its corners the one is taken whose
    bag earns most per second. At a price above the cost of the least energy that is the optimum of
    `lp_max_profit`; below it, where idle machines cost as well, the least loss is not a point of the
    front (section V-C).

    Parameters
    ----------
    gamma : float, optional
        Price of the bag over the cost of the least energy that can process it. By default the
        tariff of the scenario sets the price; 1.2 if there is none.
    power_off_unused : bool
        Switch off at once every host that gets no task. The program does not know it: it counts
        all machines as on.

    References
    ----------
    .. [1] K. M. Tarplee, A. A. Maciejewski, H. J. Siegel, "Energy-aware profit maximizing
       scheduling algorithm for heterogeneous computing systems", CCGrid 2014.
    """

    def __init__(self, gamma: float | None = None, power_off_unused: bool = False) -> None:
        self.gamma = gamma
        self.power_off_unused = power_off_unused

    def _check(self) -> None:
        _check_gamma("lp_pareto_profit", self.gamma)

    def divided(self, bag: TypedBag, tariff: Tariff | None) -> BagPlan:
        """Walk the front; between its corners no point earns more than at one of them."""
        self._check()
        counted = priced(bag, tariff, self.gamma)
        points = exact_front(bag, MOST_CORNERS).points
        best = max(points, key=lambda point: point.profit_rate_under(counted))
        return best.under(counted)
