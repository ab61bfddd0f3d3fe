"""The calendar of a log: which date the second 0 of a run is."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from gridsched.errors import InputError, did_you_mean

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: A time of day, as the end of a window may be.
_CLOCK = re.compile(r"T?\d\d(:\d\d){0,2}(\.\d+)?([+-]\d\d:?\d\d|Z)?")
#: What a run without dates needs to have some.
_WITHOUT = (
    "a date needs a log with dates (sacct's output, SWF with UnixStartTime, a table with dates); this workload has "
    "none. Give seconds since the begin of the run"
)


@lru_cache(64)
def time_zone(text: str, owner: str) -> tzinfo:
    """Return the zone that ``UTC``, ``+01:00`` or ``Europe/Berlin`` names.

    Parameters
    ----------
    text : str
    owner : str
        Whose zone it is, for the message.

    Raises
    ------
    InputError
        If it is none.
    """
    if text == "UTC":
        return UTC
    if text in available_timezones():
        return ZoneInfo(text)
    try:
        zone = datetime.strptime(text, "%z").tzinfo
    except ValueError:
        zone = None
    if zone is None:
        raise InputError(
            f"{owner} has the zone {text!r}; UTC, hours and minutes as +01:00, or a name as Europe/Berlin "
            f"is allowed. {did_you_mean(text, available_timezones())}".rstrip()
        )
    return zone


def offset_name(seconds: int) -> str:
    """Return the name of a zone so many seconds before UTC, as ``+01:00``; ``UTC`` for none."""
    return "UTC" if not seconds else str(timezone(timedelta(seconds=seconds))).removeprefix("UTC")


def seconds_of(stamp: datetime, zone: tzinfo | None) -> float:
    """Return the Unix time of a date [s]; one without a zone is in `zone`, or taken as if in UTC."""
    if stamp.tzinfo is None:
        stamp = stamp.replace(tzinfo=zone or UTC)
    return (stamp - _EPOCH).total_seconds()


@dataclass(frozen=True)
class Calendar:
    """Which date the second 0 of a run is.

    Attributes
    ----------
    begin_s : float
        Unix time of second 0 [s]; where the log's dates have no zone, as if they were in UTC.
    zone : str or None
        Zone of dates that have none: that of the log's clock. None: the log's dates have no zone.
    """

    begin_s: float
    zone: str | None = None

    @classmethod
    def of(cls, stamp: datetime | None, zone: str | None) -> Calendar:
        """Return the calendar of a log by one of its dates.

        Parameters
        ----------
        stamp : datetime or None
            None where the log counts seconds of Unix time.
        zone : str or None
            The log's zone as the user gives it, which takes precedence.
        """
        if zone is None and stamp is None:
            zone = "UTC"
        elif zone is None and stamp is not None and (offset := stamp.utcoffset()) is not None:
            zone = offset_name(round(offset.total_seconds()))
        return cls(0.0, zone)

    def later(self, seconds: float) -> Calendar:
        """Return the calendar of a run that begins so much later [s]."""
        return replace(self, begin_s=self.begin_s + seconds)

    def seconds(self, text: str, owner: str) -> float:
        """Return when a date is on the run's clock [s]; negative before its begin.

        Parameters
        ----------
        text : str
            ISO 8601, as ``2024-03-05T08:00``; without a zone it is on the log's own clock.
        owner : str
            Whose date it is, for the message.

        Raises
        ------
        InputError
            If it is not a date, or has a zone and the log's dates have none.
        """
        try:
            stamp = datetime.fromisoformat(text)
        except ValueError:
            raise InputError(
                f"{owner}: {text!r} is not a date such as 2024-03-05T08:00 or 2024-03-05T08:00+01:00."
            ) from None
        if self.zone is None and stamp.tzinfo is not None:
            raise InputError(
                f"{owner}: {text!r} has a time zone, and the dates of the log have none: leave the zone out for the "
                "log's own clock, or name the log's zone by --log-zone (log_zone)."
            )
        return seconds_of(stamp, None if self.zone is None else time_zone(self.zone, "the log")) - self.begin_s

    def dates(self, times_s: Sequence[float]) -> list[str] | None:
        """Return the dates of times on the run's clock [s], from which `seconds` gives these; None if it cannot."""
        zone = UTC if self.zone is None else time_zone(self.zone, "the log")
        try:
            stamps = [datetime.fromtimestamp(self.begin_s + time, zone) for time in times_s]
        except (OverflowError, ValueError, OSError):  # years that no date has
            return None
        if any(seconds_of(stamp, None) - self.begin_s != time for stamp, time in zip(stamps, times_s, strict=True)):
            return None
        return [(stamp if self.zone else stamp.replace(tzinfo=None)).isoformat() for stamp in stamps]

    @property
    def begin_unix_s(self) -> float | None:
        """Unix time of second 0 [s]; None where it is not known, as the log's dates have no zone."""
        return None if self.zone is None else self.begin_s


def on_calendar(calendar: Calendar | None, text: str, owner: str) -> float:
    """Return when a date is on the run's clock [s].

    Raises
    ------
    InputError
        As `Calendar.seconds`, or if the run has no calendar.
    """
    if calendar is None:
        raise InputError(f"{owner}: {text!r}: {_WITHOUT}.")
    return calendar.seconds(text, owner)


def window_on_calendar(calendar: Calendar | None, text: str, owner: str) -> tuple[float, float]:
    """Return begin and end of ``BEGIN/END`` on the run's clock [s].

    END may be a time of the day of BEGIN, as in ``2024-03-05T08:00/12:00``, in the zone of BEGIN.

    Raises
    ------
    InputError
        As `on_calendar`.
    """
    begin, _, end = (part.strip() for part in text.partition("/"))
    begin_s = on_calendar(calendar, begin, owner)
    if _CLOCK.fullmatch(end):
        day, _, clock = begin.partition("T")
        own = re.search(r"([+-]\d\d:?\d\d|Z)$", clock)
        named = re.search(r"([+-]\d\d:?\d\d|Z)$", end)
        end = f"{day}T{end.removeprefix('T')}{own[0] if own and not named else ''}"
    return begin_s, on_calendar(calendar, end, owner)


def is_date(text: str) -> bool:
    """Whether a text reads like a date and not like a number of seconds."""
    return bool(re.match(r"\s*\d{4}-?\d\d-?\d\d(\D|$)", text)) and not _is_number(text)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
