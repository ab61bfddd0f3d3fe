"""Grams from SimGrid's side: joules of its energy plugin, read whenever a carbon intensity changes.

SimGrid 4.1 has no plugin for carbon. Later ones have: where the loaded library has its functions,
that plugin is told the same intensities at the same times, and its own grams are kept as well. It
multiplies the time since it looked last by the power of *now*, and does not look when a P-state
changes: it then charges the past with the new power. We have run no such SimGrid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from ctypes import c_char_p, c_double, c_void_p
from itertools import count
from math import isinf
from typing import Any

from gridsched.model.signals import J_PER_KWH, Signal
from gridsched.sim.library import HOSTS, c_function, has_functions

_INIT, _GRAMS, _INTENSITY = (
    "sg_host_carbon_footprint_plugin_init",
    "sg_host_get_carbon_footprint",
    "sg_host_set_carbon_intensity",
)


def has_carbon_plugin() -> bool:
    """Whether the loaded SimGrid has a plugin for carbon of its own."""
    return has_functions(_INIT, _GRAMS, _INTENSITY)


def start_carbon_plugin() -> None:
    """Start SimGrid's own plugin, before the platform is loaded."""
    c_function(_INIT)()


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
    own_grams : dict of str to float, or None
        By SimGrid's own plugin, once the run is over [g]; None where it has none.
    """

    def __init__(self, signals: Mapping[str, Signal]) -> None:
        self._signals = dict(signals)
        self._since = 0.0
        self._joules = dict.fromkeys(self._signals, 0.0)
        self.grams = dict.fromkeys(self._signals, 0.0)
        self.own_grams: dict[str, float] | None = None
        self._has_own = has_carbon_plugin()
        self._tell_own(0.0)

    def follow(self, sleep_until: Callable[[float], None]) -> None:
        """Read at each change to the end of the run; to be called by an actor."""
        for time in self._changes():
            sleep_until(time)
            self._charge(HOSTS.consumed_j(self._signals), time)
            self._tell_own(time)

    def close(self, joules: dict[str, float]) -> None:
        """Take the last reading, of all hosts [J], at the end of the run."""
        self._charge(joules, self._since)
        if self._has_own:
            grams = c_function(_GRAMS, c_void_p, result=c_double)
            self.own_grams = {name: float(grams(_host(name))) for name in self._signals}

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

    def _tell_own(self, time: float) -> None:
        """Tell SimGrid's own plugin the intensities from a time on [g/kWh], PUE included."""
        if self._has_own:
            tell = c_function(_INTENSITY, c_void_p, c_double)
            for name, signal in self._signals.items():
                tell(_host(name), J_PER_KWH * float(signal.at(time)))


def _host(name: str) -> Any:
    return c_function("sg_host_by_name", c_char_p, result=c_void_p)(name.encode())
