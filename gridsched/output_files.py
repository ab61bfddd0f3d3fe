"""Write a file whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from gridsched.errors import InputError


def write_whole(path: str | Path, content: str | bytes, *, force: bool = False) -> None:
    """Write `content` to a temporary file beside `path` and rename it.

    Parameters
    ----------
    path : str or Path
        Target; its folder must exist.
    content : str or bytes
        Text is written as UTF-8.
    force : bool
        Replace an existing file.

    Raises
    ------
    InputError
        If the target exists and `force` is not given, or cannot be written.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{path}: is a folder; give the name of a file.")
    if target.exists() and not force:
        raise InputError(f"{path}: exists already; give another name or --force to replace it.")
    data = content.encode() if isinstance(content, str) else content
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "xb") as stream:
            stream.write(data)
        os.replace(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written: {error.strerror}.") from None
