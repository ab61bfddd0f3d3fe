"""Energy prices by site: money counted by hand on both drivers, budgets, and tables that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsched import Scenario, plot_prices, run
from gridsched.errors import InputError
from gridsched.model.rules import EnergyBudget
from gridsched.model.tariff import Tariff

ROOT = Path(__file__).resolve().parents[2]
SITES = (ROOT / "examples/two_sites.xml", ROOT / "examples/two_sites_day.csv")
PRICES = ROOT / "examples/site_prices.csv"
#: Of a kWh at A in hours 1 and 2 and at B, busy and idle: as docs/carbon.md works it out for grams.
COST = 2 * 0.05 * 0.40 + 2 * 0.05 * 0.10 + 2 * 0.05 * 0.20 + 2 * 0.004 * 0.30
DRIVERS = ["reference", "simgrid"]


@pytest.mark.parametrize("driver", DRIVERS)
def test_money_of_two_sites_by_hand(driver):
    """Four tasks in the first hour, two at A in the second while B idles."""
    tariff = Tariff(price=1.0, prices=PRICES, pue=1.5)
    metrics = run(Scenario(*SITES, "wq", tariff=tariff, driver=driver)).metrics()
    assert metrics["energy_cost"] == pytest.approx(1.5 * COST, rel=1e-12)
    assert metrics["income"] == 1.0
    assert metrics["profit"] == pytest.approx(1.0 - 1.5 * COST, rel=1e-12)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_budget_counts_each_site_by_its_own_price(driver):
    """What was spent is that cost; with a little less to spend not all is done."""
    for money, finished in ((COST * 1.001, 6), (COST * 0.9, 4)):
        budget = EnergyBudget(money=money, prices=PRICES, period_s=float("inf"), on_exhaustion="stop")
        metrics = run(Scenario(*SITES, "mct", budget=budget, driver=driver)).metrics()
        assert metrics["tasks_finished"] >= finished
        assert metrics["money_spent"] <= money * (1 + 1e-9)


def test_what_goes_by_one_price_refuses_several():
    """The rolling programme, and the figure."""
    tariff = Tariff(price=1.0, prices=PRICES)
    with pytest.raises(InputError, match="lp_rolling"):
        run(Scenario(*SITES, "lp_rolling", tariff=tariff, driver="reference"))
    result = run(Scenario(*SITES, "wq", tariff=tariff, driver="reference"))
    with pytest.raises(InputError, match="site"):
        plot_prices(result)


def test_lecsa_by_money_follows_the_cheaper_site():
    """In the first hour B is four times cheaper: the first tasks go there."""
    tariff = Tariff(price=1.0, prices=PRICES, prices_period_s=float("inf"))
    parameters = {"weigh": "money", "share_rule": "count"}
    result = run(Scenario(*SITES, "lecsa", parameters, tariff=tariff, driver="reference"))
    names = [host.name for host in result.trace.platform.hosts]
    used = {names[h] for h in result.trace.executions["host"].tolist()}
    assert used
    assert used <= {name for name in names if name.lower().startswith("b")}


@pytest.mark.parametrize(
    ("rows", "fact"),
    [
        ("A,0,0.4\nA,0,0.3\nB,0,0.1", "line 3"),
        ("A,5,0.4\nB,0,0.1", "line 2"),
        ("A,0,x\nB,0,0.1", "line 2"),
        ("A,0,0.4", "'b-1'"),
    ],
)
def test_bad_tables_are_told_by_line_or_host(tmp_path, rows, fact):
    """Times ascend from 0, prices are numbers, and every computing host has one."""
    path = tmp_path / "prices.csv"
    path.write_text(f"host,time_s,energy_cost_per_kwh\n{rows}\n")
    with pytest.raises(InputError, match=fact):
        run(Scenario(*SITES, "wq", tariff=Tariff(price=1.0, prices=path), driver="reference"))


def test_a_free_site_is_no_unit_of_a_budget(tmp_path):
    """Under a budget in money every price must be positive."""
    path = tmp_path / "prices.csv"
    path.write_text("host,time_s,energy_cost_per_kwh\nA,0,0.4\nB,0,0\n")
    with pytest.raises(InputError, match="money_budget"):
        run(Scenario(*SITES, "wq", budget=EnergyBudget(money=1.0, prices=path, period_s=1e5), driver="reference"))
