"""SimGrid's energy plugins through their C interface: what hosts and the network's links consume.

The Python module has no call for a host's energy (simgrid/simgrid#404); the functions are in the
shared library that is loaded anyway. They give full precision, also during the run.

A link with the property ``wattage_range = Idle:Busy`` draws ``Idle + load (Busy - Idle)`` watts,
where load is its traffic over its bandwidth. The plugin looks at a link when a message that crosses
it starts or ends, and charges the whole time since it looked last with the load of that moment. So

- idle power counts for the whole run, whether the link is used or not;
- a message's latency is charged as if data flowed already;
- a message that slows down or speeds up because of traffic elsewhere is charged at its last rate;
- ``wattage_off`` of a link is not read, and Wi-Fi links are left out (they have a plugin of their
  own).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from ctypes import c_char_p, c_double, c_void_p
from functools import cached_property
from pathlib import Path
from typing import Any

from gridsched.errors import InputError
from gridsched.sim.library import c_function

#: The link property that holds its power; SimGrid still takes the old name with a warning.
PROPERTY_NAMES = ("wattage_range", "watt_range")


class EnergyPlugin:
    """A plugin of SimGrid, loaded when it is first used.

    Parameters
    ----------
    kind : {"host", "link"}
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def start(self) -> None:
        """Activate it before the platform is loaded.

        That of links needs the engine: it would make one of its own, and SimGrid allows one a
        process.
        """
        c_function(f"sg_{self._kind}_energy_plugin_init")()

    def consumed_j(self, names: Iterable[str]) -> dict[str, float]:
        """Return the energy that each host or link has consumed up to the present time [J].

        Call it from an actor, from a completion callback or after the run; hosts must have
        ``wattage_per_state``. For links call it once, at the end of the run: each call charges the
        time since the last one with the present load, so calls in between change the result.
        """
        by_name, consumed = self._functions
        return {name: consumed(by_name(name.encode())) for name in names}

    @cached_property
    def _functions(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        return (
            c_function(f"sg_{self._kind}_by_name", c_char_p, result=c_void_p),
            c_function(f"sg_{self._kind}_get_consumed_energy", c_void_p, result=c_double),
        )


HOSTS, LINKS = EnergyPlugin("host"), EnergyPlugin("link")


def has_links_with_power(platform_file: Path) -> bool:
    """Whether the file mentions the property; without it the plugin need not be started."""
    text = platform_file.read_bytes()
    return any(name.encode() in text for name in PROPERTY_NAMES)


def links_with_power(engine: Any, wifi: Any, where: str) -> tuple[str, ...]:
    """Return the names of the links that have a power range, in SimGrid's order.

    Parameters
    ----------
    engine : simgrid.Engine
        With the platform loaded.
    wifi : simgrid.Link.SharingPolicy
        The policy of links that the plugin leaves out.
    where : str
        The platform's name, for messages.

    Raises
    ------
    InputError
        If a range cannot be read; SimGrid would end the process over it.
    """
    names = []
    for link in engine.all_links:
        texts = [text for text in map(link.get_property, PROPERTY_NAMES) if text is not None]
        if texts and link.get_sharing_policy() != wifi:
            _check_range(texts[0], link.name, where)
            names.append(link.name)
    return tuple(names)


def _check_range(text: str, link: str, where: str) -> None:
    try:
        watts = [float(part) for part in text.split(":")]
    except ValueError:
        watts = []
    if len(watts) != 2 or not all(math.isfinite(watt) and watt >= 0 for watt in watts):
        raise InputError(
            f"{where}: link {link!r} has wattage_range {text!r}; it must read Idle:Busy, two "
            "powers of 0 W or more."
        )
