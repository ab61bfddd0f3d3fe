"""Paper 001 by hand: the worked examples of algorithms C6, and what the testbed's tasks choose."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gridsched import Scenario, run
from gridsched.drivers.simgrid_library import is_installed
from gridsched.model.parallel_estimates import ParallelEstimates, node_platform
from gridsched.model.rules import EnergyBudget
from gridsched.model.signals import EVEN
from gridsched.model.task_types import TYPED_TASK_FLOPS
from gridsched.model.tasks import make_tasks
from gridsched.model.utility import UtilityFunctions
from gridsched.policy.registry import make_scheduler
from gridsched.policy.state import EnergyState
from gridsched.runs.study_document import shipped_study_file
from gridsched.systems.utility.kernels.node_profile import Reserved, cluster_nodes, node_profile
from gridsched.systems.utility.kernels.parallel_options import UPE, UPR, ParallelLimits, ParallelRows, passes_filter
from gridsched.systems.utility.mapping_event import EnergyPerResource, EnergyPerTask, resources_remaining
from gridsched.systems.utility.permanent import mean_resources
from gridsched.workloads.generators import checked_parameters, generator_of

DRIVERS = ("reference", "simgrid") if is_installed() else ("reference",)
STUDIES = shipped_study_file("parallel_testbed").parent
INF = math.inf


def scenario(
    scheduler: str,
    t2_s: float = 10.0,
    worth_of_t3: float = 3.0,
    t3_s: float = 15.0,
    widths: tuple[int, ...] = (2, 3, 2, 2),
    **parameters,
):
    """Return C6's four nodes of ten cores, ten seconds later: T0 has n1 and n2 until 20 s.

    T1 takes 3 nodes for 20 s, T2 and T3 take 2, T3 for 15 s; utilities are constant.
    """
    times = np.array([20.0, 20.0, t2_s, t3_s])[:, None, None]
    nodes = np.array(widths)
    watts = np.full((4, 1, 1), 12.0)
    platform = node_platform(times, watts, [4])
    tasks = make_tasks(
        [TYPED_TASK_FLOPS] * 4,
        [0.0, 10.0, 10.0, 10.0],
        task_type=[0, 1, 2, 3],
        width=nodes * 10,
        utility=UtilityFunctions.exponential([1.0, 6.0, 2.0, worth_of_t3], 0.0),
    )
    estimates = ParallelEstimates(
        platform,
        times,
        nodes[:, None],
        watts,
        [0, 1, 2, 3],
        typical_time_s=times,
        typical_nodes=nodes[:, None],
        cores_per_node=10,
    )
    return Scenario(platform, tasks, scheduler, parameters=parameters, estimates=estimates, mapping_interval_s=10.0)


def placed(whole: Scenario, driver: str) -> dict[str, tuple[float, list[int]]]:
    """Return start [s] and nodes, numbered from 1, of T1 to T3."""
    trace = run(replace(whole, driver=driver)).trace
    return {
        f"T{task}": (start, (trace.hosts_of(k) + 1).tolist())
        for k, (task, start) in enumerate(trace.executions[["task", "start"]].tolist())
        if task
    }


@pytest.mark.parametrize("driver", DRIVERS)
def test_conservative_backfilling(driver: str):
    """T1 is reserved on n1, n2 and, before n4, n3; T2 overtakes it; T3 follows on n1 and n2."""
    found = placed(scenario("conservative_backfilling", reservations="permanent"), driver)
    assert found == {"T1": (20.0, [1, 2, 3]), "T2": (10.0, [3, 4]), "T3": (40.0, [1, 2])}


@pytest.mark.parametrize("driver", DRIVERS)
def test_easy_backfilling(driver: str):
    """T2 overtakes T1 where it ends in time; T3 has no place before T1's reservation has begun."""
    whole = scenario("easy_backfilling", reservations="permanent")
    assert placed(whole, driver) == {"T1": (20.0, [1, 2, 3]), "T2": (10.0, [3, 4]), "T3": (40.0, [1, 2])}
    late = scenario("easy_backfilling", t2_s=15.0, reservations="permanent")
    assert placed(late, driver) == {"T1": (20.0, [1, 2, 3]), "T2": (40.0, [1, 2]), "T3": (40.0, [3, 4])}


