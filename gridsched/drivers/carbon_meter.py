"""Grams from SimGrid's side: joules of its energy plugin, read whenever a carbon intensity changes.

SimGrid 4.1 has no plugin for carbon: grams are made of the joules of its energy plugin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from math import isinf

from gridsched.drivers.simgrid_library import HOSTS
from gridsched.model.signals import Signal


class CarbonMeter:
    """Reads joules at every change of the intensity.

    Parameters
    ----------
    signals : mapping of str to Signal
        What a joule weighs at each host that is metered [g/J].

    Attributes
    ----------
    grams : dict of str to float
        By the joules so far [g].
    """

    def __init__(self, signals: Mapping[str, Signal]) -> None:
        self._signals = dict(signals)
        self._since = 0.0
        self._joules = dict.fromkeys(self._signals, 0.0)
        self.grams = dict.fromkeys(self._signals, 0.0)

    def follow(self, sleep_until: Callable[[float], None]) -> None:
        """Read at each change to the end of the run; to be called by an actor."""
        for time in self._changes():
            sleep_until(time)
            self._charge(HOSTS.consumed_j(self._signals), time)

    def close(self, joules: dict[str, float]) -> None:
        """Take the last reading, of all hosts [J], at the end of the run."""
        self._charge(joules, self._since)

    def _charge(self, joules: dict[str, float], time: float) -> None:
        """Charge what was drawn since the last reading by the intensity that held."""
        for name, signal in self._signals.items():
            self.grams[name] += (joules[name] - self._joules[name]) * float(signal.at(self._since))
            self._joules[name] = joules[name]
        self._since = time

    def _changes(self) -> Iterator[float]:
        """Yield when any intensity changes [s], without end where they repeat."""
        begins = sorted({begin for each in self._signals.values() for begin in each.begin_s})
        if len(begins) < 2:
            return
        cycle_s = next(iter(self._signals.values())).cycle_s  # sites have it in common
        for cycle in range(1) if isinf(cycle_s) else count():
            yield from (cycle * cycle_s + begin if cycle else begin for begin in begins if cycle or begin)
