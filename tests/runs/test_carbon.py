"""Runs by the gram, and prices by site."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsched import Scenario, plot_prices, run
from gridsched.cli.app import main
from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.errors import InputError
from gridsched.export.archive import read_archive
from gridsched.export.export import write_export
from gridsched.figures.power_figure import carbon_steps
from gridsched.model.carbon import Carbon
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.rules import EnergyBudget
from gridsched.model.series import Series, SiteSeries, signal_of_sites
from gridsched.model.signals import J_PER_KWH
from gridsched.model.tariff import Tariff
from gridsched.model.tasks import make_tasks
from gridsched.runs.scenario_maker import ScenarioMaker, load
from gridsched.runs.study import Study
from gridsched.workloads.signal_csv import with_carbon_read

# Carbon by site and hour: what is counted, on both drivers, and what of input is refused.

ROOT = Path(__file__).parents[2]
EXAMPLE = [
    *("--platform", str(ROOT / "examples/two_sites.xml")),
    *("--workload", str(ROOT / "examples/two_sites_day.csv")),
]
SITES = str(ROOT / "examples/sites.csv")
#: Four tasks of an hour at 50 W at 400 and 100 g/kWh, two at 200; two idle hosts at 300.
GRAMS = 2 * 0.05 * 400 + 2 * 0.05 * 100 + 2 * 0.05 * 200 + 2 * 0.004 * 300


def example(**others) -> Scenario:
    """Return the documents' example."""
    return Scenario(EXAMPLE[1], EXAMPLE[3], "wq", **{"carbon": Carbon(SITES), "driver": "reference", **others})


@pytest.mark.parametrize(
    "driver",
    ["reference", pytest.param("simgrid", marks=pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL))],
)
def test_the_example_by_hand(driver):
    """On both drivers; a joule is the same as without the signal."""
    result = run(example(driver=driver))
    metrics = result.metrics()
    assert metrics["carbon_g"] == pytest.approx(GRAMS, rel=1e-12) == 72.4
    assert metrics["carbon_idle_g"] == pytest.approx(2.4, rel=1e-12)
    assert metrics["carbon_busy_g"] == pytest.approx(70.0, rel=1e-12)
    assert metrics["carbon_wasted_g"] == metrics["carbon_boot_g"] == 0
    assert metrics["carbon_intensity_g_per_kwh"] == pytest.approx(72.4 / (1_108_800 / J_PER_KWH))
    assert result.tasks["carbon_g"].tolist() == pytest.approx([20, 20, 5, 5, 10, 10])
    assert result.hosts["carbon_g"].tolist() == pytest.approx([30, 30, 6.2, 6.2])
    without = run(example(driver=driver, carbon=None)).metrics()
    assert {id: value for id, value in metrics.items() if "carbon" not in id} == without


@pytest.mark.parametrize(
    "driver",
    ["reference", pytest.param("simgrid", marks=pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL))],
)
def test_embodied_carbon_by_hand(driver, tmp_path):
    """Kilograms over the lifetime times the run, of used and unused hosts alike; grams of power do not change.

    The run of the example takes 2 h. A machine of 876 kg for 4 years embodies 876,000 / (4 x 8,760) = 25 g an hour,
    one of 438 kg for 5 years 10 g: two of each, 2 h x (2 x 25 + 2 x 10) g = 140 g. One task leaves three hosts idle.
    """
    text = Path(EXAMPLE[1]).read_text()
    for site, kg, years in (("a", 876, 4), ("b", 438, 5)):
        for number in (1, 2):
            host = f'<host id="{site}-{number}" speed="100.0f">'
            properties = f'<prop id="embodied_kg" value="{kg}"/><prop id="lifetime_years" value="{years}"/>'
            text = text.replace(host, host + properties)
    platform = tmp_path / "embodied.xml"
    platform.write_text(text)
    scenario = replace(example(driver=driver), platform=platform)
    result = run(scenario)
    metrics = result.metrics()
    assert metrics["carbon_embodied_g"] == pytest.approx(140.0, rel=1e-12)
    assert metrics["carbon_total_g"] == pytest.approx(140.0 + GRAMS, rel=1e-12)
    assert metrics["carbon_g"] == pytest.approx(GRAMS, rel=1e-12)
    assert result.hosts["carbon_embodied_g"].tolist() == pytest.approx([50.0, 50.0, 20.0, 20.0])
    one_task = run(replace(scenario, tasks=make_tasks([360_000.0]), carbon=None)).metrics()
    assert one_task["carbon_embodied_g"] == pytest.approx(70.0, rel=1e-12)
    assert not {"carbon_g", "carbon_total_g"} & set(one_task)
    assert not {"carbon_embodied_g", "carbon_total_g"} & set(run(example(driver=driver)).metrics())
    write_export(result.trace, None, result.provenance, tmp_path / "out", workload_name="w")
    assert read_archive(tmp_path / "out" / "trace.npz").trace.platform.hosts[2].embodied_kg == 438.0


