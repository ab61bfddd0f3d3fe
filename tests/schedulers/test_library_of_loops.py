"""Libraries of loops that are built here: what their loops accept, return and raise, and when all are built."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import numpy as np
import pytest

from gridsched.loop_library import KERNELS, PACKAGE, digest_of
from gridsched.schedulers.kernels import library

ROOT = PACKAGE.parent

LOOPS = """
from typing import NamedTuple
import numpy as np
from gridsched.compiled import compiled
from gridsched.schedulers.kernels import inner, kernel


class Pair(NamedTuple):
    values: np.ndarray
    count: np.ndarray


@inner
def added(first, second):
    return first + second


@kernel
def scaled(values, factor):
    made = np.empty(len(values))
    for k in range(len(values)):
        made[k] = added(values[k] * factor, 1.0)
    return made[: len(values) - 1]


@kernel
def counted(pair, step, is_up):
    for k in range(len(pair.count)):
        pair.count[k] += step if is_up else -step
    return Pair(pair.values, pair.count.copy())


@kernel
def ordered(matrix, only):
    row = np.sort(matrix[only])[::-1].copy()
    return row, row.sum(), int(np.argmax(row)), bool(row[0] > 3.0)


@kernel
def nothing(values, times):
    for _ in range(times):
        values[0] = np.nextafter(values[0], np.inf)


@kernel
def tail(values, first, step):
    return values[first::step] if step > 1 else values[first:]


@kernel
def looks(matrix):
    return matrix.T, matrix.view(np.int64), matrix[:1], matrix.reshape(1, 2, 2), matrix


@kernel
def either(left, nodes):
    if len(nodes) == 0:
        return float(left)
    return float(left[0]) + nodes[0]


@compiled()
def ratio(first, second):
    if second < 0:
        raise ValueError("no negative numbers", 7)
    return first // second


def call(group):
    shown = np.ones(2)
    shown.setflags(write=False)
    scaled(shown, 1.0)
    counted(Pair(np.ones(1), np.ones(1, dtype=np.int64)), 1, True)
    ordered(np.ones((2, 2)), 0)
    nothing(np.ones(1), 1)
    tail(shown, 1, 1)
    looks(np.ones((2, 2)))
    either(1, ())
    either(np.ones(1), (1.0,))
    ratio(1, 1)
"""
BUILD = """
import sys
from pathlib import Path
from gridsched.loop_library import levels_here
from gridsched.schedulers.kernels import library
import small_loops
if __name__ == "__main__":
    cpu = "x86-64" if "x86_64" in levels_here() else "generic"
    loops = library.compile_loops(small_loops.call, cpu, "small_loops", 0)
    print(library.link([loops], "small_library", Path(sys.argv[1])))
