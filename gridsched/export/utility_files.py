"""Utility functions and budget periods as files and back: parts of an export."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import InputError
from gridsched.export.batsim_files import Columns
from gridsched.files.csv_files import Kind, read_table
from gridsched.files.json_files import Fields, is_number
from gridsched.model.limits import SMALLEST
from gridsched.model.trace import PERIOD
from gridsched.model.utility import UtilityFunctions
from gridsched.model.utility_classes import LINEAR, UtilityClasses

#: Columns of ``tasks.csv`` where tasks have utility functions.
UTILITY_KINDS: dict[str, Kind] = {
    "priority": "number", "urgency": "number", "utility_class": "integer",
}  # fmt: skip


def utility_columns(functions: UtilityFunctions | None) -> Columns:
    """Return the columns of ``tasks.csv`` that tell each task's utility function."""
    return {} if functions is None else {name: getattr(functions, name) for name in UTILITY_KINDS}


def classes_values(functions: UtilityFunctions | None) -> dict[str, Any] | None:
    """Return the utility classes as they stand in ``trace.json``; times in urgency units."""
    if functions is None:
        return None
    return {
        "urgency_unit_s": float(functions.urgency_unit_s),
        "classes": [_class_values(functions.classes, c) for c in range(len(functions.classes))],
    }


def _class_values(classes: UtilityClasses, c: int) -> dict[str, Any]:
    rows = slice(int(classes.first[c]), int(classes.first[c + 1]))
    values = {
        "kind": "linear" if classes.kind[c] == LINEAR else "decaying",
        "start_time": classes.start_time[rows].tolist(),
        "start_fraction": classes.start_fraction[rows].tolist(),
    }
    if classes.kind[c] != LINEAR:
        values["urgency_modifier"] = classes.urgency_modifier[rows].tolist()
    return values


def read_functions(fields: Fields, table: Mapping[str, Any]) -> UtilityFunctions:
    """Return the utility functions from ``trace.json`` and the columns of ``tasks.csv``.

    Raises
    ------
    InputError
        Naming the file and what is wrong in it.
    """
    parts = [_read_class(entry) for entry in fields.objects("classes")]
    if not parts:
        fields.refuse("utility.classes", [], "at least one class")
    unit_s = fields.number("urgency_unit_s", SMALLEST)
    try:
        return UtilityFunctions(
            table["priority"], table["urgency"], table["utility_class"],
            UtilityClasses.joined(parts), unit_s,
        )  # fmt: skip
    except InputError as error:
        raise InputError(f"{fields.path.parent / 'tasks.csv'}: {error}") from None


def _read_class(entry: Fields) -> UtilityClasses:
    kind = entry.text("kind")
    if kind not in ("decaying", "linear"):
        entry.refuse(f"{entry.where}.kind", kind, "'decaying' or 'linear'")

    def numbers(name: str) -> list[float]:
        return [float(value) for value in entry.values(name, is_number, "finite numbers")]

    points = (numbers("start_time"), numbers("start_fraction"))
    try:
        if kind == "linear":
            return UtilityClasses.from_points(*points)
        return UtilityClasses.from_intervals([(*points, numbers("urgency_modifier"))])
    except InputError as error:
        raise InputError(f"{entry.path}: {entry.where}: {error}") from None


def read_periods(path: Path) -> NDArray[np.void]:
    """Return the periods in ``periods.csv``; an empty budget is an infinite one.

    Raises
    ------
    InputError
        Naming the line that is wrong.
    """
    table = read_table(path, {
        "start_s": "number", "end_s": "number", "budget_j": "number or empty",
        "consumed_j": "number", "carried_over_j": "number",
    })  # fmt: skip
    periods = np.zeros(len(table["start_s"]), dtype=PERIOD)
    for name, column in zip(PERIOD.names, table.values(), strict=True):
        periods[name] = column
    periods["budget_j"][np.isnan(periods["budget_j"])] = np.inf
    wrong = ~(periods["end"] > periods["start"])
    wrong[1:] |= periods["start"][1:] < periods["end"][:-1]
    if wrong.any():
        line = int(np.argmax(wrong)) + 2
        raise InputError(
            f"{path}: line {line}: each period must end after it starts, and start at or after "
            "the end of the one before."
        )
    return periods
