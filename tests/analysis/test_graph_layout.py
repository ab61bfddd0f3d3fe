"""Graphs laid out in layers: what holds for all, and small ones by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridsched.analysis.graph_layout import layered


@st.composite
def graphs(draw):
    """Return the number of tasks, and edges from later to earlier ones."""
    n = draw(st.integers(1, 25))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda pair: pair[0] > pair[1])
    edges = draw(st.lists(pairs, unique=True, max_size=60)) if n > 1 else []
    return n, edges


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_tasks_stand_apart_behind_what_they_wait_for(graph):
    """Each is one layer behind the last of these, in the first if there is none; edges lead from task to task."""
    n, edges = graph
    layout = layered(n, [task for task, _ in edges], [on for _, on in edges])
    for task in range(n):
        assert layout.x[task] == max((layout.x[on] + 1 for one, on in edges if one == task), default=0)
    for layer in range(n):
        places = np.sort(layout.y[layout.x == layer])
        assert (np.diff(places) >= 1 - 1e-9).all()
    for (task, on), curve in zip(edges, layout.curves, strict=True):
        assert curve[0].tolist() == [layout.x[on], layout.y[on]]
        assert curve[-1].tolist() == [layout.x[task], layout.y[task]]
        assert curve[:, 0].tolist() == list(range(layout.x[on], layout.x[task] + 1))


def test_a_chain_is_a_straight_line():
    """Each task in a layer of its own, at one height."""
    layout = layered(5, [1, 2, 3, 4], [0, 1, 2, 3])
    assert layout.x.tolist() == [0, 1, 2, 3, 4]
    assert layout.y.tolist() == pytest.approx([0] * 5)


def test_crossings_that_can_be_avoided_are():
    """0 and 1, whose followers 3 and 2 are given in the other order: the edges do not cross."""
    layout = layered(4, [2, 3], [1, 0])
    assert (layout.y[0] - layout.y[1]) * (layout.y[3] - layout.y[2]) > 0


def test_a_long_edge_goes_round_the_tasks_between():
    """0, 1, 2 in a chain, and 2 waits for 0, too: the edge passes the middle layer beside task 1."""
    layout = layered(3, [1, 2, 2], [0, 1, 0])
    assert abs(layout.curves[2][1, 1] - layout.y[1]) >= 0.5
