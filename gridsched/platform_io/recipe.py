"""What to make of a table of machines: the options of ``gridsched platform from-table``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from gridsched.errors import InputError
from gridsched.model.limits import AtLeastZero, AtLeastZeroRange, Positive, PositiveRange
from gridsched.model.records import check_record
from gridsched.model.tasks import MEMORY
from gridsched.platform_io.host_resources import (
    Resources,
    UnitPower,
    parse_memory_mb,
    parse_resources,
    parse_unit_power,
)
from gridsched.platform_io.overrides import contain_match
from gridsched.platform_io.xml_entries import MAX_HOSTS

#: Share of the busy power that an idle machine draws where neither table nor options say. Half of
#: 18 servers in SPECpower results of 2009 to 2013 lay between 22 and 35 %, their mean at 32 %.
DEFAULT_IDLE_SHARE = 0.3
#: Factors of speed and of busy power of each P-state, the fastest first.
PStates = tuple[tuple[float, float], ...]
#: A number of them.
Clusters = Annotated[int, Field(ge=1, le=MAX_HOSTS)]
#: Columns and options of what hosts have beside cores, and the power of that.
UNIT_COLUMNS = ("memory", "resources", "unit_power")
EFFICIENCY_RULES = ("scaled", "real", "nearest", "linear")


@dataclass(frozen=True)
class PlatformRecipe:
    """How many hosts of which rows, and how fast, efficient and connected they are.

    Attributes
    ----------
    hosts : int or None
        Number of hosts, dealt to the rows in equal numbers, first rows first; None takes one host
        for each row, or the table's ``count``.
    rows : str or None
        Ranks to use, for example ``"1-50,60"``; None takes all.
    name_pattern : str or None
        Regular expression (`contain_match`); rows whose name, computer or site contains a match
        are used.
    speed_levels : tuple of float
        Simulated speeds of whole machines [flop/s], dealt to the rows in order and in equal
        numbers; host ids are then shuffled with the seed.
    speed_uniform : tuple of (float, float), "rows" or None
        Range [flop/s] from which each host's speed is drawn; ``rows``: from the slowest to the
        fastest row used. Without levels and range the real speeds are taken.
    efficiency : str or None
        ``scaled``: ``s_sim * eps_real / s_real``, so that a host burns the real machine's power;
        ``real``: the real efficiency; ``nearest``: that of the table's nearest speed, of two
        equally near the lower; ``linear``: interpolated between the two nearest. None means
        ``nearest`` with `speed_uniform`, else ``scaled``.
    idle_share : float or None
        Idle power as a share of the busy power of each P-state, 0 to 1.
    idle_power_w : tuple of (float, float) or None
        Range [W] from which each host's idle power is drawn; equal in all its P-states.
    off_power_w : float or None
        Power while switched off [W]; None takes the table's, or 0.
    embodied_kg, lifetime_years : float or None
        Carbon that making and disposing of a host emits [kg CO2e], and the time in service over which it
        is spread [years of 365 days]; None takes the table's, or 0.
    pstates : tuple of (float, float) or None
        Factors of speed and of busy power of each P-state, the fastest first.
    cores : int or None
        Cores of each host, each with an equal part of the speed. Default 1: only then is the
        energy of paper 004, eq. 2 exact in SimGrid.
    memory, resources : str or None
        What each host has beside cores, such as ``64G`` and ``gpu:4,fpga:1``; None takes the table's, or nothing.
    unit_power : str or None
        Power of a unit of these that no job has, and of one that a job has [W], of memory by 2**30 byte, such as
        ``gpu:25:300,memory:0.1:0.4``, on hosts that have it; None takes the table's, or none.
    clusters : int, str or None
        A number of clusters with consecutive hosts, or what the hosts of a cluster share:
        ``host`` (each host alone), ``speed``, ``row``, or a column (``cluster, site, computer,
        year, name``). None takes the table's ``cluster`` column, or one cluster.
    cluster_bandwidth : tuple of float
        Bandwidth of the clusters' uplinks [byte/s]: one for all or one for each; empty: infinite.
    cluster_latency_s : tuple of float
        Latency of the uplinks [s], likewise.
    master : bool
        Add a host that computes nothing and hands out tasks.
    shuffle : bool
        Shuffle host ids where real speeds are taken, as it is always done with `speed_levels`.
    seed : int
        Seed of the shuffle, the speeds and the idle powers, each with a stream of its own.
    replicate : int
        Which repetition of the seed.
    """

    hosts: Annotated[int | None, Field(ge=1, le=MAX_HOSTS)] = None
    rows: str | None = None
    name_pattern: str | None = None
    speed_levels: Annotated[tuple[Positive, ...], Field()] = ()
    speed_uniform: Annotated[PositiveRange | Literal["rows"] | None, Field()] = None
    efficiency: str | None = None
    idle_share: Annotated[float | None, Field(ge=0, le=1)] = None
    idle_power_w: Annotated[AtLeastZeroRange | None, Field()] = None
    off_power_w: Annotated[float | None, Field(ge=0, le=1e18)] = None
    embodied_kg: Annotated[float | None, Field(ge=0, le=1e18)] = None
    lifetime_years: Annotated[float | None, Field(gt=0, le=1e18)] = None
    pstates: PStates | None = None
    cores: Annotated[int | None, Field(ge=1, le=2**31 - 1)] = None
    memory: str | None = None
    resources: str | None = None
    unit_power: str | None = None
    clusters: Annotated[Clusters | str | None, Field()] = None
    cluster_bandwidth: Annotated[tuple[Positive, ...], Field()] = ()
    cluster_latency_s: Annotated[tuple[AtLeastZero, ...], Field()] = ()
    master: bool = False
    shuffle: bool = False
    seed: Annotated[int, Field(ge=0, le=2**63)] = 0
    replicate: Annotated[int, Field(ge=0, le=2**31)] = 0

    def __post_init__(self) -> None:
        check_record(self, PlatformRecipe)
        if self.speed_levels and self.speed_uniform:
            raise InputError("Speed levels and a uniform speed range exclude each other.")
        if self.idle_share is not None and self.idle_power_w is not None:
            raise InputError("An idle share and an idle power exclude each other.")
        if self.efficiency not in (None, *EFFICIENCY_RULES):
            raise InputError(f"Efficiency rule {self.efficiency!r}: {', '.join(EFFICIENCY_RULES)} are allowed.")
        if self.name_pattern is not None:
            contain_match([""], self.name_pattern)
        try:
            units_of_row(self.memory or "", self.resources or "", "")
            parse_unit_power(self.unit_power or "")
        except ValueError as error:
            raise InputError(f"{error}.") from None


def parse_ranks(text: str) -> list[tuple[int, int]]:
    """Return the ranges of ``"1-50,60"`` as (first, last) pairs.

    Raises
    ------
    InputError
        If it is malformed.
    """
    ranges = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:\s*-\s*(\d{1,9}))?\s*", part)
        if not match or int(match[1]) > int(match[2] or match[1]):
            raise InputError(f"Rows {text!r} must read like '1-50,60'.")
        ranges.append((int(match[1]), int(match[2] or match[1])))
    return ranges


def parse_pstates(text: str) -> PStates:
    """Return (speed factor, power factor) of each P-state from ``"1:1;0.8:0.6"``.

    Raises
    ------
    ValueError
        If it is malformed, or the first P-state is not the fastest.
    """
    states = []
    for part in text.split(";"):
        numbers = part.split(":")
        try:
            speed, power = (float(number) for number in numbers)
        except ValueError:
            raise ValueError(
                f"P-states {text!r} must read 'speed factor:power factor;...', such as '1:1;0.8:0.6'"
            ) from None
        if not (0 < speed < math.inf and 0 <= power < math.inf):
            raise ValueError(f"P-states {text!r}: speed factors above 0 and power factors of 0 or more are allowed")
        states.append((speed, power))
    if states[0][0] < max(speed for speed, _ in states):
        raise ValueError(f"P-states {text!r}: the first must be the fastest")
    return tuple(states)


def units_of_row(memory: str, resources: str, unit_power: str) -> tuple[Resources, UnitPower]:
    """Return what a machine has beside cores, and the power of its units.

    Parameters
    ----------
    memory, resources, unit_power : str
        As in `PlatformRecipe`; semicolons may separate items, too, as cells of a table have no commas.

    Raises
    ------
    ValueError
        If one of them is something else, or power is of something that the machine lacks.
    """
    has: Resources = ((MEMORY, parse_memory_mb(memory)),) if memory.strip() else ()
    has += parse_resources(resources.replace(";", ","))
    return has, parse_unit_power(unit_power.replace(";", ","), dict(has))
