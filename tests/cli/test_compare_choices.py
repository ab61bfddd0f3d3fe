"""compare: all schedulers, sorted rows, energy times delay, Parquet."""

from __future__ import annotations

import pyarrow.parquet as pq


def test_all_are_those_that_take_the_workload(gridsched, ex_a):
    """A bag of tasks: the bag schedulers, none of those that need utility, types or jobs."""
    options = ["--driver", "reference", "--schedulers", "all", "--json"]
    rows = gridsched("compare", *ex_a, *options).json["results"]
    names = {row["scheduler"] for row in rows}
    assert {"wq", "mct", "lecsa", "auto_bag", "round_robin"} <= names
    assert names.isdisjoint({"fcfs", "max_max_upe", "lightest_load"})


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
