"""What holds tasks back beside the tasks that they wait for: times, and limits on tasks of one array."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gridsched.arrays import Floats, Integers
from gridsched.errors import InputError
from gridsched.model.limits import LARGEST


@dataclass(frozen=True)
class Holds:
    """Times before which tasks do not start, and arrays of which only so many tasks run at once.

    A policy sees neither: a held task is blocked, and so is a task of an array of which as many as its limit
    allows are let go and have not ended. Tasks of an array are let go in order of their ids.

    Attributes
    ----------
    release_s : ndarray of float64, shape (tasks,)
        Before when each task does not start [s], on the clock of the run; 0 for any time.
    array : ndarray of int64, shape (tasks,)
        The array of each task, -1 for none that has a limit.
    limit : ndarray of int64, shape (arrays,)
        How many tasks of each array may run at once.

    Raises
    ------
    InputError
        If a value is out of range.
    """

    release_s: Floats
    array: Integers
    limit: Integers

    def __post_init__(self) -> None:
        if len(self.release_s) != len(self.array):
            raise InputError(f"Holds: {len(self.release_s)} times and {len(self.array)} arrays; each task has one.")
        allowed = (self.release_s >= 0) & (self.release_s <= LARGEST)
        allowed &= (self.array >= -1) & (self.array < len(self.limit))
        if not allowed.all():
            k = int(np.argmin(allowed))
            raise InputError(
                f"Holds: task {k} starts from {self.release_s[k]:g} s on and is of array {self.array[k]}; at least 0 "
                f"s and an array from -1 to {len(self.limit) - 1} are allowed."
            )
        if (self.limit < 1).any():
            raise InputError(f"Holds: an array has the limit {self.limit.min()}; at least 1 is allowed.")

    def __len__(self) -> int:
        return len(self.release_s)

    def taken(self, ids: Integers) -> Holds:
        """Return those of some of the tasks, numbered again."""
        return Holds(self.release_s[ids], self.array[ids], self.limit)
