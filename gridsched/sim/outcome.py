"""What comes back from the simulating process; needs no SimGrid to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gridsched.model.trace import Trace


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
