"""Batsim's workloads whose jobs send bytes: the durations that Batsim's own tests print, with joules."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gridsched import Scenario, run
from gridsched.drivers.simgrid_library import is_installed
from gridsched.energy import trace_energy
from gridsched.errors import InputError
from gridsched.export.archive import read_archive
from gridsched.export.export import write_export
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Allocate
from gridsched.runs.plugin_agreement import energy_check
from gridsched.systems.batsim.workload_json import read_batsim
from gridsched.workloads.traces.formats import read_jobs
from gridsched.workloads.traces.trace_options import TraceOptions

pytestmark = pytest.mark.skipif(not is_installed(), reason="SimGrid is not there")
#: Nodes of 1 Gflop/s on links of 1 GB/s and 5 us, behind a backbone of 3 GB/s and 3 us.
NODES = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="AS0" routing="Full">
  <cluster id="A" prefix="a" suffix="" radical="0-{last}" speed="1Gf" bw="1GBps" lat="5us" bb_bw="3GBps" bb_lat="3us">
    <prop id="wattage_per_state" value="50:70:200"/></cluster>
</zone></platform>
"""
ROUTE_S = 13e-6


class OneByOne(Scheduler):
    """Run one job at a time, on the first nodes."""

    traits = Traits(trigger="event", parallel=True)

    def schedule(self, state):
        """Start the first that waits once nothing runs."""
        if not state.nodes.free.all() or not len(state.mappable):
            return []
        task = int(state.mappable[0])
        return [Allocate(task, range(int(state.tasks.width[task])))]


def nodes(folder: Path, count: int) -> Path:
    """Write the platform; return its path."""
    path = folder / "nodes.xml"
    path.write_text(NODES.format(last=count - 1))
    return path


def workload(folder: Path, profiles: dict, jobs: list[tuple]) -> Path:
    """Write jobs of (id, submission, walltime, nodes, profile)."""
    path = folder / "jobs.json"
    names = ("id", "subtime", "walltime", "res", "profile")
    rows = [dict(zip(names, job, strict=True)) for job in jobs]
    path.write_text(json.dumps({"nb_res": 6, "jobs": rows, "profiles": profiles}))
    return path


def durations(result) -> dict[str, float]:
    """Return how long each job ran [s]."""
    labels = result.trace.tasks.labels
    return {str(labels[each["task"]]): each["end"] - each["start"] for each in result.trace.executions}


#: Profiles of two parts each, and how long they take alone [s].
PROFILES = {
    "matrix": ({"type": "parallel", "cpu": [5e9, 0], "com": [0, 2e9, 0, 0]}, 5 + ROUTE_S),
    "sends": ({"type": "ParallelTaskProfile", "cpu": [3e9, 0], "com": [0, 4e9, 0, 0]}, 4 + ROUTE_S),
    "each": ({"type": "parallel_homogeneous", "cpu": 1e9, "com": 2e9}, 2 + ROUTE_S),
    "spread": (
        {
            "type": "ParallelTaskHomogeneousProfile",
            "cpu": 10e9,
            "com": 4e9,
            "generation_strategy": "DefinedAmountsSpreadUniformly",
        },
        5 + ROUTE_S,
    ),
    "total": ({"type": "parallel_homogeneous_total", "cpu": 2e9, "com": 12e9}, 6 + ROUTE_S),
    "sleep": ({"type": "delay", "delay": 7.5}, 7.5),
    "composed": ({"type": "composed", "nb": 2, "seq": ["each", "sleep"]}, 2 * (2 + ROUTE_S + 7.5)),
    "nested": ({"type": "SequentialCompositionProfile", "repeat": 3, "seq": ["composed"]}, 6 * (9.5 + ROUTE_S)),
    "unequal": ({"type": "ParallelTaskProfile", "cpu": [10e9, 1e9]}, 10.0),
}


