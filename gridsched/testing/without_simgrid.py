"""A second interpreter in which ``import simgrid`` fails, to play schedulers in.

It is started when first needed and serves all schedulers of a process, because importing numpy
and numba takes longer than all the rest.
"""

from __future__ import annotations

import atexit
import functools
import os
import pickle
import subprocess
import sys

import cloudpickle

from gridsched.errors import GridschedError
from gridsched.policy.base import Scheduler
from gridsched.sim import wire
from gridsched.testing.case import Case
from gridsched.testing.playing import CheckFailed, play

_START = (
    "import sys; sys.path[:] = {path!r}; sys.modules['simgrid'] = None; "
    "from gridsched.testing.without_simgrid import main; main()"
)


class BlockedInterpreter:
    """A running interpreter without SimGrid."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        atexit.register(self.close)

    def play(self, scheduler: Scheduler, case: Case) -> str:
        """Return what went wrong in playing the case there, or an empty string."""
        wire.send(self._stdin.fileno(), cloudpickle.dumps((scheduler, case)))
        answer = wire.receive(self._stdout.fileno())
        if answer is None:
            blocked_interpreter.cache_clear()
            self.close()
            return "The interpreter died."
        return pickle.loads(answer)

    def close(self) -> None:
        """End the interpreter."""
        self._stdin.close()
        self._stdout.close()
        self._process.wait()


@functools.cache
def blocked_interpreter() -> BlockedInterpreter:
    """Return this process's interpreter without SimGrid."""
    return BlockedInterpreter()


def _problem(message: bytes) -> str:
    try:
        scheduler, case = cloudpickle.loads(message)
        play(case, scheduler)
    except (CheckFailed, GridschedError, ImportError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main() -> None:
    """Play what comes in on standard input until it is closed."""
    answers = os.dup(1)
    os.dup2(2, 1)  # whatever a policy prints does not disturb the answers
    while (message := wire.receive(0)) is not None:
        wire.send(answers, pickle.dumps(_problem(message)))
