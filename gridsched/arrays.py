"""Types of arrays, for annotations, and the distinct values of one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
#: Ids and indices, too.
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
#: States of tasks.
Bytes = NDArray[np.uint8]
#: Bits of sets of nodes.
Words = NDArray[np.uint64]
#: Ids of a log: numbers, or texts where any is not a whole number (``17_3``, ``17+0``).
Labels = Integers | NDArray[np.str_]


def distinct(values: ArrayLike) -> NDArray[Any]:
    """Return the distinct values of a one-dimensional array, sorted.

    As `numpy.unique`, which loads numpy's masked arrays first: as long as the whole of a small run takes.

    Parameters
    ----------
    values : array_like
        Without NaN, of which each would be a value of its own.
    """
    in_order = np.sort(values, axis=None)
    is_first = np.ones(len(in_order), dtype=np.bool_)
    np.not_equal(in_order[1:], in_order[:-1], out=is_first[1:])
    return in_order[is_first]
