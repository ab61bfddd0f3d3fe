"""Values of attributes as SimGrid 4.1 reads them: numbers with units, radicals, sizes of topologies; and quoting."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from gridsched.model.limits import LARGEST, SI_PREFIXES, SMALLEST

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
        If it is not a finite number or the unit is unknown; the message states what is allowed.
    """
    units, default, legal = _KINDS[kind]
    match = _NUMBER.match(text)
    if not match:
        raise ValueError(f"{text!r} is not a number with a unit ({legal})")
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


def topology_switches(attributes: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return what the switches of each level are called, the lowest first, and how many hosts lie under each.

    As SimGrid numbers hosts, those under a switch follow each other. A switch that joins all hosts is left out. A
    torus has no switches: its lines along the first dimension, and the planes and so on of these, count as such.

    Parameters
    ----------
    attributes : mapping
        Of a ``<cluster>`` that `topology_size` has not refused.
    """
    topology = attributes.get("topology", "FLAT")
    if topology == "FLAT":
        return []
    levels = [[int(part) for part in level.split(",")] for level in attributes.get("topo_parameters", "").split(";")]
    if topology == "FAT_TREE":
        sizes, names = levels[1], [f"switch {k}" for k in range(1, len(levels[1]) + 1)]
    elif topology == "TORUS":
        sizes, names = levels[0], [f"block {k}" for k in range(1, len(levels[0]) + 1)]
    else:
        sizes, names = [level[0] for level in reversed(levels)], ["router", "chassis", "group", ""]
    under = [math.prod(sizes[: k + 1]) for k in range(len(sizes))]
    below = [1, *under]
    return [(name, n) for name, n, before in zip(names, under, below, strict=False) if before < n < under[-1]]


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
