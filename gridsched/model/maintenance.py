"""Maintenance of hosts, which is known before: they are down from one time to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import pairwise

import numpy as np

from gridsched.arrays import Integers
from gridsched.errors import InputError, did_you_mean
from gridsched.model.host_profiles import PlannedOutages, StateProfile
from gridsched.model.limits import LARGEST
from gridsched.model.platform import Platform


@dataclass(frozen=True)
class Maintenance:
    """What an item of ``--maintenance`` says.

    Attributes
    ----------
    pattern : str
        Of names of hosts.
    begin_s, end_s : float
        From when to when they are down [s].
    """

    pattern: str
    begin_s: float
    end_s: float

    @classmethod
    def read(cls, text: str) -> Maintenance:
        """Return what a text such as ``"86400:93600"`` or ``"n1*=86400:93600"`` says.

        Raises
        ------
        InputError
            If it says something else.
        """
        pattern, _, times = text.rpartition("=")
        try:
            begin_s, end_s = map(float, times.split(":"))
        except ValueError:
            begin_s = end_s = float("nan")
        if not 0 <= begin_s < end_s <= LARGEST:
            raise InputError(
                f"maintenance {text!r}: BEGIN:END in s, END after BEGIN, for all hosts, or NAME_PATTERN=BEGIN:END, "
                "is allowed."
            )
        return cls(pattern or "*", begin_s, end_s)

    def hosts(self, platform: Platform) -> Integers:
        """Return the hosts that it is about; `InputError` if there is none."""
        names = [host.name for host in platform.hosts]
        matches = [h for h, name in enumerate(names) if fnmatchcase(name, self.pattern)]
        if not matches:
            hint = did_you_mean(self.pattern, names)
            raise InputError(f"{platform.name}: maintenance {self.pattern!r}: no host has such a name. {hint}".rstrip())
        return np.array(matches, dtype=np.int64)


def with_maintenance(platform: Platform, texts: Sequence[str]) -> Platform:
    """Return a platform whose hosts are down at the times of their maintenance.

    Raises
    ------
    InputError
        If a text says something else, a host has a state profile already, or two windows of one host overlap.
    """
    windows: dict[int, list[tuple[float, float]]] = {}
    for each in map(Maintenance.read, texts):
        for h in each.hosts(platform).tolist():
            windows.setdefault(h, []).append((each.begin_s, each.end_s))
    states: list[tuple[str, StateProfile]] = []
    for h, times in windows.items():
        name = platform.hosts[h].name
        if name in platform.profiles.state_of:
            raise InputError(
                f"{platform.name}: host {name!r} goes down by itself, too (a state profile, or --failures)."
            )
        times.sort()
        for (_, end_s), (begin_s, _) in pairwise(times):
            if begin_s <= end_s:
                raise InputError(
                    f"{platform.name}: host {name!r} has maintenance until {end_s:g} s and from {begin_s:g} s."
                )
        states.append((name, PlannedOutages(tuple(times))))
    return replace(platform, profiles=replace(platform.profiles, states=(*platform.profiles.states, *states)))
