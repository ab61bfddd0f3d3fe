"""SimGrid itself on what we write; skipped where SimGrid is not installed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gridsched
from gridsched.drivers.simgrid_library import is_installed
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.platform_io.check import check_platform_file, with_inspection
from gridsched.platform_io.simgrid_view import Inspection, SimGridHost
from gridsched.platform_io.xml_writer import NetworkLinks, write_platform
from gridsched.sim import inspection
from gridsched.sim.inspection import inspect_platform

needs_simgrid = pytest.mark.skipif(not is_installed(), reason="SimGrid is not installed")

# Sends 0 and then 100 bytes from the first host of argv to the second; prints the arrival times
# and the number of links between any two hosts.
_TRANSFER = """
import json, os, sys
from gridsched.drivers.simgrid_library import load_simgrid
simgrid = load_simgrid()
engine = simgrid.Engine(["t", "--log=root.thresh:error"])
engine.load_platform(sys.argv[1])
engine.netzone_root.seal()
hosts = engine.all_hosts
links = [len(a.route_to(b)[0]) for a in hosts for b in hosts if a is not b]
times = []
box = simgrid.Mailbox.by_name("m")
def send():
    for size in (0, 100):
        box.put("x", size)
def receive():
    for _ in range(2):
        box.get()
        times.append(simgrid.Engine.clock)
