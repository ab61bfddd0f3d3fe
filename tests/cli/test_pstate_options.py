"""--pstate of the commands and of studies, and the attribute pstate of platform files."""

from __future__ import annotations

import pytest
from cli_cases import host_xml, zone_xml

from gridsched.runs.study import Study

#: Each host has 100 flop/s at 100 W and 50 flop/s at 30 W, and idles at 10 W and 5 W.
WATTS = "10:10:100, 5:5:30"
PLATFORM = zone_xml(
    host_xml("m", "1f,1f", "3:3:3, 1:1:1", ' pstate="1"', '<prop id="role" value="master"/>')
    + host_xml("a", "100f,50f", WATTS, ' pstate="1"')
    + host_xml("b", "100f,50f", WATTS)
)
#: Two tasks of 1000 flop, one for each host: 10 s at 1000 J, or 20 s at 600 J. Who has done waits.
CASES = {
    (): (20.0, 600 + 1000 + 10 * 10),
    ("--pstate", "0"): (10.0, 1000 + 1000),
    ("--pstate", "1"): (20.0, 600 + 600),
    ("--pstate", "b=1"): (20.0, 600 + 600),
    ("--pstate", "1", "--pstate", "a=0"): (20.0, 1000 + 10 * 10 + 600),
    ("--pstate", "*=1,[ab]=0"): (10.0, 1000 + 1000),
}


@pytest.fixture
def files(tmp_path) -> list[object]:
    """Return the options of the platform and the two tasks."""
    platform, bag = tmp_path / "p.xml", tmp_path / "bag.csv"
    platform.write_text(PLATFORM)
    bag.write_text("id,flops\n1,1000\n2,1000\n")
    return ["--platform", platform, "--workload", bag]


@pytest.mark.usefixtures("simgrid")
@pytest.mark.parametrize(("options", "expected"), CASES.items())
def test_each_host_starts_in_its_own_pstate(gridsched, files, options, expected):
    """Worked out by hand: the file's own counts, --pstate goes before it, the last item wins."""
    for driver in ("simgrid", "reference"):
        found = gridsched("run", *files, *options, "--driver", driver, "--json").json
        assert (found["makespan_s"], found["energy_model_j"]) == expected
        assert driver == "reference" or found["energy_j"] == pytest.approx(expected[1], rel=1e-12)


@pytest.mark.usefixtures("simgrid")
def test_the_master_idles_in_its_own(gridsched, files):
    """1 W for 20 s, by the plugin and by the model."""
    found = gridsched("validate", *files, "--schedulers", "wq", "--json").json
    of_master = next(row for row in found["hosts"] if row["host"] == "m")
    assert of_master["plugin_j"] == pytest.approx(20.0, rel=1e-12)
    assert of_master["model_j"] == 20.0


@pytest.mark.parametrize("scheduler", ["mct", "min_min", "sufferage", "lp_pareto"])
def test_estimates_follow_each_hosts_own(gridsched, files, scheduler):
    """Of three equal tasks the fast host takes two: all are done after 20 s."""
    (files[-1]).write_text("id,flops\n1,1000\n2,1000\n3,1000\n")
    found = gridsched("run", *files, "--scheduler", scheduler, "--driver", "reference", "--json")
    assert found.json["makespan_s"] == 20.0
    compared = gridsched("compare", *files, "--schedulers", scheduler, "--driver", "reference", "--json").json[
        "results"
    ][0]
    assert compared["fixed_makespan_bound_s"] == pytest.approx(20.0, rel=1e-12)
    assert compared["energy_above_bound"] >= 0


def test_what_is_no_pstate_is_refused_in_one_line(refused, files):
    """No number, no such host, a P-state that the host lacks."""
    assert "'fast' is no whole number" in refused("run", *files, "--pstate", "fast")
    assert "NAME_PATTERN=K" in refused("run", *files, "--pstate", "=1")
    assert "no host has such a name" in refused("run", *files, "--pstate", "c=1")
    line = refused("run", *files, "--pstate", "b=2")
    assert "host 'b' has P-states 0 to 1; P-state 2 was asked for" in line


def test_planners_know_each_hosts_own(gridsched, files):
    """10 s on b and 20 s on a: divided tasks take 2000 / 150 s at least."""
    found = gridsched("optimize", "pareto", *files, "--json").json
    assert found["front"][0]["makespan_s"] == pytest.approx(2000 / 150, rel=1e-9)


STUDY = """
name = "s"
platform = "p.xml"
workload = "bag.csv"
schedulers = ["mct"]
driver = "reference"
"""


def settings_of(folder, text: str) -> list[dict]:
    """Return the stored settings of each run of a study with another line."""
    (folder / "s.toml").write_text(STUDY + text)
    return [run.scenario["settings"] for run in Study.from_file(folder / "s.toml").scenarios()]


def test_the_key_of_studies_means_the_same(files, tmp_path):
    """Lists are axes. Runs without it are stored as ever, so that their ids stay."""
    assert [each["pstate"] for each in settings_of(tmp_path, "")] == [0]
    axis = settings_of(tmp_path, 'pstate = [0, 1, "a=0,b=1"]')
    assert [each["pstate"] for each in axis] == ["0", 1, "a=0,b=1"]
