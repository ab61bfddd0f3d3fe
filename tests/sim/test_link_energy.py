"""Energies of hosts, links and wireless cells that are known by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from sim_cases import ENERGY_BOOT, ENERGY_EXEC, HEAD, consumed_energy_j, executions, largest_difference, on_simgrid

from gridsched.drivers.simgrid_library import load_simgrid
from gridsched.drivers.simulated_platform import SimulatedPlatform
from gridsched.errors import InputError
from gridsched.model.tasks import make_tasks
from gridsched.platform_io.check import check_platform_file
from gridsched.platform_io.xml_reader import read_platform
from gridsched.sim.client import server

# SimGrid's own known energy answers (its examples energy-exec and energy-boot), by our runtime.


def act_alone(path: Path, text: str, on: str, act) -> dict[str, float]:
    """Run one actor on a platform, in a child of our server; return the joules."""
    path.write_text(text)
    platform = read_platform(path)

    def simulate() -> dict[str, float]:
        simulated = SimulatedPlatform(platform, path)
        simulated.host_named[on].add_actor("alone", act, simulated)
        simulated.engine.run()
        return {host.name: consumed_energy_j(host.name) for host in platform.hosts}

    return server().call(simulate, timeout_s=30.0)[0]


def execute_and_switch(simulated: SimulatedPlatform) -> None:
    """The actor of energy-exec: idle 10 s, 100 Mflop, P-state 2, 100 Mflop, idle 4 + 10 s."""
    this_actor = load_simgrid().this_actor
    host = simulated.host_named["MyHost1"]
    this_actor.sleep_for(10)
    assert consumed_energy_j("MyHost1") == 1000.0
    this_actor.execute(100e6)
    host.pstate = 2
    this_actor.execute(100e6)
    this_actor.sleep_for(4)
    simulated.host_named["MyHost2"].turn_off()
    this_actor.sleep_for(10)


def shut_down_and_boot(simulated: SimulatedPlatform) -> None:
    """The actor of energy-boot: P-state 4 is the way down (7 s), P-state 3 the way up (150 s)."""
    this_actor = load_simgrid().this_actor
    host = simulated.host_named["MyHost1"]
    this_actor.sleep_for(10)
    host.pstate = 4
    this_actor.sleep_for(7)
    host.pstate = 0
    host.turn_off()
    this_actor.sleep_for(10)
    host.pstate = 3
    host.turn_on()
    this_actor.sleep_for(150)
    host.pstate = 0


def test_energy_exec(tmp_path):
    """2905, 2100 and 3000 J, 8005 J in total."""
    joules = act_alone(tmp_path / "exec.xml", ENERGY_EXEC, "MyHost1", execute_and_switch)
    expected = {"MyHost1": 2905.0, "MyHost2": 2100.0, "MyHost3": 3000.0}
    assert joules == pytest.approx(expected, rel=1e-12)
    assert sum(joules.values()) == pytest.approx(8005.0, rel=1e-12)


def test_energy_boot(tmp_path):
    """37520 J for the host that boots and the one that watches it."""
    joules = act_alone(tmp_path / "boot.xml", ENERGY_BOOT, "MyHost2", shut_down_and_boot)
    assert joules["MyHost2"] == pytest.approx(177 * 100.0, rel=1e-12)
    assert sum(joules.values()) == pytest.approx(37520.0, rel=1e-12)


# The energy of links by SimGrid's plugin: its own known answers, and what it counts.

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "platforms"
#: Of SimGrid's test energy-link.
CM02 = ("network/model:CM02", "network/crosstraffic:no")


def write_links(path: Path, ranges: list[str | None], latency_s=0.0, property_name="wattage_range"):
    """Write workers w1, w2, ... of 10 flop/s on links l1, l2, ... of 10 B/s behind a link l0.

    `ranges` holds the power range of l0, l1, ...; all routes cross l0, of 20 B/s.
    """
    text = HEAD
    for k, watts in enumerate(ranges):
        power = f'<prop id="{property_name}" value="{watts}"/>' if watts else ""
        bandwidth = 10 if k else 20
        text += f'<link id="l{k}" bandwidth="{bandwidth}Bps" latency="{latency_s}s">{power}</link>'
    for k in range(1, len(ranges)):
        text += f'<host id="w{k}" speed="10f"><prop id="wattage_per_state" value="1:2"/></host>'
    for k in range(1, len(ranges)):
        text += f'<route src="m" dst="w{k}"><link_ctn id="l0"/><link_ctn id="l{k}"/></route>'
    path.write_text(f"{text}</zone></platform>")
    return path


# ---------------------------------------------------------------------- known answers


@pytest.mark.parametrize(("size", "arrives", "joules"), [(25000, 10.25, 10.75), (5e7, 510, 1510)])
def test_known_answers_of_simgrid(tmp_path, size, arrives, joules):
    """SimGrid's test energy-link: 10.75 J and 1510 J when the message that leaves at 10 is there.

    The task behind it executes for 1 s more, in which the link is idle at 1 W.
    """
    path = tmp_path / "p.xml"
    path.write_text(
        f'{HEAD}<host id="MyHost2" speed="100Mf"><prop id="wattage_per_state" value="100:200"/>'
        '</host><link id="bus" bandwidth="100kBps" latency="0"><prop id="wattage_range" '
        'value="1:3"/></link><route src="m" dst="MyHost2"><link_ctn id="bus"/></route>'
        "</zone></platform>"
    )
    result = on_simgrid(path, make_tasks([1e8], [10.0], input_bytes=size))
    assert executions(result) == [(0, 0, pytest.approx(arrives), pytest.approx(arrives + 1))]
    assert result.links_j == {"bus": pytest.approx(joules + 1, rel=1e-12)}
    assert result.summary()["energy_links_j"] == pytest.approx(joules + 1, rel=1e-12)
    assert largest_difference(result) <= 1e-9


def test_known_answer_on_simgrids_own_platform(tmp_path):
    """The same on the platform file of SimGrid's test, with a deployment file."""
    if not SHARED.is_dir():
        pytest.skip("the folder 'shared' with the platforms is not beside the checkout")
    deployment = tmp_path / "d.xml"
    deployment.write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
        '<platform version="4.1"><actor host="MyHost1" function="master"/>'
        '<actor host="MyHost2" function="worker"><argument value="MyHost1"/></actor></platform>'
    )
    result = on_simgrid(
        SHARED / "simgrid_energy_platform.xml",
        make_tasks([1e8], [10.0], input_bytes=25000),
        deployment=deployment,
        cfg=CM02,
    )
    assert result.links_j == {"bus": pytest.approx(11.75, rel=1e-12)}


