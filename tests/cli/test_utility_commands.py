"""`run`, `compare` and `plot` on a workload with utility functions, and the budget's options."""

from __future__ import annotations

import csv
import json
import math

import pytest
from cli_cases import EX_A_TASKS, ROOT

DAY = """kind = "utility"
seed = 5
days = 0.25
special_machine_counts = [1]
general_machine_counts = [2, 2]
special_task_types = [2]
task_types = 6
tasks_per_type = 600
tasks_per_type_deviation = 0
measured_from_s = 7200
measured_until_s = 21600
"""
REFERENCE = ("--driver", "reference")


@pytest.fixture
def day(write):
    """A quarter of a day on five machines."""
    return write("day.toml", DAY)


def test_compare_tells_utility_and_no_bounds(gridsched, day):
    """The keys of utility runs; the best has share 1; bounds of bags are left out."""
    outcome = gridsched("compare", "--workload", day, "--schedulers", "mct,round_robin", *REFERENCE, "--json")
    assert (outcome.status, outcome.err) == (0, "")
    rows = outcome.json["results"]
    for row in rows:
        assert 0 < row["window_utility"] < row["utility"] < row["utility_possible"]
        assert 0 < row["window_energy_j"] < row["energy_model_j"]
        assert row["tasks_postponed"] == 0
        expected = row["timing"]["policy_s"] / row["mapping_events"]
        assert row["timing"]["mapping_event_s"] == expected
        assert not {name for name in row if "bound" in name}
        assert "budget_excess_j" not in row
        states = ("finished", "dropped", "rejected", "killed", "failed", "unfinished")
        assert sum(row[f"tasks_{state}"] for state in states) == row["tasks"]
    best = max(row["window_utility"] for row in rows)
    assert [row["utility_share_of_best"] for row in rows] == [row["window_utility"] / best for row in rows]
    assert max(row["utility_share_of_best"] for row in rows) == 1.0


