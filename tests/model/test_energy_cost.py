"""Costs of energy have a unit, in options, in keys of studies, in Python and in stored rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gridsched import Scenario, run
from gridsched.cli.app import main
from gridsched.errors import InputError
from gridsched.model.energy_cost import MOST_BARE, cost_per_joule
from gridsched.model.tariff import Tariff
from gridsched.runs.run_spec import RunSpec
from gridsched.runs.study import Study

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ["--platform", str(ROOT / "platforms/ex_a.xml"), "--workload", str(ROOT / "examples/ex_a.csv")]
RUN = ["compare", *EXAMPLE, "--schedulers", "mct", "--driver", "reference", "--price", "1", "--json", "--energy-cost"]


@pytest.mark.parametrize(
    ("text", "per_j"),
    [
        ("0.30/kWh", 0.3 / 3.6e6),
        ("90/MWh", 90 / 3.6e9),
        ("8.3e-8/J", 8.3e-8),
        ("8.3e-8", 8.3e-8),
        (" 1 / GWh ", 1 / 3.6e12),
        ("2/Wh", 2 / 3600),
        ("2/J", 2.0),
        ("2/kJ", 2e-3),
        ("2/MJ", 2e-6),
        ("2/GJ", 2e-9),
        (MOST_BARE, 1e-4),
        (0, 0.0),
    ],
)
def test_units(text, per_j):
    """Money per joule."""
    assert cost_per_joule(text) == pytest.approx(per_j, rel=1e-15)


@pytest.mark.parametrize("value", ["0.3", 0.3, 1, "1.1e-4"])
def test_a_bare_number_that_is_too_large_names_both_spellings(value):
    """A number per kWh, most often."""
    with pytest.raises(ValueError, match=f"'{value}/kWh'.*'{value}/J'"):
        cost_per_joule(value)


@pytest.mark.parametrize("value", ["", "/kWh", "x/kWh", "nan/J", "inf/J", "-1/J", "1e31/J", "0.3/", "1/2/J", True])
def test_what_is_no_cost(value):
    """No amount, or none that is allowed."""
    with pytest.raises(ValueError, match="allowed"):
        cost_per_joule(value)


@pytest.mark.parametrize("unit", ["kwh", "mWh", "kW", "h", "EUR"])
def test_units_that_are_unknown(unit):
    """A millionth and a million differ by one letter's case."""
    with pytest.raises(ValueError, match=rf"'{unit}'.*kWh.*GWh"):
        cost_per_joule(f"0.3/{unit}")


def test_the_option(capsys):
    """The profit is the price without the cost of the run's joules; a bare 0.30 is refused."""
    assert main([*RUN, "0.30/kWh"]) == 0
    row = json.loads(capsys.readouterr().out)["results"][0]
    assert row["profit"] == pytest.approx(1 - 0.3 * row["energy_j"] / 3.6e6, rel=1e-12)
    assert main([*RUN, "0.30"]) == 2
    found = capsys.readouterr()
    assert "0.30/kWh" in found.err
    assert found.out == ""


def test_python_takes_the_texts_of_the_option():
    """A number is per joule, like the name."""
    assert Tariff(1.0, energy_cost_per_j="0.30/kWh") == Tariff(1.0, energy_cost_per_j=0.3 / 3.6e6)
    with pytest.raises(InputError, match="energy_cost"):
        Tariff(1.0, energy_cost_per_j="0.30")
    scenario = Scenario(EXAMPLE[1], EXAMPLE[3], "mct", driver="reference", tariff=Tariff(1.0, energy_cost_per_j=2.0))
    assert run(scenario).metrics()["profit"] == pytest.approx(1 - 2 * run(scenario).metrics()["energy_j"], rel=1e-12)


STUDY = f"""
name = "costs"
platform = {{ file = "{EXAMPLE[1]}" }}
workload = {{ file = "{EXAMPLE[3]}" }}
schedulers = ["mct"]
driver = "reference"
price = 1.0
energy_cost = COST
"""


def test_keys_of_studies_and_stored_rows(tmp_path):
    """Both spellings of one cost are one run; what is stored, which is per joule, is read again whatever it is."""
    path, ids = tmp_path / "s.toml", []
    for cost, per_j in (('"2/J"', 2.0), ('"7.2e6/kWh"', 2.0), ('["0.30/kWh", 1e-9]', 0.3 / 3.6e6)):
        path.write_text(STUDY.replace("COST", cost))
        specs = [each.spec for each in Study.from_file(path).scenarios()]
        assert specs[0].settings.energy_cost == pytest.approx(per_j, rel=1e-15)
        ids.append(specs[0].run_id)
        assert RunSpec.read(specs[0].canonical()).run_id == ids[-1]
    assert ids[0] == ids[1] != ids[2]
    for cost in ("0.3", '"0.3"', "[1e-9, 0.3]", "true"):
        path.write_text(STUDY.replace("COST", cost))
        with pytest.raises(InputError, match=r"energy_cost.*(kWh|number)"):
            list(Study.from_file(path).scenarios())
