"""The system a scheduler is prepared for: everything that is known before the run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import InputError
from gridsched.model.budget import EnergyBudget
from gridsched.model.estimates import Estimates, TypedPowerEstimates
from gridsched.model.platform import Platform
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
    mapping_interval_s : float or None
        Distance of mapping events [s]; None asks at every instant at which something happened.
    pending_slots : int
        Tasks a host fixes behind the executing one as soon as there is room (1 in paper 000).
    files : DataFiles or None
        Input files that tasks need, where the workload has them.
    budget : EnergyBudget or None
        Joules that each period may draw.
    horizon_s : float or None
        No task starts at or after it [s]; what then waits ends as unfinished.
    charge_mapping_time : bool
        A mapping event begins only when the last one's computation has ended, by the wall clock
        (paper 000, III-A); such runs do not repeat exactly.
    """

    platform: Platform
    estimates: Estimates
    pstate: int = 0
    mapping_interval_s: float | None = None
    pending_slots: int = 0
    files: DataFiles | None = None
    budget: EnergyBudget | None = None
    horizon_s: float | None = None
    charge_mapping_time: bool = False

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
        if isinstance(self.estimates, TypedPowerEstimates):
            raise InputError(
                f"{self.platform.name}: the hosts have no one speed, it depends on the task type. "
                "This scheduler accepts bags of tasks; use one that goes by estimated times, as "
                "mct, min_min or max_max_upe do."
            )
