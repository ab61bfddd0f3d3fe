"""Writing and editing platform XML."""

from __future__ import annotations

import math
import shlex
import string
from dataclasses import replace
from pathlib import Path

import pytest
from cli_cases import platform_text, zone_xml
from hypothesis import given
from hypothesis import strategies as st

from gridsched.drivers.simgrid_library import is_installed
from gridsched.errors import InputError
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.platform_io.check import check_platform_file
from gridsched.platform_io.overrides import PowerOverride, wattage_text, with_power
from gridsched.platform_io.xml_document import read_document
from gridsched.platform_io.xml_edit import add_power
from gridsched.platform_io.xml_reader import read_platform
from gridsched.platform_io.xml_writer import NetworkLinks, comment_text, platform_xml, write_platform
from gridsched.sim.inspection import inspect_platform

watts = st.floats(0, 1e9)
positive = st.floats(1e-6, 1e17)
names = st.text(st.sampled_from("ab-_.é<>&\"' \t1"), min_size=1, max_size=6)


@st.composite
def hosts(draw, name: str) -> Host:
    has_energy = draw(st.booleans())
    watt = watts if has_energy else st.just(0.0)
    states = draw(st.lists(st.builds(PState, positive, watt, watt, watt), min_size=1, max_size=3))
    embodied_kg, lifetime_years = draw(st.sampled_from([(0.0, 0.0), (0.0, 4.0), (1300.5, 4.25)]))
    return Host(
        name,
        tuple(states),
        draw(st.integers(1, 64)),
        draw(watt),
        draw(st.sampled_from([0.0, 12.5])),
        has_energy,
        embodied_kg=embodied_kg,
        lifetime_years=lifetime_years,
    )


@st.composite
def platforms(draw) -> Platform:
    chosen = draw(st.lists(names, min_size=1, max_size=7, unique=True))
    everyone = [draw(hosts(name)) for name in chosen]
    master = everyone.pop() if len(everyone) > 1 and draw(st.booleans()) else None
    order = draw(st.permutations(range(len(everyone))))
    cuts = sorted(draw(st.sets(st.integers(1, len(everyone)), max_size=3)) | {len(everyone)})
    uplinks = st.sampled_from([(math.inf, 0.0), (math.inf, 0.25), (1.25e9 / 3, 0.0), (10.0, 0.1)])
    clusters = [
        Cluster(draw(names), tuple(order[start:stop]), *draw(uplinks))
        for start, stop in zip([0, *cuts], cuts, strict=False)
    ]
    return Platform(tuple(everyone), tuple(clusters), master)


@given(platforms(), st.sampled_from([None, NetworkLinks(1e9, 1e-6, 2e9, 1e-3)]))
def test_reading_back_gives_the_same_platform(tmp_path_factory, platform, network):
    """Every speed, power, name, cluster and order survives exactly."""
    path = tmp_path_factory.mktemp("p") / "p.xml"
    write_platform(platform, path, command="gridsched x --y", network=network)
    assert read_platform(path) == replace(platform, name=str(path))


def test_a_platform_without_clusters_keeps_each_host_alone(tmp_path):
    """A cluster may be called as its host although SimGrid's ids must differ."""
    platform = Platform((Host("h1", (PState(1.0),)), Host("h2", (PState(2.0),))))
    write_platform(platform, tmp_path / "p.xml", command="x")
    assert [c.name for c in read_platform(tmp_path / "p.xml").clusters] == ["h1", "h2"]


@given(st.lists(st.text(string.ascii_letters + "- '\"\\$*", max_size=8).map(lambda t: f"--{t}"), max_size=5))
def test_comments_hold_any_command_and_a_shell_reads_it(words):
    """No two hyphens meet, and splitting the comment as a shell does gives the command."""
    text = comment_text(shlex.join(words))
    assert "--" not in text
    assert shlex.split(text) == words


def test_the_command_stands_in_the_comment(tmp_path):
    """The file carries its command and stays well-formed whatever that is."""
    path = tmp_path / "p.xml"
    platform = Platform((Host("a", (PState(1.0),)),))
    write_platform(platform, path, command="gridsched --hosts 3 -- 'x--y' \x07 -")
    assert "-\\-hosts 3" in path.read_text()
    assert read_document(path).tag == "platform"


def test_existing_files_are_kept(tmp_path):
    """Only force replaces a file; nothing is left beside it."""
    path = tmp_path / "p.xml"
    path.write_text("precious")
    platform = Platform((Host("a", (PState(1.0),)),))
    with pytest.raises(InputError, match="--force"):
        write_platform(platform, path, command="x")
    assert path.read_text() == "precious"
    write_platform(platform, path, command="x", force=True)
    assert path.read_text() == platform_xml(platform, command="x")
    assert [each.name for each in tmp_path.iterdir()] == ["p.xml"]
    with pytest.raises(InputError, match="cannot be written"):
        write_platform(platform, tmp_path / "no" / "p.xml", command="x")


