"""Parked hosts: what runs nowhere draws the power of a low P-state, on both drivers alike."""

from __future__ import annotations

import math

import pytest
from sim_cases import largest_difference, on_simgrid
from star import write_star

from gridsched import Scenario, make_tasks, run
from gridsched.analysis.bounds import bounds_for
from gridsched.errors import InputError
from gridsched.model.platform import Host, Platform, PState
from gridsched.model.rules import EnergyBudget
from gridsched.model.trace import ExecutionEnd, TaskState
from gridsched.runs.run import RunResult
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences

#: Two P-states of 10 flop/s at 100 W and 5 flop/s at 25 W, idle draws the same (algorithms D1).
STATES = (PState(10.0, 100.0, 100.0, 100.0), PState(5.0, 25.0, 25.0, 25.0))


def two_hosts(cores: int = 1, **changes: float) -> Platform:
    """Return two hosts of these P-states."""
    return Platform(tuple(Host(f"h{k}", STATES, cores, **changes) for k in (1, 2)), name="two")


def both(platform: Platform, tasks, scheduler: str = "wq", **rules) -> tuple[RunResult, RunResult]:
    """Run on both drivers, which must agree, and SimGrid's meter with the model host by host."""
    way = rules.pop("way", "auto")
    reference = run(Scenario(platform, tasks, scheduler, driver="reference", **rules))
    metered = on_simgrid(platform, tasks, scheduler, way=way, **rules)
    assert trace_differences(reference.trace, metered.trace) == []
    assert metered_differences(metered) == []
    assert largest_difference(metered) <= 1e-9
    return reference, metered


def changes_of(result: RunResult) -> list[tuple]:
    """Return (time, host, P-state) of all host changes."""
    return [row[:3] for row in result.trace.host_changes.tolist()]


@pytest.mark.parametrize("way", ["maestro", "actors"])
def test_a_host_is_parked_from_its_last_task_to_its_next(way):
    """h1 runs 0-10 s and 30-34 s, h2 0-4 s; else they draw 25 W: by hand 4,150 J until 34 s."""
    tasks = make_tasks([100.0, 40.0, 40.0], [0.0, 0.0, 30.0])
    for result in both(two_hosts(), tasks, way=way, parked_pstate=1):
        assert changes_of(result) == [
            (0.0, 0, 1),
            (0.0, 1, 1),
            (0.0, 0, 0),
            (0.0, 1, 0),
            (4.0, 1, 1),
            (10.0, 0, 1),
            (30.0, 0, 0),
            (34.0, 0, 1),
        ]
        joules = result.energy.total_j.tolist()
        assert joules == pytest.approx([14 * 100 + 20 * 25, 4 * 100 + 30 * 25], rel=1e-12)
        assert result.summary()["energy_j"] == pytest.approx(3050.0, rel=1e-12)


def test_hosts_are_parked_before_the_first_task():
    """Nothing comes before 8 s: both hosts draw 25 W until then."""
    for result in both(two_hosts(), make_tasks([10.0], 8.0), parked_pstate=1):
        assert changes_of(result)[2:] == [(8.0, 0, 0), (9.0, 0, 1)]
        assert result.energy.total_j.tolist() == pytest.approx([300.0, 225.0], rel=1e-12)


def test_a_host_that_takes_its_next_task_at_once_is_not_parked():
    """Three tasks of 10 s in a row: one change to P-state 0, one back."""
    one = Platform(two_hosts().hosts[:1])
    for result in both(one, make_tasks([100.0, 100.0, 100.0]), parked_pstate=1):
        assert changes_of(result) == [(0.0, 0, 1), (0.0, 0, 0), (30.0, 0, 1)]


def test_a_host_of_several_cores_is_parked_when_all_are_idle():
    """Two cores: 0-10 s and 0-4 s; the host waits for the last one."""
    one = Platform(two_hosts(cores=2).hosts[:1])
    for result in both(one, make_tasks([100.0, 40.0, 10.0], [0.0, 0.0, 20.0]), parked_pstate=1):
        assert changes_of(result) == [(0.0, 0, 1), (0.0, 0, 0), (10.0, 0, 1), (20.0, 0, 0), (21.0, 0, 1)]
        assert result.energy.total_j[0] == pytest.approx(11 * 100 + 10 * 25, rel=1e-12)