def test_easy_reserves_for_one_task_alone():
    """T1 has the reservation; T2 wants all nodes from 40 s on, but T3 has one of them until 45."""
    whole = scenario("easy_backfilling", t3_s=35.0, widths=(2, 3, 4, 1), reservations="permanent")
    assert placed(whole, "reference") == {"T1": (20.0, [1, 2, 3]), "T2": (45.0, [1, 2, 3, 4]), "T3": (10.0, [4])}


def test_what_would_begin_with_the_next_period_is_not_reserved():
    """At 20 s another budget begins: T1 has no place before it, so that T2 may begin at once."""
    whole = scenario("easy_backfilling", t2_s=15.0, reservations="permanent")
    whole = replace(whole, budget=EnergyBudget(1e9, period_s=20.0))
    found = placed(whole, "reference")
    assert (found["T2"], found["T1"][0]) == ((10.0, [3, 4]), 25.0)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("mode", ["placeholder", "reservation"])
def test_max_upr(mode: str, driver: str):
    """T3 is worth .015 per core-second, T1 and T2 .010: T1 is next by its number."""
    whole = scenario("max_upr", worth_of_t3=4.5, mode=mode)
    assert placed(whole, driver) == {"T3": (10.0, [3, 4]), "T1": (25.0, [1, 3, 4]), "T2": (45.0, [1, 3])}


def example_filter_inputs():
    """Return the profile in which 60, 70, 65 and 85 s are free until 100 s, and 1,000 J remain."""
    nothing = np.empty(0)
    reserved = Reserved(nothing, nothing, np.zeros(1, np.int64), np.empty(0, np.int64))
    nodes = cluster_nodes([np.arange(4)], 4)
    profile = node_profile(nodes, np.array([40.0, 30.0, 35.0, 15.0]), reserved)
    energy = EnergyState(1200.0, 150.0, 50.0, 1000.0, 0.0, 0.0, 100.0)
    return profile, energy, ParallelLimits(15.0, 100.0, 1000.0, INF, INF, EVEN.table)


def test_energy_per_resource():
    """2,800 core-seconds remain: 1.4286 W per core. 360 J pass for 300 of them, 480 J do not."""
    profile, energy, limits = example_filter_inputs()
    assert resources_remaining(profile, np.array([10.0]), 100.0) == 2800.0
    # until 35 s two nodes are free for 5 and 20 s; those that get free later take nothing away
    assert resources_remaining(profile, np.array([10.0]), 35.0) == 250.0
    estimates = scenario("max_upr").estimates
    tight = EnergyPerResource(estimates, 4.0).tightened(limits, energy, profile)
    assert tight.resource_budget_w == pytest.approx(1.428571, rel=1e-6)
    budgets = tight.task_budget_j, tight.resource_budget_w
    assert passes_filter.py_func(15.0, 360.0, 20.0, *budgets)
    assert not passes_filter.py_func(15.0, 480.0, 20.0, *budgets)
    # what costs just as much as a budget admits passes: 400 J, or 20 W per core
    assert passes_filter.py_func(10.0, 400.0, 2.0, 400.0, 20.0)


def test_energy_per_task():
    """Means of 300 core-seconds and 400 J: energy for 2.5 tasks, 800 J for each."""
    profile, energy, limits = example_filter_inputs()
    each = EnergyPerTask("max_upr", scenario("max_upr").estimates, 2.0)
    # T0: 400 core-s, T1: 600, T2: 200, T3: 300; at 1.2 W per core
    assert each.mean_resources == pytest.approx(375.0)
    assert each.mean_energy_j == pytest.approx(450.0)
    each.mean_resources, each.mean_energy_j = 300.0, 400.0
    assert each.tightened(limits, energy, profile).task_budget_j == pytest.approx(800.0)


