"""Bounds of tasks with types: by hand, and below every schedule that there is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typed_bags import every_schedule, exact_idle_w, random_bag

from gridsched.errors import InputError
from gridsched.model.task_types import TYPED_TASK_FLOPS, TaskTypes, typed_platform
from gridsched.model.tasks import make_tasks
from gridsched.optimize.typed_bounds import typed_bounds
from gridsched.runs.run import run
from gridsched.runs.scenario import Scenario

SEEDS = st.integers(0, 2**32 - 1)


def types_of(bag) -> TaskTypes:
    """The machines of a bag, one by one."""
    host_type = np.repeat(np.arange(len(bag.machines)), bag.machines)
    return TaskTypes(bag.etc[:, :, None], bag.apc[:, :, None], host_type, idle_w=bag.idle_w)


def tasks_of(counts, submit_time_s=0.0):
    """As many tasks of each type."""
    task_type = np.repeat(np.arange(len(counts)), counts)
    return make_tasks([TYPED_TASK_FLOPS] * len(task_type), submit_time_s, task_type=task_type)


def example(idle_w=0.0, etc=((2.0, 4.0),), apc=((10.0, 2.5),)) -> TaskTypes:
    """E5: 2 s at 10 W or 4 s at 2.5 W."""
    etc, apc = np.array(etc)[:, :, None], np.array(apc)[:, :, None]
    return TaskTypes(etc, apc, np.array([0, 1]), idle_w=idle_w)


def test_the_example_by_hand():
    """E5: at least 16 s and 120 J; 1 W of the first machine for all 48 s of the cheapest, or less.

    With idle power (1, 0.25) a task costs 18 or 9 J above idle; E = 18 x1 + 9 x2 + 1.25 MS is
    least at x = (8, 4), MS = 16: 144 + 36 + 20; or at (0, 12), MS = 48: 108 + 60 = 168.
    """
    found = typed_bounds(example(), tasks_of([12]))
    assert found.makespan_s == pytest.approx(16.0, rel=1e-9)
    assert found.energy_j == pytest.approx(120.0, rel=1e-9)
    idle = typed_bounds(example(np.array([1.0, 0.25])), tasks_of([12]))
    assert idle.energy_j == pytest.approx(168.0, rel=1e-9)
    assert idle.counts_idle
    off = typed_bounds(example(np.array([1.0, 0.25])), tasks_of([12]), may_switch_off=True)
    assert off.energy_j == pytest.approx(120.0, rel=1e-9)
    assert not off.counts_idle


def test_least_energy_within_a_makespan():
    """E5: in 24 s the second machine takes 6 tasks, 6 x 10 J, the first the other 6 x 20 J."""
    found = typed_bounds(example(), tasks_of([12]))
    within = [found.least_energy_j(makespan) for makespan in (16.0, 24.0, 48.0, 1000.0)]
    assert within == pytest.approx([200.0, 180.0, 120.0, 120.0], rel=1e-8)
    assert found.least_energy_j(1.0) == pytest.approx(200.0, rel=1e-8)  # none is so short
    late = typed_bounds(example(np.array([1.0, 0.25])), tasks_of([12], 4.0))
    assert late.least_energy_j(16.0) == pytest.approx(200.0 + 1.25 * 4.0, rel=1e-8)


def test_one_task_cannot_be_divided():
    """Divided, a task takes 4/3 s; whole, at least 2 s. At best 10 J in 4 s and 4 J idle."""
    found = typed_bounds(example(np.array([1.0, 0.25])), tasks_of([1]))
    assert found.makespan_s == 2.0
    assert found.energy_j == pytest.approx(14.0, rel=1e-12)


def test_late_tasks_wait_until_they_are_there():
    """Submitted at 5 and 20 s: at least 17 s, and both machines idle for the first 5 s."""
    found = typed_bounds(example(np.array([1.0, 0.25])), tasks_of([2], [5.0, 20.0]))
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
    found = typed_bounds(example(), tasks_of([12]), hosts_off=[0])
    assert (found.makespan_s, found.energy_j) == pytest.approx((48.0, 120.0), rel=1e-9)
    homeless = example(etc=((2.0, 4.0), (np.inf, np.inf)), apc=((10.0, 2.5), (0.0, 0.0)))
    assert typed_bounds(homeless, tasks_of([12, 3])).energy_j == pytest.approx(120.0, rel=1e-9)
    assert typed_bounds(homeless, tasks_of([0, 3])).makespan_s == 0.0
    assert typed_bounds(example(), tasks_of([0])).energy_j == 0.0
    with pytest.raises(InputError, match="host"):
        typed_bounds(example(), tasks_of([12]), hosts_off=[0, 1])


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
        if k in (0, 3, 8):  # each of these solves a programme
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
