"""Grams from SimGrid's joules at each change of the intensity, in all ways of running, and validate's table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from sim_cases import ex_a, on_simgrid
from star import write_star
from test_bare_simgrid import at, write

from gridsched.cli.app import main
from gridsched.cli.compare import _agrees
from gridsched.energy import compare_energy
from gridsched.metrics.run_metrics import trace_carbon
from gridsched.model.carbon import Carbon
from gridsched.model.site_series import Series, SiteSeries
from gridsched.model.tasks import make_tasks
from gridsched.platform_io.xml_reader import read_platform
from gridsched.policy.decisions import Assign, PowerOff, PowerOn
from gridsched.runs.carbon_check import carbon_check
from gridsched.sim.carbon_meter import has_carbon_plugin
from gridsched.sim.library import load_c_library

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = [
    *("--platform", str(ROOT / "examples/two_sites.xml")),
    *("--workload", str(ROOT / "examples/two_sites_day.csv")),
    *("--carbon", str(ROOT / "examples/sites.csv")),
]
SITES = SiteSeries(
    ("h*", "h1", "h2"),
    (Series((0.0, 7.0, 20.0), (500.0, 0.0, 90.0)), Series((0.0, 10.0), (100.0, 900.0)), Series.constant(300.0)),
)


@pytest.mark.parametrize("way", ["maestro", "actors"])
@pytest.mark.parametrize("period_s", [25.0, float("inf")])
def test_each_way_of_running(way, period_s):
    """EX-A: some tasks end just when an intensity changes; a day of 25 s begins four times."""
    carbon = Carbon(SITES, period_s=period_s, pue=1.5)
    result = on_simgrid(ex_a(), [1000.0, 500.0, 2000.0, 1500.0, 250.0], carbon=carbon, meters_carbon=True, way=way)
    rows = carbon_check(result)
    assert [row["host"] for row in rows] == ["h1", "h2", "h3", "total"]
    assert all(row["carbon_relative_difference"] <= 1e-12 for row in rows)
    assert rows[-1]["model_g"] == pytest.approx(result.metrics()["carbon_g"])
    # h2 at one intensity: its joules by 300 g/kWh and the PUE
    assert rows[1]["plugin_g"] == pytest.approx(1.5 * 300 * result.plugin_j["h2"] / 3.6e6, rel=1e-12)
    assert rows[0]["plugin_g"] != pytest.approx(1.5 * 100 * result.plugin_j["h1"] / 3.6e6)


def test_with_messages(tmp_path):
    """Workers as actors: the meter ends with them."""
    path = write_star(tmp_path / "p.xml", [10.0, 5.0])
    names = [host.name for host in read_platform(path).hosts]
    series = tuple(Series((0.0, 10.0 + k, 20.0), (100.0, 700.0, 50.0)) for k in range(len(names)))
    carbon = Carbon(SiteSeries(tuple(names), series), period_s=25.0)
    tasks = make_tasks([100.0, 50.0, 25.0], input_bytes=50.0)
    rows = carbon_check(on_simgrid(path, tasks, carbon=carbon, meters_carbon=True, network="platform"))
    assert max(row["carbon_relative_difference"] for row in rows) <= 1e-12


def test_pstates_boots_and_changes_at_the_same_instant(tmp_path):
    """a slows down, shuts down at 18 s and boots at 24.5 s; intensities change at 18 and 24.5 s, too."""
    decisions = at(
        {0.0: [Assign(0, 1), Assign(1, 0, 1)], 18.0: [PowerOff(0)], 24.5: [PowerOn(0)], 28.5: [Assign(2, 0)]},
        powers_hosts=True,
        uses_dvfs=True,
    )
    series = Series((0.0, 14.0, 18.0, 24.5, 28.5), (400.0, 100.0, 0.0, 250.0, 30.0))
    carbon = Carbon(SiteSeries(("a", "b"), (series, Series((0.0, 4.0), (50.0, 650.0)))), period_s=31.0)
    tasks = make_tasks([3500.0, 700.0, 1100.0])
    result = on_simgrid(write(tmp_path / "p.xml"), tasks, decisions, carbon=carbon, meters_carbon=True)
    assert max(row["carbon_relative_difference"] for row in carbon_check(result)) <= 1e-12


def test_nothing_is_read_where_nobody_asks():
    """A run of its own has no readings, and one without intensity none either."""
    assert carbon_check(on_simgrid(ex_a(), [1000.0], carbon=Carbon(SITES, period_s=25.0))) == []
    assert carbon_check(on_simgrid(ex_a(), [1000.0], meters_carbon=True)) == []


def test_a_wrong_hour_is_found():
    """Negative control: grams of the model at another intensity differ, though all joules agree."""
    carbon = Carbon(SITES, period_s=25.0)
    result = on_simgrid(ex_a(), [1000.0, 500.0], carbon=carbon, meters_carbon=True)
    later = replace(carbon, intensity=SiteSeries(("h*",), (Series((0.0, 7.001), (500.0, 0.0)),)))
    other = on_simgrid(ex_a(), [1000.0, 500.0], carbon=later)
    assert other.plugin_j == result.plugin_j
    rows = compare_energy(other.trace, result.grams.by_joules, trace_carbon(other.trace))
    assert rows[0]["relative_difference"] > 1e-3
    assert not _agrees({"relative_difference": 0.0, "carbon_relative_difference": 1e-6})


def test_validate_shows_grams(capsys):
    """Grams by hand, and one line about SimGrid's own plugin, as the library has it or not."""
    assert main(["validate", *EXAMPLE, "--schedulers", "wq"]) == 0
    out = capsys.readouterr().out
    assert out.count("72.4000") == 2
    assert sum("sg_host_get_carbon_footprint" in line for line in out.splitlines()) == (not has_carbon_plugin())
    assert has_carbon_plugin() == hasattr(load_c_library(), "sg_host_get_carbon_footprint")
    assert main(["validate", *EXAMPLE, "--schedulers", "wq", "--json"]) == 0
    hosts = json.loads(capsys.readouterr().out)["hosts"]
    assert [row["model_g"] for row in hosts] == pytest.approx([30, 30, 6.2, 6.2, 72.4])


def test_an_export_has_no_readings(tmp_path, capsys):
    """It says so, and compares joules."""
    folder = str(tmp_path / "out")
    assert main(["run", *EXAMPLE, "--scheduler", "wq", "--export", folder, "--quiet"]) == 0
    assert main(["validate", folder]) == 0
    told = capsys.readouterr()
    assert "grams" in told.err
    assert "72.4" not in told.out
