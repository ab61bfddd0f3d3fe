"""Texts about what hosts have beside cores, in files, tables and options: memory, counted resources, their power."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Mapping

from gridsched.model.limits import LARGEST
from gridsched.model.resource_types import is_type, listed_once, whole_of, with_wholes
from gridsched.model.tasks import CORES, MEMORY, MOST_AMOUNT

#: Properties of our own: what jobs that share a host may take of it beside cores.
MEMORY_PROPERTY, RESOURCES_PROPERTY = "memory", "resources"
#: What a unit of them draws [W], of memory 2**30 byte.
UNIT_POWER_PROPERTY = "unit_power"
#: Name and number of each resource (`gridsched.model.platform.Host.resources`).
Resources = tuple[tuple[str, int], ...]
#: Name, idle and busy power of a unit [W] (`gridsched.model.platform.Host.unit_power`).
UnitPower = tuple[tuple[str, float, float], ...]

#: Name of a resource, and of one of its types, which is no number.
NAME = r"[A-Za-z]\w{0,39}"
TYPE = r"(?!\d+[KMGTP]?(?:[:\s(,]|$))[\w.+-]{1,98}"
_COUNT = re.compile(r"(\d{1,16})([KMGTP]?)", re.I)
_MEMORY = re.compile(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*([KMGTP]?)(?:i?B)?\s*", re.I)
_RESOURCE = re.compile(rf"\s*({NAME}(?::{TYPE})?)\s*:\s*(\d{{1,16}}[KMGTP]?)\s*", re.I)
_UNIT_POWER = re.compile(rf"\s*({NAME}(?::{TYPE})?)\s*:([^:,]{{1,40}}):([^:,]{{1,40}})")


def parse_memory_mb(text: str) -> int:
    """Return an amount of memory [2**20 byte] as Slurm writes it: ``64G``, ``4000M``; plain ones are MB.

    Raises
    ------
    ValueError
        If it is something else, or more than a node may have.
    """
    match = _MEMORY.fullmatch(text)
    steps = 0 if match is None else " KMGTP".index(match[2].upper() or "M") - 2
    amount = 0 if match is None else math.ceil(float(match[1]) * 1024.0**steps)
    if match is None or amount > MOST_AMOUNT:
        raise ValueError(f"{text.strip()[:80]!r} is not an amount of memory, such as 64G or 4000M, of at most 8P MB")
    return amount


def parse_count(text: str) -> int:
    """Return a number of units as Slurm writes it: ``4``, ``844G``, with K, M, G, T or P for powers of 1024.

    Raises
    ------
    ValueError
        If it is something else, or more than a node may have.
    """
    match = _COUNT.fullmatch(text.strip())
    count = 0 if match is None else int(match[1]) * 1024 ** " KMGTP".index(match[2].upper() or " ")
    if match is None or count > MOST_AMOUNT:
        raise ValueError(f"{text.strip()[:80]!r} is not a number of units, such as 4 or 844G, of at most 8P")
    return count


def parse_resources(text: str) -> Resources:
    """Return the counted resources of ``gpu:a100:4,gpu:v100:2,fpga:1``, without cores and memory.

    Each resource counts the units of its types, too: ``gpu`` is 6, ``gpu:a100`` 4, ``gpu:v100`` 2.

    Raises
    ------
    ValueError
        If it is something else.
    """
    parts: dict[str, int] = {}
    for item in filter(str.strip, text.split(",")):
        match = _RESOURCE.fullmatch(item)
        if match is None or match[1] in parts or whole_of(match[1]) in (CORES, MEMORY):
            raise ValueError(
                f"{RESOURCES_PROPERTY} holds {item.strip()[:80]!r}; NAME:NUMBER or NAME:TYPE:NUMBER is allowed, each "
                "once, such as gpu:4 or gpu:a100:4; cores and memory are given separately"
            )
        parts[match[1]] = parse_count(match[2])
    return tuple(amounts_of(parts.items()).items())


def amounts_of(parts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return amounts of which units are listed once, as `with_wholes` does.

    Raises
    ------
    ValueError
        If there are more of a resource than a node may have.
    """
    amounts = with_wholes(parts)
    for name, amount in amounts.items():
        if amount > MOST_AMOUNT:
            raise ValueError(f"{name[:80]!r} has {amount:g} units in all; at most 8P are allowed")
    return amounts


def resources_text(amounts: Mapping[str, int]) -> str:
    """Return a text of counted resources that `parse_resources` reads."""
    return ",".join(f"{name}:{number}" for name, number in listed_once(amounts).items())


def parse_unit_power(text: str, has: Container[str] | None = None) -> UnitPower:
    """Return the power of units of ``gpu:25:300,memory:0.1:0.4``.

    Parameters
    ----------
    text : str
        ``NAME:IDLE:BUSY`` of each resource in W, or ``NAME:TYPE:IDLE:BUSY``, of memory by 2**30 byte.
    has : container of str, optional
        Resources that the host has; by default any is fine.

    Raises
    ------
    ValueError
        If it is something else, of a resource that the host lacks, or of one and of its types.
    """
    powers: dict[str, tuple[float, float]] = {}
    for item in filter(str.strip, text.split(",")):
        match = _UNIT_POWER.fullmatch(item)
        name = "" if match is None else MEMORY if match[1] == MEMORY_PROPERTY else match[1]
        try:
            watts = (math.nan, math.nan) if match is None else (float(match[2]), float(match[3]))
        except ValueError:
            watts = (math.nan, math.nan)
        lacks = has is not None and name not in has
        if not name or lacks or name in powers or not all(0 <= each <= LARGEST for each in watts):
            raise ValueError(
                f"{UNIT_POWER_PROPERTY} holds {item.strip()[:80]!r}; NAME:IDLE:BUSY is allowed in W, such as "
                "gpu:25:300, gpu:a100:40:400 or memory:0.1:0.4, once for each resource or type that the host has"
            )
        powers[name] = watts
    if both := [name for name in powers if is_type(name) and whole_of(name) in powers]:
        raise ValueError(
            f"{UNIT_POWER_PROPERTY} gives {both[0]!r} a power, and all of {whole_of(both[0])!r}, too; give each type "
            "one, or all together"
        )
    return tuple((name, *watts) for name, watts in powers.items())


def shown_resources(names: Iterable[str]) -> str:
    """Return names of resources as files have them, for messages."""
    return ", ".join(MEMORY_PROPERTY if name == MEMORY else name for name in names) or "none"
