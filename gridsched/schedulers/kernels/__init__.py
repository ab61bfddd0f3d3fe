"""Compiled inner loops of schedulers: cached, and dividing as numpy does. Importing this package compiles nothing."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gridsched.compiled import all_are_cached, compiled, has_numba, interpret_nothing

_HERE = Path(__file__).parent
_PACKAGE = _HERE.parents[1]

_SOURCES = (*_HERE.glob("*.py"), *(_PACKAGE / "model").glob("*.py"), _PACKAGE / "energy.py", _PACKAGE / "compiled.py")

kernel = compiled(sources=_SOURCES, error_model="numpy")


def interpreted_at_first(steps: Callable[..., int]) -> Callable[[Callable[..., Any]], Any]:
    """Return the decorator `kernel` for functions that are interpreted while there is little to do."""
    return compiled(sources=_SOURCES, steps=steps, error_model="numpy")


#: For functions that are called from kernels only and make no arrays. numba then counts no
#: references to the arrays they get, which costs as much as their work; its own string functions
#: are compiled so.
inner = compiled(sources=_SOURCES, error_model="numpy", _nrt=False)

_warm: set[str] = set()


def warm_up() -> None:
    """Call the kernels of what has been imported once, so that later calls find them compiled.

    Kernels of schedulers that nobody has asked for are neither compiled nor loaded. Without a cache
    it would take half a minute in each process: those then compile what they use.
    """
    for name in groups():
        if name in sys.modules and name not in _warm:
            compile_group(name)
            _warm.add(name)


def groups() -> tuple[str, ...]:
    """Return the modules whose import says that a group of kernels will be used, slowest first."""
    return tuple(_CALLED_ONCE)


def compile_all() -> None:
    """Compile all kernels into numba's cache, each group in a process of its own on all CPUs.

    Processes that start together where nothing is compiled would each compile the same.
    """
    from concurrent.futures import ProcessPoolExecutor  # to run a scheduler takes none

    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(compile_group, groups()))


def compile_group(name: str) -> None:
    """Call the kernels of one of the `groups` once, if what is compiled then lasts."""
    importlib.import_module(name)
    if not has_numba():
        return
    interpret_nothing()
    if all_are_cached():
        _CALLED_ONCE[name]()


def _warm_up_batch() -> None:
    """Call the kernels of bags once."""
    import numpy as np

    from gridsched.schedulers.kernels import batch, tables

    table, files = tables.host_table([0], [0]), tables.no_files()
    for by_cluster in (False, True):
        for kernel, rule in ((batch.map_greedily, (batch.SUFFERAGE,)), (batch.map_in_passes, ())):
            kernel(
                np.zeros(1, dtype=np.int64),
                np.ones((1, 1)),
                np.zeros((1, 1)),
                table,
                files,
                0.0,
                by_cluster,
                True,
                *rule,
            )
    order = np.zeros(1, dtype=np.int64)
    batch.map_in_order(order, np.ones((1, 1)), np.zeros((1, 1)), table.column_of, np.zeros(1))


def _warm_up_backfilling() -> None:
    """Call the kernels of parallel jobs once."""
    import numpy as np

    from gridsched.schedulers.kernels.availability import starts_now

    queue, jobs = np.arange(3), (np.ones(3), np.array([1, 2, 1]))
    running = np.ones(1), np.ones(1, dtype=np.int64)
    for array in (queue, *running):  # as a state gives them
        array.setflags(write=False)
    starts_now(1, 0.0, queue, *jobs, 2, *running, np.arange(3), ())


def _warm_up_slurm() -> None:
    """Call the kernels of Slurm's schedulers once."""
    import numpy as np

    from gridsched.schedulers.kernels.slurm_passes import Machine, Running, Starts, backfill_pass, main_pass

    def one(value: int = 1) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.full(1, value)

    demand, anywhere, width, partition = np.ones((3, 1), dtype=np.int64), np.zeros(3, dtype=np.bool_), one(), one(0)
    width, partition = np.repeat(width, 3), np.repeat(partition, 3)
    for array in (demand, anywhere, width, partition):  # as a state gives them
        array.setflags(write=False)
    machine = Machine(
        demand, anywhere, width, np.ones(3), partition, one(0), np.arange(2), one(0), one(), one()[:0], np.empty((2, 0))
    )
    starts = Starts(
        np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64), np.zeros((2, 4), dtype=np.int64), np.empty(3)
    )
    left = np.ones((1, 1), dtype=np.int64)
    main_pass(machine, 0.0, np.arange(2), left.copy(), starts)
    room = np.zeros(4, dtype=np.int64)
    running = Running(
        np.zeros(4), room, room.copy(), room.copy(), np.zeros((2, 4), dtype=np.int64), np.zeros(2, np.int64)
    )
    backfill_pass(machine, 0.0, np.arange(2), left, running, 1.0, 1.0, 0.0, 0.0, True, starts)


