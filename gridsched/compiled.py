"""Kernels: loops that a library holds, that numba compiles and caches, or that are interpreted."""

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

from gridsched.loop_library import PYTHON, asked_for, library


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
def watched_compiling(watch: Callable[[bool], None]) -> Iterator[None]:
    """Add one of the `watchers` for a while."""
    watchers.append(watch)
    try:
        yield
    finally:
        watchers.remove(watch)


def report_compiling(is_compiling: bool) -> None:
    """Call the `watchers`."""
    for watch in watchers:
        watch(is_compiling)


_noted: list[tuple[Kernel, tuple[Any, ...]]] | None = None
#: Names of modules, and the kernels among them.
_replaced: list[tuple[dict[str, Any], dict[str, Kernel]]] = []


@contextmanager
def noted_calls() -> Iterator[list[tuple[Kernel, tuple[Any, ...]]]]:
    """Have kernels compiled in this process, whatever there is of them, and note how they are called."""
    global _noted
    _noted = []
    try:
        yield _noted
    finally:
        _noted = None


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
    """Takes the place of a module until something in it is used, which imports it."""

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
#: What numba asks an object that compiled code names for.
_NUMBA_TYPE = "_numba_type_"


@cache
def has_numba() -> bool:
    """Whether numba is installed, and may be used; without it kernels are interpreted that no library holds."""
    return asked_for() != PYTHON and find_spec("numba") is not None


@cache
def _listen() -> None:
    """Hear of what numba compiles, a loop within another with that."""
    sys.modules.setdefault(_BLAS, _Later(_BLAS))
    from numba.core import event

    class Listener(event.Listener):
        depth = 0

        def on_start(self, event: object) -> None:
            self.depth += 1
            if self.depth == 1:
                report_compiling(True)

        def on_end(self, event: object) -> None:
            self.depth -= 1
            if self.depth == 0:
                report_compiling(False)

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
        """Call what numba compiled, or the function as Python."""
        if _interpreter.is_at_work:
            return self._function(*arguments)
        if _noted is not None:
            _noted.append((self, arguments))
            return self._call_noted(arguments)
        if (loop := self._loop) is not None:
            result = loop(*arguments)
            if result is not NotImplemented:
                return result if self._made is None else self._made(*result)
        if has_numba() and (self._steps is None or "dispatcher" in self.__dict__ or not self._is_little(arguments)):
            return self.dispatcher(*arguments)
        return self._interpret(arguments)

    def _interpret(self, arguments: tuple[Any, ...]) -> Any:
        """Call the function as Python; as in compiled code, numbers of numpy overflow and divide without a word."""
        import numpy as np  # what only names a kernel does not load it

        _interpreter.is_at_work = True
        try:
            with np.errstate(all="ignore"):
                return self._function(*arguments)
        finally:
            _interpreter.is_at_work = False

    def _call_noted(self, arguments: tuple[Any, ...]) -> Any:
        """Call what numba makes. Modules name dispatchers meanwhile, then kernels again, whose calls are seen."""
        dispatcher = self.dispatcher
        for names, kernels in _replaced:
            names.update({name: each.dispatcher for name, each in kernels.items()})
        try:
            return dispatcher(*arguments)
        finally:
            for names, kernels in _replaced:
                names.update(kernels)

    def _is_little(self, arguments: tuple[Any, ...]) -> bool:
        global _steps_left
        assert self._steps is not None
        steps = self._steps(*arguments)
        if steps > _steps_left:
            return False
        _steps_left -= steps
        return True

    def __getattr__(self, name: str) -> Any:
        # what Python, or pytest in a module of tests, looks for on its own; numba asks what loops call for one
        if name.startswith("_") and name != _NUMBA_TYPE:
            raise AttributeError(name)
        return getattr(self.dispatcher, name)

    @property
    def id(self) -> str:
        """Module and name of the function."""
        return f"{self._function.__module__}.{self._function.__name__}"

    @cached_property
    def _loop(self) -> Callable[..., Any] | None:
        """What was compiled ahead of time; it returns NotImplemented for arguments that it was not compiled for."""
        return library().get(self.id)

    @cached_property
    def _made(self) -> Callable[..., Any] | None:
        """The class of named tuples that the function returns, if it does: a loop's result is a plain one."""
        named = self._function.__globals__.get(self._function.__annotations__.get("return", ""))
        return named if isinstance(named, type) and issubclass(named, tuple) else None

    @cached_property
    def dispatcher(self) -> Any:
        """What numba makes of the function, and of the kernels that its module names."""
        _listen()
        if self._sources:
            folder = Path(self._function.__code__.co_filename).parent / "__pycache__"
            forget_stale_kernels(folder, self._sources)
        made = self.__dict__["dispatcher"] = self._compile()
        names = self._function.__globals__
        kernels = {name: each for name, each in list(names.items()) if isinstance(each, Kernel)}
        if _noted is not None:
            _replaced.append((names, kernels))
        names.update({name: each.dispatcher for name, each in kernels.items()})
        return made

    def _compile(self) -> Any:
        from numba import njit  # slow to load

        if _noted is not None:  # numba keeps no code that can be linked of what it takes from its cache
            return njit(**self._options)(self._function)
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
