"""Clusters, tabulated times and powers of parallel tasks, and such tasks, from CSV."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError, counted
from gridsched.files.csv_files import Format, Number, Table, Text, Whole
from gridsched.model.parallel_estimates import types_that_run
from gridsched.model.tasks import Tasks
from gridsched.model.utility import UtilityFunctions
from gridsched.systems.utility.parallel_day import ParallelDay
from gridsched.systems.utility.parallel_system import Clusters, Demand, ParallelSystem, stream_of_types
from gridsched.systems.utility.sampled_utility import draw_priorities
from gridsched.workloads.generator_keys import MAX_MACHINES
from gridsched.workloads.typed_csv import MAX_PSTATES, TASKS, class_columns, task_columns, write_tables

#: Task type, cluster -> numbers of nodes, ascending, and times [s], shape (P-states, numbers).
Entries = dict[tuple[int, int], tuple[Integers, Floats]]

_NAME = Text(is_name=True)
#: More cores than this have no node and no task.
MAX_CORES = 10**9
CLUSTERS = Format(
    {"cluster": _NAME, "nodes": Whole(1, MAX_MACHINES), "cores_per_node": Whole(1, MAX_CORES)},
    key=("cluster",),
    rows="clusters",
)
ENTRIES = Format(
    {
        "task_type": _NAME,
        "cluster": Text(),
        "pstate": Whole(0, MAX_PSTATES - 1),
        "nodes": Whole(1, MAX_MACHINES),
        "time_s": Number(above=True),
        "power_w": Number(),
    },
    key=("task_type", "cluster", "pstate", "nodes"),
    rows="entries",
)
TASK_TYPES = Format(
    {"task_type": _NAME, "least_cores": Whole(1, MAX_CORES), "most_cores": Whole(1, MAX_CORES)}, key=("task_type",)
)
PARALLEL_TASKS = Format(
    {name: column for name, column in TASKS.columns.items() if name != "deadline_s"} | {"cores": Whole(1, MAX_CORES)},
    key=TASKS.key,
)


@dataclass(frozen=True)
class TabulatedTimes:
    """Times at listed numbers of nodes, linear between them (paper 001, 2.2).

    Attributes
    ----------
    path : path
        Table that they come from; used in messages.
    clusters : Clusters
    type_names : tuple of str
    n_pstates : int
    entries : Entries
    """

    path: str | Path
    clusters: Clusters
    type_names: tuple[str, ...]
    n_pstates: int
    entries: Entries

    def time_s(self, task_type: Integers, nodes: Integers) -> Floats:
        """Return run times [s], shape (tasks, clusters, P-states); refuse to extrapolate."""
        times = np.full((*nodes.shape, self.n_pstates), np.inf)
        for (i, c), (listed, times_of) in self.entries.items():
            here = np.flatnonzero((task_type == i) & (nodes[:, c] <= self.clusters.nodes[c]))
            widths = nodes[here, c]
            beyond = (widths < listed[0]) | (widths > listed[-1])
            if beyond.any():
                raise InputError(
                    f"{self.path}: a task of type {self.type_names[i]!r} takes "
                    f"{counted(widths[beyond][0], 'node')} of cluster {self.clusters.names[c]!r}, but its "
                    f"times are listed from {listed[0]} to {listed[-1]} nodes; list more."
                )
            for k in range(self.n_pstates):
                times[here, c, k] = np.interp(widths, listed, times_of[k])
        return times

    def cores(self) -> Integers:
        """Return the fewest and most cores that each type is tabulated for, shape (types, 2).

        Raises
        ------
        InputError
            If no number of cores is tabulated on all clusters of a type.
        """
        size, per_node = self.clusters.nodes, self.clusters.cores_per_node
        ranges_of_types = np.empty((len(self.type_names), 2), dtype=np.int64)
        for i, name in enumerate(self.type_names):
            ranges = []
            for (of_type, c), (listed, _) in self.entries.items():
                if of_type == i and listed[0] <= size[c]:
                    # beyond the whole cluster nothing needs to be listed: it cannot run there
                    most = listed[-1] if listed[-1] < size[c] else MAX_CORES
                    ranges.append(((listed[0] - 1) * per_node[c] + 1, most * per_node[c]))
            largest = max((self.clusters.cores[c] for of_type, c in self.entries if of_type == i), default=0)
            least = max((first for first, _ in ranges), default=1)
            ranges_of_types[i] = least, min((last for _, last in ranges), default=0)
            ranges_of_types[i, 1] = min(ranges_of_types[i, 1], largest)
            if ranges_of_types[i, 0] > ranges_of_types[i, 1]:
                raise InputError(
                    f"{self.path}: task type {name!r} has no number of cores whose nodes are "
                    "listed on all its clusters; list times for the same widths on each."
                )
        return ranges_of_types


def read_parallel_system(spec: ParallelDay) -> ParallelSystem:
    """Read clusters and tabulated times and powers; priorities of the types are drawn.

    `spec.clusters_csv` has the columns ``cluster,nodes,cores_per_node``, `spec.etc_csv`
    ``task_type,cluster,pstate,nodes,time_s,power_w``, where the power is that of one node and
    the same for every number of nodes. A type runs on the clusters that it has lines of. The cores
    that its tasks ask for are in `spec.task_types_csv`, or are those that are tabulated.

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value.
    """
    assert spec.clusters_csv is not None
    assert spec.etc_csv is not None
    clusters = read_clusters(spec.clusters_csv)
    table = ENTRIES.read(spec.etc_csv)
    places = table.places("cluster", clusters.names, spec.clusters_csv)
    names = tuple(dict.fromkeys(table["task_type"]))
    n_pstates = 1 + max(table["pstate"])
    power = np.full((len(names), len(clusters.names), n_pstates), np.inf)
    rows: dict[tuple[int, int], dict[tuple[int, int], int]] = defaultdict(dict)
    types = table.places("task_type", names, spec.etc_csv)
    cells = zip(types, places, *(table[name] for name in ("pstate", "nodes", "power_w")), strict=True)
    for row, (i, c, k, nodes, power_w) in enumerate(cells):
        if power[i, c, k] not in (np.inf, power_w):
            legal = f"other lines of the entry have {power[i, c, k]:g}, the power of one node"
            raise table.fail(row, "power_w", legal)
        power[i, c, k] = power_w
        rows[i, c][k, nodes] = row
    entries = {
        (i, c): _grid(table, rows[i, c], f"task type {names[i]!r}, cluster {clusters.names[c]!r}", n_pstates)
        for i, c in sorted(rows)
    }
    times_of_types = TabulatedTimes(spec.etc_csv, clusters, names, n_pstates, entries)
    cores = times_of_types.cores() if spec.task_types_csv is None else read_cores(spec, names)
    priority, urgency = draw_priorities(
        stream_of_types(spec), len(names), spec.priority_ranges, spec.urgencies, spec.joint_percent
    )
    return ParallelSystem(
        clusters=clusters,
        type_names=names,
        node_power_w=power,
        priority=priority,
        urgency=urgency,
        cores=cores,
        times=times_of_types,
    )


def read_clusters(path: str | Path) -> Clusters:
    """Read ``cluster,nodes,cores_per_node``.

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value.
    """
    table = CLUSTERS.read(path)
    return Clusters(tuple(table["cluster"]), table.array("nodes"), table.array("cores_per_node"))


def read_cores(spec: ParallelDay, names: tuple[str, ...]) -> Integers:
    """Read ``task_type,least_cores,most_cores`` of the task types that `spec.etc_csv` has.

    Returns
    -------
    ndarray of int64, shape (task types, 2)

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value, or a type that has no line.
    """
    assert spec.task_types_csv is not None
    table = TASK_TYPES.read(spec.task_types_csv)
    places = table.places("task_type", names, spec.etc_csv)
    for row, least in enumerate(table["least_cores"]):
        if least > table["most_cores"][row]:
            raise table.fail(row, "most_cores", f"it must be at least least_cores, {least}")
    missing = next((name for name in names if name not in table["task_type"]), None)
    if missing is not None:
        raise InputError(f"{table.path}: no line for task type {missing!r} of {spec.etc_csv}; each type needs one.")
    cores = np.empty((len(names), 2), dtype=np.int64)
    cores[places] = np.column_stack([table["least_cores"], table["most_cores"]])
    return cores


def _grid(table: Table, rows: dict[tuple[int, int], int], pair: str, n_pstates: int) -> tuple[Integers, Floats]:
    """Return a pair's numbers of nodes and its times [s]; each P-state must have the same numbers.

    `rows` holds the row of each P-state and number of nodes.
    """
    line_of = {nodes: table.lines[row] for (_, nodes), row in rows.items()}
    listed = sorted(line_of)
    for k, nodes in product(range(n_pstates), listed):
        if (k, nodes) not in rows:
            raise InputError(
                f"{table.path}: no line for {pair}, P-state {k} and {nodes} nodes, which line {line_of[nodes]} lists "
                "in another P-state; every P-state of a pair needs the same numbers of nodes."
            )
    times = [[table["time_s"][rows[k, nodes]] for nodes in listed] for k in range(n_pstates)]
    return np.array(listed, dtype=np.int64), np.array(times)


def read_parallel_tasks(spec: ParallelDay, system: ParallelSystem) -> Demand:
    """Read tasks ``id,submit_time_s,task_type,cores,priority,urgency,utility_class``.

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value.
    """
    assert spec.tasks_csv is not None
    classes = spec.draw_or_read_classes()
    table = PARALLEL_TASKS.read(spec.tasks_csv, utility_class=Whole(0, len(classes) - 1))
    types = np.array(table.places("task_type", system.type_names, spec.etc_csv), dtype=np.int64)
    order = np.argsort(table.array("submit_time_s"), kind="stable")
    submit, cores, ids, priority, urgency, number = (
        table.array(name)[order] for name in ("submit_time_s", "cores", "id", "priority", "urgency", "utility_class")
    )
    utility = UtilityFunctions(priority, urgency, number, classes, spec.urgency_unit_s)
    return Demand(submit, types[order], cores, ids, utility, str(spec.tasks_csv))


def write_parallel_files(
    system: ParallelSystem, tasks: Tasks, path: str | Path, settings: dict[str, object], *, force: bool = False
) -> list[Path]:
    """Write tasks, and beside them clusters, ETC, task types, utility classes and a TOML.

    Times are listed for the numbers of nodes that these tasks take, and for the fewest, most and
    mean cores of each type. What was read from a table is written as it was there.

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
    clusters = system.clusters
    tables = (
        CLUSTERS.named(clusters.names, clusters.nodes, clusters.cores_per_node),
        _entry_columns(system, _entries(system, tasks)),
        TASK_TYPES.named(system.type_names, *system.cores.T),
        class_columns(tasks.utility.classes),
    )
    columns = {**task_columns(tasks, system.type_names), "cores": tasks.width}
    return write_tables(
        columns, dict(zip(ParallelDay.parts, tables, strict=True)), path, {"kind": "parallel", **settings}, force=force
    )


