"""How the kernels of utility workloads are compiled: cached, and dividing as numpy does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

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


_without_cache: list[Callable[..., Any]] = []


def all_are_cached() -> bool:
    """Whether what is compiled here is kept for other processes."""
    return not _without_cache


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return numba's decorator with a cache, where there is a place for one.

    Where neither the package's folder nor the user's home is writable, each process compiles anew.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
            _without_cache.append(function)
            return njit(**options)(function)

    return decorate


kernel = compiled(error_model="numpy")

#: For functions that are called from kernels only and make no arrays. numba then counts no
#: references to the arrays they get, which costs as much as their work; its own string functions
#: are compiled so.
inner = compiled(error_model="numpy", _nrt=False)
