"""Which library of loops a kernel finds, and what it does with it. A module in Python takes the place of one."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import gridsched
from gridsched import long_work, loop_library
from gridsched.compiled import Kernel
from gridsched.loop_library import PACKAGE, digest_of, has_library, levels_here, library, sealed

NAMES = f"{__name__}.paired", f"{__name__}.halved"


class Halves(NamedTuple):
    first: float
    second: float


def paired(number: float) -> Halves:
    return Halves(number, number)


def halved(number: float) -> float:
    return number / 2


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """Return a function that puts a library beside the package's modules, of some digest."""

    def put(digest: str, damage: Callable[[bytes], bytes] = bytes, above: str = "") -> Path:
        text = (
            f"{above}sources, digest = 'loop_library.py', {digest!r}\n"
            f"globals()[{NAMES[0]!r}] = lambda number: (number / 4, number * 4)\n"
            f"globals()[{NAMES[1]!r}] = lambda number: 7.0 if isinstance(number, float) else NotImplemented\n"
        )
        file = tmp_path / "_loops_tried.py"
        file.write_bytes(damage(sealed(text.encode())))
        importlib.invalidate_caches()
        return file

    monkeypatch.setattr(gridsched, "__path__", [*gridsched.__path__, str(tmp_path)])
    monkeypatch.setattr(loop_library, "levels_here", lambda: ("missing", "tried"))
    library.cache_clear()
    yield put
    library.cache_clear()
    sys.modules.pop("gridsched._loops_tried", None)


def kernels():
    """Return kernels that are interpreted where no library has them."""
    return [Kernel(function, (), {}, steps=lambda *_: 0) for function in (paired, halved)]


def test_a_library_of_these_sources_is_called(shipped):
    """It returns plain tuples, the kernel what its function returns; what it refuses is done as without it."""
    shipped(digest_of([PACKAGE / "loop_library.py"]))
    pair, half = kernels()
    assert pair(8.0) == Halves(2.0, 32.0)
    assert isinstance(pair(8.0), Halves)
    assert half(8.0) == 7.0
    assert half(8) == 4.0
    assert has_library()


def test_a_library_of_other_sources_is_not_called(shipped):
    shipped("0" * 32)
    pair, half = kernels()
    assert (pair(8.0), half(8.0)) == (Halves(8.0, 8.0), 4.0)
    assert not has_library()


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-1],
        lambda content: content[:40],
        lambda content: content.replace(b"7.0", b"8.0"),
        lambda content: content[:-3] + b"x" + content[-2:],
        lambda content: content + b"#",
    ],
    ids=["empty", "shorter by a byte", "cut", "changed", "seal changed", "longer"],
)
def test_a_damaged_library_is_not_loaded(shipped, monkeypatch, damage):
    """One line names it, once; the work is done without it."""
    said = []
    monkeypatch.setattr(long_work, "reporters", [said.append])
    file = shipped(digest_of([PACKAGE / "loop_library.py"]), damage)
    pair, half = kernels()
    assert (pair(8.0), half(8.0)) == (Halves(8.0, 8.0), 4.0)
    assert not has_library()
    (line,) = said
    assert str(file) in line
    assert "kernels compile" in line


def test_a_library_that_cannot_be_imported_is_reported(shipped, monkeypatch):
    """It is whole, but what it needs is missing."""
    said = []
    monkeypatch.setattr(long_work, "reporters", [said.append])
    shipped(digest_of([PACKAGE / "loop_library.py"]), above="import a_library_that_is_missing\n")
    _, half = kernels()
    assert half(8.0) == 4.0
    assert "a_library_that_is_missing" in said[0]


def test_a_look_for_a_private_name_makes_no_compiler_of_a_kernel():
    """pytest asks what a module of tests imports for such names; a library would not be called from then on."""
    kernel, _ = kernels()
    assert not hasattr(kernel, "_of_pytest")
    assert "dispatcher" not in vars(kernel)


def test_every_processor_has_a_level():
    assert levels_here()
