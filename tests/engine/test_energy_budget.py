"""Energy budgets: what is consumed, committed and left, what is refused, periods, the end."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scripted import at, first_host, hosts, plan, play, rows

from gridsched.errors import IncompleteRun, InputError, InvalidDecision
from gridsched.model.data_files import DataFiles
from gridsched.model.platform import Cluster, Host, Platform, PState
from gridsched.model.rules import EnergyBudget
from gridsched.model.tasks import make_tasks
from gridsched.model.trace import ExecutionEnd, TaskState
from gridsched.policy.base import Traits
from gridsched.policy.decisions import Assign, Cancel, Drop, Postpone, PowerOn, WakeAt

RESPECTING = Traits("event", may_drop=True, respects_budget=True)
ARRIVING = Traits("arrival", may_drop=True, respects_budget=True)


def idle_free(*speeds: float, watts: float = 10.0) -> Platform:
    """One-core hosts that draw `watts` while busy and nothing else."""
    return Platform(tuple(Host(f"h{k}", (PState(s, 0.0, watts, watts),)) for k, s in enumerate(speeds)))


def seen_energy(answer):
    """Return the answer, made to note `state.energy`, and the notes by time."""
    seen = {}

    def noting(state):
        seen[state.now] = state.energy
        return answer(state)

    return noting, seen


def test_the_state_tells_what_is_consumed_committed_and_left():
    """Eq. 1 of paper 000: running and fixed tasks count up to the period's end."""
    # 10 W; task 0 runs 0-4 s, task 1 is fixed behind it (4-10 s), the period ends at 8 s
    answer, seen = seen_energy(at((0.0, [Assign(0, 0), Assign(1, 0)])))
    tasks = make_tasks([40.0, 60.0, 10.0], [0.0, 0.0, 2.0])
    budget = EnergyBudget(100.0, period_s=8.0)

    def last(state):
        return answer(state) or ([Drop(2)] if state.now == 2.0 else [])

    play(idle_free(10.0), tasks, last, RESPECTING, budget=budget)
    assert (seen[0.0].budget_j, seen[0.0].remaining_j) == (100.0, 100.0)
    at_2 = seen[2.0]
    assert at_2.consumed_j == pytest.approx(20.0, rel=1e-15)
    assert at_2.committed_j == pytest.approx(20.0 + 40.0, rel=1e-15)
    assert at_2.remaining_j == pytest.approx(20.0, rel=1e-14)
    assert at_2.assigned_j == pytest.approx(100.0, rel=1e-15)
    assert (at_2.period_start, at_2.period_end) == (0.0, 8.0)


def test_what_runs_beyond_the_period_is_committed_up_to_its_end():
    """10 s at 10 W in a period of 8 s: at 2 s 20 J are drawn, and 60 J are bound to be."""
    answer, seen = seen_energy(at((0.0, [Assign(0, 0)]), (2.0, [Drop(1)])))
    tasks = make_tasks([100.0, 1.0], [0.0, 2.0])
    play(idle_free(10.0), tasks, answer, RESPECTING, budget=EnergyBudget(100.0, period_s=8.0))
    energy = seen[2.0]
    assert (energy.consumed_j, energy.committed_j, energy.remaining_j) == (20.0, 60.0, 20.0)


def test_a_task_that_waits_for_its_files_is_committed_from_its_start():
    """100 bytes at 10 byte/s are there at 10 s, and of 4 s at 10 W two lie in a period of 12 s."""
    answer, seen = seen_energy(at((0.0, [Assign(0, 1)]), (1.0, [Drop(1)]), (11.0, [Drop(2)])))
    platform = Platform(idle_free(10.0, 10.0).hosts, (Cluster("A", (0,), 10.0), Cluster("B", (1,), 10.0)))
    files = DataFiles(("f",), np.array([100.0]), (("A",),))
    tasks = make_tasks([40.0, 1.0, 1.0], [0.0, 1.0, 11.0], input_files=[(0,), (), ()], files=files)
    trace, _ = play(platform, tasks, answer, RESPECTING, budget=EnergyBudget(100.0, period_s=12.0))
    assert rows(trace) == [(10.0, 1, 0, 14.0)]
    assert (seen[1.0].consumed_j, seen[1.0].committed_j) == (0.0, 20.0)
    assert (seen[11.0].consumed_j, seen[11.0].committed_j) == (10.0, 10.0)