def _entries(system: ParallelSystem, tasks: Tasks) -> Entries:
    """Return the times to be listed, of each type on each cluster that runs it."""
    if isinstance(system.times, TabulatedTimes):
        return system.times.entries
    clusters = system.clusters
    entries: Entries = {}
    for i, runs in enumerate(types_that_run(system.node_power_w)):
        cores = np.concatenate([tasks.width[tasks.task_type == i], system.cores[i], system.typical_cores[i : i + 1]])
        # a type needs an entry where all its tasks are too wide, too: that of the whole cluster
        taken = np.minimum(clusters.nodes_for(cores), clusters.nodes)
        for c in np.flatnonzero(runs).tolist():
            listed = np.unique(taken[:, c])
            nodes = np.repeat(listed[:, None], len(clusters.names), axis=1)
            times = system.times.time_s(np.full(len(listed), i), nodes)
            entries[i, c] = listed, times[:, c].T
    return entries


def _entry_columns(system: ParallelSystem, entries: Entries) -> dict[str, Any]:
    rows = [
        (system.type_names[i], system.clusters.names[c], k, n, time_s, power_w)
        for (i, c), (listed, times) in entries.items()
        for k, power_w in enumerate(system.node_power_w[i, c].tolist())
        for n, time_s in zip(listed.tolist(), times[k].tolist(), strict=True)
    ]
    return ENTRIES.named(*zip(*rows, strict=True))
