"""What to make of a table of machines: the options of ``gridsched platform from-table``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from gridsched.errors import InputError
from gridsched.platform_io.overrides import contain_match
from gridsched.platform_io.xml_entries import MAX_HOSTS

#: Share of the busy power that an idle machine draws where neither table nor options say. Half of
#: 18 servers in SPECpower results of 2009 to 2013 lay between 22 and 35 %, their mean at 32 %.
DEFAULT_IDLE_SHARE = 0.3
#: Factors of speed and of busy power of each P-state, the fastest first.
PStates = tuple[tuple[float, float], ...]
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
    pstates : tuple of (float, float) or None
        Factors of speed and of busy power of each P-state, the fastest first.
    cores : int or None
        Cores of each host, each with an equal part of the speed. Default 1: only then is the
        energy of paper 004, eq. 2 exact in SimGrid.
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

    hosts: int | None = None
    rows: str | None = None
    name_pattern: str | None = None
    speed_levels: tuple[float, ...] = ()
    speed_uniform: tuple[float, float] | Literal["rows"] | None = None
    efficiency: str | None = None
    idle_share: float | None = None
    idle_power_w: tuple[float, float] | None = None
    off_power_w: float | None = None
    pstates: PStates | None = None
    cores: int | None = None
    clusters: int | str | None = None
    cluster_bandwidth: tuple[float, ...] = ()
    cluster_latency_s: tuple[float, ...] = ()
    master: bool = False
    shuffle: bool = False
    seed: int = 0
    replicate: int = 0

    def __post_init__(self) -> None:
        self._check_numbers()
        self._check_ranges()
        if self.speed_levels and self.speed_uniform:
            raise InputError("Speed levels and a uniform speed range exclude each other.")
        if self.idle_share is not None and self.idle_power_w is not None:
            raise InputError("An idle share and an idle power exclude each other.")
        if self.efficiency not in (None, *EFFICIENCY_RULES):
            raise InputError(
                f"Efficiency rule {self.efficiency!r}: {', '.join(EFFICIENCY_RULES)} are legal."
            )
        if self.name_pattern is not None:
            contain_match([""], self.name_pattern)

    def _check_numbers(self) -> None:
        for what, value, least, most in (
            ("Number of hosts", self.hosts, 1, MAX_HOSTS),
            ("Number of cores", self.cores, 1, 2**31 - 1),
            ("Number of clusters", self.clusters, 1, MAX_HOSTS),
            ("Seed", self.seed, 0, 2**63),
            ("Replicate", self.replicate, 0, 2**31),
            ("Idle share", self.idle_share, 0, 1),
            ("Off power [W]", self.off_power_w, 0, 1e18),
        ):
            if isinstance(value, (int, float)) and not least <= value <= most:
                raise InputError(f"{what} is {value}; {least} to {most:g} is legal.")

    def _check_ranges(self) -> None:
        speed_range = None if self.speed_uniform == "rows" else self.speed_uniform
        for what, values, above in (
            ("Speed levels [flop/s]", self.speed_levels, True),
            ("Uniform speed range [flop/s]", speed_range or (), True),
            ("Idle power [W]", self.idle_power_w or (), False),
            ("Cluster bandwidth [byte/s]", self.cluster_bandwidth, True),
            ("Cluster latency [s]", self.cluster_latency_s, False),
        ):
            legal = "above 0" if above else "of 0 or more"
            for value in values:
                if not (value > 0 or (value == 0 and not above)) or math.isinf(value):
                    raise InputError(f"{what}: {value} is found; finite numbers {legal} are legal.")
        for what, pair in (
            ("Uniform speed range", speed_range),
            ("Idle power range", self.idle_power_w),
        ):
            if pair and pair[0] > pair[1]:
                raise InputError(f"{what}: {pair[0]:g} is more than {pair[1]:g}.")


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
                f"P-states {text!r} must read 'speed factor:power factor;...', as '1:1;0.8:0.6'"
            ) from None
        if not (0 < speed < math.inf and 0 <= power < math.inf):
            raise ValueError(
                f"P-states {text!r}: speed factors above 0 and power factors of 0 or more are legal"
            )
        states.append((speed, power))
    if states[0][0] < max(speed for speed, _ in states):
        raise ValueError(f"P-states {text!r}: the first must be the fastest")
    return tuple(states)
