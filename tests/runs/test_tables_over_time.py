"""Tables of carbon and prices cover the run, or say that they repeat: one rule for all of them."""

from __future__ import annotations

import math
from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsched import Scenario, run
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.model.carbon import Carbon
from gridsched.model.rules import EnergyBudget
from gridsched.model.series import rows_of_run
from gridsched.model.signals import J_PER_KWH
from gridsched.model.tariff import Tariff
from gridsched.runs.scenario_maker import load
from gridsched.workloads.traces.trace_options import TraceOptions

HEAD = "JobIDRaw|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocNodes|State"
#: Power of the node that a log without a platform has, while it computes [W].
BUSY_W = 190.738
BEGIN = datetime(2026, 3, 2)
HOURLY = "time=Datetime (UTC),value=g"


def log(folder: Path, begin: datetime, *lasts_s: int, gap_s: int = 0) -> Path:
    """Write a log of jobs of one node, one after the other."""
    rows = []
    for k, length in enumerate(lasts_s):
        rows.append(f"{k + 1}|{begin.isoformat()}|Unknown|Unknown|{length}|{length // 60 + 1}|1|COMPLETED")
        begin += timedelta(seconds=length + gap_s)
    (folder / "a.sacct").write_text("\n".join([HEAD, *rows]) + "\n")
    return folder / "a.sacct"


def stamped(folder: Path, begin: datetime, *values: float, step_h: float = 1.0) -> Path:
    """Write a published table of hours in UTC."""
    rows = [f"{begin + k * timedelta(hours=step_h)},{value}" for k, value in enumerate(values)]
    (folder / "hours.csv").write_text("\n".join(["Datetime (UTC),g", *rows]) + "\n")
    return folder / "hours.csv"


def dated(folder: Path, begin: datetime, *values: float, column: str = "g_per_kwh", host: str = "") -> Path:
    """Write a table of hours with a column ``time``."""
    head, cell = ("host,", f"{host},") if host else ("", "")
    rows = [f"{cell}{(begin + timedelta(hours=k)).isoformat()}Z,{value}" for k, value in enumerate(values)]
    path = folder / f"{column}{host}.csv"
    path.write_text("\n".join([f"{head}time,{column}", *rows]) + "\n")
    return path


def scenario(jobs: Path, **others) -> Scenario:
    """Return a run of a log whose clock is UTC on one node."""
    return Scenario(None, jobs, "fcfs", driver="reference", trace=TraceOptions(nodes=1, log_zone="UTC"), **others)


def grams(jobs: Path, carbon: Carbon) -> float:
    """Return the grams of a run."""
    return run(scenario(jobs, carbon=carbon)).metrics()["carbon_g"]


def hours(*values: float, seconds: float = 3600.0) -> float:
    """Return the grams of a busy node at these intensities, each for a time."""
    return BUSY_W * seconds * sum(values) / J_PER_KWH


