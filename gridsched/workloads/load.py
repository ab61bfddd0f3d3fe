"""Open a workload by its name: a CSV of tasks or the TOML of a generator."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from gridsched.errors import InputError, did_you_mean
from gridsched.model.tasks import Tasks
from gridsched.workloads.bag import BagOfTasks, generate_bag
from gridsched.workloads.csv_file import read_bag
from gridsched.workloads.table import read_text

#: Longer values are cut in messages.
MAX_SHOWN = 80


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
    if ".swf" in [part.lower() for part in Path(path).suffixes]:
        raise InputError(f"{path}: this version reads no SWF traces yet; convert it to .csv.")
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


def checked_bag(
    values: dict[str, object], owner: str, spelled: Callable[[str], str] = str
) -> BagOfTasks:
    """Return the bag that `values` describe; an `InputError` names `owner` and the key.

    `spelled` says how a key is written where the values come from.
    """
    try:
        return BagOfTasks.model_validate(values)
    except ValidationError as error:
        # a misspelt key explains why another one is missing
        first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        key = ".".join(str(part) for part in first["loc"]) or "table"
        if first["type"] == "missing":
            raise InputError(f"{owner}: {spelled(key)} is missing.") from None
        if first["type"] == "extra_forbidden":
            hint = did_you_mean(key, BagOfTasks.model_fields)
            legal = ", ".join(BagOfTasks.model_fields)
            raise InputError(f"{owner}: unknown key {key!r}. {hint}Legal: {legal}.") from None
        found = repr(first["input"])
        found = found if len(found) < MAX_SHOWN else f"{found[:MAX_SHOWN]}..."
        raise InputError(f"{owner}: {spelled(key)} is {found}; {_legal(first['msg'])}.") from None


def _legal(message: str) -> str:
    """Return pydantic's complaint as the end of a sentence."""
    return message.replace("Input should", "it should")
