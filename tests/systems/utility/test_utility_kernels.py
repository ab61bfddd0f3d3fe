"""Kernels: utility's, interpreted ones, and a machine that keeps no compiled ones."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from made_files import caches_and_loops

import gridsched
from gridsched.compiled import forget_stale_kernels
from gridsched.loop_library import KERNELS, has_library, library
from gridsched.model.utility import UtilityClasses, UtilityFunctions
from gridsched.schedulers.kernels import availability, batch, tables
from gridsched.schedulers.kernels.batch import MAX_MIN, MIN_MIN, SUFFERAGE
from gridsched.systems.utility.kernels.utility_value import utility_tables, utility_value, utility_values

# Utility in compiled code, and what is compiled when.

#: B1: urgency 0.1, priority 8.
INTERVALS = ([0.0, 20.0, 40.0, 60.0], [1.0, 0.6, 0.2, 0.0], [1.0, 0.5, 2.0, 1.0])
B1 = {0: 8, 3: 5.9265, 10: 4.8, 20: 4.8, 30: 2.9113, 40: 1.6, 50: 0.2165, 60: 0, 100: 0}


def values(functions: UtilityFunctions, task: int, minutes) -> np.ndarray:
    """Return the compiled values of one task."""
    elapsed = np.array(minutes, dtype=float) * 60.0
    tasks = np.full(len(elapsed), task, dtype=np.int64)
    return utility_values(utility_tables(functions), tasks, elapsed)


def mixed_functions() -> UtilityFunctions:
    """Return functions of a decaying, a purely exponential and three linear classes."""
    classes = UtilityClasses.joined(
        [
            UtilityClasses.from_intervals([INTERVALS]),
            UtilityClasses.exponential(),
            UtilityClasses.plateau_linear(5.0, 25.0),
            UtilityClasses.plateau_linear(7.0, 7.0),
            UtilityClasses.from_points([0, 3, 3, 30], [1, 0.9, 0.5, 0.1]),
        ]
    )
    priority, urgency = np.array([8.0, 8.0, 3.0, 2.0, 10.0]), np.array([0.1, 0.01, 0.0, 0.0, 0.0])
    return UtilityFunctions(priority, urgency, np.arange(5), classes)


def test_values_of_b1():
    """The worked example, and the purely exponential class."""
    functions = mixed_functions()
    assert values(functions, 0, list(B1)) == pytest.approx(list(B1.values()), abs=5e-5)
    assert values(functions, 1, [10]) == pytest.approx([7.2387], abs=5e-5)
    assert values(functions, 2, [0, 5, 15, 25, 30]) == pytest.approx([3, 3, 1.5, 0, 0])
    assert values(functions, 3, [6.99, 7, 8]) == pytest.approx([2, 0, 0])
    assert values(functions, 4, [0, 1.5, 3, 16.5, 30, 99]) == pytest.approx([10, 9.5, 5, 3, 1, 1])
    assert values(functions, 0, [math.inf]).tolist() == [0.0]


def test_compiled_values_are_those_of_the_model():
    """`utility_values` and `UtilityFunctions.value` agree to rounding."""
    functions, minutes = mixed_functions(), np.linspace(0, 130, 1301)
    for task in range(len(functions)):
        expected = functions.value(np.full(len(minutes), task), minutes * 60.0)
        assert values(functions, task, minutes) == pytest.approx(expected, rel=1e-14, abs=1e-14)


def test_a_bound_replaces_only_what_is_not_enough():
    """What is asked for is exact from `enough` on; below it lies between value and `enough`."""
    tables = utility_tables(mixed_functions())
    for tau in np.linspace(0, 70, 281):
        for enough in (0.0, 0.3, 1.0, 2.0, 4.8, 7.5):
            given = (tables.shapes, 0, 3, False, 8.0, 0.1, tau)
            exact, found = utility_value.py_func(*given), utility_value.py_func(*given, enough)
            assert found == exact or exact <= found <= enough


def test_a_changed_source_makes_cached_kernels_stale(tmp_path):
    """Only what was cached before the newest source goes; numba then compiles again."""
    times = {"first.py": 10, "changed.py": 20, "before.nbi": 19, "after.nbi": 21, "code.nbc": 5}
    for name, time in times.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time, time))
    forget_stale_kernels(tmp_path, tuple(tmp_path.glob("*.py")))
    assert {path.name for path in tmp_path.iterdir()} == set(times) - {"before.nbi"}


@pytest.mark.long  # most of two minutes where nothing is cached
def test_second_process_compiles_nothing_and_importing_neither():
    """After `warm_up` policies find their signatures, all from the cache that the process before has filled."""
    program = """
