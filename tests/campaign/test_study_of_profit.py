"""A study of the generator `profit`: the price is an axis, profit and bounds are in the report."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.runs.scenario_maker import ScenarioMaker
from gridsched.runs.study import Study

TEXT = """name = "prices"
seed = 3
replicates = 2
driver = "reference"
schedulers = ["lp_max_profit", "mct"]
price = [3e6, 5e6]
pue = 1.2
metrics = ["makespan_s", "energy_j", "profit_rate", "energy_above_bound"]
[workload]
generator = "profit"
task_types = 4
machine_types = 3
machines_per_type = 3
tasks = 90
"""


def test_prices_are_an_axis(tmp_path: Path):
    """A higher price pays more; the plan earns more than the heuristic; bounds hold."""
    study, store, page = tmp_path / "s.toml", tmp_path / "store", tmp_path / "r.html"
    study.write_text(TEXT, encoding="utf-8")
    quiet = ["--workers", "1", "--quiet"]
    assert main(["study", "run", str(study), "--store", str(store), *quiet]) == 0
    assert main(["study", "report", str(store), "-o", str(page)]) == 0
    means = pd.read_csv(tmp_path / "r_files" / "means-profit_rate.csv")
    rate = means.set_index(["price", "scheduler"])["mean"]
    for price in (3e6, 5e6):
        assert rate[price, "lp_max_profit"] > rate[price, "mct"]
    assert (rate[5e6] > rate[3e6]).all()
    above = pd.read_csv(tmp_path / "r_files" / "means-energy_above_bound.csv")
    assert (above["mean"] >= 0).all()


@pytest.mark.parametrize("metric", ["utility", "window_energy_j"])
def test_metrics_of_utility_are_refused(metric: str, tmp_path: Path):
    """These tasks have no utility functions, and the workload no window."""
    study = tmp_path / "s.toml"
    study.write_text(TEXT.replace('"makespan_s"', f'"{metric}"'), encoding="utf-8")
    with pytest.raises(InputError, match=f"'{metric}'"):
        Study.from_file(study)


def test_runs_without_a_price_keep_their_description(tmp_path: Path):
    """The tariff's keys stand in a stored text only where they are set, so that ids stay."""
    study = tmp_path / "s.toml"
    text = TEXT.replace("price = [3e6, 5e6]\npue = 1.2\n", "").replace('"profit_rate", ', "")
    study.write_text(text, encoding="utf-8")
    settings = next(Study.from_file(study).scenarios()).scenario["settings"]
    assert not {"price", "pue", "energy_cost", "overhead"} & set(settings)


def test_tables_of_prices_are_inputs_of_a_study(tmp_path: Path):
    """They are an axis of files; a stored run knows its own by content."""
    path = tmp_path / "s.toml"
    for name, cost in (("cheap", "1e6"), ("dear", "9e6")):
        text = f"time_s,energy_cost_per_kwh\n0,\n50,{cost}\n"
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    text = TEXT.replace("pue = 1.2", 'prices = ["cheap.csv", "dear.csv"]\nprices_period_s = 100.0')
    path.write_text(text.replace('"mct"', '"lp_rolling"'), encoding="utf-8")
    study = Study.from_file(path)
    maker = ScenarioMaker({each.sha256: each.path for each in study.inputs.values()}, tmp_path)
    costs = {}
    for each in study.scenarios():
        assert set(each.scenario["settings"]["prices"]) == {"name", "sha256"}
        prices = maker.make(each.scenario).loaded().tariff.prices
        costs[each.axes["prices"]] = round(prices.energy_cost_per_j[1] * 3.6e6)
    assert costs == {"cheap.csv": 1_000_000, "dear.csv": 9_000_000}
