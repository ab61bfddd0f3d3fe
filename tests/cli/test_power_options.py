"""--power and --master of the commands that run something, on platforms that lack both."""

from __future__ import annotations

import math

import pytest
from cli_cases import EX_A_TASKS, ROOT, platform_xml

#: A cabinet, which cannot hold power in its file, beside a peer.
BARE = platform_xml(
    '<zone id="z" routing="Full">\n'
    '<zone id="v" routing="Vivaldi"><peer id="p" coordinates="1 2 3" speed="100f" bw_in="1GBps" '
    'bw_out="1GBps"/></zone>\n'
    '<zone id="c" routing="Cluster"><cabinet id="cab" prefix="n" suffix="" radical="1-2" '
    'speed="50f" bw="1GBps" lat="0s"/><router id="r"/></zone>\n</zone>'
)


@pytest.fixture
def bare(write) -> list[str]:
    """Return the options of a platform without power and EX-A's tasks."""
    platform, tasks = write("p.xml", BARE), write("w.csv", EX_A_TASKS)
    return ["--platform", str(platform), "--workload", str(tasks)]


def test_a_platform_without_power_is_refused_with_both_ways_out(refused, bare):
    """One line names a host, --power and --power none."""
    line = refused("run", *bare)
    assert "3 hosts, the first is 'p'" in line
    assert "--power IDLE:EPSILON:BUSY" in line
    assert "--power none" in line


@pytest.mark.usefixtures("simgrid")
@pytest.mark.parametrize("way", ["maestro", "actors"])
def test_plugin_and_model_agree_on_given_power(gridsched, bare, way):
    """Cabinets and peers draw it by SimGrid's plugin, too; worked out by hand.

    WQ: p takes tasks 1 (10 s), 4 (15 s), n1 takes 2 (10 s), n2 takes 3 (40 s); at 10 s task 4 goes
    to p and task 5 (5 s) to n1. The run lasts 40 s: p is busy for 25 s, n1 for 15 s, n2 for 40 s.
    """
    options = ["--power", "10:20:30", "--power", "n2=1:2:3", "--way", way, "--scheduler", "wq"]
    found = gridsched("run", *bare, *options, "--json").json
    expected = (25 * 30 + 15 * 10) + (15 * 30 + 25 * 10) + 40 * 3
    assert found["makespan_s"] == 40
    assert found["energy_j"] == pytest.approx(expected, rel=1e-12)
    assert found["energy_model_j"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.usefixtures("simgrid")
def test_without_energy_columns_are_empty_and_that_is_said_once(gridsched, bare, tmp_path):
    """--power none: makespans as ever, no joule, one line that says so."""
    table = tmp_path / "t.csv"
    outcome = gridsched("compare", *bare, "--power", "none", "--schedulers", "wq,mct", "-o", table)
    assert outcome.status == 0
    assert outcome.out.count("No energy") == 1
    assert "[J]" not in outcome.out
    header, *rows = (line.split(",") for line in table.read_text().splitlines())
    for row in rows:
        values = dict(zip(header, row, strict=True))
        assert float(values["makespan_s"]) == {"wq": 40, "mct": 30}[values["scheduler"]]
        of_energy = [
            values[name]
            for name in ("energy_j", "energy_model_j", "energy_bound_j", "energy_busy_j", "energy_above_best")
        ]
        assert of_energy == [""] * 5


def test_what_needs_energy_says_so(refused, bare):
    """Budgets, tariffs, validate and lecsa mean nothing without power."""
    none = [*bare, "--power", "none", "--driver", "reference"]
    assert "energy budget" in refused("run", *none, "--energy-budget-j", "5")
    assert "tariff" in refused("run", *none, "--price", "5")
    assert "no power figure" in refused("run", *none, "--scheduler", "lecsa")


def test_the_model_alone_knows_no_energy_either(gridsched, bare):
    """With the reference driver JSON has null, not 0."""
    found = gridsched("run", *bare, "--power", "none", "--driver", "reference", "--json").json
    assert found["energy_j"] is None
    assert found["makespan_s"] == 40


def test_a_master_by_name_computes_nothing(gridsched, refused, bare):
    """EX-A on n1 and n2 alone: 5250 flop in all; the peer is no host of the totals."""
    options = [*bare, "--power", "10:20:30", "--master", "p", "--driver", "reference"]
    found = gridsched("run", *options, "--json").json
    assert found["busy_time_s"] == 5250 / 50
    assert found["hosts_used"] == 2
    energy = found["energy_j"]
    assert math.isclose(energy, 30 * 105 + 10 * (2 * found["makespan_s"] - 105), rel_tol=1e-12)
    assert "no host is called 'q'" in refused("run", *bare, "--power", "1:2:3", "--master", "q")


def test_power_has_no_place_beside_systems_of_a_generator(refused):
    """A workload with machines of its own has their powers, too."""
    day = ROOT / "examples/utility_small.toml"
    assert "leave out --power 1:2:3" in refused("run", "--workload", day, "--power", "1:2:3")


def test_power_upside_down_is_told(gridsched):
    """As of the property wattage_per_state: with 200 W idle and 100 busy each host is named, and simulated."""
    command = ("run", "--platform", ROOT / "platforms/ex_a.xml", "--workload", ROOT / "examples/ex_a.csv")
    outcome = gridsched(*command, "--scheduler", "wq", "--driver", "reference", "--power", "200:100")
    assert outcome.status == 0
    assert any("'h1'" in line and "IDLE:EPSILON:BUSY" in line for line in outcome.complaints)
