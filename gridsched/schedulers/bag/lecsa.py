"""LECSA: low energy consumption scheduling algorithm (paper 004)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np

from gridsched.arrays import Floats, Integers, distinct
from gridsched.errors import InputError
from gridsched.model.limits import SMALLEST
from gridsched.model.system import System
from gridsched.policy.base import Scheduler, Traits, check_choice, check_number
from gridsched.policy.decisions import Assign, Decision, PowerOff
from gridsched.policy.state import State
from gridsched.schedulers.weighing import weighing_signal

#: Upper end of each step of heterogeneity and the share of hosts it selects (algorithms A6.3).
SHARE_STEPS = ((1e-9, 0.20), (0.25, 0.40), (0.50, 0.60), (0.75, 0.80), (math.inf, 1.00))
SHARE_RULES = ("value", "levels", "range", "count")


def share_for(heterogeneity: float) -> float:
    """Return the share p of the hosts for tasks of the given heterogeneity (algorithms A6.3)."""
    return next(share for limit, share in SHARE_STEPS if heterogeneity <= limit)


def select_hosts(efficiency: Floats, share: float, rule: str) -> Integers:
    """Return the most energy-efficient hosts, by efficiency descending, then id.

    Parameters
    ----------
    efficiency : ndarray, shape (hosts,)
        Efficiency [flop/J], greater than 0.
    share : float
        The p of "efficiency values among the top p", in (0, 1].
    rule : {"value", "levels", "range", "count"}
        At least ``(1 - p) max``; among the top ``ceil(p L)`` of L distinct values; at least
        ``max - p (max - min)``; or the ``ceil(p N)`` best hosts.

    References
    ----------
    .. [1] LECSA paper (004), section 3.3; algorithms A6.4.
    """
    order = np.lexsort((np.arange(len(efficiency)), -efficiency))
    ranked = efficiency[order]
    if rule == "count":
        # 1e-9: in binary 0.07 * 100 is a little more than 7
        return order[: max(1, math.ceil(share * len(ranked) - 1e-9))]
    if rule == "levels":
        levels = distinct(ranked)[::-1]
        least = levels[max(1, math.ceil(share * len(levels) - 1e-9)) - 1]
    elif rule == "value":
        least = (1.0 - share) * ranked[0] * (1.0 - 1e-9)
    else:
        least = (ranked[0] - share * (ranked[0] - ranked[-1])) * (1.0 - 1e-9)
    return order[ranked >= least]


class LECSA(Scheduler):
    """Deal the tasks out, largest first, in rounds over the most energy-efficient hosts.

    Parameters
    ----------
    share_rule : {"value", "levels", "range", "count"}
        Meaning of "efficiency values among the top p"; see `select_hosts`.
    leftover : {"round", "first"}
        The last, incomplete round continues the dealing; or all its tasks go to the most
        efficient host.
    switch_off : {"unused+done", "unused", "none"}
        Switch off hosts that get no task, at once, and the others as soon as their list is done;
        the former only; or none. Nothing is switched off while tasks are still to arrive, or wait for
        others.
    few_tasks_share : float
        Share p where there are fewer tasks than hosts, in (0, 1].
    weigh : {"energy", "money", "carbon"}
        Efficiency is work by joule, or by what a joule costs or emits at the host at the moment
        (beyond the paper).

    Notes
    -----
    All tasks waiting at an event are one bag. 1. Tasks by size descending, hosts by efficiency
    descending, then by id. 2. Share p: `few_tasks_share` for fewer tasks than hosts, else 0.20,
    0.40, 0.60, 0.80 or 1.00 for a heterogeneity of 0, up to 0.25, 0.50, 0.75, or more. 3. Select
    hosts by p. 4. Deal the tasks out in rounds, one for each selected host and round. Where a
    selected host cannot run a task the next one takes it (then the best host that can).

    References
    ----------
    .. [1] LECSA paper (004), section 3.3.
    """

    traits: ClassVar[Traits] = Traits(trigger="event", powers_hosts=True)

    def __init__(
        self,
        share_rule: str = "value",
        leftover: str = "round",
        switch_off: str = "unused+done",
        few_tasks_share: float = 0.30,
        weigh: str = "energy",
    ) -> None:
        self.share_rule = share_rule
        self.leftover = leftover
        self.switch_off = switch_off
        self.few_tasks_share = few_tasks_share
        self.weigh = weigh

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters and that every host has power figures.

        Raises
        ------
        InputError
            Naming the parameter, or the host without power figures.
        """
        check_choice("lecsa", "share_rule", self.share_rule, SHARE_RULES)
        check_choice("lecsa", "leftover", self.leftover, ("round", "first"))
        check_choice("lecsa", "switch_off", self.switch_off, ("unused+done", "unused", "none"))
        check_number("lecsa", "few_tasks_share", self.few_tasks_share, lambda x: 0 < x <= 1, "in (0, 1]")
        self.weights_ = weighing_signal("lecsa", self.weigh, system)
        for h, host in enumerate(system.platform.hosts):
            if not 0 < system.efficiency[h] < math.inf:
                raise InputError(
                    f"lecsa ranks hosts by energy efficiency, but host {host.name!r} of "
                    f"{system.platform.name} has no power figure (wattage_per_state) in P-state "
                    f"{system.pstates[h]}. Give it one (--power), or choose another scheduler."
                )
        self.system_ = system
        self.used_: set[int] = set()

    def schedule(self, state: State) -> Iterable[Decision]:
        """Assign what waits and switch off hosts that are not needed any more."""
        waiting, is_on = state.mappable, state.is_on
        dealt: list[Assign] = []
        if len(waiting) and is_on.any():
            dealt += self._deal(state, waiting, np.flatnonzero(is_on))
        decisions: list[Decision] = [*dealt]
        busy = {decision.host for decision in dealt}
        self.used_ |= busy
        if state.tasks_to_arrive == 0 and not len(state.blocked) and self.switch_off != "none":
            idle = np.isfinite(state.idle_since) & (state.queue_length == 0)
            keep = busy if self.switch_off == "unused+done" else self.used_
            decisions += [PowerOff(host) for host in np.flatnonzero(idle).tolist() if host not in keep]
        return decisions

    def _deal(self, state: State, waiting: Integers, hosts: Integers) -> Iterator[Assign]:
        flops = state.tasks.flops[waiting]
        few = len(waiting) < len(hosts)
        share = self.few_tasks_share if few else share_for(state.tasks.heterogeneity)
        efficiency = self.system_.efficiency[hosts]
        if not self.weights_.is_even:
            efficiency = efficiency / np.maximum(self.weights_.at_hosts(hosts, state.now, 0.0), SMALLEST)
        selected = hosts[select_hosts(efficiency, share, self.share_rule)].tolist()
        ranked = hosts[select_hosts(efficiency, 1.0, "count")].tolist()
        k = len(selected)
        whole_rounds = len(waiting) // k * k
        run_time, pstates = state.estimates.run_time, self.system_.pstates.tolist()
        order = waiting[np.lexsort((waiting, -flops))].tolist()
        for place, task in enumerate(order):
            first = 0 if self.leftover == "first" and place >= whole_rounds else place % k
            for host in selected[first:] + selected[:first] + ranked:
                if run_time(task, host, pstates[host]) < math.inf:
                    yield Assign(task, host)
                    break
