"""Values by time, for hosts of several sites: what a table of prices or intensities says."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gridsched.errors import InputError


@dataclass(frozen=True)
class Series:
    """Values by time at one place: value k holds from ``time_s[k]`` until the next begins.

    Attributes
    ----------
    time_s, value : tuple of float
        When each value begins to hold [s], the first at 0; and the values.
    """

    time_s: tuple[float, ...]
    value: tuple[float, ...]

    @classmethod
    def constant(cls, value: float) -> Series:
        """Return one value for all times."""
        return cls((0.0,), (value,))

    def end_s(self, period_s: float | None) -> float:
        """Return until when it says something [s].

        Parameters
        ----------
        period_s : float or None
            After which it begins again [s]; infinite: its last value holds for ever. None: its last
            value lasts as long as the one before it, a single one for ever.
        """
        if period_s is not None or len(self.time_s) == 1:
            return math.inf
        return 2 * self.time_s[-1] - self.time_s[-2]


@dataclass(frozen=True)
class SiteSeries:
    """A series for each pattern of names; the last one that fits a host counts.

    Attributes
    ----------
    patterns : tuple of str
        Of names of hosts or of their clusters, as ``node-*``.
    series : tuple of Series
        Of each pattern.
    """

    patterns: tuple[str, ...]
    series: tuple[Series, ...]

    def of(self, host: str, cluster: str | None) -> Series | None:
        """Return the series of a host, by its name or else its cluster's; None where none fits."""
        for name in (host, cluster):
            for pattern, series in zip(reversed(self.patterns), reversed(self.series), strict=True):
                if name is not None and fnmatchcase(name, pattern):
                    return series
        return None

    def check_period(self, period_s: float | None, key: str) -> None:
        """Raise `InputError` unless the last row begins before a period [s] of this key is over."""
        last = max(each.time_s[-1] for each in self.series)
        if period_s is not None and last >= period_s:
            raise InputError(f"{key} is {period_s:g} s, and the last row begins at {last:g} s; make the period longer.")
