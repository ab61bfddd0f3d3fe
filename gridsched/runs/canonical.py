"""What identifies a run: the canonical text of its scenario and the hash of that text."""

from __future__ import annotations

import hashlib
from pathlib import Path

from gridsched.errors import InputError
from gridsched.files.input_files import check_size
from gridsched.files.output_files import as_bytes

#: Version of everything that decides a run's metrics. Raise it with every change that alters any
#: number a run gives; stored runs of another version are kept, but not taken for this one's.
RESULTS_VERSION = 2

#: Larger files are not hashed: the largest that is read here has a few gigabytes.
MAX_BYTES = 64 << 30


def run_id_of(canonical: str) -> str:
    """Return the id of the run whose scenario has this canonical text: 32 hexadecimal digits."""
    text = f"{RESULTS_VERSION}\n{canonical}"
    return hashlib.sha256(as_bytes(text)).hexdigest()[:32]


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's content.

    Raises
    ------
    InputError
        If it cannot be read, is too large, or is a folder, device or pipe.
    """
    check_size(path, MAX_BYTES)
    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from None


def checked_file(path: Path, sha256: str) -> Path:
    """Return a file that is known by its content.

    Raises
    ------
    InputError
        If it cannot be read, or its content is another.
    """
    if file_digest(path) != sha256:
        raise InputError(
            f"{path}: is damaged: its content is not that which runs of the study read. Put the "
            "right file there, or run the study again."
        )
    return path
