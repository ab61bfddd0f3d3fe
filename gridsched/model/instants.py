"""How far apart two times may be and still be one instant."""

from __future__ import annotations


def time_tolerance(time: float) -> float:
    """Return how far apart [s] two ends near `time` [s] may be and still be one instant."""
    return 1e-9 if time < 1000.0 else 1e-12 * time
