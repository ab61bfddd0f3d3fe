"""Power that a user gives to hosts, where the platform file says nothing of it or another one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gridsched.errors import InputError
from gridsched.model.platform import Host, Platform, PState
from gridsched.platform_io.name_patterns import check_patterns, last_match, split_pattern
from gridsched.platform_io.xml_energy import Wattage, parse_wattage

#: What stands for a run in which no energy is told.
NONE = "none"
REPLACED = "have power of their own, in whose place --power stands"
SAME_IN_ALL = "draw the same power in each of their P-states, as --power says"


@dataclass(frozen=True)
class GivenPower:
    """What `RunSettings.power` says.

    Attributes
    ----------
    items : tuple of (str, tuple of Wattage)
        Pattern of host names, and idle, epsilon and all-cores power [W] of each P-state, or of all.
        The last one that matches a host counts.
    is_none : bool
        No host has power: nothing is said of energy.
    """

    items: tuple[tuple[str, tuple[Wattage, ...]], ...] = ()
    is_none: bool = False

    @classmethod
    def read(cls, texts: Sequence[str]) -> GivenPower:
        """Return what texts such as ``"95:100:200"`` or ``"node-*=95:100:200"`` say.

        Raises
        ------
        InputError
            If one of them says nothing of the kind.
        """
        if NONE in texts:
            if len(texts) > 1:
                raise InputError("--power none stands alone: no energy is told of any host.")
            return cls(is_none=True)
        return cls(tuple(_item(text) for text in texts))

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
                f"{n_pstates} P-state(s); one for all or one for each is legal."
            )
        return watts * (n_pstates // len(watts))

    def check_names(self, names: Iterable[str], where: str) -> None:
        """Raise `InputError` for a pattern that no host of a platform has."""
        check_patterns("--power", self.items, names, where)


def _item(text: str) -> tuple[str, tuple[Wattage, ...]]:
    try:
        pattern, watts = split_pattern(text)
        return pattern, tuple(parse_wattage(part) for part in watts.split(","))
    except ValueError as error:
        raise InputError(
            f"--power {text!r}: {error}; IDLE:EPSILON:BUSY in W, one for each P-state or for all, "
            "NAME_PATTERN=IDLE:EPSILON:BUSY or none are legal."
        ) from None


def with_power(platform: Platform, given: GivenPower) -> Platform:
    """Return a platform whose hosts draw what is given.

    Parameters
    ----------
    platform : Platform
    given : GivenPower
        Where it says nothing of a host, the host keeps what it has.

    Raises
    ------
    InputError
        If a pattern fits no host, or a host has another number of P-states.
    """
    if not given:
        return platform
    everyone = [*platform.hosts, *(host for _, host in platform.idle_hosts_named)]
    given.check_names((host.name for host in everyone), platform.name)

    def changed(host: Host) -> Host:
        if given.is_none:
            states = tuple(PState(state.speed) for state in host.pstates)
            still = tuple(PState(state.speed) for state in host.switch_pstates)
            return replace(
                host, pstates=states, switch_pstates=still, off_w=0.0, has_energy=False
            )  # fmt: skip
        watts = given.of(host.name, len(host.pstates), platform.name)
        if watts is None:
            return host
        states = tuple(PState(s.speed, *w) for s, w in zip(host.pstates, watts, strict=True))
        still = host.switch_pstates
        if not host.has_energy:
            still = tuple(PState(0.0, *without_work(watts)) for _ in still)
        return replace(host, pstates=states, switch_pstates=still, has_energy=True)

    return replace(
        platform,
        hosts=tuple(changed(host) for host in platform.hosts),
        master=None if platform.master is None else changed(platform.master),
        bystanders=tuple(changed(host) for host in platform.bystanders),
    )


def without_work(watts: Sequence[Wattage]) -> Wattage:
    """Return the power in a P-state of speed 0 of which nothing is known: idle in P-state 0."""
    return (watts[0][0],) * 3


def wattage_text(host: Host) -> str:
    """Return the power of a host as SimGrid's property ``wattage_per_state`` has it."""
    return ", ".join(
        f"{float(s.idle_w)!r}:{float(s.epsilon_w)!r}:{float(s.busy_w)!r}" for s in host.all_pstates
    )