def test_a_host_that_boots_draws_its_own_power_and_takes_tasks_later():
    """4 s at 50 W, then 10 s at 10 W, in periods of 8 s: 40 J of the task lie in the first."""
    boots = {"boot_time_s": 4.0, "switch_pstates": (PState(0.0, 40.0, 45.0, 50.0),)}
    host = Host("h0", (PState(10.0, 0.0, 10.0, 10.0),), boot_pstate=1, **boots)
    answer, seen = seen_energy(at((0.0, [PowerOn(0), Assign(0, 0)]), (1.0, [Drop(1)])))
    trace, _ = play(
        Platform((host,)),
        make_tasks([100.0, 1.0], [0.0, 1.0]),
        answer,
        replace(RESPECTING, powers_hosts=True),
        hosts_off=(0,),
        budget=EnergyBudget(1e3, period_s=8.0),
    )
    assert rows(trace) == [(4.0, 0, 0, 14.0)]
    assert (seen[1.0].consumed_j, seen[1.0].committed_j) == (50.0, 40.0)
    assert trace.periods["consumed_j"].tolist() == [4 * 50 + 40.0, 60.0]


def test_without_a_budget_everything_is_infinite():
    """A policy may look at the energy of a run that has no budget."""
    answer, seen = seen_energy(first_host)
    play(idle_free(10.0), [10.0], answer)
    assert seen[0.0].remaining_j == seen[0.0].period_end == math.inf
    assert seen[0.0].consumed_j == 0.0


def test_figures_of_b5_two_machines_at_the_end_of_the_day():
    """Algorithms B5: 500 kJ a day, 100 consumed, 50 scheduled, so 350 are left."""
    day = 86_400.0
    # machine 0 is busy from 23:00 to 23:20 and machine 1 until 23:00; now it is 23:10
    watts = 50_000.0 / 600.0
    start, length = 1380 * 60.0, 1200.0
    before = 100_000.0 - 600.0 * watts  # consumed by the same machine earlier that day
    tasks = make_tasks([before / watts, length, 1.0], [0.0, start, 1390 * 60.0])
    answer, seen = seen_energy(at((0.0, [Assign(0, 1)]), (start, [Assign(1, 0)]), (1390 * 60.0, [Drop(2)])))
    budget = EnergyBudget(500_000.0, period_s=day)
    play(idle_free(1.0, 1.0, watts=watts), tasks, answer, RESPECTING, budget=budget)
    energy = seen[1390 * 60.0]
    assert energy.consumed_j == pytest.approx(100_000.0, rel=1e-12)
    assert energy.committed_j == pytest.approx(50_000.0, rel=1e-12)
    assert energy.remaining_j == pytest.approx(350_000.0, rel=1e-12)


@pytest.mark.parametrize("decide", [lambda task, host: Assign(task, host), lambda task, host: plan((task, host))])
def test_a_decision_beyond_the_budget_is_invalid(decide):
    """Of 95 J 60 are taken; another task of 40 J does not fit, one of 30 J does."""
    tasks = make_tasks([60.0, 30.0, 40.0])
    budget = EnergyBudget(95.0, period_s=1000.0)
    fits = at((0.0, [Assign(0, 0), decide(1, 1), Drop(2)]))
    play(idle_free(10.0, 10.0), tasks, fits, RESPECTING, budget=budget)
    fits_not = at((0.0, [Assign(0, 0), decide(2, 1), Drop(1)]))
    with pytest.raises(InvalidDecision, match=r"task 3, host 'h1'.*40 J.*35 J"):
        play(idle_free(10.0, 10.0), tasks, fits_not, RESPECTING, budget=budget)


def test_what_takes_the_whole_budget_fits_whatever_rounding_adds():
    """0.1 and 0.2 J of 0.3 J: the sum of the floats is above it."""
    trace, _ = play(
        idle_free(1.0, watts=0.1),
        [1.0, 2.0],
        at((0.0, [plan((0, 0), (1, 0))])),
        RESPECTING,
        budget=EnergyBudget(0.3, period_s=1000.0),
    )
    assert rows(trace) == [(0.0, 0, 0, 1.0), (1.0, 0, 1, 3.0)]


