"""Measured run times as distributions: every measurement of a group has the same mass."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import InputError
from gridsched.files.csv_files import Number, Text, Whole, read_csv
from gridsched.model.pmf import from_samples
from gridsched.model.stochastic import ListedTimes

COLUMNS = {
    "task_type": Text(is_name=True), "host_type": Text(is_name=True), "pstate": Whole(0),
    "time_s": Number(above=True),
}  # fmt: skip


@dataclass(frozen=True)
class MeasuredTimes:
    """Measured run times of a system's task types.

    Attributes
    ----------
    task_types : tuple of str
        In the order in which they are first measured.
    times : ListedTimes
        The measurements as they are [s].
    mean_s : ndarray of float64, shape (task types, host types, P-states)
        Their means [s], infinite where there is none.
    """

    task_types: tuple[str, ...]
    times: ListedTimes
    mean_s: NDArray[np.float64]


def read_run_times(path: str | Path, host_types: Sequence[str], pstates: int) -> MeasuredTimes:
    """Read all measured run times of a system; its task types are those that were measured.

    Parameters
    ----------
    path : path
        CSV ``task_type,host_type,pstate,time_s``.
    host_types : sequence of str
    pstates : int
        How many the hosts have.

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value, or the file if it is empty.
    """
    table = read_csv(path, COLUMNS)
    names = tuple(dict.fromkeys(table["task_type"]))
    for row, pstate in enumerate(table["pstate"]):
        if pstate >= pstates:
            raise table.fail(row, "pstate", f"the hosts have 0 to {pstates - 1}")
    times = read_measured_times(path, names, host_types)
    return MeasuredTimes(names, times, times.means((len(names), len(host_types), pstates)))


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
