"""What happens at one instant, and that the hot path of a common queue decides and shows what the long way does."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scripted import (
    ANYTHING,
    Scripted,
    Truth,
    at,
    controller_of,
    first_host,
    hosts,
    idle_hosts,
    nodes,
    plan,
    play,
    play_on_nodes,
    rows,
)

from gridsched.drivers import reference
from gridsched.errors import IncompleteRun, InputError, InvalidDecision
from gridsched.model.dependencies import After, Dependencies
from gridsched.model.platform import Host, Platform, PState, homogeneous_cluster
from gridsched.model.rules import EnergyBudget
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import TaskState
from gridsched.policy.base import Delegate, Scheduler, Traits
from gridsched.policy.decisions import Allocate, Assign, Cancel, Plan, PowerOff, PowerOn, WakeAt

# What happens at one instant, and which policies attend to it.

# When a policy is asked, and in which order one instant applies what happens.


def test_asked_at_start_is_once_at_the_first_submission():
    """A static policy is asked once, when the first task is submitted."""
    tasks = make_tasks([10.0, 20.0], 3.0)
    trace, policy = play(hosts(10, 10), tasks, first_host, Traits(trigger="start"))
    assert policy.asked_ == [(3.0, [0, 1])]
    assert rows(trace) == [(3.0, 0, 0, 4.0), (4.0, 0, 1, 6.0)]


def test_a_long_common_queue_is_in_the_records_whole():
    """One host takes 4,400 tasks of 1 s in their order, another 2,200 of 2 s: more than are kept as objects."""
    trace, _ = play(hosts(10, 5), [10.0] * 6_600, lambda state: [Plan(state.mappable, None)])
    fast, slow = (trace.executions[trace.executions["host"] == host] for host in (0, 1))
    assert fast["start"].tolist() == list(range(4_400))
    assert slow["start"].tolist() == list(range(0, 4_400, 2))
    assert (fast["end"] - fast["start"] == 1.0).all()
    assert (slow["end"] - slow["start"] == 2.0).all()
    assert sorted(trace.executions["task"].tolist()) == list(range(6_600))
    assert (np.diff(trace.executions["start"]) >= 0).all()


def test_asked_at_arrival_is_once_for_each_task_in_id_order():
    """An immediate policy sees one task at a time, those of one instant in order of their ids."""
    tasks = make_tasks([10.0, 20.0, 30.0], [0.0, 2.0, 2.0])
    _, policy = play(hosts(10), tasks, first_host, Traits(trigger="arrival"))
    assert policy.asked_ == [(0.0, [0]), (2.0, [1]), (2.0, [2])]


def test_an_arrival_decision_is_seen_by_the_next_task_of_the_instant():
    """The second task of an instant finds the first one in its queue."""
    seen = []

    def answer(state):
        seen.append((state.queue_length.tolist(), state.ready_time.tolist()))
        return first_host(state)

    play(hosts(10, 5), [10.0, 20.0, 30.0], answer, Traits(trigger="arrival"))
    assert seen == [([0, 0], [0.0, 0.0]), ([0, 0], [1.0, 0.0]), ([1, 0], [3.0, 0.0])]


def test_asked_at_events_is_once_an_instant():
    """Three ends, a submission and a wake at t = 2 are one question."""
    tasks = make_tasks([20.0, 20.0, 20.0, 10.0], [0.0, 0.0, 0.0, 2.0])

    def answer(state):
        wake = [WakeAt(2.0)] if state.now == 0 else []
        return [*idle_hosts(state), *wake]

    _, policy = play(hosts(10, 10, 10), tasks, answer)
    assert policy.asked_ == [(0.0, [0, 1, 2]), (2.0, [3])]


def test_finishes_come_before_submissions_and_the_question():
    """At t = 1 the policy finds the host free, the queue moved on and the new task waiting."""
    seen = {}

    def answer(state):
        seen[state.now] = (state.mappable.tolist(), state.running["task"].tolist())
        return first_host(state)

    play(hosts(10), make_tasks([10.0, 10.0, 10.0], [0.0, 0.0, 1.0]), answer)
    assert seen[1.0] == ([2], [1])


@pytest.mark.parametrize(("distance", "instants"), [(0.0, 1), (9e-10, 1), (1.2e-9, 2)])
def test_ends_within_a_billionth_are_one_instant(distance, instants):
    """Ends up to 1e-9 s after the earliest are one instant; later ones are the next."""
    _, policy = play(hosts(1, 1, 1), [10.0, 10.0 + distance, 90.0], idle_hosts)
    assert len(policy.times) == 1 + instants  # the end of the last task asks no policy


def test_ends_that_differ_by_rounding_are_one_instant_at_large_times():
    """From t = 1000 s on the width of an instant grows with t: 1e-12 t."""
    near = [1e6, 1e6 + 9e-7, 2e6]
    _, policy = play(hosts(1, 1, 1), near, idle_hosts)
    assert policy.times == [0.0, 1e6 + 9e-7]
    _, policy = play(hosts(1, 1, 1), [1e6, 1e6 + 1.1e-6, 2e6], idle_hosts)
    assert len(policy.times) == 3


@pytest.mark.parametrize("exponent", [13, 14, 17, 18, 29])
def test_submissions_that_the_clock_does_not_resolve_are_refused(exponent):
    """A task of 5 s where it is fastest: ends within 10 s are one instant at 1e13 s, and more than that later."""
    tasks = make_tasks([1000.0, 50.0], [0.0, 10.0**exponent], labels=[4, 7])
    with pytest.raises(InputError, match=r"task 7 .*5 s"):
        play(hosts(10, 5), tasks, idle_hosts)


@pytest.mark.parametrize("submit_s", [0.0, 999.0, 1.7e9, 4e12])
def test_submissions_that_the_clock_resolves_run_alike(submit_s):
    """The same times after the submission, also of stamps of a calendar."""
    trace, _ = play(hosts(10, 5), make_tasks([100.0, 50.0, 50.0], submit_s), idle_hosts)
    assert (trace.start_time_s - submit_s).tolist() == pytest.approx([0, 0, 10], abs=1e-3)


def test_a_short_task_may_run_long_before_a_late_one():
    """Only what is submitted late must be resolved there."""
    trace, _ = play(hosts(10), make_tasks([1e-3, 1e9], [0.0, 1e12]), idle_hosts)
    assert trace.start_time_s.tolist() == [0.0, 1e12]


def test_ends_of_one_instant_keep_their_own_times():
    """What ends in one instant is recorded with its own end; what follows starts at the latest."""
    late = 10.0 + 5e-10
    trace, _ = play(hosts(1, 1), [10.0, late, 7.0], idle_hosts)
    assert rows(trace) == [(0.0, 0, 0, 10.0), (0.0, 1, 1, late), (late, 0, 2, late + 7.0)]


def test_a_wake_up_asks_again():
    """WakeAt asks at that time, and only there."""

    def answer(state):
        return [WakeAt(1.25)] if state.now == 0 else idle_hosts(state)

    trace, policy = play(hosts(10), [10.0], answer)
    assert policy.times == [0.0, 1.25]
    assert trace.finish_time_s.tolist() == [2.25]


def test_a_policy_may_wait_for_many_mapping_events():
    """2,000 events without a decision end no run whose policy states until when it waits."""

    def answer(state):
        return idle_hosts(state) if state.now >= 2000 else [WakeAt(1999.5)] if state.now < 1999.5 else []

    trace, policy = play(hosts(10), [10.0], answer, interval=1.0)
    assert policy.times == [float(k) for k in range(2001)]
    assert trace.finish_time_s.tolist() == [2001.0]


def test_with_an_interval_the_policy_is_asked_at_its_multiples_only():
    """Neither finishes nor submissions ask; multiples of the interval do, even with no news."""
    tasks = make_tasks([10.0, 30.0, 10.0], [0.0, 0.0, 6.0])
    trace, policy = play(hosts(10), tasks, first_host, interval=5.0)
    assert policy.asked_ == [(0.0, [0, 1]), (5.0, []), (10.0, [2])]
    assert trace.finish_time_s.tolist() == [1.0, 4.0, 11.0]


def test_an_interval_that_is_no_binary_fraction_keeps_its_multiples():
    """Multiples are products, not sums: the hundredth event of 0.1 s is at 10 s."""
    tasks = make_tasks([100.0, 1.0], [0.0, 9.95])
    _, policy = play(hosts(10, 10), tasks, idle_hosts, interval=0.1)
    assert policy.times == [k * 0.1 for k in range(101)]


def test_a_finish_at_a_multiple_of_the_interval_comes_before_the_question():
    """At t = 2 the first task has ended when the policy is asked."""
    _, policy = play(hosts(10), [20.0, 10.0], idle_hosts, interval=2.0)
    assert policy.asked_ == [(0.0, [0, 1]), (2.0, [1])]


def test_between_mapping_events_virtual_queues_run_down():
    """A free core takes the head of its virtual queue although no policy is asked."""
    answer = at((0.0, [plan((0, 0), (1, 0), (2, 1))]))
    trace, policy = play(hosts(10, 10), [10.0, 20.0, 10.0], answer, interval=100.0)
    assert policy.times == [0.0]
    assert rows(trace) == [(0.0, 0, 0, 1.0), (0.0, 1, 2, 1.0), (1.0, 0, 1, 3.0)]


def test_idle_mapping_events_end_with_an_error_instead_of_for_ever():
    """A policy that plans nothing, event after event, is stopped; so is one that reports much."""
    for answer in (lambda state: [], lambda state: [plan()]):
        with pytest.raises(IncompleteRun, match="1 of 1"):
            play(hosts(10), [1.0], answer, interval=60.0)


def test_events_while_tasks_are_still_to_come_are_not_counted_as_idle():
    """Two thousand empty mapping events before the only task do no harm."""
    trace, policy = play(hosts(10), make_tasks([10.0], 2000.0), first_host, interval=1.0)
    assert trace.finish_time_s.tolist() == [2001.0]
    assert len(policy.times) == 2001


def test_without_events_to_come_the_run_is_incomplete():
    """A policy that leaves tasks lying names them in the error, by the ids of the file."""
    tasks = make_tasks([10.0, 10.0, 10.0], labels=[7, 8, 9])
    with pytest.raises(IncompleteRun, match=r"2 of 3.*t = 1 s.*8, 9"):
        play(hosts(10), tasks, at((0.0, [Assign(0, 0)])))


def test_a_policy_that_only_talks_is_incomplete():
    """A decision that leads to nothing does not keep a run alive."""
    with pytest.raises(IncompleteRun, match="tasks 1"):
        play(hosts(10), [1.0], lambda state: [plan()])


# A policy that has itself asked again and again is stopped; one that waits for something is not.

#: So often here.
MOST = 20
LIMITED_WAKEUPS = {"max_idle_wakeups": MOST}
MAKES_ROOM = Traits(trigger="event", parallel=True, may_cancel=True)
START, AGAIN = Allocate(0, np.array([0])), Cancel(0, requeue=True)


def each_second(*decisions):
    """Answer with decisions, and be asked again a second later."""
    return lambda state: [*decisions, WakeAt(state.now + 1)]


def starts_again(state):
    """End what has run for a second, start it again, and be asked again a second later."""
    begun = state.running["start"].tolist()
    if begun == [state.now]:  # the end of what ran before asks in the same instant
        return []
    return [*[AGAIN] * len(begun), START, WakeAt(state.now + 1)]


@pytest.mark.parametrize(
    ("answer", "since", "last"),
    [
        (each_second(), 1, MOST),
        (each_second(Assign(0, 0), Cancel(0)), 1, MOST),
        (each_second(PowerOff(0), PowerOn(0)), 1, MOST),
        (lambda state: [PowerOff(0), PowerOn(0)], 2, 2 * MOST),
    ],
    ids=["wakes", "starts again", "switches and wakes", "switches"],
)
def test_a_policy_that_asks_itself_for_ever_is_stopped(answer, since, last):
    """The message names the policy, until when it was asked, how often, since when and what allows more."""
    with pytest.raises(IncompleteRun) as ended:
        play(hosts(10, boot_time_s=2.0), [1000.0], answer, **LIMITED_WAKEUPS)
    facts = rf"Scripted.*1 of 1.*t = {last} s.* {MOST} times since t = {since} s.*max_idle_wakeups"
    assert re.search(facts, str(ended.value))
    assert "\n" not in str(ended.value)


@pytest.mark.parametrize(
    ("jobs", "answer", "last"),
    [
        ([(0, 1, 100)], lambda state: [START, AGAIN], 0),
        ([(0, 1, 100), (50, 1, 1)], lambda state: [START, AGAIN], 0),
        ([(0, 1, 100)], starts_again, MOST / 2),
    ],
    ids=["at once", "at once, before another job comes", "a second apart"],
)
def test_a_policy_that_starts_a_job_again_for_ever_is_stopped(jobs, answer, last):
    """Time need not go on for it, nor does a start count that is one more of the same job."""
    with pytest.raises(IncompleteRun, match=f"t = {last:g} s.* {MOST} times"):
        play_on_nodes(nodes(2), jobs, answer, traits=MAKES_ROOM, **LIMITED_WAKEUPS)


def test_it_is_stopped_at_once_beside_a_job_that_runs():
    """Job 0 runs for 100 s, and job 1 is started and withdrawn at 5 s without end."""

    def answer(state):
        if state.now < 5:
            return [START, WakeAt(5.0)]
        return [Allocate(1, np.array([1])), Cancel(1, requeue=True)]

    with pytest.raises(IncompleteRun, match="t = 5 s"):
        play_on_nodes(nodes(2), [(0, 1, 100), (0, 1, 10)], answer, traits=MAKES_ROOM, **LIMITED_WAKEUPS)


@pytest.mark.parametrize("begin", [0.0, 5000.0])
def test_wakes_that_the_clock_does_not_resolve_are_no_progress(begin):
    """A task runs for 100 s; a policy that is always woken by less than the clock resolves would never see its end."""

    def answer(state):
        step = 0.5e-9 if begin == 0 else 0.5e-12 * begin
        return [*idle_hosts(state), WakeAt(state.now + step)]

    with pytest.raises(IncompleteRun, match=rf"Scripted.* {MOST} times.*max_idle_wakeups"):
        play(hosts(10), make_tasks([1000.0], [begin]), answer, **LIMITED_WAKEUPS)


def test_who_asks_itself_while_something_is_to_come_goes_on():
    """Each second for 100 s while a task runs, and for 100 s before the next one comes."""
    tasks = make_tasks([1000.0, 10.0], [0.0, 200.0])
    trace, policy = play(hosts(10), tasks, lambda state: [*idle_hosts(state), WakeAt(state.now + 1)], **LIMITED_WAKEUPS)
    assert trace.finish_time_s.tolist() == [100, 201]
    assert len(policy.times) == 201


def test_who_asks_itself_until_a_job_is_let_go_goes_on():
    """Job 1 comes 100 s after the end of job 0: that is awaited, too."""
    waits = Dependencies(*map(np.array, ([1], [0], [After.END], [100.0])))
    tasks = make_tasks([100.0, 10.0], [0.0, 1.0], width=[1, 1], requested_time_s=[10, 1], dependencies=waits)

    def answer(state):
        return [*(Allocate(task, np.array([0])) for task in state.waiting()), WakeAt(state.now + 1)]

    policy = Scripted(answer, MAKES_ROOM)
    trace = reference.simulate(controller_of(nodes(1), tasks, policy, **LIMITED_WAKEUPS))
    assert trace.start_time_s.tolist() == [0, 110]


def test_periods_to_come_are_awaited_so_often():
    """A task that no period admits: the run ends when it ends without the twenty wakes in each period."""
    times = []
    for answer in (lambda state: [], each_second()):
        with pytest.raises(IncompleteRun) as ended:
            play(hosts(10), [1.0], answer, budget=EnergyBudget(1.0, period_s=60.0), **LIMITED_WAKEUPS)
        times.append(re.search(r"at t = ([0-9]+) s", str(ended.value))[1])
    assert times[0] == times[1]


def test_a_horizon_is_to_come():
    """It ends the run, however often somebody has asked before."""
    trace, policy = play(hosts(10), [1.0], each_second(), horizon_s=100.0, **LIMITED_WAKEUPS)
    assert trace.final_state.tolist() == [TaskState.UNFINISHED]
    assert len(policy.times) == 100


def test_no_tasks_are_done_at_once():
    """No policy is asked if there is nothing to do."""
    trace, policy = play(hosts(10), [], first_host, ANYTHING)
    assert policy.times == []
    assert trace.horizon_s == 0.0
    assert len(trace.executions) == 0


def test_tasks_to_arrive_are_counted_down():
    """The state contains the number of tasks that are not yet submitted."""
    counts = []

    def answer(state):
        counts.append(state.tasks_to_arrive)
        return first_host(state)

    play(hosts(10), make_tasks([50.0, 1.0, 1.0], [0.0, 1.0, 2.0]), answer)
    assert counts == [2, 1, 0, 0, 0]


def test_a_successor_that_maps_at_arrivals_is_asked_between_mapping_events():
    """Until then submissions were no instants; from the delegation on they are."""
    successor = Scripted(first_host, Traits("arrival"))
    tasks = make_tasks([10.0, 10.0], [0.0, 3.0])
    trace, _ = play(hosts(10), tasks, lambda s: [Delegate(successor)], Traits("event", delegates=True), interval=10.0)
    assert trace.start_time_s.tolist() == [0.0, 3.0]


# `on_event`: asked at time 0 and at every event before `schedule`; and since when hosts are idle.

INF = float("inf")


class Attending(Scripted):
    """Notes when it attends, and when it is asked for which tasks."""

    def __init__(self, answer, attended, traits) -> None:
        super().__init__(answer, traits)
        self.attended = attended

    def prepare(self, system, rng) -> None:
        super().prepare(system, rng)
        self.seen_: list[tuple] = []

    def on_event(self, state):
        self.seen_.append(("observes_events", state.now, state.mappable.tolist()))
        return self.attended(state)

    def schedule(self, state):
        self.seen_.append(("schedules", state.now, state.mappable.tolist()))
        return self.answer(state)


def test_an_arrival_scheduler_attends_before_each_event():
    """It sees all tasks that wait, wakes, and its decisions apply before `schedule` is asked."""

    def attended(state):
        if state.now == 3.0:
            return [PowerOff(1), WakeAt(6.0)]
        return [PowerOn(1)] if state.now == 7.0 else []

    def answer(state):
        host = 1 if state.now == 7.0 else 0
        assert state.is_on[host]
        return [Assign(task, host) for task in state.waiting()]

    traits = Traits(trigger="arrival", observes_events=True, powers_hosts=True)
    policy = Attending(answer, attended, traits)
    tasks = make_tasks([1.0, 1.0, 9.0], [3.0, 3.0, 7.0])
    reference.simulate(controller_of(hosts(1.0, 1.0, boot_time_s=4.0), tasks, policy))
    assert policy.seen_ == [
        ("observes_events", 0, []),
        ("observes_events", 3, [0, 1]),
        ("schedules", 3, [0]),
        ("schedules", 3, [1]),
        ("observes_events", 4, []),
        ("observes_events", 5, []),
        ("observes_events", 6, []),
        ("observes_events", 7, [2]),
        ("schedules", 7, [2]),
        ("observes_events", 11, []),
    ]


def test_on_event_must_return_decisions():
    """None is not an answer."""
    policy = Attending(lambda state: [], lambda state: None, Traits(trigger="event", observes_events=True))
    with pytest.raises(InvalidDecision, match=r"on_event\(\) returned None"):
        reference.simulate(controller_of(hosts(1.0), [1.0], policy))


def test_since_when_serial_hosts_are_idle():
    """From time 0, from the last end of several cores, from the end of booting; else infinite."""
    seen = {}

    def answer(state):
        seen[state.now] = state.idle_since.tolist()
        return {
            0.0: [Assign(0, 0), Assign(1, 0), PowerOff(2), WakeAt(4.0)],
            4.0: [PowerOn(2)],
            5.0: [WakeAt(8.0)],
            8.0: [Assign(2, 1)],
        }.get(state.now, [])

    tasks = make_tasks([2.0, 5.0, 1.0])
    play(hosts(1.0, 1.0, 1.0, cores=2, boot_time_s=3.0), tasks, answer)
    assert seen == {
        0.0: [0, 0, 0],
        2.0: [INF, 0, INF],
        4.0: [INF, 0, INF],
        5.0: [5, 0, INF],
        7.0: [5, 0, 7],
        8.0: [5, 0, 7],
    }


def test_since_when_nodes_are_idle():
    """Nodes of a job are idle from its end on."""
    seen = {}

    def answer(state):
        seen[state.now] = state.idle_since.tolist()
        chosen = {0.0: [Allocate(0, np.array([0, 1]))], 4.0: [Allocate(1, np.array([1, 2]))]}
        return chosen.get(state.now, [])

    tasks = make_tasks([3.0, 2.0], [0.0, 4.0], width=[2, 2])
    platform = homogeneous_cluster(3, idle_w=1.0, busy_w=2.0, speed=1.0)
    play(platform, tasks, answer, Traits(trigger="event", parallel=True))
    assert seen == {0.0: [0, 0, 0], 3.0: [3, 3, 0], 4.0: [3, 3, 0]}


# The hot path of a common queue decides and shows what the long way does, on random runs.


class Improvises(Scheduler):
    """Queues some tasks, copies some that run, plans the rest in common; notes all it is shown."""

    def __init__(self, seed: int, replicates: bool) -> None:
        self.seed = seed
        self.traits = Traits(trigger="event", replicates=replicates)

    def __repr__(self) -> str:
        return f"Improvises({self.seed})"

    def prepare(self, system, rng) -> None:
        self.random_ = np.random.default_rng(self.seed)
        platform = system.platform  # cores of one host share a P-state
        self.n_pstates_ = np.where(platform.cores == 1, platform.n_pstates, 1)
        self.shown_ = []

    def schedule(self, state):
        waiting, running = state.mappable.tolist(), state.running
        self.shown_.append(
            (
                state.now,
                waiting,
                running.tolist(),
                state.core_ready_time.tolist(),
                state.idle_cores(),
                state.pstate.tolist(),
                state.free_cores.tolist(),
                state.idle_since.tolist(),
                state.queue_tasks.tolist(),
                state.energy,
                [state.copies_of(task) for task in range(len(state.tasks))],
            )
        )
        draw, decisions = self.random_.random, []
        if self.traits.replicates:
            decisions += [self.somewhere(task) for task in running["task"].tolist() if draw() < 0.6]
        # what is planned in common goes another way afterwards
        return [
            *decisions,
            Plan(self.random_.permutation(waiting), None),
            *[self.somewhere(task) for task in waiting if draw() < 0.15],
        ]

    def somewhere(self, task: int) -> Assign:
        """Queue the task on a random host, in a random P-state."""
        host = self.random_.integers(len(self.n_pstates_))
        return Assign(task, int(host), int(self.random_.integers(self.n_pstates_[host])))


def played(seed: int, replicates: bool, starts_successors: bool):
    """Play a random run; return its records, what the policy was shown, and the short cuts."""
    random = np.random.default_rng(seed)
    platform = Platform(
        tuple(
            Host(
                f"h{k}",
                (PState(10.0 * 2 ** int(random.integers(3)), 1, 2, 3), PState(5.0, 1, 2, 2)),
                cores=2 if random.random() < 0.05 else 1,
            )
            for k in range(random.integers(1, 5))
        )
    )
    n = int(random.integers(5, 25))
    submitted = np.sort(random.integers(0, 30, n) * (random.random(n) < 0.6))
    tasks = make_tasks(random.integers(1, 9, n) * 10.0, submitted)
    policy = Improvises(seed, replicates)
    budget = EnergyBudget(1e6, 20.0, enforcement="stop") if random.random() < 0.2 else None
    controller = controller_of(platform, tasks, policy, interval=None if random.random() < 0.8 else 8.0, budget=budget)
    taken, commands, step = [], [], controller.step

    def noted(now, finished):
        made = step(now, finished)
        commands.append((now, [(repr(each), getattr(each, "has_begun", None)) for each in made]))
        return made

    controller.step = noted
    if starts_successors:
        short_cut = controller._dispatch.start_successor

        def counted(execution, now):
            follower = short_cut(execution, now)
            taken.append(follower is not None)
            return follower

        controller._dispatch.start_successor = counted
    else:
        controller._starts_successors = False
    luck = random.choice([0.5, 1.0, 1.5], n)  # many things happen at once
    speed = platform.speed
    truth = Truth(lambda task, host, k: float(luck[task] * tasks.flops[task] / speed[host, k]))
    trace = reference.simulate(controller, truth)
    records = trace.executions.tolist(), trace.host_changes.tolist(), trace.final_state.tolist()
    return (records, trace.horizon_s, policy.shown_, commands), taken


@pytest.mark.parametrize("replicates", [False, True])
def test_the_short_cut_changes_nothing(replicates):
    """Records and what a policy sees are the same without it; it is taken, and refused."""
    taken = []
    for seed in range(80):
        found, routes = played(seed, replicates, starts_successors=True)
        assert found == played(seed, replicates, starts_successors=False)[0], seed
        taken += routes
    assert any(taken)
    assert not all(taken)
