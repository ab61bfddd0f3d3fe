"""Hosts that boot, shut down and stay parked."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sim_cases import ENERGY_BOOT, deciding, largest_difference, on_simgrid, write_star

from gridsched import Scenario, run
from gridsched.analysis.bounds import bounds_for
from gridsched.errors import InputError, InvalidDecision
from gridsched.model.host_profiles import HostProfiles, Profile
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.model.rules import EnergyBudget
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import ExecutionEnd, TaskState
from gridsched.policy.decisions import Allocate, Assign, Drop, PowerOff, PowerOn, WakeAt
from gridsched.runs.run import RunResult
from gridsched.schedulers.idle_off import IdleOff
from gridsched.testing import trace_differences
from gridsched.testing.agreement import metered_differences

# Hosts that boot and shut down in P-states of speed 0: by hand, and alike on both drivers.

STATES = (PState(10.0, 10.0, 20.0, 40.0), PState(5.0, 6.0, 7.0, 8.0))
#: it boots in 4 s at 50 W, and shuts down in 3 s at 30 W; it draws 10 W idle and 1 W off
SWITCHES = {
    "off_w": 1.0,
    "boot_time_s": 4.0,
    "boot_pstate": 2,
    "shutdown_time_s": 3.0,
    "shutdown_pstate": 3,
    "switch_pstates": (PState(0.0, 11.0, 12.0, 50.0), PState(0.0, 30.0, 30.0, 30.0)),
}


def pair(n: int = 2, cores: int = 1, **changes) -> Platform:
    """Return hosts that boot and shut down as in `SWITCHES`, but for what is changed."""
    return Platform(
        tuple(Host(f"h{k}", STATES, cores, **{**SWITCHES, **changes}) for k in range(n)),
        (Cluster("c", tuple(range(n))),),
        name="pair",
    )


def on_both(platform, tasks, scheduler, **settings):
    """Run on both drivers, which must agree, and SimGrid's meter with the model."""
    tasks = tasks if not isinstance(tasks, list) else make_tasks(tasks)
    expected = on_simgrid(platform, tasks, scheduler, driver="reference", **settings)
    metered = on_simgrid(platform, tasks, scheduler, **settings)
    assert trace_differences(expected.trace, metered.trace) == []
    assert metered_differences(metered) == []
    assert expected.trace.host_changes.tolist() == metered.trace.host_changes.tolist()
    return metered


def at(*steps: tuple[float, list], **traits):
    """Return a policy that decides what is given for a time, and wakes then."""
    answers = dict(steps)
    wakes = [WakeAt(time) for time in answers if time]
    return deciding(lambda state: answers.get(state.now, []) + wakes * (state.now == 0.0), powers_hosts=True, **traits)


def parts(result, host: int = 0) -> dict[str, float]:
    """Return what a host drew, by what it did [J], without what is 0."""
    energy = result.energy
    names = ("busy", "idle", "boot", "shutdown", "off")
    joules = {name: float(getattr(energy, f"{name}_j")[host]) for name in names}
    return {name: joule for name, joule in joules.items() if joule}


def test_simgrids_own_example(tmp_path):
    """37520 J in 177 s, SimGrid's known answer to energy-boot, by a policy on both drivers."""
    policy = at((10.0, [PowerOff(0)]), (27.0, [PowerOn(0)]), (177.0, [Drop(0)]), may_drop=True)
    platform = tmp_path / "energy_boot.xml"
    platform.write_text(ENERGY_BOOT)
    result = on_both(platform, make_tasks([1.0]), policy)
    assert parts(result) == {"idle": 950.0, "boot": 18000.0, "shutdown": 770.0, "off": 100.0}
    assert parts(result, 1) == {"idle": 17700.0}
    assert result.summary()["energy_j"] == pytest.approx(37520.0, rel=1e-12)
    assert len(result.trace.platform.hosts[0].pstates) == 3