# ---------------------------------------------------------------------- what is counted


def test_idle_power_counts_for_the_whole_run(tmp_path):
    """Unused links, and used ones before and after, draw their idle power to the end."""
    path = write_links(tmp_path / "p.xml", [None, "1:3", "2:7"])
    result = on_simgrid(path, make_tasks([100.0], input_bytes=100.0, output_bytes=50.0))
    # 10 s in, 10 s of execution, 5 s out: 25 s
    assert result.trace.horizon_s == pytest.approx(25)
    assert result.links_j == {"l1": pytest.approx(25 * 1 + 15 * 2), "l2": pytest.approx(25 * 2)}


def test_load_is_the_share_of_the_bandwidth(tmp_path):
    """The common link of 20 B/s is half loaded by one message of 10 B/s."""
    path = write_links(tmp_path / "p.xml", ["0:4", None])
    result = on_simgrid(path, make_tasks([100.0], input_bytes=100.0))
    assert result.links_j == {"l0": pytest.approx(10 * 2)}


def test_latency_is_charged_as_traffic(tmp_path):
    """A quirk of the plugin: 2 s of latency on two links cost as much as 4 s of data."""
    path = write_links(tmp_path / "p.xml", [None, "1:3"], latency_s=2.0)
    result = on_simgrid(path, make_tasks([100.0], input_bytes=100.0))
    assert result.trace.horizon_s == pytest.approx(4 + 10 + 10)
    assert result.links_j == {"l1": pytest.approx(24 * 1 + 14 * 2)}


def test_a_rate_that_changed_elsewhere_is_charged_at_its_last_value(tmp_path):
    """A quirk of the plugin: l1 is full to 5 s and then slowed down by others on l0."""
    path = write_links(tmp_path / "p.xml", [None, "0:3", None, None])
    tasks = make_tasks([10.0] * 3, [0, 5, 5], input_bytes=[100, 100, 100])
    result = on_simgrid(path, tasks)
    # three messages share 20 B/s from 5 s on: 50 B of the first take 7.5 s, at 2/3 of l1
    assert executions(result)[0][2] == pytest.approx(12.5)
    assert result.links_j == {"l1": pytest.approx(12.5 * 3 * 2 / 3)}  # exact: 5 * 3 + 7.5 * 2


# ---------------------------------------------------------------------- where it is absent


@pytest.mark.parametrize("changes", [{"network": "none"}, {"network": "none", "driver": "reference"}])
def test_no_messages_no_link_energy(tmp_path, changes):
    """Without a simulated network links are not metered, and the column is absent."""
    path = write_links(tmp_path / "p.xml", [None, "1:3"])
    result = on_simgrid(path, make_tasks([100.0], input_bytes=100.0), **changes)
    assert result.links_j is None
    assert "energy_links_j" not in result.summary()


def test_links_without_power(tmp_path):
    """A platform whose links have no power range has no such column."""
    path = write_links(tmp_path / "p.xml", [None, None])
    assert on_simgrid(path, make_tasks([100.0], input_bytes=100.0)).links_j is None


def test_metering_changes_no_time(tmp_path):
    """Executions are the same, to the last bit, with and without metered links."""
    tasks = make_tasks([100.0, 30.0, 70.0, 55.0, 10.0], input_bytes=40.0, output_bytes=20.0)
    for scheduler in ("wq", "wqr", "lecsa", "mct"):
        runs = [
            on_simgrid(write_links(tmp_path / f"{scheduler}{k}.xml", ranges), tasks, scheduler)
            for k, ranges in enumerate(([None] * 4, ["1:3"] * 4))
        ]
        assert executions(runs[0]) == executions(runs[1])
        assert runs[0].trace.horizon_s == runs[1].trace.horizon_s
        assert runs[0].links_j is None
        assert set(runs[1].links_j) == {"l0", "l1", "l2", "l3"}


