"""Measured systems and workloads as CSV: machines, ETC, APC, typed tasks, utility classes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gridsched.errors import InputError, did_you_mean
from gridsched.files.input_files import read_text
from gridsched.model.task_types import TYPED_TASK_FLOPS, TaskTypes
from gridsched.model.tasks import Tasks, make_tasks
from gridsched.model.utility import UtilityFunctions
from gridsched.model.utility_classes import DECAYING, LINEAR, UtilityClasses
from gridsched.workloads.table import Row, read_rows

MACHINES = ("machine_type", "count")
ETC = ("task_type", "machine_type", "pstate", "etc_s")
APC = ("task_type", "machine_type", "pstate", "apc_w")
TASKS = ("id", "submit_time_s", "task_type", "priority", "urgency", "utility_class")
CLASSES = ("utility_class", "start_time", "start_fraction", "urgency_modifier")
#: Names of the kinds of utility classes, in the column ``kind``.
KINDS = {"decaying": DECAYING, "linear": LINEAR}
#: SimGrid's P-states are listed for every host; more levels than this are a mistake.
MAX_PSTATES = 100
MAX_COUNT = 100_000


def read_machines(path: str | Path) -> dict[str, int]:
    """Read how many machines of each type there are: ``machine_type,count``.

    Raises
    ------
    InputError
        Naming file, line and column of the first bad value.
    """
    counts: dict[str, int] = {}
    for row in read_rows(path, read_text(path), MACHINES):
        name = _name(row, "machine_type")
        if name in counts:
            raise row.fail("machine_type", "an earlier line has the same machine type")
        counts[name] = _within(row, "count", 0, MAX_COUNT)
    if not sum(counts.values()):
        raise InputError(f"{path}: no machines; at least one machine type needs a count above 0.")
    return counts


def read_task_types(
    etc_path: str | Path, apc_path: str | Path, machines: dict[str, int],
    machines_path: str | Path,
) -> TaskTypes:  # fmt: skip
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
    columns = list(machines)
    etc, line_of = _entries(etc_path, ETC, columns, machines_path)
    apc, apc_line_of = _entries(apc_path, APC, columns, machines_path)
    for key, line in line_of.items():
        if key not in apc:
            raise InputError(
                f"{apc_path}: no line for task type {key[0]!r}, machine type {key[1]!r} and "
                f"P-state {key[2]}, which {etc_path}, line {line} has."
            )
    for key, line in apc_line_of.items():
        if key not in etc:
            raise InputError(
                f"{apc_path}, line {line}: {etc_path} has no line for task type {key[0]!r}, "
                f"machine type {key[1]!r} and P-state {key[2]}; both need the same entries."
            )
    if not etc:
        raise InputError(f"{etc_path}: no entries; at least one line is needed.")
    rows = list(dict.fromkeys(key[0] for key in etc))
    shape = (len(rows), len(columns), 1 + max(key[2] for key in etc))
    etc_matrix, apc_matrix = np.full(shape, np.inf), np.zeros(shape)
    row_of = {name: i for i, name in enumerate(rows)}
    column_of = {name: j for j, name in enumerate(columns)}
    for key, value in etc.items():
        place = row_of[key[0]], column_of[key[1]], key[2]
        etc_matrix[place], apc_matrix[place] = value, apc[key]
    host_type = np.repeat(np.arange(len(columns)), list(machines.values()))
    return TaskTypes(etc_matrix, apc_matrix, host_type, tuple(rows), tuple(columns))


Entry = tuple[str, str, int]


def _entries(
    path: str | Path, header: Sequence[str], machine_types: Sequence[str],
    machines_path: str | Path,
) -> tuple[dict[Entry, float], dict[Entry, int]]:  # fmt: skip
    """Return value and line of each (task type, machine type, P-state)."""
    values: dict[Entry, float] = {}
    lines: dict[Entry, int] = {}
    for row in read_rows(path, read_text(path), header):
        machine_type = row.cells["machine_type"]
        if machine_type not in machine_types:
            raise row.fail("machine_type", _unknown(machine_type, machine_types, machines_path))
        key = (_name(row, "task_type"), machine_type, _within(row, "pstate", 0, MAX_PSTATES - 1))
        if key in values:
            raise row.fail("pstate", f"line {lines[key]} has the same entry")
        values[key] = row.number(header[-1], above=header[-1] == "etc_s")
        lines[key] = row.line
    return values, lines


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
    classes: list[list[Row]] = []
    for row in read_rows(path, read_text(path), CLASSES, ("kind",)):
        number = _within(row, "utility_class", 0, 2**31)
        if number not in (len(classes) - 1, len(classes)) or number < 0:
            raise row.fail("utility_class", f"expected is {max(len(classes) - 1, 0)} or the next")
        if number == len(classes):
            classes.append([])
        classes[number].append(row)
    if not classes:
        raise InputError(f"{path}: no utility classes; at least one line is needed.")
    return UtilityClasses.joined([_class_of(rows) for rows in classes])


def _class_of(rows: list[Row]) -> UtilityClasses:
    kinds = {row.cells.get("kind", "") or "decaying" for row in rows}
    if len(kinds) > 1 or not kinds <= set(KINDS):
        raise rows[-1].fail("kind", f"legal is one of {', '.join(KINDS)} for all lines of a class")
    columns = [[row.number(name) for row in rows] for name in CLASSES[1:]]
    try:
        if kinds == {"decaying"}:
            return UtilityClasses.from_intervals([tuple(columns)])
        return UtilityClasses.from_points(*columns[:2])
    except InputError as error:
        reason = str(error).split(": ", 1)[-1]
        raise InputError(
            f"{rows[0].path}, lines {rows[0].line} to {rows[-1].line}: {reason}"
        ) from None


def read_typed_tasks(
    path: str | Path, task_types: Sequence[str], classes: UtilityClasses, urgency_unit_s: float
) -> Tasks:
    """Read tasks with a type and a utility function.

    Parameters
    ----------
    path : path
        CSV ``id,submit_time_s,task_type,priority,urgency,utility_class``; the urgency is per
        urgency unit, the class a number from 0.
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
    row_of = {name: i for i, name in enumerate(task_types)}
    lines: dict[int, int] = {}
    columns: tuple[list, ...] = ([], [], [], [], [])
    for row in read_rows(path, read_text(path), TASKS):
        label = row.whole_number("id")
        if label in lines:
            raise row.fail("id", f"line {lines[label]} has the same id")
        lines[label] = row.line
        name = row.cells["task_type"]
        if name not in row_of:
            raise row.fail("task_type", _unknown(name, task_types, "the ETC matrix"))
        values = (
            row.number("submit_time_s"), row_of[name], row.number("priority"),
            row.number("urgency"), _within(row, "utility_class", 0, len(classes) - 1),
        )  # fmt: skip
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    submit, types, priority, urgency, utility_class = columns
    utility = UtilityFunctions(
        np.array(priority, dtype=np.float64), np.array(urgency, dtype=np.float64),
        np.array(utility_class, dtype=np.int64), classes, urgency_unit_s,
    )  # fmt: skip
    return make_tasks(
        np.full(len(lines), TYPED_TASK_FLOPS), np.array(submit, dtype=np.float64),
        labels=list(lines), task_type=np.array(types, dtype=np.int64), utility=utility,
        name=str(path),
    )  # fmt: skip


def _name(row: Row, column: str) -> str:
    if not row.cells[column] or row.cells[column].startswith("#"):
        raise row.fail(column, "a name that does not begin with '#' is needed")
    return row.cells[column]


def _within(row: Row, column: str, least: int, most: int) -> int:
    value = row.whole_number(column)
    if not least <= value <= most:
        raise row.fail(column, f"it must lie from {least} to {most}")
    return value


def _unknown(name: str, known: Sequence[str], place: str | Path) -> str:
    hint = did_you_mean(name, known)
    return f"{place} does not have it. {hint}".rstrip(" .")