"""
pytestmark = pytest.mark.skipif(library.c_compiler() is None, reason="there is no C compiler")


@pytest.fixture(scope="module")
def loops(tmp_path_factory):
    """Return the library of the loops above."""
    folder = tmp_path_factory.mktemp("loops")
    (folder / "small_loops.py").write_text(LOOPS)
    (folder / "build.py").write_text(BUILD)
    done = subprocess.run(
        [sys.executable, folder / "build.py", folder],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{folder}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    loader = ExtensionFileLoader("small_library", done.stdout.strip())
    module = module_from_spec(spec_from_loader("small_library", loader))
    loader.exec_module(module)
    return module


def loop(loops, name):
    return getattr(loops, f"small_loops.{name}")


def test_arrays_are_read_and_made(loops):
    values = np.array([1.0, 2.5, 4.0])
    made = loop(loops, "scaled")(values, 2.0)
    assert made.tolist() == [3.0, 6.0]
    values.setflags(write=False)
    assert loop(loops, "scaled")(values, 2.0).tolist() == [3.0, 6.0]
    made[0] = 9.0  # it is the caller's


def test_named_tuples_are_read_and_arguments_returned_as_they_are(loops):
    values, count = np.array([0.5]), np.array([4, 5])
    same, copied = loop(loops, "counted")((values, count), 3, False)
    assert same is values
    assert (count.tolist(), copied.tolist()) == ([1, 2], [1, 2])
    count[0] = 8
    assert copied[0] == 1


def test_a_part_of_an_argument_is_returned_as_a_copy(loops):
    """Nothing that the caller does with it changes the argument."""
    tail, values = loop(loops, "tail"), np.array([1.0, 2.0, 3.0])
    for first, step, expected in ((1, 1, [2.0, 3.0]), (0, 2, [1.0, 3.0]), (3, 1, [])):
        made = tail(values, first, step)
        assert made.tolist() == expected
        made[:] = 9.0
        assert values.tolist() == [1.0, 2.0, 3.0]
    assert tail(values, 0, 1) is values  # all of it


def test_another_look_at_an_argument_is_returned_as_a_copy(loops):
    """Of other strides, another type, fewer rows or more dimensions; the matrix itself is returned as it is."""
    matrix = np.array([[1.0, 2.0], [3.0, 4.0]])
    *found, same = loop(loops, "looks")(matrix)
    assert same is matrix
    for made, expected in zip(found, (matrix.T, matrix.view(np.int64), matrix[:1], matrix[None]), strict=True):
        assert (made.dtype, made.tolist()) == (expected.dtype, expected.tolist())
        assert not np.shares_memory(made, matrix)


def test_several_results_are_a_tuple(loops):
    row, total, first, is_large = loop(loops, "ordered")(np.array([[1.0, 2.0], [3.0, 4.0]]), 1)
    assert (row.tolist(), total, first, is_large) == ([4.0, 3.0], 7.0, 0, True)
    assert (type(total), type(first), type(is_large)) == (float, int, bool)


def test_a_loop_that_returns_nothing(loops):
    values = np.array([1.0])
    assert loop(loops, "nothing")(values, 2) is None
    assert values[0] == math.nextafter(math.nextafter(1.0, 2.0), 2.0)


def test_each_kind_of_arguments_has_its_version(loops):
    either = loop(loops, "either")
    assert either(3, ()) == 3.0
    assert either(np.array([2.0]), (0.5,)) == 2.5


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("scaled", (np.ones(3), 2)),
        ("scaled", (np.ones(6)[::2], 2.0)),
        ("scaled", (np.ones(3, dtype=np.float32), 2.0)),
        ("scaled", (np.ones(3, dtype=">f8"), 2.0)),
        ("scaled", (np.ones((3, 1)), 2.0)),
        ("scaled", (np.ones(25, dtype=np.uint8)[1:].view(np.float64), 2.0)),
        ("scaled", ([1.0, 2.0], 2.0)),
        ("scaled", (np.ones(3),)),
        ("scaled", (np.ones(3), 2.0, 1)),
        ("counted", ((np.ones(1), np.broadcast_to(np.int64(1), 1)), 1, True)),
        ("counted", ((np.ones(1),), 1, True)),
        ("counted", ((np.ones(1), np.ones(1, dtype=np.int64)), 1, 1)),
        ("nothing", (np.ones(1), 2**63)),
        ("nothing", (np.ones(1), True)),
        ("either", (1, (1.0,))),
    ],
)
def test_what_a_loop_was_not_compiled_for_is_left_alone(loops, name, arguments):
    """Gaps, other types or places in memory, numbers beyond 64 bits, what cannot be written: another one is found."""
    assert loop(loops, name)(*arguments) is NotImplemented


def test_numbers_of_numpy_are_numbers(loops):
    assert loop(loops, "scaled")(np.ones(3), np.float64(2.0)).tolist() == [3.0, 3.0]
    assert loop(loops, "ordered")(np.ones((2, 2)), np.int64(1))[1] == 2.0
    for is_up, expected in ((np.True_, 3), (np.False_, 5)):  # from 4, by -1 or its opposite
        assert loop(loops, "counted")((np.ones(1), np.array([4])), -1, is_up)[1].tolist() == [expected]


def test_what_a_loop_raises_is_raised(loops):
    ratio = loop(loops, "ratio")
    assert ratio(7, 2) == 3
    with pytest.raises(ZeroDivisionError):
        ratio(7, 0)
    with pytest.raises(ValueError, match="no negative numbers") as raised:
        ratio(7, -1)
    assert raised.value.args == ("no negative numbers", 7)


def test_memory_is_given_back(loops):
    """Of 20,000 results of 80 kB one is there at a time; so are arguments, of which none is kept."""
    scaled, counted, tail = loop(loops, "scaled"), loop(loops, "counted"), loop(loops, "tail")
    values, count = np.ones(10_000), np.ones(1, dtype=np.int64)
    before, blocks, held = resident_mb(), sys.getallocatedblocks(), sys.getrefcount(values)
    for _ in range(20_000):
        scaled(values, 1.0)
        tail(values, 1, 1)
        counted((values, count), 1, True)
    assert resident_mb() - before < 50.0
    assert sys.getallocatedblocks() - blocks < 5_000
    assert sys.getrefcount(values) == held


def resident_mb() -> float:
    """Return what this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def test_a_library_knows_its_sources(loops):
    """Those that kernels may call; gridsched compares their digest when it loads a library."""
    sources = [PACKAGE / name for name in loops.sources.splitlines()]
    assert PACKAGE / "schedulers/kernels/availability.py" in sources
    assert loops.digest == digest_of(sources)
    assert loops.digest != digest_of(sources[1:])


