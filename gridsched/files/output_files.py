"""Write a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from gridsched.errors import InputError

_HAS_EFFECTIVE_IDS = os.access in os.supports_effective_ids


def check_writable(path: str | Path, *, force: bool = False) -> None:
    """Raise `InputError` unless a file can be put at `path`; call it before long work.

    Parameters
    ----------
    path : str or Path
    force : bool
        Whether an existing file may be replaced. Devices, pipes and links never are.
    """
    target = Path(path)
    try:
        if target.is_dir():
            raise InputError(f"{path}: is a folder; give the name of a file.")
        mode = _mode(target)
        if mode is not None and not stat.S_ISREG(mode):
            raise InputError(
                f"{path}: is no regular file but {_kind(mode)}, which is never replaced; give "
                "another name."
            )
        if mode is not None and not force:
            raise InputError(f"{path}: exists already; give another name or --force to replace it.")
        if not target.parent.is_dir():
            raise InputError(
                f"{path}: cannot be written: the folder {str(target.parent)!r} is missing."
            )
        if not os.access(target.parent, os.W_OK | os.X_OK, effective_ids=_HAS_EFFECTIVE_IDS):
            raise InputError(
                f"{path}: cannot be written: the folder {str(target.parent)!r} is not writable."
            )
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}.") from None


def _mode(path: Path) -> int | None:
    """Return the mode of a file or of the link itself, None where there is nothing."""
    try:
        return os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a link"
    return "a pipe" if stat.S_ISFIFO(mode) else "a device or socket"


def is_file_name(name: str) -> bool:
    """Whether a text names a file in any folder it is put into, and none elsewhere."""
    return name not in ("", ".", "..") and not {"/", "\0"}.intersection(name)


def as_bytes(content: str | bytes) -> bytes:
    """Return a text as UTF-8; what has no place in it (a file name of other bytes) is escaped."""
    return content.encode(errors="backslashreplace") if isinstance(content, str) else content


def as_text(content: str) -> str:
    """Return a text that UTF-8 can hold, with the rest escaped as `as_bytes` does."""
    return as_bytes(content).decode()


def write_whole(path: str | Path, content: str | bytes, *, force: bool = False) -> None:
    """Write `content` to a temporary file beside `path` and rename it.

    Parameters
    ----------
    path : str or Path
        Target; its folder must exist.
    content : str or bytes
        As `as_bytes` writes it.
    force : bool
        Replace an existing regular file.

    Raises
    ------
    InputError
        If the target is no regular file, exists and `force` is not given, or cannot be written.
    """
    check_writable(path, force=force)
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "xb") as stream:
            stream.write(as_bytes(content))
        os.replace(temporary, target)
    except OSError as error:
        with contextlib.suppress(OSError):  # what is to be told is the first fault
            temporary.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written: {error.strerror}.") from None