def test_a_master_embodies_nothing_of_a_run():
    """It is left out of totals, as its energy is, and has its own row."""
    worker, master = (Host(name, (PState(1.0),), embodied_kg=876.0, lifetime_years=4.0) for name in ("w", "m"))
    result = run(Scenario(Platform((worker,), master=master), make_tasks([3600.0]), "wq", driver="reference"))
    assert result.metrics()["carbon_embodied_g"] == pytest.approx(25.0, rel=1e-12)
    assert result.hosts["carbon_embodied_g"].to_dict() == pytest.approx({"w": 25.0, "m": 25.0})


def test_embodied_carbon_needs_a_lifetime():
    """A mass without years over which it is spread is refused."""
    with pytest.raises(InputError, match="lifetime_years"):
        Host("h", (PState(1.0),), embodied_kg=100.0)


def test_pue_period_and_a_longer_run():
    """The third row lasts an hour; a run beyond it is refused, unless the rows begin again."""
    assert run(example(carbon=Carbon(SITES, pue=1.5))).metrics()["carbon_g"] == pytest.approx(1.5 * GRAMS)
    longer = make_tasks([4 * 360_000.0])
    scenario = replace(example(), tasks=longer)
    with pytest.raises(InputError, match=r"10,800 s.*14,400 s"):
        run(scenario)
    three_hours = 400 + 200 + 100, 100 + 300 + 500
    for period_s, fourth in ((10_800.0, (400, 100)), (np.inf, (100, 500))):
        at_a, at_b = (known + last for known, last in zip(three_hours, fourth, strict=True))
        busy, rest = 0.05 * at_a, 0.004 * at_a + 2 * 0.004 * at_b
        found = run(replace(scenario, carbon=Carbon(SITES, period_s=period_s))).metrics()["carbon_g"]
        assert found == pytest.approx(busy + rest, rel=1e-12)


def test_a_run_may_last_as_long_as_the_intensity_covers():
    """Rows at 0 and 10 s cover 20 s: a task of 20 s is within, one of 21 s is not; a row may not outlive the period."""
    carbon = Carbon(SiteSeries(("*",), (Series((0.0, 10.0), (100.0, 200.0)),)))
    platform = Platform((Host("h", (PState(1.0, 0.0, 10.0, 10.0),)),))
    result = run(Scenario(platform, make_tasks([20.0]), "wq", carbon=carbon, driver="reference"))
    assert result.metrics()["carbon_g"] == pytest.approx(10.0 * (10 * 100 + 10 * 200) / J_PER_KWH, rel=1e-12)
    with pytest.raises(InputError, match="20 s"):
        run(Scenario(platform, make_tasks([21.0]), "wq", carbon=carbon, driver="reference"))
    with pytest.raises(InputError, match="carbon_period_s"):
        replace(carbon, period_s=10.0)


