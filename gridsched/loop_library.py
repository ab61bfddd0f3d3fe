"""The library of loops that were compiled ahead of time: which one fits this processor and these sources."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from platform import machine
from typing import Any, NamedTuple

from gridsched import long_work
from gridsched.errors import InputError

#: Environment variable that names what executes loops: ``numba``, even where there is a library, or ``python``, the
#: interpreter. Without it a library does, else numba, else the interpreter.
KERNELS = "GRIDSCHED_KERNELS"
NUMBA, PYTHON = "numba", "python"
PACKAGE = Path(__file__).parent


class Level(NamedTuple):
    """Processors for which loops are compiled.

    Attributes
    ----------
    cpu : str
        LLVM's name of the least of them.
    flags : frozenset of str
        What Linux must list of a processor.
    """

    cpu: str
    flags: frozenset[str]


_V3 = frozenset(["avx", "avx2", "abm", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"])
#: Levels of this machine's architecture, the quickest first; the last is of all its processors.
LEVELS = (
    {"x86_64_v3": Level("x86-64-v3", _V3), "x86_64": Level("x86-64", frozenset())}
    if machine() == "x86_64"
    else {"generic": Level("generic", frozenset())}
)


def _processor_flags() -> frozenset[str]:
    """Return what Linux lists of this processor; nothing on another system, where only the last level is certain."""
    try:
        with open("/proc/cpuinfo") as lines:
            line = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        return frozenset()
    return frozenset(line.partition(":")[2].split())


def levels_here() -> tuple[str, ...]:
    """Return the levels that this processor belongs to, the quickest first."""
    flags = _processor_flags()
    return tuple(name for name, level in LEVELS.items() if level.flags <= flags)


def library_name(level: str) -> str:
    """Return the module of the package that holds the loops for a level."""
    return f"_loops_{level}"


def digest_of(files: Iterable[Path]) -> str:
    """Return a digest of files of the package."""
    digest = blake2b(digest_size=16)
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.relative_to(PACKAGE)} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


#: Ends the file of a library: a digest of all before it. Loading a damaged one can kill the process.
_SEAL = b"\n# gridsched's loops: %032x\n"


def sealed(content: bytes) -> bytes:
    """Return the content of a library's file with the seal that `library` asks for."""
    return content + _seal(content)


def _seal(content: bytes | memoryview) -> bytes:
    return _SEAL % int.from_bytes(blake2b(content, digest_size=16).digest(), "big")


def _fault(file: Path) -> str | None:
    """Return why a library cannot be loaded; None if it is as it was compiled."""
    try:
        content = file.read_bytes()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    size = len(_SEAL % 0)
    is_whole = content[-size:] == _seal(memoryview(content)[:-size])
    return None if is_whole else "is damaged, or of an older gridsched"


@cache
def asked_for() -> str:
    """Return what the variable `KERNELS` asks for; nothing where it is not set.

    Raises
    ------
    InputError
        If that has another value.
    """
    value = os.environ.get(KERNELS, "")
    if value not in ("", NUMBA, PYTHON):
        raise InputError(f"The variable {KERNELS} is {value!r}; it may be {NUMBA!r}, {PYTHON!r} or not set.")
    return value


def may_have_library() -> bool:
    """Whether loops that were compiled ahead of time may be used."""
    return not asked_for()


@cache
def library() -> Mapping[str, Any]:
    """Return the loops that were compiled ahead of time for this processor, by id; none if there are none.

    A library of other sources than those that are here counts for nothing, and so does one that is damaged, which
    a line reports.
    """
    for level in levels_here() if may_have_library() else ():
        name = f"{__package__}.{library_name(level)}"
        if (spec := find_spec(name)) is None or spec.origin is None:
            continue
        if (fault := _fault(Path(spec.origin))) is None:
            try:
                found = import_module(name)
            except ImportError as error:
                fault = f"cannot be loaded: {error}"
            else:
                sources = [PACKAGE / source for source in found.sources.splitlines()]
                if all(file.exists() for file in sources) and digest_of(sources) == found.digest:
                    return vars(found)
                continue
        long_work.report(
            f"the library of loops {spec.origin} {fault}: loops run without it, which is slower; 'gridsched kernels "
            "compile' makes it again"
        )
    return {}


def has_library() -> bool:
    """Whether loops were compiled ahead of time for this processor, from the sources that are here."""
    return bool(library())
