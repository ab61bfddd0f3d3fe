"""Typed bags: their bounds, and schedules recovered from relaxations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typed_bags import every_schedule, exact_idle_w, example, random_bag

from gridsched.errors import InputError
from gridsched.model.tariff import Tariff
from gridsched.model.task_types import TYPED_TASK_FLOPS, TaskTypes, typed_platform
from gridsched.model.tasks import make_tasks
from gridsched.optimize.recovery import earnings, recover, whole_tasks
from gridsched.optimize.typed_bag import typed_bag
from gridsched.optimize.typed_bounds import typed_bounds
from gridsched.runs.run import run
from gridsched.scenario import Scenario

# Typed bags and their bounds.

# Bags by type: their formulas by hand, and what is refused.


def test_formulas_by_hand():
    """E5: (8, 4) keeps both machines busy for 16 s; 8 x 20 J + 4 x 10 J."""
    bag = example()
    assert bag.finish_s([[8, 4]]).tolist() == [16, 16]
    assert bag.busy_s([[0, 12]]).tolist() == [0, 48]
    assert bag.energy_j([[8, 4]], 16) == 200
    assert bag.energy_j([[0, 12]], 48) == 120


def test_idle_power_counts_until_the_end():
    """Machine 1 idles for 48 s at 1 W; machine 2 is never idle."""
    bag = example(idle_w=(1, 0.25))
    assert bag.energy_j([[0, 12]], 48) == 120 + 48
    assert bag.all_idle_w == 1.25


def test_machines_share_their_type_s_work():
    """Three machines of a type finish in a third of the time."""
    bag = example(machines=(3, 1))
    assert bag.finish_s([[6, 0]]).tolist() == [4, 0]


def test_infeasible_pairs_cost_nothing_where_nothing_runs():
    """Infinite times and unknown powers do not enter the sums."""
    bag = typed_bag([[2, np.inf]], [[10, np.nan]], [3], [1, 1])
    assert bag.usable.tolist() == [[True, False]]
    assert bag.energy_j([[3, 0]], 6) == 60


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (([[2, 4]], [[10]], [1], [1, 1]), r"ETC has shape \(1, 2\) and APC \(1, 1\)"),
        (([[0, 4]], [[1, 1]], [1], [1, 1]), "ETC of task type 0 on machine type 0 is 0 s"),
        (([[2, np.nan]], [[1, 1]], [1], [1, 1]), "ETC of task type 0 on machine type 1 is nan s"),
        (([[2, -np.inf]], [[1, 1]], [1], [1, 1]), "machine type 1 is -inf s"),
        (([[2, 4]], [[1, -1]], [1], [1, 1]), "APC of task type 0 on machine type 1 is -1 W"),
        (([[2, 4]], [[1, 1]], [1.5], [1, 1]), "Type 0 has 1.5 tasks; the number must be whole"),
        (([[2, 4]], [[1, 1]], [-1], [1, 1]), "Type 0 has -1 tasks"),
        (([[2, 4]], [[1, 1]], [1], [1]), r"numbers of machines have shape \(1,\); ETC needs 2"),
        (([[2, 4]], [[1, 1]], [1], [1, 1], -3), "idle power must be .* found -3"),
        (([[2, 4]], [[1, 1]], [0], [1, 1]), "The bag has no tasks"),
        (([[2, np.inf]], [[1, 1]], [1], [0, 1]), "Task type 0 has 1 task and no machine"),
    ],
)
def test_refused(arrays, message):
    """Each wrong array is named with what was found."""
    with pytest.raises(InputError, match=message):
        typed_bag(*arrays)


# Bounds of tasks with types: by hand, and below every schedule that there is.

SEEDS = st.integers(0, 2**32 - 1)


def types_of(bag) -> TaskTypes:
    """The machines of a bag, one by one."""
    host_type = np.repeat(np.arange(len(bag.machines)), bag.machines)
    return TaskTypes(bag.etc[:, :, None], bag.apc[:, :, None], host_type, idle_w=bag.idle_w)


def tasks_of(counts, submit_time_s=0.0):
    """As many tasks of each type."""
    task_type = np.repeat(np.arange(len(counts)), counts)
    return make_tasks([TYPED_TASK_FLOPS] * len(task_type), submit_time_s, task_type=task_type)


def types_by_hand(idle_w=0.0, etc=((2.0, 4.0),), apc=((10.0, 2.5),)) -> TaskTypes:
    """E5: 2 s at 10 W or 4 s at 2.5 W."""
    etc, apc = np.array(etc)[:, :, None], np.array(apc)[:, :, None]
    return TaskTypes(etc, apc, np.array([0, 1]), idle_w=idle_w)


def test_the_example_by_hand():
    """E5: at least 16 s and 120 J; 1 W of the first machine for all 48 s of the cheapest, or less.

    With idle power (1, 0.25) a task costs 18 or 9 J above idle; E = 18 x1 + 9 x2 + 1.25 MS is
    least at x = (8, 4), MS = 16: 144 + 36 + 20; or at (0, 12), MS = 48: 108 + 60 = 168.
    """
    found = typed_bounds(types_by_hand(), tasks_of([12]))
    assert found.makespan_s == pytest.approx(16.0, rel=1e-9)
    assert found.energy_j == pytest.approx(120.0, rel=1e-9)
    idle = typed_bounds(types_by_hand(np.array([1.0, 0.25])), tasks_of([12]))
    assert idle.energy_j == pytest.approx(168.0, rel=1e-9)
    assert idle.counts_idle
    off = typed_bounds(types_by_hand(np.array([1.0, 0.25])), tasks_of([12]), may_switch_off=True)
    assert off.energy_j == pytest.approx(120.0, rel=1e-9)
    assert not off.counts_idle


def test_least_energy_within_a_makespan():
    """E5: in 24 s the second machine takes 6 tasks, 6 x 10 J, the first the other 6 x 20 J."""
    found = typed_bounds(types_by_hand(), tasks_of([12]))
    within = [found.least_energy_j(makespan) for makespan in (16.0, 24.0, 48.0, 1000.0)]
    assert within == pytest.approx([200.0, 180.0, 120.0, 120.0], rel=1e-8)
    assert found.least_energy_j(1.0) == pytest.approx(200.0, rel=1e-8)  # none is so short
    late = typed_bounds(types_by_hand(np.array([1.0, 0.25])), tasks_of([12], 4.0))
    assert late.least_energy_j(16.0) == pytest.approx(200.0 + 1.25 * 4.0, rel=1e-8)


def test_one_task_cannot_be_divided():
    """Divided, a task takes 4/3 s; whole, at least 2 s. At best 10 J in 4 s and 4 J idle."""
    found = typed_bounds(types_by_hand(np.array([1.0, 0.25])), tasks_of([1]))
    assert found.makespan_s == 2.0
    assert found.energy_j == pytest.approx(14.0, rel=1e-12)


def test_late_tasks_wait_until_they_are_there():
    """Submitted at 5 and 20 s: at least 17 s, and both machines idle for the first 5 s."""
    found = typed_bounds(types_by_hand(np.array([1.0, 0.25])), tasks_of([2], [5.0, 20.0]))
    assert found.makespan_s == 17.0
    assert found.energy_j == pytest.approx(2 * 9.0 + 1.25 * 17.0 + 1.25 * 5.0, rel=1e-12)


def test_each_pstate_may_give_the_best_of_time_or_energy():
    """2 s at 10 W or 4 s at 2.5 W on one machine: with free P-states 2 s and 10 J a task."""
    types = TaskTypes(np.array([[[2.0, 4.0]]]), np.array([[[10.0, 2.5]]]), np.array([0]))
    free = typed_bounds(types, tasks_of([3]), free_pstates=True)
    assert free.makespan_s == pytest.approx(6.0, rel=1e-9)
    assert free.energy_j == pytest.approx(30.0, rel=1e-9)
    slow = typed_bounds(types, tasks_of([3]), 1)
    assert (slow.makespan_s, slow.energy_j) == pytest.approx((12.0, 30.0), rel=1e-9)


def test_hosts_that_stay_off_and_tasks_that_run_nowhere_do_not_count():
    """The second machine alone; a type without a machine is rejected anyway."""
    found = typed_bounds(types_by_hand(), tasks_of([12]), hosts_off=[0])
    assert (found.makespan_s, found.energy_j) == pytest.approx((48.0, 120.0), rel=1e-9)
    homeless = types_by_hand(etc=((2.0, 4.0), (np.inf, np.inf)), apc=((10.0, 2.5), (0.0, 0.0)))
    assert typed_bounds(homeless, tasks_of([12, 3])).energy_j == pytest.approx(120.0, rel=1e-9)
    assert typed_bounds(homeless, tasks_of([0, 3])).makespan_s == 0.0
    assert typed_bounds(types_by_hand(), tasks_of([0])).energy_j == 0.0
    with pytest.raises(InputError, match="host"):
        typed_bounds(types_by_hand(), tasks_of([12]), hosts_off=[0, 1])


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_no_schedule_is_below_a_bound(seed):
    """Exactly: every schedule of whole tasks, in fractions, without any tolerance."""
    bag = random_bag(seed, most_tasks=2, most_machines=1, types=3)
    bounds = typed_bounds(types_of(bag), tasks_of(bag.tasks))
    idle_w = exact_idle_w(bag)
    for k, (makespan, above_idle, _) in enumerate(every_schedule(bag)):
        assert makespan >= bounds.makespan_s
        assert above_idle + idle_w * makespan >= bounds.energy_j
        if k in (0, 3, 8):  # each of these solves a program
            least_j = bounds.least_energy_j(float(makespan) * (1 + 1e-15))
            assert above_idle + idle_w * makespan >= least_j


def test_useless_copies_may_save_power():
    """Two machines draw 100 W idle and 10 W busy: a copy of one task on each, beside a third's.

    All three are busy for 100 s at 10 W; divided evenly, the copied task would leave each of its
    machines idle for 50 s.
    """
    inf = np.inf
    types = TaskTypes(
        np.array([[inf, 100.0], [100.0, inf]])[:, :, None],
        np.full((2, 2, 1), 10.0),
        np.array([0, 0, 1]),
        idle_w=np.array([100.0, 0.0]),
    )
    tasks = tasks_of((1, 1))
    done = run(Scenario(typed_platform(types), tasks, "wqr", types=types, driver="reference")).summary()
    assert (done["energy_j"], done["makespan_s"]) == (3000, 100)
    bounds = typed_bounds(types, tasks)
    assert bounds.energy_j <= bounds.least_energy_j(100) <= 3000
    assert bounds.energy_j == pytest.approx(3000)  # of these 2,000 J in any case for 100 s


# Rounding and placing: E5 by hand, and what always holds.


def three_types(tasks=7):
    """One task type on three equal machine types."""
    return typed_bag([[1, 1, 1]], [[1, 1, 1]], [tasks], [1, 1, 1])


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ((2.5, 2.5, 2.0), [3, 2, 2]),  # E5: the tie goes to the lower type
        ((2.2, 2.4, 2.4), [2, 3, 2]),
        ((6.9999999999, 1e-10, 0.0), [7, 0, 0]),
        ((0.0, 0.0, 7.0), [0, 0, 7]),
        ((2.6, 2.7, 1.7), [2, 3, 2]),
    ],
)
def test_rounding_by_hand(x, expected):
    """Floors, and one more where most was cut off."""
    assert whole_tasks(three_types(), np.array([x])).tolist() == [expected]


def test_rounding_keeps_off_where_a_type_cannot_run():
    """The missing task goes to a machine that can run it."""
    bag = typed_bag([[np.inf, 1, 1]], [[1, 1, 1]], [3], [1, 1, 1])
    assert whole_tasks(bag, np.array([[0.0, 1.5, 1.5]])).tolist() == [[0, 2, 1]]


def test_idle_power_of_the_machine_that_finishes_first():
    """Machine 1 idles for 6 s at 1 W."""
    bag = example(idle_w=(1, 0.25))
    assert recover(bag, np.array([[7.2, 4.8]])).energy_j == pytest.approx(190 + 6)


def test_a_cap_below_the_schedule_s_power_is_kept_by_a_pause():
    """200 J in 16 s are 12.5 W; under 10 W the next bag starts after 20 s."""
    found = recover(example(), np.array([[8.0, 4.0]]))
    earned = earnings(found, Tariff(price=300), power_cap_w=10)
    assert (earned.makespan_s, earned.mean_power_w, earned.profit_rate) == (20, 10, 5)
    idle = recover(example(idle_w=(1, 0.25)), np.array([[8.0, 4.0]]))
    with pytest.raises(InputError, match=r"1 W.*1\.25 W"):
        earnings(idle, Tariff(price=300), power_cap_w=1)


def test_promises():
    """A bag that loses money waits as long as was promised; one that is late reports this."""
    found = recover(example(), np.array([[0.0, 12.0]]))
    slow = earnings(found, Tariff(price=108), least_rate_per_s=0.01)
    assert (slow.makespan_s, slow.keeps_rate) == (100, True)
    assert slow.profit_rate == pytest.approx(-0.12)
    assert not earnings(found, Tariff(price=300), least_rate_per_s=0.03).keeps_rate


def test_a_bag_that_loses_money_is_not_over_before_its_last_machine():
    """One that is late for its promise waits no longer, and ends no earlier."""
    found = recover(example(), np.array([[0.0, 12.0]]))
    late = earnings(found, Tariff(price=108), least_rate_per_s=0.1)
    assert (late.makespan_s, late.keeps_rate) == (found.finish_s, False)


def test_every_cost_enters():
    """E3's extensions on whole tasks: 300 - 12 - 200 - 16 x 1.5 - 16 x 1.5 over 16 s."""
    found = recover(example(), np.array([[8.0, 4.0]]))
    tariff = Tariff(price=300, overhead=12, wear_per_s=(1, 0.5), depreciation_per_s=(1, 0.5))
    assert earnings(found, tariff).profit_rate == pytest.approx((300 - 12 - 200 - 24 - 24) / 16)


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.sampled_from([10, 10**4, 10**12]))
def test_rounding_always(seed, most_tasks):
    """Rows keep their tasks, no entry moves by one or more, only usable pairs get tasks."""
    bag = random_bag(seed, most_tasks=most_tasks)
    rng = np.random.default_rng(seed)
    parts = rng.random(bag.etc.shape) * bag.usable
    x = bag.tasks[:, None] * parts / np.maximum(parts.sum(axis=1), 1e-300)[:, None]
    whole = whole_tasks(bag, x)
    assert np.array_equal(whole.sum(axis=1), bag.tasks)
    assert np.all(np.abs(whole - x) < 1 + 1e-3 * (most_tasks > 10**6))
    assert not whole[~bag.usable].any()
    found = recover(bag, x)
    for j, machine in enumerate(found.machines):
        assert np.array_equal(machine.counts.sum(axis=1), whole[machine.types, j])
        assert machine.loads_s.sum() == pytest.approx(bag.busy_s(found.x)[j])
