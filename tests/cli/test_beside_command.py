"""`gridsched beside`: the log's row, its file and figure, and what is refused."""

from __future__ import annotations

import csv
import json

import pytest
from cli_cases import ROOT

LOG, CONF = str(ROOT / "examples/live_slurm.sacct"), str(ROOT / "examples/live_slurm.conf")
OWN = ("beside", "--workload", LOG, "--slurm-conf", CONF, "--driver", "reference", "--schedulers", "fcfs")


def test_the_log_comes_first(gridsched, tmp_path):
    """Its numbers are those of the accounting; the figure has both schedules in its data."""
    plot, output = tmp_path / "b.png", tmp_path / "rows.csv"
    result = gridsched(*OWN, "--json", "--plot", str(plot), "-o", str(output))
    assert result.status == 0
    log, fcfs = json.loads(result.out)["schedules"]
    assert (log["schedule"], log["makespan_s"], log["longest_wait_s"], log["rank_correlation"]) == (
        "the log",
        390,
        314,
        1,
    )
    assert log["median_wait_s"] == 164.5
    assert fcfs["schedule"] == "fcfs"
    assert fcfs["makespan_s"] > log["makespan_s"]
    assert plot.stat().st_size > 0
    with plot.with_suffix(".csv").open() as file:
        assert {row["schedule"] for row in csv.DictReader(file)} == {"the log", "fcfs"}
    assert output.read_text().count("\n") == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--workload", str(ROOT / "examples/four_nodes.swf")), "sacct"),
        (("--draws", "-1"), "--draws"),
        (("--partitions", CONF), "slurm_conf"),
        (("--nodes", "3"), "nodes"),
    ],
)
def test_what_is_refused(gridsched, options, words):
    """In one line, with exit status 2."""
    result = gridsched(*OWN, *options)
    assert result.status == 2
    assert words in result.err
    assert result.err.count("\n") == 1


def test_a_table_called_as_the_figure(gridsched, tmp_path):
    """Both are written, the data of the figure under a name of their own."""
    result = gridsched(*OWN, "--quiet", "--plot", str(tmp_path / "b.png"), "-o", str(tmp_path / "b.csv"))
    assert result.status == 0, result.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.csv", "b.plot.csv", "b.png"]
    assert (tmp_path / "b.csv").read_text().startswith("schedule,")
    assert (tmp_path / "b.plot.csv").read_text().startswith("panel,")
