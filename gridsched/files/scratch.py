"""Folders for temporary files, which outlive no process for long."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_SCRATCH = "gridsched-scratch-"


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give a folder for temporary files; it goes with the block.

    Folders of processes that were killed go, too.
    """
    base = Path(tempfile.gettempdir())
    for old in base.glob(f"{_SCRATCH}*"):
        if _is_abandoned(old):
            shutil.rmtree(old, ignore_errors=True)
    prefix = f"{_SCRATCH}{os.getpid()}-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name:
        lock = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
            yield Path(name)
        finally:
            os.close(lock)


def _is_abandoned(folder: Path) -> bool:
    """Whether the process has gone that made a folder; its lock tells where ids do not."""
    made_by = re.match(rf"{_SCRATCH}(\d+)-", folder.name)
    if made_by is None or is_alive(int(made_by[1])):
        return False
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


def is_alive(pid: int) -> bool:
    """Whether a process of this machine has not ended."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")
