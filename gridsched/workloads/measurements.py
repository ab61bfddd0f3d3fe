"""Measured run times and powers of programs on machines as ETC and APC."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gridsched.errors import InputError, did_you_mean
from gridsched.files.input_files import read_text
from gridsched.model.task_types import TaskTypes
from gridsched.workloads.table import Row, read_rows

COLUMNS = ("machine", "program", "cores", "freq", "time_s", "avg_power_W")
_FREQUENCY = re.compile(r"([0-9.]+)\s*([kMGT]?)Hz\Z")
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
    rows = [(row, *_numbers(row)) for row in read_rows(path, read_text(path), COLUMNS)]
    if not rows:
        raise InputError(f"{path}: no measurements; at least one line is needed.")
    found = dict.fromkeys(row.cells["machine"] for row, *_ in rows)
    counts = dict.fromkeys(found, 1) if machines is None else dict(machines)
    for name in counts:
        if name not in found:
            hint = did_you_mean(name, found)
            raise InputError(f"{path}: no measurements of machine {name!r}. {hint}".rstrip())
    most = {name: max(c for row, c, _ in rows if row.cells["machine"] == name) for name in counts}
    rows = [each for each in rows if most.get(each[0].cells["machine"]) == each[1]]
    levels = {
        name: sorted({f for row, _, f in rows if row.cells["machine"] == name}, reverse=True)
        for name in counts
    }
    types, columns = list(dict.fromkeys(row.cells["program"] for row, *_ in rows)), list(counts)
    etc = np.full((len(types), len(columns), max(map(len, levels.values()))), np.inf)
    apc = np.zeros(etc.shape)
    for row, _, frequency in rows:
        machine = row.cells["machine"]
        place = (
            types.index(row.cells["program"]), columns.index(machine),
            levels[machine].index(frequency),
        )  # fmt: skip
        if np.isfinite(etc[place]):
            raise row.fail("freq", "an earlier line has the same machine, program, cores and freq")
        etc[place], apc[place] = row.number("time_s", above=True), row.number("avg_power_W")
    host_type = np.repeat(np.arange(len(columns)), list(counts.values()))
    return TaskTypes(etc, apc, host_type, tuple(types), tuple(columns))


def _numbers(row: Row) -> tuple[int, float]:
    """Return cores and frequency [Hz] of a line."""
    for column in ("machine", "program"):
        if not row.cells[column] or row.cells[column].startswith("#"):
            raise row.fail(column, "a name that does not begin with '#' is needed")
    cores = row.whole_number("cores")
    if cores < 1:
        raise row.fail("cores", "it must be at least 1")
    match = _FREQUENCY.match(row.cells["freq"])
    legal = "it must be a frequency with its unit, as 2.10GHz"
    try:
        return cores, float(match[1]) * _PREFIX[match[2]]
    except (TypeError, ValueError):
        raise row.fail("freq", legal) from None