def test_the_property_of_hosts_and_zones(tmp_path: Path):
    """A zone's serves its hosts; a host's own goes before, and rows of a file before both."""
    text = Path(EXAMPLE[1]).read_text()
    for tag, grams in (('<zone id="A" routing="Cluster">', 200), ('<host id="b-1" speed="100.0f">', 50)):
        assert tag in text
        text = text.replace(tag, f'{tag}<prop id="carbon_intensity" value="{grams}"/>')
    path = tmp_path / "p.xml"
    path.write_text(text)
    with pytest.raises(InputError, match="'b-2'"):
        run(replace(example(carbon=None), platform=path))
    (tmp_path / "b.csv").write_text("host,time_s,g_per_kwh\nb-2,0,10\n")
    metrics = run(replace(example(carbon=Carbon(tmp_path / "b.csv")), platform=path)).metrics()
    # a: two tasks each; b: one task and an hour idle each
    assert metrics["carbon_g"] == pytest.approx(4 * 0.05 * 200 + (0.05 + 0.004) * (50 + 10), rel=1e-12)


@given(
    begins=st.lists(st.floats(1.0, 99.0), min_size=0, max_size=4, unique=True),
    values=st.lists(st.floats(0.0, 900.0), min_size=5, max_size=5),
    period_s=st.sampled_from([100.0, 150.5, np.inf]),
    flops=st.lists(st.floats(10.0, 4e3), min_size=1, max_size=6),
)
def test_grams_are_power_times_intensity(begins, values, period_s, flops):
    """The run's own figure, second by second: fine steps whose edges are all changes."""
    state = PState(100.0, 4.0, 4.0, 50.0)
    platform = Platform(tuple(Host(name, (state,)) for name in ("a", "b")))
    times = (0.0, *sorted(begins))
    series = (Series(times, tuple(values[: len(times)])), Series.constant(300.0))
    carbon = Carbon(SiteSeries(("*", "b"), series), period_s=period_s)
    result = run(Scenario(platform, make_tasks(flops), "mct", carbon=carbon, driver="reference"))
    steps = carbon_steps(result.trace)
    assert steps["carbon_g"].iloc[-1] == pytest.approx(result.metrics()["carbon_g"], rel=1e-9, abs=1e-12)
    assert steps["energy_j"].iloc[-1] == pytest.approx(result.metrics()["energy_model_j"], rel=1e-9)
    busy_s = np.sort(np.concatenate([result.trace.executions["start"], result.trace.executions["end"]]))
    assert set(busy_s) <= set(steps["time_s"])
    grams = result.facts.carbon
    assert grams.execution_j.sum() == pytest.approx(grams.grid_total("busy_j"), rel=1e-9, abs=1e-15)


def test_steps_of_rows_that_begin_again():
    """2.823...9 s after a period of 100 s is a rounding before the row that begins there; it still holds from there."""
    platform = Platform((Host("a", (PState(100.0, 4.0, 4.0, 50.0),)),))
    series = Series((0.0, 2.82323085716229), (500.0, 100.0))
    carbon = Carbon(SiteSeries(("*",), (series,)), period_s=100.0)
    result = run(Scenario(platform, make_tasks([10_500.0]), "wq", carbon=carbon, driver="reference"))
    steps = carbon_steps(result.trace)
    assert steps["g_per_kwh_0"].tolist() == [500.0, 100.0, 500.0, 100.0, 100.0]
    assert steps["carbon_g"].iloc[-1] == pytest.approx(result.metrics()["carbon_g"], rel=1e-12)


def test_an_export_knows_it(tmp_path: Path):
    """The archive gives the signal back; tables have the grams."""
    result = run(example())
    write_export(result.trace, None, result.provenance, tmp_path / "out", workload_name="w")
    export = read_archive(tmp_path / "out" / "trace.npz")
    assert export.trace.carbon == result.trace.carbon
    header = (tmp_path / "out" / "jobs.csv").read_text().splitlines()[0].split(",")
    assert "carbon_g" in header
    assert main(["plot", "carbon", str(tmp_path / "out"), "-o", str(tmp_path / "c.png")]) == 0
    assert "g_per_kwh_1" in (tmp_path / "c.csv").read_text()


