"""Bags of tasks at the sites where they cause least carbon."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gridsched.arrays import Integers
from gridsched.model.signals import Signal
from gridsched.model.system import System
from gridsched.policy.base import Scheduler, Traits, check_number
from gridsched.policy.decisions import Assign, Decision
from gridsched.policy.state import State
from gridsched.schedulers.green import Forecast


@dataclass(frozen=True)
class _Placement:
    """A host for each task, in the order in which they are given out, when the last ends [s], and grams."""

    tasks: Integers
    hosts: Integers
    end: float
    grams: float


class FollowSites(Scheduler):
    """Place what waits at the sites that emit least, if that takes not much longer than all sites do.

    Parameters
    ----------
    within : float
        How many times as long as at all sites a bag may take, at least 1.
    forecast : {"perfect", "persistence", "table"}
        What is expected of the intensity; as for `WaitForGreen`.

    Notes
    -----
    A site is all hosts of one carbon intensity. Tasks that wait at an event are one bag: the
    longest first, each goes to the core on which it ends first (list scheduling). That is done at
    each site alone; then at the site of least grams, at it and the next one, and so on to all
    sites. Of these placements that end within `within` times the time that all sites take, the one
    of least expected grams (energy of the tasks by the intensity while they run) is decided.

    References
    ----------
    .. [1] R. L. Graham, "Bounds on multiprocessing timing anomalies", SIAM J. Appl. Math. 17(2),
       1969 (not read): list scheduling by longest tasks. The choice of sites is our own.
    """

    _id: ClassVar[str] = "follow_sites"
    traits: ClassVar[Traits] = Traits(asked="event", needs_carbon=True)

    def __init__(self, within: float = 1.5, forecast: str = "perfect") -> None:
        self.within = within
        self.forecast = forecast

    def prepare(self, system: System, rng: np.random.Generator) -> None:
        """Check the parameters, and find the sites.

        Raises
        ------
        InputError
            If a parameter is out of range, or nobody said the carbon intensity.
        """
        check_number(self._id, "within", self.within, lambda x: 1 <= x < math.inf, "at least 1, finite")
        self.forecast_ = Forecast(system, self._id, self.forecast)
        self.pstates_ = system.pstates
        hosts = np.arange(system.n_hosts)
        self.sites_ = [hosts[rows] for _, rows in self.forecast_.signal.by_site(hosts)]

    def schedule(self, state: State) -> Iterable[Decision]:
        """Place the tasks that wait at some of the sites."""
        waiting, expected = state.mappable, self.forecast_.at(state.now)
        is_on = state.is_on
        sites = [hosts for hosts in (site[is_on[site]] for site in self.sites_) if len(hosts)]
        if not len(waiting) or not sites:
            return []
        alone = [self._placed(waiting, site, expected, state) for site in sites]
        order = sorted(range(len(sites)), key=lambda k: (alone[k].grams, k))
        several = [np.sort(np.concatenate([sites[k] for k in order[:n]])) for n in range(2, len(sites) + 1)]
        options = [*alone, *(self._placed(waiting, hosts, expected, state) for hosts in several)]
        limit = state.now + self.within * (options[-1].end - state.now)
        best = min((each for each in options if each.end <= limit), key=lambda each: each.grams, default=options[-1])
        return [Assign(task, host) for task, host in zip(best.tasks.tolist(), best.hosts.tolist(), strict=True)]

    def _placed(self, tasks: Integers, hosts: Integers, expected: Signal, state: State) -> _Placement:
        """Give tasks to some hosts, the longest first, each to the one on which it ends first."""
        etc = state.estimates.etc(tasks, hosts, self.pstates_[hosts])
        eec = state.estimates.eec(tasks, hosts, self.pstates_[hosts])
        fits = np.isfinite(etc)
        if not fits.any(axis=1).all():
            return _Placement(tasks[:0], hosts[:0], math.inf, math.inf)
        mean = np.where(fits, etc, 0.0).sum(axis=1) / fits.sum(axis=1)
        order = np.lexsort((tasks, -mean))
        cores = np.maximum(state.core_ready_time[hosts], state.now)
        chosen, starts = np.empty(len(tasks), dtype=np.int64), np.empty(len(tasks))
        for row in order.tolist():
            host = int(np.argmin(cores[:, 0] + etc[row]))
            chosen[row], starts[row] = host, cores[host, 0]
            cores[host, 0] += etc[row, host]
            cores[host].sort()
        rows = np.arange(len(tasks))
        times, energies = etc[rows, chosen], eec[rows, chosen]
        grams = float((energies * expected.at_hosts(hosts[chosen], starts, times)).sum())
        return _Placement(tasks[order], hosts[chosen][order], float((starts + times).max()), grams)