@pytest.mark.parametrize("driver", ["simgrid", "reference"])
@pytest.mark.parametrize("walltime_s", [1000, 1])
def test_every_type_of_profile(tmp_path: Path, driver: str, walltime_s: int):
    """Latency and the longest of computing and sending, or the walltime; EASY on two nodes runs one at a time."""
    names = list(PROFILES)
    jobs = [(f"{name}-job", k, walltime_s, 2, name) for k, name in enumerate(names)]
    file = workload(tmp_path, {name: PROFILES[name][0] for name in names}, jobs)
    scenario = Scenario(nodes(tmp_path, 2), file, "easy_backfilling", driver=driver, walltime="kill", timeout_s=60.0)
    result = run(scenario)
    expected = {f"{name}-job": min(PROFILES[name][1], walltime_s) for name in names}
    assert durations(result) == pytest.approx(expected, abs=1e-9)
    killed = set(result.trace.tasks.labels[result.trace.final_state == 10].tolist())
    assert killed == (set(expected) if walltime_s == 1 else set())
    if driver == "simgrid":
        assert max(row["relative_difference"] for row in energy_check(result)) < 1e-9


def test_joules_by_hand(tmp_path: Path):
    """One node computes 1 of 2 s at full speed, as half a load; while nothing is sent or computed all are idle."""
    profile = {"type": "ParallelTaskProfile", "cpu": [1e9, 0], "com": [0, 2e9, 0, 0]}
    file = workload(tmp_path, {"one": profile}, [("1", 0, 10, 2, "one")])
    result = run(Scenario(nodes(tmp_path, 3), file, "fcfs"))
    # 70 + 0.5 * 130 W for 2 s, the others idle at 50 W
    assert result.energy.total_j.tolist() == pytest.approx([270 + 50 * ROUTE_S, *[50 * (2 + ROUTE_S)] * 2], rel=1e-12)


def test_jobs_that_share_a_backbone_slow_each_other(tmp_path: Path):
    """Two rings of three send 3 GB each through a backbone of 3 GB/s: 2 s, where one alone takes 1 s."""
    ring = {"type": "parallel", "cpu": [0, 0, 0], "com": [0, 1e9, 0, 0, 0, 1e9, 1e9, 0, 0]}
    file = workload(tmp_path, {"ring": ring}, [("1", 0, 10, 3, "ring"), ("2", 0, 10, 3, "ring")])
    for driver in ("simgrid", "reference"):
        result = run(Scenario(nodes(tmp_path, 6), file, "fcfs", driver=driver))
        assert list(durations(result).values()) == pytest.approx([2 + ROUTE_S] * 2, rel=1e-12)


def test_without_network_jobs_are_what_they_compute(tmp_path: Path):
    """As before there were profiles: bytes are left out, and the run reports this."""
    file = workload(tmp_path, {"each": PROFILES["each"][0]}, [("1", 0, 10, 2, "each")])
    result = run(Scenario(nodes(tmp_path, 2), file, "fcfs", network="none"))
    assert durations(result) == {"1": 1.0}
    assert any("send" in warning for warning in result.scenario.warnings)


def test_what_is_left_out_says_why(tmp_path: Path):
    """Storages, jobs that send and ask for no time, types that are not known, and a profile of other parts."""
    profiles = {
        "store": {"type": "parallel_homogeneous_pfs", "bytes_to_read": 1e5},
        "after": {"type": "composed", "seq": ["each", "store"]},
        "smpi": {"type": "smpi", "trace": "x.txt"},
        **{name: PROFILES[name][0] for name in ("each", "matrix")},
    }
    jobs = [("1", 0, 9, 2, "store"), ("2", 0, 9, 2, "after"), ("3", 0, 9, 2, "smpi"), ("4", 0, -1, 2, "each")]
    jobs += [("5", 0, 9, 3, "matrix"), ("6", 0, 9, 2, "each"), ("7", 1, 9, 2, "matrix")]
    jobs += [(f"{k}", 2, 9, 2, "each") for k in range(8, 12)]
    result = run(Scenario(nodes(tmp_path, 3), workload(tmp_path, profiles, jobs), "fcfs"))
    assert len(durations(result)) == 6
    text = " ".join(result.scenario.warnings)
    for words in ("storage", "no requested time", "'smpi'", "not of the format", "only moves bytes"):
        assert words in text


