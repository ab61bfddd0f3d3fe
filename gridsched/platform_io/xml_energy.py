"""The energy properties of a host, read as SimGrid's ``host_energy`` plugin reads them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from gridsched.model.limits import LARGEST
from gridsched.platform_io.findings import Findings

#: Idle, epsilon and all-cores power of one P-state [W].
Wattage = tuple[float, float, float]

_NO_PROFILE = "have no wattage_per_state property: they count with 0 W"
_OLD_PROFILE = (
    "have the old property watt_per_state, which SimGrid ignores: they count with 0 W. "
    "Rename it to wattage_per_state"
)
_UPSIDE_DOWN = (
    "draw less power busy than idle: wattage_per_state reads Idle:Epsilon:AllCores. They are "
    "simulated as they are"
)
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


def _checked_order(
    host: str, wattages: tuple[Wattage, ...], findings: Findings
) -> tuple[Wattage, ...]:
    """Return the powers; where a loaded host draws less than an idle one, that is a finding."""
    if any(busy < idle for idle, _, busy in wattages):
        findings.gap(_UPSIDE_DOWN, host)
    return wattages


def read_amount(
    host: str, properties: Mapping[str, str], name: str, findings: Findings, line: int
) -> float:
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
            f"host {host!r}: {name} is {text!r}; a number of 0 or more, up to {LARGEST:g}, is "
            "legal.",
            line,
        )
        return 0.0
    return value