ONE = Host("a", (PState(1.0),))


@pytest.mark.parametrize(
    ("platform", "part"),
    [
        (Platform(()), "without computing hosts"),
        (Platform((ONE, replace(ONE, cores=2))), "two hosts"),
        (Platform((replace(ONE, pstates=(PState(0.0),)),)), "above 0"),
        (Platform((replace(ONE, pstates=(PState(1.0, -1.0),)),)), "0 W or more"),
        (Platform((replace(ONE, off_w=math.nan),)), "0 W or more"),
        (Platform((replace(ONE, name="a\x01"),)), "name"),
        (Platform((replace(ONE, name=""),)), "name"),
        (Platform((ONE,), (Cluster("c", (0,)), Cluster("d", ()))), "holds no host"),
        (Platform((ONE,), (Cluster("c", (0,), 0.0),)), "bandwidth"),
        (Platform((ONE,), bystanders=(replace(ONE, name="b"),)), "compute nothing"),
    ],
)
def test_what_simgrid_cannot_load_is_not_written(tmp_path, platform, part):
    """The writer refuses it in one line and leaves no file."""
    with pytest.raises(InputError, match=part):
        write_platform(platform, tmp_path / "p.xml", command="x")
    assert list(tmp_path.iterdir()) == []


# Properties that say what P-states of speed 0 are for.

BOTH = {"boot_pstate": "2", "boot_time_s": "5", "shutdown_pstate": "3", "shutdown_time_s": "2"}
WATTS = "10:20:40, 8:20, 50:60, 30:30"


def host_xml(speed: str = "100f,50f,0f,0f", watts: str | None = WATTS, pstate="0", **properties):
    """Return a platform of one host with these properties, but for those that are None."""
    found = {"wattage_per_state": watts, **properties}
    props = "".join(f'<prop id="{name}" value="{value}"/>' for name, value in found.items() if value is not None)
    return zone_xml(f'<host id="a" speed="{speed}" pstate="{pstate}">{props}</host>')


def test_what_is_read_and_written_again(write, tmp_path):
    """Two P-states compute, two are for switching; times and powers are facts of the host."""
    (host,) = read_platform(write("p.xml", host_xml(**BOTH))).hosts
    assert [state.speed for state in host.pstates] == [100.0, 50.0]
    assert [state.speed for state in host.switch_pstates] == [0.0, 0.0]
    assert (host.boot_time_s, host.boot_w, host.boot_pstate) == (5.0, 60.0, 2)
    assert (host.shutdown_time_s, host.shutdown_w, host.shutdown_pstate) == (2.0, 30.0, 3)
    write_platform(Platform((host,)), tmp_path / "again.xml", command="x")
    assert read_platform(tmp_path / "again.xml").hosts == (host,)
    report = check_platform_file(tmp_path / "again.xml")
    assert report.is_fine
    assert report.notes == ("1 host(s) ('a') boot in 5 s at 60 W (P-state 2) and shut down in 2 s at 30 W (P-state 3)",)


def test_hosts_without_embodied_carbon_beside_others_are_named(write):
    """They count with 0 kg; where no host has any, there is nothing to note."""
    known = '<host id="a" speed="1f"><prop id="embodied_kg" value="9"/><prop id="lifetime_years" value="4"/></host>'
    unknown = '<host id="b" speed="1f"/><host id="c" speed="1f"/>'
    platform = read_platform(write("p.xml", zone_xml(known + unknown)))
    assert [host.embodied_kg for host in platform.hosts] == [9.0, 0.0, 0.0]
    assert [line for line in platform.warnings if "embodied_kg" in line and "'b', 'c'" in line and "'a'" not in line]
    assert not [line for line in read_platform(write("q.xml", zone_xml(unknown))).warnings if "embodied" in line]


