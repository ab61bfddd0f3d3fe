"""Open a workload by its name: a CSV of tasks or the TOML of a generator."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import ValidationError

from gridsched.errors import InputError
from gridsched.model.tasks import Tasks
from gridsched.workloads.bag import BagOfTasks, generate_bag
from gridsched.workloads.csv_file import read_bag
from gridsched.workloads.table import read_text


def read_workload(path: str | Path, *, files: str | Path | None = None) -> Tasks:
    """Read or generate a workload.

    Parameters
    ----------
    path : path
        ``.csv``: a bag of tasks; ``.toml``: parameters of a generator.
    files : path, optional
        Input files of the tasks (CSV workloads only).

    Raises
    ------
    InputError
        If the file cannot be read or its kind is unknown.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".toml":
        if files is not None:
            raise InputError(f"{path}: --files goes with a CSV workload, not with a generator.")
        return generate_bag(read_generator(path))
    if suffix == ".csv":
        return read_bag(path, files=files)
    raise InputError(f"{path}: a workload is a .csv (tasks) or a .toml (generator) file.")


def read_generator(path: str | Path) -> BagOfTasks:
    """Read the parameters of a generator from TOML.

    Raises
    ------
    InputError
        Naming the file and the key that is wrong.
    """
    try:
        content = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: no valid TOML: {error}.") from None
    return checked_bag(content, str(path))


def checked_bag(values: dict[str, object], owner: str) -> BagOfTasks:
    """Return the bag that `values` describe; an `InputError` names `owner` and the key."""
    try:
        return BagOfTasks.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "table"
        found = "" if first["type"] == "missing" else f", found {first['input']!r}"
        legal = ", ".join(BagOfTasks.model_fields)
        raise InputError(f"{owner}: {key}: {first['msg']}{found}. Keys: {legal}.") from None
