"""Measured run times and powers of types of tasks: as ETC and APC, and as distributions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gridsched.arrays import Floats
from gridsched.errors import InputError, did_you_mean
from gridsched.files.csv_files import Format, Number, Table, Text, Whole
from gridsched.model.limits import SI_PREFIXES
from gridsched.model.pmf import from_samples
from gridsched.model.stochastic import ListedTimes
from gridsched.model.task_types import TaskTypes

MEASUREMENTS = Format(
    {
        "machine": Text(is_name=True),
        "program": Text(is_name=True),
        "cores": Whole(1),
        "freq": Text(),
        "time_s": Number(above=True),
        "avg_power_W": Number(),
    },
    rows="measurements",
)
_FREQUENCY = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)\s*([kMGT]?)Hz\Z")


def read_measurements(path: str | Path, machines: Mapping[str, int] | None = None) -> TaskTypes:
    """Read a table of measurements, one line for each program, machine and setting.

    Parameters
    ----------
    path : path
        CSV ``machine,program,cores,freq,time_s,avg_power_W``; the frequency with its unit, as
        ``2.10GHz``.
    machines : mapping of str to int, optional
        Number of machines of each type; others of the file are left out. Default: one of each.

    Returns
    -------
    TaskTypes
        Programs are task types and machines host types, both in the file's order (host types in
        that of `machines`, if given).

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value.

    Notes
    -----
    A task has a whole machine to itself, with as many cores as the machine was ever measured with;
    lines with fewer are passed over. P-state k of a machine is its k-th highest frequency at that
    number of cores; where a program was not measured at it, it is infeasible.
    """
    table = MEASUREMENTS.read(path)
    import pandas as pd  # slow to load, and many processes start that do not need it

    rows = pd.DataFrame({name: table[name] for name in MEASUREMENTS.columns})
    rows["freq"] = [_frequency(table, row) for row in range(len(table))]
    counts = dict.fromkeys(rows["machine"], 1) if machines is None else dict(machines)
    for name in counts:
        if name not in set(rows["machine"]):
            hint = did_you_mean(name, rows["machine"].unique().tolist())
            raise InputError(f"{path}: no measurements of machine {name!r}. {hint}".rstrip())
    most = rows.groupby("machine")["cores"].transform("max")
    rows = rows[rows["machine"].isin(counts) & (rows["cores"] == most)]
    again = rows.duplicated(["machine", "program", "freq"])
    if again.any():
        raise table.fail(int(again.idxmax()), "freq", "an earlier line has the same machine, program, cores and freq")
    types, columns = rows["program"].unique().tolist(), list(counts)
    level = rows.groupby("machine")["freq"].rank("dense", ascending=False).astype(int) - 1
    place = (rows["program"].map(types.index), rows["machine"].map(columns.index), level)
    etc = np.full((len(types), len(columns), 1 + level.max()), np.inf)
    apc = np.zeros(etc.shape)
    etc[place], apc[place] = rows["time_s"], rows["avg_power_W"]
    host_type = np.repeat(np.arange(len(columns)), list(counts.values()))
    return TaskTypes(etc, apc, host_type, tuple(types), tuple(columns))


def _frequency(table: Table, row: int) -> float:
    """Return the frequency of a line [Hz]."""
    match = _FREQUENCY.match(table["freq"][row])
    if match is None:
        raise table.fail(row, "freq", "it must be a frequency with its unit, as 2.10GHz")
    return float(match[1]) * SI_PREFIXES[match[2]]


RUN_TIMES = Format(
    {
        "task_type": Text(is_name=True),
        "host_type": Text(is_name=True),
        "pstate": Whole(0),
        "time_s": Number(above=True),
    },
    rows="measurements",
)


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
    mean_s: Floats


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
    table = RUN_TIMES.read(path)
    names = tuple(dict.fromkeys(table["task_type"]))
    for row, pstate in enumerate(table["pstate"]):
        if pstate >= pstates:
            raise table.fail(row, "pstate", f"the hosts have 0 to {pstates - 1}")
    times = _listed_times(table, names, host_types)
    return MeasuredTimes(names, times, times.means((len(names), len(host_types), pstates)))


def _listed_times(table: Table, task_types: Sequence[str], host_types: Sequence[str]) -> ListedTimes:
    """Gather the measurements of each task type on each host type, as they are."""
    rows = table.places("task_type", task_types, table.path)
    columns = table.places("host_type", host_types, "the ETC matrix")
    samples = defaultdict(list)
    for *key, time_s in zip(rows, columns, table["pstate"], table["time_s"], strict=True):
        samples[tuple(key)].append(time_s)
    return ListedTimes({key: from_samples(times) for key, times in samples.items()})
