"""Files of what happens to a run from outside: ``time_s,event,what``, or ``time,event,what`` with dates."""

from __future__ import annotations

import math
from fnmatch import fnmatchcase
from pathlib import Path

from gridsched.errors import did_you_mean
from gridsched.files.csv_files import Format, Number, Text
from gridsched.model.calendar import Calendar
from gridsched.model.limits import LARGEST
from gridsched.model.platform import Platform
from gridsched.model.stimuli import CancelTask, DrainHost, ResumeHost, SetPowerCap, Stimulus, TimedStimulus
from gridsched.model.tasks import Tasks
from gridsched.workloads.signal_csv import TIMES, time_column, times_of

#: What a cap is that limits nothing.
_NO_CAP = "none"
_WATTS = Number(above=True)


def read_events(
    path: str | Path, tasks: Tasks, platform: Platform, calendar: Calendar | None = None
) -> tuple[TimedStimulus, ...]:
    """Read what happens to a run from outside.

    Parameters
    ----------
    path : path
        CSV: ``cancel`` and the id of a job, ``drain`` or ``resume`` and a pattern of names of hosts, ``power_cap`` and
        watts or ``none``.
    tasks : Tasks
    platform : Platform
    calendar : Calendar, optional
        On which the dates of a column ``time`` are.

    Returns
    -------
    tuple of TimedStimulus
        In the order of the file.

    Raises
    ------
    InputError
        Naming the line: if a time lies before the run, or there is no such event, job or host.
    """
    column = time_column(path)
    table = Format({column: TIMES[column], "event": Text(), "what": Text()}, rows="events").read(path)
    times, events = times_of(table, column, calendar), Events(tasks, platform)
    stimuli = []
    for row, (time_s, event, what) in enumerate(zip(times, table["event"], table["what"], strict=True)):
        if not 0 <= time_s <= LARGEST:
            raise table.fail(row, column, f"it lies {-time_s:,.10g} s before the first submission of the log")
        if event not in EVENTS:
            raise table.fail(
                row, "event", f"it must be {', '.join(EVENTS)}. {did_you_mean(event, EVENTS)}".rstrip(" .")
            )
        try:
            stimuli += [TimedStimulus(float(time_s), each) for each in events.read(event, what)]
        except ValueError as error:
            raise table.fail(row, "what", str(error)) from None
    return tuple(stimuli)


#: What may happen to a run from outside.
EVENTS = ("cancel", "drain", "resume", "power_cap")


class Events:
    """Finds what events are about by the names that people use.

    Parameters
    ----------
    tasks : Tasks
    platform : Platform
    """

    def __init__(self, tasks: Tasks, platform: Platform) -> None:
        self._tasks, self._platform = tasks, platform
        self._task_of = {str(label): task for task, label in enumerate(tasks.labels.tolist())}
        self._names = [host.name for host in platform.hosts]

    def read(self, event: str, what: str) -> list[Stimulus]:
        """Return what one of `EVENTS` does; `ValueError` states what is allowed for `what`."""
        if event == "cancel":
            return [CancelTask(self.task(what))]
        if event == "power_cap":
            return [SetPowerCap(_cap_w(what))]
        kind = DrainHost if event == "drain" else ResumeHost
        return [kind(host) for host in self.hosts(what)]

    def task(self, name: str) -> int:
        """Return the task of this id of the workload; `ValueError` if there is none."""
        if name not in self._task_of:
            hint = did_you_mean(name, self._task_of)
            raise ValueError(f"{self._tasks.name} has no such job to run. {hint}".rstrip(" ."))
        return self._task_of[name]

    def hosts(self, pattern: str) -> list[int]:
        """Return the computing hosts of such names; `ValueError` if there is none."""
        hosts = [h for h, name in enumerate(self._names) if fnmatchcase(name, pattern)]
        if not hosts:
            hint = did_you_mean(pattern, self._names)
            raise ValueError(f"no computing host of {self._platform.name} has such a name. {hint}".rstrip(" ."))
        return hosts


def _cap_w(text: str) -> float:
    if text == _NO_CAP:
        return math.inf
    try:
        return _WATTS.read(text)
    except ValueError as error:
        raise ValueError(f"{error}, in watts, or {_NO_CAP!r}") from None