def test_a_budget_that_ends_the_run_notices_the_parked_power():
    """h2 is parked at 4 s: 200 W until 4 s, then 125 W: 1,175 J last 7 s, not 5.875 s."""
    budget = EnergyBudget(1175.0, math.inf, on_exhaustion="stop")
    tasks = make_tasks([100.0, 40.0, 10.0], [0.0, 0.0, 50.0])
    for result in both(two_hosts(), tasks, budget=budget, parked_pstate=1):
        trace = result.trace
        assert trace.horizon_s == pytest.approx(7.0, rel=1e-12)
        assert trace.of_outcome(ExecutionEnd.KILLED)["task"].tolist() == [0]
        assert trace.final_state.tolist() == [TaskState.KILLED, TaskState.FINISHED, TaskState.KILLED]
        assert trace.periods["consumed_j"].tolist() == pytest.approx([1175.0], rel=1e-12)
        assert result.energy.grid_total() == pytest.approx(1175.0, rel=1e-9)


def test_parked_hosts_alone_use_up_a_budget():
    """50 W from 0 s on: 100 J are gone at 2 s, before the first task comes."""
    budget = EnergyBudget(100.0, math.inf, on_exhaustion="stop")
    for result in both(two_hosts(), make_tasks([10.0], 8.0), budget=budget, parked_pstate=1):
        assert result.trace.horizon_s == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize("scheduler", ["wq", "wqr", "mct", "min_min", "sufferage", "lecsa"])
@pytest.mark.parametrize("budget_j", [math.inf, 6000.0])
def test_drivers_agree_with_parked_hosts_and_a_budget(scheduler, budget_j):
    """Three hosts of different speeds, tasks that come in bursts, copies that are cancelled."""
    states = [
        tuple(PState(speed / k, watts / k, watts / k, watts / k) for k in (1.0, 1.3, 2.1))
        for speed, watts in ((10.0, 100.0), (7.0, 40.0), (3.3, 20.0))
    ]
    platform = Platform(tuple(Host(f"h{k}", each, off_w=1.0) for k, each in enumerate(states)))
    tasks = make_tasks([83.1, 40.0, 61.7, 20.2, 90.9, 15.5, 33.3], [0, 0, 0, 5.5, 5.5, 70, 71.3])
    budget = EnergyBudget(budget_j, math.inf, on_exhaustion="stop")
    _, metered = both(platform, tasks, scheduler, budget=budget, parked_pstate=2)
    if budget_j < math.inf:
        assert metered.summary()["energy_j"] == pytest.approx(budget_j, rel=1e-9)
        assert TaskState.KILLED in metered.trace.final_state


def test_hosts_over_a_network_are_parked(tmp_path):
    """0.5 s + 5 B / (10 B/s) to the worker, 10 s of work, 0.5 s + 2 B / (10 B/s) back."""
    platform = write_star(tmp_path / "star.xml", [10.0])
    tasks = make_tasks([100.0, 50.0], [0.0, 20.0], input_bytes=5.0, output_bytes=2.0)
    result = on_simgrid(platform, tasks, "wq", parked_pstate=1)
    assert largest_difference(result) <= 1e-9
    assert changes_of(result)[:2] == [(0.0, 0, 1), (0.0, 0, 0)]
    times = [time for time, _, _ in changes_of(result)[2:]]
    assert times == pytest.approx([1 + 10 + 0.7, 20.0, 20 + 1 + 5 + 0.7], rel=1e-12)
    assert [pstate for _, _, pstate in changes_of(result)[2:]] == [1, 0, 1]


def test_bounds_stay_below_runs_with_parked_hosts():
    """The least energy is that of the slow state: 5 flop/J x 25 W; hosts at rest draw 25 W."""
    scenario = Scenario(two_hosts(), make_tasks([100.0], 40.0), "wq", driver="reference", parked_pstate=1)
    result = run(scenario)
    bounds = bounds_for([result])
    assert result.summary()["energy_j"] == pytest.approx(40 * 50 + 10 * 125)
    assert bounds.fixed.makespan_s == bounds.any.makespan_s == 10.0
    assert 40 * 50 < bounds.fixed.energy_j <= result.summary()["energy_j"]
    assert bounds.any.energy_j <= bounds.fixed.energy_j


def test_a_pstate_that_a_host_lacks_is_refused():
    """The line names the host and what it has."""
    scenario = Scenario(two_hosts(), make_tasks([1.0]), "wq", driver="reference", parked_pstate=2)
    with pytest.raises(InputError, match=r"'h1'.*0 to 1.*P-state 2"):
        run(scenario)