# All loops are compiled at once, here those of one small group in a copy of the package.

GROUP = """
import numpy as np
from gridsched.schedulers.kernels import called_once, kernel


@kernel
def doubled(values):
    return values * 2.0


@called_once
def _call_once():
    doubled(np.ones(1))
"""
COMPILE = """
import sys
from gridsched.schedulers import kernels
kernels.groups = lambda: ("gridsched.schedulers.kernels.doubled",)
if __name__ == "__main__":
    kernels.compile_all(print)
"""
CALL = """
import sys
from gridsched.loop_library import has_library
print(has_library(), "numba" in sys.modules)
"""


@pytest.fixture
def copied(tmp_path):
    """Return a function that calls a program with a copy of the package which has nothing compiled."""
    package = tmp_path / "packages" / "gridsched"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "_loops_*.so"))
    group = package / "schedulers" / "kernels" / "doubled.py"
    group.write_text(GROUP)

    def call(text: str, **variables: str) -> list[str]:
        (tmp_path / "program.py").write_text(text)
        environment = {**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, tmp_path / "program.py"]
        done = subprocess.run(command, env=environment | variables, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    call.group, call.cache, call.package = group, tmp_path / "cache", package
    return call


def cached(copied) -> int:
    """Return of how many kernels numba's cache holds code."""
    return len(list(copied.cache.rglob("*.nbi")))


def test_a_library_is_built_once_beside_the_modules(copied):
    """Then it is used; a change of a source makes it stale, and it is built again."""
    assert copied(CALL) == ["False False"]
    (line,) = copied(COMPILE)
    assert "compiling all loops" in line
    assert copied(COMPILE) == []
    assert copied(CALL) == ["True False"]
    assert cached(copied) == 0
    with copied.group.open("a") as file:
        file.write("\n# changed\n")
    assert copied(CALL) == ["False False"]
    (line,) = copied(COMPILE)
    assert copied(CALL) == ["True False"]


def test_damaged_libraries_are_built_again(copied):
    """Cut, with a byte changed, or empty, what is kept of its groups changed too: the same library is made."""
    copied(COMPILE)
    (built,) = copied.package.glob("_loops_*.so")
    (kept,) = copied.package.glob("schedulers/kernels/__pycache__/*.loops")
    whole, parts = built.read_bytes(), kept.read_text()
    code = parts.index('"code": "') + 3000
    for content, of_parts in (
        (whole[: len(whole) // 2], parts),
        (whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:], parts),
        (b"", f"{parts[:code]}{'B' if parts[code] == 'A' else 'A'}{parts[code + 1 :]}"),
    ):
        built.write_bytes(content)
        kept.write_text(of_parts)
        assert copied(CALL) == ["False False"]
        assert copied(COMPILE)
        assert (built.read_bytes(), kept.read_text()) == (whole, parts)
        assert copied(CALL) == ["True False"]


def test_without_a_c_compiler_numba_keeps_what_it_compiles(copied):
    (line,) = copied(COMPILE, PATH="", CC="")
    assert "no C compiler" in line
    assert cached(copied) == 1
    assert copied(CALL) == ["False False"]


def test_without_numba_nothing_is_compiled(copied):
    (line,) = copied(COMPILE, **{KERNELS: "python"})
    assert "pip install 'gridsched[compile]'" in line
    assert copied(COMPILE, **{KERNELS: "python"}) == [line]


def test_what_does_the_work_of_loops_has_a_name(copied):
    """Another one is refused in one line."""
    program = "from gridsched.compiled import has_numba\ntry: has_numba()\nexcept Exception as error: print(error)"
    (line,) = copied(program, **{KERNELS: "cython"})
    assert "'cython'" in line
    assert "'numba', 'python'" in line
