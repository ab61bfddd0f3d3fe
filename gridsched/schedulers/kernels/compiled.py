"""How the kernels of utility workloads are compiled: cached, and dividing as numpy does."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from numba import njit

_HERE = Path(__file__).parent
_PACKAGE = _HERE.parents[1]


def forget_stale_kernels(cache: Path, sources: Iterable[Path]) -> None:
    """Remove the indexes of numba's cache that are older than the newest of `sources`.

    numba compares a cached kernel with its own file only; it does not notice that a function or
    constant which the kernel takes from another file has changed since.
    """
    newest = max(source.stat().st_mtime_ns for source in sources)
    for index in cache.glob("*.nbi"):
        try:
            if index.stat().st_mtime_ns < newest:
                index.unlink()
        except OSError:  # another process was first, or the folder is read-only and so is numba's
            continue


forget_stale_kernels(
    _HERE / "__pycache__",
    [*_HERE.glob("*.py"), *(_PACKAGE / "model").glob("*.py"), _PACKAGE / "energy.py"],
)

kernel = njit(cache=True, error_model="numpy")

#: For functions that are called from kernels only and make no arrays. numba then counts no
#: references to the arrays they get, which costs as much as their work; its own string functions
#: are compiled so.
inner = njit(cache=True, error_model="numpy", _nrt=False)
