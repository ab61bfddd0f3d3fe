"""Rules of a run, budgets of money, and formulas of metrics."""

from __future__ import annotations

import importlib
import inspect
import json
import math
import os
import pkgutil
import shutil
import subprocess
import sys
import warnings
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from systems_there import is_there

import gridsched
from gridsched import run
from gridsched.cli.app import main
from gridsched.cli.run import run_command
from gridsched.errors import GridschedError, InputError, SimulationError
from gridsched.export.archive import read_archive
from gridsched.export.export import write_export
from gridsched.figures.power_figure import money_steps
from gridsched.metrics import METRICS
from gridsched.metrics.table import _DECLARED
from gridsched.model.platform import Platform
from gridsched.model.prices import PriceSeries
from gridsched.model.records import keys_of, with_keys
from gridsched.model.rules import EnergyBudget, Rules
from gridsched.model.signals import J_PER_KWH
from gridsched.model.tariff import Tariff
from gridsched.platform_io.xml_reader import read_platform
from gridsched.runs.metric_formulas import declare, formula
from gridsched.runs.plugin_agreement import check_energy_agreement
from gridsched.runs.run import RunResult
from gridsched.runs.run_spec import Settings
from gridsched.runs.scenario_maker import ScenarioMaker, load
from gridsched.runs.study import Study
from gridsched.scenario import Scenario, make_system
from gridsched.workloads.generators import GENERATORS
from gridsched.workloads.signal_csv import read_prices

# Rules of a run, and formulas of metrics.

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
from gridsched.scenario import make_system
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


@pytest.mark.systems("utility")
@pytest.mark.parametrize("key", keys_of(Rules).values(), ids=lambda key: key.name)
def test_every_rule_is_an_option_and_a_key(key):
    """None is missing on the command line, in studies and in generated systems."""
    assert key.name in inspect.signature(run_command).parameters
    assert key.name in Settings.model_fields
    # `days`; whole nodes; what is no matter of the workload
    assert key.name in GENERATORS["utility"].model.model_fields or key.name in (
        "horizon_s",
        "placement",
        "max_idle_wakeups",
        "walltime",
        "mapping_events",
    )
    assert key.info.description


def test_rules_flow_from_scenario_to_system():
    """Keywords of a scenario are the rules of the system that a scheduler is prepared for."""
    budget = EnergyBudget(5e3, period_s=60.0)
    scenario = Scenario(*BAG, "wq", pending_slots=1, budget=budget, horizon_s=70.0)
    rules = make_system(load(scenario)).rules
    assert rules == Rules(pending_slots=1, budget=budget, horizon_s=70.0)
    assert replace(scenario, pending_slots=0).rules.pending_slots == 0


