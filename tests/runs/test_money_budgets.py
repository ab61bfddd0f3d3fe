"""Budgets of money, and agreement of energies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gridsched import Scenario, run
from gridsched.cli.app import main
from gridsched.errors import InputError, SimulationError
from gridsched.export.archive import read_archive
from gridsched.export.export import write_export
from gridsched.figures.power_figure import money_steps
from gridsched.model.platform import Platform
from gridsched.model.prices import PriceSeries
from gridsched.model.rules import EnergyBudget
from gridsched.model.signals import J_PER_KWH
from gridsched.model.tariff import Tariff
from gridsched.platform_io.xml_reader import read_platform
from gridsched.runs.run import RunResult, check_energy_agreement
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.runs.study import Study
from gridsched.workloads.signal_csv import read_prices

# Budgets in money as options, keys of studies and of generators, in exports and figures.

ROOT = Path(__file__).parents[2]
BAG = (ROOT / "platforms/ex_a.xml", ROOT / "examples/ex_a.csv")
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
    budget = EnergyBudget(money=900.0, prices=prices, prices_period_s=40.0, on_exhaustion="stop")
    loaded = Scenario(*BAG, "wq", driver="reference", budget=budget).loaded()
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


def test_generators_and_studies_have_the_keys(prices: Path, tmp_path: Path):
    """The table lies beside the file that names it; with the usual begin of periods."""
    (tmp_path / "day.toml").write_text(DAY)
    loaded = Scenario(None, tmp_path / "day.toml", "max_max_upe", driver="reference").loaded()
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
        on_exhaustion = "stop"
        [platform]
        file = "{BAG[0]}"
        [workload]
        file = "{BAG[1]}"
    """
    (tmp_path / "money.toml").write_text(text)
    study = Study.find(str(tmp_path / "money.toml"))
    inputs = {file.sha256: file.path for file in study.inputs.values()}
    maker = ScenarioMaker(inputs, tmp_path)
    budgets = [maker.make(each.scenario).loaded().budget for each in study.scenarios()]
    assert [each.money for each in budgets] == [5.0, 6.0]
    assert budgets[0].prices == wanted.prices


def test_a_workload_that_was_written_finds_its_prices(prices: Path, tmp_path: Path, monkeypatch):
    """The tables lie in another folder than the file that named them."""
    (tmp_path / "day.toml").write_text(DAY)
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["workload", "generate", "day.toml", "-o", "there/tasks.csv", "--quiet"]) == 0
    first, again = (
        Scenario(None, file, "max_max_upe", driver="reference").loaded() for file in ("day.toml", "there/tasks.toml")
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
    """Return EX-A with another power of one busy host than its file says."""
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