def test_compare_prints_and_draws_grams(tmp_path: Path, capsys):
    """Beside joules."""
    words = ["compare", *EXAMPLE, "--carbon", SITES, "--schedulers", "wq,lecsa", "--driver", "reference"]
    assert main([*words, "--plot", str(tmp_path / "c.png")]) == 0
    assert "72.4" in capsys.readouterr().out
    assert "carbon_g" in (tmp_path / "c.csv").read_text().splitlines()[0]
    assert main([*words, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["results"]
    assert [row["carbon_g"] for row in rows] == pytest.approx([72.4, 70.0])


def test_run_says_how_far_it_is_above_the_bounds(capsys):
    """72.4 g; 60 and 63.2 g are possible in two hours. Beside other runs there is no such line."""
    words = ["run", *EXAMPLE, "--driver", "reference", "--scheduler", "wq"]
    assert main([*words, "--carbon", SITES, "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["carbon_bound_g"], row["carbon_fixed_bound_g"]) == pytest.approx((60, 63.2))
    assert row["carbon_above_fixed_bound"] == pytest.approx(72.4 / 63.2 - 1)
    assert main([*words, "--carbon", SITES]) == 0
    assert "20.6667" in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    assert not [key for key in json.loads(capsys.readouterr().out) if "carbon" in key]
    switched = [*words[:-1], "lecsa", "--carbon", SITES, "--json"]
    assert main(switched) == 0
    assert "carbon_above_fixed_bound" not in json.loads(capsys.readouterr().out)


def test_a_study_has_the_keys(tmp_path: Path):
    """The table is an input of the study."""
    text = f"""
        name = "green"
        driver = "reference"
        network = "none"
        schedulers = ["wq"]
        carbon = "{SITES}"
        carbon_period_s = [10800.0, inf]
        platform = {{ file = "{EXAMPLE[1]}" }}
        workload = {{ file = "{EXAMPLE[3]}" }}
    """
    (tmp_path / "green.toml").write_text(text)
    study = Study.find(str(tmp_path / "green.toml"))
    inputs = {file.sha256: file.path for file in study.inputs.values()}
    made = [load(ScenarioMaker(inputs, tmp_path).make(each.spec)) for each in study.scenarios()]
    assert [each.carbon.period_s for each in made] == [10_800.0, np.inf]
    assert made[0].carbon.intensity.patterns == ("A", "B")


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("host,time_s\nA,0\n", ["line 1", "g_per_kwh"]),
        ("host,time_s,g_per_kwh\nA,5,1\n", ["line 2", "time_s", "begins at 0"]),
        ("host,time_s,g_per_kwh\nA,0,1\nA,0,2\n", ["line 3", "time_s"]),
        ("host,time_s,g_per_kwh\nA,0,-1\n", ["line 2", "g_per_kwh", ">= 0"]),
        ("host,time_s,g_per_kwh\nA,0,x\n", ["line 2", "g_per_kwh", "'x'"]),
        ("host,time_s,g_per_kwh\n", ["at least one line"]),
    ],
)
def test_rows_that_are_refused(tmp_path: Path, text: str, facts: list[str]):
    """Naming file, line and column."""
    path = tmp_path / "wrong.csv"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        with_carbon_read(Carbon(path))
    assert all(fact in str(error.value) for fact in ["wrong.csv", *facts]), error.value


HOURLY = """Datetime (UTC),Zone,Carbon intensity,other
2026-01-31 22:00:00,X,100,a
2026-01-31 23:00:00,X,200,a
2026-02-01 00:00:00,X,300,a
2026-02-01 03:00:00,X,400,a
"""
COLUMNS = "time=Datetime (UTC),value=Carbon intensity"


def test_hourly_tables(tmp_path: Path):
    """A gap of two hours is refused, or filled by the hour before; the run may begin later."""
    path = tmp_path / "hours.csv"
    path.write_text(HOURLY)
    with pytest.raises(InputError, match="line 5"):
        with_carbon_read(Carbon(path, columns=COLUMNS))
    filled = with_carbon_read(Carbon(path, columns=COLUMNS, fill="hold")).intensity
    assert filled == SiteSeries(("*",), (Series((0.0, 3600.0, 7200.0, 18000.0), (100.0, 200.0, 300.0, 400.0)),))
    later = Carbon(path, columns=COLUMNS + ",host=Zone", fill="hold", start="2026-02-01T00:30+01:00")
    assert with_carbon_read(later).intensity == SiteSeries(
        ("X",), (Series((0.0, 1800.0, 12600.0), (200.0, 300.0, 400.0)),)
    )
    without_zone = HOURLY.replace(" (UTC)", ""), "time=Datetime"
    for text, column in (without_zone, (HOURLY.replace("23:00:00", "25:00"), "time=Datetime (UTC)")):
        path.write_text(text)
        with pytest.raises(InputError, match=r"line [23]"):
            with_carbon_read(Carbon(path, columns=f"{column},value=Carbon intensity", fill="hold"))
    with pytest.raises(InputError, match="no column 'Y'"):
        with_carbon_read(Carbon(path, columns="time=Datetime (UTC),value=Y"))
    with pytest.raises(InputError, match="carbon_columns"):
        with_carbon_read(Carbon(path, fill="hold"))


@pytest.mark.parametrize(("zone", "begin"), [("UTC", "23:00"), ("+01:00", "22:00"), ("-05:30", "04:30")])
def test_a_zone_may_be_named_and_a_table_packed(tmp_path: Path, zone: str, begin: str):
    """Stamps without a zone have that of the columns; the run begins at 23:00 UTC, the second row's first hour."""
    path = tmp_path / "hours.csv.gz"
    path.write_bytes(gzip.compress("\n".join(HOURLY.replace(" (UTC)", "").splitlines()[:4]).encode()))
    day = "2026-02-01" if begin == "04:30" else "2026-01-31"
    carbon = Carbon(
        path, columns=f"time=Datetime,value=Carbon intensity,zone={zone}", start=f"{day}T{begin}+00:00", period_s=np.inf
    )
    assert with_carbon_read(carbon).intensity.series[0].value == (200.0, 300.0)
    with pytest.raises(InputError, match="zone"):
        with_carbon_read(Carbon(path, columns="time=Datetime,value=Carbon intensity,zone=Berlin"))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match="gzip"):
        with_carbon_read(carbon)


@pytest.mark.parametrize("header_commas", ["", ",", ",,"])
def test_trailing_commas_of_electricity_maps(tmp_path: Path, header_commas: str):
    """Empty cells behind the last column mean nothing; a value there is no cell of the table."""
    path = tmp_path / "hours.csv"
    rows = HOURLY.splitlines()[:4]
    path.write_text("\n".join([rows[0] + header_commas, rows[1] + ",", rows[2] + ",,", rows[3]]) + "\n")
    found = with_carbon_read(Carbon(path, columns=COLUMNS)).intensity
    assert found == SiteSeries(("*",), (Series((0.0, 3600.0, 7200.0), (100.0, 200.0, 300.0)),))
    path.write_text("\n".join([*rows, "2026-02-01 01:00:00,X,400,a,5"]) + "\n")
    with pytest.raises(InputError, match="line 5"):
        with_carbon_read(Carbon(path, columns=COLUMNS))


def test_a_table_with_time_stamps_asks_for_its_columns(tmp_path: Path):
    """The first message names the option, and what it would be for this file; that is then read."""
    path = tmp_path / "hours.csv"
    path.write_text(HOURLY.replace("Carbon intensity", "Carbon Intensity gCO₂eq/kWh of X").replace("03:00", "01:00"))
    with pytest.raises(InputError, match="--carbon-columns") as caught:
        with_carbon_read(Carbon(path))
    columns = str(caught.value).partition("--carbon-columns '")[2].partition("'")[0]
    assert columns == "time=Datetime (UTC),value=Carbon Intensity gCO₂eq/kWh of X"
    assert len(with_carbon_read(Carbon(path, columns=columns)).intensity.series[0].value) == 4
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="--carbon-columns time=NAME,value=NAME"):
        with_carbon_read(Carbon(path))


