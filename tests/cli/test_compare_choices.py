"""compare: all schedulers, sorted rows, energy times delay, Parquet."""

from __future__ import annotations

import io
import json
import re
import sys

import pyarrow.parquet as pq
import pytest
from cli_cases import ROOT, host_xml, zone_xml
from rich.cells import cell_len

from gridsched.policy.registry import entries


def ids_of_kind(kind: str) -> set[str]:
    """Return the shipped schedulers that accept a kind of workload."""
    return {each.id for each in entries() if kind in each.accepts and each.target.startswith("gridsched.")}


class Terminal(io.StringIO):
    """What is written to it goes to a person."""

    def isatty(self) -> bool:
        return True


#: The name of a file with schedulers of one's own, longer than half a line.
LONG_NAME = "schedulers_that_nobody_else_has_thought_of_before_us.py"


def test_all_schedulers_fit_a_terminal_of_100_columns(gridsched, ex_a, tmp_path, monkeypatch):
    """All are those that take the workload; with them, or with a long name, no line is longer."""
    (tmp_path / LONG_NAME).write_text(
        "from gridsched import Assign, Scheduler, Traits\n\n\n"
        "class PutsEverythingOnTheFirstHost(Scheduler):\n"
        "    traits = Traits(asked='arrival')\n\n"
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
    assert "--metric x 'energy_y*2': 'energy_y' is no metric to compute with" in line
    assert "write NAME=EXPRESSION" in refused("compare", *ex_a, *options, "--metric", "ed2p")


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
    """The first of those that are usual says why: a cluster of unequal hosts takes no parallel jobs."""
    platform = write("p.xml", zone_xml(host_xml("a") + host_xml("b", speed="2Gf")))
    log = ROOT / "examples" / "four_nodes.swf"
    for schedulers in ([], ["--schedulers", "all"]):
        line = refused("compare", "--platform", platform, "--workload", log, *schedulers)
        assert "'a' and 'b'" in line
