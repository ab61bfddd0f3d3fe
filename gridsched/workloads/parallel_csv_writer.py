"""Write clusters and parallel tasks as CSV files that `parallel_csv` reads back exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gridsched.model.parallel_estimates import types_that_run
from gridsched.model.tasks import Tasks
from gridsched.workloads.parallel_csv import (
    CLUSTERS,
    ENTRIES,
    TASK_TYPES,
    Entries,
    TabulatedTimes,
)
from gridsched.workloads.parallel_system import ParallelSystem
from gridsched.workloads.typed_csv_writer import class_columns, task_columns, write_tables

#: What `write_parallel_files` writes beside the tasks.
PARALLEL_PARTS = ("clusters", "etc", "task_types", "classes")


def write_parallel_files(
    system: ParallelSystem, tasks: Tasks, path: str | Path, settings: dict[str, object], *,
    force: bool = False,
) -> list[Path]:  # fmt: skip
    """Write tasks, and beside them clusters, ETC, task types, utility classes and a TOML.

    Times are listed for the numbers of nodes that these tasks take, and for the fewest, most and
    mean cores of each type. What was read from a table is written as it stood there.

    Parameters
    ----------
    system : ParallelSystem
    tasks : Tasks
        With task types, widths and utility functions.
    path : path
        CSV of the tasks; the others' names begin with its stem.
    settings : dict
        Further keys of the TOML.
    force : bool
        Replace existing files.

    Returns
    -------
    list of Path

    Raises
    ------
    InputError
        If a file exists and `force` is not set, or cannot be written.
    """
    assert tasks.utility is not None  # a parallel day has it
    clusters, types = system.clusters, (system.type_names, *system.cores.T)
    sizes = (clusters.names, clusters.nodes, clusters.cores_per_node)
    tables = (
        dict(zip(CLUSTERS, sizes, strict=True)),
        _entry_columns(system, _entries(system, tasks)),
        dict(zip(TASK_TYPES, types, strict=True)),
        class_columns(tasks.utility.classes),
    )
    columns = {**task_columns(tasks, system.type_names), "cores": tasks.width}
    return write_tables(
        columns, dict(zip(PARALLEL_PARTS, tables, strict=True)), path,
        {"kind": "parallel", **settings}, force=force,
    )  # fmt: skip


def _entries(system: ParallelSystem, tasks: Tasks) -> Entries:
    """Return the times to be listed, of each type on each cluster that runs it."""
    if isinstance(system.times, TabulatedTimes):
        return system.times.entries
    assert tasks.width is not None  # a parallel day has it
    clusters = system.clusters
    found: Entries = {}
    for i, runs in enumerate(types_that_run(system.node_power_w)):
        cores = np.concatenate(
            [tasks.width[tasks.task_type == i], system.cores[i], system.typical_cores[i : i + 1]]
        )
        # a type needs an entry where all its tasks are too wide, too: that of the whole cluster
        taken = np.minimum(clusters.nodes_for(cores), clusters.nodes)
        for c in np.flatnonzero(runs).tolist():
            listed = np.unique(taken[:, c])
            nodes = np.repeat(listed[:, None], len(clusters.names), axis=1)
            times = system.times.time_s(np.full(len(listed), i), nodes)
            found[i, c] = listed, times[:, c].T
    return found


def _entry_columns(system: ParallelSystem, entries: Entries) -> dict[str, Any]:
    rows = [
        (system.type_names[i], system.clusters.names[c], k, n, time_s, power_w)
        for (i, c), (listed, times) in entries.items()
        for k, power_w in enumerate(system.node_power_w[i, c].tolist())
        for n, time_s in zip(listed.tolist(), times[k].tolist(), strict=True)
    ]
    return dict(zip(ENTRIES, zip(*rows, strict=True), strict=True))
