"""Tables of profiles (TOML): named computations and messages of the parts of jobs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import tomli_w
from pydantic import BaseModel, ConfigDict, Field

from gridsched.errors import InputError
from gridsched.files.input_files import parse_toml, read_text
from gridsched.files.output_files import write_whole
from gridsched.model.job_profiles import MOST_MESSAGES, Delay, ParallelWork, Pattern, Profile, Sequence
from gridsched.model.limits import AtLeastZero
from gridsched.model.records import checked

#: More profiles, and larger files, are refused [byte].
MOST_PROFILES, MAX_BYTES = 100_000, 64 << 20
_WORK = (
    "total_flops",
    "pattern",
    "message_bytes",
    "total_bytes",
    "shared_bytes",
    "matrix",
    "iterations",
    "read_bytes",
    "write_bytes",
    "storage",
)


#: What keys mean that are left out.
_NO_WORK = ParallelWork()


class ProfileKeys(BaseModel):
    """A ``[[profile]]`` of a table: a delay, a sequence, or computations and messages of parts.

    Attributes
    ----------
    name : str
    delay_s : float
        Time in which nothing is computed or sent [s].
    sequence : list of str
        Names of profiles that are before it in the table.
    repeat : int
        Number of times that the sequence runs.
    flops : float or list of float
        Work of each part [flop].
    total_flops, pattern, message_bytes, total_bytes, shared_bytes, matrix, iterations, read_bytes, write_bytes, storage
        As in `gridsched.model.job_profiles.ParallelWork`.
    """

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    name: Annotated[str, Field(min_length=1, max_length=100)]
    delay_s: AtLeastZero | None = None
    sequence: Annotated[list[str] | None, Field(min_length=1, max_length=10_000)] = None
    repeat: Annotated[int, Field(ge=1)] = 1
    flops: AtLeastZero | Annotated[list[AtLeastZero], Field(max_length=1_000_000)] = []
    total_flops: AtLeastZero = 0.0
    pattern: Pattern | None = None
    message_bytes: AtLeastZero = 0.0
    total_bytes: AtLeastZero = 0.0
    shared_bytes: AtLeastZero = 0.0
    matrix: Annotated[list[AtLeastZero], Field(max_length=MOST_MESSAGES)] = []
    iterations: Annotated[int, Field(ge=1, le=10**9)] = 1
    read_bytes: AtLeastZero = 0.0
    write_bytes: AtLeastZero = 0.0
    storage: Annotated[str, Field(max_length=1_000)] = ""


def read_profiles(path: str | Path) -> dict[str, Profile]:
    """Return the profiles of a table by their names.

    Parameters
    ----------
    path : path

    Raises
    ------
    InputError
        If the file cannot be read, or a key of it is wrong.
    """
    content = parse_toml(read_text(path, MAX_BYTES), str(path))
    rows = content.pop("profile", None)
    if not isinstance(rows, list) or content or len(rows) > MOST_PROFILES:
        found = ", ".join(content) or "none"
        raise InputError(
            f"{path}: a table of profiles has only [[profile]], at most {MOST_PROFILES:,}; other keys: {found}."
        )
    profiles: dict[str, Profile] = {}
    for number, row in enumerate(rows, start=1):
        owner = f"{path}: profile {number}: "
        if not isinstance(row, dict):
            raise InputError(f"{owner}it must be a table ([[profile]]).")
        unknown = sorted(set(row) - set(ProfileKeys.model_fields))
        if unknown or "name" not in row:
            what = f"no key is called {unknown[0]!r}" if unknown else "it lacks 'name'"
            raise InputError(f"{owner}{what}; its keys are {', '.join(ProfileKeys.model_fields)}.")
        keys = checked(ProfileKeys, row, owner)
        if keys.name in profiles:
            raise InputError(f"{owner}an earlier profile has the name {keys.name!r}, too; give each its own name.")
        profiles[keys.name] = _profile(keys, profiles, owner)
    return profiles


def write_profiles(profiles: Iterable[Profile], path: str | Path, *, force: bool = False) -> list[str]:
    """Write profiles as a table that `read_profiles` reads back; return their names.

    Parameters
    ----------
    profiles : iterable of Profile
        Those that are equal are written once, and so are those within sequences.
    path : path
    force : bool
        Whether an existing file may be replaced.

    Raises
    ------
    InputError
        If there are more than a table may have, or the file exists already or cannot be written.
    """
    rows: dict[Profile, dict[str, Any]] = {}
    names = [_written(each, rows) for each in profiles]
    text = tomli_w.dumps({"profile": list(rows.values())})
    if len(rows) > MOST_PROFILES or len(text) > MAX_BYTES:
        raise InputError(
            f"{path}: a table of profiles has at most {MOST_PROFILES:,} and {MAX_BYTES >> 20} MB; these are "
            f"{len(rows):,} and {len(text) / 2**20:,.0f} MB. Generate fewer jobs."
        )
    write_whole(path, text, force=force)
    return names


def _written(profile: Profile, rows: dict[Profile, dict[str, Any]]) -> str:
    """Add the row of a profile behind those of the ones that it names, unless it is there; return its name."""
    if profile in rows:
        return str(rows[profile]["name"])
    keys: dict[str, Any] = {}
    if isinstance(profile, Delay):
        keys["delay_s"] = profile.seconds
    elif isinstance(profile, Sequence):
        keys["sequence"] = [_written(each, rows) for each in profile.profiles]
        keys["repeat"] = profile.repeat
    else:
        values = {name: getattr(profile, name) for name in ("flops", *_WORK)}
        values = {name: value for name, value in values.items() if value != getattr(_NO_WORK, name)}
        keys = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    rows[profile] = {"name": f"p{len(rows) + 1}", **keys}
    return str(rows[profile]["name"])


def _profile(keys: ProfileKeys, before: dict[str, Profile], owner: str) -> Profile:
    """Return a profile, which may name those before it."""
    given = keys.model_fields_set - {"name"}
    for only, own in (("delay_s", {"delay_s"}), ("sequence", {"sequence", "repeat"})):
        if only in given and given - own:
            raise InputError(f"{owner}{keys.name!r} has {only} and {min(given - own)}; leave one of them out.")
    if "repeat" in given and keys.sequence is None:
        raise InputError(f"{owner}{keys.name!r} has repeat without a sequence; iterations repeats a computation.")
    try:
        if keys.delay_s is not None:
            return Delay(keys.delay_s)
        if keys.sequence is not None:
            missing = [name for name in keys.sequence if name not in before]
            if missing:
                raise InputError(f"sequence names {missing[0]!r}, but no profile before it has this name.")
            return Sequence(tuple(before[name] for name in keys.sequence), keys.repeat)
        values: dict[str, Any] = {name: getattr(keys, name) for name in _WORK}
        flops = tuple(keys.flops) if isinstance(keys.flops, list) else (keys.flops,)
        return ParallelWork(flops=flops, **{**values, "matrix": tuple(keys.matrix)})
    except InputError as error:
        raise InputError(f"{owner}{keys.name!r}: {error}") from None