def test_wide_jobs_are_what_they_compute_or_left_out_with_the_reason(tmp_path: Path):
    """All to all among 1,001 parts is a million messages: not simulated, but read; without bytes nothing is sent."""
    profiles = {
        "sends": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 5},
        "computes": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0},
    }
    file = workload(tmp_path, profiles, [(name, 0, 10, 3000, name) for name in profiles])
    assert read_batsim(file, speed=1e9).run_time_s.tolist() == [1.0, 1.0]
    sent = read_jobs(file, TraceOptions(), keeps_profiles=True).with_profiles()
    assert list(sent.names) == ["computes"]
    assert [(each.count, "messages" in each.reason) for each in sent.dropped] == [(1, True)]


def test_bytes_without_a_platform(tmp_path: Path):
    """They need links to cross."""
    file = workload(tmp_path, {"each": PROFILES["each"][0]}, [("1", 0, 10, 2, "each")])
    with pytest.raises(InputError, match="--platform"):
        run(Scenario(None, file, "fcfs", network="platform"))


@pytest.mark.parametrize("name", ["batsim_test_ptasks", "batsim_test_sequence"])
def test_every_duration_that_batsims_tests_print(name: str, shared_data: Callable[[str], Path]):
    """Each job alone on Batsim's platform takes what its profile expects, to 1e-6, or is killed at its walltime."""
    file = shared_data(f"parallel_tasks/{name}.json")
    content = json.loads(file.read_text())
    scenario = Scenario(
        shared_data("parallel_tasks/cluster512.xml"),
        file,
        OneByOne(),
        walltime="kill",
        network="platform",
        power=("none",),
        timeout_s=120.0,
    )
    result = run(scenario)
    profiles = content["profiles"]
    expected = {
        job["id"]: min(profiles[job["profile"]]["expected_execution_time"], job["walltime"]) for job in content["jobs"]
    }
    assert durations(result) == pytest.approx(expected, rel=0, abs=1e-6)
    late = [job["id"] for job in content["jobs"] if job["id"].endswith(("-wr", "-wt"))]
    killed = result.trace.tasks.labels[result.trace.final_state == 10]
    assert sorted(late) == sorted(np.asarray(killed).tolist())


def test_an_archive_keeps_what_hosts_computed(tmp_path: Path):
    """Read back, a run has the same joules and bytes over links."""
    jobs = [(name, 0, 100, 2, name) for name in PROFILES]
    file = workload(tmp_path, {name: profile for name, (profile, _) in PROFILES.items()}, jobs)
    result = run(Scenario(nodes(tmp_path, 5), file, "easy_backfilling", driver="reference"))
    write_export(result.trace, None, {}, tmp_path / "export", workload_name="jobs")
    trace = read_archive(tmp_path / "export" / "trace.npz").trace
    assert trace_energy(trace).total_j.tolist() == result.energy.total_j.tolist()
    assert trace.link_bytes == result.trace.link_bytes


def test_metrics_by_hand(tmp_path: Path):
    """1 of 4 node-seconds of 2 s on two nodes is computing; 2 GB cross the sender's link, the backbone and another."""
    profile = {"type": "ParallelTaskProfile", "cpu": [1e9, 0], "com": [0, 2e9, 0, 0]}
    file = workload(tmp_path, {"one": profile}, [("1", 0, 10, 2, "one")])
    metrics = run(Scenario(nodes(tmp_path, 3), file, "fcfs", driver="reference")).metrics()
    assert metrics["not_computing_time_s"] == pytest.approx(3 + 2 * ROUTE_S)
    assert metrics["sent_over_busiest_link_bytes"] == 2e9
    assert metrics["busiest_link"] in {"A_link_0_UP", "A_backbone", "A_link_1_DOWN"}
