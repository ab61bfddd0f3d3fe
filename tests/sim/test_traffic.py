"""What parts of jobs send over switches and links, and the energy of links, by hand and on both drivers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gridsched import Scenario, make_tasks, run
from gridsched.errors import InputError
from gridsched.export.archive import read_archive
from gridsched.export.export import write_export
from gridsched.model.job_profiles import ParallelWork
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Allocate

#: Two leaf switches of two nodes under one core switch, links of 100 byte/s.
TREE = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="m" routing="Full"><prop id="link_wattage_range" value="2:7"/>
<cluster id="c" prefix="n" suffix="" radical="0-3" speed="10f" bw="100Bps" lat="0s" topology="FAT_TREE"
         topo_parameters="2;2,2;1,1;1,1"><prop id="wattage_per_state" value="1:1:2"/></cluster></zone></platform>
"""
RING = ParallelWork(flops=(10.0,), pattern="ring", message_bytes=1000.0)


class Asking(Scheduler):
    """Starts the first job on given nodes, after a look at what a policy may know of the network."""

    traits = Traits(trigger="event", parallel=True)

    def __init__(self, nodes: tuple[int, ...] = (0,)) -> None:
        self.nodes = nodes

    def prepare(self, system, rng):
        self.system_ = system

    def schedule(self, state):
        assert self.system_.bandwidth(0, 3) == 100.0
        assert self.system_.platform.switch_of.tolist() == [[0, 0, 1, 1]]
        return [Allocate(task, np.array(self.nodes)) for task in state.next_waiting(1)]


def scenario(folder: Path, nodes: tuple[int, ...], driver: str, text: str = TREE) -> Scenario:
    """Return one job that sends 1,000 bytes from each of its nodes to the next one."""
    path = folder / "tree.xml"
    path.write_text(text)
    tasks = make_tasks(10.0, 0.0, width=len(nodes), requested_time_s=100.0, profile=0, profiles=(RING,))
    return Scenario(path, tasks, scheduler=Asking(nodes), driver=driver, timeout_s=60.0)


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
@pytest.mark.parametrize(
    ("nodes", "sent", "crossed"),
    [((0, 1), (2000.0, 0.0), 4), ((0, 2), (2000.0, 2000.0), 8), ((0, 1, 2, 3), (4000.0, 2000.0), 12)],
)
def test_bytes_and_joules_by_hand(tmp_path: Path, driver: str, nodes, sent, crossed: int):
    """All takes 10 s. Each of twelve links draws 2 W idle; a link that carries 1,000 bytes is full for 10 s: 5 W more.

    In one leaf two messages cross two links each; to another leaf four, each its own. Around all four nodes
    two messages stay, and two leave their leaf.
    """
    result = run(scenario(tmp_path, nodes, driver))
    assert result.trace.horizon_s == pytest.approx(10.0, rel=1e-9)
    assert result.trace.sent_bytes == pytest.approx(sent)
    assert sum(result.trace.link_bytes.values()) == pytest.approx(1000.0 * crossed)
    assert result.links_j is not None
    assert len(result.links_j) == 12
    assert sum(result.links_j.values()) == pytest.approx(12 * 2.0 * 10.0 + crossed * 5.0 * 10.0)
    summary = result.summary()
    assert summary["energy_links_j"] == pytest.approx(240.0 + crossed * 50.0)
    assert summary["sent_bytes"] == pytest.approx(sent[0])
    assert summary["sent_over_core_bytes"] == pytest.approx(sent[1])
    write_export(result.trace, None, {}, tmp_path / "out", workload_name="jobs")
    assert read_archive(tmp_path / "out" / "trace.npz").trace.sent_bytes == result.trace.sent_bytes


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
def test_bytes_over_time_by_hand(tmp_path: Path, driver: str):
    """Links are full for 10 s: in steps of 4 s 400, 400 and 200 bytes; an archive keeps them, and no other ones."""
    trace = run(replace(scenario(tmp_path, (0, 1), driver), traffic_step_s=4.0)).trace
    np.testing.assert_allclose(trace.traffic_bytes, np.full((4, 3), [400.0, 400.0, 200.0]), rtol=1e-9)
    write_export(trace, None, {}, tmp_path / "out", workload_name="jobs")
    again = read_archive(tmp_path / "out" / "trace.npz").trace
    assert again.traffic_step_s == 4.0
    assert again.traffic_bytes.tolist() == trace.traffic_bytes.tolist()
    for change, message in (
        ({"traffic_bytes": 2 * trace.traffic_bytes}, r"traffic_bytes: row 0: sum is 2000\.0"),
        ({"traffic_bytes": trace.traffic_bytes[:3]}, r"9 numbers are no rows of 4 links"),
        ({"traffic_step_s": 8.0}, r"3 steps of 8 s; the run ends before"),
        ({"traffic_step_s": 0.0}, r"traffic_step_s is 0\.0 for 12 numbers"),
    ):
        write_export(replace(trace, **change), None, {}, tmp_path / "out", workload_name="jobs", force=True)
        with pytest.raises(InputError, match=message):
            read_archive(tmp_path / "out" / "trace.npz")


def test_without_profiles_there_is_no_traffic_to_record(tmp_path: Path):
    """One line."""
    with pytest.raises(InputError, match=r"--traffic-step-s 4 has no effect: no job has a profile"):
        run(replace(scenario(tmp_path, (0, 1), "reference"), traffic_step_s=4.0, network="none"))


def test_without_a_range_links_have_no_energy(tmp_path: Path):
    """Nothing is known of their power."""
    bare = scenario(tmp_path, (0, 1), "reference", TREE.replace('<prop id="link_wattage_range" value="2:7"/>', ""))
    result = run(bare)
    assert result.links_j is None
    assert "energy_links_j" not in {name for name, value in result.summary().items() if value is not None}


@pytest.mark.parametrize("text", ["2", "2:x", "-1:2", "nan:2"])
def test_ranges_are_checked(tmp_path: Path, text: str):
    """One line with what is allowed."""
    with pytest.raises(InputError, match="Idle:Busy"):
        run(scenario(tmp_path, (0, 1), "reference", TREE.replace("2:7", text)))
