"""Hosts that change their speed, go down and come up: by hand, on the reference driver."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import Scripted, controller_of, nodes

from gridsched.drivers import reference
from gridsched.drivers.simgrid_library import is_installed
from gridsched.energy import trace_energy
from gridsched.errors import IncompleteRun, InputError, InvalidDecision
from gridsched.metrics import metrics_of
from gridsched.metrics.facts import RunFacts
from gridsched.model.failures import Failures
from gridsched.model.host_profiles import HostProfiles, Profile, SampledFailures, SpeedOverTime
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.model.rules import EnergyBudget
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import ExecutionEnd, TaskState
from gridsched.policy.base import Traits
from gridsched.policy.decisions import Allocate, Assign, Plan, PowerOn
from gridsched.runs.run import run
from gridsched.scenario import Scenario

FAILED, DONE = int(ExecutionEnd.FAILED), int(ExecutionEnd.FINISHED)
DOWN_AT_20 = Profile((20.0, 25.0), (0.0, 1.0))


def platform(n: int = 1, **profiles: dict[str, Profile]) -> Platform:
    """Hosts of 100 flop/s: 10 W idle, 20 to 40 W busy, 1 W off."""
    state = PState(100.0, 10.0, 20.0, 40.0)
    hosts = tuple(Host(f"h{k}", (state,), off_w=1.0) for k in range(n))
    return Platform(
        hosts, name="P", profiles=HostProfiles(**{kind: tuple(each.items()) for kind, each in profiles.items()})
    )


def play(platform: Platform, flops: list[float], scheduler="wq", **rules):
    """Run with the reference driver; return executions, final states and the result."""
    result = run(Scenario(platform, make_tasks(flops), scheduler, driver="reference", **rules))
    runs = result.trace.executions[["task", "host", "start", "end", "outcome"]].tolist()
    return runs, result.trace.final_state.tolist(), result


def test_speed_halves():
    """3000 flop at 100 flop/s: 1000 in 10 s, 2000 at half the speed in 40 s, at half the load."""
    runs, _, result = play(platform(speeds={"h0": Profile((10.0,), (0.5,))}), [3000.0])
    assert runs == [(0, 0, 0.0, 50.0, DONE)]
    assert result.energy.total_j.tolist() == [10 * 40.0 + 40 * 30.0]
    assert result.trace.executed_flops().tolist() == [3000.0]


def test_down_and_started_again():
    """20 s are lost, the host draws 1 W for 5 s, and the task begins again."""
    runs, states, result = play(platform(states={"h0": DOWN_AT_20}), [3000.0])
    assert runs == [(0, 0, 0.0, 20.0, FAILED), (0, 0, 25.0, 55.0, DONE)]
    assert states == [TaskState.FINISHED]
    assert result.energy.total_j.tolist() == [20 * 40.0 + 5 * 1.0 + 30 * 40.0]
    assert result.energy.wasted_j.tolist() == [800.0]
    metrics = metrics_of(result.facts)
    assert (metrics["executions_failed"], metrics["lost_work_s"]) == (1, 20.0)
    assert metrics["energy_lost_j"] == 800.0


def test_down_and_failed():
    """The task has failed, and nothing else is to be done."""
    runs, states, result = play(platform(states={"h0": DOWN_AT_20}), [3000.0], on_failure="failed")
    assert runs == [(0, 0, 0.0, 20.0, FAILED)]
    assert states == [TaskState.FAILED]
    assert metrics_of(result.facts)["tasks_failed"] == 1


def test_both_profiles():
    """Half the speed from 10 s on; down from 20 s, when 1500 flop are done, to 25 s."""
    both = platform(speeds={"h0": Profile((10.0,), (0.5,))}, states={"h0": DOWN_AT_20})
    runs, _, result = play(both, [3000.0])
    assert runs == [(0, 0, 0.0, 20.0, FAILED), (0, 0, 25.0, 85.0, DONE)]
    assert result.trace.executed_flops().tolist() == [1500.0, 3000.0]
    assert result.energy.total_j.tolist() == [400.0 + 10 * 30.0 + 5.0 + 60 * 30.0]


def test_end_in_the_instant_of_the_outage():
    """What ends when its host goes down has ended."""
    runs, _, _ = play(platform(states={"h0": DOWN_AT_20}), [2000.0, 100.0])
    assert runs == [(0, 0, 0.0, 20.0, DONE), (1, 0, 25.0, 26.0, DONE)]


def test_queues_go_elsewhere():
    """What is fixed on a host that goes down waits again, and the policy is asked."""
    policy = Scripted(lambda state: [Assign(task, int(np.argmax(state.is_on))) for task in state.mappable.tolist()])
    asked = controller_of(platform(2, states={"h0": DOWN_AT_20}), [1500.0, 1000.0, 400.0], policy)
    trace = reference.simulate(asked)
    assert policy.asked_[2] == (20.0, [1, 2])
    assert trace.executions[["task", "host", "start"]].tolist() == [
        (0, 0, 0.0),
        (1, 0, 15.0),
        (1, 1, 20.0),
        (2, 1, 30.0),
    ]


@pytest.mark.parametrize("asked", ["start", "arrival"])
def test_policies_that_are_asked_once(asked):
    """Who maps at the start, or at arrivals, is asked again for what waits, also at a return."""

    def answer(state):
        on = np.flatnonzero(state.is_on)
        tasks = state.mappable if len(on) else []
        return [Plan(np.array(tasks), np.full(len(tasks), on[0]))] if len(on) else []

    policy = Scripted(answer, Traits(trigger=asked))
    trace = reference.simulate(controller_of(platform(states={"h0": DOWN_AT_20}), [3000.0], policy))
    assert trace.finish_time_s.tolist() == [55.0]
    assert policy.times == [0.0, 20.0, 25.0]


def test_a_replica_lives_on():
    """wqr: the copy on the other host finishes the task; nothing is started again."""
    both = platform(2, states={"h0": Profile((5.0,), (0.0,))})
    runs, states, _ = play(both, [1000.0, 200.0], "wqr", on_failure="failed")
    assert states == [TaskState.FINISHED] * 2
    assert (0, 0, 0.0, 5.0, FAILED) in runs
    assert (0, 1, 2.0, 12.0, DONE) in runs


def test_a_host_boots_when_it_is_back():
    """A boot of 3 s follows the outage, at idle power."""
    one = platform(states={"h0": DOWN_AT_20})
    slow = Platform((Host("h0", one.hosts[0].pstates, off_w=1.0, boot_time_s=3.0),), profiles=one.profiles)
    runs, _, result = play(slow, [3000.0])
    assert runs[1] == (0, 0, 28.0, 58.0, DONE)
    assert result.energy.boot_j.tolist() == [30.0]


def test_what_policies_see():
    """A host that is down is off, and neither takes tasks nor can be switched on."""
    seen = []

    def answer(state):
        seen.append((state.is_on.tolist(), state.is_down.tolist(), state.ready_time.tolist()))
        return [Assign(0, 1)] if state.now == 0.0 else []

    policy = Scripted(answer)
    prepared = []
    policy.prepare = lambda system, rng: prepared.append(system) or setattr(policy, "asked_", [])
    down = platform(2, states={"h0": Profile((0.0, 5.0), (0.0, 1.0))})
    reference.simulate(controller_of(down, [1000.0], policy))
    assert seen[0] == ([False, True], [True, False], [math.inf, 0.0])
    assert seen[1] == ([True, True], [False, False], [5.0, 10.0])
    assert prepared[0].platform.profiles == HostProfiles()
    for wrong in (Assign(0, 0), PowerOn(0)):
        with pytest.raises(InvalidDecision, match="down; it comes back by itself"):
            reference.simulate(controller_of(down, [1.0], Scripted(lambda _, w=wrong: [w])))


def test_never_ending():
    """A task longer than its host is ever up, and a host that never comes back, are reported."""
    blinking = Profile((5.0, 10.0), (0.0, 1.0), 0.0)
    with pytest.raises(IncompleteRun, match=r"Task 1 .*1001"):
        play(platform(states={"h0": blinking}), [1000.0])
    with pytest.raises(IncompleteRun, match=r"1 of 1.*t = 20 s"):
        play(platform(states={"h0": Profile((20.0,), (0.0,))}), [3000.0])
    idle = Scripted(lambda state: [])
    with pytest.raises(IncompleteRun, match="1 of 1"):
        reference.simulate(controller_of(platform(states={"h0": blinking}), [1.0], idle))


def never_booted(driver: str, n: int = 1, **horizon) -> None:
    """Play a task on hosts that boot for 50 s, and go down after a second."""
    hosts = tuple(Host(f"h{k}", (PState(100.0),), boot_time_s=50.0) for k in range(n))
    clusters = (Cluster("c", tuple(range(n))),)
    failing = Failures(1.0, 1.0).on(Platform(hosts, clusters, name="P"), seed=0, replicate=0)
    width = None if n == 1 else n
    tasks, scheduler = make_tasks([1e6], width=width), "wq" if n == 1 else "fcfs"
    run(Scenario(failing, tasks, scheduler, driver=driver, **horizon))


@pytest.mark.parametrize(("driver", "n"), [("reference", 1), ("reference", 2), ("simgrid", 1)])
def test_hosts_that_go_down_before_they_have_booted(driver, n):
    """The run ends with a line; with a horizon it ends there, after some 1250 boots."""
    if driver == "simgrid" and not is_installed():
        pytest.skip("SimGrid is not installed")
    with pytest.raises(IncompleteRun, match=r"'h[01]'.*1001"):
        never_booted(driver, n)
    never_booted(driver, n, horizon_s=2500.0)


def test_failed_boots_count_for_waiting_tasks_alone():
    """While nothing waits hosts may fail for ever; and what runs meanwhile lets them count again."""
    host = Host("h0", (PState(100.0),), boot_time_s=50.0)
    blinking = Profile((1.0, 2.0), (0.0, 1.0), 1.0)
    calm = Profile(tuple(np.arange(1.0, 3003.0)), (0.0, 1.0) * 1501)  # 1501 failed boots
    first = Platform((host,), profiles=HostProfiles(states=(("h0", calm),)))
    _, states, _ = play(first, [50.0])
    late = run(Scenario(first, make_tasks([50.0, 100.0], [0.0, 3000.0]), "wq", driver="reference"))
    assert states == [TaskState.FINISHED]
    assert late.trace.finish_time_s.tolist() == [0.5, 3053.0]
    with pytest.raises(IncompleteRun, match="1 task"):
        play(replace(first, profiles=HostProfiles(states=(("h0", blinking),))), [500.0])


def test_horizon():
    """What is lost after the horizon is not started again."""
    runs, states, _ = play(platform(states={"h0": DOWN_AT_20}), [3000.0, 1.0], horizon_s=15.0)
    assert states == [TaskState.UNFINISHED] * 2
    assert runs == [(0, 0, 0.0, 20.0, FAILED)]


def test_a_node_of_a_parallel_job():
    """The job fails with one of its nodes, frees the others, and starts again when it can."""
    cluster = nodes(3)
    cluster = Platform(
        cluster.hosts, cluster.clusters, profiles=HostProfiles(states=(("n1", Profile((4.0, 6.0), (0.0, 1.0))),))
    )
    tasks = make_tasks([100.0, 30.0], [0.0, 1.0], width=[2, 1], requested_time_s=[10.0, 3.0])
    result = run(Scenario(cluster, tasks, "fcfs", driver="reference"))
    trace = result.trace
    sets = [trace.hosts_of(k).tolist() for k in range(len(trace.executions))]
    assert sets == [[0, 1], [2], [0, 2]]
    assert trace.executions[["task", "start", "end", "outcome"]].tolist() == [
        (0, 0.0, 4.0, FAILED),
        (1, 1.0, 4.0, DONE),
        (0, 4.0, 14.0, DONE),
    ]
    assert metrics_of(result.facts)["lost_work_s"] == 8.0


def test_reservations_of_a_node_are_withdrawn():
    """A job reserved on a node that goes down waits again; another's reservation stays."""
    cluster = nodes(2)
    cluster = Platform(
        cluster.hosts, cluster.clusters, profiles=HostProfiles(states=(("n0", Profile((2.0, 3.0), (0.0, 1.0))),))
    )
    tasks = make_tasks([10.0] * 2, width=[1, 1], requested_time_s=[1.0] * 2)

    def answer(state):
        if state.now == 0.0:
            return [Allocate(k, np.array([k]), start=5.0) for k in (0, 1)]
        seen.append((state.now, state.mappable.tolist(), state.nodes.reserved.task.tolist()))
        return [Allocate(task, np.array([0])) for task in state.mappable if state.is_on[0]]

    seen = []
    policy = Scripted(answer, Traits(trigger="event", parallel=True))
    trace = reference.simulate(controller_of(cluster, tasks, policy))
    assert seen[:2] == [(2.0, [0], [1]), (3.0, [0], [1])]
    assert trace.finish_time_s.tolist() == [4.0, 6.0]


