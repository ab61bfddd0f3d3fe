"""How loops are compiled: with a cache, if there is a place for one, and outside the time limits of runs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, cached_property, update_wrapper
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from gridsched.errors import MissingDependency


@cache
def forget_stale_kernels(folder: Path, sources: tuple[Path, ...]) -> None:
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


#: Called with True when this process begins to compile, with False when it has compiled.
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


class _Interpreter(threading.local):
    """Whether this thread does a kernel's work as Python, the kernels that this one calls with it."""

    is_at_work = False


_interpreter = _Interpreter()
#: Steps that this process may still interpret. One takes about 1 us: all together what numba takes
#: to load, so that a long run loses no more by it than a short one gains.
_steps_left = 300_000


def interpret_nothing() -> None:
    """Let numba compile or load each kernel from now on, however little there is to do."""
    global _steps_left
    _steps_left = -1


class _Later(ModuleType):
    """Stands for a module that is imported when somebody asks for what it holds."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != _HELD:  # what Python looks for on its own
            raise AttributeError(name)
        del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


#: numba imports it to see that it is there, and uses it for products of matrices; its package
#: takes as long to load as numba.
_BLAS = "scipy.linalg.cython_blas"
#: Where such a module holds its functions.
_HELD = "__pyx_capi__"


def has_numba() -> bool:
    """Whether numba is installed; without it kernels are interpreted where there is little to do."""
    return find_spec("numba") is not None


@cache
def _listen() -> None:
    """Hear of what numba compiles, a loop within another with that."""
    if not has_numba():
        raise MissingDependency("The loops of this scheduler need numba for so much; install it: pip install numba.")
    sys.modules.setdefault(_BLAS, _Later(_BLAS))
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


class Kernel:
    """A function that numba compiles, or loads from its cache, when it is first called.

    numba takes longer to load than most commands take: what only names a kernel does not load it.

    Parameters
    ----------
    function : callable
        It may call other kernels, and functions that are none, if they are compiled by numba.
    sources : tuple of Path
        Files whose change makes what is cached in the folder of the function's file stale.
    options : mapping
        Of ``numba.njit``.
    steps : callable, optional
        Called with the arguments; returns about how many steps of Python a call takes. The first calls of a process
        are then interpreted, as long as there is little to do. Only for functions that give the
        same bits either way: none that draws, or calls functions of mathematics.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        sources: tuple[Path, ...],
        options: Mapping[str, Any],
        steps: Callable[..., int] | None = None,
    ) -> None:
        update_wrapper(self, function)
        self._function, self._sources, self._options, self._steps = function, sources, options, steps

    def __call__(self, *arguments: Any) -> Any:
        """Call what numba compiled, or the function as it stands."""
        if _interpreter.is_at_work:
            return self._function(*arguments)
        if self._steps is None or "dispatcher" in self.__dict__ or not self._is_little(arguments):
            return self.dispatcher(*arguments)
        _interpreter.is_at_work = True
        try:
            return self._function(*arguments)
        finally:
            _interpreter.is_at_work = False

    def _is_little(self, arguments: tuple[Any, ...]) -> bool:
        global _steps_left
        assert self._steps is not None
        steps = self._steps(*arguments)
        if steps > _steps_left:
            return False
        _steps_left -= steps
        return True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what Python looks for on its own
            raise AttributeError(name)
        return getattr(self.dispatcher, name)

    @cached_property
    def dispatcher(self) -> Any:
        """What numba makes of the function, and of the kernels that its module names."""
        _listen()
        if self._sources:
            folder = Path(self._function.__code__.co_filename).parent / "__pycache__"
            forget_stale_kernels(folder, self._sources)
        made = self.__dict__["dispatcher"] = self._compile()
        names = self._function.__globals__
        names.update({name: each.dispatcher for name, each in list(names.items()) if isinstance(each, Kernel)})
        return made

    def _compile(self) -> Any:
        from numba import njit  # slow to load

        try:
            return njit(cache=True, **self._options)(self._function)
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
            _without_cache.append(self._function)
            return njit(**self._options)(self._function)


def compiled(
    *, sources: Iterable[Path] = (), steps: Callable[..., int] | None = None, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that makes a `Kernel`, cached where there is a place for one.

    Where neither the package's folder nor the user's home is writable, each process compiles again.
    """
    files = tuple(sources)
    return lambda function: Kernel(function, files, options, steps)
