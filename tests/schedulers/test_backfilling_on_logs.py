"""FCFS, EASY and conservative backfilling on logs of real machines, against plain oracles."""

from __future__ import annotations

import pytest
import rigid_oracles as oracles
from rigid_cases import ORACLES, jobs_of, scenario, starts

from gridsched import run
from gridsched.sim.library import HOW_TO_INSTALL, is_installed
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences

HPC2N, KTH, CURIE = "HPC2N_excerpt.swf", "KTH-SP2.swf.gz", "CEA-Curie_10day.swf.gz"
#: The quick one of two equal oracles.
QUICK = ORACLES | {"conservative_backfilling": oracles.conservative_by_steps}


@pytest.mark.parametrize("scheduler", sorted(QUICK))
@pytest.mark.parametrize("name", [HPC2N, KTH])
def test_starts_on_the_first_jobs(name, scheduler):
    """The same starts as the oracles, to the last digit."""
    jobs, n_nodes = jobs_of(name)
    jobs = jobs[:400]
    assert starts(jobs, n_nodes, scheduler) == oracles.simulate(jobs, n_nodes, QUICK[scheduler])


@pytest.mark.long
@pytest.mark.parametrize("scheduler", sorted(QUICK))
@pytest.mark.parametrize(
    ("name", "procs_per_node", "n_jobs"), [(HPC2N, 1, 3_145), (KTH, 1, 28_481), (CURIE, 16, 14_459)]
)
def test_starts_on_whole_logs(name, procs_per_node, n_jobs, scheduler):
    """All jobs: the same starts as the oracles, to the last digit."""
    jobs, n_nodes = jobs_of(name, procs_per_node)
    assert len(jobs) == n_jobs
    trace = run(scenario(jobs, n_nodes, scheduler)).trace
    assert trace.start_time_s.tolist() == oracles.simulate(jobs, n_nodes, QUICK[scheduler])


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
@pytest.mark.parametrize("scheduler", sorted(QUICK))
@pytest.mark.parametrize("name", [HPC2N, KTH])
def test_both_drivers_agree_on_the_first_jobs(name, scheduler):
    """The same records; the plugin's joules are the model's, node by node."""
    jobs, n_nodes = jobs_of(name)
    assert driver_differences(jobs[:120], n_nodes, scheduler) == []


@pytest.mark.long
@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
@pytest.mark.parametrize("scheduler", sorted(QUICK))
@pytest.mark.parametrize(("name", "procs_per_node"), [(HPC2N, 1), (KTH, 1), (CURIE, 16)])
def test_both_drivers_agree_on_whole_logs(name, procs_per_node, scheduler):
    """All jobs, likewise."""
    jobs, n_nodes = jobs_of(name, procs_per_node)
    assert driver_differences(jobs, n_nodes, scheduler) == []


def driver_differences(jobs, n_nodes, scheduler) -> list[str]:
    """Run jobs on both drivers; return in what records and joules differ."""
    expected = run(scenario(jobs, n_nodes, scheduler))
    found = run(scenario(jobs, n_nodes, scheduler, driver="simgrid"))
    return trace_differences(expected.trace, found.trace) + metered_differences(found)