def test_of_a_plan_only_the_part_inside_the_period_counts():
    """Two tasks of 60 J in one queue until 12 s; the period ends at 8 s with 80 J."""
    tasks = make_tasks([60.0, 60.0])
    decisions = [plan((0, 0), (1, 0))]
    trace, _ = play(idle_free(10.0), tasks, at((0.0, decisions)), RESPECTING, budget=EnergyBudget(80.0, period_s=8.0))
    assert rows(trace) == [(0.0, 0, 0, 6.0), (6.0, 0, 1, 12.0)]
    periods = trace.periods
    assert periods["start"].tolist() == [0.0, 8.0]
    assert periods["end"].tolist() == [8.0, 12.0]
    np.testing.assert_allclose(periods["consumed_j"], [80.0, 40.0], rtol=1e-12)
    np.testing.assert_allclose(periods["carried_over_j"], [0.0, 40.0], rtol=1e-12)
    with pytest.raises(InvalidDecision, match="8 s"):
        play(idle_free(10.0), tasks, at((0.0, decisions)), RESPECTING, budget=EnergyBudget(79.9, period_s=8.0))


def test_in_a_plan_each_host_begins_at_once():
    """60 J on each of two hosts lie in the period of 8 s, not 60 and 20: 110 J do not suffice."""
    with pytest.raises(InvalidDecision, match="120 J"):
        play(
            idle_free(10.0, 10.0),
            [60.0, 60.0],
            at((0.0, [plan((0, 0), (1, 1))])),
            RESPECTING,
            budget=EnergyBudget(110.0, period_s=8.0),
        )


def test_what_begins_after_the_period_counts_nothing_in_it():
    """Three tasks of 60 J in one queue: 60, 20 and 0 J until 8 s."""
    with pytest.raises(InvalidDecision, match="80 J"):
        play(
            idle_free(10.0),
            [60.0] * 3,
            at((0.0, [plan((0, 0), (1, 0), (2, 0))])),
            RESPECTING,
            budget=EnergyBudget(79.0, period_s=8.0),
        )


def test_in_a_plan_the_third_task_of_two_cores_waits_for_one():
    """30 J each at 5 W a core: two from 0 s on and, until 8 s, 10 J of the third."""
    host = Host("h0", (PState(10.0, 0.0, 0.0, 10.0),), cores=2)
    decisions = at((0.0, [plan((0, 0), (1, 0), (2, 0))]))
    trace, _ = play(Platform((host,)), [60.0] * 3, decisions, RESPECTING, budget=EnergyBudget(70.0, period_s=8.0))
    assert rows(trace) == [(0.0, 0, 0, 6.0), (0.0, 0, 1, 6.0), (6.0, 0, 2, 12.0)]


def test_a_task_that_spans_two_boundaries():
    """25 s at 10 W in periods of 10 s: the second one holds 100 J of it, the third 50 J."""
    trace, _ = play(
        idle_free(10.0), [250.0], at((0.0, [Assign(0, 0)])), RESPECTING, budget=EnergyBudget(1e3, period_s=10.0)
    )
    np.testing.assert_allclose(trace.periods["consumed_j"], [100.0, 100.0, 50.0], rtol=1e-12)
    np.testing.assert_allclose(trace.periods["carried_over_j"], [0.0, 100.0, 50.0], rtol=1e-12)


def test_what_is_carried_over_a_boundary_draws_from_the_next_budget():
    """23:50 to 00:20 with 90 kJ: 30 kJ on the first day and 60 kJ on the second (B7)."""
    day, start = 86_400.0, 23 * 3600.0 + 50 * 60.0
    tasks = make_tasks([1800.0, 1.0], [start, day + 60.0])
    answer, seen = seen_energy(at((start, [Assign(0, 0)]), (day + 60.0, [Drop(1)])))
    trace, _ = play(idle_free(1.0, watts=50.0), tasks, answer, RESPECTING, budget=EnergyBudget(1e6, period_s=day))
    np.testing.assert_allclose(trace.periods["consumed_j"], [30e3, 60e3], rtol=1e-12)
    np.testing.assert_allclose(trace.periods["carried_over_j"], [0.0, 60e3], rtol=1e-12)
    assert seen[day + 60.0].consumed_j == pytest.approx(3e3, rel=1e-12)
    assert seen[day + 60.0].committed_j == pytest.approx(57e3, rel=1e-12)