def test_the_table_of_a_utility_comparison(gridsched, day, tmp_path):
    """Columns of the issue, at most 120 wide; the figure's data hold utility and energy."""
    figure = tmp_path / "c.png"
    outcome = gridsched(
        "compare", "--workload", day, "--schedulers", "mct,round_robin", "--plot", figure, "--energy-budget-j", "1e7"
    )
    assert (outcome.status, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    words = outcome.out.split("─")[0].split()
    for word in ("utility", "share", "energy", "dropped", "post-", "wait", "mapping"):
        assert any(word in each for each in words), word
    assert max(map(len, lines)) <= 120
    assert "Window: from 7,200 s to 21,600 s." in lines
    assert "Energy budget: 10 MJ in each 86,400 s (refuse); no run exceeded it." in lines
    assert not [line for line in lines if "bound" in line]
    with figure.with_suffix(".csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["scheduler"] for row in rows] == ["mct", "round_robin"]
    assert all(float(row["window_utility"]) > 0 for row in rows)
    assert all(float(row["window_energy_j"]) > 0 for row in rows)


def test_run_exports_what_the_plots_draw(gridsched, day, tmp_path):
    """Each figure is drawn from the export; its last steps are the run's totals."""
    folder = tmp_path / "out"
    outcome = gridsched(
        "run",
        "--workload",
        day,
        "--scheduler",
        "mct",
        *REFERENCE,
        "--export",
        folder,
        "--energy-budget-j",
        "1e7",
        "--on-exhaustion",
        "stop",
        "--budget-period-s",
        "10800",
        "--json",
    )
    assert (outcome.status, outcome.err) == (0, "")
    found = outcome.json
    assert found["provenance"]["budget"]["energy_j"] == 1e7
    for kind in ("gantt", "power", "trace"):
        drawn = gridsched("plot", kind, folder, "-o", tmp_path / f"{kind}.svg")
        assert (drawn.status, drawn.err) == (0, "")
    with (tmp_path / "trace.csv").open() as stream:
        steps = list(csv.DictReader(stream))
    energy = utility = 0.0
    for now, later in zip(steps, [*steps[1:], {"period": None}], strict=True):
        if now["period"] != later["period"]:
            energy += float(now["energy_j"])
            utility += float(now["utility"])
        assert float(now["budget_j"]) == 1e7
        assert float(now["energy_j"]) <= 1e7 * (1 + 1e-9)
    assert energy == pytest.approx(found["energy_model_j"], rel=1e-9)
    assert utility == pytest.approx(found["utility"], rel=1e-9)
    assert sum(int(step["tasks_finished"]) for step in steps) == found["tasks_finished"]
    with (folder / "jobs.csv").open() as stream:
        jobs = list(csv.DictReader(stream))
    assert math.fsum(float(job["utility"]) for job in jobs) == pytest.approx(found["utility"])
    finished = [job for job in jobs if job["success"] == "1"]
    for job in finished:
        host_pstate = 3 * int(job["task_type"]) + int(job["scheduler_pstate"])
        assert int(job["pstate"]) == host_pstate
    with (folder / "periods.csv").open() as stream:
        periods = list(csv.DictReader(stream))
    drawn = {step["period"]: float(step["energy_j"]) for step in steps}
    for number, period in enumerate(periods):  # the controller's account against the records
        account = float(period["consumed_j"])
        assert account == pytest.approx(drawn.get(str(number), 0.0), rel=1e-9)


def test_run_shows_utility_for_people(gridsched, day):
    """The list names utility, window and mapping time."""
    outcome = gridsched("run", "--workload", day, "--scheduler", "mct", *REFERENCE)
    for words in ("utility earned", "utility in the window", "energy in the window", "wall time of a mapping event"):
        assert words in outcome.out
    assert "beyond the budget" not in outcome.out


def test_steps_of_the_trace(gridsched, day, tmp_path, refused):
    """--step-s sets the steps; nonsense is refused."""
    folder = tmp_path / "out"
    gridsched("run", "--workload", day, *REFERENCE, "--export", folder, "--quiet")
    assert gridsched("plot", "trace", folder, "-o", tmp_path / "t.png", "--step-s", 600).status == 0
    with (tmp_path / "t.csv").open() as stream:
        steps = [float(row["until_s"]) - float(row["from_s"]) for row in csv.DictReader(stream)]
    assert steps[:-1] == [600.0] * (len(steps) - 1)
    for step in ("0", "-1", "nan", "inf", "1e-9"):
        line = refused("plot", "trace", folder, "-o", tmp_path / "u.png", "--step-s", step)
        assert "Steps of" in line


def test_the_trace_of_a_bag_has_energy_only(gridsched, ex_a, tmp_path):
    """plot trace works on every export; EX-A ends at 2430 J."""
    folder = tmp_path / "out"
    gridsched("run", *ex_a, *REFERENCE, "--export", folder, "--quiet")
    assert gridsched("plot", "trace", folder, "-o", tmp_path / "t.pdf").status == 0
    with (tmp_path / "t.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert "utility" not in rows[0]
    assert float(rows[-1]["energy_j"]) == pytest.approx(2430)
    assert len(rows) == 72
    assert {row["period"] for row in rows} == {"-1"}


# ---------------------------------------------------------------------- options of the budget


def budget_of(outcome):
    """Return the budget that a run was told."""
    assert (outcome.status, outcome.err) == (0, ""), outcome
    return outcome.json["provenance"]["budget"]


def test_options_go_before_the_generators_file(gridsched, write):
    """Each option replaces its key; the other keys stay."""
    path = write(
        "day.toml",
        DAY + 'energy_budget_j = 5e6\non_exhaustion = "stop"\nbudget_period_s = 10800\nfirst_period_start_s = 60\n',
    )
    words = ("run", "--workload", path, *REFERENCE, "--json")
    told = budget_of(gridsched(*words))
    assert (told["energy_j"], told["period_s"], told["on_exhaustion"]) == (5e6, 10800, "stop")
    changed = budget_of(gridsched(*words, "--energy-budget-j", "4e6"))
    assert changed == {**told, "energy_j": 4e6}
    changed = budget_of(gridsched(*words, "--budget-period-s", "7200"))
    assert changed == {**told, "period_s": 7200}
    changed = budget_of(gridsched(*words, "--energy-budget-j", "inf", "--on-exhaustion", "refuse"))
    assert changed == {**told, "energy_j": None, "on_exhaustion": "refuse"}  # JSON has no inf


def test_a_budget_stops_a_bag(gridsched, ex_a):
    """EX-A draws 75 W in its first 15 s: 1000 J last for 13.33 s."""
    outcome = gridsched("run", *ex_a, *REFERENCE, "--energy-budget-j", "1000", "--on-exhaustion", "stop", "--json")
    found = outcome.json
    assert found["horizon_s"] == pytest.approx(1000 / 75)
    assert found["energy_model_j"] == pytest.approx(1000)
    assert (found["tasks_finished"], found["tasks_killed"]) == (2, 3)
    assert found["budget_excess_j"] <= 1e-6
    assert budget_of(outcome)["period_s"] == 86400


def test_a_budget_too_small_for_any_task_is_told(refused, ex_a):
    """One line, exit status 1: no input is wrong, but the run cannot end."""
    line = refused("run", *ex_a, *REFERENCE, "--energy-budget-j", "100", status=1)
    assert "no period's budget of 100 J admits" in line


def test_a_horizon_leaves_later_tasks_undone(gridsched, ex_a):
    """With 5 s no second task starts on any host of EX-A."""
    found = gridsched("run", *ex_a, *REFERENCE, "--horizon-s", "5", "--json").json
    assert (found["tasks_finished"], found["tasks_unfinished"]) == (3, 2)


def test_a_generated_system_takes_no_platform(refused, day, write, ex_a):
    """The files that a generated system replaces are named; a bag still needs a platform."""
    line = refused("run", *ex_a[:2], "--workload", day)
    assert "makes its own system" in line
    assert "--platform" in line
    bag = write("bag.csv", EX_A_TASKS)
    assert "'--platform FILE'" in refused("run", "--workload", bag)
    assert "'--workload FILE'" in refused("run")
    files = write("files.csv", "file,size_bytes,location\na,1,x\n")
    assert "--files" in refused("compare", "--workload", day, "--files", files)


def test_what_is_written_is_what_json_says(gridsched, day, tmp_path):
    """-o holds the new keys, too."""
    path = tmp_path / "rows.json"
    words = ("compare", "--workload", day, "--schedulers", "mct", *REFERENCE)
    outcome = gridsched(*words, "-o", path, "--json")
    ours, theirs = outcome.json["results"][0], json.loads(path.read_text())["results"][0]
    assert ours["utility"] == theirs["utility"]
    flat = tmp_path / "rows.csv"
    gridsched(*words, "-o", flat, "--quiet")
    with flat.open() as stream:
        row = next(csv.DictReader(stream))
    assert float(row["window_utility"]) == ours["window_utility"]


def test_a_budget_for_the_whole_run(gridsched):
    """``inf`` is a period on the command line; both drivers stop at the same joules."""
    words = (
        "--workload",
        ROOT / "examples" / "utility_small.toml",
        "--energy-budget-j",
        "2e6",
        "--budget-period-s",
        "inf",
        "--on-exhaustion",
        "stop",
    )
    found = [gridsched("run", *words, "--driver", driver, "--json").json for driver in ("reference", "simgrid")]
    assert found[0]["horizon_s"] == found[1]["horizon_s"]
    for each in found:
        assert each["tasks_killed"] > 0
        assert each["energy_j"] == pytest.approx(2e6, rel=1e-9)
    shown = gridsched("compare", *words, "--driver", "reference", "--schedulers", "mct").out
    assert "Energy budget: 2 MJ for the whole run (stop)" in shown
