"""Open a workload by its name: a CSV of tasks or the TOML of a generator."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from gridsched.errors import InputError, did_you_mean
from gridsched.files.input_files import read_text
from gridsched.model.task_types import SystemWorkload
from gridsched.model.tasks import Tasks
from gridsched.workloads.bag import BagOfTasks, generate_bag
from gridsched.workloads.csv_file import read_bag
from gridsched.workloads.utility_day import UtilityDay, generate_utility_day

#: Kinds of generators.
KINDS = ("bag", "utility")

#: Longer values are cut in messages.
MAX_SHOWN = 80
#: More keys than this are not listed in a message.
MAX_LISTED = 20
Parameters = TypeVar("Parameters", bound=BaseModel)


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
        spec = read_generator(path)
        if isinstance(spec, UtilityDay):
            raise InputError(
                f"{path}: kind 'utility' brings its machines too, so it goes where no platform is "
                "given; use 'read_system_workload' in Python."
            )
        return generate_bag(spec)
    if suffix == ".csv":
        return read_bag(path, files=files)
    if ".swf" in [part.lower() for part in Path(path).suffixes]:
        raise InputError(f"{path}: this version reads no SWF traces yet; convert it to .csv.")
    raise InputError(f"{path}: a workload is a .csv (tasks) or a .toml (generator) file.")


def read_system_workload(path: str | Path) -> SystemWorkload | None:
    """Read or generate a workload that brings its system.

    Parameters
    ----------
    path : path
        ``.toml`` with a kind that makes its machines (``utility``).

    Returns
    -------
    SystemWorkload or None
        None where the file is of another kind, which `read_workload` reads.

    Raises
    ------
    InputError
        If the file cannot be read or is wrong.
    """
    if Path(path).suffix.lower() != ".toml":
        return None
    spec = read_generator(path)
    return generate_utility_day(spec) if isinstance(spec, UtilityDay) else None


def read_generator(path: str | Path) -> BagOfTasks | UtilityDay:
    """Read the parameters of a generator from TOML; paths in it are relative to the file.

    Raises
    ------
    InputError
        Naming the file and the key that is wrong.
    """
    try:
        content = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: no valid TOML: {error}.") from None
    kind = content.get("kind", "bag")
    if kind == "utility":
        return checked_utility_day(content, str(path), folder=Path(path).parent)
    if kind != "bag":
        raise InputError(f"{path}: kind is {kind!r}. {_kinds(kind)}")
    return checked_bag(content, str(path))


def _kinds(kind: object) -> str:
    return f"{did_you_mean(str(kind), KINDS)}Legal: {', '.join(KINDS)}."


def checked_bag(
    values: dict[str, object], owner: str, spelled: Callable[[str], str] = str
) -> BagOfTasks:
    """Return the bag that `values` describe; an `InputError` names `owner` and the key.

    `spelled` says how a key is written where the values come from.
    """
    return _checked(BagOfTasks, values, owner, spelled)


def checked_utility_day(
    values: dict[str, object], owner: str, *, folder: str | Path | None = None
) -> UtilityDay:
    """Return the utility workload that `values` describe; an `InputError` names `owner`.

    Paths of CSV files are relative to `folder`.
    """
    spec = _checked(UtilityDay, values, owner)
    files = {
        name: str(Path(folder or ".") / value)
        for name in UtilityDay.model_fields
        if name.endswith("_csv") and (value := getattr(spec, name)) is not None
    }
    return spec.model_copy(update=files)


def _checked(
    model: type[Parameters], values: dict[str, object], owner: str,
    spelled: Callable[[str], str] = str,
) -> Parameters:  # fmt: skip
    try:
        return model.model_validate(values)
    except ValidationError as error:
        # a misspelt key explains why another one is missing
        first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        key = ".".join(str(part) for part in first["loc"]) or "table"
        if first["type"] == "missing":
            raise InputError(f"{owner}: {spelled(key)} is missing.") from None
        if first["type"] == "extra_forbidden":
            hint = did_you_mean(key, model.model_fields)
            legal = f"Legal: {', '.join(model.model_fields)}."
            if len(model.model_fields) > MAX_LISTED:
                legal = "docs/utility_workloads.md lists the legal ones."
            raise InputError(f"{owner}: unknown key {key!r}. {hint}{legal}") from None
        found = repr(first["input"])
        found = found if len(found) < MAX_SHOWN else f"{found[:MAX_SHOWN]}..."
        raise InputError(f"{owner}: {spelled(key)} is {found}; {_legal(first['msg'])}.") from None
    except InputError as error:  # keys that contradict each other
        raise InputError(f"{owner}: {error}") from None


def _legal(message: str) -> str:
    """Return pydantic's complaint as the end of a sentence."""
    message = message.removeprefix("Value error, ")
    return message.replace("Input should", "it should")
