"""Options of power and power states, and the options of former versions."""

from __future__ import annotations

import json
import math

import pytest
from cli_cases import EX_A_TASKS, ROOT, host_xml, platform_text, zone_xml

from gridsched.platform_io.xml_edit import current_platform_xml
from gridsched.runs.study import Study

# --power and --master of the commands that run something, on platforms that lack both.

#: A cabinet, which cannot hold power in its file, beside a peer.
BARE = platform_text(
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
    assert "3 hosts, the first 'p'" in line
    assert "--power IDLE:EPSILON:BUSY" in line
    assert "--power none" in line


@pytest.mark.usefixtures("simgrid")
@pytest.mark.parametrize("execution_mode", ["maestro", "actors"])
def test_plugin_and_model_agree_on_given_power(gridsched, bare, execution_mode):
    """Cabinets and peers draw it by SimGrid's plugin, too; worked out by hand.

    WQ: p takes tasks 1 (10 s), 4 (15 s), n1 takes 2 (10 s), n2 takes 3 (40 s); at 10 s task 4 goes
    to p and task 5 (5 s) to n1. The run lasts 40 s: p is busy for 25 s, n1 for 15 s, n2 for 40 s.
    """
    options = ["--power", "10:20:30", "--power", "n2=1:2:3", "--execution-mode", execution_mode, "--scheduler", "wq"]
    found = gridsched("run", *bare, *options, "--json").json
    expected = (25 * 30 + 15 * 10) + (15 * 30 + 25 * 10) + 40 * 3
    assert found["makespan_s"] == 40
    assert found["energy_j"] == pytest.approx(expected, rel=1e-12)
    assert found["energy_model_j"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.usefixtures("simgrid")
def test_without_energy_columns_are_empty_and_that_is_said_once(gridsched, bare, tmp_path):
    """--power none: makespans as ever, no joule, one line that reports this."""
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
    """EX-A on n1 and n2 alone: 5250 flop in all; the peer is not a host of the totals."""
    options = [*bare, "--power", "10:20:30", "--master", "p", "--driver", "reference"]
    found = gridsched("run", *options, "--json").json
    assert found["busy_time_s"] == 5250 / 50
    assert found["hosts_used"] == 2
    energy = found["energy_j"]
    assert math.isclose(energy, 30 * 105 + 10 * (2 * found["makespan_s"] - 105), rel_tol=1e-12)
    assert "no host is called 'q'" in refused("run", *bare, "--power", "1:2:3", "--master", "q")


@pytest.mark.systems("utility")
def test_power_has_no_place_beside_systems_of_a_generator(refused):
    """A workload with machines of its own has their powers, too."""
    day = ROOT / "examples/utility_small.toml"
    assert "leave out --power 1:2:3" in refused("run", "--workload", day, "--power", "1:2:3")


def test_power_upside_down_is_told(gridsched):
    """As of the property wattage_per_state: with 200 W idle and 100 busy each host is named, and simulated."""
    command = ("run", "--platform", ROOT / "platforms/ex_a.xml", "--workload", ROOT / "examples/ex_a.csv")
    outcome = gridsched(*command, "--scheduler", "wq", "--driver", "reference", "--power", "200:100")
    assert outcome.status == 0
    assert any("'h1'" in line and "IDLE:EPSILON:BUSY" in line for line in outcome.problems)


# --pstate of the commands and of studies, and the attribute pstate of platform files.

#: Each host has 100 flop/s at 100 W and 50 flop/s at 30 W, and idles at 10 W and 5 W.
WATTS = "10:10:100, 5:5:30"
PLATFORM = zone_xml(
    host_xml("m", "1f,1f", "3:3:3, 1:1:1", ' pstate="1"', '<prop id="role" value="master"/>')
    + host_xml("a", "100f,50f", WATTS, ' pstate="1"')
    + host_xml("b", "100f,50f", WATTS)
)
#: Two tasks of 1000 flop, one for each host: 10 s at 1000 J, or 20 s at 600 J. Who has done waits.
CASES = {
    (): (20.0, 600 + 1000 + 10 * 10),
    ("--pstate", "0"): (10.0, 1000 + 1000),
    ("--pstate", "1"): (20.0, 600 + 600),
    ("--pstate", "b=1"): (20.0, 600 + 600),
    ("--pstate", "1", "--pstate", "a=0"): (20.0, 1000 + 10 * 10 + 600),
    ("--pstate", "*=1,[ab]=0"): (10.0, 1000 + 1000),
}


@pytest.fixture
def files(tmp_path) -> list[object]:
    """Return the options of the platform and the two tasks."""
    platform, bag = tmp_path / "p.xml", tmp_path / "bag.csv"
    platform.write_text(PLATFORM)
    bag.write_text("id,flops\n1,1000\n2,1000\n")
    return ["--platform", platform, "--workload", bag]


@pytest.mark.usefixtures("simgrid")
@pytest.mark.parametrize(("options", "expected"), CASES.items())
def test_each_host_starts_in_its_own_pstate(gridsched, files, options, expected):
    """Worked out by hand: the file's own counts, --pstate goes before it, the last item wins."""
    for driver in ("simgrid", "reference"):
        found = gridsched("run", *files, *options, "--driver", driver, "--json").json
        assert (found["makespan_s"], found["energy_model_j"]) == expected
        assert driver == "reference" or found["energy_j"] == pytest.approx(expected[1], rel=1e-12)


@pytest.mark.usefixtures("simgrid")
def test_the_master_idles_in_its_own(gridsched, files):
    """1 W for 20 s, by the plugin and by the model."""
    found = gridsched("validate", *files, "--schedulers", "wq", "--json").json
    of_master = next(row for row in found["hosts"] if row["host"] == "m")
    assert of_master["plugin_j"] == pytest.approx(20.0, rel=1e-12)
    assert of_master["model_j"] == 20.0


@pytest.mark.systems("profit")
@pytest.mark.parametrize("scheduler", ["mct", "min_min", "sufferage", "lp_pareto"])
def test_estimates_follow_each_hosts_own(gridsched, files, scheduler):
    """Of three equal tasks the fast host takes two: all are done after 20 s."""
    (files[-1]).write_text("id,flops\n1,1000\n2,1000\n3,1000\n")
    found = gridsched("run", *files, "--scheduler", scheduler, "--driver", "reference", "--json")
    assert found.json["makespan_s"] == 20.0
    compared = gridsched("compare", *files, "--schedulers", scheduler, "--driver", "reference", "--json").json[
        "results"
    ][0]
    assert compared["fixed_makespan_bound_s"] == pytest.approx(20.0, rel=1e-12)
    assert compared["energy_above_bound"] >= 0


def test_what_is_no_pstate_is_refused_in_one_line(refused, files):
    """No number, no such host, a P-state that the host lacks."""
    assert "'fast' is not a whole number" in refused("run", *files, "--pstate", "fast")
    assert "NAME_PATTERN=K" in refused("run", *files, "--pstate", "=1")
    assert "no host has such a name" in refused("run", *files, "--pstate", "c=1")
    line = refused("run", *files, "--pstate", "b=2")
    assert "host 'b' has P-states 0 to 1; P-state 2 was asked for" in line


@pytest.mark.systems("profit")
def test_planners_know_each_hosts_own(gridsched, files):
    """10 s on b and 20 s on a: divided tasks take 2000 / 150 s at least."""
    found = gridsched("optimize", "pareto", *files, "--json").json
    assert found["front"][0]["makespan_s"] == pytest.approx(2000 / 150, rel=1e-9)


STUDY = """
name = "s"
platform = "p.xml"
workload = "bag.csv"
schedulers = ["mct"]
driver = "reference"
"""


def settings_of(folder, text: str) -> list[dict]:
    """Return the stored settings of each run of a study with another line."""
    (folder / "s.toml").write_text(STUDY + text)
    return [run.scenario["settings"] for run in Study.from_file(folder / "s.toml").scenarios()]


def test_the_key_of_studies_means_the_same(files, tmp_path):
    """Lists are axes. Runs without it say nothing, which is not P-state 0."""
    assert ["pstate" in each for each in settings_of(tmp_path, "")] == [False]
    axis = settings_of(tmp_path, 'pstate = [0, 1, "a=0,b=1"]')
    assert [each["pstate"] for each in axis] == [0, 1, "a=0,b=1"]


# Options of SimGrid 3 in a platform's <config>: renamed or left out, and reported once.

CONFIG = """<config id="General">
  <prop id="network/coordinates" value="yes"></prop>
  <prop value='compound'
        id='host/model'/>
  <prop id="network/TCP_gamma" value="4194304"/>
  <prop id="cpu/optim" value="TI"/> <prop id="workstation/model" value="compound"/>
  <prop id="contexts/guard_size" value="0"/> <prop id="workstation/model" value="default"/>
  <prop id="smpi/os" value="0:1:2"/> <prop id="smpi/bw_factor" value="0:0.5"/>
  <prop id="precision/work-amount" value="1e-5"/>
  <prop id="tracing" value="yes"/> <prop id="tracing/filename" value="nowhere/x.trace"/>
</config>
"""
ZONE = f'<zone id="z" routing="Full">{host_xml("a")}{host_xml("b")}</zone>'


@pytest.fixture
def input_files(tmp_path) -> list[object]:
    """Return the options of an old platform and a bag."""
    (tmp_path / "old.xml").write_text(platform_text(CONFIG + ZONE))
    (tmp_path / "bag.csv").write_text("id,flops\n1,1000\n2,500\n")
    return ["--platform", tmp_path / "old.xml", "--workload", tmp_path / "bag.csv"]


def test_what_simgrid_knows_stays_and_each_line_where_it_was(input_files):
    """New names in the place of old ones; nothing else changes, not even the lines."""
    old = input_files[1].read_text()
    new = current_platform_xml(input_files[1]).decode()
    assert new.count("\n") == old.count("\n")
    assert '<prop id="network/TCP-gamma" value="4194304"/>' in new
    assert '<prop id="smpi/bw-factor" value="0:0.5"/>' in new
    assert '<prop id="precision/work-amount" value="1e-5"/>' in new
    assert new.count('<prop id="host/model" value="default"/>') == new.count("host/model") == 1
    for gone in ("coordinates", "compound", "cpu/optim", "smpi/os", "tracing", "contexts", "workstation"):
        assert gone not in new
    input_files[1].write_text(platform_text(ZONE))
    assert current_platform_xml(input_files[1]) is None


@pytest.mark.usefixtures("simgrid")
def test_such_a_file_runs_and_is_checked(gridsched, input_files):
    """SimGrid refuses it as it is, or crashes; energies agree, and a warning names them."""
    assert gridsched("validate", *input_files, "--schedulers", "wq,mct").status == 0
    (warning,) = gridsched("run", *input_files, "--scheduler", "wq").problems
    assert "network/coordinates, host/model, network/TCP_gamma (network/TCP-gamma)" in warning
    checked = gridsched("platform", "check", input_files[1])
    assert checked.status == 0
    assert "SimGrid: loads it" in checked.out


@pytest.mark.usefixtures("simgrid")
def test_what_nobody_knows_is_refused(refused, input_files):
    """It may mean something."""
    input_files[1].write_text(platform_text(CONFIG.replace("network/coordinates", "network/x") + ZONE))
    line = refused("run", *input_files)
    assert "old.xml, line 5: the option 'network/x'" in line
    assert "network/model" in line


TRACING = '<prop id="tracing" value="yes"/><prop id="tracing/filename" value="{victim}"/>'


@pytest.mark.usefixtures("simgrid")
@pytest.mark.parametrize(
    "config",
    [
        TRACING,
        '<prop id="network/crosstraffic" value="1 tracing:yes tracing/filename:{victim}"/>',
        '<prop id="network/crosstraffic" value="1,tracing:yes,tracing/filename:{victim}"/>',
        f"<!-- </config> -->{TRACING}",
        TRACING.replace("tracing", "trac&#105;ng"),
        TRACING.replace("tracing", "trac&#x69;ng"),
        '<prop id="model-check/dot-output" value="{victim}"/>',
        '<prop id="network/crosstraffic:1 tracing/filename" value="{victim}"/>',
        '<prop id="cpu/optim" value="TI"/><prop id="cpu/optim" value="Lazy tracing:yes"/>',
    ],
)
def test_no_platform_file_has_simgrid_write_another(gridsched, input_files, tmp_path, config: str):
    """Whoever gave it: neither a run nor a check touches the file that its <config> names."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    input_files[1].write_text(platform_text(f"<config>{config.format(victim=victim)}</config>{ZONE}"))
    before = sorted(tmp_path.iterdir())
    status = gridsched("run", *input_files, "--power", "none").status
    assert gridsched("platform", "check", input_files[1]).status in (0, 1, 2)
    assert victim.read_text() == "precious"
    assert sorted(tmp_path.iterdir()) == before
    # traces have no effect here and are left out, however they are spelled
    assert status == (0 if '<prop id="trac' in config else 2)


@pytest.mark.usefixtures("simgrid")
def test_a_route_that_simgrid_rules_out_is_refused_in_one_line(refused, gridsched, input_files):
    """SimGrid 4.1 takes no route of a zone to itself, which its own old examples have."""
    cluster = '<cluster id="c" prefix="n" suffix="" radical="0-1" speed="1f" bw="1Bps" lat="1s"/>'
    route = (
        '<link id="l" bandwidth="1Bps" latency="1s"/><zoneRoute src="c" dst="c" '
        'gw_src="nc_router" gw_dst="nc_router"><link_ctn id="l"/></zoneRoute>'
    )
    input_files[1].write_text(platform_text(f'<zone id="z" routing="Full">{cluster}{route}</zone>'))
    line = refused("run", *input_files, "--power", "1:2:3")
    assert "Cannot define a NetzoneRoute from 'nc_router' to itself" in line
    assert "Cannot define a NetzoneRoute" in gridsched("platform", "check", input_files[1]).out


@pytest.mark.usefixtures("simgrid")
def test_profiles_of_such_a_file_are_found(gridsched, tmp_path):
    """Files of profiles lie beside the platform, also where SimGrid loads an edited copy.

    10 kB take 3 s at 1 kB/s and the rest at 500 B/s, so about 17 s.
    """
    folder = tmp_path / "a b, ü"
    folder.mkdir()
    old = '<config><prop id="network/coordinates" value="yes"/></config>'
    hosts = host_xml("a") + host_xml("b", speed="10f")
    link = '<link id="l" bandwidth="1kBps" latency="0s" bandwidth_file="link.txt"/>'
    route = '<route src="a" dst="b"><link_ctn id="l"/></route>'
    path = folder / "old.xml"
    path.write_text(platform_text(f'{old}<zone id="z" routing="Full">{hosts}{link}{route}</zone>'))
    (folder / "link.txt").write_text("3 500\n")
    (tmp_path / "bag.csv").write_text("id,flops,input_bytes\n1,1,10000\n")
    assert "SimGrid: loads it" in gridsched("platform", "check", path).out
    row = json.loads(
        gridsched(
            "run",
            "--platform",
            path,
            "--workload",
            tmp_path / "bag.csv",
            "--master",
            "a",
            "--json",
            "--cfg",
            "network/model:CM02",
            "--cfg",
            "network/crosstraffic:0",
        ).out
    )
    assert row["makespan_s"] == pytest.approx(17.1)
    (folder / "link.txt").unlink()
    refused = gridsched("platform", "check", path)
    assert "bandwidth_file 'link.txt' of link 'l': " in refused.out


@pytest.mark.usefixtures("simgrid")
def test_a_network_model_that_simgrid_is_built_without(gridsched, refused, input_files):
    """Without messages any model does; else one line names the one to take."""
    link = '<link id="l" bandwidth="1kBps" latency="0s"/>'
    route = f'{link}<route src="a" dst="b"><link_ctn id="l"/></route>'
    ns3 = '<config><prop id="network/model" value="ns-3"/></config>'
    input_files[1].write_text(platform_text(ns3 + ZONE.replace("</zone>", f"{route}</zone>")))
    words = "network/model is ns-3, with which SimGrid of PyPI is not built"
    assert words in gridsched("platform", "check", input_files[1]).out
    assert gridsched("run", *input_files).status == 0
    input_files[3].write_text("id,flops,input_bytes\n1,1000,100\n")
    assert words in refused("run", *input_files, "--master", "a")
    assert gridsched("run", *input_files, "--master", "a", "--cfg", "network/model:CM02").status == 0
