"""Types of arrays, for annotations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
