"""Compiled inner loops of schedulers: cached, and dividing as numpy does. Importing this package compiles nothing."""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from gridsched import long_work
from gridsched.compiled import all_are_cached, compiled, has_numba, interpret_nothing
from gridsched.extras import how_to_install
from gridsched.loop_library import KERNELS, PACKAGE, has_library, levels_here, may_have_library
from gridsched.plugins import all_plugins, harmless, report

_HERE = Path(__file__).parent
#: What kernels of any folder may call.
_SHARED = (*_HERE.glob("*.py"), *(PACKAGE / "model").glob("*.py"), PACKAGE / "energy.py", PACKAGE / "compiled.py")


class Kernels:
    """Decorators for the compiled loops of a folder; a change of one of its files makes them stale.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self._sources = tuple(dict.fromkeys((*folder.glob("*.py"), *_SHARED)))
        # without _nrt it would take that of the function that calls it
        self.kernel = compiled(sources=self._sources, error_model="numpy", _nrt=True)
        #: For functions that are called from kernels only and make no arrays. numba then counts no
        #: references to the arrays they get, which costs as much as their work; its own string
        #: functions are compiled so.
        self.inner = compiled(sources=self._sources, error_model="numpy", _nrt=False)

    def interpreted_at_first(self, steps: Callable[..., int]) -> Callable[[Callable[..., Any]], Any]:
        """Return the decorator `kernel` for functions that are interpreted while there is little to do."""
        return compiled(sources=self._sources, steps=steps, error_model="numpy", _nrt=True)


_OWN = Kernels(_HERE)
kernel, inner, interpreted_at_first = _OWN.kernel, _OWN.inner, _OWN.interpreted_at_first

#: Module whose import means that a group of kernels will be used -> what calls these.
_CALLED_ONCE: dict[str, Callable[[], None]] = {}
_CORE = tuple(
    f"gridsched.schedulers.kernels.{name}"
    for name in ("availability_of_nodes", "batch", "slurm_passes", "availability")
)
_warm: set[str] = set()
_NO_NUMBA = f"numba is not installed ({how_to_install('numba')}), or {KERNELS} switches it off"


def called_once(call: Callable[[], None]) -> Callable[[], None]:
    """Declare that a function calls the kernels once that will be used where its module is imported."""
    _CALLED_ONCE[call.__module__] = call
    return call


def warm_up() -> None:
    """Call the kernels of what has been imported once, so that later calls find them compiled.

    Kernels of schedulers that are not used are neither compiled nor loaded. Without a cache
    it would take half a minute in each process: those then compile what they use.
    """
    for name in list(_CALLED_ONCE):
        if name not in _warm:
            compile_group(name)
            _warm.add(name)


def groups() -> tuple[str, ...]:
    """Return the modules whose import means that a group of kernels will be used, slowest first."""
    names = []
    for plugin in all_plugins():
        for name in plugin.kernels:
            with harmless(plugin.name, f"adds no loops of {name!r}"):
                importlib.import_module(name)
                if name in _CALLED_ONCE:
                    names.append(name)
                else:
                    report(f"Plugin {plugin.name!r}: {name!r} declares no loops by called_once: it is left out.")
    return (*names, *_CORE)


def compile_all(report: Callable[[str], None]) -> None:
    """Compile all kernels, on all CPUs: into a library beside the package's modules, else into numba's cache.

    The library needs a C compiler. A current one is left as it is.

    Parameters
    ----------
    report : callable
        Called with a line on what is done, or why it is not.
    """
    if has_library():
        return
    if not has_numba():
        report(f"no loop is compiled: {_NO_NUMBA}")
    elif not (may_have_library() and _build_library(report)):
        _fill_cache()


def _build_library(report: Callable[[str], None]) -> bool:
    """Build the library for this processor; return whether it could be."""
    from gridsched.schedulers.kernels.library import MINUTES_OF_CPU, build, needed_compiler  # not needed in a run

    try:
        needed_compiler()
        if not os.access(PACKAGE, os.W_OK):
            raise OSError(f"{PACKAGE} is read-only")
        n = len(os.sched_getaffinity(0))
        minutes = math.ceil(MINUTES_OF_CPU / n)
        report(f"compiling all loops of schedulers on {n} CPUs: about {minutes} min, once")
        build(groups(), call_group, levels_here()[0], PACKAGE)
    except OSError as error:
        report(f"no library of loops is built, numba compiles each at its first use: {' '.join(str(error).split())}")
        return False
    return True


def _fill_cache() -> None:
    """Let numba compile each group in a process of its own: those that start together would compile the same."""
    from concurrent.futures import ProcessPoolExecutor  # to run a scheduler takes none

    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(compile_group, groups()))


def call_group(name: str) -> None:
    """Call the kernels of one of the `groups` once; its module must have been imported."""
    _CALLED_ONCE[name]()


def compile_group(name: str) -> None:
    """Call the kernels of one of the `groups` once, if what is compiled then lasts."""
    importlib.import_module(name)
    if has_library() or not has_numba():
        return
    interpret_nothing()
    if all_are_cached():
        call_group(name)


@cache
def report_interpreter() -> None:
    """Report, once, that the kernels of schedulers that have been imported are interpreted, where they are."""
    if _CALLED_ONCE and not has_numba() and not has_library():
        long_work.report(
            f"the loops of schedulers are interpreted, which is slow: no library holds them, and {_NO_NUMBA}"
        )
