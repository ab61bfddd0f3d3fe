"""Which library of loops a kernel finds, and what it does with it. A module in Python takes the place of one."""

from __future__ import annotations

import importlib
import sys
from typing import NamedTuple

import pytest

import gridsched
from gridsched import loop_library
from gridsched.compiled import Kernel
from gridsched.loop_library import PACKAGE, digest_of, has_library, levels_here, library

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

    def put(digest: str) -> None:
        (tmp_path / "_loops_tried.py").write_text(
            f"sources, digest = 'loop_library.py', {digest!r}\n"
            f"globals()[{NAMES[0]!r}] = lambda number: (number / 4, number * 4)\n"
            f"globals()[{NAMES[1]!r}] = lambda number: 7.0 if isinstance(number, float) else NotImplemented\n"
        )
        importlib.invalidate_caches()

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


def test_a_look_for_a_private_name_makes_no_compiler_of_a_kernel():
    """pytest asks what a module of tests imports for such names; a library would not be called from then on."""
    kernel, _ = kernels()
    assert not hasattr(kernel, "_of_pytest")
    assert "dispatcher" not in vars(kernel)


def test_every_processor_has_a_level():
    assert levels_here()
