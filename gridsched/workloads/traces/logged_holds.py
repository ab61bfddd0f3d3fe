"""What held jobs of a log back: when they became eligible, and how many tasks of an array may run at once."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo

import numpy as np

from gridsched.arrays import Booleans, Floats, Integers
from gridsched.errors import counted
from gridsched.model.calendar import seconds_of
from gridsched.model.holds import Holds

#: More tasks than an array has: a larger limit holds none back.
_MOST_DIGITS = 9
_LIMIT = re.compile(r"(?:^|\s)(?:--array[=\s]+|-a\s*)\S*?%(\d{1,9})(?!\d)")
_UNIT = r"(?:sec|min|hour|day|week)[a-z]*(?!\S)"
_BEGIN = re.compile(rf"(?:^|\s)(?:--begin[=\s]+|-b\s*)(now\s?\+\s?\d+(?:\s?{_UNIT})?|\S+)", re.I)
_NOW = re.compile(r"now(?:\s?\+\s?(\d{1,9})\s?([a-z]*))?", re.I)
#: ``17_3``, and of those that are left of an array ``17_[4-9%2]``.
_OF_ARRAY = re.compile(r"(\d{1,18})_(?:\d{1,9}|\[[^]%]*(?:%(\d{1,9}))?\]?)")
#: Seconds of the units of ``now+5minutes``, by their beginnings.
_UNITS = {"": 1, "sec": 1, "min": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
#: Words for a time of the day.
_HOURS = {"midnight": time(0), "elevenses": time(11), "noon": time(12), "fika": time(15), "teatime": time(16)}
_DATES = ("%m%d%y", "%m/%d/%y", "%m.%d.%y", "%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")
_CLOCKS = ("%H:%M", "%H:%M:%S", "%I:%M%p", "%I:%M:%S%p")


@dataclass(frozen=True)
class LoggedHolds:
    """What held the jobs of a table back.

    Attributes
    ----------
    eligible_s : ndarray of float64, shape (jobs,)
        When each could start, by the log [s]; nan if it is unknown.
    begin_s : ndarray of float64, shape (jobs,)
        Before when its user did not want it to start [s]; nan if it is unknown.
    array : ndarray of int64, shape (jobs,)
        The array of each, -1 for none that has a limit.
    limit : ndarray of int64, shape (arrays,)
        How many tasks of each array may run at once.
    """

    eligible_s: Floats
    begin_s: Floats
    array: Integers
    limit: Integers

    def __len__(self) -> int:
        """Return for how many jobs anything is known."""
        return int(np.count_nonzero(~np.isnan(self.eligible_s) | ~np.isnan(self.begin_s) | (self.array >= 0)))

    def taken(self, rows: np.ndarray) -> LoggedHolds:
        """Return those of some jobs."""
        return LoggedHolds(self.eligible_s[rows], self.begin_s[rows], self.array[rows], self.limit)

    def since(self, begin_s: float) -> LoggedHolds:
        """Return them on a clock that begins at a time [s]."""
        return LoggedHolds(self.eligible_s - begin_s, self.begin_s - begin_s, self.array, self.limit)

    def of_run(self, submit_s: Floats, awaits_others: Booleans) -> tuple[Holds | None, tuple[str, ...]]:
        """Return what holds the jobs back in a run, and lines that count them.

        A job that `awaits_others` in the run became eligible in the log when these ended there, and a task of an
        array with a limit when it was its turn: what holds it is then not what the log states, but what its user
        asked for, and of an array the time of its first task.

        Parameters
        ----------
        submit_s : ndarray of float64, shape (jobs,)
            [s].
        awaits_others : ndarray of bool, shape (jobs,)
            Whether all that it waited for is in the run.
        """
        first_s = np.full(len(self.limit) + 1, np.inf)  # the last one is that of jobs without an array
        np.minimum.at(first_s, self.array, np.where(np.isnan(self.eligible_s), np.inf, self.eligible_s))
        eligible_s = np.where(self.array >= 0, first_s[self.array], self.eligible_s)
        eligible_s = np.where(np.isinf(eligible_s), np.nan, eligible_s)
        release_s = np.where(awaits_others | np.isnan(eligible_s), np.fmin(self.begin_s, eligible_s), eligible_s)
        release_s = np.where(awaits_others & np.isnan(self.begin_s), np.nan, release_s)
        is_late = release_s > submit_s
        counts = np.bincount(self.array[self.array >= 0], minlength=len(self.limit))
        binds = counts > self.limit
        array = np.where(np.append(binds, False)[self.array], self.array, -1)
        notes = list[str]()
        if is_late.any():
            jobs = counted(int(is_late.sum()), "job")
            notes.append(f"{jobs} cannot start before a time after the submission (Eligible, --begin)")
        if binds.any():
            tasks, arrays = counted(int(counts[binds].sum()), "task"), counted(int(binds.sum()), "array")
            notes.append(f"{tasks} of {arrays}: only as many run at once as the limit of --array (%N) allows")
        if not notes:
            return None, ()
        return Holds(np.where(is_late, release_s, 0.0), array, self.limit), tuple(notes)


class HoldRows:
    """What holds jobs back, as a log is read."""

    def __init__(self) -> None:
        self._line, self._array = array("q"), array("q")
        self._eligible_s, self._begin_s = array("d"), array("d")
        self._code: dict[str, int] = {}
        self._limit: dict[int, int] = {}
        self._unread, self._early = 0, 0

    def add(
        self,
        line: int,
        eligible_s: float = math.nan,
        begin_s: float = math.nan,
        name: str = "",
        limit: int | None = None,
    ) -> None:
        """Let the job of a line, which is behind those before, start no earlier than at times [s], nan if unknown.

        `name` is that of its array, of which at most `limit` tasks run at once if any of its tasks has one.
        """
        code = self._code.setdefault(name, len(self._code)) if name else -1
        if name and limit:
            self._limit[code] = limit
        self._line.append(line)
        self._array.append(code)
        self._eligible_s.append(eligible_s)
        self._begin_s.append(begin_s)

    def read(self, line: int, cells: Mapping[str, str], submit_s: float, eligible_s: float, start_s: float) -> None:
        """Read what held the job of a row of sacct back: Eligible, ``--begin`` and ``--array`` of its command line.

        Parameters
        ----------
        line : int
        cells : mapping
            Texts of the row by their columns.
        submit_s, eligible_s, start_s : float
            [s]; nan if unknown.
        """
        submit_line = cells.get("SubmitLine", "")
        if eligible_s > start_s:  # no job starts before it may
            self._early += 1
            eligible_s = math.nan
        wanted_s = math.nan
        if asked := _BEGIN.search(submit_line):
            wanted_s = submit_s + begin_after(asked[1], cells["Submit"])
            self._unread += math.isnan(wanted_s) and math.isnan(eligible_s)
            if not math.isnan(eligible_s):
                wanted_s = min(wanted_s, eligible_s)  # it may have been changed since
            wanted_s = math.nan if wanted_s > start_s else wanted_s
        limited, of_array = _LIMIT.search(submit_line), _OF_ARRAY.fullmatch(cells.get("JobID", ""))
        # without its number an array is known by when and how it was submitted
        name = of_array[1] if of_array else f"{cells['Submit']} {submit_line}" if limited else ""
        texts = (cells.get("ArrayTaskLimit"), of_array and of_array[2], limited and limited[1])
        number = next((int(text) for text in texts if text and text.isdecimal() and len(text) <= _MOST_DIGITS), None)
        self.add(line, eligible_s, wanted_s, name, number)

    def columns(self, lines: Sequence[int], others: Collection[int]) -> LoggedHolds | None:
        """Return what holds the jobs of some lines back; None if nothing does.

        `others` are lines of jobs that waited for more than the run can know: the log's time counts for them.
        """
        if not len(self._line):
            return None
        place = np.searchsorted(self._line, np.array(lines, dtype=np.int64))
        eligible_s, begin_s = (np.array(each)[place] for each in (self._eligible_s, self._begin_s))
        known = np.isin(lines, list(others)) & ~np.isnan(eligible_s)
        limited = sorted(self._limit)
        number = np.full(len(self._code) + 1, -1, dtype=np.int64)  # the last one is that of jobs without an array
        number[limited] = np.arange(len(limited))
        limit = np.array([self._limit[code] for code in limited], dtype=np.int64)
        codes = np.array(self._array)[place]
        found = LoggedHolds(eligible_s, np.where(known, eligible_s, begin_s), number[codes], limit)
        return found if len(found) else None

    def notes(self) -> tuple[str, ...]:
        """Report what has no effect."""
        notes = []
        if self._early:
            notes.append(f"{counted(self._early, 'job')} started before Eligible, which is ignored")
        if self._unread:
            notes.append(
                f"{counted(self._unread, 'option')} --begin without Eligible, in no form that is read: ignored"
            )
        return tuple(notes)


def begin_after(text: str, submit: str) -> float:
    """Return how long after its submission a job may start by ``--begin`` [s]; nan if it is in no known form.

    Parameters
    ----------
    text : str
        As ``16:00``, ``now+1hour``, ``2026-01-20T12:34``, ``tomorrow``.
    submit : str
        Date of its submission, or seconds, which count in UTC.
    """
    text = text.lower().strip("'\"")
    if match := _NOW.fullmatch(text):
        unit = match[2] or ""
        found = next((s for name, s in _UNITS.items() if unit and name and unit.startswith(name)), 1 if not unit else 0)
        return float(int(match[1] or 0) * found) if found else math.nan
    try:
        stamp = datetime.fromtimestamp(float(submit), UTC) if submit.isdecimal() else datetime.fromisoformat(submit)
        begin = _date_of(text, stamp)
    except (OverflowError, ValueError):
        return math.nan
    return math.nan if begin is None else seconds_of(begin, None) - seconds_of(stamp, None)


def _date_of(text: str, submit: datetime) -> datetime | None:
    """Return the date that a text means for a job that was submitted at another one."""

    def next_at(clock: time) -> datetime:
        at = datetime.combine(submit.date(), clock, zone)
        return at if at >= submit else at + timedelta(days=1)

    zone: tzinfo | None = submit.tzinfo
    if text == "today":
        return submit
    if text == "tomorrow":
        return datetime.combine(submit.date() + timedelta(days=1), time(0), zone)
    if text in _HOURS:
        return next_at(_HOURS[text])
    for form in _CLOCKS:
        try:
            return next_at(datetime.strptime(text, form).time())
        except ValueError:
            continue
    for form in _DATES:
        try:
            return datetime.strptime(text.upper(), form).replace(tzinfo=zone)
        except ValueError:
            continue
    return None