COST = "energy_cost_per_kwh"
#: Tables of three hours, as settings of a run.
TABLES = {
    "hours": lambda folder, begin: {"carbon": Carbon(stamped(folder, begin, 100, 200, 900), columns=HOURLY)},
    "hours and log": lambda folder, begin: {
        "carbon": Carbon(stamped(folder, begin, 100, 200, 900), columns=HOURLY, start="log")
    },
    "dates": lambda folder, begin: {"carbon": Carbon(dated(folder, begin, 100, 200, 900))},
    "dates by host": lambda folder, begin: {"carbon": Carbon(dated(folder, begin, 100, 200, 900, host="*"))},
    "forecast": lambda folder, begin: {"carbon": Carbon(300.0, forecast=dated(folder, begin, 100, 200, 900))},
    "prices": lambda folder, begin: {"tariff": Tariff(1.0, prices=dated(folder, begin, 1, 2, 9, column=COST))},
    "prices by site": lambda folder, begin: {
        "tariff": Tariff(1.0, prices=dated(folder, begin, 1, 2, 9, column=COST, host="n*"))
    },
    "prices of a budget": lambda folder, begin: {
        "budget": EnergyBudget(money=1e6, prices=dated(folder, begin, 1, 2, 9, column=COST))
    },
    "prices of a budget by site": lambda folder, begin: {
        "budget": EnergyBudget(money=1e6, prices=dated(folder, begin, 1, 2, 9, column=COST, host="n*"))
    },
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_that_ends_before_the_run_begins_is_refused(tmp_path, kind):
    """A table of 2024 and a log of 2026: the message has the days of both; so it is for a table that is later."""
    jobs = log(tmp_path, BEGIN, 3600)
    with pytest.raises(InputError, match=r"2024-01-01T00:00.*2024-01-01T03:00.*2026-03-02T00:00"):
        load(scenario(jobs, **TABLES[kind](tmp_path, datetime(2024, 1, 1))))
    with pytest.raises(InputError, match=r"line 2.*2026-03-02T00:00"):
        load(scenario(jobs, **TABLES[kind](tmp_path, datetime(2026, 3, 3))))


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("before_h", [0, 1, 2])
def test_a_table_covers_the_run_to_the_end_of_its_last_row(tmp_path, kind, before_h):
    """Three rows of an hour cover three hours from the first on, wherever the run begins in them."""
    settings = TABLES[kind](tmp_path, BEGIN - timedelta(hours=before_h, minutes=30))
    covered_s = 3 * 3600 - 3600 * before_h - 1800
    run(scenario(log(tmp_path, BEGIN, covered_s), **settings))
    with pytest.raises(InputError, match=f"{covered_s:,} s"):
        run(scenario(log(tmp_path, BEGIN, covered_s + 60), **settings))


def test_what_is_submitted_behind_the_table_is_refused_before_the_run(tmp_path, capsys):
    """The second job comes at 03:00, when a table of two hours has ended; nothing is simulated for that."""
    jobs = log(tmp_path, BEGIN, 3600, 3600, gap_s=2 * 3600)
    table = stamped(tmp_path, BEGIN, 100, 200)
    words = ["run", "--workload", str(jobs), "--nodes", "1", "--driver", "reference", "--scheduler", "fcfs",
             "--log-zone", "UTC", "--carbon", str(table), "--carbon-columns", HOURLY]  # fmt: skip
    assert main(words) == 2
    assert "10,800 s (2026-03-02T03:00:00+00:00)" in capsys.readouterr().err


def test_a_table_with_stamps_begins_with_a_log_that_has_dates(tmp_path):
    """By default as with ``log``, by hand; a stamp takes precedence; without the log's zone it is asked for."""
    table = stamped(tmp_path, BEGIN - timedelta(hours=2), 900, 900, 100, 400)
    jobs = log(tmp_path, BEGIN, 7200)
    for start, expected in ((None, hours(100, 400)), ("log", hours(100, 400)), ("2026-03-01T23:00Z", hours(900, 100))):
        assert grams(jobs, Carbon(table, columns=HOURLY, start=start)) == pytest.approx(expected, rel=1e-12)
    without = Scenario(None, jobs, "fcfs", driver="reference", trace=TraceOptions(nodes=1))
    for start in (None, "log"):
        with pytest.raises(InputError, match="--log-zone"):
            load(Scenario(None, jobs, "fcfs", trace=without.trace, carbon=Carbon(table, columns=HOURLY, start=start)))
    (tmp_path / "a.swf").write_text("1 0 -1 7200 1 -1 -1 1 7200\n")
    bare = Scenario(None, tmp_path / "a.swf", "fcfs", driver="reference", trace=TraceOptions(nodes=1))
    for start, expected in ((None, hours(900, 900)), ("2026-03-02T00:00Z", hours(100, 400))):
        carbon = Carbon(table, columns=HOURLY, start=start)
        found = run(Scenario(None, bare.tasks, "fcfs", driver="reference", trace=bare.trace, carbon=carbon)).metrics()
        assert found["carbon_g"] == pytest.approx(expected, rel=1e-12)


def test_a_day_that_repeats_keeps_its_hours(tmp_path):
    """A day of two halves, of another year: at 06:00 there are six hours of the first half left, then the second."""
    first, second = (f"2024-05-01T{hour:02}:00Z" for hour in (0, 12))
    (tmp_path / "day.csv").write_text(f"time,g_per_kwh\n{first},100\n{second},400\n")
    halves = stamped(tmp_path, datetime(2024, 5, 1), 100, 400, step_h=12.0)
    jobs = log(tmp_path, BEGIN + timedelta(hours=6), 36 * 3600)
    expected = hours(100, 400, 400, 100, 100, 400, seconds=6 * 3600)
    for carbon in (Carbon(tmp_path / "day.csv", 86_400.0), Carbon(halves, 86_400.0, columns=HOURLY)):
        assert grams(jobs, carbon) == pytest.approx(expected, rel=1e-12)
    (tmp_path / "p.csv").write_text(f"time,{COST}\n{first},100\n{second},400\n")
    tariff = Tariff(0.0, prices=tmp_path / "p.csv", prices_period_s=86_400.0)
    assert run(scenario(jobs, tariff=tariff)).metrics()["energy_cost"] == pytest.approx(expected, rel=1e-12)
    with pytest.raises(InputError, match=r"carbon_period_s is 43200 s"):
        load(scenario(jobs, carbon=Carbon(halves, 43_200.0, columns=HOURLY)))


def test_the_last_row_holds_forever_where_that_is_asked_for(tmp_path):
    """With an infinite period, also of a table that ended long ago; a single row does in any case."""
    jobs = log(tmp_path, BEGIN, 7200)
    long_ago = stamped(tmp_path, datetime(2024, 1, 1), 100, 900)
    assert grams(jobs, Carbon(long_ago, math.inf, columns=HOURLY)) == pytest.approx(hours(900, 900), rel=1e-12)
    single = dated(tmp_path, datetime(2024, 1, 1), 250)
    assert grams(jobs, Carbon(single)) == pytest.approx(hours(250, 250), rel=1e-12)


def test_prices_with_dates_last_longer_than_a_day(tmp_path):
    """Rows of three days need no period; seconds still repeat after a day."""
    values = [1.0] * 30 + [3.0] * 42
    jobs = log(tmp_path, BEGIN + timedelta(hours=29), 7200)
    tariff = Tariff(0.0, prices=dated(tmp_path, BEGIN, *values, column=COST))
    assert run(scenario(jobs, tariff=tariff)).metrics()["energy_cost"] == pytest.approx(hours(1, 3), rel=1e-12)
    (tmp_path / "s.csv").write_text(f"time_s,{COST}\n0,1\n3600,3\n")
    jobs = log(tmp_path, BEGIN, 25 * 3600)
    tariff = Tariff(0.0, prices=tmp_path / "s.csv")
    found = run(scenario(jobs, tariff=tariff)).metrics()["energy_cost"]
    assert found == pytest.approx(hours(1, *[3] * 23, 1), rel=1e-12)


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=6),
    st.integers(0, 40),
    st.sampled_from([None, math.inf, 31.0, 40.0]),
    st.lists(st.integers(0, 90), min_size=1, max_size=20),
)
def test_rows_of_a_run_hold_what_the_table_holds_then(steps, before_s, period_s, times):
    """At each time of the run the row is that of the same date; the period counts from the first row."""
    begins = [float(sum(steps[:k]) - before_s) for k in range(len(steps))]
    rows, found = rows_of_run(begins, period_s)
    assert found[0] == 0.0
    assert all(a < b for a, b in pairwise(found))
    for time in times:
        since = time - begins[0]
        if period_s not in (None, math.inf):
            since, cycle = since % period_s, time % period_s
        else:
            cycle = time
        expected = bisect_right([begin - begins[0] for begin in begins], since) - 1
        assert rows[bisect_right(found, cycle) - 1] == expected


def test_dates_of_messages_are_of_the_log(tmp_path):
    """Seconds of the run, and dates on the log's clock."""
    table = dated(tmp_path, BEGIN, 100, 200)
    with pytest.raises(InputError) as caught:
        run(scenario(log(tmp_path, BEGIN, 3 * 3600), carbon=Carbon(table)))
    text = str(caught.value)
    for hour in (0, 2, 3):
        assert (BEGIN + timedelta(hours=hour)).replace(tzinfo=UTC).isoformat() in text
