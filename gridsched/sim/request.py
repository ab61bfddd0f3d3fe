"""What goes to the simulating process and what comes back; needs no SimGrid to import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gridsched.engine import takes_sets
from gridsched.model.run_times import RunTimes
from gridsched.model.system import System
from gridsched.model.tasks import Tasks
from gridsched.model.trace import Trace
from gridsched.policy.base import Scheduler


@dataclass(frozen=True)
class SimulationRequest:
    """One run of either driver; the fields are those of `Scenario`, with everything loaded.

    The reference driver needs no `platform_file`, and no other file.
    """

    system: System
    tasks: Tasks
    scheduler: Scheduler
    platform_file: Path | None = None
    seed: int = 0
    replicate: int = 0
    deployment_file: Path | None = None
    uses_network: bool = False
    hosts_off: tuple[int, ...] = ()
    way: str = "auto"
    cfg: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    timeout_s: float | None = None
    run_times: RunTimes | None = None
    #: SimGrid's ``wattage_per_state`` of hosts, in the place of what the platform file says
    wattages: Mapping[str, str] = field(default_factory=dict)
    #: whether SimGrid's joules are weighed by the carbon intensity of the system, too
    meters_carbon: bool = False

    @property
    def is_metered(self) -> bool:
        """Whether tasks draw a share of their hosts' range of power."""
        return self.run_times is not None and len(self.run_times.load) > 0

    @property
    def sends_data(self) -> bool:
        """Whether tasks send what they make to others over the network."""
        pairs = self.tasks.dependencies
        return self.system.network is not None and pairs is not None and bool(pairs.size_bytes.any())

    @property
    def has_sets(self) -> bool:
        """Whether executions have sets of hosts."""
        return takes_sets(self.tasks, self.scheduler.traits)


@dataclass(frozen=True)
class SimulationOutcome:
    """What a run gave: records, the plugins' joules by host and link name, SimGrid's log, grams by host name."""

    trace: Trace
    plugin_j: dict[str, float]
    log: str
    links_j: dict[str, float] | None = None
    grams: dict[str, float] | None = None


@dataclass(frozen=True)
class Records:
    """The part of a trace that the simulating process sends back."""

    fields: dict[str, Any]
    plugin_j: dict[str, float]
    links_j: dict[str, float] | None = None
    grams: dict[str, float] | None = None
