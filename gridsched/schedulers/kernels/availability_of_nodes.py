"""Calls the loops of `availability` for nodes one by one; most logs count nodes, and those loops compile sooner."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.parts_on_nodes import give_back_parts, have_room, take_parts
from gridsched.schedulers.kernels import called_once
from gridsched.schedulers.kernels.availability import PACK, Nodes, some_may_start, starts_now


@called_once
def _call_once() -> None:
    """Call the kernels of jobs that share nodes, or find some down, once."""

    def shown(*values: Any) -> NDArray[Any]:
        array = np.array(values)
        array.setflags(write=False)  # as a state gives them
        return array

    demand, anywhere, ones, nothing = shown([1], [1]), shown(False, False), shown(1, 1), np.empty(0, dtype=np.int64)
    exactly, at_least = np.zeros((2, 3), dtype=np.int64)
    nodes = Nodes(
        demand, anywhere, shown(0, 0), np.ones(2), np.arange(2), np.array([0, 2]), np.ones((1, 2), dtype=np.bool_),
        PACK, shown([0, 0]), shown([0], [1]), nothing, np.empty((2, 0)), exactly, at_least,
        np.zeros((2, 4), dtype=np.int64), np.zeros(2, dtype=np.int64),
    )  # fmt: skip
    left, rows = shown([0], [1]), shown([0], [0], [1])
    own, free, pool = left.copy(), np.ones(2, dtype=np.bool_), np.zeros((2, 2), dtype=np.int64)
    some, parts = shown(0), shown(1)
    have_room(left, some, parts, demand, 0)
    take_parts(own, some, parts, demand, 0, free, pool, 0)
    give_back_parts(own, some, parts, demand, 0, free, shown([1], [1]), np.zeros(2), 1.0)
    some_may_start(left, shown(0, 1), ones, demand, anywhere, nodes.at_least)
    starts_now(1, 0.0, shown(0, 1), np.ones(2), ones, left, shown(1.0), rows, np.arange(2), nodes)