import numpy as np
from gridsched import make_scheduler, run
import gridsched.systems.utility.serial_heuristics
from gridsched.systems.utility.kernels import random_mapping
from gridsched.systems.utility.kernels import utility_value
from gridsched.systems.utility.kernels import two_stage
from gridsched.schedulers.kernels import warm_up
kernels = (two_stage.map_two_stage, random_mapping.map_randomly, utility_value.falls_short,
           utility_value.worth_postponing)
assert not any(kernel.signatures for kernel in kernels)
warm_up()
assert all(len(kernel.signatures) == 1 for kernel in kernels)
from scheduler_cases import b6_scenario, day
for name in ("max_max_upe", "max_max_upt", "max_max_util", "min_min_completion_time",
             "random_mapping"):
    run(b6_scenario(name, budget=day(150e3, 60.0)))
assert all(len(kernel.signatures) == 1 for kernel in kernels)
print(sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels))
"""
    root = Path(__file__).resolve().parents[3]
    environment = {"PYTHONPATH": f"{root}:{root / 'tests/schedulers'}", KERNELS: "numba"}
    for _ in range(2):
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "0\n"


@pytest.mark.skipif(not has_library(), reason="no library")
def test_policies_call_loops_as_the_library_has_them():
    """None is called with what it was not compiled for: numba, which would then compile it, is not loaded."""
    program = """
import sys
from gridsched import run
from scheduler_cases import b6_scenario, day
for name in ("max_max_upe", "max_max_upt", "max_max_util", "min_min_completion_time",
             "random_mapping"):
    run(b6_scenario(name, budget=day(150e3, 60.0)))
