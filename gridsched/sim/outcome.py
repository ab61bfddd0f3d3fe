"""What comes back from the simulating process; needs no SimGrid to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gridsched.model.trace import Trace


@dataclass(frozen=True)
class SimulationOutcome:
    """What a run gave: records, the plugins' joules by host and link, SimGrid's log, grams by host, FATPIPE links.

    The reference driver gives no joules of a plugin and no log.
    """

    trace: Trace
    plugin_j: dict[str, float] | None
    log: str
    links_j: dict[str, float] | None = None
    grams: dict[str, float] | None = None
    unshared: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Records:
    """The part of a trace that the simulating process sends back, and the links of type FATPIPE."""

    fields: dict[str, Any]
    plugin_j: dict[str, float]
    links_j: dict[str, float] | None = None
    grams: dict[str, float] | None = None
    unshared: frozenset[str] = frozenset()
