"""Estimates of serial and parallel tasks, of types, and what a task may be."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from clusters import INF, NODE_POWER_W, TYPICAL_S, estimates_of, jobs, two_clusters
from hypothesis import given
from hypothesis import strategies as st

from gridsched import Scenario, run
from gridsched.errors import InputError
from gridsched.model.estimates import FlopsEstimates
from gridsched.model.parallel_estimates import ParallelEstimates, node_platform
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.model.rules import EnergyBudget
from gridsched.model.task_types import TYPED_TASK_FLOPS, TaskTypes, typed_platform
from gridsched.model.tasks import ArrivedTasks, make_tasks

# Estimates of parallel tasks on several clusters, and the platform that SimGrid meters.


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
        ({"nodes": [[1]]}, r"nodes has shape \(1, 1\); with 1 task, 2 task types and 2 clusters"),
        ({"node_power_w": NODE_POWER_W[:, :1]}, "node_power_w has shape"),
        ({"task_type": [2]}, "Task types reach from 2 to 2; node_power_w has types 0 to 1"),
        ({"node_power_w": -NODE_POWER_W}, "at least 0 W"),
        ({"time_s": np.zeros((1, 2, 2))}, "greater than 0"),
        ({"task_type": [1]}, "task 0 is finite on cluster 'A', where node_power_w has"),
        ({"nodes": [[4, 1]]}, "Task 0 takes 4 nodes of cluster 'A', which has 3"),
        ({"nodes": [[0, 1]]}, "Task 0 takes 0 nodes of cluster 'A'"),
        ({"typical_time_s": np.ones((1, 2, 2))}, "typical_time_s has shape"),
        ({"platform": None}, "host 'x0' has 1 P-states; its cluster needs 2, one for each"),
    ],
)
def test_what_does_not_fit_is_refused(changes, why):
    """The message names the array, the task or the host, what is allowed and what was found."""
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


# Idle power by host type: what it adds to a run's energy, by hand, and to an energy budget.


def two_types(idle_w=0.0) -> TaskTypes:
    """Type 0 takes 2 s at 10 W or 4 s at 2.5 W; type 1 runs on the second host type only, 3 s."""
    etc = np.array([[[2.0], [4.0]], [[INF], [3.0]]])
    apc = np.array([[[10.0], [2.5]], [[0.0], [5.0]]])
    return TaskTypes(etc, apc, np.array([0, 1]), idle_w=np.array(idle_w))


def bag(*task_type: int):
    """Tasks of these types, all there at the start."""
    return make_tasks([TYPED_TASK_FLOPS] * len(task_type), task_type=list(task_type))


def scenario(types: TaskTypes, tasks, **changes) -> Scenario:
    """The tasks on the two hosts, each to the host that finishes it first."""
    return Scenario(typed_platform(types), tasks, "mct", types=types, **changes)


@pytest.mark.parametrize("driver", ["reference", "simgrid"])
@pytest.mark.parametrize(("idle_w", "idle_j"), [(0.0, 0.0), ((1.0, 0.25), 1.0), (2.0, 2.0)])
def test_an_idle_host_draws_its_types_power(driver, idle_w, idle_j):
    """Host 0: 20 J in 2 s, then idle for 1 s; host 1: 15 J in 3 s."""
    result = run(scenario(two_types(idle_w), bag(0, 1), driver=driver))
    numbers = result.summary()
    assert numbers["makespan_s"] == pytest.approx(3.0, rel=1e-12)
    assert numbers["energy_idle_j"] == pytest.approx(idle_j, rel=1e-12)
    assert numbers["energy_j"] == pytest.approx(35.0 + idle_j, rel=1e-12)
    assert numbers["energy_model_j"] == pytest.approx(35.0 + idle_j, rel=1e-12)


def test_a_task_may_draw_less_than_its_idle_host():
    """A type that waits for memory, say: 2.5 W on a host that idles at 4 W."""
    result = run(scenario(two_types((1.0, 4.0)), bag(0, 0, 0), driver="reference"))
    # host 0: 2 tasks, 4 s at 10 W; host 1: 1 task, 4 s at 2.5 W
    assert result.summary()["energy_j"] == pytest.approx(50.0, rel=1e-12)


def test_every_p_state_of_a_host_has_its_types_idle_power():
    """Whatever a host ran last, it idles at the same power; the default is 0."""
    platform = typed_platform(two_types((1.0, 0.25)))
    assert platform.idle_w.tolist() == [[1.0, 1.0], [0.25, 0.25]]
    assert typed_platform(two_types()).idle_w.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_the_energy_budget_counts_idle_power():
    """A period of 2 s: host 0 busy 20 J; host 1 busy 10 J; the next: 1 J idle, and 5 J."""
    budget = EnergyBudget(100.0, period_s=2.0)
    types = two_types((1.0, 0.25))
    trace = run(scenario(types, bag(0, 1), driver="reference", budget=budget)).trace
    assert trace.periods["consumed_j"].tolist() == pytest.approx([30.0, 6.0], rel=1e-12)


def test_estimates_hand_idle_power_on():
    """A policy reads it by host type, of these tasks and of others."""
    estimates = two_types((1.0, 0.25)).estimates(bag(0, 1))
    assert estimates.idle_w.tolist() == [1.0, 0.25]
    assert estimates.of(bag(1)).idle_w.tolist() == [1.0, 0.25]


@pytest.mark.parametrize("idle_w", [(-1.0, 0.0), (1.0,), (1.0, 2.0, 3.0), (INF, 0.0), (np.nan, 0)])
def test_illegal_idle_powers_are_refused(idle_w):
    """One number for each host type, from 0 on."""
    with pytest.raises(InputError, match="2 host types"):
        two_types(idle_w)


# Bags of tasks: order, checks and the heterogeneity rules of algorithms A6.2.

SIZES = st.floats(1.0, 1e12)


def test_tasks_are_in_order_of_submission_and_stable():
    """Tasks of one instant keep their order; labels and bytes go with them."""
    tasks = make_tasks(
        [1.0, 2.0, 3.0, 4.0], [5.0, 0.0, 5.0, 0.0], output_bytes=[10, 20, 30, 40], labels=[11, 12, 13, 14]
    )
    assert tasks.flops.tolist() == [2.0, 4.0, 1.0, 3.0]
    assert tasks.labels.tolist() == [12, 14, 11, 13]
    assert tasks.output_bytes.tolist() == [20, 40, 10, 30]


def test_nodes_and_requested_times_go_with_their_tasks():
    """They are sorted with the tasks, and a scalar serves for all; serial tasks have none."""
    tasks = make_tasks([1.0, 2.0], [5.0, 0.0], width=[3, 4], requested_time_s=[30.0, 40.0])
    assert tasks.width.tolist() == [4, 3]
    assert tasks.requested_time_s.tolist() == [40.0, 30.0]
    assert ArrivedTasks(tasks).first(1).width.tolist() == [4]
    assert make_tasks([1.0, 2.0], width=7).width.tolist() == [7, 7]
    assert make_tasks([1.0]).requested_time_s is None


@pytest.mark.parametrize(
    ("width", "each"), [(None, (1, [1], True, 0, ("cores",))), (3, (3, [1], False, 0, ("whole node",)))]
)
def test_every_task_has_parts_and_a_demand(width, each):
    """One core is the default; whole nodes are one of one each. The defaults take no memory, also when pickled."""
    n = 1_000_000
    tasks = make_tasks(np.ones(n), width=width)
    rows = tasks.taken(np.array([5, 2]))
    for some in (tasks, pickle.loads(pickle.dumps(tasks)), ArrivedTasks(tasks).first(7), rows):
        first = some.width[0], some.demand[0].tolist(), some.anywhere[0], some.partition[0], some.resources
        assert first == each
        assert some.width.shape == some.size.shape == some.anywhere.shape == (len(some),)
        assert some.demand.shape == (len(some), 1)
        assert (some.size == each[0]).all()
    constants = [tasks.demand, tasks.anywhere, tasks.partition, *([tasks.width] if width is None else [])]
    assert all(column.strides[0] == 0 for column in constants)
    assert len(pickle.dumps(tasks)) < (40 if width is None else 48) * n + 10_000
    assert all(each.flags.c_contiguous and len(each) == n for each in tasks.parts)


def test_heterogeneity_is_the_nominal_value_where_there_is_one():
    """The generator's value wins over the measured spread."""
    assert make_tasks([75.0, 125.0], nominal_heterogeneity=0.4).heterogeneity == 0.4
    assert make_tasks([100.0, 100.0], nominal_heterogeneity=1.0).heterogeneity == 1.0


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([75.0, 125.0], 0.5),
        ([100.0, 100.0, 100.0], 0.0),
        ([42.0], 0.0),
        ([], 0.0),
        ([1000.0, 500.0, 2000.0, 1500.0, 250.0], 1.0),  # EX-A: 1750/1050, clamped
    ],
)
def test_measured_heterogeneity(sizes, expected):
    """(max - min) / mean, clamped to [0, 1]."""
    assert make_tasks(sizes).heterogeneity == pytest.approx(expected, rel=1e-15)


