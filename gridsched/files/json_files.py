"""JSON: numbers out with every digit, fields in with every value checked."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np

from gridsched.errors import InputError
from gridsched.files.csv_files import MAX_BYTES
from gridsched.files.input_files import read_text
from gridsched.model.limits import LARGEST_RESULT

T = TypeVar("T")


def json_text(value: object, *, exact: bool = False) -> str:
    """Return indented JSON for people and their programs.

    Parameters
    ----------
    value : object
        As `plain` takes it.
    exact : bool
        Keep nan and infinities as Python's ``json`` does, so that they read back. JSON lacks
        them, so by default they are null.
    """
    indent = 1 if exact else 2
    value = plain(value, lacking=_kept if exact else _null)
    return json.dumps(value, indent=indent, ensure_ascii=False) + "\n"


def canonical_text(value: object) -> str:
    """Return JSON with sorted keys and no blanks: equal values give equal texts.

    Infinities are written as Python's ``Infinity``.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def stored_text(value: object) -> str:
    """Return JSON in one line: nan is null, infinities are the texts ``inf`` and ``-inf``."""
    return json.dumps(plain(value, lacking=_told), separators=(",", ":"), ensure_ascii=False)


def _null(number: float) -> None:
    return None


def _kept(number: float) -> float:
    return number


def _told(number: float) -> str | None:
    return None if math.isnan(number) else "inf" if number > 0 else "-inf"


def plain(value: object, *, lacking: Callable[[float], object] = _null) -> object:
    """Return a value in JSON's own types.

    Parameters
    ----------
    value : object
        Mappings, lists, tuples, arrays, numpy numbers, paths, and what JSON has itself.
    lacking : callable
        What stands for nan and infinities; by default null.
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return lacking(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item, lacking=lacking) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, lacking=lacking) for item in value]
    return str(value) if isinstance(value, Path) else value


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; `InputError` where there is none."""
    try:
        value = json.loads(read_text(path, MAX_BYTES))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: must hold a JSON object, not {type(value).__name__}.")
    return value


class Fields:
    """Checked access to a JSON object: every fault names the file and the field."""

    def __init__(self, path: Path, values: object, where: str = "") -> None:
        self.path, self.where = path, where
        if not isinstance(values, dict):
            self.refuse(where or "the file", values, "an object")
        self._values = values

    def refuse(self, name: str, found: object, need: str) -> NoReturn:
        """Raise `InputError` for a field."""
        raise InputError(f"{self.path}: {name} is {found!r}; it must be {need}.")

    def _get(self, name: str, is_legal: Callable[[Any], bool], need: str) -> Any:
        label = f"{self.where}.{name}" if self.where else name
        if name not in self._values:
            raise InputError(f"{self.path}: {label} is missing.")
        value = self._values[name]
        if not is_legal(value):
            self.refuse(label, value, need)
        return value

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self._values.get(name) is not None

    def number(self, name: str, least: float = 0.0) -> float:
        """Return a finite number of at least `least`."""
        return float(self._get(
            name, lambda v: is_number(v) and v >= least, f"a finite number >= {least:g}"
        ))  # fmt: skip

    def whole(self, name: str, least: int = 0) -> int:
        """Return a whole number of at least `least`."""
        return self._get(
            name, lambda v: is_number(v) and isinstance(v, int) and v >= least,
            f"a whole number >= {least}",
        )  # fmt: skip

    def text(self, name: str) -> str:
        """Return a string."""
        return self._get(name, lambda v: isinstance(v, str), "a text")

    def flag(self, name: str) -> bool:
        """Return a boolean."""
        return self._get(name, lambda v: isinstance(v, bool), "true or false")

    def values(self, name: str, item: Callable[[Any], bool], need: str) -> list:
        """Return a list all of whose items are legal."""
        return self._get(
            name, lambda v: isinstance(v, list) and all(map(item, v)), f"a list of {need}"
        )

    def objects(self, name: str) -> list[Fields]:
        """Return a list of objects."""
        label = f"{self.where}.{name}" if self.where else name
        items = self.values(name, lambda v: isinstance(v, dict), "objects")
        return [Fields(self.path, item, f"{label}[{k}]") for k, item in enumerate(items)]

    def object(self, name: str) -> Fields:
        """Return an object."""
        label = f"{self.where}.{name}" if self.where else name
        return Fields(self.path, self._get(name, lambda v: True, ""), label)

    def optional(self, name: str, read: Callable[[str], T]) -> T | None:
        """Return None where the field is null, else what `read` returns."""
        return None if self._get(name, lambda v: True, "") is None else read(name)


def is_number(value: object) -> bool:
    """Whether a JSON value is a finite number."""
    return (
        isinstance(value, int | float) and not isinstance(value, bool)
        and abs(value) <= LARGEST_RESULT
    )  # fmt: skip


def is_text(value: object) -> bool:
    """Whether a JSON value is a string."""
    return isinstance(value, str)
