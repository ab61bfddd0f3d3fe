"""What is due at a time of its own: hosts booted or shut down, files that have come, wakes."""

from __future__ import annotations

import heapq
import math

from gridsched.engine.execution import Execution, Timer


class Timers:
    """A heap of timers; those of one time are in the order of `Timer`, then of being set."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, Timer, int, int, Execution | None]] = []
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    @property
    def first(self) -> float:
        """When the next one is due [s]; infinite where none is set."""
        return self._heap[0][0] if self._heap else math.inf

    def set(
        self, time: float, kind: Timer, host: int = 0, execution: Execution | None = None
    ) -> None:  # fmt: skip
        """Set a timer for `time` [s]."""
        heapq.heappush(self._heap, (time, kind, self._count, host, execution))
        self._count += 1

    def take(self) -> tuple[Timer, int, Execution | None]:
        """Take the first one: its kind, host and execution."""
        _, kind, _, host, execution = heapq.heappop(self._heap)
        return kind, host, execution

    def forget(self, kind: Timer) -> None:
        """Forget all timers of a kind."""
        self._heap = [timer for timer in self._heap if timer[1] != kind]
        heapq.heapify(self._heap)