def test_a_signal_of_sites_is_their_mean_over_the_hosts():
    """Two hosts of a, one of b; each host has its own."""
    a, b = Series((0.0, 10.0), (3.0, 6.0)), Series((0.0, 5.0), (9.0, 0.0))
    signal = signal_of_sites([a, a, b, None], 20.0, 1.0, "g", 3)
    assert signal.begin_s == (0.0, 5.0, 10.0)
    assert signal.weight == pytest.approx((5.0, 2.0, 4.0))
    assert signal.at_hosts(np.array([0, 2, 1]), 0.0, 20.0).tolist() == pytest.approx([4.5, 2.25, 4.5])
    assert np.isnan(signal.mean_at_host(3, 0.0, 1.0))
    assert signal_of_sites([a, a], 20.0, 1.0, "g", 2).sites == ()


# Energy prices by site: money counted by hand on both drivers, budgets, and tables that are wrong.

SITES_AND_DAY = (ROOT / "examples/two_sites.xml", ROOT / "examples/two_sites_day.csv")
PRICES = ROOT / "examples/site_prices.csv"
#: Of a kWh at A in hours 1 and 2 and at B, busy and idle: as docs/carbon.md works it out for grams.
COST = 2 * 0.05 * 0.40 + 2 * 0.05 * 0.10 + 2 * 0.05 * 0.20 + 2 * 0.004 * 0.30
DRIVERS = ["reference", "simgrid"]