def test_postponed_tasks_reappear_at_the_first_ask_of_the_next_period():
    """They are not mappable before; with mapping events the event at the boundary shows them."""
    tasks = make_tasks([10.0, 10.0])
    answer = at((0.0, [Postpone(1), Assign(0, 0)]), (100.0, [Assign(1, 0)]))
    trace, policy = play(
        idle_free(10.0), tasks, answer, RESPECTING, interval=25.0, budget=EnergyBudget(1e9, period_s=100.0)
    )
    asked = dict(policy.asked_)
    assert asked == {0.0: [0, 1], 25.0: [], 50.0: [], 75.0: [], 100.0: [1]}
    assert rows(trace) == [(0.0, 0, 0, 1.0), (100.0, 0, 1, 101.0)]
    assert trace.times_postponed.tolist() == [0, 1]


def test_postponed_tasks_reappear_without_mapping_events_too():
    """The boundary itself is an instant; a policy that maps at arrivals is asked task by task."""
    tasks = make_tasks([10.0, 10.0, 10.0])

    def answer(state):
        if state.now == 0.0:
            return [Postpone(task) for task in state.waiting() if task]
        return first_host(state)

    def with_the_first(state):
        first = [Assign(0, 0)] if state.now == 0.0 and 0 in state.mappable else []
        return [*answer(state), *first]

    for traits in (RESPECTING, ARRIVING):
        trace, policy = play(idle_free(10.0), tasks, with_the_first, traits, budget=EnergyBudget(1e9, period_s=100.0))
        assert rows(trace) == [(0.0, 0, 0, 1.0), (100.0, 0, 1, 101.0), (101.0, 0, 2, 102.0)]
    assert policy.times == [0.0, 0.0, 0.0, 100.0, 100.0]


def test_postponing_needs_a_budget_and_a_mappable_task():
    """There is no next period without a budget."""
    with pytest.raises(InvalidDecision, match="there is none"):
        play(idle_free(10.0), [10.0], lambda s: [Postpone(0)], RESPECTING)
    with pytest.raises(InvalidDecision, match="it is running"):
        play(idle_free(10.0), [10.0], lambda s: [Assign(0, 0), Postpone(0)], RESPECTING, budget=EnergyBudget(1e9))


def test_a_task_that_is_postponed_for_ever_is_an_incomplete_run():
    """Nothing else would end the run."""
    with pytest.raises(IncompleteRun, match="1 of 1 task"):
        play(
            idle_free(10.0),
            [10.0],
            lambda s: [Postpone(t) for t in s.waiting()],
            RESPECTING,
            interval=50.0,
            budget=EnergyBudget(1e9, period_s=100.0),
        )


def test_before_the_first_period_nothing_is_limited_or_counted():
    """Paper 001's warm-up."""
    tasks = make_tasks([60.0, 50.0], [0.0, 7.0])
    answer, seen = seen_energy(first_host)
    budget = EnergyBudget(60.0, period_s=100.0, first_period_start_s=5.0)
    trace, _ = play(idle_free(10.0), tasks, answer, RESPECTING, budget=budget)
    assert seen[0.0].remaining_j == math.inf
    assert seen[7.0].consumed_j == pytest.approx(10.0, rel=1e-12)  # 5 to 6 s
    np.testing.assert_allclose(trace.periods["consumed_j"], [60.0], rtol=1e-12)
    np.testing.assert_allclose(trace.periods["carried_over_j"], [10.0], rtol=1e-12)


def test_what_a_period_leaves_is_shared_by_those_that_are_left():
    """300 J for three periods; the first draws 40, so the others get 130 each (B7)."""
    tasks = make_tasks([40.0, 130.0, 1.0], [0.0, 100.0, 200.0])
    answer, seen = seen_energy(first_host)
    budget = EnergyBudget(100.0, period_s=100.0, carry_over=True, periods=3)
    trace, _ = play(idle_free(10.0), tasks, answer, RESPECTING, budget=budget)
    assert [seen[t].budget_j for t in (0.0, 100.0, 200.0)] == pytest.approx([100, 130, 130])
    np.testing.assert_allclose(trace.periods["budget_j"], [100.0, 130.0, 130.0], rtol=1e-12)


def test_what_a_period_draws_beyond_its_budget_is_missing_later():
    """24 J for three periods of 10 s at 1 W idle: 10, not 8, are gone after each."""
    tasks = make_tasks([1.0, 1.0, 1.0], [0.0, 10.0, 20.0])
    answer, seen = seen_energy(lambda state: [Drop(task) for task in state.waiting()])
    budget = EnergyBudget(8.0, period_s=10.0, carry_over=True, periods=3)
    play(hosts(10.0), tasks, answer, RESPECTING, budget=budget)
    assert [seen[t].budget_j for t in (0.0, 10.0, 20.0)] == pytest.approx([8.0, 7.0, 4.0])


