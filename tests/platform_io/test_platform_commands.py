from __future__ import annotations

import json
import shlex
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gridsched.cli.platform import platform_app
from gridsched.drivers.simgrid_library import is_installed
from gridsched.errors import InputError
from gridsched.platform_io.check import check_platform_file
from gridsched.platform_io.xml_reader import read_platform
from gridsched.sim.inspection import inspect_platform

PLATFORMS = Path(__file__).resolve().parents[2] / "platforms"
COMMANDS = [
    line
    for line in (PLATFORMS / "README.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("gridsched platform from-table")
]
TABLE2 = {
    6000: 0.070,
    7000: 0.045,
    8000: 0.098,
    9000: 0.094,
    10000: 0.066,
    11000: 0.018,
    12000: 0.049,
    13000: 0.081,
    14000: 0.029,
}


def run(*arguments: str | Path, status: int = 0):
    result = CliRunner().invoke(platform_app, [str(each) for each in arguments])
    if isinstance(result.exception, InputError):
        raise result.exception
    assert result.exit_code == status, result.output
    return result


@pytest.fixture
def table(write) -> Path:
    return write("t.csv", "name,speed,efficiency,idle_power_w\na,100,2,4\nb,50,2.5,4\n")


@pytest.mark.parametrize("command", COMMANDS, ids=[shlex.split(c)[5] for c in COMMANDS])
def test_shipped_platforms_are_made_by_their_commands(command, tmp_path, monkeypatch):
    """Every platform file is written again byte for byte by the README's command."""
    (tmp_path / "platforms").mkdir()
    for each in PLATFORMS.glob("*.csv"):
        shutil.copy(each, tmp_path / "platforms")
    monkeypatch.chdir(tmp_path)
    words = shlex.split(command)
    run(*words[2:])
    output = words[words.index("--output") + 1]
    again = (tmp_path / output).read_bytes()
    assert again == (PLATFORMS.parent / output).read_bytes()
    comment = again.decode().split("<!-- Made by:\n")[1].split("\n-->")[0]
    assert shlex.split(comment) == words


def test_every_shipped_platform_has_a_command():
    """No platform file lies there that cannot be made again, but for two of one cluster (tests of placement)."""
    made = {Path(shlex.split(command)[5]).name for command in COMMANDS}
    assert made | {"fat_tree.xml", "dragonfly.xml"} == {path.name for path in PLATFORMS.glob("*.xml")}


@pytest.mark.parametrize(
    ("name", "levels"), [("lecsa_env1.xml", (9000, 10000, 11000)), ("lecsa_env2.xml", tuple(TABLE2))]
)
def test_lecsa_environments(name, levels):
    """Algorithms A7: 90 hosts, levels in equal numbers, table 2's efficiencies, idle 4 to 12 W."""
    platform = read_platform(PLATFORMS / name)
    assert platform.master is not None
    assert len(platform) == 90
    speed = platform.speed[:, 0]
    assert Counter(speed.tolist()) == {float(level): 90 // len(levels) for level in levels}
    expected = [TABLE2[int(s)] for s in speed]
    assert platform.efficiency() == pytest.approx(expected, rel=1e-15)
    assert ((platform.idle_w >= 4) & (platform.idle_w <= 12)).all()
    assert len(np.unique(platform.idle_w)) == 90
    assert [len(set(speed[list(c.hosts)])) for c in platform.clusters] == [1] * len(levels)
    assert (np.diff(speed) < 0).any()
    assert set(platform.cores) == {1}


def test_example_ex_a():
    """EX-A: 100, 50, 25 flop/s, busy 50, 20, 5 W, idle 4 W, each host its own cluster."""
    platform = read_platform(PLATFORMS / "ex_a.xml")
    assert [host.name for host in platform.hosts] == ["h1", "h2", "h3"]
    assert platform.speed[:, 0].tolist() == [100, 50, 25]
    assert platform.busy_w[:, 0].tolist() == [50, 20, 5]
    assert platform.idle_w[:, 0].tolist() == [4, 4, 4]
    assert platform.master is None
    assert [c.hosts for c in platform.clusters] == [(0,), (1,), (2,)]


def test_green500_example():
    """Sixty hosts and a master in three clusters with links, three P-states each."""
    platform = read_platform(PLATFORMS / "green500.xml")
    assert len(platform) == 60
    assert platform.master is not None
    assert set(platform.n_pstates) == {3}
    assert [c.name for c in platform.clusters] == ["europe", "america", "asia"]
    assert [c.bandwidth for c in platform.clusters] == [1.25e9, 1.25e9, 3.125e8]
    assert platform.idle_w == pytest.approx(0.3 * platform.busy_w, rel=1e-15)


@pytest.mark.parametrize("path", sorted(PLATFORMS.glob("*.xml")), ids=lambda path: path.stem)
def test_simgrid_loads_the_shipped_platforms(path):
    """SimGrid sees the hosts that we read."""
    if not is_installed():
        pytest.skip("SimGrid is not installed")
    assert run("check", path, "--quiet").output == ""


def test_from_table_writes_and_tells(table, tmp_path):
    """The table of hosts, notes and a last line; JSON on request; nothing with --quiet."""
    output = tmp_path / "p.xml"
    told = run("from-table", table, "-o", output).output
    assert f"Wrote {output}: 2 hosts in 1 cluster." in told.replace("\n", "")
    summary = json.loads(run("from-table", table, "-o", output, "--force", "--json").output)
    assert (summary["hosts"], summary["speed_flops"]) == (2, [50.0, 100.0])
    assert run("from-table", table, "-o", output, "--force", "--quiet").output == ""


def test_links_and_units_on_the_command_line(table, tmp_path):
    """Bandwidths and latencies take SimGrid's units, speeds may do without."""
    output = tmp_path / "p.xml"
    run(
        "from-table",
        table,
        "-o",
        output,
        "--clusters",
        "2",
        "--cluster-bandwidth",
        "8Gbps,1kBps",
        "--cluster-latency",
        "2ms",
        "--speed-uniform",
        "60:0.1kf",
        "--idle-power-w",
        "1:2",
        "--pstates",
        "1:1;0.5:0.4",
        "--master",
        "--host-latency",
        "5us",
        "--seed",
        "3",
    )
    platform = read_platform(output)
    assert [c.bandwidth for c in platform.clusters] == [1e9, 1e3]
    assert [c.latency_s for c in platform.clusters] == [2e-3, 2e-3]
    assert ((platform.speed[:, 0] >= 60) & (platform.speed[:, 0] <= 100)).all()
    assert 'latency="4.9999999999999996e-06s"' in output.read_text()
    assert platform.master is not None


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--cluster-bandwidth", "10"], "needs a unit"),
        (["--cluster-bandwidth", "10furlongs"], "unknown unit"),
        (["--cluster-bandwidth", "0Bps"], "positive"),
        (["--cluster-latency", "-1s"], "positive"),
        (["--speed-levels", "1,x"], "--speed-levels"),
        (["--speed-uniform", "5"], "LO:HI"),
        (["--idle-power-w", "1:2:3"], "LO:HI"),
        (["--idle-power-w", "low"], "--idle-power-w"),
        (["--pstates", "1"], "--pstates"),
        (["--hosts", "0"], "hosts is 0"),
        (["--clusters", "moon"], "Clusters by 'moon'"),
        (["--join", "absent.tsv"], "own format"),
    ],
)
def test_bad_options_write_nothing(table, tmp_path, options, part):
    """One line of error; no file."""
    output = tmp_path / "out" / "p.xml"
    output.parent.mkdir()
    with pytest.raises(InputError, match=part) as caught:
        run("from-table", table, "-o", output, *options)
    assert "\n" not in str(caught.value)
    assert list(output.parent.iterdir()) == []


