"""Parallel jobs on SimGrid: the same records and joules as the reference driver, node by node."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gridsched import run
from gridsched.errors import InputError
from gridsched.platform_io.xml_reader import read_platform
from gridsched.platform_io.xml_writer import parallel_platform_xml, write_platform
from gridsched.policy.base import Scheduler, Traits
from gridsched.policy.decisions import Allocate, PowerOff, PowerOn
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences
from gridsched.testing.parallel_cases import EXAMPLE, cluster_of, make_parallel_case


def random_jobs(seed: int, n: int, widest: int) -> list[tuple]:
    """Return jobs that ask for up to five times what they take."""
    rng = np.random.default_rng(seed)
    length = np.ceil(rng.lognormal(3.0, 1.0, n))
    estimate = np.ceil(length * rng.uniform(1.0, 5.0, n))
    submit = np.cumsum(rng.exponential(20.0, n)).round(3)
    return list(zip(submit, length, rng.integers(1, widest + 1, n).tolist(), estimate, strict=True))


class Switching(Scheduler):
    """Starts jobs in order, switches nodes off while nothing waits, and chooses P-states."""

    traits = Traits(asked="event", parallel=True, powers_hosts=True, uses_dvfs=True)

    def schedule(self, state):
        waiting = state.next_waiting(1)
        if not waiting:
            return [PowerOff(int(h)) for h in np.flatnonzero(state.nodes.free)[:1]]
        off = np.flatnonzero(~state.is_on)
        if len(off):
            return [PowerOn(int(h)) for h in off]
        free, width = np.flatnonzero(state.nodes.free), state.tasks.width[waiting[0]]
        if len(free) < width:
            return []
        return [Allocate(waiting[0], free[-width:], waiting[0] % 2)]


@pytest.mark.parametrize("scheduler", ["easy_backfilling", Switching()])
def test_random_jobs_agree(scheduler):
    """Sixty jobs on 20 nodes, with P-states and switching or without: records and joules."""
    case = make_parallel_case("random jobs", 20, random_jobs(3, 60, 12))
    expected = run(case.scenario(scheduler, driver="reference"))
    result = run(case.scenario(scheduler, driver="simgrid", timeout_s=60.0))
    assert trace_differences(expected.trace, result.trace) == []
    assert metered_differences(result) == []
    assert len(result.plugin_j) == 20


def test_platform_files_of_ours_lose_their_network_model(tmp_path):
    """A file that gridsched wrote serves; the user's file stays as it is."""
    path = tmp_path / "cluster.xml"
    write_platform(cluster_of(4), path, command="test")
    text = path.read_text()
    assert "network/model" in text
    assert "network/model" not in parallel_platform_xml(path)
    case = make_parallel_case("example", 4, EXAMPLE)
    scenario = case.scenario("fcfs", driver="simgrid", timeout_s=60.0)
    object.__setattr__(scenario, "platform", read_platform(path))
    object.__setattr__(scenario, "platform_file", path)
    assert run(scenario).trace.start_time_s == pytest.approx([0.0, 10.0, 15.0, 15.0], rel=1e-9)
    assert path.read_text() == text


def test_other_network_models_are_refused(tmp_path: Path):
    """SimGrid would abort: one line says which entry to take out."""
    path = tmp_path / "cluster.xml"
    write_platform(cluster_of(4), path, command="test")
    path.write_text(path.read_text().replace('"CM02"', "'SMPI'"))
    with pytest.raises(InputError, match=r"cluster\.xml.*'SM"):
        parallel_platform_xml(path)
    path.write_text('<platform version="4.1"><zone id="z" routing="Full"/></platform>')
    assert parallel_platform_xml(path) is None


def test_parallel_jobs_send_no_messages():
    """Over the platform's network there is no way to run them."""
    case = make_parallel_case("example", 4, EXAMPLE)
    scenario = case.scenario("fcfs", driver="simgrid", network="platform")
    with pytest.raises(InputError, match=r"--network none|master"):
        run(scenario)
