"""Measured run times and powers of programs on machines as ETC and APC."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gridsched.errors import InputError, did_you_mean
from gridsched.files.csv_files import Number, Table, Text, Whole, read_csv
from gridsched.model.task_types import TaskTypes

COLUMNS = {
    "machine": Text(is_name=True), "program": Text(is_name=True), "cores": Whole(1),
    "freq": Text(), "time_s": Number(above=True), "avg_power_W": Number(),
}  # fmt: skip
_FREQUENCY = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)\s*([kMGT]?)Hz\Z")
_PREFIX = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


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
    table = read_csv(path, COLUMNS)
    if not len(table):
        raise InputError(f"{path}: no measurements; at least one line is needed.")
    import pandas as pd  # slow to load, and many processes start that do not need it

    rows = pd.DataFrame({name: table[name] for name in COLUMNS})
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
        raise table.fail(
            int(again.idxmax()), "freq",
            "an earlier line has the same machine, program, cores and freq",
        )  # fmt: skip
    types, columns = rows["program"].unique().tolist(), list(counts)
    level = rows.groupby("machine")["freq"].rank("dense", ascending=False).astype(int) - 1
    place = (
        rows["program"].map(types.index), rows["machine"].map(columns.index), level
    )  # fmt: skip
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
    return float(match[1]) * _PREFIX[match[2]]
