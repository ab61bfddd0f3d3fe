"""What compare takes: schedulers, profit and deadlines."""

from __future__ import annotations

import csv
import io
import json
import re
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from cli_cases import ROOT, host_xml, zone_xml
from rich.cells import cell_len

from gridsched import Scenario, make_tasks, run
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.export.archive import read_archive
from gridsched.model.platform import Host, Platform, PState
from gridsched.policy.registry import entries
from gridsched.testing.repetition import with_other_future
from gridsched.workloads.bag import write_bag
from gridsched.workloads.load import read_workload

# compare: all schedulers, sorted rows, energy times delay, Parquet.


def ids_of_kind(kind: str) -> set[str]:
    """Return the shipped schedulers that accept a kind of workload."""
    return {each.id for each in entries() if kind in each.accepts and each.target.startswith("gridsched.")}


class Terminal(io.StringIO):
    """What is written to it goes to a person."""

    def isatty(self) -> bool:
        return True


#: The name of a file with schedulers of one's own, longer than half a line.
LONG_NAME = "schedulers_that_nobody_else_has_thought_of_before_us.py"


@pytest.mark.systems("robust", "utility")
def test_all_schedulers_fit_a_terminal_of_100_columns(gridsched, ex_a, tmp_path, monkeypatch):
    """All are those that take the workload; with them, or with a long name, no line is longer."""
    (tmp_path / LONG_NAME).write_text(
        "from gridsched import Assign, Scheduler, Traits\n\n\n"
        "class PutsEverythingOnTheFirstHost(Scheduler):\n"
        "    traits = Traits(trigger='arrival')\n\n"
        "    def schedule(self, state):\n"
        "        return [Assign(task, 0) for task in state.waiting()]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    options = ["--driver", "reference", "--sort", "energy_delay_js", "--price", "3"]
    own = f"{LONG_NAME}:PutsEverythingOnTheFirstHost"
    for schedulers, more in (("all", ["-o", "all.json"]), (f"{own},wq,lecsa", [])):
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", terminal)
            gridsched("compare", *ex_a, *options, *more, "--schedulers", schedulers)
    rows = json.loads((tmp_path / "all.json").read_text())["results"]
    names = {row["scheduler"] for row in rows}
    assert {"wq", "mct", "lecsa", "auto_bag", "round_robin"} <= names
    assert names.isdisjoint({"fcfs", "max_max_upe", "lightest_load"})
    lines = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()).splitlines()
    assert [line for line in lines if cell_len(line) > 100] == []
    text = " ".join(" ".join(lines).split())
    assert "idle power not counted: hosts may be off at any time" in text
    for word in ("auto_bag", "energy delay", "profit", "PutsEverythingOnTheFirstHost"):
        assert word in text


def test_rows_are_sorted_best_first(gridsched, ex_a):
    """EX-A by energy times makespan: wq 2430 J x 80 s, mct 2510 J x 40 s, lecsa 1700 J x 100 s."""
    options = ["--driver", "reference", "--schedulers", "wq,mct,lecsa", "--sort"]
    rows = gridsched("compare", *ex_a, *options, "energy_delay_js", "--json").json["results"]
    found = {row["scheduler"]: row["energy_delay_js"] for row in rows}
    assert list(found.items()) == [("mct", 100_400), ("lecsa", 170_000), ("wq", 194_400)]
    table = gridsched("compare", *ex_a, *options, "energy_delay_js").out
    assert "energy delay" in table
    assert "100,400" in table


def test_what_has_no_best_is_refused(refused, ex_a):
    """The message proposes a metric."""
    line = refused("compare", *ex_a, "--driver", "reference", "--sort", "makespan")
    assert "Did you mean 'makespan_s'?" in line


def test_parquet_has_units(gridsched, ex_a, tmp_path):
    """The same numbers as in JSON, each column with its unit."""
    path = tmp_path / "t.parquet"
    gridsched("compare", *ex_a, "--driver", "reference", "--schedulers", "wq,mct", "-o", path)
    table = pq.read_table(path)
    assert table.column("makespan_s").to_pylist() == [80.0, 40.0]
    assert table.schema.field("makespan_s").metadata[b"unit"] == b"s"
    assert table.column("scheduler").to_pylist() == ["wq", "mct"]


def test_a_metric_of_ones_own(gridsched, refused, ex_a):
    """EX-A by energy times makespan squared: 4,016,000, 15,552,000 and 17,000,000 J s2."""
    options = ["--driver", "reference", "--schedulers", "wq,mct,lecsa"]
    own = ["--metric", "ed2p = energy_j * makespan_s ** 2", "--metric", "k=ed2p/1e3", "--sort", "k"]
    rows = gridsched("compare", *ex_a, *options, *own, "--json").json["results"]
    found = {row["scheduler"]: row["ed2p"] for row in rows}
    assert list(found.items()) == [("mct", 4_016_000), ("wq", 15_552_000), ("lecsa", 17_000_000)]
    assert [row["k"] for row in rows] == [4016, 15_552, 17_000]
    table = gridsched("compare", *ex_a, *options, *own).out
    assert "ed2p" in table
    assert "4,016" in table
    line = refused("compare", *ex_a, *options, "--metric", "x=energy_y*2")
    assert "--metric x 'energy_y*2': 'energy_y' is not a metric to compute with" in line
    assert "write NAME=EXPRESSION" in refused("compare", *ex_a, *options, "--metric", "ed2p")


