"""Measured run times as distributions: every measurement of a group has the same mass."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from gridsched.errors import InputError
from gridsched.files.csv_files import Number, Text, Whole, read_csv
from gridsched.model.pmf import from_samples
from gridsched.model.stochastic import ListedTimes

COLUMNS = {
    "task_type": Text(is_name=True), "host_type": Text(is_name=True), "pstate": Whole(0),
    "time_s": Number(above=True),
}  # fmt: skip


def read_measured_times(
    path: str | Path, task_types: Sequence[str], host_types: Sequence[str], *,
    step_s: float | None = None,
) -> ListedTimes:  # fmt: skip
    """Read measured run times, one line for each measurement.

    Parameters
    ----------
    path : path
        CSV ``task_type,host_type,pstate,time_s``.
    task_types, host_types : sequence of str
        Names of the rows and columns of ETC.
    step_s : float, optional
        Puts the times on the nearest multiples of it [s]; default: as measured.

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value, or the file if it is empty.
    """
    table = read_csv(path, COLUMNS)
    if not len(table):
        raise InputError(f"{path}: no measurements; at least one line is needed.")
    rows = table.places("task_type", task_types, "the ETC matrix")
    columns = table.places("host_type", host_types, "the ETC matrix")
    samples = defaultdict(list)
    for *key, time_s in zip(rows, columns, table["pstate"], table["time_s"], strict=True):
        samples[tuple(key)].append(time_s)
    return ListedTimes({key: from_samples(times, step_s) for key, times in samples.items()})
