"""The system a scheduler is prepared for: everything that is known before the run."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import InputError
from gridsched.model.estimates import Estimates, TypedPowerEstimates
from gridsched.model.parallel_estimates import ParallelEstimates
from gridsched.model.platform import Platform
from gridsched.model.rules import Rules
from gridsched.model.tariff import Tariff
from gridsched.model.tasks import DataFiles


@dataclass(frozen=True)
class System:
    """Platform, estimates and rules of one scenario, as the scheduler sees them.

    Attributes
    ----------
    platform : Platform
        Computing hosts and clusters.
    estimates : Estimates
    pstate : int
        The P-state hosts start in and that an `Assign` without P-state means (``--pstate``).
    files : DataFiles or None
        Input files that tasks need, where the workload has them.
    rules : Rules
        What the controller holds the run to.
    tariff : Tariff or None
        What the bag pays and what operating the hosts costs, where anybody has said.
    """

    platform: Platform
    estimates: Estimates
    pstate: int = 0
    files: DataFiles | None = None
    rules: Rules = field(default_factory=Rules)
    tariff: Tariff | None = None

    @property
    def first_pstate(self) -> int:
        """The P-state in which hosts are at time 0, before anything runs."""
        parked = self.rules.parked_pstate
        return self.pstate if parked is None else parked

    def check_pstates(self) -> None:
        """Raise `InputError` unless every host has the P-states that are asked for."""
        for pstate in (self.pstate, self.first_pstate):
            self.platform.check_pstate(pstate)

    @property
    def n_hosts(self) -> int:
        """Number of computing hosts."""
        return len(self.platform.hosts)

    @cached_property
    def speed(self) -> NDArray[np.float64]:
        """Core speed [flop/s] of each host in the scenario's P-state, shape (hosts,).

        Raises
        ------
        InputError
            If how fast a host is depends on the task type.
        """
        self._check_one_speed()
        return np.ascontiguousarray(self.platform.speed[:, self.pstate])

    @cached_property
    def efficiency(self) -> NDArray[np.float64]:
        """Efficiency [flop/J] of each host in the scenario's P-state, shape (hosts,).

        Raises
        ------
        InputError
            If how fast a host is depends on the task type.
        """
        self._check_one_speed()
        return self.platform.efficiency(self.pstate)

    def _check_one_speed(self) -> None:
        if isinstance(self.estimates, TypedPowerEstimates | ParallelEstimates):
            raise InputError(
                f"{self.platform.name}: the hosts have no one speed, it depends on the task type. "
                "This scheduler accepts bags of tasks; use one that goes by estimated times, as "
                "mct, min_min or max_max_upe do."
            )
