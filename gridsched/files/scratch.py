"""Folders for temporary files, which outlive no process for long."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_SCRATCH = "gridsched-scratch-"
#: What the clock may have been set by since [s].
_CLOCK_STEP_S = 2.0


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
    try:
        if made_by is None or is_alive(int(made_by[1]), folder.stat().st_mtime):
            return False
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


def is_alive(pid: int, since: float = math.inf) -> bool:
    """Whether a process of this machine has not ended.

    Parameters
    ----------
    pid : int
    since : float
        A time at which it was there [s since 1970]; a later one that has its number is another.
    """
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    state, *others = status.rpartition(")")[2].split()
    began = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    began += int(others[18]) / os.sysconf("SC_CLK_TCK")
    return state not in ("Z", "X") and began <= since + _CLOCK_STEP_S
