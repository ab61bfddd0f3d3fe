"""Hosts switched off and on, boot times, P-states of hosts with one and with several cores."""

from __future__ import annotations

import pytest
from scripted import at, hosts, plan, play, rows

from gridsched.errors import IncompleteRun, InvalidDecision
from gridsched.model.platform import Host, Platform, PState
from gridsched.policy.base import Traits
from gridsched.policy.decisions import Assign, PowerOff, PowerOn, WakeAt


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
    """The host changes its P-state when the task starts, and the trace tells it."""
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
    """Task 1 was planned on h1 in P-state 1 and went to h2: P-state 0 is legal on h1 again."""
    two = Platform(tuple(Host(name, (PState(10.0, 1, 2, 4), PState(5.0, 1, 1, 2)), cores=2) for name in ("a", "b")))
    answer = at((0.0, [plan((1, 0), pstates=[1]), Assign(1, 1, 1), Assign(0, 0, 0)]))
    trace, _ = play(two, [10.0, 10.0], answer, Traits(asked="event"))
    assert trace.finish_time_s.tolist() == [1.0, 2.0]
