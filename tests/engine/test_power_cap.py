"""The rule `power_cap_w`: what the hosts draw together, and when that is too much."""

from __future__ import annotations

import numpy as np
import pytest
from scripted import ANYTHING, Scripted, at, controller_of, first_host, idle_hosts, plan, play

from gridsched.engine import reference
from gridsched.errors import IncompleteRun, InputError, InvalidDecision
from gridsched.model.platform import Host, Platform, PState, homogeneous_cluster
from gridsched.model.tasks import make_tasks
from gridsched.policy.base import Traits
from gridsched.policy.decisions import Allocate, Assign, Plan, PowerOff, PowerOn, WakeAt
from gridsched.power import peak_power_w

HEEDING = Traits(asked="event", powers_hosts=True, heeds_power_cap=True)
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
    """Counted anew at each ask, on hosts of several cores."""
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
        play(two(), tasks, answer, HEEDING, power_cap_w=150.0)
    heeds_none = told + r"; this scheduler heeds no cap, power_capped_mct does\.$"
    with pytest.raises(InvalidDecision, match=heeds_none):
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
    parallel = Traits(asked="event", parallel=True, heeds_power_cap=True)
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


def _nobody() -> Scripted:
    """A policy that decides nothing."""
    return Scripted(lambda state: [], HEEDING)


def test_first_host_alone_stays_below():
    """One host's queue never draws more than that host and the other's idle power."""
    trace, _ = play(two(), [50.0, 50.0, 50.0], first_host, power_cap_w=110.0)
    assert trace.horizon_s == 15.0
