"""Bags of tasks: order, checks and the heterogeneity rules of algorithms A6.2."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsched.errors import InputError
from gridsched.model.tasks import ArrivedTasks, make_tasks

SIZES = st.floats(1.0, 1e12)


def test_tasks_are_in_order_of_submission_and_stable():
    """Tasks of one instant keep their order; labels and bytes go with them."""
    tasks = make_tasks(
        [1.0, 2.0, 3.0, 4.0], [5.0, 0.0, 5.0, 0.0], output_bytes=[10, 20, 30, 40], labels=[11, 12, 13, 14]
    )
    assert tasks.flops.tolist() == [2.0, 4.0, 1.0, 3.0]
    assert tasks.labels.tolist() == [12, 14, 11, 13]
    assert tasks.output_bytes.tolist() == [20, 40, 10, 30]


def test_nodes_and_requested_times_go_with_their_tasks():
    """They are sorted with the tasks, and a scalar serves for all; serial tasks have none."""
    tasks = make_tasks([1.0, 2.0], [5.0, 0.0], width=[3, 4], requested_time_s=[30.0, 40.0])
    assert tasks.width.tolist() == [4, 3]
    assert tasks.requested_time_s.tolist() == [40.0, 30.0]
    assert ArrivedTasks(tasks).first(1).width.tolist() == [4]
    assert make_tasks([1.0, 2.0], width=7).width.tolist() == [7, 7]
    assert make_tasks([1.0]).width is make_tasks([1.0]).requested_time_s is None


def test_heterogeneity_is_the_nominal_value_where_there_is_one():
    """The generator's value wins over the measured spread."""
    assert make_tasks([75.0, 125.0], nominal_heterogeneity=0.4).heterogeneity == 0.4
    assert make_tasks([100.0, 100.0], nominal_heterogeneity=1.0).heterogeneity == 1.0


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([75.0, 125.0], 0.5),
        ([100.0, 100.0, 100.0], 0.0),
        ([42.0], 0.0),
        ([], 0.0),
        ([1000.0, 500.0, 2000.0, 1500.0, 250.0], 1.0),  # EX-A: 1750/1050, clamped
    ],
)
def test_measured_heterogeneity(sizes, expected):
    """(max - min) / mean, clamped to [0, 1]."""
    assert make_tasks(sizes).heterogeneity == pytest.approx(expected, rel=1e-15)


@given(st.lists(SIZES, min_size=1, max_size=30), st.floats(1e-6, 1e6))
def test_heterogeneity_does_not_depend_on_unit_or_order(sizes, factor):
    """Sizes in another unit, or in another order, are as heterogeneous."""
    h = make_tasks(sizes).heterogeneity
    assert 0.0 <= h <= 1.0
    assert make_tasks(np.array(sizes[::-1]) * factor).heterogeneity == pytest.approx(h, abs=1e-9)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"flops": [1.0, 0.0]}, "task 2 has flops 0; it must be finite and greater than 0"),
        ({"flops": [-1.0]}, "task 1 has flops -1"),
        ({"flops": [float("nan")]}, "task 1 has flops nan"),
        ({"flops": [float("inf")]}, "task 1 has flops inf"),
        ({"flops": [1.0], "submit_time_s": [-1.0]}, "task 1 has submit_time_s -1; it must be finite"),
        ({"flops": [1.0], "input_bytes": [float("nan")]}, "task 1 has input_bytes nan"),
        ({"flops": [1.0], "output_bytes": [-2.0]}, "task 1 has output_bytes -2"),
        ({"flops": [1.0, 1.0], "width": [2, 0]}, "task 2 has width 0; it must be a whole number"),
        ({"flops": [1.0], "width": [1.5]}, "task 1 has width 1.5"),
        ({"flops": [1.0], "width": [float("nan")]}, "task 1 has width nan"),
        ({"flops": [1.0], "requested_time_s": [0.0]}, "task 1 has requested_time_s 0; it must be"),
        ({"flops": [1.0, 1.0], "labels": [3, 3]}, "task ids must be as many as tasks"),
        ({"flops": [1.0, 1.0], "labels": [3]}, "task ids must be as many as tasks"),
    ],
)
def test_bad_values_are_refused(columns, message):
    """The message names the task and what is legal."""
    with pytest.raises(InputError, match=message):
        make_tasks(**columns)


def test_arrays_are_read_only():
    """Nobody changes a bag of tasks by accident."""
    tasks = make_tasks([1.0, 2.0], task_type=[0, 1])
    frozen = [tasks.flops, tasks.submit_time_s, tasks.input_bytes, tasks.output_bytes, tasks.labels]
    assert not any(array.flags.writeable for array in frozen)