def test_one_pstate_for_both_and_times_without_any(write):
    """The same P-state may serve both ways; without one the idle power counts."""
    both = {**BOTH, "shutdown_pstate": "2"}
    text = host_xml("100f,50f,0f", "10:20, 8:20, 50:60", **both)
    (host,) = read_platform(write("p.xml", text)).hosts
    assert (host.boot_w, host.shutdown_w) == (60.0, 60.0)
    text = host_xml("100f", "10:20", shutdown_time_s="2")
    (host,) = read_platform(write("q.xml", text)).hosts
    assert (host.shutdown_time_s, host.shutdown_w, host.boot_time_s) == (2.0, None, 0.0)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (host_xml(), "host 'a' has speed 0 in P-state 2 and 3, and the file does not state their purpose"),
        (host_xml(boot_pstate="2", boot_time_s="1"), "host 'a' has speed 0 in P-state 3, and"),
        (host_xml(**{**BOTH, "boot_time_s": None}), "property boot_pstate and no boot_time_s"),
        (host_xml(**{**BOTH, "shutdown_time_s": "0"}), "shutdown_pstate and no shutdown_time_s"),
        (host_xml(**{**BOTH, "shutdown_time_s": "-1"}), "shutdown_time_s is '-1'"),
        (host_xml(**{**BOTH, "boot_pstate": "1"}), "is '1'; its P-states of speed 0 are 2"),
        (host_xml(**{**BOTH, "boot_pstate": "x"}), "boot_pstate is 'x'"),
        (host_xml("1f", "1:2", boot_pstate="1", boot_time_s="1"), "it has no P-state of speed 0"),
        (host_xml("9f,0f,3f", "1:2,1:1,1:2", **BOTH), "P-state 1 has speed 0, and faster"),
        (host_xml("0f,9f", "1:2,1:2", **BOTH), "P-state 0 has speed 0, and faster"),
        (host_xml(pstate="2", **BOTH), "starts in pstate 2 but has 2 speed(s) above 0"),
        (host_xml(watts="10:20,8:20", **BOTH), "has 4 speeds but 2 wattage_per_state entries"),
        (host_xml("1f", "1:2", embodied_kg="9"), "property embodied_kg and no lifetime_years"),
        (host_xml("1f", "1:2", embodied_kg="9", lifetime_years="0"), "property embodied_kg and no lifetime_years"),
        (host_xml("1f", "1:2", embodied_kg="-9", lifetime_years="4"), "embodied_kg is '-9'"),
    ],
)
def test_what_is_refused_in_one_line(write, text: str, part: str):
    """A P-state of speed 0 has a stated purpose, or the file is refused."""
    with pytest.raises(InputError) as caught:
        read_platform(write("p.xml", text))
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not check_platform_file(write("p.xml", text)).is_fine


def test_power_that_is_given_says_nothing_of_them(write):
    """They keep their own power, or draw what P-state 0 draws idle where nothing is known."""
    given = PowerOverride.read(["95:100:200"])
    for watts, boot_w, shutdown_w in ((WATTS, 60.0, 30.0), (None, 95.0, 95.0)):
        path = write("p.xml", host_xml(watts=watts, **BOTH))
        host = read_platform(path, given).hosts[0]
        assert (host.pstates[1].busy_w, host.boot_w, host.shutdown_w) == (200, boot_w, shutdown_w)
        assert with_power(read_platform(path), given).hosts == (host,)
        assert wattage_text(host).count(":") == 8
    none = with_power(read_platform(path), PowerOverride.read(["none"])).hosts[0]
    assert (none.boot_w, none.has_energy) == (0.0, False)


def test_a_host_made_by_hand_is_checked():
    """The number of a P-state lies among those of speed 0."""
    host = Host("a", (PState(1.0),), switch_pstates=(PState(0.0),), boot_pstate=1)
    assert host.boot_w == 0.0
    with pytest.raises(InputError, match=r"shutdown_pstate.*0.*switch_pstates.*1"):
        replace(host, shutdown_pstate=0)
    with pytest.raises(InputError, match=r"boot_pstate.*1.*switch_pstates"):
        replace(host, switch_pstates=())
    slow = Platform((replace(host, switch_pstates=(PState(2.0),)),))
    with pytest.raises(InputError, match=r"switch_pstates.*0"):
        write_platform(slow, "/nowhere/p.xml", command="x")


# Power that is given on the command line: which hosts get it, and the joules that follow.

#: A host of two speeds with power of its own, a plain one, and a cluster.
BODY = """<zone id="site" routing="Full">
 <zone id="old" routing="Full">
  <host id="a" speed="2f,1f"><prop id="wattage_per_state" value="1:2:3, 1:2:2"/></host>
  <host id="b" speed="1f"/>
 </zone>
 <cluster id="k" prefix="k" suffix="" radical="0-1" speed="1f" bw="1GBps" lat="0s"/>
</zone>"""


@pytest.fixture
def platform(write) -> Path:
    return write("p.xml", platform_text(BODY))


def powers_of(path: Path, *power: str) -> dict[str, list[tuple[float, float, float]]]:
    """Return idle, epsilon and busy power of each P-state by host."""
    found = read_platform(path, PowerOverride.read(power))
    return {host.name: [(s.idle_w, s.epsilon_w, s.busy_w) for s in host.pstates] for host in found.hosts}