simgrid.Host.by_name(sys.argv[2]).add_actor("s", send)
simgrid.Host.by_name(sys.argv[3]).add_actor("r", receive)
engine.run()
print(json.dumps([times, min(links), max(links)]))
sys.stdout.flush()
os._exit(0)
"""


def transfer(path: Path, source: str, target: str):
    package = str(Path(gridsched.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", _TRANSFER, str(path), source, target],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        env={**os.environ, "PYTHONPATH": package},
    )
    return json.loads(done.stdout)


def host(name: str, speed: float = 100.0) -> Host:
    return Host(name, (PState(speed, 1.0, 2.0, 2.0), PState(speed / 2, 0.5, 1.0, 1.0)))


PLATFORM = Platform(
    (host("a<&\"'é"), host("b"), host("hub"), host("d")),
    (Cluster("hub", (3, 0), 10.0, 0.5), Cluster("x", (1,)), Cluster("d", (2,), 1e6, 0.25)),
    host("master", 1e9),
)


@needs_simgrid
def test_simgrid_agrees_and_routes_everywhere(tmp_path):
    """Names, cores and speeds are the same, and all pairs of hosts are joined by links."""
    path = tmp_path / "p.xml"
    write_platform(PLATFORM, path, command="x --y")
    report = with_inspection(check_platform_file(path), inspect_platform(path))
    assert report.problems == ()
    assert "5 hosts" in report.simgrid
    times, fewest, _ = transfer(path, "master", "d")
    assert fewest >= 1
    assert times == pytest.approx([0.5, 0.5 + 0.5 + 100 / 10.0], rel=1e-12)


@needs_simgrid
def test_host_and_master_links_add_up(tmp_path):
    """A message lasts the sum of the latencies plus size over the least bandwidth."""
    path = tmp_path / "p.xml"
    write_platform(PLATFORM, path, command="x", network=NetworkLinks(5.0, 0.125, 50.0, 1.0))
    times, _, most = transfer(path, "master", "hub")
    assert times[0] == pytest.approx(1.0 + 0.25 + 0.125, rel=1e-12)
    assert times[1] - times[0] == pytest.approx(1.375 + 100 / 5.0, rel=1e-12)
    assert most == 4


@needs_simgrid
def test_many_clusters_load_fast_enough_to_be_used(tmp_path):
    """Two thousand clusters of one host load and are inspected."""
    hosts = tuple(host(f"h{k}", 1.0 + k) for k in range(2000))
    path = tmp_path / "p.xml"
    write_platform(Platform(hosts), path, command="x")
    answer = inspect_platform(path)
    assert (answer.status, len(answer.hosts)) == ("loaded", 2000)


def test_without_simgrid_the_inspection_is_skipped(monkeypatch, tmp_path):
    """The report explains in one line how to get SimGrid and stays fine."""
    monkeypatch.setattr(inspection, "is_installed", lambda: False)
    path = tmp_path / "p.xml"
    write_platform(PLATFORM, path, command="x")
    report = with_inspection(check_platform_file(path), inspect_platform(path))
    assert report.is_fine
    assert report.simgrid.startswith("skipped: SimGrid is not installed")


def aborting() -> None:
    """Complain as SimGrid does, and abort."""
    sys.stderr.write("[0.0] a.cpp:1: [root/CRITICAL] No such luck\nBacktrace\n")
    sys.stderr.flush()
    os.abort()


def failing() -> None:
    """Raise an unexpected error."""
    raise ImportError("x")


@needs_simgrid
@pytest.mark.parametrize(
    ("act", "part"),
    [
        (aborting, "No such luck"),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "SIGSEGV"),
        (lambda: os._exit(1), "exit status 1"),
        (failing, "ImportError: x"),
        (lambda: time.sleep(300), "no answer within 2 s"),
    ],
)
def test_every_way_to_die_is_a_reason(act, part, monkeypatch, tmp_path):
    """Aborts, signals, exceptions and silence of the process become one line."""
    monkeypatch.setattr(inspection, "look_at", lambda *_: act())
    (tmp_path / "p.xml").write_text('<platform version="4.1"/>')
    limit_s = 2.0 if part.startswith("no answer") else 60.0
    answer = inspect_platform(tmp_path / "p.xml", timeout_s=limit_s)
    assert answer.status == "refused"
    assert part in answer.message


FINE = {"batsim_cluster_energy_128.xml": 128, "simgrid_energy_platform.xml": 3}
BAD = {
    "batsim_energy_platform.xml": (
        5,
        ["'Venus' has 7 speeds but 6", "'Earth' has 9 speeds but 6"],
        "6 energetic profiles for 7 pstates",
    ),
    "batsim_graphene.xml": (144, ["144 host(s)", "no wattage_per_state"], None),
    "caos_scheduler_miniHPC_energy.xml": (22, ["old property watt_per_state", "0 W"], None),
}


@pytest.mark.parametrize("name", [*FINE, *BAD])
def test_other_peoples_platforms(shared_data, name):
    """Each of the five real files gets a right and useful answer."""
    path = shared_data(f"platforms/{name}")
    report = check_platform_file(path)
    if name in FINE:
        assert (len(report.platform.hosts), report.problems) == (FINE[name], ())
        parts, reason = [], None
    else:
        number, parts, reason = BAD[name]
        assert len(report.platform.hosts) == number
        assert not report.is_fine
    assert all(part in "\n".join(report.problems) for part in parts)
    if not is_installed():
        pytest.skip("SimGrid is not installed: its own answer was not compared")
    merged = with_inspection(report, inspect_platform(path))
    added = merged.problems[len(report.problems) :]
    assert bool(added) == (reason is not None)
    assert reason is None or reason in added[0]


def test_master_of_batsims_cluster(shared_data):
    """The role property of a cluster of one host makes that host the master."""
    report = check_platform_file(shared_data("platforms/batsim_cluster_energy_128.xml"))
    assert report.platform.master is not None
    assert report.platform.master.name == "master_host0"
    assert len(report.platform.master.pstates) == 16


def test_differences_are_problems(tmp_path):
    """Differences between SimGrid's view and our reader's are reported by host."""
    path = tmp_path / "p.xml"
    write_platform(PLATFORM, path, command="x")
    report = check_platform_file(path)
    seen = [
        SimGridHost(h.name, h.cores, tuple(s.speed for s in h.pstates), {}) for h in (*PLATFORM.hosts, PLATFORM.master)
    ]
    assert with_inspection(report, Inspection("loaded", hosts=tuple(seen))).is_fine
    seen[1] = SimGridHost("b", 2, (100.0,), {})
    seen[2] = SimGridHost("other", 1, (1.0,), {})
    problems = with_inspection(report, Inspection("loaded", hosts=tuple(seen))).problems
    assert len(problems) == 3
    assert any("'b'" in text and "2" in text for text in problems)
    assert any("'other'" in text for text in problems)
    assert any("'hub'" in text for text in problems)


UNITS = [
    "1.1f",
    "2.3kf",
    "83.67952522255192Mf",
    "0.7Gf",
    "1e-9Mf",
    "3Tf",
    "0.1Pf",
    "1.7Ef",
    "16.673E9flops",
    "1.3kiloflops",
    "0.3megaflops",
    "9.9teraflops",
    "7",
]


@needs_simgrid
def test_everything_simgrid_reads_is_read_alike(write):
    """Units to the last bit, all four topologies, cabinets, peers, nested zones, quoting."""
    common = 'speed="1.1Gf,0.3Gf" core="2" bw="1GBps" lat="1us"'
    hosts = "".join(f'<host id="u{k}" speed=" {u}, 1f"/>' for k, u in enumerate(UNITS))
    path = write(
        "all.xml",
        f"""
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<AS id="root" routing="Floyd">
  <zone id="units" routing="Full">{hosts}<host id="&lt;&amp;&quot;é" speed="1f" core="3"/></zone>
  <cluster id="flat" prefix="f-" suffix="&gt;" radical="0-2,7" {common} bb_bw="1GBps"/>
  <cluster id="torus" prefix="t" suffix="" radical="0-11" topology="TORUS"
           topo_parameters="2,2,2" {common}/>
  <cluster id="tree" prefix="e" suffix="" radical="0-20" topology="FAT_TREE"
           topo_parameters="2;4,4;1,2;1,2" {common}/>
  <cluster id="fly" prefix="d" suffix="" radical="0-99" topology="DRAGONFLY"
           topo_parameters="3,4;3,2;3,1;2" {common}/>
  <zone id="star" routing="Cluster">
    <cabinet id="cab" prefix="k" suffix="" radical="5-6" speed="2Gf" bw="1GBps" lat="1us"/>
    <backbone id="bb" bandwidth="1GBps" latency="0"/>
  </zone>
  <zone id="viv" routing="Vivaldi">
    <peer id="p" speed="3Gf" bw_in="1MBps" bw_out="1MBps" coordinates="0 0 0"/>
  </zone>
