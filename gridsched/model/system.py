"""The system a scheduler is prepared for: everything that is known before the run."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError, counted
from gridsched.model.data_files import DataFiles
from gridsched.model.estimates import Estimates
from gridsched.model.network import Network
from gridsched.model.parallel_estimates import ParallelEstimates
from gridsched.model.platform import Platform
from gridsched.model.routes import RouteSource
from gridsched.model.rules import Rules
from gridsched.model.signals import Signal
from gridsched.model.tariff import Tariff
from gridsched.model.task_types import TypedPowerEstimates


@dataclass(frozen=True)
class System:
    """Platform, estimates and rules of one scenario, as the scheduler sees them.

    Attributes
    ----------
    platform : Platform
        Computing hosts and clusters.
    estimates : Estimates
    pstates : ndarray of int64, shape (hosts,)
        The P-state each host starts in, which a decision without P-state means (``--pstate``). One
        means all hosts.
    files : DataFiles or None
        Input files that tasks need, where the workload has them.
    rules : Rules
        What the controller holds the run to.
    tariff : Tariff or None
        What the bag pays and what operating the hosts costs, if this is given.
    carbon : Signal or None
        The weight of a joule in grams [g/J], by time and host, if this is given.
    carbon_forecast : Signal or None
        What somebody expects of it, where there is such a table.
    network : Network or None
        How long data take between hosts; None: no time, and none are sent.
    routes : RouteSource or None
        The routes between hosts by their names, where parts of jobs send to each other; `bandwidth` asks it.
    """

    platform: Platform
    estimates: Estimates
    pstates: Integers = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    files: DataFiles | None = None
    rules: Rules = field(default_factory=Rules)
    tariff: Tariff | None = None
    carbon: Signal | None = None
    carbon_forecast: Signal | None = None
    network: Network | None = None
    routes: RouteSource | None = None

    def __post_init__(self) -> None:
        pstates = np.array(np.broadcast_to(self.pstates, self.n_hosts), dtype=np.int64)
        pstates.setflags(write=False)  # schedulers see it
        object.__setattr__(self, "pstates", pstates)
        if self.network is not None and len(self.network.latency_s) != self.n_hosts:
            raise InputError(
                f"{self.platform.name}: a network between {counted(len(self.network.latency_s), 'host')} is given, and "
                f"{self.n_hosts} compute."
            )

    @property
    def pstate(self) -> int:
        """The one P-state that all hosts start in, for schedulers that know of one only.

        Raises
        ------
        InputError
            If hosts start in different ones.
        """
        first = int(self.pstates[0])
        others = np.flatnonzero(self.pstates != first)
        if len(others):
            hosts, h = self.platform.hosts, others.item(0)
            raise InputError(
                f"{self.platform.name}: host {hosts[0].name!r} starts in P-state {first} and "
                f"{hosts[h].name!r} in {self.pstates[h]}; this scheduler and parallel tasks need "
                "one for all hosts (--pstate K)."
            )
        return first

    @property
    def first_pstates(self) -> Integers:
        """The P-state of each host at time 0, before anything runs, shape (hosts,)."""
        parked = self.rules.parked_pstate
        return self.pstates if parked is None else np.full(self.n_hosts, parked)

    def check_pstates(self) -> None:
        """Raise `InputError` unless every host has the P-states that are asked for."""
        for pstates in (self.pstates, self.first_pstates):
            self.platform.check_pstates(pstates)

    def bandwidth(self, source: int, target: int) -> float:
        """Return the bandwidth of the narrowest link between two hosts [byte/s].

        Infinite where nothing is sent over a network.
        """
        if self.routes is None:
            return float("inf")
        names = (self.platform.hosts[source].name, self.platform.hosts[target].name)
        return min((self.routes.bandwidth[link] for link in self.routes.route(*names).links), default=float("inf"))

    @property
    def n_hosts(self) -> int:
        """Number of computing hosts."""
        return len(self.platform.hosts)

    @cached_property
    def speed(self) -> Floats:
        """Core speed [flop/s] of each host in the P-state it starts in, shape (hosts,).

        Raises
        ------
        InputError
            If how fast a host is depends on the task type.
        """
        self._check_one_speed()
        return self.platform.speed[np.arange(self.n_hosts), self.pstates]

    @cached_property
    def efficiency(self) -> Floats:
        """Efficiency [flop/J] of each host in the P-state it starts in, shape (hosts,).

        Raises
        ------
        InputError
            If how fast a host is depends on the task type.
        """
        self._check_one_speed()
        return self.platform.efficiency(self.pstates)

    def _check_one_speed(self) -> None:
        if isinstance(self.estimates, TypedPowerEstimates | ParallelEstimates):
            raise InputError(
                f"{self.platform.name}: the speed of a host depends on the task type. "
                "This scheduler accepts bags of tasks; use one that uses estimated times, such as "
                "mct, min_min or max_max_upe."
            )
