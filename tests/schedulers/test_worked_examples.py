"""Complete runs of the worked examples of algorithms A1-A6, on both drivers."""

from __future__ import annotations

import importlib.util

import pytest
from bag_cases import data_platform, data_tasks, environment, ex_a_platform, ex_a_tasks, platform_of

from gridsched.energy import trace_energy
from gridsched.metrics import makespan_s, waiting_time_s, waste_ratio, wasted_flops
from gridsched.model.tasks import make_tasks
from gridsched.runs.run import RunResult, run
from gridsched.runs.scenario import Scenario

simgrid = pytest.mark.skipif(importlib.util.find_spec("simgrid") is None, reason="SimGrid is not installed")
both_drivers = pytest.mark.parametrize("driver", ["reference", pytest.param("simgrid", marks=simgrid)])

#: scheduler, parameters, makespan [s], busy energy of h1, h2, h3 [J], idle energy [J]
EX_A = [
    ("wq", {}, 80, (1250, 300, 400), 480),
    ("wqr", {"max_replicas": 1}, 80, (1250, 300, 400), 480),
    ("wqr", {}, 55, (1250, 1100, 275), 120),
    ("wqr", {"max_replicas": 3}, 45, (2250, 900, 225), 0),
    ("sufferage", {}, 35, (1750, 600, 50), 120),
    ("sufferage", {"variant": "pass"}, 35, (1750, 600, 50), 120),
    ("sufferage", {"reschedule": False}, 35, (1750, 600, 50), 120),
    ("xsufferage", {}, 35, (1750, 600, 50), 120),
    ("dynamic_fpltf", {}, 30, (1500, 600, 150), 0),
    ("lecsa", {}, 100, (500, 700, 500), 0),
    ("lecsa", {"switch_off": "unused"}, 100, (500, 700, 500), 620),
    ("lecsa", {"switch_off": "none"}, 100, (500, 700, 500), 620),
    ("lecsa", {"leftover": "first"}, 110, (500, 600, 550), 0),
    ("round_robin", {}, 80, (1250, 300, 400), 480),
    ("olb", {}, 80, (1250, 300, 400), 480),
    # MCT: h1 t1, t3 (30 s), h2 t2, t4 (40 s), h3 t5 (10 s); idle (10 + 30) * 4
    ("mct", {}, 40, (1500, 800, 50), 160),
    # Min-Min: h1 t5, t2, t1, t3 (37.5 s), h2 t4 (30 s); idle (7.5 + 37.5) * 4
    ("min_min", {}, 37.5, (1875, 600, 0), 180),
    ("max_min", {}, 30, (1500, 600, 150), 0),
]


def run_ex_a(scheduler: str, driver: str, **parameters) -> RunResult:
    """Run EX-A."""
    return run(
        Scenario(
            platform=ex_a_platform(), tasks=ex_a_tasks(), scheduler=scheduler, parameters=parameters, driver=driver
        )
    )


def lists(result: RunResult) -> dict[int, list[int]]:
    """Return the tasks of each host in order of their start."""
    found: dict[int, list[int]] = {}
    for task, host in result.trace.executions[["task", "host"]].tolist():
        found.setdefault(host, []).append(task)
    return found


@both_drivers
@pytest.mark.parametrize(
    ("scheduler", "parameters", "makespan", "busy_j", "idle_j"),
    EX_A,
    ids=[" ".join([row[0], *map(str, row[1].values())]) for row in EX_A],
)
def test_makespan_and_energy(scheduler, parameters, makespan, busy_j, idle_j, driver):
    """The makespan, each host's busy energy, and the idle energy, by model and by plugin."""
    result = run_ex_a(scheduler, driver, **parameters)
    energy = trace_energy(result.trace)
    assert makespan_s(result.trace) == pytest.approx(makespan, rel=1e-12)
    assert energy.busy_j[:3] == pytest.approx(busy_j, rel=1e-9)
    assert energy.idle_j[:3].sum() == pytest.approx(idle_j, rel=1e-9)
    assert energy.grid_total() == pytest.approx(sum(busy_j) + idle_j, rel=1e-9)
    if driver == "simgrid":
        assert result.energy_plugin_j == pytest.approx(sum(busy_j) + idle_j, rel=1e-9)


@both_drivers
@pytest.mark.parametrize(
    ("replicas", "flops", "joules", "ratio"), [(1, 0, 0, 0), (2, 1375, 275, 1375 / 6625), (3, 2625, 825, 2625 / 7875)]
)
def test_waste_of_replication(replicas, flops, joules, ratio, driver):
    """Wasted flops and joules of WQR (algorithms A2); 1375 / 6625 = 20.75 %."""
    result = run_ex_a("wqr", driver, max_replicas=replicas)
    assert wasted_flops(result.trace) == pytest.approx(flops, rel=1e-9)
    assert trace_energy(result.trace).wasted_j.sum() == pytest.approx(joules, rel=1e-9)
    assert waste_ratio(result.trace) == pytest.approx(ratio, rel=1e-9)


