"""Estimates of parallel tasks on several clusters, and the platform that SimGrid meters."""

from __future__ import annotations

import numpy as np
import pytest
from clusters import INF, NODE_POWER_W, TYPICAL_S, estimates_of, jobs, two_clusters

from gridsched.errors import InputError
from gridsched.model.estimates import FlopsEstimates
from gridsched.model.parallel_estimates import ParallelEstimates, node_platform
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.model.tasks import make_tasks


def test_times_powers_and_energies_of_whole_allocations():
    """Nine cores of type 0: 3 nodes of A at 40 W for 10 s, too wide for B."""
    platform, tasks = two_clusters(), jobs((0, 0, 9), (0, 1, 3), (0, 0, 4))
    known = estimates_of(platform, tasks)
    hosts = np.array([0, 2, 3])
    assert known.etc([0, 1, 2], hosts, 1).tolist() == [[20, 20, INF], [INF, INF, 24], [20, 20, 40]]
    assert known.apc([0, 1, 2], hosts).tolist() == [[120, 120, INF], [INF, INF, 100], [40, 40, 60]]
    assert known.eec([0, 1, 2], hosts).tolist() == [[1200, 1200, INF], [INF, INF, 1200], [400, 400, 1200]]
    assert [known.width(task, host) for task, host in ((0, 1), (1, 4), (2, 0), (2, 6))] == [3, 2, 1, 2]
    assert (known.run_time(1, 3, 1), known.energy(1, 3, 1)) == (24.0, 960.0)
    pairs = np.array([0, 1, 2]), np.array([1, 5, 3]), np.array([0, 0, 1])
    assert known.run_times(*pairs).tolist() == [10, 12, 40]
    assert known.energies(*pairs).tolist() == [1200, 1200, 800]
    assert known.runnable([0, 1, 2], [0, 1]).tolist() == [True, False, True]
    assert known.n_pstates(platform).tolist() == [2] * 7
    assert not known.always_feasible
    with pytest.raises(InputError, match="of these tasks only"):
        known.of(tasks)


def test_nodes_have_pstates_for_the_types_of_their_cluster_only():
    """A runs type 0 and has two P-states; B runs both and has four."""
    platform, tasks = two_clusters(), jobs((0, 0, 4), (0, 1, 4))
    assert platform.n_pstates.tolist() == [2, 2, 2, 4, 4, 4, 4]
    assert [cluster.hosts for cluster in platform.clusters] == [(0, 1, 2), (3, 4, 5, 6)]
    assert platform.hosts[3].pstates[2] == PState(1e12 / 12, 5.0, 50.0, 50.0)
    known = estimates_of(platform, tasks)
    assert [known.host_pstate(0, 1, h) for h in (0, 3)] == [1, 1]
    assert [known.host_pstate(1, k, 3) for k in (0, 1)] == [2, 3]
    assert [known.scheduler_pstate(1, k) for k in (2, 3)] == [0, 1]


def test_a_policy_learns_of_tasks_as_they_arrive():
    """Concealed estimates know nothing, and then the first tasks; what is typical they know."""
    known = estimates_of(two_clusters(), jobs((0, 0, 4), (0, 1, 4)))
    seen, reveal = known.concealed()
    assert [len(a) for a in (seen.time_s, seen.nodes, seen.task_type, seen.energy_j)] == [0] * 4
    reveal(1)
    assert seen.width(0, 0) == 1
    with pytest.raises(IndexError):
        seen.run_time(1, 3, 0)
    assert seen.typical_time_s is known.typical_time_s
    assert len(known.time_s) == 2
    assert not known.time_s.flags.writeable


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"time_s": np.ones((1, 2))}, "time_s has shape"),
        ({"nodes": [[1]]}, r"nodes has shape \(1, 1\); with 1 tasks, 2 task types and 2 clusters"),
        ({"node_power_w": NODE_POWER_W[:, :1]}, "node_power_w has shape"),
        ({"task_type": [2]}, "Task types reach from 2 to 2; node_power_w has types 0 to 1"),
        ({"node_power_w": -NODE_POWER_W}, "at least 0 W"),
        ({"time_s": np.zeros((1, 2, 2))}, "greater than 0"),
        ({"task_type": [1]}, "task 0 is finite on cluster 'A', where node_power_w says"),
        ({"nodes": [[4, 1]]}, "Task 0 takes 4 nodes of cluster 'A', which has 3"),
        ({"nodes": [[0, 1]]}, "Task 0 takes 0 nodes of cluster 'A'"),
        ({"typical_time_s": np.ones((1, 2, 2))}, "typical_time_s has shape"),
        ({"platform": None}, "host 'x0' has 1 P-states; its cluster needs 2, one for each"),
    ],
)
def test_what_does_not_fit_is_refused(changes, why):
    """The message names the array, the task or the host, what is legal and what was found."""
    other = Platform(
        tuple(Host(f"x{k}", (PState(1.0),)) for k in range(7)), (Cluster("A", (0, 1, 2)), Cluster("B", (3, 4, 5, 6)))
    )
    fine = {
        "platform": two_clusters(),
        "time_s": np.ones((1, 2, 2)),
        "nodes": [[1, 1]],
        "node_power_w": NODE_POWER_W,
        "task_type": [0],
    }
    ParallelEstimates(**fine)
    given = {**fine, **changes}
    with pytest.raises(InputError, match=why):
        ParallelEstimates(**{**given, "platform": given["platform"] or other})


def test_a_cluster_that_runs_nothing_is_refused():
    """SimGrid needs a P-state for each node."""
    with pytest.raises(InputError, match=r"'c1'.*2 nodes.*0 task types"):
        node_platform(TYPICAL_S[1:], NODE_POWER_W[1:], [2, 2])
    with pytest.raises(InputError, match=r"'c2'.*0 nodes"):
        node_platform(TYPICAL_S, NODE_POWER_W, [2, 0])


def test_rigid_jobs_take_as_many_nodes_everywhere():
    """Their estimates know the width, and the energy of all nodes; a serial task takes one."""
    pstates = (PState(10.0, 5.0, 20.0, 20.0),)
    platform = Platform(tuple(Host(f"n{k}", pstates) for k in range(3)), (Cluster("c", (0, 1, 2)),))
    known = FlopsEstimates(platform, make_tasks([100.0, 100.0, 100.0], width=[2, 3, 4]))
    assert (known.width(0, 2), known.energy(1, 0, 0)) == (2, 600.0)
    assert known.runnable([0, 1, 2], [0, 1, 2]).tolist() == [True, True, False]
    seen, reveal = known.concealed()
    with pytest.raises(IndexError):
        seen.width(0, 0)
    reveal(2)
    assert seen.width(1, 0) == 3
    assert FlopsEstimates(platform, make_tasks([1.0])).width(0, 0) == 1
