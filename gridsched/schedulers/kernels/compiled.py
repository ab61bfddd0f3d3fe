"""How the kernels of utility workloads are compiled: cached, and dividing as numpy does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gridsched.compiled import all_are_cached as all_are_cached
from gridsched.compiled import compiled

_HERE = Path(__file__).parent
_PACKAGE = _HERE.parents[1]

_SOURCES = (*_HERE.glob("*.py"), *(_PACKAGE / "model").glob("*.py"), _PACKAGE / "energy.py", _PACKAGE / "compiled.py")

kernel = compiled(sources=_SOURCES, error_model="numpy")


def interpreted_at_first(steps: Callable[..., int]) -> Callable[[Callable[..., Any]], Any]:
    """Return the decorator `kernel` for functions that are interpreted while there is little to do."""
    return compiled(sources=_SOURCES, steps=steps, error_model="numpy")


#: For functions that are called from kernels only and make no arrays. numba then counts no
#: references to the arrays they get, which costs as much as their work; its own string functions
#: are compiled so.
inner = compiled(sources=_SOURCES, error_model="numpy", _nrt=False)