def test_where_all_is_drawn_a_later_period_has_nothing():
    """8 J for two periods of 10 s at 1 W idle: 10 are gone after the first; none is below 0."""
    answer, seen = seen_energy(lambda state: [Drop(task) for task in state.waiting()])
    budget = EnergyBudget(4.0, period_s=10.0, carry_over=True, periods=2)
    play(hosts(10.0), make_tasks([1.0, 1.0], [0.0, 10.0]), answer, RESPECTING, budget=budget)
    assert [seen[t].budget_j for t in (0.0, 10.0)] == [4.0, 0.0]


def test_stop_heeds_what_earlier_periods_left():
    """95 J a period of 10 s: the first draws 10, so that the second has 180, for 9 s at 20 W."""
    tasks = make_tasks([10.0, 200.0, 200.0], [0.0, 10.0, 10.0])
    answer = at((0.0, [Assign(0, 0)]), (10.0, [Assign(1, 0), Assign(2, 1)]))
    budget = EnergyBudget(95.0, period_s=10.0, carry_over=True, periods=2, enforcement="stop")
    trace, _ = play(idle_free(10.0, 10.0), tasks, answer, budget=budget)
    assert trace.horizon_s == pytest.approx(19.0, rel=1e-12)
    np.testing.assert_allclose(trace.periods["consumed_j"], [10.0, 180.0], rtol=1e-12)


def test_stop_ends_the_run_when_the_budget_is_used_up():
    """Two hosts draw 20 W; 50 J last 2.5 s; what is unfinished is killed."""
    tasks = make_tasks([20.0, 90.0, 10.0, 10.0], [0.0, 0.0, 0.0, 50.0])
    trace, _ = play(
        idle_free(10.0, 10.0),
        tasks,
        at((0.0, [Assign(0, 0), Assign(1, 1), Assign(2, 0)])),
        budget=EnergyBudget(50.0, enforcement="stop"),
    )
    states = [TaskState.FINISHED, TaskState.KILLED, TaskState.KILLED, TaskState.KILLED]
    assert trace.final_state.tolist() == states
    assert trace.horizon_s == pytest.approx(2.5, rel=1e-12)
    killed = trace.of_outcome(ExecutionEnd.KILLED)
    assert killed["task"].tolist() == [1, 2]
    assert killed["end"].tolist() == [trace.horizon_s] * 2
    np.testing.assert_allclose(trace.periods["consumed_j"], [50.0], rtol=1e-12)


def test_idle_hosts_use_up_a_budget_too():
    """1 W idle and 2 W busy on each of two hosts: 30 J last 10 s with one busy for 10 s."""
    trace, _ = play(hosts(10, 10), make_tasks([500.0]), first_host, budget=EnergyBudget(30.0, enforcement="stop"))
    assert trace.horizon_s == pytest.approx(10.0, rel=1e-12)


@pytest.mark.parametrize(
    "decide", [lambda *pairs: [Assign(task, host) for task, host in pairs], lambda *pairs: [plan(*pairs)]]
)
def test_what_a_policy_that_knows_no_budget_asks_for_too_much_is_put_off(decide):
    """Of 95 J 60 are taken; the next task needs 40 J and waits for the next period, 30 J fit."""
    tasks = make_tasks([60.0, 30.0, 40.0])
    answer = at((0.0, decide((0, 0), (2, 1), (1, 1))), (1000.0, decide((2, 0))))
    trace, _ = play(idle_free(10.0, 10.0), tasks, answer, budget=EnergyBudget(95.0, period_s=1000.0))
    assert rows(trace) == [(0.0, 0, 0, 6.0), (0.0, 1, 1, 3.0), (1000.0, 0, 2, 1004.0)]
    assert trace.times_postponed.tolist() == [0, 0, 1]
    assert trace.periods["consumed_j"].tolist() == pytest.approx([90.0, 40.0])