def test_switched_on_again_while_it_shuts_down():
    """Off at 1 s, on at 2 s: it is off at 4 s, boots then, and takes its queue at 8 s."""
    policy = at((0.0, [Assign(0, 1)]), (1.0, [PowerOff(0)]), (2.0, [PowerOn(0), Assign(1, 0, 1)]))
    result = on_both(pair(), [100.0, 50.0], policy)
    assert result.trace.start_time_s.tolist() == [0.0, 8.0]
    # P-state 1 computes 50 flop in 10 s
    assert parts(result) == {"idle": 10.0, "shutdown": 90.0, "boot": 200.0, "busy": 80.0}
    changes = [row for row in result.trace.host_changes.tolist() if row[1] == 0]
    assert changes[1:] == [(1.0, 0, 0, False), (4.0, 0, 0, True), (8.0, 0, 1, True)]


def test_a_policy_that_changes_its_mind():
    """On and off again while it shuts down changes nothing; off while it boots shuts it down."""
    inf = float("inf")
    expected = {
        0.0: (True, 0.0, 20.0),
        1.0: (False, inf, 70.0),
        2.0: (True, 7.0, 70.0),
        3.0: (False, inf, 41.0),
        7.0: (False, inf, 41.0),
        9.0: (True, 11.0, 90.0),
        15.0: (False, inf, 11.0),
    }

    def answer(state):
        seen = (bool(state.is_on[0]), float(state.ready_time[0]), state.power.draw_w)
        assert seen == expected[state.now], state.now
        wakes = [WakeAt(time) for time in (1.0, 2.0, 3.0, 7.0, 9.0)]
        return {
            0.0: [Assign(0, 1), PowerOff(0), *wakes],
            1.0: [PowerOn(0)],
            2.0: [PowerOff(0)],
            7.0: [PowerOn(0)],
            9.0: [PowerOff(0)],
        }.get(state.now, [])

    policy = deciding(answer, powers_hosts=True)
    result = on_both(pair(), [150.0], policy)
    # shuts down until 3 s, is off until 7 s, boots until 9 s, shuts down until 12 s, off until 15 s
    assert parts(result) == {"shutdown": 180.0, "off": 4.0 + 3.0, "boot": 100.0}


def test_without_a_pstate_it_draws_its_idle_power():
    """A host with times alone: 10 W while it shuts down and boots, in P-state 1 6 W."""
    own = {"boot_pstate": None, "shutdown_pstate": None, "switch_pstates": ()}
    policy = at(
        (0.0, [Assign(1, 1), Assign(0, 0, 1)]), (2.0, [PowerOff(0)]), (7.0, [PowerOn(0)]), (11.0, [Assign(2, 0)])
    )
    result = on_both(pair(**own), [10.0, 150.0, 20.0], policy)
    assert parts(result) == {"busy": 16.0 + 80.0, "shutdown": 18.0, "off": 2.0, "boot": 24.0, "idle": 20.0}


def test_one_of_the_two_alone():
    """Boots in a P-state of its own, and is off at once; or the other way round."""
    policy = at((0.0, [PowerOff(0), Assign(0, 1)]), (5.0, [PowerOn(0)]), (9.0, []))
    result = on_both(pair(shutdown_time_s=0.0, shutdown_pstate=None), [100.0], policy)
    assert parts(result) == {"off": 5.0, "boot": 200.0, "idle": 10.0}
    result = on_both(pair(boot_time_s=0.0, boot_pstate=None), [100.0], policy)
    assert parts(result) == {"shutdown": 90.0, "off": 2.0, "idle": 50.0}


def test_a_host_with_no_time_to_boot_takes_its_queue_when_it_is_off():
    """Switched on while it shuts down: at the end of that, at 4 s, it takes tasks."""
    policy = at((0.0, [Assign(0, 1)]), (1.0, [PowerOff(0)]), (2.0, [PowerOn(0), Assign(1, 0)]))
    result = on_both(pair(boot_time_s=0.0, boot_pstate=None), [100.0, 50.0], policy)
    assert result.trace.start_time_s.tolist() == [0.0, 4.0]


@pytest.mark.parametrize(
    ("down", "up", "expected"),
    [
        # while it shuts down: off at once; it stays off, as it was switched off
        (2.0, 3.0, {"idle": 10.0, "shutdown": 30.0, "off": 8.0}),
        # while it runs nothing: off at once, without shutting down; it boots
        (0.5, 3.0, {"idle": 5.0 + 30.0, "off": 2.5, "boot": 200.0}),
    ],
)
def test_outages_take_no_time(down: float, up: float, expected: dict):
    """A host that goes down by itself is off at once, and boots although no decision had switched it off."""
    profiles = HostProfiles(states=(("h0", Profile((down, up), (0.0, 1.0))),))
    platform = Platform(pair().hosts, name="P", profiles=profiles)
    off = [PowerOff(0)] if down > 1.0 else []
    result = on_both(platform, [100.0], at((0.0, [Assign(0, 1)]), (1.0, off)))
    assert parts(result) == expected


