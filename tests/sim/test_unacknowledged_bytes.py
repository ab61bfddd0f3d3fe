"""Steps whose time the TCP window or a link of type FATPIPE decides, by hand on both drivers."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsched import Scenario, make_tasks, run
from gridsched.model.job_profiles import ParallelWork

GAMMA = 4_194_304.0


def platform(folder: Path, config: str = "", fat_bps: float = 1e12) -> Path:
    """Write three hosts: a and b are 0.1 s apart, b and c 0.4 s, and all routes cross one link of type FATPIPE."""
    hosts = [f'<host id="{h}" speed="1Gf"><prop id="wattage_per_state" value="10:20:20"/></host>' for h in "abc"]
    latency = {"ab": 0.1, "bc": 0.4, "ac": 0.1}
    links = [f'<link id="{name}" bandwidth="1e12Bps" latency="{each}s"/>' for name, each in latency.items()]
    links.append(f'<link id="fat" bandwidth="{fat_bps}Bps" latency="0s" sharing_policy="FATPIPE"/>')
    routes = [
        f'<route src="{name[0]}" dst="{name[1]}"><link_ctn id="{name}"/><link_ctn id="fat"/></route>'
        for name in latency
    ]
    path = folder / "window.xml"
    path.write_text(
        '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">'
        f'{config}<zone id="z" routing="Full">{"".join([*hosts, *links, *routes])}</zone></platform>'
    )
    return path


def lasts_s(path: Path, driver: str, a_to_b: float, b_to_c: float) -> float:
    """Return how long a job of three nodes takes alone that sends two messages of these bytes [s]."""
    work = ParallelWork(matrix=(0.0, a_to_b, 0.0, 0.0, 0.0, b_to_c, 0.0, 0.0, 0.0))
    tasks = make_tasks([1.0], width=3, requested_time_s=1e4, profile=[0], profiles=[work])
    return float(run(Scenario(path, tasks, "fcfs", driver=driver, timeout_s=60.0)).trace.finish_time_s[0])


@pytest.mark.parametrize("driver", ["simgrid", "reference"])
def test_the_message_with_the_most_on_its_way_decides(tmp_path: Path, driver: str):
    """The longest latency, and then twice the largest product of a message's own latency and bytes, over the window."""
    path = platform(tmp_path)
    for a_to_b, b_to_c in ((1e8, 1e7), (1e7, 1e8)):
        expected = 0.4 + 2 * max(0.1 * a_to_b, 0.4 * b_to_c) / GAMMA
        assert lasts_s(path, driver, a_to_b, b_to_c) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("driver", ["simgrid", "reference"])
@pytest.mark.parametrize(("gamma", "window_s"), [("1e6", 20.0), ("0", 0.0)])
def test_the_window_is_that_of_the_platform_file(tmp_path: Path, driver: str, gamma: str, window_s: float):
    """A fourth of the default one takes four times as long; 0 is none, and only the bandwidth counts."""
    path = platform(tmp_path, f'<config><prop id="network/TCP-gamma" value="{gamma}"/></config>')
    expected = 0.4 + max(window_s, 1e8 / 1e12)
    assert lasts_s(path, driver, 1e8, 1e6) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("driver", ["simgrid", "reference"])
def test_a_fatpipe_serves_the_largest_message_of_a_step(tmp_path: Path, driver: str):
    """Of 3 and 1 kB over 100 byte/s the larger takes 30 s, whichever it is; together they would take 40 s."""
    path = platform(tmp_path, fat_bps=100.0)
    for sizes in ((3000.0, 1000.0), (1000.0, 3000.0)):
        assert lasts_s(path, driver, *sizes) == pytest.approx(0.4 + 30.0, rel=1e-9)
