"""Failures of hosts that are drawn: their options, and the profiles that follow."""

from __future__ import annotations

import typing
from dataclasses import dataclass, replace

from gridsched.errors import InputError, did_you_mean
from gridsched.model.host_profiles import Distribution, SampledFailures
from gridsched.model.limits import LARGEST
from gridsched.model.platform import Platform
from gridsched.model.records import check_choices

#: Weibull shape of the times between failures in the logs of Los Alamos, 0.7 to 0.8 (B. Schroeder,
#: G. A. Gibson, "A large-scale study of failures in high-performance computing systems", DSN 2006;
#: not read).
DEFAULT_SHAPE = 0.7
#: Shorter times are refused: a run would do nothing but fail [s].
SHORTEST_S = 1e-3
_KEYS = ("mtbf", "mttr", "distribution", "shape")
_DISTRIBUTIONS = typing.get_args(Distribution)


@dataclass(frozen=True)
class Failures:
    """The failures that ``--failures`` describes; see `SampledFailures`.

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
    shape: float = DEFAULT_SHAPE

    def __post_init__(self) -> None:
        check_choices(self)

    @classmethod
    def read(cls, text: str) -> Failures:
        """Return the failures that a text such as ``"mtbf=86400,mttr=3600"`` specifies.

        Raises
        ------
        InputError
            If it specifies something else.
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
                f"--failures {text!r}: distribution is {distribution!r}; allowed: {', '.join(_DISTRIBUTIONS)}."
            )
        if "shape" in texts and distribution != "weibull":
            raise InputError(f"--failures {text!r}: a shape is of distribution=weibull.")
        return cls(
            _number(text, texts, "mtbf", SHORTEST_S),
            _number(text, texts, "mttr", SHORTEST_S),
            typing.cast(Distribution, distribution),
            _number(text, texts, "shape", 0.1, 100.0) if "shape" in texts else DEFAULT_SHAPE,
        )

    def on(self, platform: Platform, seed: int, replicate: int) -> Platform:
        """Return the platform whose computing hosts fail; each host has a stream of its own.

        Raises
        ------
        InputError
            If a host has a state profile of its own.
        """
        for name, profile in platform.profiles.states:
            if not isinstance(profile, SampledFailures):
                raise InputError(
                    f"{platform.name}: host {name!r} has a state profile, and --failures draws "
                    "one; take one of them out."
                )
        sampled = tuple(
            (host.name, SampledFailures(self.mtbf_s, self.mttr_s, self.distribution, self.shape, seed, replicate, h))
            for h, host in enumerate(platform.hosts)
        )
        return replace(platform, profiles=replace(platform.profiles, states=sampled))


def _number(text: str, given: dict[str, str], key: str, least: float, most: float = LARGEST) -> float:
    try:
        value = float(given[key])
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise InputError(
            f"--failures {text!r}: {key} is {given[key]!r}; a number from {least:g} to {most:g} is allowed."
        )
    return value
