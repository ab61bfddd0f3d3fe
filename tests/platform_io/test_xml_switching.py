"""Properties that say what P-states of speed 0 are for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gridsched.errors import InputError
from gridsched.model.platform import Host, Platform, PState
from gridsched.platform_io.check import check_platform_file
from gridsched.platform_io.overrides import GivenPower, wattage_text, with_power
from gridsched.platform_io.xml_reader import read_platform
from gridsched.platform_io.xml_writer import write_platform

from .conftest import zone

BOTH = {"boot_pstate": "2", "boot_time_s": "5", "shutdown_pstate": "3", "shutdown_time_s": "2"}
WATTS = "10:20:40, 8:20, 50:60, 30:30"


def host_xml(speed: str = "100f,50f,0f,0f", watts: str | None = WATTS, pstate="0", **properties):
    """Return a platform of one host with these properties, but for those that are None."""
    found = {"wattage_per_state": watts, **properties}
    props = "".join(f'<prop id="{name}" value="{value}"/>' for name, value in found.items() if value is not None)
    return zone(f'<host id="a" speed="{speed}" pstate="{pstate}">{props}</host>')


def test_what_is_read_and_written_again(written, tmp_path):
    """Two P-states compute, two are for switching; times and powers are facts of the host."""
    (host,) = read_platform(written(host_xml(**BOTH), "p.xml")).hosts
    assert [state.speed for state in host.pstates] == [100.0, 50.0]
    assert [state.speed for state in host.switch_pstates] == [0.0, 0.0]
    assert (host.boot_time_s, host.boot_w, host.boot_pstate) == (5.0, 60.0, 2)
    assert (host.shutdown_time_s, host.shutdown_w, host.shutdown_pstate) == (2.0, 30.0, 3)
    write_platform(Platform((host,)), tmp_path / "again.xml", command="x")
    assert read_platform(tmp_path / "again.xml").hosts == (host,)
    report = check_platform_file(tmp_path / "again.xml")
    assert report.is_fine
    assert report.notes == ("1 host(s) ('a') boot in 5 s at 60 W (P-state 2) and shut down in 2 s at 30 W (P-state 3)",)


def test_one_pstate_for_both_and_times_without_any(written):
    """The same P-state may serve both ways; without one the idle power counts."""
    both = {**BOTH, "shutdown_pstate": "2"}
    text = host_xml("100f,50f,0f", "10:20, 8:20, 50:60", **both)
    (host,) = read_platform(written(text, "p.xml")).hosts
    assert (host.boot_w, host.shutdown_w) == (60.0, 60.0)
    text = host_xml("100f", "10:20", shutdown_time_s="2")
    (host,) = read_platform(written(text, "q.xml")).hosts
    assert (host.shutdown_time_s, host.shutdown_w, host.boot_time_s) == (2.0, None, 0.0)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (host_xml(), "host 'a' has speed 0 in P-state 2 and 3, and nothing says what for"),
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
    ],
)
def test_what_is_refused_in_one_line(written, text: str, part: str):
    """A P-state of speed 0 says what it is for, or the file is refused."""
    with pytest.raises(InputError) as caught:
        read_platform(written(text, "p.xml"))
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not check_platform_file(written(text, "p.xml")).is_fine


def test_power_that_is_given_says_nothing_of_them(written):
    """They keep their own power, or draw what P-state 0 draws idle where nothing is known."""
    given = GivenPower.read(["95:100:200"])
    for watts, boot_w, shutdown_w in ((WATTS, 60.0, 30.0), (None, 95.0, 95.0)):
        path = written(host_xml(watts=watts, **BOTH), "p.xml")
        host = read_platform(path, given).hosts[0]
        assert (host.pstates[1].busy_w, host.boot_w, host.shutdown_w) == (200, boot_w, shutdown_w)
        assert with_power(read_platform(path), given).hosts == (host,)
        assert wattage_text(host).count(":") == 8
    none = with_power(read_platform(path), GivenPower.read(["none"])).hosts[0]
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
