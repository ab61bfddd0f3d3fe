"""Measured systems and workloads as CSV: machines, ETC, APC, typed tasks, utility classes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.files.csv_files import Format, Number, Table, Text, Whole, csv_text
from gridsched.files.output_files import check_writable, write_whole
from gridsched.model.task_types import TYPED_TASK_FLOPS, TaskTypes
from gridsched.model.tasks import Tasks, deadline_column, make_tasks
from gridsched.model.utility import DECAYING, LINEAR, UtilityClasses, UtilityFunctions

_NAME = Text(is_name=True)
#: Names of the kinds of utility classes, in the column ``kind``.
KINDS = {"decaying": DECAYING, "linear": LINEAR}
#: SimGrid's P-states are listed for every host; more levels than this are a mistake.
MAX_PSTATES = 100
MAX_COUNT = 100_000
_MACHINES = {"machine_type": _NAME, "count": Whole(0, MAX_COUNT)}
MACHINES = Format(_MACHINES, key=("machine_type",))
IDLE_MACHINES = Format({**_MACHINES, "idle_w": Number(default=0.0)}, key=("machine_type",))
#: More tasks of a type than this are no exact number any more.
TASK_COUNTS = Format({"task_type": _NAME, "tasks": Whole(0, 10**12)}, key=("task_type",))
_ENTRY = {"task_type": _NAME, "machine_type": Text(), "pstate": Whole(0, MAX_PSTATES - 1)}
ETC = Format({**_ENTRY, "etc_s": Number(above=True)}, key=tuple(_ENTRY), rows="entries")
APC = Format({**_ENTRY, "apc_w": Number()}, key=tuple(_ENTRY))
CLASSES = Format(
    {
        "utility_class": Whole(0, 2**31),
        "start_time": Number(),
        "start_fraction": Number(),
        "urgency_modifier": Number(),
        "kind": Text(default=""),
    },
    rows="utility classes",
)
TASKS = Format(
    {
        "id": Whole(),
        "submit_time_s": Number(),
        "task_type": Text(),
        "priority": Number(),
        "urgency": Number(),
        "utility_class": Whole(),
        "deadline_s": Number(default=math.inf),
    },
    key=("id",),
)


def read_machines(path: str | Path) -> dict[str, int]:
    """Read how many machines of each type there are: ``machine_type,count``.

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value.
    """
    return _machine_counts(MACHINES.read(path))


def read_machines_and_idle_power(path: str | Path) -> tuple[dict[str, int], Floats]:
    """Read ``machine_type,count[,idle_w]``: machines of each type, and what an idle one draws [W].

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value.
    """
    table = IDLE_MACHINES.read(path)
    counts = _machine_counts(table)
    return counts, np.broadcast_to(np.array(table["idle_w"] or 0.0), len(counts))


def _machine_counts(table: Table) -> dict[str, int]:
    counts = dict(zip(table["machine_type"], table["count"], strict=True))
    if not sum(counts.values()):
        raise InputError(f"{table.path}: no machines; at least one machine type needs a count above 0.")
    return counts


def read_task_counts(path: str | Path, task_types: Sequence[str]) -> Integers:
    """Read how many tasks of each type a bag has: ``task_type,tasks``; 0 of types without a line.

    Parameters
    ----------
    path : path
    task_types : sequence of str
        Names of the rows of ETC.

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value.
    """
    table = TASK_COUNTS.read(path)
    counts = np.zeros(len(task_types), dtype=np.int64)
    counts[table.places("task_type", task_types, "the ETC matrix")] = table["tasks"]
    if not counts.any():
        raise InputError(f"{path}: no tasks; at least one task type needs a number above 0.")
    return counts


def read_machine_type_names(etc_path: str | Path) -> list[str]:
    """Return the machine types in the order in which ETC first names them.

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value.
    """
    return list(dict.fromkeys(ETC.read(etc_path)["machine_type"]))


def read_task_types(
    etc_path: str | Path, apc_path: str | Path, machines: dict[str, int], machines_path: str | Path
) -> TaskTypes:
    """Read ETC and APC, one line for each entry; what has no line is infeasible.

    Parameters
    ----------
    etc_path : path
        CSV ``task_type,machine_type,pstate,etc_s``; P-states count from 0.
    apc_path : path
        CSV ``task_type,machine_type,pstate,apc_w`` with the same entries.
    machines : dict of str to int
        Number of machines of each type.
    machines_path : path
        Where `machines` comes from; used in messages.

    Returns
    -------
    TaskTypes
        Task types in the order in which ETC first names them, machine types in that of
        `machines`.

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value.
    """
    tables = etc, apc = ETC.read(etc_path), APC.read(apc_path)
    for table in tables:
        table.places("machine_type", machines, machines_path)
    _check_same_entries(etc, apc)
    task_types = list(dict.fromkeys(etc["task_type"]))
    shape = (len(task_types), len(machines), 1 + max(etc["pstate"]))
    matrices = np.full(shape, np.inf), np.zeros(shape)
    for matrix, table, values in zip(matrices, tables, ("etc_s", "apc_w"), strict=True):
        place = (
            table.places("task_type", task_types, etc_path),
            table.places("machine_type", machines, machines_path),
            table["pstate"],
        )
        matrix[place] = table[values]
    host_type = np.repeat(np.arange(len(machines)), list(machines.values()))
    return TaskTypes(*matrices, host_type, tuple(task_types), tuple(machines))


def _check_same_entries(etc: Table, apc: Table) -> None:
    """Raise `InputError` where one table has an entry that the other lacks."""
    lines = [
        dict(zip(zip(*(table[name] for name in _ENTRY), strict=True), table.lines, strict=True)) for table in (etc, apc)
    ]
    for key, line in lines[0].items():
        if key not in lines[1]:
            raise InputError(
                f"{apc.path}: no line for task type {key[0]!r}, machine type {key[1]!r} and "
                f"P-state {key[2]}, which {etc.path}, line {line} has."
            )
    for key, line in lines[1].items():
        if key not in lines[0]:
            raise InputError(
                f"{apc.path}, line {line}: {etc.path} has no line for task type {key[0]!r}, "
                f"machine type {key[1]!r} and P-state {key[2]}; both need the same entries."
            )


def read_classes(path: str | Path) -> UtilityClasses:
    """Read utility classes, one line for each interval.

    Parameters
    ----------
    path : path
        CSV ``utility_class,start_time,start_fraction,urgency_modifier[,kind]``; classes count
        from 0 and their lines follow each other; times in urgency units. The kind is ``decaying``
        (default), or ``linear``: straight lines from each line's point to the next one's.

    Raises
    ------
    InputError
        Naming file and line.
    """
    table = CLASSES.read(path)
    classes: list[list[int]] = []
    for row, number in enumerate(table["utility_class"]):
        if number not in (len(classes) - 1, len(classes)):
            expected = max(len(classes) - 1, 0)
            raise table.fail(row, "utility_class", f"expected is {expected} or the next")
        if number == len(classes):
            classes.append([])
        classes[number].append(row)
    return UtilityClasses.joined([_class_of(table, rows) for rows in classes])


def _class_of(table: Table, rows: list[int]) -> UtilityClasses:
    kinds = {table["kind"][row] or "decaying" for row in rows}
    if len(kinds) > 1 or not kinds <= set(KINDS):
        legal = f"allowed: one of {', '.join(KINDS)} for all lines of a class"
        raise table.fail(rows[-1], "kind", legal)
    times, fractions, modifiers = ([table[name][row] for row in rows] for name in list(CLASSES.columns)[1:4])
    try:
        if kinds == {"decaying"}:
            return UtilityClasses.from_intervals([(times, fractions, modifiers)])
        return UtilityClasses.from_points(times, fractions)
    except InputError as error:
        reason = str(error).split(": ", 1)[-1]
        first, last = table.lines[rows[0]], table.lines[rows[-1]]
        raise InputError(f"{table.path}, lines {first} to {last}: {reason}") from None


def read_typed_tasks(
    path: str | Path, task_types: Sequence[str], classes: UtilityClasses, urgency_unit_s: float
) -> Tasks:
    """Read tasks with a type and a utility function.

    Parameters
    ----------
    path : path
        CSV ``id,submit_time_s,task_type,priority,urgency,utility_class[,deadline_s]``; the
        urgency is per urgency unit, the class a number from 0.
    task_types : sequence of str
        Names of the rows of ETC.
    classes : UtilityClasses
    urgency_unit_s : float
        [s].

    Returns
    -------
    Tasks
        In order of submission (stable).

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value.
    """
    table = TASKS.read(path, utility_class=Whole(0, len(classes) - 1))
    utility = UtilityFunctions(
        table.array("priority"), table.array("urgency"), table.array("utility_class"), classes, urgency_unit_s
    )
    return make_tasks(
        np.full(len(table), TYPED_TASK_FLOPS),
        table.array("submit_time_s"),
        labels=table["id"],
        deadline_s=table["deadline_s"] or None,
        utility=utility,
        name=str(path),
        task_type=np.array(table.places("task_type", task_types, "the ETC matrix"), dtype=np.int64),
    )


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
    tasks: Tasks, types: TaskTypes, path: str | Path, settings: dict[str, object], *, force: bool = False
) -> list[Path]:
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
    assert tasks.utility is not None  # by the check of `tasks`
    counts = np.bincount(types.host_type, minlength=types.etc.shape[1]).tolist()
    tables = {
        "machines": MACHINES.named(types.host_type_names, counts),
        "etc": _matrix_columns(types, ETC, types.etc),
        "apc": _matrix_columns(types, APC, types.apc),
        "classes": class_columns(tasks.utility.classes),
    }
    columns = task_columns(tasks, types.task_type_names)
    return write_tables(columns, tables, path, {"kind": "utility", **settings}, force=force)


def write_tables(
    tasks: Mapping[str, Any],
    beside: Mapping[str, Mapping[str, Any]],
    path: str | Path,
    settings: Mapping[str, object],
    *,
    force: bool = False,
) -> list[Path]:
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


def _matrix_columns(types: TaskTypes, table: Format, matrix: Floats) -> dict[str, Any]:
    i, j, k = np.nonzero(np.isfinite(types.etc))
    names = (np.array(types.task_type_names)[i], np.array(types.host_type_names)[j])
    return table.named(*names, k, matrix[i, j, k])


def class_columns(classes: UtilityClasses) -> dict[str, Any]:
    """Return the columns of a table of utility classes."""
    names = {number: name for name, number in KINDS.items()}
    of_row = np.repeat(np.arange(len(classes)), np.diff(classes.first))
    return CLASSES.named(
        of_row,
        classes.start_time,
        classes.start_fraction,
        classes.urgency_modifier,
        [names[kind] for kind in classes.kind[of_row].tolist()],
    )


def task_columns(tasks: Tasks, type_names: Sequence[str]) -> dict[str, Any]:
    """Return the columns of a table of tasks with types and utility functions."""
    utility = tasks.utility
    assert utility is not None  # by the name
    columns = TASKS.named(
        tasks.labels,
        tasks.submit_time_s,
        np.array(type_names, dtype=object)[tasks.task_type],
        utility.priority,
        utility.urgency,
        utility.utility_class,
    )
    return columns | deadline_column(tasks)
