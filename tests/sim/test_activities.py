"""What happens inside tasks, together: messages, data, profiles, budgets, outages and shared nodes, by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gridsched import Scenario, make_tasks
from gridsched import run as run_freely
from gridsched.export.export import read_export, write_export
from gridsched.model.dependencies import After, Dependencies
from gridsched.model.job_profiles import Delay, ParallelWork, Sequence
from gridsched.model.rules import EnergyBudget
from gridsched.model.run_times import LoggedRunTimes
from gridsched.model.trace import ExecutionEnd, StepKind, TaskState
from gridsched.platform_io.xml_reader import read_platform
from gridsched.runs.plugin_agreement import energy_check
from gridsched.runs.run import RunResult
from gridsched.testing import trace_differences

DRIVERS = ("simgrid", "reference")
#: A message takes latency + size / bandwidth.
LINEAR = '<config><prop id="network/model" value="CM02"/><prop id="network/crosstraffic" value="0"/></config>'
#: Part 0 sends 100 bytes to part 1 while each computes 5 flop.
EXCHANGE = ParallelWork(flops=(5.0, 5.0), matrix=(0.0, 100.0, 0.0, 0.0))


def platform_xml(cores: int = 1, down: str = "", config: str = "") -> str:
    """Return a master and hosts a, b and c of 1 flop/s a core, each two joined by a link of 10 byte/s of their own.

    One may be down from 4 to 6 s.
    """
    names = ("m", "a", "b", "c")
    hosts = [
        '<host id="m" speed="1f"><prop id="role" value="master"/><prop id="wattage_per_state" value="1:1"/></host>'
    ]
    hosts += [
        f'<host id="{name}" speed="1f" core="{cores}"><prop id="wattage_per_state" value="10:20:{20 + 10 * cores}"/>'
        '<prop id="wattage_off" value="1"/></host>'
        for name in names[1:]
    ]
    trace = (
        f'<trace id="t" periodicity="-1">4 0\n6 1</trace><trace_connect kind="HOST_AVAIL" trace="t" element="{down}"/>'
    )
    pairs = [(a, b) for k, a in enumerate(names) for b in names[k + 1 :]]
    links = [f'<link id="{a}{b}" bandwidth="10Bps" latency="0s"/>' for a, b in pairs]
    routes = [f'<route src="{a}" dst="{b}"><link_ctn id="{a}{b}"/></route>' for a, b in pairs]
    return (
        '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">'
        f'{config}<zone id="z" routing="Full">{"".join([*hosts, *links, *routes])}</zone>'
        f"{trace if down else ''}</platform>"
    )


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    """One core each."""
    path = tmp_path / "hosts.xml"
    path.write_text(platform_xml())
    return path


@pytest.fixture
def linear(tmp_path: Path) -> Path:
    """The same hosts, where a message takes latency + size / bandwidth."""
    path = tmp_path / "linear.xml"
    path.write_text(platform_xml(config=LINEAR))
    return path


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    """Four cores each."""
    path = tmp_path / "nodes.xml"
    path.write_text(platform_xml(4))
    return path


def run(scenario: Scenario) -> RunResult:
    """Run a scenario with a time-out; on SimGrid, the model's joules must be the plugin's."""
    result = run_freely(replace(scenario, timeout_s=60.0))
    if scenario.driver == "simgrid":
        assert max(row["relative_difference"] for row in energy_check(result)) < 1e-9
    return result


def on_both(scenario: Scenario) -> RunResult:
    """Run a scenario on SimGrid; the reference driver must give the same."""
    result = run(replace(scenario, driver="simgrid"))
    other = run(replace(scenario, driver="reference"))
    assert trace_differences(result.trace, other.trace) == []
    return result


def rows(result: RunResult) -> list[tuple[float, float]]:
    """Return start and end of each execution [s]."""
    return [(pytest.approx(start), pytest.approx(end)) for start, end in result.trace.executions[["start", "end"]]]


def jobs(n: int = 1, **columns):
    """Return jobs of two nodes that ask for 100 s."""
    given = {"width": 2, "requested_time_s": 100.0, "profile": 0, "profiles": [EXCHANGE]}
    return make_tasks([1.0] * n, **{**given, **columns})


def after(pairs: list[tuple[int, int]], size_bytes: list[float]) -> Dependencies:
    """Return which task waits for data of which other."""
    task, on = np.array(pairs).T
    return Dependencies(task, on, np.full(len(task), int(After.SUCCESS)), np.zeros(len(task)), np.array(size_bytes))


def test_a_profile_between_input_and_result(hosts):
    """20 bytes come in 2 s; 100 bytes take 10 s, in which 5 s are computed; 30 bytes go back in 3 s."""
    result = on_both(Scenario(hosts, jobs(input_bytes=20.0, output_bytes=30.0), "fcfs", network="platform"))
    assert rows(result) == [(2.0, 12.0)]
    assert result.trace.horizon_s == pytest.approx(15.0)
    # at half its speed a host draws 25 W, else 10
    joules = result.summary()["energy_j"]
    assert joules == pytest.approx(2 * (10 * 25.0 + 5 * 10.0) + 15 * 10.0)
    assert result.trace.link_bytes == pytest.approx({"ma": 50.0, "ab": 100.0})
    steps = result.trace.steps
    assert steps["kind"].tolist() == [StepKind.RECEIVE, StepKind.PARALLEL, StepKind.SEND]
    assert steps["begin"].tolist() == pytest.approx([0.0, 2.0, 12.0])
    assert steps["end"].tolist() == pytest.approx([2.0, 12.0, 15.0])
    write_export(result.trace, None, {}, hosts.parent / "export", workload_name="w")
    assert read_export(hosts.parent / "export").trace.steps.tolist() == steps.tolist()


def test_profiles_whose_tasks_make_data(hosts):
    """After 10 s, 50 bytes cross from a to itself in no time, since the first part lies there."""
    tasks = jobs(2, dependencies=after([(1, 0)], [50.0]))
    assert rows(on_both(Scenario(hosts, tasks, "fcfs", network="platform"))) == [(0.0, 10.0), (10.0, 20.0)]


def test_data_share_a_link(hosts):
    """At 3 s the data of task 0 go from a to b in two pieces of 40 bytes, which share 10 byte/s."""
    dependencies = after([(2, 0), (3, 0), (3, 0)], [0.0, 40.0, 40.0])
    tasks = jobs(4, width=1, profiles=[Delay(3.0)], dependencies=dependencies)
    result = on_both(Scenario(hosts, tasks, "fcfs", network="platform"))
    assert rows(result) == [(0.0, 3.0), (0.0, 3.0), (3.0, 6.0), (11.0, 14.0)]
    assert result.trace.link_bytes == pytest.approx({"ab": 80.0})


def test_edges_beside_messages(linear):
    """Task 1 waits for task 0, whose result is with the master at 2 + 5 + 3 s; then come its input and its result."""
    tasks = make_tasks([5.0, 4.0], input_bytes=20.0, output_bytes=30.0, dependencies=after([(1, 0)], [60.0]))
    result = on_both(Scenario(linear, tasks, "mct"))
    assert rows(result) == [(2.0, 7.0), (12.0, 16.0)]
    assert result.trace.horizon_s == pytest.approx(19.0)


def test_messages_count_for_the_requested_time(hosts):
    """Of 6 s that are asked for, the input takes 2: the job is killed when it has computed for 4."""
    tasks = make_tasks([5.0], width=1, requested_time_s=6.0, input_bytes=20.0)
    times = LoggedRunTimes(read_platform(hosts), [5.0])
    result = run(Scenario(hosts, tasks, "fcfs", driver="simgrid", walltime="kill", run_times=times))
    assert rows(result) == [(2.0, 6.0)]
    assert result.trace.executions["outcome"].tolist() == [ExecutionEnd.TIMEOUT]


@pytest.mark.parametrize("part_cores", [1, 2])
def test_profiles_on_shared_nodes(nodes, part_cores):
    """Two jobs share node a: each computes 8 flop on its cores, sends nothing, and waits 2 s before."""
    work = Sequence((Delay(2.0), ParallelWork(flops=(8.0,))))
    tasks = make_tasks(
        [1.0, 1.0],
        submit_time_s=[0.0, 1.0],
        width=1,
        demand=[[part_cores], [part_cores]],
        requested_time_s=100.0,
        profile=0,
        profiles=[work],
    )
    result = on_both(Scenario(nodes, tasks, "fcfs", network="platform"))
    length = 8.0 / part_cores
    assert rows(result) == [(0.0, 2.0 + length), (1.0, 3.0 + length)]
    # node a computes from 2 to 3 + length at 20 W and more: 10 W for each core that does
    computed_j = (length + 1) * 20.0 + 2 * length * part_cores * 10.0
    assert result.hosts.loc["a", "energy_j"] == pytest.approx(2 * 10.0 + computed_j)


def test_parts_that_share_a_node_send_to_others(nodes):
    """Three parts, two on a: 100 bytes from each of the first two to the third, on c or b, over one link: 20 s."""
    work = ParallelWork(flops=(1.0, 2.0, 3.0), matrix=(0, 0, 100.0, 0, 0, 100.0, 0, 0, 0))
    tasks = make_tasks(
        [1.0], width=3, demand=[[2]], anywhere=[True], requested_time_s=100.0, profile=0, profiles=[work]
    )
    result = on_both(Scenario(nodes, tasks, "fcfs", network="platform"))
    assert rows(result) == [(0.0, 20.0)]


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_budget_is_used_up_by_what_a_profile_computes(hosts, driver):
    """All draw 30 W at rest; in the delay of 10 s that is all, then two nodes draw 35 W more: 90 J for 1 s of that."""
    work = Sequence((Delay(10.0), ParallelWork(flops=(100.0, 50.0))))
    tasks = jobs(profiles=[work])
    budget = EnergyBudget(300.0 + 90.0, period_s=1000.0, enforcement="stop")
    result = run(Scenario(hosts, tasks, "fcfs", network="platform", driver=driver, budget=budget))
    # at full speed 30 W for 10, at half of it 25 for 10
    assert rows(result) == [(0.0, pytest.approx(10.0 + 90.0 / (30.0 + 20.0 + 15.0)))]
    assert result.trace.final_state.tolist() == [TaskState.KILLED]
    assert result.trace.periods["consumed_j"].tolist() == [pytest.approx(390.0)]


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("on_nodes", [False, True])
def test_a_period_counts_what_was_drawn_in_it(hosts, nodes, driver, on_nodes):
    """Periods of 4 s of a run that waits for 2 s and computes for 8: the joules of all are those of the run."""
    tasks = jobs(3, profiles=[Sequence((Delay(2.0), ParallelWork(flops=(8.0,), matrix=(0, 30.0, 0, 0))))])
    platform = hosts
    if on_nodes:
        platform = nodes
        tasks = replace(
            tasks,
            **vars(make_tasks([1.0] * 3, width=2, demand=[[1]] * 3))
            | {name: getattr(tasks, name) for name in ("profile", "profiles", "requested_time_s")},
        )
    budget = EnergyBudget(1e6, period_s=4.0)
    result = run(Scenario(platform, tasks, "fcfs", network="platform", driver=driver, budget=budget))
    drawn = result.summary()["energy_j"]
    assert drawn > 0
    assert result.trace.periods["consumed_j"].sum() == pytest.approx(drawn)


def test_simgrid_is_asked_how_far_profiles_are_without_a_warning(tmp_path):
    """At 4 s a job loses b, to which it has sent for 3.95 s; its watts and bytes are counted in each second."""
    (tmp_path / "p.xml").write_text(platform_xml(down="b"))
    scenario = Scenario(tmp_path / "p.xml", jobs(input_bytes=0.5), "fcfs", network="platform", traffic_step_s=1.0)
    result = run(replace(scenario, driver="simgrid", budget=EnergyBudget(1e6, period_s=1.0)))
    assert result.trace.link_bytes == pytest.approx({"ma": 1.0, "ab": 39.5, "ac": 100.0})
    assert "WARNING" not in result.log


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_cap_counts_what_a_profile_could_draw(hosts, driver):
    """Three hosts at rest draw 30 W, a host that computes 20 more: under 89 W, only one job of two nodes runs."""
    tasks = make_tasks([1.0, 1.0], width=1, requested_time_s=50.0, profile=0, profiles=[Delay(10.0)])
    scenario = Scenario(hosts, tasks, "fcfs", network="platform", driver=driver)
    assert rows(run(replace(scenario, power_cap_w=69.0))) == [(0.0, 10.0), (10.0, 20.0)]
    assert rows(run(replace(scenario, power_cap_w=70.0))) == [(0.0, 10.0), (0.0, 10.0)]


@pytest.mark.parametrize("on_failure", ["restart", "failed"])
def test_a_host_goes_down_under_a_profile(tmp_path, on_failure):
    """At 4 s b goes down, until 6 s: the job begins again on a and c, or has failed."""
    (tmp_path / "p.xml").write_text(platform_xml(down="b"))
    scenario = Scenario(tmp_path / "p.xml", jobs(), "fcfs", network="platform", on_failure=on_failure)
    result = on_both(scenario)
    again = [(4.0, 14.0)] if on_failure == "restart" else []
    assert rows(result) == [(0.0, 4.0), *again]


def test_jobs_without_profile_draw_what_was_measured(hosts):
    """A job of 40 W on two nodes, each from 20 to 30 W: nothing above 20. Beside it one computes by its profile."""
    platform = read_platform(hosts)
    tasks = make_tasks(
        [8.0, 1.0],
        width=[2, 1],
        requested_time_s=100.0,
        profile=[-1, 0],
        profiles=[Sequence((Delay(4.0), ParallelWork(flops=(6.0,))))],
    )
    times = LoggedRunTimes(platform, [8.0, 9.0], power_w=np.array([50.0, np.nan]))
    scenario = Scenario(
        platform, tasks, "fcfs", platform_file=hosts, network="platform", power=("measured",), run_times=times
    )
    result = on_both(scenario)
    assert rows(result) == [(0.0, 8.0), (0.0, 10.0)]
    assert result.summary()["energy_j"] == pytest.approx(8 * 50.0 + 2 * 20.0 + 4 * 10.0 + 6 * 30.0)


def test_measured_tasks_send_messages(linear):
    """Input for 2 s, then 5 s at 25 W, and 3 s for the result."""
    platform = read_platform(linear)
    tasks = make_tasks([5.0], input_bytes=20.0, output_bytes=30.0)
    times = LoggedRunTimes(platform, [5.0], power_w=np.array([25.0]))
    scenario = Scenario(platform, tasks, "mct", platform_file=linear, power=("measured",), run_times=times)
    result = on_both(scenario)
    assert rows(result) == [(2.0, 7.0)]
    assert result.summary()["energy_j"] == pytest.approx(30.0 * 10 + 5 * 15.0)


@pytest.mark.parametrize("driver", DRIVERS)
def test_data_wait_for_a_host_that_is_down(tmp_path, driver):
    """Task 0 ends on a at 2 s; 50 bytes for b are cut at 4 s, when a goes down, and take 5 s from 6 s on."""
    (tmp_path / "p.xml").write_text(platform_xml(down="a", config=LINEAR))
    tasks = make_tasks([2.0, 3.0, 3.0], dependencies=after([(1, 0), (2, 0)], [0.0, 50.0]))
    result = run(Scenario(tmp_path / "p.xml", tasks, "ready_mct", driver=driver))
    transfers = result.trace.transfers
    assert transfers[["source", "target"]].tolist() == [(0, 1)]
    assert (transfers["begin"].item(), transfers["end"].item()) == (6.0, pytest.approx(11.0))


def test_data_of_tasks_of_several_parts(linear):
    """The data of a task on a and b lie on a: they reach b, where task 2 waits, in 4 s."""
    tasks = make_tasks(
        [3.0, 50.0, 5.0], width=[2, 1, 1], requested_time_s=[3.0, 50.0, 5.0], dependencies=after([(2, 0)], [40.0])
    )
    result = on_both(Scenario(linear, tasks, "fcfs"))
    assert rows(result)[:2] == [(0.0, 3.0), (0.0, 50.0)]


def test_a_host_goes_down_under_messages(tmp_path):
    """The input of the task takes from 0 to 5 s, and at 4 s its host goes down: on the next one, from 4 to 9 s."""
    (tmp_path / "p.xml").write_text(platform_xml(down="a", config=LINEAR))
    tasks = make_tasks([2.0], input_bytes=50.0, output_bytes=10.0)
    result = on_both(Scenario(tmp_path / "p.xml", tasks, "mct"))
    assert rows(result) == [(4.0, 4.0), (9.0, 11.0)]
    assert result.trace.executions["outcome"].tolist() == [ExecutionEnd.FAILED, ExecutionEnd.FINISHED]
    assert result.trace.horizon_s == pytest.approx(12.0)


@pytest.mark.parametrize("id", ["heft", "peft", "ready_mct", "mct"])
def test_workflows_on_a_backbone(tmp_path, id):
    """Data of drawn graphs share one slow link, with each other, inputs and results: both drivers give one run."""
    text = platform_xml(2)
    links = text[text.index("<link ") : text.index("<route ")]
    shared = text.replace(links, '<link id="l" bandwidth="3Bps" latency="0.01s"/>')
    for name in ("ma", "mb", "mc", "ab", "ac", "bc"):
        shared = shared.replace(f'<link_ctn id="{name}"/>', '<link_ctn id="l"/>')
    (tmp_path / "p.xml").write_text(shared)
    rng = np.random.default_rng(51)
    pairs = [(task, on) for task in range(1, 14) for on in range(task) if rng.random() < 0.25]
    dependencies = after(pairs, rng.integers(0, 60, len(pairs)).astype(float).tolist())
    tasks = make_tasks(
        rng.uniform(1.0, 30.0, 14), input_bytes=rng.integers(0, 9, 14), output_bytes=5.0, dependencies=dependencies
    )
    result = on_both(Scenario(tmp_path / "p.xml", tasks, id))
    begin, end = result.trace.transfers["begin"], result.trace.transfers["end"]
    together = (begin[:, None] < end) & (begin < end[:, None]) & ~np.eye(len(begin), dtype=bool)
    assert together.any()


def test_data_alone(linear):
    """Two pieces of 40 bytes from a to b: 8 s together, 4 s each alone, which the reference driver can assume."""
    dependencies = after([(1, 0), (2, 0), (3, 0)], [40.0, 40.0, 0.0])
    tasks = make_tasks([3.0, 3.0, 3.0, 99.0], dependencies=dependencies)
    scenario = Scenario(linear, tasks, "heft", driver="reference")
    ends = {
        network: run(replace(scenario, network=network)).trace.transfers["end"].tolist()
        for network in ("platform", "alone")
    }
    assert ends["alone"] == [pytest.approx(7.0)] * len(ends["alone"])
    assert len(ends["platform"]) == len(ends["alone"]) > 0


@pytest.mark.parametrize("scheduler", ["fcfs", "easy_backfilling"])
def test_a_host_under_a_cap_comes_up(tmp_path, scheduler):
    """At rest hosts draw 30 W, each that computes 20 more, and b is down, at 1 W, from 4 to 6 s.

    Under 61 W the second job starts when b goes down. When b is up again 70 W are drawn, which no scheduler has
    brought about; the third job waits until the second one ends, at 14 s.
    """
    (tmp_path / "p.xml").write_text(platform_xml(down="b"))
    tasks = make_tasks([10.0] * 3, width=1, requested_time_s=10.0)
    result = on_both(Scenario(tmp_path / "p.xml", tasks, scheduler, power_cap_w=61.0, network="none"))
    assert rows(result) == [(0.0, 10.0), (4.0, 14.0), (14.0, 24.0)]
