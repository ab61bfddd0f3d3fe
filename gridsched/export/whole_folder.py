"""Write a folder whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from gridsched.errors import InputError


def check_folder(folder: Path, ours: frozenset[str], marker: str, *, force: bool) -> None:
    """Raise `InputError` unless `folder` may be written.

    Parameters
    ----------
    folder : Path
    ours : frozenset of str
        Names that may lie in a folder that is replaced.
    marker : str
        The file without which a folder that is not empty is somebody else's.
    force : bool
        Replace an existing folder of ours.
    """
    if folder.is_dir():
        if not force:
            raise InputError(f"{folder}: exists already; give another name or --force.")
        try:
            names = {entry.name for entry in folder.iterdir()}
        except OSError as error:
            raise InputError(f"{folder}: cannot be read: {error.strerror}.") from None
        foreign = sorted(names - ours)
        if foreign:
            raise InputError(
                f"{folder}: is not replaced, because it holds {foreign[0]!r}, which is no file "
                "of an export; give another name, or move it away."
            )
        if names and marker not in names:
            raise InputError(
                f"{folder}: is not replaced, because it has no {marker!r} and so is no export; "
                "give another name."
            )
    elif folder.exists():
        raise InputError(f"{folder}: is a file; give the name of a folder.")


def write_folder(
    folder: Path,
    contents: Mapping[str, str],
    ours: frozenset[str],
    *,
    marker: str,
    force: bool = False,
) -> None:
    """Write files into a new folder beside `folder` and rename it; an old one goes last.

    Parameters
    ----------
    folder : Path
        Target; missing parents are made.
    contents : mapping of str to str
        Text of each file.
    ours : frozenset of str
        Names that may lie in a folder that is replaced.
    marker : str
        One of the files; see `check_folder`.
    force : bool
        Replace an existing folder that holds nothing but such files.

    Raises
    ------
    InputError
        If the folder exists and may not be replaced, or cannot be written.
    """
    target = Path(os.path.realpath(folder))
    check_folder(target, ours, marker, force=force)
    made = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent))
        for name, text in contents.items():
            (made / name).write_text(
                text, encoding="utf-8", errors="backslashreplace", newline="\n"
            )
        made.chmod(0o777 & ~_umask())
        _put_in_place(made, target)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}.") from None
    finally:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _put_in_place(made: Path, target: Path) -> None:
    """Rename `made` to `target`; the old target is deleted only after that."""
    if not target.exists():
        made.rename(target)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".old", dir=target.parent))
    old = aside / target.name
    try:
        target.rename(old)
        try:
            made.rename(target)
        except BaseException:
            old.rename(target)
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
