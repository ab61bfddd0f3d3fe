"""When hosts are down: failures that are drawn, and maintenance that is known before."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import pairwise

import numpy as np

from gridsched.arrays import Integers
from gridsched.errors import InputError, did_you_mean
from gridsched.model.host_profiles import Distribution, DrawnFailures, PlannedOutages, StateProfile
from gridsched.model.platform import Platform
from gridsched.model.records import LARGEST, check_choices

# ----------------------------------------------------------------------
# Failures of hosts that are drawn: what a user says of them, and the profiles that follow


#: Weibull shape of the times between failures in the logs of Los Alamos, 0.7 to 0.8 (B. Schroeder,
#: G. A. Gibson, "A large-scale study of failures in high-performance computing systems", DSN 2006;
#: not read).
USUAL_SHAPE = 0.7
#: Shorter times are refused: a run would do nothing but fail [s].
SHORTEST_S = 1e-3
_KEYS = ("mtbf", "mttr", "distribution", "shape")
_DISTRIBUTIONS = typing.get_args(Distribution)


@dataclass(frozen=True)
class Failures:
    """What ``--failures`` says; see `DrawnFailures`.

    Attributes
    ----------
    mtbf_s, mttr_s : float
        Mean time from being up to the failure, and from there to being up again [s].
    distribution : {"exponential", "weibull"}
        Of the times to failure; times of repair are exponential.
    shape : float
        Of the Weibull distribution.
    """

    mtbf_s: float
    mttr_s: float
    distribution: Distribution = "exponential"
    shape: float = USUAL_SHAPE

    def __post_init__(self) -> None:
        check_choices(self)

    @classmethod
    def read(cls, text: str) -> Failures:
        """Return what a text such as ``"mtbf=86400,mttr=3600"`` says.

        Raises
        ------
        InputError
            If it says something else.
        """
        texts: dict[str, str] = {}
        for item in text.split(","):
            key, equals, value = (part.strip() for part in item.partition("="))
            if not equals or key not in _KEYS or key in texts:
                hint = did_you_mean(key, _KEYS)
                raise InputError(
                    f"--failures {text!r}: {item.strip()!r} is not one of mtbf=SECONDS, "
                    f"mttr=SECONDS, distribution=exponential|weibull, shape=X, each once. {hint}".rstrip()
                )
            texts[key] = value
        missing = [key for key in ("mtbf", "mttr") if key not in texts]
        if missing:
            raise InputError(f"--failures {text!r} lacks {missing[0]}=SECONDS.")
        distribution = texts.get("distribution", "exponential")
        if distribution not in _DISTRIBUTIONS:
            raise InputError(
                f"--failures {text!r}: distribution is {distribution!r}; legal: {', '.join(_DISTRIBUTIONS)}."
            )
        if "shape" in texts and distribution != "weibull":
            raise InputError(f"--failures {text!r}: a shape is of distribution=weibull.")
        return cls(
            _number(text, texts, "mtbf", SHORTEST_S),
            _number(text, texts, "mttr", SHORTEST_S),
            typing.cast(Distribution, distribution),
            _number(text, texts, "shape", 0.1, 100.0) if "shape" in texts else USUAL_SHAPE,
        )

    def on(self, platform: Platform, seed: int, replicate: int) -> Platform:
        """Return the platform whose computing hosts fail; each host has a stream of its own.

        Raises
        ------
        InputError
            If a host has a state profile of its own.
        """
        for name, profile in platform.profiles.states:
            if not isinstance(profile, DrawnFailures):
                raise InputError(
                    f"{platform.name}: host {name!r} has a state profile, and --failures draws "
                    "one; take one of them out."
                )
        drawn = tuple(
            (host.name, DrawnFailures(self.mtbf_s, self.mttr_s, self.distribution, self.shape, seed, replicate, h))
            for h, host in enumerate(platform.hosts)
        )
        return replace(platform, profiles=replace(platform.profiles, states=drawn))


def _number(text: str, given: dict[str, str], key: str, least: float, most: float = LARGEST) -> float:
    try:
        value = float(given[key])
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise InputError(f"--failures {text!r}: {key} is {given[key]!r}; a number from {least:g} to {most:g} is legal.")
    return value


# ----------------------------------------------------------------------
# Maintenance of hosts, which is known before: they are down from one time to another


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
                "is legal."
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