def test_of_such_a_policy_a_plan_fills_the_cores_of_a_host():
    """Two tasks of 6 s on two cores both start at once, and 30 J of 40 are taken by the first."""
    host = Host("h0", (PState(10.0, 0.0, 0.0, 10.0),), cores=2)
    budget = EnergyBudget(40.0, period_s=8.0)
    answer = at((0.0, [plan((0, 0), (1, 0))]), (8.0, [plan((1, 0))]))
    trace, _ = play(Platform((host,)), make_tasks([60.0, 60.0]), answer, budget=budget)
    assert rows(trace) == [(0.0, 0, 0, 6.0), (8.0, 0, 1, 14.0)]
    assert trace.times_postponed.tolist() == [0, 1]


def test_of_such_a_policy_a_plan_s_tasks_follow_each_other():
    """60 J, and of the second task the 20 J that lie in the period of 8 s: 85 J suffice."""
    trace, _ = play(
        idle_free(10.0), [60.0, 60.0], at((0.0, [plan((0, 0), (1, 0))])), budget=EnergyBudget(85.0, period_s=8.0)
    )
    assert rows(trace) == [(0.0, 0, 0, 6.0), (6.0, 0, 1, 12.0)]
    assert trace.times_postponed.tolist() == [0, 0]


def test_what_a_policy_that_is_asked_once_plans_for_later_is_asked_for_again():
    """Two tasks of 6 s, periods of 5 s: the second would begin in the next one, and is put off."""

    def all_on_one(state):
        return [plan(*((task, 0) for task in state.mappable.tolist()))]

    trace, policy = play(
        idle_free(10.0), [60.0, 60.0], all_on_one, Traits("start"), budget=EnergyBudget(1e9, period_s=5.0)
    )
    assert rows(trace) == [(0.0, 0, 0, 6.0), (6.0, 0, 1, 12.0)]
    assert trace.times_postponed[1] > 0
    assert policy.asked_[:2] == [(0.0, [0, 1]), (5.0, [1])]


def test_such_a_policy_starts_nothing_in_a_later_period():
    """Tasks of 6 s, periods of 8 s: the third would begin at 12 s. Fixed it is put off, planned
    it goes on waiting.
    """
    tasks = make_tasks([60.0, 60.0, 60.0])
    budget = EnergyBudget(1e9, period_s=8.0)
    fixed = at((0.0, [Assign(k, 0) for k in range(3)]), (8.0, [Assign(2, 0)]))
    trace, policy = play(idle_free(10.0), tasks, fixed, budget=budget)
    assert rows(trace) == [(0.0, 0, 0, 6.0), (6.0, 0, 1, 12.0), (12.0, 0, 2, 18.0)]
    assert trace.times_postponed.tolist() == [0, 0, 1]
    assert dict(policy.asked_)[6.0] == []
    planned = at((0.0, [plan((0, 0), (1, 0), (2, 0))]), (8.0, [plan((2, 0))]))
    trace, policy = play(idle_free(10.0), tasks, planned, budget=budget)
    assert rows(trace)[-1] == (12.0, 0, 2, 18.0)
    assert trace.times_postponed.tolist() == [0, 0, 0]
    assert dict(policy.asked_)[6.0] == [1, 2]


def test_such_a_policy_starts_nothing_from_before_the_first_period_in_it():
    """100 J from 4 s on: of two fixed tasks of 60 J the second would begin at 6 s."""
    tasks = make_tasks([60.0, 60.0])
    budget = EnergyBudget(100.0, period_s=50.0, first_period_start_s=4.0)
    answer = at((0.0, [Assign(0, 0), Assign(1, 0)]), (4.0, [Assign(1, 0)]))
    trace, policy = play(idle_free(10.0), tasks, answer, budget=budget)
    assert rows(trace) == [(0.0, 0, 0, 6.0), (6.0, 0, 1, 12.0)]
    assert dict(policy.asked_)[4.0] == [1]
    assert trace.times_postponed.tolist() == [0, 1]


def test_of_such_a_policy_copies_beyond_the_budget_are_not_made():
    """70 J: the first copy costs 60 J; a task that is put off is not copied either."""
    copying = Traits("event", replicates=True)
    tasks = make_tasks([60.0, 200.0])
    answer = at((0.0, [Assign(0, 0), Assign(0, 1), Assign(1, 1), Assign(1, 2)]), (1000.0, [Drop(1)]))
    trace, _ = play(
        idle_free(10.0, 10.0, 10.0),
        tasks,
        answer,
        replace(copying, may_drop=True),
        budget=EnergyBudget(70.0, period_s=1000.0),
    )
    assert rows(trace) == [(0.0, 0, 0, 6.0)]
    assert trace.times_postponed.tolist() == [0, 1]


