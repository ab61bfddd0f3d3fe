"""A master and workers, each worker on a link of its own: latency + size / bandwidth (CM02)."""

from __future__ import annotations

from pathlib import Path

HEAD = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <config>
    <prop id="network/model" value="CM02"/>
    <prop id="network/crosstraffic" value="0"/>
  </config>
  <zone id="star" routing="Full">
    <host id="m" speed="1f">
      <prop id="role" value="master"/>
      <prop id="wattage_per_state" value="3:3"/>
    </host>
"""


def write_star(
    path: Path,
    speeds: list[float],
    *,
    bandwidths: list[float] | None = None,
    latency_s: float = 0.5,
    cores: int = 1,
    with_routes: bool = True,
) -> Path:
    """Write hosts w1, w2, ... of the given speeds [flop/s], links of 10 B/s; return the path.

    P-state 1 has half the speed.
    """
    text = HEAD
    for k, speed in enumerate(speeds, start=1):
        bandwidth = bandwidths[k - 1] if bandwidths else 10
        text += (
            f'    <host id="w{k}" speed="{speed}f,{speed / 2}f" core="{cores}">\n'
            f'      <prop id="wattage_per_state" value="{4 + k}:{10 + k}:{20 + 3 * k},'
            f'{3 + k}:{6 + k}:{11 + k}"/>\n      <prop id="wattage_off" value="1"/>\n    </host>\n'
            f'    <link id="l{k}" bandwidth="{bandwidth}Bps" latency="{latency_s}s"/>\n'
        )
    if with_routes:
        for k in range(1, len(speeds) + 1):
            text += f'    <route src="m" dst="w{k}"><link_ctn id="l{k}"/></route>\n'
    path.write_text(f"{text}  </zone>\n</platform>\n")
    return path