</AS>
</platform>""".lstrip("\n"),
    )
    report = with_inspection(check_platform_file(path), inspect_platform(path))
    assert len(report.platform.hosts) == len(UNITS) + 1 + 4 + 8 + 16 + 3 * 3 * 3 * 2 + 2 + 1
    gaps = [text for text in report.problems if "no wattage_per_state" in text]
    assert list(report.problems) == gaps
    assert report.simgrid.startswith("loads it")


def test_a_zone_without_routes_is_loaded(tmp_path):
    """SimGrid aborts where it looks for a way there: the file is no worse for it."""
    path = tmp_path / "none.xml"
    path.write_text(
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        '<zone id="z" routing="None"><host id="a" speed="1f"/><host id="b" speed="1f"/></zone>'
        "</platform>"
    )
    answer = inspect_platform(path, [("a", "b")])
    assert (answer.status, [host.name for host in answer.hosts]) == ("loaded", ["a", "b"])
    assert answer.routes == ()
    assert "looks for a route from 'a' to 'b': There can't be route" in answer.warnings[0]


@needs_simgrid
def test_no_module_beside_a_platform_file_is_run(tmp_path, monkeypatch):
    """Who checks a file in the folder that somebody sent runs none of the other files there."""
    for name in ("json", "re", "simgrid", "numpy", "gridsched"):
        (tmp_path / f"{name}.py").write_text("open('was_run', 'w').close()\nraise SystemExit\n")
    file = Path(__file__).parents[2] / "platforms" / "ex_a.xml"
    (tmp_path / "p.xml").write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    assert inspect_platform("p.xml").status == "loaded"
    assert not (tmp_path / "was_run").exists()
