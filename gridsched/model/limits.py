"""Limits of numbers that a simulation can calculate with, types of such parameters, and the tolerance of times."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

#: Works, speeds, powers, times and sizes beyond these are refused [SI units]: with them every
#: duration, energy and sum over ten million tasks stays far from the ends of a float.
LARGEST = 1e30
SMALLEST = 1e-30
#: What the prefixes of units multiply by.
SI_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18, "Z": 1e21, "Y": 1e24}
#: Longer names are refused.
MAX_NAME = 1_000
#: Results beyond this are refused where they are read back; no run within the limits gives them.
LARGEST_RESULT = 1e100


def rising(pair: tuple[float, float]) -> tuple[float, float]:
    """Return the smallest and largest of a uniform draw; `ValueError` if they are not."""
    if pair[0] > pair[1]:
        raise ValueError(f"the first, {pair[0]:g}, must not exceed the second, {pair[1]:g}")
    return pair


Positive = Annotated[float, Field(ge=SMALLEST, le=LARGEST)]
AtLeastZero = Annotated[float, Field(ge=0, le=LARGEST)]
Fraction = Annotated[float, Field(ge=0, le=1)]
#: Standard deviation over mean.
Cov = Annotated[float, Field(ge=0, le=1)]
#: More numbers than this are never drawn for one table.
MAX_ENTRIES = 10_000_000
#: Machines, cores or tasks of one kind.
Count = Annotated[int, Field(ge=1, le=100_000)]
Seed = Annotated[int, Field(ge=0)]
PositiveRange = Annotated[tuple[Positive, Positive], AfterValidator(rising)]
AtLeastZeroRange = Annotated[tuple[AtLeastZero, AtLeastZero], AfterValidator(rising)]
FractionRange = Annotated[tuple[Fraction, Fraction], AfterValidator(rising)]
CountRange = Annotated[tuple[Count, Count], AfterValidator(rising)]


def time_tolerance(time: float) -> float:
    """Return how far apart [s] two ends near `time` [s] may be and still be one instant."""
    return 1e-9 if time < 1000.0 else 1e-12 * time
