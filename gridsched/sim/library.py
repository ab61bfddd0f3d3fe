"""Find and load SimGrid: the one module that imports it."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from gridsched.errors import MissingDependency

HOW_TO_INSTALL = (
    "SimGrid is not installed. Run 'make demo' in a checkout, or write 'pybind11<3' into a file F "
    "and run: PIP_CONSTRAINT=F PIP_BUILD_CONSTRAINT=F pip install 'simgrid>=4.1,<4.2' "
    "(about 6 minutes). The reference driver (--driver reference) works without it."
)


def is_installed() -> bool:
    """Whether SimGrid's Python module can be found (it is not loaded)."""
    return importlib.util.find_spec("simgrid") is not None


@contextlib.contextmanager
def _stderr_held_back() -> Iterator[list[str]]:
    """Collect what is written to file descriptor 2; SimGrid greets on every import."""
    held: list[str] = []
    sys.stderr.flush()
    saved = os.dup(2)
    reader, writer = os.pipe()
    os.dup2(writer, 2)
    os.close(writer)
    try:
        yield held
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        with os.fdopen(reader, "r", errors="replace") as stream:
            held.extend(stream.read().splitlines())


@cache
def _load() -> tuple[ModuleType, ctypes.CDLL]:
    spec = importlib.util.find_spec("simgrid")
    if spec is None:
        raise MissingDependency(HOW_TO_INSTALL)
    # The wheel's extension has no RUNPATH: load the library that lies beside it first. A SimGrid
    # of a distribution, or one with a mended RUNPATH, finds its library by itself.
    folder = Path(spec.origin).parent if spec.origin else Path()
    if spec.submodule_search_locations:
        folder = folder.parent
    beside = sorted(folder.glob("libsimgrid.so.*"), key=lambda path: len(path.name))
    try:
        with _stderr_held_back() as lines:
            if beside:
                ctypes.CDLL(str(beside[0]), mode=ctypes.RTLD_GLOBAL)
            simgrid = importlib.import_module("simgrid")

            library = ctypes.CDLL(_loaded_library(), mode=ctypes.RTLD_GLOBAL)
    except (ImportError, OSError) as error:
        raise MissingDependency(
            f"SimGrid is installed but does not load: {error}. {HOW_TO_INSTALL}"
        ) from None
    for line in lines:
        if "Configuration change" not in line:
            sys.stderr.write(f"{line}\n")
    return simgrid, library


def _loaded_library() -> str:
    """Return the path of the library that the module has loaded.

    It may be anywhere, and a distribution's package holds it under its full name only.
    """
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line[line.find("/") :]
        if "/" in line and Path(path).name.startswith("libsimgrid.so"):
            return path
    raise OSError("the module has not loaded libsimgrid.so")


def version() -> str | None:
    """Return SimGrid's version as the module says it; None where it is not installed.

    The package of a distribution may have no metadata that could be asked.
    """
    return str(load_simgrid().simgrid_version) if is_installed() else None


def load_simgrid() -> ModuleType:
    """Return SimGrid's Python module.

    Raises
    ------
    MissingDependency
        If it is missing or does not load; the message says how to install it.
    """
    return _load()[0]


def load_c_library() -> ctypes.CDLL:
    """Return the shared library behind the module, for calls the module lacks."""
    return _load()[1]


def c_function(name: str, *argument_types: type, result: type | None = None) -> Callable[..., Any]:
    """Return a function of the shared library with its argument and result types declared."""
    function = getattr(load_c_library(), name)
    function.argtypes, function.restype = list(argument_types), result
    return function
