"""The options of ``gridsched platform from-table`` and what they mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, make_dataclass
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

import typer

from gridsched.cli.option_groups import option_name
from gridsched.errors import InputError
from gridsched.platform_io.recipe import PlatformRecipe, PStates, parse_pstates
from gridsched.platform_io.xml_units import parse_quantity
from gridsched.platform_io.xml_writer import NetworkLinks

T = TypeVar("T")
Kind = Literal["speed", "bandwidth", "time", "watts"]


def _quantity(option: str, text: str, kind: Kind) -> float:
    """Return one value; speeds and times may lack their unit, which help or name tells."""
    try:
        if kind == "watts":
            return float(text)
        value, has_unit = parse_quantity(text.strip(), kind)
    except ValueError as error:
        raise InputError(f"{option}: {error}.") from None
    if not has_unit and kind == "bandwidth":
        raise InputError(f"{option} is {text!r}; it needs a unit, as 125MBps.")
    if not value >= 0 or (kind == "bandwidth" and value == 0):
        raise InputError(f"{option} is {text!r}; a positive value is legal.")
    return value


def _list(option: str, text: str, kind: Kind, separator: str = ",") -> tuple[float, ...]:
    return tuple(_quantity(option, part, kind) for part in text.split(separator))


def _range(option: str, text: str, kind: Kind) -> tuple[float, float]:
    values = _list(option, text, kind, ":")
    if len(values) > 2 or (len(values) == 1 and kind != "watts"):
        raise InputError(f"{option} is {text!r}; LO:HI is legal.")
    return values[0], values[-1]


def _number_or_text(option: str, text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _pstates(option: str, text: str) -> PStates:
    try:
        return parse_pstates(text)
    except ValueError as error:
        raise InputError(f"{option}: {error}.") from None


@dataclass(frozen=True)
class _Option:
    """What an option means, its type, the key it sets if not its own name, and how it is read.

    It is called by its key, as in a study; its own name is legal, too.
    """

    help: str
    type: type = str
    key: str | None = None
    read: Callable[[str, Any], Any] | None = None


_OPTIONS = {
    "join": _Option("TOP500 list of the same date: brings cores and Rmax."),
    "year": _Option("Year of the list, where Rmax names no unit.", int),
    "trust": _Option("What counts where both are listed: power or efficiency."),
    "hosts": _Option("Number of hosts, dealt to the rows; default one for each.", int),
    "rows": _Option("Ranks to use, as '1-50,60'."),
    "name": _Option("Regular expression (RE2) on name, computer or site.", key="name_pattern"),
    "speed_levels": _Option(
        "Simulated speeds in flop/s, dealt to the rows in order.", read=partial(_list, kind="speed")
    ),
    "speed_uniform": _Option(
        "Simulated speeds drawn from LO:HI, in flop/s.", read=partial(_range, kind="speed")
    ),
    "efficiency": _Option("scaled (s_sim*eps_real/s_real), real or nearest."),
    "idle_share": _Option("Idle power as a share of busy power, 0 to 1.", float),
    "idle_power_w": _Option(
        "Idle power in W, or drawn from LO:HI.", read=partial(_range, kind="watts")
    ),
    "off_power_w": _Option("Power while off, in W.", float),
    "pstates": _Option("Speed and power factors, as '1:1;0.8:0.6'.", read=_pstates),
    "cores": _Option("Cores of each host; default 1.", int),
    "clusters": _Option(
        "A number, or what clusters share: host, speed, row, cluster, site, computer, year, name.",
        read=_number_or_text,
    ),
    "cluster_bandwidth": _Option(
        "Of the uplinks, as 1GBps or one for each: 1GBps,10Gbps.",
        read=partial(_list, kind="bandwidth"),
    ),
    "cluster_latency": _Option(
        "Of the uplinks, as 50us or one for each.", key="cluster_latency_s",
        read=partial(_list, kind="time"),
    ),
    "host_bandwidth": _Option(
        "Between host and cluster router; default unlimited.",
        read=partial(_quantity, kind="bandwidth"),
    ),
    "host_latency": _Option(
        "Likewise; default 0s.", key="host_latency_s", read=partial(_quantity, kind="time")
    ),
    "master": _Option("Add a host that computes nothing.", bool),
    "master_bandwidth": _Option(
        "Between master and uplinks; default unlimited.", read=partial(_quantity, kind="bandwidth")
    ),
    "master_latency": _Option(
        "Likewise; default 0s.", key="master_latency_s", read=partial(_quantity, kind="time")
    ),
    "seed": _Option("Seed of all that is drawn.", int),
}  # fmt: skip
#: Values of options that are not given; of the others it is None.
_DEFAULTS = {"master": False, "seed": 0}


def _declared(name: str, option: _Option) -> tuple[str, Any, Any]:
    names = ["--master"] if option.type is bool else []  # and no --no-master
    if option.key is not None:
        names = [option_name(option.key), option_name(name)]
    default = _DEFAULTS.get(name)
    kind = option.type | None if default is None else option.type
    return name, Annotated[kind, typer.Option(*names, help=option.help)], default


_FIELDS = [_declared(name, option) for name, option in _OPTIONS.items()]


def _with_fields(group: type[T]) -> type[T]:
    """Return a class as a dataclass of all the options."""
    return make_dataclass(group.__name__, _FIELDS, bases=(group,))


@_with_fields
class PlatformOptions:
    """How a platform is made from a table of machines, as options of the command line."""

    # of the options those that are read as they are told
    join: str | None
    year: int | None
    trust: Literal["power", "efficiency"] | None

    def recipe(self) -> PlatformRecipe:
        """Return what is to be made of the table.

        Raises
        ------
        InputError
            If an option is no quantity of its kind.
        """
        return PlatformRecipe(**self._keys_of(PlatformRecipe))

    def network(self) -> NetworkLinks:
        """Return the links inside the clusters and to the master.

        Raises
        ------
        InputError
            If an option is no bandwidth or latency.
        """
        return NetworkLinks(**self._keys_of(NetworkLinks))

    def _keys_of(self, record: type) -> dict[str, Any]:
        keys = {field.name for field in fields(record)}
        values = {}
        for name, option in _OPTIONS.items():
            key, value = option.key or name, getattr(self, name)
            if key in keys and value is not None:
                read = option.read
                values[key] = read(option_name(key), value) if read else value
        return values
