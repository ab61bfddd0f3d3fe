"""Rules of a run, and formulas of metrics."""

from __future__ import annotations

import inspect
import json
import math
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsched.cli.run import run_command
from gridsched.errors import GridschedError, InputError
from gridsched.metrics import METRICS
from gridsched.metrics.table import _DECLARED
from gridsched.model.records import keys_of, with_keys
from gridsched.model.rules import EnergyBudget, Rules
from gridsched.runs.formulas import declare, formula
from gridsched.runs.run_spec import Settings
from gridsched.runs.scenario import Scenario, make_system
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.runs.settings import RunSettings
from gridsched.runs.study import Study
from gridsched.workloads.utility_day import UtilityDay

# A rule of a run is declared once: everything else follows from its field.

ROOT = Path(__file__).parents[2]
BAG = (ROOT / "platforms/ex_a.xml", ROOT / "examples/ex_a.csv")
STUDY = f"""
name = "rules"
driver = "reference"
schedulers = "wq"
platform = "{BAG[0]}"
workload = "{BAG[1]}"
"""
#: What an author of a new rule writes; nothing else in the copy of the package is changed.
NEW_RULE = """
    walltime_s: Annotated[
        float | None, Field(gt=0, description="Tasks are killed after this time.")
    ] = None

"""
#: What is asked of that copy.
ASK = """
import json, sys
from gridsched import Scenario, Study, run
from gridsched.runs.scenario import make_system
platform, workload, text = sys.argv[1:]
scenario = Scenario(platform, workload, "wq", driver="reference", walltime_s=500.0)
result = run(scenario)
study = Study.from_text(text.replace("name", "walltime_s = [5, 10]\\nname", 1))
print(json.dumps({
    "system": make_system(result.scenario).rules.walltime_s,
    "provenance": result.provenance["walltime_s"],
    "axes": [[axis.name, axis.values] for axis in study.axes],
    "stored": [each.scenario["settings"]["walltime_s"] for each in study.scenarios()],
    "ids": [each.run_id for each in Study.from_text(text).scenarios()],
}))
"""


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with one rule more."""
    folder = tmp_path_factory.mktemp("changed")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "gridsched", folder / "gridsched", ignore=ignored)
    rules = folder / "gridsched/model/rules.py"
    text = rules.read_text()
    place = text.index("    def __post_init__", text.index("class Rules"))
    rules.write_text(text[:place].rstrip() + NEW_RULE + text[place:])
    return folder


def ask(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Call Python with that copy."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=folder,
        env=environment,
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )


def test_a_new_rule_reaches_everything(changed: Path):
    """It is an axis of studies, in stored runs, in provenance and in what a scheduler sees."""
    outcome = ask(changed, "-c", ASK, *BAG, STUDY)
    assert outcome.stderr == ""
    assert json.loads(outcome.stdout) == {
        "system": 500.0,
        "provenance": 500.0,
        "axes": [["walltime_s", [5, 10]], ["scheduler", ["wq"]]],
        "stored": [5.0, 10.0],
        "ids": [run.run_id for run in Study.from_text(STUDY).scenarios()],
    }


def test_a_new_rule_is_an_option(changed: Path):
    """With its text and its limits."""
    shown = ask(changed, "-m", "gridsched", "run", "--help").stdout
    assert "--walltime-s" in shown
    assert "Tasks are killed after this time." in shown
    words = ["run", "--platform", BAG[0], "--workload", BAG[1], "--driver", "reference", "--quiet"]
    outcome = ask(changed, "-m", "gridsched", *words, "--walltime-s", "0")
    assert outcome.returncode == 2
    assert outcome.stderr == "gridsched: walltime_s is 0; it must be greater than 0 s.\n"


@pytest.mark.parametrize("key", keys_of(Rules).values(), ids=lambda key: key.name)
def test_every_rule_is_an_option_and_a_key(key):
    """None is missing on the command line, in studies and in generated systems."""
    assert key.name in inspect.signature(run_command).parameters
    assert key.name in Settings.model_fields
    assert key.name in UtilityDay.model_fields or key.name in ("horizon_s", "place")  # `days`; whole nodes
    assert key.info.description


def test_rules_flow_from_scenario_to_system():
    """Keywords of a scenario are the rules of the system that a scheduler is prepared for."""
    budget = EnergyBudget(5e3, period_s=60.0)
    scenario = Scenario(*BAG, "wq", pending_slots=1, budget=budget, horizon_s=70.0)
    rules = make_system(scenario.loaded()).rules
    assert rules == Rules(pending_slots=1, budget=budget, horizon_s=70.0)
    assert replace(scenario, pending_slots=0).rules.pending_slots == 0


def test_keys_of_an_inner_record_change_it():
    """A budget can be made and changed by its flat keys; what is not given stays."""
    made = with_keys(RunSettings(), {"energy_budget_j": 9.0, "budget_period_s": 3.0})
    assert made.budget == EnergyBudget(9.0, 3.0)
    changed = with_keys(made, {"energy_budget_j": None, "on_exhaustion": "stop"})
    assert changed.budget == EnergyBudget(9.0, 3.0, on_exhaustion="stop")
    assert changed.budget.period_s == 3.0
    with pytest.raises(InputError, match=r"--budget-periods.*--energy"):
        with_keys(Rules(), {"budget_periods": 3}, lambda key: f"--{key.replace('_', '-')}")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"pending_slots": -1}, "pending_slots is -1; it must be at least 0."),
        ({"horizon_s": 0.0}, r"horizon_s is 0; it must be greater than 0 s and at most 1e\+30 s."),
        ({"mapping_interval_s": float("nan")}, "mapping_interval_s is nan; it must be greater"),
        ({"pending_slots": 1.5}, "pending_slots is 1.5; it must be at least 0."),
    ],
)
def test_values_out_of_range_are_refused(values: dict, message: str):
    """The message names the rule, what was found and what is legal."""
    with pytest.raises(InputError, match=message):
        Rules(**values)
    with pytest.raises(InputError, match=message):
        Scenario(*BAG, **values)


def test_a_study_of_a_bag_has_rules(tmp_path: Path):
    """Budget, horizon and pending slots are keys and axes of any study."""
    text = STUDY + "[group.budget.tight]\nenergy_budget_j = 2000\n"
    text += "[group.budget.none]\npending_slots = 1\n"
    study = Study.from_text("horizon_s = [60, 90]\n" + text)
    inputs = {file.sha256: file.path for file in study.inputs.values()}
    maker = ScenarioMaker(inputs, tmp_path)
    tight = EnergyBudget(2000.0)
    assert [maker.make(run.scenario).rules for run in study.scenarios()] == [
        Rules(horizon_s=60.0, budget=tight),
        Rules(horizon_s=90.0, budget=tight),
        Rules(horizon_s=60.0, pending_slots=1),
        Rules(horizon_s=90.0, pending_slots=1),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("energy_budget_j = -1", "energy_budget_j is -1"),
        ("budget_period_s = 9", "budget_period_s is wrong: budget_period_s has no effect without"),
        ("horizon_s = [5, 0]", r"horizon_s\[1\] is 0"),
    ],
)
def test_a_study_with_wrong_rules_is_refused(line: str, message: str):
    """Before any run, naming the key."""
    with pytest.raises(InputError, match=message):
        Study.from_text(f"{line}\n{STUDY}")


# Metrics as expressions: what they give by hand, what they refuse, and that nothing is run.

KNOWN = ("energy_j", "makespan_s", "tasks", "profit")
ROW = {"energy_j": 6.0, "makespan_s": 2, "tasks": 0, "profit": None}
CASES = {
    "energy_j * makespan_s ** 2": 24.0,
    "energy_j / makespan_s - 1": 2.0,
    "-(energy_j + 1) * 2e0": -14.0,
    "min(energy_j, makespan_s, 9) + max(1, abs(-3))": 5.0,
    "sqrt(energy_j * 6) + log(exp(makespan_s))": 8.0,
    "energy_j\n/ 4": 1.5,
    "7": 7.0,
    "energy_j / tasks": None,
    "tasks / tasks": None,
    "log(tasks)": None,
    "sqrt(-makespan_s)": None,
    "makespan_s ** 1e9": None,
    "profit * 0": None,
}


@pytest.mark.parametrize(("text", "value"), CASES.items())
def test_formulas_by_hand(text: str, value: float | None):
    """What has no finite value, or lacks one that it needs, has none."""
    found = formula("own", text, KNOWN).metric.function(ROW)
    assert found is None if value is None else math.isclose(found, value, rel_tol=1e-15)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("energy", "'energy' is no metric to compute with. Did you mean 'energy_j'?"),
        ("energy_j +", "cannot be read. Write metrics"),
        ("energy_j.real", "'energy_j.real' is no metric"),
        ("__import__('os')", "is not understood"),
        ("energy_j if tasks else 1", "is not understood"),
        ("energy_j < 1", "is not understood"),
        ("not tasks", "is not understood"),
        ("[x for x in tasks]", "is not understood"),
        ("min(*tasks)", "is not understood"),
        ("(lambda: 1)()", "is not understood"),
        ("energy_j // 2", "is not understood"),
        ("'a' * 3", "'a' is no number"),
        ("True + 1", "True is no number"),
        ("sqrt(tasks, tasks, tasks)", "too few or many values"),
        ("min()", "too few or many values"),
        ("1" * 500 + " + 1", "cannot be read"),
        ("(" * 3000 + "1" + ")" * 3000, "cannot be read"),
        ("1 + " * 2400 + "1", "nests deeper"),
        ("-" * 1000 + "1", "nests deeper"),
        ("1" * 10_001, "at most 10000 are read"),
        ("", "cannot be read"),
    ],
)
def test_what_a_formula_refuses(text: str, complaint: str):
    """In one line, with what is legal."""
    with pytest.raises(InputError) as caught:
        formula("own", text, KNOWN, called="expressions.own")
    assert complaint in str(caught.value)
    assert str(caught.value).startswith("expressions.own")


@given(st.text(st.sampled_from("energy_j makespan_s tasks()*+-/.,0123[]{}'lambdif:=<>&|~@^% "), max_size=40))
def test_any_text_is_a_formula_or_refused(text: str):
    """No text does anything else: no other error, no number that is not finite."""
    try:
        value = formula("own", text, KNOWN).metric.function(ROW)
    except GridschedError:
        return
    assert value is None or math.isfinite(value)


def test_names():
    """A formula has a name of its own; another study's of the same name takes its place."""
    with pytest.raises(InputError, match="own-1"):
        formula("own-1", "tasks", KNOWN)
    with pytest.raises(InputError, match="energy_j"):
        formula("energy_j", "tasks", KNOWN)
    try:
        for text in ("tasks", "tasks + 1"):
            found = formula("own_number", text, KNOWN, unit="m", better="more", meaning="a try")
            declare([found])
            assert METRICS["own_number"] is found.metric
        assert METRICS["own_number"].title == "Own number [m]"
        assert METRICS["own_number"].sentence == "a try: `tasks + 1`"
        assert found.needs == {"tasks"}
    finally:
        METRICS.pop("own_number")
        _DECLARED.discard("own_number")
