"""Write a system and its workload as CSV files that `typed_csv` reads back exactly."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gridsched.files.output_files import check_writable, write_whole
from gridsched.model.task_types import TaskTypes
from gridsched.model.tasks import Tasks
from gridsched.model.utility_classes import UtilityClasses
from gridsched.workloads.typed_csv import APC, CLASSES, ETC, KINDS, MACHINES, TASKS


def file_names(path: str | Path) -> dict[str, Path]:
    """Return what `write_workload_files` writes for the tasks file `path`, by the TOML's keys."""
    path = Path(path)
    beside = {
        f"{part}_csv": path.with_name(f"{path.stem}_{part}.csv")
        for part in ("machines", "etc", "apc", "classes")
    }
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
    files = file_names(path)
    for file in files.values():
        check_writable(file, force=force)
    counts = np.bincount(types.host_type, minlength=types.etc.shape[1]).tolist()
    texts = {
        "machines_csv": _csv(MACHINES, zip(types.host_type_names, counts, strict=True)),
        "etc_csv": _csv(ETC, _matrix_lines(types, types.etc)),
        "apc_csv": _csv(APC, _matrix_lines(types, types.apc)),
        "classes_csv": _csv((*CLASSES, "kind"), _class_lines(tasks.utility.classes)),
        "tasks_csv": _csv(TASKS, _task_lines(tasks, types.task_type_names)),
    }
    keys = {"kind": "utility", **settings, **{name: files[name].name for name in texts}}
    texts["toml"] = "".join(f"{key} = {toml_value(value)}\n" for key, value in keys.items())
    for name, text in texts.items():
        write_whole(files[name], text, force=force)
    return list(files.values())


def toml_value(value: object) -> str:
    """Return a string, number, bool, or list of them as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return repr(value)


def _csv(header: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a table; numbers are written so that reading gives them back exactly."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)
    return out.getvalue()


def _matrix_lines(types: TaskTypes, matrix: NDArray[np.float64]) -> Iterator[Sequence[object]]:
    values = matrix.tolist()
    for i, j, k in np.argwhere(np.isfinite(types.etc)).tolist():
        yield types.task_type_names[i], types.host_type_names[j], k, values[i][j][k]


def _class_lines(classes: UtilityClasses) -> Iterator[Sequence[object]]:
    names = {number: name for name, number in KINDS.items()}
    columns = (classes.start_time, classes.start_fraction, classes.urgency_modifier)
    for c, kind in enumerate(classes.kind.tolist()):
        rows = slice(classes.first[c], classes.first[c + 1])
        for values in zip(*(column[rows].tolist() for column in columns), strict=True):
            yield c, *values, names[kind]


def _task_lines(tasks: Tasks, type_names: Sequence[str]) -> Iterator[Sequence[object]]:
    utility = tasks.utility
    names = np.array(type_names, dtype=object)[tasks.task_type]
    columns = (
        tasks.labels, tasks.submit_time_s, names, utility.priority, utility.urgency,
        utility.utility_class,
    )  # fmt: skip
    return zip(*(column.tolist() for column in columns), strict=True)
