"""Compiled inner loops of schedulers. Importing this package compiles nothing."""

from __future__ import annotations


def warm_up() -> None:
    """Call every kernel once on a tiny input, so that later calls find it compiled."""
    import numpy as np

    from gridsched.schedulers.kernels import batch, tables

    table, files = tables.host_table([0], [0]), tables.no_files()
    for by_cluster in (False, True):
        for kernel, rule in ((batch.map_greedily, (batch.SUFFERAGE,)), (batch.map_in_passes, ())):
            kernel(
                np.zeros(1, dtype=np.int64), np.ones((1, 1)), np.zeros((1, 1)),
                table, files, 0.0, by_cluster, True, *rule,
            )  # fmt: skip
    order = np.zeros(1, dtype=np.int64)
    batch.map_in_order(order, np.ones((1, 1)), np.zeros((1, 1)), table.column_of, np.zeros(1))
