"""Numbers that a simulation can still calculate with."""

from __future__ import annotations

#: Works, speeds, powers, times and sizes beyond these are refused [SI units]: with them every
#: duration, energy and sum over ten million tasks stays far from the ends of a float.
LARGEST = 1e30
SMALLEST = 1e-30
#: Results beyond this are refused where they are read back; no run within the limits gives them.
LARGEST_RESULT = 1e100
