"""How SimGrid 4.1 reads values of attributes and the options in a platform file.

Some options write files, whichever they are told: traces, graphs. A platform file, a study and a
stored run may come from anybody, so they set `MODEL_OPTIONS` alone; the command line sets any.

SimGrid refuses a whole file for one option it does not know, and most files in the world are older
than 4.1. An option whose name has changed gets its new one; one on which nothing that gridsched
simulates depends is left out, traces of SimGrid's own among them: each run would write the same
file, and on some platforms SimGrid crashes by it. Whatever else SimGrid does not know it may
refuse.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gridsched.model.limits import LARGEST, SI_PREFIXES, SMALLEST

# ----------------------
# Values of attributes as SimGrid 4.1 reads them: numbers with units, radicals, topologies


#: As in SimGrid's ``xbt_parse_units.cpp``.
_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:nan|inf(?:inity)?))", re.I)


_LONG = ("", "kilo", "mega", "giga", "tera", "peta", "exa", "zeta", "yotta")
_RATES = {"bps": 0.125, "Bps": 1.0}
_BINARY = {f"{letter.title()}i": 1024.0**k for k, letter in enumerate(SI_PREFIXES) if k}

SPEED_UNITS = {f"{letter}f": factor for letter, factor in SI_PREFIXES.items()} | {
    f"{word}flops": factor for word, factor in zip(_LONG, SI_PREFIXES.values(), strict=True)
}
BANDWIDTH_UNITS = {
    letter + unit: value * factor
    for letter, factor in (_BINARY | SI_PREFIXES).items()
    for unit, value in _RATES.items()
}
TIME_UNITS = {
    "w": 604800.0,
    "d": 86400.0,
    "h": 3600.0,
    "m": 60.0,
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "ns": 1e-9,
    "ps": 1e-12,
}
_KINDS = {
    "speed": (SPEED_UNITS, "f", "f, kf, Mf, Gf, Tf, Pf, Ef or flops, kiloflops, megaflops, ..."),
    "bandwidth": (BANDWIDTH_UNITS, "Bps", "Bps, kBps, MBps, GBps, KiBps, ..., bps, kbps, Mbps, ..."),
    "time": (TIME_UNITS, "s", "w, d, h, m, s, ms, us, ns, ps"),
}


def parse_quantity(text: str, kind: str) -> tuple[float, bool]:
    """Return a value in SI units and whether `text` named its unit.

    Parameters
    ----------
    text : str
        Number followed by its unit without a blank, for example ``"12.5Mf"``.
    kind : str
        ``"speed"`` [flop/s], ``"bandwidth"`` [byte/s] or ``"time"`` [s].

    Raises
    ------
    ValueError
        If it is no finite number or the unit is unknown; the message says what is legal.
    """
    units, default, legal = _KINDS[kind]
    match = _NUMBER.match(text)
    if not match:
        raise ValueError(f"{text!r} is no number with a unit ({legal})")
    number, unit = float(match[1]), text[match.end() :]
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is not finite")
    if unit and unit not in units:
        raise ValueError(f"{text!r} has the unknown unit {unit!r}; SimGrid knows {legal}")
    value = number * units[unit or default]
    if value and not SMALLEST <= abs(value) <= LARGEST:
        raise ValueError(f"{text!r} is not between {SMALLEST:g} and {LARGEST:g} {default}")
    return value, bool(unit) or number == 0.0


def expand_radical(text: str) -> Iterator[int]:
    """Yield the numbers of a cluster's ``radical`` such as ``"0-3,7"``.

    Raises
    ------
    ValueError
        If it is malformed.
    """
    for group in text.split(","):
        ends = group.strip().split("-")
        if len(ends) > 2 or not all(end.strip().isdecimal() for end in ends):
            how = "" if text.isascii() else ", with '-' itself and digits from 0 to 9"
            raise ValueError(f"radical {text[:60]!r} must read like '0-9,12'{how}")
        yield from range(int(ends[0]), int(ends[-1]) + 1)


def topology_size(tag: str, attributes: Mapping[str, str]) -> tuple[int | None, int]:
    """Return how many hosts a torus, fat tree or dragonfly makes, and what bounds its links.

    Hosts are None where all of the radical are made.

    Raises
    ------
    ValueError
        If the attributes describe no topology.
    """
    topology = attributes.get("topology", "FLAT")
    text = attributes.get("topo_parameters", "")
    if tag != "cluster" or topology == "FLAT":
        return None, 0
    if topology not in ("TORUS", "FAT_TREE", "DRAGONFLY"):
        raise ValueError(f"unknown topology {topology[:40]!r}")
    try:
        levels = [[int(part) for part in level.split(",")] for level in text.split(";")]
        if topology == "FAT_TREE":
            _, down, up, parallel = levels
            size = math.prod(down)
            return size, size * max(up) * max(parallel)
        size = math.prod(levels[0] if topology == "TORUS" else [level[0] for level in levels])
    except ValueError:
        raise ValueError(f"topo_parameters {text[:80]!r} do not describe a {topology}") from None
    return size, size * max(max(level) for level in levels)


def escape_text(text: str) -> str:
    """Return a text between tags as XML has it."""
    return text.replace("&", "&amp;").replace(">", "&gt;").replace("<", "&lt;")


def quote_value(text: str) -> str:
    """Return the value of an attribute as XML has it, in quotes.

    Written as `xml.sax.saxutils` does it, which loads what speaks to the network.
    """
    value = escape_text(text)
    for character in "\n\r\t":
        value = value.replace(character, f"&#{ord(character)};")
    if '"' not in value:
        return f'"{value}"'
    return f"'{value}'" if "'" not in value else '"' + value.replace('"', "&quot;") + '"'


# ----------------------
# SimGrid's options in a platform file, and the file as SimGrid sees it


# ----------------------------------------------------------------------
# SimGrid's options: those that others may set, and those that SimGrid 4.1 lacks, or crashes by


#: Options of models and of the numbers that they compute with; none names a file.
MODEL_OPTIONS = (
    "bmf/max-iterations",
    "bmf/precision",
    "cpu/maxmin-selective-update",
    "cpu/model",
    "cpu/optim",
    "cpu/solver",
    "disk/model",
    "disk/solver",
    "host/model",
    "host/solver",
    "maxmin/concurrency-limit",
    "maxmin/precision",
    "network/TCP-gamma",
    "network/bandwidth-factor",
    "network/crosstraffic",
    "network/latency-factor",
    "network/loopback-bw",
    "network/loopback-lat",
    "network/maxmin-selective-update",
    "network/model",
    "network/optim",
    "network/solver",
    "network/weight-S",
    "precision/bmf",
    "precision/timing",
    "precision/work-amount",
    "smpi/IB-penalty-factors",
    "smpi/buffering",
    "smpi/bw-factor",
    "smpi/lat-factor",
    "surf/precision",
)
#: Options by their names in SimGrid 3, and in 4.1.
_RENAMED = {
    "cpu/maxmin_selective_update": "cpu/maxmin-selective-update",
    "maxmin/concurrency_limit": "maxmin/concurrency-limit",
    "network/TCP_gamma": "network/TCP-gamma",
    "network/bandwidth_factor": "network/bandwidth-factor",
    "network/latency_factor": "network/latency-factor",
    "network/maxmin_selective_update": "network/maxmin-selective-update",
    "network/weight_S": "network/weight-S",
    "smpi/IB_penalty_factors": "smpi/IB-penalty-factors",
    "smpi/bw_factor": "smpi/bw-factor",
    "smpi/lat_factor": "smpi/lat-factor",
    "workstation/model": "host/model",
}
#: What the network's models take of the options for MPI programs; the others concern those alone.
_OF_THE_NETWORK = ("IB-penalty-factors", "buffering", "bw-factor", "lat-factor")
#: Names without effect here: coordinates are always read, the rest are for the stacks of actors in
#: C++, for MPI programs, for traces and visualisation, and for a simulator of networks that has
#: gone.
_WITHOUT_EFFECT = re.compile(
    r"network/(coordinates|sender_gap)|contexts/.*|tracing(/.*)?|(tri)?viva/.*|gtnets/.*"
    rf"|smpi/(?!({'|'.join(_OF_THE_NETWORK)})$).*"
)
#: Values without effect: the model of hosts that is now the default one, and a way of counting
#: loads with which SimGrid 4.1 crashes where hosts are metered; its results are the same.
_VALUES_WITHOUT_EFFECT = {("host/model", "compound"), ("cpu/optim", "TI")}


def check_option(option: str, value: str) -> None:
    """Raise `ValueError` unless anybody may set an option to a value.

    Parameters
    ----------
    option : str
    value : str
        SimGrid takes what follows a blank or comma for another option.
    """
    if option not in MODEL_OPTIONS:
        raise ValueError(
            f"{option!r} is set by --cfg on the command line alone, as some of SimGrid's options "
            f"write files; legal are {', '.join(MODEL_OPTIONS)}; take it out"
        )
    if not re.fullmatch(r"[^\s,]+", value):
        raise ValueError(f"{option!r} is {value!r}; one value without blanks and commas is legal")


def new_name(option: str, value: str) -> str | None:
    """Return how SimGrid 4.1 calls an option of a ``<config>``; None where it is to be left out."""
    option = _RENAMED.get(option, option)
    has_effect = (option, value) not in _VALUES_WITHOUT_EFFECT and not _WITHOUT_EFFECT.fullmatch(option)
    return option if has_effect else None


# ----------------------------------------------------------------------
# A platform file as SimGrid sees it


@dataclass(frozen=True)
class SimGridHost:
    """A host as SimGrid sees it: cores, core speeds [flop/s] and properties."""

    name: str
    cores: int
    speeds: tuple[float, ...]
    properties: dict[str, str]


@dataclass(frozen=True)
class SimGridLink:
    """A link as SimGrid sees it: bandwidth [byte/s], latency [s], ``Idle:Busy`` power [W]."""

    name: str
    bandwidth: float
    latency_s: float
    wattage_range: str | None = None


@dataclass(frozen=True)
class Route:
    """The way from one host to another, latency [s] and least bandwidth [byte/s].

    Without a route `links` is None.
    """

    source: str
    target: str
    links: tuple[str, ...] | None
    latency_s: float = 0.0
    bandwidth: float = float("inf")


@dataclass(frozen=True)
class Inspection:
    """SimGrid's own answer to a platform file.

    Attributes
    ----------
    status : str
        ``"loaded"``, ``"refused"`` or ``"skipped"``.
    message : str
        Why it refused or was skipped.
    hosts : tuple of SimGridHost
        Empty unless loaded.
    warnings : tuple of str
        What SimGrid warned of while loading, without its own energy warnings.
    links : tuple of SimGridLink
    routes : tuple of Route
        Between the hosts that were asked for.
    """

    status: str
    message: str = ""
    hosts: tuple[SimGridHost, ...] = ()
    warnings: tuple[str, ...] = ()
    links: tuple[SimGridLink, ...] = ()
    routes: tuple[Route, ...] = ()
