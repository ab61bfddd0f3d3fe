"""Distinct values of arrays are those of sets of Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gridsched.arrays import distinct


@given(st.lists(st.integers(-3, 3) | st.floats(allow_nan=False)))
def test_distinct_values_are_those_of_a_set(values):
    """Sorted, each once; of no values none."""
    assert distinct(np.array(values, dtype=np.float64)).tolist() == sorted({float(each) for each in values})
