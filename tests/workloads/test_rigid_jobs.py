"""The generator kind rigid_jobs: what is drawn, what it refuses, and runs on it."""

from __future__ import annotations

import numpy as np
import pytest

from gridsched.errors import InputError
from gridsched.runs.run import run
from gridsched.runs.scenario import Scenario
from gridsched.sim.library import HOW_TO_INSTALL, is_installed
from gridsched.testing.agreement import metered_differences, trace_differences
from gridsched.workloads.generators import checked_parameters
from gridsched.workloads.rigid_jobs import RigidJobs, draw_rigid_jobs, generate_rigid_jobs


def test_what_the_distributions_say():
    """Run times, sizes and requests of 20,000 jobs, each within four standard errors."""
    jobs = draw_rigid_jobs(RigidJobs(jobs=20_000, seed=3))
    run, asked = jobs.run_time_s, jobs.requested_time_s
    assert (run == np.floor(run)).all()
    assert run.min() >= 1
    assert run.max() <= 86_400
    logs = np.log(run[run < 86_400])
    assert np.median(logs) == pytest.approx(np.log(1800), abs=4 * 1.2533 * 1.2 / 20_000**0.5)
    assert logs.std() == pytest.approx(1.2, rel=0.03)
    sizes, counts = np.unique(jobs.width, return_counts=True)
    assert sizes.tolist() == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert counts / 20_000 == pytest.approx([1 / 9] * 9, abs=4 * (1 / 9 * 8 / 9 / 20_000) ** 0.5)
    assert (asked == np.floor(asked)).all()
    assert ((asked >= run) & (asked < 5 * run + 1)).all()
    long = run > 1000  # rounding up adds nothing to speak of
    assert (asked / run)[long].mean() == pytest.approx(3.0, abs=4 * (16 / 12 / long.sum()) ** 0.5)
    gaps = np.diff(jobs.submit_time_s)
    offered = (run * jobs.width).mean() / (gaps.mean() * 1024)
    assert offered == pytest.approx(0.9, rel=4 / 20_000**0.5)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.05)  # as exponential times have it


def test_by_hand():
    """Nothing spread: 1.5 s become 2 s, requests are three times that, each job is alone."""
    jobs = draw_rigid_jobs(
        RigidJobs(jobs=3, nodes=2, run_time_median_s=1.5, run_time_sigma=0, widest_job=1, estimate_factor=(3, 3))
    )
    assert jobs.run_time_s.tolist() == [2, 2, 2]
    assert jobs.requested_time_s.tolist() == [6, 6, 6]
    assert jobs.width.tolist() == [1, 1, 1]
    assert jobs.submit_time_s[0] == 0
    assert jobs.nodes_of_header == 2
    cut = draw_rigid_jobs(RigidJobs(jobs=3, run_time_sigma=0, longest_run_time_s=60.5))
    assert cut.run_time_s.tolist() == [60, 60, 60]


def test_another_load_moves_arrivals_alone():
    """Loads can be compared job by job; replicates differ in everything."""
    low, high = (draw_rigid_jobs(RigidJobs(jobs=50, load=load)) for load in (0.45, 0.9))
    assert np.array_equal(low.run_time_s, high.run_time_s)
    assert low.submit_time_s == pytest.approx(2 * high.submit_time_s)
    other = draw_rigid_jobs(RigidJobs(jobs=50, replicate=1))
    assert not np.array_equal(other.width, high.width)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"widest_job": 48}, "widest_job is 48; it should be a power of two"),
        ({"nodes": 100}, "widest_job is 256; the cluster has 100 nodes"),
        ({"estimate_factor": [0.5, 2]}, "estimate_factor begins with 0.5; estimates are upper"),
        ({"busy_w": 50.0}, "busy_w is 50; it must be at least idle_w, 95 W"),
        ({"load": 0}, "load is 0; it should be greater than or equal to 0.000"),
        ({"jobs": 0}, "jobs is 0; it should be greater than or equal to 1"),
    ],
)
def test_what_is_refused(keys, words):
    """In one line, before anything is drawn."""
    with pytest.raises(InputError, match=words):
        checked_parameters({"kind": "rigid_jobs", **keys}, "jobs.toml")


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
def test_both_drivers_agree_on_it():
    """Sixty jobs under EASY: the same starts and nodes, joules of the plugin node by node."""
    made = generate_rigid_jobs(RigidJobs(jobs=60, nodes=24, widest_job=16))
    scenarios = [
        Scenario(None, made.tasks, "easy_backfilling", driver=driver).with_system(made)
        for driver in ("reference", "simgrid")
    ]
    expected, found = map(run, scenarios)
    assert trace_differences(expected.trace, found.trace) == []
    assert metered_differences(found) == []
    summary = expected.summary()
    assert summary["tasks_finished"] == 60
    assert 0 < summary["utilisation"] < 1
    busy_j = summary["busy_time_s"] * (190.738 - 95.0)
    assert summary["energy_model_j"] == pytest.approx(24 * 95.0 * summary["horizon_s"] + busy_j)
