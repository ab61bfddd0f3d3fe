"""Runs whose joules differ between plugin and model are failed ones, for every command."""

from __future__ import annotations

import json

import pytest
from cli_cases import host_xml, zone_xml

#: A policy that goes behind the engine's back: SimGrid's host is then in another P-state than the
#: model's, as fast as the first and at 30 W in the place of 100 W.
MEDDLER = '''
"""A policy that changes SimGrid itself."""

import sys

from gridsched import Assign, Scheduler, Traits


class Meddler(Scheduler):
    """A work queue that puts host b into another P-state by SimGrid's own interface."""

    traits = Traits(asked="event")

    def schedule(self, state):
        sys.modules["simgrid"].Host.by_name("b").pstate = 1
        return [Assign(t, h) for t, h in zip(state.waiting(), state.idle_cores())]
'''


@pytest.fixture
def files(tmp_path) -> list[object]:
    """Return the options of two hosts, and of a task for each of 10 s."""
    hosts = [host_xml(name, "100f,100f", "10:10:100, 10:10:30") for name in "ab"]
    (tmp_path / "p.xml").write_text(zone_xml("".join(hosts)))
    (tmp_path / "bag.csv").write_text("id,flops\n1,1000\n2,1000\n")
    (tmp_path / "meddler.py").write_text(MEDDLER)
    return ["--platform", tmp_path / "p.xml", "--workload", tmp_path / "bag.csv"]


@pytest.mark.usefixtures("simgrid")
def test_run_tells_the_host_and_writes_nothing(gridsched, files, tmp_path):
    """300 J by the plugin, 1000 J by the model: exit status 1, no table, no file."""
    target, records = tmp_path / "t.json", tmp_path / "out"
    found = gridsched("run", *files, "--scheduler", tmp_path / "meddler.py", "-o", target, "--export", records)
    assert found.status == 1
    assert found.out == ""
    assert not target.exists()
    assert not records.exists()
    told = " ".join(found.err.split())
    assert "host 'b' has energy_j 300.0 by SimGrid's plugin and energy_model_j 1000.0" in told
    assert "(1 of 2 hosts differ)" in told
    assert "All figures of this run are left out" in told


@pytest.mark.usefixtures("simgrid")
def test_compare_leaves_the_run_out_and_keeps_the_others(gridsched, files, tmp_path):
    """The other schedulers have their rows; the failure names its own."""
    both = f"wq,{tmp_path / 'meddler.py'}"
    found = gridsched("compare", *files, "--schedulers", both, "-o", tmp_path / "t.json", "--json")
    assert found.status == 1
    assert [row["scheduler"] for row in found.json["results"]] == ["wq"]
    (failure,) = json.loads((tmp_path / "t.json").read_text())["failures"]
    assert "Meddler" in failure
    assert "host 'b' has energy_j 300.0" in failure
    assert "All figures of this run are left out" in failure
    assert "run failed" in found.err
