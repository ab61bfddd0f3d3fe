"""A system so small that a failure can be followed by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gridsched.model.estimates import Estimates
from gridsched.model.platform import Platform
from gridsched.model.run_times import DrawnRunTimes, LoggedRunTimes, RunTimes
from gridsched.model.stochastic import GammaLaw
from gridsched.model.system import System
from gridsched.model.task_types import TaskTypes
from gridsched.model.tasks import Tasks
from gridsched.policy.base import Scheduler
from gridsched.spec.scenario import LoadedScenario, Scenario, make_system

#: How run times spread around their means, where they are uncertain.
UNCERTAINTY = GammaLaw(0.25)


@dataclass(frozen=True)
class Case:
    """A system so small that a failure can be followed by hand.

    Attributes
    ----------
    name : str
    platform : Platform
    tasks : Tasks
    pstate : int
        The scenario's P-state.
    hosts_off : tuple of int
        Hosts that are off at the start.
    estimates : Estimates, optional
        Where given, the case is for the reference driver only.
    estimates_of : callable, optional
        ``estimates_of(platform, tasks)`` where neither flops nor types tell times and powers.
    types : TaskTypes, optional
        ETC and APC where the tasks have types.
    logged : sequence of float, optional
        Where given, how long the tasks really take, as in a log [s].
    luck : tuple of float, optional
        Where given, the tasks take these quantiles of run times with cov 0.25 around `types`.
    rules : mapping
        Further fields of the scenario, by name: mapping interval, pending slots, budget.
    """

    name: str
    platform: Platform
    tasks: Tasks
    pstate: int = 0
    hosts_off: tuple[int, ...] = ()
    estimates: Estimates | None = None
    estimates_of: Callable[[Platform, Tasks], Estimates] | None = None
    types: TaskTypes | None = None
    luck: tuple[float, ...] | None = None
    logged: Sequence[float] | None = None
    rules: Mapping[str, Any] = field(default_factory=dict)

    @property
    def run_times(self) -> RunTimes | None:
        """How long tasks really take; None where the estimates come true."""
        if self.logged is not None:
            return LoggedRunTimes(self.platform, self.logged)
        if self.luck is None or self.types is None:
            return None
        return DrawnRunTimes(self.types.estimates(self.tasks), self.luck, UNCERTAINTY.quantile)

    def scenario(self, scheduler: Scheduler, **changes: Any) -> Scenario:
        """Return the scenario of the case; `changes` are further fields of it."""
        names = tuple(self.platform.hosts[h].name for h in self.hosts_off)
        return Scenario(
            replace(self.platform), self.tasks, scheduler,
            pstate=self.pstate, hosts_off=names, types=self.types, run_times=self.run_times,
            estimates=self._made_estimates(), **self.rules, **changes,
        )  # fmt: skip

    def _made_estimates(self) -> Estimates | None:
        return None if self.estimates_of is None else self.estimates_of(self.platform, self.tasks)

    def system(self) -> System:
        """Return what the scheduler is prepared for, with a platform object of its own."""
        platform = replace(self.platform)
        if self.estimates is not None:
            return System(platform, self.estimates, pstates=np.array([self.pstate]))
        return make_system(
            LoadedScenario(
                platform, self.tasks, pstate=self.pstate, types=self.types,
                estimates=self._made_estimates(), **self.rules
            )
        )  # fmt: skip