@pytest.mark.parametrize("asked", ["start", "arrival", "event"])
def test_what_is_put_off_is_asked_for_again(asked):
    """Three tasks of 60 J with 100 J each 50 s: one a period, whenever the policy is asked."""

    def greedily(state):
        return [Assign(task, 0) for task in state.mappable.tolist()]

    trace, _ = play(
        idle_free(10.0), make_tasks([60.0] * 3), greedily, Traits(asked), budget=EnergyBudget(100.0, period_s=50.0)
    )
    assert rows(trace) == [(0.0, 0, 0, 6.0), (50.0, 0, 1, 56.0), (100.0, 0, 2, 106.0)]
    assert trace.times_postponed.tolist() == [0, 1, 2]


def test_a_budget_that_admits_no_task_is_an_incomplete_run():
    """The message names the budget as the obstacle."""
    with pytest.raises(IncompleteRun, match=r"tasks 1.*50 J"):
        play(idle_free(10.0), make_tasks([60.0]), first_host, budget=EnergyBudget(50.0, period_s=50.0))


def test_no_task_starts_at_the_horizon_and_what_runs_then_goes_on():
    """Queued, planned, waiting and later tasks are unfinished."""
    tasks = make_tasks([30.0, 10.0, 10.0, 10.0, 10.0], [0.0, 0.0, 0.0, 0.0, 9.0])
    answer = at((0.0, [Assign(0, 0), Assign(1, 0), plan((2, 0))]))
    trace, policy = play(idle_free(10.0), tasks, answer, horizon_s=2.0)
    unfinished = TaskState.UNFINISHED
    assert trace.final_state.tolist() == [TaskState.FINISHED, *[unfinished] * 4]
    assert rows(trace) == [(0.0, 0, 0, 3.0)]
    assert policy.times == [0.0]
    assert trace.horizon_s == 3.0


def test_a_task_that_would_start_exactly_at_the_horizon_does_not():
    """The horizon is not part of the time in which tasks start."""
    trace, _ = play(idle_free(10.0), [10.0, 10.0], first_host, horizon_s=1.0)
    assert rows(trace) == [(0.0, 0, 0, 1.0)]
    assert trace.final_state.tolist() == [TaskState.FINISHED, TaskState.UNFINISHED]


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"energy_j": 0.0}, "energy_j"),
        ({"energy_j": math.nan}, "energy_j"),
        ({"energy_j": 1.0, "period_s": 0.0}, "period_s"),
        ({"energy_j": 1.0, "first_period_start_s": -1.0}, "first_period_start_s"),
        ({"energy_j": 1.0, "enforcement": "halt"}, "'refuse' or 'stop'"),
        ({"energy_j": 1.0, "carry_over": True}, "periods is missing; budget_carry_over needs it"),
        ({"energy_j": 1.0, "periods": 0}, "periods"),
    ],
)
def test_illegal_budgets_are_refused(values, word):
    """The message names the value."""
    with pytest.raises(InputError, match=word):
        EnergyBudget(**values)


def test_one_budget_for_the_whole_run():
    """10 W busy: 950 J last 95 s, whatever a day is; the only period has no end."""
    answer, seen = seen_energy(first_host)
    budget = EnergyBudget(950.0, period_s=math.inf, enforcement="stop")
    assert [budget.start_of(k) for k in (0, 1)] == [0.0, math.inf]
    tasks = make_tasks([100.0, 900.0], [0.0, 90_000.0])
    trace, _ = play(idle_free(10.0), tasks, answer, budget=budget)
    assert trace.periods[["start", "end", "budget_j"]].tolist() == [(0.0, 90_085.0, 950.0)]
    assert trace.horizon_s == pytest.approx(90_085.0, rel=1e-15)
    assert (seen[0.0].period_start, seen[0.0].period_end) == (0.0, math.inf)
    assert trace.final_state.tolist() == [TaskState.FINISHED, TaskState.KILLED]


def test_a_budget_for_the_whole_run_may_begin_late():
    """From 5 s on 60 J: the task that began before is carried over, 6 s later all is drawn."""
    budget = EnergyBudget(60.0, math.inf, first_period_start_s=5.0, enforcement="stop")
    trace, _ = play(idle_free(10.0), make_tasks([500.0]), first_host, budget=budget)
    assert trace.horizon_s == pytest.approx(11.0, rel=1e-15)
    assert trace.periods["carried_over_j"].tolist() == pytest.approx([60.0])


