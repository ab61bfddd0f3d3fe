"""Kernels that are interpreted while there is little to do: the same bits, and no longer than that."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from gridsched.schedulers.kernels import backfilling, batch, tables
from gridsched.schedulers.kernels.batch import MAX_MIN, MIN_MIN, SUFFERAGE


def interpreted(kernel, *arguments):
    """Call a kernel as Python, those that it calls with it."""
    module = sys.modules[kernel.__module__]
    compiled = {name: each for name, each in vars(module).items() if hasattr(each, "py_func")}
    vars(module).update({name: each.py_func for name, each in compiled.items()})
    try:
        return compiled[kernel.__name__].py_func(*arguments)
    finally:
        vars(module).update(compiled)


def as_compiled(kernel, *arguments):
    """Call what numba makes of a kernel."""
    return getattr(kernel, "dispatcher", kernel)(*arguments)


def queue_of_jobs(rng):
    """Return times and widths with many equals, and what runs."""
    m, n = rng.integers(0, 12, 2)
    run_time, width = rng.choice([0.0, 10.0, 60.0, 61.5], 20), rng.integers(1, 9, 20)
    queue = np.sort(rng.choice(20, m, replace=False))
    end, nodes = rng.choice([90.0, 100.0, 110.0, 160.0, 161.5], n), rng.integers(1, 5, n)
    return queue, run_time, width, int(rng.integers(0, 10)), end, nodes


@pytest.mark.parametrize("rule", [backfilling.easy_starts, backfilling.conservative_starts])
@pytest.mark.parametrize("seed", range(60))
def test_backfilling_starts_the_same_jobs(rule, seed):
    queue, *jobs = queue_of_jobs(np.random.default_rng(seed))
    found = []
    for call in (interpreted, as_compiled):
        starts = np.full(len(queue) + 1, -1)
        count = call(rule, 100.0, queue, *jobs, starts)
        found.append(starts[:count].tolist())
    assert found[0] == found[1]


def test_fcfs_starts_the_same_jobs():
    for seed in range(60):
        queue, _, width, n_free, _, _ = queue_of_jobs(np.random.default_rng(seed))
        starts = np.empty((2, len(queue)), dtype=np.int64)
        first = interpreted(backfilling.fcfs_starts, queue, width, n_free, starts[0])
        assert first == as_compiled(backfilling.fcfs_starts, queue, width, n_free, starts[1])
        assert (starts[0, :first] == starts[1, :first]).all()


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
        fresh = [(*bag(np.random.default_rng(seed)), by_cluster, False, *rule) for _ in range(2)]
        assert equal(interpreted(kernel, *fresh[0]), as_compiled(kernel, *fresh[1]))


@pytest.mark.parametrize("seed", range(30))
def test_a_mapping_in_order_is_the_same(seed):
    rng = np.random.default_rng(seed)
    _, run_time, core_ready, table, *_ = bag(rng)
    about = rng.permutation(7), run_time
    rest = table.column_of, rng.choice([0.0, 0.25], 4)
    first = interpreted(batch.map_in_order, *about, core_ready.copy(), *rest)
    assert np.array_equal(first, as_compiled(batch.map_in_order, *about, core_ready, *rest))


def test_what_is_long_is_compiled():
    """A few calls load no compiler; with more of them, or one of much work, numba takes over."""
    program = """
import sys
import numpy as np
from gridsched.schedulers.kernels import backfilling
one, queue = np.ones(1), np.arange(40)
def call(rule, n):
    jobs = np.ones(n), np.ones(n, dtype=np.int64)
    return rule(0.0, np.arange(n), *jobs, 2, one, one.astype(int), np.empty(n, dtype=int))
print(call(backfilling.easy_starts, 40), "numba" in sys.modules)
print(call(backfilling.conservative_starts, 5_000), "numba" in sys.modules)
for _ in range(30_000):
    call(backfilling.easy_starts, 40)
print(bool(backfilling.easy_starts.signatures))
"""
    root = __file__.rpartition("/tests/")[0]
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": root})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["2", "False", "2", "True", "True"]
