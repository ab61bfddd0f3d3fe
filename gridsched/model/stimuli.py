"""What people or programs outside may do while a run goes on, at times of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class CancelTask:
    """Take a task out of the run, wherever it is; one that runs ends, and what it drew is wasted.

    Attributes
    ----------
    task : int
    """

    task: int


@dataclass(frozen=True, slots=True)
class DrainHost:
    """Give a host no task from now on; whatever runs there goes on.

    Attributes
    ----------
    host : int
    """

    host: int


@dataclass(frozen=True, slots=True)
class ResumeHost:
    """Give a drained host tasks again.

    Attributes
    ----------
    host : int
    """

    host: int


@dataclass(frozen=True, slots=True)
class SetPowerCap:
    """Let all hosts together draw at most so much from now on.

    Attributes
    ----------
    cap_w : float
        [W]; infinite for no cap.
    """

    cap_w: float


Stimulus = CancelTask | DrainHost | ResumeHost | SetPowerCap


class TimedStimulus(NamedTuple):
    """Something that is done at a time [s]."""

    time_s: float
    stimulus: Stimulus

    def moved(self, place: int) -> TimedStimulus:
        """Return the same where tasks from a place on, which are not submitted yet, have moved up by one."""
        of = self.stimulus
        if isinstance(of, CancelTask) and of.task >= place:
            return TimedStimulus(self.time_s, CancelTask(of.task + 1))
        return self