@pytest.mark.systems("robust", "utility")
@pytest.mark.parametrize(
    ("workload", "ids"),
    [
        ("four_nodes.swf", {"fcfs", "easy_backfilling", "conservative_backfilling"}),
        ("utility_small.toml", ids_of_kind("utility")),
        ("measured.toml", ids_of_kind("stochastic")),
        ("parallel_small.toml", ids_of_kind("parallel_utility")),
    ],
)
def test_who_is_compared_where_nobody_is_named(gridsched, workload: str, ids: set[str]):
    """Those made for the workload; what it takes besides, as plain policies, is not among them."""
    outcome = gridsched("compare", "--workload", ROOT / "examples" / workload, "--driver", "reference", "--json")
    assert outcome.status == 0
    assert {row["scheduler"] for row in outcome.json["results"]} == ids


def test_who_is_compared_on_a_bag(gridsched, ex_a):
    """The six of the LECSA paper, in its order."""
    rows = gridsched("compare", *ex_a, "--driver", "reference", "--json").json["results"]
    assert [row["scheduler"] for row in rows] == ["wq", "wqr", "sufferage", "xsufferage", "dynamic_fpltf", "lecsa"]


def test_none_takes_the_workload(refused, write):
    """The first of those that are usual gives the reason: a cluster of unequal hosts takes no parallel jobs."""
    platform = write("p.xml", zone_xml(host_xml("a") + host_xml("b", speed="2Gf")))
    log = ROOT / "examples" / "four_nodes.swf"
    for schedulers in ([], ["--schedulers", "all"]):
        line = refused("compare", "--platform", platform, "--workload", log, *schedulers)
        assert "'a' and 'b'" in line


# ``compare`` with a price: profit of each run, bounds of typed bags, what is refused.

SMALL = 'kind = "profit"\ntask_types = 4\nmachine_types = 3\nmachines_per_type = 3\ntasks = 90\n'


@pytest.fixture
def words(tmp_path) -> list[str]:
    """Write a small system; return the words that compare two schedulers on it."""
    (tmp_path / "bag.toml").write_text(SMALL + "idle_share = 0.05\n", encoding="utf-8")
    workload = ["--workload", str(tmp_path / "bag.toml"), "--driver", "reference"]
    return ["compare", *workload, "--schedulers", "lp_max_profit,lp_pareto,mct"]


@pytest.mark.systems("profit")
def test_each_run_has_a_profit_and_bounds(words, capsys):
    """By the definitions, from the columns of the same row."""
    money = ["--price", "5e6", "--energy-cost", "2/J", "--pue", "1.25", "--overhead", "1000"]
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


@pytest.mark.systems("profit")
def test_the_table_has_the_columns(words, capsys):
    """With a price only."""
    assert main([*words, "--price", "5e6"]) == 0
    priced = capsys.readouterr().out
    assert "[money/s]" in priced
    assert "Bound of any schedule, with divisible tasks: at least" in priced
    assert main([*words]) == 0
    assert "money" not in capsys.readouterr().out


@pytest.mark.systems("profit")
def test_provenance_tells_the_tariff(words, capsys):
    """All of it, defaults too; without a price there is none."""
    assert main([*words, "--price", "5e6", "--wear-per-s", "0.5", "--json"]) == 0
    (tariff, *_) = (row["provenance"]["tariff"] for row in json.loads(capsys.readouterr().out)["results"])
    assert (tariff["price"], tariff["wear_per_s"], tariff["pue"]) == (5e6, 0.5, 1.0)


@pytest.mark.systems("profit")
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
    (problem,) = capsys.readouterr().err.splitlines()
    assert message in problem


@pytest.mark.systems("profit")
def test_a_scheduler_that_plans_once_refuses_tasks_that_arrive_later(tmp_path, capsys):
    """Reported before the run."""
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


@pytest.mark.systems("profit")
def test_prices_from_a_file(words, tmp_path, capsys):
    """A joule costs more in the first 100 s of each 1,000 s than the tariff states."""
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


@pytest.mark.systems("profit")
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


@pytest.mark.systems("profit")
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


