"""`gridsched compare`: its JSON, its files, its failures, and the environment of paper 004."""

from __future__ import annotations

import csv
import json
import os
from dataclasses import replace

import pytest
from cli_cases import ROOT, host_xml, zone_xml

from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Assign
from gridsched.policy.registry import _ENTRIES, register
from gridsched.runs.run import RunResult, run
from gridsched.scenario import Scenario

NUMBERS = {
    "makespan_s",
    "busy_time_s",
    "energy_j",
    "energy_model_j",
    "energy_busy_j",
    "energy_idle_j",
    "energy_off_j",
    "energy_wasted_j",
    "wasted_flops",
    "waste_ratio",
    "makespan_above_best",
    "energy_above_best",
    "energy_relative_difference",
    "mean_flow_time_s",
    "horizon_s",
}
COUNTS = {"hosts_used", "executions", "tasks", "tasks_finished", "tasks_rejected"}


def test_json_schema(gridsched, ex_a, simgrid):
    """JSON holds one object for each scheduler, numbers as numbers and in SI units."""
    outcome = gridsched("compare", *ex_a, "--json")
    assert (outcome.status, outcome.err) == (0, "")
    found = outcome.json
    assert set(found) == {"results", "failures"}
    assert found["failures"] == []
    assert [row["scheduler"] for row in found["results"]] == [
        "wq",
        "wqr",
        "sufferage",
        "xsufferage",
        "dynamic_fpltf",
        "lecsa",
    ]
    for row in found["results"]:
        assert set(row) >= NUMBERS | COUNTS | {"scheduler", "provenance", "timing"}
        assert all(isinstance(row[name], float) for name in NUMBERS)
        assert all(isinstance(row[name], int) for name in COUNTS)
    best = {row["scheduler"]: row["energy_above_best"] for row in found["results"]}
    assert best["lecsa"] == 0
    assert best["dynamic_fpltf"] == pytest.approx(2250 / 1700 - 1)


def test_provenance_repeats_the_run(gridsched, ex_a):
    """The JSON contains what is needed to run it again."""
    outcome = gridsched(
        "compare",
        *ex_a,
        "--schedulers",
        "wqr",
        "--set",
        "max_replicas=3",
        "--seed",
        "7",
        "--driver",
        "reference",
        "--json",
    )
    told = outcome.json["results"][0]["provenance"]
    assert told["platform"] == ex_a[1]
    assert told["workload"] == ex_a[3]
    assert told["parameters"] == {"max_replicas": 3, "pick": "oldest"}
    assert (told["seed"], told["driver"], told["network"]) == (7, "reference", "none")
    assert told["gridsched"]


def test_environment_2_of_the_lecsa_paper(gridsched, tmp_path, simgrid):
    """720 tasks of 50 %: plugin and model agree to 1e-9, and LECSA needs least energy."""
    bag = tmp_path / "bag.csv"
    made = gridsched(
        "workload",
        "generate",
        "--tasks",
        720,
        "--mean-flops",
        "1e6",
        "--heterogeneity",
        "0.5",
        "--seed",
        "1",
        "-o",
        bag,
    )
    assert made.status == 0
    platform = ROOT / "platforms" / "lecsa_env2.xml"
    outcome = gridsched("compare", "--platform", platform, "--workload", bag, "--json")
    assert (outcome.status, outcome.err) == (0, "")
    rows = {row["scheduler"]: row for row in outcome.json["results"]}
    assert len(rows) == 6
    for row in rows.values():
        assert row["tasks_finished"] == 720
        assert row["energy_j"] == pytest.approx(row["energy_model_j"], rel=1e-9)
        assert row["energy_relative_difference"] <= 1e-9
    assert min(rows, key=lambda id: rows[id]["energy_j"]) == "lecsa"
    assert rows["lecsa"]["hosts_used"] == 70  # A7: 50 % takes hosts down to eps 0.049
    assert rows["wqr"]["energy_wasted_j"] > 0
    assert min(rows, key=lambda id: rows[id]["makespan_s"]) == "dynamic_fpltf"


