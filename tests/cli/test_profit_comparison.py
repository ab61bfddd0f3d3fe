"""``compare`` with a price: profit of each run, bounds of typed bags, what is refused."""

from __future__ import annotations

import json

import pytest

from gridsched.cli.app import main

SMALL = 'kind = "profit"\ntask_types = 4\nmachine_types = 3\nmachines_per_type = 3\ntasks = 90\n'


@pytest.fixture
def words(tmp_path) -> list[str]:
    """Write a small system; return the words that compare two schedulers on it."""
    (tmp_path / "bag.toml").write_text(SMALL + "idle_share = 0.05\n", encoding="utf-8")
    workload = ["--workload", str(tmp_path / "bag.toml"), "--driver", "reference"]
    return ["compare", *workload, "--schedulers", "lp_max_profit,lp_pareto,mct"]


def test_each_run_has_a_profit_and_bounds(words, capsys):
    """By the definitions, from the columns of the same row."""
    money = ["--price", "5e6", "--energy-cost", "2", "--pue", "1.25", "--overhead", "1000"]
    assert main([*words, *money, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["results"]
    assert [row["tasks_finished"] for row in rows] == [90, 90, 90]
    for row in rows:
        earned = 5e6 - 1000 - 2 * 1.25 * row["energy_j"]
        assert row["profit"] == pytest.approx(earned, rel=1e-12)
        assert row["profit_rate"] == pytest.approx(earned / row["makespan_s"], rel=1e-12)
        assert row["makespan_s"] >= row["makespan_bound_s"]
        assert row["energy_j"] >= row["energy_bound_j"]
        assert 0 <= row["energy_above_bound"] < 1
    assert rows[0]["profit_rate"] > rows[2]["profit_rate"]


def test_the_table_has_the_columns(words, capsys):
    """With a price only."""
    assert main([*words, "--price", "5e6"]) == 0
    priced = capsys.readouterr().out
    assert "[money/s]" in priced
    assert "Bound of any schedule, with divisible tasks: at least" in priced
    assert main([*words]) == 0
    assert "money" not in capsys.readouterr().out


def test_provenance_tells_the_tariff(words, capsys):
    """All of it, defaults too; without a price there is none."""
    assert main([*words, "--price", "5e6", "--wear-per-s", "0.5", "--json"]) == 0
    (tariff, *_) = (row["provenance"]["tariff"] for row in json.loads(capsys.readouterr().out)["results"])
    assert (tariff["price"], tariff["wear_per_s"], tariff["pue"]) == (5e6, 0.5, 1.0)


@pytest.mark.parametrize(
    ("money", "message"),
    [
        (["--pue", "1.2"], "--pue has no effect without --price"),
        (["--price", "-1"], "price is -1; it must be at least 0"),
        (["--price", "1", "--pue", "0.5"], "pue is 0.5; it must be at least 1"),
    ],
)
def test_refused(words, money, message, capsys):
    """One line, status 2."""
    assert main([*words, *money]) == 2
    (complaint,) = capsys.readouterr().err.splitlines()
    assert message in complaint


def test_a_scheduler_that_plans_once_refuses_tasks_that_arrive_later(tmp_path, capsys):
    """Told before the run."""
    bag = tmp_path / "bag.csv"
    bag.write_text("id,flops,submit_time_s\n1,100,0\n2,100,30\n", encoding="utf-8")
    host = '<host id="h" speed="10f"><prop id="wattage_per_state" value="1:2:2"/></host>'
    platform = tmp_path / "p.xml"
    platform.write_text(
        '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        f'<platform version="4.1"><zone id="z" routing="Full">{host}</zone></platform>\n',
        encoding="utf-8",
    )
    words = ["--platform", str(platform), "--workload", str(bag), "--driver", "reference"]
    assert main(["compare", *words, "--schedulers", "lp_pareto"]) == 2
    assert "plans once, at the first submission" in capsys.readouterr().err


def test_prices_from_a_file(words, tmp_path, capsys):
    """A joule is dearer in the first 100 s of each 1,000 s than the tariff says."""
    series = tmp_path / "prices.csv"
    series.write_text("time_s,energy_cost_per_kwh\n0,7.2e6\n100,\n", encoding="utf-8")
    tariff = ["--price", "5e6", "--prices", str(series), "--prices-period-s", "1000", "--json"]
    assert main([*words, *tariff]) == 0
    rows = json.loads(capsys.readouterr().out)["results"]
    for row in rows:
        assert row["energy_j"] < row["energy_cost"] < 2 * row["energy_j"]
        assert row["profit"] == pytest.approx(5e6 - row["energy_cost"], rel=1e-12)
        assert str(series) in row["provenance"]["inputs"]
    assert rows[0]["provenance"]["tariff"]["prices"]["energy_cost_per_j"] == [2.0, 1.0]


def test_prices_need_a_price(words, tmp_path, capsys):
    """The series may leave it to the tariff, and the table may be bad."""
    series = tmp_path / "prices.csv"
    series.write_text("time_s,price\n1,2\n", encoding="utf-8")
    assert main([*words, "--prices", str(series)]) == 2
    assert "--prices has no effect without --price" in capsys.readouterr().err
    assert main([*words, "--prices", str(series), "--price", "3"]) == 2
    assert "line 2: time_s is '1.0'; the first line begins at 0" in capsys.readouterr().err
    assert main([*words, "--prices", str(tmp_path / "none.csv"), "--price", "3"]) == 2
    assert "none.csv: cannot be read" in capsys.readouterr().err


def test_what_did_nothing_is_not_the_best(words, capsys):
    """At a price of 1 lp_max_profit runs nothing: no time, no energy, and no best of its own."""
    assert main([*words, "--price", "1", "--json"]) == 0
    nothing, *others = json.loads(capsys.readouterr().out)["results"]
    assert (nothing["tasks_finished"], nothing["makespan_s"], nothing["energy_j"]) == (0, 0, 0)
    assert nothing["makespan_above_best"] is nothing["energy_above_best"] is None
    for metric in ("makespan_s", "energy_j"):
        best = min(row[metric] for row in others)
        above = [row[metric] / best - 1 for row in others]
        name = metric.rpartition("_")[0] + "_above_best"
        assert [row[name] for row in others] == pytest.approx(above)


def test_where_nobody_did_anything_nobody_is_best(words, capsys):
    """One scheduler, which runs nothing."""
    alone = [*words[:-1], "lp_max_profit", "--price", "1"]
    assert main([*alone, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["results"]
    assert row["makespan_above_best"] is row["energy_above_best"] is None
