"""Algorithms C6 on both drivers: the worked examples of parallel tasks, the testbed's choices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gridsched.energy import trace_energy
from gridsched.model.parallel_estimates import ParallelEstimates, node_platform
from gridsched.model.rules import EnergyBudget
from gridsched.model.task_types import TYPED_TASK_FLOPS
from gridsched.model.tasks import make_tasks
from gridsched.model.utility import UtilityFunctions
from gridsched.model.utility_classes import UtilityClasses
from gridsched.policy.registry import make_scheduler
from gridsched.runs.run import run
from gridsched.runs.scenario import Scenario
from gridsched.sim.library import HOW_TO_INSTALL, is_installed
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences
from gridsched.testing.parallel_cases import make_parallel_case

needs_simgrid = pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
INF = np.inf


def on_both(scheduler, platform, tasks, estimates, **rules):
    """Run on both drivers, which must agree, joules of the plugin too; return the trace."""
    traces = {}
    for driver in ("reference", "simgrid"):
        result = run(Scenario(platform, tasks, scheduler, estimates=estimates, driver=driver, timeout_s=60.0, **rules))
        traces[driver] = result.trace
    assert trace_differences(traces["reference"], traces["simgrid"]) == []
    assert metered_differences(result) == []
    return traces["simgrid"]


def starts(trace) -> dict[int, tuple[float, list[int]]]:
    """Return start [s] and nodes, numbered from 1, of each task that started."""
    return {
        task: (start, (trace.hosts_of(k) + 1).tolist())
        for k, (task, start) in enumerate(trace.executions[["task", "start"]].tolist())
    }


def example(scheduler, *, t2_s=10.0, u3=3.0, **rules):
    """Play T1 to T3 behind a task 0 that has n1 and n2 until 10 s; 4 nodes of 10 cores, 10 W."""
    times, nodes = np.array([10.0, 20.0, t2_s, 15.0]), np.array([2, 3, 2, 2])
    power = np.full((1, 1, 1), 10.0)
    platform = node_platform(np.full((1, 1, 1), 10.0), power, [4], idle_w=1.0)
    tasks = make_tasks(
        [TYPED_TASK_FLOPS] * 4,
        0.0,
        task_type=[0] * 4,
        width=10 * nodes,
        utility=UtilityFunctions.exponential([100.0, 6.0, 2.0, u3], 0.0),
    )
    known = ParallelEstimates(
        platform,
        times[:, None, None],
        nodes[:, None],
        power,
        tasks.task_type,
        typical_time_s=np.full((1, 1, 1), 10.0),
        typical_nodes=[[1]],
        cores_per_node=10,
    )
    trace = on_both(scheduler, platform, tasks, known, **rules)
    assert trace_energy(trace).grid_total() == pytest.approx(
        float(9 * (times * nodes).sum() + 4 * trace.horizon_s), rel=1e-9
    )
    return starts(trace)


@needs_simgrid
def test_conservative_backfilling():
    """T1 reserved from 10 to 30 s, T2 at once, T3 reserved from 30 to 45 s."""
    assert example(make_scheduler("conservative_backfilling", {"reservations": "permanent"})) == {
        0: (0.0, [1, 2]),
        1: (10.0, [1, 2, 3]),
        2: (0.0, [3, 4]),
        3: (30.0, [1, 2]),
    }


@needs_simgrid
@pytest.mark.long
def test_compiling_is_no_part_of_a_run(tmp_path):
    """With a cold cache a time-out of 15 s goes by while its kernels are compiled, on no run."""
    program = (
        "import sys; sys.path[:0] = sys.argv[1:]; import test_parallel_worked_examples as tests\n"
        "scenario = tests.Scenario\n"
        "tests.Scenario = lambda *a, **k: scenario(*a, **(k | {'timeout_s': 15.0}))\n"
        "tests.test_conservative_backfilling()\n"
    )
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", program, here, here.parent, here.parents[1]],
        check=False,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@needs_simgrid
def test_easy_backfilling():
    """T3 waits without a reservation until T1 has started; a T2 of 15 s cannot start before."""
    easy = make_scheduler("easy_backfilling", {"reservations": "permanent"})
    assert example(easy) == {0: (0.0, [1, 2]), 1: (10.0, [1, 2, 3]), 2: (0.0, [3, 4]), 3: (30.0, [1, 2])}
    assert example(easy, t2_s=15.0)[2][0] == 30.0


@needs_simgrid
@pytest.mark.parametrize(
    ("mode", "rules", "t1", "t2"),
    [
        ("reservation", {}, [1, 3, 4], [1, 3]),
        ("placeholder", {"mapping_interval_s": 1000.0}, [1, 3, 4], [1, 3]),
        # planned anew at 15 s, when all nodes are free from now on
        ("placeholder", {}, [1, 2, 3], [1, 2]),
    ],
)
def test_max_upr(mode, rules, t1, t2):
    """T3 first, T1 before T2, which is worth as much per resource and has the higher id."""
    max_upr = make_scheduler("max_upr", {"mode": mode, "energy_filter": "none"})
    assert example(max_upr, u3=4.5, **rules) == {0: (0.0, [1, 2]), 3: (0.0, [3, 4]), 1: (15.0, t1), 2: (35.0, t2)}


#: The testbed's IS.8, MG.8, MG.16 and IS_CG.8 on its clusters of 16, 8, 4 and 2 nodes.
TESTBED_S = np.array([[1675, 750, 552, 430], [1100, 712, INF, INF], [702, 500, 380, 326], [1039, 900, 700, 1366]])
TESTBED_J = np.array(
    [
        [25962, 35250, 17388, 28380],
        [27500, 41296, INF, INF],
        [34398, 55000, 30400, 50530],
        [23897, 47700, 27650, 105865],
    ]
)


@needs_simgrid
@pytest.mark.parametrize(("scheduler", "clusters"), [("max_upr", [4, 2, 4, 3]), ("max_upe", [3, 1, 3, 1])])
def test_choices_on_the_empty_testbed(scheduler, clusters):
    """Tasks of worth 4 until 2.5 times their shortest times, one after the other.

    The plugin meters the joules that the paper prints.
    """
    cores = np.array([8, 8, 16, 8])
    cores_per_node, sizes = np.array([1, 2, 4, 8]), [16, 8, 4, 2]
    nodes = cores[:, None] // cores_per_node
    feasible = np.isfinite(TESTBED_S)
    power = np.full(TESTBED_S.shape, INF)
    power[feasible] = TESTBED_J[feasible] / TESTBED_S[feasible] / nodes[feasible]
    platform = node_platform(TESTBED_S[:, :, None], power[:, :, None], sizes)
    shortest = TESTBED_S.min(axis=1) / 60.0
    classes = UtilityClasses.joined([UtilityClasses.plateau_linear(2.5 * each, 4 * each) for each in shortest.tolist()])
    types = np.arange(4)
    tasks = make_tasks(
        [TYPED_TASK_FLOPS] * 4,
        2000.0 * types,
        task_type=types,
        width=cores,
        utility=UtilityFunctions(np.full(4, 4.0), np.zeros(4), types, classes),
    )
    known = ParallelEstimates(
        platform,
        TESTBED_S[:, :, None],
        nodes,
        power[:, :, None],
        types,
        typical_time_s=TESTBED_S[:, :, None],
        typical_nodes=nodes,
        cores_per_node=cores_per_node,
    )
    made = make_scheduler(scheduler, {"energy_filter": "none"})
    trace = on_both(made, platform, tasks, known, mapping_interval_s=50.0)
    chosen = np.array(clusters) - 1
    assert platform.cluster_of[trace.executions["host"]].tolist() == chosen.tolist()
    assert trace.start_time_s.tolist() == tasks.submit_time_s.tolist()
    assert trace.executions["end"] - trace.executions["start"] == pytest.approx(TESTBED_S[types, chosen])
    assert trace_energy(trace).execution_j == pytest.approx(TESTBED_J[types, chosen])
    # IS.8 would end late on cluster 1
    assert tasks.utility.value([0], 1675.0) == pytest.approx(4 * (1720 - 1675) / 645)


@pytest.mark.parametrize("scheduler", ["conservative_backfilling", "easy_backfilling"])
def test_rigid_jobs_need_the_energy_of_all_their_nodes_once(scheduler):
    """Three nodes of 40 W for 10 s are 1,200 J: of two such jobs 2,000 J admit one a period."""
    case = make_parallel_case(
        "two jobs", 6, [(0, 10, 3, 10)] * 2, draws_idle=False, budget=EnergyBudget(2000.0, period_s=60.0)
    )
    made = make_scheduler(scheduler, {"reservations": "permanent"})
    trace = run(case.scenario(made, driver="reference")).trace
    assert trace.start_time_s.tolist() == [0.0, 60.0]