def test_files_hold_what_json_holds(gridsched, ex_a, tmp_path):
    """-o writes the same numbers as JSON or CSV, with every digit."""
    command = ["compare", *ex_a, "--driver", "reference", "--schedulers", "wq,mct,min_min"]
    printed = gridsched(*command, "--json", "-o", tmp_path / "c.json").json
    quiet = gridsched(*command, "--quiet", "-o", tmp_path / "c.csv")
    assert (quiet.status, quiet.out, quiet.err) == (0, "", "")
    written = json.loads((tmp_path / "c.json").read_text())
    for row in printed["results"] + written["results"]:
        del row["timing"], row["provenance"]["command"]
    assert written == printed
    with open(tmp_path / "c.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row, expected in zip(rows, printed["results"], strict=True):
        assert row["scheduler"] == expected["scheduler"]
        assert float(row["makespan_s"]) == expected["makespan_s"]
        assert float(row["energy_j"]) == expected["energy_j"]
        assert "provenance" not in row


def test_a_disagreement_is_a_failed_run(gridsched, ex_a, simgrid, monkeypatch):
    """Where plugin and model differ by 1e-6 the run fails, naming host and joules; others stay."""

    def metered_wrongly(scenario: Scenario, **options: bool) -> RunResult:
        result = run(scenario, **options)
        wrong = {**result.plugin_j, "h2": result.plugin_j["h2"] * (1 + 1e-6)}
        return replace(result, plugin_j=wrong) if scenario.scheduler == "wq" else result

    monkeypatch.setattr("gridsched.runs.run_many.run", metered_wrongly)
    outcome = gridsched("compare", *ex_a, "--schedulers", "wq,mct", "--json")
    assert outcome.status == 1
    assert [row["scheduler"] for row in outcome.json["results"]] == ["mct"]
    (problem,) = outcome.problems
    assert "run failed: wq" in problem
    assert "host 'h2'" in problem
    assert "1e-06" in problem
    only = gridsched("compare", *ex_a, "--schedulers", "wq")
    assert (only.status, "agree" in only.out) == (1, False)


@pytest.mark.parametrize(("driver", "source"), [("reference", "model"), ("simgrid", "plugin")])
def test_energy_tells_its_source(gridsched, ex_a, simgrid, tmp_path, driver, source):
    """Beside energy_j is whose it is: in JSON and in CSV, of compare and of run."""
    options = [*ex_a, "--driver", driver]
    compared = gridsched("compare", *options, "--schedulers", "wq", "--json")
    assert compared.json["results"][0]["energy_source"] == source
    assert gridsched("run", *options, "--json").json["energy_source"] == source
    for command in ("compare", "run"):
        path = tmp_path / f"{command}.csv"
        assert gridsched(command, *options, "-o", path, "--quiet").status == 0
        with open(path, newline="") as stream:
            header, first, *_ = csv.reader(stream)
        place = header.index("energy_j")
        assert (header[place + 1], first[place + 1]) == ("energy_source", source)


def test_plot_is_saved_with_its_data(gridsched, ex_a, tmp_path):
    """--plot draws the figure and names its file."""
    path = tmp_path / "c.png"
    outcome = gridsched("compare", *ex_a, "--driver", "reference", "--plot", path)
    assert outcome.status == 0
    assert str(path) in outcome.out
    assert path.read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "c.csv").read_text().startswith("scheduler,makespan_s")


class Broken(Scheduler):
    """Assigns to a host that does not exist."""

    traits = Traits(trigger="event")

    def schedule(self, state):
        """Ask for the impossible."""
        return [Assign(int(task), 99) for task in state.mappable]


