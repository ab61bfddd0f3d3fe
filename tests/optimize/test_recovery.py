"""Rounding and placing: E5 by hand, and what always holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typed_bags import example, random_bag

from gridsched.errors import InputError
from gridsched.model.tariff import Tariff
from gridsched.optimize.profit_lp import most_profit
from gridsched.optimize.recovery import earnings, recover, whole_tasks
from gridsched.optimize.typed_bag import typed_bag

SEEDS = st.integers(0, 2**32 - 1)


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


def test_a_plan_that_does_not_run_is_not_rounded():
    """Nothing is placed: said, not invented."""
    plan = most_profit(example(), Tariff(price=108))
    with pytest.raises(InputError, match=r"12.*0"):
        recover(example(), plan.x)


def test_the_capped_row_of_e5():
    """(7.2, 4.8) becomes (7, 5): 14 s and 20 s, 190 J, profit rate 5.5, mean power 9.5 W."""
    bag, tariff = example(), Tariff(price=300)
    plan = most_profit(bag, tariff, power_cap_w=10)
    found = recover(bag, plan.x)
    assert found.x.tolist() == [[7, 5]]
    assert [m.loads_s.tolist() for m in found.machines] == [[14], [20]]
    earned = earnings(found, tariff, power_cap_w=10)
    assert (earned.makespan_s, earned.energy_j) == (20, 190)
    assert (earned.profit_rate, earned.mean_power_w) == (5.5, 9.5)
    assert earned.profit_rate <= plan.bound


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
    """A bag that loses money waits as long as was promised; one that is late says so."""
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