@both_drivers
def test_an_original_that_beats_its_replicas(driver):
    """h1 runs task 0 in 10 s; the copies on h3 (at 0 s) and h2 (at 5 s) are cancelled then."""
    tasks = make_tasks([1000, 250])
    result = run(Scenario(ex_a_platform(), tasks, "wqr", {"max_replicas": 3}, driver=driver))
    runs = result.trace.executions
    copies = runs[runs["task"] == 0][["host", "start", "end"]].tolist()
    assert copies == [(0, 0.0, 10.0), (2, 0.0, 10.0), (1, 5.0, 10.0)]
    assert waiting_time_s(result.trace).tolist() == [0.0, 0.0]
    assert result.summary()["max_slowdown"] == 1.0
    assert wasted_flops(result.trace) == pytest.approx(10 * 25 + 5 * 50, rel=1e-9)


@both_drivers
@pytest.mark.parametrize(
    ("scheduler", "expected"),
    [
        ("wq", {0: [0, 3], 1: [1, 4], 2: [2]}),
        ("sufferage", {0: [2, 3], 1: [0, 1], 2: [4]}),
        ("dynamic_fpltf", {0: [2, 0], 1: [3], 2: [1, 4]}),
        ("lecsa", {2: [2, 1], 1: [3, 4], 0: [0]}),
    ],
)
def test_lists_of_the_hosts(scheduler, expected, driver):
    """Which tasks each host runs, in which order."""
    assert lists(run_ex_a(scheduler, driver)) == expected


@both_drivers
def test_lecsa_energy_of_each_host(driver):
    """Without switching off h1, h2, h3 draw 860, 960 and 500 J (algorithms A0)."""
    result = run_ex_a("lecsa", driver, switch_off="none")
    assert trace_energy(result.trace).total_j[:3] == pytest.approx([860, 960, 500], rel=1e-9)
    if driver == "simgrid":
        plugin = [result.plugin_j[name] for name in ("h1", "h2", "h3")]
        assert plugin == pytest.approx([860, 960, 500], rel=1e-9)


@both_drivers
@pytest.mark.parametrize("reschedule", [True, False])
@pytest.mark.parametrize("variant", ["greedy", "pass"])
@pytest.mark.parametrize(("scheduler", "makespan"), [("xsufferage", 30), ("sufferage", 60)])
def test_data_locality(scheduler, makespan, variant, reschedule, driver):
    """XSufferage keeps t3 and t4 in the cluster that holds their file (algorithms A4)."""
    result = run(
        Scenario(
            platform=data_platform(),
            tasks=data_tasks(),
            scheduler=scheduler,
            parameters={"variant": variant, "reschedule": reschedule},
            driver=driver,
        )
    )
    assert makespan_s(result.trace) == pytest.approx(makespan, rel=1e-12)


@both_drivers
def test_lecsa_waits_for_all_tasks_before_switching_off(driver):
    """Hosts stay on until the last task has arrived at 100 s, then go when their list is done."""
    tasks = make_tasks([100, 100, 100], [0.0, 0.0, 100.0])
    platform = platform_of([10, 10, 10], [2.0, 2.0, 1.0])
    result = run(Scenario(platform=platform, tasks=tasks, scheduler="lecsa", driver=driver))
    off = result.trace.host_changes[~result.trace.host_changes["is_on"]]
    # few tasks, p = 0.30: h1 and h2 are selected each time; at 100 s only h1 gets a task
    assert sorted(zip(off["time"].tolist(), off["host"].tolist(), strict=True)) == [(100.0, 1), (100.0, 2)]
    assert lists(result) == {0: [0, 2], 1: [1]}


@both_drivers
def test_lecsa_uses_least_energy_in_environment_2(driver):
    """In the paper's environment 2 with 90 tasks LECSA needs less energy than the other five."""
    sizes = [5e6 * (0.75 + 0.5 * (k * 37 % 90) / 89) for k in range(90)]
    tasks = make_tasks(sizes, nominal_heterogeneity=0.5)
    joules = {
        id: trace_energy(run(Scenario(environment(2), tasks, id, driver=driver)).trace).grid_total()
        for id in ("wq", "wqr", "sufferage", "xsufferage", "dynamic_fpltf", "lecsa")
    }
    assert min(joules, key=joules.get) == "lecsa"
