"""Bags of tasks as CSV: ``id,flops[,input_bytes,output_bytes,...]``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gridsched.errors import InputError
from gridsched.files.csv_files import Number, Table, Text, Whole, csv_text, read_csv
from gridsched.files.input_files import read_text
from gridsched.files.output_files import write_whole
from gridsched.model.tasks import DataFiles, Tasks, deadline_column, make_tasks
from gridsched.workloads.files import read_data_files

COLUMNS = {
    "id": Whole(), "flops": Number(above=True), "input_bytes": Number(default=0.0),
    "output_bytes": Number(default=0.0), "submit_time_s": Number(default=0.0),
    "deadline_s": Number(default=math.inf),
    "input_files": Text(default=""),
}  # fmt: skip
_NOMINAL = re.compile(r"#\s*nominal_heterogeneity\s*=\s*(\S+)\s*\Z")


def read_bag(path: str | Path, *, files: str | Path | None = None) -> Tasks:
    """Read a bag of tasks.

    Parameters
    ----------
    path : path
        CSV with the columns above; ``input_files`` names files, separated by ``;``. A first line
        ``# nominal_heterogeneity=0.5`` tells the spread the sizes were drawn with (0 to 1).
    files : path, optional
        CSV ``file,size_bytes,location`` of the input files.

    Returns
    -------
    Tasks
        In order of submission (stable).

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value.
    """
    text = read_text(path)
    nominal = _read_nominal(path, text)
    data = None if files is None else read_data_files(files)
    table = read_csv(path, COLUMNS, text)
    table.refuse_repeats("id", legal="line {line} has the same id")
    needs = [_read_needs(table, row, data) for row in range(len(table))]
    return make_tasks(
        table["flops"], table["submit_time_s"] or 0.0, input_bytes=table["input_bytes"] or 0.0,
        output_bytes=table["output_bytes"] or 0.0, labels=table["id"],
        deadline_s=table["deadline_s"] or None,
        input_files=None if data is None else needs, files=data, nominal_heterogeneity=nominal,
        name=str(path),
    )  # fmt: skip


def _read_nominal(path: str | Path, text: str) -> float | None:
    """Return the nominal heterogeneity of the first line, if it tells one."""
    match = _NOMINAL.match(text.splitlines()[0]) if text else None
    if match is None:
        return None
    try:
        value = float(match[1])
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InputError(
            f"{path}, line 1: nominal_heterogeneity is {match[1]!r}; it must lie in [0, 1]."
        )
    return value


def _read_needs(table: Table, row: int, data: DataFiles | None) -> list[int]:
    names = [name.strip() for name in table["input_files"][row].split(";") if name.strip()]
    if not names:
        return []
    if data is None:
        raise table.fail(row, "input_files", "give their sizes and places with --files")
    for name in names:
        if name not in data.names:
            raise table.fail(row, "input_files", f"the --files table has no file {name!r}")
    return [data.names.index(name) for name in dict.fromkeys(names)]


def write_bag(tasks: Tasks, path: str | Path, *, force: bool = False) -> None:
    """Write a bag of tasks so that `read_bag` gives it back exactly.

    Raises
    ------
    InputError
        If the file exists and `force` is not set, or cannot be written; if an input file has a
        name that would not read back.
    """
    columns: dict[str, Iterable[Any]] = {"id": tasks.labels, "flops": tasks.flops}
    for name in ("input_bytes", "output_bytes", "submit_time_s"):
        if getattr(tasks, name).any():
            columns[name] = getattr(tasks, name)
    columns |= deadline_column(tasks)
    if tasks.input_files and tasks.files is not None:
        names = tasks.files.names
        _check_names(path, names)
        columns["input_files"] = [";".join(names[f] for f in need) for need in tasks.input_files]
    nominal = tasks.nominal_heterogeneity
    comment = "" if nominal is None else f"# nominal_heterogeneity={nominal!r}\n"
    write_whole(path, comment + csv_text(columns), force=force)


def _check_names(path: str | Path, names: Iterable[str]) -> None:
    """Refuse names of files that a cell of ``input_files`` would not give back."""
    for name in names:
        if not name or ";" in name or name != name.strip() or len(name.splitlines()) != 1:
            raise InputError(
                f"{path}: the file name {name!r} cannot be written; a name without ';', line "
                "breaks and blanks around it is needed. Rename the file."
            )
