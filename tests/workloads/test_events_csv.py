"""Files of events: what they hold, with dates and patterns, and what is wrong with others."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from gridsched import Host, Platform, PState, make_tasks
from gridsched.errors import InputError
from gridsched.model.calendar import Calendar
from gridsched.model.stimuli import CancelTask, DrainHost, ResumeHost, SetPowerCap
from gridsched.workloads.events_csv import read_events

PLATFORM = Platform(tuple(Host(name, (PState(1.0, 1.0, 1.0, 2.0),)) for name in ("a1", "a2", "b1")))
TASKS = make_tasks([1.0, 2.0], labels=["first", "second"])


def read(folder: Path, text: str, calendar: Calendar | None = None):
    """Read a file of this text."""
    file = folder / "events.csv"
    file.write_text(text)
    return read_events(file, TASKS, PLATFORM, calendar)


def test_every_event(tmp_path):
    """A pattern of hosts is an event for each; a cap is watts, or none."""
    text = "event,what,time_s\ncancel,second,3\ndrain,a*,1\nresume,b1,2.5\npower_cap,70,4\n# later\npower_cap,none,5\n"
    assert read(tmp_path, text) == (
        (3.0, CancelTask(1)),
        (1.0, DrainHost(0)),
        (1.0, DrainHost(1)),
        (2.5, ResumeHost(2)),
        (4.0, SetPowerCap(70.0)),
        (5.0, SetPowerCap(math.inf)),
    )


def test_dates_are_on_the_calendar_of_the_log(tmp_path):
    """One hour after the begin, whose zone is that of the log."""
    calendar = Calendar(1.7e9 - 1.7e9 % 86400, "UTC")
    (event,) = read(tmp_path, "time,event,what\n2023-11-14T01:00,drain,b1\n", calendar)
    assert event == (3600.0, DrainHost(2))
    with pytest.raises(InputError, match="dates"):
        read(tmp_path, "time,event,what\n2023-11-14T01:00,drain,b1\n")
    with pytest.raises(InputError, match=r"line 2.*before"):
        read(tmp_path, "time,event,what\n2023-11-13T01:00,drain,b1\n", calendar)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("-1,drain,b1", ["time_s", "-1"]),
        ("soon,drain,b1", ["time_s", "soon"]),
        ("1,dain,b1", ["dain", "cancel, drain, resume, power_cap", "drain"]),
        ("1,cancel,secund", ["secund", "second"]),
        ("1,drain,c*", ["c*", "no computing host"]),
        ("1,resume,", ["no computing host"]),
        ("1,power_cap,lots", ["lots", "watts", "none"]),
        ("1,power_cap,-5", ["-5", "> 0"]),
        ("1,power_cap,inf", ["inf", "none"]),
        ("1,drain", ["2 cells"]),
    ],
)
def test_errors_name_the_line_and_what_is_allowed(tmp_path, row, words):
    """The third line is wrong."""
    with pytest.raises(InputError) as caught:
        read(tmp_path, f"time_s,event,what\n1,drain,a1\n{row}\n")
    for word in ["line 3", *words]:
        assert word in str(caught.value)


@pytest.mark.parametrize("text", ["", "time_s,event,what\n", "time_s,event\n1,drain\n"])
def test_a_file_without_events_is_refused(tmp_path, text):
    """It would have no effect, or lacks a column."""
    with pytest.raises(InputError, match=r"events\.csv"):
        read(tmp_path, text)