@given(st.lists(SIZES, min_size=1, max_size=30), st.floats(1e-6, 1e6))
def test_heterogeneity_does_not_depend_on_unit_or_order(sizes, factor):
    """Sizes in another unit, or in another order, are as heterogeneous."""
    h = make_tasks(sizes).heterogeneity
    assert 0.0 <= h <= 1.0
    assert make_tasks(np.array(sizes[::-1]) * factor).heterogeneity == pytest.approx(h, abs=1e-9)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"flops": [1.0, 0.0]}, "task 2 has flops 0; it must be finite and greater than 0"),
        ({"flops": [-1.0]}, "task 1 has flops -1"),
        ({"flops": [float("nan")]}, "task 1 has flops nan"),
        ({"flops": [float("inf")]}, "task 1 has flops inf"),
        ({"flops": [1.0], "submit_time_s": [-1.0]}, "task 1 has submit_time_s -1; it must be finite"),
        ({"flops": [1.0], "input_bytes": [float("nan")]}, "task 1 has input_bytes nan"),
        ({"flops": [1.0], "output_bytes": [-2.0]}, "task 1 has output_bytes -2"),
        ({"flops": [1.0, 1.0], "width": [2, 0]}, "task 2 has width 0; it must be a whole number"),
        ({"flops": [1.0], "width": [1.5]}, "task 1 has width 1.5"),
        ({"flops": [1.0], "width": [float("nan")]}, "task 1 has width nan"),
        ({"flops": [1.0], "requested_time_s": [0.0]}, "task 1 has requested_time_s 0; it must be"),
        ({"flops": [1.0, 1.0], "labels": [3, 3]}, "task ids must be as many as tasks"),
        ({"flops": [1.0, 1.0], "labels": [3]}, "task ids must be as many as tasks"),
    ],
)
def test_bad_values_are_refused(columns, message):
    """The message names the task and what is allowed."""
    with pytest.raises(InputError, match=message):
        make_tasks(**columns)


def test_arrays_are_read_only():
    """A bag of tasks cannot be changed by accident."""
    tasks = make_tasks([1.0, 2.0], task_type=[0, 1])
    frozen = [tasks.flops, tasks.submit_time_s, tasks.input_bytes, tasks.output_bytes, tasks.labels]
    assert not any(array.flags.writeable for array in frozen)