@pytest.mark.parametrize("driver", DRIVERS)
def test_money_of_two_sites_by_hand(driver):
    """Four tasks in the first hour, two at A in the second while B idles."""
    tariff = Tariff(price=1.0, prices=PRICES, pue=1.5)
    metrics = run(Scenario(*SITES_AND_DAY, "wq", tariff=tariff, driver=driver)).metrics()
    assert metrics["energy_cost"] == pytest.approx(1.5 * COST, rel=1e-12)
    assert metrics["income"] == 1.0
    assert metrics["profit"] == pytest.approx(1.0 - 1.5 * COST, rel=1e-12)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_budget_counts_each_site_by_its_own_price(driver):
    """What was spent is that cost; with a little less to spend not all is done."""
    for money, finished in ((COST * 1.001, 6), (COST * 0.9, 4)):
        budget = EnergyBudget(money=money, prices=PRICES, period_s=float("inf"), enforcement="stop")
        metrics = run(Scenario(*SITES_AND_DAY, "mct", budget=budget, driver=driver)).metrics()
        assert metrics["tasks_finished"] >= finished
        assert metrics["money_spent"] <= money * (1 + 1e-9)


@pytest.mark.systems("profit")
def test_what_goes_by_one_price_refuses_several():
    """The rolling program, and the figure."""
    tariff = Tariff(price=1.0, prices=PRICES)
    with pytest.raises(InputError, match="lp_rolling"):
        run(Scenario(*SITES_AND_DAY, "lp_rolling", tariff=tariff, driver="reference"))
    result = run(Scenario(*SITES_AND_DAY, "wq", tariff=tariff, driver="reference"))
    with pytest.raises(InputError, match="site"):
        plot_prices(result)


def test_lecsa_by_money_follows_the_cheaper_site():
    """In the first hour B is four times cheaper: the first tasks go there."""
    tariff = Tariff(price=1.0, prices=PRICES, prices_period_s=float("inf"))
    parameters = {"weigh": "money", "share_rule": "count"}
    result = run(Scenario(*SITES_AND_DAY, "lecsa", parameters, tariff=tariff, driver="reference"))
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
        run(Scenario(*SITES_AND_DAY, "wq", tariff=Tariff(price=1.0, prices=path), driver="reference"))


def test_a_free_site_is_no_unit_of_a_budget(tmp_path):
    """Under a budget in money every price must be positive."""
    path = tmp_path / "prices.csv"
    path.write_text("host,time_s,energy_cost_per_kwh\nA,0,0.4\nB,0,0\n")
    with pytest.raises(InputError, match="money_budget"):
        run(
            Scenario(
                *SITES_AND_DAY, "wq", budget=EnergyBudget(money=1.0, prices=path, period_s=1e5), driver="reference"
            )
        )


# ---------------------------------------------------------------------- as people have it