assert "gridsched.systems.utility.kernels.two_stage" in sys.modules
assert "gridsched.systems.utility.kernels.random_mapping" in sys.modules
print("numba" in sys.modules)
"""
    root = Path(__file__).resolve().parents[3]
    environment = {"PYTHONPATH": f"{root}:{root / 'tests/schedulers'}"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_a_kernel_loads_no_scipy_unless_it_multiplies_matrices(tmp_path):
    """numba asks for scipy's products of matrices when it is loaded; it gets them when it calls."""
    (tmp_path / "kernels.py").write_text(
        "import sys\n"
        "import numpy as np\n"
        "from gridsched.compiled import compiled\n"
        "summed = compiled()(lambda values: values.sum())\n"
        "product = compiled()(lambda left, right: left @ right)\n"
        "print(summed(np.ones(3)), 'scipy.linalg' in sys.modules)\n"
        "print(product(np.eye(2), np.ones((2, 2))).tolist(), 'scipy.linalg' in sys.modules)\n"
        "from scipy.linalg import cython_blas, solve\n"
        "print(cython_blas.__file__ is not None, solve(2 * np.eye(1), np.ones(1)))\n"
    )
    done = subprocess.run([sys.executable, tmp_path / "kernels.py"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["3.0 False", "[[1.0, 1.0], [1.0, 1.0]] True", "True [0.5]"]


# Kernels by a library, by numba and interpreted: the same bits. With numba they are interpreted while there is little
# to do, and no longer than that.


def interpreted(kernel, *arguments):
    """Call a kernel as Python, those that it calls with it."""
    module = sys.modules[kernel.__module__]
    kernels = {name: each for name, each in vars(module).items() if hasattr(each, "py_func")}
    vars(module).update({name: each.py_func for name, each in kernels.items()})
    try:
        return kernels[kernel.__name__].py_func(*arguments)
    finally:
        vars(module).update(kernels)


def as_compiled(kernel, *arguments):
    """Call what numba makes of a kernel."""
    return getattr(kernel, "dispatcher", kernel)(*arguments)


def from_library(kernel, *arguments):
    """Call what was compiled ahead of time, which has been compiled for these arguments."""
    result = library()[f"{kernel.__module__}.{kernel.__name__}"](*arguments)
    assert result is not NotImplemented
    return result


#: A checkout without a C compiler has no library.
CALLS = (interpreted, as_compiled, *([from_library] if has_library() else []))


def queue_of_jobs(rng):
    """Return times and widths with many equals, and what runs."""
    m, n = rng.integers(0, 12, 2)
    run_time, width = rng.choice([0.0, 10.0, 60.0, 61.5], 20), rng.integers(1, 9, 20)
    queue = np.sort(rng.choice(20, m, replace=False))
    end, nodes = rng.choice([90.0, 100.0, 110.0, 160.0, 161.5], n), rng.integers(1, 5, n)
    return queue, run_time, width, int(rng.integers(0, 10)), end, nodes


@pytest.mark.parametrize("reservations", [0, 1, availability.ALL])
@pytest.mark.parametrize("seed", range(60))
def test_backfilling_starts_the_same_jobs(reservations, seed):
    queue, *jobs = queue_of_jobs(np.random.default_rng(seed))
    found = []
    for call in CALLS:
        starts = np.full(len(queue) + 1, -1)
        count = call(availability.starts_now, reservations, 100.0, queue, *jobs, starts, ())
        found.append(starts[:count].tolist())
    assert all(each == found[0] for each in found)


def bag(rng):
    """Return the arguments of the batch kernels for a small bag, with ties and hosts of two cores."""
    table = tables.host_table([0, 1, 1, 2], [0, 0, 1, 1])
    run_time = rng.choice([1.0, 2.0, 3.3, np.inf], (3, 7), p=[0.4, 0.3, 0.2, 0.1])
    core_ready = np.sort(rng.choice([0.0, 1.0, 2.5], (4, 2)), axis=1)
    return np.arange(7), run_time, core_ready, table, tables.no_files(), 0.0


def equal(first, second):
    return all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("by_cluster", [False, True])
def test_batch_heuristics_map_the_same(seed, by_cluster):
    cases = [(batch.map_greedily, (rule,)) for rule in (SUFFERAGE, MIN_MIN, MAX_MIN)]
    for kernel, rule in [*cases, (batch.map_in_passes, ())]:
        found = [call(kernel, *bag(np.random.default_rng(seed)), by_cluster, False, *rule) for call in CALLS]
        assert all(equal(found[0], each) for each in found)


@pytest.mark.parametrize("seed", range(30))
def test_a_mapping_in_order_is_the_same(seed):
    rng = np.random.default_rng(seed)
    _, run_time, core_ready, table, *_ = bag(rng)
    about = rng.permutation(7), run_time
    rest = table.column_of, rng.choice([0.0, 0.25], 4)
    first, *others = [call(batch.map_in_order, *about, core_ready.copy(), *rest) for call in CALLS]
    assert all(np.array_equal(first, each) for each in others)


@pytest.mark.parametrize(
    ("kernels", "expected"),
    [
        ("numba", ["2", "False", "2", "True", "True"]),
        pytest.param(
            "", ["2", "False", "2", "False"], marks=pytest.mark.skipif(not has_library(), reason="no library")
        ),
        ("python", ["2", "False", "2", "False"]),
    ],
)
def test_what_is_long_is_compiled(kernels, expected):
    """A few calls load no compiler; with more of them, or one of much work, numba takes over. Nothing else loads it."""
    program = """
import sys
import numpy as np
from gridsched.schedulers.kernels.availability import ALL, starts_now
one, queue = np.ones(1), np.arange(40)
def call(reservations, n):
    jobs = np.ones(n), np.ones(n, dtype=np.int64)
    return starts_now(reservations, 0.0, np.arange(n), *jobs, 2, one, one.astype(int), np.empty(n, dtype=int), ())
print(call(1, 40), "numba" in sys.modules)
print(call(ALL, 5_000), "numba" in sys.modules)
for _ in range(30_000):
    call(1, 40)
if "numba" in sys.modules:
    print(bool(starts_now.signatures))
"""
    root = __file__.rpartition("/tests/")[0]
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={"PYTHONPATH": root, KERNELS: kernels}
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == expected


# Where nothing is writable numba finds no place for its cache; everything runs all the same.

PACKAGE = Path(gridsched.__file__).parent


def test_a_read_only_package_without_a_home(tmp_path):
    """A compiled policy on the reference driver, an interpreted one on both.

    Files are where numba would make its folders, which not even root can do then.
    """
    copy = tmp_path / "packages" / "gridsched"
    shutil.copytree(PACKAGE, copy, ignore=caches_and_loops)
    of_kernels = copy / "schedulers" / "kernels" / "__pycache__"
    shutil.rmtree(of_kernels, ignore_errors=True)
    of_kernels.touch()
    no_folder = tmp_path / "file"
    no_folder.touch()
    code = (
        "import gridsched\n"
        "from gridsched import Host, Platform, PState, Scenario, make_tasks, run\n"
        "from gridsched.schedulers.kernels import all_are_cached\n"
        "from gridsched.schedulers.kernels.batch import occupy\n"
        "from gridsched.drivers.simgrid_library import is_installed\n"
        "platform = Platform((Host('h', (PState(10.0, 1.0, 2.0, 3.0),)),))\n"
        "for driver in ['reference', 'simgrid'][: 1 + is_installed()]:\n"
        "    result = run(Scenario(platform, make_tasks([100.0]), 'wq', driver=driver))\n"
        "    print(result.summary()['makespan_s'])\n"
        "import numpy as np\n"
        "ready = np.zeros((1, 2))\n"
        "occupy(ready, 0, 5.0)\n"
        "print(gridsched.__file__, all_are_cached(), ready.tolist())\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(copy.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(no_folder),
        "XDG_CACHE_HOME": str(no_folder),
        "NUMBA_CACHE_DIR": str(no_folder / "numba"),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    *makespans, state = done.stdout.splitlines()
    assert set(makespans) == {"10.0"}
    assert state == f"{copy / '__init__.py'} False [[0.0, 5.0]]"
