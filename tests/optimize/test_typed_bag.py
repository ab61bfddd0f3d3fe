"""Bags by type: their formulas by hand, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from typed_bags import example

from gridsched.errors import InputError
from gridsched.optimize.typed_bag import typed_bag


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
        (([[2, np.inf]], [[1, 1]], [1], [0, 1]), "Task type 0 has 1 tasks and no machine"),
    ],
)
def test_refused(arrays, message):
    """Each wrong array is named with what was found."""
    with pytest.raises(InputError, match=message):
        typed_bag(*arrays)