def test_power_for_all_hosts_replaces_their_own(platform: Path):
    """Without a pattern every host uses it, in each P-state; what was replaced is reported."""
    same = (10.0, 20.0, 30.0)
    expected = {"a": [same, same], "b": [same], "k0": [same], "k1": [same]}
    assert powers_of(platform, "10:20:30") == expected
    warnings = read_platform(platform, PowerOverride.read(["10:20:30"])).warnings
    assert [line.split(")")[0] for line in warnings if "--power" in line] == ["1 host(s", "1 host(s"]
    assert any("power of their own" in line for line in warnings)


def test_the_last_pattern_that_fits_counts(platform: Path):
    """Patterns are those of a shell; a host that none fits keeps its own power."""
    found = powers_of(platform, "[bk]*=10:20:30", "k1=4:5")
    assert found["a"] == [(1.0, 2.0, 3.0), (1.0, 2.0, 2.0)]
    assert found["b"] == found["k0"] == [(10.0, 20.0, 30.0)]
    assert found["k1"] == [(4.0, 4.0, 5.0)]  # two numbers: SimGrid takes idle for epsilon


def test_one_power_for_each_pstate(platform: Path):
    """As many powers as P-states, separated as SimGrid's property separates them."""
    assert powers_of(platform, "1:1:1", "a=9:9:9,5:6:7")["a"] == [(9, 9, 9), (5, 6, 7)]


@pytest.mark.parametrize(
    ("power", "words"),
    [
        (("1:2:3:4",), "'1:2:3:4' must read Idle:AllCores"),
        (("=1:2:3",), "no pattern of names"),
        (("a=",), "must read Idle:AllCores"),
        (("-1:2:3",), "not a power of 0 W or more"),
        (("z*=1:2:3",), "'z*': no host has such a name"),
        (("1:2:3,1:2:3,1:2:3",), "gives 3 powers to host 'a', which has 2 P-state"),
        (("none", "1:2:3"), "--power none cannot be combined"),
    ],
)
def test_what_is_no_power_is_told(platform: Path, power: tuple[str, ...], words: str):
    """The message quotes the option and shows what is allowed."""
    with pytest.raises(InputError) as raised:
        powers_of(platform, *power)
    assert words in str(raised.value)


def test_add_power_changes_nothing_else(platform: Path, tmp_path: Path):
    """The written file reads as the option specifies, and SimGrid loads it."""
    target = tmp_path / "q.xml"
    add_power(platform, target, ("10:20:30", "a=9:9:9,5:6:7"))
    assert powers_of(target) == powers_of(platform, "10:20:30", "a=9:9:9,5:6:7")
    text = target.read_text()
    without = [line for line in text.splitlines() if "wattage_per_state" not in line]
    assert '<host id="b" speed="1f">' in text
    assert without[0] == platform.read_text().splitlines()[0]
    assert "1:2:3" not in text
    if is_installed():
        assert inspect_platform(target).status == "loaded"


def test_add_power_says_what_a_file_cannot_hold(write, tmp_path: Path):
    """A cabinet has no properties in SimGrid's format; a cluster has one power for its hosts."""
    cabinet = write(
        "cabinet.xml",
        platform_text(
            '<zone id="z" routing="Cluster"><cabinet id="c" prefix="n" suffix="" radical="1-2" '
            'speed="1f" bw="1GBps" lat="0s"/></zone>'
        ),
    )
    with pytest.raises(InputError, match=r"'c'.*--power"):
        add_power(cabinet, tmp_path / "q.xml", ("1:2:3",))
    cluster = write("cluster.xml", platform_text(BODY))
    with pytest.raises(InputError, match="'k'"):
        add_power(cluster, tmp_path / "q.xml", ("k1=1:2:3",))
    with pytest.raises(InputError, match="--power"):
        add_power(cluster, tmp_path / "q.xml", ("none",))
    assert not (tmp_path / "q.xml").exists()


def test_busy_below_idle_is_a_finding(write):
    """200 W idle and 100 W busy is a slip: a problem of the check, a warning of a run."""
    host = '<host id="a" speed="1f"><prop id="wattage_per_state" value="200:100"/></host>'
    path = write("p.xml", platform_text(f'<zone id="z" routing="Full">{host}</zone>'))
    (problem,) = check_platform_file(path).problems
    assert "('a')" in problem
    assert "less power busy than idle" in problem
    assert any("less power busy than idle" in line for line in read_platform(path).warnings)


def test_power_is_written_behind_comments_with_two_hyphens(write, tmp_path):
    """SimGrid takes them, XML does not; they stay as they are."""
    text = platform_text('<!-- -- ä -- -->\n<zone id="z" routing="Full"><host id="a" speed="1f"/></zone>')
    add_power(write("p.xml", text), tmp_path / "new.xml", ["1:2:3"])
    new = (tmp_path / "new.xml").read_text()
    assert "<!-- -- ä -- -->" in new
    assert '<prop id="wattage_per_state" value="1.0:2.0:3.0"/>' in new
