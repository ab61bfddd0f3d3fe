"""What a user gives hosts by patterns of their names: power, P-states to start in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TypeVar

import numpy as np

from gridsched.arrays import Booleans, Integers
from gridsched.errors import InputError, did_you_mean
from gridsched.extras import load
from gridsched.model.limits import LARGEST
from gridsched.model.platform import Host, Platform, PState
from gridsched.platform_io.host_resources import UnitPower, parse_unit_power, shown_resources

Value = TypeVar("Value")
#: Idle, epsilon and all-cores power of one P-state [W].
Wattage = tuple[float, float, float]
#: What a value without a pattern means.
EVERYONE = "*"


def parse_wattage(text: str) -> Wattage:
    """Return idle, epsilon and all-cores power [W] of ``Idle:Epsilon:AllCores``.

    Raises
    ------
    ValueError
        If it is something else, or a power is negative or not finite.
    """
    parts = text.split(":")
    if len(parts) not in (2, 3):
        raise ValueError(f"{text.strip()!r} must read Idle:AllCores or Idle:Epsilon:AllCores")
    values = []
    for part in parts:
        try:
            values.append(float(part))
        except ValueError:
            raise ValueError(f"{part.strip()!r} is not a number") from None
        if not 0 <= values[-1] <= LARGEST:
            raise ValueError(f"{part.strip()!r} is not a power of 0 W or more (up to {LARGEST:g} W)")
    return values[0], values[-2], values[-1]  # of two SimGrid takes idle for epsilon


def split_pattern(text: str) -> tuple[str, str]:
    """Return the pattern and the value of an item; `EVERYONE` where it has no pattern.

    Raises
    ------
    ValueError
        If the item begins with ``=``.
    """
    pattern, equals, value = text.rpartition("=")
    if equals and not pattern:
        raise ValueError("there is no pattern of names before '='")
    return pattern or EVERYONE, value


def last_match(items: Sequence[tuple[str, Value]], name: str) -> Value | None:
    """Return the value of the last item whose pattern fits a name; None if none does."""
    return next((value for each, value in reversed(items) if fnmatchcase(name, each)), None)


def contain_match(texts: Iterable[str], pattern: str) -> Booleans:
    """Return which texts contain a match of a regular expression, whatever the case.

    RE2 looks for it, in a time that grows with the text's length alone; it has all but references
    to what was matched before, and looking ahead and behind.

    Raises
    ------
    InputError
        If it is no such expression.
    """
    pa, compute = (load(name, "Name patterns") for name in ("pyarrow", "pyarrow.compute"))
    strings = pa.array(texts, pa.string())
    try:
        matches = compute.match_substring_regex(strings, pattern, ignore_case=True)
    except (pa.ArrowInvalid, UnicodeError) as error:
        reason = str(error).removeprefix("Invalid regular expression: ")
        raise InputError(f"Name pattern {pattern!r}: {reason}.") from None
    return np.asarray(matches.to_numpy(zero_copy_only=False), dtype=bool)


def check_patterns(option: str, items: Iterable[tuple[str, object]], names: Iterable[str], where: str) -> None:
    """Raise `InputError` for a pattern that no host has.

    Parameters
    ----------
    option : str
        What gave the patterns.
    items : iterable of tuple
        Pattern, and its value.
    names : iterable of str
        Of the hosts.
    where : str
        The platform, for the message.
    """
    all_names = list(names)
    for pattern, _ in items:
        if not any(fnmatchcase(name, pattern) for name in all_names):
            hint = did_you_mean(pattern, all_names)
            raise InputError(f"{where}: {option} {pattern!r}: no host has such a name. {hint}".rstrip())


#: Hosts that a warning names.
_MOST_NAMED = 3
#: The word for a run without energy.
NONE = "none"
#: What means that jobs draw what was measured, and whether what lies outside a node's range is cut.
MEASURED = {"measured": False, "measured:clamped": True}
REPLACED = "have power of their own, which --power replaces"
SAME_IN_ALL = "draw the same power in each of their P-states, as set by --power"


@dataclass(frozen=True)
class PowerOverride:
    """The meaning of `Scenario.power`.

    Attributes
    ----------
    items : tuple of (str, tuple of Wattage)
        Pattern of host names, and idle, epsilon and all-cores power [W] of each P-state, or of all.
        The last one that matches a host counts.
    is_none : bool
        No host has power: energy is not computed.
    clamps : bool or None
        Jobs draw what was measured; where that lies outside a node's range it is cut (True) or refused.
        None: every job draws all that a node can.
    """

    items: tuple[tuple[str, tuple[Wattage, ...]], ...] = ()
    is_none: bool = False
    clamps: bool | None = None

    @classmethod
    def read(cls, texts: Sequence[str]) -> PowerOverride:
        """Return what texts such as ``"95:100:200"`` or ``"node-*=95:100:200"`` say.

        Raises
        ------
        InputError
            If one of them is not of this form.
        """
        return _power_override(tuple(texts))

    def __bool__(self) -> bool:
        return self.is_none or bool(self.items)

    def of(self, host: str, n_pstates: int, where: str) -> tuple[Wattage, ...] | None:
        """Return the power of each P-state of a host [W]; None where nothing is given.

        Raises
        ------
        InputError
            If powers are given for another number of P-states than the host has.
        """
        watts = last_match(self.items, host)
        if watts is None:
            return None
        if len(watts) not in (1, n_pstates):
            raise InputError(
                f"{where}: --power gives {len(watts)} powers to host {host!r}, which has "
                f"{n_pstates} P-state(s); one for all or one for each is allowed."
            )
        return watts * (n_pstates // len(watts))

    def check_names(self, names: Iterable[str], where: str) -> None:
        """Raise `InputError` for a pattern that no host of a platform has."""
        check_patterns("--power", self.items, names, where)


@lru_cache(64)
def _power_override(texts: tuple[str, ...]) -> PowerOverride:
    """Return what is given; each run of a platform asks again."""
    if NONE in texts:
        if len(texts) > 1:
            raise InputError("--power none cannot be combined: no host has energy then.")
        return PowerOverride(is_none=True)
    measured = [text for text in texts if text in MEASURED]
    items = tuple(_power_item(text) for text in texts if text not in MEASURED)
    return PowerOverride(items, clamps=MEASURED[measured[-1]] if measured else None)


def _power_item(text: str) -> tuple[str, tuple[Wattage, ...]]:
    try:
        pattern, watts = split_pattern(text)
        return pattern, tuple(parse_wattage(part) for part in watts.split(","))
    except ValueError as error:
        raise InputError(
            f"--power {text!r}: {error}; IDLE:EPSILON:BUSY in W, one for each P-state or for all, "
            "NAME_PATTERN=IDLE:EPSILON:BUSY, measured, measured:clamped or none are allowed."
        ) from None


def with_power(platform: Platform, given: PowerOverride) -> Platform:
    """Return a platform whose hosts draw what is given.

    Parameters
    ----------
    platform : Platform
    given : PowerOverride
        A host that it does not name keeps what it has.

    Raises
    ------
    InputError
        If a pattern fits no host, or a host has another number of P-states.
    """
    if not given:
        return platform
    given.check_names((host.name for host in platform.everyone), platform.name)

    def changed(host: Host) -> Host:
        if given.is_none:
            states = tuple(PState(state.speed) for state in host.pstates)
            still = tuple(PState(state.speed) for state in host.switch_pstates)
            return replace(host, pstates=states, switch_pstates=still, off_w=0.0, has_energy=False)
        watts = given.of(host.name, len(host.pstates), platform.name)
        if watts is None:
            return host
        states = tuple(PState(s.speed, *w) for s, w in zip(host.pstates, watts, strict=True))
        still = host.switch_pstates
        if not host.has_energy:
            still = tuple(PState(0.0, *without_work(watts)) for _ in still)
        if any(state.speed > 0 and state.busy_w < state.idle_w for state in states):
            upside_down.append(host.name)
        return replace(host, pstates=states, switch_pstates=still, has_energy=True)

    upside_down: list[str] = []
    powered = replace(
        platform,
        hosts=tuple(changed(host) for host in platform.hosts),
        master=None if platform.master is None else changed(platform.master),
        bystanders=tuple(changed(host) for host in platform.bystanders),
    )
    if not upside_down:
        return powered
    names = ", ".join(map(repr, upside_down[:_MOST_NAMED])) + ", ..." * (len(upside_down) > _MOST_NAMED)
    note = (
        f"{len(upside_down)} host(s) ({names}) draw less power busy than idle: --power reads IDLE:EPSILON:BUSY. "
        "They are simulated as they are"
    )
    return replace(powered, warnings=(*powered.warnings, note))


def with_unit_power(platform: Platform, texts: Sequence[str]) -> Platform:
    """Return a platform whose hosts have the given power of units of what they have beside cores.

    Parameters
    ----------
    platform : Platform
    texts : sequence of str
        ``[PATTERN=]NAME:IDLE:BUSY,...`` [W], of memory by 2**30 byte. The last one that fits a host's name counts, of
        the resources that the host has.

    Raises
    ------
    InputError
        If one is something else, or fits no host that has a resource that it names.
    """
    items: list[tuple[str, UnitPower]] = []
    for text in texts:
        try:
            pattern, value = split_pattern(text)
            items.append((pattern, parse_unit_power(value)))
        except ValueError as error:
            raise InputError(f"--unit-power {text[:80]!r}: {error}.") from None
    check_patterns("--unit-power", items, (host.name for host in platform.hosts), platform.name)
    for pattern, powers in items:
        found = {name for host in platform.hosts if fnmatchcase(host.name, pattern) for name, _ in host.resources}
        if lacking := [name for name, *_ in powers if name not in found]:
            raise InputError(
                f"{platform.name}: --unit-power is of {shown_resources(lacking)}, and no host like {pattern!r} has "
                f"that; they have {shown_resources(sorted(found))}."
            )

    def changed(host: Host) -> Host:
        powers = last_match(items, host.name)
        if powers is None:
            return host
        return replace(host, unit_power=tuple(each for each in powers if each[0] in dict(host.resources)))

    return replace(platform, hosts=tuple(changed(host) for host in platform.hosts)) if items else platform


def without_work(watts: Sequence[Wattage]) -> Wattage:
    """Return the power in a P-state of speed 0 of which nothing is known: idle in P-state 0."""
    return (watts[0][0],) * 3


def wattage_text(host: Host) -> str:
    """Return the power of a host as SimGrid's property ``wattage_per_state`` has it."""
    return ", ".join(f"{float(s.idle_w)!r}:{float(s.epsilon_w)!r}:{float(s.busy_w)!r}" for s in host.all_pstates)


