"""One CPU for each simulating process.

SimGrid's Python actors are threads that run one at a time; on one CPU the hand-over between them
costs a half to a tenth. Processes that run side by side take different CPUs by file locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from pathlib import Path

_held: list[int] = []


def pin_to_free_cpu() -> int:
    """Pin this process to a CPU that no other run of this user holds; return its number.

    The lock is held until the process ends. Where all CPUs are taken, one is shared.
    """
    cpus = sorted(os.sched_getaffinity(0))
    chosen = cpus[os.getpid() % len(cpus)]
    folder = Path(tempfile.gettempdir())
    for cpu in cpus:
        lock = folder / f"gridsched-{os.getuid()}-cpu{cpu}.lock"
        with contextlib.suppress(OSError):
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                continue
            _held.append(descriptor)
            chosen = cpu
            break
    os.sched_setaffinity(0, {chosen})
    return chosen
