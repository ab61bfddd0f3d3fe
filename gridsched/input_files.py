"""Read a file that nobody vouches for."""

from __future__ import annotations

import stat
from pathlib import Path

from gridsched.errors import InputError


def read_bytes(path: str | Path, most: int) -> bytes:
    """Return the content of a regular file.

    Parameters
    ----------
    path : str or Path
    most : int
        Larger files are refused [byte].

    Raises
    ------
    InputError
        If the file is missing, unreadable, too large, or a folder or device.
    """
    try:
        found = Path(path).stat()
        if stat.S_ISDIR(found.st_mode):
            raise InputError(f"{path}: cannot be read: it is a folder.")
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{path}: cannot be read: it is a device or pipe.")
        if found.st_size > most:
            raise InputError(
                f"{path}: has {found.st_size / 2**20:,.0f} MB; at most {most // 2**20:,} MB are "
                "read."
            )
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from None
