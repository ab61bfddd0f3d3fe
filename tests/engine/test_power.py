"""Power states and caps, and the joules of queued tasks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import ANYTHING, Scripted, at, controller_of, first_host, hosts, idle_hosts, plan, play, rows

from gridsched.drivers import reference
from gridsched.energy import grid_energy_between
from gridsched.engine import execution
from gridsched.errors import IncompleteRun, InputError, InvalidDecision
from gridsched.model.platform import Host, Platform, PState, homogeneous_cluster
from gridsched.model.rules import EnergyBudget
from gridsched.model.tasks import make_tasks
from gridsched.policy.base import Traits
from gridsched.policy.decisions import Allocate, Assign, Cancel, Plan, PowerOff, PowerOn, WakeAt
from gridsched.power import peak_power_w

# Hosts switched off and on, boot times, P-states of hosts with one and with several cores.


def test_a_booting_host_takes_its_queue_when_it_has_booted():
    """PowerOn at t = 1 with 5 s boot time: the task assigned at once starts at 6."""
    answer = at((0.0, [PowerOff(1), Assign(0, 0)]), (1.0, [PowerOn(1), Assign(1, 1)]))
    trace, policy = play(hosts(10, 10, boot_time_s=5.0), [10.0, 10.0], answer)
    assert trace.start_time_s.tolist() == [0.0, 6.0]
    assert policy.times == [0.0, 1.0, 6.0]
    assert trace.host_changes[["time", "host", "is_on"]].tolist() == [
        (0.0, 0, True),
        (0.0, 1, True),
        (0.0, 1, False),
        (1.0, 1, True),
    ]


def test_without_a_boot_time_a_host_works_at_once():
    """PowerOn and Assign of one call start the task in that instant."""
    answer = at((0.0, [PowerOn(0), Assign(0, 0)]))
    trace, _ = play(hosts(10), [10.0], answer, hosts_off=(0,))
    assert rows(trace) == [(0.0, 0, 0, 1.0)]


def test_a_host_booted_twice_waits_for_the_second_boot():
    """On at 0, off at 3, on at 5 with 10 s boot time: nothing starts or asks at 10, but at 15."""
    answer = at((0.0, [PowerOn(0), WakeAt(3.0), WakeAt(5.0)]), (3.0, [PowerOff(0)]), (5.0, [PowerOn(0), plan((0, 0))]))
    trace, policy = play(hosts(10, boot_time_s=10.0), [10.0], answer, hosts_off=(0,))
    assert trace.start_time_s.tolist() == [15.0]
    assert policy.times == [0.0, 3.0, 5.0, 15.0]


def test_the_state_of_a_booting_host():
    """While it boots a host is on, not idle, and ready when it has booted; off, it is never."""
    seen = {}

    def answer(state):
        seen[state.now] = (state.is_on.tolist(), state.idle_cores(), state.ready_time.tolist())
        return {0.0: [PowerOn(0), WakeAt(1.0)], 1.0: [Assign(0, 0)]}.get(state.now, [])

    play(hosts(10, 10, boot_time_s=4.0), [10.0], answer, hosts_off=(0, 1))
    inf = float("inf")
    assert seen[0.0] == ([False, False], [], [inf, inf])
    assert seen[1.0] == ([True, False], [], [4.0, inf])


def test_a_planned_task_waits_while_its_host_is_off():
    """A plan does not bind: its host may be switched off, and the task planned elsewhere."""
    answer = at((0.0, [PowerOn(0), Assign(0, 1), plan((1, 0)), PowerOff(0)]), (1.0, [plan((1, 1))]))
    rules = {"hosts_off": (0,), "pending_slots": 1}
    trace, _ = play(hosts(10, 10), [10.0, 10.0], answer, **rules)
    assert trace.start_time_s.tolist() == [0.0, 1.0]


def test_with_all_hosts_off_the_run_is_incomplete():
    """Where nothing can run, the error comes at once and names all tasks."""
    with pytest.raises(IncompleteRun, match=r"3 of 3.*t = 0 s.*1, 2, 3"):
        play(hosts(10, 10), [1.0, 1.0, 1.0], lambda state: [], hosts_off=(0, 1))


def two_speeds(cores: int = 1) -> Platform:
    """One host with P-states of 10 and 5 flop/s."""
    return Platform((Host("h1", (PState(10.0, 1, 2, 4), PState(5.0, 1, 1, 2)), cores=cores),))


def test_a_task_runs_in_the_pstate_it_was_assigned_with():
    """The host changes its P-state when the task starts, and the trace records it."""
    answer = at((0.0, [Assign(0, 0, 1), Assign(1, 0)]))
    trace, _ = play(two_speeds(), [10.0, 10.0], answer)
    assert rows(trace) == [(0.0, 0, 0, 2.0), (2.0, 0, 1, 3.0)]
    changes = trace.host_changes[["time", "pstate"]].tolist()
    assert changes == [(0.0, 0), (0.0, 1), (2.0, 0)]


def test_the_scenarios_pstate_is_the_default():
    """With P-state 1 for all hosts an Assign without P-state runs at 5 flop/s."""
    trace, _ = play(two_speeds(), [10.0], at((0.0, [Assign(0, 0)])), pstate=1)
    assert rows(trace) == [(0.0, 0, 0, 2.0)]


def test_a_plan_has_pstates_of_its_own():
    """Each planned task starts in the P-state its plan gives."""
    answer = at((0.0, [plan((0, 0), (1, 0), pstates=[1, 0])]))
    trace, _ = play(two_speeds(), [10.0, 10.0], answer)
    assert trace.finish_time_s.tolist() == [2.0, 3.0]


@pytest.mark.parametrize(
    "decisions",
    [
        [Assign(0, 0, 0), Assign(1, 0, 1)],
        [Assign(0, 0, 0), Assign(1, 0, 0), Assign(2, 0, 1)],
        [Assign(0, 0, 0), plan((1, 0), pstates=[1])],
        [plan((0, 0), (1, 0), pstates=[0, 1])],
        [plan((0, 0), pstates=[0]), Assign(1, 0, 1)],
    ],
)
def test_cores_of_a_host_share_one_pstate(decisions):
    """Whatever runs, is fixed or planned on a host with several cores agrees in its P-state."""
    with pytest.raises(InvalidDecision, match=r"'h1'.*P-state 1"):
        play(two_speeds(cores=2), [10.0] * 3, at((0.0, decisions)))


def test_a_host_with_several_cores_changes_its_pstate_when_it_is_empty():
    """The P-state is free again as soon as nothing is there; old plans do not count."""
    answer = at(
        (0.0, [Assign(0, 0, 1), plan((1, 0), pstates=[1]), plan((1, 0), pstates=[1])]),
        (4.0, [Assign(2, 0, 0), plan((3, 0), pstates=[0])]),
    )
    trace, _ = play(two_speeds(cores=2), [20.0, 10.0, 10.0, 20.0], answer)
    assert trace.finish_time_s.tolist() == [4.0, 2.0, 5.0, 6.0]


def test_a_planned_task_assigned_elsewhere_frees_the_hosts_pstate():
    """Task 1 was planned on h1 in P-state 1 and went to h2: P-state 0 is allowed on h1 again."""
    two = Platform(tuple(Host(name, (PState(10.0, 1, 2, 4), PState(5.0, 1, 1, 2)), cores=2) for name in ("a", "b")))
    answer = at((0.0, [plan((1, 0), pstates=[1]), Assign(1, 1, 1), Assign(0, 0, 0)]))
    trace, _ = play(two, [10.0, 10.0], answer, Traits(trigger="event"))
    assert trace.finish_time_s.tolist() == [1.0, 2.0]


# The rule `power_cap_w`: what the hosts draw together, and when that is too much.

RESPECTING = Traits(trigger="event", powers_hosts=True, respects_power_cap=True)
#: 10 flop/s at 100 W, 5 flop/s at 40 W, 10 W and 5 W idle.
STATES = (PState(10.0, 10.0, 100.0, 100.0), PState(5.0, 5.0, 40.0, 40.0))


def two(cores: int = 1) -> Platform:
    """Return two equal hosts that draw 2 W when off and boot in 3 s."""
    hosts = (Host(f"h{k}", STATES, cores, off_w=2.0, boot_time_s=3.0) for k in (1, 2))
    return Platform(tuple(hosts), name="two")


def test_the_state_tells_draw_and_cap():
    """Idle, one host busy, the other off, booting, and busy in the slower P-state."""
    seen = []

    def answer(state):
        seen.append((state.now, state.power.draw_w, state.power.remaining_w))
        return at(
            (0.0, [PowerOff(1), Assign(0, 0)]), (10.0, [PowerOn(1)]), (13.0, [Assign(1, 1, 1)]), (14.0, [WakeAt(15.0)])
        )(state)

    tasks = make_tasks([100.0, 10.0, 10.0], [0.0, 0.0, 14.0])

    def to_the_end(state):
        return [*answer(state), *([Assign(2, 0)] if state.now == 15.0 else [])]

    trace, _ = play(two(), tasks, to_the_end, power_cap_w=150.0)
    assert seen == [
        (0.0, 20.0, 130.0),
        (10.0, 12.0, 138.0),
        (13.0, 20.0, 130.0),
        (14.0, 50.0, 100.0),
        (15.0, 15.0, 135.0),
    ]
    assert peak_power_w(trace) == 105.0  # from 15 s on


def test_without_a_cap_the_draw_is_told_too():
    """Counted again at each ask, on hosts of several cores."""
    seen = []

    def answer(state):
        seen.append((state.power.draw_w, state.power.remaining_w))
        return idle_hosts(state)

    platform = Platform((Host("h", (PState(10.0, 10.0, 20.0, 60.0),), cores=4),))
    play(platform, make_tasks([10.0, 20.0, 40.0], [0.0, 0.0, 1.5]), answer)
    inf = float("inf")
    # one of four cores: 20 + (60 - 20) / 4
    assert seen == [(10.0, inf), (30.0, inf), (30.0, inf), (30.0, inf)]


@pytest.mark.parametrize(
    ("answer", "time"),
    [
        (idle_hosts, 0),
        (lambda state: [plan((0, 0), (1, 1))] if not state.now else [], 0),
        (lambda state: [Plan(state.mappable, None)] if state.next_waiting(1) else [], 0),
        (at((0.0, [Assign(0, 0), Assign(2, 1, 1), Assign(1, 1, 0)])), 4),
    ],
    ids=["assigned", "planned", "planned in common", "from a fixed queue"],
)
def test_too_much_power_ends_the_run(answer, time: int):
    """However the task came to its core; the message names it."""
    tasks = make_tasks([100.0, 100.0, 20.0], name="bag")
    told = (
        rf"Scripted\(\) at t = {time} s, task 2, host 'h2': the hosts would draw 200 W, and the "
        r"cap \(power_cap_w\) is 150 W"
    )
    with pytest.raises(InvalidDecision, match=told + r"\.$"):
        play(two(), tasks, answer, RESPECTING, power_cap_w=150.0)
    respects_none = told + r"; this scheduler respects no cap, power_capped_mct does\.$"
    with pytest.raises(InvalidDecision, match=respects_none):
        play(two(), tasks, answer, ANYTHING, power_cap_w=150.0)


def test_what_ends_in_the_instant_draws_no_more():
    """A start in the instant of a finish counts without what has finished: 110 W all the time."""
    trace, _ = play(two(), [100.0, 100.0], at((0.0, [Assign(0, 0)]), (10.0, [Assign(1, 1)])), power_cap_w=110.0)
    assert trace.horizon_s == 20.0
    assert peak_power_w(trace) == 110.0


def test_switching_on_counts():
    """A host that boots draws its idle power."""
    with pytest.raises(InvalidDecision, match=r"t = 2 s.*110 W"):
        play(
            two(),
            make_tasks([100.0, 9.0], [0.0, 2.0]),
            at((0.0, [PowerOff(1), Assign(0, 0)]), (2.0, [PowerOn(1)])),
            power_cap_w=105.0,
        )


def test_nodes_of_parallel_tasks_count():
    """Both nodes of the first task, and the third node while it computes."""
    tasks = make_tasks([100.0, 50.0], width=[2, 1])
    platform = homogeneous_cluster(3, idle_w=10.0, busy_w=100.0, speed=10.0)
    parallel = Traits(trigger="event", parallel=True, respects_power_cap=True)
    draws: list[float] = []

    def one_by_one(state):
        draws.append(state.power.draw_w)
        return [Allocate(t, np.arange(tasks.width[t])) for t in state.next_waiting(1)]

    trace, _ = play(platform, tasks, one_by_one, parallel, power_cap_w=210.0)
    assert draws == [30.0, 30.0]
    assert peak_power_w(trace) == 210.0

    def together(state):
        return [Allocate(0, np.array([0, 1])), Allocate(1, np.array([2]))]

    with pytest.raises(InvalidDecision, match=r"'n2'.*300 W"):
        play(platform, tasks, together, parallel, power_cap_w=250.0)


def test_parking_and_hosts_that_are_off_count():
    """What the hosts draw at the start is what they draw parked, or off."""
    controller_of(two(), [1.0], _nobody(), parked_pstate=1, power_cap_w=10.0)
    controller_of(two(), [1.0], _nobody(), hosts_off=(1,), power_cap_w=12.0)
    with pytest.raises(InputError, match=r"power_cap_w.*19\.5 W.*two.*20 W"):
        controller_of(two(), [1.0], _nobody(), power_cap_w=19.5)


def test_tasks_that_no_cap_admits_are_told():
    """The error of a run that gets stuck names the cap."""
    controller = controller_of(two(), [1.0], _nobody(), power_cap_w=50.0)
    with pytest.raises(IncompleteRun, match="50 W"):
        reference.simulate(controller)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("most_recent", [0, execution.MOST_RECENT])
def test_what_is_consumed_is_the_integral_of_the_trace(monkeypatch, most_recent, cores, seed):
    """Hosts of two P-states boot in 3 s, shut down in 2 s and draw 1 W while off; the policy asks now and then."""
    monkeypatch.setattr(execution, "MOST_RECENT", most_recent)
    rng, seen, wakes = np.random.default_rng(seed), [], [0.0]
    pstates = PState(10.0, 5.0, 7.0, 20.0), PState(5.0, 4.0, 5.0, 9.0)
    machine = Platform(
        tuple(
            Host(f"h{k}", pstates, cores=cores, off_w=1.0, boot_time_s=3.0, shutdown_time_s=2.0 * (k % 2))
            for k in range(4)
        )
    )
    tasks = make_tasks(rng.integers(10, 200, 60) * 1.0, np.sort(rng.integers(0, 150, 60)) * 1.0)

    def answer(state):
        if rng.random() < 0.5:
            seen.extend((state.now, state.consumed_j()) for _ in range(2))
        to_turn_off = [h for h in np.flatnonzero(np.isfinite(state.idle_since)).tolist() if rng.random() < 0.2]
        waits = state.next_waiting(3)
        free = [h for h in sorted(set(state.idle_cores())) if h not in to_turn_off]
        is_to_wake = bool(waits) and wakes[-1] <= state.now  # one wake-up at a time
        if is_to_wake:
            wakes.append(state.now + 0.7)
        return [
            *(PowerOff(h) for h in to_turn_off),
            *(PowerOn(h) for h in np.flatnonzero(~state.is_on).tolist() if rng.random() < 0.3),
            *(Assign(task, h, h % 2) for task, h in zip(waits, free, strict=False)),
            *([WakeAt(wakes[-1])] if is_to_wake else []),
        ]

    trace, _ = play(machine, tasks, answer)
    whole = {time: grid_energy_between(trace, np.array([0.0, time])).item() for time, _ in seen}
    assert len(whole) > 80
    for time, joules in seen:
        assert joules == pytest.approx(whole[time], rel=1e-12, abs=1e-9)


def _nobody() -> Scripted:
    """A policy that decides nothing."""
    return Scripted(lambda state: [], RESPECTING)


def test_first_host_alone_stays_below():
    """One host's queue never draws more than that host and the other's idle power."""
    trace, _ = play(two(), [50.0, 50.0, 50.0], first_host, power_cap_w=110.0)
    assert trace.horizon_s == 15.0


# What is committed, kept up to date, is what a fresh look at running tasks and queues gives.


def committed_afresh(state, cores) -> float:
    """Energy from now to the period's end of running tasks and fixed queues [J]."""
    now, end, estimates = state.now, state.energy.period_end, state.estimates
    total = 0.0
    for host, n_cores in enumerate(cores):
        free_from = []
        for task, on, pstate, start, estimated_end, _ in state.running.tolist():
            if on == host:
                watts = estimates.energy(task, host, pstate) / estimates.run_time(task, host, pstate)
                total += watts * max(0.0, min(estimated_end, end) - max(start, now))
                free_from.append(max(now, estimated_end))
        free_from += [now] * (n_cores - len(free_from))
        first, last = state.queue_offsets[host : host + 2].tolist()
        for task in state.queue_tasks[first:last].tolist():
            core = free_from.index(min(free_from))
            run_time = estimates.run_time(task, host, 0)
            inside = min(max((end - free_from[core]) / run_time, 0.0), 1.0)
            total += estimates.energy(task, host, 0) * inside
            free_from[core] += run_time
    return total