@pytest.mark.systems("profit")
def test_where_nobody_did_anything_nobody_is_best(words, capsys):
    """One scheduler, which runs nothing."""
    alone = [*words[:-1], "lp_max_profit", "--price", "1"]
    assert main([*alone, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["results"]
    assert row["makespan_above_best"] is row["energy_above_best"] is None


# Hard deadlines: what is late, what is missed, and that files and archives keep them.

#: EX-A's tasks finish at 10, 10, 80, 25 and 15 s under `wq` (algorithms A1).
BAG = "id,flops,deadline_s\n1,1000,10\n2,500,9\n3,2000,\n4,1500,25\n5,250,14.5\n"
PLATFORM = ROOT / "platforms" / "ex_a.xml"


@pytest.mark.systems("profit")
@pytest.mark.parametrize("driver", ["reference", "simgrid"])
@pytest.mark.parametrize(
    ("more", "late", "missed"),
    [
        ((), 2, 2),  # tasks 2 and 5; 1 and 4 end at their deadlines, 3 has none
        (("--horizon-s", "5"), 1, 3),  # 4 and 5 never start
        (("--energy-budget-j", "300", "--budget-enforcement", "stop"), 0, 5),  # 74 W: over at 4.05 s
    ],
)
def test_late_and_missed_tasks(gridsched, write, driver, more, late, missed):
    """Both drivers count alike; equality is in time; what never finishes is missed, not late."""
    workload = write("bag.csv", BAG)
    words = ("--platform", PLATFORM, "--workload", workload, "--driver", driver, *more)
    found = gridsched("run", *words, "--json").json
    assert (found["tasks_late"], found["tasks_missed"]) == (late, missed)
    shown = gridsched("compare", *words, "--schedulers", "wq").out
    assert "late  missed" in shown
    row = next(line for line in shown.splitlines() if line.startswith("wq "))
    assert row.split()[-2:] == [str(late), str(missed)]


def test_only_workloads_with_deadlines_have_the_metrics(gridsched, ex_a):
    """Without the column nothing is shown."""
    found = gridsched("run", *ex_a, "--driver", "reference", "--json").json
    assert not {"tasks_late", "tasks_missed"} & found.keys()
    assert "missed" not in gridsched("compare", *ex_a, "--driver", "reference").out


def test_rounding_does_not_make_a_task_late():
    """0.1 s + 0.2 s is 0.30000000000000004 s, the same instant as 0.3 s."""
    host = Platform((Host("h", (PState(10.0, 1.0, 2.0, 2.0),)),))
    for deadline, late in ((0.3, 0), (0.3 - 1e-8, 1)):
        tasks = make_tasks([1.0, 2.0], deadline_s=[np.inf, deadline])
        result = run(Scenario(host, tasks, "wq", driver="reference"))
        assert result.trace.finish_time_s[1] > 0.3
        assert result.summary()["tasks_late"] == late


def test_a_bag_reads_back_with_its_deadlines(tmp_path):
    """To the last digit, and in order of submission; a bag of none has none."""
    tasks = make_tasks([1.0, 2.0, 3.0], [5.0, 0.0, 1.0], deadline_s=[0.1 + 0.2, np.inf, 7.0])
    assert tasks.deadline_s.tolist() == [np.inf, 7.0, 0.1 + 0.2]
    write_bag(tasks, tmp_path / "bag.csv")
    back = read_workload(tmp_path / "bag.csv")
    assert back.deadline_s.tolist() == tasks.deadline_s.tolist()
    assert make_tasks([1.0, 2.0], deadline_s=np.inf).deadline_s is None
    write_bag(make_tasks([1.0]), tmp_path / "none.csv")
    assert read_workload(tmp_path / "none.csv").deadline_s is None


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "soon"])
def test_a_deadline_that_is_none_is_refused(refused, write, value):
    """The message names file, line and column."""
    path = write("bag.csv", f"id,flops,deadline_s\n1,10,5\n2,10,{value}\n")
    line = refused("run", "--platform", PLATFORM, "--workload", path)
    assert f"bag.csv, line 3: deadline_s is '{value}'; it must be a finite number >= 0" in line


def test_a_deadline_of_python_is_checked():
    """Negative times and nan are refused, with what is allowed."""
    for value in (-1.0, float("nan"), 1e31):
        with pytest.raises(InputError, match=r"task 2.*deadline_s.*inf"):
            make_tasks([1.0, 2.0], deadline_s=[np.inf, value])


@pytest.mark.systems("profit")
def test_an_export_keeps_deadlines(gridsched, write, tmp_path):
    """jobs.csv and tasks.csv have a column, the archive the numbers."""
    words = ("--platform", PLATFORM, "--workload", write("bag.csv", BAG), "--driver", "reference")
    assert gridsched("run", *words, "--export", tmp_path / "out").status == 0
    for name in ("jobs.csv", "tasks.csv"):
        with (tmp_path / "out" / name).open() as file:
            told = [row["deadline_s"] for row in csv.DictReader(file)]
        assert told == ["10.0", "9.0", "", "25.0", "14.5"]
    back = read_archive(tmp_path / "out" / "trace.npz").trace
    assert back.tasks.deadline_s.tolist() == [10.0, 9.0, np.inf, 25.0, 14.5]


def test_the_check_for_the_future_changes_deadlines_with_their_tasks():
    """Each later task keeps the time that it is given from its arrival on."""
    tasks = make_tasks([10.0, 20.0, 30.0], [0.0, 1.0, 2.0], deadline_s=[5.0, 7.0, 9.0])
    other = with_other_future(tasks, 1.0)
    assert other.deadline_s.tolist() == [5.0, 1.25 + 7.0, 3.25 + 6.0]