def test_nothing_passes_without_energy_or_time_left():
    """Nothing remains of the energy, or of the day; without a budget everything passes."""
    profile, energy, limits = example_filter_inputs()
    for filter_ in (
        EnergyPerResource(scenario("max_upr").estimates, 4.0),
        EnergyPerTask("max_upr", scenario("max_upr").estimates, 2.0),
    ):
        for state in (replace(energy, remaining_j=0.0), replace(energy, period_end=15.0)):
            tight = filter_.tightened(limits, state, profile)
            assert -INF in (tight.task_budget_j, tight.resource_budget_w)
        for endless in ({"remaining_j": INF}, {"period_end": INF}):
            assert filter_.tightened(limits, replace(energy, **endless), profile) == limits


def test_metaheuristics_compare_with_the_goal_energy():
    """At 40 of 100 s the goal is 480 of 1,200 J: with 400 spent by resource, with 490 by energy."""
    energy = EnergyState(1200.0, 300.0, 100.0, 800.0, 0.0, 0.0, 100.0)
    event, task = make_scheduler("event_based"), make_scheduler("task_based")
    assert event._objectives(energy, 40.0) == (UPR, UPR, 400.0, 480.0)
    assert task._objectives(energy, 40.0) == (UPR, UPE, 400.0, 480.0)
    over = replace(energy, consumed_j=390.0)
    assert event._objectives(over, 40.0)[:2] == task._objectives(over, 40.0)[:2] == (UPE, UPE)
    free = replace(energy, budget_j=INF, period_end=INF)
    assert event._objectives(free, 40.0)[:2] == (UPR, UPR)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(("counts", "starts"), [(False, [0, 10, 20, 30]), (True, [0, 10, 20, 40])])
def test_event_based_counts_place_holders(counts: bool, starts: list[float], driver: str):
    """One node, 24 W on average; in P-state 0 a task takes 10 s and 120 J, in P-state 1 20 s, 80 J.

    T0 and T1 start at 0 and 10 s in P-state 0. At 12 s both count 240 J of a goal of 288 J; the
    place-holders of T2 and T3 from the event at 0 s are another 240 J. With them T2 is slowed.
    """
    times = np.tile(np.array([[[10.0, 20.0]]]), (4, 1, 1))
    watts = np.tile(np.array([[[12.0, 4.0]]]), (4, 1, 1))
    platform, types = node_platform(times, watts, [1]), [0, 1, 2, 3]
    tasks = make_tasks(
        [TYPED_TASK_FLOPS] * 4,
        [0.0] * 4,
        task_type=types,
        width=[10] * 4,
        utility=UtilityFunctions.exponential([1.0] * 4, 0.0),
    )
    estimates = ParallelEstimates(
        platform,
        times,
        np.ones((4, 1), dtype=np.int64),
        watts,
        types,
        typical_time_s=times,
        typical_nodes=np.ones((4, 1), dtype=np.int64),
        cores_per_node=10,
    )
    trace = run(
        Scenario(
            platform,
            tasks,
            "event_based",
            parameters={"counts_place_holders": counts},
            estimates=estimates,
            mapping_interval_s=12.0,
            budget=EnergyBudget(2400.0, 100.0),
            driver=driver,
        )
    ).trace
    rows = np.sort(trace.executions, order="task")
    assert rows["start"].tolist() == starts
    of_type = rows["pstate"] - 2 * rows["task"]  # a host has two P-states for each task type
    assert of_type.tolist() == [0, 0, int(counts), 0]


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("scheduler", ["conservative_backfilling", "easy_backfilling", "fcfs_multiple_queues"])
@pytest.mark.parametrize(
    ("choice", "hosts", "starts"), [("first", [0, 1, 0], [0, 0, 10]), ("earliest_finish", [1, 0, 1], [0, 0, 5])]
)
def test_comparison_heuristics_choose_a_cluster(
    choice: str, hosts: list[int], starts: list[float], scheduler: str, driver: str
):
    """Two clusters of one node; T0 to T2 take 10 s on the first, 5 s on the second; T1 takes 11 s.

    T0 can start on both. The first is taken, or the second, which ends it first; T1 takes the
    other. T2 waits for the first that is free: at 10 s of the first, or at 5 s of the second.
    """
    times = np.array([[10.0, 5.0], [11.0, 11.0], [10.0, 5.0]])[:, :, None]
    watts, types, one = np.full((3, 2, 1), 12.0), [0, 1, 2], np.ones((3, 2), dtype=np.int64)
    platform = node_platform(times, watts, [1, 1])
    tasks = make_tasks(
        [TYPED_TASK_FLOPS] * 3,
        [0.0] * 3,
        task_type=types,
        width=[10] * 3,
        utility=UtilityFunctions.exponential([1.0] * 3, 0.0),
    )
    estimates = ParallelEstimates(
        platform, times, one, watts, types, typical_time_s=times, typical_nodes=one, cores_per_node=10
    )
    parameters: dict[str, object] = {"cluster_choice": choice}
    if scheduler != "fcfs_multiple_queues":
        parameters["reservations"] = "permanent"
    trace = run(
        Scenario(
            platform,
            tasks,
            scheduler,
            parameters=parameters,
            estimates=estimates,
            mapping_interval_s=10.0,
            driver=driver,
        )
    ).trace
    rows = np.sort(trace.executions, order="task")
    assert rows["host"].tolist() == hosts
    assert rows["start"].tolist() == starts