def test_existing_platforms_are_kept(table, tmp_path):
    """--force is needed to replace a file."""
    output = tmp_path / "p.xml"
    output.write_text("mine")
    with pytest.raises(InputError, match="--force"):
        run("from-table", table, "-o", output)
    assert output.read_text() == "mine"


def test_check_tells_problems_and_ends_with_1(write):
    """All problems at once, in words and as JSON."""
    path = write(
        "bad.xml",
        '<platform version="4.1"><zone id="z" routing="Full">'
        '<host id="a" speed="1f,2f"><prop id="wattage_per_state" value="1:2"/></host>'
        '<host id="b" speed="1f"/><host id="b" speed="1f"/><host id="c" speed="-1f"/>'
        "</zone></platform>",
    )
    result = run("check", path, status=1)
    flat = result.output.replace("\n", " ")
    for part in ("2 speeds but 1 wattage_per_state", "taken already", "0 or more is allowed", "0 W"):
        assert part in flat
    report = json.loads(run("check", path, "--json", status=1).output)
    assert not report["fine"]
    assert [host["name"] for host in report["hosts"]] == ["a", "b"]
    with pytest.raises(InputError, match="not well-formed"):
        run("check", write("broken.xml", "<platform"))


def test_check_tells_of_profiles(write, tmp_path):
    """Hosts that change with time are a note; what is wrong with a profile has its line."""
    (tmp_path / "p.txt").write_text("0 1\n5 0.5\n")
    watts = '<prop id="wattage_per_state" value="1:2"/>'
    path = write(
        "p.xml",
        '<platform version="4.1">\n<zone id="z" routing="Full">\n'
        f'<host id="a" speed="1f" speed_file="p.txt" state_file="p.txt">{watts}</host>\n'
        f'<host id="b" speed="1f" state_file="">{watts}</host>\n'
        f'<host id="c" speed="1f" state_file="none.txt">{watts}</host>\n'
        '<link id="l" bandwidth="1Bps" latency="1s" state_file="p.txt" latency_file="p.txt"/>\n'
        '<trace id="t" periodicity="1.0">0.0 0</trace>\n'
        '<trace_connect kind="SPEED" trace="t" element="b"/>\n'
        '<trace_connect kind="SPEED" trace="u" element="b"/>\n'
        "</zone>\n</platform>",
    )
    report = json.loads(run("check", path, "--json", status=1).output)
    found = [each for each in report["problems"] if each.startswith(str(path))]
    assert [each.removeprefix(f"{path}, ").split(":")[0] for each in found] == ["line 5", "line 8", "line 9"]
    for problem, word in zip(found, ("none.txt", "a speed of 0", "trace 'u'"), strict=True):
        assert word in problem
    assert "1 host(s) with a speed profile, 1 with a state profile" in report["notes"][-1]
    assert [host["name"] for host in report["hosts"]] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("name", "join", "hosts"),
    [
        ("green500_top_201111.csv", None, 500),
        ("green500_top_201111.csv", "TOP500_201111.tsv", 500),
        ("TOP500_201111.tsv", None, 283),
        ("green500_top_201611.csv", None, 500),
        ("green500_top_201711.xlsx", None, 305),
        ("green500_top_202411.xlsx", None, 199),
    ],
)
def test_real_lists_become_platforms_that_simgrid_loads(shared_data, tmp_path, name, join, hosts):
    """The two CSV, the two spreadsheets, the TSV alone and joined: loaded with energy."""
    output = tmp_path / "p.xml"
    joined = ["--join", shared_data(f"green500/{join}")] if join else []
    run("from-table", shared_data(f"green500/{name}"), *joined, "-o", output, "--quiet")
    report = check_platform_file(output)
    assert (len(report.platform), report.problems) == (hosts, ())
    if not is_installed():
        pytest.skip("SimGrid is not installed: the platform was checked without it")
    answer = inspect_platform(output)
    assert (answer.status, len(answer.hosts)) == ("loaded", hosts)
    assert all("wattage_per_state" in host.properties for host in answer.hosts)