def test_one_number_is_for_all_hosts_and_times():
    """A number, or a text that is one: 3.6 MJ at 250 g/kWh are 250 g."""
    for number in (250, 250.0, "250"):
        table = with_carbon_read(Carbon(number)).intensity
        assert table == SiteSeries(("*",), (Series((0.0,), (250.0,)),))


@pytest.mark.parametrize("given", ["-1", -1.0, "nan", "inf", True, 10**400])
def test_numbers_that_are_no_intensity(given):
    """Below 0, infinite, no number."""
    with pytest.raises(InputError, match="carbon"):
        Carbon(given)


PUBLISHED = {
    "electricity_maps": (
        "Datetime (UTC),Country,Zone name,Zone id,Carbon intensity gCO₂eq/kWh (direct),"
        "Carbon intensity gCO₂eq/kWh (Life cycle),Data estimated,\n"
        "2024-01-01 00:00:00,X,X,X,100,150,false,\n2024-01-01 01:00:00,X,X,X,200,250,false,\n",
        (150.0, 250.0),
        3600.0,
    ),
    "electricity_maps_direct": (
        "Datetime (UTC),Carbon Intensity gCO₂eq/kWh (direct)\n2024-01-01 00:00:00,100\n2024-01-01 01:00:00,200\n",
        (100.0, 200.0),
        3600.0,
    ),
    "neso": (
        "datetime,forecast,actual,index\n2024-01-01T00:00Z,1,60,low\n2024-01-01T00:30Z,2,70,low\n",
        (60.0, 70.0),
        1800.0,
    ),
    "watttime": (
        "timestamp,MOER,MOER version,frequency\n2024-01-01 00:00:00+00:00,1000,3.2,300\n"
        "2024-01-01 00:05:00+00:00,2000,3.2,300\n",
        (453.59237, 907.18474),
        300.0,
    ),
}


@pytest.mark.parametrize("source", PUBLISHED)
def test_tables_of_known_sources(tmp_path: Path, source: str):
    """The source alone is named; WattTime's pounds for each MWh are 0.45359237 g for each kWh."""
    text, values, step_s = PUBLISHED[source]
    path = tmp_path / "t.csv"
    path.write_text(text)
    table = with_carbon_read(Carbon(path, columns=source)).intensity
    assert table.series[0].time_s == (0.0, step_s)
    assert table.series[0].value == pytest.approx(values, rel=1e-15)
    with pytest.raises(InputError, match=source):
        with_carbon_read(Carbon(path))


def test_a_source_whose_columns_are_missing_is_refused(tmp_path: Path):
    """With the columns that it needs, and those that are there."""
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"MOER.*a, b"):
        with_carbon_read(Carbon(path, columns="watttime"))


@pytest.mark.parametrize("stamp", ["{0:02}.03.2026 {1:02}:00 - x", "{0:02}/03/2026 {1:02}:00:00 - x"])
def test_days_come_first_and_zones_have_names(tmp_path: Path, stamp: str):
    """ENTSO-E's intervals on the day on which Berlin's clocks skip an hour: 23 hours, each 3,600 s."""
    path = tmp_path / "t.csv"
    hours = [hour for hour in range(24) if hour != 2]
    rows = [stamp.format(29, hour) + f",{hour}" for hour in hours]
    path.write_text("\n".join(["MTU (CET/CEST),g", *rows]))
    columns = "time=MTU (CET/CEST),value=g,zone=Europe/Berlin"
    table = with_carbon_read(Carbon(path, columns=columns)).intensity
    assert table.series[0].time_s == tuple(3600.0 * k for k in range(23))


def test_an_hour_that_comes_twice(tmp_path: Path):
    """On the day on which clocks are put back the second 02:00 is an hour after the first."""
    path = tmp_path / "t.csv"
    hours = [0, 1, 2, 2, 3]
    path.write_text("\n".join(["time,g", *(f"2026-10-25 {hour:02}:00,{k}" for k, hour in enumerate(hours))]))
    table = with_carbon_read(Carbon(path, columns="time=time,value=g,zone=Europe/Berlin")).intensity
    assert table.series[0].time_s == tuple(3600.0 * k for k in range(5))
