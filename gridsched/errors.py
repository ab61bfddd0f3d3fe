"""The errors gridsched raises on purpose.

Each says which object is meant, what is legal, what was found and what to do. The command line
prints them as one line; :class:`InputError` ends it with status 2, all others with status 1.
"""

from __future__ import annotations

import difflib
import errno
import os
from collections.abc import Iterable


class GridschedError(Exception):
    """Base class of every error gridsched raises on purpose."""


class InputError(GridschedError):
    """A file, option or argument that gridsched cannot accept."""


class NotTrusted(InputError):
    """Python that comes with data would have to be run, and nobody has said that it may."""


class MissingDependency(InputError):
    """An optional package is needed and not installed."""


class InvalidDecision(GridschedError):
    """A scheduler asked for something the contract forbids."""


class IncompleteRun(GridschedError):
    """A run ended although some tasks never reached a final state."""


class SimulationError(GridschedError):
    """SimGrid refused, crashed, dead-locked, timed out or disagrees with the controller."""


class ProcessLost(SimulationError):
    """The simulating process was killed from outside; the run itself may be fine."""


class EnvironmentFault(GridschedError):
    """The machine, not the run, is at fault: a process or thread cannot be made, say."""


#: What the system says when processes, threads, memory, open files or disk space run out.
_EXHAUSTED = {
    errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT,
}  # fmt: skip


def blames_environment(error: BaseException) -> bool:
    """Whether an exception tells of the machine's limits rather than of what was run on it."""
    if isinstance(error, OSError):
        return error.errno in _EXHAUSTED
    no_thread = ("can't start new thread", os.strerror(errno.EAGAIN))
    return isinstance(error, RuntimeError) and str(error).startswith(no_thread)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``"Did you mean 'x'? "`` for the known word nearest to `word`, or an empty string."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"Did you mean {near[0]!r}? " if near else ""