def test_the_help_has_examples():
    """Both commands explain themselves and show how they are used."""
    for command in ("from-table", "check"):
        told = " ".join(run(command, "--help").output.split())
        assert f"gridsched platform {command}" in told
        assert "Examples:" in told


ROOT = PLATFORMS.parent


def test_check_tells_the_network():
    """A route is its links' latencies and least bandwidth: campus has 50 us, 1 ms, 1 Gbps."""
    if not is_installed():
        pytest.skip("SimGrid is not installed")
    report = json.loads(run("check", ROOT / "examples/campus.xml", "--json").output)
    links = {link["name"]: link for link in report["links"]}
    assert len(links) == 13
    assert links["backbone"] == {
        "name": "backbone",
        "bandwidth": 125e6,
        "latency_s": 0.001,
        "wattage_range": None,
        "sharing_policy": "SHARED",
    }
    routes = {(route["source"], route["target"]): route for route in report["routes"]}
    assert routes["old-1", "new-1"]["links"] == ["old_link_1_UP", "backbone", "new_link_1_DOWN"]
    assert routes["old-1", "new-1"]["latency_s"] == pytest.approx(1.1e-3, rel=1e-12)
    assert routes["frontend", "old-1"]["bandwidth"] == 125e6


def test_check_reads_a_deployment_beside_the_platform(write):
    """An error in it is a problem; a deployment in the platform's place is named as one."""
    campus, deployment = ROOT / "examples/campus.xml", ROOT / "examples/campus_deployment.xml"
    assert "3 workers on 6" in run("check", campus, "--deployment", deployment).output
    wrong = write("d.xml", deployment.read_text().replace("new-1", "new-9"))
    assert "no host 'new-9'" in run("check", campus, "--deployment", wrong, status=1).output
    with pytest.raises(InputError, match="--deployment"):
        run("check", deployment)


def test_a_missing_document_type_is_told(write):
    """SimGrid's own message speaks of a character in a prolog."""
    if not is_installed():
        pytest.skip("SimGrid is not installed")
    path = write("p.xml", '<platform version="4.1"><host id="a" speed="1f"/></platform>')
    assert "needs the line <!DOCTYPE platform SYSTEM" in inspect_platform(path).message


def test_what_was_taken_is_told_row_by_row(write):
    """2 GFlops/W are listed beside 100 TFlop/s and 45 kW: 2.22 by the power, 11 % more."""
    list_file = write("list.csv", "Rank,Name,Rmax [TFlop/s],Power (kW),GFlops/W\n1,a,100,50,2\n2,b,100,45,2\n")
    for trust, watts in (("efficiency", 50_000), ("power", 45_000)):
        output = list_file.with_suffix(f".{trust}.xml")
        summary = json.loads(run("from-table", list_file, "--trust", trust, "-o", output, "--json").output)
        assert [(row["rank"], row["name"], row["taken"]) for row in summary["settled"]] == [(2, "b", trust)]
        assert read_platform(output).hosts[1].pstates[0].busy_w == pytest.approx(watts)