class Buggy(Broken):
    """Has a fault of its own."""

    def schedule(self, state):
        """Divide by zero."""
        return [1 // 0]


@pytest.fixture
def faulty():
    """Register two faulty schedulers for a test."""
    for id, name in (("broken", "Broken"), ("buggy", "Buggy")):
        register(id, f"{__name__}:{name}")
    yield
    for id in ("broken", "buggy"):
        del _ENTRIES[id]


def test_a_failed_run_leaves_the_others(gridsched, ex_a, faulty):
    """Exit 1 and one line for the failed run; the other results are shown."""
    outcome = gridsched("compare", *ex_a, "--driver", "reference", "--schedulers", "wq,broken,lecsa", "--json")
    assert outcome.status == 1
    assert [row["scheduler"] for row in outcome.json["results"]] == ["wq", "lecsa"]
    assert len(outcome.json["failures"]) == len(outcome.problems) == 1
    for word in ("run failed", "broken", "Broken", "99"):
        assert word in outcome.problems[0]


def test_nothing_but_failed_runs(gridsched, ex_a, tmp_path, faulty):
    """Where no run succeeds nothing is drawn, and the exit status is 1."""
    outcome = gridsched(
        "compare", *ex_a, "--driver", "reference", "--schedulers", "broken", "--plot", tmp_path / "c.png"
    )
    assert (outcome.status, outcome.out) == (1, "")
    assert not list(tmp_path.iterdir())


def test_a_bug_in_a_scheduler_is_one_line(gridsched, ex_a, simgrid, faulty):
    """On both drivers a fault in a user's scheduler is one line; --traceback shows the place."""
    for driver in ("reference", "simgrid"):
        command = ["run", *ex_a, "--driver", driver, "--scheduler", "buggy"]
        outcome = gridsched(*command)
        assert (outcome.status, outcome.out) == (1, "")
        assert len(outcome.problems) == 1
        assert "ZeroDivisionError" in outcome.err
    outcome = gridsched("--traceback", "run", *ex_a, "--driver", "reference", "--scheduler", "buggy")
    assert "Traceback" in outcome.err
    assert "1 // 0" in outcome.err
    assert outcome.status == 1


def test_warnings_about_the_platform_come_once(gridsched, write, ex_a):
    """What is odd in a platform is a warning on stderr, once, not one for each scheduler."""
    odd = zone_xml(host_xml(speed="50f,100f", watts="4:50:50,4:60:60"))
    outcome = gridsched("compare", "--platform", write("p.xml", odd), *ex_a[2:], "--driver", "reference")
    assert outcome.status == 0
    assert len(outcome.problems) == 1
    assert outcome.problems[0].startswith("gridsched: warning: ")
    assert "faster" in outcome.problems[0]


@pytest.mark.parametrize("command", ["run", "compare", "validate"])
def test_no_tasks_at_all(refused, write, ex_a, command):
    """Nothing was run, so there is no makespan of 0 s."""
    bag = write("w.csv", "id,flops\n")
    line = refused(command, *ex_a[:2], "--workload", bag)
    assert f"{bag}: there are no tasks to run" in line


MEETING = """
import pathlib, time
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Assign

class {name}(Scheduler):

    traits = Traits(trigger="start")

    def schedule(self, state):
        here = pathlib.Path({folder!r})
        (here / "{name}.begun").touch()
        for _ in range(600):
            if (here / "{other}.begun").exists():
                return [Assign(task, 0) for task in state.mappable.tolist()]
            time.sleep(0.1)
        raise RuntimeError("nobody came")
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
@pytest.mark.parametrize("driver", ["reference", "simgrid"])
def test_runs_go_on_at_one_time(gridsched, ex_a, write, tmp_path, request, driver):
    """Two policies, each of which waits for the other's run; results have the order in which they were named."""
    if driver == "simgrid":
        request.getfixturevalue("simgrid")
    files = [
        write(f"{name}.py", MEETING.format(name=name, other=other, folder=str(tmp_path)))
        for name, other in (("One", "Two"), ("Two", "One"))
    ]
    names = [*map(str, files), "mct"]
    words = ("--driver", driver, "--schedulers", ",".join(names), "--json")
    outcome = gridsched("compare", *ex_a, *words)
    assert (outcome.status, outcome.err) == (0, "")
    rows = outcome.json["results"]
    assert [row["tasks_finished"] for row in rows] == [5, 5, 5]
    assert [row["provenance"]["timeout_s"] for row in rows] == [None] * 3
    alone = run(Scenario(ex_a[1], ex_a[3], "mct", driver=driver)).summary()
    assert alone.items() - {"scheduler": 0}.items() <= rows[2].items()