def test_going_down_while_it_waits_to_boot():
    """Switched off and on, then down from 2 to 6 s: it boots at 6 s, and its queue starts at 10."""
    profiles = HostProfiles(states=(("h0", Profile((2.0, 6.0), (0.0, 1.0))),))
    platform = Platform(pair().hosts, name="P", profiles=profiles)
    policy = deciding(
        lambda state: {0.0: [Assign(0, 1), PowerOff(0), PowerOn(0)]}.get(
            state.now, [Assign(task, 0) for task in state.mappable if state.is_on[0]]
        ),
        powers_hosts=True,
    )
    result = on_both(platform, [200.0, 50.0], policy)
    assert parts(result) == {"shutdown": 60.0, "off": 4.0, "boot": 200.0, "busy": 200.0, "idle": 50.0}


def test_parked_hosts_boot_in_their_own_pstate():
    """Idle hosts are in P-state 1, 6 W; one that has booted is so from then on."""
    policy = at((0.0, [Assign(0, 1), PowerOff(0)]), (4.0, [PowerOn(0)]))
    result = on_both(pair(), [100.0], policy, parked_pstate=1)
    assert parts(result) == {"shutdown": 90.0, "off": 1.0, "boot": 200.0, "idle": 12.0}


def test_a_budget_counts_what_switching_draws():
    """20 W, then 90 W while h0 boots: 100 J are used up at 2 s."""
    budget = EnergyBudget(energy_j=120.0, enforcement="stop")
    policy = at((0.0, [Assign(0, 1)]), (1.0, [PowerOn(0)]))
    result = on_both(pair(), [100.0], policy, budget=budget, hosts_off=("h0",))
    # 41 J in the first second, then 90 W
    assert result.trace.horizon_s == pytest.approx(1.0 + 79.0 / 90.0)
    assert result.summary()["energy_j"] == pytest.approx(120.0)


def test_a_power_cap_counts_what_booting_draws():
    """90 W while h0 boots beside a busy host."""
    policy = at((0.0, [Assign(0, 1)]), (1.0, [PowerOn(0)]))
    case = pair(), [100.0], policy
    assert on_both(*case, power_cap_w=90.0, hosts_off=("h0",)).summary()["peak_power_w"] == 90.0
    with pytest.raises(InvalidDecision, match="90 W"):
        on_simgrid(*case, driver="reference", power_cap_w=89.0, hosts_off=("h0",))


def test_nodes_of_parallel_jobs_boot_and_shut_down():
    """A job of three nodes at 20 s, two of which were switched off at 0 s."""
    tasks = make_tasks([100.0, 50.0], [0.0, 20.0], width=[1, 3])

    def answer(state):
        if state.now == 0.0:
            return [Allocate(0, np.array([2])), PowerOff(0), PowerOff(1)]
        if len(state.mappable) and not state.is_on.all():
            return [PowerOn(0), PowerOn(1)]
        return [Allocate(1, np.arange(3))] if state.nodes.free.all() and len(state.mappable) else []

    result = on_both(pair(3), tasks, deciding(answer, parallel=True, powers_hosts=True))
    assert result.trace.start_time_s.tolist() == [0.0, 24.0]
    expected = {"shutdown": 90.0, "off": 17.0, "boot": 200.0, "busy": 200.0}
    assert parts(result) == parts(result, 1) == expected


