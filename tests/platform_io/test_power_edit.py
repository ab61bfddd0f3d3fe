"""Power that is given on the command line: which hosts get it, and the joules that follow."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsched.errors import InputError
from gridsched.platform_io.check import check_platform_file
from gridsched.platform_io.overrides import GivenPower
from gridsched.platform_io.xml_edit import add_power
from gridsched.platform_io.xml_reader import read_platform
from gridsched.sim.inspection import inspect_platform
from gridsched.sim.library import is_installed

from .conftest import platform_text

#: A host of two speeds with power of its own, a plain one, and a cluster.
BODY = """<zone id="site" routing="Full">
 <zone id="old" routing="Full">
  <host id="a" speed="2f,1f"><prop id="wattage_per_state" value="1:2:3, 1:2:2"/></host>
  <host id="b" speed="1f"/>
 </zone>
 <cluster id="k" prefix="k" suffix="" radical="0-1" speed="1f" bw="1GBps" lat="0s"/>
</zone>"""


@pytest.fixture
def platform(written) -> Path:
    return written(platform_text(BODY), "p.xml")


def powers_of(path: Path, *power: str) -> dict[str, list[tuple[float, float, float]]]:
    """Return idle, epsilon and busy power of each P-state by host."""
    found = read_platform(path, GivenPower.read(power))
    return {host.name: [(s.idle_w, s.epsilon_w, s.busy_w) for s in host.pstates] for host in found.hosts}


def test_power_for_all_hosts_replaces_their_own(platform: Path):
    """Without a pattern every host draws it, in each P-state; what was replaced is told."""
    same = (10.0, 20.0, 30.0)
    expected = {"a": [same, same], "b": [same], "k0": [same], "k1": [same]}
    assert powers_of(platform, "10:20:30") == expected
    warnings = read_platform(platform, GivenPower.read(["10:20:30"])).warnings
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
        (("-1:2:3",), "no power of 0 W or more"),
        (("z*=1:2:3",), "'z*': no host has such a name"),
        (("1:2:3,1:2:3,1:2:3",), "gives 3 powers to host 'a', which has 2 P-state"),
        (("none", "1:2:3"), "--power none stands alone"),
    ],
)
def test_what_is_no_power_is_told(platform: Path, power: tuple[str, ...], words: str):
    """The message quotes the option and says what is legal."""
    with pytest.raises(InputError) as raised:
        powers_of(platform, *power)
    assert words in str(raised.value)


def test_add_power_changes_nothing_else(platform: Path, tmp_path: Path):
    """The file that is written reads as the option said, and SimGrid loads it."""
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


def test_add_power_says_what_a_file_cannot_hold(written, tmp_path: Path):
    """A cabinet has no properties in SimGrid's format; a cluster has one power for its hosts."""
    cabinet = written(
        platform_text(
            '<zone id="z" routing="Cluster"><cabinet id="c" prefix="n" suffix="" radical="1-2" '
            'speed="1f" bw="1GBps" lat="0s"/></zone>'
        ),
        "cabinet.xml",
    )
    with pytest.raises(InputError, match=r"'c'.*--power"):
        add_power(cabinet, tmp_path / "q.xml", ("1:2:3",))
    cluster = written(platform_text(BODY), "cluster.xml")
    with pytest.raises(InputError, match="'k'"):
        add_power(cluster, tmp_path / "q.xml", ("k1=1:2:3",))
    with pytest.raises(InputError, match="--power"):
        add_power(cluster, tmp_path / "q.xml", ("none",))
    assert not (tmp_path / "q.xml").exists()


def test_busy_below_idle_is_a_finding(written):
    """200 W idle and 100 W busy is a slip: a problem of the check, a warning of a run."""
    host = '<host id="a" speed="1f"><prop id="wattage_per_state" value="200:100"/></host>'
    path = written(platform_text(f'<zone id="z" routing="Full">{host}</zone>'), "p.xml")
    (problem,) = check_platform_file(path).problems
    assert "('a')" in problem
    assert "less power busy than idle" in problem
    assert any("less power busy than idle" in line for line in read_platform(path).warnings)


def test_power_is_written_behind_comments_with_two_hyphens(written, tmp_path):
    """SimGrid takes them, XML does not; they stay as they are."""
    text = platform_text('<!-- -- ä -- -->\n<zone id="z" routing="Full"><host id="a" speed="1f"/></zone>')
    add_power(written(text, "p.xml"), tmp_path / "new.xml", ["1:2:3"])
    new = (tmp_path / "new.xml").read_text()
    assert "<!-- -- ä -- -->" in new
    assert '<prop id="wattage_per_state" value="1.0:2.0:3.0"/>' in new
