"""How loops are compiled: with a cache, where there is a place for one, and on nobody's time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any


def forget_stale_kernels(folder: Path, sources: Iterable[Path]) -> None:
    """Remove the indexes of numba's cache in a folder that are older than the newest of `sources`.

    numba compares a cached kernel with its own file only; it does not notice that a function or
    constant which the kernel takes from another file has changed since.
    """
    newest = max(source.stat().st_mtime_ns for source in sources)
    for index in folder.glob("*.nbi"):
        try:
            if index.stat().st_mtime_ns < newest:
                index.unlink()
        except OSError:  # another process was first, or the folder is read-only and so is numba's
            continue


#: Told True when this process begins to compile, False when it has compiled.
watchers: list[Callable[[bool], None]] = []
_without_cache: list[Callable[..., Any]] = []


def all_are_cached() -> bool:
    """Whether what is compiled here is kept for other processes."""
    return not _without_cache


@contextmanager
def told_of_compiling(watch: Callable[[bool], None]) -> Iterator[None]:
    """Add one of the `watchers` for a while."""
    watchers.append(watch)
    try:
        yield
    finally:
        watchers.remove(watch)


def tell_compiling(is_compiling: bool) -> None:
    """Tell the `watchers`."""
    for watch in watchers:
        watch(is_compiling)


@cache
def _listen() -> None:
    """Hear of what numba compiles, a loop within another with that."""
    from numba.core import event

    class Listener(event.Listener):
        depth = 0

        def on_start(self, event: object) -> None:
            self.depth += 1
            if self.depth == 1:
                tell_compiling(True)

        def on_end(self, event: object) -> None:
            self.depth -= 1
            if self.depth == 0:
                tell_compiling(False)

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return numba's decorator with a cache, where there is a place for one.

    Where neither the package's folder nor the user's home is writable, each process compiles anew.
    """
    from numba import njit  # slow to load

    _listen()

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
            _without_cache.append(function)
            return njit(**options)(function)

    return decorate
