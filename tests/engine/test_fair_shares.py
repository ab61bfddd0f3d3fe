"""Rates of parallel tasks that share hosts and links, by hand."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from gridsched.drivers.fair_shares import fair_rates


def test_a_task_alone_goes_on_at_its_narrowest():
    """10 flop on 20 flop/s, 6 byte over 3 byte/s: 0.5 a second; a bound below that counts."""
    capacity = {"host": 20.0, "link": 3.0}
    uses = [{"host": 10.0, "link": 6.0}]
    assert fair_rates(uses, [inf], capacity) == [0.5]
    assert fair_rates(uses, [0.125], capacity) == [0.125]
    assert fair_rates([{}], [inf], capacity) == [inf]


def test_a_link_is_divided_evenly_whatever_tasks_take_of_it():
    """Each gets 5 of 10 byte/s: of 1 byte the rate is 5, of 4 bytes 1.25."""
    assert fair_rates([{"l": 1.0}, {"l": 4.0}], [inf, inf], {"l": 10.0}) == [5.0, 1.25]


def test_what_a_bounded_task_leaves_goes_to_the_others():
    """The first takes 1 of its 5 byte/s; of the 4 that are left the other gets all, 9 in sum."""
    assert fair_rates([{"l": 1.0}, {"l": 4.0}], [1.0, inf], {"l": 10.0}) == [1.0, 2.25]


def test_a_task_that_has_stopped_takes_its_last_step_once_more():
    """Of 12 byte/s each of three is offered 4; one stops at 1, one at 2; 5 are left, 3 of which these take again."""
    rates = fair_rates([{"l": 1.0}, {"l": 1.0}, {"l": 1.0, "m": 2.0}], [1.0, 2.0, inf], {"l": 12.0, "m": 9.0})
    assert rates == [1.0, 2.0, 4.5]


def test_what_is_full_stops_those_on_it_alone():
    """The second is held at 3 by link m; the first goes on, from its 5 of 10 byte/s to the 7 that are left."""
    rates = fair_rates([{"l": 1.0}, {"l": 1.0, "m": 1.0}], [inf, inf], {"l": 10.0, "m": 3.0})
    assert rates == [7.0, 3.0]


@pytest.mark.parametrize(("bound", "second"), [(0.5 - 2**-17, 0.5), (0.5 - 2**-16, 0.5 + 2**-16)])
def test_what_is_left_counts_from_a_hundred_thousandth_on(bound, second):
    """Of 1 byte/s a bounded task leaves 2**-17 byte/s, which is nothing, or 2**-16, which the other gets."""
    assert fair_rates([{"l": 1.0}, {"l": 1.0}], [bound, inf], {"l": 1.0}) == [bound, second]


def test_a_link_that_is_not_shared_serves_each_whole():
    """Both go on at 10 byte/s."""
    assert fair_rates([{"l": 1.0}, {"l": 2.0}], [inf, inf], {"l": 10.0}, {"l"}) == [10.0, 5.0]


def test_nothing_takes_more_than_there_is():
    """Over 300 random cases no shared host or link gives more than it has, and every task is held by something."""
    rng = np.random.default_rng(4)
    for _ in range(300):
        n, m = int(rng.integers(1, 7)), int(rng.integers(1, 6))
        capacity = {k: float(c) for k, c in enumerate(rng.uniform(1e6, 1e9, m))}
        uses = []
        for _ in range(n):
            some = rng.choice(m, int(rng.integers(1, m + 1)), replace=False)
            uses.append({int(k): float(a) for k, a in zip(some, rng.uniform(1e6, 1e9, len(some)), strict=True)})
        bounds = np.where(rng.random(n) < 0.5, inf, rng.uniform(0.01, 10, n)).tolist()
        rates = fair_rates(uses, bounds, capacity)
        for k, has in capacity.items():
            taken = sum(rate * use.get(k, 0.0) for rate, use in zip(rates, uses, strict=True))
            assert taken <= has * (1 + 1e-9)
        assert all(0 < rate <= bound for rate, bound in zip(rates, bounds, strict=True))


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_the_order_of_tasks_does_not_count(order: list[int]):
    """The same rates, up to rounding."""
    uses, bounds = [{"a": 3.0, "b": 1.0}, {"b": 7.0}, {"a": 2.0, "c": 5.0}], [inf, 0.4, inf]
    capacity = {"a": 11.0, "b": 13.0, "c": 17.0}
    expected = fair_rates(uses, bounds, capacity)
    rates = fair_rates([uses[k] for k in order], [bounds[k] for k in order], capacity)
    assert rates == pytest.approx([expected[k] for k in order], rel=1e-12)