def read_pstates(given: int | str | None) -> tuple[tuple[str, int], ...]:
    """Return the meaning of `Scenario.pstate`: patterns of host names, and a P-state for each.

    Parameters
    ----------
    given : int or str, optional
        As ``1``, or ``"old-*=1,new-*=0"``; of several items the last one that fits a host counts.

    Raises
    ------
    InputError
        If it is not of this form.
    """
    return () if given is None else tuple(_pstate_item(each) for each in str(given).split(","))


def _pstate_item(text: str) -> tuple[str, int]:
    try:
        pattern, value = split_pattern(text.strip())
        if not re.fullmatch(r"\d{1,9}", value.strip()):
            raise ValueError(f"{value!r} is not a whole number of at least 0")
    except ValueError as error:
        raise InputError(f"--pstate {text!r}: {error}; K for all hosts or NAME_PATTERN=K is allowed.") from None
    return pattern, int(value)


def pstates_of(platform: Platform, given: int | str | None) -> Integers:
    """Return the P-state that each computing host starts in, shape (hosts,).

    Parameters
    ----------
    platform : Platform
    given : int or str, optional
        See `read_pstates`. A host that it does not name starts as its file specifies.

    Raises
    ------
    InputError
        If a pattern fits no computing host, or a host lacks its P-state.
    """
    items = read_pstates(given)
    check_patterns("--pstate", items, (host.name for host in platform.hosts), platform.name)
    matches = [(last_match(items, host.name), host.pstate) for host in platform.hosts]
    pstates = np.array([own if match is None else match for match, own in matches], dtype=np.int64)
    platform.check_pstates(pstates)
    return pstates


def one_pstate(given: int | str | None) -> int:
    """Return the one P-state of machines that have no names; see `read_pstates`.

    Raises
    ------
    InputError
        If P-states are given by names.
    """
    items = read_pstates(given)
    named = [pattern for pattern, _ in items if pattern != EVERYONE]
    if named:
        raise InputError(f"--pstate {given!r}: no machine has a name that {named[0]!r} could fit; K alone is allowed.")
    return items[-1][1] if items else 0
