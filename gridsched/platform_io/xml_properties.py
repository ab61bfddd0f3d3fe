"""Properties of a host: energy as SimGrid's ``host_energy`` plugin reads it, and switching.

How long hosts boot and shut down, and in which P-state, stands in properties of our own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from gridsched.model.platform import Host
from gridsched.model.records import LARGEST
from gridsched.model.tasks import CORES, MEMORY
from gridsched.platform_io.xml_document import Findings
from gridsched.platform_io.xml_entries import HostEntry

#: Idle, epsilon and all-cores power of one P-state [W].
Wattage = tuple[float, float, float]

_NO_PROFILE = "have no wattage_per_state property: they count with 0 W"
_OLD_PROFILE = (
    "have the old property watt_per_state, which SimGrid ignores: they count with 0 W. Rename it to wattage_per_state"
)
_UPSIDE_DOWN = (
    "draw less power busy than idle: wattage_per_state reads Idle:Epsilon:AllCores. They are simulated as they are"
)
#: Properties of our own: what jobs that share a host may take of it beside cores.
MEMORY_PROPERTY, RESOURCES_PROPERTY = "memory", "resources"
_OLD_OFF = "have the old property watt_off, which SimGrid ignores: rename it to wattage_off"


def parse_watts(text: str) -> float:
    """Return a finite, non-negative power [W].

    Raises
    ------
    ValueError
        If it is something else.
    """
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text.strip()!r} is no number") from None
    if not 0 <= value <= LARGEST:
        raise ValueError(f"{text.strip()!r} is no power of 0 W or more (up to {LARGEST:g} W)")
    return value


def parse_wattage(text: str) -> Wattage:
    """Return idle, epsilon and all-cores power [W] of ``Idle:Epsilon:AllCores``.

    Raises
    ------
    ValueError
        If it is something else.
    """
    parts = text.split(":")
    if len(parts) not in (2, 3):
        raise ValueError(f"{text.strip()!r} must read Idle:AllCores or Idle:Epsilon:AllCores")
    values = [parse_watts(part) for part in parts]
    if len(values) == 2:  # SimGrid then takes idle for epsilon
        return values[0], values[0], values[1]
    return values[0], values[1], values[2]


def read_wattages(
    host: str, properties: Mapping[str, str], n_speeds: int, findings: Findings, line: int
) -> tuple[Wattage, ...] | None:
    """Return the power of each P-state [W], or None where the host has no usable figures.

    Parameters
    ----------
    host : str
        Name, for messages.
    properties : mapping
        The host's properties.
    n_speeds : int
        Number of P-states; SimGrid aborts unless ``wattage_per_state`` has as many entries.
    findings : Findings
        Takes what is wrong or missing.
    line : int
        Line of the host's element.
    """
    if "watt_off" in properties and "wattage_off" not in properties:
        findings.gap(_OLD_OFF, host)
    text = properties.get("wattage_per_state")
    if text is None:
        findings.gap(_OLD_PROFILE if "watt_per_state" in properties else _NO_PROFILE, host)
        return None
    groups = text.split(",")
    if len(groups) != n_speeds:
        findings.problem(
            f"host {host!r} has {n_speeds} speed{'s' * (n_speeds != 1)} but {len(groups)} "
            f"wattage_per_state entr{'ies' if len(groups) != 1 else 'y'}; SimGrid needs one for "
            "each."
        )
        return None
    try:
        return _checked_order(host, tuple(parse_wattage(group) for group in groups), findings)
    except ValueError as error:
        findings.problem(f"host {host!r}: wattage_per_state: {error}.", line)
        return None


def _checked_order(host: str, wattages: tuple[Wattage, ...], findings: Findings) -> tuple[Wattage, ...]:
    """Return the powers; where a loaded host draws less than an idle one, that is a finding."""
    if any(busy < idle for idle, _, busy in wattages):
        findings.gap(_UPSIDE_DOWN, host)
    return wattages


def read_amount(host: str, properties: Mapping[str, str], name: str, findings: Findings, line: int) -> float:
    """Return the property `name` of `host`, such as ``wattage_off``; 0 if `properties` lack it.

    What is wrong with it goes to `findings`, with the `line` of the host's element.
    """
    text = properties.get(name)
    if text is None:
        return 0.0
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= LARGEST:
        findings.problem(
            f"host {host!r}: {name} is {text!r}; a number of 0 or more, up to {LARGEST:g}, is legal.", line
        )
        return 0.0
    return value


_MEMORY = re.compile(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*([KMGTP]?)(?:i?B)?\s*", re.I)
_RESOURCE = re.compile(r"\s*([A-Za-z]\w{0,39})\s*:\s*(\d{1,9})\s*")


def parse_memory_mb(text: str) -> int:
    """Return an amount of memory [2**20 byte] as Slurm writes it: ``64G``, ``4000M``; plain ones are MB.

    Raises
    ------
    ValueError
        If it is something else.
    """
    match = _MEMORY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text.strip()!r} is no amount of memory, as 64G or 4000M")
    steps = " KMGTP".index(match[2].upper() or "M") - 2
    return math.ceil(float(match[1]) * 1024.0**steps)


def read_resources(entry: HostEntry, findings: Findings) -> tuple[tuple[str, int], ...]:
    """Return what a host has for jobs that share it, by its properties ``memory`` and ``resources``.

    What is wrong goes to `findings`.
    """
    amounts: dict[str, int] = {}
    if MEMORY_PROPERTY in entry.properties:
        try:
            amounts[MEMORY] = parse_memory_mb(entry.properties[MEMORY_PROPERTY])
        except ValueError as error:
            findings.remark(f"have the property {MEMORY_PROPERTY}, and {error}: they count with none", entry.name)
    for item in filter(str.strip, entry.properties.get(RESOURCES_PROPERTY, "").split(",")):
        match = _RESOURCE.fullmatch(item)
        if match is None or match[1] in (CORES, MEMORY, *amounts):
            findings.problem(
                f"host {entry.name!r}: {RESOURCES_PROPERTY} holds {item.strip()!r}; NAME:NUMBER is legal, each "
                "name once, as gpu:4; cores and memory have an attribute and a property of their own.",
                entry.line,
            )
        else:
            amounts[match[1]] = int(match[2])
    return tuple(amounts.items())


def resource_properties(host: Host) -> dict[str, str]:
    """Return the properties of a host that `read_resources` reads."""
    has = dict(host.resources)
    memory, counted = has.pop(MEMORY, None), ",".join(f"{name}:{number}" for name, number in has.items())
    texts = {} if memory is None else {MEMORY_PROPERTY: f"{memory}M"}
    return texts | ({RESOURCES_PROPERTY: counted} if counted else {})


#: Properties that say how long a host is being switched [s], and in which P-state of speed 0;
#: fields of `Host` are called the same.
_PROPERTIES = (("boot_time_s", "boot_pstate"), ("shutdown_time_s", "shutdown_pstate"))


def read_switching(entry: HostEntry, findings: Findings) -> dict[str, Any]:
    """Return times [s] and P-states as the fields of `Host`.

    What is wrong goes to `findings`: above all a P-state of speed 0 of which nothing says what it
    is for.
    """
    fields: dict[str, Any] = {}
    for time, pstate in _PROPERTIES:
        fields[time] = read_amount(entry.name, entry.properties, time, findings, entry.line)
        if pstate not in entry.properties:
            continue
        fields[pstate] = _pstate(entry, pstate, findings)
        if fields[pstate] is not None and not fields[time]:
            findings.problem(
                f"host {entry.name!r} has the property {pstate} and no {time}: say how long it is in that P-state [s].",
                entry.line,
            )
    first = len(entry.speeds)
    named = {fields.get(pstate) for _, pstate in _PROPERTIES}
    unnamed = [str(k) for k in range(first, first + entry.n_still) if k not in named]
    if unnamed:
        findings.problem(
            f"host {entry.name!r} has speed 0 in P-state {' and '.join(unnamed)}, and nothing "
            "says what for: give it the properties boot_pstate and boot_time_s [s], "
            "shutdown_pstate and shutdown_time_s [s], or leave such P-states out.",
            entry.line,
        )
    return fields


def _pstate(entry: HostEntry, name: str, findings: Findings) -> int | None:
    """Return the number of a P-state of speed 0 that a property names."""
    text, first = entry.properties[name].strip(), len(entry.speeds)
    if text.isdecimal() and len(text) < 9 and first <= int(text) < first + entry.n_still:
        return int(text)
    legal = f"its P-states of speed 0 are {first} to {first + entry.n_still - 1}"
    findings.problem(
        f"host {entry.name!r}: {name} is {text!r}; "
        + (legal if entry.n_still else "it has no P-state of speed 0")
        + ".",
        entry.line,
    )
    return None


def switch_properties(host: Host) -> dict[str, str]:
    """Return the properties of a host that `read_switching` reads, without those that say 0."""
    texts: dict[str, str] = {}
    for time, pstate in _PROPERTIES:
        if getattr(host, time):
            texts[time] = repr(float(getattr(host, time)))
        if getattr(host, pstate) is not None:
            texts[pstate] = str(getattr(host, pstate))
    return texts
