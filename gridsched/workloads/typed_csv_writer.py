"""Write a system and its workload as CSV files that `typed_csv` reads back exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import NDArray

from gridsched.files.csv_files import csv_text
from gridsched.files.output_files import check_writable, write_whole
from gridsched.model.task_types import TaskTypes
from gridsched.model.tasks import Tasks, deadline_column
from gridsched.model.utility_classes import UtilityClasses
from gridsched.workloads.typed_csv import APC, CLASSES, ETC, KINDS, MACHINES, TASKS

#: What `write_workload_files` writes beside the tasks.
MACHINE_PARTS = ("machines", "etc", "apc", "classes")


def file_names(path: str | Path, parts: Sequence[str] = MACHINE_PARTS) -> dict[str, Path]:
    """Return what is written for the tasks file `path`, by the TOML's keys.

    Parameters
    ----------
    path : path
    parts : sequence of str
        Names of the tables beside the tasks.
    """
    path = Path(path)
    beside = {f"{part}_csv": path.with_name(f"{path.stem}_{part}.csv") for part in parts}
    return {"tasks_csv": path, **beside, "toml": path.with_suffix(".toml")}


def write_workload_files(
    tasks: Tasks, types: TaskTypes, path: str | Path, settings: dict[str, object], *,
    force: bool = False,
) -> list[Path]:  # fmt: skip
    """Write tasks, and beside them machines, ETC, APC, utility classes and a TOML that joins them.

    Parameters
    ----------
    tasks : Tasks
        With task types and utility functions.
    types : TaskTypes
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
    assert tasks.utility is not None  # as `tasks` tells
    counts = np.bincount(types.host_type, minlength=types.etc.shape[1]).tolist()
    machines = dict(zip(MACHINES, (types.host_type_names, counts), strict=True))
    tables = {
        "machines": machines,
        "etc": _matrix_columns(types, ETC, types.etc),
        "apc": _matrix_columns(types, APC, types.apc),
        "classes": class_columns(tasks.utility.classes),
    }
    columns = task_columns(tasks, types.task_type_names)
    return write_tables(columns, tables, path, {"kind": "utility", **settings}, force=force)


def write_tables(
    tasks: Mapping[str, Any], beside: Mapping[str, Mapping[str, Any]], path: str | Path,
    settings: Mapping[str, object], *, force: bool = False,
) -> list[Path]:  # fmt: skip
    """Write tasks, the tables beside them, and a TOML that joins them.

    Parameters
    ----------
    tasks : mapping of str to iterable
        Columns of the tasks.
    beside : mapping of str to mapping
        Name of a table -> its columns.
    path : path
        CSV of the tasks; the others' names begin with its stem.
    settings : mapping
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
    files = file_names(path, list(beside))
    for file in files.values():
        check_writable(file, force=force)
    texts = {f"{part}_csv": csv_text(columns) for part, columns in beside.items()}
    texts["tasks_csv"] = csv_text(tasks)
    texts["toml"] = tomli_w.dumps({**settings, **{name: files[name].name for name in texts}})
    for name, text in texts.items():
        write_whole(files[name], text, force=force)
    return list(files.values())


def _matrix_columns(
    types: TaskTypes, header: Iterable[str], matrix: NDArray[np.float64]
) -> dict[str, Any]:
    i, j, k = np.nonzero(np.isfinite(types.etc))
    names = (np.array(types.task_type_names)[i], np.array(types.host_type_names)[j])
    return dict(zip(header, (*names, k, matrix[i, j, k]), strict=True))


def class_columns(classes: UtilityClasses) -> dict[str, Any]:
    """Return the columns of a table of utility classes."""
    names = {number: name for name, number in KINDS.items()}
    of_row = np.repeat(np.arange(len(classes)), np.diff(classes.first))
    columns = (
        of_row, classes.start_time, classes.start_fraction, classes.urgency_modifier,
        [names[kind] for kind in classes.kind[of_row].tolist()],
    )  # fmt: skip
    return dict(zip(CLASSES, columns, strict=True))


def task_columns(tasks: Tasks, type_names: Sequence[str]) -> dict[str, Any]:
    """Return the columns of a table of tasks with types and utility functions."""
    utility = tasks.utility
    assert utility is not None  # as the name tells
    columns = (
        tasks.labels, tasks.submit_time_s, np.array(type_names, dtype=object)[tasks.task_type],
        utility.priority, utility.urgency, utility.utility_class,
    )  # fmt: skip
    needed = [name for name, column in TASKS.items() if column.default is None]
    return {**dict(zip(needed, columns, strict=True)), **deadline_column(tasks)}