def test_mean_resources_leave_out_clusters_that_cannot_run_a_task():
    """10 s on 2 of 10-core nodes: 200 core-s; with 20 s on 3 nodes of 4 cores the mean is 220."""
    nodes, cores = np.array([[2, 3]]), np.array([10, 4])
    for second, expected in ((INF, 200.0), (20.0, 220.0)):
        time_s = np.array([[[10.0], [second]]])
        rows = ParallelRows(time_s, time_s, time_s, nodes, np.zeros(1), cores)
        assert mean_resources(rows).tolist() == [expected]


@pytest.mark.parametrize(("worth", "started"), [(0.5, True), (0.49, False)])
def test_what_earns_exactly_the_threshold_is_not_dropped(worth: float, started: bool):
    """The threshold of 0.5 drops T3 only if it is worth less."""
    parameters = {"reservations": "permanent", "dropping_threshold": 0.5}
    whole = scenario("conservative_backfilling", worth_of_t3=worth, **parameters)
    assert ("T3" in placed(whole, "reference")) == started


#: Cluster that each type chooses on the empty testbed, in the order of `TESTBED_TASKS`.
CHOICES = {"max_upr": [4, 2, 4, 3], "max_upe": [3, 1, 3, 1]}
TESTBED_TASKS = """\
id,submit_time_s,task_type,cores,priority,urgency,utility_class
0,0,IS.8,8,4,0,0
1,5000,MG.8,8,4,0,0
2,10000,MG.16,16,4,0,0
3,15000,IS_CG.8,8,4,0,0
"""


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("scheduler", CHOICES)
def test_what_the_testbeds_tasks_choose(tmp_path: Path, scheduler: str, driver: str):
    """Each on the empty system; worth 4 until 2.5 times its shortest time, 0 after 4 times."""
    for name in ("clusters", "etc"):
        text = (STUDIES / f"parallel_testbed_{name}.csv").read_text()
        (tmp_path / f"{name}.csv").write_text(text)
    (tmp_path / "tasks.csv").write_text(TESTBED_TASKS)
    keys = {f"{name}_csv": f"{name}.csv" for name in ("clusters", "etc", "tasks")}
    parameters = checked_parameters({"kind": "parallel", **keys}, "t.toml", folder=tmp_path)
    made = generator_of(parameters).generate(parameters)
    shortest = made.estimates.time_s.min(axis=(1, 2))
    assert shortest.tolist() == [430.0, 712.0, 326.0, 700.0]
    worth = UtilityFunctions.plateau_linear([4.0] * 4, 2.5 * shortest, 4 * shortest, urgency_unit_s=1.0)
    assert worth.value([0], [1675.0])[0] == pytest.approx(0.279, abs=5e-4)  # IS.8 on cluster 1
    trace = run(
        Scenario(
            made.platform,
            replace(made.tasks, utility=worth),
            scheduler,
            estimates=made.estimates,
            mapping_interval_s=50.0,
            driver=driver,
        )
    ).trace
    clusters = made.platform.cluster_of[trace.executions["host"]] + 1
    assert clusters[np.argsort(trace.executions["task"])].tolist() == CHOICES[scheduler]