def test_what_such_a_budget_refuses_is_never_done():
    """Of 95 J 60 are taken; no later period admits the 40 J, and the run reports this at once."""
    tasks = make_tasks([60.0, 40.0])
    with pytest.raises(IncompleteRun, match="95 J"):
        play(
            idle_free(10.0),
            tasks,
            at((0.0, [Assign(0, 0), Assign(1, 0)])),
            budget=EnergyBudget(95.0, period_s=math.inf),
        )


def test_a_cancel_takes_its_energy_out_of_what_was_assigned():
    """10 W: of 40 + 60 + 50 J the queued 60 go at 1 s, and of the 50 the 30 J after 2 s."""
    answer, seen = seen_energy(
        at(
            (0.0, [Assign(0, 0), Assign(1, 0), Assign(2, 1), WakeAt(1.0), WakeAt(2.0), WakeAt(3.0)]),
            (1.0, [Cancel(1)]),
            (2.0, [Cancel(2)]),
            (3.0, [Drop(1), Drop(2)]),
        )
    )
    budget = EnergyBudget(1e3, enforcement="stop")
    play(idle_free(10.0, 10.0), make_tasks([40.0, 60.0, 50.0]), answer, budget=budget)
    assert [seen[t].assigned_j for t in (1.0, 2.0, 3.0)] == pytest.approx([150, 90, 60])
    assert seen[3.0].consumed_j == pytest.approx(50.0)  # of tasks 0 and 2, until 3 s and 2 s


def idling(n_hosts: int, idle_w: float, cores: int = 1) -> Platform:
    """Hosts of 1 flop/s a core that draw `idle_w` when idle and 100 W with all cores busy."""
    states = (PState(1.0, idle_w, idle_w, 100.0),)
    return Platform(tuple(Host(f"h{k}", states, cores=cores) for k in range(n_hosts)))


def test_what_remains_keeps_the_idle_power_of_every_host():
    """Two hosts of 20 W idle in a period of 100 s; the task takes 80 W more for 30 s."""
    answer, seen = seen_energy(at((0.0, [Assign(0, 0)]), (10.0, []), (50.0, [Drop(1), Drop(2)])))
    tasks = make_tasks([30.0, 1.0, 1.0], [0.0, 10.0, 50.0])
    play(idling(2, 20.0), tasks, answer, RESPECTING, budget=EnergyBudget(7000.0, period_s=100.0))
    accounts = {now: (e.consumed_j, e.committed_j, e.idle_j, e.remaining_j) for now, e in seen.items()}
    assert accounts[0.0] == (0.0, 0.0, 4000.0, 3000.0)
    assert accounts[10.0] == (1200.0, 1600.0, 3600.0, 600.0)
    assert accounts[50.0] == (4400.0, 0.0, 2000.0, 600.0)


def test_a_period_without_end_keeps_idle_power_until_the_last_committed_task_ends():
    """Two hosts of 20 W; task 0 runs 30 s, task 1 is fixed behind it for 20 s."""
    answer, seen = seen_energy(at((0.0, [Assign(0, 0), Assign(1, 0)]), (10.0, [Drop(2)])))
    tasks = make_tasks([30.0, 20.0, 1.0], [0.0, 0.0, 10.0])
    budget = EnergyBudget(9000.0, period_s=math.inf)
    play(idling(2, 20.0), tasks, answer, RESPECTING, budget=budget)
    assert seen[0.0].idle_j == 0.0
    assert seen[10.0].idle_j == 2 * 20.0 * 40.0
    assert seen[10.0].remaining_j == 9000.0 - 1200.0 - 40.0 * 80.0 - 1600.0


@pytest.mark.parametrize("idle_w", [0.0, 5.0, 7.0])
@pytest.mark.parametrize("cores", [1, 2])
def test_no_period_exceeds_its_budget_by_idle_power(idle_w, cores):
    """Four hosts, 5,000 J in each 100 s, and more work than that pays for."""
    tasks = make_tasks([20.0] * 30)
    budget = EnergyBudget(5000.0, period_s=100.0)
    trace, _ = play(idling(4, idle_w, cores), tasks, first_host, budget=budget)
    own_j = trace.periods["consumed_j"] - trace.periods["carried_over_j"]
    assert (own_j <= 5000.0 * (1 + 1e-9)).all()
    assert len(trace.executions) == 30