def test_hosts_are_switched_off_while_links_are_metered(tmp_path):
    """LECSA switches hosts off; their actors end with no receive pending (SimGrid would crash)."""
    path = write_links(tmp_path / "p.xml", ["1:3"] * 4)
    tasks = make_tasks([100.0, 30.0], input_bytes=40.0, output_bytes=[20.0, 0.0])
    result = on_simgrid(path, tasks, "lecsa")
    assert result.summary()["tasks_finished"] == 2
    assert not result.trace.host_changes["is_on"].all()
    assert largest_difference(result) <= 1e-9


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize("watts", ["3", "a:b", "1:2:3", "-1:2", "1:nan", "1:2,3:4"])
def test_bad_range(tmp_path, watts):
    """A range that SimGrid would die of is one clear line that names the link."""
    path = write_links(tmp_path / "p.xml", [None, watts])
    with pytest.raises(InputError, match=rf"'l1'.*wattage_range.*'{watts}'"):
        on_simgrid(path, make_tasks([100.0], input_bytes=100.0))


def test_the_old_name(tmp_path):
    """SimGrid still takes watt_range, and so do we."""
    path = write_links(tmp_path / "p.xml", [None, "1:3"], property_name="watt_range")
    result = on_simgrid(path, make_tasks([100.0], input_bytes=100.0))
    assert result.links_j == {"l1": pytest.approx(20 + 20)}
    assert "rename" in result.log


# Messages in Wi-Fi zones, with times computed by hand.

#: Models without SimGrid's factors, so that bytes over bandwidth are the time. By default a medium
#: carries less than its bandwidth.
PLAIN = (
    "network/bandwidth-factor:1",
    "network/latency-factor:1",
    "network/weight-S:0",
    "network/crosstraffic:0",
    "network/TCP-gamma:0",
)
WATTS = '<prop id="wattage_per_state" value="1:2:3"/>'


def write_zone(path: Path, rates=(None, None), routing="Wifi") -> Path:
    """Write a Wi-Fi zone with a station for each of `rates`, and a master behind a fast link."""
    stations = "\n".join(
        f'<host id="s{k}" speed="10f">{WATTS}'
        + ("" if rate is None else f'<prop id="wifi_rate" value="{rate}"/>')
        + "</host>"
        for k, rate in enumerate(rates)
    )
    path.write_text(
        f"""<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="world" routing="Full">
    <zone id="air" routing="{routing}">
      <prop id="access_point" value="ap"/>
{stations}
      <link id="medium" sharing_policy="WIFI" bandwidth="20Bps,10Bps,5Bps" latency="0ms"/>
      <router id="ap"/>
    </zone>
    <zone id="wire" routing="Full">
      <host id="m" speed="10f"><prop id="role" value="master"/>{WATTS}</host>
    </zone>
    <link id="cable" bandwidth="1MBps" latency="0ms"/>
    <zoneRoute src="air" dst="wire" gw_src="ap" gw_dst="m"><link_ctn id="cable"/></zoneRoute>
  </zone>
</platform>
"""
    )
    return path


@pytest.mark.parametrize(("rate", "arrives"), [(None, 5.0), (0, 5.0), (1, 10.0), (2, 20.0)])
def test_the_rate_of_a_station(tmp_path, rate, arrives):
    """Input, 10 s of execution, and an output that takes half of the input's time."""
    path = write_zone(tmp_path / "p.xml", [rate])
    tasks = make_tasks([100.0], input_bytes=100.0, output_bytes=50.0)
    result = on_simgrid(path, tasks, cfg=PLAIN)
    assert executions(result) == [pytest.approx((0, 0, arrives, arrives + 10), rel=1e-9)]
    assert result.trace.horizon_s == pytest.approx(1.5 * arrives + 10, rel=1e-9)
    assert largest_difference(result) <= 1e-9


def test_stations_share_the_medium(tmp_path):
    """Of two messages each has the same bandwidth b, with b/20 + b/10 = 1: 100 B take 15 s.

    Zones are spelled WIFI, too.
    """
    path = write_zone(tmp_path / "p.xml", [0, 1], routing="WIFI")
    result = on_simgrid(path, make_tasks([100.0] * 2, input_bytes=100.0), cfg=PLAIN)
    assert [row[2] for row in executions(result)] == pytest.approx([15.0, 15.0], rel=1e-9)


@pytest.mark.parametrize("rate", ["3", "-1", "fast", "9" * 5000])
def test_a_rate_that_the_link_has_not(tmp_path, rate):
    """One line with host, link and what is allowed; the check finds it, too."""
    path = write_zone(tmp_path / "p.xml", [None, rate])
    with pytest.raises(InputError, match=rf"wifi_rate.*'{rate}'.*'medium'"):
        on_simgrid(path, make_tasks([100.0], input_bytes=100.0))
    assert "host 's1': wifi_rate" in check_platform_file(path).problems[0]
