"""The calendar of a log: dates of maintenance, carbon and prices are those of its jobs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gridsched import Scenario, run
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.model.calendar import Calendar
from gridsched.model.carbon import Carbon
from gridsched.model.signals import J_PER_KWH
from gridsched.model.tariff import Tariff
from gridsched.runs.scenario_maker import load
from gridsched.workloads.traces.formats import read_jobs, stays_behind, write_jobs
from gridsched.workloads.traces.trace_options import TraceOptions

#: Two jobs of an hour on one node each, submitted at 06:00 and 07:30 of a day whose clock is a winter's.
HEAD = "JobIDRaw|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocNodes|State"
SUBMITS = ("2024-03-05T06:00:00", "2024-03-05T07:30:00")


def sacct(folder: Path, *submits: str, name: str = "a.sacct") -> Path:
    """Write a log of jobs of an hour that asked for as long."""
    rows = [f"{k}|{text}|Unknown|Unknown|3600|60|1|COMPLETED" for k, text in enumerate(submits, start=1)]
    (folder / name).write_text("\n".join([HEAD, *rows]) + "\n")
    return folder / name


def scenario(log: Path, *, zone: str | None = None, **others) -> Scenario:
    """Return a run of a log on one node."""
    trace = TraceOptions(nodes=1, log_zone=zone)
    return Scenario(None, log, "fcfs", **{"driver": "reference", "trace": trace, **others})


def starts(log: Path, **others) -> list[float]:
    """Return when the jobs start [s]."""
    return run(scenario(log, **others)).tasks["start_s"].tolist()


def test_maintenance_at_a_date_of_the_log(tmp_path):
    """The second job, submitted at 07:30, would run until 08:30; the node is down from 8 to 12, so it starts at 12.

    The run begins at 06:00: 12:00 is 21,600 s later, 08:00 is 7,200 s.
    """
    log = sacct(tmp_path, *SUBMITS)
    for text in ("2024-03-05T08:00/12:00", "n0=2024-03-05T08:00/2024-03-05T12:00", "7200:21600"):
        assert starts(log, maintenance=(text,)) == [0.0, 21_600.0]
    assert load(scenario(log, maintenance=("n0=2024-03-05T08:00/12:00",))).maintenance == ("n0=7200.0:21600.0",)
    assert main(["run", "--workload", str(log), "--nodes", "1", "--driver", "reference", "--scheduler", "fcfs",
                 "--maintenance", "2024-03-05T08:00/12:00", "--quiet"]) == 0  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2024-03-05T08:00+01:00/12:00", "--log-zone"),
        ("2024-03-04T08:00/12:00", "before the first submission"),
        ("2024-03-05T12:00/08:00", "END after BEGIN"),
        ("2024-03-05T08:00/2024-13-01", "is not a date"),
        ("2024-03-05T08:00", "is not a date"),
    ],
)
def test_dates_that_are_not_of_the_log_are_refused(tmp_path, text, words):
    """In one line that names the text."""
    with pytest.raises(InputError, match=words) as caught:
        load(scenario(sacct(tmp_path, *SUBMITS), maintenance=(text,)))
    assert text.partition("/")[0] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_workload_without_dates_has_no_calendar(tmp_path):
    """An SWF log without UnixStartTime, and a table of seconds."""
    (tmp_path / "a.swf").write_text("1 0 -1 3600 1 -1 -1 1 3600\n")
    (tmp_path / "a.jobs.csv").write_text("id,submit_time_s,run_time_s,nodes\n1,0,3600,1\n")
    for name in ("a.swf", "a.jobs.csv"):
        with pytest.raises(InputError, match="UnixStartTime"):
            load(scenario(tmp_path / name, maintenance=("2024-03-05T08:00/12:00",)))
        with pytest.raises(InputError, match="log_zone has no effect"):
            load(scenario(tmp_path / name, zone="UTC"))


BEGIN = "; UnixStartTime: 1709618400\n"


@pytest.mark.parametrize(
    ("header", "begin"),
    [
        (BEGIN, "2024-03-05T06:00+00:00"),
        (f"{BEGIN}; TimeZone: 3600\n", "2024-03-05T07:00+01:00"),
        (
            "; UnixStartTime: 1709618400\n; TimeZone: -28800\n; TimeZoneString: Europe/Berlin\n",
            "2024-03-05T07:00+01:00",
        ),
    ],
)
def test_the_calendar_of_swf(tmp_path, header, begin):
    """A date without a zone is on the clock of the header's zone, one with a zone is that instant.

    The jobs are submitted 100 s after the log's begin and an hour and a half later: the run begins at 06:01:40 UTC.
    """
    (tmp_path / "a.swf").write_text(header + "1 100 -1 3600 1 -1 -1 1 3600\n2 5500 -1 3600 1 -1 -1 1 3600\n")
    window = datetime.fromisoformat(begin) + timedelta(hours=2)
    local, utc = window.replace(tzinfo=None).isoformat(), window.astimezone(UTC).isoformat()
    assert local != utc
    for text in (local, utc):
        loaded = load(scenario(tmp_path / "a.swf", maintenance=(f"{text}/2024-03-05T23:00",)))
        assert loaded.maintenance[0].startswith("*=7100.0:")


def test_the_zone_of_a_log(tmp_path):
    """Seconds of Unix time are UTC; dates with an offset have it; a zone that is named knows its clock's changes.

    On 31 March 2024, clocks in Berlin went from 02:00 to 03:00: jobs of 01:30 and 03:30 are one hour apart.
    """
    zones = {"1709618400": "UTC", "2024-03-05T06:00:00+01:00": "+01:00", "2024-03-05T06:00:00": None}
    for text, zone in zones.items():
        assert read_jobs(sacct(tmp_path, text), TraceOptions()).calendar == Calendar(0.0, zone)
    log = sacct(tmp_path, "2024-03-31T01:30:00", "2024-03-31T03:30:00")
    for zone, apart in ((None, 7200.0), ("Europe/Berlin", 3600.0), ("+01:00", 7200.0)):
        loaded = load(scenario(log, zone=zone))
        assert loaded.tasks.submit_time_s.tolist() == [0.0, apart]
    with pytest.raises(InputError, match="Europe/Berlin"):
        TraceOptions(log_zone="Europe/Berln")


def test_carbon_on_the_dates_of_the_log(tmp_path):
    """A table of dates on the log's clock, and one of hours in UTC that begins with the log.

    A node computes from 06:00 to 07:00 and from 07:30 to 08:30 at 190.738 W and idles half an hour at 95 W.
    The intensity is 100 until 07:00 and 400 from there on; the table begins the day before.
    """
    log, table = sacct(tmp_path, *SUBMITS), tmp_path / "c.csv"
    table.write_text("time,g_per_kwh\n2024-03-04,900\n2024-03-05T01:00,100\n2024-03-05T07:00,400\n")
    grams = (190.738 * 3600 * 100 + (190.738 * 3600 + 95 * 1800) * 400) / J_PER_KWH
    found = run(scenario(log, carbon=Carbon(table, period_s=float("inf")))).metrics()
    assert found["carbon_g"] == pytest.approx(grams, rel=1e-12)
    hours = tmp_path / "h.csv"
    values = [900] * 5 + [100] + [400] * 3  # of 00:00 to 08:00 in UTC, an hour before Berlin
    rows = [f"2024-03-05T{hour:02}:00Z,{value}" for hour, value in enumerate(values)]
    hours.write_text("\n".join(["when,g", *rows]) + "\n")
    carbon = Carbon(hours, columns="time=when,value=g", start="log")
    found = run(scenario(log, zone="Europe/Berlin", carbon=carbon)).metrics()
    assert found["carbon_g"] == pytest.approx(grams, rel=1e-12)
    with pytest.raises(InputError, match="--log-zone"):
        load(scenario(log, carbon=carbon))
    (tmp_path / "a.swf").write_text("1 0 -1 3600 1 -1 -1 1 3600\n")
    for given in (carbon, Carbon(table)):
        with pytest.raises(InputError, match="dates"):
            load(scenario(tmp_path / "a.swf", carbon=given))


def test_prices_on_the_dates_of_the_log(tmp_path):
    """A kWh costs 1 until 07:00 and 3 from there on; the first line begins before the log."""
    log, table = sacct(tmp_path, *SUBMITS), tmp_path / "p.csv"
    table.write_text(
        "time,energy_cost_per_kwh\n2024-03-04,7\n2024-03-05T06:00,1\n2024-03-05T07:00,3\n2024-03-05T08:00,3\n"
    )
    tariff = Tariff(price=0.0, prices=table)
    cost = (190.738 * 3600 * 1 + (190.738 * 3600 + 95 * 1800) * 3) / J_PER_KWH
    assert run(scenario(log, tariff=tariff)).metrics()["energy_cost"] == pytest.approx(cost, rel=1e-12)
    table.write_text("time,energy_cost_per_kwh\n2024-03-05T06:30,1\n")
    with pytest.raises(InputError, match=r"line 2.*first submission"):
        load(scenario(log, tariff=tariff))
    table.write_text("time,energy_cost_per_kwh\nyesterday,1\n")
    with pytest.raises(InputError, match=r"line 2.*not a date"):
        load(scenario(log, tariff=tariff))


def test_a_converted_log_keeps_its_calendar(tmp_path):
    """SWF has a header for it where the zone is known, a table has dates; elsewhere a line notes that they go."""
    log = sacct(tmp_path, *SUBMITS)
    for zone in ("Europe/Berlin", "+01:00", "UTC"):
        jobs = read_jobs(log, TraceOptions(log_zone=zone))
        assert stays_behind(jobs, "b.swf") is None
        write_jobs(jobs, tmp_path / "b.swf", force=True)
        assert read_jobs(tmp_path / "b.swf", TraceOptions()).calendar == jobs.calendar
        write_jobs(jobs, tmp_path / "b.jobs.csv", force=True)
        again = read_jobs(tmp_path / "b.jobs.csv", TraceOptions(log_zone=zone))
        assert (again.calendar, again.submit_time_s.tolist()) == (jobs.calendar, jobs.submit_time_s.tolist())
    naive = read_jobs(log, TraceOptions())
    assert "dates" in (stays_behind(naive, "b.swf") or "")
    assert stays_behind(naive, "b.jobs.csv") is None
    write_jobs(naive, tmp_path / "b.jobs.csv", force=True)
    assert SUBMITS[1] in (tmp_path / "b.jobs.csv").read_text()
    assert read_jobs(tmp_path / "b.jobs.csv", TraceOptions()).calendar == naive.calendar
