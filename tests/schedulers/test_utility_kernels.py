"""Utility in compiled code, and what is compiled when."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gridsched.compiled import forget_stale_kernels
from gridsched.model.utility import UtilityFunctions
from gridsched.model.utility_classes import UtilityClasses
from gridsched.schedulers.kernels.utility_value import utility_tables, utility_value, utility_values

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
    """Only what was cached before the newest source goes; numba then compiles anew."""
    times = {"first.py": 10, "changed.py": 20, "before.nbi": 19, "after.nbi": 21, "code.nbc": 5}
    for name, time in times.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time, time))
    forget_stale_kernels(tmp_path, tuple(tmp_path.glob("*.py")))
    assert {path.name for path in tmp_path.iterdir()} == set(times) - {"before.nbi"}


def test_second_process_compiles_nothing_and_importing_neither():
    """After `warm_up` policies find their signatures, all from the cache that a command fills."""
    program = """
import numpy as np
from gridsched import make_scheduler, run
import gridsched.schedulers.utility
from gridsched.schedulers.kernels import random_mapping, two_stage, utility_value, warm_up
kernels = (two_stage.map_two_stage, random_mapping.map_randomly, utility_value.falls_short,
           utility_value.worth_postponing)
assert not any(kernel.signatures for kernel in kernels)
warm_up()
assert all(len(kernel.signatures) == 1 for kernel in kernels)
from utility_cases import b6_scenario, day
for name in ("max_max_upe", "max_max_upt", "max_max_util", "min_min_completion_time",
             "random_mapping"):
    run(b6_scenario(name, budget=day(150e3, 60.0)))
assert all(len(kernel.signatures) == 1 for kernel in kernels)
print(sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels))
"""
    here = Path(__file__).resolve().parent
    environment = {"PYTHONPATH": f"{here.parents[1]}:{here}"}
    for words in (["-m", "gridsched", "kernels", "compile"], ["-c", program]):
        command = [sys.executable, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "0\n"


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
