"""Parallel policies, and their worked examples."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import rigid_oracles as oracles
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_cases import ORACLES, machine, scenario, starts

from gridsched import Scenario, run
from gridsched.drivers.simgrid_library import HOW_TO_INSTALL, is_installed
from gridsched.energy import trace_energy
from gridsched.errors import InputError
from gridsched.model.parallel_estimates import ParallelEstimates, node_platform
from gridsched.model.platform import Platform
from gridsched.model.rules import EnergyBudget
from gridsched.model.task_types import TYPED_TASK_FLOPS
from gridsched.model.tasks import make_tasks
from gridsched.model.utility import UtilityClasses, UtilityFunctions
from gridsched.policy.registry import make_scheduler
from gridsched.schedulers.kernels.availability import starts_now
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences
from gridsched.testing.parallel_cases import make_parallel_case

# FCFS, EASY and conservative backfilling: by hand, and against plain oracles.

#: Section I's jobs: (submission, run time, nodes, estimate).
EXAMPLE = [(0, 10, 3, 10), (1, 5, 4, 5), (2, 20, 1, 20), (3, 7, 1, 7)]
STARTS = {"fcfs": [0, 10, 15, 15], "easy_backfilling": [0, 10, 15, 3], "conservative_backfilling": [0, 10, 15, 3]}


@pytest.mark.parametrize("scheduler", STARTS)
def test_the_example_of_section_i(scheduler):
    """Starts, nodes of the lowest ids, and joules by hand: 77 busy and 63 idle node-seconds."""
    result = run(scenario(EXAMPLE, 4, scheduler))
    assert result.trace.start_time_s.tolist() == STARTS[scheduler]
    hosts = {int(task): result.trace.hosts_of(k).tolist() for k, task in enumerate(result.trace.executions["task"])}
    assert hosts[0] == [0, 1, 2]
    assert hosts[2] == [0]
    assert hosts[3] == ([1] if scheduler == "fcfs" else [3])
    assert result.summary()["energy_j"] == 77 * 200 + 63 * 50


@pytest.mark.skipif(not is_installed(), reason=HOW_TO_INSTALL)
@pytest.mark.parametrize("scheduler", STARTS)
def test_the_example_on_simgrid(scheduler):
    """The same starts and nodes; the plugin's joules are the model's, node by node."""
    result = run(scenario(EXAMPLE, 4, scheduler, driver="simgrid"))
    expected = run(scenario(EXAMPLE, 4, scheduler))
    assert trace_differences(expected.trace, result.trace) == []
    assert result.trace.start_time_s.tolist() == pytest.approx(STARTS[scheduler], rel=1e-9)
    assert metered_differences(result) == []
    assert result.energy_plugin_j == pytest.approx(77 * 200 + 63 * 50, rel=1e-9)


JOBS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 20), st.integers(1, 8), st.sampled_from([0, 0, 1, 7, 30])),
    min_size=1,
    max_size=40,
)


@settings(max_examples=30, deadline=None)
@given(JOBS, st.integers(8, 12), st.sampled_from(sorted(ORACLES)))
def test_starts_are_those_of_the_oracles(jobs, n_nodes, scheduler):
    """Random jobs whose estimates are right or too long: the same starts, to the last digit."""
    jobs = [(submit, length, width, length + more) for submit, length, width, more in sorted(jobs)]
    found = starts(jobs, n_nodes, scheduler)
    assert found == oracles.simulate(jobs, n_nodes, ORACLES[scheduler])
    if scheduler == "conservative_backfilling":
        assert found == oracles.simulate(jobs, n_nodes, oracles.conservative_by_steps)


RULES = oracles.fcfs, oracles.easy, oracles.conservative


@pytest.mark.parametrize(("reservations", "rule"), list(enumerate(RULES)))
def test_one_rule_starts_what_the_oracles_start(reservations, rule):
    """1,000 queues beside what runs: with no, one and all reservations it is FCFS, EASY and conservative."""
    rng = np.random.default_rng(34)
    for _ in range(1000):
        n_free, m = int(rng.integers(0, 6)), int(rng.integers(1, 10))
        end, freed = rng.integers(11, 30, 5).astype(np.float64), rng.integers(1, 4, 5)
        run_time, width = rng.integers(1, 20, m).astype(np.float64), rng.integers(1, 1 + n_free + freed.sum(), m)
        queue = rng.permutation(m)
        starts = np.empty(m, dtype=np.int64)
        count = starts_now(reservations, 10.0, queue, run_time, width, n_free, end, freed, starts, ())
        rows = [(j, width.item(j), run_time.item(j)) for j in queue.tolist()]
        expected = rule(10.0, rows, n_free, list(zip(end.tolist(), freed.tolist(), strict=True)))
        assert starts[:count].tolist() == expected


@settings(max_examples=20, deadline=None)
@given(JOBS, st.integers(8, 12))
def test_reservations_made_anew_are_those_made_at_arrival(jobs, n_nodes):
    """Conservative backfilling with memory, rebuilt only after early ends, starts jobs alike."""
    jobs = [(submit, length, width, length + more) for submit, length, width, more in sorted(jobs)]
    expected = oracles.simulate(jobs, n_nodes, oracles.ReservedOnce())
    assert starts(jobs, n_nodes, "conservative_backfilling") == expected


def test_a_reservation_may_move_to_a_later_time():
    """Rebuilt in order of the queue, A takes earlier what B had: B moves from 5 to 10.

    Four nodes: R1 has one until 10, R2 one until 5, R3 two until 10. A (3 nodes, 10 s) is
    reserved at 10, B (1 node, 5 s) at 5. R3 ends at 2: A moves to 5, where three are free, and
    stays till 15; B finds a node for 5 s only from 10 on.
    """
    jobs = [(0, 10, 1, 10), (0, 5, 1, 5), (0, 2, 2, 10), (1, 10, 3, 10), (1, 5, 1, 5)]
    assert oracles.simulate(jobs, 4, oracles.conservative) == starts(jobs, 4, "conservative_backfilling")
    as_estimated = [(*job[:1], job[3], *job[2:]) for job in jobs]
    assert starts(as_estimated, 4, "conservative_backfilling")[3:] == [10.0, 5.0]
    assert starts(jobs, 4, "conservative_backfilling")[3:] == [5.0, 10.0]


def test_a_job_that_outlives_its_estimate_counts_as_ending_at_once():
    """Beyond its estimate of 4 s a job holds its nodes; what needs them waits, others overtake.

    Three nodes: J1 takes two until 10 s, asked for 4 s. J2 needs three. At 6 s J3 (one node, 2 s)
    comes: the shadow time is a moment away, no node is extra; it waits for J2.
    """
    jobs = [(0, 10, 2, 4), (1, 5, 3, 5), (6, 2, 1, 2)]
    for scheduler in ("easy_backfilling", "conservative_backfilling"):
        assert starts(jobs, 3, scheduler) == [0.0, 10.0, 15.0]


@pytest.mark.parametrize("scheduler", ["easy_backfilling", "conservative_backfilling"])
def test_all_that_outlive_their_estimates_count_as_ending_together(scheduler):
    """Two of four nodes are held beyond 2 and 4 s until 10 s; J3 needs three.

    At 6 s J4 comes, one node for 20 s: when both end, a node is left beside J3, so it starts.
    """
    jobs = [(0, 10, 1, 2), (0, 10, 1, 4), (1, 5, 3, 5), (6, 20, 1, 20)]
    assert starts(jobs, 4, scheduler) == [0.0, 0.0, 10.0, 6.0]


@pytest.mark.parametrize(
    ("third", "expected"),
    [
        # T3 outlives the shadow time and takes both extra nodes: T4 has to wait for T2's
        ((0, 20, 2, 20), [0.0, 10.0, 0.0, 15.0]),
        # T3 ends by the shadow time, and takes none of them
        ((0, 9, 2, 9), [0.0, 10.0, 0.0, 0.0]),
        # one of them is left, too few for T4
        ((0, 20, 1, 20), [0.0, 10.0, 0.0, 15.0]),
    ],
)
def test_a_job_that_overtakes_uses_up_the_extra_nodes(third, expected):
    """Eight nodes, four busy until 10 s, six wanted from then on: two are extra."""
    jobs = [(0, 10, 4, 10), (0, 5, 6, 5), third, (0, 20, 2, 20)]
    assert starts(jobs, 8, "easy_backfilling") == expected


@pytest.mark.systems("utility")
@pytest.mark.parametrize("scheduler", ["easy_backfilling", "conservative_backfilling"])
def test_nodes_beyond_their_estimate_are_not_free(scheduler):
    """T1 has two of three nodes until 10 s and asked for 4 s; T2 comes at 6 s and takes the third.

    With permanent reservations T2 would begin on busy nodes if these looked free.
    """
    permanent = make_scheduler(scheduler, {"reservations": "permanent"})
    trace = run(scenario([(0, 10, 2, 4), (6, 2, 1, 2)], 3, permanent)).trace
    assert (trace.start_time_s.tolist(), trace.host_ids.tolist()) == ([0.0, 6.0], [0, 1, 2])


def test_a_reservation_takes_its_nodes_until_its_end_alone():
    """Of four nodes J1 has three until 2 s, J2 all four until 5 s; J3 would run beyond 2 s."""
    jobs = [(0, 2, 3, 2), (0, 3, 4, 3), (0, 9, 1, 14)]
    assert starts(jobs, 4, "conservative_backfilling") == [0.0, 2.0, 5.0]


def test_nodes_that_are_off_hold_no_job():
    """A job that needs a node that stays off blocks FCFS, and is overtaken by the others."""
    jobs = [(0, 5, 1, 5), (0, 5, 3, 5), (0, 5, 1, 5)]
    for scheduler in ("easy_backfilling", "conservative_backfilling"):
        with pytest.raises(Exception, match=r"1 of 3.* 2"):
            run(scenario(jobs, 3, scheduler, hosts_off=("n0",)))
    with pytest.raises(Exception, match=r"2 of 3.* 2, 3"):
        run(scenario(jobs, 3, "fcfs", hosts_off=("n0",)))


def test_several_clusters_and_bad_parameters_are_refused():
    """One line each, before the run."""
    platform = Platform(machine(2).hosts)
    tasks = make_tasks([1e9], width=1, requested_time_s=1.0)
    with pytest.raises(InputError, match=r"FCFS.*one.*2"):
        run(Scenario(platform, tasks, "fcfs", driver="reference"))
    policy = make_scheduler("conservative_backfilling", {"reservations": "kept"})
    with pytest.raises(InputError, match=r"'reservations'.*conservative_backfilling.*'kept'"):
        run(scenario(EXAMPLE, 4, policy))


# Algorithms C6 on both drivers: the worked examples of parallel tasks, the testbed's choices.

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


def started(trace) -> dict[int, tuple[float, list[int]]]:
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
    return started(trace)


@pytest.mark.systems("utility")
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
    """With a cold cache a time-out of 15 s passes while its kernels are compiled, on no run."""
    program = (
        "import sys; sys.path[:0] = sys.argv[1:]; import test_parallel_policies as tests\n"
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


@pytest.mark.systems("utility")
@needs_simgrid
def test_easy_backfilling():
    """T3 waits without a reservation until T1 has started; a T2 of 15 s cannot start before."""
    easy = make_scheduler("easy_backfilling", {"reservations": "permanent"})
    assert example(easy) == {0: (0.0, [1, 2]), 1: (10.0, [1, 2, 3]), 2: (0.0, [3, 4]), 3: (30.0, [1, 2])}
    assert example(easy, t2_s=15.0)[2][0] == 30.0


@pytest.mark.systems("utility")
@needs_simgrid
@pytest.mark.parametrize(
    ("mode", "rules", "t1", "t2"),
    [
        ("reservation", {}, [1, 3, 4], [1, 3]),
        ("placeholder", {"mapping_interval_s": 1000.0}, [1, 3, 4], [1, 3]),
        # planned again at 15 s, when all nodes are free from now on
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


@pytest.mark.systems("utility")
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


@pytest.mark.systems("utility")
@pytest.mark.parametrize("scheduler", ["conservative_backfilling", "easy_backfilling"])
def test_rigid_jobs_need_the_energy_of_all_their_nodes_once(scheduler):
    """Three nodes of 40 W for 10 s are 1,200 J: of two such jobs 2,000 J admit one a period."""
    case = make_parallel_case(
        "two jobs", 6, [(0, 10, 3, 10)] * 2, draws_idle=False, budget=EnergyBudget(2000.0, period_s=60.0)
    )
    made = make_scheduler(scheduler, {"reservations": "permanent"})
    trace = run(case.scenario(made, driver="reference")).trace
    assert trace.start_time_s.tolist() == [0.0, 60.0]