def test_keys_of_an_inner_record_change_it():
    """A budget can be made and changed by its flat keys; what is not given stays."""
    made = with_keys(Scenario(None, ""), {"energy_budget_j": 9.0, "budget_period_s": 3.0})
    assert made.budget == EnergyBudget(9.0, 3.0)
    changed = with_keys(made, {"energy_budget_j": None, "budget_enforcement": "stop"})
    assert changed.budget == EnergyBudget(9.0, 3.0, enforcement="stop")
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
    """The message names the rule, what was found and what is allowed."""
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
    assert [maker.make(run.spec).rules for run in study.scenarios()] == [
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
    ("text", "problem"),
    [
        ("energy", "'energy' is not a metric to compute with. Did you mean 'energy_j'?"),
        ("energy_j +", "cannot be read. Write metrics"),
        ("energy_j.real", "'energy_j.real' is not a metric"),
        ("__import__('os')", "is not understood"),
        ("energy_j if tasks else 1", "is not understood"),
        ("energy_j < 1", "is not understood"),
        ("not tasks", "is not understood"),
        ("[x for x in tasks]", "is not understood"),
        ("min(*tasks)", "is not understood"),
        ("(lambda: 1)()", "is not understood"),
        ("energy_j // 2", "is not understood"),
        ("'a' * 3", "'a' is not a number"),
        ("True + 1", "True is not a number"),
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
def test_what_a_formula_refuses(text: str, problem: str):
    """In one line, with what is allowed."""
    with pytest.raises(InputError) as caught:
        formula("own", text, KNOWN, called="expressions.own")
    assert problem in str(caught.value)
    assert str(caught.value).startswith("expressions.own")


@pytest.mark.parametrize("text", ["9if 1", "9or 1", "tasks - 0x1for x", "1 is 1", "'\\d'"])
def test_a_formula_is_refused_without_a_warning_of_pythons(text: str):
    """What Python warns of as it reads the text does not come before our line."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with pytest.raises(InputError):
            formula("own", text, KNOWN)
    assert said == []


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


# Budgets of money, and agreement of energies.

# Budgets in money as options, keys of studies and of generators, in exports and figures.

PRICES = "time_s,energy_cost_per_kwh\n0,3.6e6\n20,7.2e6\n"
DAY = """
kind = "utility"
special_machine_counts = [1]
general_machine_counts = [2, 2]
task_types = 10
special_task_types = [2]
days = 0.05
tasks_per_type = 30.0
tasks_per_type_deviation = 5.0
tasks_per_type_in_s = 7200.0
measured_from_s = 600.0
money_budget = 9e5
budget_period_s = 1800.0
budget_prices = "prices.csv"
budget_prices_period_s = 40.0
"""


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    """One of money a joule, and two from 20 s on."""
    (tmp_path / "prices.csv").write_text(PRICES)
    return tmp_path / "prices.csv"


def test_prices_are_read_with_the_scenario(prices: Path):
    """From a file or not; its digest is among the inputs."""
    budget = EnergyBudget(money=900.0, prices=prices, prices_period_s=40.0, enforcement="stop")
    loaded = load(Scenario(*BAG, "wq", driver="reference", budget=budget))
    assert loaded.budget.prices == PriceSeries.of_energy((0.0, 20.0), (1.0, 2.0))
    assert loaded.budget.limit_j == 600.0
    assert str(prices) in loaded.inputs
    assert run(loaded).metrics()["money_spent"] == pytest.approx(900.0, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time_s,price\n0,1\n", "energy_cost_per_kwh"),
        ("time_s,energy_cost_per_kwh\n0,\n", "line 2: energy_cost_per_kwh"),
        ("time_s,energy_cost_per_kwh\n0,0\n", "it must be a finite number > 0"),
        ("time_s,energy_cost_per_kwh\n5,1\n", "the first line begins at 0"),
    ],
)
def test_prices_that_no_budget_can_have(tmp_path: Path, text: str, message: str):
    """Naming file, line and column."""
    path = tmp_path / "wrong.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_prices(path)


@pytest.mark.systems("utility")
def test_a_budget_of_money_takes_the_place_of_one_of_joules(prices: Path, capsys):
    """An option goes before the file's keys, and the file's period stays."""
    words = [
        "run",
        "--workload",
        str(ROOT / "examples/utility_small.toml"),
        "--scheduler",
        "max_max_upe",
        "--driver",
        "reference",
    ]
    money = ["--money-budget", "9e6", "--budget-prices-period-s", "40"]
    assert main([*words, *money, "--budget-prices", str(prices)]) == 0
    shown = capsys.readouterr().out
    assert "money spent on energy" in shown
    assert "share of the budget used" in shown
    assert main([*words, *money]) == 2
    assert "money_budget has no effect without budget_prices" in capsys.readouterr().err
    assert (
        main(
            [
                "run",
                "--platform",
                str(BAG[0]),
                "--workload",
                str(BAG[1]),
                "--scheduler",
                "wq",
                "--budget-prices",
                str(prices),
            ]
        )
        == 2
    )
    told = "--budget-prices has no effect without --energy-budget-j or --money-budget"
    assert told in capsys.readouterr().err


@pytest.mark.systems("utility")
def test_generators_and_studies_have_the_keys(prices: Path, tmp_path: Path):
    """The table lies beside the file that names it; with the usual begin of periods."""
    (tmp_path / "day.toml").write_text(DAY)
    loaded = load(Scenario(None, tmp_path / "day.toml", "max_max_upe", driver="reference"))
    wanted = EnergyBudget(
        money=9e5, prices=PriceSeries.of_energy((0.0, 20.0), (1.0, 2.0)), prices_period_s=40.0, period_s=1800.0
    )
    assert loaded.budget == wanted
    assert str(prices) in loaded.inputs
    text = f"""
        name = "money"
        driver = "reference"
        network = "none"
        schedulers = ["wq"]
        budget_prices = "prices.csv"
        money_budget = [5.0, 6.0]
        budget_enforcement = "stop"
        [platform]
        file = "{BAG[0]}"
        [workload]
        file = "{BAG[1]}"
    """
    (tmp_path / "money.toml").write_text(text)
    study = Study.find(str(tmp_path / "money.toml"))
    inputs = {file.sha256: file.path for file in study.inputs.values()}
    maker = ScenarioMaker(inputs, tmp_path)
    budgets = [load(maker.make(each.spec)).budget for each in study.scenarios()]
    assert [each.money for each in budgets] == [5.0, 6.0]
    assert budgets[0].prices == wanted.prices


@pytest.mark.systems("utility")
def test_a_workload_that_was_written_finds_its_prices(prices: Path, tmp_path: Path, monkeypatch):
    """The tables lie in another folder than the file that named them."""
    (tmp_path / "day.toml").write_text(DAY)
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["workload", "generate", "day.toml", "-o", "there/tasks.csv", "--quiet"]) == 0
    first, again = (
        load(Scenario(None, file, "max_max_upe", driver="reference")) for file in ("day.toml", "there/tasks.toml")
    )
    assert again.budget == first.budget


def test_exports_and_figures_tell_the_money(prices: Path, tmp_path: Path):
    """Periods are in money; the archive gives weights and prices back."""
    budget = EnergyBudget(money=7000.0, prices=read_prices(prices), prices_period_s=40.0, period_s=25.0)
    result = run(Scenario(*BAG, "mct", driver="reference", budget=budget))
    folder = tmp_path / "out"
    write_export(result.trace, None, result.provenance, folder, workload_name="bag")
    header, *lines = (folder / "periods.csv").read_text().split()
    assert header == "start_s,end_s,budget_money,consumed_money,carried_over_money"
    spent = sum(float(line.split(",")[3]) for line in lines)
    found = result.metrics()
    assert spent == pytest.approx(found["money_spent"], rel=1e-9)
    export = read_archive(folder / "trace.npz")
    assert export.trace.energy_weights == result.trace.energy_weights
    assert export.tariff == Tariff.of_budget(budget)
    steps = money_steps(export.trace, export.tariff)
    assert steps["energy_cost"].iloc[-1] == pytest.approx(spent, rel=1e-9)
    assert set(steps["energy_price_per_kwh"]) == {J_PER_KWH, 2 * J_PER_KWH}
    assert not np.any(steps["income"])


# Whatever differs between SimGrid's plugin and the model is a failed run.

EX_A = ROOT / "platforms/ex_a.xml"


def run_on(platform: Platform | Path, **changes) -> RunResult:
    """Run WQ's worked example."""
    return run(Scenario(platform, ROOT / "examples/ex_a.csv", "wq", timeout_s=60.0, **changes))


def with_more_watts(host: int, factor: float) -> Platform:
    """Return EX-A with another power of one busy host than in its file."""
    platform = read_platform(EX_A)
    hosts = list(platform.hosts)
    first, *others = hosts[host].pstates
    changed = replace(first, epsilon_w=first.epsilon_w * factor, busy_w=first.busy_w * factor)
    hosts[host] = replace(hosts[host], pstates=(changed, *others))
    return replace(platform, hosts=tuple(hosts))


def test_runs_that_agree_pass():
    """The worked example agrees; the reference driver has no plugin to agree with."""
    check_energy_agreement(run_on(EX_A))
    check_energy_agreement(run_on(EX_A, driver="reference"))


@pytest.mark.parametrize("host", [0, 2])
def test_a_difference_names_host_and_figures(host: int):
    """SimGrid reads the file, the model one wattage off by 1e-8: the run is a failed one."""
    result = run_on(with_more_watts(host, 1 + 1e-8), platform_file=EX_A)
    with pytest.raises(SimulationError) as raised:
        check_energy_agreement(result)
    message = str(raised.value)
    assert f"host 'h{host + 1}'" in message
    assert repr(result.plugin_j[f"h{host + 1}"]) in message
    assert repr(result.energy.total_j.tolist()[host]) in message
    assert "(1 of 3 hosts differ)" in message
    assert "\n" not in message


def test_a_difference_within_the_tolerance_passes():
    """One part in 10^11 is rounding."""
    check_energy_agreement(run_on(with_more_watts(0, 1 + 1e-11), platform_file=EX_A))


def test_a_plugin_that_gives_no_number_is_a_difference():
    """nan agrees with nothing."""
    result = run_on(EX_A)
    broken = replace(result, plugin_j={**result.plugin_j, "h2": float("nan")})
    with pytest.raises(SimulationError, match=r"'h2'.*nan"):
        check_energy_agreement(broken)


# A field that takes one of some values is looked at when its object is made.

#: What dataclasses with such fields need besides.
NEEDED = {
    "Column": {"key": "k", "header": "h"},
    "SampledFailures": {"mtbf_s": 1.0, "mttr_s": 1.0, "shape": 1.0, "seed": 0, "replicate": 0, "host": 0},
    "EnergyBudget": {"energy_j": 1.0},
    "Failures": {"mtbf_s": 1.0, "mttr_s": 1.0},
    "Metric": {"id": "m", "unit": "", "sentence": "s", "function": float},
    "Row": {"key": "k", "what": "w", "printed": "1"},
    "RunFacts": {"trace": None, "energy": None},
    "Scenario": {"platform": BAG[0], "tasks": BAG[1]},
    "LoadedScenario": {"platform": None, "tasks": None},
}


def choices_of(hint: object) -> bool:
    """Whether a type has a Literal in it."""
    return get_origin(hint) is Literal or any(map(choices_of, get_args(hint)))


def fields_of_choices() -> list:
    """Return class and name of each field of a public dataclass whose type is a Literal.

    Those of pydantic check all their fields; what they refuse in files is in tests of these files.
    """
    found = {}
    for module in pkgutil.walk_packages(gridsched.__path__, "gridsched."):
        # gridsched.learning is the public name of a system, which may be missing
        if module.name.endswith("__main__") or (module.name == "gridsched.learning" and not is_there("learning")):
            continue
        for cls in vars(importlib.import_module(module.name)).values():
            if not isinstance(cls, type) or not is_dataclass(cls) or cls.__module__ != module.name:
                continue
            if hasattr(cls, "__pydantic_validator__"):
                continue
            try:
                hints = get_type_hints(cls)
            except NameError:  # of names that type checkers alone know
                assert not any("Literal" in str(field.type) for field in fields(cls))
                continue
            found |= {(cls, field.name): None for field in fields(cls) if choices_of(hints[field.name])}
    return [pytest.param(*each, id=f"{each[0].__name__}-{each[1]}") for each in found]


@pytest.mark.parametrize(("cls", "name"), fields_of_choices())
def test_values_that_are_none_of_the_choices_are_refused(cls, name):
    """Also where nothing else is checked; the message names the field and what was found."""
    with pytest.raises(InputError, match=rf"{name} is 'nonsense'"):
        cls(**{**NEEDED.get(cls.__name__, {}), name: "nonsense"})
