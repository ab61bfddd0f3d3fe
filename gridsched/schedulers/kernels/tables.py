"""What the kernels know of hosts and input files: plain tables of arrays.

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


class HostTable(NamedTuple):
    """Hosts by column, columns by unit (what a sufferage is taken between).

    Attributes
    ----------
    column_start, column_hosts : ndarray of int64
        Hosts of column k: ``column_hosts[column_start[k]:column_start[k + 1]]``, ascending.
    column_of : ndarray of int64, shape (hosts,)
    unit_start : ndarray of int64
        Columns of unit u: ``unit_start[u]`` to ``unit_start[u + 1] - 1``. Where hosts are the
        units, every column stands for itself.
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
