"""A second interpreter in which ``import simgrid`` fails, to play schedulers in.

It is started when first needed and serves all schedulers of a process, because importing numpy
and numba takes longer than all the rest.
"""

from __future__ import annotations

import atexit
import functools
import sys

import cloudpickle

from gridsched.errors import GridschedError
from gridsched.policy.base import Scheduler
from gridsched.sim.processes import AnsweringProcess, Channel
from gridsched.testing.case import Case
from gridsched.testing.playing import CheckFailed, play


class BlockedInterpreter(AnsweringProcess):
    """A running interpreter without SimGrid."""

    def __init__(self) -> None:
        super().__init__(__name__, "An interpreter without SimGrid")
        atexit.register(self.end)

    def play(self, scheduler: Scheduler, case: Case) -> str:
        """Return what went wrong in playing the case there, or an empty string."""
        answer: str | None = self.ask(cloudpickle.dumps((scheduler, case)))
        if answer is None:
            blocked_interpreter.cache_clear()
            self.end()
            return "The interpreter died."
        return answer


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
    """Play what is asked."""
    channel = Channel()
    sys.modules["simgrid"] = None  # type: ignore[assignment]
    channel.receive()
    channel.send(True)
    while (message := channel.receive()) is not None:
        channel.send(_problem(message))
