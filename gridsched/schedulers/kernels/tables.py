"""What the kernels know of hosts, input files and task types: plain tables of arrays.

Hosts are grouped into *columns*: all hosts of a column take the same time for every task (and lie
in the same cluster where that matters). Adding one number to ready times keeps their order, so a
column's smallest and second smallest ready times give its smallest and second smallest completion
times exactly, and a task looks at a few columns instead of at all hosts. Different ready times may
round to one completion time, so the *host* is looked up among all hosts of equal completion time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridsched.arrays import Floats, Integers
from gridsched.model.tasks import Tasks

#: Objectives of the utility heuristics: utility, utility per time, utility per energy, earliest completion.
UTIL, UPT, UPE, COMP = 0, 1, 2, 3


class HostTable(NamedTuple):
    """Hosts by column, columns by unit (what a sufferage is taken between).

    Attributes
    ----------
    column_start, column_hosts : ndarray of int64
        Hosts of column k: ``column_hosts[column_start[k]:column_start[k + 1]]``, ascending.
    column_of : ndarray of int64, shape (hosts,)
    unit_start : ndarray of int64
        Columns of unit u: ``unit_start[u]`` to ``unit_start[u + 1] - 1``. Where hosts are the
        units, every column represents itself.
    unit_of : ndarray of int64, shape (columns,)
        Unit of each column.
    data_row : ndarray of int64, shape (columns,)
        Cluster whose files a column reads; 0 for all where files do not matter.
    """

    column_start: Integers
    column_hosts: Integers
    column_of: Integers
    unit_start: Integers
    unit_of: Integers
    data_row: Integers

    @property
    def representatives(self) -> Integers:
        """One host of each column, shape (columns,)."""
        return self.column_hosts[self.column_start[:-1]]


class FileTable(NamedTuple):
    """Input files: what each task needs and where the files are (algorithms A4).

    Attributes
    ----------
    needs_start, needs : ndarray of int64
        Files of task i: ``needs[needs_start[i]:needs_start[i + 1]]``.
    size_bytes : ndarray, shape (files,)
    available : ndarray, shape (files, clusters)
        Time at which a file is in a cluster [s]; infinite where it is missing.
    uplink_free : ndarray, shape (clusters,)
        Time at which a cluster's last transfer ends [s].
    latency_s, bandwidth : ndarray, shape (clusters,)
        Uplink of each cluster [s], [byte/s].
    """

    needs_start: Integers
    needs: Integers
    size_bytes: Floats
    available: Floats
    uplink_free: Floats
    latency_s: Floats
    bandwidth: Floats


def _starts(sorted_keys: NDArray[Any], n: int) -> Integers:
    return np.searchsorted(sorted_keys, np.arange(n + 1)).astype(np.int64)


def host_table(
    groups: ArrayLike, clusters: ArrayLike, *, by_cluster: bool = False, with_files: bool = False
) -> HostTable:
    """Return the hosts by columns.

    Parameters
    ----------
    groups : array_like of int, shape (hosts,)
        Hosts with the same number take the same time for every task.
    clusters : array_like of int, shape (hosts,)
        Cluster of each host, numbered from 0.
    by_cluster : bool
        Take the sufferage between clusters instead of hosts.
    with_files : bool
        Let each column know its cluster's files.
    """
    groups, clusters = np.asarray(groups), np.asarray(clusters)
    keys = np.stack([clusters if by_cluster or with_files else np.zeros_like(groups), groups])
    columns, column_of = np.unique(keys, axis=1, return_inverse=True)
    column_of = column_of.reshape(-1).astype(np.int64)
    n_columns = columns.shape[1]
    hosts = np.argsort(column_of, kind="stable").astype(np.int64)
    cluster_of_column = columns[0].astype(np.int64)
    if by_cluster:
        unit_of = np.unique(cluster_of_column, return_inverse=True)[1].reshape(-1).astype(np.int64)
    else:
        unit_of = np.arange(n_columns)
    return HostTable(
        column_start=_starts(column_of[hosts], n_columns),
        column_hosts=hosts,
        column_of=column_of,
        unit_start=_starts(unit_of, int(unit_of[-1]) + 1),
        unit_of=unit_of,
        data_row=cluster_of_column if with_files else np.zeros(n_columns, dtype=np.int64),
    )


def no_files() -> FileTable:
    """Return the table of a workload without input files."""
    none, whole = np.zeros(0), np.zeros(0, dtype=np.int64)
    return FileTable(whole, whole.copy(), none, np.zeros((0, 0)), *(none.copy() for _ in "abc"))


def needed_files(tasks: Tasks) -> tuple[Integers, Integers]:
    """Return ``(needs_start, needs)`` of `FileTable` for all tasks."""
    needs = tasks.input_files or ((),) * len(tasks)
    start = np.cumsum([0, *(len(files) for files in needs)], dtype=np.int64)
    return start, np.array([f for files in needs for f in files], dtype=np.int64)


class TypeTables(NamedTuple):
    """What does not change during a run.

    Attributes
    ----------
    etc, eec : ndarray, shape (task types, host types, P-states)
        Times [s] and energies [J]; infinite where a type cannot run.
    cost : ndarray, same shape
        What the energies count in the budget at the event [J]; in a budget in joules `eec`.
    order : ndarray of int64, shape (task types, host types * P-states)
        Options ``host type * P-states + P-state`` by ascending divisor, feasible ones first.
    n_feasible : ndarray of int64, shape (task types,)
    host_start, hosts : ndarray of int64
        Hosts of type j: ``hosts[host_start[j]:host_start[j + 1]]``, ascending.
    host_type : ndarray of int64, shape (hosts,)
    """

    etc: Floats
    eec: Floats
    cost: Floats
    order: Integers
    n_feasible: Integers
    host_start: Integers
    hosts: Integers
    host_type: Integers


def type_tables(
    etc: Floats, eec: Floats, host_type: Integers, objective: int, cost: Floats | None = None
) -> TypeTables:
    """Return the tables of the matrices `etc` [s] and `eec` [J] for one objective.

    `cost` is what the energies count [J]; default as many joules as they are.
    """
    etc = np.array(etc, dtype=np.float64, order="C")
    eec = np.array(eec, dtype=np.float64, order="C")
    cost = eec if cost is None else np.array(cost, dtype=np.float64, order="C")
    host_type = np.array(host_type, dtype=np.int64)
    host_start = np.searchsorted(np.sort(host_type), np.arange(etc.shape[1] + 1))
    present = np.diff(host_start) > 0
    feasible = (np.isfinite(etc) & present[None, :, None]).reshape(len(etc), -1)
    divisor = (cost if objective == UPE else etc).reshape(len(etc), -1)
    order = np.argsort(np.where(feasible, divisor, np.inf), axis=1, kind="stable")
    return TypeTables(
        etc,
        eec,
        cost,
        order.astype(np.int64),
        feasible.sum(axis=1).astype(np.int64),
        host_start.astype(np.int64),
        np.argsort(host_type, kind="stable").astype(np.int64),
        host_type,
    )
