"""Hosts whose speed changes, where what they draw is counted while a run is on."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

from gridsched.engine.host_powers import HostPowers
from gridsched.model.platform import Platform


class SpeedChanges:
    """Follows the speed profiles of hosts in their powers.

    Parameters
    ----------
    platform : Platform
    powers : HostPowers
        Told of each change.

    Attributes
    ----------
    next_time : float
        When the speed of a host changes next [s]; infinite where none ever does.
    """

    def __init__(self, platform: Platform, powers: HostPowers) -> None:
        self._powers = powers
        self._heap: list[tuple[float, int, float, Iterator[tuple[float, float]]]] = []
        profiles = platform.profiles.speed_of
        for host, each in enumerate(platform.hosts):
            if each.name in profiles:
                self._await_next(host, profiles[each.name].events())
        self.next_time = self._heap[0][0] if self._heap else math.inf

    def _await_next(self, host: int, events: Iterator[tuple[float, float]]) -> None:
        for date, share in events:
            heapq.heappush(self._heap, (date, host, share, events))
            break

    def apply(self) -> None:
        """Let the next change happen."""
        _, host, share, events = heapq.heappop(self._heap)
        self._powers.set_speed(host, share)
        self._await_next(host, events)
        self.next_time = self._heap[0][0] if self._heap else math.inf
