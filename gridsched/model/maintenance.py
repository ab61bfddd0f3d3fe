"""Maintenance of hosts, which is known before: they are down from one time to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import pairwise

import numpy as np

from gridsched.arrays import Integers
from gridsched.errors import InputError, did_you_mean
from gridsched.model.calendar import Calendar, is_date, window_on_calendar
from gridsched.model.host_profiles import PlannedOutages, StateProfile
from gridsched.model.limits import LARGEST
from gridsched.model.platform import Platform


@dataclass(frozen=True)
class Maintenance:
    """An item of ``--maintenance``.

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
    def read(cls, text: str, calendar: Calendar | None = None) -> Maintenance:
        """Return the item that ``"86400:93600"``, ``"n1*=86400:93600"`` or ``"2024-03-05T08:00/12:00"`` specifies.

        Parameters
        ----------
        text : str
        calendar : Calendar, optional
            On which dates are.

        Raises
        ------
        InputError
            If it specifies something else, or dates without a calendar, or before its begin.
        """
        pattern, _, times = text.rpartition("=")
        if is_date(times):
            owner = f"maintenance {text!r}"
            begin_s, end_s = window_on_calendar(calendar, times, owner)
            if begin_s < 0:
                raise InputError(f"{owner}: it begins {-begin_s:,.10g} s before the first submission of the log.")
        else:
            try:
                begin_s, end_s = map(float, times.split(":"))
            except ValueError:
                begin_s = end_s = float("nan")
        if not 0 <= begin_s < end_s <= LARGEST:
            raise InputError(
                f"maintenance {text!r}: BEGIN:END in s, END after BEGIN, for all hosts, or NAME_PATTERN=BEGIN:END, "
                "is allowed; with a log that has dates also BEGIN/END, as 2024-03-05T08:00/12:00."
            )
        return cls(pattern or "*", begin_s, end_s)

    @property
    def text(self) -> str:
        """What `read` reads, in seconds."""
        return f"{self.pattern}={self.begin_s!r}:{self.end_s!r}"

    def hosts(self, platform: Platform) -> Integers:
        """Return the hosts that it is about; `InputError` if there is none."""
        names = [host.name for host in platform.hosts]
        matches = [h for h, name in enumerate(names) if fnmatchcase(name, self.pattern)]
        if not matches:
            hint = did_you_mean(self.pattern, names)
            raise InputError(f"{platform.name}: maintenance {self.pattern!r}: no host has such a name. {hint}".rstrip())
        return np.array(matches, dtype=np.int64)


def in_seconds(texts: Sequence[str], calendar: Calendar | None) -> tuple[str, ...]:
    """Return items of ``--maintenance`` without dates; those in seconds are as they were.

    Raises
    ------
    InputError
        If one has dates that are not on the calendar, or there is none.
    """
    return tuple(Maintenance.read(text, calendar).text if is_date(text.rpartition("=")[2]) else text for text in texts)


def with_maintenance(platform: Platform, texts: Sequence[str]) -> Platform:
    """Return a platform whose hosts are down at the times of their maintenance, and at no others that were planned.

    A scenario that was run has such a platform already; it can be run again.

    Raises
    ------
    InputError
        If a text specifies something else, a host has a state profile already, or two windows of one host overlap.
    """
    kept = tuple(each for each in platform.profiles.states if not isinstance(each[1], PlannedOutages))
    goes_down_itself = dict(kept)
    windows: dict[int, list[tuple[float, float]]] = {}
    for each in map(Maintenance.read, texts):
        for h in each.hosts(platform).tolist():
            windows.setdefault(h, []).append((each.begin_s, each.end_s))
    states: list[tuple[str, StateProfile]] = []
    for h, times in windows.items():
        name = platform.hosts[h].name
        if name in goes_down_itself:
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
    return replace(platform, profiles=replace(platform.profiles, states=(*kept, *states)))
