"""How the kernels of utility workloads are compiled: cached, and dividing as numpy does."""

from __future__ import annotations

from numba import njit

kernel = njit(cache=True, error_model="numpy")

#: For functions that are called from kernels only and make no arrays. numba then counts no
#: references to the arrays they get, which costs as much as their work; its own string functions
#: are compiled so.
inner = njit(cache=True, error_model="numpy", _nrt=False)
