"""Sets of whole numbers as Batsim's interval sets: ``0-3 7``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def interval_set(numbers: NDArray[np.int64]) -> str:
    """Return ascending numbers as an interval set: ``0-3 7`` for 0, 1, 2, 3 and 7."""
    gaps = np.flatnonzero(np.diff(numbers) != 1)
    first = numbers[np.concatenate([[0], gaps + 1])].tolist()
    last = numbers[np.concatenate([gaps, [len(numbers) - 1]])].tolist()
    return " ".join(
        str(low) if low == high else f"{low}-{high}" for low, high in zip(first, last, strict=True)
    )
