"""SimGrid's host-energy plugin through its C interface.

The Python module has no call for a host's energy (simgrid/simgrid#404); the functions are in the
shared library that is loaded anyway. They give full precision, also during the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from ctypes import c_char_p, c_double, c_void_p
from functools import cache
from typing import Any

from gridsched.sim.library import c_function


@cache
def _functions() -> dict[str, Callable[..., Any]]:
    return {
        "by_name": c_function("sg_host_by_name", c_char_p, result=c_void_p),
        "consumed": c_function("sg_host_get_consumed_energy", c_void_p, result=c_double),
        "init": c_function("sg_host_energy_plugin_init"),
    }


def start_plugin() -> None:
    """Activate the plugin; must be called before the platform is loaded."""
    _functions()["init"]()


def _host(name: str) -> int:
    pointer: int | None = _functions()["by_name"](name.encode())
    if not pointer:
        raise KeyError(f"SimGrid knows no host {name!r}.")
    return pointer


def consumed_energy_j(name: str) -> float:
    """Energy the plugin has metered for the host up to the present simulated time [J].

    Call it from an actor, from a completion callback or after the run; the host must have
    ``wattage_per_state``.
    """
    energy_j: float = _functions()["consumed"](_host(name))
    return energy_j


def consumed_by_host(names: Iterable[str]) -> dict[str, float]:
    """Return the metered energy [J] of every host in `names`."""
    return {name: consumed_energy_j(name) for name in names}