def test_idle_off_heeds_a_cap_in_what_it_switches():
    """Shutting down and booting draw more than idling, and 65 W are not enough for all of it."""
    tasks = make_tasks([100.0] * 3, [0.0, 30.0, 30.0])
    policy = IdleOff("power_capped_mct", timeout_s=5.0)
    platform = pair(boot_time_s=0.6, shutdown_time_s=0.5)  # 44.5 J, which 9 W save in 4.9 s
    result = on_both(platform, tasks, policy, power_cap_w=65.0)
    changes = [(time, host, on) for time, host, _, on in result.trace.host_changes.tolist()[2:]]
    # h1 stays idle beside a busy host (40 + 30 W); at 15 s h0 goes (30 + 10 W), h1 when asked next
    assert changes[:2] == [(10.0, 1, False), (15.0, 0, False)]
    on = [row for row in changes if row[2]]
    assert on[0][:2] == (30.0, 0)
    assert result.summary()["tasks_finished"] == 3
    assert result.summary()["peak_power_w"] <= 65.0


@given(
    st.lists(st.floats(0.5, 9.0), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(1, 200), st.integers(0, 40)), min_size=1, max_size=8),
    st.tuples(*[st.sampled_from([0.0, 0.5, 3.0])] * 2),
    st.booleans(),
    st.integers(1, 2),
    st.sampled_from(["mct", "wqr", "min_min"]),
    st.none() | st.floats(1.0, 30.0),
)
@settings(max_examples=6, deadline=None)
def test_whatever_is_switched(gaps, work, times, own, cores, scheduler, down):
    """Random hosts are switched off and on around a scheduler; drivers and joules agree."""
    changes = {} if own else {"boot_pstate": None, "shutdown_pstate": None, "switch_pstates": ()}
    platform = pair(3, cores, boot_time_s=times[0], shutdown_time_s=times[1], **changes)
    if down is not None:
        profiles = HostProfiles(states=(("h0", Profile((down, down + 2.0), (0.0, 1.0))),))
        platform = Platform(platform.hosts, name="P", profiles=profiles)
    sizes, arrivals = zip(*sorted(work, key=lambda each: each[1]), strict=True)
    tasks = make_tasks(sizes, arrivals)
    result = on_both(platform, tasks, IdleOff(scheduler, timeout_s=gaps[0]))
    assert result.summary()["tasks_finished"] == len(tasks)
    energy = result.energy
    sums = energy.busy_j + energy.idle_j + energy.boot_j + energy.shutdown_j + energy.off_j
    assert sums == pytest.approx(energy.total_j, rel=1e-12)


# Parked hosts: what runs nowhere draws the power of a low P-state, on both drivers alike.

#: Two P-states of 10 flop/s at 100 W and 5 flop/s at 25 W, idle draws the same (algorithms D1).
PARKED_STATES = (PState(10.0, 100.0, 100.0, 100.0), PState(5.0, 25.0, 25.0, 25.0))


def two_hosts(cores: int = 1, **changes: float) -> Platform:
    """Return two hosts of these P-states."""
    return Platform(tuple(Host(f"h{k}", PARKED_STATES, cores, **changes) for k in (1, 2)), name="two")


def both(platform: Platform, tasks, scheduler: str = "wq", **rules) -> tuple[RunResult, RunResult]:
    """Run on both drivers, which must agree, and SimGrid's meter with the model host by host."""
    execution_mode = rules.pop("execution_mode", "auto")
    reference = run(Scenario(platform, tasks, scheduler, driver="reference", **rules))
    metered = on_simgrid(platform, tasks, scheduler, execution_mode=execution_mode, **rules)
    assert trace_differences(reference.trace, metered.trace) == []
    assert metered_differences(metered) == []
    assert largest_difference(metered) <= 1e-9
    return reference, metered


def changes_of(result: RunResult) -> list[tuple]:
    """Return (time, host, P-state) of all host changes."""
    return [row[:3] for row in result.trace.host_changes.tolist()]


@pytest.mark.parametrize("execution_mode", ["maestro", "actors"])
def test_a_host_is_parked_from_its_last_task_to_its_next(execution_mode):
    """h1 runs 0-10 s and 30-34 s, h2 0-4 s; else they draw 25 W: by hand 4,150 J until 34 s."""
    tasks = make_tasks([100.0, 40.0, 40.0], [0.0, 0.0, 30.0])
    for result in both(two_hosts(), tasks, execution_mode=execution_mode, parked_pstate=1):
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
    budget = EnergyBudget(1175.0, math.inf, enforcement="stop")
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
    budget = EnergyBudget(100.0, math.inf, enforcement="stop")
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
    budget = EnergyBudget(budget_j, math.inf, enforcement="stop")
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