def test_refused_together():
    """Everything that does not go with hosts that change is reported in one line."""
    with pytest.raises(InputError, match=r"'h0'.*--failures"):
        play(platform(states={"h0": DOWN_AT_20}), [1.0], failures="mtbf=9,mttr=1")
    two = platform(2, states={"h0": DOWN_AT_20}).with_master("h0")
    with pytest.raises(InputError, match="'h0'"):
        play(two, [1.0])


# ---------------------------------------------------------------------- profiles


def test_rounds():
    """SimGrid's LOOPAFTER: after the last date, the delay and the first distance pass."""
    looped = Profile((1.0, 4.0), (0.0, 1.0), 2.0)
    assert list(islice(looped.events(), 5)) == [(1.0, 0.0), (4.0, 1.0), (7.0, 0.0), (10.0, 1.0), (13.0, 0.0)]
    assert list(Profile((1.0,), (0.5,)).events()) == [(1.0, 0.5)]
    assert list(Profile((), (), 1.0).events()) == []


shares = st.floats(0.1, 4.0)


@given(
    st.lists(st.tuples(st.floats(0.01, 20.0), shares), max_size=5),
    st.floats(0.01, 5.0),
    st.booleans(),
    st.floats(0.0, 60.0),
    st.floats(0.01, 60.0),
)
def test_the_integral(steps, delay, repeats, start, duration):
    """Work until the end is the work that was to be done, whatever the steps."""
    dates = tuple(np.cumsum([step for step, _ in steps]).tolist())
    profile = Profile(dates, tuple(share for _, share in steps), delay if repeats else None)
    speed = SpeedOverTime(profile)
    end = speed.end_of(start, duration)
    assert end > start
    assert speed.work_s(start, end) == pytest.approx(duration, rel=1e-9)
    events = list(islice(profile.events(), 400))  # summed up naively
    points = [start, *(date for date, _ in events if start < date < end), end]
    total = 0.0
    for left, right in pairwise(points):
        share = [1.0, *(value for date, value in events if date <= left)][-1]
        total += share * (right - left)
    assert total == pytest.approx(duration, rel=1e-9)


