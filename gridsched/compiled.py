"""How loops are compiled: with a cache, where there is a place for one. It loads numba."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from numba import njit


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
