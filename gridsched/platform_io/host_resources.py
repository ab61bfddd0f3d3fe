"""Texts about what hosts have beside cores, in files, tables and options: memory, counted resources, their power."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable

from gridsched.model.limits import LARGEST
from gridsched.model.tasks import CORES, MEMORY

#: Properties of our own: what jobs that share a host may take of it beside cores.
MEMORY_PROPERTY, RESOURCES_PROPERTY = "memory", "resources"
#: What a unit of them draws [W], of memory 2**30 byte.
UNIT_POWER_PROPERTY = "unit_power"
#: Name and number of each resource (`gridsched.model.platform.Host.resources`).
Resources = tuple[tuple[str, int], ...]
#: Name, idle and busy power of a unit [W] (`gridsched.model.platform.Host.unit_power`).
UnitPower = tuple[tuple[str, float, float], ...]

_MEMORY = re.compile(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*([KMGTP]?)(?:i?B)?\s*", re.I)
_RESOURCE = re.compile(r"\s*([A-Za-z]\w{0,39})\s*:\s*(\d{1,9})\s*")
_UNIT_POWER = re.compile(r"\s*([A-Za-z]\w{0,39})\s*:([^:,]{1,40}):([^:,]{1,40})")


def parse_memory_mb(text: str) -> int:
    """Return an amount of memory [2**20 byte] as Slurm writes it: ``64G``, ``4000M``; plain ones are MB.

    Raises
    ------
    ValueError
        If it is something else.
    """
    match = _MEMORY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text.strip()[:80]!r} is not an amount of memory, such as 64G or 4000M")
    steps = " KMGTP".index(match[2].upper() or "M") - 2
    return math.ceil(float(match[1]) * 1024.0**steps)


def parse_resources(text: str) -> Resources:
    """Return the counted resources of ``gpu:4,fpga:1``, without cores and memory.

    Raises
    ------
    ValueError
        If it is something else.
    """
    amounts: dict[str, int] = {}
    for item in filter(str.strip, text.split(",")):
        match = _RESOURCE.fullmatch(item)
        if match is None or match[1] in (CORES, MEMORY, *amounts):
            raise ValueError(
                f"{RESOURCES_PROPERTY} holds {item.strip()[:80]!r}; NAME:NUMBER is allowed, each name once, such as "
                "gpu:4; cores and memory are given separately"
            )
        amounts[match[1]] = int(match[2])
    return tuple(amounts.items())


def parse_unit_power(text: str, has: Container[str] | None = None) -> UnitPower:
    """Return the power of units of ``gpu:25:300,memory:0.1:0.4``.

    Parameters
    ----------
    text : str
        ``NAME:IDLE:BUSY`` of each resource in W, of memory by 2**30 byte.
    has : container of str, optional
        Resources that the host has; by default any is fine.

    Raises
    ------
    ValueError
        If it is something else, or of a resource that the host lacks.
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
                "gpu:25:300 or memory:0.1:0.4, once for each resource that the host has"
            )
        powers[name] = watts
    return tuple((name, *watts) for name, watts in powers.items())


def shown_resources(names: Iterable[str]) -> str:
    """Return names of resources as files have them, for messages."""
    return ", ".join(MEMORY_PROPERTY if name == MEMORY else name for name in names) or "none"