def test_drawn_failures():
    """Each host has its own stream; the means are those that were asked for."""
    one = Failures.read("mtbf=100, mttr=10, distribution=weibull, shape=0.8").on(platform(2), 3, 0)
    again = Failures.read("mtbf=100,mttr=10,distribution=weibull,shape=0.8").on(platform(2), 3, 0)
    assert one == again
    dates = {name: np.array([date for date, _ in islice(each.events(), 20000)]) for name, each in one.profiles.states}
    assert not np.isin(dates["h0"], dates["h1"]).any()
    up, down = np.diff(dates["h0"])[1::2], np.diff(dates["h0"])[::2]
    assert up.mean() == pytest.approx(100.0, rel=0.05)
    assert down.mean() == pytest.approx(10.0, rel=0.05)
    assert up.std() / up.mean() == pytest.approx(1.26, rel=0.05)  # of this shape
    sampled = SampledFailures(100.0, 10.0, "exponential", 0.7, 0, 0, 0)
    up = np.diff([0.0, *(date for date, _ in islice(sampled.events(), 20000))])[::2]
    assert up.std() / up.mean() == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize(
    ("cores", "carried"),
    # 15 s and 5 s at 30 W; two tasks share 30 W for 10 s, then the first one draws 25 W alone
    [(1, [0.0, 15 * 30.0, 5 * 30.0]), (2, [0.0, 10 * 15.0 + 5 * 25.0])],
)
def test_what_is_carried_over_is_drawn_at_the_true_speed(cores, carried):
    """Half the speed from 5 s on; at 20 s, with the second period, a second task comes."""
    host = Host("h0", (PState(100.0, 10.0, 20.0, 40.0),), cores=cores)
    profiles = HostProfiles(speeds=(("h0", Profile((5.0,), (0.5,))),))
    tasks = make_tasks([2000.0, 500.0], [0.0, 20.0])
    result = run(
        Scenario(Platform((host,), profiles=profiles), tasks, "wq", driver="reference", budget=EnergyBudget(1e6, 20.0))
    )
    assert result.trace.finish_time_s[0] == 35.0
    periods = result.trace.periods
    assert periods["carried_over_j"].tolist() == pytest.approx(carried)
    assert periods["consumed_j"].sum() == pytest.approx(result.energy.total_j[0])
    assert result.facts.carried_over_j.tolist() == periods["carried_over_j"].tolist()


def test_energy_of_a_trace_with_several_cores():
    """Two of three cores at half the speed are a third of the load; more than all is all."""
    host = Host("h0", (PState(100.0, 10.0, 20.0, 50.0),), cores=3)
    profiles = HostProfiles(speeds=(("h0", Profile((0.0, 10.0), (0.5, 2.0))),))
    _, _, result = play(Platform((host,), profiles=profiles), [500.0, 700.0])
    # 10 s with two tasks at half the speed, then the second one's 200 flop at 200 flop/s
    assert result.trace.executions["end"].tolist() == [10.0, 11.0]
    assert trace_energy(result.trace).total_j[0] == pytest.approx(10 * 30.0 + 1 * 40.0, rel=1e-15)


def test_facts_without_outages():
    """Hosts that stay up have no metrics of outages."""
    _, _, result = play(platform(), [100.0])
    assert isinstance(result.facts, RunFacts)
    assert "lost_work_s" not in metrics_of(result.facts)
