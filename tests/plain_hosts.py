"""Platforms of hosts that differ in nothing but their speeds."""

from __future__ import annotations

from collections.abc import Iterable

from gridsched.model.platform import Host, Platform, PState


def plain_platform(speeds: Iterable[float]) -> Platform:
    """Return one-core hosts ``h1``, ``h2``, ... with these speeds [flop/s] and no power figures."""
    return Platform(tuple(Host(f"h{k}", (PState(float(s)),)) for k, s in enumerate(speeds, start=1)))