@settings(max_examples=150, deadline=None)
@given(
    cores=st.lists(st.integers(1, 2), min_size=1, max_size=3),
    sizes=st.lists(st.floats(10.0, 500.0), min_size=1, max_size=15),
    period_s=st.floats(5.0, 60.0),
    seed=st.integers(0, 1000),
    asked=st.sampled_from(["event", "arrival"]),
)
def test_committed_energy_is_that_of_a_fresh_look(cores, sizes, period_s, seed, asked):
    """Tasks come, start, end early or late, are cancelled in queues; periods begin."""
    rng = np.random.default_rng(seed)
    platform = Platform(
        tuple(Host(f"h{k}", (PState(10.0 + k, 0.0, 20.0 / n, 20.0),), cores=n) for k, n in enumerate(cores))
    )
    tasks = make_tasks(sizes, np.sort(rng.uniform(0.0, 30.0, len(sizes))))
    factor = rng.uniform(0.6, 1.6, len(sizes))
    looks = []

    def answer(state):
        looks.append((state.energy.committed_j, committed_afresh(state, cores)))
        decisions = [Assign(task, int(rng.integers(len(cores)))) for task in state.mappable.tolist()]
        queued = state.queue_tasks.tolist()
        if queued and asked == "event" and rng.random() < 0.3 and state.tasks_to_arrive:
            decisions.append(Cancel(queued[int(rng.integers(len(queued)))]))
        return decisions

    traits = Traits(asked, may_cancel=True, respects_budget=True)

    def actual(task, host, pstate):
        return sizes[task] / (10.0 + host) * factor[task]

    play(platform, tasks, answer, traits, run_time=actual, budget=EnergyBudget(1e9, period_s=period_s))
    assert looks
    for kept, fresh in looks:
        assert kept == pytest.approx(fresh, rel=1e-9, abs=1e-9)
