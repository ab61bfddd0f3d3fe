"""Read a file that nobody vouches for."""

from __future__ import annotations

import stat
from pathlib import Path

from gridsched.errors import InputError

#: Larger texts are refused, unless a caller knows better.
MAX_TEXT_BYTES = 1 << 30


def read_text(path: str | Path, most: int = MAX_TEXT_BYTES) -> str:
    """Return the text of a UTF-8 file; a byte order mark is skipped.

    Parameters
    ----------
    path : str or Path
    most : int
        Larger files are refused [byte].

    Raises
    ------
    InputError
        If the file cannot be read or is no text.
    """
    try:
        text = read_bytes(path, most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: no text in UTF-8 (byte {error.start}).") from None
    if "\0" in text:
        raise InputError(f"{path}: no text: it holds NUL characters.")
    return text


def check_size(path: str | Path, most: int) -> None:
    """Refuse what is no regular file of at most `most` bytes: its reading might never end.

    Raises
    ------
    InputError
        If it is missing, a folder, device or pipe, or too large.
    """
    try:
        found = Path(path).stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from None
    if stat.S_ISDIR(found.st_mode):
        raise InputError(f"{path}: cannot be read: it is a folder.")
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"{path}: cannot be read: it is a device or pipe.")
    if found.st_size > most:
        raise InputError(
            f"{path}: has {found.st_size / 2**20:,.0f} MB; at most {most // 2**20:,} MB are read."
        )


def read_bytes(path: str | Path, most: int, expected: str | None = None) -> bytes:
    """Return the content of a regular file.

    Parameters
    ----------
    path : str or Path
    most : int
        Larger files are refused [byte].
    expected : str, optional
        What the file should be; where it is told, an empty file is refused.

    Raises
    ------
    InputError
        If the file is missing, unreadable, too large, or a folder or device; or empty.
    """
    try:
        check_size(path, most)
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from None
    if expected is not None and not data.strip():
        raise InputError(f"{path}: the file is empty; {expected} is expected.")
    return data
