"""Instants at a fixed interval at which the policy is asked."""

from __future__ import annotations

import math

from gridsched.model.instants import instant_width


class MappingEvents:
    """When the next mapping event is.

    Parameters
    ----------
    interval_s : float or None
        Between two of them [s]; None or 0 where there are none.

    Attributes
    ----------
    exist : bool
        Whether there are, or are still to come.
    next_time : float
        When the next one is [s]; infinite where there are none.
    """

    def __init__(self, interval_s: float | None) -> None:
        self.exist = bool(interval_s)
        self.next_time = 0.0 if interval_s else math.inf
        self._interval_s = interval_s or math.inf
        self._next_number = 0

    def is_due(self, now: float) -> bool:
        """Whether one is due at `now` [s]; the next one is then an interval later."""
        due = self.next_time <= now + instant_width(now)
        if due:
            passed = math.floor(now / self._interval_s + 1e-9)
            self._next_number = max(passed, self._next_number) + 1
            self.next_time = self._next_number * self._interval_s
        return due

    def put_off_until(self, time: float) -> None:
        """Have the next one at `time` [s] where it would be earlier."""
        self.next_time = max(self.next_time, time)

    def end(self) -> None:
        """Have no more of them."""
        self.exist, self.next_time = False, math.inf
