"""Messages in Wi-Fi zones, with times computed by hand.

The link has no latency and rates of 20, 10 and 5 B/s, a station 10 flop/s: at the first rate, 100 B
take 5 s. On the medium are the time shares of all messages together, at most 1.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from sim_cases import executions, largest_difference, on_simgrid

from gridsched.errors import InputError
from gridsched.model.tasks import make_tasks
from gridsched.platform_io.check import check_platform_file

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
    """One line with host, link and what is legal; the check finds it, too."""
    path = write_zone(tmp_path / "p.xml", [None, rate])
    with pytest.raises(InputError, match=rf"wifi_rate.*'{rate}'.*'medium'"):
        on_simgrid(path, make_tasks([100.0], input_bytes=100.0))
    assert "host 's1': wifi_rate" in check_platform_file(path).problems[0]
