"""The worked examples A1 to A6, from files through the command line."""

from __future__ import annotations

import pytest

#: scheduler, --set, makespan [s], busy time [s], energy [J], idle, wasted energy [J]
WORKED = [
    ("wq", [], 80, 25 + 15 + 80, 2430, 480, 0),
    ("wqr", ["wqr.max_replicas=1"], 80, 120, 2430, 480, 0),
    ("wqr", [], 55, 25 + 55 + 55, 2745, 120, 275),
    ("wqr", ["max_replicas=3"], 45, 3 * 45, 3375, 0, 825),
    ("sufferage", [], 35, 35 + 30 + 10, 2520, 120, 0),
    ("xsufferage", [], 35, 75, 2520, 120, 0),
    ("dynamic_fpltf", [], 30, 90, 2250, 0, 0),
    ("lecsa", [], 100, 10 + 35 + 100, 1700, 0, 0),
    ("lecsa", ["lecsa.switch_off=none"], 100, 145, 2320, 620, 0),
]
DRIVERS = ["simgrid", "reference"]


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    """Return each driver, SimGrid only where it is installed."""
    if request.param == "simgrid":
        request.getfixturevalue("simgrid")
    return request.param


@pytest.mark.parametrize(("scheduler", "settings", "makespan", "busy", "joules", "idle", "wasted"), WORKED)
def test_run_gives_the_worked_numbers(
    gridsched, ex_a, driver, scheduler, settings, makespan, busy, joules, idle, wasted
):
    """`run` gives makespan, busy time and joules of A1-A6 on both drivers."""
    options = [word for item in settings for word in ("--set", item)]
    outcome = gridsched("run", *ex_a, "--scheduler", scheduler, *options, "--driver", driver, "--json")
    assert (outcome.status, outcome.err) == (0, "")
    found = outcome.json
    assert found["makespan_s"] == makespan
    assert found["busy_time_s"] == busy
    assert found["energy_j"] == pytest.approx(joules, rel=1e-12)
    assert found["energy_model_j"] == pytest.approx(joules, rel=1e-12)
    assert found["energy_idle_j"] == pytest.approx(idle, abs=1e-9)
    assert found["energy_wasted_j"] == pytest.approx(wasted, abs=1e-9)
    assert found["tasks_finished"] == 5
    assert found["hosts_used"] == 3


def test_compare_lists_the_six_in_one_table(gridsched, ex_a, simgrid):
    """`compare` prints the six schedulers with their numbers, the best one marked."""
    outcome = gridsched("compare", *ex_a)
    assert (outcome.status, outcome.err) == (0, "")
    rows = {line.split()[0]: line.split()[1:] for line in outcome.out.splitlines() if line.strip()}
    expected = {
        "wq": "80 +166.7 120 2,430 +42.9 480 0 3",
        "wqr": "55 +83.3 135 2,745 +61.5 120 275 3",
        "sufferage": "35 +16.7 75 2,520 +48.2 120 0 3",
        "xsufferage": "35 +16.7 75 2,520 +48.2 120 0 3",
        "dynamic_fpltf": "30 best 90 2,250 +32.4 0 3",
        "lecsa": "100 +233.3 145 1,700 best 0 3",
    }
    for scheduler, words in expected.items():
        assert set(words.split()) <= set(rows[scheduler]), scheduler
        energy = words.split()[3]
        assert rows[scheduler].count(energy) == 2  # by plugin and by model
    assert "Plugin and model agree" in outcome.out


def test_compare_on_the_reference_driver_shows_the_model_only(gridsched, ex_a):
    """Without SimGrid there is no column of the plugin, and the table says why."""
    outcome = gridsched("compare", *ex_a, "--driver", "reference", "--schedulers", "wq,lecsa")
    assert outcome.status == 0
    assert "plugin\n" not in outcome.out
    assert "1,700" in outcome.out
    assert "the reference driver has no plugin" in outcome.out


def test_validate_finds_plugin_and_model_equal(gridsched, ex_a, simgrid):
    """`validate` lists every host of every scheduler, and all agree to 1e-9."""
    outcome = gridsched("validate", *ex_a, "--json")
    assert (outcome.status, outcome.err) == (0, "")
    found = outcome.json
    assert found["differences"] == 0
    assert found["tolerance"] == 1e-9
    totals = {row["scheduler"]: row["plugin_j"] for row in found["hosts"] if row["host"] == "total"}
    assert totals == pytest.approx(
        {"wq": 2430, "wqr": 2745, "sufferage": 2520, "xsufferage": 2520, "dynamic_fpltf": 2250, "lecsa": 1700}
    )
    assert len(found["hosts"]) == 6 * (3 + 1)


def test_platform_of_the_example_is_fine(gridsched, ex_a, simgrid):
    """`platform check` finds no problem in the example's platform."""
    outcome = gridsched("platform", "check", ex_a[1], "--json")
    assert outcome.status == 0
    found = outcome.json
    assert [host["name"] for host in found["hosts"]] == ["h1", "h2", "h3"]
    assert [host["speeds_flops"] for host in found["hosts"]] == [[100.0], [50.0], [25.0]]
    assert found["problems"] == []