def _warm_up_utility() -> None:
    """Call the kernels of utility workloads once."""
    import numpy as np

    from gridsched.model.utility import UtilityFunctions
    from gridsched.schedulers.kernels import random_mapping, two_stage
    from gridsched.schedulers.kernels.tables import UPE, type_tables
    from gridsched.schedulers.kernels.utility_value import falls_short, utility_tables, worth_postponing

    matrix, task_type = np.ones((1, 1, 1)), np.zeros(1, dtype=np.int64)
    tasks, ready, arrival = np.zeros(1, dtype=np.int64), np.zeros(1), np.zeros(1)
    tables = type_tables(matrix, matrix, np.zeros(1, dtype=np.int64), UPE)
    functions = utility_tables(UtilityFunctions.exponential([1.0], 0.1))
    about = tables, functions, task_type, arrival
    limits = 1.0, 1.0, 1.0, np.empty((3, 0))
    falls_short(*about, tasks, ready, 0.5)
    worth_postponing(*about, tasks, 1.0, 0.5)
    two_stage.map_two_stage(UPE, *about, tasks, ready, *limits)
    random_mapping.map_randomly(tables, task_type, tasks, np.zeros(1), ready, *limits)


def _warm_up_clusters() -> None:
    """Call the kernels of parallel tasks with utility functions once."""
    import numpy as np

    from gridsched.model.utility import UtilityFunctions
    from gridsched.schedulers.kernels import parallel_greedy, parallel_queues
    from gridsched.schedulers.kernels.node_profile import Reserved, cluster_nodes, node_profile
    from gridsched.schedulers.kernels.parallel_options import UPE, ParallelLimits, ParallelRows
    from gridsched.schedulers.kernels.utility_value import utility_tables, utility_values

    one, whole = np.ones(1), np.ones(1, dtype=np.int64)
    matrix, row = np.ones((1, 1, 1)), np.zeros(1, dtype=np.int64)
    functions = utility_tables(UtilityFunctions.exponential([1.0], 0.1))
    nodes, rows = cluster_nodes([row], 1), ParallelRows(matrix, matrix, matrix, whole[None], one, whole)
    reserved = Reserved(one + 1, one + 2, np.arange(2), row)
    limits = ParallelLimits(1.0, 1.0, 1.0, 1.0, 1.0, np.empty((3, 0)))
    profile = node_profile(nodes, one, reserved)
    utility_values(functions, row, one)
    about = nodes, profile, rows
    placed = parallel_greedy.map_parallel(UPE, UPE, 0.0, 1.0, 1.0, *about, functions, limits)
    parallel_greedy.placed_energy_j(nodes, rows, placed, limits)
    parallel_queues.place_in_cycles(*about, row, whole, limits, False)
    parallel_queues.place_easily(*about, False, limits, False)
    parallel_queues.place_randomly(*about, np.zeros((1, 1)), limits)


def _warm_up_chances() -> None:
    """Call the kernels of uncertain run times once."""
    import numpy as np

    from gridsched.model import pmf_kernels
    from gridsched.model.pmf import PmfGrid, point_mass

    table = PmfGrid(1.0, np.ones((1, 1, 1)), lambda *place: point_mass(1.0, 1.0)).table(0)
    hosts, host_type = pmf_kernels.empty_host_table(1), np.zeros(1, dtype=np.int64)
    pmf_kernels.let_pass(hosts, table, 0.0)
    pmf_kernels.mean_ready(hosts, table, 0.0)
    pmf_kernels.late_masses(hosts, table, host_type, 0, 0.0, 1.0)
    pmf_kernels.late_mass_of_sum(np.ones(1), np.ones(2), np.ones(2), 0.0, 1.0, 1.0)
    pmf_kernels.convolved(np.ones(1), np.ones(1))


#: Module whose import says that the kernels will be used -> what calls these, slowest first.
_CALLED_ONCE = {
    "gridsched.schedulers.kernels.parallel_greedy": _warm_up_clusters,
    "gridsched.schedulers.kernels.random_mapping": _warm_up_utility,
    "gridsched.schedulers.kernels.batch": _warm_up_batch,
    "gridsched.schedulers.kernels.slurm_passes": _warm_up_slurm,
    "gridsched.schedulers.kernels.availability": _warm_up_backfilling,
    "gridsched.schedulers.deadline": _warm_up_chances,
}
